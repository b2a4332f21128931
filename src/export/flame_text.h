/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names made to fit into boxes. flame.js does the same when the picture changes its size or is
 * zoomed; the two must agree.
 */
#ifndef RBPF_EXPORT_FLAME_TEXT_H
#define RBPF_EXPORT_FLAME_TEXT_H

#include <stddef.h>

struct buf;

/*
 * Append what of @name fits into @cells columns of a monospace font, not escaped: all of it; else
 * with "block in" as "blk", and "block (2 levels) in" as "blk2"; else also without namespaces
 * ("Foo::Bar#baz" as "Bar#baz"), which say least in a Ruby name; else the start and the end of that
 * with an ellipsis between; nothing below 3 columns.
 */
void flame_fit(struct buf *out, const char *name, size_t cells);

/* Columns of valid UTF-8: East Asian wide characters and emoji take two, all others one. */
size_t flame_cells(const char *s);

/*
 * About how wide @s is in a proportional font, in hundredths of its size: as in DejaVu Sans, which
 * is wider than the fonts that other systems have, so that texts laid out by this do not overlap.
 */
unsigned int flame_sans_width(const char *s);

#endif
