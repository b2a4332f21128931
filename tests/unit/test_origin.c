/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "export/origin.h"
#include "support/profile_builder.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(origin, .init = setup, .fini = teardown);

static uint32_t version(const char *s)
{
	uint32_t id = 0;

	cr_assert_eq(intern_add(&b.out.profile.strings, s, strlen(s), &id, NULL), 0);
	return id;
}

/* Each version once, in the order of the processes; one of which no Ruby was found has none. */
Test(origin, versions_and_what_is_missing)
{
	const char *const versions[] = { "3.3.6", "2.7.4", "", "3.3.6" };
	struct profile *p = &b.out.profile;
	struct buf out = BUF_INIT;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t thread = builder_thread(&b, builder_process(&b, 40 + i, "ruby"), 40 + i,
						 "t");

		builder_add(&b, thread, builder_path(&b, "<main>"), 1);
	}
	builder_finish(&b);
	for (uint32_t i = 0; i < 4; i++)
		p->processes[i].ruby_version = *versions[i] ? version(versions[i]) : 0;
	p->totals.truncated = 1;
	p->totals.unresolved = 22;
	p->totals.failed = 333;
	p->totals.lost = 4444;
	origin_add(p, &out);
	cr_assert(!buf_failed(&out));
	cr_expect_str_eq(strchr(buf_str(&out), ','),
			 ", ruby 3.3.6, 2.7.4, 4 samples (1 truncated, 22 unresolved, 333 failed), "
			 "4,444 lost");
	buf_deinit(&out);
}
