/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/err.h"
#include "export/request_spans.h"
#include "export/shown.h"
#include "support/all_time.h"
#include "support/profile_builder.h"

#define MS 1000000u

static struct profile_builder b;
static uint32_t thread, code, waits;

static void setup(void)
{
	builder_init(&b);
	builder_states(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	code = builder_path(&b, "a");
	waits = builder_reason(&b, code, REASON_WAIT_NETWORK);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(request_spans, .init = setup, .fini = teardown);

/* Ends at @ms; @length 0: a tick. */
static void add(uint32_t ms, uint32_t length, uint32_t request)
{
	b.now = BUILDER_START + (uint64_t)(ms - length) * MS;
	if (length) {
		builder_state(&b, thread, waits, BUILDER_WAIT, (uint64_t)length * MS, request);
		return;
	}
	b.now -= BUILDER_PERIOD;
	builder_state(&b, thread, code, BUILDER_CPU, BUILDER_PERIOD, request);
}

/* "start-end", in ms, of all requests, as they are shown with samples of @event. */
static void expect_of(const char *event, const char *expected)
{
	const struct read_options opts = { .event = event, .by_request = true };
	struct profile p = PROFILE_INIT;
	struct request_spans spans = REQUEST_SPANS_INIT;
	struct shown shown;
	char text[200] = "";

	all_time_read(&b, opts, &p);
	cr_assert_eq(shown_init(&p, NULL, &shown), 0);
	cr_assert_eq(request_spans_init(&p, shown.selection, NULL, &spans, NULL), 0);
	for (size_t i = spans.first[thread]; i < spans.first[thread + 1]; i++) {
		const struct request_span *s = &spans.spans[i];
		const size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%g-%g ",
			 (double)(s->start - BUILDER_START) / MS,
			 (double)(s->end - BUILDER_START) / MS);
	}
	cr_expect_str_eq(text, expected, "%s", text);
	request_spans_deinit(&spans);
	shown_deinit(&shown);
	profile_deinit(&p);
}

static void expect(const char *expected)
{
	expect_of(EVENT_WALL, expected);
}

/* The period is 10 ms. */
Test(request_spans, a_tick_is_in_the_middle_of_a_period)
{
	add(20, 0, 0);
	add(40, 0, builder_request(&b, thread, "rails", "A#b"));
	add(60, 0, 0);
	expect("35-45 ");
}

Test(request_spans, a_wait_is_as_long_as_it_is)
{
	uint32_t request = builder_request(&b, thread, "rails", "A#b");

	add(20, 10, request);
	add(40, 15, request);
	expect("10-40 ");
}

Test(request_spans, requests_do_not_overlap)
{
	uint32_t first = builder_request(&b, thread, "rails", "A#b");
	uint32_t second = builder_request(&b, thread, "rails", "A#c");

	add(20, 0, first);
	add(30, 0, first);
	add(36, 0, second);
	expect("15-33 33-41 ");
}

Test(request_spans, waits_next_to_a_request)
{
	uint32_t request = builder_request(&b, thread, "rails", "A#b");

	add(18, 5, 0);
	add(20, 0, request);
	add(26, 3, 0);
	expect("18-23 ");
}

/* A wait that is read behind a tick that came later, and one that begins before a tick. */
Test(request_spans, waits_that_overlap_ticks)
{
	uint32_t first = builder_request(&b, thread, "rails", "A#b");
	uint32_t second = builder_request(&b, thread, "rails", "A#c");

	add(20, 0, first);
	add(18, 1, 0);
	add(29, 12, second);
	expect("18-20 20-29 ");
}

Test(request_spans, begins_with_the_recording)
{
	add(2, 0, builder_request(&b, thread, "rails", "A#b"));
	expect("0-7 ");
}

/* That a request waits is known, though only ticks are shown. */
Test(request_spans, requests_do_not_overlap_where_waits_are_not_shown)
{
	uint32_t first = builder_request(&b, thread, "rails", "A#b");
	uint32_t second = builder_request(&b, thread, "rails", "A#c");
	uint32_t third = builder_request(&b, thread, "rails", "A#d");

	add(20, 0, first);
	add(40, 18, first);
	add(43, 0, second);
	add(60, 14, third);
	add(62, 0, third);
	expect("15-40 40-46 46-67 ");
	expect_of(EVENT_CPU, "15-40 40-46 46-67 ");
}

Test(request_spans, waits_that_are_not_shown_are_next_to_a_request)
{
	add(18, 5, 0);
	add(20, 0, builder_request(&b, thread, "rails", "A#b"));
	add(26, 3, 0);
	expect_of(EVENT_CPU, "18-23 ");
}

/* Nor are ticks where only waits are. */
Test(request_spans, requests_do_not_overlap_where_ticks_are_not_shown)
{
	uint32_t first = builder_request(&b, thread, "rails", "A#b");
	uint32_t second = builder_request(&b, thread, "rails", "A#c");

	add(20, 10, first);
	add(22, 0, first);
	add(28, 0, second);
	add(40, 10, second);
	expect_of(EVENT_WAIT, "10-25 25-40 ");
}

/* The second one has the lower id, for it is read first. */
Test(request_spans, a_request_that_is_read_late_is_where_it_was)
{
	uint32_t second = builder_request(&b, thread, "rails", "A#b");

	add(50, 10, second);
	add(30, 10, builder_request(&b, thread, "rails", "A#c"));
	add(60, 10, second);
	expect("20-30 40-60 ");
}
