/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_diff.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "profile/profile.h"
#include "view/tree.h"

static struct flame_sum sum_of(const struct tree_node *node)
{
	return (struct flame_sum) { .samples = node->total_samples, .value = node->total_value };
}

/*
 * The path of each node of @t. Nodes that differ by what comparisons do not tell apart, as the file
 * of a method does, have one path.
 */
static int find_paths(struct flame_base *base, const struct tree *t, uint32_t **ret)
{
	_cleanup_free_ uint32_t *paths = calloc(t->n_nodes + 1, sizeof(*paths));
	_cleanup_buf_ struct buf key = BUF_INIT;
	uint32_t id;

	if (!paths)
		return -ENOMEM;
	for (size_t i = 1; i < t->n_nodes; i++) {
		compare_key(t->profile, t->nodes[i].frame, &key);
		if (buf_failed(&key) || intern_add(&base->keys, key.data, key.len, &id, NULL) ||
		    prefix_tree_child(&base->path, paths[t->nodes[i].parent], id, &paths[i]))
			return -ENOMEM;
	}
	*ret = take_ptr(paths);
	return 0;
}

/* Add the nodes of @t to the sums of their paths. */
static int add_nodes(const struct flame_base *base, const struct tree *t, const uint32_t *paths,
		     struct flame_sum **sums, size_t *cap)
{
	if (array_reserve(*sums, *cap, base->path.n_nodes + 1))
		return -ENOMEM;
	for (size_t i = 0; i < t->n_nodes; i++) {
		struct flame_sum *sum = &(*sums)[paths[i]];

		sum->samples += t->nodes[i].total_samples;
		sum->value += t->nodes[i].total_value;
	}
	return 0;
}

int flame_base_init(const struct profile *p, const struct view_filter *f, bool inverted,
		    struct flame_base *ret)
{
	const struct tree_options opts = { .inverted = inverted };
	_cleanup_free_ uint32_t *paths = NULL;
	struct flame_base base = { 0 };
	struct tree t;
	int r;

	r = tree_build(p, f, &opts, &t);
	if (r)
		return r;
	base.all = sum_of(&t.nodes[0]);
	if (prefix_tree_init(&base.path) || find_paths(&base, &t, &paths) ||
	    add_nodes(&base, &t, paths, &base.sums, &base.cap_sums))
		r = -ENOMEM;
	tree_deinit(&t);
	if (r)
		flame_base_deinit(&base);
	else
		*ret = base;
	return r;
}

void flame_base_deinit(struct flame_base *base)
{
	intern_deinit(&base->keys);
	prefix_tree_deinit(&base->path);
	free(base->sums);
	*base = (struct flame_base) { 0 };
}

static struct compare_sum with_variance(const struct flame_sum *s, const struct flame_sum *all)
{
	double weight = all->samples ? (double)all->value / (double)all->samples : 0;

	return (struct compare_sum) { .samples = s->samples,
				      .value = s->value,
				      .variance = (double)s->samples * weight * weight };
}

int flame_diff_init(struct flame_base *base, const struct tree *t, struct flame_diff *ret)
{
	struct flame_diff d = { .base = base, .nodes = t->nodes };
	size_t cap = 0;

	if (find_paths(base, t, &d.paths) || add_nodes(base, t, d.paths, &d.after, &cap) ||
	    array_reserve(base->sums, base->cap_sums, base->path.n_nodes + 1)) {
		flame_diff_deinit(&d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void flame_diff_deinit(struct flame_diff *d)
{
	free(d->paths);
	free(d->after);
	*d = (struct flame_diff) { 0 };
}

struct compare_share flame_diff_share(const struct flame_diff *d, const struct tree_node *node)
{
	const uint32_t path = d->paths[node - d->nodes];
	const struct flame_sum all_after = sum_of(&d->nodes[0]);
	const struct compare_sum all_before = with_variance(&d->base->all, &d->base->all);
	const struct compare_sum all = with_variance(&all_after, &all_after);
	const struct compare_sum before = with_variance(&d->base->sums[path], &d->base->all);
	const struct compare_sum after = with_variance(&d->after[path], &all_after);

	return compare_shares(&before, &all_before, &after, &all);
}

enum flame_change flame_change_of(const struct compare_share *share)
{
	if (share->low > 0)
		return share->after > 2 * share->before ? CHANGE_DOUBLED : CHANGE_GREW;
	if (share->high < 0)
		return 2 * share->after < share->before ? CHANGE_HALVED : CHANGE_SHRANK;
	return CHANGE_CHANCE;
}
