/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/walk.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"
#include "support/walk_naive.h"

/* Frames of the walker are compared by address only, so code need not exist. */
#define CODE(i)		    (0x100000ull + 0x11a8ull * (i))
#define PC(i)		    (0x90000000ull + 8ull * (i))

/* The pc of compiled code, and that of the innermost frame. */
#define JIT_PC(i)	    (PC(i) | RBPF_PC_JIT)
#define STALE_PC(i)	    (PC(i) | RBPF_PC_STALE | RBPF_PC_JIT)

#define FOR_EACH_VERSION(v) for (size_t v = 0; v < IMAGE_VERSIONS; v++)

static bool is_fiber_mark(const struct rbpf_frame *f)
{
	return !f->iseq && !f->me && !f->pc;
}

static void assert_sane_walk(const struct walk *w)
{
	cr_assert_leq(w->n_frames, w->max_frames, "%u frames, %u allowed", w->n_frames,
		      w->max_frames);
	for (uint32_t i = 0; i < w->n_frames; i++) {
		const struct rbpf_frame *f = &w->frames[i];

		cr_assert(f->iseq || !(f->pc & ~RBPF_PC_FINISH) || !f->me, "frame %u is of no kind",
			  i);
		cr_assert(f->iseq || f->me || !f->check, "frame %u is a strange mark", i);
	}
}

static void expect_frame(const struct walk *w, uint32_t i, uint64_t iseq, uint64_t pc, uint64_t me)
{
	const struct rbpf_frame *f = &w->frames[i];

	cr_assert_lt(i, w->n_frames, "there is no frame %u", i);
	cr_expect(f->iseq == iseq && f->pc == pc && f->me == me,
		  "frame %u is {%llx %llx %llx}, not {%llx %llx %llx}", i,
		  (unsigned long long)f->iseq, (unsigned long long)f->pc, (unsigned long long)f->me,
		  (unsigned long long)iseq, (unsigned long long)pc, (unsigned long long)me);
}

/* One image, one thread, one scratch. */
struct fixture {
	struct ruby_image *img;
	struct image_thread t;
	struct walk *w;
};

static struct fixture setup(const char *version, size_t words, uint32_t max_frames)
{
	struct fixture f = { .img = image_new(version) };

	f.t = image_thread(f.img, words);
	f.w = walk_host_new(&f.img->vm.walk, max_frames);
	return f;
}

static void teardown(struct fixture *f)
{
	image_free(f->img);
	free(f->w);
}

static int run(struct fixture *f)
{
	int status = walk_host_run(f->w, &f->img->vm.mem, f->t.ec);

	assert_sane_walk(f->w);
	return status;
}

/* ---- depth, chunks, the cut ---- */

/*
 * Frame number @i from the root has iseq CODE(i), pc PC(i) and its own method entry every 7th time.
 */
static void push_methods(struct fixture *f, size_t n, uint32_t locals, const uint64_t *mes)
{
	for (size_t i = 0; i < n; i++)
		image_push(&f->t, &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
							  .iseq = CODE(i),
							  .pc = PC(i),
							  .me_cref = mes[i % 7],
							  .locals = locals });
}

static void check_depth(const char *version, size_t n, uint32_t locals, uint32_t max_frames)
{
	struct fixture f = setup(version, n * (11 + locals) + 100, max_frames);
	uint32_t tail = max_frames / 4 - 1, head = max_frames - tail - 1, i;
	uint64_t mes[7];

	for (i = 0; i < 7; i++)
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
	push_methods(&f, n, locals, mes);
	cr_assert_eq(run(&f), RBPF_OK, "%s, %zu frames", version, n);
	if (n <= max_frames) {
		cr_assert_eq(f.w->n_frames, n, "%s: %u of %zu frames (%u allowed)", version,
			     f.w->n_frames, n, max_frames);
		cr_assert_eq(f.w->n_cut, 0, "%s, %zu frames: nothing is left out", version, n);
		head = (uint32_t)n;
	} else {
		cr_assert_eq(f.w->n_frames, max_frames, "%s: %u of %zu frames", version,
			     f.w->n_frames, n);
		cr_assert_eq(f.w->n_cut, n - head - tail, "%s: %u of %zu frames left out", version,
			     f.w->n_cut, n);
		expect_frame(f.w, head, 0, f.w->n_cut, 0);
		for (i = 0; i < tail; i++)
			expect_frame(f.w, max_frames - 1 - i, CODE(i), PC(i), mes[i % 7]);
	}
	for (i = 0; i < head; i++)
		expect_frame(f.w, i, CODE(n - 1 - i), PC(n - 1 - i), mes[(n - 1 - i) % 7]);
	cr_expect_eq(walk_host.counters[RBPF_CNT_ENV_FAULT], 0);
	teardown(&f);
}

Test(walk, depths)
{
	static const size_t depths[] = { 0,
					 1,
					 2,
					 CF_CHUNK - 1,
					 CF_CHUNK,
					 CF_CHUNK + 1,
					 2 * CF_CHUNK - 1,
					 2 * CF_CHUNK,
					 2 * CF_CHUNK + 1,
					 5 * CF_CHUNK,
					 1000 };

	FOR_EACH_VERSION(v)
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
		check_depth(image_versions[v].minor, depths[i], 0, RBPF_MAX_FRAMES);
}

Test(walk, values_beyond_the_window)
{
	FOR_EACH_VERSION(v)
	{
		check_depth(image_versions[v].minor, 200, 50,
			    RBPF_MAX_FRAMES); /* 85 KB of values */
		check_depth(image_versions[v].minor, 20, 5000,
			    RBPF_MAX_FRAMES); /* each frame in its own window */
	}
}

Test(walk, around_the_cut)
{
	FOR_EACH_VERSION(v)
	{
		check_depth(image_versions[v].minor, RBPF_MAX_FRAMES - 1, 0, RBPF_MAX_FRAMES);
		check_depth(image_versions[v].minor, RBPF_MAX_FRAMES + 1, 0, RBPF_MAX_FRAMES);
		check_depth(image_versions[v].minor, RBPF_MAX_FRAMES + 2, 0, RBPF_MAX_FRAMES);
		check_depth(image_versions[v].minor, 10000, 0, RBPF_MAX_FRAMES);
	}
}

Test(walk, small_limits)
{
	static const uint32_t limits[] = { RBPF_MIN_FRAMES, 17, 63, 64, 65, 100, 128, 512 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint32_t max = limits[i];

		for (uint32_t n = max - 4; n <= max + 4; n++)
			if (n != max)
				check_depth("3.3", n, 0, max);
		check_depth("3.3", 2 * max, 0, max);
		check_depth("3.3", 10000, 0, max);
	}
}

/* A marker in the place of one single frame would be no gain. */
Test(walk, exactly_the_limit)
{
	check_depth("3.3", RBPF_MIN_FRAMES, 0, RBPF_MIN_FRAMES);
	check_depth("3.3", 100, 0, 100);
	FOR_EACH_VERSION(v)
	check_depth(image_versions[v].minor, RBPF_MAX_FRAMES, 0, RBPF_MAX_FRAMES);
}

Test(walk, frames_that_are_not_shown_do_not_fill_the_limit)
{
	struct fixture f = setup("3.3", 65536, RBPF_MIN_FRAMES);
	uint32_t i;

	for (i = 0; i < 200; i++) {
		if (i % 20 == 0)
			image_push_method(&f.t, CODE(i), PC(i), 0);
		image_push_method(&f.t, CODE(i), 0, 0); /* not begun: no pc */
	}
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 10);
	cr_expect_eq(f.w->n_cut, 0);
	teardown(&f);
}

Test(walk, a_usual_stack_takes_five_reads)
{
	struct fixture f = setup("3.3", 65536, RBPF_MAX_FRAMES);
	uint64_t mes[7];

	for (int i = 0; i < 7; i++)
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
	push_methods(&f, 60, 3, mes);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.walk_reads, 5 + 7,
		     "%zu reads: EC, thread, frames, values, resumer; entries once",
		     walk_host.walk_reads);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.walk_reads, 5, "%zu reads: EC, thread, frames, values, resumer",
		     walk_host.walk_reads);
	cr_expect_eq(f.w->n_frames, 60);
	teardown(&f);
}

/* ---- frame kinds ---- */

Test(walk, last_slot_is_no_frame)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);

		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 0);

		/*
		 * As on the main thread: a valid iseq and pc, CFRAME cleared; in any case by
		 * position.
		 */
		image_put64(f.img, f.t.cfp, PC(1));
		image_put64(f.img, f.t.cfp + 16, CODE(1));
		image_put64(f.img, f.t.ep, 0x7999082f);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 0, "it is Init_VM's own");
		image_put64(f.img, f.t.ep, IMAGE_METHOD | IMAGE_LOCAL);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 0, "whatever its flags say");
		teardown(&f);
	}
}

Test(walk, kinds)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t foo = image_ment(f.img, f.img->object, "foo", IMAGE_ISEQ);
		uint64_t bar = image_ment(f.img, f.img->object, "bar", IMAGE_BMETHOD);
		uint64_t each = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
		uint64_t cref = image_imemo(f.img, IMAGE_CREF, 0);
		uint64_t ep, block, top;

		top = image_push(&f.t, &(struct image_frame) { .flags = IMAGE_EVAL | IMAGE_LOCAL,
							       .iseq = CODE(0),
							       .pc = PC(0),
							       .me_cref = cref });
		image_push(&f.t,
			   &(struct image_frame) { .flags = IMAGE_TOP | IMAGE_LOCAL | IMAGE_FINISH,
						   .iseq = CODE(1),
						   .pc = PC(1),
						   .me_cref = cref });
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_CLASS_FRAME | IMAGE_LOCAL,
							 .iseq = CODE(2),
							 .pc = PC(2),
							 .me_cref = cref });
		ep = image_push_method(&f.t, CODE(3), PC(3), foo);
		image_push_cfunc(&f.t, each);
		/* A block written in C, as each_with_object has one: hidden. */
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_IFUNC | IMAGE_CFRAME,
							 .iseq = CODE(4),
							 .pc = PC(4),
							 .specval = ep | 1 });
		block = image_push_block(&f.t, CODE(5), PC(5), ep);
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_RESCUE,
							 .iseq = CODE(6),
							 .pc = PC(6),
							 .specval = block | 1 });
		/* While a C extension is loaded: a dummy in the middle, with and without a pc. */
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_DUMMY | IMAGE_LOCAL |
								  IMAGE_FINISH,
							 .iseq = CODE(7) });
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_DUMMY | IMAGE_LOCAL,
							 .iseq = CODE(7),
							 .pc = PC(7) });
		ep = image_push(&f.t, &(struct image_frame) { .flags = IMAGE_BLOCK | IMAGE_LAMBDA |
								       IMAGE_BMETHOD_FRAME,
							      .iseq = CODE(8),
							      .pc = PC(8),
							      .me_cref = bar,
							      .specval = ep | 1 });
		image_push_block(&f.t, CODE(9), PC(9), ep);
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_EVAL,
							 .iseq = CODE(10),
							 .pc = PC(10),
							 .specval = ep | 1 });
		image_push_block(&f.t, CODE(11), PC(11), top);
		image_push_method(&f.t, CODE(12), 0, foo); /* not begun */
		image_push_method(&f.t, 0, PC(13), foo);   /* no code: not a frame of Ruby's */
		image_push_cfunc(&f.t, 0);		   /* half-written */

		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 11, "%u frames", f.w->n_frames);
		expect_frame(f.w, 0, CODE(11), PC(11), 0);
		expect_frame(f.w, 1, CODE(10), PC(10), bar);
		expect_frame(f.w, 2, CODE(9), PC(9), bar);
		expect_frame(f.w, 3, CODE(8), PC(8), bar);
		expect_frame(f.w, 4, CODE(6), PC(6), foo);
		expect_frame(f.w, 5, CODE(5), PC(5), foo);
		expect_frame(f.w, 6, 0, 0, each);
		expect_frame(f.w, 7, CODE(3), PC(3), foo);
		expect_frame(f.w, 8, CODE(2), PC(2), 0);
		expect_frame(f.w, 9, CODE(1), PC(1) | RBPF_PC_FINISH, 0);
		expect_frame(f.w, 10, CODE(0), PC(0), 0);
		teardown(&f);
	}
}

/* The CFRAME bit alone tells C from Ruby: ZJIT leaves old words in pc, and YJIT in iseq. */
Test(walk, c_function_with_a_stale_pc)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t me = image_ment(f.img, f.img->object, "sleep", IMAGE_CFUNC);

	image_push(&f.t,
		   &(struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME | IMAGE_LOCAL,
					   .iseq = CODE(1),
					   .pc = PC(1),
					   .me_cref = me });
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 1);
	expect_frame(f.w, 0, 0, 0, me);
	teardown(&f);
}

Test(walk, method_entry_in_an_svar)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t me = image_ment(f.img, f.img->object, "gsub", IMAGE_ISEQ);
	uint64_t svar = image_imemo(f.img, IMAGE_SVAR, me);
	uint64_t empty = image_imemo(f.img, IMAGE_SVAR, 0);
	uint64_t cref = image_imemo(f.img, IMAGE_CREF, me);
	uint64_t ep = image_push_method(&f.t, CODE(0), PC(0), svar);

	image_push_block(&f.t, CODE(1), PC(1), ep);
	image_push_method(&f.t, CODE(2), PC(2), empty);
	image_push_method(&f.t, CODE(3), PC(3), cref);
	image_push_method(&f.t, CODE(4), PC(4), CODE(4)); /* unreadable */
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 5);
		expect_frame(f.w, 0, CODE(4), PC(4), 0);
		expect_frame(f.w, 1, CODE(3), PC(3), 0);
		expect_frame(f.w, 2, CODE(2), PC(2), 0);
		expect_frame(f.w, 3, CODE(1), PC(1), me);
		expect_frame(f.w, 4, CODE(0), PC(0), me);
	}
	teardown(&f);
}

Test(walk, environments_in_the_heap)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t foo = image_ment(f.img, f.img->object, "foo", IMAGE_ISEQ);
	uint64_t bar = image_ment(f.img, f.img->object, "bar", IMAGE_ISEQ);
	uint64_t baz = image_ment(f.img, f.img->object, "baz", IMAGE_BMETHOD);
	uint64_t env = image_env_heap(f.img, foo, 0, IMAGE_METHOD | IMAGE_LOCAL), ep;

	/* The block of a thread: its method returned long ago, or runs on another stack. */
	image_push_block(&f.t, CODE(0), PC(0), env);
	/* A method whose own environment a Binding took; its block's as well. */
	image_push(&f.t, &(struct image_frame) {
				 .ep = image_env_heap(f.img, bar, 0, IMAGE_METHOD | IMAGE_LOCAL),
				 .iseq = CODE(1),
				 .pc = PC(1) });
	ep = f.t.ep;
	image_push(&f.t,
		   &(struct image_frame) { .ep = image_env_heap(f.img, 0, ep | 1, IMAGE_BLOCK),
					   .iseq = CODE(2),
					   .pc = PC(2) });
	/* From the stack to the heap and on, to a define_method. */
	env = image_env_heap(f.img, baz, env | 1, IMAGE_BLOCK | IMAGE_BMETHOD_FRAME);
	env = image_env_heap(f.img, 0, env | 3, IMAGE_BLOCK); /* both bits are a tag */
	ep = image_push_block(&f.t, CODE(3), PC(3), env);
	image_push_block(&f.t, CODE(4), PC(4), ep);

	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 5);
	expect_frame(f.w, 0, CODE(4), PC(4), baz);
	expect_frame(f.w, 1, CODE(3), PC(3), baz);
	expect_frame(f.w, 2, CODE(2), PC(2), bar);
	expect_frame(f.w, 3, CODE(1), PC(1), bar);
	expect_frame(f.w, 4, CODE(0), PC(0), foo);
	cr_expect_eq(walk_host.counters[RBPF_CNT_ENV_FAULT], 0);
	teardown(&f);
}

/* @blocks blocks, each in the one before, in a method. */
static uint64_t push_nest(struct fixture *f, uint64_t me, uint32_t blocks, bool heap)
{
	uint64_t ep;

	if (heap) {
		ep = image_env_heap(f->img, me, 0, IMAGE_METHOD | IMAGE_LOCAL);
		for (uint32_t i = 1; i < blocks; i++)
			ep = image_env_heap(f->img, 0, ep | 1, IMAGE_BLOCK);
		return image_push_block(&f->t, CODE(blocks), PC(blocks), ep);
	}
	ep = image_push_method(&f->t, CODE(0), PC(0), me);
	for (uint32_t i = 1; i <= blocks; i++)
		ep = image_push_block(&f->t, CODE(i), PC(i), ep);
	return ep;
}

Test(walk, nested_blocks_up_to_the_limit)
{
	for (int heap = 0; heap < 2; heap++) {
		for (uint32_t n = 1; n <= ENV_MAX_DEPTH + 3; n++) {
			struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
			uint64_t me = image_ment(f.img, f.img->object, "foo", IMAGE_ISEQ);
			bool found = n <= ENV_MAX_DEPTH;

			push_nest(&f, me, n, heap);
			cr_assert_eq(run(&f), RBPF_OK);
			cr_expect_eq(f.w->n_frames, heap ? 1 : n + 1);
			expect_frame(f.w, 0, CODE(n), PC(n), found ? me : 0);
			if (heap)
				cr_expect_eq(
					walk_host.counters[RBPF_CNT_ENV_DEPTH], !found,
					"%u blocks: counted %llu times", n,
					(unsigned long long)walk_host.counters[RBPF_CNT_ENV_DEPTH]);
			else
				expect_frame(f.w, n, CODE(0), PC(0), me);
			teardown(&f);
		}
	}
}

Test(walk, an_environment_that_encloses_itself)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t env = image_env_heap(f.img, 0, 0, IMAGE_BLOCK), ep;

	image_put64(f.img, env - 8, env | 1);
	image_push_block(&f.t, CODE(0), PC(0), env);
	ep = image_push_block(&f.t, CODE(1), PC(1), 0);
	image_put64(f.img, ep - 8, ep | 1);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 2);
	expect_frame(f.w, 0, CODE(1), PC(1), 0);
	expect_frame(f.w, 1, CODE(0), PC(0), 0);
	cr_expect_eq(walk_host.counters[RBPF_CNT_ENV_DEPTH], 2);
	teardown(&f);
}

/* ---- what cannot be read ---- */

Test(walk, unreadable_ec_thread_and_stack)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 65536, RBPF_MAX_FRAMES);
		uint64_t me[7] = { 0 }, middle;

		push_methods(&f, 200, 0, me);
		image_hide(f.img, f.t.ec, 1, true);
		cr_expect_eq(run(&f), RBPF_FAULT_EC);
		image_hide(f.img, f.t.ec, 1, false);

		image_put64(f.img, f.t.ec + f.img->vm.walk.ec_thread_ptr, 8);
		cr_expect_eq(run(&f), RBPF_FAULT_EC, "its thread");
		image_put64(f.img, f.t.ec + f.img->vm.walk.ec_thread_ptr, f.t.th);

		image_hide(f.img, f.t.cfp, 8, true);
		cr_expect_eq(run(&f), RBPF_FAULT_STACK, "the first frames");
		image_hide(f.img, f.t.cfp, 8, false);

		middle = f.t.cfp + 150ull * f.img->vm.walk.cf_size;
		image_hide(f.img, middle, 8, true);
		cr_expect_eq(run(&f), RBPF_FAULT_STACK, "later frames");
		image_hide(f.img, middle, 8, false);
		cr_expect_eq(run(&f), RBPF_OK, "all as before");
		cr_expect_eq(f.w->n_frames, 200);
		teardown(&f);
	}
}

/* An unreadable page among the values costs the frames whose environment is in it, no others. */
Test(walk, unreadable_values)
{
	struct fixture f = setup("3.3", 65536, RBPF_MAX_FRAMES);
	uint64_t mes[40], eps[40];
	uint32_t lost = 0;

	for (uint32_t i = 0; i < 40; i++) {
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
		eps[i] = image_push(&f.t,
				    &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
							    .iseq = CODE(i),
							    .pc = PC(i),
							    .me_cref = mes[i],
							    .locals = 61 }); /* 512 bytes each */
	}
	image_hide(f.img, f.t.lo + 2 * IMAGE_PAGE, 1, true);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 40);
	for (uint32_t i = 0; i < 40; i++) {
		bool gone = (eps[i] - f.t.lo) / IMAGE_PAGE == 2;

		lost += gone;
		expect_frame(f.w, 39 - i, CODE(i), PC(i), gone ? 0 : mes[i]);
	}
	cr_expect_eq(lost, 8);
	cr_expect_eq(walk_host.counters[RBPF_CNT_ENV_FAULT], lost);
	teardown(&f);
}

Test(walk, unreadable_heap_environments)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);

	image_push_block(&f.t, CODE(0), PC(0), 0x6000);
	image_push(&f.t, &(struct image_frame) { .ep = 0x5000, .iseq = CODE(1), .pc = PC(1) });
	image_push(&f.t, &(struct image_frame) { .ep = ~7ull, .iseq = CODE(2), .pc = PC(2) });
	image_push_block(&f.t, CODE(3), PC(3), 0); /* encloses nothing */
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_frame(f.w, i, CODE(3 - i), PC(3 - i), 0);
	cr_expect_eq(walk_host.counters[RBPF_CNT_ENV_FAULT], 3);
	teardown(&f);
}

/* ---- ECs that are not to be walked ---- */

Test(walk, stale_ec)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t th_ec = f.t.th + f.img->vm.walk.th_ec, cfp;

	image_push_method(&f.t, CODE(0), PC(0), 0);
	cr_assert_eq(run(&f), RBPF_OK);
	image_put64(f.img, th_ec, f.t.ec + 64);
	cr_expect_eq(run(&f), RBPF_EC_STALE, "the thread runs another one: a fiber");
	cr_expect_eq(f.w->n_frames, 0);
	image_put64(f.img, th_ec, 0);
	cr_expect_eq(run(&f), RBPF_EC_STALE, "the thread has none");
	image_put64(f.img, th_ec, f.t.ec);

	cfp = image_get64(f.img, f.t.ec + 16);
	image_put64(f.img, f.t.ec + 16, 0);
	cr_expect_eq(run(&f), RBPF_EC_STALE, "rb_ec_clear_vm_stack: cfp");
	image_put64(f.img, f.t.ec + 16, cfp);
	image_put64(f.img, f.t.ec, 0);
	cr_expect_eq(run(&f), RBPF_EC_STALE, "rb_ec_clear_vm_stack: vm_stack");
	cr_expect_eq(f.w->n_frames, 0, "nothing is left of the walk before");
	teardown(&f);
}

Test(walk, cfp_out_of_range)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint32_t size = f.img->vm.walk.cf_size;
		uint64_t cfp;

		image_push_method(&f.t, CODE(0), PC(0), 0);
		cfp = f.t.cfp;
		const uint64_t bad[] = {
			cfp + 8,    cfp - 8, cfp + 1, f.t.hi, f.t.hi + size,	  f.t.lo - 8,
			f.t.hi - 8, 1,	     ~0ull,   ~7ull,  cfp + (1ull << 63), f.t.hi - size + 1
		};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			image_put64(f.img, f.t.ec + 16, bad[i]);
			cr_expect_eq(run(&f), RBPF_EC_RANGE, "%s: cfp %llx",
				     image_versions[v].minor, (unsigned long long)bad[i]);
			cr_expect_eq(f.w->n_frames, 0);
		}
		teardown(&f);
	}
}

/* A row with the wrong frame size is noticed unless the depth is a common multiple. */
Test(walk, wrong_frame_size)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint32_t refused = 0;

	for (uint32_t i = 1; i < 8; i++) {
		image_push_method(&f.t, CODE(i), PC(i), 0);
		f.w->layout.cf_size = 64;
		refused += run(&f) == RBPF_EC_RANGE;
	}
	cr_expect_eq(refused, 6, "8 frames of 56 bytes are 7 of 64");
	f.w->layout.cf_size = 0;
	cr_expect_eq(run(&f), RBPF_EC_RANGE, "no row at all");
	teardown(&f);
}

Test(walk, hostile_stack_bounds)
{
	static const uint64_t bounds[][2] = {
		{ 8, 1 << 20 },
		{ 0x7f0000000000, 1ull << 33 },
		{ ~7ull, 1 },
		{ ~0xfffull, 4096 },
		{ 1, (1ull << 61) - 1 },
		{ 0x7f0000000000, ~0ull },
		{ 1ull << 63, 1ull << 60 },
	};
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);

	image_push_method(&f.t, CODE(0), PC(0), 0);
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		image_put64(f.img, f.t.ec, bounds[i][0]);
		image_put64(f.img, f.t.ec + 8, bounds[i][1]);
		for (uint64_t k = 0; k < 8; k++) {
			image_put64(f.img, f.t.ec + 16, f.t.cfp + k * 8);
			run(&f);
			cr_expect_leq(walk_host.reads, 100000, "bounds %zu: %zu reads", i,
				      walk_host.reads);
		}
	}
	teardown(&f);
}

/*
 * A stack smaller than one frame: where it would end lies before it begins.
 * Else cf_end would wrap, walk_chunk() take frames without end, and ruby_walk() copy them from
 * beyond frames[].
 */
Test(walk, stack_smaller_than_a_frame)
{
	struct fixture f = setup("3.3", 4096, RBPF_MIN_FRAMES);
	uint64_t code = image_region(f.img, 8 << 20), cfp = code;

	for (uint64_t i = 0; i < 8 << 20; i += 8)
		image_put64(f.img, code + i, 0x5000);
	for (uint64_t lo = 8; lo < 64; lo += 8) {
		uint64_t end = lo + 8 - f.img->vm.walk.cf_size;

		cfp = code + (end - code) % f.img->vm.walk.cf_size;
		image_put64(f.img, f.t.ec, lo);
		image_put64(f.img, f.t.ec + 8, 1);
		image_put64(f.img, f.t.ec + 16, cfp);
		cr_expect_eq(run(&f), RBPF_EC_RANGE, "vm_stack %llu", (unsigned long long)lo);
	}
	teardown(&f);
}

/* ---- the fingerprint ---- */

static uint64_t hash_of(struct fixture *f)
{
	cr_assert_eq(run(f), RBPF_OK);
	return f->w->hash;
}

Test(walk, equal_stacks_have_equal_fingerprints)
{
	struct fixture f = setup("3.3", 65536, 64);
	uint64_t mes[7], first, cfp, deep;
	struct walk *fresh;

	for (int i = 0; i < 7; i++)
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
	push_methods(&f, 30, 2, mes);
	first = hash_of(&f);
	cr_expect_eq(hash_of(&f), first, "walked twice");

	fresh = walk_host_new(&f.img->vm.walk, 64);
	cr_assert_eq(walk_host_run(fresh, &f.img->vm.mem, f.t.ec), RBPF_OK);
	cr_expect_eq(fresh->hash, first, "on another CPU, whose caches are empty");
	free(fresh);

	cfp = f.t.cfp;
	push_methods(&f, 100, 0, mes);
	deep = hash_of(&f);
	cr_expect_neq(deep, first, "deeper");
	image_put64(f.img, f.t.ec + 16, cfp);
	cr_expect_eq(hash_of(&f), first, "returned to where it was");
	image_put64(f.img, cfp + 8, 0x1234);
	image_put64(f.img, cfp + 24, 0x1234);
	cr_expect_eq(hash_of(&f), first, "sp and self are no part of it");
	teardown(&f);
}

Test(walk, different_stacks_have_different_fingerprints)
{
	struct fixture f = setup("3.3", 65536, 64);
	uint64_t mes[7], hashes[400], cfp, ep, env, a, b;
	uint32_t size = f.img->vm.walk.cf_size;
	size_t n = 0;

	for (int i = 0; i < 7; i++)
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
	hashes[n++] = hash_of(&f);
	for (uint32_t i = 0; i < 100; i++) { /* recursion: the same frame again and again */
		image_push_method(&f.t, CODE(1), PC(1), mes[0]);
		hashes[n++] = hash_of(&f); /* also where only the number of cut frames differs */
	}
	for (uint32_t i = 0; i < 10; i++) {
		cfp = f.t.cfp + i * 2ull * size;
		image_put64(f.img, cfp, PC(2));
		hashes[n++] = hash_of(&f);
		image_put64(f.img, cfp, PC(1));
		image_put64(f.img, cfp + 16, CODE(2));
		hashes[n++] = hash_of(&f);
		image_put64(f.img, cfp + 16, CODE(1));
		ep = image_get64(f.img, cfp + 32);
		image_put64(f.img, ep - 16, mes[1]);
		hashes[n++] = hash_of(&f);
		image_put64(f.img, ep - 16, mes[0]);
	}
	/* Two frames in one order and in the other. */
	a = f.t.cfp + 4ull * size;
	b = f.t.cfp + 5ull * size;
	image_put64(f.img, a, PC(3));
	hashes[n++] = hash_of(&f);
	image_put64(f.img, a, PC(1));
	image_put64(f.img, b, PC(3));
	hashes[n++] = hash_of(&f);
	image_put64(f.img, b, PC(1));

	/* A block: of a method in the heap, of another one. */
	env = image_env_heap(f.img, mes[2], 0, IMAGE_METHOD | IMAGE_LOCAL);
	image_push_block(&f.t, CODE(4), PC(4), env);
	hashes[n++] = hash_of(&f);
	image_put64(f.img, env - 16, mes[3]);
	hashes[n++] = hash_of(&f);
	/* C functions. */
	ep = image_push_cfunc(&f.t, mes[4]);
	hashes[n++] = hash_of(&f);
	image_put64(f.img, ep - 16, mes[5]);
	hashes[n++] = hash_of(&f);
	walk_host_seed(f.w, 1);
	hashes[n++] = hash_of(&f);
	walk_host_seed(f.w, 0);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(hashes[i], hashes[k], "stacks %zu and %zu", k, i);
	cr_expect_eq(hash_of(&f), hashes[n - 2], "and back");
	teardown(&f);
}

/*
 * Method entries are remembered until the era ends: what takes the place of one that was
 * freed cannot be met before.
 */
Test(walk, remembered_method_entries_end_with_the_era)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t first = image_ment(f.img, f.img->object, "first", IMAGE_ISEQ);
	uint64_t second = image_ment(f.img, f.img->object, "second", IMAGE_ISEQ);
	size_t before;

	image_push_method(&f.t, CODE(0), PC(0), first);
	cr_assert_eq(run(&f), RBPF_OK);
	before = walk_host.walk_reads;
	expect_frame(f.w, 0, CODE(0), PC(0), first);

	/* An svar now stands at that address. */
	image_put64(f.img, first, IMAGE_IMEMO(IMAGE_SVAR));
	image_put64(f.img, first + 8, second);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.walk_reads, before - 1, "remembered: not read again");
	expect_frame(f.w, 0, CODE(0), PC(0), first);

	walk_host_seed(f.w, 1);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.walk_reads, before, "read again");
	expect_frame(f.w, 0, CODE(0), PC(0), second);
	teardown(&f);
}

/* ---- fibers ---- */

static int run_fiber(struct fixture *f, const struct image_thread *fiber)
{
	int status = walk_host_run(f->w, &f->img->vm.mem, fiber->ec);

	assert_sane_walk(f->w);
	return status;
}

static void expect_mark(const struct walk *w, uint32_t i)
{
	expect_frame(w, i, 0, 0, 0);
}

/* @n fibers, each resumed by the one before; number i has i + 1 frames, with CODE(100 * i + …). */
static void resume_fibers(struct fixture *f, struct image_thread *fibers, uint32_t n)
{
	fibers[0] = f->t;
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			fibers[i] = image_fiber(&fibers[i - 1], 4096);
		for (uint32_t k = 0; k <= i; k++)
			image_push_method(&fibers[i], CODE(100 * i + k), PC(k), 0);
	}
}

Test(walk, resumers)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread fibers[3];
		uint64_t hash;

		resume_fibers(&f, fibers, 3);
		cr_assert_eq(run_fiber(&f, &fibers[2]), RBPF_OK);
		cr_assert_eq(f.w->n_frames, 3 + 1 + 2 + 1 + 1, "%s: %u frames",
			     image_versions[v].minor, f.w->n_frames);
		for (uint32_t k = 0; k < 3; k++)
			expect_frame(f.w, k, CODE(202 - k), PC(2 - k), 0);
		expect_mark(f.w, 3);
		expect_frame(f.w, 4, CODE(101), PC(1), 0);
		expect_frame(f.w, 5, CODE(100), PC(0), 0);
		expect_mark(f.w, 6);
		expect_frame(f.w, 7, CODE(0), PC(0), 0);
		hash = f.w->hash;
		cr_assert_eq(run_fiber(&f, &fibers[2]), RBPF_OK);
		cr_expect_eq(f.w->hash, hash, "walked twice");

		/* The same frames, but in one fiber less. */
		image_put64(f.img, fibers[1].fiber + f.img->facts.fiber_prev, 0);
		cr_assert_eq(run_fiber(&f, &fibers[2]), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 6);
		cr_expect_neq(f.w->hash, hash, "resumed by another one");

		cr_expect_eq(run_fiber(&f, &fibers[1]), RBPF_EC_STALE, "it does not run");
		cr_expect_eq(f.w->n_frames, 0);
		teardown(&f);
	}
}

/* Where one fiber ends and the next begins is part of the fingerprint. */
Test(walk, frames_of_one_fiber_or_of_two)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	struct image_thread fiber;
	uint64_t one;

	image_push_method(&f.t, CODE(0), PC(0), 0);
	image_push_method(&f.t, CODE(1), PC(1), 0);
	cr_assert_eq(run(&f), RBPF_OK);
	one = f.w->hash;
	f.t.cfp += f.img->facts.cf_size;
	image_put64(f.img, f.t.ec + 16, f.t.cfp);
	fiber = image_fiber(&f.t, 4096);
	image_push_method(&fiber, CODE(1), PC(1), 0);
	cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 3);
	cr_expect_neq(f.w->hash, one);
	teardown(&f);
}

static uint32_t fiber_marks(const struct walk *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_frames; i++)
		n += is_fiber_mark(&w->frames[i]);
	return n;
}

/*
 * @n fibers: so many @marks, and of the one behind the last of them, if it is not walked, its
 * frames.
 */
static void check_fibers(uint32_t n, uint32_t marks, uint32_t left_out)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	struct image_thread fibers[FIBER_MAX_DEPTH + 4];

	resume_fibers(&f, fibers, n);
	cr_assert_eq(run_fiber(&f, &fibers[n - 1]), RBPF_OK);
	cr_expect_eq(fiber_marks(f.w), marks, "%u fibers: %u marks", n, fiber_marks(f.w));
	cr_expect_eq(walk_host.counters[RBPF_CNT_FIBER_DEPTH], left_out != 0, "%u fibers", n);
	if (left_out) {
		expect_mark(f.w, f.w->n_frames - 2);
		expect_frame(f.w, f.w->n_frames - 1, 0, left_out, 0);
	}
	cr_expect_null(naive_compare(f.w, &f.img->vm.mem, fibers[n - 1].ec));
	teardown(&f);
}

Test(walk, more_fibers_than_are_followed)
{
	check_fibers(FIBER_MAX_DEPTH, FIBER_MAX_DEPTH - 1, 0);
	check_fibers(FIBER_MAX_DEPTH + 1, FIBER_MAX_DEPTH, 0);
	check_fibers(FIBER_MAX_DEPTH + 2, FIBER_MAX_DEPTH + 1, 1);
	check_fibers(FIBER_MAX_DEPTH + 4, FIBER_MAX_DEPTH + 1, 3);
}

/*
 * A target can have each environment where the window is not, in frames that are not shown and so
 * not counted, and fibers in a ring: all that a walk reads has an end.
 */
static void check_far_environments(const char *version, uint32_t frames)
{
	struct fixture f = setup(version, 512 * 1024, RBPF_MAX_FRAMES);
	const uint64_t apart = 2 * sizeof(f.w->win);

	for (uint32_t i = 0; i < frames; i++) {
		image_push(&f.t, &(struct image_frame) { .flags = IMAGE_IFUNC | IMAGE_CFRAME });
		image_put64(f.img, f.t.cfp + 32, f.t.lo + (i & 1 ? 3 : 1) * apart);
	}
	image_put64(f.img, f.t.fiber + f.img->facts.fiber_prev, f.t.fiber);
	run(&f);
	cr_expect(walk_host.counters[RBPF_CNT_READ_LIMIT], "%s", version);
	cr_expect_leq(walk_host.bytes, 6u << 20, "%s: %zu bytes", version, walk_host.bytes);
	cr_expect_leq(walk_host.reads, 2000, "%s: %zu reads", version, walk_host.reads);
	teardown(&f);
}

Test(walk, environments_far_from_each_other)
{
	FOR_EACH_VERSION(v)
	{
		check_far_environments(image_versions[v].minor, 1000);
		check_far_environments(image_versions[v].minor, 30000);
	}
}

/* What memory says may be anything: also that a fiber was resumed by itself. */
Test(walk, fibers_in_a_ring)
{
	FOR_EACH_VERSION(v)
	for (uint32_t n = 1; n <= 3; n++) {
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread fibers[3];

		resume_fibers(&f, fibers, n);
		image_put64(f.img, fibers[0].fiber + f.img->facts.fiber_prev, fibers[n - 1].fiber);
		cr_assert_eq(run_fiber(&f, &fibers[n - 1]), RBPF_OK);
		cr_expect_eq(walk_host.counters[RBPF_CNT_FIBER_DEPTH], 1);
		cr_expect_eq(fiber_marks(f.w), FIBER_MAX_DEPTH + 1);
		cr_expect_leq(walk_host.walk_reads, 200, "%zu reads", walk_host.walk_reads);
		teardown(&f);
	}
}

/*
 * A resumer is walked only if some frames of it have a place; else it is said how many there are.
 */
Test(walk, resumers_cut_by_room)
{
	static const uint32_t limits[] = {
		RBPF_MIN_FRAMES, RBPF_MIN_FRAMES + 1, 40, 64, 100, 4096
	};

	for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
		for (uint32_t depth = 1; depth < 200; depth++) {
			struct fixture f = setup("3.3", 65536, limits[l]);
			uint32_t inner = depth < limits[l] ? depth : limits[l];
			bool room = inner + 1 + RBPF_MIN_FRAMES <= limits[l];
			bool said = inner + 2 <= limits[l];
			struct image_thread fiber;

			for (uint32_t i = 0; i < 3; i++)
				image_push_method(&f.t, CODE(i), PC(i), 0);
			fiber = image_fiber(&f.t, 65536);
			for (uint32_t i = 0; i < depth; i++)
				image_push_method(&fiber, CODE(100 + i), PC(i), 0);
			cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
			cr_expect_eq(f.w->n_frames,
				     inner + (room   ? 4
					      : said ? 2
						     : 0),
				     "%u frames of %u, %u allowed", f.w->n_frames, depth,
				     limits[l]);
			cr_expect_eq(walk_host.counters[RBPF_CNT_FIBER_DEPTH], !room);
			if (said)
				expect_mark(f.w, inner);
			if (said && !room)
				expect_frame(f.w, inner + 1, 0, 3, 0);
			cr_expect_null(naive_compare(f.w, &f.img->vm.mem, fiber.ec));
			teardown(&f);
		}
	}
}

/* A resumer that is too deep for what the fiber left of the room keeps its two ends. */
Test(walk, a_deep_resumer)
{
	for (uint32_t max = 20; max <= 200; max += 9) {
		struct fixture f = setup("3.3", 65536, max);
		uint32_t inner = 1 + max % 3, room = max - inner - 1, tail = room / 4 - 1, i;
		struct image_thread fiber;

		for (i = 0; i < 500; i++)
			image_push_method(&f.t, CODE(i), PC(i), 0);
		fiber = image_fiber(&f.t, 4096);
		for (i = 0; i < inner; i++)
			image_push_method(&fiber, CODE(1000 + i), PC(i), 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_assert_eq(f.w->n_frames, max);
		expect_mark(f.w, inner);
		for (i = 0; i < room - tail - 1; i++)
			expect_frame(f.w, inner + 1 + i, CODE(499 - i), PC(499 - i), 0);
		expect_frame(f.w, max - tail - 1, 0, 500 - (room - 1), 0);
		for (i = 0; i < tail; i++)
			expect_frame(f.w, max - 1 - i, CODE(i), PC(i), 0);
		teardown(&f);
	}
}

/* What a block of one fiber was put off for is looked up on that fiber's stack. */
Test(walk, blocks_of_several_fibers)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t outer = image_ment(f.img, f.img->object, "outer", IMAGE_ISEQ);
		uint64_t inner = image_ment(f.img, f.img->object, "inner", IMAGE_ISEQ);
		struct image_thread fiber;
		uint64_t ep;

		ep = image_push_method(&f.t, CODE(0), PC(0), outer);
		image_push_block(&f.t, CODE(1), PC(1), ep);
		fiber = image_fiber(&f.t, 4096);
		ep = image_push_method(&fiber, CODE(2), PC(2), inner);
		ep = image_push_block(&fiber, CODE(3), PC(3), ep);
		image_push_block(&fiber, CODE(4), PC(4), ep);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		expect_frame(f.w, 0, CODE(4), PC(4), inner);
		expect_frame(f.w, 1, CODE(3), PC(3), inner);
		expect_frame(f.w, 2, CODE(2), PC(2), inner);
		expect_mark(f.w, 3);
		expect_frame(f.w, 4, CODE(1), PC(1), outer);
		expect_frame(f.w, 5, CODE(0), PC(0), outer);
		teardown(&f);
	}
}

Test(walk, resumers_that_are_none)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread other = image_thread(f.img, 4096), fiber;
		const struct image_facts *facts = &f.img->facts;
		uint64_t ec, prev_at, alone;

		image_push_method(&other, CODE(9), PC(9), 0);
		image_push_method(&f.t, CODE(0), PC(0), 0);
		fiber = image_fiber(&f.t, 4096);
		prev_at = fiber.fiber + facts->fiber_prev;
		image_push_method(&fiber, CODE(1), PC(1), 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_assert_eq(f.w->n_frames, 3, "%s", f.img->version);
		image_put64(f.img, prev_at, 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		alone = f.w->hash;

		const uint64_t none[] = {
			other.fiber, /* of another thread */
			0x5000,	     /* unreadable */
			fiber.fiber + 8, f.img->object, ~0ull, 8,
		};
		for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
			image_put64(f.img, prev_at, none[i]);
			cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
			cr_expect_eq(f.w->n_frames, 1, "%s: prev %zu", f.img->version, i);
			cr_expect_eq(f.w->hash, alone, "%s: prev %zu", f.img->version, i);
		}
		image_put64(f.img, prev_at, f.t.fiber);

		/* It ended, or is half of one. */
		image_put64(f.img, f.t.ec, 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: no VM stack", f.img->version);
		image_put64(f.img, f.t.ec, f.t.lo);
		image_put64(f.img, f.t.ec + 16, f.t.cfp + 8);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: cfp misaligned", f.img->version);
		cr_expect_eq(f.w->hash, alone);
		image_put64(f.img, f.t.ec + 16, f.t.cfp);

		/* Its frames cannot be read: that it was there is said. */
		image_hide(f.img, f.t.cfp, 8, true);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 2, "%s: frames unreadable", f.img->version);
		expect_mark(f.w, 1);
		image_hide(f.img, f.t.cfp, 8, false);

		ec = fiber.ec;
		image_put64(f.img, ec + facts->ec_fiber_ptr, 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: no fiber", f.img->version);
		image_put64(f.img, ec + facts->ec_fiber_ptr, fiber.fiber);

		f.w->layout.fiber_prev = 0;
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: a layout without it", f.img->version);
		teardown(&f);
	}
}

/* ---- where rb_vm_exec() begins ---- */

static uint64_t push_begin(struct image_thread *t, uint64_t flags, uint32_t i, uint64_t pc)
{
	return image_push(t, &(struct image_frame) {
				     .flags = flags | IMAGE_FINISH, .iseq = CODE(i), .pc = pc });
}

Test(walk, where_activations_begin)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC), plain;

		push_begin(&f.t, IMAGE_EVAL | IMAGE_LOCAL, 0, PC(0));
		image_push_method(&f.t, CODE(1), PC(1), 0);
		image_push_cfunc(&f.t, me);
		push_begin(&f.t, IMAGE_BLOCK, 2, PC(2));
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 4);
		expect_frame(f.w, 0, CODE(2), PC(2) | RBPF_PC_FINISH, 0);
		expect_frame(f.w, 1, 0, 0, me);
		expect_frame(f.w, 2, CODE(1), PC(1), 0);
		expect_frame(f.w, 3, CODE(0), PC(0) | RBPF_PC_FINISH, 0);
		plain = f.w->hash;

		image_put64(f.img, f.t.ep, IMAGE_BLOCK);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 0, CODE(2), PC(2), 0);
		cr_expect_neq(f.w->hash, plain, "%s: it is another stack", f.img->version);
		teardown(&f);
	}
}

/* Bits in memory that is no pc's are no flags. */
Test(walk, flags_are_not_read_from_memory)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);

	image_push_method(&f.t, CODE(0), PC(0) | RBPF_PC_FLAGS, 0);
	image_push_method(&f.t, CODE(1), PC(1) | RBPF_PC_FLAGS, 0);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(1), PC(1), 0);
	expect_frame(f.w, 1, CODE(0), PC(0), 0);
	teardown(&f);
}

/* What is not shown, but begins an activation, hands that on to the frame inside of it. */
Test(walk, an_activation_that_begins_with_a_frame_left_out)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC), ep, begun;
		struct image_thread before;

		image_push_method(&f.t, CODE(0), PC(0), 0);
		ep = push_begin(&f.t, IMAGE_METHOD | IMAGE_LOCAL, 1, 0); /* has no pc */
		before = f.t;
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: there is none inside", f.img->version);
		expect_frame(f.w, 0, CODE(0), PC(0), 0);

		image_push_method(&f.t, CODE(2), PC(2), 0);
		image_push_method(&f.t, CODE(3), PC(3), 0);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 3);
		expect_frame(f.w, 0, CODE(3), PC(3), 0);
		expect_frame(f.w, 1, CODE(2), PC(2) | RBPF_PC_FINISH, 0);
		expect_frame(f.w, 2, CODE(0), PC(0), 0);
		begun = f.w->hash;
		image_put64(f.img, ep, IMAGE_METHOD | IMAGE_LOCAL);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 1, CODE(2), PC(2), 0);
		cr_expect_neq(f.w->hash, begun, "%s: it is another stack", f.img->version);

		/* Also to a C function; a dummy begins none, whatever it says. */
		image_put64(f.img, ep, IMAGE_METHOD | IMAGE_LOCAL | IMAGE_FINISH);
		image_return(&f.t, &before);
		image_push_cfunc(&f.t, me);
		push_begin(&f.t, IMAGE_DUMMY | IMAGE_LOCAL, 4, 0);
		push_begin(&f.t, IMAGE_DUMMY | IMAGE_LOCAL, 4, PC(4));
		image_push_method(&f.t, CODE(5), PC(5), 0);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 3);
		expect_frame(f.w, 0, CODE(5), PC(5), 0);
		expect_frame(f.w, 1, 0, RBPF_PC_FINISH, me);
		expect_frame(f.w, 2, CODE(0), PC(0), 0);
		teardown(&f);
	}
}

Test(walk, marks_begin_no_activation)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 65536, 64);
		struct image_thread fiber;
		uint64_t cut, behind;
		uint32_t i;

		/* Of the fiber that resumed, the innermost frame is not shown. */
		image_push_method(&f.t, CODE(0), PC(0), 0);
		push_begin(&f.t, IMAGE_METHOD | IMAGE_LOCAL, 1, 0);
		fiber = image_fiber(&f.t, 65536);
		image_push_method(&fiber, CODE(2), PC(2), 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 3, "%s", f.img->version);
		expect_frame(f.w, 0, CODE(2), PC(2), 0);
		expect_mark(f.w, 1);
		expect_frame(f.w, 2, CODE(0), PC(0), 0);

		/* The first one behind the cut is not shown. */
		for (i = 3; i < 200; i++)
			image_push_method(&fiber, CODE(i), PC(i), 0);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		for (i = 0; i < f.w->n_frames && f.w->frames[i].iseq; i++)
			;
		cr_assert_lt(i, f.w->n_frames);
		cut = f.w->frames[i].pc;
		behind = fiber.cfp + (i + cut) * f.w->layout.cf_size;
		image_put64(f.img, behind, 0);
		image_put64(f.img, image_get64(f.img, behind + 32),
			    IMAGE_METHOD | IMAGE_LOCAL | IMAGE_FINISH);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		expect_frame(f.w, i, 0, cut, 0);
		expect_frame(f.w, i - 1, CODE(200 - i), PC(200 - i), 0);
		teardown(&f);
	}
}

/* ---- compiled code ---- */

#define JIT_RETURN 0x7e0000000040ull

static void push_jit(struct image_thread *t, uint64_t iseq, uint64_t pc, uint64_t jit_return)
{
	image_push(t, &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
					      .iseq = iseq,
					      .pc = pc,
					      .jit_return = jit_return });
}

/* Only the innermost frame may have gone on since its pc was saved. */
Test(walk, pc_of_compiled_code)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC), exact;
		struct image_thread before, fiber;

		if (!f.img->facts.cf_jit_return) {
			teardown(&f);
			continue;
		}
		push_jit(&f.t, CODE(0), PC(0), JIT_RETURN);
		push_jit(&f.t, CODE(1), PC(1), JIT_RETURN);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 0, CODE(1), STALE_PC(1), 0);
		expect_frame(f.w, 1, CODE(0), JIT_PC(0), 0);

		/* Interpreted code, or a C function, on top: the others have called. */
		before = f.t;
		exact = f.w->hash;
		image_push_method(&f.t, CODE(2), PC(2), 0);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 0, CODE(2), PC(2), 0);
		expect_frame(f.w, 1, CODE(1), JIT_PC(1), 0);
		image_return(&f.t, &before);
		image_push_cfunc(&f.t, me);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 0, 0, 0, me);
		expect_frame(f.w, 1, CODE(1), JIT_PC(1), 0);
		image_return(&f.t, &before);

		/* A fiber has an innermost frame, each. */
		fiber = image_fiber(&f.t, 4096);
		push_jit(&fiber, CODE(3), PC(3), JIT_RETURN);
		cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
		expect_frame(f.w, 0, CODE(3), STALE_PC(3), 0);
		expect_mark(f.w, 1);
		expect_frame(f.w, 2, CODE(1), STALE_PC(1), 0);
		expect_frame(f.w, 3, CODE(0), JIT_PC(0), 0);
		image_put64(f.img, f.t.th + f.img->facts.th_ec, f.t.ec);

		image_put64(f.img, f.t.cfp + f.img->facts.cf_jit_return, 0);
		cr_assert_eq(run(&f), RBPF_OK);
		expect_frame(f.w, 0, CODE(1), PC(1), 0);
		cr_expect_neq(f.w->hash, exact, "an exact line and another one");
		teardown(&f);
	}
}

/* A frame whose pc was never saved is one if it is compiled code's and the innermost. */
Test(walk, no_pc)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);

		image_push_method(&f.t, CODE(0), PC(0), 0);
		image_push_method(&f.t, CODE(1), 0, 0);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "%s: not begun", f.img->version);
		if (f.img->facts.cf_jit_return) {
			image_put64(f.img, f.t.cfp + f.img->facts.cf_jit_return, JIT_RETURN);
			cr_assert_eq(run(&f), RBPF_OK);
			cr_expect_eq(f.w->n_frames, 2, "%s", f.img->version);
			expect_frame(f.w, 0, CODE(1), RBPF_PC_STALE | RBPF_PC_JIT, 0);
			image_push_method(&f.t, CODE(2), PC(2), 0);
			cr_assert_eq(run(&f), RBPF_OK);
			cr_expect_eq(f.w->n_frames, 2, "%s: Ruby shows it no more", f.img->version);
			expect_frame(f.w, 0, CODE(2), PC(2), 0);
			expect_frame(f.w, 1, CODE(0), PC(0), 0);
		}
		teardown(&f);
	}
}

/* Compiled code is told by where it returns to; 1 is 4.1's mark of a C function. */
Test(walk, frames_of_compiled_code)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);

		if (!f.img->facts.cf_jit_return) {
			teardown(&f);
			continue;
		}
		push_jit(&f.t, CODE(0), PC(0), 1);
		push_jit(&f.t, CODE(1), PC(1), 2);
		push_jit(&f.t, CODE(2), PC(2), 0);
		push_jit(&f.t, CODE(3), PC(3), ~0ull);
		push_jit(&f.t, CODE(4), PC(4), 1);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 5, "%s", f.img->version);
		expect_frame(f.w, 0, CODE(4), PC(4) | RBPF_PC_STALE, 0);
		expect_frame(f.w, 1, CODE(3), JIT_PC(3), 0);
		expect_frame(f.w, 2, CODE(2), PC(2), 0);
		expect_frame(f.w, 3, CODE(1), JIT_PC(1), 0);
		expect_frame(f.w, 4, CODE(0), PC(0), 0);
		teardown(&f);
	}
}

/* Up to 4.0, and with YJIT, jit_return leads into machine code: it is not followed. */
Test(walk, jit_return_is_followed_only_with_zjit)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t word = image_zjit_frame(f.img, CODE(8), PC(8));

		if (f.img->facts.cf_jit_return) {
			push_jit(&f.t, CODE(0), PC(0), word);
			push_jit(&f.t, CODE(1), PC(1), word);
			cr_assert_eq(run(&f), RBPF_OK);
			expect_frame(f.w, 0, CODE(1), STALE_PC(1), 0);
			expect_frame(f.w, 1, CODE(0), JIT_PC(0), 0);
		}
		teardown(&f);
	}
}

/*
 * 4.0's ZJIT writes iseq and environment of a frame, but no pc, and nothing that tells: where it is
 * in use, what the innermost frame has for a pc may be another's.
 */
Test(walk, bare_zjit_frames)
{
	static const uint64_t left[] = { 0, PC(7), 0x5000 };
	struct fixture f = setup("4.0", 4096, RBPF_MAX_FRAMES);
	uint64_t foo = image_ment(f.img, f.img->object, "foo", IMAGE_ISEQ);
	uint64_t puts = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC), exact;
	struct image_thread before, fiber;

	image_push_method(&f.t, CODE(0), PC(0), foo);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(0), PC(0), foo);
	exact = f.w->hash;
	image_zjit_on(f.img, true);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(0), PC(0) | RBPF_PC_STALE, foo);
	cr_expect_neq(f.w->hash, exact);

	before = f.t;
	for (size_t i = 0; i < 3; i++) {
		image_push_method(&f.t, CODE(1), left[i], foo);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 2);
		expect_frame(f.w, 0, CODE(1), left[i] | RBPF_PC_STALE, foo);
		expect_frame(f.w, 1, CODE(0), PC(0), foo);
		image_return(&f.t, &before);
	}
	/* What may stand in jit_return is no JITFrame. */
	push_jit(&f.t, CODE(1), PC(1), image_zjit_frame(f.img, CODE(2), PC(2)));
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(1), PC(1) | RBPF_PC_STALE, 0);
	image_push_cfunc(&f.t, puts);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, 0, 0, puts);
	expect_frame(f.w, 1, CODE(1), JIT_PC(1), 0);
	image_return(&f.t, &before);
	image_push_cfunc(&f.t, puts);
	fiber = image_fiber(&f.t, 4096);
	image_push_method(&fiber, CODE(3), PC(3), 0);
	cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
	expect_frame(f.w, 0, CODE(3), PC(3) | RBPF_PC_STALE, 0);
	expect_mark(f.w, 1);
	expect_frame(f.w, 2, 0, 0, puts);
	expect_frame(f.w, 3, CODE(0), PC(0), foo);
	image_hide(f.img, f.w->layout.zjit_entry, 8, true);
	cr_assert_eq(run_fiber(&f, &fiber), RBPF_OK);
	expect_frame(f.w, 0, CODE(3), PC(3), 0);
	teardown(&f);
}

/* The pc of @block as an innermost frame that is not of ZJIT's. */
static uint64_t block_pc(const struct image_frame *block)
{
	return block->pc | (block->flags & IMAGE_FINISH ? RBPF_PC_FINISH : 0) |
	       (block->jit_return ? RBPF_PC_STALE : 0) | (block->jit_return > 1 ? RBPF_PC_JIT : 0);
}

/*
 * 4.1's ZJIT sets ec->cfp to the frame of a block before it writes where that's pc and iseq are:
 * until then all of that is what an earlier frame left there.
 */
Test(walk, block_that_zjit_is_calling)
{
	struct fixture f = setup("4.1", 4096, RBPF_MAX_FRAMES);
	/* The native stack grows down. */
	uint64_t below = image_zjit_frame(f.img, CODE(3), PC(3));
	uint64_t callee = image_zjit_frame(f.img, CODE(2), PC(2));
	uint64_t caller = image_zjit_frame(f.img, CODE(1), PC(1));
	uint64_t above = image_zjit_frame(f.img, CODE(4), PC(4)), end = callee - 8;
	const struct {
		uint64_t flags, jit_return, sp;
		bool begun;
		const char *what;
	} cases[] = {
		{ IMAGE_BLOCK, callee, end, true, "written" },
		{ IMAGE_BLOCK, callee, 0, true, "the stack is not known" },
		{ IMAGE_BLOCK, callee, end - 64, true, "more on the stack" },
		{ IMAGE_BLOCK, below, end, false, "of one that returned" },
		{ IMAGE_BLOCK, callee, end + 8, false, "of one in its place, that returned" },
		{ IMAGE_BLOCK, caller, end, false, "the caller's own" },
		{ IMAGE_BLOCK, caller, 0, false, "the caller's own" },
		{ IMAGE_BLOCK, above, end, false, "of one that is further out" },
		{ IMAGE_BLOCK, above, 0, false, "of one that is further out" },
		{ IMAGE_BLOCK, 0, end, false, "of interpreted code" },
		{ IMAGE_BLOCK, 0, 0, true, "called by the VM" },
		{ IMAGE_BLOCK, 1, end, false, "of a C function" },
		{ IMAGE_BLOCK | IMAGE_FINISH, 0, end, true, "called by the VM" },
		{ IMAGE_METHOD | IMAGE_LOCAL, 0, end, true, "no block" },
		{ IMAGE_METHOD | IMAGE_LOCAL, above, end, true, "no block" },
	};
	struct image_thread before;
	uint64_t ep;

	push_jit(&f.t, CODE(100), PC(100), caller);
	before = f.t;
	ep = f.t.ep;
	for (int on = 1; on >= 0; on--) {
		image_zjit_on(f.img, on);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			uint64_t to = cases[i].jit_return;
			struct image_frame block = { .flags = cases[i].flags,
						     .iseq = CODE(101),
						     .pc = PC(101),
						     .specval = ep | 1,
						     .jit_return = to };
			bool begun = cases[i].begun || !on;

			image_push(&f.t, &block);
			f.w->sp = cases[i].sp;
			cr_assert_eq(run(&f), RBPF_OK);
			cr_expect_eq(f.w->n_frames, begun ? 2 : 1, "%s", cases[i].what);
			if (!begun)
				expect_frame(f.w, 0, CODE(1), STALE_PC(1), 0);
			else if (on && to == callee)
				expect_frame(f.w, 0, CODE(2), STALE_PC(2), 0);
			else if (!on || !to)
				expect_frame(f.w, 0, CODE(101), block_pc(&block), 0);
			image_return(&f.t, &before);
		}
	}
	/* The outermost frame has no caller. */
	image_zjit_on(f.img, true);
	before.cfp = f.t.hi - f.img->facts.cf_size;
	image_return(&f.t, &before);
	image_push(&f.t, &(struct image_frame) { .flags = IMAGE_BLOCK, .jit_return = callee });
	f.w->sp = end + 8;
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 1);
	expect_frame(f.w, 0, CODE(2), STALE_PC(2), 0);
	teardown(&f);
}

/* What 4.1's ZJIT leaves in pc and iseq of its frames is of earlier ones. */
Test(walk, zjit_frames)
{
	struct fixture f = setup("4.1", 4096, RBPF_MAX_FRAMES);
	uint64_t foo = image_ment(f.img, f.img->object, "foo", IMAGE_ISEQ);
	uint64_t puts = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC), ep;
	size_t reads;

	image_zjit_on(f.img, true);
	image_push_method(&f.t, CODE(0), PC(0), foo);
	image_push(&f.t,
		   &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
					   .iseq = CODE(100),
					   .pc = PC(100),
					   .me_cref = foo,
					   .jit_return = image_zjit_frame(f.img, CODE(1), PC(1)) });
	ep = f.t.ep;
	image_push(&f.t,
		   &(struct image_frame) { .flags = IMAGE_BLOCK,
					   .specval = ep | 1,
					   .jit_return = image_zjit_frame(f.img, CODE(2), PC(2)) });
	image_push(&f.t,
		   &(struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME | IMAGE_LOCAL,
					   .iseq = CODE(101),
					   .pc = PC(101),
					   .me_cref = puts,
					   .jit_return = 1 });
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 4);
	expect_frame(f.w, 0, 0, 0, puts);
	expect_frame(f.w, 1, CODE(2), JIT_PC(2), foo);
	expect_frame(f.w, 2, CODE(1), JIT_PC(1), foo);
	expect_frame(f.w, 3, CODE(0), PC(0), foo);

	push_jit(&f.t, CODE(102), PC(102), image_zjit_frame(f.img, CODE(3), PC(3)));
	push_jit(&f.t, CODE(103), PC(103), image_zjit_frame(f.img, CODE(4), 0));
	cr_assert_eq(run(&f), RBPF_OK);
	reads = walk_host.walk_reads;
	expect_frame(f.w, 0, CODE(4), RBPF_PC_STALE | RBPF_PC_JIT, 0);
	expect_frame(f.w, 1, CODE(3), JIT_PC(3), 0);

	/* One that has no pc, and is not the innermost: Ruby shows none. */
	push_jit(&f.t, CODE(104), PC(104), image_zjit_frame(f.img, CODE(5), PC(5)));
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.walk_reads, reads + 2, "whether ZJIT is on is read once");
	expect_frame(f.w, 0, CODE(5), STALE_PC(5), 0);
	expect_frame(f.w, 1, CODE(3), JIT_PC(3), 0);

	/* Off, as with YJIT: the same words are what they say. */
	image_zjit_on(f.img, false);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(104), STALE_PC(104), 0);
	expect_frame(f.w, 1, CODE(103), JIT_PC(103), 0);
	image_zjit_on(f.img, true);
	image_hide(f.img, f.w->layout.zjit_entry, 8, true);
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(104), STALE_PC(104), 0);
	f.w->layout.zjit_entry = 0;
	cr_assert_eq(run(&f), RBPF_OK);
	expect_frame(f.w, 0, CODE(104), STALE_PC(104), 0);
	teardown(&f);
}

/* Rather no frame than one of the iseq that happens to stand there. */
Test(walk, unreadable_zjit_frames)
{
	struct fixture f = setup("4.1", 4096, RBPF_MAX_FRAMES);
	uint64_t word = image_alloc(f.img, 16);

	image_zjit_on(f.img, true);
	image_push_method(&f.t, CODE(0), PC(0), 0);
	push_jit(&f.t, CODE(100), PC(100), 0x5000); /* the native stack is gone */
	image_put64(f.img, word, 0x6000);
	push_jit(&f.t, CODE(101), PC(101), word + 8); /* the JITFrame */
	push_jit(&f.t, CODE(102), PC(102), 8);
	push_jit(&f.t, CODE(103), PC(103), ~7ull);
	push_jit(&f.t, CODE(104), PC(104), image_zjit_frame(f.img, 0, PC(3)));
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(f.w->n_frames, 1);
	expect_frame(f.w, 0, CODE(0), PC(0), 0);
	teardown(&f);
}

/* ---- 2.7: a frame that is being written ---- */

/*
 * Whether @top is the code of @f. (A method entry is told from another by what it is the entry of.)
 */
static bool is_code(const struct rbpf_frame *top, const struct image_frame *f)
{
	return !top->iseq || (top->iseq == f->iseq && top->pc == f->pc);
}

/* Where the pushing of @f.t is after @stage stores, when @old was called from there before. */
static bool push_after(struct fixture *f, const struct image_frame *old, uint32_t values,
		       const struct image_frame *new, unsigned int stage)
{
	struct image_thread t = f->t, before;

	memset(image_at(f->img, t.lo, t.cfp - t.lo), 0, t.cfp - t.lo);
	image_push_method(&t, CODE(0), PC(0), 0);
	before = t;
	t.sp += 8ull * values;
	image_push(&t, old);
	image_return(&t, &before);
	return image_push_until(&t, new, stage);
}

/*
 * A caller calls @new, and has called @old before, with so many more @values on its stack, which
 * then stand where @new is written. A sample in between shows the caller alone, or what was called
 * before, or what is called now; at most a pc that is not of its iseq, which user space notices.
 */
static void check_push(struct fixture *f, const struct image_frame *old, uint32_t values,
		       const struct image_frame *new)
{
	const struct rbpf_frame *top = &f->w->frames[0];
	bool more = true;

	for (unsigned int stage = 0; more; stage++) {
		more = push_after(f, old, values, new, stage);
		cr_assert_eq(run(f), RBPF_OK);
		cr_assert(f->w->n_frames == 1 || f->w->n_frames == 2, "stage %u", stage);
		expect_frame(f->w, f->w->n_frames - 1, CODE(0), PC(0), 0);
		if (f->w->n_frames == 2)
			cr_expect(is_code(top, old) || is_code(top, new) ||
					  (top->iseq == old->iseq && top->pc == new->pc),
				  "after store %u the frame is {%llx %llx %llx}", stage,
				  (unsigned long long)top->iseq, (unsigned long long)top->pc,
				  (unsigned long long)top->me);
		if (more)
			continue;
		cr_assert_eq(f->w->n_frames, 2, "all is written");
		expect_frame(f->w, 0, new->iseq, new->pc, new->me_cref);
	}
}

static struct image_frame method_frame(struct fixture *f, uint32_t i, uint32_t locals)
{
	return (struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
				      .iseq = CODE(i),
				      .pc = PC(i),
				      .me_cref = image_ment(f->img, f->img->object, "m",
							    IMAGE_ISEQ),
				      .locals = locals };
}

static struct image_frame cfunc_frame(struct fixture *f)
{
	return (struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME | IMAGE_LOCAL,
				      .me_cref = image_ment(f->img, f->img->object, "c",
							    IMAGE_CFUNC) };
}

/*
 * What was called before had its environment where this one cannot be: below the caller's values.
 */
Test(walk, a_frame_being_written_over_one_that_does_not_fit)
{
	struct fixture f = setup("2.7", 4096, RBPF_MAX_FRAMES);
	struct image_frame old = method_frame(&f, 1, 2), new = method_frame(&f, 2, 5);
	struct image_thread t;
	bool more = true;

	for (unsigned int stage = 0; more; stage++) {
		more = push_after(&f, &old, 0, &new, stage);
		t = f.t;
		/* The caller has since got more values: its sp is above that environment. */
		image_put64(f.img, t.cfp - f.img->facts.cf_size + 8, t.lo + 2048);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 1, "stage %u: %u frames", stage, f.w->n_frames);
		expect_frame(f.w, f.w->n_frames - 1, CODE(0), PC(0), 0);
	}
	teardown(&f);
}

Test(walk, a_c_function_being_written)
{
	struct fixture f = setup("2.7", 4096, RBPF_MAX_FRAMES);
	struct image_frame old = cfunc_frame(&f), new = cfunc_frame(&f), method;

	for (uint32_t values = 0; values < 4; values++) {
		method = method_frame(&f, 1, values);
		check_push(&f, &old, values, &new);
		check_push(&f, &method, values, &new);
	}
	teardown(&f);
}

Test(walk, a_method_being_written)
{
	struct fixture f = setup("2.7", 4096, RBPF_MAX_FRAMES);
	struct image_frame c = cfunc_frame(&f), old, new;

	for (uint32_t locals = 0; locals < 4; locals++) {
		for (uint32_t values = 0; values < 4; values++) {
			old = method_frame(&f, 1, locals);
			new = method_frame(&f, 2, 2);
			check_push(&f, &old, values, &new);
			check_push(&f, &c, values, &new);
		}
	}
	teardown(&f);
}

/* Words that are no frame's at the innermost place, where those of 2.7 are not believed unseen. */
Test(walk, innermost_frames_that_are_none)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint32_t checked = f.img->facts.cfp_first;
		uint64_t ep, heap = image_env_heap(f.img, 0, 0, IMAGE_METHOD | IMAGE_LOCAL);

		image_push_method(&f.t, CODE(0), PC(0), 0);
		ep = image_push_method(&f.t, CODE(1), PC(1), 0);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 2);

		static const uint64_t flags[] = { 0, 8, 0x11110002, 0x7f0000001231, 0xffffffff };
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
			image_put64(f.img, ep, flags[i]);
			run(&f);
			if (checked)
				cr_expect_eq(f.w->n_frames, 1, "flags %llx",
					     (unsigned long long)flags[i]);
		}
		image_put64(f.img, ep, IMAGE_METHOD | IMAGE_LOCAL);

		const uint64_t eps[] = { f.t.lo + 16, f.t.cfp + 8, 0x5000, ~7ull, f.t.hi };
		for (size_t i = 0; i < sizeof(eps) / sizeof(eps[0]); i++) {
			image_put64(f.img, f.t.cfp + 32, eps[i]);
			cr_assert_eq(run(&f), RBPF_OK);
			if (checked)
				cr_expect_eq(f.w->n_frames, 1, "ep %zu", i);
		}
		image_put64(f.img, f.t.cfp + 32, heap);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 2, "%s: a Binding holds it", f.img->version);
		image_put64(f.img, heap, IMAGE_METHOD | IMAGE_LOCAL);
		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 2 - checked, "%s: it has not escaped", f.img->version);
		teardown(&f);
	}
}

/* ---- garbage collection ---- */

/* Which era of the heap it is: the collections that have begun to free objects, and one more. */
Test(walk, eras)
{
	static const struct {
		uint64_t count;
		uint32_t flags;
		uint64_t era;
		bool transition;
	} eras[] = {
		{ 0, 0, 1, false }, /* none so far is not unknown */
		{ 41, 0, 42, false },
		{ 41, IMAGE_GC_DURING, 42, true },
		{ 42, IMAGE_GC_DURING | IMAGE_GC_MARKING, 42, false },
		{ 42, IMAGE_GC_MARKING, 42, false }, /* between two steps of it */
		{ 42, IMAGE_GC_DURING | IMAGE_GC_SWEEPING, 43, false },
		{ 42, IMAGE_GC_SWEEPING, 43, false },
		{ 42, IMAGE_GC_DURING | IMAGE_GC_COMPACTING | 3, 43, true },
		{ 42, 0, 43, false },
	};

	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct rbpf_layout l = f.img->vm.walk;
		__u64 words[RBPF_GC_WORDS];
		struct walk_gc gc;

		walk_host.mem = &f.img->vm.mem;
		for (size_t i = 0; i < sizeof(eras) / sizeof(eras[0]); i++) {
			image_gc_count(f.img, eras[i].count);
			image_gc_flags(f.img, eras[i].flags);
			gc_read(&gc, &l, 0, words);
			cr_expect_eq(gc.era, eras[i].era, "%s: %llu collections, flags %x",
				     f.img->version, (unsigned long long)eras[i].count,
				     eras[i].flags);
			cr_expect_eq(gc.flags, eras[i].flags, "%s", f.img->version);
			cr_expect_eq(gc.in_transition, eras[i].transition, "%s", f.img->version);
		}
		image_hide(f.img, f.img->objspace, 4096, true);
		gc_read(&gc, &l, 0, words);
		cr_expect(!gc.era && !gc.flags, "%s: unreadable", f.img->version);
		image_hide(f.img, f.img->objspace, 4096, false);
		l.gc_count = l.gc_flags = 0;
		gc_read(&gc, &l, 0, words);
		cr_expect(!gc.era && !gc.flags, "%s: not found", f.img->version);
		teardown(&f);
	}
}

/*
 * Through three collections, in the steps of gc_start() and gc_marks_start(): how many major ones
 * have marked, and in which era it is where the count alone would tell another one. The first is a
 * major one that marks little by little.
 */
Test(walk, major_collections)
{
	static const struct {
		uint64_t count, minor, major;
		uint32_t flags;
		uint64_t era, ret;
	} steps[] = {
		{ 41, 37, 4, 0, 42, 4 },
		{ 41, 37, 4, IMAGE_GC_DURING, 42, 0 },
		{ 42, 37, 4, IMAGE_GC_DURING, 42, 0 },
		{ 42, 37, 4, IMAGE_GC_DURING | IMAGE_GC_MARKING, 42, 0 },
		{ 42, 37, 5, IMAGE_GC_DURING | IMAGE_GC_MARKING, 42, 0 },
		{ 42, 37, 5, IMAGE_GC_MARKING, 42, 4 },
		{ 42, 37, 5, IMAGE_GC_DURING | IMAGE_GC_MARKING, 42, 0 },
		{ 42, 37, 5, IMAGE_GC_DURING | IMAGE_GC_SWEEPING, 43, 5 },
		{ 42, 37, 5, IMAGE_GC_SWEEPING, 43, 5 },
		{ 42, 37, 5, 0, 43, 5 },
		/* a minor one */
		{ 43, 37, 5, IMAGE_GC_DURING, 43, 0 },
		{ 43, 38, 5, IMAGE_GC_DURING | IMAGE_GC_MARKING, 43, 0 },
		{ 43, 38, 5, IMAGE_GC_DURING | IMAGE_GC_SWEEPING, 44, 5 },
		/* a major one while the program stands still */
		{ 44, 38, 6, IMAGE_GC_DURING | IMAGE_GC_MARKING, 44, 0 },
		{ 44, 38, 6, IMAGE_GC_SWEEPING, 45, 6 },
		/* not the words that they should be */
		{ 44, 38, 4, 0, 45, 0 },
		{ 44, 38, 4, IMAGE_GC_MARKING, 44, 0 },
		/* the first one of all: nothing was old before */
		{ 1, 0, 1, IMAGE_GC_MARKING, 1, 0 },
	};

	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		const bool known = f.img->facts.objspace_major;
		__u64 words[RBPF_GC_WORDS];
		struct walk_gc gc;

		walk_host.mem = &f.img->vm.mem;
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			image_gc_counts(f.img, steps[i].minor, steps[i].major);
			image_gc_count(f.img, steps[i].count);
			image_gc_flags(f.img, steps[i].flags);
			gc_read(&gc, &f.img->vm.walk, 0, words);
			cr_expect_eq(gc.major, known ? steps[i].ret : 0, "%s: step %zu",
				     f.img->version, i);
			if (known)
				cr_expect_eq(gc.era, steps[i].era, "%s: step %zu", f.img->version,
					     i);
		}
		teardown(&f);
	}
}

/*
 * Where each ractor has an objspace: once there are several, the flags of a thread's own are known,
 * and no era.
 */
Test(walk, collections_of_several_ractors)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		const uint64_t single = image_alloc(f.img, 8), ractor = image_alloc(f.img, 768);
		const uint64_t objspace = image_alloc(f.img, 256);
		struct rbpf_layout l = f.img->vm.walk;
		__u64 words[RBPF_GC_WORDS];
		struct walk_gc gc;

		walk_host.mem = &f.img->vm.mem;
		image_gc_counts(f.img, 37, 4);
		image_gc_flags(f.img, 1u << 6 | IMAGE_GC_MARKING);
		image_put64(f.img, single, 0x7000);
		l.gc_single = single;
		l.gc_ractor = 0x7000;
		l.gc_during_bit = 6;
		l.ractor_objspace = 560;
		l.objspace_flags = 72;
		gc_read(&gc, &l, ractor, words);
		cr_expect_eq(gc.era, 41, "%s", f.img->version);
		cr_expect(gc.flags & RUBY_GC_DURING_GC);
		cr_expect_not(gc.of_several || gc.unknown);

		image_put64(f.img, single, 0);
		gc_read(&gc, &l, ractor, words);
		cr_expect(gc.of_several && gc.unknown, "%s: it has none yet", f.img->version);
		image_put64(f.img, ractor + 560, objspace);
		gc_read(&gc, &l, ractor, words);
		cr_expect(gc.of_several && !gc.unknown && !gc.flags, "%s", f.img->version);
		image_put32(f.img, objspace + 72, 1u << 6 | IMAGE_GC_SWEEPING);
		gc_read(&gc, &l, ractor, words);
		cr_expect_eq(gc.flags, IMAGE_GC_DURING | IMAGE_GC_SWEEPING, "%s", f.img->version);
		cr_expect(!gc.era && !gc.major && gc.of_several && !gc.unknown);
		gc_read(&gc, &l, 0x5000, words);
		cr_expect(gc.of_several && gc.unknown && !gc.flags, "%s: unreadable",
			  f.img->version);
		l.gc_single = 0x5000;
		gc_read(&gc, &l, ractor, words);
		cr_expect(gc.of_several, "it cannot be read");
		l.gc_single = 0;
		gc_read(&gc, &l, ractor, words);
		cr_expect(gc.of_several, "it is not known");
		teardown(&f);
	}
}

static enum gc_whose whose(struct fixture *f, const struct image_thread *t)
{
	cr_assert_eq(walk_host_run(f->w, &f->img->vm.mem, t->ec), RBPF_OK);
	return gc_whose(f->w);
}

static bool is_mine(struct fixture *f, const struct image_thread *t)
{
	return whose(f, t) == GC_OF_THIS;
}

/* A ractor collects its own objspace, whoever has the VM's lock. */
Test(walk, whose_collection_it_is_of_several_objspaces)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread other = image_thread(f.img, 4096);

		if (f.img->facts.th_ractor) {
			image_run(&f.t);
			image_put64(f.img, f.img->vm.vm + f.img->facts.vm_lock_owner,
				    f.img->object);
			cr_expect_not(is_mine(&f, &f.t), "%s", f.img->version);
			f.w->gc.of_several = 1;
			cr_expect(is_mine(&f, &f.t), "%s", f.img->version);
			cr_expect_not(is_mine(&f, &other), "%s", f.img->version);
		}
		teardown(&f);
	}
}

/* Which thread holds the lock, and so is the one that collects. */
Test(walk, whose_collection_it_is)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread other = image_thread(f.img, 4096);

		cr_expect_not(is_mine(&f, &f.t), "%s: nobody's", f.img->version);
		image_run(&f.t);
		cr_expect(is_mine(&f, &f.t), "%s", f.img->version);
		cr_expect_not(is_mine(&f, &other), "%s", f.img->version);
		image_run(&other);
		cr_expect_not(is_mine(&f, &f.t), "%s", f.img->version);
		cr_expect(is_mine(&f, &other), "%s", f.img->version);

		f.w->layout.gc_owner = 0x5000;
		cr_expect_eq(whose(&f, &other), GC_OF_ANY, "%s: unreadable", f.img->version);
		f.w->layout.gc_owner = 0;
		cr_expect_eq(whose(&f, &other), GC_OF_ANY, "%s: not found", f.img->version);
		teardown(&f);
	}
}

/* With several ractors one of them holds the lock of the VM; each has a thread that runs. */
Test(walk, whose_collection_it_is_among_ractors)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		const struct image_facts *facts = &f.img->facts;
		uint64_t first = f.img->ractor, second = image_alloc(f.img, 768);
		uint64_t owner = f.img->vm.vm + facts->vm_lock_owner;
		struct image_thread other;

		if (!facts->th_ractor) {
			teardown(&f);
			continue;
		}
		image_run(&f.t);
		f.img->ractor = second;
		other = image_thread(f.img, 4096);
		image_run(&other);
		image_put64(f.img, owner, second);
		cr_expect_not(is_mine(&f, &f.t), "%s", f.img->version);
		cr_expect(is_mine(&f, &other), "%s", f.img->version);
		image_put64(f.img, owner, first);
		cr_expect(is_mine(&f, &f.t), "%s", f.img->version);
		cr_expect_not(is_mine(&f, &other), "%s", f.img->version);

		/* A thread of the right ractor, but not the one that runs. */
		image_put64(f.img, first + facts->gvl_owner, other.th);
		cr_expect_not(is_mine(&f, &f.t), "%s", f.img->version);
		image_put64(f.img, f.t.th + facts->th_ractor, 0x5000);
		image_put64(f.img, owner, 0x5000);
		cr_expect_eq(whose(&f, &f.t), GC_OF_ANY, "%s: unreadable", f.img->version);
		image_put64(f.img, owner, second);
		f.w->layout.ractor_running_ec = f.w->layout.ractor_gvl_owner = 0;
		cr_expect_eq(whose(&f, &other), GC_OF_ANY, "%s: not found", f.img->version);
		teardown(&f);
	}
}

/*
 * A thread that begins says that it runs before it has the GVL; nobody says so for the one that has
 * it.
 */
Test(walk, whose_collection_it_is_while_threads_begin)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		const struct image_facts *facts = &f.img->facts;
		struct image_thread begins = image_thread(f.img, 4096);
		enum gc_whose others = facts->runs_early ? GC_OF_ANY : GC_OF_ANOTHER;

		image_run(&f.t);
		if (facts->th_ractor) {
			image_put64(f.img, f.img->ractor + facts->running_ec, begins.ec);
			cr_expect(is_mine(&f, &f.t), "%s", f.img->version);
			cr_expect_not(is_mine(&f, &begins), "%s", f.img->version);

			/*
			 * Without the GVL's owner what it says has to do, though it proves nothing
			 * of the others: that may be looked for in the wrong place …
			 */
			image_put64(f.img, f.img->ractor + facts->gvl_owner, 0);
			cr_expect(is_mine(&f, &begins), "%s", f.img->version);
			cr_expect_eq(whose(&f, &f.t), others, "%s", f.img->version);
			image_put64(f.img, f.img->ractor + facts->gvl_owner, f.t.th);

			/* … or not at all. */
			f.w->layout.ractor_gvl_owner = 0;
			cr_expect_eq(whose(&f, &f.t), others, "%s", f.img->version);
			cr_expect(is_mine(&f, &begins), "%s", f.img->version);
		}
		teardown(&f);
	}
}

/* Wherever the ractor stands in the thread, before or behind its EC. */
Test(walk, whose_collection_it_is_by_another_member)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		const struct image_facts *facts = &f.img->facts;
		const uint16_t places[] = { 16, facts->th_ec + 8, facts->th_ec + 56 };

		image_run(&f.t);
		for (size_t i = 0; i < 3 && facts->th_ractor; i++) {
			image_put64(f.img, f.t.th + facts->th_ractor, f.img->vm.vm);
			image_put64(f.img, f.t.th + places[i], f.img->ractor);
			cr_expect_not(is_mine(&f, &f.t), "%s: that is the VM", f.img->version);
			f.w->layout.th_ractor = places[i];
			cr_expect(is_mine(&f, &f.t), "%s: at %u", f.img->version, places[i]);
			f.w->layout.th_ractor = facts->th_ractor;
		}
		teardown(&f);
	}
}

/* A fiber collects for its thread, which says that it runs the fiber. */
Test(walk, collection_in_a_fiber)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		struct image_thread fiber;

		image_run(&f.t);
		fiber = image_fiber(&f.t, 4096);
		image_run(&fiber);
		cr_expect(is_mine(&f, &fiber), "%s", f.img->version);
		teardown(&f);
	}
}

/* ---- what tells an iseq from another one later ---- */

static uint64_t image_method_iseq(struct fixture *f, const char *label, uint64_t *me)
{
	uint64_t iseq = image_iseq(
		f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = label });

	*me = image_method(f->img, f->img->object, label, iseq);
	return iseq;
}

static uint64_t user_check(struct fixture *f, uint64_t iseq, uint64_t me)
{
	struct ruby_method m;
	struct ruby_iseq q;
	uint64_t check = 0;

	if (iseq) {
		cr_assert_eq(ruby_iseq_read(&f->img->vm, iseq, &q), 0);
		check = ruby_iseq_words_check(&q);
		ruby_iseq_deinit(&q);
	}
	if (me) {
		cr_assert_eq(ruby_method_read(&f->img->vm, me, !iseq, &m), 0);
		check = ruby_method_words_check(&m, check);
		ruby_method_deinit(&m);
	}
	return check;
}

static void expect_checks(struct fixture *f, const uint64_t *want, uint32_t n, const char *why)
{
	cr_assert_eq(run(f), RBPF_OK);
	cr_assert_eq(f->w->n_frames, n);
	for (uint32_t i = 0; i < n; i++)
		cr_expect_eq(f->w->frames[i].check, want[i], "%s: %s: frame %u", f->img->version,
			     why, i);
}

/*
 * Taken of each iseq once an era, in the outermost frame that has it, and of each C function:
 * nothing says that they are old.
 */
Test(walk, checks)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me[3], foo = image_method_iseq(&f, "foo", &me[0]);
		uint64_t bar = image_method_iseq(
			&f, "a_name_that_does_not_fit_into_a_string_of_any_of_these_versions",
			&me[1]);
		uint64_t puts = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC), ep;

		ep = image_push_method(&f.t, foo, image_pc(f.img, foo, 1), me[0]);
		image_push_block(&f.t, foo, image_pc(f.img, foo, 2), ep);
		image_push_method(&f.t, bar, image_pc(f.img, bar, 1), 0);
		image_push_method(&f.t, bar, image_pc(f.img, bar, 1), me[1]);
		image_push_cfunc(&f.t, puts);

		const uint64_t all[5] = { user_check(&f, 0, puts), 0, user_check(&f, bar, 0), 0,
					  user_check(&f, foo, me[0]) };
		const uint64_t again[5] = { user_check(&f, 0, puts) };

		expect_checks(&f, all, 5, "the first time");
		expect_checks(&f, again, 5, "the second time");
		walk_host_seed(f.w, 100 + 7);
		expect_checks(&f, all, 5, "after a collection");
		walk_host_seed(f.w, 1);
		expect_checks(&f, all, 5, "in another epoch");
		teardown(&f);
	}
}

/*
 * From 3.3 on that an iseq is old proves as much as a check, where major collections are not known.
 */
Test(walk, checks_of_old_iseqs)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me, foo = image_method_iseq(&f, "foo", &me);

		image_age(f.img, foo, true);
		image_push_method(&f.t, foo, image_pc(f.img, foo, 1), me);

		const uint64_t want[1] = { f.img->facts.old_flags == 0x60 ? user_check(&f, foo, me)
									  : 0 };

		expect_checks(&f, want, 1, "old");
		teardown(&f);
	}
}

/* Of what is old it is taken once between two major collections, for nothing else frees it. */
Test(walk, checks_between_major_collections)
{
	FOR_EACH_VERSION(v)
	for (int old = 0; old < 2; old++) {
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me, foo = image_method_iseq(&f, "foo", &me);
		uint64_t puts = image_ment(f.img, f.img->object, "puts", IMAGE_CFUNC);

		image_push_method(&f.t, foo, image_pc(f.img, foo, 1), me);
		image_push_cfunc(&f.t, puts);
		image_age(f.img, foo, old);
		image_age(f.img, puts, old);

		const bool no_age = f.img->facts.old_flags == 0x60;
		const uint64_t all[2] = { user_check(&f, 0, puts), user_check(&f, foo, me) };
		const uint64_t none[2] = { 0, 0 };
		const uint64_t by_age[2] = { all[0], old && !no_age ? 0 : all[1] };

		f.w->old_seed = 77;
		expect_checks(&f, all, 2, "the first time");
		walk_host_seed(f.w, 8);
		expect_checks(&f, old ? none : all, 2, "after a minor collection");
		walk_host_seed(f.w, 9);
		f.w->old_seed = 78;
		expect_checks(&f, all, 2, "after a major collection");
		walk_host_seed(f.w, 10);
		f.w->old_seed = 0;
		expect_checks(&f, by_age, 2, "it is not known of which");
		teardown(&f);
	}
}

/* A pc that was not saved tells nothing: the check is taken each time. */
Test(walk, checks_of_stale_frames)
{
	FOR_EACH_VERSION(v)
	for (int old = 0; old < 2; old++) {
		struct fixture f = setup(image_versions[v].minor, 4096, RBPF_MAX_FRAMES);
		uint64_t me, foo = image_method_iseq(&f, "foo", &me);

		if (f.img->facts.cf_jit_return) {
			const uint64_t want[1] = { user_check(&f, foo, 0) };

			image_age(f.img, foo, old);
			push_jit(&f.t, foo, 0x5000, JIT_RETURN);
			expect_checks(&f, want, 1, "the first time");
			expect_checks(&f, want, 1, "the second time");
		}
		teardown(&f);
	}
}

Test(walk, checks_that_cannot_be_taken)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t me, foo = image_method_iseq(&f, "foo", &me), body = image_body(f.img, foo);
	uint64_t label = image_get64(f.img, body + 80), none[1] = { 0 };

	image_push_method(&f.t, foo, image_pc(f.img, foo, 1), me);
	const struct {
		uint64_t at, value;
	} bad[] = { { f.t.cfp + 16, 0x5000 }, { foo + 16, 0x5000 }, { body + 80, 0x5000 } };

	for (size_t i = 0; i < 3; i++) {
		uint64_t before = image_get64(f.img, bad[i].at);

		image_put64(f.img, bad[i].at, bad[i].value);
		walk_host_seed(f.w, i);
		expect_checks(&f, none, 1, "unreadable");
		image_put64(f.img, bad[i].at, before);
	}
	/* A long text whose bytes are gone. */
	image_put64(f.img, label, IMAGE_T_STRING | IMAGE_NOEMBED);
	image_put64(f.img, label + 24, 0x5000);
	walk_host_seed(f.w, 10);
	expect_checks(&f, none, 1, "text unreadable");
	image_put64(f.img, label + 16, 0);
	walk_host_seed(f.w, 11);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_neq(f.w->frames[0].check, 0, "of an empty text nothing is read");
	teardown(&f);
}

/* ---- ruby_walk() ---- */

Test(walk, in_user_space)
{
	struct ruby_stack stack = { .n_frames = 77 }, again;
	struct fixture f = setup("3.3", 65536, RBPF_MAX_FRAMES);
	uint64_t mes[7] = { 0 };

	push_methods(&f, 300, 0, mes);
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->vm.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_OK);
	cr_expect_eq(stack.n_frames, 100);
	cr_expect(!stack.frames[75].iseq && !stack.frames[75].me && stack.frames[75].pc == 300 - 99,
		  "the mark says how many are left out");
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->vm.walk, f.t.ec, 100, &again), 0);
	cr_expect_eq(stack.hash, again.hash);
	cr_expect_arr_eq(stack.frames, again.frames, 100 * sizeof(*stack.frames));
	ruby_stack_deinit(&again);
	ruby_stack_deinit(&stack);
	cr_expect_null(stack.frames);
	ruby_stack_deinit(&stack);

	image_hide_all(f.img, true);
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->vm.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_FAULT_EC, "a status is a result");
	cr_expect_eq(stack.n_frames, 0);
	ruby_stack_deinit(&stack);
	teardown(&f);
}

/* Push a frame each of as many different iseqs as are sent, which have one body. */
static void push_iseqs(struct fixture *f)
{
	const uint64_t one = image_iseq(f->img, &(struct image_iseq) { .label = "m" });
	const size_t size = RUBY_ISEQ_WORDS * 8;
	const uint64_t all = image_region(f->img, RBPF_MAX_FRAMES * size);

	for (uint64_t i = 0; i < RBPF_MAX_FRAMES; i++) {
		memcpy(image_at(f->img, all + i * size, size), image_at(f->img, one, size), size);
		image_push_method(&f->t, all + i * size, PC(i), 0);
	}
}

/* A stack that takes many reads is read up to a limit, which no process can move. */
Test(walk, in_user_space_within_a_budget)
{
	struct fixture f = setup("3.3", 1 << 17, RBPF_MAX_FRAMES);
	struct memory_budget budget = { .left = 100 * MEMORY_CALL_COST };
	struct memory mem = f.img->vm.mem;
	struct ruby_stack stack;

	push_iseqs(&f);
	f.img->n_reads = f.img->n_spans = 0;
	cr_assert_eq(ruby_walk(&mem, &f.img->vm.walk, f.t.ec, RBPF_MAX_FRAMES, &stack), 0);
	cr_expect_eq(stack.status, RBPF_FAULT_STACK, "and that is told");
	cr_expect_leq(f.img->n_reads * MEMORY_CALL_COST + f.img->n_spans * MEMORY_SPAN_COST,
		      RUBY_WALK_BYTES, "%zu reads", f.img->n_reads);
	ruby_stack_deinit(&stack);

	cr_assert_eq(ruby_walk(&mem, &f.img->vm.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_OK, "a usual one is not");
	ruby_stack_deinit(&stack);

	mem.budget = &budget;
	f.img->n_reads = 0;
	cr_assert_eq(ruby_walk(&mem, &f.img->vm.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_FAULT_STACK);
	cr_expect_leq(f.img->n_reads, 100, "the budget of who asks holds");
	ruby_stack_deinit(&stack);
	teardown(&f);
}

/* ---- anything ---- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Fill the VM stack of @t with words as a VM has them, in places where a VM does not. */
static void random_stack(struct fixture *f, const struct image_thread *t, uint64_t *seed)
{
	for (uint64_t a = t->lo; a < t->hi; a += 8) {
		uint64_t r = next_random(seed), v = 0;

		switch (r % 9) {
		case 0: /* into the stack, or near it */
		case 1:
			v = (t->lo + next_random(seed) % (t->hi - t->lo + 64) - 32) & ~7ull;
			break;
		case 2:
			v = 0x11110001ull * (r >> 8 & 7) + (r >> 16 & 0xfff);
			break;
		case 3:
			v = (t->ec + (r >> 8) % 512) & ~7ull;
			break;
		case 4:
			v = next_random(seed) & ~7ull;
			break;
		case 5:
			v = IMAGE_IMEMO(r >> 8 & 0xf);
			break;
		case 6: /* one of a few frames: ZJIT's, or a C function's */
			v = r & 0x100 ? 1 : image_zjit_frame(f->img, CODE(r >> 10 & 3), PC(1));
			break;
		}
		image_put64(f->img, a, v);
	}
	image_put64(f->img, t->ec + 16,
		    t->hi - (next_random(seed) % 30 + 1) * f->img->facts.cf_size);
}

/* The walk ends, within its bounds, and says what the plain walk says. */
Test(walk, random_memory)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	int compared = 0;

	for (int round = 0; round < 4000; round++) {
		struct fixture f = setup(image_versions[round % IMAGE_VERSIONS].minor,
					 512 + (size_t)(round % 5) * 512,
					 RBPF_MIN_FRAMES + (uint32_t)next_random(&seed) % 100);
		struct image_thread t = f.t;

		for (uint64_t fibers = next_random(&seed) % 4; fibers; fibers--) {
			random_stack(&f, &t, &seed);
			t = image_fiber(&t, 512);
		}
		random_stack(&f, &t, &seed);
		if (f.img->facts.zjit_frames)
			image_zjit_on(f.img, round & 8);
		if (round % 16 == 0)
			image_hide(f.img, t.lo + next_random(&seed) % (t.hi - t.lo), 1, true);
		if (run_fiber(&f, &t) == RBPF_OK) {
			const char *problem = naive_compare(f.w, &f.img->vm.mem, t.ec);

			compared++;
			cr_assert_null(problem, "round %d (%s): the plain walk differs in %s",
				       round, f.img->version, problem);
		}
		cr_assert_leq(walk_host.reads, 5000, "round %d: %zu reads", round, walk_host.reads);
		teardown(&f);
	}
	cr_expect_gt(compared, 3000, "%d compared", compared);
}
