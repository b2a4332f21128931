/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native walk in the plainest way: one word at a time, frames left by cfi_step(), tables
 * searched row by row. What bpf/native_walk.bpf.h says of any memory must agree with it. Include
 * native_host.h before.
 */
#ifndef RBPF_TESTS_NATIVE_NAIVE_H
#define RBPF_TESTS_NATIVE_NAIVE_H

#include "elf/cfi_step.h"

/* Words of a struct rb_vm_tag: fp, pc, sp, prev. */
static const int naive_builtin_tag[] = { 2, 3, 4, 7 };
#if defined(__TARGET_ARCH_arm64)
#define NAIVE_PC_MASK CFI_PC_MASK_AARCH64
static const int naive_libc_tag[] = { 12, 13, 15, 41 };
#else
#define NAIVE_PC_MASK CFI_PC_MASK_X86_64
static const int naive_libc_tag[] = { 3, 9, 8, 27 };
#endif

static inline const int *naive_tag(const struct rbpf_layout *l)
{
	return l->tag_form == RUBY_TAG_BUILTIN ? naive_builtin_tag : naive_libc_tag;
}

/* What glibc makes of fp (@which 0), pc and sp; and back. */
static inline uint64_t naive_mangle(uint64_t word, int which, uint64_t guard)
{
	if (NAIVE_PC_MASK == CFI_PC_MASK_AARCH64)
		return which ? word ^ guard : word;
	word ^= guard;
	return word << 17 | word >> 47;
}

static inline uint64_t naive_unmangle(uint64_t word, int which, uint64_t guard)
{
	if (NAIVE_PC_MASK == CFI_PC_MASK_AARCH64)
		return which ? word ^ guard : word;
	return (word >> 17 | word << 47) ^ guard;
}

struct native_naive {
	const struct memory *mem;
	const struct rbpf_layout *layout;
	struct cfi_frame frame;
	uint64_t registers[RBPF_REGS]; /* of the innermost one */
	bool innermost;
	uint64_t tag;
	int tags_left; /* that may be looked at, in all */
	uint64_t words[RBPF_MAX_NATIVE + 2];
	uint32_t n_words;
	int end; /* enum rbpf_native_end */
};

static inline int native_naive_read(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct native_naive *n = ctx;

	return addr % 8 ? -1 : memory_read_u64(n->mem, addr, ret);
}

static inline const struct rbpf_range *native_naive_range(uint64_t addr)
{
	for (int i = 0; i < NATIVE_HOST_RANGES && native_host.ranges[i].end; i++)
		if (addr >= native_host.ranges[i].start && addr < native_host.ranges[i].end)
			return &native_host.ranges[i];
	return NULL;
}

static inline const struct rbpf_cfi_rule *native_naive_rule(const struct rbpf_range *r,
							    uint64_t addr)
{
	const uint32_t *table = &native_host.words[r->table];
	uint64_t off = addr - r->base;
	uint32_t rule = RBPF_CFI_RULE_NONE;

	if (r->kind == RBPF_CODE_RECORD)
		return &native_host.rules[RBPF_CFI_RULE_RECORD];
	for (uint32_t i = 0; off >> 16 < r->pages && table[off >> 16] + i < table[(off >> 16) + 1];
	     i++) {
		uint32_t row = table[table[off >> 16] + i];

		if ((row & 0xffff) <= (off & 0xffff))
			rule = row >> 16;
	}
	return &native_host.rules[rule];
}

static inline bool native_naive_in_vm(const struct native_naive *n, uint64_t addr)
{
	return addr >= n->layout->text_lo && addr < n->layout->text_hi;
}

/* Three words pushed, then the return address; more of them if the innermost frame is in a call. */
static inline int native_naive_yjit(struct native_naive *n)
{
	uint64_t at = n->frame.sp + 24, word;

	for (int i = 0; i <= (n->innermost ? YJIT_PUSHED_MAX : 0); i++, at += 8) {
		if (native_naive_read(n, at, &word))
			return RBPF_NATIVE_FAULT;
		if (!native_naive_in_vm(n, word))
			continue;
		n->frame.pc = word;
		n->frame.sp = at + 8;
		n->frame.is_return = true;
		return 0;
	}
	at = n->frame.fp; /* --yjit-perf */
	if (!n->frame.fp_known || at < n->frame.sp || at - n->frame.sp > YJIT_PUSHED_MAX * 8 ||
	    native_naive_read(n, at + 8, &word) || !native_naive_in_vm(n, word))
		return RBPF_NATIVE_JIT;
	n->frame.pc = word;
	n->frame.sp = at + 16;
	n->frame.is_return = true;
	n->frame.fp_known = !native_naive_read(n, at, &n->frame.fp);
	return 0;
}

/* Returns enum rbpf_native_end, 0 if n->frame is the caller's now, or -1 if there is none. */
static inline int native_naive_leave(struct native_naive *n)
{
	static const int ends[] = {
		[CFI_STEP_END] = -1,
		[CFI_STEP_NO_RULE] = RBPF_NATIVE_NO_RULE,
		[CFI_STEP_NO_REGISTER] = RBPF_NATIVE_REGISTER,
		[CFI_STEP_FAULT] = RBPF_NATIVE_FAULT,
		[CFI_STEP_STUCK] = RBPF_NATIVE_STUCK,
	};
	const uint64_t addr = n->frame.pc - n->frame.is_return;
	const struct rbpf_range *r = native_naive_range(addr);
	struct cfi_frame caller = n->frame;
	enum cfi_step_result step;

	if (!r)
		return RBPF_NATIVE_NO_RANGE;
	if (r->kind == RBPF_CODE_YJIT)
		return native_naive_yjit(n);
	if (r->kind == RBPF_CODE_UNREAD)
		return RBPF_NATIVE_UNREAD;
	if (r->kind == RBPF_CODE_NO_ROOM)
		return RBPF_NATIVE_NO_ROOM;
	if (r->kind == RBPF_CODE_NO_TABLE)
		return RBPF_NATIVE_NO_TABLE;
	step = cfi_step(native_naive_rule(r, addr), NAIVE_PC_MASK, native_naive_read, n, &caller);
	if (step)
		return ends[step];
	if (!caller.pc)
		return -1;
	if (caller.pc < 4096 || caller.pc >> 62)
		return RBPF_NATIVE_STUCK;
	n->frame = caller;
	return 0;
}

/* Whether the walk can go on at a tag. */
static inline bool native_naive_resync(struct native_naive *n)
{
	const int *const word = naive_tag(n->layout);
	uint64_t sp = n->frame.sp, words[RUBY_TAG_WORDS];

	while (n->layout->tag_form && n->tag && n->tags_left) {
		uint64_t tag = n->tag, at[3];

		if (memory_read(n->mem, tag + word[0] * 8, words, sizeof(words)) ||
		    memory_read_u64(n->mem, tag + word[3] * 8, &n->tag))
			return false;
		n->tags_left--;
		for (int i = 0; i < 3; i++) { /* fp, pc, sp */
			at[i] = words[word[i] - word[0]];
			if (n->layout->tag_form == RUBY_TAG_MANGLED)
				at[i] = naive_unmangle(at[i], i, n->layout->tag_guard);
		}
		if (at[2] > sp && at[2] <= tag && native_naive_in_vm(n, at[1])) {
			n->frame = (struct cfi_frame) {
				.pc = at[1], .sp = at[2], .fp = at[0], .fp_known = true
			};
			return true;
		}
		if (n->tag <= tag)
			n->tag = 0;
	}
	n->tag = 0;
	return false;
}

/*
 * Whether code without entries is what a thread begins with: not a KiB from one of the places where
 * that was.
 */
static inline bool native_naive_begins(const struct native_naive *n)
{
	const uint64_t start = native_host.start, top = native_host.main_top, sp = n->frame.sp;

	if (n->end != RBPF_NATIVE_NO_RULE && n->end != RBPF_NATIVE_NO_TABLE)
		return false;
	if (start && start <= sp && sp <= start + 1023)
		return true;
	return top && sp <= top && top <= sp + 1023;
}

static inline void native_naive_push(struct native_naive *n)
{
	n->words[n->n_words++] = n->frame.pc | (n->frame.is_return ? 0 : RBPF_NATIVE_EXACT);
}

static inline void native_naive_walk(struct native_naive *n, const struct rbpf_regs *regs)
{
	n->frame = (struct cfi_frame) { .pc = regs->pc,
					.sp = regs->sp,
					.fp = regs->fp,
					.lr = regs->lr,
					.fp_known = true,
					.lr_known = NAIVE_PC_MASK == CFI_PC_MASK_AARCH64,
					.registers = n->registers,
					.n_registers = RBPF_REGS };
	memcpy(n->registers, regs->by_dwarf, sizeof(n->registers));
	n->innermost = true;
	native_naive_push(n);
	while (n->n_words < RBPF_MAX_NATIVE) {
		n->end = native_naive_leave(n);
		if (n->end < 0) {
			n->end = RBPF_NATIVE_OUTERMOST;
			return;
		}
		if (n->end && !native_naive_resync(n)) {
			if (native_naive_begins(n))
				n->end = RBPF_NATIVE_OUTERMOST;
			return;
		}
		if (n->end)
			n->words[n->n_words++] = (uint64_t)n->end;
		n->frame.registers = NULL;
		n->innermost = false;
		native_naive_push(n);
	}
	n->end = RBPF_NATIVE_LIMIT;
}

/* What is wrong with the walk from the same registers; NULL: nothing. */
static inline const char *native_naive_compare(const struct walk *w, uint64_t tag)
{
	const struct walk_native *got = &w->native;
	struct native_naive n = { .mem = native_host.mem,
				  .layout = &w->layout,
				  .tag = tag,
				  .tags_left = NATIVE_MAX_TAGS };
	uint64_t hash = got->seed;

	native_naive_walk(&n, &got->regs);
	for (uint32_t i = 0; i < got->n_frames; i++)
		hash = rbpf_mix(hash, got->frames[i]);
	if (got->hash != hash)
		return "the fingerprint is not that of the frames";
	/* Once it may copy no more of the stack it misses what the plain walk, which may, finds. */
	if (got->pages_left <= 0)
		return NULL;
	for (uint32_t i = 0; i < got->n_frames && i < n.n_words; i++)
		if (got->frames[i] != n.words[i])
			return "another frame";
	if (got->n_frames != n.n_words)
		return "more or less frames";
	return (int)got->end == n.end ? NULL : "it ends for another reason";
}

#endif
