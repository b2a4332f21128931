/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A comparison of recordings (view/compare.h), as text, JSON and CSV.
 */
#ifndef RBPF_REPORT_DIFF_H
#define RBPF_REPORT_DIFF_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "view/compare.h"

struct err;

struct diff {
	struct comparison *comparison; /* finished; not owned */
	struct compare_options options;
	/*
	 * Of each recording: a line for people, report_header() …, and an object,
	 * report_json_totals().
	 */
	struct buf sides[COMPARE_SIDES];
	struct buf objects[COMPARE_SIDES]; /* separated by commas */
	const char *rule;		   /* of check, whose .limit rows break it; NULL: of diff */
	uint64_t limit;			   /* rows, UINT64_MAX for all */
	size_t max_output; /* bytes: what all recordings allow, profile_output_max() */
	size_t width;	   /* of the terminal; 0: none */
	bool color;
};

/* The word of --normalize: "total"; NULL past the last. */
const char *diff_normalize_name(size_t normalize);

/* Append to @out. Return 0, or -ENOMEM with @err set. */
int diff_text(const struct diff *d, struct buf *out, struct err *err);
int diff_json(const struct diff *d, struct buf *out, struct err *err);
int diff_csv(const struct diff *d, struct buf *out, struct err *err);

/* "METHOD>5%": methods whose name matches must not grow by more than a share of the whole. */
struct check_rule {
	char *pattern; /* owned */
	bool has_method;
	regex_t method;	  /* of it */
	double threshold; /* in the unit of the comparison: 0.05 */
};

/*
 * Parse @text. Returns 0, or -EINVAL (ERR_USAGE) or -ENOMEM. check_rule_deinit() also after a
 * failure; @ret is all zero before.
 */
int check_rule_parse(const char *text, struct check_rule *ret, struct err *err);
void check_rule_deinit(struct check_rule *rule);

/*
 * Keep the rows of @d that @rule is about, with intervals so wide that a method of all of them is
 * found to have grown by chance in 1 of 40 checks at most; those that break the rule first.
 * Returns how many do: their whole interval is above the threshold.
 */
size_t check_rows(struct diff *d, const struct check_rule *rule);

#endif
