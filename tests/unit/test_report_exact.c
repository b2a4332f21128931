/* SPDX-License-Identifier: GPL-2.0-only */
/* What rbpf report says of waits, whose values are exact, next to samples of CPU time. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/state.h"

static struct profile_builder b;
static struct recording rec;
static struct view_filter filter;
static struct report report;
static struct buf out;
static uint32_t thread;

/* All is of one event, as a reader makes it of CPU time and waits. */
static void setup(void)
{
	static const struct profile_event wall = { .name = EVENT_WALL,
						   .unit = UNIT_NS,
						   .period = BUILDER_PERIOD };

	builder_init(&b);
	b.out.profile.meta.events[0] = wall;
	b.out.profile.meta.n_events = 1;
	thread = builder_thread(&b, builder_process(&b, 42, "ruby shop.rb"), 42, "ruby");
	rec = (struct recording) { .path = "x.data" };
	filter = (struct view_filter) { 0 };
	report = (struct report) { .limit = REPORT_NO_LIMIT, .rec = &rec, .filter = &filter };
}

static void teardown(void)
{
	builder_deinit(&b);
	view_filter_deinit(&filter);
	buf_deinit(&out);
}

TestSuite(report_exact, .init = setup, .fini = teardown);

/* A wait of @path for @reason. */
static void add_wait(const char *path, enum frame_reason reason, uint64_t ns)
{
	builder_sample(&b, thread, builder_reason(&b, builder_path(&b, path), reason), ns, 0);
}

static void add_cpu(const char *path, size_t samples)
{
	builder_add(&b, thread, builder_path(&b, path), samples);
}

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static const char *render(renderer fn)
{
	struct err err = { 0 };

	rec.profile = *builder_finish(&b);
	buf_reset(&out);
	cr_assert_eq(fn(&report, &out, &err), 0, "%s", err.msg);
	return buf_str(&out);
}

static void expect_part(const char *text, const char *want)
{
	cr_expect_not_null(strstr(text, want), "%s\nis not in\n%s", want, text);
}

/* Of 100 samples 99 are of CPU time, but 99 % of the time is one wait. */
Test(report_exact, what_is_filtered_is_a_share_of_the_time)
{
	struct err err = { 0 };

	add_cpu("<main>|A#x", 99);
	add_wait("<main>|A#read", REASON_WAIT_GVL, 98010000000);
	cr_assert_eq(state_set_parse("gvl", &filter.states, &err), 0);
	expect_part(render(report_text), "\nfiltered: 98.0 s of 99.0 s (99.0%), 1 sample\n");
	cr_assert_eq(state_set_parse("user", &filter.states, &err), 0);
	expect_part(render(report_text), "\nfiltered: 990 ms of 99.0 s (1.0%), 99 samples\n");
}
