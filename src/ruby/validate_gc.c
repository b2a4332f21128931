/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The collector. What rbpf takes from it decides whether a name is still that of the sampled
 * object, and a collector whose count never moves would make every stale name look proven. So it is
 * used only if it is known to be Ruby's own, with the members where they are said to be:
 *
 * - The VM's functions rb_during_gc() and rb_gc_count() tell: they are run (code.h) in this very
 *   process, as from 3.4 on RUBY_GC_LIBRARY replaces the collector by one of a file of its own. A
 *   Ruby built for that calls the collector through a variable, also the one that is built in;
 * where it leads decides, not what the table or debug information says of the built-in one.
 * - The counts of minor and major collections stand before the count of all, and add up to it. It
 *   is the shape of rb_objspace_t.profile (gc.c, from 3.4 on gc/default/default.c), and not that of
 *   what else may stand at its offsets.
 *
 * Where the code of rb_gc_count() cannot be read, or is in a module, the counts must have begun to
 * tell. Nothing but the code tells where the flags are.
 */
#include "ruby/validate.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "ruby/code.h"
#include "ruby/validate_parts.h"
#include "ruby/vm.h"

#define GC_FLAGS_MAX	 (1u << 24)
#define GC_COUNT_MAX	 (1ull << 40)
/* From this count on, two words that add up to it do not do so by chance. */
#define GC_COUNT_TELLS	 3
/* So many words before the count are looked through where it is not known which they are. */
#define GC_PROFILE_WORDS 32
#define GC_ATTEMPTS	 16
#define GC_PAUSE_US	 250
#define OWNER_ATTEMPTS	 16

/* What was read of the collector. */
struct gc_state {
	uint64_t objspace;
	uint64_t single_at, ractor; /* see struct rbpf_layout … */
	uint16_t ractor_objspace;   /* … 0: the VM has the objspace */
	uint32_t during_bit;
	uint64_t flags_at, count_at;
	uint32_t flags;
	uint64_t count;
};

/* Take over what the code says of the process' own collector. Returns whether it says @field. */
static bool take_code(struct ruby_vm *vm, const struct ruby_code *code, enum ruby_field field)
{
	uint16_t value = ruby_layout_get(&code->layout, field);
	uint64_t addr;

	if (value == RUBY_UNKNOWN)
		return false;
	if (!code->ractor_objspace &&
	    (!vm->vm || memory_read_u64(&vm->mem, code->current_vm, &addr) || addr != vm->vm))
		return false;
	if (value != ruby_layout_get(&vm->layout, field)) {
		*ruby_layout_at(&vm->layout, field) = value;
		vm->source[field] = RUBY_FROM_CODE;
	}
	return true;
}

/*
 * Take over where the objspace is: in the VM; or in the ractor of thread @th, if each has its own.
 * A variable leads to that if it is the only one, else it is NULL: its address says nothing of what
 * it is.
 */
static bool take_objspace(struct ruby_vm *vm, const struct ruby_code *code, uint64_t th,
			  struct gc_state *gc)
{
	uint64_t ractor;

	if (!code->ractor_objspace) {
		return take_code(vm, code, RUBY_FIELD_vm_objspace) &&
		       !memory_read_u64(&vm->mem, vm->vm + vm->layout.vm_objspace, &gc->objspace);
	}
	if (code->ractor_objspace >= RUBY_UNKNOWN || !ruby_layout_has(vm->layout.th_ractor) ||
	    memory_read_u64(&vm->mem, th + vm->layout.th_ractor, &ractor))
		return false;
	if (code->single_ractor && memory_read_u64(&vm->mem, code->single_ractor, &gc->ractor))
		return false;
	if (gc->ractor && gc->ractor != ractor)
		return false;
	gc->single_at = gc->ractor ? code->single_ractor : 0;
	gc->ractor_objspace = (uint16_t)code->ractor_objspace;
	return !memory_read_u64(&vm->mem, ractor + gc->ractor_objspace, &gc->objspace);
}

static bool read_state(const struct ruby_vm *vm, struct gc_state *ret)
{
	const struct ruby_layout *l = &vm->layout;
	const uint64_t objspace = ret->objspace;

	if (!ruby_layout_has(l->objspace_flags) || !ruby_layout_has(l->objspace_count) ||
	    !ruby_is_object(objspace))
		return false;
	ret->flags_at = objspace + l->objspace_flags;
	ret->count_at = objspace + l->objspace_count;
	return !memory_read(&vm->mem, ret->flags_at, &ret->flags, sizeof(ret->flags)) &&
	       !memory_read_u64(&vm->mem, ret->count_at, &ret->count) &&
	       ret->flags < GC_FLAGS_MAX && ret->count < GC_COUNT_MAX;
}

enum counts {
	COUNTS_ADD_UP,
	COUNTS_CONTRADICT,
	COUNTS_CHANGE, /* right now */
};

/*
 * Whether two counts before that of all collections, which is the last of @n @words, add up to it.
 * Where it is not known which words they are, anything adds up with a 0: @surely leaves that out.
 */
static bool adds_up(const struct ruby_vm *vm, const uint64_t *words, size_t n, bool surely)
{
	const uint64_t *profile = words + n - RBPF_GC_WORDS;
	size_t i, major = vm->rules.gc_major_word;

	if (major)
		return profile[major - 1] + profile[major] == words[n - 1];
	for (i = 0; i + 2 < n; i++)
		if (words[i] <= words[n - 1] && words[i] + words[i + 1] == words[n - 1] &&
		    (!surely || (words[i] && words[i + 1])))
			return true;
	return false;
}

/*
 * A collection increases the counts one after the other: while one runs, counts that do not add up
 * say nothing.
 */
static enum counts read_counts(const struct ruby_vm *vm, const struct gc_state *gc, bool surely)
{
	uint64_t words[GC_PROFILE_WORDS];
	uint32_t before, after;
	struct memory_span spans[] = {
		{ .addr = gc->flags_at, .dst = &before, .len = sizeof(before) },
		{ .addr = gc->count_at + sizeof(*words) - sizeof(words),
		  .dst = words,
		  .len = sizeof(words) },
		{ .addr = gc->flags_at, .dst = &after, .len = sizeof(after) },
	};

	memory_read_spans(memory_now(&vm->mem), spans, ARRAY_SIZE(spans));
	before = rbpf_gc_flags(before, gc->during_bit);
	after = rbpf_gc_flags(after, gc->during_bit);
	if (!spans[0].ok || !spans[1].ok || !spans[2].ok)
		return COUNTS_CONTRADICT;
	if (adds_up(vm, words, ARRAY_SIZE(words), surely))
		return COUNTS_ADD_UP;
	return (before | after) & RUBY_GC_DURING_GC ? COUNTS_CHANGE : COUNTS_CONTRADICT;
}

/* The process may be preempted in the midst of a collection. */
static enum counts ask_counts(const struct ruby_vm *vm, const struct gc_state *gc, bool surely)
{
	enum counts r = COUNTS_CONTRADICT;
	int attempt;

	if (vm->layout.objspace_count < (GC_PROFILE_WORDS - 1) * 8)
		return r;
	for (attempt = 0; attempt < GC_ATTEMPTS; attempt++) {
		if (attempt)
			usleep(GC_PAUSE_US);
		r = read_counts(vm, gc, surely);
		if (r != COUNTS_CHANGE)
			break;
	}
	return r;
}

/* Why the collector is not known, or NULL. */
static const char *doubt(struct ruby_vm *vm, uint64_t tp, uint64_t th, struct gc_state *gc)
{
	struct ruby_code code;
	enum counts counts;
	bool by_code, surely;

	ruby_code_read_gc(&vm->mem, &vm->binary, tp, &code);
	/* Flags are 0 most of the time, and so are other words. */
	if (!take_objspace(vm, &code, th, gc) || !take_code(vm, &code, RUBY_FIELD_objspace_flags))
		return code.gc_elsewhere || vm->binary.gc_name[0]
			       ? "it is not the one that Ruby is built with, and not known"
			       : "the code of Ruby does not tell where its state is";
	gc->during_bit = code.during_gc_bit;
	by_code = take_code(vm, &code, RUBY_FIELD_objspace_count);
	/* What the table says is of the one that is built in. */
	if (code.gc_in_module && !by_code)
		return "its code does not tell where its counts are";
	surely = !by_code || code.gc_in_module;
	if (!read_state(vm, gc))
		return "its state was not found";
	counts = gc->count ? ask_counts(vm, gc, surely) : COUNTS_ADD_UP;
	if (counts == COUNTS_CONTRADICT || (counts == COUNTS_CHANGE && surely))
		return "its counts of collections do not add up";
	if (gc->count < GC_COUNT_TELLS && surely)
		return "too few collections so far to recognise it";
	return NULL;
}

/*
 * Where the counts of minor and major collections are. Where that is not known of this version, it
 * is the only pair before the count of all that adds up to it: each reading asks whether it still
 * does.
 */
static void find_majors(struct ruby_vm *vm, const struct gc_state *gc)
{
	uint64_t words[GC_PROFILE_WORDS];
	const size_t last = ARRAY_SIZE(words) - 1;
	size_t i, found = last;

	vm->walk.gc_majors = 0;
	vm->walk.gc_major_word = vm->rules.gc_major_word;
	if (vm->rules.gc_major_word ||
	    memory_read(&vm->mem, gc->count_at + sizeof(*words) - sizeof(words), words,
			sizeof(words)) ||
	    words[last] < GC_COUNT_TELLS)
		return;
	for (i = 0; i + 1 < last; i++) {
		if (!words[i] || !words[i + 1] || words[i] > words[last] ||
		    words[i] + words[i + 1] != words[last])
			continue;
		if (found != last)
			return;
		found = i;
	}
	if (found == last)
		return;
	vm->walk.gc_majors = gc->count_at - (last - found) * sizeof(*words);
	vm->walk.gc_major_word = 1;
}

/* How many of the collections were major ones, as text, "" if that is not known. */
static void say_major(const struct ruby_vm *vm, char *text, size_t size)
{
	uint64_t era, major = 0;

	if (!ruby_vm_gc_era(vm, &era, &major) && major)
		snprintf(text, size, ", %llu of them major", (unsigned long long)major);
}

/*
 * Whether @th is the main thread of @ractor. An EC leads to its thread and back, too, but that has
 * no VM stack.
 */
static bool is_main(const struct ruby_vm *vm, uint64_t th, uint64_t ractor)
{
	uint64_t ec, of, words[RUBY_EC_CFP + 1];

	return validate_is_thread(vm, th) &&
	       !memory_read_u64(&vm->mem, th + vm->layout.th_ractor, &of) && of == ractor &&
	       !memory_read_u64(&vm->mem, th + vm->layout.th_ec, &ec) &&
	       !memory_read(&vm->mem, ec, words, sizeof(words)) &&
	       words[RUBY_EC_CFP] > words[RUBY_EC_VM_STACK] &&
	       words[RUBY_EC_CFP] - words[RUBY_EC_VM_STACK] < words[RUBY_EC_VM_STACK_SIZE] * 8;
}

/*
 * Whether the word behind ractor.threads.running_ec, threads.main, is the main thread of @ractor.
 */
static bool is_before_main(const struct ruby_vm *vm, uint64_t ractor)
{
	uint64_t main;

	return !memory_read_u64(&vm->mem, ractor + vm->layout.ractor_running_ec + 8, &main) &&
	       is_main(vm, main, ractor);
}

/*
 * Whether rb_vm_t.ractor.sync.lock_owner is where it is said to be. It is 0 while there is one
 * ractor, so what stands before it tells: main_ractor, main_thread and the lock, a mutex; vm_core.h
 * of 3.0 to 4.1.
 */
static bool is_lock_owner(const struct ruby_vm *vm)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t pair[2]; /* main_ractor, main_thread */

	return l->vm_lock_owner >= sizeof(pair) + sizeof(pthread_mutex_t) &&
	       !memory_read(&vm->mem,
			    vm->vm + l->vm_lock_owner - sizeof(pthread_mutex_t) - sizeof(pair),
			    pair, sizeof(pair)) &&
	       is_main(vm, pair[1], pair[0]);
}

/* Which thread collects. Returns the address that tells, 0 if that is not known. */
static uint64_t find_owner(const struct ruby_vm *vm, uint64_t th)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t ractor = 0, ec = 0, owner;

	if (ruby_layout_has(l->vm_gvl_owner))
		return !memory_read_u64(&vm->mem, vm->vm + l->vm_gvl_owner, &owner) &&
				       (!owner || validate_is_thread(vm, owner))
			       ? vm->vm + l->vm_gvl_owner
			       : 0;
	if (!ruby_layout_has(l->vm_lock_owner) || !ruby_layout_has(l->th_ractor) ||
	    !ruby_layout_has(l->ractor_running_ec) ||
	    memory_read_u64(&vm->mem, th + l->th_ractor, &ractor) || !ruby_is_object(ractor) ||
	    memory_read_u64(&vm->mem, ractor + l->ractor_running_ec, &ec) ||
	    (ec && !validate_is_current_ec(vm, ec)) || !is_before_main(vm, ractor) ||
	    !is_lock_owner(vm) || memory_read_u64(&vm->mem, vm->vm + l->vm_lock_owner, &owner) ||
	    (owner && !ruby_is_object(owner)))
		return 0;
	return vm->vm + l->vm_lock_owner;
}

/* Nothing tells in which era an object was seen, nor does its age prove anything. */
static void use_of_several(struct ruby_vm *vm, const struct gc_state *gc)
{
	vm->walk.flags |= RBPF_LAYOUT_NO_AGE;
	ruby_vm_check_add(vm, "garbage collector", true, false,
			  "each of several ractors has its own; %llu collections of one so far",
			  (unsigned long long)gc->count);
}

static void use_of_all(struct ruby_vm *vm, const struct gc_state *gc)
{
	char major[48] = "";

	vm->walk.gc_flags = gc->flags_at;
	vm->walk.gc_count = gc->count_at;
	vm->walk.gc_single = gc->single_at;
	vm->walk.gc_ractor = gc->ractor;
	find_majors(vm, gc);
	say_major(vm, major, sizeof(major));
	ruby_vm_check_add(vm, "garbage collector", true, false, "%llu collections so far%s",
			  (unsigned long long)gc->count, major);
}

static void use_owner(struct ruby_vm *vm, uint64_t th)
{
	int attempt;

	/* The running thread may go on to another fiber meanwhile. */
	for (attempt = 0; attempt < OWNER_ATTEMPTS && !vm->walk.gc_owner; attempt++) {
		memory_refresh(&vm->mem);
		vm->walk.gc_owner = find_owner(vm, th);
	}
	if (vm->walk.gc_owner && ruby_layout_has(vm->layout.vm_gvl_owner))
		return;
	ruby_vm_check_add(vm, "collecting thread", vm->walk.gc_owner, false,
			  vm->walk.gc_owner ? "found, as the running one of its ractor"
					    : "not found: collections are shown for no thread");
}

void validate_gc(struct ruby_vm *vm, uint64_t tp, uint64_t th)
{
	struct gc_state gc = { 0 };
	const char *why = doubt(vm, tp, th, &gc);
	const char *name = vm->binary.gc_name;

	if (why) {
		/* Nor does age prove anything. */
		vm->walk.flags |= RBPF_LAYOUT_NO_AGE;
		ruby_vm_check_add(vm, "garbage collector", false, false, "%s%s%s", name,
				  name[0] ? ": " : "", why);
		return;
	}
	vm->walk.gc_during_bit = (uint8_t)gc.during_bit;
	vm->walk.ractor_objspace = gc.ractor_objspace;
	vm->walk.objspace_flags = vm->layout.objspace_flags;
	if (gc.ractor_objspace && !gc.single_at)
		use_of_several(vm, &gc);
	else
		use_of_all(vm, &gc);
	use_owner(vm, th);
}
