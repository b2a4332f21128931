/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/page_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/utf8.h"
#include "export/flame_color.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"

/* Code points of a name; the rest of it says nothing more to anyone. */
#define MAX_NAME 300

int page_tree_init(const struct profile *p, const struct view_filter *f, bool by_line,
		   struct page_tree *ret)
{
	const struct tree_options opts = { .by_line = by_line, .stack = STACK_MIXED };
	struct page_tree t = PAGE_TREE_INIT;
	int r = tree_build_leaves(p, f, &opts, &t.tree, &t.leaves);

	if (r)
		return r;
	t.ids = calloc(t.tree.n_nodes, sizeof(*t.ids));
	if (!t.ids) {
		page_tree_deinit(&t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void page_tree_deinit(struct page_tree *t)
{
	if (!t)
		return;
	tree_deinit(&t->tree);
	free(t->leaves);
	free(t->ids);
	free(t->parents);
	free(t->nodes);
	*t = (struct page_tree)PAGE_TREE_INIT;
}

/* The heaviest first; of equal ones callers, which are before what they called. */
static int compare_weights(const void *va, const void *vb, void *arg)
{
	const uint64_t *weights = arg;
	const uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	if (weights[a] != weights[b])
		return weights[a] < weights[b] ? 1 : -1;
	return a < b ? -1 : a > b;
}

int page_tree_keep(struct page_tree *t, const uint64_t *weights, size_t max)
{
	const size_t n = t->tree.n_nodes;
	_cleanup_free_ uint32_t *order = malloc(n * sizeof(*order));
	_cleanup_free_ bool *kept = calloc(n, sizeof(*kept));
	size_t n_order = 0;

	if (max > n - 1)
		max = n - 1;
	free(t->parents);
	free(t->nodes);
	t->parents = calloc(max + 1, sizeof(*t->parents));
	t->nodes = calloc(max + 1, sizeof(*t->nodes));
	if (!order || !kept || !t->parents || !t->nodes)
		return -ENOMEM;
	for (size_t i = 1; i < n; i++)
		if (weights[i])
			order[n_order++] = (uint32_t)i;
	qsort_r(order, n_order, sizeof(*order), compare_weights, (void *)weights);
	for (size_t i = 0; i < n_order && i < max; i++)
		kept[order[i]] = true;
	t->n = 1;
	for (size_t i = 1; i < n; i++) {
		const uint32_t parent = t->ids[t->tree.nodes[i].parent];

		t->ids[i] = kept[i] ? (uint32_t)t->n : parent;
		if (!kept[i])
			continue;
		t->parents[t->n] = parent;
		t->nodes[t->n++] = (uint32_t)i;
	}
	return 0;
}

uint32_t page_tree_node(const struct page_tree *t, uint32_t stack)
{
	return t->leaves[stack] == PROFILE_NONE ? 0 : t->leaves[stack];
}

/* Where its code is: "/app/cart.rb:57", or the path of its module. */
static void add_place(const struct page_tree *t, uint32_t frame, struct buf *out)
{
	const struct profile *p = t->tree.profile;
	const struct profile_frame *f = &p->frames[frame];
	const char *file = profile_str(p, f->file);

	if (f->module != PROFILE_NONE) {
		buf_addstr(out, profile_str(p, p->modules[f->module].path));
		return;
	}
	if (!*file || (f->kind == FRAME_CFUNC && !t->tree.opts.by_line))
		return;
	buf_addstr(out, file);
	if (t->tree.opts.by_line && f->line) {
		buf_addch(out, ':');
		label_line(f, out);
	} else if (f->func_line) {
		buf_addf(out, ":%u", f->func_line);
	}
}

static void add_limited(const char *name, struct buf *out)
{
	const size_t shown = utf8_prefix(name, MAX_NAME);

	buf_add(out, name, shown);
	if (name[shown])
		buf_addstr(out, "…");
}

/* The name and the place as one string, with a NUL between them; @scratch is overwritten. */
static void make_label(const struct page_tree *t, uint32_t frame, struct buf *scratch,
		       struct buf *out)
{
	buf_reset(out);
	add_limited(label_frame(t->tree.profile, frame), out);
	buf_addch(out, '\0');
	buf_reset(scratch);
	add_place(t, frame, scratch);
	add_limited(buf_str(scratch), out);
	out->failed |= scratch->failed;
}

static void add_node(const struct page_tree *t, uint32_t id, uint32_t label,
		     struct flame_colors *colors, struct buf *packed)
{
	size_t category, shade;

	buf_add_varint(packed, id - t->parents[id]);
	buf_add_varint(packed, label);
	if (!colors)
		return;
	flame_colors_pick(colors, t->tree.profile, &t->tree.nodes[t->nodes[id]], &category, &shade);
	buf_add_varint(packed, category);
	buf_add_varint(packed, shade);
}

int page_tree_write(const struct page_tree *t, struct flame_colors *colors, struct json *json,
		    struct buf *packed)
{
	_cleanup_intern_ struct intern labels = INTERN_INIT;
	_cleanup_buf_ struct buf label = BUF_INIT;
	_cleanup_buf_ struct buf scratch = BUF_INIT;

	buf_add_varint(packed, t->n - 1);
	for (uint32_t i = 1; i < t->n; i++) {
		uint32_t id;

		make_label(t, t->tree.nodes[t->nodes[i]].frame, &scratch, &label);
		if (buf_failed(&label) ||
		    intern_add(&labels, buf_str(&label), label.len, &id, NULL))
			return -ENOMEM;
		add_node(t, i, id, colors, packed);
	}
	json_array_begin(json, "labels");
	for (uint32_t i = 0; i < labels.count; i++) {
		const char *name = intern_get(&labels, i, NULL);

		json_array_begin(json, NULL);
		json_str(json, NULL, name);
		json_str(json, NULL, name + strlen(name) + 1);
		json_array_end(json);
	}
	json_array_end(json);
	return 0;
}
