/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_proof.h"

#include "profile/profile.h"
#include "ruby/vm.h"
#include "symbol/code_cache.h"

#define OLD_AGE 3 /* collections that an object survives to be old; gc.c RVALUE_OLD_AGE */

bool code_known_at(uint64_t first, uint64_t last, uint64_t held, const struct stack_era *sampled)
{
	const uint64_t era = sampled->gc_era;

	return first <= era && (era < last || (era == last && era == held)) &&
	       !sampled->gc_transition;
}

bool code_is_old(const struct code_cache *c, uint64_t flags)
{
	uint64_t old = c->vm->rules.old_flags;

	return (flags & old) == old;
}

bool code_old_enough(const struct code_cache *c, uint64_t flags, uint64_t era,
		     const struct stack_era *sampled)
{
	return c->vm->rules.old_by_age && code_is_old(c, flags) && era >= sampled->gc_era &&
	       era - sampled->gc_era + sampled->gc_transition < OLD_AGE - 1;
}

void code_note_old(const struct code_cache *c, uint64_t flags, const struct stack_era *now,
		   struct old_since *old)
{
	if (!code_is_old(c, flags))
		*old = (struct old_since) { 0 };
	else if (now->gc_major && old->major != now->gc_major)
		*old = (struct old_since) { .era = now->gc_era, .major = now->gc_major };
}

bool code_not_freed(const struct old_since *old, const struct stack_era *sampled)
{
	return sampled->gc_major && sampled->gc_major == old->major && sampled->gc_era >= old->era;
}

static bool iseq_proven(const struct code_cache *c, const struct rbpf_frame *f,
			const struct cached_iseq *e, const struct stack_era *sampled)
{
	bool pc_inside = ruby_iseq_has_pc(&e->iseq, rbpf_frame_pc(f));
	uint64_t flags = e->iseq.id.head[RUBY_ISEQ_FLAGS];
	/*
	 * Another one cannot have taken its place since it was read, and before the sample. Where
	 * objects are being moved nothing says so, and its pc has to do.
	 */
	bool not_since = sampled->gc_era < e->known.last || e->known.held == e->known.last ||
			 sampled->gc_transition;

	if (!e->known.version || (!pc_inside && !(f->pc & RBPF_PC_STALE)))
		return false;
	if (sampled->gc_era && sampled->gc_era == e->known.checked && !sampled->gc_transition)
		return true;
	if (code_not_freed(&e->known.old, sampled))
		return true;
	/* Without eras a check decides, if there is one; see code_prove(). */
	if (!sampled->gc_era)
		return !f->check && !e->known.unsure;
	if (!e->known.unsure) {
		if (code_known_at(e->known.first, e->known.last, e->known.held, sampled))
			return true;
		/*
		 * The process is gone: nothing can be compared, and a major collection frees old
		 * ones, too.
		 */
		if (sampled->gc_era > e->known.last)
			return false;
		/* In a transition it is of this era or the one before. */
		if (sampled->gc_era > e->known.first && not_since)
			return pc_inside;
	}
	return pc_inside && not_since && code_old_enough(c, flags, e->known.last, sampled);
}

static bool method_proven(const struct code_cache *c, const struct rbpf_frame *f,
			  const struct ruby_iseq *iseq, const struct cached_method *e,
			  const struct stack_era *sampled)
{
	if (!e->known.version)
		return false;
	if (sampled->gc_era && sampled->gc_era == e->known.checked && !sampled->gc_transition)
		return true;
	if (!f->iseq && f->check)
		return ruby_method_words_check(&e->method, 0) == f->check;
	if (code_not_freed(&e->known.old, sampled))
		return true;
	if (!sampled->gc_era)
		return !f->check && !e->known.unsure;
	if (code_known_at(e->known.first, e->known.last, e->known.held, sampled))
		return !e->known.unsure;
	if (iseq && ruby_method_is_of(&e->method, iseq->local))
		return true;
	if (e->known.unsure)
		return false;
	if (sampled->gc_era > e->known.last)
		return false;
	return !sampled->gc_transition && !c->compacts && sampled->gc_era < e->known.first &&
	       code_old_enough(c, e->method.id.me[RUBY_ME_FLAGS], e->known.last, sampled);
}

/* Whether the check of @f, if it has one, can be compared with what is known. */
static bool has_check(const struct rbpf_frame *f, const struct cached_iseq *iseq,
		      const struct cached_method *method)
{
	return f->check && (!f->iseq || iseq->known.version) && (!f->me || method->known.version);
}

/*
 * Whether iseq and method entry of @f hold what they held when the BPF programs took the check of
 * @f.
 */
static bool check_fits(const struct rbpf_frame *f, const struct cached_iseq *iseq,
		       const struct cached_method *method)
{
	uint64_t check = 0;

	if (!has_check(f, iseq, method))
		return false;
	if (f->iseq)
		check = iseq->check;
	if (f->me)
		check = ruby_method_words_check(&method->method, check);
	return check == f->check;
}

/*
 * Another object had taken the place of what is known, and with the process gone nobody can say
 * what: no later sample is of what is known.
 */
static void forget_what_was_replaced(const struct stack_era *sampled, const struct rbpf_frame *f,
				     struct cached_iseq *iseq, struct cached_method *method)
{
	if (!has_check(f, iseq, method) || check_fits(f, iseq, method))
		return;
	if (iseq)
		iseq->known.old = (struct old_since) { 0 };
	if (method)
		method->known.old = (struct old_since) { 0 };
	if (sampled->gc_transition)
		return;
	if (iseq && sampled->gc_era > iseq->known.last && sampled->gc_era > iseq->known.checked)
		iseq->known.version = 0;
	if (method && sampled->gc_era > method->known.last &&
	    sampled->gc_era > method->known.checked)
		method->known.version = 0;
}

/*
 * The object, which was old when it was read, was there in era @sampled. It may have been young
 * then: but samples of the same major collection that come without a check come after it was old.
 */
static void note_old_then(const struct code_cache *c, uint64_t flags,
			  const struct stack_era *sampled, struct old_since *old)
{
	const struct old_since then = { .era = sampled->gc_era, .major = sampled->gc_major };

	if (code_is_old(c, flags) &&
	    (then.major > old->major || (then.major == old->major && then.era < old->era)))
		*old = then;
}

/* A check has shown that both, of which either may be NULL, are what was there in era @sampled. */
static void note_checked(const struct code_cache *c, const struct stack_era *sampled,
			 struct cached_iseq *iseq, struct cached_method *method)
{
	if (sampled->gc_transition || !sampled->gc_era)
		return;
	if (iseq) {
		iseq->known.checked = sampled->gc_era;
		note_old_then(c, iseq->iseq.id.head[RUBY_ISEQ_FLAGS], sampled, &iseq->known.old);
	}
	if (method) {
		method->known.checked = sampled->gc_era;
		note_old_then(c, method->method.id.me[RUBY_ME_FLAGS], sampled, &method->known.old);
	}
}

void code_prove(struct code_cache *c, const struct stack_era *sampled, const struct rbpf_frame *f,
		struct code_ref *ref)
{
	struct cached_iseq *iseq = ref->iseq != PROFILE_NONE ? &c->iseqs[ref->iseq] : NULL;
	struct cached_method *method = ref->method != PROFILE_NONE ? &c->methods[ref->method]
								   : NULL;

	forget_what_was_replaced(sampled, f, iseq, method);
	/* It may have been read since, and found to be old. */
	if (sampled->gc_major && check_fits(f, iseq, method))
		note_checked(c, sampled, iseq, method);
	ref->iseq_ok = iseq && iseq_proven(c, f, iseq, sampled);
	ref->method_ok = method && method_proven(c, f, code_iseq(c, ref), method, sampled);
	if ((!iseq || ref->iseq_ok) && (!method || ref->method_ok))
		return;
	/* It says what was there, not that it is the same still: it may be the same anew. */
	if (!check_fits(f, iseq, method))
		return;
	ref->iseq_ok = iseq &&
		       (f->pc & RBPF_PC_STALE || ruby_iseq_has_pc(&iseq->iseq, rbpf_frame_pc(f)));
	ref->method_ok = method != NULL;
	note_checked(c, sampled, iseq, method);
}

void code_prove_by_check(struct code_cache *c, const struct stack_era *sampled,
			 const struct rbpf_frame *f, const struct code_ref *ref)
{
	struct cached_iseq *iseq = ref->iseq != PROFILE_NONE ? &c->iseqs[ref->iseq] : NULL;
	struct cached_method *method = ref->method != PROFILE_NONE ? &c->methods[ref->method]
								   : NULL;

	if (sampled->gc_era && check_fits(f, iseq, method))
		note_checked(c, sampled, iseq, method);
}
