/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The search starts from the ECs of live threads. Threads, fibers, the VM and its ractors are found
 * from there by how they point at each other, below. The control frames lead to iseqs
 * (search_iseq.c), and three exported variables to classes (search_class.c).
 *
 * The process runs on meanwhile. What changes under the search makes an offset be refused that
 * was right, so it costs an answer; for a wrong one, one and the same other offset would have to
 * fit on all objects as well.
 *
 * Not looked for, as nothing but a value tells of it: what belongs to the objspace.
 */
#include "ruby/search.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/binary.h"
#include "ruby/search_parts.h"
#include "ruby/structs.h"
#include "ruby/tls.h"
#include "target/memory.h"

#define MAX_PASSES	3   /* over a process that does not hold still */
#define MAX_FRAMES	256 /* of a stack */
#define MAX_SHAPES	16  /* ECs of which all is looked for */
#define OWNERS_MIN	16 /* th.vm and th.ractor are between these offsets: behind the list node … */
#define OWNERS_MAX	RUBY_TH_BYTES /* … and where ruby_is_ec() looks for th.ec, too */
#define FIBER_EC_MAX	200	      /* the context that a fiber begins with is no bigger */
#define MAIN_RACTOR_MAX 256
#define QNIL		8 /* up to 3.1 */
#define STACK_MAX	(1ull << 40)

static uint64_t word_at(const struct search_object *o, uint16_t off)
{
	return o->words[off / 8];
}

/* ---- ECs and threads ---- */

/* Whether @th is a thread whose current EC is its own. */
static bool is_thread(const struct search *s, uint64_t th)
{
	uint64_t ec = search_is_pointer(th) ? search_word(s, th + s->l->th_ec) : 0;

	return search_is_pointer(ec) && search_word(s, ec + s->l->ec_thread_ptr) == th;
}

/*
 * What ruby_is_ec() finds, if it is the same for all of @ecs that are current; of many, the first
 * ones are asked.
 */
static bool find_ec_shape(struct search *s, const uint64_t *ecs, size_t n)
{
	struct ruby_ec_shape first = { 0 };
	size_t i, asked = 0;

	for (i = 0; i < n && asked < MAX_SHAPES; i++) {
		struct ruby_ec_shape shape = { 0 };

		if (!ruby_is_ec(s->mem, ecs[i], &shape))
			continue;
		if (first.cf_size && memcmp(&shape, &first, sizeof(shape)))
			return false;
		first = shape;
		asked++;
	}
	if (!first.cf_size)
		return false;
	s->l->ec_thread_ptr = first.ec_thread_ptr;
	s->l->th_ec = first.th_ec;
	s->l->cf_size = first.cf_size;
	return true;
}

/* The threads, with their current ECs: those of @ecs may be of fibers that were left meanwhile. */
static void find_threads(struct search *s, const uint64_t *ecs, size_t n)
{
	struct ruby_ec_shape shape = { s->l->ec_thread_ptr, s->l->th_ec, s->l->cf_size };
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t th = search_word(s, ecs[i] + s->l->ec_thread_ptr);
		uint64_t ec = search_is_pointer(th) ? search_word(s, th + s->l->th_ec) : 0;

		if (ruby_is_ec(s->mem, ec, &shape) && search_add(s, &s->ecs, ec))
			search_add(s, &s->threads, search_word(s, ec + s->l->ec_thread_ptr));
	}
}

/* An EC is a member of its fiber, saved_ec, behind a few words. */
static enum search_says fits_fiber_ptr(const struct search *s, const struct search_object *ec,
				       uint16_t off)
{
	uint64_t fiber = word_at(ec, off);

	(void)s;
	return fiber < ec->addr && ec->addr - fiber < FIBER_EC_MAX ? SEARCH_YES : SEARCH_NO;
}

/*
 * prev is the fiber of the same thread that resumed this one. The word behind it, resuming_fiber,
 * leads back from there (3.0: to the Fiber object), and is 0 (3.0: or nil) in the fiber that runs.
 */
static enum search_says fits_fiber_prev(const struct search *s, const struct search_object *fiber,
					uint16_t off)
{
	uint16_t thread_ptr = s->l->fiber_ec + s->l->ec_thread_ptr;
	uint64_t prev = word_at(fiber, off), next = word_at(fiber, off + 8), back;

	if (!prev)
		return SEARCH_NOTHING;
	if (!search_is_pointer(prev) || prev == fiber->addr || (next && next != QNIL) ||
	    search_word(s, prev + thread_ptr) != word_at(fiber, thread_ptr))
		return SEARCH_NO;
	back = search_word(s, prev + off + 8);
	return back && (back == fiber->addr || back == word_at(fiber, RUBY_SELF)) ? SEARCH_YES
										  : SEARCH_NO;
}

static void find_fiber_prev(struct search *s)
{
	struct search_objects fibers = { 0 };
	size_t i;

	for (i = 0; i < s->ecs.n; i++)
		search_add(s, &fibers, s->ecs.v[i].addr - s->l->fiber_ec);
	s->l->fiber_prev = search_offset(s, &fibers, s->l->fiber_ec + 256, SEARCH_WORDS * 8 - 8, 8,
					 1, fits_fiber_prev);
	free(fibers.v);
}

static void find_fiber(struct search *s)
{
	const struct search_objects *ecs = &s->ecs;
	uint16_t off = search_offset(s, ecs, 24, 72, 8, 1, fits_fiber_ptr);
	uint64_t fiber_ec;
	size_t i;

	if (off == RUBY_UNKNOWN)
		return;
	fiber_ec = ecs->v[0].addr - word_at(&ecs->v[0], off);
	for (i = 0; i < ecs->n; i++)
		if (ecs->v[i].addr - word_at(&ecs->v[i], off) != fiber_ec)
			return;
	s->l->ec_fiber_ptr = off;
	s->l->fiber_ec = (uint16_t)fiber_ec;
	find_fiber_prev(s);
}

/*
 * machine is { stack_start, stack_end, stack_maxsize }: the end is 0 or below the start, by no more
 * than the size. The tag, which lies in a native frame, is between them, too; without one, nothing
 * has run yet.
 */
static enum search_says fits_stack_start(const struct search *s, const struct search_object *ec,
					 uint16_t off)
{
	uint64_t start = word_at(ec, off), end = word_at(ec, off + 8);
	uint64_t size = word_at(ec, off + 16), tag = ec->words[RUBY_EC_TAG];

	(void)s;
	if (!tag)
		return SEARCH_NOTHING;
	return search_is_pointer(start) && size && size < STACK_MAX && tag < start &&
			       start - tag <= size && (!end || (end < start && start - end <= size))
		       ? SEARCH_YES
		       : SEARCH_NO;
}

/* ---- the VM and its ractors ---- */

static bool knows(const struct search_object *o, uint64_t word, size_t bytes)
{
	size_t i;

	for (i = 1; i < bytes / 8; i++)
		if (o->words[i] == word)
			return true;
	return false;
}

/*
 * What th.vm and th.ractor have in common: the struct begins with an object that wraps it, and it
 * knows a thread (its main thread) that leads back to it.
 */
static bool read_owner(const struct search *s, const struct search_object *th, uint16_t off,
		       struct search_object *ret)
{
	const struct search_object *main;

	*ret = (struct search_object) { .addr = word_at(th, off) };
	if (!search_is_pointer(ret->addr) ||
	    !memory_read_some(s->mem, ret->addr, ret->words, sizeof(ret->words)) ||
	    !search_wraps(s, ret->words[0], ret->addr))
		return false;
	for (main = s->threads.v; main < s->threads.v + s->threads.n; main++)
		if (word_at(main, off) == ret->addr && knows(ret, main->addr, sizeof(ret->words)))
			return true;
	return false;
}

/* The VM knows its main ractor, among the first words, and not the other way round. */
static enum search_says fits_vm(const struct search *s, const struct search_object *th,
				uint16_t off)
{
	struct search_object vm, ractor;
	uint16_t other;

	if (!read_owner(s, th, off, &vm))
		return SEARCH_NO;
	if (s->one_ec)
		return SEARCH_YES;
	for (other = OWNERS_MIN; other < OWNERS_MAX; other += 8) {
		if (other == off || !read_owner(s, th, other, &ractor))
			continue;
		if (knows(&ractor, vm.addr, 128))
			return SEARCH_NO;
		if (knows(&vm, ractor.addr, 128))
			return SEARCH_YES;
	}
	return SEARCH_NOTHING; /* a thread of another ractor */
}

static enum search_says fits_ractor(const struct search *s, const struct search_object *th,
				    uint16_t off)
{
	struct search_object vm, ractor;

	if (off == s->l->th_vm || !read_owner(s, th, off, &ractor))
		return SEARCH_NO;
	return read_owner(s, th, s->l->th_vm, &vm) && knows(&vm, ractor.addr, 128) ? SEARCH_YES
										   : SEARCH_NOTHING;
}

/* A thread's EC, and behind it the main thread; both are of the ractor. */
static enum search_says fits_running_ec(const struct search *s, const struct search_object *ractor,
					uint16_t off)
{
	uint64_t ec = word_at(ractor, off), main = word_at(ractor, off + 8), th;

	if (!is_thread(s, main) || search_word(s, main + s->l->th_ractor) != ractor->addr ||
	    !search_is_pointer(ec))
		return SEARCH_NO;
	th = search_word(s, ec + s->l->ec_thread_ptr);
	return search_is_pointer(th) && search_word(s, th + s->l->th_ec) == ec &&
			       search_word(s, th + s->l->th_ractor) == ractor->addr
		       ? SEARCH_YES
		       : SEARCH_NO;
}

static void find_running_ec(struct search *s)
{
	struct search_objects ractors = { 0 };
	size_t i;

	for (i = 0; i < s->threads.n; i++)
		search_add(s, &ractors, word_at(&s->threads.v[i], s->l->th_ractor));
	s->l->ractor_running_ec = search_offset(s, &ractors, 128, SEARCH_WORDS * 8 - 8, 8, 1,
						fits_running_ec);
	free(ractors.v);
}

/*
 * rb_vm_t.ractor: main_ractor, main_thread, and the lock that has an owner, which is 0 while there
 * is one ractor.
 * @off is that of main_ractor.
 */
static enum search_says fits_main_ractor(const struct search *s, const struct search_object *vm,
					 uint16_t off)
{
	uint64_t main = word_at(vm, off + 8);

	return is_thread(s, main) && search_word(s, main + s->l->th_ractor) == word_at(vm, off) &&
			       search_word(s, main + s->l->th_vm) == vm->addr
		       ? SEARCH_YES
		       : SEARCH_NO;
}

static void find_lock_owner(struct search *s)
{
	struct search_objects vms = { 0 };
	uint16_t main;

	search_add(s, &vms, word_at(&s->threads.v[0], s->l->th_vm));
	main = search_offset(s, &vms, 8, MAIN_RACTOR_MAX, 8, 1, fits_main_ractor);
	if (main != RUBY_UNKNOWN)
		s->l->vm_lock_owner = (uint16_t)(main + 16 + sizeof(pthread_mutex_t));
	free(vms.v);
}

/* ---- Rubies with one EC pointer ---- */

/* pthread_t is the address of the TCB; glibc's for x86_64 has its own address in words 0 and 2. */
static enum search_says fits_thread_id(const struct search *s, const struct search_object *th,
				       uint16_t off)
{
	uint64_t tcb[3], addr = word_at(th, off);

	return search_is_pointer(addr) && !memory_read(s->mem, addr, tcb, sizeof(tcb)) &&
			       tcb[0] == addr && tcb[2] == addr
		       ? SEARCH_YES
		       : SEARCH_NO;
}

/* The head of a list of threads, whose nodes are their first words. */
static enum search_says fits_living_threads(const struct search *s, const struct search_object *vm,
					    uint16_t off)
{
	uint64_t head = vm->addr + off, first = word_at(vm, off), last = word_at(vm, off + 8);

	return is_thread(s, first) && is_thread(s, last) && search_word(s, first + 8) == head &&
			       search_word(s, last) == head
		       ? SEARCH_YES
		       : SEARCH_NO;
}

/* The lock comes first in the VM, and its owner first in the lock: while it is held, a thread. */
static enum search_says fits_gvl_owner(const struct search *s, const struct search_object *vm,
				       uint16_t off)
{
	return is_thread(s, word_at(vm, off)) ? SEARCH_YES : SEARCH_NO;
}

static void find_one_ec_facts(struct search *s)
{
	struct search_objects vm = { 0 };

	s->l->th_thread_id = search_offset(s, &s->threads, 24, 256, 8, 1, fits_thread_id);
	if (s->l->th_vm != RUBY_UNKNOWN)
		search_add(s, &vm, word_at(&s->threads.v[0], s->l->th_vm));
	s->l->vm_living_threads = search_offset(s, &vm, 8, SEARCH_WORDS * 8 - 8, 8, 1,
						fits_living_threads);
	s->l->vm_gvl_owner = search_offset(s, &vm, 8, 64, 8, 1, fits_gvl_owner);
	free(vm.v);
}

static void find_vm(struct search *s)
{
	struct ruby_layout *l = s->l;

	l->th_vm = search_offset(s, &s->threads, OWNERS_MIN, OWNERS_MAX, 8, 1, fits_vm);
	if (s->one_ec) {
		l->th_ractor = l->ractor_running_ec = l->ractor_gvl_queue = l->ractor_gvl_owner =
			l->vm_lock_owner = RUBY_ABSENT;
		find_one_ec_facts(s);
		return;
	}
	l->th_thread_id = l->vm_gvl_owner = l->vm_gvl_queue = l->vm_living_threads = RUBY_ABSENT;
	if (l->th_vm != RUBY_UNKNOWN)
		l->th_ractor = search_offset(s, &s->threads, OWNERS_MIN, OWNERS_MAX, 8, 1,
					     fits_ractor);
	if (l->th_ractor == RUBY_UNKNOWN)
		return;
	find_running_ec(s);
	find_lock_owner(s);
}

/* ---- control frames ---- */

struct frames {
	uint64_t iseqs[SEARCH_MAX_OBJECTS]; /* what cfp->iseq is: an iseq, or anything */
	size_t n_iseqs;
	size_t bp_in, bp_out; /* frames whose last word is a place in the VM stack, or not */
};

/* The newest frames of a stack. The last slot is no frame. */
static void read_frames(const struct search *s, const struct search_object *ec, struct frames *f)
{
	uint64_t words[MAX_FRAMES * RUBY_CF_SIZE_MAX / 8], cfp = ec->words[RUBY_EC_CFP];
	uint64_t lo = ec->words[RUBY_EC_VM_STACK], hi = lo + ec->words[RUBY_EC_VM_STACK_SIZE] * 8;
	uint64_t bytes = hi - cfp, step = s->l->cf_size / 8, i, n;

	if (bytes > sizeof(words))
		bytes = sizeof(words);
	n = memory_read_some(s->mem, cfp, words, bytes) / 8;
	for (i = 0; i + step <= n && cfp + (i + step) * 8 < hi; i += step) {
		uint64_t bp = words[i + step - 1];

		if (bp >= lo && bp <= hi)
			f->bp_in++;
		else
			f->bp_out++;
		if (f->n_iseqs < ARRAY_SIZE(f->iseqs))
			f->iseqs[f->n_iseqs++] =
				words[i + offsetof(struct ruby_control_frame, iseq) / 8];
	}
}

/*
 * The last word of a frame is jit_return, 0 or a place in compiled code. Up to 3.0 it is __bp__, a
 * place in the VM stack, and there is no jit_return.
 */
static void find_jit_return(struct search *s, const struct frames *f)
{
	if (f->bp_out >= 2 && !f->bp_in)
		s->l->cf_jit_return = s->l->cf_size - 8;
	else if (f->bp_in >= 2 && !f->bp_out && s->l->cf_size == RUBY_CF_SIZE_MIN)
		s->l->cf_jit_return = RUBY_ABSENT;
}

static void search_once(const struct memory *mem, const struct ruby_binary *bin,
			const uint64_t *ecs, size_t n, struct ruby_search *ret)
{
	struct search s = {
		.mem = mem,
		.bin = bin,
		.l = &ret->layout,
		.one_ec = bin->symbol[RUBY_SYM_ruby_current_execution_context_ptr] != 0,
	};
	struct frames frames = { 0 };
	size_t i;

	*ret = (struct ruby_search) { 0 };
	ruby_layout_init(&ret->layout);
	memory_refresh(mem);
	if (find_ec_shape(&s, ecs, n)) {
		find_threads(&s, ecs, n);
		s.l->ec_stack_start = search_offset(&s, &s.ecs, 64, 256, 8, 1, fits_stack_start);
		find_fiber(&s);
		find_vm(&s);
		for (i = 0; i < s.ecs.n; i++)
			read_frames(&s, &s.ecs.v[i], &frames);
		find_jit_return(&s, &frames);
		search_iseqs(&s, frames.iseqs, frames.n_iseqs);
		search_strings(&s);
		search_classes(&s);
		ret->symbols = search_symbols(&s);
	}
	free(s.ecs.v);
	free(s.threads.v);
	free(s.iseqs.v);
	free(s.defs.v);
	free(s.classes.v);
}

/* How many of the facts that every process tells are unknown. */
static size_t count_missing(const struct ruby_layout *l)
{
	static const enum ruby_field facts[] = {
		RUBY_FIELD_ec_stack_start, RUBY_FIELD_fiber_ec,		 RUBY_FIELD_cf_jit_return,
		RUBY_FIELD_th_vm,	   RUBY_FIELD_ractor_running_ec, RUBY_FIELD_insn_entry,
		RUBY_FIELD_parent_iseq,	   RUBY_FIELD_class_permanent,	 RUBY_FIELD_singleton_bit,
		RUBY_FIELD_symbol_form,
	};
	size_t i, missing = 0;

	for (i = 0; i < ARRAY_SIZE(facts); i++)
		missing += ruby_layout_get(l, facts[i]) == RUBY_UNKNOWN;
	return missing;
}

void ruby_search(const struct memory *mem, const struct ruby_binary *bin, const uint64_t *ecs,
		 size_t n, struct ruby_search *ret)
{
	struct ruby_search found;
	int pass;

	search_once(mem, bin, ecs, n, ret);
	for (pass = 1; pass < MAX_PASSES && count_missing(&ret->layout); pass++) {
		search_once(mem, bin, ecs, n, &found);
		if (count_missing(&found.layout) < count_missing(&ret->layout))
			*ret = found;
	}
}
