/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instructions of native functions with their self and total times, between the source lines
 * that they were compiled from, as text, JSON and CSV.
 */
#ifndef RBPF_REPORT_ANNOTATE_CODE_H
#define RBPF_REPORT_ANNOTATE_CODE_H

#include "report/annotate.h"

struct instructions;

/*
 * Append to @out what instructions_add_up() found; @a->choice is not used. Return 0, -ENODATA with
 * ERR_EMPTY if no native function that matches has samples, or -ENOMEM with @err set.
 */
int annotate_code_text(const struct annotate *a, const struct instructions *c, struct buf *out,
		       struct err *err);
int annotate_code_json(const struct annotate *a, const struct instructions *c, struct buf *out,
		       struct err *err);
int annotate_code_csv(const struct annotate *a, const struct instructions *c, struct buf *out,
		      struct err *err);

#endif
