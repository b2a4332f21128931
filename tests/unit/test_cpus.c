/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "target/cpus.h"

Test(cpus, lists)
{
	static const struct {
		const char *text;
		int v[6];
		size_t n;
	} cases[] = {
		{ "0\n", { 0 }, 1 },
		{ "0-1\n", { 0, 1 }, 2 },
		{ "0-3,6\n", { 0, 1, 2, 3, 6 }, 5 },
		{ "2,4,10-11", { 2, 4, 10, 11 }, 4 },
		{ "7-7", { 7 }, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cpus cpus = CPUS_INIT;

		cr_assert_eq(cpus_parse(cases[i].text, &cpus), 0, "%s", cases[i].text);
		cr_assert_eq(cpus.n, cases[i].n, "%s", cases[i].text);
		cr_expect_arr_eq(cpus.v, cases[i].v, cpus.n * sizeof(int), "%s", cases[i].text);
		for (int cpu = -1; cpu < 13; cpu++) {
			bool has = false;

			for (size_t k = 0; k < cases[i].n; k++)
				has |= cases[i].v[k] == cpu;
			cr_expect_eq(cpus_has(&cpus, cpu), has, "%s: %d", cases[i].text, cpu);
		}
		cpus_deinit(&cpus);
	}
}

Test(cpus, no_lists)
{
	static const char *const cases[] = { "",    "\n",   "x",     "-1",	  "0-",
					     "1-0", "0,,1", "0,",    "1,0",	  "0-2,2",
					     "0 1", "0-1x", "65536", "0-99999999" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cpus cpus = CPUS_INIT;

		cr_expect_eq(cpus_parse(cases[i], &cpus), -EINVAL, "\"%s\"", cases[i]);
		cr_expect(!cpus.v && !cpus.n);
	}
}

Test(cpus, online)
{
	struct cpus cpus = CPUS_INIT;
	struct err err = { 0 };

	cr_assert_eq(cpus_online(&cpus, &err), 0, "%s", err.msg);
	cr_expect_geq(cpus.n, 1);
	cpus_deinit(&cpus);
	cr_expect(!cpus_has(&cpus, 0));
}

Test(cpus, times)
{
	const uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	struct cpus_times times = { 7, 7 };

	cr_assert_eq(
		cpus_parse_times("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\ncpu0 1",
				 &times),
		0);
	cr_expect_eq(times.busy, 7600321 * tick, "idle, waiting and guests are not in it");
	cr_expect_eq(times.stolen, 80000000 * tick);
	cr_expect_eq(cpus_parse_times("cpu  1 2 3 4 5 6 7", &times), -EINVAL);
	cr_expect_eq(cpus_parse_times("cpu0 1 2 3 4 5 6 7 8", &times), -EINVAL);
	cr_expect_eq(cpus_parse_times("", &times), -EINVAL);
	cr_expect_eq(times.stolen, 80000000 * tick, "untouched");
}

/* What this machine says grows by what it does. */
Test(cpus, times_of_this_machine)
{
	const uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct cpus_times before, after;

	cr_assert_eq(cpus_times(&before), 0);
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < begin + 60000000)
		;
	cr_assert_eq(cpus_times(&after), 0);
	cr_expect_geq(after.busy, before.busy + 20000000);
	cr_expect_geq(after.stolen, before.stolen);
}
