/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/flame_diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "profile/profile.h"
#include "view/tree.h"

/*
 * No two waits are of the same length to the nanosecond, and as they are exact, chance does not
 * explain it: a difference that titles show as +0.00% is none.
 */
#define SMALLEST_CHANGE 0.00005

static struct flame_sum sum_of_all(const struct tree *t)
{
	const struct tree_exact exact = tree_exact_of(t, 0);

	return (struct flame_sum) { .samples = t->nodes[0].total_samples,
				    .value = t->nodes[0].total_value,
				    .exact_samples = exact.samples,
				    .exact_value = exact.value };
}

/* The key of @node, in @base->keys. @known: that of each frame + 1, 0 if it is not known yet. */
static int find_key(struct flame_base *base, const struct tree *t, const struct tree_node *node,
		    uint32_t *known, struct buf *key, uint32_t *ret)
{
	const uint32_t frame = node->frame;
	int r;

	if (frame != PROFILE_NONE && known[frame]) {
		*ret = known[frame] - 1;
		return 0;
	}
	compare_key(t->profile, frame, key);
	if (buf_failed(key))
		return -ENOMEM;
	r = intern_add(&base->keys, key->data, key->len, ret, NULL);
	if (!r && frame != PROFILE_NONE)
		known[frame] = *ret + 1;
	return r;
}

/*
 * The path of each node of @t. Nodes that differ by what comparisons do not tell apart, as the file
 * of a method does, have one path.
 */
static int find_paths(struct flame_base *base, const struct tree *t, uint32_t **ret)
{
	_cleanup_free_ uint32_t *paths = calloc(t->n_nodes + 1, sizeof(*paths));
	_cleanup_free_ uint32_t *known = calloc(t->profile->n_frames + 1, sizeof(*known));
	_cleanup_buf_ struct buf key = BUF_INIT;
	uint32_t id;

	if (!paths || !known)
		return -ENOMEM;
	for (size_t i = 1; i < t->n_nodes; i++) {
		if (find_key(base, t, &t->nodes[i], known, &key, &id) ||
		    prefix_tree_child(&base->path, paths[t->nodes[i].parent], id, &paths[i]))
			return -ENOMEM;
	}
	*ret = take_ptr(paths);
	return 0;
}

/* Of so many elements as there are nodes, not doubled as array_reserve() does. */
static int grow_raw(void **v, size_t from, size_t n, size_t elem)
{
	char *grown = realloc(*v, n * elem);

	if (!grown)
		return -ENOMEM;
	memset(grown + from * elem, 0, (n - from) * elem);
	*v = grown;
	return 0;
}

#define grow(v, from, n) grow_raw((void **)&(v), (from), (n), sizeof(*(v)))

static int grow_sums(struct flame_sums *s, size_t n)
{
	if (grow(s->values, s->n, n) || grow(s->samples, s->n, n))
		return -ENOMEM;
	s->n = n;
	return 0;
}

static int grow_exact(struct flame_sums *s, size_t n)
{
	if (grow(s->exact_values, s->n_exact, n) || grow(s->exact_samples, s->n_exact, n))
		return -ENOMEM;
	s->n_exact = n;
	return 0;
}

static void sums_deinit(struct flame_sums *s)
{
	free(s->values);
	free(s->exact_values);
	free(s->samples);
	free(s->exact_samples);
	*s = (struct flame_sums) { 0 };
}

static struct flame_sum sum_of_path(const struct flame_sums *s, uint32_t path)
{
	struct flame_sum sum = { .samples = s->samples[path], .value = s->values[path] };

	if (path < s->n_exact) {
		sum.exact_samples = s->exact_samples[path];
		sum.exact_value = s->exact_values[path];
	}
	return sum;
}

static void add_samples(uint32_t *to, uint64_t more)
{
	const uint64_t room = UINT32_MAX - *to;

	*to += (uint32_t)(more < room ? more : room);
}

/* Add the nodes of @t to the sums of their paths. */
static int add_nodes(const struct flame_base *base, const struct tree *t, const uint32_t *paths,
		     struct flame_sums *sums)
{
	if (grow_sums(sums, base->path.n_nodes) ||
	    (t->exact && grow_exact(sums, base->path.n_nodes)))
		return -ENOMEM;
	for (size_t i = 0; i < t->n_nodes; i++) {
		add_samples(&sums->samples[paths[i]], t->nodes[i].total_samples);
		sums->values[paths[i]] += t->nodes[i].total_value;
		if (!t->exact)
			continue;
		add_samples(&sums->exact_samples[paths[i]], t->exact[i].samples);
		sums->exact_values[paths[i]] += t->exact[i].value;
	}
	return 0;
}

int flame_base_init(const struct profile *p, const struct view_filter *f, bool inverted,
		    struct flame_base *ret)
{
	const struct tree_options opts = { .inverted = inverted, .exact = true };
	_cleanup_free_ uint32_t *paths = NULL;
	struct flame_base base = { .event = *profile_event(p) };
	struct tree t;
	int r;

	r = tree_build(p, f, &opts, &t);
	if (r)
		return r;
	base.all = sum_of_all(&t);
	if (prefix_tree_init(&base.path) || find_paths(&base, &t, &paths) ||
	    add_nodes(&base, &t, paths, &base.sums))
		r = -ENOMEM;
	tree_deinit(&t);
	if (r) {
		flame_base_deinit(&base);
		return r;
	}
	/* The tree that it is compared with takes more room while it is built than later. */
	prefix_tree_drop_slots(&base.path);
	*ret = base;
	return 0;
}

void flame_base_deinit(struct flame_base *base)
{
	intern_deinit(&base->keys);
	prefix_tree_deinit(&base->path);
	sums_deinit(&base->sums);
	*base = (struct flame_base) { 0 };
}

static struct compare_sum with_variance(const struct flame_sum *s, const struct flame_sum *all)
{
	const uint64_t by_chance = all->samples - all->exact_samples;
	const double value = (double)(all->value - all->exact_value);
	const double weight = by_chance ? value / (double)by_chance : 0;

	return (struct compare_sum) { .samples = s->samples,
				      .value = s->value,
				      .exact_samples = s->exact_samples,
				      .exact_value = s->exact_value,
				      .variance = (double)(s->samples - s->exact_samples) * weight *
						  weight };
}

int flame_diff_init(struct flame_base *base, const struct tree *t, struct flame_diff *ret)
{
	struct flame_diff d = { .base = base, .nodes = t->nodes, .all = sum_of_all(t) };

	if (find_paths(base, t, &d.paths) || add_nodes(base, t, d.paths, &d.after) ||
	    grow_sums(&base->sums, base->path.n_nodes)) {
		flame_diff_deinit(&d);
		return -ENOMEM;
	}
	/* By now the numbers of paths are all that is asked for, and what finds them is large. */
	intern_deinit(&base->keys);
	prefix_tree_deinit(&base->path);
	*ret = d;
	return 0;
}

void flame_diff_deinit(struct flame_diff *d)
{
	free(d->paths);
	sums_deinit(&d->after);
	*d = (struct flame_diff) { 0 };
}

struct compare_share flame_diff_share(const struct flame_diff *d, const struct tree_node *node)
{
	const uint32_t path = d->paths[node - d->nodes];
	const struct compare_sum all_before = with_variance(&d->base->all, &d->base->all);
	const struct compare_sum all = with_variance(&d->all, &d->all);
	const struct flame_sum sum_before = sum_of_path(&d->base->sums, path);
	const struct flame_sum sum_after = sum_of_path(&d->after, path);
	const struct compare_sum before = with_variance(&sum_before, &d->base->all);
	const struct compare_sum after = with_variance(&sum_after, &d->all);

	return compare_shares(&before, &all_before, &after, &all);
}

enum flame_change flame_change_of(const struct compare_share *share)
{
	if (share->low > 0 && share->after > 2 * share->before)
		return CHANGE_DOUBLED;
	if (share->high < 0 && 2 * share->after < share->before)
		return CHANGE_HALVED;
	if (fabs(share->after - share->before) < SMALLEST_CHANGE)
		return CHANGE_CHANCE;
	return share->low > 0 ? CHANGE_GREW : share->high < 0 ? CHANGE_SHRANK : CHANGE_CHANCE;
}
