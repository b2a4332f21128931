/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which clock sees the running thread: that of the CPU that it is on until its own one has ticked,
 * if it has one, and its own from then on. So each moment of a thread is seen by one clock.
 */
#ifndef RBPF_CLOCK_BPF_H
#define RBPF_CLOCK_BPF_H

/* What a BPF program that takes a sample is run by. */
enum clock {
	NO_CLOCK,
	CLOCK_OF_THREAD,
	CLOCK_OF_CPU,
};

static __always_inline bool is_ticking(__u32 tid)
{
	__u32 i = tid / 64;
	const __u64 *word = bpf_map_lookup_elem(&ticking, &i);

	return word && *word >> tid % 64 & 1;
}

/*
 * Nobody else changes the bit of a thread meanwhile, so it can be added and taken away: 5.10 has no
 * other atomic operation.
 */
static __always_inline void set_ticking(__u32 tid, bool is)
{
	__u32 i = tid / 64;
	__u64 *word = bpf_map_lookup_elem(&ticking, &i);
	const __u64 bit = 1ull << tid % 64;

	if (word && is_ticking(tid) != is)
		__sync_fetch_and_add(word, is ? bit : -bit);
}

/* Whether a program that @clock runs is to take a sample of thread @tid, which runs, of @proc. */
static __always_inline bool is_seen_by(enum clock clock, const struct rbpf_proc *proc, __u32 tid)
{
	bool has_own;

	if (clock == NO_CLOCK)
		return true;
	has_own = current_member(start_time, start_time) < proc->clocked;
	if (clock == CLOCK_OF_THREAD)
		return has_own;
	return !has_own || !is_ticking(tid);
}

#endif
