/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tables of source lines and those of instructions have in common.
 */
#ifndef RBPF_REPORT_ANNOTATE_PARTS_H
#define RBPF_REPORT_ANNOTATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/table.h"
#include "view/totals.h"

struct annotate;
struct buf;
struct json;
struct report;
struct source_text;

/* A row is hot if its self time is at most a quarter below that of the hottest row. */
static inline bool annotate_is_hot(uint64_t self, uint64_t hottest)
{
	return hottest && self >= hottest - hottest / 4;
}

/* Whether the file was changed after the recording ended; false if that is not known. */
bool annotate_was_changed(const struct annotate *a, const struct source_text *text);

/* The columns up to those of the code. */
#define ANNOTATE_COLUMNS                                                                           \
	{ "HOT", TABLE_LEFT, TABLE_WHOLE }, { "TOTAL", TABLE_RIGHT, TABLE_WHOLE },                 \
		{ "TOTAL%", TABLE_RIGHT, TABLE_WHOLE }, { "+/-", TABLE_RIGHT, TABLE_WHOLE },       \
		{ "SELF", TABLE_RIGHT, TABLE_WHOLE }, { "SELF%", TABLE_RIGHT, TABLE_WHOLE },       \
	{                                                                                          \
		"+/-", TABLE_RIGHT, TABLE_WHOLE                                                    \
	}

/* The cells of these; @time is NULL of a row without samples. */
void annotate_add_time(const struct annotate *a, const struct view_sum *all,
		       const struct group_total *time, bool hot, struct table *t);

/* A row that stands for those that are not shown. */
void annotate_add_gap(struct table *t);

/* The methods or functions that match, with callers and callees. Returns 0 or -ENOMEM. */
int annotate_add_methods(const struct report *r, struct buf *out);

/* The numbers of a row. */
void annotate_json_time(const struct annotate *a, const struct view_sum *all,
			const struct group_total *time, struct json *j);

#endif
