/* SPDX-License-Identifier: GPL-2.0-only */
/* What kind of code samples are of, and that all views of it divide the same time. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/flame.h"
#include "support/merged.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/sample_kind.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(sample_kind, .init = setup, .fini = teardown);

/* The rows by kind, "gc 2/3" a line: samples of the kind, and those with a frame of it. */
static void expect_kinds(enum stack_mode mode, const char *expected)
{
	const struct view_filter f = { .stack = mode };
	struct buf out = BUF_INIT;
	struct flat flat;

	cr_assert_eq(stack_mode_prepare(&b.out.profile, mode), 0);
	cr_assert_eq(flat_build(&b.out.profile, &f, FLAT_BY_KIND, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		cr_expect_eq(flat.rows[i].self_value, flat.rows[i].samples * BUILDER_PERIOD);
		buf_addf(&out, "%s %d/%d\n", frame_kind_name(flat.rows[i].id),
			 (int)flat.rows[i].samples, (int)flat.rows[i].total_samples);
	}
	cr_expect_str_eq(buf_str(&out), expected, "--stack %s:\n%s", stack_mode_name(mode),
			 buf_str(&out));
	buf_deinit(&out);
	flat_deinit(&flat);
}

Test(sample_kind, the_same_whatever_is_shown)
{
	merged_build(&b);
	for (unsigned int mode = 0; mode < STACK_MODE_COUNT; mode++)
		expect_kinds(mode, "native 9/22\nruby 5/19\nkernel 3/3\ngap 3/3\ngc 2/2\n"
				   "cfunc 0/13\n");
}

Test(sample_kind, garbage_collection_is_one_kind_whatever_runs)
{
	const uint32_t thread = builder_thread(&b, builder_process(&b, 7, "ruby"), 7, "ruby");
	uint32_t marking = builder_gc(&b, builder_path(&b, "<main>"), "(marking)"), stack;

	builder_sample(&b, thread, marking, BUILDER_PERIOD, SAMPLE_GC);
	stack = merged_native(&b, marking, "gc_mark", "/usr/lib/libruby.so", 0x10, 0);
	builder_sample(&b, thread, stack, BUILDER_PERIOD, SAMPLE_GC | SAMPLE_NATIVE);
	stack = merged_other(&b, stack, FRAME_KERNEL, "asm_exc_page_fault");
	builder_sample(&b, thread, stack, BUILDER_PERIOD, SAMPLE_GC | SAMPLE_KERNEL);
	/* The frame says so where the flag is missing, and the flag where the frame is. */
	builder_sample(&b, thread, stack, BUILDER_PERIOD, 0);
	builder_sample(&b, thread, builder_path(&b, "<main>"), BUILDER_PERIOD, SAMPLE_GC);
	builder_sample(&b, thread, 0, BUILDER_PERIOD, SAMPLE_GC);
	builder_sample(&b, thread, 0, BUILDER_PERIOD, 0);
	expect_kinds(STACK_MIXED, "gc 6/6\nunknown 1/1\nruby 0/5\nnative 0/3\nkernel 0/2\n");
}

/* How many samples the legend says are of @name; 0 if it is not there. */
static unsigned int legend_samples(const char *svg, const char *name)
{
	struct buf title = BUF_INIT;
	unsigned int n = 0;
	const char *at;

	buf_addf(&title, "<title>%s\nself ", name);
	at = strstr(svg, buf_str(&title));
	at = at ? strstr(at, "%), ") : NULL;
	if (at)
		cr_assert_eq(sscanf(at, "%%), %u sample", &n), 1);
	buf_deinit(&title);
	return n;
}

static unsigned int legend_sum(const char *svg)
{
	unsigned int sum = 0, n;

	for (const char *at = svg; (at = strstr(at, "class=\"key\"")); at++) {
		cr_assert_eq(sscanf(strstr(at, "%), "), "%%), %u sample", &n), 1);
		sum += n;
	}
	return sum;
}

static char *draw(const struct flame_options *opts)
{
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	builder_finish(&b);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, opts->filter->stack), 0);
	cr_assert_eq(flame_render(&b.out.profile, opts, &out, &err), 0, "%s", err.msg);
	return out.data;
}

Test(sample_kind, the_legend_of_a_flame_graph_adds_up)
{
	static const enum flame_color colors[] = { FLAME_COLOR_KIND, FLAME_COLOR_HASH,
						   FLAME_COLOR_MODULE, FLAME_COLOR_GEM };

	merged_build(&b);
	for (unsigned int i = 0; i < ARRAY_SIZE(colors) * STACK_MODE_COUNT * 4; i++) {
		const struct view_filter f = { .stack = i % STACK_MODE_COUNT };
		const struct flame_options opts = { .filter = &f,
						    .color = colors[i / 4 / STACK_MODE_COUNT],
						    .inverted = i / STACK_MODE_COUNT & 1,
						    .min_width = i / STACK_MODE_COUNT & 2 ? 60
											  : -1 };
		char *svg = draw(&opts);

		cr_expect_eq(legend_sum(svg), b.out.profile.n_samples, "%s, colours %u: %u",
			     stack_mode_name(f.stack), opts.color, legend_sum(svg));
		if (opts.color == FLAME_COLOR_KIND || opts.color == FLAME_COLOR_HASH) {
			cr_expect_eq(legend_samples(svg, "GC"), 2);
			cr_expect_eq(legend_samples(svg, "native"), 9);
			cr_expect_eq(legend_samples(svg, "kernel"), 3);
			cr_expect_eq(legend_samples(svg, "Ruby app") +
					     legend_samples(svg, "Ruby app, JIT"),
				     5);
		} else if (opts.color == FLAME_COLOR_MODULE && f.stack != STACK_NATIVE) {
			cr_expect_eq(legend_samples(svg, "gc"), 2, "%s", stack_mode_name(f.stack));
			if (f.stack == STACK_MIXED || f.stack == STACK_BOTH)
				cr_expect_eq(legend_samples(svg, "app"), 5);
		}
		free(svg);
	}
}
