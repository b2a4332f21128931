/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The columns of numbers that a table of rows has in the report for people.
 *
 * Where a table has nothing but waits, and where each row is of one state, they also tell how many
 * waits there were, and how long. A terminal that is too narrow for all of them and for the names
 * gets the ones that matter.
 */
#ifndef RBPF_REPORT_NUMBER_COLUMNS_H
#define RBPF_REPORT_NUMBER_COLUMNS_H

#include <stddef.h>

struct flat;
struct flat_row;
struct report;
struct table;
struct table_column;

/* Those of a table of @flat: a set for the functions below. */
unsigned int number_columns(const struct report *r, const struct flat *flat);

/* Put them into @ret, the first columns of a table. Returns how many there are. */
size_t number_titles(unsigned int columns, struct table_column *ret);

/* Add their cells of @row. */
void number_cells(const struct report *r, const struct flat *flat, const struct flat_row *row,
		  unsigned int columns, struct table *t);

#endif
