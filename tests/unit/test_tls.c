/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/thread_ecs.h"
#include "ruby/tls.h"
#include "ruby/vm.h"
#include "target/memory.h"
#include "support/flat_memory.h"

/*
 * A process with one thread that runs Ruby, in an array that stands for its memory from BASE on.
 * The places are fixed.
 */
#define BASE	    0x7f0000100000ull
#define IMAGE	    (256u << 10)
#define STACK	    (BASE + 0x1000) /* the VM stack, STACK_WORDS long */
#define DUMMY_ENV   (BASE + 0x3000)
#define EC	    (BASE + 0x4000)
#define THREAD	    (BASE + 0x5000)
#define SELF	    (BASE + 0x6000)
#define DTV	    (BASE + 0x7010)
#define CHUNK	    (BASE + 0x9010)  /* of the heap, for dynamic TLS */
#define TP	    (BASE + 0x20000) /* … with static TLS next to it */
#define CODE	    (BASE + 0x30000) /* of rb_thread_current() */

#define STACK_WORDS 512
#define FRAMES	    4
#define GLIBC	    16
#define MUSL	    8

#if defined(__x86_64__)
#define STATIC_BLOCK (TP - 0x100)
#define GLIBC_DTV_AT 8
#define MUSL_DTV_AT  8
#else
#define STATIC_BLOCK (TP + 0x10)
#define GLIBC_DTV_AT 0
#define MUSL_DTV_AT  -8
#endif

static uint8_t bytes[IMAGE];
static unsigned int code_reads;

static void read_image(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	for (size_t i = 0; i < n; i++)
		code_reads += spans[i].addr >= CODE && spans[i].addr < CODE + 0x1000;
	flat_memory_read(bytes, BASE, IMAGE, spans, n);
}

static const struct memory mem = { .read_spans = read_image };

static void put(uint64_t addr, uint64_t word)
{
	cr_assert(addr >= BASE && addr - BASE <= IMAGE - 8);
	memcpy(bytes + (addr - BASE), &word, 8);
}

static uint64_t stack_end(void)
{
	return STACK + STACK_WORDS * 8;
}

static void build_ec(const struct ruby_ec_shape *shape)
{
	put(EC, STACK);
	put(EC + 8, STACK_WORDS);
	put(EC + 16, stack_end() - FRAMES * shape->cf_size);
	put(EC + shape->ec_thread_ptr, THREAD);
	put(THREAD + shape->th_ec, EC);
	put(THREAD + 16, SELF);
	put(SELF, 0x0c); /* T_DATA */
	put(SELF + 32, THREAD);
	put(stack_end() - shape->cf_size + 32, DUMMY_ENV);
	put(DUMMY_ENV, 0x799900a3);
}

/* 3.3, 3.4 */
static const struct ruby_ec_shape usual = { .ec_thread_ptr = 48, .th_ec = 48, .cf_size = 56 };

static void build(void)
{
	memset(bytes, 0, sizeof(bytes));
	build_ec(&usual);
}

/* A DTV of @n modules. */
static void build_dtv(uint16_t entry, uint64_t n)
{
	put(TP + (uint64_t)(int64_t)(entry == GLIBC ? GLIBC_DTV_AT : MUSL_DTV_AT), DTV);
	put(entry == GLIBC ? DTV - GLIBC : DTV, n);
}

static bool is_unknown_ec(uint64_t ec)
{
	static const struct ruby_ec_shape nothing;
	struct ruby_ec_shape shape = { 0 };
	bool yes = ruby_is_ec(&mem, ec, &shape);

	if (!yes)
		cr_expect_arr_eq(&shape, &nothing, sizeof(shape), "untouched");
	return yes;
}

Test(tls, shape_of_an_ec)
{
	static const struct ruby_ec_shape shapes[] = {
		{ 56, 32, 56 },	  { 56, 40, 56 },   { 48, 40, 64 },   { 48, 48, 64 },
		{ 48, 48, 56 },	  { 24, 24, 64 },   { 120, 120, 56 }, { 128, 136, 56 },
		{ 248, 248, 64 }, { 248, 760, 56 },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct ruby_ec_shape found = { 0 };

		memset(bytes, 0, sizeof(bytes));
		build_ec(&shapes[i]);
		cr_assert(ruby_is_ec(&mem, EC, &found), "shape %zu", i);
		cr_expect_arr_eq(&found, &shapes[i], sizeof(found), "shape %zu", i);
		cr_expect(ruby_is_ec(&mem, EC, &found), "once it is known, too");
		found = (struct ruby_ec_shape) { .cf_size = shapes[i].cf_size };
		cr_expect(ruby_is_ec(&mem, EC, &found), "partly known");
		cr_expect_arr_eq(&found, &shapes[i], sizeof(found), "shape %zu", i);
	}
}

Test(tls, known_shape_has_to_fit)
{
	struct ruby_ec_shape shape = usual;

	build();
	cr_assert(ruby_is_ec(&mem, EC, &shape));
	shape.ec_thread_ptr = 56;
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
	shape = usual;
	shape.th_ec = 40;
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
	shape = usual;
	shape.cf_size = 64;
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
	shape = usual;
	shape.ec_thread_ptr = 0xfff8;
	cr_expect_not(ruby_is_ec(&mem, EC, &shape), "beyond what is read");
	shape = (struct ruby_ec_shape) { .ec_thread_ptr = 40 };
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
	shape = (struct ruby_ec_shape) { .th_ec = 40 };
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
}

/*
 * The object that wraps the thread may be found far in it; and it may end where no more is mapped.
 */
Test(tls, large_thread)
{
	static const struct ruby_ec_shape far = { .ec_thread_ptr = 48,
						  .th_ec = 536,
						  .cf_size = 56 };
	uint64_t th = BASE + IMAGE - 640;
	struct ruby_ec_shape found = { 0 };

	memset(bytes, 0, sizeof(bytes));
	build_ec(&far);
	put(THREAD + 16, 0);
	cr_expect_not(is_unknown_ec(EC), "nothing wraps it");
	put(THREAD + 400, SELF);
	cr_expect(is_unknown_ec(EC));
	put(EC + 48, th);
	put(th + 536, EC);
	put(th + 400, SELF);
	put(SELF + 32, th);
	cr_expect(ruby_is_ec(&mem, EC, &found));
	cr_expect_arr_eq(&found, &far, sizeof(found));
}

/* A ractor has the running EC, too, farther from its start than a thread has it. */
Test(tls, ractor_with_the_running_ec)
{
	static const uint16_t th_ecs[] = { 48, 200 };
	uint64_t ractor = THREAD + 0x400;

	for (size_t i = 0; i < sizeof(th_ecs) / sizeof(th_ecs[0]); i++) {
		struct ruby_ec_shape shape = { .ec_thread_ptr = 200,
					       .th_ec = th_ecs[i],
					       .cf_size = 56 };
		struct ruby_ec_shape found = { 0 };

		memset(bytes, 0, sizeof(bytes));
		build_ec(&shape);
		put(EC + 88, ractor);
		put(ractor + 376, EC);
		put(ractor, SELF + 64);
		put(SELF + 64, 0x0c);
		put(SELF + 96, ractor);
		cr_assert(ruby_is_ec(&mem, EC, &found));
		cr_expect_arr_eq(&found, &shape, sizeof(found));
	}
}

/* Who looks far finds more than one, where only the near one is right. */
Test(tls, near_goes_before_far)
{
	struct ruby_ec_shape found = { 0 };

	build();
	put(EC + 136, THREAD + 0x400);
	put(THREAD + 0x400 + 200, EC);
	put(THREAD + 0x400 + 24, SELF + 64);
	put(SELF + 64, 0x0c);
	put(SELF + 96, THREAD + 0x400);
	cr_assert(ruby_is_ec(&mem, EC, &found));
	cr_expect_arr_eq(&found, &usual, sizeof(found));
	put(THREAD + usual.th_ec, 0);
	found = (struct ruby_ec_shape) { 0 };
	cr_assert(ruby_is_ec(&mem, EC, &found));
	cr_expect_eq(found.th_ec, 200);
}

Test(tls, stack_of_an_ec)
{
	build();
	cr_expect(ruby_has_vm_stack(&mem, EC));
	put(EC + usual.ec_thread_ptr, 0);
	cr_expect(ruby_has_vm_stack(&mem, EC), "without its thread");
	cr_expect_not(ruby_has_vm_stack(&mem, EC + 8));
	cr_expect_not(ruby_has_vm_stack(&mem, EC + 4));
	cr_expect_not(ruby_has_vm_stack(&mem, BASE + IMAGE));
	put(DUMMY_ENV, 0x11110003);
	cr_expect_not(ruby_has_vm_stack(&mem, EC), "a method, not the dummy frame");
}

Test(tls, thread_points_back)
{
	struct ruby_ec_shape shape = usual;

	build();
	put(THREAD + usual.th_ec, EC + 8);
	cr_expect_not(is_unknown_ec(EC), "another EC is the thread's");
	cr_expect_not(ruby_is_ec(&mem, EC, &shape));
	put(THREAD + usual.th_ec, 0);
	cr_expect_not(is_unknown_ec(EC), "none is");
	build();
	put(EC + usual.ec_thread_ptr, BASE + IMAGE);
	cr_expect_not(is_unknown_ec(EC), "unreadable thread");
	put(EC + usual.ec_thread_ptr, THREAD + 4);
	cr_expect_not(is_unknown_ec(EC), "misaligned thread");
}

Test(tls, thread_is_wrapped_by_an_object)
{
	struct ruby_ec_shape shape = usual;

	build();
	put(SELF + 32, THREAD + 8);
	cr_expect_not(is_unknown_ec(EC));
	cr_expect(ruby_is_ec(&mem, EC, &shape), "not asked for if it is known where threads are");
	build();
	put(SELF, 0x05);
	cr_expect_not(is_unknown_ec(EC), "by a String");
}

Test(tls, two_shapes_are_none)
{
	build();
	put(EC + 64, THREAD);
	cr_expect_not(is_unknown_ec(EC), "two words are the thread");
	build();
	put(THREAD + 64, EC);
	cr_expect_not(is_unknown_ec(EC), "two words of the thread are the EC");
	build();
	put(EC + 16, stack_end() - 7 * 64); /* 8 * 56 */
	cr_expect(is_unknown_ec(EC));
	put(stack_end() - 64 + 32, DUMMY_ENV);
	cr_expect_not(is_unknown_ec(EC), "frames of 56 and of 64 bytes");
}

Test(tls, frames_of_an_ec)
{
	static const uint64_t bad_cfps[] = {
		0,
		STACK - 56,
		STACK,
		STACK + STACK_WORDS * 8,
		STACK + STACK_WORDS * 8 + 56,
		STACK + STACK_WORDS * 8 - 48,
		STACK + STACK_WORDS * 8 - 56 - 8,
		STACK + STACK_WORDS * 8 - 57,
		~0ull,
	};

	build();
	put(EC + 16, stack_end() - 56);
	cr_expect(is_unknown_ec(EC), "no frame but the dummy");
	for (size_t i = 0; i < sizeof(bad_cfps) / sizeof(bad_cfps[0]); i++) {
		put(EC + 16, bad_cfps[i]);
		cr_expect_not(is_unknown_ec(EC), "cfp %llx", (unsigned long long)bad_cfps[i]);
	}
	build();
	put(DUMMY_ENV, 0x11110003);
	cr_expect_not(is_unknown_ec(EC), "the last slot is a method's");
	build();
	put(stack_end() - 56 + 32, BASE + IMAGE);
	cr_expect_not(is_unknown_ec(EC), "unreadable environment");
	build();
	put(EC + 8, 0);
	cr_expect_not(is_unknown_ec(EC), "no stack: the thread has ended");
	put(EC + 8, ~0ull);
	cr_expect_not(is_unknown_ec(EC));
	build();
	put(EC, 0);
	cr_expect_not(is_unknown_ec(EC));
}

Test(tls, ec_address)
{
	build();
	cr_expect_not(is_unknown_ec(0));
	cr_expect_not(is_unknown_ec(EC + 4));
	cr_expect_not(is_unknown_ec(EC + 8));
	cr_expect_not(is_unknown_ec(BASE + IMAGE - 64), "the rest is unreadable");
	cr_expect_not(is_unknown_ec(BASE + IMAGE));
	cr_expect_not(is_unknown_ec(~0ull));
}

/* ---- slots ---- */

static const struct rbpf_layout untouched = { .tls.offset = 0x1234, .tls.module = 77 };

static bool find(struct rbpf_layout *l)
{
	struct ruby_ec_shape shape = { 0 };
	bool found;

	*l = untouched;
	found = ruby_tls_find(&mem, TP, &shape, l) == RUBY_TLS_FOUND;
	if (found) {
		cr_expect_arr_eq(&shape, &usual, sizeof(shape));
	} else {
		cr_expect_arr_eq(l, &untouched, sizeof(*l));
		cr_expect_eq(shape.cf_size, 0);
	}
	return found;
}

static void expect_read(const struct rbpf_layout *l)
{
	uint64_t ec = 0;

	cr_expect_eq(ruby_tls_read(&mem, l, TP, &ec), 0);
	cr_expect_eq(ec, EC);
}

Test(tls, static_slot)
{
	struct rbpf_layout l;

	build();
	build_dtv(GLIBC, 3);
	put(DTV + 1 * GLIBC, STATIC_BLOCK);
	put(DTV + 2 * GLIBC, ~0ull); /* not allocated yet */
	put(DTV + 3 * GLIBC, STATIC_BLOCK + 0x40);
	put(STATIC_BLOCK + 0x48, THREAD);
	put(STATIC_BLOCK + 0x50, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_STATIC);
	cr_expect_eq(l.tls.offset, (int64_t)(STATIC_BLOCK + 0x50 - TP));
	expect_read(&l);

	put(DTV - GLIBC, 2);
	put(STATIC_BLOCK + 0x50, 0);
	put(STATIC_BLOCK + 0x200, EC);
	cr_expect_not(find(&l), "behind the blocks");
}

static void build_dynamic(void)
{
	build();
	build_dtv(GLIBC, 2);
	put(DTV + 2 * GLIBC, CHUNK);
	put(DTV + 2 * GLIBC + 8, CHUNK);
	put(CHUNK - 8, 0x51); /* 80 bytes, the one before in use */
	put(CHUNK + 0x18, EC);
}

Test(tls, dynamic_slot)
{
	struct rbpf_layout l;
	uint64_t ec = 1;

	build_dynamic();
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_DTV);
	cr_expect_eq(l.tls.offset, 0x18);
	cr_expect_eq(l.tls.module, 2);
	cr_expect_eq(l.tls.dtv_entry, GLIBC);
	cr_expect_eq(l.tls.dtv_offset, GLIBC_DTV_AT);
	expect_read(&l);

	put(CHUNK + 0x18, 0);
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -ENOENT, "not a Ruby thread");
	put(DTV + 2 * GLIBC, ~0ull);
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -ENOENT, "has never touched its block");
	put(DTV + 2 * GLIBC, BASE + IMAGE);
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -EFAULT);
	cr_expect_eq(ruby_tls_read(&mem, &l, BASE + IMAGE, &ec), -EFAULT);
	cr_expect_eq(ec, 1, "untouched");
}

/* Behind a block there is heap memory, with a thread in it whose EC this is. */
Test(tls, neighbours_of_a_dynamic_block)
{
	struct rbpf_layout l;

	build_dynamic();
	put(CHUNK + 0x80, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.offset, 0x18, "the first place in a block counts");

	put(DTV + 1 * GLIBC, CHUNK + 0x1000);
	put(DTV + 1 * GLIBC + 8, CHUNK + 0x1000);
	put(CHUNK + 0x1000 - 8, 0x21);
	put(CHUNK + 0x1000 + 0x18, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.module, 2, "the heap tells where the other block ends");

	put(CHUNK + 0x1000 - 8, 0x1234567);
	cr_expect_not(find(&l), "it does not tell: two blocks have one");

	put(DTV + 1 * GLIBC, CHUNK - 0x20);
	put(DTV + 1 * GLIBC + 8, CHUNK - 0x20);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.module, 2, "a block ends where the next begins");
	cr_expect_eq(l.tls.offset, 0x18);
}

Test(tls, static_goes_before_dynamic)
{
	struct rbpf_layout l;

	build_dynamic();
	put(DTV + 1 * GLIBC, STATIC_BLOCK);
	put(STATIC_BLOCK + 8, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_STATIC);

	build_dtv(GLIBC, 3);
	put(DTV + 3 * GLIBC, STATIC_BLOCK + 0x20);
	put(STATIC_BLOCK + 0x28, EC);
	cr_expect_not(find(&l), "two of static TLS");
}

/* A heap right next to the thread pointer, as a thread's arena can be next to its stack. */
Test(tls, near_does_not_mean_static)
{
	struct rbpf_layout l;

	build();
	build_dtv(GLIBC, 1);
	put(DTV + GLIBC, STATIC_BLOCK);
	put(DTV + GLIBC + 8, STATIC_BLOCK);
	put(STATIC_BLOCK + 8, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_DTV, "it was allocated");
}

Test(tls, musl)
{
	struct rbpf_layout l;

	build();
	build_dtv(MUSL, 3);
	put(DTV + 1 * MUSL, STATIC_BLOCK);
	put(STATIC_BLOCK + 0x10, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_STATIC);
	cr_expect_eq(l.tls.offset, (int64_t)(STATIC_BLOCK + 0x10 - TP));

	put(STATIC_BLOCK + 0x10, 0);
	put(DTV + 3 * MUSL, CHUNK);
	put(CHUNK + 0x18, EC);
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_DTV);
	cr_expect_eq(l.tls.module, 3);
	cr_expect_eq(l.tls.dtv_entry, MUSL);
	cr_expect_eq(l.tls.dtv_offset, MUSL_DTV_AT);
	expect_read(&l);

	put(DTV, 2);
	cr_expect_not(find(&l), "beyond its modules");
}

/*
 * As musl lays it out on x86_64, where glibc's DTV is at the same place: DTV, TLS, struct pthread.
 */
Test(tls, musl_is_not_glibc)
{
	const uint64_t dtv = TP - 0x38, block = TP - 0x18, native_thread = CHUNK;
	struct rbpf_layout l;

	build();
	put(TP + (uint64_t)(int64_t)MUSL_DTV_AT, dtv);
	put(dtv, 1);
	put(dtv + 8, block);
	put(block, native_thread);
	put(native_thread + 48, EC);
	put(block + 16, EC);
#if defined(__x86_64__)
	put(TP, TP);
	put(TP + 16, TP + 0x8000); /* prev and next thread */
	put(TP + 24, TP + 0x4000);
#endif
	cr_assert(find(&l));
	cr_expect_eq(l.tls.model, RBPF_TLS_STATIC);
	cr_expect_eq(l.tls.offset, -8);
}

Test(tls, no_dtv)
{
	struct rbpf_layout l;

	build();
	cr_expect_not(find(&l));
	put(TP + (uint64_t)(int64_t)GLIBC_DTV_AT, BASE + IMAGE);
	cr_expect_not(find(&l));
	build_dynamic();
	put(CHUNK + 0x18, EC + 8);
	cr_expect_not(find(&l), "nothing in it is an EC");
}

/* An EC of another layout: its VM stack shows that there is one, wherever the slot is. */
Test(tls, stack_without_a_thread)
{
	build();
	build_dtv(GLIBC, 1);
	cr_expect_not(ruby_tls_has_stack(&mem, TP));
	put(DTV + 1 * GLIBC, STATIC_BLOCK);
	put(STATIC_BLOCK + 0x20, STACK); /* leads to something, which is no EC */
	cr_expect_not(ruby_tls_has_stack(&mem, TP));
	put(EC + usual.ec_thread_ptr, 0);
	put(STATIC_BLOCK + 0x28, EC);
	cr_expect(ruby_tls_has_stack(&mem, TP));

	build_dynamic();
	put(EC + usual.ec_thread_ptr, 0);
	cr_expect(ruby_tls_has_stack(&mem, TP));
	put(DUMMY_ENV, 0);
	cr_expect_not(ruby_tls_has_stack(&mem, TP), "there is no dummy frame");

	build();
	put(EC + usual.ec_thread_ptr, 0);
	build_dtv(MUSL, 3);
	put(DTV + 1 * MUSL, STATIC_BLOCK);
	put(DTV + 3 * MUSL, CHUNK);
	put(CHUNK + 0x18, EC);
	cr_expect(ruby_tls_has_stack(&mem, TP));
}

Test(tls, slot_of_a_known_shape)
{
	struct ruby_ec_shape shape = usual;
	struct rbpf_layout l = { 0 };

	build_dynamic();
	put(SELF, 0);
	cr_expect_eq(ruby_tls_find(&mem, TP, &shape, &l), RUBY_TLS_FOUND);
	shape.th_ec = 40;
	cr_expect_eq(ruby_tls_find(&mem, TP, &shape, &l), RUBY_TLS_NONE);
}

Test(tls, read_static)
{
	struct rbpf_layout l = { .tls.model = RBPF_TLS_STATIC, .tls.offset = -64 };
	uint64_t ec = 1;

	build();
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -ENOENT);
	cr_expect_eq(ruby_tls_read(&mem, &l, BASE, &ec), -EFAULT);
	cr_expect_eq(ec, 1, "untouched");
	put(TP - 64, EC);
	expect_read(&l);
}

/* 2.7: the global is of the thread that held the GVL last, which need not be the one asked for. */
Test(tls, read_global)
{
	struct rbpf_layout l = {
		.tls.model = RBPF_TLS_GLOBAL,
		.ec_global = BASE + 0x100,
		.ec_thread_ptr = 48,
		.th_thread_id = 72,
		.thread_id_bias = -0x700,
	};
	uint64_t ec = 1;

	build();
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -ENOENT, "no thread yet");
	put(BASE + 0x100, EC);
	put(THREAD + 72, TP - 0x700);
	cr_expect_eq(ruby_tls_read(&mem, &l, TP + 0x1000, &ec), -ENOENT, "another thread's");
	cr_expect_eq(ec, 1, "untouched");
	expect_read(&l);
	put(EC + 48, BASE + IMAGE);
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -EFAULT);
	l.ec_global = 0;
	cr_expect_eq(ruby_tls_read(&mem, &l, TP, &ec), -EFAULT);
}

/* Look for the ECs of the process' threads. Returns how often its code was read. */
static unsigned int find_threads(bool is_early, int expected)
{
	static const struct rbpf_task task = { .tgid = 7, .tid = 7, .thread_pointer = TP };
	struct ruby_vm vm = { .pid = 7, .mem = mem };
	struct ruby_thread_ecs ecs;

	vm.binary.symbol[RUBY_SYM_rb_thread_current] = CODE;
	vm.binary.text_lo = CODE;
	vm.binary.text_hi = CODE + 0x1000;
	cr_assert_eq(ruby_thread_ecs_init(&ecs, &vm, &task, 1), 0);
	ecs.is_early = is_early;
	code_reads = 0;
	cr_expect_eq(ruby_thread_ecs_find(&ecs, &vm, NULL), expected);
	ruby_thread_ecs_deinit(&ecs);
	return code_reads;
}

/* To run code takes long. It is not asked of what will be there in a moment, and never twice. */
Test(tls, when_code_is_asked_where_the_slot_is)
{
	unsigned int once;

	build();
	build_dtv(GLIBC, 1);
	put(DTV + 1 * GLIBC, STATIC_BLOCK);
	once = find_threads(false, -EAGAIN);
	cr_expect_gt(once, 0);
	cr_expect_eq(find_threads(true, -EAGAIN), 0, "no thread has an EC yet");

	put(STATIC_BLOCK + 0x28, EC);
	cr_expect_eq(find_threads(false, 0), 0, "what is in the slot tells it");
	put(EC + usual.ec_thread_ptr, 0);
	cr_expect_eq(find_threads(false, -EAGAIN), once, "and it is tried several times");
	cr_expect_eq(find_threads(true, -EAGAIN), 0);

	build_dynamic();
	build_dtv(GLIBC, 2);
	put(DTV + 1 * GLIBC, DTV + 0x800);
	put(DTV + 0x808, EC);
	cr_expect_eq(find_threads(true, -EAGAIN), once, "two places may be the slot");
}

/* Any memory: numbers, and pointers into the image at any alignment. */
Test(tls, hostile_memory)
{
	struct rbpf_layout l;
	unsigned int seed;

	for (seed = 1; seed <= 20; seed++) {
		srand(seed);
		for (size_t i = 0; i < IMAGE; i += 8) {
			int r = rand();

			put(BASE + i,
			    r % 4 ? BASE + (uint64_t)rand() % IMAGE / (1u << r % 4) * (1u << r % 4)
				  : (uint64_t)rand() % 4096);
		}
		for (size_t i = 0; i < 1000; i++)
			cr_expect_not(is_unknown_ec(BASE + i * 8));
		cr_expect_not(find(&l), "seed %u", seed);
	}
}
