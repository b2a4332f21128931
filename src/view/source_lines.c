/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/source_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"

/* What makes two frames the same line. */
struct line_key {
	uint32_t file;
	uint32_t line;
};

bool source_is_named(const char *path, const char *name)
{
	size_t len = strlen(path), n = strlen(name);

	if (!n || n > len || strcmp(path + len - n, name) != 0)
		return false;
	return n == len || name[0] == '/' || path[len - n - 1] == '/';
}

bool source_is_known(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_frames; i++)
		if (p->frames[i].kind == FRAME_RUBY &&
		    source_is_named(profile_str(p, p->frames[i].file), name))
			return true;
	return false;
}

static bool is_chosen(const struct profile *p, const struct source_choice *choice, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	if (f->kind != FRAME_RUBY || !f->file || !f->line)
		return false;
	if (choice->method)
		return !regexec(choice->method, label_frame(p, frame), 0, NULL, 0);
	return source_is_named(profile_str(p, f->file), choice->file) &&
	       (!choice->line || f->line == choice->line);
}

/* @group_of has the line of each frame, PROFILE_NONE where it is none that is chosen. */
static int find_lines(const struct profile *p, const struct source_choice *choice,
		      struct intern *keys, uint32_t *group_of)
{
	for (size_t i = 0; i < p->n_frames; i++) {
		const struct line_key key = { p->frames[i].file, p->frames[i].line };

		group_of[i] = PROFILE_NONE;
		if (is_chosen(p, choice, (uint32_t)i) &&
		    intern_add(keys, &key, sizeof(key), &group_of[i], NULL))
			return -ENOMEM;
	}
	return 0;
}

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct source_line *x = a, *y = b;

	if (x->file != y->file)
		return strcmp(profile_str(arg, x->file), profile_str(arg, y->file));
	return (x->line > y->line) - (x->line < y->line);
}

static int collect(const struct profile *p, const struct intern *keys,
		   const struct group_total *totals, struct source_lines *ret)
{
	ret->lines = calloc(keys->count + 1, sizeof(*ret->lines));
	if (!ret->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < keys->count; i++) {
		const struct line_key *key = intern_get(keys, i, NULL);

		if (totals[i].total.samples)
			ret->lines[ret->n++] = (struct source_line) { key->file, key->line,
								      totals[i] };
	}
	if (ret->n)
		qsort_r(ret->lines, ret->n, sizeof(*ret->lines), compare_lines, (void *)p);
	return 0;
}

int source_lines_build(const struct profile *p, const struct view_filter *f,
		       const struct source_choice *choice, struct source_lines *ret)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ uint32_t *group_of = calloc(p->n_frames + 1, sizeof(*group_of));
	_cleanup_intern_ struct intern keys = INTERN_INIT;
	_cleanup_free_ struct group_total *totals = NULL;
	struct source_lines lines = SOURCE_LINES_INIT;
	int r;

	r = view_selection_new(p, f, &sel);
	if (r)
		return r;
	if (!group_of || find_lines(p, choice, &keys, group_of))
		return -ENOMEM;
	totals = calloc(keys.count + 1, sizeof(*totals));
	if (!totals || group_totals(p, sel, group_of, keys.count, totals))
		return -ENOMEM;
	lines.all = view_selected_sum(sel);
	r = collect(p, &keys, totals, &lines);
	if (!r)
		*ret = lines;
	return r;
}

void source_lines_deinit(struct source_lines *s)
{
	if (!s)
		return;
	free(s->lines);
	*s = (struct source_lines)SOURCE_LINES_INIT;
}
