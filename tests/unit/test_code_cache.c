/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"
#include "symbol/code_cache.h"
#include "target/gathered.h"

struct fixture {
	struct ruby_image *img;
	struct code_cache c;
	struct code_ref ref; /* of the last frame that was looked at */
};

static struct fixture setup(const char *version)
{
	struct fixture f = { .img = image_new(version) };

	code_cache_init(&f.c, &f.img->vm);
	return f;
}

static void teardown(struct fixture *f)
{
	code_cache_deinit(&f->c);
	code_cache_deinit(&f->c);
	image_free(f->img);
}

/* Let @era be the one of the heap: so many collections have begun to free objects, and one more. */
static void set_era(struct fixture *f, uint64_t era)
{
	image_gc_count(f->img, era - 1);
	image_gc_flags(f->img, 0);
}

static struct stack_era at(uint64_t era)
{
	return (struct stack_era) { .gc_era = era };
}

static struct stack_era moving_at(uint64_t era)
{
	return (struct stack_era) { .gc_era = era, .gc_transition = true };
}

static void assert_sane_ref(const struct fixture *f, const struct rbpf_frame *frame,
			    const struct code_ref *ref)
{
	cr_assert_eq(ref->iseq == PROFILE_NONE, !frame->iseq);
	cr_assert_eq(ref->method == PROFILE_NONE, !frame->me);
	cr_assert(!ref->iseq_ok || f->c.iseqs[ref->iseq].known.version, "proven, but not known");
	cr_assert(!ref->method_ok || f->c.methods[ref->method].known.version);
	cr_assert(!ref->iseq_ok || code_iseq(&f->c, ref)->addr == frame->iseq);
	cr_assert(!ref->method_ok || code_method(&f->c, ref)->addr == frame->me);
}

static void lookup(struct fixture *f, struct stack_era sampled, struct rbpf_frame frame)
{
	cr_assert_eq(code_cache_lookup(&f->c, &sampled, &frame, 1, &f->ref), 0);
	assert_sane_ref(f, &frame, &f->ref);
}

/* What @frame, sampled in era @sampled, is now found to be; "" if nothing is proven. */
static const char *name_of(struct fixture *f, struct stack_era sampled, struct rbpf_frame frame)
{
	lookup(f, sampled, frame);
	return f->ref.iseq_ok ? code_iseq(&f->c, &f->ref)->name : "";
}

/* The same of a C function. */
static const char *c_name_of(struct fixture *f, struct stack_era sampled, struct rbpf_frame frame)
{
	lookup(f, sampled, frame);
	return f->ref.method_ok ? code_method(&f->c, &f->ref)->name : "";
}

static uint64_t new_iseq(struct fixture *f, const char *label)
{
	return image_iseq(f->img,
			  &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = label });
}

static struct rbpf_frame frame_of(struct fixture *f, uint64_t iseq)
{
	return (struct rbpf_frame) { .iseq = iseq, .pc = image_pc(f->img, iseq, 2) };
}

static struct rbpf_frame c_function(struct fixture *f, const char *name)
{
	return (struct rbpf_frame) { .me = image_ment(f->img, f->img->object, name, IMAGE_CFUNC) };
}

/* Compiled code whose pc was never saved: what stands there is of another iseq. */
static struct rbpf_frame stale_frame(uint64_t iseq)
{
	return (struct rbpf_frame) { .iseq = iseq, .pc = 0x5000 | RBPF_PC_STALE };
}

/* @frame with the check that the BPF programs take of it now; they take none of an old iseq. */
static struct rbpf_frame with_check(struct fixture *f, struct rbpf_frame frame)
{
	struct walk *w = walk_host_new(&f->img->vm.walk, RBPF_MIN_FRAMES);

	walk_host.mem = &f->img->vm.mem;
	walk_host.walk = w;
	w->layout.flags |= RBPF_LAYOUT_NO_AGE; /* also of an old one */
	walk_may_read(w);
	w->frames[0] = frame;
	w->n_frames = 1;
	walk_complete(0);
	frame = w->frames[0];
	free(w);
	return frame;
}

/* ---- limits ---- */

/* What is known stays; what is not is unknown, and counted, until another cache begins anew. */
Test(code_cache, no_room_for_more)
{
	struct fixture f = setup("3.3");
	uint64_t known = new_iseq(&f, "known"), other = new_iseq(&f, "other");

	set_era(&f, 5);
	cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, known)), "known");
	cr_expect_gt(f.c.bytes, strlen("known"));
	cr_expect_gt(code_cache_bytes(&f.c), f.c.bytes);
	f.c.bytes += CODE_CACHE_BYTES;
	cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, other)), "");
	cr_expect_str_eq(c_name_of(&f, at(5), c_function(&f, "puts")), "");
	cr_expect_eq(f.c.refused, 2);
	cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, known)), "known");
	f.c.bytes -= CODE_CACHE_BYTES;
	set_era(&f, 6);
	cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, other)), "other");
	teardown(&f);
}

/* ---- the same era ---- */

Test(code_cache, in_the_same_era)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo"), reads;

		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "foo");
		cr_expect_str_eq(name_of(&f, at(5), stale_frame(iseq)), "foo");

		/* Known: it is not read, and so nothing that has happened since matters. */
		reads = f.img->n_reads;
		image_label_text(f.img, iseq, "bar");
		cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "foo");
		cr_expect_leq(f.img->n_reads, reads + 1, "%s: at most the era", f.img->version);
		teardown(&f);
	}
}

Test(code_cache, pc_of_another_iseq)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = new_iseq(&f, "foo"), start = image_pc(f.img, iseq, 0) - 8;
	static const uint64_t outside[] = { 0, 8, 0x5000, ~7ull };
	struct rbpf_frame frame = frame_of(&f, iseq);

	set_era(&f, 5);
	for (uint64_t off = 0; off <= 80; off += 8) {
		frame.pc = start + off;
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo");
	}
	frame.pc = start + 88;
	cr_expect_str_eq(name_of(&f, at(5), frame), "", "behind its code");
	frame.pc = start + 88 + RBPF_PC_JIT;
	cr_expect_str_eq(name_of(&f, at(5), frame), "", "flags are no part of it");
	frame.pc = start + 80 + RBPF_PC_JIT + RBPF_PC_FINISH;
	cr_expect_str_eq(name_of(&f, at(5), frame), "foo", "flags are no part of it");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		frame.pc = outside[i];
		cr_expect_str_eq(name_of(&f, at(5), frame), "");
		frame = with_check(&f, frame);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "whatever its check says");
	}
	teardown(&f);
}

Test(code_cache, what_is_none)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = new_iseq(&f, "foo");
	struct rbpf_frame frame = frame_of(&f, iseq);

	set_era(&f, 5);
	frame.iseq = 0x5000;
	cr_expect_str_eq(name_of(&f, at(5), frame), "");
	frame.iseq = f.img->object;
	cr_expect_str_eq(name_of(&f, at(5), frame), "");
	cr_expect_str_eq(c_name_of(&f, at(5), (struct rbpf_frame) { .me = 0x5000 }), "");
	cr_expect_str_eq(c_name_of(&f, at(5), (struct rbpf_frame) { .me = iseq }), "");
	cr_expect_str_eq(name_of(&f, at(5), (struct rbpf_frame) { 0 }), "", "a fiber");
	cr_expect_str_eq(name_of(&f, at(5), (struct rbpf_frame) { .pc = 7 }), "", "cut frames");
	teardown(&f);
}

/* ---- sampled after what is known: compared ---- */

/*
 * A young one that is the same once more may have been made anew: it is known of both eras, but not
 * of those between.
 */
Test(code_cache, compared_with_what_is_there_now)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");

		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "foo");
		for (uint64_t era = 7; era < 20; era += 2) {
			set_era(&f, era);
			cr_expect_str_eq(name_of(&f, at(era), frame_of(&f, iseq)), "foo");
			cr_expect_str_eq(name_of(&f, at(era), stale_frame(iseq)), "foo");
			cr_expect_str_eq(name_of(&f, at(era - 1), frame_of(&f, iseq)), "", "%s",
					 f.img->version);
		}
		teardown(&f);
	}
}

Test(code_cache, a_comparison_takes_one_batch)
{
	struct fixture f = setup("3.3");
	struct stack_era sampled = at(5);
	struct rbpf_frame frames[40];
	struct code_ref refs[40];
	size_t reads, spans;

	for (size_t i = 0; i < 40; i++)
		frames[i] = i < 10 ? frame_of(&f, new_iseq(&f, "foo")) : frames[i % 10];
	set_era(&f, 5);
	cr_assert_eq(code_cache_lookup(&f.c, &sampled, frames, 40, refs), 0);
	set_era(&f, 6);
	sampled = at(6);
	reads = f.img->n_reads;
	spans = f.img->n_spans;
	cr_assert_eq(code_cache_lookup(&f.c, &sampled, frames, 40, refs), 0);
	cr_expect_eq(f.img->n_reads - reads, 1, "%zu reads: the era, all, the era, at once",
		     f.img->n_reads - reads);
	cr_expect_leq(f.img->n_spans - spans, 2 * RUBY_ERA_SPANS + 10 * RUBY_ISEQ_SPANS,
		      "each iseq once");
	for (size_t i = 0; i < 40; i++)
		cr_expect(refs[i].iseq_ok, "frame %zu", i);
	teardown(&f);
}

/* However many are new, they take about as many reads as one of them. */
Test(code_cache, what_is_new_is_read_together)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct rbpf_frame frames[40];
		struct code_ref refs[40];
		struct stack_era sampled = at(5);
		char label[16];
		size_t reads;

		for (size_t i = 0; i < 40; i++) {
			snprintf(label, sizeof(label), "new_%zu", i);
			frames[i] = i % 2 ? c_function(&f, label)
					  : frame_of(&f, new_iseq(&f, label));
		}
		set_era(&f, 5);
		/* All of it can be read in blocks, which in this image it can not at the ends. */
		reads = f.img->n_reads;
		cr_assert_eq(code_cache_lookup(&f.c, &sampled, frames, 40, refs), 0);
		cr_expect_leq(f.img->n_reads - reads, 16, "%s: %zu reads", f.img->version,
			      f.img->n_reads - reads);
		for (size_t i = 0; i < 40; i++) {
			snprintf(label, sizeof(label), "new_%zu", i);
			cr_expect(refs[i].iseq_ok || refs[i].method_ok, "%s: %zu", f.img->version,
				  i);
			cr_expect_str_eq(i % 2 ? code_method(&f.c, &refs[i])->name
					       : code_iseq(&f.c, &refs[i])->name,
					 label);
		}
		teardown(&f);
	}
}

/* ---- another one in its place ---- */

/* Texts of the same length: the String that holds them has the same words, but for the text. */
static const struct {
	const char *what, *foo, *bar;
	bool heap;
	const char *since; /* the version that has such Strings */
} labels[] = {
	{ "short", "foo", "bar", false, "2.7" },
	{ "as long as fits in all versions", "sixteen_letters1", "sixteen_letters2", false, "2.7" },
	{ "elsewhere", "foo_in_a_string_of_its_own", "bar_in_a_string_of_its_own", true, "2.7" },
	{ "elsewhere, at its end", "in_a_string_of_its_own_1", "in_a_string_of_its_own_2", true,
	  "2.7" },
};

#define FOR_EACH_LABEL(img, l)                                                                     \
	FOR_EACH_IMAGE(img)                                                                        \
	for (size_t l = 0; l < sizeof(labels) / sizeof(labels[0]); l++)

static uint64_t labelled_iseq(struct fixture *f, size_t l)
{
	uint64_t iseq = new_iseq(f, "x"), body = image_body(f->img, iseq);
	size_t len = strlen(labels[l].foo);
	uint64_t label = labels[l].heap ? image_string_heap(f->img, labels[l].foo, len)
					: image_string_embed(f->img, labels[l].foo, len);

	image_put64(f->img, body + 72, label);
	image_put64(f->img, body + 80, label);
	return iseq;
}

/*
 * The iseq is freed, and all of what it is made of allocated again for another one of the same
 * size.
 */
static void reuse(struct fixture *f, uint64_t iseq, size_t l)
{
	image_label_text(f->img, iseq, labels[l].bar);
}

Test(code_cache, reused_after_it_was_known)
{
	FOR_EACH_LABEL(unused, l)
	{
		for (uint64_t moved = 1; moved <= 3; moved++) {
			struct fixture f = setup(unused->version);
			uint64_t iseq = labelled_iseq(&f, l);
			struct rbpf_frame before = with_check(&f, frame_of(&f, iseq)), after;

			set_era(&f, 5);
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), labels[l].foo);
			set_era(&f, 5 + moved);
			reuse(&f, iseq, l);
			after = with_check(&f, frame_of(&f, iseq));
			cr_expect_str_eq(name_of(&f, at(5 + moved), after), labels[l].bar, "%s: %s",
					 f.img->version, labels[l].what);
			cr_expect_str_eq(name_of(&f, at(5 + moved), frame_of(&f, iseq)),
					 labels[l].bar, "%s: %s", f.img->version, labels[l].what);
			/* A late one of the first: it is known no more. */
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "", "%s: %s",
					 f.img->version, labels[l].what);
			cr_expect_str_eq(name_of(&f, at(5), before), "", "%s: %s", f.img->version,
					 labels[l].what);
			teardown(&f);
		}
	}
}

/* Sampled at 5, and looked at for the first time later, when another one is there. */
Test(code_cache, reused_before_it_was_known)
{
	FOR_EACH_LABEL(unused, l)
	{
		for (uint64_t moved = 1; moved <= 4; moved++) {
			struct fixture f = setup(unused->version);
			uint64_t iseq = labelled_iseq(&f, l);
			struct rbpf_frame checked = with_check(&f, frame_of(&f, iseq));

			reuse(&f, iseq, l);
			set_era(&f, 5 + moved);
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "", "%s: %s",
					 f.img->version, labels[l].what);
			cr_expect_str_eq(name_of(&f, at(5), checked), "", "%s: %s", f.img->version,
					 labels[l].what);
			cr_expect_str_eq(name_of(&f, at(5), stale_frame(iseq)), "");
			/* What is sampled now is what is there now. */
			cr_expect_str_eq(name_of(&f, at(5 + moved), frame_of(&f, iseq)),
					 labels[l].bar);
			teardown(&f);
		}
	}
}

/* The same with a String that holds more than its first words, as they do from 3.2 on. */
Test(code_cache, reused_with_a_long_label)
{
	static const char foo[] = "test_generated_001", bar[] = "test_generated_002";

	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "x"), body = image_body(f.img, iseq);
		uint64_t label = image_string_embed(f.img, foo, sizeof(foo) - 1);
		struct rbpf_frame checked;

		image_put64(f.img, body + 72, label);
		image_put64(f.img, body + 80, label);
		checked = with_check(&f, frame_of(&f, iseq));
		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), foo);
		set_era(&f, 7);
		image_label_text(f.img, iseq, bar);
		cr_expect_str_eq(name_of(&f, at(7), frame_of(&f, iseq)), bar, "%s: compared",
				 f.img->version);
		teardown(&f);

		f = setup(unused->version);
		iseq = new_iseq(&f, "x");
		body = image_body(f.img, iseq);
		label = image_string_embed(f.img, foo, sizeof(foo) - 1);
		image_put64(f.img, body + 72, label);
		image_put64(f.img, body + 80, label);
		checked = with_check(&f, frame_of(&f, iseq));
		image_label_text(f.img, iseq, bar);
		set_era(&f, 7);
		cr_expect_str_eq(name_of(&f, at(5), checked), "", "%s: by its check",
				 f.img->version);
		teardown(&f);
	}
}

Test(code_cache, freed)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = with_check(&f, frame_of(&f, iseq));

		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo");
		set_era(&f, 6);
		image_put64(f.img, iseq, 0);
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo", "it was known then");
		cr_expect_str_eq(name_of(&f, at(6), frame), "foo", "its check says it was there");
		cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, iseq)), "foo", "as is known now");
		frame.check = 0;
		cr_expect_str_eq(name_of(&f, at(7), frame), "");
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s: forgotten", f.img->version);
		teardown(&f);
	}
}

/* What was free, or half made, when it was looked at gets an object without a collection. */
Test(code_cache, allocated_where_nothing_was)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo"), flags = image_get64(f.img, iseq), me_flags;
		struct rbpf_frame frame = frame_of(&f, iseq), puts = c_function(&f, "puts");

		me_flags = image_get64(f.img, puts.me);
		set_era(&f, 6);
		image_put64(f.img, iseq, 0);
		image_put64(f.img, puts.me, 0);
		cr_expect_str_eq(name_of(&f, at(5), frame), "");
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "");
		image_put64(f.img, iseq, flags);
		image_put64(f.img, puts.me, me_flags);
		f.c.revalidation++;
		cr_expect_str_eq(name_of(&f, at(6), frame), "foo", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(6), puts), "puts", "%s", f.img->version);
		teardown(&f);
	}
}

/* ---- sampled before what is known: the check ---- */

Test(code_cache, proven_by_its_check)
{
	FOR_EACH_LABEL(unused, l)
	{
		for (uint64_t moved = 1; moved <= 4; moved++) {
			struct fixture f = setup(unused->version);
			uint64_t iseq = labelled_iseq(&f, l);
			struct rbpf_frame checked = with_check(&f, frame_of(&f, iseq));
			struct rbpf_frame stale = with_check(&f, stale_frame(iseq));

			set_era(&f, 5 + moved);
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "",
					 "%s: a young one proves nothing", f.img->version);
			cr_expect_str_eq(name_of(&f, at(5), stale), labels[l].foo);
			cr_expect_str_eq(name_of(&f, at(5), checked), labels[l].foo);
			/* Of that era it is known now, for those without a check; not of others. */
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), labels[l].foo);
			cr_expect_str_eq(name_of(&f, at(4), frame_of(&f, iseq)), "", "%s",
					 f.img->version);
			if (moved > 1)
				cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, iseq)), "",
						 "%s: it may have been made anew since",
						 f.img->version);
			cr_expect_str_eq(name_of(&f, at(5 + moved), frame_of(&f, iseq)),
					 labels[l].foo);
			teardown(&f);
		}
	}
}

/* Iseq and method entry have one check together. */
Test(code_cache, check_of_an_iseq_and_its_method)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo"), other = image_class(f.img, "Other"), me;
		struct rbpf_frame frame = frame_of(&f, iseq), checked;

		/* A method entry that does not prove itself: of an alias, a refinement, … */
		me = image_ment(f.img, f.img->object, "foo", IMAGE_BMETHOD);
		frame.me = me;
		checked = with_check(&f, frame);
		set_era(&f, 7);
		lookup(&f, at(5), checked);
		cr_expect(f.ref.iseq_ok && f.ref.method_ok, "%s", f.img->version);
		teardown(&f);

		f = setup(unused->version);
		iseq = new_iseq(&f, "foo");
		me = image_ment(f.img, f.img->object, "foo", IMAGE_BMETHOD);
		frame = frame_of(&f, iseq);
		frame.me = me;
		checked = with_check(&f, frame);
		image_put64(f.img, me + 32, image_class(f.img, "Other"));
		set_era(&f, 7);
		lookup(&f, at(5), checked);
		cr_expect(!f.ref.iseq_ok && !f.ref.method_ok, "%s: of another owner",
			  f.img->version);
		(void)other;
		teardown(&f);
	}
}

/* ---- sampled before what is known: its age ---- */

/*
 * From 3.3 on it takes three collections for an object to become old, the last of which is that of
 * the era it is seen in: it is of the one before that at the latest.
 */
static const char *const aging[] = { "3.3", "3.4", "4.0", "4.1" };

#define FOR_EACH_AGING(v) for (size_t v = 0; v < sizeof(aging) / sizeof(aging[0]); v++)

Test(code_cache, proven_by_its_age)
{
	FOR_EACH_AGING(v)
	for (uint64_t moved = 1; moved <= 4; moved++) {
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), outside = frame;
		struct rbpf_frame checked = with_check(&f, frame);

		outside.pc = 0x5000;
		image_age(f.img, iseq, true);
		set_era(&f, 5 + moved);
		cr_expect_str_eq(name_of(&f, at(5), frame), moved <= 1 ? "foo" : "",
				 "%s: %llu eras ago", aging[v], (unsigned long long)moved);
		cr_expect_str_eq(name_of(&f, at(5), stale_frame(iseq)), "",
				 "%s: it may have been moved there", aging[v]);
		cr_expect_str_eq(name_of(&f, at(5), outside), "");
		cr_expect_str_eq(name_of(&f, at(5), checked), "foo");
		teardown(&f);
	}
}

/*
 * Up to 3.2 an object that an old one refers to is made old when it is marked for the first time
 * (gc.c rgengc_check_relation()): its age says nothing of the collection before.
 */
Test(code_cache, age_up_to_3_2)
{
	static const char *const versions[] = { "2.7", "3.0", "3.1", "3.2" };

	for (size_t v = 0; v < 4; v++) {
		struct fixture f = setup(versions[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);

		image_age(f.img, iseq, true);
		set_era(&f, 6);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s", versions[v]);
		cr_expect_str_eq(name_of(&f, at(5), with_check(&f, frame)), "foo");
		teardown(&f);
	}
}

/*
 * It counts when it was seen to be old, not when it was seen first: in era 11 it is at least of era
 * 9.
 */
Test(code_cache, age_at_another_time)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);

		set_era(&f, 10);
		cr_expect_str_eq(name_of(&f, at(10), frame), "foo");
		cr_expect_str_eq(name_of(&f, at(9), frame), "");
		set_era(&f, 11);
		image_age(f.img, iseq, true);
		cr_expect_str_eq(name_of(&f, at(9), frame), "", "%s: it may be of era 9", aging[v]);
		cr_expect_str_eq(name_of(&f, at(11), frame), "foo");
		cr_expect_str_eq(name_of(&f, at(10), frame), "foo");
		cr_expect_str_eq(name_of(&f, at(9), frame), "", "%s", aging[v]);
		teardown(&f);
	}
}

/* … though that helps for what it was sampled at since. */
Test(code_cache, grown_old)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);

		set_era(&f, 10);
		cr_expect_str_eq(name_of(&f, at(9), frame), "");
		image_age(f.img, iseq, true);
		cr_expect_str_eq(name_of(&f, at(9), frame), "foo", "%s", aging[v]);
		teardown(&f);
	}
}

/* ---- method entries ---- */

/* Another one takes the place of @frame's. */
static void reuse_ment(struct fixture *f, const struct rbpf_frame *frame, const char *name)
{
	uint64_t other = image_ment(f->img, f->img->object, name, IMAGE_CFUNC);

	for (uint64_t i = 8; i < 40; i += 8)
		image_put64(f->img, frame->me + i, image_get64(f->img, other + i));
}

Test(code_cache, c_functions)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct rbpf_frame puts = c_function(&f, "puts");
		size_t reads;

		set_era(&f, 5);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "puts");
		cr_expect_str_eq(code_method(&f.c, &f.ref)->prefix, "Object#");
		reads = f.img->n_reads;
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "puts");
		cr_expect_leq(f.img->n_reads, reads + 1, "%s: at most the era", f.img->version);
		set_era(&f, 6);
		cr_expect_str_eq(c_name_of(&f, at(6), puts), "puts");
		cr_expect_str_eq(c_name_of(&f, at(4), puts), "", "%s: not known then",
				 f.img->version);

		reuse_ment(&f, &puts, "gsub");
		set_era(&f, 7);
		cr_expect_str_eq(c_name_of(&f, at(7), puts), "gsub");
		cr_expect_str_eq(c_name_of(&f, at(6), puts), "");
		teardown(&f);
	}
}

/* A C function comes with a check each time, which decides alone. */
Test(code_cache, check_of_a_c_function)
{
	FOR_EACH_IMAGE(unused)
	for (uint64_t moved = 0; moved <= 4; moved++) {
		struct fixture f = setup(unused->version);
		struct rbpf_frame puts = with_check(&f, c_function(&f, "puts")), gsub;

		set_era(&f, 5 + moved);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "puts", "%s: %llu", f.img->version,
				 (unsigned long long)moved);
		cr_expect_str_eq(c_name_of(&f, moving_at(5), puts), "puts");
		reuse_ment(&f, &puts, "gsub");
		set_era(&f, 7 + moved);
		cr_expect_str_eq(c_name_of(&f, at(6), puts), "puts", "%s: %llu", f.img->version,
				 (unsigned long long)moved);
		gsub = with_check(&f, (struct rbpf_frame) { .me = puts.me });
		cr_expect_str_eq(c_name_of(&f, at(7 + moved), gsub), "gsub", "%s: %llu",
				 f.img->version, (unsigned long long)moved);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "", "%s: %llu", f.img->version,
				 (unsigned long long)moved);
		teardown(&f);

		/* Never seen as what it was. */
		f = setup(unused->version);
		puts = with_check(&f, c_function(&f, "puts"));
		reuse_ment(&f, &puts, "gsub");
		image_age(f.img, puts.me, true);
		set_era(&f, 5 + moved);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "", "%s: %llu", f.img->version,
				 (unsigned long long)moved);
		teardown(&f);
	}
}

Test(code_cache, age_of_a_method_entry)
{
	FOR_EACH_AGING(v)
	for (uint64_t moved = 1; moved <= 4; moved++) {
		struct fixture f = setup(aging[v]);
		struct rbpf_frame puts = c_function(&f, "puts");

		image_age(f.img, puts.me, true);
		set_era(&f, 5 + moved);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), moved <= 1 ? "puts" : "", "%s: %llu",
				 aging[v], (unsigned long long)moved);
		/* Where objects move, nothing tells what has moved there. */
		lookup(&f, moving_at(5), puts);
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "", "%s: %llu", aging[v],
				 (unsigned long long)moved);
		teardown(&f);
	}
}

Test(code_cache, age_of_a_method_entry_at_another_time)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		struct rbpf_frame puts = c_function(&f, "puts");

		set_era(&f, 10);
		cr_expect_str_eq(c_name_of(&f, at(10), puts), "puts");
		set_era(&f, 11);
		image_age(f.img, puts.me, true);
		cr_expect_str_eq(c_name_of(&f, at(9), puts), "", "%s: it may be of era 9",
				 aging[v]);
		teardown(&f);
	}
}

/* A method entry is proven by the iseq that is its code. */
Test(code_cache, method_entry_of_the_iseq)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo"), other;
		struct rbpf_frame frame;

		frame = frame_of(&f,
				 image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK,
									  .label = "block in foo",
									  .base = "foo",
									  .local = iseq }));
		frame.me = image_method(f.img, f.img->object, "foo", iseq);
		other = image_method(f.img, f.img->object, "bar", new_iseq(&f, "bar"));
		image_age(f.img, frame.iseq, true);
		set_era(&f, 6);
		lookup(&f, at(5), frame);
		cr_expect(f.ref.iseq_ok && f.ref.method_ok, "%s: of that method", aging[v]);
		frame.me = other;
		lookup(&f, at(5), frame);
		cr_expect(f.ref.iseq_ok && !f.ref.method_ok, "%s: of another", aging[v]);

		/* An iseq that is not proven proves nothing. */
		image_age(f.img, frame.iseq, false);
		set_era(&f, 8);
		frame.me = image_method(f.img, f.img->object, "foo", iseq);
		lookup(&f, at(7), frame);
		cr_expect(!f.ref.iseq_ok && !f.ref.method_ok, "%s", aging[v]);
		teardown(&f);
	}
}

/*
 * When it cannot be told which era it is, a sample is of one or the one after: its age proves
 * nothing.
 */
Test(code_cache, age_in_a_gc_transition)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), checked = with_check(&f, frame);

		image_age(f.img, iseq, true);
		set_era(&f, 6);
		cr_expect_str_eq(name_of(&f, moving_at(5), frame), "", "%s", aging[v]);
		cr_expect_str_eq(name_of(&f, moving_at(5), checked), "foo");
		teardown(&f);
	}
}

/* A class gets its name when it is assigned to a constant: without a collection. */
Test(code_cache, names_that_come_later)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t klass = image_class(f.img, NULL), iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);
		uint32_t version;

		frame.me = image_method(f.img, klass, "foo", iseq);
		set_era(&f, 5);
		lookup(&f, at(5), frame);
		cr_expect_str_eq(code_method(&f.c, &f.ref)->prefix, "");
		version = f.c.methods[f.ref.method].known.version;
		f.c.revalidation++;
		lookup(&f, at(5), frame);
		cr_expect_eq(f.c.methods[f.ref.method].known.version, version, "the same name");

		image_class_name(f.img, klass, "Late");
		lookup(&f, at(5), frame);
		cr_expect_str_eq(code_method(&f.c, &f.ref)->prefix, "",
				 "not before the next revalidation");
		f.c.revalidation++;
		lookup(&f, at(5), frame);
		cr_assert(f.ref.method_ok, "%s", f.img->version);
		cr_expect_str_eq(code_method(&f.c, &f.ref)->prefix, "Late#", "%s", f.img->version);
		cr_expect_neq(f.c.methods[f.ref.method].known.version, version, "another name");
		teardown(&f);
	}
}

/* After how many revalidations a name that is given now is seen. */
static unsigned int wait_for_name(struct fixture *f, struct rbpf_frame frame)
{
	for (unsigned int n = 0; n <= 100; n++, f->c.revalidation++) {
		lookup(f, at(5), frame);
		if (code_method(&f->c, &f->ref)->prefix[0])
			return n;
	}
	return UINT32_MAX;
}

/*
 * An owner that has had no name for long is asked rarely, and its name is late by an eighth of that
 * time at most, and never by more than two seconds.
 */
Test(code_cache, names_that_come_much_later)
{
	static const unsigned int revalidations[] = { 1, 10, 50, 200, 1000, 3000 };

	for (size_t i = 0; i < sizeof(revalidations) / sizeof(*revalidations); i++) {
		struct fixture f = setup("3.3");
		uint64_t klass = image_class(f.img, NULL), iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);
		unsigned int asked = 0, waited, max = revalidations[i] / 8 + 2;
		uint64_t last = 0;

		frame.me = image_method(f.img, klass, "foo", iseq);
		set_era(&f, 5);
		for (unsigned int n = 0; n < revalidations[i]; n++, f.c.revalidation++) {
			lookup(&f, at(5), frame);
			asked += f.c.methods[f.ref.method].ask_name != last;
			last = f.c.methods[f.ref.method].ask_name;
		}
		cr_expect_leq(asked, 30 + revalidations[i] / 40, "%u times of %u", asked,
			      revalidations[i]);
		image_class_name(f.img, klass, "Late");
		waited = wait_for_name(&f, frame);
		cr_expect_leq(waited, max < 40 ? max : 40, "%u after %u", waited, revalidations[i]);
		teardown(&f);
	}
}

/* ---- compaction ---- */

/* An old one, so that it is known to be the same since era 4. */
Test(code_cache, while_objects_are_moved)
{
	FOR_EACH_AGING(v)
	{
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo"), there = new_iseq(&f, "bar");
		struct rbpf_frame frame = frame_of(&f, iseq), wrong = frame_of(&f, there);
		struct rbpf_frame checked = with_check(&f, stale_frame(iseq));

		image_age(f.img, iseq, true);
		for (uint64_t era = 4; era <= 5; era++) {
			set_era(&f, era);
			cr_expect_str_eq(name_of(&f, at(era), frame), "foo");
		}
		/* The address of another one, in whose place this one is now. */
		wrong.iseq = iseq;
		cr_expect_str_eq(name_of(&f, moving_at(5), frame), "foo", "%s", aging[v]);
		cr_expect_str_eq(name_of(&f, moving_at(5), wrong), "", "%s", aging[v]);
		cr_expect_str_eq(name_of(&f, moving_at(5), stale_frame(iseq)), "",
				 "%s: nothing tells that it is not", aging[v]);
		cr_expect_str_eq(name_of(&f, moving_at(5), checked), "foo");
		cr_expect_str_eq(name_of(&f, at(5), stale_frame(iseq)), "foo",
				 "%s: before or after", aging[v]);
		teardown(&f);
	}
}

Test(code_cache, c_functions_while_objects_are_moved)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct rbpf_frame puts = c_function(&f, "puts");

		set_era(&f, 5);
		cr_expect_str_eq(c_name_of(&f, moving_at(5), puts), "", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, moving_at(5), with_check(&f, puts)), "puts");
		cr_expect_str_eq(c_name_of(&f, at(5), puts), "puts", "%s: before or after",
				 f.img->version);
		teardown(&f);
	}
}

/* An iseq that has moved is another address; the one that stands there now is told by its code. */
Test(code_cache, moved)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t foo = new_iseq(&f, "foo"), bar = new_iseq(&f, "bar");
		uint64_t foo_body = image_body(f.img, foo), bar_body = image_body(f.img, bar);
		struct rbpf_frame frame = frame_of(&f, foo);

		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo");
		image_put64(f.img, foo + 16, bar_body);
		image_put64(f.img, bar + 16, foo_body);
		set_era(&f, 6);
		cr_expect_str_eq(name_of(&f, at(6), frame), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, foo)), "bar");
		frame.iseq = bar;
		cr_expect_str_eq(name_of(&f, at(6), frame), "foo");
		teardown(&f);
	}
}

/* ---- processes that end, memory that goes ---- */

Test(code_cache, process_is_gone)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t old = new_iseq(&f, "old"), young = new_iseq(&f, "young");
		uint64_t unseen = new_iseq(&f, "unseen");
		struct rbpf_frame puts = c_function(&f, "puts"), gsub = c_function(&f, "gsub");
		struct rbpf_frame young_frame = with_check(&f, frame_of(&f, young));
		struct rbpf_frame old_frame = frame_of(&f, old), unseen_frame;

		unseen_frame = with_check(&f, frame_of(&f, unseen));
		image_age(f.img, old, true);
		image_age(f.img, puts.me, true);
		set_era(&f, 5);
		name_of(&f, at(5), old_frame);
		name_of(&f, at(5), young_frame);
		c_name_of(&f, at(5), puts);
		c_name_of(&f, at(5), gsub);
		image_hide_all(f.img, true);

		/* What is known is known. */
		cr_expect_str_eq(name_of(&f, at(5), old_frame), "old");
		cr_expect_str_eq(name_of(&f, at(5), young_frame), "young");
		cr_expect_str_eq(c_name_of(&f, at(5), gsub), "gsub");
		/*
		 * Sampled after it was compared for the last time: what was old may have been
		 * freed.
		 */
		cr_expect_str_eq(name_of(&f, at(6), old_frame), "", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(6), puts), "", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(6), gsub), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(6), young_frame), "young", "%s: by its check",
				 f.img->version);
		young_frame.check = 0;
		teardown(&f);

		f = setup(unused->version);
		young = new_iseq(&f, "young");
		young_frame = frame_of(&f, young);
		unseen_frame = with_check(&f, frame_of(&f, new_iseq(&f, "unseen")));
		set_era(&f, 5);
		name_of(&f, at(5), young_frame);
		image_hide_all(f.img, true);
		cr_expect_str_eq(name_of(&f, at(6), young_frame), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(5), unseen_frame), "", "%s", f.img->version);
		teardown(&f);
	}
}

/* A page of it is gone, but the process lives: what was there may be anything. */
Test(code_cache, memory_is_gone)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo"), body = image_body(f.img, iseq);
		uint64_t label = image_string_heap(f.img, "bar", 3),
			 far = image_region(f.img, 4096);
		struct rbpf_frame frame;

		/* Each of the parts in turn on a page of its own. */
		image_put64(f.img, label + 24, far);
		memcpy(image_at(f.img, far, 3), "bar", 3);
		image_put64(f.img, body + 80, label);
		image_put64(f.img, body + 72, label);
		frame = frame_of(&f, iseq);
		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame), "bar");
		image_hide(f.img, far, 8, true);
		set_era(&f, 6);
		cr_expect_str_eq(name_of(&f, at(6), frame), "", "%s: its label", f.img->version);
		image_hide(f.img, far, 8, false);
		set_era(&f, 7);
		cr_expect_str_eq(name_of(&f, at(7), frame), "bar", "%s", f.img->version);
		teardown(&f);
	}
}

/* ---- what was copied when it was sampled ---- */

/* Let the cache take what is copied of @frame now, which was sampled in era @sampled. */
static struct rbpf_frame copy(struct fixture *f, struct stack_era sampled, struct rbpf_frame frame)
{
	const struct rbpf_ring_memory *rec = (const void *)walk_host.sent;
	struct walk *w = walk_host_new(&f->img->vm.walk, RBPF_MIN_FRAMES);

	walk_host.mem = &f->img->vm.mem;
	walk_host.walk = w;
	walk_host_forget();
	w->layout.flags |= RBPF_LAYOUT_COPY;
	walk_may_read(w);
	w->frames[0] = frame;
	w->n_frames = 1;
	walk_complete(0);
	walk_host_capture(w, 1, sampled.gc_era, 0);
	cr_assert_eq(walk_host.n_records, 1);
	cr_assert_eq(code_cache_captured(&f->c, &sampled, rec + 1, rec->n_bytes), 0);
	frame = w->frames[0];
	free(w);
	return frame;
}

Test(code_cache, copied_before_the_process_was_gone)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame, puts, bare = frame_of(&f, iseq), bare_puts;

		set_era(&f, 5);
		frame = copy(&f, at(5), bare);
		bare_puts = c_function(&f, "puts");
		puts = copy(&f, at(5), bare_puts);
		image_hide_all(f.img, true);
		cr_expect_str_eq(name_of(&f, at(5), bare), "foo", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(5), bare_puts), "puts", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(4), bare), "", "%s: not of then", f.img->version);
		cr_expect_str_eq(name_of(&f, at(6), bare), "", "%s: nor later", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(6), bare_puts), "");
		cr_expect_str_eq(name_of(&f, at(7), frame), "foo", "%s: by its check",
				 f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(7), puts), "puts", "%s", f.img->version);
		teardown(&f);
	}
}

Test(code_cache, copied_before_another_one_took_its_place)
{
	FOR_EACH_LABEL(unused, l)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = labelled_iseq(&f, l), reads;
		struct rbpf_frame frame = frame_of(&f, iseq), first, second;

		set_era(&f, 5);
		first = copy(&f, at(5), frame);
		set_era(&f, 8);
		reuse(&f, iseq, l);
		reads = f.img->n_reads;
		cr_expect_str_eq(name_of(&f, at(5), frame), labels[l].foo, "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(6), first), labels[l].foo, "%s", f.img->version);
		cr_expect_leq(f.img->n_reads, reads + 2, "%s: the era alone", f.img->version);
		second = copy(&f, at(8), frame);
		cr_expect_str_eq(name_of(&f, at(8), frame), labels[l].bar, "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(5), first), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(9), second), labels[l].bar, "%s", f.img->version);
		teardown(&f);
	}
}

/* A copy that comes late, of what was known before and since. */
Test(code_cache, copied_of_what_is_known)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);
		uint32_t version;

		set_era(&f, 7);
		cr_expect_str_eq(name_of(&f, at(7), frame), "foo");
		version = f.c.iseqs[f.ref.iseq].known.version;
		copy(&f, at(5), frame);
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(7), frame), "foo", "%s", f.img->version);
		cr_expect_eq(f.c.iseqs[f.ref.iseq].known.version, version, "it is the same");
		cr_expect_str_eq(name_of(&f, at(6), frame), "", "%s", f.img->version);
		copy(&f, at(0), frame);
		cr_expect_str_eq(name_of(&f, at(7), frame), "foo", "%s", f.img->version);
		teardown(&f);
	}
}

/* The address may be that of one that has moved: only a check tells. */
Test(code_cache, copied_while_objects_are_moved)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct rbpf_frame frame = frame_of(&f, new_iseq(&f, "foo"));
		struct rbpf_frame puts = c_function(&f, "puts"), stale = stale_frame(frame.iseq);
		struct rbpf_frame frame_checked, puts_checked;

		set_era(&f, 5);
		frame_checked = copy(&f, moving_at(5), frame);
		puts_checked = copy(&f, moving_at(5), puts);
		image_hide_all(f.img, true);
		cr_expect_str_eq(name_of(&f, moving_at(5), stale), "", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, moving_at(5), puts), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(5), stale), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, moving_at(5), frame_checked), "foo", "%s",
				 f.img->version);
		cr_expect_str_eq(c_name_of(&f, moving_at(5), puts_checked), "puts", "%s",
				 f.img->version);
		teardown(&f);
	}
}

/* ---- an era that ends in the middle of a lookup ---- */

struct storm {
	uint64_t left; /* collections to come, one each time that … */
	uint64_t at;   /* … this address is read */
	uint64_t iseq; /* with the first one this is freed and used again for another of … */
	const char *label;
	bool changing; /* with each one, rather */
	uint64_t era;
	size_t reads; /* of the count */
};

static void storm_on_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	struct storm *s = img->arg;
	char label[32];

	s->reads += addr == img->vm.walk.gc_count;
	/* What is read together is read in blocks. */
	if (!s->left || s->at < addr || s->at - addr >= (len == GATHERED_BLOCK ? len : 1))
		return;
	s->left--;
	s->era++;
	image_gc_count(img, s->era - 1);
	if (!s->label)
		return;
	snprintf(label, sizeof(label), "%s", s->label);
	if (s->changing)
		label[0] = (char)('a' + s->era % 26);
	else
		s->label = NULL;
	image_label_text(img, s->iseq, label);
}

/* It is era 5, and another one each of @times that @addr is read. */
static void set_storm(struct fixture *f, struct storm *s, uint64_t addr, uint64_t times)
{
	s->era = 5;
	set_era(f, s->era);
	s->left = times;
	s->at = addr;
	f->img->arg = s;
	f->img->on_read = storm_on_read;
}

/* Read once more, and found to be the same: of the new era for certain, of the old one not. */
Test(code_cache, an_era_ends_in_a_lookup)
{
	FOR_EACH_AGING(v)
	for (int old = 0; old < 2; old++) {
		struct fixture f = setup(aging[v]);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), checked = with_check(&f, frame);
		struct storm s = { 0 };

		image_age(f.img, iseq, old);
		set_storm(&f, &s, iseq, 1);
		cr_expect_str_eq(name_of(&f, at(5), frame), old ? "foo" : "", "%s", aging[v]);
		cr_expect_eq(s.left, 0);
		cr_expect_str_eq(name_of(&f, at(6), frame), "foo", "%s", aging[v]);
		cr_expect_str_eq(name_of(&f, at(5), checked), "foo", "%s", aging[v]);
		teardown(&f);
	}
}

/* With each lookup: nothing but what its check says. */
Test(code_cache, an_era_ends_in_each_lookup)
{
	FOR_EACH_IMAGE(unused)
	for (int part = 0; part < 2; part++) {
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), checked = with_check(&f, frame);
		struct storm s = { 0 };

		set_storm(&f, &s, part ? iseq : f.img->vm.walk.gc_count, 1000);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s, %d", f.img->version, part);
		cr_expect_leq(s.reads, 20, "%zu readings of the count", s.reads);
		cr_expect_str_eq(name_of(&f, at(5), checked), "foo", "%s", f.img->version);
		s.left = 0;
		cr_expect_str_eq(name_of(&f, at(s.era), frame), "foo", "%s", f.img->version);
		teardown(&f);
	}
}

/* … but another one at each lookup is none that is known. */
Test(code_cache, another_one_in_each_lookup)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct storm s = { .iseq = new_iseq(&f, "aaa"), .label = "bbb", .changing = true };
		struct rbpf_frame frame = frame_of(&f, s.iseq), checked = with_check(&f, frame);

		set_storm(&f, &s, f.img->vm.walk.gc_count, 1000);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(5), checked), "", "%s", f.img->version);
		s.left = 0;
		cr_expect_str_neq(name_of(&f, at(s.era), frame), "", "%s", f.img->version);
		teardown(&f);
	}
}

/*
 * While it cannot be told which era it is (a collection is beginning, objects are being moved),
 * what is read is of none.
 */
Test(code_cache, looked_up_between_eras)
{
	static const uint32_t flags[] = { IMAGE_GC_DURING, IMAGE_GC_DURING | IMAGE_GC_COMPACTING,
					  IMAGE_GC_DURING | IMAGE_GC_COMPACTING |
						  IMAGE_GC_SWEEPING };

	FOR_EACH_LABEL(unused, l)
	for (size_t i = 0; i < 2 * sizeof(flags) / sizeof(flags[0]); i++) {
		struct fixture f = setup(unused->version);
		uint64_t iseq = labelled_iseq(&f, l);
		struct rbpf_frame frame = frame_of(&f, iseq), checked = with_check(&f, frame);
		bool old = i % 2;

		set_era(&f, 7);
		image_gc_flags(f.img, flags[i / 2]);
		cr_expect_str_eq(name_of(&f, at(5), checked), labels[l].foo, "%s: %zu",
				 f.img->version, i);
		reuse(&f, iseq, l);
		image_age(f.img, iseq, old);
		/* Its check has told what it was in era 5, but not in others. */
		cr_expect_str_eq(name_of(&f, at(5), frame), labels[l].foo, "%s: %zu",
				 f.img->version, i);
		cr_expect_str_eq(name_of(&f, at(4), frame), "", "%s: %zu", f.img->version, i);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s: %zu", f.img->version, i);
		cr_expect_str_eq(name_of(&f, at(5), stale_frame(iseq)), "", "%s: %zu",
				 f.img->version, i);
		cr_expect_str_eq(name_of(&f, at(5), checked), "", "%s: %zu", f.img->version, i);
		/* What that was is of no time. */
		set_era(&f, 7);
		cr_expect_str_eq(name_of(&f, at(5), frame), "", "%s: %zu", f.img->version, i);
		if (!old)
			cr_expect_str_eq(name_of(&f, at(6), frame), "", "%s: %zu", f.img->version,
					 i);
		cr_expect_str_eq(name_of(&f, at(7), frame), labels[l].bar, "%s: %zu",
				 f.img->version, i);
		teardown(&f);
	}
}

/* Marking is of the era before: what it finds is freed only when it is done. */
Test(code_cache, eras)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq);

		set_era(&f, 5);
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo");
		image_gc_count(f.img, 5);
		image_gc_flags(f.img, IMAGE_GC_DURING | IMAGE_GC_MARKING);
		image_label_text(f.img, iseq, "bar");
		cr_expect_str_eq(name_of(&f, at(5), frame), "foo", "%s: it cannot be another one",
				 f.img->version);
		image_gc_flags(f.img, IMAGE_GC_SWEEPING);
		cr_expect_str_eq(name_of(&f, at(6), frame), "bar", "%s", f.img->version);
		image_gc_flags(f.img, 0);
		cr_expect_str_eq(name_of(&f, at(6), frame), "bar", "%s", f.img->version);
		teardown(&f);
	}
}

/* It is freed and another one read in its place, whichever part of it is read first. */
Test(code_cache, reused_in_a_lookup)
{
	FOR_EACH_LABEL(unused, l)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = labelled_iseq(&f, l), body = image_body(f.img, iseq);
		const uint64_t parts[] = { iseq,
					   body,
					   image_get64(f.img, body + 80),
					   image_get64(f.img, body + 64),
					   image_get64(f.img, body + f.img->facts.insns_body),
					   f.img->vm.walk.gc_count };

		for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
			struct storm s = { .iseq = iseq, .label = labels[l].bar };
			struct rbpf_frame checked;
			const char *name;

			teardown(&f);
			f = setup(unused->version);
			cr_assert_eq(labelled_iseq(&f, l), iseq, "the same image again");
			checked = with_check(&f, frame_of(&f, iseq));
			set_storm(&f, &s, parts[p], 1);
			name = name_of(&f, at(5), p % 2 ? checked : frame_of(&f, iseq));
			cr_expect_str_eq(name, "", "%s: %s, part %zu", f.img->version,
					 labels[l].what, p);
			cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, iseq)), labels[l].bar,
					 "%s: %s, part %zu", f.img->version, labels[l].what, p);
		}
		teardown(&f);
	}
}

/* What was known is compared, and changes, in the same lookup. */
Test(code_cache, known_and_reused_in_a_lookup)
{
	FOR_EACH_LABEL(unused, l)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = labelled_iseq(&f, l);
		struct storm s = { .iseq = iseq, .label = labels[l].bar };
		const char *name;

		set_era(&f, 4);
		cr_expect_str_eq(name_of(&f, at(4), frame_of(&f, iseq)), labels[l].foo);
		set_storm(&f, &s, iseq, 1);
		name = name_of(&f, at(5), frame_of(&f, iseq));
		cr_expect(!*name || !strcmp(name, labels[l].foo), "%s: \"%s\"", f.img->version,
			  name);
		cr_expect_str_eq(name_of(&f, at(6), frame_of(&f, iseq)), labels[l].bar);
		teardown(&f);
	}
}

/* ---- collectors that are not known ---- */

/* Compared once per revalidation, and believed. */
Test(code_cache, no_era)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo"), reads;
		struct rbpf_frame frame = frame_of(&f, iseq), outside = frame;

		outside.pc = 0x5000;
		f.img->vm.walk.gc_count = 0;
		cr_expect_str_eq(name_of(&f, at(0), frame), "foo");
		cr_expect_str_eq(name_of(&f, at(0), outside), "");
		image_label_text(f.img, iseq, "bar");
		reads = f.img->n_reads;
		cr_expect_str_eq(name_of(&f, at(0), frame), "foo");
		cr_expect_eq(f.img->n_reads, reads);
		f.c.revalidation++;
		cr_expect_str_eq(name_of(&f, at(0), frame), "bar", "%s", f.img->version);
		teardown(&f);
	}
}

/* With a check, as the BPF programs take it of each frame then, only what fits that is believed. */
Test(code_cache, no_era_but_checks)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), foo, bar;

		f.img->vm.walk.gc_count = 0;
		foo = with_check(&f, frame);
		cr_assert(foo.check, "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(0), foo), "foo", "%s", f.img->version);
		image_label_text(f.img, iseq, "bar"); /* another one in its place */
		bar = with_check(&f, frame);
		cr_expect_str_eq(name_of(&f, at(0), bar), "", "%s: foo is known there",
				 f.img->version);
		f.c.revalidation++;
		cr_expect_str_eq(name_of(&f, at(0), foo), "", "%s: bar is there", f.img->version);
		cr_expect_str_eq(name_of(&f, at(0), bar), "bar", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(0), foo), "", "%s: bar is known", f.img->version);
		teardown(&f);
	}
}

/*
 * The BPF programs could not read it for once (a page that was swapped out). What is learnt then is
 * of no time.
 */
Test(code_cache, a_stack_without_an_era)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct rbpf_frame frame = frame_of(&f, iseq), puts = c_function(&f, "puts");

		set_era(&f, 10);
		cr_expect_str_eq(name_of(&f, at(0), frame), "foo");
		cr_expect_str_eq(c_name_of(&f, at(0), puts), "puts");
		cr_expect_str_eq(name_of(&f, at(9), frame), "", "%s: it may be of era 10",
				 f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(9), puts), "", "%s", f.img->version);
		cr_expect_str_eq(name_of(&f, at(10), frame), "foo", "%s", f.img->version);
		cr_expect_str_eq(c_name_of(&f, at(10), puts), "puts", "%s", f.img->version);
		teardown(&f);
	}
}

/* What was known before is not lost by it. */
Test(code_cache, a_stack_without_an_era_between_others)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = new_iseq(&f, "foo");
	struct rbpf_frame frame = frame_of(&f, iseq);

	set_era(&f, 10);
	cr_expect_str_eq(name_of(&f, at(10), frame), "foo");
	f.c.revalidation++;
	cr_expect_str_eq(name_of(&f, at(0), frame), "foo");
	cr_expect_str_eq(name_of(&f, at(10), frame), "foo");
	cr_expect_str_eq(name_of(&f, at(9), frame), "");
	teardown(&f);
}

/* ---- a Ruby that collects, and samples that are late ---- */

#define SIM_SLOTS 16
#define SIM_QUEUE 64
#define SIM_NAMES 200
#define SIM_AGE	  3 /* collections that an object survives to be old */

struct sim_object {
	uint64_t addr; /* of an iseq or a method entry; it never moves */
	bool is_method;
	bool alive;
	bool held;   /* it is on a stack, or referred to */
	bool doomed; /* a collection did not find it, and will free it */
	unsigned int age;
	uint64_t marked; /* by which collection it was marked last */
	uint32_t name;
};

struct sim_sample {
	struct rbpf_frame frame;
	struct stack_era sampled;
	uint32_t name; /* what it was */
	void *copy;    /* what was copied then: NULL if nothing; owned */
	size_t copied; /* bytes */
	unsigned int cpu;
};

enum sim_phase { SIM_IDLE, SIM_BEGINS, SIM_MARKS };

struct sim {
	struct fixture f;
	struct sim_object objects[SIM_SLOTS];
	struct sim_sample queue[SIM_QUEUE];
	size_t n_queue;
	uint64_t count; /* of collections … */
	uint64_t major; /* … and the major ones of them: the one that runs is one if … */
	bool is_major;
	bool at_once; /* it marks while the program stands still: each minor one does */
	enum sim_phase phase;
	uint64_t seed;
	uint64_t ids[SIM_NAMES];
	unsigned int storms;  /* of 1000 reads, before how many the program runs on */
	bool no_eras;	      /* some samples come without one */
	bool lazy;	      /* what is dead is freed little by little */
	struct walk *young;   /* the BPF programs' scratch; NULL: they copy nothing */
	struct walk *cpus[2]; /* if not young: the same of two CPUs */
	unsigned int full;    /* of 100 copies, how many find no room in the ring */
	size_t named, unnamed;
};

static uint64_t sim_random(struct sim *s, uint64_t n)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed % n;
}

static const char *sim_name(uint32_t name, char buf[8])
{
	snprintf(buf, 8, "%03u", name % SIM_NAMES);
	return buf;
}

/* An object takes the place of one that was freed: all of it as it was, but for the name. */
static void sim_allocate(struct sim *s, struct sim_object *o)
{
	struct ruby_image *img = s->f.img;
	char name[8];

	o->alive = o->held = true;
	o->age = 0;
	o->marked = 0;
	o->name = (uint32_t)sim_random(s, SIM_NAMES);
	if (o->is_method) {
		image_put64(img, o->addr, IMAGE_IMEMO(IMAGE_MENT));
		image_put64(img, o->addr + 24, s->ids[o->name]);
		image_put64(img, image_get64(img, o->addr + 16) + 32, s->ids[o->name]);
	} else {
		image_put64(img, o->addr, IMAGE_IMEMO(IMAGE_ISEQ_IMEMO));
		image_label_text(img, o->addr, sim_name(o->name, name));
	}
}

/* Up to 3.2 a collection can make an object old that is new. */
static uint32_t sim_old(const struct sim *s)
{
	return s->f.img->facts.old_flags == RUBY_FL_PROMOTED ? SIM_AGE : 1;
}

/* A minor collection takes it for granted that old objects are held. */
static bool sim_spares(const struct sim *s, const struct sim_object *o)
{
	return !s->is_major && o->age >= sim_old(s);
}

/* Mark what is held now, or some of that. */
static void sim_mark(struct sim *s, bool all)
{
	for (size_t i = 0; i < SIM_SLOTS; i++) {
		struct sim_object *o = &s->objects[i];

		if (!o->alive || !(o->held || sim_spares(s, o)) || o->marked == s->count ||
		    (!all && sim_random(s, 2)))
			continue;
		o->marked = s->count;
		if (++o->age >= sim_old(s))
			image_age(s->f.img, o->addr, true);
	}
}

static void sim_free(struct sim *s, struct sim_object *o)
{
	o->alive = o->doomed = false;
	image_put64(s->f.img, o->addr, 0);
}

/* Free what was not marked: now, or each at some time before the next collection. */
static void sim_sweep(struct sim *s)
{
	for (size_t i = 0; i < SIM_SLOTS; i++) {
		struct sim_object *o = &s->objects[i];

		if (!o->alive || o->marked == s->count)
			continue;
		o->doomed = true;
		if (!s->lazy)
			sim_free(s, o);
	}
}

static void sim_sweep_the_rest(struct sim *s)
{
	for (size_t i = 0; i < SIM_SLOTS; i++)
		if (s->objects[i].doomed)
			sim_free(s, &s->objects[i]);
}

/* One step of a collection, as gc_start(), gc_marks() and gc_sweep() have them. */
static void sim_collect(struct sim *s)
{
	struct ruby_image *img = s->f.img;

	switch (s->phase) {
	case SIM_IDLE:
		sim_sweep_the_rest(s);
		image_gc_flags(img, IMAGE_GC_DURING);
		s->is_major = !sim_random(s, 4);
		s->at_once = !s->is_major || !sim_random(s, 4);
		s->major += s->is_major;
		s->count++;
		image_gc_begins(img);
		s->phase = SIM_BEGINS;
		break;
	case SIM_BEGINS:
		image_gc_counts(img, s->count - s->major, s->major);
		image_gc_flags(img, IMAGE_GC_MARKING | (s->at_once ? IMAGE_GC_DURING : 0));
		sim_mark(s, s->at_once);
		s->phase = SIM_MARKS;
		break;
	case SIM_MARKS:
		sim_mark(s, true);
		image_gc_flags(img, IMAGE_GC_SWEEPING);
		sim_sweep(s);
		s->phase = SIM_IDLE;
		break;
	}
}

/* Let the program run on for a while, or its collector, in which case it stands still. */
static void sim_run(struct sim *s)
{
	struct sim_object *o = &s->objects[sim_random(s, SIM_SLOTS)];

	if (!sim_random(s, 24) || s->phase == SIM_BEGINS || (s->phase == SIM_MARKS && s->at_once))
		sim_collect(s);
	else if (o->doomed && !sim_random(s, 4))
		sim_free(s, o);
	else if (!o->alive)
		sim_allocate(s, o);
	else if (o->held) /* what is not held is not found again */
		o->held = sim_random(s, 4) != 0;
}

static void sim_on_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	struct sim *s = img->arg;

	(void)addr;
	(void)len;
	if (sim_random(s, 1000) >= s->storms)
		return;
	for (uint64_t n = sim_random(s, 16); n; n--)
		sim_run(s);
}

/* As the BPF programs make it ready to be sent, with what is copied. */
static void sim_copy(struct sim *s, struct sim_sample *sample, const struct walk_gc *gc)
{
	const struct rbpf_ring_memory *rec = (const void *)walk_host.sent;
	struct walk *w = s->young;

	walk_host.walk = w;
	walk_host.ring_full = sim_random(s, 100) < s->full;
	walk_host_seed(w, gc->era << 1 | !!(gc->flags & RUBY_GC_DURING_GC));
	walk_may_read(w);
	w->frames[0] = sample->frame;
	w->n_frames = 1;
	walk_complete(0);
	walk_host_capture(w, 1, gc->era, gc->in_transition ? RBPF_STACK_GC_TRANSITION : 0);
	sample->frame = w->frames[0];
	if (!walk_host.n_sent)
		return;
	cr_assert_eq(walk_host.n_records, 1);
	sample->copied = rec->n_bytes;
	sample->copy = malloc(sample->copied);
	memcpy(sample->copy, rec + 1, sample->copied);
}

/*
 * As the BPF programs send it: with a check, unless it was sent with one in this era, or since the
 * last major collection and is old.
 */
static void sim_check(struct sim *s, struct sim_sample *sample, const struct walk_gc *gc)
{
	struct walk *w;

	sample->cpu = (unsigned int)sim_random(s, 2);
	w = s->cpus[sample->cpu];
	walk_host.walk = w;
	walk_host_seed(w, gc->era << 1 | !!(gc->flags & RUBY_GC_DURING_GC));
	w->old_seed = gc->major ? rbpf_mix(77, gc->major) | 1 : 0;
	walk_may_read(w);
	w->frames[0] = sample->frame;
	w->n_frames = 1;
	walk_complete(0);
	sample->frame = w->frames[0];
}

/*
 * What the BPF programs read they read at one stroke. A thread that is just about to mark little by
 * little is of the era that ends with that; of a Ruby where nothing tells it from one that has
 * marked, there is no sample.
 */
static void sim_sample(struct sim *s)
{
	const struct sim_object *o = &s->objects[sim_random(s, SIM_SLOTS)];
	struct sim_sample *sample = &s->queue[s->n_queue];
	__u64 words[RBPF_GC_WORDS];
	struct walk_gc gc;

	if (!o->alive || !o->held || s->n_queue == SIM_QUEUE)
		return;
	if (s->phase == SIM_BEGINS && !s->at_once && !s->f.img->facts.objspace_major)
		return;
	s->f.img->on_read = NULL;
	sample->frame = o->is_method ? (struct rbpf_frame) { .me = o->addr }
				     : frame_of(&s->f, o->addr);
	sample->copy = NULL;
	walk_host.mem = &s->f.img->vm.mem;
	gc_read(&gc, &s->f.img->vm.walk, 0, words);
	gc.in_transition = 0;
	if (s->young)
		sim_copy(s, sample, &gc);
	else
		sim_check(s, sample, &gc);
	sample->sampled = (struct stack_era) { .gc_era = gc.era,
					       .gc_major = s->young ? 0 : gc.major,
					       .gc_transition = gc.in_transition };
	if (s->no_eras && !sim_random(s, 20))
		sample->sampled.gc_era = 0;
	s->f.img->on_read = sim_on_read;
	sample->name = o->name;
	s->n_queue++;
}

/* Take what was copied when it was sampled. */
static void sim_take(struct sim *s, struct sim_sample *sample)
{
	if (!sample->copy)
		return;
	cr_assert_eq(code_cache_captured(&s->f.c, &sample->sampled, sample->copy, sample->copied),
		     0);
	free(sample->copy);
	sample->copy = NULL;
}

/*
 * Look at one of the @n oldest samples, of which some may be out of order, but not those of one
 * CPU: what it is named must be what it was.
 */
static void sim_lookup(struct sim *s, uint64_t n)
{
	size_t i = sim_random(s, n);
	struct sim_sample sample;
	const char *name;
	char want[8];

	if (i >= s->n_queue)
		return;
	for (size_t k = 0; k < i && !s->young; k++)
		if (s->queue[k].cpu == s->queue[i].cpu)
			i = k;
	/* Copies come in order, and before all that rely on them: the ring keeps it. */
	for (size_t k = 0; k <= i; k++)
		sim_take(s, &s->queue[k]);
	sample = s->queue[i];
	memmove(&s->queue[i], &s->queue[i + 1], (--s->n_queue - i) * sizeof(sample));
	name = sample.frame.iseq ? name_of(&s->f, sample.sampled, sample.frame)
				 : c_name_of(&s->f, sample.sampled, sample.frame);
	sim_name(sample.name, want);
	/* Without an era what is found there is believed. */
	if (*name && sample.sampled.gc_era)
		cr_assert_str_eq(
			name, want, "%s: \"%s\", not \"%s\": sampled in era %llu, %llu collections",
			s->f.img->version, name, want, (unsigned long long)sample.sampled.gc_era,
			(unsigned long long)s->count);
	*(*name ? &s->named : &s->unnamed) += 1;
}

static void sim_init(struct sim *s, const char *version, uint64_t seed)
{
	char name[8];

	s->f = setup(version);
	s->seed = seed;
	for (uint32_t i = 0; i < SIM_NAMES; i++)
		s->ids[i] = image_id(s->f.img, sim_name(i, name));
	for (size_t i = 0; i < SIM_SLOTS; i++) {
		struct sim_object *o = &s->objects[i];

		o->is_method = i % 4 == 0;
		o->addr = o->is_method ? image_ment(s->f.img, s->f.img->object, "000", IMAGE_CFUNC)
				       : new_iseq(&s->f, "000");
		sim_allocate(s, o);
	}
	s->f.img->arg = s;
	s->f.img->on_read = sim_on_read;
}

/* @lag: how many samples wait, more or less. */
static void simulate(const char *version, uint64_t lag, unsigned int storms, bool no_eras)
{
	struct sim s = { .storms = storms, .no_eras = no_eras, .lazy = lag % 8 };

	sim_init(&s, version, 88172645463325252ull + lag);
	for (size_t cpu = 0; cpu < 2; cpu++)
		s.cpus[cpu] = walk_host_new(&s.f.img->vm.walk, RBPF_MIN_FRAMES);
	for (int step = 0; step < 60000; step++) {
		if (!sim_random(&s, 50))
			s.f.c.revalidation++;
		switch (sim_random(&s, 4)) {
		case 0:
			sim_run(&s);
			break;
		case 1:
			if (s.n_queue > lag)
				sim_lookup(&s, 3);
			break;
		default:
			sim_sample(&s);
		}
	}
	cr_expect_gt(s.named, 1000, "%s: %zu named, %zu not", version, s.named, s.unnamed);
	cr_expect_gt(s.named, s.unnamed / 4, "%s: %zu named, %zu not", version, s.named, s.unnamed);
	free(s.cpus[0]);
	free(s.cpus[1]);
	teardown(&s.f);
}

Test(code_cache, never_a_wrong_name)
{
	FOR_EACH_IMAGE(img)
	for (uint64_t lag = 0; lag < 24; lag += 4)
		simulate(img->version, lag, 0, false);
}

Test(code_cache, never_a_wrong_name_while_it_runs_on)
{
	FOR_EACH_IMAGE(img)
	for (uint64_t lag = 0; lag < 24; lag += 4)
		simulate(img->version, lag, 40, false);
}

Test(code_cache, never_a_wrong_name_with_samples_of_no_era)
{
	FOR_EACH_IMAGE(img)
	for (uint64_t lag = 0; lag < 24; lag += 4)
		simulate(img->version, lag, 40, true);
}

/* The reads of one look-up of @frame. */
static size_t reads_of(struct fixture *f, struct stack_era sampled, struct rbpf_frame frame)
{
	size_t before = f->img->n_reads;

	lookup(f, sampled, frame);
	cr_expect(f->ref.iseq_ok || f->ref.method_ok, "%s", f->img->version);
	return f->img->n_reads - before;
}

/* Minor collections do not free what is old, so it needs to be compared only after a major one. */
Test(code_cache, old_between_major_collections)
{
	FOR_EACH_IMAGE(img)
	{
		struct fixture f = setup(img->version);
		struct rbpf_frame frames[] = { frame_of(&f, new_iseq(&f, "foo")),
					       c_function(&f, "bar") };

		for (size_t i = 0; i < 2; i++) {
			uint64_t object = i ? frames[i].me : frames[i].iseq;
			bool known = img->facts.objspace_major;
			struct stack_era sampled = at(10);

			image_gc_counts(f.img, 6, 3);
			sampled.gc_major = known ? 3 : 0;
			reads_of(&f, sampled, frames[i]);
			image_gc_counts(f.img, 7, 3);
			sampled.gc_era++;
			cr_expect_gt(reads_of(&f, sampled, frames[i]), 0, "%s: it is young",
				     img->version);
			image_age(f.img, object, true);
			image_gc_counts(f.img, 8, 3);
			sampled.gc_era++;
			cr_expect_gt(reads_of(&f, sampled, frames[i]), 0, "%s: not known to be old",
				     img->version);
			image_gc_counts(f.img, 30, 3);
			sampled.gc_era += 22;
			cr_expect_eq(!reads_of(&f, sampled, frames[i]), known, "%s", img->version);
			image_gc_counts(f.img, 30, 4);
			sampled.gc_era++;
			sampled.gc_major += known;
			cr_expect_gt(reads_of(&f, sampled, frames[i]), 0, "%s: a major collection",
				     img->version);
		}
		teardown(&f);
	}
}

/*
 * A major collection did not find it, and will free it: what is read of it says nothing of later.
 */
Test(code_cache, old_but_waiting_to_be_freed)
{
	FOR_EACH_IMAGE(img)
	{
		struct fixture f = setup(img->version);
		uint64_t iseq = new_iseq(&f, "foo");
		struct stack_era before = at(10), later = at(13);

		if (img->facts.objspace_major) {
			before.gc_major = 3;
			later.gc_major = 4;
		}
		image_age(f.img, iseq, true);
		image_gc_counts(f.img, 7, 4);
		image_gc_flags(f.img, IMAGE_GC_SWEEPING);
		lookup(&f, before, frame_of(&f, iseq));
		image_label_text(f.img, iseq, "bar");
		image_gc_counts(f.img, 8, 4);
		image_gc_flags(f.img, 0);
		cr_expect_str_eq(name_of(&f, later, frame_of(&f, iseq)), "bar", "%s", img->version);
		teardown(&f);
	}
}

/*
 * A process of which the BPF programs copy what names need, and which ends after @steps: what was
 * sampled of it last is looked at when nothing can be read any more. @order: of how many samples
 * the next one is taken.
 */
static void brief_life(struct sim *s, const char *version, uint64_t seed, uint64_t lag, int steps,
		       uint64_t order)
{
	sim_init(s, version, seed * 2862933555777941757ull + 3037000493ull);
	s->young = walk_host_new(&s->f.img->vm.walk, RBPF_MIN_FRAMES);
	s->young->layout.flags |= RBPF_LAYOUT_COPY;
	walk_host_forget();
	for (int step = 0; step < steps; step++) {
		if (!sim_random(s, 50))
			s->f.c.revalidation++;
		if (!sim_random(s, 3))
			sim_run(s);
		else if (s->n_queue > lag)
			sim_lookup(s, order);
		else
			sim_sample(s);
	}
	s->f.img->on_read = NULL;
	image_hide_all(s->f.img, true);
	for (int tries = 0; s->n_queue && tries < 10000; tries++)
		sim_lookup(s, order);
	free(s->young);
	teardown(&s->f);
}

/*
 * What is read for a sample of an earlier era may be dead: another one can take its place in the
 * era in which it was read.
 */
Test(code_cache, dead_but_not_freed_yet)
{
	FOR_EACH_IMAGE(img)
	for (int old = 0; old < 2; old++)
		for (int gone = 0; gone < 2; gone++) {
			struct fixture f = setup(img->version);
			uint64_t iseq = new_iseq(&f, "foo"), other = new_iseq(&f, "sam");

			image_age(f.img, iseq, old);
			set_era(&f, 5);
			image_gc_flags(f.img, IMAGE_GC_SWEEPING);
			lookup(&f, at(4), frame_of(&f, iseq));
			name_of(&f, at(5), frame_of(&f, other));
			image_age(f.img, iseq, false);
			image_label_text(f.img, iseq, "bar");
			image_hide_all(f.img, gone);
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), gone ? "" : "bar",
					 "%s: %d", img->version, old);
			/* What was on a stack in that era is not freed in it. */
			image_hide_all(f.img, true);
			cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, other)), "sam", "%s",
					 img->version);
			teardown(&f);
		}
}

/* When all that was dead has been freed, what is there stays to the end of the era. */
Test(code_cache, nothing_is_dead)
{
	FOR_EACH_IMAGE(img)
	{
		struct fixture f = setup(img->version);
		uint64_t iseq = new_iseq(&f, "foo");

		set_era(&f, 5);
		lookup(&f, at(4), frame_of(&f, iseq));
		image_hide_all(f.img, true);
		cr_expect_str_eq(name_of(&f, at(5), frame_of(&f, iseq)), "foo", "%s", img->version);
		teardown(&f);
	}
}

/* Everything is named if it is looked at in order, and nothing wrongly, however late it is. */
Test(code_cache, brief_lives)
{
	FOR_EACH_IMAGE(img)
	for (uint64_t seed = 0; seed < 80; seed++) {
		struct sim s = { .storms = seed % 2 ? 40 : 0, .lazy = seed % 4 > 1 };

		brief_life(&s, img->version, seed, seed % 40, 40 + (int)seed * 20, 1);
		cr_expect_gt(s.named, 0);
		cr_expect_eq(s.unnamed, 0, "%s, %llu: %zu named, %zu not", img->version,
			     (unsigned long long)seed, s.named, s.unnamed);
	}
}

Test(code_cache, brief_lives_in_disorder)
{
	size_t named = 0, unnamed = 0;

	FOR_EACH_IMAGE(img)
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct sim s = { .storms = seed % 2 ? 40 : 0,
				 .full = seed % 3 ? 0 : 30,
				 .no_eras = seed % 5 == 4,
				 .lazy = seed % 7 > 2 };

		brief_life(&s, img->version, seed, seed % 40, 40 + (int)(seed % 80) * 20, 3);
		named += s.named;
		unnamed += s.unnamed;
	}
	cr_expect_gt(named, unnamed * 10, "%zu named, %zu not", named, unnamed);
}
