/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "export/stack_times.h"

#define TICK  1
#define OTHER 2
#define WAIT  3

/* What a reader sees of the samples so far: "start-end stack value", CPU time with a '*'. */
struct seen {
	struct stack_times times;
	enum stack_times_kind kind;
	struct timed_stack last;
	char text[400];
};

static void see(struct seen *seen, const struct timed_stack *stacks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct timed_stack *s = &seen->last;
		const size_t len = strlen(seen->text);

		cr_assert_geq(stacks[i].ts, s->ts, "times go back");
		if (s->ts)
			snprintf(seen->text + len, sizeof(seen->text) - len,
				 "%llu-%llu %u %llu%s; ", (unsigned long long)s->ts,
				 (unsigned long long)stacks[i].ts, s->stack,
				 (unsigned long long)s->value, s->runs ? "*" : "");
		seen->last = stacks[i];
	}
}

static void add(struct seen *seen, uint64_t ts, uint64_t value, uint32_t stack)
{
	const struct stack_sample s = {
		.ts = ts,
		.value = value,
		.stack = stack,
		.after_wait = stack == WAIT ? OTHER : 0,
		.waits = stack == WAIT,
	};
	struct timed_stack stacks[STACK_TIMES_MAX];

	see(seen, stacks, stack_times_add(&seen->times, seen->kind, &s, stacks));
}

static void expect(struct seen *seen, const char *text)
{
	struct timed_stack stacks[STACK_TIMES_MAX];

	see(seen, stacks, stack_times_end(&seen->times, seen->kind, stacks));
	cr_expect_str_eq(seen->text, text, "%s", seen->text);
}

/* A tick tells of all CPU time back to a wait; after it, its stack lasts until the next wait. */
Test(stack_times, waits_begin_and_end_when_they_did)
{
	struct seen seen = { .kind = STACK_TIMES_ALL };

	add(&seen, 110, 10, TICK);
	add(&seen, 150, 30, WAIT);
	add(&seen, 170, 5, TICK);
	add(&seen, 200, 30, WAIT);
	expect(&seen, "100-120 1 10*; 120-150 3 30; 150-170 1 5*; 170-200 3 30; ");
}

Test(stack_times, between_two_waits_the_thread_runs_what_waited)
{
	struct seen seen = { .kind = STACK_TIMES_ALL };

	add(&seen, 150, 50, WAIT);
	add(&seen, 200, 40, WAIT);
	add(&seen, 210, 10, WAIT);
	expect(&seen, "100-150 3 50; 150-160 2 0*; 160-200 3 40; 200-210 3 10; ");
}

/* A wait can be read behind a tick that came later, and may be said to begin before another one. */
Test(stack_times, what_overlaps_begins_later)
{
	struct seen seen = { .kind = STACK_TIMES_ALL };

	add(&seen, 200, 10, TICK);
	add(&seen, 150, 10, WAIT);
	add(&seen, 220, 60, WAIT);
	expect(&seen, "190-200 1 10*; 200-200 3 10; 200-220 3 60; ");
}

Test(stack_times, what_is_hidden_is_not_cpu_time)
{
	struct seen seen = { .kind = STACK_TIMES_ALL };

	add(&seen, 150, 50, WAIT);
	stack_times_hide(&seen.times);
	add(&seen, 200, 10, TICK);
	stack_times_hide(&seen.times);
	add(&seen, 300, 10, WAIT);
	expect(&seen, "100-150 3 50; 150-190 0 0; 190-200 1 10*; 200-290 0 0; 290-300 3 10; ");
}

/* Without waits: a tick that is a little late is no pause. */
Test(stack_times, pauses_between_ticks)
{
	struct seen seen = { .kind = STACK_TIMES_PART };

	add(&seen, 110, 10, TICK);
	add(&seen, 130, 10, OTHER);
	add(&seen, 200, 10, TICK);
	expect(&seen, "100-110 1 10*; 110-130 2 10*; 130-190 0 0; 190-200 1 10*; ");
}

/* Of waits alone, each time between two is not shown. */
Test(stack_times, waits_alone)
{
	struct seen seen = { .kind = STACK_TIMES_PART };

	add(&seen, 110, 10, WAIT);
	add(&seen, 121, 10, WAIT);
	expect(&seen, "100-110 3 10; 110-111 0 0; 111-121 3 10; ");
}

Test(stack_times, other_values_are_moments)
{
	struct seen seen = { .kind = STACK_TIMES_NONE };

	add(&seen, 110, 5000, TICK);
	add(&seen, 120, 5000, OTHER);
	add(&seen, 115, 5000, TICK);
	expect(&seen, "110-120 1 5000*; 120-120 2 5000*; ");
}
