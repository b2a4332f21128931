/* SPDX-License-Identifier: GPL-2.0-only */
/* The data of timeline and heatmap: sums, names, and what a page may take. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "export/assets.h"
#include "export/heatmap.h"
#include "export/page_about.h"
#include "export/page_tree.h"
#include "export/timeline.h"
#include "page/assets.h"
#include "support/all_time.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "view/filter.h"

typedef int renderer(const struct profile *p, const struct page_options *opts, struct buf *out,
		     struct err *err);
static renderer *const renderers[] = { timeline_render, heatmap_render };

static int render(const struct profile *p, renderer *r, const struct view_filter *f,
		  uint64_t max_bytes, struct buf *out, struct err *err)
{
	const struct replay kept = { 0 };
	const struct page_options opts = {
		.filter = f, .from = &kept, .recording = "x.data", .max_bytes = max_bytes
	};

	return r(p, &opts, out, err);
}

/* The text of the element with this id. */
static char *element(const struct buf *page, const char *id)
{
	_cleanup_buf_ struct buf tag = BUF_INIT;
	char *start, *end;

	buf_addf(&tag, " id=\"%s\">", id);
	start = strstr(page->data, buf_str(&tag));
	cr_assert(start, "%s", id);
	start += tag.len;
	end = strstr(start, "</script>");
	cr_assert(end);
	return strndup(start, (size_t)(end - start));
}

static json_t *about_of(const struct buf *page)
{
	_cleanup_free_ char *text = element(page, "about");
	json_error_t error;
	json_t *about = json_loads(text, 0, &error);

	cr_assert(about, "%s: %.80s", error.text, text + error.position);
	return about;
}

static uint64_t number(const json_t *object, const char *key)
{
	cr_assert(json_is_integer(json_object_get(object, key)), "%s", key);
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

Test(pages, awkward_names_are_data)
{
	const struct view_filter all = VIEW_FILTER_INIT;
	struct profile_builder b;

	builder_init(&b);
	builder_add(&b,
		    builder_thread(&b, builder_process(&b, 7, "</script><script>x"), 7,
				   "</script><!--<script>"),
		    builder_path(&b, "</script>|<!--"), 3);
	awkward_build(&b);
	builder_finish(&b);
	for (size_t i = 0; i < ARRAY_SIZE(renderers); i++) {
		_cleanup_buf_ struct buf page = BUF_INIT;
		size_t ends = 0;
		json_t *about;

		cr_assert_eq(render(&b.out.profile, renderers[i], &all, 0, &page, NULL), 0);
		about = about_of(&page);
		cr_expect_eq(number(about, "total"), b.out.profile.n_samples * BUILDER_PERIOD);
		cr_expect_null(strstr(page.data, "<!--"));
		for (const char *s = page.data; (s = strstr(s, "</script")); s++)
			ends++;
		cr_expect_eq(ends, 5, "of the data and the script: %zu", ends);
		json_decref(about);
	}
	builder_deinit(&b);
}

Test(pages, budget)
{
	const struct view_filter all = VIEW_FILTER_INIT;
	struct profile_builder b;

	builder_init(&b);
	builder_add_random(&b, 11, 20000);
	builder_finish(&b);
	for (size_t i = 0; i < ARRAY_SIZE(renderers); i++) {
		size_t before = 0;

		for (uint64_t max = 40000; max < 400000; max *= 3) {
			_cleanup_buf_ struct buf page = BUF_INIT;
			_cleanup_free_ char *data = NULL;
			json_t *about;

			cr_assert_eq(render(&b.out.profile, renderers[i], &all, max, &page, NULL),
				     0);
			data = element(&page, "nodes");
			cr_expect(data);
			cr_expect_lt((size_t)(strstr(page.data, "<script>") -
					      strstr(page.data, "<script type")),
				     max, "%zu at %zu", i, (size_t)max);
			cr_expect_gt(page.len, before, "more is shown");
			before = page.len;
			about = about_of(&page);
			if (max == 40000)
				cr_expect_gt(json_array_size(json_object_get(about, "notes")), 0);
			json_decref(about);
		}
	}
	builder_deinit(&b);
}

Test(pages, rows_have_the_sums_of_threads)
{
	const struct view_filter all = VIEW_FILTER_INIT;
	_cleanup_buf_ struct buf page = BUF_INIT;
	struct profile_builder b;
	json_t *about, *row;
	uint64_t sum = 0;
	size_t i;

	builder_init(&b);
	builder_add_random(&b, 5, 900);
	builder_finish(&b);
	cr_assert_eq(render(&b.out.profile, timeline_render, &all, 0, &page, NULL), 0);
	about = about_of(&page);
	json_array_foreach(json_object_get(about, "rows"), i, row)
	{
		const uint64_t tid = number(row, "tid"), pid = number(row, "pid");
		uint64_t want = 0;

		for (size_t k = 0; k < b.out.profile.n_kept; k++) {
			const struct profile_sample *s = &b.out.profile.samples[k];
			const struct profile_thread *t = &b.out.profile.threads[s->thread];

			if (t->tid == tid && b.out.profile.processes[t->process].pid == pid)
				want += s->value;
		}
		cr_expect_eq(number(row, "sum"), want);
		sum += want;
	}
	cr_expect_eq(i, 3);
	cr_expect_eq(number(json_object_get(about, "all"), "sum"), sum);
	json_decref(about);
	builder_deinit(&b);
}

/* The first byte of packed numbers, which stand in base64. */
static unsigned int first_byte(const char *packed)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	return (unsigned int)(strchr(digits, packed[0]) - digits) << 2 |
	       (unsigned int)(strchr(digits, packed[1]) - digits) >> 4;
}

/* How many requests the only row of the timeline has. */
static unsigned int requests_drawn(struct profile_builder *b, uint64_t slower_than_ns)
{
	const struct read_options opts = {
		.by_request = true, .by_thread = true, .wall = true, .slow_ns = slower_than_ns
	};
	const struct view_filter f = { .slower_than_ns = slower_than_ns };
	_cleanup_buf_ struct buf page = BUF_INIT;
	_cleanup_free_ char *packed = NULL;
	struct profile p = PROFILE_INIT;

	all_time_read(b, opts, &p);
	cr_assert_eq(render(&p, timeline_render, &f, 0, &page, NULL), 0);
	packed = element(&page, "requests");
	profile_deinit(&p);
	return first_byte(packed);
}

Test(pages, only_requests_that_the_filter_selects_are_drawn)
{
	struct profile_builder b;
	uint32_t thread, waits;

	builder_init(&b);
	builder_states(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "puma"), 42, "main");
	waits = builder_reason(&b, builder_path(&b, "a"), REASON_WAIT_NETWORK);
	for (uint64_t ms = 10; ms <= 50; ms += 10)
		builder_state(&b, thread, waits, BUILDER_WAIT, ms * 1000000,
			      builder_request(&b, thread, "rails", "A#b"));
	cr_expect_eq(requests_drawn(&b, 0), 5);
	cr_expect_eq(requests_drawn(&b, 25000000), 3);
	builder_deinit(&b);
}

/* As parts of a page, and of a picture (whose styles are in no CDATA section). */
Test(pages, scripts_and_styles_may_be_embedded)
{
	const char *const all[] = { page_js,	 page_css,     flame_js,   flame_css,
				    timeline_js, timeline_css, heatmap_js, heatmap_css };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cr_expect_gt(strlen(all[i]), 500);
		cr_expect_null(strstr(all[i], "</"), "%zu", i);
		cr_expect_null(strstr(all[i], "<!--"), "%zu", i);
		cr_expect_null(strstr(all[i], "eval("), "%zu", i);
		cr_expect_null(strstr(all[i], "innerHTML"), "%zu", i);
	}
	cr_expect_null(strstr(page_js, "]]>"));
	cr_expect_null(strpbrk(page_css, "<&"));
}

Test(pages, nothing_to_show)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct profile_builder b;

	builder_init(&b);
	builder_add_random(&b, 5, 30);
	builder_finish(&b);
	cr_assert_eq(
		view_filter_regex(&f.include, &f.has_include, "no such frame", "--include", NULL),
		0);
	for (size_t i = 0; i < ARRAY_SIZE(renderers); i++) {
		_cleanup_buf_ struct buf page = BUF_INIT;
		struct err err = { 0 };

		cr_expect_eq(render(&b.out.profile, renderers[i], &f, 0, &page, &err), -ENODATA);
		cr_expect_eq(err.kind, ERR_EMPTY);
		cr_expect_eq(page.len, 0);
	}
	view_filter_deinit(&f);
	builder_deinit(&b);
}

/* What the page holds of a stack is the nearest of its callers that is among the heaviest. */
Test(pages, tree_keeps_the_heaviest)
{
	const struct view_filter all = VIEW_FILTER_INIT;
	_cleanup_page_tree_ struct page_tree t = PAGE_TREE_INIT;
	_cleanup_free_ uint64_t *weights = NULL;
	struct profile_builder b;
	const struct profile *p;

	builder_init(&b);
	builder_add_random(&b, 3, 500);
	p = builder_finish(&b);
	cr_assert_eq(page_tree_init(p, &all, false, &t), 0);
	weights = calloc(t.tree.n_nodes, sizeof(*weights));
	for (size_t i = 0; i < p->n_kept; i++) {
		uint32_t node = t.leaves[p->samples[i].stack];

		cr_assert_neq(node, PROFILE_NONE);
		for (; node; node = t.tree.nodes[node].parent)
			weights[node]++;
	}
	for (size_t i = 1; i < t.tree.n_nodes; i++)
		cr_expect_eq(weights[i], t.tree.nodes[i].total_samples);
	for (size_t max = 0; max < t.tree.n_nodes + 3; max += 7) {
		cr_assert_eq(page_tree_keep(&t, weights, max), 0);
		cr_expect_eq(t.n, (max < t.tree.n_nodes ? max : t.tree.n_nodes - 1) + 1);
		for (size_t i = 0; i < p->n_kept; i++) {
			uint32_t node = t.leaves[p->samples[i].stack];

			while (node && t.nodes[t.ids[node]] != node)
				node = t.tree.nodes[node].parent;
			cr_expect_eq(t.nodes[page_tree_id(&t, p->samples[i].stack)], node);
		}
	}
	builder_deinit(&b);
}
