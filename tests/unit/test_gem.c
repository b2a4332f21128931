/* SPDX-License-Identifier: GPL-2.0-only */
/* Which gem a file belongs to, and whose time a sample is. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "support/profile_builder.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/gem.h"
#include "view/label.h"

static struct profile_builder b;
static uint32_t thread;

static void setup(void)
{
	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(gem, .init = setup, .fini = teardown);

#define GEMS	"/usr/lib/ruby/gems/3.1.0/gems/"
#define BUNDLE	"/srv/shop/vendor/bundle/ruby/3.3.0/"
#define DEBIAN	"/usr/share/rubygems-integration/all/"
#define VERSION "/usr/local/lib/ruby/3.3.0/"

/* Paths of Debian 12, Fedora, ruby-build and Bundler. */
static const struct {
	const char *path, *origin, *name, *version;
} paths[] = {
	{ GEMS "rake-13.0.6/lib/rake.rb", "gem", "rake", "13.0.6" },
	{ GEMS "net-http2-0.18.4/lib/net-http2.rb", "gem", "net-http2", "0.18.4" },
	{ GEMS "aws-sdk-s3-1.2/lib/x.rb", "gem", "aws-sdk-s3", "1.2" },
	{ GEMS "foo-2fa-1.0.pre1/lib/x.rb", "gem", "foo-2fa", "1.0.pre1" },
	{ GEMS "z-1/x.rb", "gem", "z", "1" },
	{ BUNDLE "gems/nokogiri-1.13.10-x86_64-linux/lib/nokogiri.rb", "gem", "nokogiri",
	  "1.13.10-x86_64-linux" },
	{ BUNDLE "bundler/gems/rails-0a1b2c3d4e5f/activerecord/lib/x.rb", "gem", "rails",
	  "0a1b2c3d4e5f" },
	{ BUNDLE "gems/tool-1.0/lib/tool/gems/inner/x.rb", "gem", "tool", "1.0" },
	{ BUNDLE "gems/tool-1.0/vendor/gems/inner-2.0/x.rb", "gem", "inner", "2.0" },
	{ DEBIAN "gems/activerecord-6.1.7.10/lib/active_record.rb", "gem", "activerecord",
	  "6.1.7.10" },
	{ DEBIAN "specifications/rails-6.1.7.10.gemspec", "stdlib", "rubygems", "" },
	{ "/var/lib/gems/3.1.0/specifications/x-1.gemspec", "stdlib", "rubygems", "" },
	{ "/usr/share/gems/gems/rack-2.2.4/lib/rack.rb", "gem", "rack", "2.2.4" },
	{ "/srv/shop/gems/billing/lib/billing.rb", "gem", "billing", "" },
	{ "/srv/gems/feed-cache/x.rb", "gem", "feed-cache", "" },
	{ "/srv/gems/app.rb", "app", "", "" },
	{ "/usr/lib/ruby/vendor_ruby/rack/request.rb", "gem", "rack", "" },
	{ "/usr/lib/ruby/vendor_ruby/rack.rb", "gem", "rack", "" },
	{ "/usr/lib/ruby/vendor_ruby/net/ssh.rb", "gem", "net-ssh", "" },
	{ "/usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0/bcrypt.rb", "gem", "bcrypt", "" },
	{ "/usr/local/lib/site_ruby/3.1.0/tool/x.rb", "gem", "tool", "" },
	{ "/usr/lib/ruby/vendor_ruby/rubygems/specification.rb", "stdlib", "rubygems", "" },
	{ "/usr/local/lib/site_ruby/3.1.0/bundler/dsl.rb", "stdlib", "bundler", "" },
	{ "/usr/lib/ruby/3.1.0/json/common.rb", "stdlib", "json", "" },
	{ VERSION "set.rb", "stdlib", "set", "" },
	{ VERSION "net/http.rb", "stdlib", "net-http", "" },
	{ VERSION "net/http/response.rb", "stdlib", "net-http", "" },
	{ VERSION "io/console/size.rb", "stdlib", "io-console", "" },
	{ VERSION "x86_64-linux/rbconfig.rb", "stdlib", "rbconfig", "" },
	{ "/home/me/.rbenv/versions/3.4.0/lib/ruby/3.4.0/erb.rb", "stdlib", "erb", "" },
	{ "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/rbconfig.rb", "stdlib", "rbconfig", "" },
	{ "/usr/share/ruby/set.rb", "stdlib", "set", "" },
	{ "/usr/share/rubygems/rubygems.rb", "stdlib", "rubygems", "" },
	{ "<internal:kernel>", "core", "", "" },
	{ "<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb>", "core", "",
	  "" },
	{ "/srv/lib/ruby/shop.rb", "app", "", "" },
	{ "/app/models/cart.rb", "app", "", "" },
	{ "/app/rubygems/x.rb", "app", "", "" },
	{ "bin/rails", "app", "", "" },
	{ "(eval)", "app", "", "" },
	{ "", "app", "", "" },
};

Test(gem, paths)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct buf name = BUF_INIT, version = BUF_INIT;
		struct gem gem;

		gem_of_path(paths[i].path, &gem);
		gem_name(&gem, &name);
		buf_add(&version, gem.version.s, gem.version.len);
		cr_expect_str_eq(gem_origin_word(gem.origin), paths[i].origin, "%s", paths[i].path);
		cr_expect_str_eq(buf_str(&name), paths[i].name, "%s", paths[i].path);
		cr_expect_str_eq(buf_str(&version), paths[i].version, "%s", paths[i].path);
		buf_deinit(&name);
		buf_deinit(&version);
	}
}

/* No slash, dash or digit may be where it is read beyond the end; for sanitizers. */
Test(gem, parts_of_paths)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		for (size_t len = strlen(paths[i].path); len; len--) {
			char *part = strndup(paths[i].path, len);
			struct gem gem;

			gem_of_path(part, &gem);
			cr_expect(!gem.name.len ||
				  (gem.name.s >= part && gem.name.s < part + len) ||
				  !strncmp(gem.name.s, "rubygems", gem.name.len));
			free(part);
		}
	}
}

static void expect_words(enum frame_kind kind, const char *path, const char *label,
			 enum code_origin origin, const char *package)
{
	uint32_t frame = builder_frame(&b, kind, "x", path, 1, 1);
	struct buf out = BUF_INIT;
	struct gem gem;

	gem_of_frame(&b.out.profile, frame, &gem);
	gem_label(&gem, &out);
	cr_expect_str_eq(buf_str(&out), label);
	cr_expect_eq(label_origin(&b.out.profile, frame), origin, "%s", path);
	buf_reset(&out);
	label_package(&b.out.profile, frame, &out);
	cr_expect_str_eq(buf_str(&out), package);
	buf_deinit(&out);
}

/* Colours and modules are told by the same rule. */
Test(gem, words_and_colours)
{
	expect_words(FRAME_RUBY, GEMS "rake-13.0.6/lib/rake.rb", "rake 13.0.6", ORIGIN_GEM,
		     "rake-13.0.6");
	expect_words(FRAME_RUBY, "/usr/lib/ruby/vendor_ruby/net/ssh.rb", "net-ssh", ORIGIN_GEM,
		     "net-ssh");
	expect_words(FRAME_RUBY, VERSION "net/http.rb", "net-http", ORIGIN_STDLIB, "ruby stdlib");
	expect_words(FRAME_RUBY, "<internal:kernel>", "[ruby core]", ORIGIN_CORE, "ruby core");
	expect_words(FRAME_RUBY, "/app/x.rb", "[application]", ORIGIN_APP, "app");
	expect_words(FRAME_CFUNC, GEMS "rake-13.0.6/lib/rake.rb", "[no Ruby code]", ORIGIN_CFUNC,
		     "ruby core");
	expect_words(FRAME_KERNEL, "", "[no Ruby code]", ORIGIN_KERNEL, "kernel");
}

static uint32_t push(uint32_t stack, enum frame_kind kind, const char *file)
{
	return builder_stack(&b, stack, builder_frame(&b, kind, "x", file, 1, 1));
}

static void expect_rows(const char *expected)
{
	for (unsigned int mode = 0; mode < STACK_MODE_COUNT; mode++) {
		const struct view_filter f = { .stack = mode };
		struct buf out = BUF_INIT;
		struct flat flat;

		cr_assert_eq(stack_mode_prepare(&b.out.profile, mode), 0);
		cr_assert_eq(flat_build(&b.out.profile, &f, FLAT_BY_GEM, FLAT_SORT_SELF, &flat), 0);
		for (size_t i = 0; i < flat.n_rows; i++) {
			struct gem gem;

			gem_of_frame(&b.out.profile, flat.rows[i].frame, &gem);
			gem_label(&gem, &out);
			buf_addf(&out, " %d/%d\n", (int)flat.rows[i].samples,
				 (int)flat.rows[i].total_samples);
		}
		cr_expect_str_eq(buf_str(&out), expected, "--stack %s:\n%s", stack_mode_name(mode),
				 buf_str(&out));
		buf_deinit(&out);
		flat_deinit(&flat);
	}
}

Test(gem, time_is_that_of_the_gem_that_called)
{
	uint32_t app = push(0, FRAME_RUBY, "/app/x.rb");
	uint32_t rack = push(app, FRAME_RUBY, GEMS "rack-2.2/lib/a.rb");
	uint32_t set = push(rack, FRAME_RUBY, VERSION "set.rb"), stack;

	builder_add(&b, thread, app, 1);
	builder_add(&b, thread, push(app, FRAME_RUBY, "<internal:kernel>"), 2);
	stack = push(push(rack, FRAME_CFUNC, ""), FRAME_NATIVE, "/lib/libruby.so");
	builder_add(&b, thread, builder_gc(&b, stack, "(marking)"), 4);
	builder_add(&b, thread, push(stack, FRAME_KERNEL, ""), 8);
	builder_add(&b, thread,
		    push(push(set, FRAME_RUBY, GEMS "rack-2.2/lib/b.rb"), FRAME_CFUNC, ""), 16);
	builder_add(&b, thread, set, 32);
	builder_add(&b, thread, push(0, FRAME_NATIVE, "/lib/libz.so"), 64);
	builder_add(&b, thread,
		    push(push(0, FRAME_RUBY, "<internal:gem_prelude>"), FRAME_CFUNC, ""), 128);
	expect_rows("[ruby core] 128/130\n[no Ruby code] 64/64\nset 32/48\nrack 2.2 28/60\n"
		    "[application] 3/63\n");
}

/* Against the definition, sample by sample. */
/* How many samples a filter for @gem selects. */
static uint64_t selected(const char *gem)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };
	struct view_sum sum;

	buf_addf(&text, "gem %s", gem);
	cr_assert_eq(view_expr_parse(buf_str(&text), "--filter", &f.expr, &err), 0, "%s", err.msg);
	cr_assert_eq(view_selection_new(&b.out.profile, &f, &sel), 0);
	sum = view_selected_sum(sel);
	view_filter_deinit(&f);
	return sum.samples;
}

/* As it is told by 'report --by gem', with and without the version. */
Test(gem, filter)
{
	static const struct {
		const char *gem;
		uint64_t samples;
	} cases[] = {
		{ "= rack", 4 + 8 + 32 },
		{ "= 'rack 2.2.4'", 4 + 8 },
		{ "= 'rack 3.0.0'", 32 },
		{ "=~ /^ra/", 4 + 8 + 32 },
		{ "=~ /2[.]2[.]4$/", 4 + 8 },
		{ "= json", 16 },
		{ "= '[application]'", 1 + 2 },
		{ "= '[ruby core]'", 64 },
		{ "= '[no Ruby code]'", 128 },
		{ "!= rack", 255 - 4 - 8 - 32 },
		{ "= ''", 0 },
		{ "= rake", 0 },
		{ "= rack and not gem = 'rack 3.0.0' and frame = parse", 8 },
	};
	uint32_t app = push(0, FRAME_RUBY, "/srv/app/a.rb"), rack, other, json;
	uint32_t parse = builder_frame(&b, FRAME_CFUNC, "parse", "", 0, 0);

	rack = push(app, FRAME_RUBY, GEMS "rack-2.2.4/lib/rack.rb");
	other = push(rack, FRAME_RUBY, GEMS "rack-3.0.0/lib/rack.rb");
	json = push(rack, FRAME_RUBY, "/usr/lib/ruby/3.1.0/json/common.rb");
	builder_add(&b, thread, app, 1);
	builder_add(&b, thread, push(app, FRAME_NATIVE, ""), 2);
	builder_add(&b, thread, rack, 4);
	builder_add(&b, thread, builder_stack(&b, rack, parse), 8);
	builder_add(&b, thread, json, 16);
	builder_add(&b, thread, push(other, FRAME_RUBY, "<internal:array>"), 32);
	builder_add(&b, thread, push(0, FRAME_RUBY, "<internal:array>"), 64);
	builder_add(&b, thread, push(0, FRAME_NATIVE, ""), 128);
	builder_finish(&b);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(selected(cases[i].gem), cases[i].samples, "gem %s: %d", cases[i].gem,
			     (int)selected(cases[i].gem));
}

Test(gem, random_profiles_agree_with_the_definition)
{
	const struct profile *p = &b.out.profile;
	struct flat flat;

	for (uint64_t seed = 1; seed < 9; seed++) {
		uint64_t self[GEM_ORIGINS + 1] = { 0 }, total[GEM_ORIGINS + 1] = { 0 };

		builder_add_random(&b, seed, 200);
		for (size_t i = 0; i < p->n_kept; i++) {
			const struct profile_sample *s = &p->samples[i];
			bool seen[GEM_ORIGINS + 1] = { false };
			enum gem_origin whose = GEM_NONE;

			for (uint32_t st = s->stack; st; st = p->stacks[st].parent) {
				struct gem gem;

				gem_of_frame(p, p->stacks[st].frame, &gem);
				seen[gem.origin] = true;
				if (gem.origin != GEM_NONE &&
				    (whose == GEM_NONE ||
				     (whose == GEM_CORE && gem.origin != GEM_CORE)))
					whose = gem.origin;
			}
			if (!s->stack)
				continue;
			self[whose] += s->value;
			for (size_t k = 0; k < GEM_ORIGINS; k++)
				total[k] += seen[k] ? s->value : 0;
		}
		total[GEM_NONE] = self[GEM_NONE];
		cr_assert_eq(flat_build(p, NULL, FLAT_BY_GEM, FLAT_SORT_SELF, &flat), 0);
		for (size_t i = 0; i < flat.n_rows; i++) {
			struct gem gem;

			gem_of_frame(p, flat.rows[i].frame, &gem);
			cr_expect_eq(flat.rows[i].self_value, self[gem.origin]);
			cr_expect_eq(flat.rows[i].total_value, total[gem.origin]);
			self[gem.origin] = 0;
		}
		for (size_t k = 0; k <= GEM_ORIGINS; k++)
			cr_expect_eq(self[k], 0, "%s has no row", gem_origin_word(k));
		flat_deinit(&flat);
	}
}
