/* SPDX-License-Identifier: GPL-2.0-only */
/* What the BPF programs read of the frame that tells a request, and of no other. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"
#include "request_read.bpf.h"

#define LOCALS 3

struct fixture {
	struct ruby_image *img;
	struct walk *w;
	struct image_thread t;
	uint64_t iseq, other, klass, self, me;
};

static uint64_t object_of(struct ruby_image *img, uint64_t klass)
{
	uint64_t object = image_alloc(img, 40);

	image_put64(img, object, IMAGE_T_OBJECT);
	image_put64(img, object + 8, klass);
	return object;
}

static void setup_with(struct fixture *f, struct ruby_image *img)
{
	*f = (struct fixture) { .img = img };
	f->iseq = image_iseq(img,
			     &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "run" });
	f->other = image_iseq(img,
			      &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "other" });
	f->klass = image_class(img, "OrdersController");
	f->self = object_of(img, f->klass);
	f->me = image_ment(img, f->klass, "run", f->iseq);
	f->t = image_thread(img, 4096);
	f->w = walk_host_new(&img->vm.walk, RBPF_MAX_FRAMES);
	walk_host.request_iseq = f->iseq;
	walk_host.request_rule = (struct rbpf_request_rule) { .rule = 7,
							      .class_from = RBPF_REQUEST_OF_SELF };
}

static void teardown(struct fixture *f)
{
	walk_host.request_iseq = 0;
	free(f->w);
}

static void call(struct fixture *f, uint64_t iseq, uint64_t self)
{
	image_push(&f->t, &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
						  .iseq = iseq,
						  .pc = image_pc(f->img, iseq, 0),
						  .me_cref = f->me,
						  .locals = LOCALS });
	image_put64(f->img, f->t.cfp + 24, self);
}

/* Local variable @i of the innermost frame. */
static void set_local(struct fixture *f, uint32_t i, uint64_t value)
{
	image_put64(f->img, f->t.ep - (LOCALS + 2 - i) * 8ull, value);
}

static void set_filter(struct fixture *f, uint64_t iseq)
{
	uint32_t bit = rbpf_request_bit(iseq);

	f->w->request_filter.bits[bit / 64] |= 1ull << bit % 64;
}

static bool is_found(struct fixture *f)
{
	f->w->request_wanted = 1;
	f->w->request_found = 0;
	set_filter(f, f->iseq);
	cr_assert_eq(walk_host_run(f->w, &f->img->vm.mem, f->t.ec), RBPF_OK);
	return f->w->request_found;
}

/* What is read of it, if one was found. */
static const struct rbpf_ring_request *found(struct fixture *f)
{
	if (!is_found(f))
		return NULL;
	request_keep_frame(f->w);
	request_read(0);
	request_take_checks(0);
	return &f->w->request;
}

#define FOR_EACH_FIXTURE(f)                                                                        \
	FOR_EACH_IMAGE(_img)                                                                       \
	for (struct fixture *_once = (setup_with(f, _img), f); _once; teardown(f), _once = NULL)

Test(request_frame, the_receiver_and_its_class)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		const struct rbpf_ring_request *r;
		uint64_t flags;

		call(&f, f.other, 8);
		call(&f, f.iseq, f.self);
		call(&f, f.other, 8);
		r = found(&f);
		cr_assert_not_null(r);
		cr_expect_eq(r->frame.iseq, f.iseq);
		cr_expect_neq(r->frame.check, 0);
		cr_expect_eq(r->me, f.me);
		cr_expect_neq(r->me_check, 0);
		cr_expect_eq(r->object, f.self);
		cr_assert_eq(memory_read_u64(&f.img->vm.mem, f.klass, &flags), 0);
		cr_expect_eq(f.w->request_class_flags, flags, "they tell its age");
		cr_expect_eq(r->klass, f.klass);
		cr_expect_eq(r->rule, 7);
		cr_expect_eq(r->text_len, 0);
	}
}

Test(request_frame, none_without_a_rule)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		call(&f, f.other, f.self);
		/* It passes the filter, too. */
		set_filter(&f, f.other);
		cr_expect_null(found(&f));
	}
}

Test(request_frame, the_innermost_one_decides)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		uint64_t inner = object_of(f.img, f.klass);

		call(&f, f.iseq, f.self);
		call(&f, f.iseq, inner);
		call(&f, f.other, 8);
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.object, inner);
	}
}

/* The text that is read of local variable 1. */
static const struct rbpf_ring_request *text_of(struct fixture *f, uint64_t value)
{
	const struct rbpf_ring_request *r;

	walk_host.request_rule.text_slot = LOCALS + 2 - 1;
	set_local(f, 0, 8);
	set_local(f, 1, value);
	set_local(f, 2, 8);
	r = found(f);
	cr_assert_not_null(r);
	return r;
}

Test(request_frame, texts)
{
	static const char lengthy[] = "123456789012345678901234567890123456789012345678901";
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		const struct rbpf_ring_request *r;
		uint64_t symbol = image_alloc(f.img, 40);
		uint64_t first;

		call(&f, f.iseq, f.self);
		call(&f, f.other, 8);
		f.t.ep = image_get64(f.img, f.t.cfp + f.img->facts.cf_size + 32);
		r = text_of(&f, image_string_embed(f.img, "index", 5));
		cr_expect_eq(r->text_len, 5);
		cr_expect_eq(memcmp(r->text, "index", 5), 0);
		cr_expect_eq(r->flags, 0);
		first = r->request;
		r = text_of(&f, image_string_heap(f.img, "index", 5));
		cr_expect_eq(r->text_len, 5);
		cr_expect_eq(r->request, first, "the same text");
		r = text_of(&f, image_string_heap(f.img, "indey", 5));
		cr_expect_neq(r->request, first, "another text");
		r = text_of(&f, image_string_heap(f.img, lengthy, 51));
		cr_expect_eq(r->text_len, RBPF_REQUEST_TEXT);
		cr_expect_eq(memcmp(r->text, lengthy, RBPF_REQUEST_TEXT), 0);
		cr_expect_eq(r->flags, RBPF_REQUEST_TEXT_CUT);
		r = text_of(&f, image_string_heap(f.img, "", 0));
		cr_expect_eq(r->text_len, 0);
		cr_expect_eq(r->flags, 0);
		r = text_of(&f, 1234 << 8 | 0x0c);
		cr_expect_eq(r->symbol, 1234);
		cr_expect_eq(r->flags, 0);
		image_put64(f.img, symbol, RUBY_T_SYMBOL);
		image_put64(f.img, symbol + 24, image_string_heap(f.img, "show", 4));
		r = text_of(&f, symbol);
		cr_expect_eq(r->symbol, 0);
		cr_expect_eq(r->text_len, 4);
		cr_expect_eq(memcmp(r->text, "show", 4), 0);
		/* Neither: nil, an Integer, another object, what cannot be read. */
		cr_expect_eq(text_of(&f, 8)->flags, RBPF_REQUEST_NO_TEXT);
		cr_expect_eq(text_of(&f, 43)->flags, RBPF_REQUEST_NO_TEXT);
		cr_expect_eq(text_of(&f, f.self)->flags, RBPF_REQUEST_NO_TEXT);
		cr_expect_eq(text_of(&f, 0x10000)->flags, RBPF_REQUEST_NO_TEXT);
	}
}

/*
 * In a frame of compiled code that has not called anything, a local variable may not be in memory.
 */
Test(request_frame, no_local_of_an_innermost_compiled_frame)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		if (!f.img->facts.cf_jit_return)
			continue;
		call(&f, f.other, 8);
		call(&f, f.iseq, f.self);
		image_put64(f.img, f.t.cfp + f.img->facts.cf_jit_return, 0x7e0000001000);
		cr_expect(text_of(&f, image_string_heap(f.img, "index", 5))->flags &
			  RBPF_REQUEST_NO_TEXT);
		cr_expect_eq(f.w->request.klass, f.klass, "its receiver is");
	}
}

/* With its String or by a read of its own, of whatever length: the same text as one of the heap. */
Test(request_frame, texts_in_a_string_of_each_length)
{
	static const char text[] = "12345678901234567890123";
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		call(&f, f.iseq, f.self);
		call(&f, f.other, 8);
		f.t.ep = image_get64(f.img, f.t.cfp + f.img->facts.cf_size + 32);
		for (size_t len = 0; len <= 23; len++) {
			const struct rbpf_ring_request *r =
				text_of(&f, image_string_embed(f.img, text, len));
			uint64_t first = r->request;

			cr_expect_eq(r->text_len, len);
			cr_expect_eq(memcmp(r->text, text, len), 0, "length %zu", len);
			for (size_t i = len; i < RBPF_REQUEST_TEXT; i++)
				cr_assert_eq(r->text[i], 0, "length %zu, byte %zu", len, i);
			r = text_of(&f, image_string_heap(f.img, text, len));
			cr_expect_eq(r->request, first, "length %zu", len);
		}
	}
}

/* It is taken once while its seed lasts, which an era and an epoch have of their own. */
Test(request_frame, the_check_is_remembered_with_its_iseq_and_seed)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		uint64_t check;

		call(&f, f.iseq, f.self);
		cr_assert_not_null(found(&f));
		check = f.w->request.frame.check;
		f.w->iseqs[iseq_slot(f.w, f.iseq)].check = 1; /* as taken with its stack */
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.frame.check, 1, "remembered");
		f.w->seed++;
		request_take_checks(0);
		cr_expect_eq(f.w->request.frame.check, check, "of another era");
		request_seen(f.w, f.iseq)->value = 2;
		request_take_checks(0);
		cr_expect_eq(f.w->request.frame.check, 2, "remembered, too");
		call(&f, f.other, f.self);
		walk_host.request_iseq = f.other;
		set_filter(&f, f.other);
		cr_assert_not_null(found(&f));
		cr_expect_neq(f.w->request.frame.check, check, "of another iseq");
	}
}

/* Once the stack is packed for the ring, its frames are none any more. */
Test(request_frame, the_stack_is_sent_before)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		for (int i = 0; i < RBPF_CHECKPOINT; i++)
			call(&f, f.other, 8);
		call(&f, f.iseq, f.self);
		call(&f, f.other, 8);
		cr_assert(is_found(&f));
		cr_expect_eq(walk_host_checkpoints(f.w, 77), 1);
		request_read(0);
		request_take_checks(0);
		cr_expect_eq(f.w->request.frame.iseq, f.iseq);
		cr_expect_eq(f.w->request.me, f.me);
		cr_expect_neq(f.w->request.frame.check, 0);
	}
}

/*
 * An old iseq takes the place of another one in iseqs[]: what is remembered there is its own
 * check from then on.
 */
Test(request_frame, the_check_of_another_iseq_is_not_taken_for_its_own)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f)
		for (int old = 0; old < 2; old++) {
			const uint32_t slot = iseq_slot(f.w, f.iseq);
			uint64_t check;

			call(&f, f.iseq, f.self);
			cr_assert_not_null(found(&f));
			check = f.w->request.frame.check;
			f.w->seed++;
			f.w->old_seed = 77;
			image_age(f.img, f.iseq, old);
			f.w->iseqs[slot].seen = f.other ^ f.w->seed;
			f.w->iseqs[slot].check = 1;
			for (int i = 0; i < 3; i++) {
				request_take_checks(0);
				cr_expect_eq(f.w->request.frame.check, check, "old %d, time %d",
					     old, i);
			}
			f.w->old_seed = 0;
			image_age(f.img, f.iseq, false);
		}
}

/* rbpf is woken for a class that this CPU meets for the first time in this era. */
Test(request_frame, a_class_is_new_once)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		uint64_t other;

		call(&f, f.iseq, f.self);
		cr_assert_not_null(found(&f));
		cr_expect(f.w->request_class_new);
		cr_assert_not_null(found(&f));
		cr_expect_not(f.w->request_class_new);
		f.w->seed++;
		cr_assert_not_null(found(&f));
		cr_expect(f.w->request_class_new, "of another era");
		do /* one that does not take the place of the first */
			other = image_class(f.img, "InvoicesController");
		while (request_seen(f.w, other) == request_seen(f.w, f.klass));
		call(&f, f.iseq, object_of(f.img, other));
		cr_assert_not_null(found(&f));
		cr_expect(f.w->request_class_new, "another one");
		call(&f, f.iseq, f.self);
		cr_assert_not_null(found(&f));
		cr_expect_not(f.w->request_class_new, "the first one again");
	}
}

Test(request_frame, the_class_of_a_local_and_a_local_that_is_a_class)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		uint64_t klass = image_class(f.img, "MailJob"), job = object_of(f.img, klass);

		call(&f, f.iseq, f.self);
		set_local(&f, 0, job);
		walk_host.request_rule.class_from = RBPF_REQUEST_OF_LOCAL;
		walk_host.request_rule.class_slot = LOCALS + 2;
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, klass);
		cr_expect_eq(f.w->request.object, job, "it tells one job from the next");
		set_local(&f, 0, klass);
		walk_host.request_rule.class_from = RBPF_REQUEST_LOCAL;
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, klass);
		cr_expect_eq(f.w->request.object, f.self);
		set_local(&f, 0, 8);
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, 0, "nil is no class");
	}
}

Test(request_frame, the_class_above_a_singleton_class)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		uint64_t singleton = image_singleton(f.img, f.self);
		uint64_t module = image_class_of(f.img, IMAGE_T_ICLASS, NULL);

		image_put64(f.img, singleton + 16, module);
		image_put64(f.img, module + 16, f.klass);
		call(&f, f.iseq, f.self);
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, 0, "where the superclass is is not known");
		walk_host.request_rule.super_word = 2;
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, f.klass);
		image_put64(f.img, module + 16, module);
		cr_assert_not_null(found(&f));
		cr_expect_eq(f.w->request.klass, 0, "they go round in circles");
	}
}

/* ---- Rack's environment ---- */

#define PATH_HASH   0xabcdef01ul
#define METHOD_HASH 0xabcdef02ul

/* A Hash with @n entries. */
static uint64_t hash_of(struct fixture *f, const struct ruby_st_entry *entries, size_t n)
{
	const struct ruby_rules *rules = &f->img->vm.rules;
	uint64_t hash = image_alloc(f->img, 24 + 64), table = hash + RHASH_ST_EMBED;
	uint64_t data = image_alloc(f->img, n * sizeof(*entries));

	image_put64(f->img, hash, RUBY_T_HASH | RHASH_ST_TABLE);
	if (!rules->hash_embeds) {
		table = image_alloc(f->img, 56);
		image_put64(f->img, hash + RHASH_ST_POINTER, table);
	}
	image_put64(f->img, table + rules->st_bound, n);
	image_put64(f->img, table + rules->st_bound + 8, data);
	for (size_t i = 0; i < n; i++) {
		image_put64(f->img, data + i * 24, entries[i].hash);
		image_put64(f->img, data + i * 24 + 8, entries[i].key);
		image_put64(f->img, data + i * 24 + 16, entries[i].record);
	}
	return hash;
}

static uint64_t string(struct fixture *f, const char *s)
{
	return image_string_heap(f->img, s, strlen(s));
}

static struct ruby_st_entry entry(struct fixture *f, uint64_t hash, const char *key,
				  const char *value)
{
	return (struct ruby_st_entry) { hash, string(f, key), string(f, value) };
}

static void rule_of_env(struct fixture *f)
{
	const struct ruby_rules *rules = &f->img->vm.rules;

	walk_host.request_rule = (struct rbpf_request_rule) {
		.rule = 7,
		.text_slot = LOCALS + 2 - 1,
		.text_from = RBPF_REQUEST_ENV,
		.st_pointer = rules->hash_embeds ? 0 : RHASH_ST_POINTER,
		.st_bound = (uint8_t)(rules->st_bound + (rules->hash_embeds ? RHASH_ST_EMBED : 0)),
		.key_hash = { PATH_HASH, METHOD_HASH },
	};
}

/* What is read of @env in local variable 1. */
static const struct rbpf_ring_request *env_of(struct fixture *f, uint64_t env)
{
	const struct rbpf_ring_request *r = text_of(f, env);

	cr_expect_lt(walk_host.reads, 60);
	return r;
}

static void expect_no_path(struct fixture *f, uint64_t env)
{
	const struct rbpf_ring_request *r = env_of(f, env);

	cr_expect_eq(r->flags, RBPF_REQUEST_NO_TEXT);
	cr_expect_eq(r->text_len, 0);
	for (size_t i = 0; i < sizeof(r->text); i++)
		cr_expect_eq(r->text[i], 0, "nothing of it is in the record");
}

Test(request_frame, path_and_method_of_an_environment)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		const struct ruby_st_entry entries[] = {
			entry(&f, 5, "QUERY_STRING", "secret"),
			entry(&f, METHOD_HASH, "REQUEST_METHOD", "DELETE"),
			{ RUBY_ST_DELETED, 0, 0 },
			entry(&f, PATH_HASH, "REQUEST_PATH", "/orders/17"),
		};
		const uint64_t env = hash_of(&f, entries, 4);
		const struct rbpf_ring_request *r;

		call(&f, f.iseq, f.self);
		rule_of_env(&f);
		r = env_of(&f, env);
		cr_expect_eq(r->flags, 0);
		cr_expect_eq(r->object, env);
		cr_expect_eq(r->text_len, 10);
		cr_expect_eq(memcmp(r->text, "/orders/17", 10), 0);
		cr_expect_eq(memcmp(&r->verb, "DELETE\0", 8), 0);
	}
}

Test(request_frame, the_key_is_compared)
{
	static const char *const others[] = { "REQUEST_PATHS", "REQUEST_PAT",  "HTTP_COOKIE_",
					      "REQUEST_PATh",  "xEQUEST_PATH", "" };
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		call(&f, f.iseq, f.self);
		rule_of_env(&f);
		for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
			struct ruby_st_entry e = entry(&f, PATH_HASH, others[i], "secret");

			expect_no_path(&f, hash_of(&f, &e, 1));
		}
	}
}

Test(request_frame, what_is_no_environment)
{
	struct fixture f;

	FOR_EACH_FIXTURE(&f) {
		struct ruby_st_entry e = entry(&f, PATH_HASH, "REQUEST_PATH", "/x");
		uint64_t env = hash_of(&f, &e, 1);
		struct ruby_st_entry entries[80];

		call(&f, f.iseq, f.self);
		rule_of_env(&f);
		cr_expect_eq(env_of(&f, env)->flags, 0);
		expect_no_path(&f, 8);
		expect_no_path(&f, f.self);
		expect_no_path(&f, string(&f, "REQUEST_PATH"));
		image_put64(f.img, env, RUBY_T_HASH);
		expect_no_path(&f, env);
		expect_no_path(&f, hash_of(&f, &e, 0));
		e.record = f.self;
		expect_no_path(&f, hash_of(&f, &e, 1));
		e.record = 0x10000;
		expect_no_path(&f, hash_of(&f, &e, 1));
		/* Of many entries the first ones are looked at. */
		e = entry(&f, PATH_HASH, "REQUEST_PATH", "/x");
		for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
			entries[i] = (struct ruby_st_entry) { 9, e.record, e.record };
		entries[63] = e;
		cr_expect_eq(env_of(&f, hash_of(&f, entries, ARRAY_SIZE(entries)))->flags, 0);
		entries[63].hash = 9;
		entries[64] = e;
		expect_no_path(&f, hash_of(&f, entries, ARRAY_SIZE(entries)));
		walk_host.request_rule.key_hash[RBPF_ENV_PATH] = 0;
		expect_no_path(&f, hash_of(&f, &e, 1));
		cr_expect_neq(f.w->request.object, f.self, "but it is known where it is");
	}
}
