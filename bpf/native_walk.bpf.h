/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native stack walk: from the registers of the running thread to the outermost frame of its C
 * stack, by the unwind tables that user space has compiled from .eh_frame (include/rbpf_cfi.h).
 *
 * The stack is copied in pieces of up to 32 KiB, and the copy is walked: a usual one costs one or
 * two reads. For each frame the range of code it is in is searched, then its row in the table of
 * that file, by halving.
 *
 * Where that fails, whatever the reason, no caller is made up. The VM keeps, for raising
 * exceptions, a chain of jump buffers (ec->tag, vm_core.h struct rb_vm_tag, all versions): each
 * stands in the native frame of a function, such as rb_vm_exec(), and holds that frame's registers.
 * If the compiler's own setjmp filled it (RBPF_LAYOUT_TAGS), the walk goes on at the next such
 * frame, and a gap is left in the stack, which tells the reason.
 *
 * Compiled and called like ruby_walk.bpf.h. The shim also defines
 *
 *   native_range(i)	pointer to range @i of the map of ranges, or NULL
 *   native_rule(i)	pointer to rule @i, or NULL
 *   native_chunk(i)	pointer to chunk @i of the pool of tables' words, or NULL
 *   native_report_miss(walk_id, end)	tell user space of the code at w->native.pc
 *   native_main_top()	where the stack of the main thread ended when the program began; 0: not
 * known
 */
#ifndef RBPF_NATIVE_WALK_BPF_H
#define RBPF_NATIVE_WALK_BPF_H

#include "native_rules.bpf.h"
#include "walk_state.bpf.h"

static __always_inline __u32 native_pool_word(__u32 i)
{
	const __u32 *chunk = native_chunk(i >> RBPF_POOL_CHUNK_SHIFT);

	return chunk ? chunk[i & (RBPF_POOL_CHUNK - 1)] : 0;
}

/* A table is the number of its first word in the pool. */
#define RBPF_CFI_TABLE __u32
static __always_inline __u32 rbpf_cfi_word(__u32 table, __u32 i)
{
	return native_pool_word(table + i);
}
#include "rbpf_cfi_find.h"

#define NATIVE_RUN	   4	/* frames that one call takes */
#define NATIVE_RANGE_STEPS 13	/* halvings of at most 4096 ranges, and one */
#define NATIVE_MAX_TAGS	   512	/* tags of the chain that one walk looks at */
#define NATIVE_MAX_PAGES   1024 /* of the stack copied in one walk, 4 MiB: see native_window() */
#define NATIVE_PAGE	   4096
#define NATIVE_BEGIN_MAX   1024 /* bytes of what a thread begins with: see native_is_begin() */
#define YJIT_FRAME_WORDS   3	/* pushed on entry, below the return address */
#define YJIT_PUSHED_MAX	   16	/* words that its code pushes for the time of a call */

#if defined(__TARGET_ARCH_arm64)
#define NATIVE_PC_MASK ((1ull << 48) - 1) /* above it may be the signature of the pointer */
#define NATIVE_HAS_LR  1
#else
#define NATIVE_PC_MASK (~0ull)
#define NATIVE_HAS_LR  0
#endif

/*
 * Whether @pc may be code of a process: smaller words are reasons of gaps, larger ones have flags.
 */
static __always_inline bool native_is_address(__u64 pc)
{
	return pc >= NATIVE_PAGE && pc < RBPF_NATIVE_EXACT;
}

static __always_inline void native_push(struct walk_native *n, __u64 word)
{
	n->frames[n->n_frames & (NATIVE_FRAMES - 1)] = word;
	n->n_frames++;
	n->hash = rbpf_mix(n->hash, word);
}

/*
 * Copy the stack from @addr: up to n->top, where the stack of a Ruby thread ends, but no more than
 * win[] holds; if the end is not known or the stack cannot be read that far, to the end of the
 * page. NATIVE_MAX_PAGES limits what one walk copies, so that no target can keep a CPU busy for
 * long.
 */
__noinline int native_window(__u32 walk_id, __u64 addr)
{
	struct walk *w = walk_state(walk_id);
	struct walk_native *n;
	__u64 size;

	if (!w)
		return -1;
	n = &w->native;
	n->win_hi = 0;
	if (n->pages_left <= 0)
		return -1;
	size = n->top > addr ? n->top - addr : 0;
	if (size > sizeof(n->win))
		size = sizeof(n->win);
	n->pages_left -= 1 + (__s32)(size / NATIVE_PAGE);
	barrier_var(size);
	if (!size || size > sizeof(n->win) || walk_read(n->win, size, addr)) {
		size = NATIVE_PAGE - (addr & (NATIVE_PAGE - 1));
		barrier_var(size);
		if (size > NATIVE_PAGE || walk_read(n->win, size, addr))
			return -1;
	}
	n->win_lo = addr;
	n->win_hi = addr + size;
	return 0;
}

/* The word at @addr of the stack into n->word. Returns 0, or -1 if it cannot be read. */
static __always_inline int native_read(struct walk_native *n, __u32 walk_id, __u64 addr)
{
	if (addr & 7)
		return -1;
	if ((addr < n->win_lo || addr >= n->win_hi) && native_window(walk_id, addr))
		return -1;
	n->word = n->win[(addr - n->win_lo) / 8 & (NATIVE_WORDS - 1)];
	return 0;
}

/* ---- where a frame's code is ---- */

static __always_inline bool range_has(const struct rbpf_range *r, __u64 addr)
{
	return r && addr >= r->start && addr < r->end;
}

/* Let n->range be the range of code that @addr is in. Returns 0, or -1 if it is in none. */
__noinline int native_find_range(__u32 walk_id, __u64 addr)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_range *r;
	__u32 low, high, middle;
	int i;

	if (!w)
		return -1;
	low = w->native.code.first;
	high = low + w->native.code.n;
	for (i = 0; i < NATIVE_RANGE_STEPS && low < high; i++) {
		middle = low + (high - low) / 2;
		r = native_range(middle);
		if (!r)
			return -1;
		if (addr < r->start) {
			high = middle;
		} else if (addr >= r->end) {
			low = middle + 1;
		} else {
			w->native.range = middle;
			return 0;
		}
	}
	return -1;
}

/* The number of the rule for @addr in the @table of @pages pages. */
__noinline int native_find_rule(__u32 table, __u32 pages, __u64 addr)
{
	return (int)rbpf_cfi_find(table, pages, addr);
}

static __always_inline bool in_vm(const struct walk *w, __u64 addr)
{
	return addr >= w->layout.text_lo && addr < w->layout.text_hi;
}

/* ---- from a frame to its caller ---- */

/* The CFA by @rule into n->cfa. Returns enum rbpf_native_end, 0 if that went well. */
static __always_inline int native_cfa(struct walk_native *n, __u32 walk_id,
				      const struct rbpf_cfi_rule *rule)
{
	__u64 off = (__u64)(__s64)rule->cfa_off;
	__u64 base = n->sp;

	switch (rule->cfa) {
	case RBPF_CFI_CFA_SP:
	case RBPF_CFI_CFA_SP_DEREF:
		break;
	case RBPF_CFI_CFA_FP:
	case RBPF_CFI_CFA_FP_DEREF:
		if (!n->fp_known)
			return RBPF_NATIVE_REGISTER;
		base = n->fp;
		break;
	case RBPF_CFI_CFA_REGISTER:
		if (!n->innermost)
			return RBPF_NATIVE_REGISTER;
		base = n->regs.by_dwarf[(__u32)rule->cfa_arg & (RBPF_REGS - 1)];
		break;
	case RBPF_CFI_CFA_PLT:
		off += (n->pc & 15) >= (__u32)rule->cfa_arg ? 8 : 0;
		break;
	default:
		return RBPF_NATIVE_NO_RULE;
	}
	n->cfa = base + off;
	if (rule->cfa != RBPF_CFI_CFA_SP_DEREF && rule->cfa != RBPF_CFI_CFA_FP_DEREF)
		return 0;
	if (native_read(n, walk_id, n->cfa))
		return RBPF_NATIVE_FAULT;
	n->cfa = n->word + (__u64)(__s64)rule->cfa_arg;
	return 0;
}

/* The return address by @rule into n->word, as native_cfa(). */
static __always_inline int native_ra(struct walk_native *n, __u32 walk_id,
				     const struct rbpf_cfi_rule *rule)
{
	__u64 base = rule->ra == RBPF_CFI_RA_SP ? n->sp : n->cfa;

	if (rule->ra == RBPF_CFI_RA_LR) {
		n->word = n->lr;
		return n->lr_known ? 0 : RBPF_NATIVE_REGISTER;
	}
	return native_read(n, walk_id, base + (__u64)(__s64)rule->ra_off) ? RBPF_NATIVE_FAULT : 0;
}

/*
 * Restore the caller's frame pointer. If it cannot be read, the walk fails only when a rule needs
 * it.
 */
static __always_inline void native_fp(struct walk_native *n, __u32 walk_id,
				      const struct rbpf_cfi_rule *rule)
{
	__u64 base = n->cfa;

	if (rule->fp == RBPF_CFI_FP_SAME)
		return;
	if (rule->fp == RBPF_CFI_FP_SP)
		base = n->sp;
	else if (rule->fp == RBPF_CFI_FP_FP)
		base = n->fp;
	if (rule->fp == RBPF_CFI_FP_LOST || (rule->fp == RBPF_CFI_FP_FP && !n->fp_known) ||
	    native_read(n, walk_id, base + (__u64)(__s64)rule->fp_off)) {
		n->fp_known = 0;
		return;
	}
	n->fp = n->word;
	n->fp_known = 1;
}

/* The registers are those of the caller now, which goes on at @pc. */
static __always_inline void native_caller(struct walk_native *n, __u64 pc, __u64 exact)
{
	n->pc = pc;
	n->sp = n->cfa;
	n->exact = exact != 0;
	n->innermost = 0;
	native_push(n, pc | exact);
}

/*
 * The caller's pc, of the return address in n->word, into *@pc. Returns 0, -1 if there is no
 * caller, or enum rbpf_native_end.
 */
static __always_inline int native_return(const struct walk_native *n, __u64 *pc)
{
	*pc = n->word & NATIVE_PC_MASK;
	if (!*pc)
		return -1;
	return native_is_address(*pc) ? 0 : RBPF_NATIVE_STUCK;
}

/*
 * Leave the frame by @rule: what src/elf/cfi_step.c does. Returns enum rbpf_native_end, 0 if the
 * registers are the caller's now, or -1 if there is no caller.
 */
static __always_inline int native_leave(struct walk_native *n, __u32 walk_id,
					const struct rbpf_cfi_rule *rule)
{
	bool is_signal = rule->flags & RBPF_CFI_SIGNAL;
	__u64 pc;
	int r;

	if (rule->ra == RBPF_CFI_RA_END)
		return -1;
	r = native_cfa(n, walk_id, rule);
	if (r)
		return r;
	if (!is_signal && (n->cfa < n->sp || (n->cfa == n->sp && rule->ra != RBPF_CFI_RA_LR)))
		return RBPF_NATIVE_STUCK;
	r = native_ra(n, walk_id, rule);
	if (!r)
		r = native_return(n, &pc);
	if (r)
		return r;
	n->lr_known = 0;
#if defined(__TARGET_ARCH_arm64)
	if (is_signal && !native_read(n, walk_id, n->sp + (__u64)(__s64)rule->fp_off + 8)) {
		n->lr = n->word;
		n->lr_known = 1;
	}
#endif
	native_fp(n, walk_id, rule);
	native_caller(n, pc, is_signal ? RBPF_NATIVE_EXACT : 0);
	return 0;
}

/*
 * Leave a frame of YJIT on x86_64. Only the interpreter enters YJIT's code, which pushes three
 * registers first; in the innermost frame it may have pushed more after them. With --yjit-perf it
 * also keeps a frame record.
 */
static __always_inline int native_leave_yjit(struct walk *w, __u32 walk_id)
{
	struct walk_native *n = &w->native;
	__u64 at = n->sp + YJIT_FRAME_WORDS * 8;
	int i;

	for (i = 0; i <= YJIT_PUSHED_MAX; i++, at += 8) {
		if (native_read(n, walk_id, at))
			return RBPF_NATIVE_FAULT;
		if (in_vm(w, n->word)) {
			n->cfa = at + 8;
			native_caller(n, n->word, 0);
			return 0;
		}
		if (!n->innermost)
			break;
	}
	if (!n->fp_known || n->fp < n->sp || n->fp - n->sp > YJIT_PUSHED_MAX * 8)
		return RBPF_NATIVE_JIT;
	n->cfa = n->fp + 16;
	if (native_read(n, walk_id, n->fp + 8) || !in_vm(w, n->word))
		return RBPF_NATIVE_JIT;
	at = n->word;
	n->fp_known = !native_read(n, walk_id, n->fp);
	n->fp = n->word;
	native_caller(n, at, 0);
	return 0;
}

/* Leave the frame by the rule that is in @word: as native_leave(). */
static __always_inline int native_leave_short(struct walk_native *n, __u32 walk_id, __u64 word)
{
	const __u64 ra = word >> NATIVE_RA_SHIFT & (NATIVE_SAVED - 1);
	const __u64 fp = word >> NATIVE_FP_SHIFT & (NATIVE_SAVED - 1);
	__u64 cfa = n->sp, pc;
	int r;

	if (word & NATIVE_RULE_FP) {
		if (!n->fp_known)
			return RBPF_NATIVE_REGISTER;
		cfa = n->fp;
	}
	cfa += (word >> NATIVE_CFA_SHIFT & (NATIVE_CFA_WORDS - 1)) * 8;
	if (cfa <= n->sp)
		return RBPF_NATIVE_STUCK;
	if (native_read(n, walk_id, cfa - ra * 8))
		return RBPF_NATIVE_FAULT;
	r = native_return(n, &pc);
	if (r)
		return r;
	n->lr_known = 0;
	if (fp) {
		n->fp_known = !native_read(n, walk_id, cfa - fp * 8);
		if (n->fp_known)
			n->fp = n->word;
	}
	n->cfa = cfa;
	native_caller(n, pc, 0);
	return 0;
}

/* Leave it by the rule whose number is in @word. */
static __always_inline int native_leave_long(struct walk_native *n, __u32 walk_id, __u64 word)
{
	const struct rbpf_cfi_rule *rule = native_rule((word & NATIVE_RULE_MASK) >> 1);

	if (!rule)
		return RBPF_NATIVE_NO_RULE;
	n->rule = *rule;
	return native_leave(n, walk_id, &n->rule);
}

/*
 * Find the rule of @addr, which n->pc is in, and remember it. Returns 0, enum rbpf_native_end if
 * there is none, or -1 if it is YJIT's code, which has none.
 */
__noinline int native_look_up(__u32 walk_id, __u64 addr)
{
	struct walk *w = walk_state(walk_id);
	const struct rbpf_cfi_rule *rule;
	const struct rbpf_range *range;
	__u32 i = RBPF_CFI_RULE_RECORD;
	struct walk_native *n;
	__u64 key;

	if (!w)
		return RBPF_NATIVE_NO_RANGE;
	n = &w->native;
	range = native_range(n->range);
	if (!range_has(range, addr) || n->range - n->code.first >= n->code.n) {
		if (native_find_range(walk_id, addr))
			return RBPF_NATIVE_NO_RANGE;
		range = native_range(n->range);
	}
	if (!range)
		return RBPF_NATIVE_NO_RANGE;
	switch (range->kind) {
	case RBPF_CODE_TABLE:
		i = native_find_rule(range->table, range->pages, addr - range->base) & 0xffff;
		break;
	case RBPF_CODE_RECORD:
		break;
	case RBPF_CODE_YJIT:
		return -1;
	case RBPF_CODE_UNREAD:
		return RBPF_NATIVE_UNREAD;
	case RBPF_CODE_NO_ROOM:
		return RBPF_NATIVE_NO_ROOM;
	default:
		return RBPF_NATIVE_NO_TABLE;
	}
	rule = native_rule(i);
	if (!rule)
		return RBPF_NATIVE_NO_RULE;
	key = native_rule_key(n, addr);
	native_remember(n, key, native_rule_word(rule, i));
	return 0;
}

/* Leave the frame that n->pc is in. As native_leave(). */
static __always_inline int native_leave_any(struct walk *w, __u32 walk_id)
{
	struct walk_native *n = &w->native;
	__u64 addr = n->pc - !n->exact;
	__u64 key = native_rule_key(n, addr);
	__u64 word = native_recall(n, key);
	int r = 0;

	if (!word) {
		r = native_look_up(walk_id, addr);
		word = *native_set(n, key);
	}
	if (r)
		return r < 0 ? native_leave_yjit(w, walk_id) : r;
	return word & NATIVE_RULE_HERE ? native_leave_short(n, walk_id, word)
				       : native_leave_long(n, walk_id, word);
}

/* ---- gaps ---- */

/*
 * Look at the next tag of the chain. Returns 1 if the walk can go on there (its registers were
 * taken over), 0 if the tag is not further out than the frame that was reached, and -1 if the chain
 * ends or cannot be read. Global, like the body of every long loop: the verifier checks it once,
 * not in each iteration.
 */
__noinline int native_next_tag(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 words[RUBY_TAG_WORDS], tag, prev;
	struct walk_native *n;
	struct ruby_tag at;

	if (!w)
		return -1;
	n = &w->native;
	tag = n->tag;
	n->tag = 0;
	if (!tag || !n->tags_left ||
	    walk_read(words, sizeof(words), tag + ruby_tag_words(w->layout.tag_form)) ||
	    walk_read(&prev, sizeof(prev), tag + ruby_tag_prev(w->layout.tag_form)))
		return -1;
	n->tags_left--;
	ruby_tag_registers(words, w->layout.tag_form, w->layout.tag_guard, &at);
	if (at.sp > n->sp && at.sp <= tag && in_vm(w, at.pc)) {
		n->tag = prev;
		n->pc = at.pc;
		n->sp = at.sp;
		n->fp = at.fp;
		n->fp_known = n->exact = 1;
		n->lr_known = n->innermost = 0;
		return 1;
	}
	if (prev <= tag)
		return -1;
	n->tag = prev;
	return 0;
}

/*
 * Go on at the next tag whose frame is further out than what was reached. Returns 0, or -1 if there
 * is none.
 */
__noinline int native_resync(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	int i, r;

	if (!w || w->layout.tag_form == RUBY_TAG_UNKNOWN)
		return -1;
	for (i = 0; i < NATIVE_MAX_TAGS; i++) {
		r = native_next_tag(walk_id);
		if (r)
			return r > 0 ? 0 : -1;
	}
	return -1;
}

/*
 * Whether all that is further out is what the C library begins a thread with. musl has no unwind
 * entries for that. It is next to where the stack ended when the program began, or to where the
 * VM's first function in the thread noted that it begins.
 */
__noinline int native_is_begin(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 start, top, sp;

	if (!w)
		return 0;
	sp = w->native.sp;
	start = w->native.start;
	top = native_main_top();
	return (start && sp >= start && sp - start < NATIVE_BEGIN_MAX) ||
	       (top && sp <= top && top - sp < NATIVE_BEGIN_MAX);
}

/*
 * The walk does not go on where it has come to: there is no caller (@end is -1), or it is not known
 * because of @end. Returns 1 if it goes on further out.
 */
__noinline int native_stop(__u32 walk_id, int end)
{
	struct walk *w = walk_state(walk_id);
	struct walk_native *n;

	if (!w)
		return 0;
	n = &w->native;
	if (end < 0) {
		n->end = RBPF_NATIVE_OUTERMOST;
		return 0;
	}
	if (end == RBPF_NATIVE_NO_RANGE || end == RBPF_NATIVE_UNREAD)
		native_report_miss(walk_id, end);
	if (native_resync(walk_id)) {
		n->end = end;
		if ((end == RBPF_NATIVE_NO_RULE || end == RBPF_NATIVE_NO_TABLE) &&
		    native_is_begin(walk_id))
			n->end = RBPF_NATIVE_OUTERMOST;
		else
			walk_count(RBPF_CNT_NATIVE_CUT + end);
		return 0;
	}
	walk_count(RBPF_CNT_NATIVE_CUT + end);
	native_push(n, end);
	native_push(n, n->pc | RBPF_NATIVE_EXACT);
	return 1;
}

/* The next NATIVE_RUN frames further out, or fewer. Returns 1 if there may be more. */
__noinline int native_run(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct walk_native *n;
	int end, i;

	if (!w)
		return 0;
	n = &w->native;
	for (i = 0; i < NATIVE_RUN; i++) {
		if (n->n_frames - n->n_kernel >= RBPF_MAX_NATIVE) {
			n->end = RBPF_NATIVE_LIMIT;
			return 0;
		}
		end = native_leave_any(w, walk_id);
		if (end)
			return native_stop(walk_id, end);
	}
	return 1;
}

/* Before each walk: no frames, and nothing known of the thread. */
static __always_inline void native_init(struct walk *w)
{
	w->native.tag = w->native.top = w->native.start = 0;
	w->native.n_frames = w->native.n_kernel = 0;
	w->native.end = RBPF_NATIVE_OUTERMOST;
}

/*
 * Save the chain of tags and where the stack begins from w->ec_words. To be called before
 * walk_stack(), which reads the EC of each fiber into ec_words.
 */
static __always_inline void native_note_ec(struct walk *w)
{
	__u64 start = ec_word(w, w->layout.ec_stack_start);

	w->native.tag = w->ec_words[RUBY_EC_TAG];
	if (!w->layout.ec_stack_start || !start)
		return;
	w->native.start = start;
	w->native.top = (start + NATIVE_PAGE - 1) & ~(NATIVE_PAGE - 1ull);
}

/*
 * Walk from the registers in w->native.regs and append the frames to w->native.frames. The caller
 * has also set w->layout and w->native.code and hash, and called native_init() and, for a thread
 * with an EC, native_note_ec().
 */
static __always_inline void walk_native(struct walk *w, __u32 walk_id)
{
	struct walk_native *n = &w->native;
	int i;

	n->pc = n->regs.pc;
	n->sp = n->regs.sp;
	n->fp = n->regs.fp;
	n->lr = n->regs.lr;
	n->fp_known = 1;
	n->lr_known = NATIVE_HAS_LR;
	n->win_hi = 0;
	n->pages_left = NATIVE_MAX_PAGES;
	n->tags_left = NATIVE_MAX_TAGS;
	n->range = n->code.first;
	n->code_key = rbpf_mix(0, n->code.id);
	n->end = RBPF_NATIVE_LIMIT;
	n->exact = n->innermost = 1;
	/*
	 * While fibers are switched, top may be that of another stack: one below sp cannot be
	 * right.
	 */
	if (n->top < n->sp)
		n->top = 0;
	native_push(n, n->pc | RBPF_NATIVE_EXACT);
	for (i = 0; i < RBPF_MAX_NATIVE; i++)
		if (native_run(walk_id) <= 0)
			break;
}

#endif
