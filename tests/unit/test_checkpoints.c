/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which outer frames of a stack the BPF programs leave out of its definition: those that they have
 * sent before, and nothing else.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/ruby_image.h"
#include "support/walk_host.h"

#define SEED 77

struct fixture {
	struct ruby_image *img;
	struct walk *w;
	uint64_t iseqs[4];
};

static void setup(struct fixture *f)
{
	static const char *const labels[] = { "a", "b", "c", "d" };
	size_t i;

	*f = (struct fixture) { .img = image_new("3.3") };
	for (i = 0; i < 4; i++)
		f->iseqs[i] = image_iseq(f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
									.label = labels[i] });
	f->w = walk_host_new(&f->img->vm.walk, RBPF_MAX_FRAMES);
	walk_may_read(f->w);
	walk_host.mem = &f->img->vm.mem;
	memset(walk_host.checkpoints, 0, sizeof(walk_host.checkpoints));
}

static void teardown(struct fixture *f)
{
	free(f->w);
	image_free(f->img);
}

/* Of @n outermost frames so many are in checkpoints. */
#define COVERED(n) ((n) / RBPF_CHECKPOINT * RBPF_CHECKPOINT)
/* A stack of @n frames has so many checkpoints, as the innermost frame is in none. */
#define POINTS(n)  (((n)-1) / RBPF_CHECKPOINT)

/* @n frames, of which the outermost @same are those of any other such stack. */
static void stack(struct fixture *f, uint32_t n, uint32_t same)
{
	uint32_t i, outer;

	f->w->n_frames = n;
	for (i = 0; i < n; i++) {
		outer = n - 1 - i;
		f->w->frames[i] = (struct rbpf_frame) {
			.iseq = f->iseqs[outer % 3],
			.pc = image_pc(f->img, f->iseqs[outer % 3], 0) + (outer < same ? 0 : 8 * n),
		};
	}
}

/*
 * Of the stack that was last sent: @outer frames were known, and the @n words at @words are its new
 * checkpoints.
 */
static void expect_checkpoints(const struct fixture *f, uint32_t outer, uint32_t checkpoints,
			       const __u64 *words, uint32_t n)
{
	const struct walk_checkpoints *c = &f->w->checkpoints;

	cr_expect_eq(c->n_outer, outer, "%u frames were known, not %u", c->n_outer, outer);
	cr_expect_eq(n, checkpoints, "%u new checkpoints, not %u", n, checkpoints);
	for (uint32_t i = 0; i < n; i++)
		cr_expect_eq(words[i], c->v[outer / RBPF_CHECKPOINT + i]);
}

static void expect_sent(struct fixture *f, uint64_t seed, uint32_t outer, uint32_t checkpoints)
{
	static struct rbpf_frame frames[RBPF_MAX_FRAMES];
	const __u64 *words = (const __u64 *)f->w->frames, *end;
	struct rbpf_frame got;
	uint32_t i, n;

	memcpy(frames, f->w->frames, f->w->n_frames * sizeof(*frames));
	n = walk_host_checkpoints(f->w, seed);
	end = words + f->w->n_words - n;
	expect_checkpoints(f, outer, checkpoints, end, n);
	for (i = 0; i < f->w->n_frames - outer; i++) {
		words += rbpf_frame_unpack(words, (uint64_t)(end - words), &got);
		cr_assert_eq(got.iseq, frames[i].iseq, "iseq of frame %u", i);
		cr_assert_eq(got.pc, frames[i].pc, "pc of frame %u", i);
		cr_assert_eq(got.me, frames[i].me & ME_TAG_MASK ? 0 : frames[i].me,
			     "method entry of frame %u", i);
	}
	cr_expect_eq(words, end, "%td words between the frames and their checkpoints", end - words);
}

Test(checkpoints, what_was_sent_is_left_out)
{
	struct fixture f;

	setup(&f);
	stack(&f, 100, 70);
	expect_sent(&f, SEED, 0, POINTS(100));
	stack(&f, 90, 70);
	expect_sent(&f, SEED, COVERED(70), POINTS(90) - POINTS(71));
	/* Of the second one, too. */
	stack(&f, 90, 70);
	expect_sent(&f, SEED, COVERED(89), 0);
	stack(&f, 75, 40);
	expect_sent(&f, SEED, COVERED(40), POINTS(75) - POINTS(41));
	teardown(&f);
}

/* How the innermost frame is named depends on nothing that is known. */
Test(checkpoints, the_innermost_frame_is_always_sent)
{
	struct fixture f;
	uint32_t n;

	setup(&f);
	stack(&f, 64, 64);
	expect_sent(&f, SEED, 0, POINTS(64));
	for (n = 1; n <= 64; n++) {
		stack(&f, n, 64);
		expect_sent(&f, SEED, COVERED(n - 1), 0);
	}
	teardown(&f);
}

Test(checkpoints, of_another_seed)
{
	struct fixture f;

	setup(&f);
	stack(&f, 100, 100);
	expect_sent(&f, SEED, 0, POINTS(100));
	stack(&f, 100, 100);
	expect_sent(&f, SEED + 1, 0, POINTS(100));
	stack(&f, 100, 100);
	expect_sent(&f, 0, 0, 0);
	teardown(&f);
}

/* Not one bit of a frame may differ: neither line, nor method, nor class. */
Test(checkpoints, each_member_of_a_frame_counts)
{
	struct fixture f;
	uint64_t me[2];
	int i;

	setup(&f);
	me[0] = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
	me[1] = image_ment(f.img, f.img->object, "map", IMAGE_CFUNC);
	for (i = 0; i < 4; i++) {
		stack(&f, 40, 40);
		f.w->frames[35].me = me[0];
		expect_sent(&f, SEED + (uint64_t)i, 0, POINTS(40));
		stack(&f, 40, 40);
		f.w->frames[35].me = me[i == 0];
		f.w->frames[35].pc += i == 1 ? 8 : 0;
		f.w->frames[35].iseq = i == 2 ? f.iseqs[3] : f.w->frames[35].iseq;
		if (i == 3)
			f.w->frames[35].iseq = 0;
		expect_sent(&f, SEED + (uint64_t)i, 0, POINTS(40));
	}
	teardown(&f);
}

/* Where a block's method is looked up differs by stack; which one that is does not. */
Test(checkpoints, put_off_method_entries)
{
	struct fixture f;

	setup(&f);
	stack(&f, 40, 40);
	f.w->frames[30].me = 0x7000 | ME_PENDING;
	expect_sent(&f, SEED, 0, POINTS(40));
	stack(&f, 40, 40);
	f.w->frames[30].me = 0x8000 | ME_PENDING;
	expect_sent(&f, SEED, COVERED(39), 0);
	teardown(&f);
}

/* A young object may be freed by any collection: what is inside of it is sent each time. */
Test(checkpoints, only_old_objects_last)
{
	struct fixture f;
	uint64_t old = RUBY_FL_PROMOTED_BOTH;
	size_t i;

	setup(&f);
	f.w->old_seed = 12345;
	for (i = 0; i < 3; i++)
		image_put64(f.img, f.iseqs[i], image_get64(f.img, f.iseqs[i]) | old);
	stack(&f, 100, 100);
	f.w->frames[100 - 1 - 40].iseq = f.iseqs[3];
	expect_sent(&f, SEED, 0, POINTS(41));
	cr_expect_eq(f.w->n_durable, 40);
	stack(&f, 100, 100);
	f.w->frames[100 - 1 - 40].iseq = f.iseqs[3];
	expect_sent(&f, SEED, COVERED(40), 0);
	cr_expect_eq(f.w->n_durable, 40);
	/* It has become old. */
	image_put64(f.img, f.iseqs[3], image_get64(f.img, f.iseqs[3]) | old);
	walk_host_seed(f.w, 1);
	stack(&f, 100, 100);
	f.w->frames[100 - 1 - 40].iseq = f.iseqs[3];
	expect_sent(&f, SEED, COVERED(40), POINTS(100) - POINTS(41));
	cr_expect_eq(f.w->n_durable, 100);
	teardown(&f);
}

/* In a program that hardly collects none is old. */
Test(checkpoints, young_ones_last_for_an_era)
{
	uint64_t old = RUBY_FL_PROMOTED_BOTH;
	struct fixture f;

	setup(&f);
	f.w->old_seed = 12345;
	stack(&f, 100, 100);
	expect_sent(&f, SEED, 0, POINTS(100));
	cr_expect_not(f.w->lasting);
	stack(&f, 90, 70);
	expect_sent(&f, SEED, COVERED(70), POINTS(90) - POINTS(71));
	cr_expect_eq(f.w->n_durable, 90);
	/* The outermost one tells, and if it cannot be read, it is not old. */
	image_put64(f.img, f.iseqs[0], image_get64(f.img, f.iseqs[0]) | old);
	walk_host_seed(f.w, 1);
	stack(&f, 100, 100);
	expect_sent(&f, SEED + 1, 0, 0);
	cr_expect(f.w->lasting);
	cr_expect_eq(f.w->n_durable, 1);
	stack(&f, 100, 100);
	f.w->frames[99].iseq = 0x5000;
	expect_sent(&f, SEED + 2, 0, POINTS(100));
	cr_expect_not(f.w->lasting);
	teardown(&f);
}

/* The same of a method entry, of a method in C or in Ruby. */
Test(checkpoints, only_old_method_entries_last)
{
	struct fixture f;
	uint64_t me, old = RUBY_FL_PROMOTED_BOTH;
	size_t i;

	setup(&f);
	me = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
	f.w->old_seed = 12345;
	for (i = 0; i < 3; i++)
		image_put64(f.img, f.iseqs[i], image_get64(f.img, f.iseqs[i]) | old);
	for (i = 0; i < 2; i++) {
		stack(&f, 100, 100);
		f.w->frames[50].me = me;
		f.w->frames[50].iseq *= i;
		expect_sent(&f, SEED + i, 0, POINTS(50));
		cr_expect_eq(f.w->n_durable, 49);
	}
	image_put64(f.img, me, image_get64(f.img, me) | old);
	for (i = 0; i < 2; i++) {
		stack(&f, 100, 100);
		f.w->frames[50].me = me;
		f.w->frames[50].iseq *= i;
		expect_sent(&f, SEED + i, COVERED(49), POINTS(100) - POINTS(50));
		cr_expect_eq(f.w->n_durable, 100);
	}
	teardown(&f);
}

/* How many frames user space is woken to read: of an iseq and of a method entry, once in an era. */
Test(checkpoints, frames_that_are_to_be_read)
{
	struct fixture f;
	uint64_t me[2];

	setup(&f);
	me[0] = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
	me[1] = image_ment(f.img, f.img->object, "map", IMAGE_CFUNC);
	stack(&f, 6, 6);
	expect_sent(&f, SEED, 0, 0);
	cr_expect_eq(f.w->n_new, 3, "%u of 3 iseqs", f.w->n_new);
	stack(&f, 6, 6);
	f.w->frames[2].me = me[0];
	expect_sent(&f, SEED, 0, 0);
	cr_expect_eq(f.w->n_new, 1, "a method entry");
	stack(&f, 6, 6);
	f.w->frames[2].me = f.w->frames[4].me = me[0];
	expect_sent(&f, SEED, 0, 0);
	cr_expect_eq(f.w->n_new, 0);
	stack(&f, 6, 6);
	f.w->frames[2].iseq = 0;
	f.w->frames[2].me = me[1];
	f.w->frames[4].iseq = f.iseqs[3];
	expect_sent(&f, SEED, 0, 0);
	cr_expect_eq(f.w->n_new, 2, "a method in C, and an iseq");
	walk_host_seed(f.w, 1);
	stack(&f, 6, 6);
	f.w->frames[2].me = me[0];
	expect_sent(&f, SEED, 0, 0);
	cr_expect_eq(f.w->n_new, 4, "in another era, all of them");
	teardown(&f);
}

/* Of an old one once, until the next major collection. */
Test(checkpoints, old_frames_are_read_once)
{
	uint64_t me, old = RUBY_FL_PROMOTED_BOTH;
	struct fixture f;

	setup(&f);
	me = image_ment(f.img, f.img->object, "each", IMAGE_CFUNC);
	f.w->old_seed = 12345;
	for (int i = 0; i < 2; i++)
		image_put64(f.img, f.iseqs[i], image_get64(f.img, f.iseqs[i]) | old);
	image_put64(f.img, me, image_get64(f.img, me) | old);
	for (uint64_t era = 0; era < 3; era++) {
		walk_host_seed(f.w, era);
		f.w->old_seed += era == 2;
		stack(&f, 6, 6);
		f.w->frames[2].iseq = 0;
		f.w->frames[2].me = me;
		expect_sent(&f, SEED, 0, 0);
		cr_expect_eq(f.w->n_new, era == 1 ? 1 : 4, "era %d: %u", (int)era, f.w->n_new);
	}
	teardown(&f);
}

/* There is room for all frames and the checkpoints behind them. */
Test(checkpoints, the_largest_stack)
{
	struct fixture f;

	setup(&f);
	stack(&f, RBPF_MAX_FRAMES, RBPF_MAX_FRAMES);
	expect_sent(&f, SEED, 0, RBPF_MAX_CHECKPOINTS - 1);
	stack(&f, RBPF_MAX_FRAMES, RBPF_MAX_FRAMES);
	expect_sent(&f, SEED, RBPF_MAX_FRAMES - RBPF_CHECKPOINT, 0);
	teardown(&f);
}

/* ---- native stacks ---- */

/* @n words, of which the outermost @same are those of any other such stack. */
static void native_stack(struct fixture *f, uint32_t n, uint32_t same)
{
	uint32_t i, outer;

	f->w->native.n_frames = n;
	for (i = 0; i < n; i++) {
		outer = n - 1 - i;
		f->w->native.frames[i] = 0x7000000 + outer % 5 + (outer < same ? 0 : 0x100 * n);
	}
}

static void expect_native_sent(struct fixture *f, uint64_t seed, uint32_t outer,
			       uint32_t checkpoints)
{
	const struct walk_native *native = &f->w->native;
	uint32_t n = walk_host_native_checkpoints(f->w, seed);

	expect_checkpoints(f, outer, checkpoints,
			   &native->frames[native->n_frames - f->w->checkpoints.n_outer], n);
}

Test(checkpoints, of_native_stacks)
{
	struct fixture f;
	uint32_t n;

	setup(&f);
	native_stack(&f, 100, 70);
	expect_native_sent(&f, SEED, 0, POINTS(100));
	native_stack(&f, 90, 70);
	expect_native_sent(&f, SEED, COVERED(70), POINTS(90) - POINTS(71));
	native_stack(&f, 75, 40);
	expect_native_sent(&f, SEED, COVERED(40), POINTS(75) - POINTS(41));
	/* One word that is another one, and there is nothing outside of it. */
	native_stack(&f, 75, 40);
	f.w->native.frames[74]++;
	expect_native_sent(&f, SEED, 0, POINTS(75));
	/* What is sent of the one leaves nothing to the next. */
	for (n = 1; n <= 64; n++) {
		native_stack(&f, n, 64);
		expect_native_sent(&f, SEED, COVERED(n - 1), 0);
	}
	native_stack(&f, 100, 70);
	expect_native_sent(&f, SEED + 1, 0, POINTS(100));
	teardown(&f);
}

/* Of another process, or where it ends for another reason, a word means something else. */
Test(checkpoints, native_ones_of_one_kind)
{
	struct fixture f;

	setup(&f);
	native_stack(&f, 40, 40);
	expect_native_sent(&f, SEED, 0, POINTS(40));
	native_stack(&f, 40, 40);
	expect_native_sent(&f, SEED + 1, 0, POINTS(40));
	f.w->native.end = RBPF_NATIVE_NO_RULE;
	native_stack(&f, 40, 40);
	expect_native_sent(&f, SEED, 0, POINTS(40));
	native_stack(&f, 40, 40);
	expect_native_sent(&f, SEED, COVERED(39), 0);
	teardown(&f);
}

/* With the kernel's frames and gaps there may be so many; the checkpoints stand behind them. */
Test(checkpoints, the_largest_native_stack)
{
	struct fixture f;
	uint32_t n = RBPF_MAX_NATIVE + RBPF_MAX_KERNEL + 2;

	setup(&f);
	native_stack(&f, n, n);
	expect_native_sent(&f, SEED, 0, POINTS(n));
	native_stack(&f, n, n);
	expect_native_sent(&f, SEED, n - 1, 0);
	teardown(&f);
}
