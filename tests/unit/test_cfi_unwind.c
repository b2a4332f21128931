/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The test's own thread, unwound by tables and by libgcc from the same place: under
 * functions of libraries that call back, in threads, in signal handlers, and wherever a timer
 * strikes.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>
#include <zlib.h>

#include "base/array.h"
#include "elf/cfi.h"
#include "elf/cfi_step.h"
#include "support/cfi_check.h"

#define MAX_FRAMES  200
#define MAX_OBJECTS 64

#if defined(__x86_64__)
#define PC_MASK CFI_PC_MASK_X86_64
#else
#define PC_MASK CFI_PC_MASK_AARCH64
#endif

/* ---- what is loaded ---- */

struct object {
	struct cfi_table table;
	uint64_t bias;
	uint64_t start, end; /* in memory */
};

static struct cfi_rules rules;
static struct object objects[MAX_OBJECTS];
static size_t n_objects;

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const Elf64_Ehdr *vdso;
	struct object *o = &objects[n_objects];
	int fd, r;

	(void)size;
	(void)ctx;
	cr_assert_lt(n_objects, MAX_OBJECTS);
	*o = (struct object) { .bias = info->dlpi_addr, .start = UINT64_MAX };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (o->bias + ph->p_vaddr < o->start)
			o->start = o->bias + ph->p_vaddr;
		if (o->bias + ph->p_vaddr + ph->p_memsz > o->end)
			o->end = o->bias + ph->p_vaddr + ph->p_memsz;
	}
	if (strstr(info->dlpi_name, "vdso")) {
		vdso = (const Elf64_Ehdr *)o->start;
		r = cfi_table_read_image(vdso, vdso->e_shoff + vdso->e_shnum * sizeof(Elf64_Shdr),
					 &rules, &o->table);
	} else {
		fd = open(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe",
			  O_RDONLY | O_CLOEXEC);
		cr_assert_geq(fd, 0, "%s", info->dlpi_name);
		r = cfi_table_read(fd, &rules, &o->table);
		close(fd);
	}
	cr_expect_eq(r, 0, "%s: %d", info->dlpi_name, r);
	n_objects += !r;
	return 0;
}

static void load(void)
{
	cr_assert_eq(cfi_rules_init(&rules), 0);
	dl_iterate_phdr(add_object, NULL);
}

static void unload(void)
{
	while (n_objects)
		cfi_table_deinit(&objects[--n_objects].table);
	cfi_rules_deinit(&rules);
}

static const struct rbpf_cfi_rule *rule_of(uint64_t pc)
{
	for (size_t i = 0; i < n_objects; i++)
		if (pc >= objects[i].start && pc < objects[i].end)
			return cfi_table_rule(&objects[i].table, &rules, pc - objects[i].bias);
	return cfi_rules_get(&rules, RBPF_CFI_RULE_NONE);
}

/* ---- the two unwinders ---- */

static int read_own(void *ctx, uint64_t addr, uint64_t *ret)
{
	struct iovec to = { ret, 8 }, from = { (void *)addr, 8 };

	(void)ctx;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 8;
}

struct stack {
	void *pcs[MAX_FRAMES];
	int n;
	enum cfi_step_result result;
};

/* The callers' pcs, innermost first, without @f's own. */
static void unwind(struct cfi_frame f, struct stack *ret)
{
	ret->n = 0;
	do {
		ret->result = cfi_step(rule_of(f.pc - f.is_return), PC_MASK, read_own, NULL, &f);
		if (ret->result == CFI_STEP_CALLER)
			ret->pcs[ret->n++] = (void *)f.pc;
	} while (ret->result == CFI_STEP_CALLER && ret->n < MAX_FRAMES);
}

/* backtrace(3) does it so; sanitizers put a frame of theirs under that. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *ctx)
{
	struct stack *stack = ctx;
	void *pc = (void *)_Unwind_GetIP(context);

	if (pc && stack->n < MAX_FRAMES)
		stack->pcs[stack->n++] = pc;
	return _URC_NO_REASON;
}

static struct {
	int stops; /* both unwinders agree */
	int differ;
	int unfinished; /* of stops, that ours did not follow to the end */
} seen;

/* Both, from where this is called. @at_least callers are expected. */
__attribute__((noinline)) static void compare_here(int at_least)
{
	static _Thread_local struct stack ours, theirs;
	struct cfi_frame f = { .fp_known = true };
	bool same;

#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=&r"(f.pc), "=&r"(f.sp), "=&r"(f.fp));
#else
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"
			 : "=&r"(f.pc), "=&r"(f.sp), "=&r"(f.fp));
#endif
	unwind(f, &ours);
	theirs.n = 0;
	_Unwind_Backtrace(take_frame, &theirs);
	theirs.n--; /* its first is in here */
	same = ours.n <= theirs.n && ours.n >= at_least &&
	       !memcmp(ours.pcs, theirs.pcs + 1, (size_t)ours.n * sizeof(ours.pcs[0]));
	same = same && (ours.result != CFI_STEP_END || ours.n == theirs.n);
	seen.stops += same;
	seen.differ += !same;
	seen.unfinished += same && ours.result != CFI_STEP_END;
	if (same)
		return;
	fprintf(stderr, "result %d\n", ours.result);
	for (int i = 0; i < ours.n || i < theirs.n; i++)
		fprintf(stderr, "  %p %p\n", i < ours.n ? ours.pcs[i] : NULL,
			i < theirs.n ? theirs.pcs[i + 1] : NULL);
}

static void expect_all(int stops)
{
	cr_expect_geq(seen.stops, stops);
	cr_expect_eq(seen.differ, 0);
	cr_expect_eq(seen.unfinished, 0);
}

/* ---- from where ---- */

Test(cfi_unwind, here, .init = load, .fini = unload)
{
	compare_here(4);
	expect_all(1);
}

static int compare_ints(const void *a, const void *b)
{
	const int *x = a, *y = b;

	compare_here(4);
	return *x < *y ? -1 : *x > *y;
}

static void visit(const void *node, VISIT order, int depth)
{
	(void)node;
	(void)order;
	(void)depth;
	compare_here(6);
}

static int filter(const struct dirent *entry)
{
	(void)entry;
	compare_here(6);
	return 0;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)info;
	(void)size;
	(void)ctx;
	compare_here(6);
	return 1;
}

static ssize_t on_write(void *cookie, const char *bytes, size_t n)
{
	(void)cookie;
	(void)bytes;
	compare_here(6);
	return (ssize_t)n;
}

static void *on_alloc(void *opaque, unsigned int n, unsigned int size)
{
	(void)opaque;
	compare_here(6);
	return calloc(n, size);
}

static void on_free(void *opaque, void *memory)
{
	(void)opaque;
	compare_here(6);
	free(memory);
}

Test(cfi_unwind, callbacks, .init = load, .fini = unload)
{
	z_stream z = { .zalloc = on_alloc, .zfree = on_free };
	cookie_io_functions_t io = { .write = on_write };
	int v[] = { 5, 2, 9, 1, 7, 3 }, key = 7;
	struct dirent **names;
	void *tree = NULL;
	FILE *file;

	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare_ints);
	cr_expect_not_null(bsearch(&key, v, ARRAY_SIZE(v), sizeof(v[0]), compare_ints));
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		tsearch(&v[i], &tree, compare_ints);
	twalk(tree, visit);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		tdelete(&v[i], &tree, compare_ints);
	cr_expect_eq(scandir("/", &names, filter, NULL), 0);
	free(names);
	dl_iterate_phdr(on_object, NULL);
	file = fopencookie(NULL, "w", io);
	fprintf(file, "%d\n", key);
	fclose(file);
	cr_expect_eq(deflateInit(&z, 6), Z_OK);
	deflateEnd(&z);
	expect_all(40);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_once(void)
{
	compare_here(3);
}

static void *in_thread(void *arg)
{
	int v[] = { 3, 2, 1 };

	compare_here(2);
	pthread_once(&once, on_once);
	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare_ints);
	return arg;
}

/* A thread's outermost frame is clone()'s. */
Test(cfi_unwind, thread, .init = load, .fini = unload)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	expect_all(4);
}

static void on_signal(int sig)
{
	(void)sig;
	compare_here(2);
}

/* A frame of each odd kind: CFA in other registers than sp, frames of a size known at run time. */
__attribute__((noinline)) static void in_odd_frame(size_t n)
{
	_Alignas(64) volatile char aligned[64];
	volatile char *dynamic = __builtin_alloca(n);

	aligned[0] = dynamic[0] = 0;
	compare_here(5);
	raise(SIGUSR1);
	aligned[1] = dynamic[1] = aligned[0];
	__asm__ volatile("" : : "r"(aligned), "r"(dynamic));
}

Test(cfi_unwind, signals, .init = load, .fini = unload)
{
	static char room[1 << 16];
	stack_t other = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_handler = on_signal };

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	in_odd_frame((size_t)getpid() % 7 * 16 + 100);
	cr_assert_eq(sigaltstack(&other, NULL), 0);
	action.sa_flags = SA_ONSTACK;
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1); /* the caller is lower than the handler's own stack, or higher */
	in_odd_frame(1000);
	expect_all(6);
	other.ss_flags = SS_DISABLE;
	sigaltstack(&other, NULL);
}

static int compare_quietly(const void *a, const void *b)
{
	return memcmp(a, b, 8);
}

/* Any instruction: prologues, epilogues, PLT entries, leaf functions. */
Test(cfi_unwind, timer, .init = load, .fini = unload)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	static uint64_t data[4096], packed[8192];
	uint64_t random = 88172645463325252ull;
	char text[64];

	cr_assert_eq(sigaction(SIGPROF, &action, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_PROF, &timer, NULL), 0);
	for (int round = 0; seen.stops + seen.differ < 60 && round < 2000; round++) {
		uLongf size = sizeof(packed);

		for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			data[i] = random & 0xffffff;
		}
		compress((Bytef *)packed, &size, (const Bytef *)data, sizeof(data));
		qsort(data, ARRAY_SIZE(data), 8, compare_quietly);
		for (int i = 0; i < 2000; i++)
			snprintf(text, sizeof(text), "%g %d", (double)random / i, i);
	}
	timer = (struct itimerval) { 0 };
	setitimer(ITIMER_PROF, &timer, NULL);
	expect_all(20);
}
