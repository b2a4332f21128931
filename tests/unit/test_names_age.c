/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "sample/names_age.h"

#define BEGIN (1000 * NSEC_PER_SEC)
#define SIZE  1000000u

/*
 * How often they are forgotten in @seconds, of which each adds @growth bytes to @size, which are
 * read again at once.
 */
static int forgotten(size_t size, size_t growth, unsigned int seconds)
{
	struct names_age age = { 0 };
	size_t bytes = size;
	int n = 0;

	for (unsigned int i = 0; i < seconds; i++) {
		bytes += growth;
		if (names_age_over(&age, bytes, NAMES_ROOM, BEGIN + i * NSEC_PER_SEC)) {
			n++;
			bytes = size;
		}
	}
	return n;
}

Test(names_age, of_code_that_stays)
{
	cr_expect_eq(forgotten(SIZE, 0, 7200), 0);
	cr_expect_eq(forgotten(100, 0, 7200), 0);
	cr_expect_eq(forgotten(0, 0, 7200), 0);
	cr_expect_eq(forgotten(SIZE, 1, 7200), 0, "too few to be worth it");
}

Test(names_age, of_code_that_goes)
{
	cr_expect_eq(forgotten(SIZE, 1000, 7200), 11, "every ten minutes");
	cr_expect_eq(forgotten(0, 100, 7200), 11);
}

/* While a program starts it has ever more names, all of which it may need. */
Test(names_age, of_a_program_that_starts)
{
	struct names_age age = { 0 };

	cr_expect_not(names_age_over(&age, 1000, NAMES_ROOM, BEGIN));
	cr_expect_not(names_age_over(&age, SIZE, NAMES_ROOM, BEGIN + NAMES_SETTLE_NS));
	cr_expect_not(names_age_over(&age, SIZE + SIZE / NAMES_GROWTH, NAMES_ROOM,
				     BEGIN + 2 * NAMES_KEEP_NS));
	cr_expect(names_age_over(&age, SIZE + SIZE / NAMES_GROWTH + NAMES_ROOM + 1, NAMES_ROOM,
				 BEGIN + 2 * NAMES_KEEP_NS));
	cr_expect_not(names_age_over(&age, SIZE * 2, NAMES_ROOM, BEGIN + 2 * NAMES_KEEP_NS + 1),
		      "only just");
}

/* They were forgotten for another reason, or the process has executed something else. */
Test(names_age, gone_meanwhile)
{
	struct names_age age = { 0 };

	cr_expect_not(names_age_over(&age, 1000, NAMES_ROOM, BEGIN));
	cr_expect_not(names_age_over(&age, 0, NAMES_ROOM, BEGIN + NAMES_KEEP_NS));
	cr_expect_not(names_age_over(&age, SIZE, NAMES_ROOM, BEGIN + NAMES_KEEP_NS + 1));
	cr_expect_not(names_age_over(&age, SIZE, NAMES_ROOM, BEGIN + 2 * NAMES_KEEP_NS + 1));
}
