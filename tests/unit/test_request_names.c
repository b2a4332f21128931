/* SPDX-License-Identifier: GPL-2.0-only */
/* What a request is called, and when that is not proven. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile_sink.h"
#include "ruby/iseq.h"
#include "sample/requests.h"
#include "support/ruby_image.h"
#include "symbol/resolver.h"

#define ERA 100

struct fixture {
	struct ruby_image *img;
	struct resolver *r;
	struct request_rules rules;
	uint64_t inner, iseq, me, klass;
	struct rbpf_ring_request rec;
	struct resolved_request got;
};

static void set_era(struct fixture *f, uint64_t era)
{
	image_gc_count(f->img, era - 1);
	image_gc_flags(f->img, 0);
}

static void setup(struct fixture *f, const char *version)
{
	struct err *none = NULL;
	struct ruby_iseq iseq;

	*f = (struct fixture) { .img = image_new(version) };
	cr_assert_eq(request_rules_parse(&f->rules,
					 "other Foo#other foo.rb - - x\n"
					 "web Foo#run foo.rb self local:0 %c#%t\n",
					 "rules", none),
		     0);
	cr_assert_eq(resolver_new(&f->img->vm, &f->r), 0);
	resolver_set_requests(f->r, &f->rules);
	f->klass = image_class(f->img, "OrdersController");
	f->iseq = image_iseq(f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
							    .label = "run",
							    .path = "/lib/foo.rb" });
	f->inner = image_iseq(f->img,
			      &(struct image_iseq) { .type = RUBY_ISEQ_MAIN, .label = "<main>" });
	f->me = image_ment(f->img, image_class(f->img, "Foo"), "run", IMAGE_ISEQ);
	set_era(f, ERA);
	f->rec = (struct rbpf_ring_request) { .gc_era = ERA,
					      .rule = 1,
					      .klass = f->klass,
					      .text = "index",
					      .text_len = 5,
					      .frame = { .iseq = f->iseq,
							 .pc = image_pc(f->img, f->iseq, 2) } };
	cr_assert_eq(ruby_iseq_read(&f->img->vm, f->iseq, &iseq), 0);
	f->rec.frame.check = ruby_iseq_words_check(&iseq);
	ruby_iseq_deinit(&iseq);
}

static void teardown(struct fixture *f)
{
	resolver_free(f->r);
	request_rules_deinit(&f->rules);
	image_free(f->img);
}

/* Name a stack with the frame, sampled in @era. Returns how many iseqs with a rule it has. */
static size_t name_stack(struct fixture *f, uint64_t era)
{
	const struct stack_era sampled = { .gc_era = era };
	const struct rbpf_frame frames[] = {
		{ .iseq = f->inner, .pc = image_pc(f->img, f->inner, 2) },
		{ .iseq = f->iseq, .pc = f->rec.frame.pc, .me = f->me },
	};
	const uint32_t *ids;
	size_t n;

	resolver_revalidate(f->r);
	cr_assert_eq(resolver_stack(f->r, &sampled, frames, 2, NULL, &ids, &n), 0);
	cr_assert_eq(n, 2);
	cr_expect_not(resolver_origins(f->r)[0].rule);
	cr_expect(resolver_origins(f->r)[1].rule);
	resolver_found_requests(f->r, &n);
	return n;
}

static int name(struct fixture *f)
{
	return resolver_request(f->r, &f->rec, &f->got);
}

Test(request_names, class_and_text)
{
	for (size_t i = 0; i < IMAGE_VERSIONS; i++) {
		struct fixture f;

		setup(&f, image_versions[i].minor);
		cr_expect_eq(name_stack(&f, ERA), 1);
		cr_expect_eq(name_stack(&f, ERA), 0, "it is known");
		cr_assert_eq(name(&f), 0);
		cr_expect_eq(f.got.rule, 1);
		cr_assert_not_null(f.got.klass);
		cr_expect_str_eq(f.got.klass, "OrdersController");
		cr_assert_not_null(f.got.text);
		cr_expect_str_eq(f.got.text, "index");
		f.rec.flags = RBPF_REQUEST_TEXT_CUT;
		cr_assert_eq(name(&f), 0);
		cr_expect_str_eq(f.got.text, "index...");
		f.rec.flags = RBPF_REQUEST_NO_TEXT;
		cr_assert_eq(name(&f), 0);
		cr_expect_null(f.got.text);
		f.rec.flags = 0;
		f.rec.symbol = image_id(f.img, "show");
		cr_assert_eq(name(&f), 0);
		cr_assert_not_null(f.got.text);
		cr_expect_str_eq(f.got.text, "show");
		teardown(&f);
	}
}

Test(request_names, not_of_a_frame_that_has_no_rule)
{
	struct fixture f;

	setup(&f, "3.3");
	cr_expect_eq(name(&f), -ENOENT, "it was not named yet");
	name_stack(&f, ERA);
	f.rec.rule = 0;
	cr_expect_eq(name(&f), -ENOENT, "that is another rule's");
	teardown(&f);
}

/* The iseq was freed, and another method has its address. */
Test(request_names, not_of_an_iseq_in_its_place)
{
	struct fixture f;
	uint64_t other;

	setup(&f, "3.3");
	name_stack(&f, ERA);
	other = image_iseq(f.img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
							 .label = "innocent",
							 .path = "/app/y.rb" });
	image_put64(f.img, f.iseq + 16, image_body(f.img, other));
	set_era(&f, ERA + 1);
	f.rec.gc_era = ERA + 1;
	f.rec.frame.pc = image_pc(f.img, other, 2);
	resolver_revalidate(f.r);
	cr_expect_eq(name(&f), -ENOENT);
	teardown(&f);
}

/* A collection has freed the class since the sample was taken. */
Test(request_names, no_class_of_another_era)
{
	struct fixture f;

	setup(&f, "3.3");
	name_stack(&f, ERA);
	set_era(&f, ERA + 5);
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass);
	cr_expect_not_null(f.got.text, "that was read when the sample was taken");
	/* It is known from now on. */
	f.rec.gc_era = ERA + 5;
	name_stack(&f, ERA + 5);
	cr_assert_eq(name(&f), 0);
	cr_assert_not_null(f.got.klass);
	/* Another class takes its place. */
	image_class_name(f.img, f.klass, "Innocent");
	set_era(&f, ERA + 9);
	f.rec.gc_era = ERA + 7;
	name_stack(&f, ERA + 9);
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass, "%s", f.got.klass);
	f.rec.gc_era = ERA + 9;
	cr_assert_eq(name(&f), 0);
	cr_assert_not_null(f.got.klass);
	cr_expect_str_eq(f.got.klass, "Innocent");
	teardown(&f);
}

/* What has one name before and after, and was old, had it in between. */
Test(request_names, an_old_class_keeps_its_name)
{
	struct fixture f;

	setup(&f, "3.1");
	image_age(f.img, f.klass, true);
	name_stack(&f, ERA);
	cr_assert_eq(name(&f), 0);
	set_era(&f, ERA + 9);
	name_stack(&f, ERA + 9);
	f.rec.gc_era = ERA + 9;
	cr_assert_eq(name(&f), 0);
	f.rec.gc_era = ERA + 4;
	cr_assert_eq(name(&f), 0);
	cr_assert_not_null(f.got.klass);
	cr_expect_str_eq(f.got.klass, "OrdersController");
	teardown(&f);
}

Test(request_names, no_anonymous_class_and_no_other_object)
{
	struct fixture f;

	setup(&f, "3.3");
	name_stack(&f, ERA);
	f.rec.klass = image_class(f.img, NULL);
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass);
	f.rec.klass = image_module(f.img, "Kernel");
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass);
	f.rec.klass = image_string(f.img, "OrdersController");
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass);
	f.rec.klass = 0x7000;
	cr_assert_eq(name(&f), 0);
	cr_expect_null(f.got.klass);
	teardown(&f);
}

/* An entry is of what was found at an address once, and not of what is found there later. */
Test(request_names, rules_are_of_one_version_of_an_iseq)
{
	struct cached_iseq iseqs[2] = { { .known.version = 3 }, { .known.version = 4 } };
	const struct code_cache code = { .iseqs = iseqs };
	struct code_ref ref = { .iseq = 1, .iseq_ok = true };
	struct request_rules rules = REQUEST_RULES_INIT;
	struct request_frames frames = { .rules = &rules };

	cr_assert_eq(request_rules_parse(&rules, "a b c - - d\na e c - - f", "rules", NULL), 0);
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), -1);
	cr_assert_eq(request_frames_note(&frames, &code, &ref, 1), 0);
	cr_expect_eq(frames.n_found, 1);
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), 1);
	ref.iseq = 0;
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), -1, "another one has none");
	ref = (struct code_ref) { .iseq = 1 };
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), -1, "it is not proven");
	ref.iseq_ok = true;
	iseqs[1].known.version = 5;
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), -1, "another one is there now");
	cr_assert_eq(request_frames_note(&frames, &code, &ref, 0), 0);
	cr_expect_eq(frames.n_found, 2, "the engine is told of it");
	cr_expect_eq(request_frames_rule(&frames, &code, &ref), 0);
	request_frames_deinit(&frames);
	request_rules_deinit(&rules);
}

/*
 * Each CPU sends a request: a name that can no longer be told when the second does is known from
 * the first.
 */
Test(request_names, what_is_sent_again_keeps_its_name)
{
	static const struct profile_sink_options opts = { 0 };
	struct request_table table = { 0 };
	const struct request_generation *g = &table.generations[0];
	struct profile_sink out;
	struct fixture f;
	uint32_t name;

	setup(&f, "3.4");
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	name_stack(&f, ERA);
	f.rec.rule = 0;
	cr_assert_eq(request_table_define(&table, &f.rules, f.r, &out.sink, &f.rec, sizeof(f.rec)),
		     0);
	cr_expect_eq(g->v[0].kind.name, 0, "of another rule");
	f.rec.rule = 1;
	cr_assert_eq(request_table_define(&table, &f.rules, f.r, &out.sink, &f.rec, sizeof(f.rec)),
		     0);
	name = g->v[0].kind.name;
	cr_expect_neq(name, 0, "now it can be told");
	f.rec.rule = 0;
	cr_assert_eq(request_table_define(&table, &f.rules, f.r, &out.sink, &f.rec, sizeof(f.rec)),
		     0);
	cr_expect_eq(g->v[0].kind.name, name);
	cr_expect_eq(g->fingerprints.count, 1);
	request_table_deinit(&table);
	profile_sink_deinit(&out);
	teardown(&f);
}

/* Whether the request that a rule tells is vague, where it names so much. */
static bool is_vague(enum request_class class_from, enum request_text text_from)
{
	static const struct profile_sink_options opts = { 0 };
	struct request_table table = { 0 };
	struct profile_sink out;
	struct fixture f;
	bool ret;

	setup(&f, "3.4");
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	f.rules.v[1].class_from = class_from;
	f.rules.v[1].text_from = text_from;
	name_stack(&f, ERA);
	cr_assert_eq(request_table_define(&table, &f.rules, f.r, &out.sink, &f.rec, sizeof(f.rec)),
		     0);
	cr_assert_neq(table.generations[0].v[0].kind.name, 0);
	ret = table.generations[0].v[0].vague;
	request_table_deinit(&table);
	profile_sink_deinit(&out);
	teardown(&f);
	return ret;
}

Test(request_names, a_rule_that_names_nothing)
{
	cr_expect_not(is_vague(REQUEST_CLASS_OF_SELF, REQUEST_TEXT_METHOD));
	cr_expect_not(is_vague(REQUEST_CLASS_OF_SELF, REQUEST_NO_TEXT));
	cr_expect(is_vague(REQUEST_NO_CLASS, REQUEST_NO_TEXT));
}

/* ---- paths ---- */

/* The name that a request with @path gets. */
static const char *define_path(struct fixture *f, struct request_table *t, struct profile_sink *out,
			       const char *path)
{
	const struct request_generation *g = &t->generations[0];
	uint32_t id;

	f->rec.request++;
	f->rec.text_len = (uint16_t)snprintf(f->rec.text, sizeof(f->rec.text), "%s", path);
	cr_assert_eq(request_table_define(t, &f->rules, f->r, &out->sink, &f->rec, sizeof(f->rec)),
		     0);
	cr_assert_eq(intern_find(&g->fingerprints, &f->rec.request, sizeof(f->rec.request), &id),
		     0);
	return profile_str(&out->profile, g->v[id].kind.name);
}

/* What clients send has no bound, a recording has. */
Test(request_names, only_so_many_paths)
{
	static const struct profile_sink_options opts = { 0 };
	struct request_table table = { 0 };
	struct profile_sink out;
	struct fixture f;
	char path[16];
	int i;

	setup(&f, "3.4");
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	f.rules.v[1].text_from = REQUEST_TEXT_ENV;
	name_stack(&f, ERA);
	memcpy(&f.rec.verb, "GET", 3);
	for (i = 0; i < REQUEST_PATHS_MAX; i++) {
		snprintf(path, sizeof(path), "/%c%c%c", 'a' + i / 100, 'a' + i / 10 % 10,
			 'a' + i % 10);
		cr_assert(strstr(define_path(&f, &table, &out, path), path));
	}
	cr_expect_str_eq(define_path(&f, &table, &out, "/one-more"),
			 "OrdersController#[other paths]");
	cr_expect_str_eq(define_path(&f, &table, &out, "/aaa"), "OrdersController#GET /aaa");
	request_table_deinit(&table);
	profile_sink_deinit(&out);
	teardown(&f);
}

/* The hashes of keys are learned from one environment, and the engine is told of all such rules. */
Test(request_names, keys_of_an_environment_are_learned)
{
	for (size_t i = 0; i < IMAGE_VERSIONS; i++) {
		const char *const keys[] = { "x", "REQUEST_PATH", "REQUEST_METHOD" };
		const struct request_found *found;
		const struct ruby_rules *rules;
		uint64_t env, table, entries;
		struct fixture f;
		size_t n, k;

		setup(&f, image_versions[i].minor);
		rules = &f.img->vm.rules;
		env = image_alloc(f.img, 24 + 64);
		table = rules->hash_embeds ? env + RHASH_ST_EMBED : image_alloc(f.img, 56);
		entries = image_alloc(f.img, 3 * 24);
		image_put64(f.img, env, RUBY_T_HASH | RHASH_ST_TABLE);
		if (!rules->hash_embeds)
			image_put64(f.img, env + RHASH_ST_POINTER, table);
		image_put64(f.img, table + rules->st_bound, 3);
		image_put64(f.img, table + rules->st_bound + 8, entries);
		for (k = 0; k < 3; k++) {
			image_put64(f.img, entries + k * 24, 100 + k);
			image_put64(f.img, entries + k * 24 + 8, image_string(f.img, keys[k]));
		}
		f.rules.v[1].text_from = REQUEST_TEXT_ENV;
		f.rules.v[1].env_local = strdup("env");
		cr_expect_eq(name_stack(&f, ERA), 1);
		f.rec.flags = RBPF_REQUEST_NO_TEXT;
		f.rec.object = f.klass;
		cr_assert_eq(name(&f), 0);
		resolver_found_requests(f.r, &n);
		cr_expect_eq(n, 0, "that is no Hash");
		f.rec.object = env;
		cr_assert_eq(name(&f), 0);
		found = resolver_found_requests(f.r, &n);
		cr_assert_eq(n, 1);
		cr_expect_eq(found[0].iseq, f.iseq);
		cr_expect_eq(found[0].rule.text_from, RBPF_REQUEST_ENV);
		cr_expect_eq(found[0].rule.key_hash[RBPF_ENV_PATH], 101);
		cr_expect_eq(found[0].rule.key_hash[RBPF_ENV_METHOD], 102);
		teardown(&f);
	}
}
