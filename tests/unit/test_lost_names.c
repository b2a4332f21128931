/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "sample/lost_names.h"

#define SECOND 1000000000ull
#define MS     1000000ull
#define START  (1000 * SECOND)

/*
 * @n stacks from @at on, a ms apart, of which the first @lost have no name. Returns what the last
 * one asks for.
 */
static uint64_t note(struct lost_names *l, uint64_t at, unsigned int n, unsigned int lost)
{
	uint64_t until = 0, ret;

	for (unsigned int i = 0; i < n; i++) {
		lost_names_note(l, at + i * MS, i < lost);
		ret = lost_names_copy_until(l, at + i * MS);
		until = ret ? ret : until;
	}
	return until;
}

Test(lost_names, names_that_are_found_are_not_copied)
{
	struct lost_names l = { 0 };

	cr_expect_eq(note(&l, START, 5000, 0), 0);
}

/* Of a process that has been looked at for more than one window. */
static struct lost_names known(void)
{
	struct lost_names l = { 0 };

	lost_names_note(&l, START - 10 * SECOND, false);
	return l;
}

Test(lost_names, one_lost_may_be_chance)
{
	struct lost_names l = known();

	cr_expect_eq(note(&l, START, 10, 1), 0);
	cr_expect_eq(note(&l, START + 10 * MS, 1, 1), START + 10 * MS + LOST_NAMES_COPY_NS,
		     "the second one in the window is not");
}

Test(lost_names, a_small_share_is_not_worth_it)
{
	struct lost_names l = known();

	cr_expect_eq(note(&l, START, 196, 0), 0);
	cr_expect_eq(note(&l, START + 200 * MS, 4, 4), 0, "4 of 200");
	cr_expect_neq(note(&l, START + 210 * MS, 1, 1), 0, "5 of 201");
	l = known();
	cr_expect_eq(note(&l, START, 21, 0), 0);
	cr_expect_eq(note(&l, START + 100 * MS, 3, 3), 0, "3 of 24");
	cr_expect_neq(note(&l, START + 110 * MS, 1, 1), 0, "4 of 25");
	l = known();
	cr_expect_eq(note(&l, START, 20, 0), 0);
	cr_expect_neq(note(&l, START + 100 * MS, 3, 3), 0, "3 of 23");
}

/* At first there is much to be read, and some of it comes too late. */
Test(lost_names, of_the_first_window_it_must_be_more)
{
	struct lost_names l = { 0 };

	cr_expect_eq(note(&l, START, 7, 7), 0);
	cr_expect_neq(note(&l, START + 10 * MS, 1, 1), 0, "the eighth");
	l = (struct lost_names) { 0 };
	cr_expect_eq(note(&l, START, 63, 7), 0);
	cr_expect_eq(note(&l, START + 100 * MS, 1, 1), 0, "8 of 64");
	cr_expect_neq(note(&l, START + 110 * MS, 1, 1), 0, "9 of 65");
	l = (struct lost_names) { 0 };
	cr_expect_eq(note(&l, START, 100, 7), 0);
	cr_expect_neq(note(&l, START + 2 * SECOND, 10, 2), 0, "of the second one");
}

Test(lost_names, lost_long_ago_do_not_count)
{
	struct lost_names l = { 0 };

	cr_expect_eq(note(&l, START, 1, 1), 0);
	cr_expect_eq(note(&l, START + 2 * SECOND, 1, 1), 0);
	cr_expect_eq(note(&l, START + 4 * SECOND, 1, 1), 0);
}

/* So many in a window: stacks of which no name can be known are not to be sent with each sample. */
Test(lost_names, a_stack_without_its_names_is_asked_for_again)
{
	struct lost_names l = { 0 };

	cr_expect_not(lost_names_ask_again(&l), "nothing was noted");
	lost_names_note(&l, START, false);
	cr_expect_not(lost_names_ask_again(&l), "it has its names");
	for (unsigned int i = 0; i < LOST_NAMES_ASK; i++) {
		lost_names_note(&l, START + i, true);
		cr_expect(lost_names_ask_again(&l));
		cr_expect_not(lost_names_ask_again(&l), "it was already");
	}
	lost_names_note(&l, START + MS, true);
	cr_expect_not(lost_names_ask_again(&l));
	lost_names_note(&l, START + 2 * SECOND, true);
	cr_expect(lost_names_ask_again(&l), "another window");
}

Test(lost_names, while_they_are_copied_nothing_more_is_asked)
{
	struct lost_names l = known();

	cr_expect_neq(note(&l, START, 2, 2), 0);
	cr_expect_eq(note(&l, START + SECOND, 8000, 4000), 0);
}

Test(lost_names, longer_each_time_up_to_a_limit)
{
	struct lost_names l = known();
	uint64_t until = note(&l, START, 2, 2), length = LOST_NAMES_COPY_NS;

	for (int i = 0; i < 8; i++) {
		uint64_t at = until + SECOND;

		length = length < LOST_NAMES_COPY_MAX_NS ? length * 2 : length;
		until = note(&l, at, 2, 2);
		cr_expect_eq(until, at + MS + length);
	}
	cr_expect_eq(length, LOST_NAMES_COPY_MAX_NS);
	cr_expect_eq(note(&l, until + LOST_NAMES_COPY_MAX_NS, 2, 2),
		     until + LOST_NAMES_COPY_MAX_NS + MS + LOST_NAMES_COPY_NS,
		     "not needed for as long again: from the start");
}

Test(lost_names, records_out_of_order)
{
	struct lost_names l = known();

	note(&l, START, 1, 1);
	cr_expect_neq(note(&l, START - MS, 1, 1), 0);
}
