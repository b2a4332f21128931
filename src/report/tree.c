/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call tree as text; inverted, with the innermost methods first and their callers below.
 *
 * A Ruby stack is deep and mostly one caller with one callee; drawn with a step to the right for
 * each it would leave any terminal. So only a fork moves to the right: the one visible child of a
 * node goes on below it, at the same place.
 *
 *	100.0%    0.0%  all
 *	 98.0%    0.0%  <main>
 *	 60.0%   10.0%  ├─ A#x
 *	 50.0%   50.0%  │  A#y              (called by A#x)
 *	 38.0%   38.0%  └─ B#z
 *
 * The walk keeps its own stack: a recording can be thousands of frames deep.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/number.h"
#include "base/utf8.h"
#include "report/report.h"
#include "ui/table.h"
#include "ui/term.h"
#include "view/tree.h"

/* Nodes below total / HIDE_BELOW are left out. */
#define HIDE_BELOW	200
#define HIDE_BELOW_TEXT "0.5%%" /* in a format */

#define NUMBERS		18 /* columns of "  50.0%    50.0%  " */
#define JOINT		3
#define MIN_LABEL	24 /* columns that the rails leave for a label */

enum joint { JOINT_NONE, JOINT_BRANCH, JOINT_LAST };

struct tree_pending {
	uint32_t node;
	size_t prefix; /* bytes of the walk's prefix that are this node's */
	enum joint joint;
};

struct tree_walk {
	const struct report *r;
	const struct tree *tree;
	struct tree_pending *stack; /* owned */
	size_t n, cap;
	uint32_t *children; /* scratch; owned */
	size_t children_cap;
	struct buf prefix; /* what stands left of the label: the rails of the forks above */
	struct buf label;  /* scratch */
	uint64_t hidden;   /* frames below HIDE_BELOW that the tree has all the same */
	uint64_t lines, cut_lines;
};

static void cut(struct buf *text, size_t len)
{
	if (len >= text->len)
		return;
	text->len = len;
	text->data[len] = '\0';
}

static bool is_visible(const struct tree_walk *w, uint32_t node)
{
	uint64_t all = w->tree->nodes[0].total_value;
	uint64_t total = w->tree->nodes[node].total_value;

	return total >= all / HIDE_BELOW + (all % HIDE_BELOW != 0);
}

/*
 * Descending time; the tree's own order, by name, decides ties, which keeps output deterministic.
 */
static int compare_children(const void *a, const void *b, void *arg)
{
	const struct tree_node *nodes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (nodes[x].total_value != nodes[y].total_value)
		return nodes[x].total_value < nodes[y].total_value ? 1 : -1;
	return (x > y) - (x < y);
}

/* Fill w->children with the visible children of @node in the order they are printed. */
static int collect_children(struct tree_walk *w, uint32_t node, size_t *ret)
{
	uint32_t child;
	size_t n = 0;

	for (child = w->tree->nodes[node].first_child; child;
	     child = w->tree->nodes[child].next_sibling) {
		if (!is_visible(w, child)) {
			w->hidden++;
			continue;
		}
		if (array_reserve(w->children, w->children_cap, n + 1))
			return -ENOMEM;
		w->children[n++] = child;
	}
	if (n > 1)
		qsort_r(w->children, n, sizeof(*w->children), compare_children, w->tree->nodes);
	*ret = n;
	return 0;
}

static void add_numbers(const struct tree_walk *w, uint32_t node, struct buf *out)
{
	const struct tree_node *n = &w->tree->nodes[node];
	uint64_t all = w->tree->nodes[0].total_value;

	/* Inverted, self times would be those of the outermost callers of a path. */
	buf_addf(out, "%7s  ", num_percent(n->total_value, all).s);
	if (!w->r->inverted)
		buf_addf(out, "%7s  ", num_percent(n->self_value, all).s);
}

static void make_label(struct tree_walk *w, uint32_t node)
{
	uint32_t frame = w->tree->nodes[node].frame;
	size_t name_end;

	buf_reset(&w->label);
	if (frame == PROFILE_NONE) {
		tree_node_label(w->tree, node, &w->label);
		return;
	}
	report_frame_name(w->r, frame, &w->label);
	name_end = w->label.len;
	buf_addstr(&w->label, "  ");
	report_frame_place(w->r, frame, w->tree->opts.by_line, &w->label);
	if (w->label.len == name_end + 2)
		cut(&w->label, name_end); /* it has no place */
}

static void print_node(struct tree_walk *w, const struct tree_pending *item, struct buf *out)
{
	static const char *const joints[] = {
		[JOINT_NONE] = "",
		[JOINT_BRANCH] = "├─ ",
		[JOINT_LAST] = "└─ ",
	};
	size_t width = w->r->width, start = out->len, used;
	size_t max_rails = width > NUMBERS + 2 * JOINT + MIN_LABEL
				   ? width - NUMBERS - JOINT - MIN_LABEL
				   : JOINT;

	add_numbers(w, item->node, out);
	/* Where the rails would leave no room for the label, the outer ones are left out. */
	table_add_cut(out, buf_str(&w->prefix), max_rails, width ? TABLE_CUT_START : TABLE_WHOLE);
	buf_addstr(out, joints[item->joint]);
	make_label(w, item->node);
	used = utf8_len(buf_str(out) + start);
	if (!width)
		buf_addstr(out, buf_str(&w->label));
	else
		table_add_cut(out, buf_str(&w->label),
			      width > used + MIN_LABEL ? width - used : MIN_LABEL,
			      TABLE_CUT_MIDDLE);
	buf_addch(out, '\n');
}

static int push(struct tree_walk *w, struct tree_pending item)
{
	if (array_reserve(w->stack, w->cap, w->n + 1))
		return -ENOMEM;
	w->stack[w->n++] = item;
	return 0;
}

/* The prefix of a node's children: the node's own, and its rail if siblings follow. */
static void extend_prefix(struct tree_walk *w, enum joint joint)
{
	if (joint == JOINT_BRANCH)
		buf_addstr(&w->prefix, "│  ");
	else if (joint == JOINT_LAST)
		buf_addstr(&w->prefix, "   ");
}

static int visit(struct tree_walk *w, struct buf *out)
{
	struct tree_pending item = w->stack[--w->n];
	size_t n, i;

	cut(&w->prefix, item.prefix);
	if (w->lines == w->r->limit) {
		w->cut_lines++;
	} else {
		print_node(w, &item, out);
		w->lines++;
	}
	extend_prefix(w, item.joint);
	if (collect_children(w, item.node, &n))
		return -ENOMEM;
	/* Last in, first out. */
	for (i = n; i-- > 0;) {
		struct tree_pending child = { .node = w->children[i], .prefix = w->prefix.len };

		if (n > 1)
			child.joint = i + 1 == n ? JOINT_LAST : JOINT_BRANCH;
		if (push(w, child))
			return -ENOMEM;
	}
	if (buf_failed(out) || buf_failed(&w->prefix) || buf_failed(&w->label))
		return -ENOMEM;
	return 0;
}

static int render_tree(const struct report *r, const struct tree *tree, struct buf *out)
{
	struct tree_walk w = { .r = r, .tree = tree };
	int ret;

	report_header(r, tree->nodes[0].total_samples, tree->nodes[0].total_value, out);
	buf_addstr(out, r->color ? TERM_BOLD : "");
	if (r->inverted)
		buf_addf(out, "%7s  METHOD, with its callers below", "SELF%");
	else
		buf_addf(out, "%7s  %7s  METHOD", "TOTAL%", "SELF%");
	buf_addf(out, "%s\n", r->color ? TERM_RESET : "");
	ret = push(&w, (struct tree_pending) { .node = 0 });
	while (!ret && w.n)
		ret = visit(&w, out);
	if (w.cut_lines)
		buf_addf(out, "  %s hidden by -n\n",
			 num_of(w.cut_lines, "more line", "more lines").s);
	w.hidden += tree->n_left_out;
	if (w.hidden)
		buf_addf(out, "  %s below " HIDE_BELOW_TEXT " hidden\n",
			 num_of(w.hidden, "frame", "frames").s);
	report_footer(r, out);
	free(w.stack);
	free(w.children);
	buf_deinit(&w.prefix);
	buf_deinit(&w.label);
	return ret;
}

int report_tree(const struct report *r, struct buf *out, struct err *err)
{
	/* A long recording has millions of nodes, of which some hundred are printed. */
	const struct tree_options opts = { .by_line = r->by == FLAT_BY_LINE,
					   .inverted = r->inverted,
					   .min_percent = 100.0 / HIDE_BELOW };
	struct tree tree;
	int ret;

	ret = tree_build(&r->rec->profile, r->filter, &opts, &tree);
	if (ret)
		return tree_error(ret, err);
	if (!tree.nodes[0].total_samples) {
		tree_deinit(&tree);
		return report_nothing(r, err);
	}
	ret = render_tree(r, &tree, out);
	tree_deinit(&tree);
	return ret || buf_failed(out) ? err_oom(err) : 0;
}
