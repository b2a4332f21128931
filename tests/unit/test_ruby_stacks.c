/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stack that goes on from a checkpoint is the one that it would be if all its frames had been
 * sent: random stacks are defined in both ways, and must be one and the same stack of the
 * recording.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_sink.h"
#include "sample/process_table.h"
#include "sample/ruby_stacks.h"
#include "support/ring_frames.h"
#include "support/ruby_image.h"

#define KINDS	  9
#define MAX_DEPTH 120
#define MAX_KNOWN 4096

struct fixture {
	struct ruby_image *img;
	struct tracked_process p;
	struct ruby_generation now, before;
	struct ruby_stacks_buffers buffers;
	struct profile_sink out;
	struct rbpf_frame kinds[KINDS];
	uint64_t unmapped; /* what cannot be named yet, and … */
	uint64_t next;	   /* fingerprint */
	unsigned int seed;

	/* what the BPF programs would have sent */
	struct {
		struct rbpf_frame frames[MAX_DEPTH];
		size_t n;
		uint64_t fingerprint;
	} known[MAX_KNOWN];
	size_t n_known;
};

static struct rbpf_frame ruby(struct fixture *f, const char *label, const char *path, uint32_t type,
			      uint32_t line)
{
	uint64_t iseq = image_iseq(
		f->img, &(struct image_iseq) {
				.type = type, .label = label, .path = path, .first_line = line });

	return (struct rbpf_frame) { .iseq = iseq, .pc = image_pc(f->img, iseq, 2) };
}

static struct fixture *setup(const char *version, unsigned int seed)
{
	const struct profile_sink_options opts = { .keep_samples = false };
	struct fixture *f = calloc(1, sizeof(*f));

	cr_assert_not_null(f);
	f->img = image_new(version);
	f->seed = seed;
	f->next = 1000;
	f->p.vm = &f->img->vm;
	cr_assert_eq(resolver_new(f->p.vm, &f->p.resolver), 0);
	cr_assert_eq(profile_sink_init(&f->out, &opts), 0);
	f->kinds[0] = ruby(f, "foo", "/a.rb", RUBY_ISEQ_METHOD, 7);
	f->kinds[1] = ruby(f, "bar", "/b.rb", RUBY_ISEQ_METHOD, 9);
	f->kinds[2] = ruby(f, "rescue in foo", "/a.rb", RUBY_ISEQ_RESCUE, 8);
	f->kinds[3] = ruby(f, "each", "<internal:array>", RUBY_ISEQ_METHOD, 3);
	f->kinds[4].me = image_ment(f->img, f->img->object, "map", IMAGE_CFUNC);
	f->kinds[5].me = image_ment(f->img, f->img->object, "puts", IMAGE_CFUNC);
	f->kinds[6].pc = 33; /* cut */
	/* kinds[7]: a fiber */
	f->kinds[8] = ruby(f, "late", "/c.rb", RUBY_ISEQ_METHOD, 1);
	f->unmapped = image_get64(f->img, f->kinds[8].iseq);
	image_put64(f->img, f->kinds[8].iseq, 0);
	return f;
}

static void teardown(struct fixture *f)
{
	profile_sink_deinit(&f->out);
	ruby_generation_deinit(&f->now);
	ruby_generation_deinit(&f->before);
	ruby_stacks_buffers_deinit(&f->buffers);
	resolver_free(f->p.resolver);
	free(f->p.frame_ids);
	image_free(f->img);
	free(f);
}

static struct rbpf_frame random_frame(struct fixture *f)
{
	struct rbpf_frame frame = f->kinds[(unsigned int)rand_r(&f->seed) % KINDS];

	if (rand_r(&f->seed) % 4 == 0 && frame.iseq | frame.me)
		frame.pc |= RBPF_PC_FINISH;
	return frame;
}

/* The fingerprint of the outermost @n of @frames, which end at @end; 0: none was sent. */
static uint64_t sent(const struct fixture *f, const struct rbpf_frame *end, size_t n)
{
	for (size_t i = 0; i < f->n_known; i++)
		if (f->known[i].n == n && !memcmp(f->known[i].frames, end - n, n * sizeof(*end)))
			return f->known[i].fingerprint;
	return 0;
}

/* Define @n frames, with or without checkpoints. */
static const struct ruby_definition *define(struct fixture *f, const struct rbpf_frame *frames,
					    size_t n, bool share)
{
	union {
		struct rbpf_ring_stack rec;
		uint8_t bytes[sizeof(struct rbpf_ring_stack) + MAX_DEPTH * 40];
	} u = { 0 };
	const struct rbpf_frame *end = frames + n;
	const struct ruby_definition *def;
	__u64 *words;
	uint32_t lost = f->p.lost_names.lost;
	size_t size, k;

	u.rec.h.ts = 1; /* all in one window */
	u.rec.stack = ++f->next;
	for (k = (n - 1) / RBPF_CHECKPOINT; share && k && !u.rec.outer; k--) {
		u.rec.outer = sent(f, end, k * RBPF_CHECKPOINT);
		u.rec.n_outer = u.rec.outer ? (uint32_t)k * RBPF_CHECKPOINT : 0;
	}
	u.rec.n_frames = (uint32_t)n - u.rec.n_outer;
	words = ring_frames(&u.rec + 1, frames, u.rec.n_frames);
	for (k = u.rec.n_outer + RBPF_CHECKPOINT; share && k < n; k += RBPF_CHECKPOINT) {
		cr_assert_lt(f->n_known, MAX_KNOWN);
		f->known[f->n_known].n = k;
		memcpy(f->known[f->n_known].frames, end - k, k * sizeof(*end));
		f->known[f->n_known].fingerprint = words[u.rec.n_checkpoints++] = ++f->next;
		f->n_known++;
	}
	size = (size_t)((uint8_t *)(words + u.rec.n_checkpoints) - u.bytes);
	cr_assert_eq(ruby_stacks_define(&f->now, &f->before, &f->buffers, &f->out.sink, &f->p,
					&u.rec, size),
		     0);
	def = ruby_stacks_find(&f->now, u.rec.stack);
	cr_assert_eq(f->p.lost_names.lost - lost, def && def->flags & SAMPLE_UNRESOLVED);
	return def;
}

/* Both ways must lead to the same frames with the same properties. */
static void expect_the_same(struct fixture *f, const struct rbpf_frame *frames, size_t n)
{
	static struct ruby_frame one[MAX_DEPTH], other[MAX_DEPTH];
	const struct ruby_definition *def = define(f, frames, n, true);
	struct ruby_definition shared, whole;

	cr_assert_not_null(def);
	shared = *def;
	def = define(f, frames, n, false);
	cr_assert_not_null(def);
	whole = *def;
	cr_assert_eq(shared.n, whole.n);
	cr_assert_eq(shared.flags, whole.flags);
	memset(one, 0, sizeof(one));
	memset(other, 0, sizeof(other));
	ruby_stacks_frames(&f->now, &shared, one);
	ruby_stacks_frames(&f->now, &whole, other);
	for (uint32_t i = 0; i < whole.n; i++) {
		cr_assert_eq(one[i].frame, other[i].frame, "frame %u of %u", i, whole.n);
		cr_assert_eq(one[i].merge.finish, other[i].merge.finish, "frame %u", i);
		cr_assert_eq(one[i].merge.function, other[i].merge.function, "frame %u", i);
	}
}

static void next_generation(struct fixture *f)
{
	ruby_generation_deinit(&f->before);
	f->before = f->now;
	f->now = (struct ruby_generation) { 0 };
}

/* What happens between two samples, now and then. */
static void something_happens(struct fixture *f)
{
	switch (rand_r(&f->seed) % 60) {
	case 0:
		next_generation(f);
		break;
	case 1: /* as tracked_process_forget_names() */
		resolver_free(f->p.resolver);
		cr_assert_eq(resolver_new(f->p.vm, &f->p.resolver), 0);
		memset(f->p.frame_ids, 0, f->p.cap_frame_ids * sizeof(*f->p.frame_ids));
		f->p.names_made++;
		break;
	case 2: /* what could not be named can be */
		image_put64(f->img, f->kinds[8].iseq, f->unmapped);
		break;
	default:
		break;
	}
	resolver_revalidate(f->p.resolver);
}

static void run(const char *version, unsigned int seed)
{
	struct fixture *f = setup(version, seed);
	struct rbpf_frame frames[MAX_DEPTH];
	size_t n = 0, keep, i, bottom;

	for (i = 0; i < 150; i++) {
		/* The outer frames of the one before, and others inside of them. */
		keep = n ? (size_t)rand_r(&f->seed) % n : 0;
		bottom = keep + 1 + (size_t)rand_r(&f->seed) % (MAX_DEPTH - keep);
		memmove(frames + bottom - keep, frames + n - keep, keep * sizeof(*frames));
		for (n = bottom, bottom -= keep; bottom--;)
			frames[bottom] = random_frame(f);
		expect_the_same(f, frames, n);
		something_happens(f);
		/* Nothing refers to what two generations ago was sent. */
		if (i % 40 == 39) {
			next_generation(f);
			f->n_known = 0;
		}
	}
	teardown(f);
}

Test(ruby_stacks, any_stack)
{
	static const char *const versions[] = { "2.7", "3.1", "3.3", "4.0", "4.1" };

	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)
		for (unsigned int seed = 1; seed <= 3; seed++)
			run(versions[v], seed);
}

/* As the ring would have it: @words follow. */
struct definition {
	struct rbpf_ring_stack rec;
	__u64 words[(RBPF_CHECKPOINT + 2) * RBPF_FRAME_WORDS];
};

static int define_raw(struct fixture *f, const struct definition *d, const __u64 *end)
{
	return ruby_stacks_define(&f->now, &f->before, &f->buffers, &f->out.sink, &f->p, &d->rec,
				  (size_t)((const uint8_t *)end - (const uint8_t *)d));
}

/* The definition of a checkpoint was lost: so is the stack. */
Test(ruby_stacks, checkpoint_that_is_not_known)
{
	struct fixture *f = setup("3.3", 1);
	struct definition d = {
		.rec = { .stack = 1, .outer = 99, .n_outer = RBPF_CHECKPOINT, .n_frames = 1 }
	};
	const __u64 *end = ring_frames(d.words, &f->kinds[0], 1);
	struct rbpf_frame frames[RBPF_CHECKPOINT + 1];

	cr_expect_eq(define_raw(f, &d, end), 0);
	cr_expect_null(ruby_stacks_find(&f->now, 1));
	/* One with another number of frames is another one. */
	for (size_t i = 0; i <= RBPF_CHECKPOINT; i++)
		frames[i] = f->kinds[0];
	cr_expect_not_null(define(f, frames, RBPF_CHECKPOINT + 1, true));
	d.rec.outer = f->known[0].fingerprint;
	d.rec.n_outer = 2 * RBPF_CHECKPOINT;
	cr_expect_eq(define_raw(f, &d, end), 0);
	cr_expect_null(ruby_stacks_find(&f->now, 1));
	d.rec.n_outer = RBPF_CHECKPOINT;
	cr_expect_eq(define_raw(f, &d, end), 0);
	cr_assert_not_null(ruby_stacks_find(&f->now, 1));
	cr_expect_eq(ruby_stacks_find(&f->now, 1)->n, RBPF_CHECKPOINT + 1);
	teardown(f);
}

/* As many frames and checkpoints as it says, and no more. */
Test(ruby_stacks, malformed)
{
	struct fixture *f = setup("3.3", 1);
	struct definition d = {
		.rec = { .stack = 1, .n_frames = RBPF_CHECKPOINT + 1, .n_checkpoints = 1 }
	};
	struct rbpf_frame frames[RBPF_CHECKPOINT + 1];
	__u64 *end;

	for (size_t i = 0; i <= RBPF_CHECKPOINT; i++)
		frames[i] = f->kinds[0];
	end = ring_frames(d.words, frames, RBPF_CHECKPOINT + 1) + 1;
	cr_expect_eq(define_raw(f, &d, end), 0);
	cr_expect_eq(define_raw(f, &d, end - 1), -EPROTO, "a frame is cut");
	cr_expect_eq(define_raw(f, &d, end + 1), -EPROTO, "a word is left");
	cr_expect_eq(define_raw(f, &d, (const __u64 *)&d.rec + 2), -EPROTO);
	d.rec.n_frames--;
	cr_expect_eq(define_raw(f, &d, end - 2), -EPROTO, "no frame is inside of the checkpoint");
	d.rec.n_frames = UINT32_MAX;
	cr_expect_eq(define_raw(f, &d, end), -EPROTO);
	d.rec.n_frames = 1;
	d.rec.n_checkpoints = UINT32_MAX;
	cr_expect_eq(define_raw(f, &d, end), -EPROTO);
	teardown(f);
}
