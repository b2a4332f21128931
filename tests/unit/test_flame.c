/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The SVG is read back by a parser that knows just its shape: what it says in numbers (data-x,
 * data-w, data-d) must be a flame graph, and what it draws must follow from that. That it is XML,
 * and what a browser makes of it, is tested in tests/validate/flame.sh.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/flame.h"
#include "export/assets.h"
#include "export/flame_text.h"
#include "support/all_time.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "support/merged.h"
#include "view/filter.h"
#include "view/reshape.h"
#include "view/state.h"

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

TestSuite(flame, .init = setup, .fini = teardown);

static char *render(const struct flame_options *opts)
{
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(flame_render(&b.out.profile, opts, &out, &err), 0, "%s", err.msg);
	cr_assert_eq(strlen(out.data), out.len, "no NUL inside");
	return out.data;
}

/* ---- reading it back ---- */

struct box {
	unsigned long long x, w;
	unsigned int d;
	double left, top, width; /* of the rectangle */
	char *title;
	char *text;
};

struct picture {
	struct box *boxes;
	size_t n;
	unsigned long long total;
	double width, height;
};

static const char *expect_prefix(const char *s, const char *prefix)
{
	cr_assert_eq(strncmp(s, prefix, strlen(prefix)), 0, "'%s' expected at '%.80s'", prefix, s);
	return s + strlen(prefix);
}

/* The number in `…NAME="…"…`, which must come before @end. */
static double number_in(const char *s, const char *end, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), " %s=\"", name);
	at = strstr(s, key);
	cr_assert(at && at < end, "%s in '%.100s'", name, s);
	return strtod(at + strlen(key), NULL);
}

/* The unescaped text up to @end, which is passed. */
static char *text_until(const char **s, const char *end)
{
	static const struct {
		const char *from, *to;
	} entities[] = {
		{ "&amp;", "&" },
		{ "&lt;", "<" },
		{ "&gt;", ">" },
		{ "&quot;", "\"" },
	};
	const char *stop = strstr(*s, end), *at = *s;
	struct buf out = BUF_INIT;

	cr_assert_not_null(stop);
	buf_addstr(&out, "");
	while (at < stop) {
		size_t i = 0;

		cr_assert_neq(*at, '<', "not escaped: '%.80s'", at);
		cr_assert_neq(*at, '"', "not escaped: '%.80s'", at);
		while (i < ARRAY_SIZE(entities) &&
		       strncmp(at, entities[i].from, strlen(entities[i].from)) != 0)
			i++;
		cr_assert(*at != '&' || i < ARRAY_SIZE(entities), "entity: '%.80s'", at);
		buf_addch(&out, i < ARRAY_SIZE(entities) ? *entities[i].to : *at);
		at += i < ARRAY_SIZE(entities) ? strlen(entities[i].from) : 1;
	}
	*s = stop + strlen(end);
	return out.data ? out.data : strdup("");
}

static const char *parse_box(const char *s, struct box *box)
{
	const char *end = strchr(s, '>');

	box->x = (unsigned long long)number_in(s, end, "data-x");
	box->w = (unsigned long long)number_in(s, end, "data-w");
	box->d = (unsigned int)number_in(s, end, "data-d");
	s = expect_prefix(end + 1, "<title>");
	box->title = text_until(&s, "</title>");
	end = strstr(s, "/>");
	expect_prefix(s, "<rect ");
	box->left = number_in(s, end, "x");
	box->top = number_in(s, end, "y");
	box->width = number_in(s, end, "width");
	cr_expect_eq(number_in(s, end, "height"), 16);
	s = expect_prefix(end + 2, "<text ");
	s = strchr(s, '>') + 1;
	box->text = text_until(&s, "</text>");
	return expect_prefix(s, "</g>\n");
}

static void parse(const char *svg, struct picture *pic)
{
	const char *s = strstr(svg, "<g id=\"frames\"");
	size_t cap = 0;

	cr_assert_not_null(s);
	*pic = (struct picture) { 0 };
	pic->width = number_in(svg, strstr(svg, "role="), "width");
	pic->height = number_in(svg, strstr(svg, "role="), "height");
	pic->total = (unsigned long long)number_in(s, strchr(s, '>'), "data-total");
	s = expect_prefix(strchr(s, '>'), ">\n");
	while (strncmp(s, "</g>", 4) != 0) {
		expect_prefix(s, "<g class=\"");
		cr_assert_eq(array_reserve(pic->boxes, cap, pic->n + 1), 0);
		s = parse_box(s, &pic->boxes[pic->n++]);
	}
}

static void picture_deinit(struct picture *pic)
{
	for (size_t i = 0; i < pic->n; i++) {
		free(pic->boxes[i].title);
		free(pic->boxes[i].text);
	}
	free(pic->boxes);
}

/*
 * Preorder, children inside their parent, siblings disjoint and sorted, pixels as the numbers say.
 */
static void assert_sane_picture(const struct picture *pic, bool icicle)
{
	double per_unit = (pic->width - 24) / (double)pic->total;
	/* By depth: the box that is open there, and where its next child may start. */
	const struct box **open;
	unsigned long long *next;

	cr_assert_gt(pic->n, 0);
	open = calloc(pic->n + 1, sizeof(*open));
	next = calloc(pic->n + 1, sizeof(*next));
	cr_assert(open && next);
	for (size_t i = 0; i < pic->n; i++) {
		const struct box *box = &pic->boxes[i];
		double root_top = pic->boxes[0].top;

		cr_assert_eq(!i, !box->d, "one root, first");
		cr_assert_gt(box->w, 0);
		if (i) {
			const struct box *up = open[box->d - 1];

			cr_assert_leq(box->d, pic->boxes[i - 1].d + 1, "preorder");
			cr_assert_geq(box->x, up->x, "inside its caller");
			cr_assert_leq(box->x + box->w, up->x + up->w, "inside its caller");
			cr_assert_geq(box->x, next[box->d - 1], "beside its siblings");
			next[box->d - 1] = box->x + box->w;
		}
		open[box->d] = box;
		next[box->d] = box->x;
		cr_expect_float_eq(box->left, 12 + (double)box->x * per_unit, 0.011);
		cr_expect_leq(box->width, (double)box->w * per_unit + 0.011);
		cr_expect_geq(box->width, (double)box->w * per_unit * 0.79 - 0.021);
		cr_expect_eq(box->top, icicle ? root_top + 17 * box->d : root_top - 17 * box->d);
		cr_expect_leq((double)flame_cells(box->text) * 7.25, box->width + 1,
			      "text fits: %s", box->text);
		cr_expect(box->top > 60 && box->top + 17 < pic->height, "inside the picture");
	}
	cr_expect_eq(pic->boxes[0].w, pic->total, "the root is all");
	free(open);
	free(next);
}

/* Every '<' begins a tag and every '&' an entity, up to the script, which is CDATA. */
static void assert_escaped(const char *svg)
{
	const char *end = strstr(svg, "<script>");

	for (const char *s = svg; s < end; s++) {
		if (*s == '<')
			cr_assert(isalpha((unsigned char)s[1]) || s[1] == '/' || s[1] == '?',
				  "a tag expected at '%.80s'", s);
		if (*s == '&')
			cr_assert(!strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) ||
					  !strncmp(s, "&gt;", 4) || !strncmp(s, "&quot;", 6),
				  "an entity expected at '%.80s'", s);
	}
}

/* Renders, checks, and leaves the boxes in @pic. */
static void draw(const struct flame_options *opts, struct picture *pic)
{
	char *svg = render(opts), *again = render(opts);

	cr_expect_str_eq(svg, again, "the same bytes each time");
	assert_escaped(svg);
	parse(svg, pic);
	assert_sane_picture(pic, opts->icicle);
	free(svg);
	free(again);
}

static const struct box *find(const struct picture *pic, const char *name)
{
	for (size_t i = 0; i < pic->n; i++)
		if (!strncmp(pic->boxes[i].title, name, strlen(name)) &&
		    pic->boxes[i].title[strlen(name)] == '\n')
			return &pic->boxes[i];
	cr_assert_fail("no frame %s", name);
	return NULL;
}

/* ---- tests ---- */

static const struct flame_options plain;

Test(flame, places_and_words)
{
	struct picture pic;

	builder_add(&b, thread, builder_path(&b, "<main>|Foo"), 2);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo#bar"), 3);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo|x"), 1);
	draw(&plain, &pic);
	cr_assert_eq(pic.n, 5, "Foo is drawn once");
	cr_expect_eq(pic.total, 6 * BUILDER_PERIOD);
	cr_expect_str_eq(pic.boxes[0].text, "all");
	cr_expect_eq(find(&pic, "Foo")->x, 0);
	cr_expect_eq(find(&pic, "Foo")->w, 3 * BUILDER_PERIOD);
	cr_expect_eq(find(&pic, "x")->x, 0);
	cr_expect_eq(find(&pic, "Foo#bar")->x, 3 * BUILDER_PERIOD);
	cr_expect_str_eq(find(&pic, "Foo")->title,
			 "Foo\nRuby app · /app/x.rb:1\ntotal 30.0 ms (50.0%), 3 samples\n"
			 "self 20.0 ms (33.3%), 2 samples");
	cr_expect_str_eq(pic.boxes[0].title,
			 "all\ntotal 60.0 ms (100%), 6 samples\nself 0 s (0%), 0 samples");
	picture_deinit(&pic);
}

Test(flame, every_variant_of_random_profiles)
{
	for (unsigned int variant = 0; variant < 60; variant++) {
		const struct flame_options opts = {
			.icicle = variant & 1,
			.inverted = variant & 2,
			.color = FLAME_COLOR_KIND + variant / 4 % 5,
			.split = variant / 12,
			.width = variant % 5 * 300,
			.min_width = variant % 2 ? -1 : 0.5,
		};
		struct picture pic;

		builder_add_random(&b, variant + 1, 100);
		draw(&opts, &pic);
		cr_expect_eq(pic.total, b.out.profile.totals.cpu_sampled_ns);
		picture_deinit(&pic);
	}
}

/* A whole machine: the title must not grow with it. */
Test(flame, the_same_without_telling_threads_apart)
{
	struct buf one = BUF_INIT, other = BUF_INIT;
	struct err err = { 0 };

	builder_add_random(&b, 7, 300);
	cr_assert_eq(flame_render(&b.out.profile, &plain, &one, &err), 0);
	b.out.profile.by_thread = false;
	builder_select(&b, 0, 0);
	cr_assert_eq(flame_render(&b.out.profile, &plain, &other, &err), 0);
	cr_expect_str_eq(buf_str(&one), buf_str(&other));
	buf_deinit(&one);
	buf_deinit(&other);
}

Test(flame, many_programs)
{
	uint32_t path = builder_path(&b, "a");
	struct picture pic;
	char name[20], *svg;

	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "prog%u --x", i);
		builder_add(&b,
			    builder_thread(&b, builder_process(&b, 100 + i, name), 100 + i, "x"),
			    path, 1);
	}
	draw(&plain, &pic);
	picture_deinit(&pic);
	svg = render(&plain);
	cr_expect(strstr(svg, "prog0, prog1, prog2, prog3, prog4, prog5 and 994 more: CPU"));
	cr_expect_null(strstr(svg, "prog6"));
	free(svg);
}

Test(flame, awkward_names)
{
	struct picture pic;

	awkward_build(&b);
	draw(&plain, &pic);
	for (size_t i = 0; i < ARRAY_SIZE(awkward_paths); i++) {
		const char *name = strrchr(awkward_paths[i], '|') + 1;

		if (strchr(name, '\xff'))
			name = "bad \ufffd\ufffd\ufffd\ufffd bytes";
		find(&pic, *name ? name : "[unnamed]");
	}
	for (size_t i = 0; i < pic.n; i++)
		cr_expect_lt(strlen(pic.boxes[i].title), 5000, "a huge name is cut");
	picture_deinit(&pic);
}

Test(flame, what_says_least_goes_first_when_there_is_no_room)
{
	static const struct {
		const char *name;
		size_t cells;
		const char *fits;
	} cases[] = {
		{ "Foo::Bar#baz", 12, "Foo::Bar#baz" },
		{ "Foo::Bar#baz", 11, "Bar#baz" },
		{ "Foo::Bar#baz", 7, "Bar#baz" },
		{ "Foo::Bar#baz", 6, "Bar…az" },
		{ "Foo::Bar#baz", 3, "B…z" },
		{ "Foo::Bar#baz", 2, "" },
		{ "CartsController#show", 11, "Carts…#show" },
		{ "block in A::B.c", 14, "blk A::B.c" },
		{ "block in A::B.c", 10, "blk A::B.c" },
		{ "block in A::B.c", 9, "blk B.c" },
		{ "block (12 levels) in A::B.c", 26, "blk12 A::B.c" },
		{ "block (12 levels) in A::B.c", 9, "blk12 B.c" },
		{ "block (2 levels) in <main>", 8, "blk2…in>" },
		{ "block (levels) in x", 18, "block (le…ls) in x" },
		{ "block", 4, "bl…k" },
		{ "block in ", 5, "blk " },
		{ "blocks in A#b", 12, "blocks…n A#b" },
		{ "#<Class:A::B>.c", 14, "#<Class:B>.c" },
		{ "std::vector<std::string>::at", 27, "vector<string>::at" },
		{ "Foo::", 4, "Fo…:" },
		{ "日本::メソッド", 13, "メソッド" },
		{ "日本語メソッド", 6, "日…ド" },
		{ "日本語メソッド", 7, "日…ド" },
		{ "日本語メソッド", 9, "日本…ッド" },
		{ "", 10, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out = BUF_INIT;

		flame_fit(&out, cases[i].name, cases[i].cells);
		cr_expect_str_eq(buf_str(&out), cases[i].fits, "%s in %zu", cases[i].name,
				 cases[i].cells);
		cr_expect_leq(flame_cells(buf_str(&out)), cases[i].cells);
		buf_deinit(&out);
	}
}

Test(flame, narrow_frames_are_hidden_and_counted)
{
	const struct flame_options opts = { .min_width = 10 };
	struct picture pic;
	char *svg;

	builder_add(&b, thread, builder_path(&b, "a"), 95);
	builder_add(&b, thread, builder_path(&b, "b|c|d"), 5);
	draw(&opts, &pic);
	cr_expect_eq(pic.n, 2);
	picture_deinit(&pic);
	svg = render(&opts);
	cr_expect_not_null(strstr(svg, "3 frames below 10% hidden"));
	free(svg);
	draw(&plain, &pic);
	cr_expect_eq(pic.n, 5);
	picture_deinit(&pic);
}

/* Wide enough together, they have one box, beside those that are shown. */
Test(flame, narrow_frames_have_a_box_together)
{
	const struct flame_options opts = { .min_width = 10 };
	const struct box *rest;
	struct picture pic;

	builder_add(&b, thread, builder_path(&b, "a"), 10);
	builder_add(&b, thread, builder_path(&b, "a|b"), 20);
	builder_add(&b, thread, builder_path(&b, "a|c|x"), 5);
	builder_add(&b, thread, builder_path(&b, "a|d"), 5);
	builder_add(&b, thread, builder_path(&b, "a|e"), 60);
	draw(&opts, &pic);
	cr_assert_eq(pic.n, 5, "%zu", pic.n);
	rest = &pic.boxes[4];
	cr_expect_eq(rest->w * 10, pic.total);
	cr_expect_eq(rest->x * 10, pic.total * 8, "right of b and e, left of a's own time");
	cr_expect_eq(rest->d, 2);
	cr_expect_str_eq(rest->title, "3 smaller frames\neach narrower than 10% of the whole\n"
				      "total 100 ms (10.0%), 10 samples");
	picture_deinit(&pic);
}

/* What the boxes in @pic leave of each box is its self time, which is known of the leaves alone. */
static void assert_no_blanks(const struct picture *pic)
{
	for (size_t i = 0; i < pic->n; i++) {
		unsigned long long children = 0;

		for (size_t k = i + 1; k < pic->n && pic->boxes[k].d > pic->boxes[i].d; k++)
			children += pic->boxes[k].d == pic->boxes[i].d + 1 ? pic->boxes[k].w : 0;
		cr_expect(!children || pic->boxes[i].w - children < pic->total / 1000, "%s: %llu",
			  pic->boxes[i].title, pic->boxes[i].w - children);
	}
}

/* 4,000 stacks of 20 frames, of different sizes: 12 MB if all had boxes. */
Test(flame, a_large_picture_can_be_opened)
{
	const struct flame_options all = { .min_width = 0.001 }, usual = { 0 };
	struct picture pic;
	char path[512], *svg;

	for (unsigned int i = 0; i < 4000; i++) {
		size_t len = 0;

		for (unsigned int d = 0; d < 20; d++)
			len += (size_t)snprintf(path + len, sizeof(path) - len, "%sf%u_%u",
						d ? "|" : "", d,
						d < 3	 ? i % 3
						: d < 10 ? i % 300
							 : i);
		builder_add(&b, thread, builder_path(&b, path), 1 + i % 300);
	}
	svg = render(&all);
	cr_expect_gt(strlen(svg), 10u << 20, "%zu", strlen(svg));
	free(svg);
	svg = render(&usual);
	cr_expect_lt(strlen(svg), (3u << 20) + 100000);
	cr_expect_gt(strlen(svg), 2u << 20, "as much as there is room for: %zu", strlen(svg));
	free(svg);
	draw(&usual, &pic);
	assert_no_blanks(&pic);
	picture_deinit(&pic);
}

/* So many stacks that their trees are made at the same time: each has what it is to have. */
Test(flame, code_of_the_program_beside_all)
{
	const char *gem = "/usr/lib/ruby/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb";
	char name[32], *svg, *app;

	for (unsigned int i = 0; i < 11200; i++) {
		uint32_t stack = 0;

		stack = builder_stack(&b, stack,
				      builder_frame(&b, FRAME_RUBY, "main", "/app/x.rb", 1, 1));
		snprintf(name, sizeof(name), "rack%u", i % 40);
		stack = builder_stack(&b, stack, builder_frame(&b, FRAME_RUBY, name, gem, 3, 3));
		snprintf(name, sizeof(name), "heavy%u", i % 7);
		stack = builder_stack(&b, stack,
				      builder_frame(&b, FRAME_RUBY, name, "/app/x.rb", 2, 2));
		snprintf(name, sizeof(name), "leaf%u", i);
		stack = builder_stack(&b, stack,
				      builder_frame(&b, FRAME_RUBY, name, "/app/x.rb", i, i));
		builder_add(&b, thread, stack, 1);
	}
	svg = render(&plain);
	cr_assert_gt(b.out.profile.n_stacks, 10000, "%zu stacks", b.out.profile.n_stacks);
	app = strstr(svg, "<g id=\"app\"");
	cr_assert_not_null(app);
	cr_expect_not_null(strstr(
		app, "<title>heavy3\nRuby app · /app/x.rb:2\ntotal 16.0 s (14.3%), 1,600 samples"));
	cr_expect_null(strstr(app, "<title>rack"));
	*app = '\0';
	cr_expect_not_null(strstr(svg, "<title>rack"));
	free(svg);
}

/* "<0.01%" must be escaped as well as names are. */
Test(flame, frames_of_next_to_nothing)
{
	const struct flame_options all = { .min_width = -1 };
	struct picture pic;

	builder_sample(&b, thread, builder_path(&b, "much"), 100000000000, SAMPLE_TRUNCATED);
	builder_sample(&b, thread,
		       builder_stack(&b, 0, builder_frame(&b, FRAME_GC, "little", "", 0, 0)), 1000,
		       0);
	draw(&all, &pic);
	cr_expect_str_eq(find(&pic, "little")->title,
			 "little\nGC\ntotal 1.00 µs (<0.01%), 1 sample\n"
			 "self 1.00 µs (<0.01%), 1 sample");
	picture_deinit(&pic);
}

Test(flame, weights_of_zero_leave_the_number_of_samples)
{
	struct picture pic;

	builder_sample(&b, thread, builder_path(&b, "a"), 0, 0);
	builder_sample(&b, thread, builder_path(&b, "b"), 0, 0);
	draw(&plain, &pic);
	cr_expect_eq(pic.total, 2);
	cr_expect_str_eq(find(&pic, "a")->title,
			 "a\nRuby app · /app/x.rb:1\ntotal 50.0%, 1 sample\nself 50.0%, 1 sample");
	picture_deinit(&pic);
}

Test(flame, nothing_to_draw)
{
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	cr_expect_eq(flame_render(&b.out.profile, &plain, &out, &err), -ENODATA);
	cr_expect_eq(err.kind, ERR_EMPTY);
	builder_add(&b, thread, builder_path(&b, "a"), 1);
	builder_select(&b, 1000 * BUILDER_PERIOD, 0);
	cr_expect_eq(flame_render(&b.out.profile, &plain, &out, &err), -ENODATA);
	cr_expect_eq(out.len, 0);
	buf_deinit(&out);
}

Test(flame, deep_stacks)
{
	uint32_t frame = builder_frame(&b, FRAME_RUBY, "deep", "/app/x.rb", 1, 1), stack = 0;
	struct picture pic;

	for (size_t i = 0; i < 10000; i++)
		stack = builder_stack(&b, stack, frame);
	builder_add(&b, thread, stack, 2);
	draw(&plain, &pic);
	cr_expect_eq(pic.n, 10001);
	cr_expect_gt(pic.height, 170000);
	picture_deinit(&pic);
}

/* What the <desc> of the picture of @opts has. */
static json_t *description(const struct flame_options *opts)
{
	char *svg = render(opts), *text;
	const char *at = strstr(svg, "<desc>") + strlen("<desc>");
	json_error_t why;
	json_t *root;

	text = text_until(&at, "</desc>");
	root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	cr_assert_not_null(root, "%s", why.text);
	free(text);
	free(svg);
	return root;
}

static void expect_filters(const struct view_filter *f, const char *want)
{
	const struct flame_options opts = { .filter = f };
	json_t *root = description(&opts);
	char *got = json_dumps(json_object_get(root, "filters"), JSON_COMPACT | JSON_SORT_KEYS);

	cr_expect_str_eq(got, want);
	free(got);
	json_decref(root);
}

static void set_pattern(regex_t *re, bool *has)
{
	cr_assert_eq(view_filter_regex(re, has, ".", "a pattern", NULL), 0);
}

Test(flame, description_has_all_filters)
{
	struct view_filter f = { .slower_than_ns = 0 };
	const struct reshape_options root = { .collapse_recursion = true };

	builder_contain(&b, 0, "c0ffee", 1);
	builder_add(&b, thread, builder_path(&b, "a"), 3);
	b.out.profile.by_request = true;
	set_pattern(&f.container, &f.has_container);
	set_pattern(&f.request, &f.has_request);
	set_pattern(&f.include, &f.has_include);
	f.states = state_set_of(STATE_USER) | state_set_of(STATE_GVL);
	expect_filters(&f, "{\"container\":true,\"include\":true,\"request\":true,"
			   "\"state\":[\"user\",\"gvl\"]}");
	cr_assert_eq(profile_reshape(&b.out.profile, &f, &root), 0);
	cr_expect_not(f.has_include);
	expect_filters(&f, "{\"collapse_recursion\":true,\"container\":true,\"include\":true,"
			   "\"request\":true,\"state\":[\"user\",\"gvl\"]}");
	view_filter_deinit(&f);
	f.ended = 1u << STATE_LOCK;
	expect_filters(&f, "{\"state\":[\"lock\"]}");
	f.ended = 0;
	f.states = state_set_of(STATE_USER) | STATE_SET_HELD;
	expect_filters(&f, "{\"state\":[\"user\",\"gvl-held\"]}");
}

Test(flame, description_has_the_length_of_requests)
{
	const struct view_filter f = { .slower_than_ns = 30000000 };
	const struct flame_options opts = { .filter = &f };
	const struct read_options read = { .by_request = true,
					   .wall = true,
					   .slow_ns = f.slower_than_ns };
	_cleanup_buf_ struct buf svg = BUF_INIT;
	struct profile p = PROFILE_INIT;

	builder_states(&b);
	builder_fast_and_slow(&b);
	all_time_read(&b, read, &p);
	cr_assert_eq(flame_render(&p, &opts, &svg, NULL), 0);
	cr_expect(strstr(buf_str(&svg), "{&quot;request_slower_than_ns&quot;:30000000}"));
	profile_deinit(&p);
}

Test(flame, description_says_where_it_comes_from)
{
	const struct view_filter f = { .stack = STACK_RUBY };
	const struct flame_options opts = { .filter = &f, .command = "rbpf flame --title \"<&>\"" };
	char *svg, *text;
	const char *at;
	json_t *root;
	json_error_t why;

	builder_add(&b, thread, builder_path(&b, "a"), 3);
	builder_sample(&b, thread, builder_path(&b, "a"), 7, SAMPLE_TRUNCATED | SAMPLE_FAILED);
	b.out.profile.totals.lost = 9;
	b.out.profile.complete = false;
	b.out.profile.meta.command = strdup("rbpf record -p 42");
	svg = render(&opts);
	at = strstr(svg, "<desc>") + strlen("<desc>");
	text = text_until(&at, "</desc>");
	root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	cr_assert_not_null(root, "%s", why.text);
	cr_expect_str_eq(json_string_value(json_object_get(root, "command")), "rbpf record -p 42");
	cr_expect_str_eq(json_string_value(json_object_get(root, "drawn_by")), opts.command);
	cr_expect_str_eq(json_string_value(json_object_get(root, "unit")), "ns");
	cr_expect_eq(json_integer_value(json_object_get(root, "samples")), 4);
	cr_expect_eq(json_integer_value(json_object_get(root, "lost")), 9);
	cr_expect_eq(json_integer_value(json_object_get(root, "truncated")), 1);
	cr_expect_eq(json_integer_value(json_object_get(root, "failed")), 1);
	cr_expect(json_is_false(json_object_get(root, "complete")));
	cr_expect_str_eq(
		json_string_value(json_object_get(json_object_get(root, "filters"), "stack")),
		"ruby");
	cr_expect_not_null(strstr(svg, "9 samples lost"), "said in the picture as well");
	cr_expect_not_null(strstr(svg, "recording was interrupted"));
	json_decref(root);
	free(text);
	free(svg);
}

/* Returns whether the legend has @name; its colour must then be defined. */
static bool legend_has(const char *svg, const char *name)
{
	char want[80], rule[16];
	const char *at, *key;

	snprintf(want, sizeof(want), "<title>%s\nself ", name);
	at = strstr(svg, want);
	if (!at)
		return false;
	key = strstr(at, "<rect class=\"");
	cr_assert_not_null(key);
	snprintf(rule, sizeof(rule), ".%c{fill:#", key[strlen("<rect class=\"")]);
	cr_expect_not_null(strstr(svg, rule), "%s has a colour", name);
	return true;
}

Test(flame, garbage_collection_that_is_unknown)
{
	uint32_t stack = builder_path(&b, "<main>");
	char *svg;

	builder_sample(&b, thread, stack, BUILDER_PERIOD, SAMPLE_GC_UNKNOWN);
	builder_add(&b, thread, stack, 3);
	svg = render(&plain);
	cr_expect_not_null(strstr(svg, "<title>GC\nself: unknown"));
	cr_expect_not_null(strstr(svg, ">GC unknown</text>"));
	cr_expect_not_null(
		strstr(svg, "1 sample that may be GC, as it is not known who collects (25"), "%s",
		svg);
	free(svg);

	builder_sample(&b, thread, builder_gc(&b, stack, "(marking)"), BUILDER_PERIOD, SAMPLE_GC);
	svg = render(&plain);
	cr_expect(legend_has(svg, "GC"));
	cr_expect_null(strstr(svg, "GC unknown"), "some is known …");
	cr_expect_not_null(strstr(svg, "that may be GC"), "… but not all");
	free(svg);
}

Test(flame, garbage_collection_and_fibers_have_colours_of_their_own)
{
	uint32_t fiber = builder_frame(&b, FRAME_FIBER, "[fiber]", "", 0, 0);
	uint32_t main_stack = builder_path(&b, "<main>");
	struct view_filter f = { .no_gc = true };
	struct picture pic;
	char *svg;

	builder_add(&b, thread, builder_stack(&b, main_stack, fiber), 2);
	builder_sample(&b, thread, builder_gc(&b, main_stack, "(marking)"), BUILDER_PERIOD,
		       SAMPLE_GC);
	svg = render(&plain);
	cr_expect(legend_has(svg, "GC"));
	cr_expect(legend_has(svg, "fiber boundary"));
	cr_expect_not(legend_has(svg, "cut/unknown"));
	free(svg);
	draw(&plain, &pic);
	cr_expect_eq(find(&pic, "[fiber]")->w, 2 * BUILDER_PERIOD);
	cr_expect_eq(find(&pic, "(marking)")->d, 3);
	picture_deinit(&pic);

	svg = render(&(struct flame_options) { .filter = &f });
	cr_expect_not(legend_has(svg, "GC"));
	cr_expect_not_null(strstr(svg, "without GC"), "it is said");
	cr_expect_not_null(strstr(svg, "&quot;filters&quot;:{&quot;no_gc&quot;:true}"));
	free(svg);
}

Test(flame, compiled_code_is_told_apart)
{
	struct profile_builder *in = &b;
	struct picture pic;
	char *svg;

	merged_add(in, thread, merged_ruby(in, 0, "hot", 3, FRAME_YJIT), 2, 0);
	merged_add(in, thread, merged_ruby(in, 0, "hot", 4, 0), 1, 0);
	merged_add(in, thread, merged_ruby(in, 0, "cold", 3, FRAME_ZJIT), 1, 0);
	merged_add(in, thread, merged_ruby(in, 0, "cold", 4, 0), 1, 0);
	merged_add(in, thread, merged_other(in, 0, FRAME_GAP, MERGED_NO_TABLE), 1, SAMPLE_GAP);
	draw(&plain, &pic);
	cr_expect_eq(pic.n, 4, "one box a method");
	cr_expect_not_null(strstr(find(&pic, "hot")->title,
				  "hot\nRuby app · /app/x.rb:1\n[yjit] in 66.7%\ntotal "),
			   "%s", find(&pic, "hot")->title);
	cr_expect_not_null(strstr(find(&pic, "cold")->title, "\n[zjit] in 50.0%\n"));
	picture_deinit(&pic);
	svg = render(&plain);
	cr_expect(legend_has(svg, "Ruby app, JIT"));
	cr_expect(legend_has(svg, "Ruby app"), "what is mostly interpreted");
	cr_expect(legend_has(svg, "native frames missing"));
	cr_expect_not(legend_has(svg, "cut/unknown"));
	cr_expect_not_null(strstr(svg, "1 sample with gaps in the native stack (16.7%)"));
	free(svg);
	svg = render(&(struct flame_options) { .inverted = true });
	cr_expect(legend_has(svg, "Ruby app, JIT"));
	cr_expect_not_null(strstr(svg, "\n[yjit] in 66.7%\n"), "in both directions");
	free(svg);
	svg = render(&(struct flame_options) { .color = FLAME_COLOR_HASH });
	cr_expect_not_null(strstr(svg, "<title>Ruby app\nself"), "of any kind");
	cr_expect_null(strstr(svg, "<title>Ruby app, JIT\nself"));
	free(svg);
}

/* Of the legend, what @svg says about @name, up to the end of its line; to be freed. */
static char *legend_title(const char *svg, const char *name)
{
	struct buf key = BUF_INIT;
	const char *at;
	char *title;

	buf_addf(&key, "<title>%s\nself", name);
	at = strstr(svg, buf_str(&key));
	cr_assert_not_null(at, "no %s in the legend", name);
	title = strndup(at, key.len + strcspn(at + key.len, "\n<"));
	buf_deinit(&key);
	return title;
}

Test(flame, legend_counts_what_is_hidden)
{
	static const struct {
		enum flame_color color;
		const char *name;
	} cases[] = {
		{ FLAME_COLOR_KIND, "Ruby app, JIT" }, { FLAME_COLOR_KIND, "Ruby app" },
		{ FLAME_COLOR_KIND, "kernel" },	       { FLAME_COLOR_MODULE, "app" },
		{ FLAME_COLOR_MODULE, "kernel" },
	};

	merged_add(&b, thread, merged_ruby(&b, 0, "hot", 3, FRAME_YJIT), 2, 0);
	merged_add(&b, thread, merged_ruby(&b, 0, "cold", 3, 0), 1, 0);
	merged_add(&b, thread, merged_other(&b, 0, FRAME_KERNEL, "k"), 5, SAMPLE_KERNEL);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		bool inverted = i % 2;
		char *all = render(&(struct flame_options) {
			.color = cases[i / 2].color, .inverted = inverted, .min_width = -1 });
		char *few = render(&(struct flame_options) {
			.color = cases[i / 2].color, .inverted = inverted, .min_width = 90 });
		char *expected = legend_title(all, cases[i / 2].name);
		char *got = legend_title(few, cases[i / 2].name);

		cr_expect_not_null(strstr(few, "3 frames below 90% hidden"));
		cr_expect_str_eq(got, expected);
		if (cases[i / 2].color == FLAME_COLOR_MODULE)
			cr_expect_lt(strstr(few, "<title>kernel\nself"),
				     strstr(few, "<title>app\nself"), "the heavier one first");
		free(all);
		free(few);
		free(expected);
		free(got);
	}
}

/* Main: 30 ms of user, 10 of system time; Net#get: 50 ms for the network; 5 for the disk, 5 with
 * the GVL. */
static void add_waits(void)
{
	uint32_t get = builder_path(&b, "Main|Net#get"), held;

	builder_states(&b);
	b.out.profile.by_event = false;
	builder_sample(&b, thread, builder_path(&b, "Main"), 30000000, 0);
	builder_sample(&b, thread, builder_path(&b, "Main"), 10000000, SAMPLE_KERNEL);
	builder_sample(&b, thread, builder_reason(&b, get, REASON_WAIT_NETWORK), 50000000, 0);
	builder_sample(&b, thread, builder_reason(&b, get, REASON_WAIT_DISK), 5000000, 0);
	held = builder_reason(&b, get, REASON_GVL_HELD);
	builder_sample(&b, thread, builder_reason(&b, held, REASON_WAIT_DISK), 5000000, 0);
}

/* Of the tag of the box called @name, what is between quotes behind @attribute; to be freed. */
static char *attribute_of(const char *svg, const char *name, const char *attribute)
{
	_cleanup_buf_ struct buf title = BUF_INIT;
	char key[32];
	const char *at, *value;

	buf_addf(&title, "<title>%s\n", name);
	at = strstr(strstr(svg, "<g id=\"frames\""), buf_str(&title));
	cr_assert_not_null(at, "%s", name);
	while (strncmp(at, "<g ", 3) != 0)
		at--;
	snprintf(key, sizeof(key), " %s=\"", attribute);
	value = strstr(at, key);
	if (!value || value > strchr(at, '>'))
		return NULL;
	value += strlen(key);
	return strndup(value, strcspn(value, "\""));
}

static void expect_attribute(const char *svg, const char *name, const char *attribute,
			     const char *want)
{
	char *got = attribute_of(svg, name, attribute);

	if (want)
		cr_expect(got && !strncmp(got, want, strlen(want)), "%s of %s: %s", attribute, name,
			  got);
	else
		cr_expect_null(got, "%s of %s: %s", attribute, name, got);
	free(got);
}

/* A box has the colour of what its time is mostly in, and tells of all of it. */
Test(flame, states_have_colours_of_their_own)
{
	const struct flame_options by_state = { .color = FLAME_COLOR_STATE, .min_width = -1 };
	struct picture pic;
	char *svg;

	add_waits();
	svg = render(&by_state);
	expect_attribute(svg, "all", "data-s",
			 "0:30000000.1:10000000.8:5000000.9:50000000.17:5000000");
	expect_attribute(svg, "Main", "class", "j");
	expect_attribute(svg, "Main", "data-k", "9");
	expect_attribute(svg, "Net#get", "data-s", "8:5000000.9:50000000.17:5000000");
	expect_attribute(svg, "(waits for the network)", "data-s", NULL);
	expect_attribute(svg, "(holds the GVL)", "class", "r");
	expect_attribute(svg, "(holds the GVL)", "data-k", "17");
	cr_expect_not_null(strstr(svg,
				  "<title>network\nwaits for the network\nself 50.0 ms (50.0%), "
				  "1 sample\n"));
	cr_expect_not_null(strstr(svg, "<title>user\nruns Ruby and native code\nself 30.0 ms"));
	cr_expect_not_null(strstr(svg, "<title>system\nruns in the kernel\nself 10.0 ms"));
	cr_expect_not_null(
		strstr(svg, "<title>gvl-held\nwaits, but holds the GVL\nself 5.00 ms (5.0%)"));
	cr_expect_not_null(strstr(svg, "<title>disk\nwaits for a file\nself 5.00 ms (5.0%)"));
	cr_expect_null(strstr(svg, "<title>idle\n"));
	free(svg);
	draw(&by_state, &pic);
	cr_expect_not_null(
		strstr(find(&pic, "Main")->title,
		       "Main\nRuby app · /app/x.rb:1\nstates: network 50.0%, user 30.0%, "
		       "system 10.0%, disk 5.0%, …\ntotal 100 ms"),
		"%s", find(&pic, "Main")->title);
	picture_deinit(&pic);
}

/* What has no box of its own tells of its states, too. */
Test(flame, states_of_what_is_too_narrow)
{
	const struct flame_options opts = { .color = FLAME_COLOR_STATE, .min_width = 8 };
	char *svg;

	add_waits();
	/* What their caller runs itself is not theirs. */
	builder_sample(&b, thread, builder_path(&b, "Main|Net#get"), 20000000, 0);
	svg = render(&opts);
	expect_attribute(svg, "3 smaller frames", "data-s", "8:5000000.17:5000000");
	free(svg);
}

static bool leaves_out_idle(const struct flame_options *opts)
{
	char *svg = render(opts);
	const bool ret = strstr(svg, " data-off=\"16\"");

	cr_expect_eq(!!strstr(svg, "below 0.01% of all but idle hidden"), ret && !opts->min_width);
	free(svg);
	return ret;
}

/* What the script leaves out at first; boxes are as wide as they are without it. */
Test(flame, idle_is_left_out_at_first)
{
	const uint32_t take = builder_path(&b, "Main|Pool#take");
	struct view_filter only = VIEW_FILTER_INIT;
	char *svg;

	add_waits();
	cr_expect_not(leaves_out_idle(&plain), "there is none");
	builder_sample(&b, thread, builder_reason(&b, take, REASON_WAIT_IDLE), 99900000000, 0);
	builder_sample(&b, thread, builder_path(&b, "Main|Small"), 1000000, 0);
	builder_sample(&b, thread, builder_path(&b, "Main|Tiny"), 1000, 0);
	cr_expect(leaves_out_idle(&plain));
	svg = render(&plain);
	cr_expect_not_null(strstr(svg, "<title>Small\n"), "0.001 % of all, but 1 % without idle");
	cr_expect_null(strstr(svg, "<title>Tiny\n"));
	free(svg);
	cr_expect(leaves_out_idle(&(struct flame_options) { .min_width = 0.5 }));
	only.states = 1u << STATE_IDLE;
	cr_expect_not(leaves_out_idle(&(struct flame_options) { .color = FLAME_COLOR_STATE,
								.filter = &only }),
		      "nothing would be left");
	cr_expect_not(leaves_out_idle(&(struct flame_options) { .color = FLAME_COLOR_KIND }));
}

/* Colours by state are usual where there are several. */
Test(flame, what_is_usual_for_waits)
{
	struct view_filter only = VIEW_FILTER_INIT;
	char *svg;

	add_waits();
	svg = render(&plain);
	cr_expect_not_null(strstr(svg, "<title>network\n"));
	free(svg);
	only.states = 1u << STATE_NETWORK;
	svg = render(&(struct flame_options) { .filter = &only });
	cr_expect(legend_has(svg, "waits for I/O"), "nothing but the network");
	free(svg);
	only.states = STATE_SET_CPU;
	svg = render(&(struct flame_options) { .filter = &only });
	cr_expect(legend_has(svg, "Ruby app"), "no waits");
	free(svg);
	b.out.profile.event = BUILDER_GVL;
	svg = render(&plain);
	cr_expect_null(strstr(svg, "<title>network\n"), "of what others waited");
	free(svg);
}

static uint32_t push(uint32_t stack, enum frame_kind kind, const char *name, const char *file)
{
	return builder_stack(&b, stack, builder_frame(&b, kind, name, file, 1, 1));
}

/* What is called is of the gem that called it, in either direction; the legend is as --by gem. */
Test(flame, gems_have_the_colour_of_what_they_call)
{
	const char *rack = "/usr/lib/ruby/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb";
	uint32_t app = push(0, FRAME_RUBY, "App", "/app/a.rb"), gem, core, zlib;

	gem = push(app, FRAME_RUBY, "Rack", rack);
	core = push(gem, FRAME_RUBY, "Array#each", "<internal:array>");
	zlib = push(core, FRAME_CFUNC, "Zlib.crc32", rack);
	builder_add(&b, thread, push(zlib, FRAME_NATIVE, "crc32", ""), 6);
	builder_add(&b, thread, push(app, FRAME_NATIVE, "malloc", ""), 3);
	builder_add(&b, thread, push(push(0, FRAME_CFUNC, "main", ""), FRAME_NATIVE, "wait", ""),
		    1);
	for (unsigned int inverted = 0; inverted < 2; inverted++) {
		char *svg = render(&(struct flame_options) {
			.color = FLAME_COLOR_GEM, .inverted = inverted, .min_width = -1 });

		expect_attribute(svg, "crc32", "data-k", "0"); /* rack 2.2.4: it has the most */
		expect_attribute(svg, "Zlib.crc32", "data-k", "0");
		expect_attribute(svg, "Array#each", "data-k", "0");
		expect_attribute(svg, "Rack", "data-k", "0");
		expect_attribute(svg, "malloc", "data-k", "1");
		expect_attribute(svg, "App", "data-k", "1");
		expect_attribute(svg, "wait", "data-k", "2");
		cr_expect_not_null(
			strstr(svg, "data-k=\"0\"><title>rack 2.2.4\nself 60.0 ms (60.0%)"));
		cr_expect_not_null(strstr(svg, "<title>[application]\nself 30.0 ms (30.0%)"));
		cr_expect_not_null(strstr(svg, "<title>[no Ruby code]\nself 10.0 ms (10.0%)"));
		cr_expect_not_null(strstr(svg, "<title>crc32\nrack 2.2.4\n"), "in the title, too");
		free(svg);
	}
}

Test(flame, native_frames_are_of_a_module)
{
	struct picture pic;

	merged_build(&b);
	draw(&plain, &pic);
	cr_expect_not_null(
		strstr(find(&pic, "deflate")->title, "deflate\nnative · /lib/libz.so.1\ntotal "));
	cr_expect_not_null(strstr(find(&pic, "Foo#bar")->title, "\n[yjit, zjit] in 21.1%\n"));
	picture_deinit(&pic);
}

Test(flame, ruby_and_native_side_by_side)
{
	const struct view_filter f = { .stack = STACK_BOTH };
	const struct flame_options opts = { .filter = &f, .width = 1000 };
	char *svg, *left, *right, *app;

	merged_build(&b);
	builder_finish(&b);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, STACK_BOTH), 0);
	svg = render(&opts);
	left = strstr(svg, "<title>Ruby stacks\ntotal ");
	right = strstr(svg, "<title>native stacks\ntotal ");
	cr_assert(left && right && left < right);
	cr_expect_not_null(strstr(svg, "data-gutter=\"24\""));
	cr_expect_not_null(strstr(svg, "Ruby and native frames side by side"));
	cr_expect_not_null(strstr(left, "<rect x=\"12\""));
	cr_expect_not_null(strstr(right, "<rect x=\"512\""));
	cr_expect_eq(strtoull(strstr(right - 50, "data-w=\"") + strlen("data-w=\""), NULL, 10),
		     b.out.profile.n_samples * BUILDER_PERIOD, "the same scale");
	app = strstr(right, "<g id=\"app\"");
	cr_assert_not_null(app);
	*app = '\0';
	cr_expect_not_null(strstr(right, "<title>deflate\n"));
	cr_expect_null(strstr(right, "<title>Foo#bar\n"));
	*right = '\0';
	cr_expect_null(strstr(left, "<title>deflate\n"));
	cr_expect_not_null(strstr(left, "<title>Foo#bar\n"));
	cr_expect_not_null(strstr(left, "<title>[native thread]\n"));
	free(svg);
}

Test(flame, nothing_but_itself)
{
	char *svg, *script;

	builder_add(&b, thread, builder_path(&b, "a"), 1);
	svg = render(&(struct flame_options) { .title = "</title><script>alert(1)</script>\x01" });
	cr_expect_null(strstr(svg, "<script>alert"), "titles are escaped");
	script = strstr(svg, "<script>");
	cr_assert_not_null(script);
	cr_expect_null(strstr(script + 1, "<script"), "one script");
	cr_expect_not_null(strstr(script, "]]></script>\n</svg>\n"), "the last child");
	*script = '\0';
	cr_expect_null(strstr(svg, " onload="), "no inline handlers");
	cr_expect_null(strstr(svg, " onclick="));
	cr_expect_null(strstr(svg, "href"), "nothing from elsewhere");
	cr_expect_null(strstr(svg, "url("));
	free(svg);
}

Test(flame, assets_can_be_embedded)
{
	cr_expect_gt(strlen(flame_js), 1000);
	cr_expect_gt(strlen(flame_css), 500);
	cr_expect_null(strstr(flame_js, "]]>"), "would end the CDATA section");
	cr_expect_null(strpbrk(flame_css, "<&"), "is not in a CDATA section");
	cr_expect_null(strstr(flame_js, "eval("));
}
