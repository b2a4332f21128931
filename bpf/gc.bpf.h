/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a process collects garbage, in which era and who does: what the words of its objspace say
 * when a sample is taken.
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_GC_BPF_H
#define RBPF_GC_BPF_H

#include "walk_state.bpf.h"

/*
 * Whether there is another ractor, whose objspace may be collected, too, which gc_count does not
 * count.
 */
static __always_inline bool gc_is_of_several(const struct rbpf_layout *l)
{
	__u64 ractor;

	if (!l->ractor_objspace)
		return false;
	return !l->gc_single || walk_read(&ractor, sizeof(ractor), l->gc_single) ||
	       ractor != l->gc_ractor;
}

/* The state of the objspace of @ractor, which is one of several: 0 in @gc. */
static __always_inline void gc_read_of(struct walk_gc *gc, const struct rbpf_layout *l,
				       __u64 ractor)
{
	__u64 objspace;
	__u32 flags;

	gc->of_several = 1;
	gc->unknown = walk_read(&objspace, sizeof(objspace), ractor + l->ractor_objspace) ||
		      walk_read(&flags, sizeof(flags), objspace + l->objspace_flags);
	if (!gc->unknown)
		gc->flags = rbpf_gc_flags(flags, l->gc_during_bit);
}

/* @ractor: that of the thread. @words: room for what is read. */
static __always_inline void gc_read(struct walk_gc *gc, const struct rbpf_layout *l, __u64 ractor,
				    __u64 words[RBPF_GC_WORDS])
{
	__u32 flags;
	__u64 count;

	__builtin_memset(gc, 0, sizeof(*gc));
	if (gc_is_of_several(l)) {
		gc_read_of(gc, l, ractor);
		return;
	}
	if (!l->gc_count || !l->gc_flags || walk_read(&flags, sizeof(flags), l->gc_flags) ||
	    walk_read(words, RBPF_GC_WORDS * sizeof(__u64), rbpf_gc_words(l->gc_count)))
		return;
	if (l->gc_majors && walk_read(words, 2 * sizeof(__u64), l->gc_majors))
		return;
	gc->flags = flags = rbpf_gc_flags(flags, l->gc_during_bit);
	count = words[RBPF_GC_WORDS - 1] - rbpf_gc_begins(words, l->gc_major_word, flags);
	gc->era = rbpf_gc_era(count, flags);
	gc->in_transition = rbpf_gc_in_transition(flags);
	if (!gc->in_transition)
		gc->major = rbpf_gc_major(words, l->gc_major_word, flags);
}

/* Who runs the collection that a process is in. */
enum gc_whose {
	GC_OF_ANOTHER,
	GC_OF_THIS,
	GC_OF_ANY, /* not known */
};

/*
 * Whose the collection is; the flags only say that the process collects. In 2.7 the owner of the
 * GVL runs it. Later it owns the GVL of its ractor, which owns the VM's lock, unless nobody does.
 * Where no owner is said, though somebody collects, the ractor's running EC has to do. With
 * RBPF_LAYOUT_RUNS_EARLY it may be that of a thread that waits, until the owner gets the GVL anew:
 * any other may be the one that collects then. A ractor collects its own objspace without the VM's
 * lock, and holds the others up while it collects all. To be called after thread_read().
 */
static __always_inline enum gc_whose gc_whose(struct walk *w)
{
	const struct rbpf_layout *l = &w->layout;
	__u64 owner = 0, running = 0;

	if (!l->gc_owner || walk_read(&owner, sizeof(owner), l->gc_owner))
		return GC_OF_ANY;
	if (!w->th_ractor)
		return owner == w->th ? GC_OF_THIS : GC_OF_ANOTHER;
	if (owner && owner != w->th_ractor && !w->gc.of_several)
		return GC_OF_ANOTHER;
	if (l->ractor_gvl_owner &&
	    !walk_read(&running, sizeof(running), w->th_ractor + l->ractor_gvl_owner) && running)
		return running == w->th ? GC_OF_THIS : GC_OF_ANOTHER;
	if (!l->ractor_running_ec ||
	    walk_read(&running, sizeof(running), w->th_ractor + l->ractor_running_ec))
		return GC_OF_ANY;
	if (running == w->th_ec)
		return GC_OF_THIS;
	return l->flags & RBPF_LAYOUT_RUNS_EARLY ? GC_OF_ANY : GC_OF_ANOTHER;
}

#endif
