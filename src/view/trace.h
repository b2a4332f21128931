/* SPDX-License-Identifier: GPL-2.0-only */
/* The traces of OpenTelemetry that threads worked for: rows of them. */
#ifndef RBPF_VIEW_TRACE_H
#define RBPF_VIEW_TRACE_H

#include <stdint.h>

struct buf;
struct flat;
struct profile;
struct view_selection;

/* The id of a trace, of which @span is one (0: of none), as 32 digits, or "[no trace]". */
void trace_label(const struct profile *p, uint32_t span, struct buf *out);

/*
 * Append a row for each trace that has selected samples to @flat, in no order. Its .id is a span of
 * it, 0 that of no trace, and .request the kind of request that most of its time is of. Returns 0,
 * -ENOMEM, or -EINVAL if @p is not by_span and by_request.
 */
int trace_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat);

#endif
