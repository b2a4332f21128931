/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reports of a recording, each rendered into a buffer: as text (text.c, tree.c, both.c, gc.c,
 * states.c, requests.c, longest.c, waits.c), JSON and CSV. Nothing here prints.
 */
#ifndef RBPF_REPORT_REPORT_H
#define RBPF_REPORT_REPORT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/recording.h"
#include "profile/replay.h"
#include "ui/summary.h"
#include "view/flat.h"
#include "view/state.h"

struct buf;
struct err;
struct gc_report;
struct table;
struct view_filter;

#define REPORT_NO_LIMIT UINT64_MAX

/* The arguments of the renderers. Nothing is owned. */
struct report {
	const struct recording *rec;
	const struct view_filter *filter;
	/* Where rec was read from: of FLAT_BY_TIME, of longest, of waits, and of percentiles. */
	struct replay from;
	enum flat_by by;
	enum flat_sort sort;
	uint64_t limit; /* rows shown, REPORT_NO_LIMIT for all */
	size_t width;	/* of the terminal; 0: none, so nothing is cut */
	bool color;
	bool markdown;	/* tables are Markdown's; report_to_markdown() is called at the end */
	bool inverted;	/* of report_tree(): callers below */
	bool gvl_pairs; /* of report_requests(): say which made which wait (view/gvl_pairs.h) … */
	size_t longest; /* … and list so many single ones (view/longest_requests.h); 0: none */
	size_t waits;	/* of report_waits(): so many (view/longest_waits.h) */
	/*
	 * States were asked for: idle waits are listed, too, and what others waited meanwhile is
	 * not known, for that is of no state. (profile_reshape() may have dropped that from the
	 * filter.)
	 */
	bool by_state;
	const regex_t
		*match; /* rows of the tables of report_flat() whose name matches; NULL: all */
	const regex_t *method;	    /* of report_neighbours(): whose … */
	const char *method_pattern; /* … as it was typed … */
	bool callers, callees;	    /* … and which of them */
};

/*
 * The renderers append to @out and return 0, -ENODATA with ERR_EMPTY when the filters leave no
 * sample, or -ENOMEM with @err set.
 */
int report_text(const struct report *r, struct buf *out, struct err *err);
int report_tree(const struct report *r, struct buf *out, struct err *err);
int report_json(const struct report *r, struct buf *out, struct err *err);
int report_csv(const struct report *r, struct buf *out, struct err *err); /* RFC 4180 */
int report_info(const struct report *r, struct buf *out, struct err *err);

/* The heaviest stacks, Ruby next to native frames; the filter's mode is STACK_BOTH. */
int report_both(const struct report *r, struct buf *out, struct err *err);
int report_both_json(const struct report *r, struct buf *out, struct err *err);

/* Garbage collection: how much of the time it took, and who caused it (view/gc.h). */
int report_gc(const struct report *r, struct buf *out, struct err *err);
int report_gc_json(const struct report *r, struct buf *out, struct err *err);
int report_gc_csv(const struct report *r, struct buf *out, struct err *err);

/*
 * How each thread spent its time (view/thread_states.h); with FLAT_BY_TIME: all of them, each
 * second.
 */
int report_states(const struct report *r, struct buf *out, struct err *err);
int report_states_json(const struct report *r, struct buf *out, struct err *err);
int report_states_csv(const struct report *r, struct buf *out, struct err *err);

/*
 * Which states have a column: of all rows together each that has a thousandth of the time, and of a
 * row each that has a hundredth. The time of a row is @ns, @sum_ns in all; *@shown: bits
 * 1 << enum thread_state, to which its states are added.
 */
void report_note_all_states(const uint64_t ns[STATES], uint64_t sum_ns, uint32_t *shown);
void report_note_states(const uint64_t ns[STATES], uint64_t sum_ns, uint32_t *shown);

/* These states, as many as there is @room for. Returns how many. */
size_t report_choose_states(uint32_t noted, uint8_t shown[STATES], size_t room);

/* The call tree with a row for each node, callers before what they called. */
int report_tree_json(const struct report *r, struct buf *out, struct err *err);
int report_tree_csv(const struct report *r, struct buf *out, struct err *err);

/* Callers and callees of methods (view/neighbours.h). ERR_EMPTY also if no method matches. */
int report_neighbours(const struct report *r, struct buf *out, struct err *err);
int report_neighbours_json(const struct report *r, struct buf *out, struct err *err);
int report_neighbours_csv(const struct report *r, struct buf *out, struct err *err);

struct neighbours;
struct method_neighbours;

/* "Cart#total  app/cart.rb:57  self 1.20s (1.0%)  total 14.70s (12.3% +/- 0.4%)" */
void report_add_method(const struct report *r, const struct neighbours *n,
		       const struct method_neighbours *m, struct buf *out);

/* Make what was rendered with .markdown Markdown. Failures are those of @text. */
void report_to_markdown(struct buf *text);

/* Requests: how many were seen of each kind, what they took, how long they were. */
int report_requests(const struct report *r, struct buf *out, struct err *err);
int report_requests_json(const struct report *r, struct buf *out, struct err *err);
int report_requests_csv(const struct report *r, struct buf *out, struct err *err);

/*
 * The single waits that were longest (view/longest_waits.h), of a profile with whole_waits.
 * ERR_EMPTY also if only idle ones pass the filters, and these are left out.
 */
int report_waits(const struct report *r, struct buf *out, struct err *err);
int report_waits_json(const struct report *r, struct buf *out, struct err *err);
int report_waits_csv(const struct report *r, struct buf *out, struct err *err);

struct json;
struct request_length;

/*
 * A part of these, if r->longest asks for it: those that took longest, one by one. In JSON a member
 * of the open object. Both return 0, or -errno with @err set.
 */
int report_longest(const struct report *r, struct buf *out, struct err *err);
int report_longest_json(const struct report *r, struct json *j, struct err *err);

/* A cell with the two bounds of @l, of which .most is known: "11-19 ms", "<7 ms", or "350 ms". */
void report_add_length(const struct request_length *l, struct table *t);

/*
 * What they render, with the errors above. @ret is FLAT_INIT or GC_REPORT_INIT before, and is
 * released by the caller in any case.
 */
int report_flat(const struct report *r, struct flat *ret, struct err *err);
int report_gc_build(const struct report *r, struct gc_report *ret, struct err *err);

/* Set @err to say that no sample passes the filters. Returns -ENODATA. */
int report_nothing(const struct report *r, struct err *err);

/* The line above a report: "rbpf.data: 30.0 s, 4 processes, …". */
void report_header(const struct report *r, uint64_t samples, uint64_t value, struct buf *out);

/* A line with the command line that recorded it, and what was lost: "  command …; lost 0, …". */
void report_quality(const struct report *r, struct buf *out);

/* What the lines of ui/summary.h need to know of the recording. */
struct summary_recording report_summary_recording(const struct report *r);

/* The lines below: how far to trust it. */
void report_footer(const struct report *r, struct buf *out);

/*
 * One of them: how many native stacks are complete, and why others are not. None if there are no
 * native stacks.
 */
void report_native(const struct report *r, struct buf *out);

/*
 * That of @all, @unknown may be garbage collection or not, both in the unit of the event; nothing
 * if that is 0.
 */
void report_gc_unknown(const struct report *r, uint64_t unknown, uint64_t all, struct buf *out);

/* Add members to the open object: the recording's, and what of it is selected. */
void report_json_totals(const struct report *r, uint64_t samples, uint64_t value, struct json *j);
/* Add the member "summary", which has these. */
void report_json_summary(const struct report *r, uint64_t samples, uint64_t value, struct json *j);

/* Add the members of a frame: those of a row of functions or lines, as r->by says. */
void report_json_frame(const struct report *r, uint32_t frame, struct json *j);

/*
 * Below so many samples a number says little: half of its 95 % interval is more than a fifth of it.
 */
#define REPORT_FEW_SAMPLES 100

/*
 * Whether a row of @s says so little that it is dimmed: half of its 95 % interval is more than half
 * of it.
 */
bool report_is_vague(const struct view_sum *s);
#define REPORT_VAGUE_SAMPLES 16

/* Append @t as the report shows tables. Returns 0 or -ENOMEM. */
int report_add_table(const struct report *r, const struct table *t, struct buf *out);

/*
 * The rows of @flat, which are by r->by, as far as -n allows. @title is that of the column of
 * names, NULL for the usual one. Returns 0 or -ENOMEM.
 */
int report_table(const struct report *r, const struct flat *flat, const char *title,
		 struct buf *out);

/* "2 more lines hidden by -n", if there are more than @shown. */
void report_hidden(size_t rows, size_t shown, struct buf *out);

/*
 * Append what a clock on the wall showed @ns after the recording began, in a form that --from
 * takes, and not before that; nothing if it is unknown.
 */
void report_add_clock(const struct profile *p, uint64_t ns, struct buf *out);

/* How long after the start of the recording @ts was, a time of the profile; in ns. */
uint64_t report_since_start(const struct report *r, uint64_t ts);

/* A cell with such a time, "2.170s", and options that select what was from one to another. */
void report_add_begin(uint64_t ns, struct table *t);
void report_add_between(uint64_t from_ns, uint64_t to_ns, struct buf *out);

/* The name of a row that is by @by and, if rows of that kind have one, its place, for people. */
void report_row_name(const struct report *r, enum flat_by by, const struct flat_row *row,
		     struct buf *out);
void report_row_place(const struct report *r, enum flat_by by, const struct flat_row *row,
		      struct buf *out);

/*
 * What a frame is to people: its name, " (C)" after that of a C function; and where it is, as
 * FILE:LINE (the line of execution or of the definition, if there is one; "~LINE" if it is
 * approximate), or the module of code that has no source file.
 */
void report_frame_name(const struct report *r, uint32_t frame, struct buf *out);
void report_frame_place(const struct report *r, uint32_t frame, bool line_of_execution,
			struct buf *out);

#endif
