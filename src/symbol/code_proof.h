/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The proof that the copy of an iseq or a method entry (code_cache.h) is of the object that was at
 * its address when a stack was sampled. Nothing is read here.
 *
 * An object can be freed, or moved by compaction, and another one stand in its place by the time
 * its address is read. What decides is the era of the heap (rbpf_gc_era()), which the BPF
 * programs read along with the stack: an object that is on a stack is freed at the earliest when
 * the next era begins. Hence, for a stack sampled in era S and a copy that was read or compared,
 * and found to be the same, in eras from F to L, the question is whether the copy is of the object
 * that was on the stack. It is:
 *
 *   - if F <= S < L. (Nothing is read.)
 *   - if S = L, and it was read in L for a stack that was sampled in L, too, or when all that was
 * dead had been freed. (Nothing is read.) Else it may be an object that the last collection did not
 * find but has not freed yet; and before L ends it may do so, and another one take its place, as
 * dead objects are freed little by little.
 *   - if S >= L, and the object is still the same when it is read again now.
 *   - if S < F, and the object was there in S and was not moved there since. It was there if it is
 *     old now, in era N, and N - S <= 1: it takes three collections to become old (RVALUE_OLD_AGE),
 *     the last of which may have begun. (From 3.3 on; before that an old object proves nothing
 *     here.) It was not moved if the pc of the frame lies in the code of that iseq, or the method
 *     entry is of that iseq.
 *   - if it was old when the copy was read or compared, in era O <= S, for a stack that was sampled
 *     since the last major collection had marked, and there was none from then to S either
 *     (rbpf_gc_major()): no other collection frees or moves an old object. (Nothing is read.)
 *   - in any case, if the check of its words and label is the one that the BPF programs sent. They
 *     send it the first time that they send an iseq in an epoch and era; of an old one, only the
 *     first time since the last major collection, and where that is not known not at all, unless
 *     names are copied or the pc is stale. A check holds for all of era S. A copy that it fits is
 *     therefore not compared any more, and is the one of an old object until the next major
 *     collection; one that it does not fit is no longer believed when the process is gone.
 *
 * Of a process that is young, or whose names get lost, the BPF programs send, ahead of a stack, a
 * copy of the memory that naming its iseqs and method entries reads, taken when the stack was
 * sampled (RBPF_RING_MEMORY). An entry that was read from such a copy was read in era S itself (F =
 * L = S), of an object that was on the stack. So it needs no proof, and the process need not be
 * there any more. Each object is copied once, unless another takes its place. Stacks of later eras
 * are proven by the rules above; if the process is gone, by the check, which is taken of old iseqs,
 * too, while names are copied.
 *
 * While objects are being moved an address may be an old or a new one, and equal eras prove
 * nothing, nor do copies made then: only pc and check decide. Of a Ruby whose collector is not
 * known, the BPF programs send each stack, with checks of all its frames, and only what fits its
 * check is believed; a frame that has none, as where rbpf walks stacks itself, is compared once per
 * resolver_revalidate().
 */
#ifndef RBPF_SYMBOL_CODE_PROOF_H
#define RBPF_SYMBOL_CODE_PROOF_H

#include <stdbool.h>
#include <stdint.h>

struct code_cache;
struct old_since;
struct stack_era;
struct code_ref;
struct rbpf_frame;

/*
 * Whether what is known to be the same from era @first to @last, and was on a stack in era @held,
 * is what was @sampled, by the eras alone.
 */
bool code_known_at(uint64_t first, uint64_t last, uint64_t held, const struct stack_era *sampled);

/* Whether @flags, the first word of an object, say that it is old. */
bool code_is_old(const struct code_cache *c, uint64_t flags);

/*
 * Whether an object with @flags, read in @era, was there in era @sampled: see OLD_AGE. In a
 * transition it is of its era or the one before.
 */
bool code_old_enough(const struct code_cache *c, uint64_t flags, uint64_t era,
		     const struct stack_era *sampled);

/* Note in @old that an object was read or compared @now, and had @flags. */
void code_note_old(const struct code_cache *c, uint64_t flags, const struct stack_era *now,
		   struct old_since *old);

/* Whether an object cannot have been freed or moved from @old to @sampled. */
bool code_not_freed(const struct old_since *old, const struct stack_era *sampled);

/*
 * Set iseq_ok and method_ok of @ref, whose entries are those of frame @f of a stack sampled at @m.
 */
void code_prove(struct code_cache *c, const struct stack_era *sampled, const struct rbpf_frame *f,
		struct code_ref *ref);

/*
 * A check that fits what is known proves it without a read; and after one it might be too late,
 * for another object may stand there now.
 */
void code_prove_by_check(struct code_cache *c, const struct stack_era *sampled,
			 const struct rbpf_frame *f, const struct code_ref *ref);

#endif
