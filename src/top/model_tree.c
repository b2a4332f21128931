/* SPDX-License-Identifier: GPL-2.0-only */
#include "top/model_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "view/filter.h"
#include "view/tree.h"

#define OPEN_PART 20 /* nodes of a twentieth of the root are open at first */

/* ---- of which method ---- */

int top_match_only(const char *name, regex_t *re, bool *has)
{
	_cleanup_buf_ struct buf pattern = BUF_INIT;

	buf_addch(&pattern, '^');
	for (; *name; name++) {
		if (strchr("\\^$.[]|()*+?{}", *name))
			buf_addch(&pattern, '\\');
		buf_addch(&pattern, *name);
	}
	buf_addch(&pattern, '$');
	if (buf_failed(&pattern))
		return -ENOMEM;
	return view_filter_regex(re, has, buf_str(&pattern), "name", NULL);
}

/* ---- in which order ---- */

/* Most time first; own time would tear callers and callees apart. */
static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	uint64_t v = t->nodes[*(const uint32_t *)a].total_value;
	uint64_t w = t->nodes[*(const uint32_t *)b].total_value;

	if (v != w)
		return v < w ? 1 : -1;
	/* The tree has them in the order of names. */
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Children of @node, sorted, to the end of @list. */
static int add_children(const struct tree *t, uint32_t node, enum top_sort sort, uint32_t **list,
			size_t *n, size_t *cap)
{
	const size_t first = *n;
	uint32_t child;

	for (child = t->nodes[node].first_child; child; child = t->nodes[child].next_sibling) {
		if (array_reserve(*list, *cap, *n + 1))
			return -ENOMEM;
		(*list)[(*n)++] = child;
	}
	if (sort != TOP_SORT_NAME)
		qsort_r(*list + first, *n - first, sizeof(**list), compare_nodes, (void *)t);
	/* The list is a stack: what is shown first is taken last. */
	for (size_t i = first, k = *n; i + 1 < k; i++, k--) {
		uint32_t tmp = (*list)[i];

		(*list)[i] = (*list)[k - 1];
		(*list)[k - 1] = tmp;
	}
	return 0;
}

/* ---- rows ---- */

/* By node: whether it or one below it passes the filter; all do if there is none. */
static int find_matches(struct top_model *m, const struct tree *t, const struct profile *p,
			const struct top_choice *choice, bool **ret)
{
	bool *matches = calloc(t->n_nodes, sizeof(*matches));

	if (!matches)
		return -ENOMEM;
	*ret = matches;
	if (!choice->filter[0]) {
		memset(matches, true, t->n_nodes * sizeof(*matches));
		return 0;
	}
	for (size_t i = t->n_nodes; i-- > 1;) {
		struct top_row row = { 0 };
		const size_t text = m->text.len;

		top_frame_text(m, p, t->nodes[i].frame, &row);
		if (buf_failed(&m->text))
			return -ENOMEM;
		matches[i] |= top_matches(m, &row, choice);
		m->text.len = text;
		if (matches[i])
			matches[t->nodes[i].parent] = true;
		else
			m->n_hidden++;
	}
	return 0;
}

static int add_node(struct top_model *m, const struct tree *t, const struct profile *p,
		    uint32_t node, const uint64_t *keys, const struct top_choice *choice,
		    struct top_row *ret)
{
	const struct tree_node *n = &t->nodes[node];
	struct top_row row = { .self_ns = n->self_value,
			       .total_ns = n->total_value,
			       .depth = n->depth - 1,
			       .has_children = n->first_child != 0 };

	top_frame_text(m, p, n->frame, &row);
	row.key = row.key * 0x9e3779b97f4a7c15ull + keys[n->parent];
	row.key |= !row.key;
	row.open = n->total_value >= t->nodes[0].total_value / OPEN_PART;
	/* What is looked for is not hidden. */
	row.open |= choice->filter[0] != '\0';
	row.open ^= top_choice_toggled(choice, row.key);
	row.open &= row.has_children;
	*ret = row;
	return top_add_row(m, &row);
}

static int add_nodes(struct top_model *m, const struct tree *t, const struct profile *p,
		     const struct top_choice *choice)
{
	_cleanup_free_ uint64_t *keys = calloc(t->n_nodes, sizeof(*keys));
	_cleanup_free_ uint32_t *list = NULL;
	_cleanup_free_ bool *matches = NULL;
	size_t n = 0, cap = 0;
	struct top_row row;
	int r;

	if (!keys)
		return -ENOMEM;
	r = find_matches(m, t, p, choice, &matches);
	if (!r)
		r = add_children(t, 0, choice->sort, &list, &n, &cap);
	while (n && !r) {
		const uint32_t node = list[--n];

		if (!matches[node])
			continue;
		r = add_node(m, t, p, node, keys, choice, &row);
		keys[node] = row.key;
		if (!r && row.open)
			r = add_children(t, node, choice->sort, &list, &n, &cap);
	}
	return r;
}

int top_build_tree(struct top_model *m, const struct profile *p, struct view_filter *f,
		   const struct top_choice *choice)
{
	const struct tree_options opts = { .inverted = choice->inverted };
	struct tree t = { 0 };
	int r = choice->method ? top_match_only(choice->method, &f->include, &f->has_include) : 0;

	if (!r)
		r = tree_build(p, f, &opts, &t);
	if (!r)
		r = add_nodes(m, &t, p, choice);
	tree_deinit(&t);
	if (f->has_include)
		regfree(&f->include);
	return r;
}
