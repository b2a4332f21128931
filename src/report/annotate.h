/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source lines with their self and total times, as text, JSON and CSV.
 */
#ifndef RBPF_REPORT_ANNOTATE_H
#define RBPF_REPORT_ANNOTATE_H

#include <stdint.h>

#include "report/report.h"
#include "view/source_lines.h"

struct annotate {
	struct report report; /* with .method, callers and callees are told, too */
	struct source_choice choice;
	const char *target;	 /* as it was typed */
	const char *source_root; /* or NULL */
	uint32_t context;	 /* lines around those with samples */
};

/*
 * Append to @out. Return 0, -ENODATA with ERR_EMPTY if no line has samples, or -ENOMEM with @err
 * set. A file that cannot be read is said to be so in the output.
 */
int annotate_text(const struct annotate *a, struct buf *out, struct err *err);
int annotate_json(const struct annotate *a, struct buf *out, struct err *err);
int annotate_csv(const struct annotate *a, struct buf *out, struct err *err);

#endif
