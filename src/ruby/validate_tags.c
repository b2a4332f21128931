/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the VM goes on after an exception, native stacks can go on after a gap: if the registers
 * that setjmp() saved can be told.
 *
 * The guard that glibc mangles them with is a number of each process. On x86_64 up to glibc 2.43
 * each thread has a copy beside its thread pointer; else it is a variable of the dynamic linker
 * (__pointer_chk_guard), which is in no fixed place. But nothing else makes addresses in the VM and
 * in the thread's stack of what the tags hold, so each word of the linker's data is tried.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "ruby/validate_parts.h"
#include "ruby/vm.h"
#include "target/memory.h"

#define ATTEMPTS      5 /* at all threads, which run on meanwhile */
#define MAX_TAGS      64
#define MAX_GUARDED   4 /* threads whose tags are tried with each word of the linker's data */
#define LINKER_BYTES  (256u << 10)
#define STACK_BETWEEN (64u << 10) /* at most, from a tag to the end of its native frame */

#ifdef __x86_64__
/* pointer_guard of tcbhead_t (sysdeps/x86_64/nptl/tls.h), from the thread pointer; bytes */
#define TCB_GUARD 0x30
#endif

struct tag_kind {
	enum ruby_tag_form form;
	uint64_t guard;
};

/* Whether @sp may be that of the frame that the tag at @tag is in. */
static bool is_of_frame(uint64_t sp, uint64_t tag)
{
	return sp <= tag && tag - sp <= STACK_BETWEEN;
}

/* The tag at @addr and the one further out; false if it is not of that form. */
static bool read_tag(const struct ruby_vm *vm, uint64_t addr, const struct tag_kind *k,
		     uint64_t *prev)
{
	__u64 words[RUBY_TAG_WORDS];
	struct ruby_tag at;

	if (memory_read(&vm->mem, addr + ruby_tag_words(k->form), words, sizeof(words)) ||
	    memory_read_u64(&vm->mem, addr + ruby_tag_prev(k->form), prev))
		return false;
	ruby_tag_registers(words, k->form, k->guard, &at);
	return at.pc >= vm->walk.text_lo && at.pc < vm->walk.text_hi && is_of_frame(at.sp, addr) &&
	       (!*prev || *prev > addr);
}

/* The tags from @tag on that are of @k; 0 if any is not. */
static unsigned int count_tags(const struct ruby_vm *vm, uint64_t tag, const struct tag_kind *k)
{
	unsigned int n;

	for (n = 0; n < MAX_TAGS && tag; n++)
		if (!read_tag(vm, tag, k, &tag))
			return 0;
	return n;
}

/* As count_tags(), if any of the @n words of @data is the guard, which k->guard is then. */
static unsigned int try_guards(const struct ruby_vm *vm, uint64_t tag, const uint64_t *data,
			       size_t n, struct tag_kind *k)
{
	__u64 words[RUBY_TAG_WORDS];
	struct ruby_tag at;
	unsigned int found;
	size_t i;

	if (memory_read(&vm->mem, tag + ruby_tag_words(k->form), words, sizeof(words)))
		return 0;
	for (i = 0; i < n; i++) {
		k->guard = data[i];
		ruby_tag_registers(words, k->form, k->guard, &at);
		if (!is_of_frame(at.sp, tag))
			continue;
		found = count_tags(vm, tag, k);
		if (found)
			return found;
	}
	return 0;
}

/* What the dynamic linker has in its data; *@n words. NULL if nothing. */
static uint64_t *linker_data(const struct ruby_vm *vm, size_t *n)
{
	const struct ruby_binary *bin = &vm->binary;
	const size_t size = bin->linker_hi - bin->linker_lo < LINKER_BYTES
				    ? bin->linker_hi - bin->linker_lo
				    : LINKER_BYTES;
	uint64_t *data = size ? malloc(size) : NULL;

	*n = size / sizeof(*data);
	if (data && memory_read(&vm->mem, bin->linker_lo, data, *n * sizeof(*data))) {
		free(data);
		return NULL;
	}
	return data;
}

/*
 * Of the thread with @ec: the form of its tags, and how many there are; 0: it has none, or they are
 * of no form.
 */
static unsigned int find_kind(const struct ruby_vm *vm, uint64_t ec, uint64_t tp,
			      struct tag_kind *k)
{
	unsigned int n = 0;
	uint64_t tag;

	if (memory_read_u64(&vm->mem, ec + RUBY_EC_TAG * 8, &tag) || !tag)
		return 0;
	for (k->form = RUBY_TAG_BUILTIN; k->form <= RUBY_TAG_LIBC; k->form++) {
		n = count_tags(vm, tag, k);
		if (n)
			return n;
	}
	k->form = RUBY_TAG_MANGLED;
#ifdef TCB_GUARD
	if (tp && !memory_read_u64(&vm->mem, tp + TCB_GUARD, &k->guard))
		n = count_tags(vm, tag, k);
#else
	(void)tp;
#endif
	return n;
}

/* As find_kind(), of the first threads that have tags, with the guard of the dynamic linker. */
static unsigned int find_guard(const struct ruby_vm *vm, const uint64_t *ecs, size_t n,
			       struct tag_kind *k)
{
	_cleanup_free_ uint64_t *data = NULL;
	unsigned int found = 0, tried = 0;
	size_t i, n_words;
	uint64_t tag;

	data = linker_data(vm, &n_words);
	k->form = RUBY_TAG_MANGLED;
	for (i = 0; data && i < n && !found && tried < MAX_GUARDED; i++)
		if (!memory_read_u64(&vm->mem, validate_current_ec(vm, ecs[i]) + RUBY_EC_TAG * 8,
				     &tag) &&
		    tag) {
			tried++;
			found = try_guards(vm, tag, data, n_words, k);
		}
	return found;
}

void validate_tags(struct ruby_vm *vm, const uint64_t *ecs, size_t n, uint64_t tp)
{
	struct tag_kind kind = { 0 };
	unsigned int found = 0;
	int attempt;
	size_t i;

	for (attempt = 0; attempt < ATTEMPTS && !found; attempt++) {
		memory_refresh(&vm->mem);
		for (i = 0; i < n && !found; i++)
			found = find_kind(vm, validate_current_ec(vm, ecs[i]), tp, &kind);
		if (!found)
			found = find_guard(vm, ecs, n, &kind);
	}
	ruby_vm_check_add(vm, "exception tags", found, false,
			  found ? "%u of a thread have usable registers"
				: "not usable: a native stack ends at its first gap",
			  found);
	vm->walk.tag_form = found ? kind.form : RUBY_TAG_UNKNOWN;
	vm->walk.tag_guard = vm->walk.tag_form == RUBY_TAG_MANGLED ? kind.guard : 0;
}
