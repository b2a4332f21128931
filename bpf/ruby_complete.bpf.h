/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finishing the frames of a Ruby stack that is to be sent: the method entries whose look-up was put
 * off, and the checks by which user space can tell later whether other objects have taken the place
 * of those that were on the stack (src/symbol/code_proof.h).
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_RUBY_COMPLETE_BPF_H
#define RBPF_RUBY_COMPLETE_BPF_H

#include "ruby_walk.bpf.h"

static __always_inline __u32 iseq_slot(const struct walk *w, __u64 iseq)
{
	return (iseq >> 3 ^ iseq >> 13 ^ w->spread) & (ISEQ_SLOTS - 1);
}

/* Whether a check of @iseq was taken under this seed, or of the old @iseq that is there. */
static __always_inline bool iseq_is_seen(const struct walk *w, __u64 iseq)
{
	return is_seen(w, w->iseqs[iseq_slot(w, iseq)].seen, iseq);
}

/* Returns true, and notes it, if no check of @iseq was taken under this seed. */
static __always_inline bool iseq_is_new(struct walk *w, __u64 iseq)
{
	if (iseq_is_seen(w, iseq))
		return false;
	w->iseqs[iseq_slot(w, iseq)].seen = iseq ^ w->seed;
	return true;
}

/* The end of the text of the label at @value, whose first words are @label, into w->text. */
static __always_inline int label_text(struct walk *w, __u64 value,
				      const __u64 label[RUBY_OBJECT_WORDS])
{
	__u64 len = label[RSTRING_LEN_WORD], at;

	__builtin_memset(w->text, 0, sizeof(w->text));
	if (label[0] & RSTRING_NOEMBED)
		at = label[RSTRING_PTR_WORD];
	else if (w->layout.flags & RBPF_LAYOUT_LONG_EMBED)
		at = value + RSTRING_EMBED_LONG;
	else
		return 0;
	if (len > sizeof(w->text)) {
		at += len - sizeof(w->text);
		len = sizeof(w->text);
	}
	return len ? walk_read(w->text, len, at) : 0;
}

/*
 * rbpf_check_iseq() of @iseq; 0 if it cannot be read. Without @always it is 0 for an old iseq, too,
 * where major collections are not known: its age proves already that it is the sampled one, but for
 * Rubies with RBPF_LAYOUT_NO_AGE.
 */
__noinline __u64 walk_check_iseq(__u32 walk_id, __u64 iseq, __u32 always)
{
	struct walk *w = walk_state(walk_id);
	__u64 head[RUBY_ISEQ_WORDS];
	__u64 location[RUBY_LOCATION_WORDS];
	__u64 label[RUBY_OBJECT_WORDS]; /* flags, klass, length and text, or pointer to it */

	if (!w)
		return 0;
	if (walk_read(head, sizeof(head), iseq))
		return 0;
	if (is_old(w, head[RUBY_ISEQ_FLAGS])) {
		w->iseqs[iseq_slot(w, iseq)].seen = iseq ^ w->old_seed;
		w->iseqs[iseq_slot(w, iseq)].check = 0; /* that of another one may be there */
	}
	if (head[RUBY_ISEQ_FLAGS] & RUBY_FL_PROMOTED && !always && !w->old_seed &&
	    !(w->layout.flags & RBPF_LAYOUT_NO_AGE))
		return 0;
	if (walk_read(location, sizeof(location),
		      head[RUBY_ISEQ_BODY] + w->layout.naming.iseq_location) ||
	    walk_read(label, sizeof(label), location[RUBY_LOCATION_LABEL]) ||
	    label_text(w, location[RUBY_LOCATION_LABEL], label))
		return 0;
	return rbpf_check_iseq(0, head[RUBY_ISEQ_BODY], location[RUBY_LOCATION_PATHOBJ],
			       location[RUBY_LOCATION_LINENO], label + RSTRING_LEN_WORD, w->text);
}

/* Whether method entry @me is old: from what is remembered of it, or else from its flags. */
static __always_inline bool me_is_old(struct walk *w, __u64 me)
{
	__u64 *slot = &w->mes[me_slot(w, me)].seen, flags;

	if (was_old(w, *slot, me) || was_old(w, w->mes[me_slot(w, me)].sent, me))
		return true;
	if (!read_allowed(w) || walk_read(&flags, sizeof(flags), me) || !is_old(w, flags))
		return false;
	*slot = me ^ w->old_seed;
	return true;
}

/*
 * Whether checkpoints of the stack that was walked are to hold until the next major collection,
 * which those of old frames can: then its outermost frame is old. In a program that hardly collects
 * all are young, but an era is long.
 */
static __always_inline bool stack_lasts(struct walk *w)
{
	const struct rbpf_frame *f = &w->frames[(w->n_frames - 1) & (RBPF_MAX_FRAMES - 1)];
	__u64 flags;

	if (!w->old_seed)
		return false;
	if (!f->iseq)
		return !f->me || me_is_old(w, f->me);
	if (was_old(w, w->iseqs[iseq_slot(w, f->iseq)].seen, f->iseq))
		return true;
	return !walk_read(&flags, sizeof(flags), f->iseq) && is_old(w, flags);
}

/*
 * Whether what frame @f is made of stays what it is as long as checkpoints hold
 * (checkpoints.bpf.h): until the next major collection if it is old; or else to the end of the era.
 */
static __always_inline bool frame_is_durable(struct walk *w, const struct rbpf_frame *f)
{
	if (!w->lasting)
		return true;
	if (f->iseq && !was_old(w, w->iseqs[iseq_slot(w, f->iseq)].seen, f->iseq))
		return false;
	return !f->me || me_is_old(w, f->me);
}

/*
 * Whether user space has to read what frame @f is made of, for it was not sent in this era: it is
 * read as soon as that is sent. Of an old object that is needed once, until the next major
 * collection. To be called before take_check().
 */
static __always_inline bool frame_is_new(struct walk *w, const struct rbpf_frame *f)
{
	bool is_new = f->iseq && !iseq_is_seen(w, f->iseq);
	__u64 *slot = &w->mes[me_slot(w, f->me)].sent;

	if (!f->me || is_seen(w, *slot, f->me))
		return is_new;
	*slot = f->me ^ w->seed;
	return true;
}

/* Take the check of @f if user space needs one. */
static __always_inline void take_check(struct walk *w, __u32 walk_id, struct rbpf_frame *f)
{
	__u64 me[RUBY_ME_WORDS], *slot;
	bool always;

	f->check = 0;
	if (f->iseq) {
		/*
		 * Only a check proves the iseq of a stale pc, or of a process that has ended: so it
		 * is taken of an old iseq, too.
		 */
		always = f->pc & RBPF_PC_STALE || w->layout.flags & RBPF_LAYOUT_COPY;
		if (!iseq_is_new(w, f->iseq) && !(f->pc & RBPF_PC_STALE))
			return;
		f->check = walk_check_iseq(walk_id, f->iseq, always);
		w->iseqs[iseq_slot(w, f->iseq)].check = f->check;
		if (!f->check)
			return;
	}
	slot = &w->mes[me_slot(w, f->me)].sent;
	if (!f->me || (!f->iseq && was_old(w, *slot, f->me)))
		return;
	if (walk_read(me, sizeof(me), f->me)) {
		f->check = 0;
		return;
	}
	if (is_old(w, me[RUBY_ME_FLAGS]))
		*slot = f->me ^ w->old_seed;
	f->check = rbpf_check_me(f->check, me[RUBY_ME_DEF], me[RUBY_ME_CALLED_ID],
				 me[RUBY_ME_OWNER]);
}

/*
 * Finish frame @i: look up its method entry if that was put off (ME_PENDING), and take its check.
 */
__noinline int walk_complete_frame(__u32 walk_id, __u32 i)
{
	struct walk *w = walk_state(walk_id);
	struct rbpf_frame *f;

	if (!w)
		return -1;
	f = &w->frames[i & (RBPF_MAX_FRAMES - 1)];
	if (f->iseq && f->me & ME_PENDING)
		f->me = walk_me_lookup(walk_id, f->me & ~ME_PENDING);
	w->n_new += frame_is_new(w, f);
	take_check(w, walk_id, f);
	if (w->n_durable + i + 1 == w->n_frames && frame_is_durable(w, f))
		w->n_durable++;
	return 0;
}

/* From the outermost frame that is not sent already inwards, the next COMPLETE_RUN of them. */
__noinline int walk_complete_run(__u32 walk_id, __u32 done)
{
	struct walk *w = walk_state(walk_id);
	__u32 i;

	if (!w)
		return 0;
	for (i = 0; i < COMPLETE_RUN; i++) {
		if (w->checkpoints.n_outer + done + i >= w->n_frames)
			return 0;
		walk_complete_frame(walk_id, w->n_frames - 1 - w->checkpoints.n_outer - done - i);
	}
	return 1;
}

/*
 * To be called before frames[] is sent, all but the checkpoints.n_outer outermost ones. Sets
 * w->n_durable: so many of the outermost ones are durable; and w->n_new.
 */
static __always_inline void walk_complete(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 i;

	if (!w)
		return;
	w->n_durable = w->checkpoints.n_outer;
	w->n_new = 0;
	for (i = 0; i < RBPF_MAX_FRAMES; i += COMPLETE_RUN)
		if (walk_complete_run(walk_id, i) <= 0)
			break;
}

#endif
