/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits that began before the BPF programs could read their thread, as those of a process that rbpf
 * attaches to: user space, which walks the memory of who sleeps, says which thread it is, which
 * Mutex it waits for and who holds that (waits.c). Without that nobody would be charged with what
 * others wait for a Mutex that was locked before; the next one that has it would be, for all of it.
 *
 * Such a wait counts from when an iterator takes it up, lock_known_take(). It may end on another
 * CPU just then, and not be counted off: at the next look, or when the thread has gone, it is.
 */
#ifndef RBPF_LOCK_KNOWN_BPF_H
#define RBPF_LOCK_KNOWN_BPF_H

#include "lock.bpf.h"

/* What is known of @wait of thread @tid; NULL: nothing, or the programs have seen it begin. */
static __always_inline struct rbpf_known_wait *lock_known(const struct wait *wait, __u32 tid)
{
	struct rbpf_known_wait *known;

	if (wait->th || !(wait->flags & RBPF_WAIT_BEFORE || wait->status == RBPF_NO_RUBY))
		return NULL;
	known = bpf_map_lookup_elem(&known_waits, &tid);
	return known && known->since == wait->since ? known : NULL;
}

/*
 * It counts among those for its Mutex: all of it, unless one that was seen to begin later came
 * first, for then times of that Mutex count from there on (gvl.base).
 */
static __noinline int lock_known_begin(struct rbpf_known_wait *known, __u32 tgid)
{
	struct gvl *g = gvl_find(known->mutex, tgid);
	__u64 from = known->since;

	if (g && from < g->base)
		from = g->base;
	gvl_wait_begin(known->mutex, tgid, from);
	known->counted = from;
	return 0;
}

static __noinline int lock_known_note_owner(const struct rbpf_known_wait *known, __u32 tgid)
{
	if (known->owner)
		lock_note(lock_noted(known->owner, tgid), known->owner, tgid, known->mutex,
			  known->at);
	return 0;
}

/* It counts no longer: it ended at @until. */
static __always_inline void lock_known_count_off(struct rbpf_known_wait *known, __u32 tgid,
						 __u64 until)
{
	const __u64 from = known->counted;

	if (!from)
		return;
	known->counted = 0;
	barrier();
	gvl_wait_end(known->mutex, tgid, from, until);
}

/*
 * @wait of thread @tid goes on: take it up, if user space has told of it since. Or what was taken
 * up of the thread has ended. No part of its callers, whose stack is short.
 */
static __noinline int lock_known_take(const struct wait *wait, __u32 tid)
{
	struct rbpf_known_wait *known = bpf_map_lookup_elem(&known_waits, &tid);

	if (!known || !known->mutex)
		return 0;
	if (known->since != wait->since) {
		lock_known_count_off(known, wait->tgid, known->counted);
	} else if (!known->counted) {
		lock_known_begin(known, wait->tgid);
		lock_known_note_owner(known, wait->tgid);
		/* It may have ended before it was counted. */
		if (*(const volatile __u64 *)&wait->since != known->since)
			lock_known_count_off(known, wait->tgid, known->counted);
	}
	return 0;
}

/* Thread @tid of process @tgid is forgotten, whatever it waits for. */
static __always_inline void lock_known_forget(__u32 tid, __u32 tgid)
{
	struct rbpf_known_wait *known;

	known = any_known ? bpf_map_lookup_elem(&known_waits, &tid) : NULL;
	if (!known)
		return;
	lock_known_count_off(known, tgid, known->counted);
	bpf_map_delete_elem(&known_waits, &tid);
}

/* @wait is over, of which this is known: from now on it is as if it had been seen to begin. */
static __always_inline void lock_known_end(struct rbpf_known_wait *known, struct wait *wait,
					   __u64 now)
{
	lock_known_count_off(known, wait->tgid, wait->woken ?: now);
	wait->th = known->th;
	wait->lock = known->mutex;
}

#endif
