/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <string.h>

#include "export/flame_diff.h"
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
