/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/buf.h"
#include "profile/profile_sink.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/request.h"
#include "view/reshape.h"
#include "view/trace.h"

static struct profile_builder b;
static uint32_t thread, orders, carts;

static uint32_t add_request(const char *name)
{
	const struct profile_request_kind kind = { .framework = builder_str(&b, "rails"),
						   .name = builder_str(&b, name) };
	uint32_t id = 0;

	builder_must(sink_request(&b.out.sink, thread, &kind, &id));
	return id;
}

/* @trace and @span: their last bytes; 0: of none. */
static void add(const char *path, uint8_t trace, uint8_t of_span, uint32_t request, uint64_t value)
{
	const struct profile_span span = { .trace_id = { 0xab, [15] = trace },
					   .span_id = { [7] = of_span } };
	struct profile_sample sample = { .ts = BUILDER_START + BUILDER_PERIOD,
					 .value = value,
					 .thread = thread,
					 .stack = builder_path(&b, path),
					 .request = request };

	if (trace)
		builder_must(sink_span(&b.out.sink, &span, &sample.span));
	builder_must(sink_sample(&b.out.sink, &sample));
}

/*
 * Three traces: one with two spans, two stacks and two kinds of requests, and two that are equally
 * long.
 */
static void setup(void)
{
	builder_init(&b);
	b.out.profile.by_span = b.out.profile.by_request = true;
	thread = builder_thread(&b, builder_process(&b, 7, "ruby"), 7, "ruby");
	orders = add_request("OrdersController#index");
	carts = add_request("CartJob");
	add("<main>|a", 2, 1, orders, 30);
	add("<main>|a", 0, 0, 0, 25);
	add("<main>|a", 1, 1, carts, 40);
	add("<main>|b", 1, 2, orders, 35);
	add("<main>|b", 1, 1, orders, 15);
	add("<main>|b", 3, 9, 0, 30);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(trace, .init = setup, .fini = teardown);

/* Rows as "trace request samples value". */
static void expect_rows(const char *expected)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct buf out = BUF_INIT;

	cr_assert_eq(flat_build(&b.out.profile, NULL, FLAT_BY_TRACE, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct flat_row *row = &flat.rows[i];

		trace_label(&b.out.profile, row->id, &out);
		buf_addf(&out, " %s %d %d\n", request_label(&b.out.profile, row->request),
			 (int)row->samples, (int)row->self_value);
		cr_expect_eq(row->total_samples, row->samples);
		cr_expect_eq(row->total_value, row->self_value);
	}
	cr_expect_str_eq(buf_str(&out), expected, "%s", buf_str(&out));
	buf_deinit(&out);
}

Test(trace, rows_are_those_of_all_its_spans)
{
	expect_rows("ab000000000000000000000000000001 OrdersController#index 3 90\n"
		    "ab000000000000000000000000000002 OrdersController#index 1 30\n"
		    "ab000000000000000000000000000003 [no request] 1 30\n"
		    "[no trace] [no request] 1 25\n");
}

/* What stays has the spans that it had. */
Test(trace, of_a_part_of_the_stacks)
{
	struct reshape_options root = { .has_root = true };
	struct view_filter all = VIEW_FILTER_INIT;

	cr_assert_eq(regcomp(&root.root, "^b$", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(profile_reshape(&b.out.profile, &all, &root), 0);
	regfree(&root.root);
	expect_rows("ab000000000000000000000000000001 OrdersController#index 2 50\n"
		    "ab000000000000000000000000000003 [no request] 1 30\n");
}

Test(trace, needs_spans_and_requests_told_apart)
{
	struct flat flat;

	b.out.profile.by_request = false;
	cr_expect_eq(flat_build(&b.out.profile, NULL, FLAT_BY_TRACE, FLAT_SORT_SELF, &flat),
		     -EINVAL);
	b.out.profile.by_request = true;
	b.out.profile.by_span = false;
	cr_expect_eq(flat_build(&b.out.profile, NULL, FLAT_BY_TRACE, FLAT_SORT_SELF, &flat),
		     -EINVAL);
}
