/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/instructions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"
#include "profile/profile.h"
#include "view/label.h"

/* What makes two frames the same function, as in a report, and the same place. */
struct function_key {
	uint32_t name, path; /* strings */
};

struct place_key {
	uint64_t address;
	uint32_t function; /* index */
	uint32_t module;   /* id */
};

static bool is_native(const struct profile *p, uint32_t frame)
{
	return p->frames[frame].kind == FRAME_NATIVE && p->frames[frame].module < p->n_modules;
}

static struct function_key key_of(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	return (struct function_key) { f->name, p->modules[f->module].path };
}

/* ---- functions ---- */

/* @group_of has the function of each frame, PROFILE_NONE where it is none that is chosen. */
static int match_functions(const struct profile *p, const regex_t *method, struct intern *keys,
			   uint32_t *group_of)
{
	for (uint32_t i = 0; i < p->n_frames; i++) {
		struct function_key key;

		group_of[i] = PROFILE_NONE;
		if (!is_native(p, i) || regexec(method, label_frame(p, i), 0, NULL, 0))
			continue;
		key = key_of(p, i);
		if (intern_add(keys, &key, sizeof(key), &group_of[i], NULL))
			return -ENOMEM;
	}
	return 0;
}

struct ranked {
	uint32_t group;
	struct group_total time;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->time.total.value != y->time.total.value)
		return x->time.total.value < y->time.total.value ? 1 : -1;
	return (x->group > y->group) - (x->group < y->group);
}

/* Those with samples, the greatest first. Returns how many. */
static size_t rank(const struct group_total *totals, size_t n, struct ranked *ranked)
{
	size_t n_ranked = 0;

	for (uint32_t i = 0; i < n; i++)
		if (totals[i].total.samples)
			ranked[n_ranked++] = (struct ranked) { i, totals[i] };
	if (n_ranked)
		qsort(ranked, n_ranked, sizeof(*ranked), compare_ranked);
	return n_ranked;
}

/* Make @group_of that of the functions that are kept. */
static int keep_functions(const struct profile *p, const struct ranked *ranked, size_t n,
			  size_t n_groups, uint32_t *group_of, struct instructions *c)
{
	_cleanup_free_ uint32_t *kept = malloc((n_groups + 1) * sizeof(*kept));

	c->functions = calloc(n + 1, sizeof(*c->functions));
	if (!kept || !c->functions)
		return -ENOMEM;
	memset(kept, 0xff, n_groups * sizeof(*kept));
	for (uint32_t i = 0; i < n; i++) {
		kept[ranked[i].group] = i;
		c->functions[i] = (struct code_function) { PROFILE_NONE, ranked[i].time };
	}
	c->n_functions = n;
	for (uint32_t i = 0; i < p->n_frames; i++) {
		if (group_of[i] == PROFILE_NONE)
			continue;
		group_of[i] = kept[group_of[i]];
		if (group_of[i] != PROFILE_NONE && c->functions[group_of[i]].frame == PROFILE_NONE)
			c->functions[group_of[i]].frame = i;
	}
	return 0;
}

/* ---- places ---- */

static int compare_places(const void *a, const void *b)
{
	const struct code_place *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static int find_places(const struct profile *p, const uint32_t *group_of, struct instructions *c)
{
	_cleanup_intern_ struct intern keys = INTERN_INIT;
	size_t cap = 0;

	for (uint32_t i = 0; i < p->n_frames; i++) {
		const struct place_key key = { p->frames[i].address, group_of[i],
					       p->frames[i].module };
		uint32_t id;
		bool is_new;

		if (group_of[i] == PROFILE_NONE)
			continue;
		if (intern_add(&keys, &key, sizeof(key), &id, &is_new) ||
		    array_reserve(c->places, cap, c->n_places + 1))
			return -ENOMEM;
		if (is_new)
			c->places[c->n_places++] = (struct code_place) {
				.function = group_of[i],
				.module = key.module,
				.address = key.address,
				.frame = i,
				.row = PROFILE_NONE,
			};
	}
	if (c->n_places)
		qsort(c->places, c->n_places, sizeof(*c->places), compare_places);
	return 0;
}

static const struct code_place *find_place(const struct instructions *c, uint32_t function,
					   const struct profile_frame *f)
{
	const struct code_place key = { .function = function,
					.module = f->module,
					.address = f->address };

	return c->n_places ? bsearch(&key, c->places, c->n_places, sizeof(key), compare_places)
			   : NULL;
}

int instructions_find(const struct profile *p, const struct view_filter *f, const regex_t *method,
		      size_t max, struct instructions *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ uint32_t *group_of = calloc(p->n_frames + 1, sizeof(*group_of));
	_cleanup_instructions_ struct instructions c = INSTRUCTIONS_INIT;
	_cleanup_intern_ struct intern keys = INTERN_INIT;
	_cleanup_free_ struct group_total *totals = NULL;
	_cleanup_free_ struct ranked *ranked = NULL;
	uint32_t empty;
	size_t n;
	int r;

	r = view_selection_new(p, f, &sel);
	if (r)
		return r;
	if (!group_of || intern_str(&c.strings, "", &empty) ||
	    match_functions(p, method, &keys, group_of))
		return -ENOMEM;
	totals = calloc(keys.count + 1, sizeof(*totals));
	ranked = calloc(keys.count + 1, sizeof(*ranked));
	if (!totals || !ranked || group_totals(p, sel, group_of, keys.count, totals))
		return -ENOMEM;
	n = rank(totals, keys.count, ranked);
	c.n_more = n > max ? n - max : 0;
	if (keep_functions(p, ranked, n - c.n_more, keys.count, group_of, &c) ||
	    find_places(p, group_of, &c))
		return -ENOMEM;
	c.all = view_selected_sum(sel);
	*ret = c;
	c = (struct instructions)INSTRUCTIONS_INIT; /* owned by *ret now */
	return 0;
}

void instructions_deinit(struct instructions *c)
{
	free(c->functions);
	free(c->places);
	free(c->blocks);
	free(c->rows);
	intern_deinit(&c->strings);
	*c = (struct instructions)INSTRUCTIONS_INIT;
}

/* ---- blocks ---- */

int instructions_add_block(struct instructions *c, const struct code_block *block)
{
	if (array_reserve(c->blocks, c->cap_blocks, c->n_blocks + 1))
		return -ENOMEM;
	c->blocks[c->n_blocks] = *block;
	c->blocks[c->n_blocks].first = c->n_rows;
	c->blocks[c->n_blocks++].n = 0;
	return 0;
}

int instructions_add_row(struct instructions *c, const struct code_row *row)
{
	if (array_reserve(c->rows, c->cap_rows, c->n_rows + 1))
		return -ENOMEM;
	c->rows[c->n_rows++] = *row;
	c->blocks[c->n_blocks - 1].n++;
	return 0;
}

/* The row that @address lies in, of the first @n ones of the last block, or PROFILE_NONE. */
static uint32_t find_row(const struct instructions *c, size_t n, uint64_t address)
{
	const struct code_block *b = &c->blocks[c->n_blocks - 1];
	const struct code_row *rows = &c->rows[b->first], *row;
	const size_t below = sorted_up_to(rows, n, address, address);

	if (!below)
		return PROFILE_NONE;
	row = &rows[below - 1];
	return address - row->address < row->size || address == row->address
		       ? (uint32_t)(row - c->rows)
		       : PROFILE_NONE;
}

static int compare_rows(const void *a, const void *b)
{
	const struct code_row *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

int instructions_end_block(struct instructions *c, struct code_place *places, size_t n)
{
	const struct code_block *b = &c->blocks[c->n_blocks - 1];
	const size_t known = b->n;

	for (size_t i = 0; i < n; i++) {
		const struct code_row own = { .address = places[i].address };

		if (find_row(c, known, own.address) == PROFILE_NONE &&
		    instructions_add_row(c, &own))
			return -ENOMEM;
	}
	if (b->n > known)
		qsort(c->rows + b->first, b->n, sizeof(*c->rows), compare_rows);
	for (size_t i = 0; i < n; i++)
		places[i].row = find_row(c, b->n, places[i].address);
	return 0;
}

/* ---- sums ---- */

/* The row of a frame, PROFILE_NONE if it is of no function that was chosen. */
static uint32_t row_of(const struct profile *p, const struct instructions *c,
		       const struct intern *keys, uint32_t frame)
{
	const struct code_place *place;
	struct function_key key;
	uint32_t function;

	if (!is_native(p, frame))
		return PROFILE_NONE;
	key = key_of(p, frame);
	if (intern_find(keys, &key, sizeof(key), &function))
		return PROFILE_NONE;
	place = find_place(c, function, &p->frames[frame]);
	return place ? place->row : PROFILE_NONE;
}

int instructions_add_up(const struct profile *p, const struct view_filter *f,
			struct instructions *c)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ uint32_t *row = calloc(p->n_frames + 1, sizeof(*row));
	_cleanup_free_ struct group_total *totals = calloc(c->n_rows + 1, sizeof(*totals));
	_cleanup_intern_ struct intern keys = INTERN_INIT;
	int r;

	r = view_selection_new(p, f, &sel);
	if (r)
		return r;
	if (!row || !totals)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_functions; i++) {
		const struct function_key key = key_of(p, c->functions[i].frame);
		uint32_t id;

		if (intern_add(&keys, &key, sizeof(key), &id, NULL))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->n_frames; i++)
		row[i] = row_of(p, c, &keys, i);
	if (group_totals(p, sel, row, c->n_rows, totals))
		return -ENOMEM;
	for (size_t i = 0; i < c->n_rows; i++)
		c->rows[i].time = totals[i];
	return 0;
}
