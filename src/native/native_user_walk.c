/* SPDX-License-Identifier: GPL-2.0-only */
#include "native/native_user_walk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rbpf_cfi.h"
#include "ruby/vm.h"
#include "native/native_stacks.h"
#include "native/unwind_tables.h"
#include "target/container.h"
#include "target/memory.h"
#include "target/process.h"

/*
 * Room for the tables of one process. Only what is used of it is ever touched; the ranges are there
 * more than once because those of a map that was replaced stay for a while.
 */
#define POOL_WORDS ((64u << 20) / sizeof(uint32_t))
#define MAX_RANGES (4 * RBPF_MAX_RANGES)
/* Each walk beyond the first has one more table; a stack goes through code of some ten files. */
#define MAX_WALKS  128

/*
 * The shim under which the BPF walker compiles as host C; as in ruby/walk.c, its state is found by
 * a CPU number that says nothing here.
 */
struct walk;

static _Thread_local struct native_user_walk *host;

static void note_miss(uint64_t addr, int end);
static const struct rbpf_range *native_range(uint32_t i);
static const struct rbpf_cfi_rule *native_rule(uint32_t i);
static const uint32_t *native_chunk(uint32_t i);
static struct walk *walk_here(void);
static int walk_read_here(void *dst, size_t size, uint64_t addr);
static uint64_t main_top_here(void);

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline			 static __attribute__((noinline))
#define walk_state(walk_id)		 ((void)(walk_id), walk_here())
#define walk_read(dst, size, addr)	 walk_read_here((dst), (size), (addr))
#define walk_count(counter)		 ((void)(counter))
#define native_report_miss(walk_id, end) note_miss(walk_state(walk_id)->native.pc, (end))
#define native_main_top()		 main_top_here()
#if defined(__aarch64__)
#define __TARGET_ARCH_arm64
#endif

#include "../../bpf/native_walk.bpf.h"

struct native_user_walk {
	const struct ruby_vm *vm;
	struct native *native;
	struct native_process *process;
	struct process_context context; /* unknown: its pid is as rbpf sees it */
	struct unwind_memory mem;	/* owned */
	struct rbpf_code code;		/* where the ranges are in it; n is 0: not known */
	uint64_t asked;	   /* address that the walk knows too little of, because of … */
	int asked_end;	   /* … this; 0: there was none */
	uint64_t main_top; /* process_main_top() */
	struct walk walk;
};

static struct walk *walk_here(void)
{
	return &host->walk;
}

static uint64_t main_top_here(void)
{
	return host->main_top;
}

static int walk_read_here(void *dst, size_t size, uint64_t addr)
{
	return memory_read(&host->vm->mem, addr, dst, size);
}

static const struct rbpf_range *native_range(uint32_t i)
{
	return i < host->mem.n_ranges ? &host->mem.ranges[i] : NULL;
}

static const struct rbpf_cfi_rule *native_rule(uint32_t i)
{
	return i < host->mem.n_rules ? &host->mem.rules[i] : NULL;
}

static const uint32_t *native_chunk(uint32_t i)
{
	return i < host->mem.n_words / RBPF_POOL_CHUNK
		       ? host->mem.words + (size_t)i * RBPF_POOL_CHUNK
		       : NULL;
}

/* A table that is missing can be read; code in no range may stay so. */
static void note_miss(uint64_t addr, int end)
{
	if (host->asked_end == RBPF_NATIVE_UNREAD)
		return;
	host->asked = addr;
	host->asked_end = end;
}

static void set_code(void *arg, pid_t pid, const struct rbpf_code *code)
{
	struct native_user_walk *h = arg;

	(void)pid;
	h->code = code ? *code : (struct rbpf_code) { 0 };
}

static int make_memory(struct unwind_memory *ret)
{
	*ret = (struct unwind_memory) {
		.words = calloc(POOL_WORDS, sizeof(*ret->words)),
		.n_words = POOL_WORDS,
		.rules = calloc(RBPF_CFI_MAX_RULES, sizeof(*ret->rules)),
		.n_rules = RBPF_CFI_MAX_RULES,
		.ranges = calloc(MAX_RANGES, sizeof(*ret->ranges)),
		.n_ranges = MAX_RANGES,
	};
	return ret->words && ret->rules && ret->ranges ? 0 : -ENOMEM;
}

int native_user_walk_new(const struct ruby_vm *vm, struct native_user_walk **ret)
{
	struct native_user_walk *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->vm = vm;
	h->main_top = process_main_top(vm->pid);
	r = make_memory(&h->mem);
	if (!r)
		r = native_new(&h->mem, vm->worker, false, set_code, h, &h->native);
	if (!r)
		r = native_process_new(h->native, vm->pid, &h->context, &h->process);
	if (!r)
		r = native_process_read_map(h->process, vm);
	if (r)
		native_user_walk_free(h);
	else
		*ret = h;
	return r;
}

void native_user_walk_free(struct native_user_walk *h)
{
	if (!h)
		return;
	native_process_free(h->process);
	native_free(h->native);
	free(h->mem.words);
	free(h->mem.rules);
	free(h->mem.ranges);
	free(h);
}

int native_user_walk_interpreter(struct native_user_walk *h, const struct resolver *names)
{
	int r = native_process_interpreter(h->process, h->vm, names);

	if (r == -EAGAIN) {
		r = native_poll(h->native, true);
		if (!r)
			r = native_process_interpreter(h->process, h->vm, names);
	}
	return r < 0 ? r : 0;
}

/* ---- walking ---- */

static void walk_once(struct native_user_walk *h, uint64_t ec, const struct rbpf_regs *regs)
{
	struct walk *w = &h->walk;

	host = h;
	h->asked_end = 0;
	w->layout = h->vm->walk;
	w->native.code = h->code;
	w->native.regs = *regs;
	native_init(w);
	if (ec && !walk_read(w->ec_words, sizeof(w->ec_words), ec))
		native_note_ec(w);
	walk_native(w, 0);
	host = NULL;
}

int native_user_walk_run(struct native_user_walk *h, uint64_t ec, const struct rbpf_regs *regs,
			 struct native_stack *ret)
{
	const struct walk_native *n = &h->walk.native;
	struct native_stack stack = { 0 };
	bool go_on = true;
	int i, r;

	for (i = 0; i < MAX_WALKS && go_on; i++) {
		walk_once(h, ec, regs);
		if (!h->asked_end)
			break;
		go_on = !i || h->asked_end == RBPF_NATIVE_UNREAD;
		r = native_process_miss(h->process, h->asked, (enum rbpf_native_end)h->asked_end,
					h->vm);
		if (r)
			return r;
	}
	stack.words = malloc(n->n_frames * sizeof(*stack.words));
	if (!stack.words)
		return -ENOMEM;
	memcpy(stack.words, n->frames, n->n_frames * sizeof(*stack.words));
	stack.n_words = n->n_frames;
	stack.end = (enum rbpf_native_end)n->end;
	*ret = stack;
	return 0;
}

void native_stack_deinit(struct native_stack *stack)
{
	free(stack->words);
	*stack = (struct native_stack) { 0 };
}

/* ---- names ---- */

int native_user_walk_frames(struct native_user_walk *h, const uint64_t *words, size_t n_words,
			    struct native_frames *ret)
{
	return native_frames(h->native, h->process, false, words, n_words, ret);
}

bool native_user_walk_makes_tail_call(void *arg, uint64_t function, uint64_t other)
{
	const struct native_user_walk *h = arg;

	return native_makes_tail_call(h->process, function, other);
}

const struct native_name *native_user_walk_name(const struct native_user_walk *h, uint32_t name)
{
	return native_frame_name(h->native, name);
}
