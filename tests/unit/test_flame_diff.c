/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "export/flame_diff.h"
#include "profile/reason.h"
#include "support/naive_samples.h"
#include "support/profile_builder.h"
#include "view/tree.h"

static const struct view_filter all = VIEW_FILTER_INIT;

Test(flame_diff, what_a_change_is_called)
{
	static const struct {
		struct compare_share share;
		enum flame_change want;
	} cases[] = {
		{ { 0, 0.1, 0.05, 0.15 }, CHANGE_DOUBLED },
		{ { 0.1, 0.21, 0.05, 0.15 }, CHANGE_DOUBLED },
		{ { 0.1, 0.2, 0.05, 0.15 }, CHANGE_GREW },
		{ { 0.1, 0.3, -0.01, 0.4 }, CHANGE_CHANCE },
		{ { 0.3, 0.1, -0.4, 0.01 }, CHANGE_CHANCE },
		{ { 0.2, 0.1, -0.15, -0.05 }, CHANGE_SHRANK },
		{ { 0.21, 0.1, -0.15, -0.05 }, CHANGE_HALVED },
		{ { 0.2, 0.2, -0.05, 0.05 }, CHANGE_CHANCE },
		/* Exact ones: "+0.00%", "+0.01%", and a new one. */
		{ { 0.2, 0.20004, 0.00004, 0.00004 }, CHANGE_CHANCE },
		{ { 0.2, 0.19996, -0.00004, -0.00004 }, CHANGE_CHANCE },
		{ { 0.2, 0.20006, 0.00006, 0.00006 }, CHANGE_GREW },
		{ { 0.2, 0.19994, -0.00006, -0.00006 }, CHANGE_SHRANK },
		{ { 0, 0.00004, 0.00004, 0.00004 }, CHANGE_DOUBLED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(flame_change_of(&cases[i].share), cases[i].want, "case %zu", i);
}

/*
 * The path to @node as text: kinds and names, and base names of files where comparisons need them.
 */
static void path_of_node(const struct tree *t, uint32_t node, char *ret, size_t size)
{
	char rest[4000] = "";

	ret[0] = '\0';
	for (; node; node = t->nodes[node].parent) {
		const struct profile_frame *f = &t->profile->frames[t->nodes[node].frame];
		const char *name = profile_str(t->profile, f->name), *file;

		file = profile_str(t->profile, f->kind == FRAME_NATIVE && f->module != PROFILE_NONE
						       ? t->profile->modules[f->module].path
						       : f->file);
		if (f->kind != FRAME_NATIVE && (f->kind != FRAME_RUBY || strpbrk(name, "#.")))
			file = "";
		file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
		snprintf(ret, size, "%u,%s,%s;%s", f->kind, name, file, rest);
		snprintf(rest, sizeof(rest), "%s", ret);
	}
}

/* The share of the nodes of @t with this path. */
static double share_of_path(const struct tree *t, const char *path)
{
	uint64_t sum = 0;
	char other[4000];

	for (uint32_t i = 0; i < t->n_nodes; i++) {
		path_of_node(t, i, other, sizeof(other));
		sum += strcmp(other, path) ? 0 : t->nodes[i].total_value;
	}
	return (double)sum / (double)t->nodes[0].total_value;
}

static void check_random(bool inverted)
{
	const struct tree_options opts = { .inverted = inverted };
	struct profile_builder b[2];
	struct flame_diff diff;
	struct flame_base base;
	struct tree t[2];
	size_t on_both = 0;

	for (size_t i = 0; i < 2; i++) {
		builder_init(&b[i]);
		builder_add_random(&b[i], 3 + i, 60);
		cr_assert_eq(tree_build(builder_finish(&b[i]), &all, &opts, &t[i]), 0);
	}
	cr_assert_eq(flame_base_init(&b[0].out.profile, &all, inverted, &base), 0);
	cr_assert_eq(flame_diff_init(&base, &t[1], &diff), 0);
	for (uint32_t i = 0; i < t[1].n_nodes; i++) {
		const struct compare_share share = flame_diff_share(&diff, &t[1].nodes[i]);
		char path[4000];

		path_of_node(&t[1], i, path, sizeof(path));
		cr_expect_float_eq(share.before, share_of_path(&t[0], path), 1e-9, "%s", path);
		cr_expect_float_eq(share.after, share_of_path(&t[1], path), 1e-9, "%s", path);
		on_both += i && share.before > 0;
	}
	cr_expect_gt(on_both, 0, "the profiles have no path in common");
	flame_diff_deinit(&diff);
	flame_base_deinit(&base);
	for (size_t i = 0; i < 2; i++) {
		tree_deinit(&t[i]);
		builder_deinit(&b[i]);
	}
}

Test(flame_diff, random_paths)
{
	check_random(false);
}

Test(flame_diff, random_paths_inverted)
{
	check_random(true);
}

/* 100 samples of CPU time, @hits of them of "x", and "read" waits for @wait_ns below "x". */
static void build_wall(struct profile_builder *b, const char *event, size_t hits, uint64_t wait_ns)
{
	uint32_t thread;

	builder_init(b);
	builder_event(b, event, strcmp(event, EVENT_WAIT) ? BUILDER_PERIOD : 0);
	thread = builder_thread(b, builder_process(b, 1, "ruby"), 1, "main");
	if (strcmp(event, EVENT_WAIT) != 0) {
		builder_add(b, thread, builder_path(b, "x"), hits);
		builder_add(b, thread, builder_path(b, "other"), 100 - hits);
	}
	builder_sample(b, thread, builder_reason(b, builder_path(b, "x|read"), REASON_WAIT_NETWORK),
		       wait_ns, 0);
	builder_sample(b, thread, builder_reason(b, builder_path(b, "other"), REASON_WAIT_NETWORK),
		       NSEC_PER_SEC, 0);
}

/* That of the node of @name, which is the only one. */
static struct compare_share share_of(const struct tree *t, const struct flame_diff *d,
				     const char *name)
{
	uint32_t i = 1;

	while (i < t->n_nodes &&
	       strcmp(profile_str(t->profile, t->profile->frames[t->nodes[i].frame].name), name))
		i++;
	cr_assert_lt(i, t->n_nodes, "no node of %s", name);
	return flame_diff_share(d, &t->nodes[i]);
}

static void expect_wall(const char *event, struct compare_share *x, struct compare_share *read)
{
	const struct tree_options opts = { .exact = true };
	struct profile_builder b[2];
	struct flame_diff diff;
	struct flame_base base;
	struct tree t;

	build_wall(&b[0], event, 50, 2 * NSEC_PER_SEC);
	build_wall(&b[1], event, 60, 3 * NSEC_PER_SEC);
	cr_assert_eq(flame_base_init(builder_finish(&b[0]), &all, false, &base), 0);
	cr_assert_eq(tree_build(builder_finish(&b[1]), &all, &opts, &t), 0);
	cr_assert_eq(flame_diff_init(&base, &t, &diff), 0);
	*x = share_of(&t, &diff, "x");
	*read = share_of(&t, &diff, "read");
	flame_diff_deinit(&diff);
	flame_base_deinit(&base);
	tree_deinit(&t);
	builder_deinit(&b[0]);
	builder_deinit(&b[1]);
}

/* Two long waits are no 2 of 102 samples: that they were longer is no chance, as rbpf diff says. */
Test(flame_diff, waits_are_no_matter_of_chance)
{
	struct compare_share x, read;

	expect_wall(EVENT_WALL, &x, &read);
	cr_expect_float_eq(read.before, 0.5, 1e-9, "2 of 4 s");
	cr_expect_float_eq(read.after, 0.6, 1e-9, "3 of 5 s");
	cr_expect_float_eq(read.low, 0.1, 1e-9, "%f", read.low);
	cr_expect_float_eq(read.high, 0.1, 1e-9, "%f", read.high);
	cr_expect_eq(flame_change_of(&read), CHANGE_GREW);
	/* Of x, half a second of 50 samples can be off, in 4 s, and of 60 in 5. */
	cr_expect_float_eq(x.before, 0.625, 1e-9);
	cr_expect_float_eq(x.after, 0.72, 1e-9);
	cr_expect_float_eq(x.high - 0.095, hypot(0.094 / 5, 0.096 / 4), 0.002, "%f", x.high);
	cr_expect_float_eq(0.095 - x.low, hypot(0.096 / 5, 0.096 / 4), 0.002, "%f", x.low);
	expect_wall(EVENT_WAIT, &x, &read);
	cr_expect_float_eq(read.low, 0.75 - 2.0 / 3, 1e-9);
	cr_expect_float_eq(x.high, 0.75 - 2.0 / 3, 1e-9);
}
