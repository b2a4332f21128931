/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "view/filter.h"
#include "view/label.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(speedscope, .init = setup, .fini = teardown);

static void export(const struct view_filter *f, struct buf *out)
{
	const struct export_options opts = { .filter = f };
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(exporter_find("speedscope")->run(&b.out.profile, &opts, out, &err), 0, "%s",
		     err.msg);
}

static void expect_end(const struct view_filter *f, const char *expected)
{
	struct buf out = BUF_INIT;

	export(f, &out);
	cr_assert_gt(out.len, strlen(expected));
	cr_expect_str_eq(out.data + out.len - strlen(expected), expected, "%s", out.data);
	buf_deinit(&out);
}

/* A run of equal stacks is one sample; b#x of another file is another function. */
static void build(void)
{
	uint32_t process = builder_process(&b, 42, "/usr/bin/ruby3.3 app.rb");
	uint32_t thread = builder_thread(&b, process, 43, "worker");
	uint32_t main = builder_frame(&b, FRAME_RUBY, "<main>", "/app/a.rb", 9, 1);
	uint32_t outer = builder_stack(&b, 0, main);
	uint32_t call = builder_stack(
		&b, outer, builder_frame(&b, FRAME_CFUNC, "Array#each", "/app/a.rb", 9, 0));
	uint32_t inner = builder_stack(&b, call,
				       builder_frame(&b, FRAME_RUBY, "b\"x", "/app/b.rb", 4, 3));

	builder_sample(&b, thread, inner, 5, 0);
	builder_sample(&b, thread, inner, 7, 0);
	builder_sample(&b, thread, call, 1, 0);
	builder_sample(&b, thread, 0, 2, 0);
	builder_sample(&b, thread, inner, 4, 0);
}

#define FRAMES                                                                                     \
	"\"shared\":{\"frames\":[{\"name\":\"<main>\",\"file\":\"/app/a.rb\",\"line\":1},"         \
	"{\"name\":\"Array#each\"},{\"name\":\"b\\\"x\",\"file\":\"/app/b.rb\",\"line\":3}]},"
#define PROFILE(name)                                                                              \
	"{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"nanoseconds\",\"startValue\":0,"
#define ALL    PROFILE("all threads (not in the order of time), event cpu")
#define WORKER PROFILE("ruby3.3: worker (pid 42, tid 43), event cpu")

Test(speedscope, a_profile_of_all_and_of_each_thread)
{
	build();
	expect_end(NULL, FRAMES "\"profiles\":[" ALL
				"\"samples\":[[],[0,1],[0,1,2]],\"weights\":[2,1,16],"
				"\"endValue\":19}," WORKER "\"samples\":[[0,1,2],[0,1],[],[0,1,2]],"
				"\"weights\":[12,1,2,4],\"endValue\":19}]}\n");
}

Test(speedscope, of_what_passes_the_filter)
{
	const struct view_filter f = { .stack = STACK_RUBY, .hide = 1u << ORIGIN_CFUNC };
	pid_t tid = 43;
	const struct view_filter one = { .tids = &tid, .n_tids = 1 };

	build();
	builder_sample(&b, builder_thread(&b, 0, 44, "other"), 0, 100, 0);
	expect_end(&one, "\"weights\":[12,1,2,4],\"endValue\":19}]}\n");
	expect_end(&f,
		   "\"samples\":[[0,2],[0],[],[0,2]],\"weights\":[12,1,2,4],\"endValue\":19}]}\n");
}

/* In the title of the page and in the name of each profile. */
Test(speedscope, names_tell_the_event)
{
	struct buf out = BUF_INIT;

	build();
	builder_event(&b, EVENT_WAIT, 0);
	export(NULL, &out);
	cr_expect(strstr(buf_str(&out), "\"name\":\"rbpf (event wait, "), "%s", buf_str(&out));
	cr_expect(strstr(buf_str(&out), "tid 43), event wait\""));
	cr_expect(strstr(buf_str(&out), "order of time), event wait\""));
	buf_deinit(&out);
}

Test(speedscope, any_names_are_json)
{
	struct buf out = BUF_INIT;
	json_error_t why;
	json_t *root;

	awkward_build(&b);
	builder_add_random(&b, 5, 500);
	export(NULL, &out);
	root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &why);
	cr_assert_not_null(root, "%s", why.text);
	cr_expect_eq(json_array_size(json_object_get(root, "profiles")), 5, "4 threads, and all");
	json_decref(root);
	buf_deinit(&out);
}

static size_t profiles_of(const struct buf *out)
{
	json_t *root = json_loadb(out->data, out->len, 0, NULL);
	size_t n = json_array_size(json_object_get(root, "profiles"));

	json_decref(root);
	return n;
}

/* What does not fit into a browser is left out, and that is said. */
Test(speedscope, threads_that_are_too_long)
{
	const struct exporter *exporter = exporter_find("speedscope");
	const struct export_options opts = { 0 };
	uint32_t process = builder_process(&b, 1, "ruby"), thread;
	struct buf out = BUF_INIT, text = BUF_INIT;

	thread = builder_thread(&b, process, 1, "main");
	builder_add(&b, thread, builder_path(&b, "a|b"), 1);
	export(NULL, &out);
	cr_expect_eq(profiles_of(&out), 2);
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect_eq(text.len, 0);
	/* 15 bytes each: one more than fit into 512 MiB. */
	b.out.profile.aggregates[0].samples = (1u << 29) / 15 + 1;
	buf_reset(&out);
	export(NULL, &out);
	cr_expect_eq(profiles_of(&out), 1);
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect(strstr(buf_str(&text), "about 536.9 MB"), "%s", buf_str(&text));
	b.out.profile.aggregates[0].samples--;
	buf_reset(&text);
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect_eq(text.len, 0);
	b.out.profile.aggregates[0].samples = UINT64_MAX;
	cr_assert_eq(exporter->warn(&b.out.profile, &opts, &text), 0);
	cr_expect_gt(text.len, 0, "sums do not wrap");
	buf_deinit(&out);
	buf_deinit(&text);
}
