/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdint.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"

Test(number, count)
{
	cr_expect_str_eq(num_count(0).s, "0");
	cr_expect_str_eq(num_count(999).s, "999");
	cr_expect_str_eq(num_count(1000).s, "1,000");
	cr_expect_str_eq(num_count(11876).s, "11,876");
	cr_expect_str_eq(num_count(1000000).s, "1,000,000");
	cr_expect_str_eq(num_count(UINT64_MAX).s, "18,446,744,073,709,551,615");
}

Test(number, duration)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{ 0, "0 s" },
		{ 1, "0.0 µs" },
		{ 2600, "2.6 µs" },
		{ 250 * NSEC_PER_USEC, "250 µs" },
		{ 99949, "99.9 µs" },
		{ 99950, "100 µs" },
		{ 999499, "999 µs" },
		{ 999500, "1 ms" },
		{ 1499999, "1 ms" },
		{ 1999000, "2 ms" },
		{ 999499999, "999 ms" },
		{ 999500000, "1.0 s" },
		{ NSEC_PER_SEC - 1, "1.0 s" },
		{ NSEC_PER_SEC, "1.0 s" },
		{ 29949999999, "29.9 s" },
		{ 29950000000, "30.0 s" },
		{ 1999999999, "2.0 s" },
		{ 12345 * NSEC_PER_SEC, "12,345.0 s" },
		{ UINT64_MAX, "18,446,744,073.7 s" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_str_eq(num_duration(cases[i].ns).s, cases[i].want, "%zu: %s", i,
				 num_duration(cases[i].ns).s);
}

Test(number, bounds_of_durations)
{
	static const struct {
		uint64_t ns;
		const char *least, *most;
	} cases[] = {
		{ 0, "0 s", "0 s" },
		{ 1, "0.0 µs", "0.1 µs" },
		{ 99960, "99.9 µs", "100 µs" },
		{ 1999000, "1 ms", "2 ms" },
		{ 999999, "999 µs", "1 ms" },
		{ 999999999, "999 ms", "1.0 s" },
		{ 12 * NSEC_PER_MSEC, "12 ms", "12 ms" },
		{ 1990000000, "1.9 s", "2.0 s" },
		{ UINT64_MAX, "18,446,744,073.7 s", "18,446,744,073.7 s" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_expect_str_eq(num_duration_at_least(cases[i].ns).s, cases[i].least, "%zu: %s", i,
				 num_duration_at_least(cases[i].ns).s);
		cr_expect_str_eq(num_duration_at_most(cases[i].ns).s, cases[i].most, "%zu: %s", i,
				 num_duration_at_most(cases[i].ns).s);
	}
}

Test(number, other_numbers)
{
	cr_expect_str_eq(num_seconds(9411000000).s, "9.41s");
	cr_expect_str_eq(num_seconds(0).s, "0.00s");
	cr_expect_str_eq(num_percent(1, 3).s, "33.3%");
	cr_expect_str_eq(num_percent(3, 3).s, "100.0%");
	cr_expect_str_eq(num_percent(5, 4).s, "125.0%");
	cr_expect_str_eq(num_percent(0, 0).s, "0.0%");
	cr_expect_str_eq(num_bytes(999).s, "999 B");
	cr_expect_str_eq(num_bytes(1000).s, "1.0 kB");
	cr_expect_str_eq(num_bytes(999999).s, "1.0 MB");
	cr_expect_str_eq(num_bytes(1400000).s, "1.4 MB");
	cr_expect_str_eq(num_bytes(999949).s, "999.9 kB");
	cr_expect_str_eq(num_bytes(999950).s, "1.0 MB");
	cr_expect_str_eq(num_bytes(999960).s, "1.0 MB", "not 1,000.0 kB");
	cr_expect_str_eq(num_bytes(999949999999999999).s, "999.9 PB");
	cr_expect_str_eq(num_bytes(999950000000000000).s, "1.0 EB");
	cr_expect_str_eq(num_bytes(UINT64_MAX).s, "18.4 EB");
	cr_expect_str_eq(num_clock(0).s, "00:00");
	cr_expect_str_eq(num_clock(12 * NSEC_PER_SEC).s, "00:12");
	cr_expect_str_eq(num_clock(3599 * NSEC_PER_SEC).s, "59:59");
	cr_expect_str_eq(num_clock(3723 * NSEC_PER_SEC).s, "1:02:03");
	cr_expect_str_eq(num_of(1, "process", "processes").s, "1 process");
	cr_expect_str_eq(num_of(1200, "process", "processes").s, "1,200 processes");
	cr_expect_str_eq(num_of(0, "sample", "samples").s, "0 samples");
	cr_expect_str_eq(num_frequency(0, 99).s, "99 Hz");
	cr_expect_str_eq(num_frequency(24, 99).s, "24 to 99 Hz");
	cr_expect_str_eq(num_frequency(99, 99).s, "99 Hz");
	cr_expect_str_eq(num_frequency(UINT64_MAX, UINT32_MAX).s, "4294967295 Hz");
}

Test(number, one_alone)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} durations[] = {
		{ 0, "0 s" },
		{ 999, "999 ns" },
		{ 2600, "2.60 µs" },
		{ 9994000, "9.99 ms" },
		{ 9995000, "10.0 ms" },
		{ 29600000, "29.6 ms" },
		{ 99940000, "99.9 ms" },
		{ 100000000, "100 ms" },
		{ 340000000, "340 ms" },
		{ 1204000000, "1.20 s" },
		{ 9949000000, "9.95 s" },
		{ 30000000000, "30.0 s" },
		{ 4000200000000, "4,000.2 s" },
		{ UINT64_MAX, "18,446,744,073.7 s" },
	};
	static const struct {
		uint64_t part, whole;
		const char *want;
	} shares[] = {
		{ 0, 10, "0%" },
		{ 1, 0, "0%" },
		{ 1, 1000000, "<0.01%" },
		{ 4, 10000, "0.04%" },
		{ 123, 1000, "12.3%" },
		{ 5, 4, "125.0%" },
		{ UINT64_MAX, UINT64_MAX, "100%" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(durations); i++)
		cr_expect_str_eq(num_duration_fine(durations[i].ns).s, durations[i].want, "%zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		cr_expect_str_eq(num_percent_fine(shares[i].part, shares[i].whole).s,
				 shares[i].want, "%zu", i);
}
