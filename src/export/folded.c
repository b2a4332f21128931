/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Folded (collapsed) stacks: `frame;frame;… count`, root first, one line a stack.
 *
 * The format keeps names only, so what differs in the call tree but not by name (a method of the
 * same name in another file, two processes of the same program) is one stack here. One prefix tree,
 * of names, holds the stacks of all processes; the paths of the call tree are walked for one
 * process or thread after another. So memory grows with the number of distinct stacks and that of
 * lines, not with their product with the depth of stacks.
 *
 * Lines are in the order in which their stacks are met in the sorted call trees, also where they
 * are a part of another stack: a property of the recording.
 *
 * Names have no quoting in this format:
 *   - ';' becomes ':', which separates as well for a reader.
 *   - Consumers look for a number at the end of a line, and some twice, for differential profiles:
 *     a leaf that ends in a blank and a number would lose it. In such names that blank becomes '_',
 *     wherever the name appears in the file, so that a function has one name in it.
 *   - flamegraph.pl and inferno sort whole lines, in which ' ' and '#' come before ';', and so
 *     draw `Foo` twice when there is a `Foo#bar` besides. Nothing in a line can prevent that;
 *     rbpf's own flame graph is drawn from the tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/prefix_tree.h"
#include "export/export.h"
#include "export/exporters.h"
#include "profile/profile.h"
#include "view/label.h"
#include "view/tree.h"

/* What stands before the frames of a line: names of process and thread. */
struct fold_owner {
	uint32_t process; /* in folder.names */
	uint32_t thread;  /* … or NO_NAME */
};

struct fold_line {
	uint64_t order; /* among lines: where its stack was met first */
	uint64_t samples;
	uint64_t value;
	uint32_t owner; /* in folder.owners */
	uint32_t stack; /* in folder.stacks */
};

/* Where a stack was met first with the samples of one owner. */
struct fold_place {
	uint64_t order;
	uint32_t owner; /* + 1: the place is of this owner; else it is stale */
	uint32_t line;	/* + 1; 0: no sample ends here yet */
};

/* The owner of one part of the call tree. */
struct fold_part {
	uint32_t owner;
	uint32_t part;
};

#define NO_NAME UINT32_MAX

struct folder {
	const struct profile *profile;
	const struct export_options *opts;
	struct intern names;	   /* as they are written, but for the end of leaves */
	struct intern owners;	   /* struct fold_owner */
	struct prefix_tree stacks; /* of names */
	struct fold_place *places; /* by stack */
	size_t cap_places;
	struct fold_line *lines;
	size_t n_lines, cap_lines;
	uint64_t order;	    /* of the stack that is met next in this part */
	uint32_t owner;	    /* of this part */
	uint32_t *of_path;  /* stack by path; 0: not looked up yet, but of path 0 */
	uint32_t *of_frame; /* name + 1 by frame; 0: not looked up yet */
	bool *is_leaf;	    /* by name */
	struct buf scratch;
	uint64_t unit; /* of the event, for which a number has a one; 0: numbers are samples */
};

static void folder_deinit(struct folder *f)
{
	intern_deinit(&f->names);
	intern_deinit(&f->owners);
	prefix_tree_deinit(&f->stacks);
	free(f->places);
	free(f->lines);
	free(f->of_path);
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

/* A tree has far more nodes than there are frames. */
static int name_of_frame(struct folder *f, uint32_t frame, uint32_t *ret)
{
	uint32_t *name = &f->of_frame[frame];
	int err;

	if (!*name) {
		err = add_name(f, label_frame(f->profile, frame), name);
		if (err)
			return err;
		++*name;
	}
	*ret = *name - 1;
	return 0;
}

/* A process, or the one of a thread; who is not recorded has the id behind all others. */
static void label_owner(const struct folder *f, uint32_t id, struct buf *out)
{
	const struct profile *p = f->profile;

	if (id == (f->opts->threads ? p->n_threads : p->n_processes))
		buf_addstr(out, LABEL_NO_RECORDED_PROCESS);
	else
		label_process(p, f->opts->threads ? p->threads[id].process : id, out);
}

/* The owner of a process or thread. */
static int add_owner(struct folder *f, uint32_t id, uint32_t *ret)
{
	const struct profile *p = f->profile;
	struct fold_owner owner = { .thread = NO_NAME };
	_cleanup_buf_ struct buf name = BUF_INIT;
	int err;

	label_owner(f, id, &name);
	if (buf_failed(&name))
		return -ENOMEM;
	err = add_name(f, buf_str(&name), &owner.process);
	if (!err && f->opts->threads) {
		buf_reset(&name);
		label_thread(p, id, &name);
		err = buf_failed(&name) ? -ENOMEM : add_name(f, buf_str(&name), &owner.thread);
	}
	return err ? err : intern_add(&f->owners, &owner, sizeof(owner), ret, NULL);
}

/* @owner's place of @stack, which may be met for the first time. */
static int place_of(struct folder *f, uint32_t owner, uint32_t stack, struct fold_place **ret)
{
	struct fold_place *place;

	if (array_reserve(f->places, f->cap_places, f->stacks.n_nodes))
		return -ENOMEM;
	place = &f->places[stack];
	if (place->owner != owner + 1)
		*place = (struct fold_place) { .owner = owner + 1, .order = f->order++ };
	*ret = place;
	return 0;
}

static int add_to_line(struct folder *f, struct fold_place *place, uint32_t stack,
		       const struct tree_path *path)
{
	struct fold_line *line;

	if (!place->line) {
		if (array_reserve(f->lines, f->cap_lines, f->n_lines + 1))
			return -ENOMEM;
		f->lines[f->n_lines++] = (struct fold_line) {
			.order = place->order,
			.owner = place->owner - 1,
			.stack = stack,
		};
		place->line = (uint32_t)f->n_lines;
	}
	line = &f->lines[place->line - 1];
	line->samples += path->self_samples;
	line->value += path->self_value;
	return 0;
}

/* The stack of names that a path is: the same in all parts. */
static int stack_of_path(struct folder *f, const struct tree_path *path, uint32_t *ret)
{
	uint32_t *stack = &f->of_path[path->id], name;
	int err;

	if (path->id && !*stack) {
		err = name_of_frame(f, path->frame, &name);
		if (!err)
			err = prefix_tree_child(&f->stacks, f->of_path[path->parent], name, stack);
		if (err)
			return err;
	}
	*ret = *stack;
	return 0;
}

static int fold_path(void *arg, const struct tree_path *path)
{
	struct folder *f = arg;
	struct fold_place *place;
	uint32_t stack;
	int err = stack_of_path(f, path, &stack);

	if (!err)
		err = place_of(f, f->owner, stack, &place);
	if (!err && path->self_samples)
		err = add_to_line(f, place, stack, path);
	return err;
}

static int compare_parts(const void *a, const void *b)
{
	const struct fold_part *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return (x->part > y->part) - (x->part < y->part);
}

/* The parts of the call tree, those with the same names one after another. *@ret: free(). */
static int order_parts(struct folder *f, const struct tree_parts *parts, struct fold_part **ret)
{
	size_t n = tree_parts_count(parts);
	_cleanup_free_ struct fold_part *order = calloc(n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int err = add_owner(f, tree_parts_owner(parts, i), &order[i].owner);

		if (err)
			return err;
		order[i].part = (uint32_t)i;
	}
	qsort(order, n, sizeof(*order), compare_parts);
	*ret = take_ptr(order);
	return 0;
}

static int fold(struct folder *f)
{
	const struct tree_options opts = {
		.split = f->opts->threads ? TREE_SPLIT_THREAD : TREE_SPLIT_PROCESS,
	};
	_cleanup_tree_parts_ struct tree_parts *parts = NULL;
	_cleanup_free_ struct fold_part *order = NULL;
	int err;

	f->of_frame = calloc(f->profile->n_frames + 1, sizeof(*f->of_frame));
	if (!f->of_frame || prefix_tree_init(&f->stacks))
		return -ENOMEM;
	err = tree_parts_new(f->profile, f->opts->filter, &opts, &parts);
	if (!err)
		err = order_parts(f, parts, &order);
	if (!err)
		f->of_path = calloc(tree_parts_paths(parts), sizeof(*f->of_path));
	if (!err && !f->of_path)
		return -ENOMEM;
	for (size_t i = 0; !err && i < tree_parts_count(parts); i++) {
		f->order = (uint64_t)order[i].part << 32;
		f->owner = order[i].owner;
		err = tree_parts_walk(parts, order[i].part, fold_path, f);
	}
	return err;
}

static int compare_lines(const void *a, const void *b)
{
	const struct fold_line *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

static void sort_lines(struct folder *f)
{
	if (f->n_lines)
		qsort(f->lines, f->n_lines, sizeof(*f->lines), compare_lines);
}

/* The last name of a line. */
static uint32_t leaf_of(const struct folder *f, const struct fold_line *line)
{
	const struct fold_owner *owner = intern_get(&f->owners, line->owner, NULL);

	if (line->stack)
		return f->stacks.nodes[line->stack].what;
	return owner->thread == NO_NAME ? owner->process : owner->thread;
}

static int mark_leaves(struct folder *f)
{
	f->is_leaf = calloc(f->names.count + 1, sizeof(*f->is_leaf));
	if (!f->is_leaf)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_lines; i++)
		f->is_leaf[leaf_of(f, &f->lines[i])] = true;
	return 0;
}

/*
 * Where in @s the blank of a number at its end is, as in "Worker 12" and "v 1.5"; @len if nowhere.
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

/* A line as it is written: the next one often has most of its stack. */
struct fold_text {
	struct buf text; /* the line before its number */
	uint32_t *depth; /* by stack: the frames of it */
	uint32_t *stack; /* by depth: the part of the line's stack that is so deep … */
	size_t *end;	 /* … and where it ends in the text; of 0, the owner's names */
	size_t cap_stack, cap_end;
	uint32_t n;	/* frames */
	uint32_t owner; /* + 1; 0: there was no line yet */
};

static void fold_text_deinit(struct fold_text *t)
{
	buf_deinit(&t->text);
	free(t->depth);
	free(t->stack);
	free(t->end);
}

static int fold_text_init(struct fold_text *t, const struct folder *f)
{
	uint32_t deepest = 0;

	*t = (struct fold_text) { .text = BUF_INIT };
	t->depth = calloc(f->stacks.n_nodes, sizeof(*t->depth));
	if (!t->depth)
		return -ENOMEM;
	for (size_t i = 1; i < f->stacks.n_nodes; i++) {
		t->depth[i] = t->depth[f->stacks.nodes[i].parent] + 1;
		if (t->depth[i] > deepest)
			deepest = t->depth[i];
	}
	if (array_reserve(t->stack, t->cap_stack, deepest + 1) ||
	    array_reserve(t->end, t->cap_end, deepest + 1))
		return -ENOMEM;
	return 0;
}

static void set_owner(const struct folder *f, struct fold_text *t, uint32_t id)
{
	const struct fold_owner *owner = intern_get(&f->owners, id, NULL);

	buf_reset(&t->text);
	write_name(f, owner->process, &t->text);
	if (owner->thread != NO_NAME) {
		buf_addch(&t->text, ';');
		write_name(f, owner->thread, &t->text);
	}
	t->end[0] = t->text.len;
	t->stack[0] = 0;
	t->n = 0;
	t->owner = id + 1;
}

/* Leave of the text what @stack has, too, and add the rest of that. */
static void set_stack(const struct folder *f, struct fold_text *t, uint32_t stack)
{
	const struct prefix_node *nodes = f->stacks.nodes;
	const uint32_t depth = t->depth[stack];
	uint32_t same = depth;

	for (; same > t->n || t->stack[same] != stack; stack = nodes[stack].parent)
		t->stack[same--] = stack;
	buf_truncate(&t->text, t->end[same]);
	while (same < depth) {
		buf_addch(&t->text, ';');
		write_name(f, nodes[t->stack[++same]].what, &t->text);
		t->end[same] = t->text.len;
	}
	t->n = depth;
}

static int write_line(const struct folder *f, struct fold_text *t, const struct fold_line *line,
		      uint64_t count, struct buf *out)
{
	if (t->owner != line->owner + 1)
		set_owner(f, t, line->owner);
	set_stack(f, t, line->stack);
	buf_add(out, t->text.data, t->text.len);
	buf_addch(out, ' ');
	buf_add_u64(out, count);
	buf_addch(out, '\n');
	return buf_failed(&t->text) || buf_failed(out) ? -ENOMEM : 0;
}

static int write_lines(const struct folder *f, struct fold_text *t, struct buf *out)
{
	uint64_t value = 0, counted = 0; /* of the lines so far */
	int r = 0;

	for (size_t i = 0; !r && i < f->n_lines; i++) {
		uint64_t count = f->lines[i].samples;

		if (f->unit) {
			/*
			 * What rounding takes from one line it gives to the next: the sum of the
			 * lines is the rounded sum.
			 */
			value += f->lines[i].value;
			count = (value + f->unit / 2) / f->unit - counted;
			counted += count;
		}
		if (count)
			r = write_line(f, t, &f->lines[i], count, out);
	}
	return r;
}

/* What a number has a one for; 0: for a sample. */
static uint64_t unit_of(const struct profile *p, bool is_time)
{
	if (is_time)
		return NSEC_PER_USEC;
	/* Of waits each is one, however long it was. */
	return profile_samples_differ(p) && !event_has_durations(profile_event(p))
		       ? profile_event(p)->period
		       : 0;
}

int export_folded(const struct profile *p, const struct export_options *opts, struct buf *out,
		  struct err *err)
{
	const struct profile_event *event = profile_event(p);
	const bool is_time = opts->weight == WEIGHT_TIME ||
			     (opts->weight == WEIGHT_OF_EVENT && event_has_durations(event));
	struct folder f = { .profile = p, .opts = opts, .unit = unit_of(p, is_time) };
	struct fold_text text = { 0 };
	int r;

	if (is_time && event->unit != UNIT_NS)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--weight time does not go with event '%s', whose values are %s",
			       event->name, value_unit_name(event->unit));
	r = fold(&f);
	if (!r)
		r = mark_leaves(&f);
	if (!r)
		sort_lines(&f);
	if (!r)
		r = fold_text_init(&text, &f);
	if (!r)
		r = write_lines(&f, &text, out);
	fold_text_deinit(&text);
	folder_deinit(&f);
	return r ? tree_error(r, err) : 0;
}
