/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "sample/lost_names.h"

#define SECOND 1000000000ull
#define MS     1000000ull
#define START  (1000 * SECOND)

/* @n stacks from @at on, a ms apart, of which the first @lost have no name. Returns what the last one asks for. */
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

Test(lost_names, one_lost_may_be_chance)
{
	struct lost_names l = { 0 };

	cr_expect_eq(note(&l, START, 10, 1), 0);
	cr_expect_eq(note(&l, START + 10 * MS, 1, 1), START + 10 * MS + LOST_NAMES_COPY_NS,
		     "the second one in the window is not");
}

Test(lost_names, a_small_share_is_not_worth_it)
{
	struct lost_names l = { 0 };

	cr_expect_eq(note(&l, START, 100, 0), 0);
	cr_expect_eq(note(&l, START + 100 * MS, 2, 2), 0, "2 of 102");
	cr_expect_neq(note(&l, START + 110 * MS, 1, 1), 0, "3 of 103");
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
	struct lost_names l = { 0 };

	cr_expect_neq(note(&l, START, 2, 2), 0);
	cr_expect_eq(note(&l, START + SECOND, 8000, 4000), 0);
}

Test(lost_names, longer_each_time_up_to_a_limit)
{
	struct lost_names l = { 0 };
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
	struct lost_names l = { 0 };

	note(&l, START, 1, 1);
	cr_expect_neq(note(&l, START - MS, 1, 1), 0);
}
