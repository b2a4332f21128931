/* SPDX-License-Identifier: GPL-2.0-only */
/* The recording that a command reads. */
#ifndef RBPF_CMD_OPEN_RECORDING_H
#define RBPF_CMD_OPEN_RECORDING_H

#include "profile/recording.h"
#include "profile/replay.h"

struct cmd_context;
struct err;
struct option_rest;
struct view_filter;

#define CMD_DEFAULT_RECORDING "rbpf.data"

/*
 * Read the recording named by @input (-i), else by the argument in @rest, else by the environment
 * variable RBPF_DATA, else rbpf.data; "-" is stdin. Warns if it was not closed properly. Reads the
 * samples of the event and the time that @filter names, by thread if @filter or @needs
 * needs that; sets the times of @filter that a clock tells.
 *
 * Fails with ERR_USAGE (named twice, or stdin is a terminal), ERR_PROFILE, or -ENODATA and
 * ERR_EMPTY. @ret is written only on success and must then be closed with recording_close().
 */
int cmd_open_recording(const struct cmd_context *ctx, const char *input,
		       const struct option_rest *rest, struct view_filter *filter,
		       const struct read_options *needs, struct recording *ret, struct err *err);

/*
 * The same, but a recording without samples of that event is opened, too, if it has others: that of
 * a process that only waits has none of CPU time.
 */
int cmd_open_recording_of_any_event(const struct cmd_context *ctx, const char *input,
				    const struct option_rest *rest, struct view_filter *filter,
				    const struct read_options *needs, struct recording *ret,
				    struct err *err);

/*
 * How to read the samples of @rec one by one as they were added up, by the functions above with
 * @filter and @needs. It is valid while @filter is as it is.
 */
struct replay cmd_replay(const struct recording *rec, const struct view_filter *filter,
			 const struct read_options *needs);

/* For what shows traces: say so if @rec has none. */
void cmd_warn_of_no_traces(const struct cmd_context *ctx, const struct recording *rec);

/* Make it ready to be shown as @filter says: stack_mode_prepare(). Returns 0 or -ENOMEM. */
int cmd_prepare_recording(struct recording *rec, const struct view_filter *filter, struct err *err);

#endif
