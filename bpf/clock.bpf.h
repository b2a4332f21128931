/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which clock sees the running thread: that of the CPU that it is on, until its own one takes over,
 * if it has one. So each moment of a thread is seen by one clock.
 *
 * Those of the CPUs are right on average, however little a thread uses; its own is right to a
 * period, however it is scheduled. It takes over at one of its first ticks, by chance: were it
 * always the same one, threads that all use a little more than that would seem to use half a period
 * more.
 */
#ifndef RBPF_CLOCK_BPF_H
#define RBPF_CLOCK_BPF_H

/* What a BPF program that takes a sample is run by. */
enum clock {
	NO_CLOCK,
	CLOCK_OF_THREAD,
	CLOCK_OF_CPU,
};

static __always_inline bool has_taken_over(__u32 tid)
{
	__u32 i = tid / 64;
	const __u64 *word = bpf_map_lookup_elem(&taken_over, &i);

	return word && *word >> tid % 64 & 1;
}

/*
 * Nobody else changes the bit of a thread meanwhile, so it can be added and taken away: 5.10 has no
 * other atomic operation.
 */
static __always_inline void set_taken_over(__u32 tid, bool is)
{
	__u32 i = tid / 64;
	__u64 *word = bpf_map_lookup_elem(&taken_over, &i);
	const __u64 bit = 1ull << tid % 64;

	if (word && has_taken_over(tid) != is)
		__sync_fetch_and_add(word, is ? bit : -bit);
}

/*
 * The own clock of thread @tid, which has not taken over yet, ticks. If nothing else sees the
 * thread, it takes over at once.
 *
 * Returns how many periods the tick stands for. If it takes over that is one for what the thread
 * has used since the tick before, if the CPUs have no clocks that see it; and for what it will use
 * after the last tick, half a period on average, one at every other such tick.
 */
static __always_inline __u32 takes_over(__u32 tid)
{
	__u32 chance = bpf_get_prandom_u32();

	if (cpus_have_clocks && chance & 3)
		return 0;
	set_taken_over(tid, true);
	return !cpus_have_clocks + (chance >> 2 & 1);
}

/* What a tick at @ts of the clock of @cpu stands for, in ns. */
static __always_inline __u64 period_of_cpu(__u32 cpu, __u64 ts)
{
	const struct rbpf_cpu_clock *clock = bpf_map_lookup_elem(&cpu_clocks, &cpu);
	__u64 since;

	if (!clock)
		return 0;
	since = ts - clock->drawn_ns;
	return since > clock->period / 2 && since < clock->period / 2 * 3 ? clock->first
									  : clock->period;
}

static __always_inline __s64 take_carried(__u32 tid)
{
	__s64 *carried_ns = bpf_map_lookup_elem(&carried, &tid), ns;

	if (!carried_ns)
		return 0;
	ns = *carried_ns;
	*carried_ns = 0;
	return ns;
}

/*
 * What @periods of the own clock of thread @tid stand for at a tick, in ns. Of one that was changed
 * perf goes on to tell the @period that it had at first.
 */
static __always_inline __u64 period_of_thread(__u64 period, __u32 periods, __u32 tid)
{
	__s64 ns;

	if (period <= longest_period)
		period *= clock_divisor ?: 1;
	ns = (__s64)(period * periods);
	if (any_carried)
		ns += take_carried(tid);
	return ns > 0 ? (__u64)ns : 1;
}

/*
 * How many periods a sample of thread @tid, which runs, of @proc stands for, if @clock runs the
 * program; 0: none is to be taken.
 */
static __always_inline __u32 periods_seen(enum clock clock, const struct rbpf_proc *proc, __u32 tid)
{
	bool has_own, taken_over;

	if (clock == NO_CLOCK)
		return 1;
	has_own = current_member(start_time, start_time) < proc->clocked;
	taken_over = has_own && has_taken_over(tid);
	if (clock == CLOCK_OF_CPU)
		return !taken_over;
	return !has_own ? 0 : taken_over ? 1 : takes_over(tid);
}

#endif
