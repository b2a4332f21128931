/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of a report for programs, which JSON and CSV have in common.
 *
 * They are stable (rbpf-report(1)): fields may be added, none renamed or given another meaning.
 * Names are exact, times are in ns, and line is 0 where there is none.
 */
#ifndef RBPF_REPORT_FIELDS_H
#define RBPF_REPORT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"

struct buf;
struct flat;
struct flat_row;
struct report;

enum report_field {
	FIELD_END,
	FIELD_KIND,
	FIELD_LABEL,
	FIELD_PATH,
	FIELD_LINE,
	FIELD_APPROXIMATE,
	FIELD_MODULE,
	FIELD_FILE,
	FIELD_PID,
	FIELD_TID,
	FIELD_THREAD,
	FIELD_PROCESS,
	FIELD_NS_PID,
	FIELD_CONTAINER,
	FIELD_CGROUP,
	FIELD_RUBY,
	FIELD_SERVICE,	  /* service.name of its attributes; "" if it publishes none */
	FIELD_ATTRIBUTES, /* all of them, as base/attributes.h has them */
	FIELD_GEM,
	FIELD_VERSION,
	FIELD_ORIGIN,
	FIELD_STATE,
	FIELD_HELD, /* 1: the thread held the GVL */
	FIELD_PEER,
	FIELD_TURN, /* 1: it waits for the GVL as its turn was over */
	FIELD_REQUEST,
	FIELD_FRAMEWORK,
	FIELD_TRACE,
	FIELD_FROM,
	FIELD_CLOCK,
	FIELD_PROCESSES,
	FIELD_THREADS, /* of a row of threads: how many, more than 1 with --merge-threads */
	/* The numbers. */
	FIELD_SAMPLES,
	FIELD_TOTAL_SAMPLES,
	FIELD_SELF,
	FIELD_TOTAL,
	FIELD_SELF_ERROR,
	FIELD_TOTAL_ERROR,
	/* Of those with the row anywhere, if the profile is with_lengths. */
	FIELD_WAITS,
	FIELD_MEAN_WAIT,
	FIELD_LONGEST_WAIT,
	/* … and of those, if it has whole_waits. */
	FIELD_P50,
	FIELD_P95,
	FIELD_P99,
};

#define FIELDS_MAX 24 /* of a row, with FIELD_END */

/* A number if str is NULL, unless it is unknown. */
struct field_value {
	const char *str;
	uint64_t num;
	bool unknown;
};

/* The key of a field; of those that are values of the event, with its unit: "self_ns". */
struct num_text field_key(const struct report *r, enum report_field field);

/* The key of a value of the event that is shown: "self_ns", "self_bytes" of @what "self". */
struct num_text field_value_key(const struct report *r, const char *what);

/* What a row has, as r->by says; ends with FIELD_END. */
void fields_of_rows(const struct report *r, enum report_field ret[FIELDS_MAX]);

/*
 * A field of a row, or of a frame. A text that is no string of the recording is put into @scratch.
 */
struct field_value field_of_row(const struct report *r, const struct flat_row *row,
				enum report_field field, struct buf *scratch);
struct field_value field_of_frame(const struct report *r, uint32_t frame, enum report_field field,
				  struct buf *scratch);

/* Append a value as CSV has it (RFC 4180): text quoted where needed. */
void field_add_csv(struct field_value v, struct buf *out);

/* How many rows -n leaves. */
size_t report_rows_shown(const struct report *r, const struct flat *flat);

#endif
