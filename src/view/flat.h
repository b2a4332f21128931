/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flat profile: self and total time of each function, line, file, thread, process, ….
 */
#ifndef RBPF_VIEW_FLAT_H
#define RBPF_VIEW_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/owner.h"
#include "view/sum.h"
#include "view/wait_percentiles.h"

struct err;
struct profile;
struct replay;
struct view_filter;
struct view_selection;

enum flat_by {
	FLAT_BY_FUNCTION, /* (kind, name, file, func_line); a C function is (kind, name) */
	FLAT_BY_LINE,	  /* … and the line of execution; of C functions their caller's */
	FLAT_BY_FILE,	  /* source file, else module, else kind */
	FLAT_BY_THREAD,
	FLAT_BY_PROCESS,
	FLAT_BY_KIND, /* of code, see sample_kind.h: the same whatever frames are shown */
	FLAT_BY_CONTAINER,
	FLAT_BY_RUBY, /* version of Ruby */
	/*
	 * Gem or library: label_package(). Where garbage collection is shown, it has the time of
	 * the collector's functions, too.
	 */
	FLAT_BY_MODULE,
	/*
	 * Gem (gem.h) of the innermost Ruby frame, whatever frames are shown: C functions, native
	 * code and garbage collection are the time of the gem that called them, and so are the
	 * interpreter's own methods, be they written in C or in Ruby.
	 */
	FLAT_BY_GEM,
	FLAT_BY_REQUEST, /* kind of request; needs a profile that is by_request */
	FLAT_BY_STATE,	 /* of the thread (state.h), and whether it held the GVL */
	FLAT_BY_PEER,	 /* what a thread waited for behind a descriptor (peer.h) */
	FLAT_BY_TRACE,	 /* of OpenTelemetry; needs a profile that is by_span and by_request */
	FLAT_BY_TIME,	 /* second of the recording (seconds.h); needs samples that are kept */
};

/* Whether rows are owners, and of which kind. */
bool flat_by_owner(enum flat_by by, enum owner_kind *ret);

/* Whether rows of this kind need a profile that is by_thread. */
bool flat_by_thread(enum flat_by by);

enum flat_sort {
	FLAT_SORT_SELF,
	FLAT_SORT_TOTAL,
	FLAT_SORT_TIME, /* rows of FLAT_BY_TIME: the first second first */
};

struct flat_row {
	/* a frame of the row (function, line, file, module, peer); else PROFILE_NONE */
	uint32_t frame;
	uint32_t id; /* owner (view/owner.h), enum frame_kind, kind of request, state_of(), span or
		      * second for rows of those; of peers a number of its own; else 0 */
	uint32_t process; /* rows of containers and Rubies: the first process with samples … */
	uint32_t n_processes; /* … and how many there are; else 0 */
	uint32_t request;     /* rows of traces: the kind of request of most of its time; else 0 */
	uint64_t samples;     /* with the row innermost */
	uint64_t total_samples; /* with the row anywhere: counted once a sample, recursion or not */
	uint64_t self_value;
	uint64_t total_value;
	uint64_t exact_samples; /* of samples: those that tell exact lengths (sum.h) … */
	uint64_t exact_value;	/* … and of self_value; and the same of the totals */
	uint64_t exact_total_samples;
	uint64_t exact_total_value;
	struct wait_sum waits; /* with the row anywhere; if the profile is with_lengths */
	struct wait_percentiles percentiles; /* of these; wait_percentiles.h */
	/* FLAT_BY_KIND: that of garbage collection, of which nothing is known; values are 0. */
	bool unknown;
	/* Half width of the 95 % interval of self_value (sum.h); 0 if that is exact. */
	uint64_t self_error;
	uint64_t total_error; /* the same of total_value */
};

struct flat {
	struct flat_row *rows; /* sorted; owned */
	size_t n_rows, cap_rows;
	uint64_t samples; /* selected in all … */
	uint64_t value;
	uint64_t exact_samples; /* … and of these, exact */
	uint64_t exact_value;
	bool unequal;	     /* as in struct view_sum */
	uint64_t gc_unknown; /* FLAT_BY_KIND: the value of samples with SAMPLE_GC_UNKNOWN */
};

#define FLAT_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* For those who make rows: add samples to what a row has as its self or total time. */
void flat_add_self(struct flat_row *row, const struct view_sum *self);
void flat_add_total(struct flat_row *row, const struct view_sum *total);

/* Append @row, unless it has no samples. Returns 0 or -ENOMEM. */
int flat_add_row(struct flat *flat, const struct flat_row *row);

/* The same of @n rows that are of no frame; the id of each is its place in @rows. */
int flat_add_rows(struct flat *flat, struct flat_row *rows, size_t n);

/*
 * The rows of the selected samples (@f NULL: of all). Samples without a (shown) frame are counted
 * in @ret's sums but are in no row of frames. Ties are broken by name, so that output is
 * deterministic.
 *
 * Returns 0, -ENOMEM, or -EINVAL if rows are owners or @f needs it and @p is not by_thread, if
 * rows are requests or traces and it is not by_request or by_span, or if rows are of time. @ret:
 * flat_deinit().
 */
int flat_build(const struct profile *p, const struct view_filter *f, enum flat_by by,
	       enum flat_sort sort, struct flat *ret);

/* The same of a selection of @p's samples that was made before. */
int flat_build_selected(const struct profile *p, const struct view_selection *sel, enum flat_by by,
			enum flat_sort sort, struct flat *ret);

/*
 * FLAT_BY_TIME: the samples of @p come from @from (profile/replay.h). Returns 0, or an error with
 * @err set.
 * @ret: flat_deinit().
 */
int flat_build_time(const struct profile *p, const struct replay *from, const struct view_filter *f,
		    enum flat_sort sort, struct flat *ret, struct err *err);

void flat_deinit(struct flat *flat);
#define _cleanup_flat_ _cleanup_(flat_deinit)

/* The sums of a row, and of all samples that were selected. */
struct view_sum flat_self(const struct flat_row *row);
struct view_sum flat_total(const struct flat_row *row);
struct view_sum flat_all(const struct flat *flat);

#endif
