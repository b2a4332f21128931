/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "ui/summary.h"

static const struct summary_recording unknown;
static const struct summary_recording half_a_minute = { .duration_ns = 30 * NSEC_PER_SEC,
							.frequency = 99 };

Test(summary, totals)
{
	const struct profile_totals totals = {
		.samples = 11876,
		.lost = 2,
		.truncated = 3,
		.unresolved = 41,
		.failed = 71,
		.no_ruby = 606,
		.native_samples = 11870,
		.native_gaps = 12,
		.cpu_sampled_ns = 119900 * NSEC_PER_MSEC,
		.cpu_kernel_ns = 121000 * NSEC_PER_MSEC,
		.rbpf_cpu_ns = 340 * NSEC_PER_MSEC,
		.rbpf_start_cpu_ns = 130 * NSEC_PER_MSEC,
		.kernel_ns_per_sample = 2600,
		.other_ticks = 4000,
		.other_ticks_ns = 4000 * 234,
		.machine_busy_ns = 990 * NSEC_PER_SEC,
		.machine_stolen_ns = 10 * NSEC_PER_SEC,
	};
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&totals, &half_a_minute, &out);
	cr_expect_str_eq(buf_str(&out),
			 "  samples   11,876    Ruby 94.3%   no Ruby 5.1%   walk failed 0.6%\n"
			 "  native    11,870    complete 99.9%\n"
			 "  lost      2         truncated stacks 3   unresolved 41\n"
			 "  cpu       119.9 s sampled of 121.0 s by the kernel's account (99.1%)\n"
			 "  overhead  rbpf 210 ms (0.7% of one core)   130 ms to start\n"
			 "  kernel    2.6 µs a sample   234 ns at each of 4,000 ticks that made "
			 "no sample\n",
			 "%s", buf_str(&out));

	buf_reset(&out);
	summary_defects(&totals, &half_a_minute, &out);
	cr_expect_str_eq(buf_str(&out),
			 "  lost 2, truncated 3, unresolved 41, failed 71 (0.6% of samples)\n"
			 "  cpu sampled 119.9 s of 121.0 s by the kernel's account (99.1%)\n",
			 "%s", buf_str(&out));
}

/* Samples became fewer: they are not expected to be as exact either. */
Test(summary, fewer_samples_than_were_asked_for)
{
	struct profile_totals t = { .samples = 100,
				    .cpu_sampled_ns = 940 * NSEC_PER_MSEC,
				    .cpu_kernel_ns = NSEC_PER_SEC,
				    .lowest_hz = 24,
				    .lowered_ns = 20 * NSEC_PER_SEC };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&t, &half_a_minute, &out);
	cr_expect(strstr(buf_str(&out),
			 "\n  fewer samples for 20.0 s, down to 24 Hz: at 99 Hz they cost this "
			 "busy machine more than "
			 "--max-cost\n"),
		  "%s", buf_str(&out));
	t.cpu_kernel_ns = 100 * NSEC_PER_SEC;
	t.cpu_sampled_ns = 94 * NSEC_PER_SEC;
	cr_expect_not(summary_cpu_differs(&t, 99), "at 24 Hz it may be chance");
	t.lowest_hz = 0;
	cr_expect(summary_cpu_differs(&t, 99));
}

Test(summary, share_of_garbage_collection)
{
	const struct profile_totals totals = {
		.samples = 1000,
		.cpu_sampled_ns = 10 * NSEC_PER_SEC,
		.cpu_kernel_ns = 11 * NSEC_PER_SEC,
		.gc_ns = 1120 * NSEC_PER_MSEC,
	};
	const struct profile_totals no_account = { .cpu_sampled_ns = 10, .gc_ns = 5 };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&totals, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "  cpu       10.0 s sampled of 11.0 s by the kernel's "
					"account (90.9%)   GC 11.2%\n"),
		  "%s", buf_str(&out));
	buf_reset(&out);
	summary_defects(&totals, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "of 11.0 s by the kernel's account (90.9%)   GC 11.2%\n"),
		  "%s", buf_str(&out));
	buf_reset(&out);
	summary_defects(&no_account, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "account is not in the recording   GC 50.0%\n"), "%s",
		  buf_str(&out));
}

/* What was not measured is not 0. */
Test(summary, unknown_garbage_collection)
{
	struct profile_totals t = { .cpu_sampled_ns = 1000, .gc_unknown_ns = 1000 };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_defects(&t, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "is not in the recording   GC unknown\n"), "%s",
		  buf_str(&out));
	buf_reset(&out);
	summary_totals(&t, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "   GC unknown\n"), "%s", buf_str(&out));
	cr_expect(strstr(buf_str(&out), "'rbpf doctor -p PID'"), "%s", buf_str(&out));
	t.gc_unknown_ns = 400;
	buf_reset(&out);
	summary_totals(&t, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "   GC 0.0%, unknown of 40.0%\n"), "%s", buf_str(&out));
	t.gc_ns = 300;
	buf_reset(&out);
	summary_totals(&t, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "   GC 30.0%, unknown of 40.0%\n"), "%s", buf_str(&out));
	t.gc_unknown_ns = 0;
	buf_reset(&out);
	summary_totals(&t, &unknown, &out);
	cr_expect_null(strstr(buf_str(&out), "unknown"), "%s", buf_str(&out));
}

/* A loss is told in words; what is no loss, or too little of one to matter, is not. */
Test(summary, counters_that_matter)
{
	struct profile_totals totals = { .samples = 1000, .cpu_kernel_ns = 1 };
	_cleanup_buf_ struct buf out = BUF_INIT;
	const char *lines;

	totals.counters[COUNTER_TICKS] = 1000;
	totals.counters[COUNTER_COPIED] = 700;
	totals.counters[COUNTER_ENV_FAULT] = 10;
	totals.counters[COUNTER_LOST_STACK] = 1;
	totals.counters[COUNTER_NOT_FOLLOWED] = 1234;
	summary_totals(&totals, &unknown, &out);
	lines = strstr(buf_str(&out), "overhead");
	cr_assert(lines);
	cr_expect_str_eq(
		strchr(lines, '\n') + 1,
		"  1 Ruby stack found the ring buffer full, or half full if they were deep: "
		"samples of them have [stack lost]; --ring makes it larger\n"
		"  1,234 processes not followed, for rbpf already follows too many, in all "
		"or of their user, or its memory is at --memlimit: what they did is "
		"missing; --comm, --user, --cgroup or -p follow fewer\n",
		"%s", buf_str(&out));

	buf_reset(&out);
	totals.counters[COUNTER_ENV_FAULT] = 11;
	summary_defects(&totals, &unknown, &out);
	cr_expect(strstr(buf_str(&out), "\n  11 environments of frames could not be read"), "%s",
		  buf_str(&out));
}

/* Above 1 % of what the CPUs had to do, as a reason for a sum of samples that is too small. */
Test(summary, time_that_a_hypervisor_took)
{
	struct profile_totals totals = {
		.samples = 100,
		.machine_busy_ns = 95 * NSEC_PER_SEC,
		.machine_stolen_ns = 5 * NSEC_PER_SEC,
	};
	static const char said[] =
		"\n  5.0 s of CPU time was taken by the hypervisor (steal), 5.0% of "
		"what the CPUs of this machine had to do: clocks lose ticks in "
		"it, or count it\n";
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&totals, &unknown, &out);
	cr_expect_not_null(strstr(buf_str(&out), said), "%s", buf_str(&out));
	buf_reset(&out);
	summary_defects(&totals, &unknown, &out);
	cr_expect_not_null(strstr(buf_str(&out), said), "%s", buf_str(&out));
	buf_reset(&out);
	totals.machine_busy_ns = 495 * NSEC_PER_SEC;
	summary_totals(&totals, &unknown, &out);
	summary_defects(&totals, &unknown, &out);
	cr_expect_null(strstr(buf_str(&out), "hypervisor"), "%s", buf_str(&out));
}

/* It may be why there are too many as well as why there are too few. */
Test(summary, clocks_that_a_hypervisor_disturbs)
{
	struct profile_totals t = { .samples = 10000,
				    .cpu_sampled_ns = 110 * NSEC_PER_SEC,
				    .cpu_kernel_ns = 100 * NSEC_PER_SEC,
				    .machine_busy_ns = 95 * NSEC_PER_SEC,
				    .machine_stolen_ns = 5 * NSEC_PER_SEC };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&t, &half_a_minute, &out);
	cr_expect(strstr(buf_str(&out), "  warning: the samples stand for 10.0% more CPU time than "
					"was used: probably as clocks run on while the hypervisor "
					"has the CPU\n"),
		  "%s", buf_str(&out));
	buf_reset(&out);
	t.machine_stolen_ns = 0;
	summary_totals(&t, &half_a_minute, &out);
	cr_expect(strstr(buf_str(&out), "was used: what begins and ends many times a second"), "%s",
		  buf_str(&out));
}

/* What waits cost is told apart from what samples do, and all that the kernel ran for both. */
Test(summary, cost_of_waits)
{
	struct profile_totals t = {
		.kernel_ns_per_sample = 58000,
		.switches = 265924,
		.switches_ns = 265924 * 1400ull,
		.wakeups = 132000,
		.wakeups_ns = 132000 * 230ull,
		.bpf_ns = 450 * NSEC_PER_MSEC,
	};
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&t, &half_a_minute, &out);
	cr_expect(strstr(buf_str(&out),
			 "\n  kernel    450 ms (1.5% of one core)   58.0 µs a sample of CPU time\n"
			 "  waits     1.40 µs at each of 265,924 switches of threads   "
			 "230 ns at each of 132,000 wake-ups\n"),
		  "%s", buf_str(&out));
	t.switches = t.wakeups = 0;
	t.bpf_ns = 0; /* an older recording does not tell it */
	buf_reset(&out);
	summary_totals(&t, &half_a_minute, &out);
	cr_expect(strstr(buf_str(&out), "\n  kernel    58.0 µs a sample; what else it takes is not "
					"known without CAP_SYS_ADMIN "),
		  "%s", buf_str(&out));
	cr_expect_null(strstr(buf_str(&out), "waits"), "%s", buf_str(&out));
}

/* Where all threads used less than a tenth of the time, and their waits were not recorded. */
Test(summary, of_what_mostly_waits)
{
	static const char hint[] =
		"\n  mostly waiting: all threads together used 9.9% of one core; "
		"'rbpf record --mode states' records what they wait for\n";
	struct profile_totals t = { .samples = 1, .cpu_kernel_ns = 2970 * NSEC_PER_MSEC };
	struct summary_recording recording = half_a_minute;
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&t, &recording, &out);
	cr_expect(strstr(buf_str(&out), hint), "%s", buf_str(&out));
	buf_reset(&out);
	recording.waits = true;
	summary_totals(&t, &recording, &out);
	recording.waits = false;
	t.cpu_kernel_ns = 3 * NSEC_PER_SEC;
	summary_totals(&t, &recording, &out);
	t.cpu_kernel_ns = 0;
	recording.duration_ns = NSEC_PER_SEC - 1;
	summary_totals(&t, &recording, &out);
	cr_expect_null(strstr(buf_str(&out), "mostly waiting"), "%s", buf_str(&out));
	recording.duration_ns = NSEC_PER_SEC;
	summary_totals(&t, &recording, &out);
	cr_expect(strstr(buf_str(&out), "together used 0.0% of one core"), "%s", buf_str(&out));
}

/* Whether both summaries warn, as @how, that @sampled_ms are too far from @account_ms. */
static void expect_warned(struct profile_totals *t, uint64_t sampled_ms, uint64_t account_ms,
			  const char *how)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	t->cpu_sampled_ns = sampled_ms * NSEC_PER_MSEC;
	t->cpu_kernel_ns = account_ms * NSEC_PER_MSEC;
	cr_expect_eq(summary_cpu_differs(t, half_a_minute.frequency), how != NULL);
	for (int i = 0; i < 2; i++) {
		buf_reset(&out);
		if (i)
			summary_defects(t, &half_a_minute, &out);
		else
			summary_totals(t, &half_a_minute, &out);
		cr_expect_eq(strstr(buf_str(&out), how ? how : "warning") != NULL, how != NULL,
			     "%s", buf_str(&out));
	}
}

/* By more than 5 %, and by more than what chance does to so many samples. */
Test(summary, cpu_differs)
{
	static const char switches[] =
		"\n  warning: 22.0% of the CPU time was not sampled, probably "
		"that of switching threads";
	struct profile_totals t = { .samples = 1000 };

	expect_warned(&t, 7800, 10000, switches);
	expect_warned(&t, 780, 1000, NULL);	 /* 22 samples of 99 */
	expect_warned(&t, 1580, 2000, NULL);	 /* 41.6 of 198; 42.2 are three deviations */
	expect_warned(&t, 1560, 2000, switches); /* 43.6 */
	expect_warned(&t, 95000, 100000, NULL);
	expect_warned(&t, 94900, 100000, "\n  warning: 5.1% of the CPU time was not sampled, ");
	expect_warned(&t, 105000, 100000, NULL);
	expect_warned(&t, 112000, 100000,
		      "\n  warning: the samples stand for 12.0% more CPU time than was used: ");
	expect_warned(&t, 20, 2, NULL);	  /* two samples of what used hardly any */
	expect_warned(&t, 1000, 0, NULL); /* the account is unknown */
	expect_warned(&t, 0, 10000, "\n  warning: 100.0% of the CPU time was not sampled, ");
	cr_expect_not(summary_cpu_differs(&t, 0));
	cr_expect(summary_cpu_differs(&t, UINT32_MAX), "as a file may say");
}

/* What is known to have happened is the reason that is told. */
Test(summary, why_cpu_differs)
{
	static const char lost[] = " was not sampled, for samples were lost: ";
	static const char stolen[] = " was not sampled, for clock ticks are lost in what the hyper";
	static const char switches[] = " was not sampled, probably that of switching threads ";
	struct profile_totals t = { .samples = 1000,
				    .machine_busy_ns = 9500,
				    .machine_stolen_ns = 500 };

	t.lost = 110; /* of 218 that are missing */
	expect_warned(&t, 7800, 10000, lost);
	t.lost = 108;
	expect_warned(&t, 7800, 10000, stolen);
	t.machine_stolen_ns = 0;
	expect_warned(&t, 7800, 10000, switches);
}

/* Above 5 %, not at it. */
Test(summary, says_nothing_when_few_failed)
{
	struct profile_totals totals = { .samples = 100, .failed = 5, .cpu_sampled_ns = 1 };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&totals, &unknown, &out);
	cr_expect_null(strstr(buf_str(&out), "because the walk failed"));
	buf_reset(&out);
	totals.failed = 6;
	summary_totals(&totals, &unknown, &out);
	cr_expect_not_null(strstr(buf_str(&out), "6.0% of the samples have no Ruby stack"));
}

Test(summary, says_when_many_failed_and_what_is_unknown)
{
	const struct profile_totals totals = { .samples = 100, .failed = 6, .no_ruby = 200 };
	_cleanup_buf_ struct buf out = BUF_INIT;

	summary_totals(&totals, &unknown, &out);
	cr_expect_str_eq(buf_str(&out),
			 "  samples   100       Ruby 0.0%   no Ruby 200.0%   walk failed 6.0%\n"
			 "  lost      0         truncated stacks 0   unresolved 0\n"
			 "  cpu       0 s sampled\n"
			 "  overhead  rbpf 0 s\n"
			 "  6.0% of the samples have no Ruby stack because the walk failed: "
			 "'rbpf doctor -p PID' says more\n",
			 "%s", buf_str(&out));
}
