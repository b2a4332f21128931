/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of filters that report, flame and export share.
 */
#ifndef RBPF_CMD_FILTER_OPTIONS_H
#define RBPF_CMD_FILTER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/options.h"
#include "view/stack_mode.h"

struct err;
struct view_filter;

struct filter_options {
	struct pid_list pids, tids;
	const char *thread, *comm, *container, *request, *include, *exclude; /* regexes or NULL */
	const char *filter;	 /* an expression (view/expr.h) or NULL */
	const char *slower_than; /* or NULL */
	const char *event;	 /* or NULL */
	const char *state;	 /* or NULL */
	const char *idle;	 /* a regex or NULL */
	unsigned int stack;	 /* enum stack_mode, or OPTION_UNSET */
	bool ruby_only, no_gc, app, blocker, waker;
	const char *hide;		     /* or NULL */
	const char *from, *to;		     /* or NULL */
	const char *from_option, *to_option; /* what gave these; NULL: "--from", "--to" */
};

#define FILTER_OPTIONS_INIT                                                                        \
	{                                                                                          \
		.stack = OPTION_UNSET                                                              \
	}

#define N_FILTER_OPTIONS   22
#define N_FILTER_OF_OTHERS 2 /* --blocker and --waker, the last ones */
extern const struct option_spec filter_option_specs[N_FILTER_OPTIONS];

/* The group of these options for a command whose struct @type has them as @member. */
#define FILTER_OPTION_GROUP(type, member)                                                          \
	{                                                                                          \
		.title = "Filters", .options = filter_option_specs, .n = N_FILTER_OPTIONS,         \
		.offset = offsetof(type, member),                                                  \
	}

/*
 * Make a view_filter of the options, with pid lists of its own: a command that reads two recordings
 * makes one for each. @usual is the mode where none is asked for. ERR_USAGE for a bad pattern, an
 * empty range of time, or two modes. @ret is VIEW_FILTER_INIT before (a regex_t cannot be moved, so
 * it is filled in place); the caller releases it with view_filter_deinit(), also after a failure.
 */
int cmd_filter(const struct filter_options *opts, enum stack_mode usual, struct view_filter *ret,
	       struct err *err);

/* The option that says which event is shown, "--waker" or "--event"; NULL if none does. */
const char *cmd_event_option(const struct filter_options *opts);

/* ERR_USAGE: @what does not go with the event of @event, as @opts asks for it. Returns -EINVAL. */
int cmd_refuse_event(const struct filter_options *opts, const char *what, const char *event,
		     struct err *err);

/* ERR_USAGE if @f selects an empty range of time. */
int cmd_check_times(const struct view_filter *f, struct err *err);

#endif
