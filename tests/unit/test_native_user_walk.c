/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The test's own stack, walked as that of a process with a Ruby would be, with what /proc and its
 * files say of its code, and by libgcc from the same place.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "base/array.h"
#include "ruby/vm.h"
#include "native/native_stacks.h"
#include "native/native_user_walk.h"
#include "symbol/native_names.h"
#include "support/test_worker.h"

#define MAX_FRAMES 1000

/* A Ruby of which nothing is known: there are no tags, and no JIT. */
static struct ruby_vm vm;
static struct native_user_walk *here;

static void begin(void)
{
	vm = (struct ruby_vm) { .pid = getpid(),
				.mem = memory_process(getpid()),
				.worker = test_worker() };
	cr_assert_eq(native_user_walk_new(&vm, &here), 0);
}

static void end(void)
{
	native_user_walk_free(here);
}

struct stack {
	uint64_t pcs[MAX_FRAMES];
	uint32_t n;
};

/* backtrace(3) does it so; sanitizers put a frame of theirs under that. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *ctx)
{
	struct stack *stack = ctx;
	uint64_t pc = _Unwind_GetIP(context);

	if (pc && stack->n < MAX_FRAMES)
		stack->pcs[stack->n++] = pc;
	return _URC_NO_REASON;
}

static struct {
	int same, differ;
	uint32_t deepest;
} seen;

static void show(const struct native_stack *ours, const struct stack *theirs)
{
	fprintf(stderr, "it ends by %d\n", ours->end);
	for (uint32_t i = 1; i < ours->n_words || i < theirs->n; i++)
		fprintf(stderr, "  %llx %llx\n",
			i < ours->n_words ? (unsigned long long)ours->words[i] : 0,
			i < theirs->n ? (unsigned long long)theirs->pcs[i] : 0);
}

#if defined(__x86_64__)
#define TAKE_REGISTERS(r)                                                                          \
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"                      \
			 : "=&r"((r)->pc), "=&r"((r)->sp), "=&r"((r)->fp))
#else
#define TAKE_REGISTERS(r)                                                                          \
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"                   \
			 : "=&r"((r)->pc), "=&r"((r)->sp), "=&r"((r)->fp), "=&r"((r)->lr))
#endif

/* Both, from where this is called. */
__attribute__((noinline)) static void compare_here(void)
{
	static _Thread_local struct stack theirs;
	struct native_stack ours;
	struct rbpf_regs regs = { 0 };
	bool same;

	TAKE_REGISTERS(&regs);
	cr_assert_eq(native_user_walk_run(here, 0, &regs, &ours), 0);
	theirs.n = 0;
	_Unwind_Backtrace(take_frame, &theirs);
	same = ours.n_words == theirs.n && ours.end == RBPF_NATIVE_OUTERMOST &&
	       ours.words[0] == (regs.pc | RBPF_NATIVE_EXACT);
	/* Of a function that a signal has interrupted ours are marked. */
	for (uint32_t i = 1; same && i < ours.n_words; i++)
		same = (ours.words[i] & ~RBPF_NATIVE_EXACT) == theirs.pcs[i];
	seen.same += same;
	seen.differ += !same;
	seen.deepest = ours.n_words > seen.deepest ? ours.n_words : seen.deepest;
	if (!same)
		show(&ours, &theirs);
	native_stack_deinit(&ours);
}

static int compare_ints(const void *a, const void *b)
{
	compare_here();
	return *(const int *)a - *(const int *)b;
}

/* Frames of a size that is known only at run time are left by their frame pointer. */
__attribute__((noinline)) static void descend(size_t depth)
{
	volatile char *room = __builtin_alloca(depth * 16 + 16);

	room[0] = 1;
	if (depth)
		descend(depth - 1);
	else
		compare_here();
	room[1] = room[0];
}

Test(native_user_walk, own_stack, .init = begin, .fini = end)
{
	int v[] = { 3, 1, 2 };

	compare_here();
	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare_ints);
	for (size_t depth = 1; depth < 400; depth = depth * 3 + 1)
		descend(depth);
	cr_expect_geq(seen.same, 8);
	cr_expect_eq(seen.differ, 0);
	cr_expect_geq(seen.deepest, 364);
}

static void *in_thread(void *arg)
{
	compare_here();
	descend(50);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
	compare_here();
}

Test(native_user_walk, threads_and_signals, .init = begin, .fini = end)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	cr_expect_eq(seen.same, 3);
	cr_expect_eq(seen.differ, 0);
}

__attribute__((noinline)) static void walk_from_here(struct native_stack *ret)
{
	struct rbpf_regs regs = { 0 };

	TAKE_REGISTERS(&regs);
	cr_assert_eq(native_user_walk_run(here, 0, &regs, ret), 0);
}

/* The call must not become a jump. */
__attribute__((noinline)) static void walk_from_caller(struct native_stack *ret)
{
	walk_from_here(ret);
	__asm__ volatile("");
}

static const char *name_of(struct native_user_walk *h, uint64_t word)
{
	struct native_frames frames = { 0 };
	uint32_t name;

	cr_assert_eq(native_user_walk_frames(h, &word, 1, &frames), 0);
	name = frames.v[0].name;
	free(frames.v);
	return native_user_walk_name(h, name)->name;
}

Test(native_user_walk, names, .init = begin, .fini = end)
{
	struct native_stack stack;

	walk_from_caller(&stack);
	cr_assert_geq(stack.n_words, 3);
	cr_expect_str_eq(name_of(here, stack.words[0]), "walk_from_here");
	cr_expect_str_eq(name_of(here, stack.words[1]), "walk_from_caller");
	cr_expect_not_null(strstr(name_of(here, stack.words[2]), "names"));
	cr_expect_str_eq(name_of(here, RBPF_NATIVE_LIMIT),
			 "[native frames missing: the stack is too deep]");
	native_stack_deinit(&stack);
}

/* What leads nowhere has one frame, and says why there are no more. */
Test(native_user_walk, nonsense, .init = begin, .fini = end)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rbpf_regs regs = { .pc = 0x1000, .sp = 0x2000 };
	struct native_stack stack;

	cr_assert_eq(native_user_walk_run(here, 0x3000, &regs, &stack), 0);
	cr_expect_eq(stack.n_words, 1);
	cr_expect_eq(stack.end, RBPF_NATIVE_NO_RANGE);
	native_stack_deinit(&stack);

	regs.pc = (uint64_t)(uintptr_t)qsort;
	cr_assert_eq(native_user_walk_run(here, 0, &regs, &stack), 0);
	cr_expect_eq(stack.n_words, 1);
	cr_expect_eq(stack.end, RBPF_NATIVE_FAULT);
	native_stack_deinit(&stack);

	/*
	 * It came after the process' map was read. The map is read again, but after a pause that is
	 * as much longer as reading took.
	 */
	regs.pc = (uint64_t)(uintptr_t)code;
	for (int i = 0; i < 100; i++) {
		usleep(100000);
		cr_assert_eq(native_user_walk_run(here, 0, &regs, &stack), 0);
		if (stack.end != RBPF_NATIVE_NO_RANGE)
			break;
		native_stack_deinit(&stack);
	}
	cr_expect_eq(stack.n_words, 1);
	cr_expect_eq(stack.end, RBPF_NATIVE_NO_TABLE);
	native_stack_deinit(&stack);
	munmap(code, 4096);
}
