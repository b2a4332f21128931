/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "support/native_host.h"
#include "support/native_naive.h"
#include "support/native_world.h"

/*
 * One function with a frame of so many bytes and its return address at the top, at WORLD_CODE;
 * behind it the same as part of the VM.
 */
static struct walk *one_function(int32_t size)
{
	memset(&native_host, 0, sizeof(native_host));
	memset(&world, 0, sizeof(world));
	native_host.ranges[0] = (struct rbpf_range) { .start = WORLD_CODE,
						      .end = WORLD_CODE_END,
						      .base = WORLD_CODE,
						      .pages = WORLD_CODE_PAGES,
						      .kind = RBPF_CODE_TABLE };
	native_host.words[0] = 3;
	native_host.words[1] = 4;
	native_host.words[2] = 5;
	native_host.words[3] = native_host.words[4] = 2u << 16;
	native_host.rules[2] =
		(struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_SP, .cfa_off = size, .ra_off = -8 };
	return native_host_new();
}

static void run(struct walk *w)
{
	static const struct memory mem = { .read_spans = world_read };
	const char *problem;

	native_host_run(w, &mem, world.tag, world.top);
	cr_assert_leq(w->native.n_frames, RBPF_MAX_NATIVE + 1);
	problem = native_naive_compare(w, world.tag);
	cr_expect_null(problem, "%s", problem);
}

/* A stack of @pages full of frames of @size bytes; behind the outermost one stands a 0. */
static uint32_t fill_stack(struct walk *w, size_t pages, size_t size)
{
	uint32_t n = 0;

	world.n_words = pages * 512;
	for (size_t i = size / 8 - 1; i < world.n_words; i += size / 8)
		world.words[i] = i + size / 8 < world.n_words ? WORLD_CODE + 64 + n++ : 0;
	w->native.regs = (struct rbpf_regs) { .pc = WORLD_CODE + 32, .sp = WORLD_STACK };
	return n + 1;
}

static void expect_frames(const struct walk *w, uint32_t n, int end)
{
	cr_expect_eq(w->native.n_frames, n, "%u frames, not %u", w->native.n_frames, n);
	cr_expect_eq(w->native.end, end, "it ends by %u, not %d", w->native.end, end);
	for (uint32_t i = 1; i < w->native.n_frames && i < n; i++)
		cr_assert_eq(w->native.frames[i], WORLD_CODE + 63 + i, "frame %u", i);
}

Test(native_walk, agrees_with_cfi_step)
{
	struct walk *w = native_host_new();

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct world_dice d = { .seed = seed * 0x9e3779b97f4a7c15ull };
		const char *problem = world_walk(w, &d);

		cr_assert_null(problem, "seed %llu: %s", (unsigned long long)seed, problem);
	}
	free(w);
}

/* ---- the window ---- */

Test(native_walk, known_stack_is_read_in_large_pieces)
{
	struct walk *w = one_function(256);
	uint32_t n = fill_stack(w, 16, 256);

	world.top = WORLD_STACK + 16 * 4096;
	run(w);
	expect_frames(w, n, RBPF_NATIVE_OUTERMOST);
	cr_expect_eq(native_host.reads, 2, "%zu reads", native_host.reads);
	free(w);
}

Test(native_walk, unknown_stack_is_read_by_pages)
{
	struct walk *w = one_function(256);
	uint32_t n = fill_stack(w, 16, 256);

	run(w);
	expect_frames(w, n, RBPF_NATIVE_OUTERMOST);
	cr_expect_eq(native_host.reads, 16, "%zu reads", native_host.reads);
	w->native.regs.sp += 1 << 20; /* where there is none */
	run(w);
	expect_frames(w, 1, RBPF_NATIVE_FAULT);
	free(w);
}

Test(native_walk, what_cannot_be_read_ends_it_there)
{
	struct walk *w = one_function(256);

	fill_stack(w, 16, 256);
	world.top = WORLD_STACK + 16 * 4096;
	world.hidden = 1u << 12;
	run(w);
	expect_frames(w, 12 * 16 + 1, RBPF_NATIVE_FAULT);
	cr_expect_eq(native_host.counters[RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_FAULT], 1);
	/* One that the walk steps over is not missed. */
	native_host.rules[2].cfa_off = 2 * 4096;
	memset(w->native.rules, 0, sizeof(w->native.rules)); /* no rule changes but here */
	world.words[2 * 512 - 1] = world.words[4 * 512 - 1] = WORLD_CODE + 64;
	world.words[6 * 512 - 1] = 0;
	world.hidden = 1u << 2;
	run(w);
	cr_expect_eq(w->native.n_frames, 3);
	cr_expect_eq(w->native.end, RBPF_NATIVE_OUTERMOST);
	free(w);
}

/* ec->machine.stack_start is a hint, and the target's: wherever it says, the walk is the same. */
Test(native_walk, any_top_will_do)
{
	static const uint64_t tops[] = { WORLD_STACK,	  WORLD_STACK + 4096,
					 WORLD_STACK + 8, 1,
					 1ull << 63,	  ~0ull,
					 WORLD_STACK - 1, ~0ull - 4095 };
	struct walk *w = one_function(1024);
	uint32_t n = fill_stack(w, 16, 1024);

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		world.top = tops[i];
		run(w);
		expect_frames(w, n, RBPF_NATIVE_OUTERMOST);
	}
	free(w);
}

Test(native_walk, limit)
{
	struct walk *w = one_function(8);

	fill_stack(w, 16, 8);
	run(w);
	cr_expect_eq(w->native.n_frames, RBPF_MAX_NATIVE);
	cr_expect_eq(w->native.end, RBPF_NATIVE_LIMIT);
	free(w);
}

/* A word of the stack that is no address is no frame: as one it would be a gap, or the kernel's. */
Test(native_walk, return_addresses_that_are_none)
{
	static const uint64_t words[] = {
		1, RBPF_NATIVE_LIMIT, 4095, RBPF_NATIVE_EXACT, RBPF_NATIVE_KERNEL | 0x1000, ~0ull
	};
	struct walk *w = one_function(64);

	fill_stack(w, 1, 64);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		world.words[15] = words[i];
		run(w);
		expect_frames(w, 2, RBPF_NATIVE_STUCK);
	}
	world.words[15] = 4096;
	run(w);
	cr_expect_eq(w->native.n_frames, 3, "one that may be code is a frame, the last one");
	cr_expect_eq(w->native.end, RBPF_NATIVE_NO_RANGE);
	cr_expect_eq(native_host.asked[RBPF_NATIVE_NO_RANGE], 1);
	free(w);
}

/* ---- tags ---- */

/*
 * Frames of 64 bytes, the third of which returns to where there is no code; 10 tags above, each for
 * the frame right below it.
 */
static struct walk *with_tags(void)
{
	struct walk *w = one_function(64);

	fill_stack(w, 16, 64);
	w->layout = (struct rbpf_layout) { .tag_form = RUBY_TAG_BUILTIN,
					   .text_lo = WORLD_VM,
					   .text_hi = WORLD_VM_END };
	world.words[23] = 0x123456;
	world.tag = WORLD_STACK + 2048;
	for (size_t i = 0; i < 10; i++) {
		uint64_t *buf = &world.words[256 + i * 512 + 2];
		uint64_t addr = WORLD_STACK + 2048 + i * 4096;

		buf[RUBY_TAG_FP] = addr;
		buf[RUBY_TAG_PC] = WORLD_VM + 16 * i;
		buf[RUBY_TAG_SP] = addr - 64;
		buf[RUBY_TAG_PREV] = i < 9 ? addr + 4096 : 0;
	}
	return w;
}

/* The frame behind the first gap; 0: there is no gap. */
static uint64_t behind_gap(const struct walk *w)
{
	for (uint32_t i = 1; i + 1 < w->native.n_frames; i++)
		if (w->native.frames[i] < RBPF_NATIVE_END_COUNT)
			return w->native.frames[i + 1];
	return 0;
}

Test(native_walk, goes_on_at_the_next_tag)
{
	struct walk *w = with_tags();

	run(w);
	cr_expect_eq(w->native.frames[4], RBPF_NATIVE_NO_RANGE);
	cr_expect_eq(behind_gap(w), WORLD_VM | RBPF_NATIVE_EXACT);
	cr_expect_eq(w->native.end, RBPF_NATIVE_OUTERMOST);
	w->layout.tag_form = RUBY_TAG_UNKNOWN;
	run(w);
	cr_expect_eq(w->native.n_frames, 4);
	cr_expect_eq(w->native.end, RBPF_NATIVE_NO_RANGE);
	free(w);
}

/* The same registers, as the setjmp() of musl and of glibc leave them. */
Test(native_walk, goes_on_at_a_tag_of_the_c_library)
{
	struct walk *w = with_tags();

	run(w);
	const uint32_t n_frames = w->native.n_frames;

	for (__u16 form = RUBY_TAG_LIBC; form <= RUBY_TAG_MANGLED; form++) {
		w->layout.tag_form = form;
		w->layout.tag_guard = 0x8123456789abcdef;
		for (size_t i = 0; i < 10; i++) {
			const size_t at = 256 + i * 512;
			const uint64_t addr = WORLD_STACK + at * 8;

			world_put_tag(&w->layout, at, addr, WORLD_VM + 16 * i, addr - 64,
				      i < 9 ? addr + 4096 : 0);
		}
		run(w);
		cr_expect_eq(w->native.frames[4], RBPF_NATIVE_NO_RANGE);
		cr_expect_eq(behind_gap(w), WORLD_VM | RBPF_NATIVE_EXACT);
		cr_expect_eq(w->native.end, RBPF_NATIVE_OUTERMOST);
		cr_expect_eq(w->native.n_frames, n_frames);
	}
	w->layout.tag_guard = ~w->layout.tag_guard;
	run(w);
	cr_expect_eq(w->native.n_frames, 4, "of another process");
	free(w);
}

Test(native_walk, passes_tags_by_that_do_not_fit)
{
	struct walk *w = with_tags();
	uint64_t *first = &world.words[258], *second = &world.words[258 + 512];

	first[RUBY_TAG_SP] = WORLD_STACK; /* further in than what was reached */
	run(w);
	cr_expect_eq(behind_gap(w), (WORLD_VM + 16) | RBPF_NATIVE_EXACT);
	first[RUBY_TAG_SP] = world.tag + 8; /* further out than the tag itself */
	second[RUBY_TAG_PC] = WORLD_VM_END; /* not in the VM */
	run(w);
	cr_expect_eq(behind_gap(w), (WORLD_VM + 32) | RBPF_NATIVE_EXACT);
	free(w);
}

Test(native_walk, chains_of_tags_that_are_broken)
{
	static const uint64_t prevs[] = {
		0, WORLD_STACK + 2048, WORLD_STACK, 8, ~0ull, ~0ull - 255, WORLD_STACK + 4096 * 20
	};
	struct walk *w = with_tags();

	world.words[258 + RUBY_TAG_SP] = 0;
	for (size_t i = 0; i < sizeof(prevs) / sizeof(prevs[0]); i++) {
		world.words[258 + RUBY_TAG_PREV] = prevs[i];
		run(w);
		cr_expect_eq(w->native.n_frames, 4, "previous tag %zu", i);
		cr_expect_eq(w->native.end, RBPF_NATIVE_NO_RANGE);
	}
	world.tag = WORLD_STACK - 4096;
	run(w);
	cr_expect_eq(w->native.n_frames, 4);
	free(w);
}

/* A chain leads outwards: what comes further in later would be somebody else's. */
Test(native_walk, chain_of_tags_that_turns_back)
{
	struct walk *w = with_tags();
	uint64_t *lower = &world.words[130];

	memcpy(lower, &world.words[258], RUBY_TAG_WORDS * 8);
	lower[RUBY_TAG_SP] = WORLD_STACK + 1024;
	lower[RUBY_TAG_PREV] = 0;
	world.words[258 + RUBY_TAG_SP] = 0;
	world.words[258 + RUBY_TAG_PREV] = WORLD_STACK + 1024;
	run(w);
	cr_expect_eq(w->native.n_frames, 4);
	world.tag = WORLD_STACK + 1024;
	run(w);
	cr_expect_neq(behind_gap(w), 0, "it would do");
	free(w);
}

/* Each frame that a tag leads to is lost again: as many gaps as tags, and no more. */
Test(native_walk, a_gap_behind_each_tag)
{
	struct walk *w = with_tags();

	native_host.rules[2].cfa = RBPF_CFI_CFA_NONE;
	run(w);
	cr_expect_eq(w->native.n_frames, 1 + 2 * 10);
	cr_expect_eq(w->native.end, RBPF_NATIVE_NO_RULE);
	cr_expect_eq(native_host.counters[RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_NO_RULE], 11);
	free(w);
}

/*
 * Where the code further out has no entries, that is no gap if it only is what a thread begins
 * with.
 */
Test(native_walk, what_a_thread_begins_with)
{
	struct walk *w = with_tags();
	const uint64_t sp = w->native.regs.sp;
	const struct {
		uint64_t start, main_top;
		bool outermost;
	} cases[] = {
		{ 0, 0, false },	 { sp, 0, true },	  { sp - 1023, 0, true },
		{ sp - 1024, 0, false }, { sp + 8, 0, false },	  { 0, sp, true },
		{ 0, sp + 1023, true },	 { 0, sp + 1024, false }, { 0, sp - 8, false },
	};
	const struct rbpf_cfi_rule rule = native_host.rules[2];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool outermost = cases[i].outermost;

		native_host.start = cases[i].start;
		native_host.main_top = cases[i].main_top;
		world.tag = 0;
		native_host.rules[2].cfa = RBPF_CFI_CFA_NONE;
		w->native.code.id++;
		run(w);
		cr_expect_eq(w->native.n_frames, 1);
		cr_expect_eq(w->native.end, outermost ? RBPF_NATIVE_OUTERMOST : RBPF_NATIVE_NO_RULE,
			     "%zu", i);
		cr_expect_eq(native_host.counters[RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_NO_RULE],
			     !outermost, "%zu", i);
		native_host.rules[2] = rule;
		native_host.ranges[0].kind = RBPF_CODE_NO_TABLE;
		w->native.code.id++;
		run(w);
		cr_expect_eq(w->native.end,
			     outermost ? RBPF_NATIVE_OUTERMOST : RBPF_NATIVE_NO_TABLE, "%zu", i);
		native_host.ranges[0].kind = RBPF_CODE_UNREAD;
		run(w);
		cr_expect_eq(w->native.end, RBPF_NATIVE_UNREAD, "%zu", i);
		native_host.ranges[0].kind = RBPF_CODE_TABLE;
	}
	free(w);
}

/* Tags side by side in one page: what a walk passes by has a limit. */
Test(native_walk, too_many_tags)
{
	struct walk *w = with_tags();

	world.tag = WORLD_STACK + 2048;
	for (size_t i = 0; i < NATIVE_MAX_TAGS + 1; i++) {
		uint64_t *buf = &world.words[258 + i * 8];

		buf[RUBY_TAG_SP] = i < NATIVE_MAX_TAGS ? 0 : WORLD_STACK + 2048;
		buf[RUBY_TAG_PC] = WORLD_VM;
		buf[RUBY_TAG_PREV] = WORLD_STACK + 2048 + (i + 1) * 64;
	}
	run(w);
	cr_expect_eq(w->native.n_frames, 4);
	world.tag += 64;
	run(w);
	cr_expect_neq(behind_gap(w), 0);
	free(w);
}

/* The limit is of a walk, not of a gap. */
Test(native_walk, too_many_tags_in_several_gaps)
{
	const size_t unfit = NATIVE_MAX_TAGS / 2 + 10;
	struct walk *w = with_tags();

	native_host.rules[2].cfa = RBPF_CFI_CFA_NONE;
	memset(&world.words[258], 0, sizeof(world.words) - 258 * 8);
	for (size_t i = 0; i < 2 * (unfit + 1); i++) {
		uint64_t *buf = &world.words[258 + i * 8];
		uint64_t tag = WORLD_STACK + 2048 + i * 64;

		cr_assert_lt(258 + (i + 1) * 8, WORLD_PAGES * 512);
		buf[RUBY_TAG_SP] = i % (unfit + 1) == unfit ? tag : 0;
		buf[RUBY_TAG_PC] = WORLD_VM;
		buf[RUBY_TAG_PREV] = tag + 64;
	}
	run(w);
	cr_expect_eq(w->native.n_frames, 1 + 2, "one gap, not %u frames", w->native.n_frames);
	free(w);
}

/*
 * What is copied of the stack has a limit, also where the frame pointer leads far away from each
 * frame.
 */
Test(native_walk, too_many_pages)
{
	struct walk *w = one_function(64);

	fill_stack(w, 16, 64);
	world.top = WORLD_STACK + 16 * 4096;
	native_host.rules[2].fp = RBPF_CFI_FP_FP;
	w->native.regs.fp = WORLD_STACK + 9 * 4096;
	world.words[9 * 512] = WORLD_STACK + 9 * 4096;
	run(w);
	cr_expect_eq(w->native.end, RBPF_NATIVE_FAULT);
	cr_expect_lt(w->native.n_frames, 100, "%u frames", w->native.n_frames);
	cr_expect_leq(native_host.reads, 2 * (NATIVE_MAX_PAGES / 8), "%zu reads",
		      native_host.reads);
	free(w);
}

/* What was found for an address of one process says nothing of another's. */
Test(native_walk, rules_are_remembered_by_process)
{
	struct walk *w = one_function(64);
	uint32_t n = fill_stack(w, 1, 64);

	run(w);
	expect_frames(w, n, RBPF_NATIVE_OUTERMOST);
	/*
	 * The second process has another file at the same addresses: with frames of twice the size.
	 */
	native_host.ranges[1] = native_host.ranges[0];
	native_host.ranges[1].table = 8;
	memcpy(&native_host.words[8], native_host.words, 3 * sizeof(native_host.words[0]));
	native_host.words[8 + 3] = native_host.words[8 + 4] = 3u << 16;
	native_host.rules[3] = native_host.rules[2];
	native_host.rules[3].cfa_off = 128;
	native_init(w);
	w->native.hash = w->native.seed;
	w->native.code = (struct rbpf_code) { .first = 1, .n = 1, .id = w->native.code.id + 1 };
	walk_native(w, 0);
	cr_expect_eq(w->native.frames[1], WORLD_CODE + 64 + 1, "the second word of the stack");
	free(w);
}

/* ---- code of JITs ---- */

static struct walk *with_yjit(void)
{
	struct walk *w = one_function(64);

	fill_stack(w, 1, 64);
	native_host.ranges[1] = (struct rbpf_range) { .start = WORLD_JIT,
						      .end = WORLD_JIT + WORLD_JIT_SIZE,
						      .kind = RBPF_CODE_YJIT };
	w->layout = (struct rbpf_layout) { .text_lo = WORLD_VM, .text_hi = WORLD_VM_END };
	memset(world.words, 0, 64 * 8);
	return w;
}

/* Three registers, then the return address into the VM. */
Test(native_walk, yjit)
{
	struct walk *w = with_yjit();

	world.words[7] = WORLD_JIT + 32;
	world.words[8 + 3] = WORLD_VM + 5;
	run(w);
	cr_expect_eq(w->native.frames[1], WORLD_JIT + 32);
	cr_expect_eq(w->native.frames[2], WORLD_VM + 5);
	/* A frame that called something has pushed nothing more. */
	world.words[8 + 3] = 0;
	world.words[8 + 4] = WORLD_VM + 5;
	run(w);
	cr_expect_eq(w->native.n_frames, 2);
	cr_expect_eq(w->native.end, RBPF_NATIVE_JIT);
	free(w);
}

Test(native_walk, yjit_innermost_with_pushes)
{
	struct walk *w = with_yjit();

	for (size_t pushed = 0; pushed <= YJIT_PUSHED_MAX + 1; pushed++) {
		memset(world.words, 0, 64 * 8);
		world.words[3 + pushed] = WORLD_VM + 5;
		w->native.regs.pc = WORLD_JIT + 7;
		run(w);
		cr_expect_eq(w->native.frames[0], (WORLD_JIT + 7) | RBPF_NATIVE_EXACT);
		if (pushed <= YJIT_PUSHED_MAX)
			cr_expect_eq(w->native.frames[1], WORLD_VM + 5, "%zu pushed", pushed);
		else
			cr_expect_eq(w->native.end, RBPF_NATIVE_JIT);
	}
	free(w);
}

/* ZJIT's frames: the record {caller's fp, return address} is at fp, wherever sp is. */
Test(native_walk, frame_records)
{
	struct walk *w = with_yjit();

	native_host.ranges[1].kind = RBPF_CODE_RECORD;
	native_host.rules[RBPF_CFI_RULE_RECORD] = (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_FP,
									   .cfa_off = 16,
									   .ra_off = -8,
									   .fp = RBPF_CFI_FP_CFA,
									   .fp_off = -16 };
	world.words[20] = WORLD_STACK + 40 * 8;
	world.words[21] = WORLD_JIT + 100;
	world.words[41] = WORLD_VM + 9;
	w->native.regs.pc = WORLD_JIT + 7;
	w->native.regs.fp = WORLD_STACK + 20 * 8;
	run(w);
	cr_assert_geq(w->native.n_frames, 3);
	cr_expect_eq(w->native.frames[1], WORLD_JIT + 100);
	cr_expect_eq(w->native.frames[2], WORLD_VM + 9);
	free(w);
}
