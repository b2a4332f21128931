/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF programs copy to name a stack (bpf/name_capture.bpf.h) is all that naming it reads:
 * each stack is named twice, from the whole memory, and from the copies alone.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "profile/profile.h"
#include "ruby/iseq.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"
#include "symbol/resolver.h"

struct fixture {
	struct ruby_image *img;
	struct image_thread t;
	struct walk *w;
};

static struct fixture setup(const char *version)
{
	struct fixture f = { .img = image_new(version) };

	image_gc_count(f.img, 4);
	f.t = image_thread(f.img, 16384);
	f.w = walk_host_new(&f.img->vm.walk, RBPF_MAX_FRAMES);
	f.w->layout.flags |= RBPF_LAYOUT_COPY;
	walk_host_forget();
	return f;
}

static void teardown(struct fixture *f)
{
	free(f->w);
	image_free(f->img);
}

static const struct stack_era now = { .gc_era = 5 };

/* Walk, complete and copy, as at a tick. */
static void tick(struct fixture *f)
{
	cr_assert_eq(walk_host_run(f->w, &f->img->vm.mem, f->t.ec), RBPF_OK);
	walk_host_capture(f->w, 77, now.gc_era, 0);
}

static void assert_sane_record(const struct rbpf_ring_memory *rec, size_t left)
{
	const uint8_t *at = (const uint8_t *)(rec + 1), *end = at + rec->n_bytes;
	size_t items = 0;

	cr_assert_leq(sizeof(*rec) + rec->n_bytes, left);
	cr_assert_eq(rec->h.type, RBPF_RING_MEMORY);
	cr_assert_eq(rec->gc_era, now.gc_era);
	while (at < end) {
		struct rbpf_block b;

		memcpy(&b, at, sizeof(b));
		cr_assert_leq(b.kind, RBPF_BLOCK_CFUNC);
		cr_assert_gt(b.len, 0);
		cr_assert_leq(b.len, CAPTURE_BLOCK_MAX);
		items += b.kind != RBPF_BLOCK_PART;
		at += sizeof(b) + image_round(b.len, 8);
	}
	cr_assert(at == end, "the blocks end where the record does");
	cr_assert_gt(items, 0, "a record is of something");
}

/* Hand what was copied at the last tick to @r. */
static void take(struct resolver *r)
{
	size_t at = 0, n = 0;

	while (at < walk_host.n_sent) {
		const struct rbpf_ring_memory *rec = (const void *)(walk_host.sent + at);

		assert_sane_record(rec, walk_host.n_sent - at);
		cr_assert_eq(resolver_captured(r, &now, rec + 1, rec->n_bytes), 0);
		at += sizeof(*rec) + rec->n_bytes;
		n++;
	}
	cr_assert_eq(n, walk_host.n_records);
}

/* Returns how many frames of the last walk @r cannot name. */
static size_t name(struct fixture *f, struct resolver *r, const uint32_t **ids, size_t *n)
{
	size_t unknown = 0;

	cr_assert_eq(resolver_stack(r, &now, f->w->frames, f->w->n_frames, NULL, ids, n), 0);
	for (size_t i = 0; i < *n; i++)
		unknown += resolver_symbol(r, (*ids)[i])->kind == FRAME_UNKNOWN;
	return unknown;
}

/* The stack is named the same, whether its process is there or gone. */
static void expect_same(struct fixture *f)
{
	struct resolver *live, *dead;
	const uint32_t *want, *got;
	size_t n_want, n_got;

	cr_assert_eq(resolver_new(&f->img->vm, &live), 0);
	cr_assert_eq(resolver_new(&f->img->vm, &dead), 0);
	tick(f);
	cr_assert_eq(walk_host.counters[RBPF_CNT_COPY_FAULT], 0, "%s", f->img->version);
	cr_assert_eq(name(f, live, &want, &n_want), 0, "%s", f->img->version);
	image_hide_all(f->img, true);
	take(dead);
	cr_expect_eq(name(f, dead, &got, &n_got), 0, "%s", f->img->version);
	image_hide_all(f->img, false);
	cr_assert_eq(n_want, n_got);
	for (size_t i = 0; i < n_want; i++) {
		const struct named_frame *a = resolver_symbol(live, want[i]);
		const struct named_frame *b = resolver_symbol(dead, got[i]);

		cr_expect(a->kind == b->kind && !strcmp(a->name, b->name) &&
				  !strcmp(a->file, b->file) && a->line == b->line &&
				  a->func_line == b->func_line && a->flags == b->flags,
			  "%s: frame %zu is %s %s:%u, not %s %s:%u", f->img->version, i, b->name,
			  b->file, b->line, a->name, a->file, a->line);
	}
	resolver_free(live);
	resolver_free(dead);
}

/* Another frame inside, at some position of @iseq. */
static void push(struct fixture *f, uint64_t iseq, uint32_t position, uint64_t me)
{
	image_push_method(&f->t, iseq, image_pc(f->img, iseq, position), me);
}

static uint64_t method_iseq(struct fixture *f, const char *label)
{
	return image_iseq(f->img,
			  &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = label });
}

/* ---- iseqs ---- */

static const char long_name[] = "a_method_whose_name_does_not_fit_into_a_slot_of_the_heap_and_that_"
				"goes_on_and_on_and_on_until_it_is_longer_than_what_a_check_takes_"
				"of_its_end";

Test(name_capture, labels_and_paths)
{
	static const char *const names[] = { "f",
					     "sixteen_letters1",
					     "seventeen_letters",
					     "twenty_three_letters_ab",
					     "more_than_twenty_four_letters",
					     long_name };

	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
						  .label = names[i],
						  .path = names[i],
						  .first_line = 10 };

			push(&f, image_iseq(f.img, &def), 3, 0);
			def.real = long_name; /* an Array */
			push(&f, image_iseq(f.img, &def), 3, 0);
		}
		expect_same(&f);
		teardown(&f);
	}
}

/* The Array of paths may have its elements elsewhere, and a String share its text. */
Test(name_capture, parts_elsewhere)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = method_iseq(&f, "foo"), body = image_body(f.img, iseq), v[2];

		v[0] = image_string_heap(f.img, "/x.rb", 5);
		v[1] = v[0];
		image_put64(f.img, body + 64, image_array(f.img, v, 2));
		image_put64(f.img, body + 80, image_string_heap(f.img, "foo", 3));
		push(&f, iseq, 3, 0);
		expect_same(&f);
		teardown(&f);
	}
}

/* A body, or whatever else, at the end of a mapping. */
Test(name_capture, at_the_end_of_a_mapping)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t iseq = method_iseq(&f, "foo"), body = image_body(f.img, iseq), last;

		last = image_alloc_last(f.img, f.img->facts.body_size);
		memcpy(image_at(f.img, last, f.img->facts.body_size),
		       image_at(f.img, body, f.img->facts.body_size), f.img->facts.body_size);
		image_put64(f.img, iseq + 16, last);
		push(&f, iseq, 3, 0);
		expect_same(&f);
		teardown(&f);
	}
}

Test(name_capture, lines)
{
	static const uint32_t sizes[] = { 1,  8,   9,	10,  53,  54,	55,
					  63, 565, 566, 567, 600, 2000, 20000 };

	FOR_EACH_IMAGE(unused)
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fixture f = setup(unused->version);
		uint32_t n = sizes[i] < 1000 ? sizes[i] : 1000;
		struct image_line lines[1000];
		uint64_t iseq;

		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct image_line) { k * (sizes[i] / n), 100 + k };
		iseq = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
								.label = "foo",
								.size = sizes[i],
								.lines = lines,
								.n_lines = n });
		for (uint32_t pos = 0; pos < sizes[i]; pos += 1 + sizes[i] / 37)
			push(&f, iseq, pos, 0);
		expect_same(&f);
		teardown(&f);
	}
}

/* "block (3 levels) in rescue in …": what is in what. */
static uint64_t nest(struct fixture *f, uint64_t outer, uint64_t local, const char *base,
		     unsigned int levels)
{
	static const uint32_t types[] = { RUBY_ISEQ_BLOCK, RUBY_ISEQ_RESCUE, RUBY_ISEQ_ENSURE,
					  RUBY_ISEQ_EVAL, RUBY_ISEQ_PLAIN };
	char label[256];

	for (unsigned int i = 0; i < levels; i++) {
		snprintf(label, sizeof(label), "block (%u levels) in %s", i + 1, base);
		outer = image_iseq(f->img,
				   &(struct image_iseq) { .type = types[i % 5 * (i % 3 == 1)],
							  .label = label,
							  .base = base,
							  .parent = outer,
							  .local = local });
		push(f, outer, 3, 0);
	}
	return outer;
}

Test(name_capture, what_is_in_what)
{
	static const uint32_t types[] = { RUBY_ISEQ_METHOD, RUBY_ISEQ_TOP, RUBY_ISEQ_CLASS,
					  RUBY_ISEQ_MAIN };

	FOR_EACH_IMAGE(unused)
	for (unsigned int levels = 0; levels < 12; levels++) {
		struct fixture f = setup(unused->version);

		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			uint64_t outer = image_iseq(
				f.img,
				&(struct image_iseq) { .type = types[i], .label = "outermost" });
			uint64_t eval = image_iseq(f.img,
						   &(struct image_iseq) { .type = RUBY_ISEQ_EVAL,
									  .label = "outermost",
									  .parent = outer });

			push(&f, outer, 3, 0);
			nest(&f, outer, outer, "outermost", levels);
			/* An eval that is its own local iseq. */
			nest(&f, eval, eval, "outermost", levels);
		}
		expect_same(&f);
		teardown(&f);
	}
}

/* Only the innermost one is on the stack. */
Test(name_capture, what_is_in_what_is_not_there)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct image_thread before = f.t;
		uint64_t outer = method_iseq(&f, long_name), iseq;

		iseq = nest(&f, outer, outer, long_name, 5);
		image_return(&f.t, &before);
		push(&f, iseq, 3, image_method(f.img, image_class(f.img, "Foo"), "x", outer));
		expect_same(&f);
		teardown(&f);
	}
}

/* ---- method entries ---- */

Test(name_capture, owners)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		uint64_t foo = image_class(f.img, "Foo"), meta = image_singleton(f.img, foo);
		uint64_t metameta = image_singleton(f.img, meta);
		uint64_t object = image_alloc(f.img, 40);
		uint64_t owners[11] = { foo,
					meta,
					metameta,
					meta,
					image_class(f.img, NULL),
					image_module(f.img, long_name),
					0,
					f.img->object };

		image_put64(f.img, object, IMAGE_T_OBJECT);
		owners[6] = image_singleton(f.img, object);
		/* What is attached to one is an owner, too; its own name is needed nowhere else. */
		owners[9] = image_singleton(f.img, image_class(f.img, "Bar"));
		owners[10] = image_singleton(f.img, owners[9]);
		owners[8] = image_singleton(f.img, image_module(f.img, "A::Name::Of::Five::Parts"));
		for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
			uint64_t iseq = method_iseq(&f, "foo");

			push(&f, iseq, 3, image_method(f.img, owners[i], "foo", iseq));
			push(&f, iseq, 3, image_ment(f.img, owners[i], "foo", IMAGE_BMETHOD));
			image_push_cfunc(&f.t,
					 image_ment(f.img, owners[i], "a_c_function", IMAGE_CFUNC));
		}
		expect_same(&f);
		teardown(&f);
	}
}

/* Up to 3.2 a name is one of many instance variables. */
Test(name_capture, classes_with_variables)
{
	FOR_EACH_IMAGE(unused)
	for (unsigned int where = 0; where < 6; where++) {
		struct fixture f = setup(unused->version);
		uint64_t klass = image_class(f.img, NULL), meta = image_singleton(f.img, klass);
		uint64_t iseq = method_iseq(&f, "foo");
		char name[8];

		if (f.img->facts.class_form == IMAGE_CLASS_CLASSEXT)
			where = 6;
		for (unsigned int i = 0; i < 6; i++) {
			if (i == where)
				image_class_name(f.img, klass, "Foo");
			snprintf(name, sizeof(name), "@%u", i);
			if (where < 6) {
				image_iv_put(f.img, klass, image_id(f.img, name), 0x15);
				image_iv_put(f.img, meta, image_id(f.img, name), 0x15);
			}
		}
		push(&f, iseq, 3, image_method(f.img, klass, "foo", iseq));
		push(&f, iseq, 3, image_method(f.img, meta, "bar", iseq));
		expect_same(&f);
		teardown(&f);
	}
}

Test(name_capture, c_functions)
{
	FOR_EACH_IMAGE(unused)
	for (int directory = 0; directory < 2; directory++) {
		struct fixture f = setup(unused->version);
		uint64_t bang = image_ment(f.img, f.img->object, "x", IMAGE_CFUNC);

		if (directory)
			image_symbols_in_directory(f.img);
		push(&f, method_iseq(&f, "foo"), 3, 0);
		/* IDs of operators are their serials. */
		image_put64(f.img, image_get64(f.img, bang + 16) + 32, IMAGE_SERIAL_BANG);
		image_push_cfunc(&f.t, bang);
		image_push_cfunc(&f.t, image_ment(f.img, f.img->object, long_name, IMAGE_CFUNC));
		for (int i = 0; i < 20; i++)
			image_push_cfunc(&f.t,
					 image_ment(f.img, f.img->object, "each", IMAGE_CFUNC));
		expect_same(&f);
		teardown(&f);
	}
}

/* ---- once, and what is too much ---- */

Test(name_capture, only_once)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "foo"), me, other;
	size_t reads;

	me = image_method(f.img, image_class(f.img, "Foo"), "foo", iseq);
	push(&f, iseq, 3, me);
	push(&f, iseq, 3, me);
	tick(&f);
	cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], 2, "an iseq and a method entry");
	cr_expect_eq(walk_host.n_records, 1);
	reads = walk_host.reads;
	tick(&f);
	cr_expect_eq(walk_host.n_records, 0, "the same era");
	cr_expect_lt(walk_host.reads, reads / 2);
	walk_host_seed(f.w, 1);
	tick(&f);
	cr_expect_eq(walk_host.n_records, 0, "another era");

	/* A process of the same id and memory. */
	walk_host_seed(f.w, 2);
	walk_host_run(f.w, &f.img->vm.mem, f.t.ec);
	walk_host_capture(f.w, 78, 5, 0);
	cr_expect_eq(walk_host.n_records, 1, "another process");
	walk_host_seed(f.w, 3);
	tick(&f);

	/* Another one in its place. */
	image_label_text(f.img, iseq, "bar");
	walk_host_seed(f.w, 4);
	tick(&f);
	cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], 1, "another iseq");
	other = image_class(f.img, "Bar");
	image_put64(f.img, me + 32, other);
	walk_host_seed(f.w, 5);
	tick(&f);
	cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], 1, "another method entry");
	teardown(&f);
}

/* Old ones, too: nothing else tells what they were. */
Test(name_capture, old_ones)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "foo");

	image_age(f.img, iseq, true);
	push(&f, iseq, 3, 0);
	tick(&f);
	cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], 1);
	cr_expect_neq(f.w->frames[0].check, 0);
	teardown(&f);
}

Test(name_capture, not_of_an_old_process)
{
	struct fixture f = setup("3.3");

	f.w->layout.flags &= (uint16_t)~RBPF_LAYOUT_COPY;
	push(&f, method_iseq(&f, "foo"), 3, 0);
	tick(&f);
	cr_expect_eq(walk_host.n_records, 0);
	teardown(&f);
}

/* What found no room is sent with the next stack. */
Test(name_capture, no_room)
{
	struct fixture f = setup("3.3");

	push(&f, method_iseq(&f, "foo"), 3, 0);
	walk_host.ring_full = true;
	tick(&f);
	cr_expect_eq(walk_host.n_records, 0);
	cr_expect_eq(walk_host.counters[RBPF_CNT_NOT_COPIED], 1);
	walk_host.ring_full = false;
	expect_same(&f);
	teardown(&f);
}

/* More than at one tick: the innermost first, the others in their turn. */
Test(name_capture, many)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		struct resolver *r;
		const uint32_t *ids;
		size_t n, total = 300, left = total, records = 0;
		char label[16];

		cr_assert_eq(resolver_new(&f.img->vm, &r), 0);
		for (size_t i = 0; i < total; i++) {
			snprintf(label, sizeof(label), "m%zu", i);
			push(&f, method_iseq(&f, label), 3, 0);
		}
		while (left) {
			image_hide_all(f.img, false);
			tick(&f);
			cr_assert_leq(walk_host.counters[RBPF_CNT_COPIED], CAPTURE_ITEMS);
			records += walk_host.n_records;
			image_hide_all(f.img, true);
			take(r);
			left = left > CAPTURE_ITEMS ? left - CAPTURE_ITEMS : 0;
			cr_expect_eq(name(&f, r, &ids, &n), left, "%s", f.img->version);
			cr_expect_neq(resolver_symbol(r, ids[0])->kind, FRAME_UNKNOWN, "innermost");
		}
		cr_expect_gt(records, 3, "more than fits into one record");
		resolver_free(r);
		teardown(&f);
	}
}

/* Whatever cannot be read, or is too long, harms nothing else. */
Test(name_capture, not_in_full)
{
	FOR_EACH_IMAGE(unused)
	for (int part = 0; part < 6; part++) {
		struct fixture f = setup(unused->version);
		uint64_t bad = method_iseq(&f, "bad"), body = image_body(f.img, bad), at;
		const uint64_t places[] = { body + 64, body + 72, body + 80, bad + 16,
					    body + f.img->facts.insns_body };
		struct resolver *r;
		const uint32_t *ids;
		size_t n;

		cr_assert_eq(resolver_new(&f.img->vm, &r), 0);
		push(&f, method_iseq(&f, "good"), 3, 0);
		push(&f, bad, 3, 0);
		push(&f, method_iseq(&f, "fine"), 3, 0);
		at = part < 5 ? places[part] : body + f.img->facts.insns_size;
		if (part < 5)
			image_put64(f.img, at, 0x5000);
		else
			image_put32(f.img, at, 0x7fffffff);
		tick(&f);
		image_hide_all(f.img, true);
		take(r);
		n = name(&f, r, &ids, &n);
		/* 3.4 on: the base label is not used. */
		cr_expect_eq(n, part != 1 || !f.img->vm.rules.labels_from_parents, "%s: %d",
			     f.img->version, part);
		resolver_free(r);
		teardown(&f);
	}
}

/*
 * A page is missing for a moment: what it holds parts of is copied again, and so is who shares it.
 */
Test(name_capture, missing_for_a_moment)
{
	FOR_EACH_IMAGE(unused)
	{
		struct fixture f = setup(unused->version);
		const uint64_t iseqs[] = { method_iseq(&f, "one"), method_iseq(&f, "two") };
		const uint64_t path = image_string_heap(f.img, "/app/shared/by/both.rb", 22);
		const uint64_t text = image_get64(f.img, path + 24);
		struct resolver *r;
		const uint32_t *ids;
		size_t n;

		cr_assert_eq(resolver_new(&f.img->vm, &r), 0);
		for (int i = 0; i < 2; i++) {
			image_put64(f.img, image_body(f.img, iseqs[i]) + 64, path);
			push(&f, iseqs[i], 3, 0);
			push(&f, iseqs[i], 3, 0);
		}
		image_put64(f.img, path + 24, 0x5000);
		tick(&f);
		/*
		 * One that is called by itself is copied once, but where another has taken its
		 * slot.
		 */
		cr_expect_geq(walk_host.counters[RBPF_CNT_COPY_FAULT], 2, "%s", f.img->version);
		cr_expect_lt(walk_host.counters[RBPF_CNT_COPY_FAULT], 4, "%s", f.img->version);
		cr_expect(f.w->capture.again);
		image_put64(f.img, path + 24, text);
		tick(&f);
		cr_expect_geq(walk_host.counters[RBPF_CNT_COPIED], 2, "%s", f.img->version);
		cr_expect_not(f.w->capture.again);
		image_hide_all(f.img, true);
		take(r);
		cr_expect_eq(name(&f, r, &ids, &n), 0, "%s", f.img->version);
		image_hide_all(f.img, false);
		tick(&f);
		cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], 0, "once is enough");
		resolver_free(r);
		teardown(&f);
	}
}

/* What can never be read is not tried for ever. */
Test(name_capture, missing_for_good)
{
	struct fixture f = setup("3.3");
	uint64_t iseq = method_iseq(&f, "foo");

	image_put64(f.img, image_body(f.img, iseq) + f.img->facts.insns_body, 0x5000);
	push(&f, iseq, 3, 0);
	for (int i = 0; i < 5; i++) {
		tick(&f);
		cr_expect_eq(walk_host.counters[RBPF_CNT_COPIED], i < CAPTURE_TRIES, "%d", i);
		cr_expect_eq(f.w->capture.again, i + 1 < CAPTURE_TRIES, "%d", i);
		walk_host_seed(f.w, (uint64_t)i + 1); /* others would ask no more before that */
	}
	teardown(&f);
}

Test(name_capture, cut_short)
{
	struct fixture f = setup("3.3");
	const struct rbpf_ring_memory *rec = (const void *)walk_host.sent;
	struct resolver *r;
	int whole = 0;

	push(&f, method_iseq(&f, "foo"), 3, image_method(f.img, f.img->object, "foo", 0x5000));
	tick(&f);
	for (size_t len = 0; len <= rec->n_bytes; len++) {
		char *copy = malloc(len + 1); /* ASan sees what is read beyond */
		int err;

		memcpy(copy, rec + 1, len);
		cr_assert_eq(resolver_new(&f.img->vm, &r), 0);
		err = resolver_captured(r, &now, copy, len);
		cr_expect(!err || err == -EPROTO);
		whole += !err;
		resolver_free(r);
		free(copy);
	}
	cr_expect_gt(whole, 1);
	cr_expect_lt(whole, 200);
	teardown(&f);
}
