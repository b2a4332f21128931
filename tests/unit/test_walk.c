/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/walk.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"
#include "support/walk_naive.h"

/* Frames of the walker are compared by address only, so code need not exist. */
#define CODE(i) (0x100000ull + 0x11a8ull * (i))
#define PC(i)	(0x90000000ull + 8ull * (i))

static const char *const versions[] = { "3.1", "3.3" }; /* control frames of 64 and of 56 bytes */

#define FOR_EACH_VERSION(v) for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

static void assert_sane_walk(const struct walk *w)
{
	cr_assert_leq(w->n_frames, w->max_frames, "%u frames, %u allowed", w->n_frames,
		      w->max_frames);
	for (uint32_t i = 0; i < w->n_frames; i++) {
		const struct rbpf_frame *f = &w->frames[i];

		cr_assert(f->iseq || !f->pc || !f->me, "frame %u is of no kind", i);
		if (!f->iseq && !f->me)
			cr_assert_eq(f->pc, w->n_cut, "frame %u counts %llu, not %u", i,
				     (unsigned long long)f->pc, w->n_cut);
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
	f.w = walk_host_new(&f.img->layout.walk, max_frames);
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

/* Frame number @i from the root has iseq CODE(i), pc PC(i) and its own method entry every 7th time.
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
		check_depth(versions[v], depths[i], 0, RBPF_MAX_FRAMES);
}

Test(walk, values_beyond_the_window)
{
	FOR_EACH_VERSION(v)
	{
		check_depth(versions[v], 200, 50, RBPF_MAX_FRAMES); /* 85 KB of values */
		check_depth(versions[v], 20, 5000,
			    RBPF_MAX_FRAMES); /* each frame in its own window */
	}
}

Test(walk, around_the_cut)
{
	FOR_EACH_VERSION(v)
	{
		check_depth(versions[v], RBPF_MAX_FRAMES - 1, 0, RBPF_MAX_FRAMES);
		check_depth(versions[v], RBPF_MAX_FRAMES + 1, 0, RBPF_MAX_FRAMES);
		check_depth(versions[v], RBPF_MAX_FRAMES + 2, 0, RBPF_MAX_FRAMES);
		check_depth(versions[v], 10000, 0, RBPF_MAX_FRAMES);
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
	check_depth(versions[v], RBPF_MAX_FRAMES, 0, RBPF_MAX_FRAMES);
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

Test(walk, a_usual_stack_takes_four_reads)
{
	struct fixture f = setup("3.3", 65536, RBPF_MAX_FRAMES);
	uint64_t mes[7];

	for (int i = 0; i < 7; i++)
		mes[i] = image_ment(f.img, f.img->object, "m", IMAGE_ISEQ);
	push_methods(&f, 60, 3, mes);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.reads, 4 + 7, "%zu reads: EC, thread, frames, values; entries once",
		     walk_host.reads);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.reads, 4, "%zu reads: EC, thread, frames, values", walk_host.reads);
	cr_expect_eq(f.w->n_frames, 60);
	teardown(&f);
}

/* ---- frame kinds ---- */

Test(walk, last_slot_is_no_frame)
{
	FOR_EACH_VERSION(v)
	{
		struct fixture f = setup(versions[v], 4096, RBPF_MAX_FRAMES);

		cr_assert_eq(run(&f), RBPF_OK);
		cr_expect_eq(f.w->n_frames, 0);

		/* As on the main thread: a valid iseq and pc, CFRAME cleared; in any case by
		 * position. */
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
		struct fixture f = setup(versions[v], 4096, RBPF_MAX_FRAMES);
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
		expect_frame(f.w, 9, CODE(1), PC(1), 0);
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
		struct fixture f = setup(versions[v], 65536, RBPF_MAX_FRAMES);
		uint64_t me[7] = { 0 }, middle;

		push_methods(&f, 200, 0, me);
		image_hide(f.img, f.t.ec, 1, true);
		cr_expect_eq(run(&f), RBPF_FAULT_EC);
		image_hide(f.img, f.t.ec, 1, false);

		image_put64(f.img, f.t.ec + f.img->layout.walk.ec_thread_ptr, 8);
		cr_expect_eq(run(&f), RBPF_FAULT_EC, "its thread");
		image_put64(f.img, f.t.ec + f.img->layout.walk.ec_thread_ptr, f.t.th);

		image_hide(f.img, f.t.cfp, 8, true);
		cr_expect_eq(run(&f), RBPF_FAULT_STACK, "the first frames");
		image_hide(f.img, f.t.cfp, 8, false);

		middle = f.t.cfp + 150ull * f.img->layout.walk.cf_size;
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
	uint64_t th_ec = f.t.th + f.img->layout.walk.th_ec, cfp;

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
		struct fixture f = setup(versions[v], 4096, RBPF_MAX_FRAMES);
		uint32_t size = f.img->layout.walk.cf_size;
		uint64_t cfp;

		image_push_method(&f.t, CODE(0), PC(0), 0);
		cfp = f.t.cfp;
		const uint64_t bad[] = {
			cfp + 8,    cfp - 8, cfp + 1, f.t.hi, f.t.hi + size,	  f.t.lo - 8,
			f.t.hi - 8, 1,	     ~0ull,   ~7ull,  cfp + (1ull << 63), f.t.hi - size + 1
		};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			image_put64(f.img, f.t.ec + 16, bad[i]);
			cr_expect_eq(run(&f), RBPF_EC_RANGE, "%s: cfp %llx", versions[v],
				     (unsigned long long)bad[i]);
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
		uint64_t end = lo + 8 - f.img->layout.walk.cf_size;

		cfp = code + (end - code) % f.img->layout.walk.cf_size;
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

	fresh = walk_host_new(&f.img->layout.walk, 64);
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
	uint64_t mes[7], hashes[400], cfp, ep, env, save, a, b;
	uint32_t size = f.img->layout.walk.cf_size;
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
	save = f.w->epoch;
	f.w->epoch++;
	hashes[n++] = hash_of(&f);
	f.w->epoch = save;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(hashes[i], hashes[k], "stacks %zu and %zu", k, i);
	cr_expect_eq(hash_of(&f), hashes[n - 2], "and back");
	teardown(&f);
}

/*
 * Method entries are remembered for an epoch: what takes the place of one that was freed can pass
 * for it until then (the user side reads what it is given and finds no method entry), but no
 * longer.
 */
Test(walk, remembered_method_entries_end_with_the_epoch)
{
	struct fixture f = setup("3.3", 4096, RBPF_MAX_FRAMES);
	uint64_t first = image_ment(f.img, f.img->object, "first", IMAGE_ISEQ);
	uint64_t second = image_ment(f.img, f.img->object, "second", IMAGE_ISEQ);
	size_t before;

	image_push_method(&f.t, CODE(0), PC(0), first);
	cr_assert_eq(run(&f), RBPF_OK);
	before = walk_host.reads;
	expect_frame(f.w, 0, CODE(0), PC(0), first);

	/* An svar now stands at that address. */
	image_put64(f.img, first, IMAGE_IMEMO(IMAGE_SVAR));
	image_put64(f.img, first + 8, second);
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.reads, before - 1, "remembered: not read again");
	expect_frame(f.w, 0, CODE(0), PC(0), first);

	f.w->epoch = f.w->epoch * 31 + 7;
	cr_assert_eq(run(&f), RBPF_OK);
	cr_expect_eq(walk_host.reads, before, "read again");
	expect_frame(f.w, 0, CODE(0), PC(0), second);
	teardown(&f);
}

/* ---- ruby_walk() ---- */

Test(walk, in_user_space)
{
	struct ruby_stack stack = { .n_frames = 77 }, again;
	struct fixture f = setup("3.3", 65536, RBPF_MAX_FRAMES);
	uint64_t mes[7] = { 0 };

	push_methods(&f, 300, 0, mes);
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->layout.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_OK);
	cr_expect_eq(stack.n_frames, 100);
	cr_expect_eq(stack.n_cut, 300 - 99);
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->layout.walk, f.t.ec, 100, &again), 0);
	cr_expect_eq(stack.hash, again.hash);
	cr_expect_arr_eq(stack.frames, again.frames, 100 * sizeof(*stack.frames));
	ruby_stack_deinit(&again);
	ruby_stack_deinit(&stack);
	cr_expect_null(stack.frames);
	ruby_stack_deinit(&stack);

	image_hide_all(f.img, true);
	cr_assert_eq(ruby_walk(&f.img->vm.mem, &f.img->layout.walk, f.t.ec, 100, &stack), 0);
	cr_expect_eq(stack.status, RBPF_FAULT_EC, "a status is a result");
	cr_expect_eq(stack.n_frames, 0);
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

/* Words as a VM has them, in places where a VM does not: the walk ends, within its bounds. */
Test(walk, random_memory)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	int compared = 0;

	for (int round = 0; round < 3000; round++) {
		struct fixture f = setup(versions[round & 1], 512 + (size_t)(round % 5) * 512,
					 RBPF_MIN_FRAMES + (uint32_t)next_random(&seed) % 100);
		uint64_t depth = next_random(&seed) % 30;

		for (uint64_t a = f.t.lo; a < f.t.hi; a += 8) {
			uint64_t r = next_random(&seed), v = 0;

			switch (r % 8) {
			case 0: /* into the stack, or near it */
			case 1:
				v = (f.t.lo + next_random(&seed) % (f.t.hi - f.t.lo + 64) - 32) &
				    ~7ull;
				break;
			case 2:
				v = 0x11110001ull * (r >> 8 & 7) + (r >> 16 & 0xfff);
				break;
			case 3:
				v = (f.t.ec + (r >> 8) % 512) & ~7ull;
				break;
			case 4:
				v = next_random(&seed) & ~7ull;
				break;
			case 5:
				v = IMAGE_IMEMO(r >> 8 & 0xf);
				break;
			}
			image_put64(f.img, a, v);
		}
		image_put64(f.img, f.t.ec + 16, f.t.hi - (depth + 1) * f.img->layout.walk.cf_size);
		if (round % 16 == 0)
			image_hide(f.img, f.t.lo + next_random(&seed) % (f.t.hi - f.t.lo), 1, true);
		if (run(&f) == RBPF_OK) {
			const char *problem = naive_compare(f.w, &f.img->vm.mem, f.t.ec);

			compared++;
			cr_assert_null(problem, "round %d: the plain walk differs in %s", round,
				       problem);
		}
		cr_assert_leq(walk_host.reads, 5000, "round %d: %zu reads", round, walk_host.reads);
		teardown(&f);
	}
	cr_expect_gt(compared, 1000);
}
