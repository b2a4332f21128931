/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Folded (collapsed) stacks: `frame;frame;… count`, root first, one line a stack.
 *
 * The format keeps names only, so what differs in the call tree but not by name (a method of the
 * same name in another file, two processes of the same program) is one stack here. A second prefix
 * tree, of names, merges them; its nodes are made in the order of the sorted call tree, which makes
 * the order of lines a property of the recording.
 *
 * Names have no quoting in this format:
 *   - ';' becomes ':', which separates as well for a reader.
 *   - Consumers look for a number at the end of a line, and some twice, for differential profiles:
 *     a leaf that ends in a blank and a number would lose it. In such names that blank becomes '_',
 *     wherever the name appears in the file, so that a function has one name in it.
 *   - flamegraph.pl and inferno sort whole lines, in which ' ' and '#' come before ';', and so
 *     draw `Foo` twice when there is a `Foo#bar` besides. Nothing in a line can prevent that;
 * rbpf's own flame graph is drawn from the tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/intern.h"
#include "export/export.h"
#include "export/exporters.h"
#include "profile/profile.h"
#include "view/label.h"
#include "view/tree.h"

struct fold_node {
	uint32_t parent; /* fold node; nodes without a line above are their own parent */
	uint32_t name;	 /* in folder.names */
	uint64_t samples;
	uint64_t value;
};

struct fold_key {
	uint32_t parent;
	uint32_t name;
};

struct folder {
	const struct tree *tree;
	const struct export_options *opts;
	struct intern names;	 /* as they are written, but for the end of leaves */
	struct intern keys;	 /* struct fold_key -> fold node - 1 */
	struct fold_node *nodes; /* [0] is above all lines */
	size_t n_nodes, cap_nodes;
	uint32_t *of_node;  /* fold node by tree node */
	uint32_t *of_frame; /* name + 1 by frame; 0: not looked up yet */
	bool *is_leaf;	    /* by name */
	struct buf scratch;
};

static void folder_deinit(struct folder *f)
{
	intern_deinit(&f->names);
	intern_deinit(&f->keys);
	free(f->nodes);
	free(f->of_node);
	free(f->of_frame);
	free(f->is_leaf);
	buf_deinit(&f->scratch);
}

static int add_name(struct folder *f, const char *name, uint32_t *ret)
{
	buf_reset(&f->scratch);
	for (; *name; name++) {
		char c = *name == ';' ? ':' : *name;

		buf_addch(&f->scratch, c == '\n' || c == '\r' ? ' ' : c);
	}
	if (buf_failed(&f->scratch))
		return -ENOMEM;
	return intern_add(&f->names, buf_str(&f->scratch), f->scratch.len, ret, NULL);
}

static int child_of(struct folder *f, uint32_t parent, uint32_t name, uint32_t *ret)
{
	const struct fold_key key = { .parent = parent, .name = name };
	bool is_new;
	uint32_t id;
	int err;

	err = intern_add(&f->keys, &key, sizeof(key), &id, &is_new);
	if (err)
		return err;
	*ret = id + 1;
	if (!is_new)
		return 0;
	err = array_reserve(f->nodes, f->cap_nodes, f->n_nodes + 1);
	if (err)
		return err;
	f->nodes[f->n_nodes++] = (struct fold_node) { .parent = parent, .name = name };
	return 0;
}

static int child_of_name(struct folder *f, uint32_t parent, const char *name, uint32_t *ret)
{
	uint32_t id;
	int err;

	err = add_name(f, name, &id);
	return err ? err : child_of(f, parent, id, ret);
}

/* A tree has far more nodes than there are frames. */
static int child_of_frame(struct folder *f, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	uint32_t *name = &f->of_frame[frame];
	int err;

	if (!*name) {
		err = add_name(f, label_frame(f->tree->profile, frame), name);
		if (err)
			return err;
		++*name;
	}
	return child_of(f, parent, *name - 1, ret);
}

/* The fold nodes of a process or thread, which is a node below the root of the call tree. */
static int add_owner(struct folder *f, uint32_t id, uint32_t *ret)
{
	const struct profile *p = f->tree->profile;
	uint32_t process = f->opts->threads ? p->threads[id].process : id;
	_cleanup_buf_ struct buf name = BUF_INIT;
	int err;

	label_process(p, process, &name);
	if (buf_failed(&name))
		return -ENOMEM;
	err = child_of_name(f, 0, buf_str(&name), ret);
	if (err || !f->opts->threads)
		return err;
	buf_reset(&name);
	label_thread(p, id, &name);
	if (buf_failed(&name))
		return -ENOMEM;
	return child_of_name(f, *ret, buf_str(&name), ret);
}

static int fold(struct folder *f)
{
	const struct tree *t = f->tree;

	f->of_node = calloc(t->n_nodes, sizeof(*f->of_node));
	f->of_frame = calloc(t->profile->n_frames + 1, sizeof(*f->of_frame));
	if (!f->of_node || !f->of_frame || array_reserve(f->nodes, f->cap_nodes, 1))
		return -ENOMEM;
	f->nodes[0] = (struct fold_node) { 0 };
	f->n_nodes = 1;
	for (uint32_t i = tree_next(t, 0); i; i = tree_next(t, i)) {
		const struct tree_node *node = &t->nodes[i];
		uint32_t parent = f->of_node[node->parent];
		struct fold_node *folded;
		int err;

		if (node->frame == PROFILE_NONE)
			err = add_owner(f, node->label, &f->of_node[i]);
		else
			err = child_of_frame(f, parent, node->frame, &f->of_node[i]);
		if (err)
			return err;
		folded = &f->nodes[f->of_node[i]];
		folded->samples += node->self_samples;
		folded->value += node->self_value;
	}
	return 0;
}

static int mark_leaves(struct folder *f)
{
	f->is_leaf = calloc(f->names.count + 1, sizeof(*f->is_leaf));
	if (!f->is_leaf)
		return -ENOMEM;
	for (size_t i = 1; i < f->n_nodes; i++)
		if (f->nodes[i].samples)
			f->is_leaf[f->nodes[i].name] = true;
	return 0;
}

/* Where in @s the blank of a number at its end is, as in "Worker 12" and "v 1.5"; @len if nowhere.
 */
static size_t find_number_at_end(const char *s, size_t len)
{
	size_t i = len;

	while (i && s[i - 1] >= '0' && s[i - 1] <= '9')
		i--;
	if (i && s[i - 1] == '.') {
		i--;
		while (i && s[i - 1] >= '0' && s[i - 1] <= '9')
			i--;
	}
	if (i == len || !i || (s[i - 1] != ' ' && s[i - 1] != '\t') || s[i] == '.')
		return len;
	return i - 1;
}

static void write_name(const struct folder *f, uint32_t name, struct buf *out)
{
	size_t len;
	const char *s = intern_get(&f->names, name, &len);
	size_t blank = f->is_leaf[name] ? find_number_at_end(s, len) : len;

	buf_add(out, s, blank);
	if (blank < len) {
		buf_addch(out, '_');
		buf_add(out, s + blank + 1, len - blank - 1);
	}
}

static int write_line(const struct folder *f, uint32_t node, uint64_t count, uint32_t **path,
		      size_t *cap_path, struct buf *out)
{
	size_t n = 0;

	for (; node; node = f->nodes[node].parent) {
		if (array_reserve(*path, *cap_path, n + 1))
			return -ENOMEM;
		(*path)[n++] = f->nodes[node].name;
	}
	while (n--) {
		write_name(f, (*path)[n], out);
		buf_addch(out, n ? ';' : ' ');
	}
	buf_addf(out, "%llu\n", (unsigned long long)count);
	return 0;
}

static int write_lines(const struct folder *f, struct buf *out)
{
	_cleanup_free_ uint32_t *path = NULL;
	size_t cap_path = 0;
	uint64_t ns = 0, us = 0; /* of the lines so far */

	for (size_t i = 1; i < f->n_nodes; i++) {
		uint64_t count = f->nodes[i].samples;

		if (f->opts->weight_time) {
			/* What rounding takes from one line it gives to the next: the sum of the
			 * lines is the rounded sum. */
			ns += f->nodes[i].value;
			count = (ns + NSEC_PER_USEC / 2) / NSEC_PER_USEC - us;
			us += count;
		}
		if (buf_failed(out))
			return -ENOMEM;
		if (count && write_line(f, (uint32_t)i, count, &path, &cap_path, out))
			return -ENOMEM;
	}
	return buf_failed(out) ? -ENOMEM : 0;
}

int export_folded(const struct profile *p, const struct export_options *opts, struct buf *out,
		  struct err *err)
{
	const struct tree_options tree_opts = {
		.split = opts->threads ? TREE_SPLIT_THREAD : TREE_SPLIT_PROCESS,
	};
	_cleanup_tree_ struct tree tree = { 0 };
	struct folder f = { .tree = &tree, .opts = opts };
	int r;

	if (opts->weight_time && profile_event(p)->unit != UNIT_NS)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--weight time does not go with event '%s', whose values are %s",
			       profile_event(p)->name, value_unit_name(profile_event(p)->unit));
	r = tree_build(p, opts->filter, &tree_opts, &tree);
	if (!r)
		r = fold(&f);
	if (!r)
		r = mark_leaves(&f);
	if (!r)
		r = write_lines(&f, out);
	folder_deinit(&f);
	return r ? tree_error(r, err) : 0;
}
