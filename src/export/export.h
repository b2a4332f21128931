/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exporters: pure functions from a profile to bytes, one file a format, one table of them all.
 */
#ifndef RBPF_EXPORT_EXPORT_H
#define RBPF_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/reader.h"
#include "profile/replay.h"
#include "view/stack_mode.h"

struct buf;
struct err;
struct profile;
struct view_filter;

/* What the numbers of folded stacks are. */
enum folded_weight {
	WEIGHT_OF_EVENT, /* samples, but the time of an event whose samples have durations */
	WEIGHT_SAMPLES,
	WEIGHT_TIME, /* in µs */
};

struct export_options {
	const struct view_filter *filter; /* NULL: everything */
	enum folded_weight weight;
	bool threads;	      /* folded: thread name after the process name */
	struct replay replay; /* where the samples are, see .needs.read_again */
};

/*
 * run() appends to @out, which may be drained (buf.h), and returns 0, -ENOMEM, or what the format
 * says; @err has the words. What wants the samples one by one (replay.h) has .needs.read_again.
 */
struct exporter {
	const char *name;	   /* as given to -f */
	const char *description;   /* one line, for help */
	const char *suffix;	   /* usual file suffix, ".folded" */
	bool binary;		   /* not for terminals */
	enum stack_mode stack;	   /* which frames are exported if nothing else is asked for */
	struct read_options needs; /* how the recording is to be read: exporter_needs() */
	bool of_threads;	   /* it asks which threads have selected samples */
	/*
	 * NULL, or appends to @text, before run(), what the user is to be warned of: a sentence
	 * without a full stop. Returns 0, -ENOMEM, or -EINVAL as view_selection_new().
	 */
	int (*warn)(const struct profile *p, const struct export_options *opts, struct buf *text);
	int (*run)(const struct profile *p, const struct export_options *opts, struct buf *out,
		   struct err *err);
};

extern const struct exporter exporters[];
extern const size_t n_exporters;

/*
 * How the recording is to be read for @exporter and @filter. Without a filter of samples a
 * recording tells which threads have some, also if it is not read by thread.
 */
struct read_options exporter_needs(const struct exporter *exporter,
				   const struct view_filter *filter);

/* By name or by suffix without its dot ("flame", "svg"). NULL if there is none of that name. */
const struct exporter *exporter_find(const char *name);

#endif
