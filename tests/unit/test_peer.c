/* SPDX-License-Identifier: GPL-2.0-only */
/* What waits were for: in names of frames, and as rows. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "profile/reason.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/peer.h"

static struct profile_builder b;

static void setup(void)
{
	uint32_t thread, foo, bar;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
	foo = builder_path(&b, "<main>|Foo#foo");
	bar = builder_path(&b, "<main>|Foo#bar");
	builder_sample(&b, thread, foo, 1, 0);
	builder_sample(&b, thread, bar, 2, SAMPLE_KERNEL);
	builder_sample(&b, thread, bar, 3, SAMPLE_KERNEL | SAMPLE_PAGE_FAULT);
	builder_sample(&b, thread, builder_wait_for(&b, foo, REASON_WAIT_NETWORK, "10.0.0.5:5432"),
		       4, 0);
	builder_sample(&b, thread, builder_wait_for(&b, bar, REASON_WAIT_NETWORK, "10.0.0.5:5432"),
		       8, 0);
	builder_sample(&b, thread, builder_wait_for(&b, bar, REASON_WAIT_NETWORK, "db.sock"), 16,
		       0);
	builder_sample(&b, thread, builder_wait_for(&b, bar, REASON_WAIT_DISK, "db.sock"), 32, 0);
	builder_sample(&b, thread, builder_reason(&b, bar, REASON_WAIT_DISK), 64, 0);
	builder_sample(&b, thread, builder_reason(&b, foo, REASON_WAIT_TIMER), 128, 0);
	builder_sample(&b, thread, builder_reason(&b, bar, REASON_WAIT_TIMER), 256, 0);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(peer, .init = setup, .fini = teardown);

Test(peer, rows)
{
	_cleanup_buf_ struct buf got = BUF_INIT;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	const struct profile *p = &b.out.profile;

	cr_assert_eq(flat_build(p, NULL, FLAT_BY_PEER, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct flat_row *row = &flat.rows[i];

		cr_expect_eq(row->self_value, row->total_value);
		buf_addf(&got, "%d %s '", (int)row->self_value, state_word(peer_state(p, row)));
		peer_name(p, row, &got);
		buf_addstr(&got, "'\n");
	}
	cr_expect_str_eq(buf_str(&got), "384 timer ''\n"
					"64 disk ''\n"
					"32 disk 'db.sock'\n"
					"16 network 'db.sock'\n"
					"12 network '10.0.0.5:5432'\n"
					"3 minor-fault ''\n"
					"2 system ''\n"
					"1 user ''\n");
}

static void expect_on(enum frame_reason reason, const char *label, const char *want)
{
	size_t n;
	const char *on = wait_label_on(reason, label, &n);

	cr_expect(n == strlen(want) && !memcmp(on, want, n), "'%s': '%.*s'", label, (int)n, on);
}

Test(peer, names_of_frames)
{
	expect_on(REASON_WAIT_NETWORK, "(waits for the network: 10.0.0.5:5432)", "10.0.0.5:5432");
	expect_on(REASON_WAIT_NETWORK, "(waits for the network: a: (b))", "a: (b)");
	expect_on(REASON_WAIT_NETWORK, "(waits for the network)", "");
	expect_on(REASON_WAIT_NETWORK, "(waits for the network: )", "");
	expect_on(REASON_WAIT_NETWORK, "(waits for a file: a)", "");
	expect_on(REASON_WAIT_NETWORK, "", "");
	expect_on(REASON_NONE, "Foo#bar: baz", "");
}
