/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/open_recording.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/number.h"
#include "cmd/command.h"
#include "cmd/filter_options.h"
#include "cmd/messages.h"
#include "cmd/options.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/stack_mode.h"
#include "view/state.h"

static int recording_path(const char *input, const struct option_rest *rest, const char **ret,
			  struct err *err)
{
	const char *env = getenv("RBPF_DATA");

	if (input && rest->n)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "the recording is named twice: --input=%s and '%s'", input,
			       rest->argv[0]);
	if (input)
		*ret = input;
	else if (rest->n)
		*ret = rest->argv[0];
	else if (env && *env)
		*ret = env;
	else
		*ret = CMD_DEFAULT_RECORDING;
	if (!**ret)
		return err_set(err, -EINVAL, ERR_USAGE, "the name of the recording is empty");
	if (strcmp(*ret, "-") == 0 && isatty(STDIN_FILENO))
		return err_set(err, -EINVAL, ERR_USAGE,
			       "refusing to read a recording from a terminal");
	return 0;
}

/* profile_read() knows the file, not what the user could do about it. */
static int read_failed(const char *path, int r, struct err *err)
{
	/* Not of an event that it has not: that is of the command line. */
	if (r == -ENOENT && err->kind == ERR_PROFILE)
		err_hint(err, "'rbpf record' makes a recording; -i FILE names one");
	else if (r == -EACCES && strcmp(path, "-") != 0)
		err_hint(err, "a recording belongs to the user who made it");
	return r;
}

static void warn_interrupted(const struct cmd_context *ctx, const struct recording *rec)
{
	const uint64_t lost = rec->report.lost_bytes;

	if (rec->report.complete)
		return;
	cmd_warn(ctx, "%s %s; using the first %s (%s)%s%s", recording_name(rec),
		 lost ? "was not closed properly, or is damaged" : "was not closed properly",
		 num_duration(recording_duration(rec)).s,
		 num_of(rec->profile.n_samples, "sample", "samples").s,
		 lost ? " and not the last " : "", lost ? num_bytes(lost).s : "");
}

void cmd_warn_of_no_traces(const struct cmd_context *ctx, const struct recording *rec)
{
	if (!rec->profile.has_spans)
		cmd_warn(ctx,
			 "%s has no traces: no process in it published any, or top or serve wrote "
			 "it, "
			 "which keep none",
			 recording_name(rec));
}

/*
 * What is read of a recording is in arrays that grow with it. As mappings of their own they grow
 * without being copied, and are given back when they are freed; malloc() by itself keeps the memory
 * of those smaller than one that was freed before. (Measured: 5 to 12 % less memory, no more time.)
 */
static void map_large_arrays(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

static bool has_samples(const struct profile *p, bool of_any_event)
{
	return p->n_samples || (of_any_event && p->totals.samples);
}

/* What is missing where there are no samples of @event. */
static const char *what_is_missing(const char *event)
{
	if (!strcmp(event, EVENT_CAUSED))
		return "wait for a GVL or a Mutex that another thread had";
	if (!strcmp(event, EVENT_WAKEUP))
		return "wait that somebody ended";
	return NULL;
}

/* None of the event that was chosen; what waits all the time has hardly any of CPU time. */
static void no_samples(const struct recording *rec, struct err *err)
{
	const struct profile_event *event = profile_event(&rec->profile);
	const char *unclosed = rec->report.complete ? "" : " and was not closed properly";
	const char *missing = what_is_missing(event->name);

	if (rec->profile.meta.n_events < 2) {
		err_set(err, -ENODATA, ERR_EMPTY, "%s holds no samples%s", recording_name(rec),
			unclosed);
		return;
	}
	if (missing) {
		err_set(err, -ENODATA, ERR_EMPTY, "%s holds no %s%s", recording_name(rec), missing,
			unclosed);
		return;
	}
	err_set(err, -ENODATA, ERR_EMPTY, "%s holds no samples of event '%s'%s",
		recording_name(rec), event->name, unclosed);
	if (event_is_cpu(event) && profile_has_waits(&rec->profile))
		err_hint(err, "'--event wall' takes the waits, too; 'rbpf report --states' shows "
			      "what they were");
}

/*
 * What the expression of @filter needs to be told apart. Waits are divided by its times, also where
 * samples are read again.
 */
static void take_expression(const struct view_filter *filter, struct read_options *opts)
{
	if (!filter->expr || view_expr_is_empty(filter->expr))
		return;
	opts->cuts = filter->expr->cuts;
	opts->n_cuts = filter->expr->n_cuts;
	opts->span_marks = filter->expr->span_marks;
	opts->n_span_marks = filter->expr->n_span_marks;
}

static int open_recording(const struct cmd_context *ctx, const char *input,
			  const struct option_rest *rest, struct view_filter *filter,
			  const struct read_options *needs, bool any_event, struct recording *ret,
			  struct err *err)
{
	struct read_options opts = *needs;
	struct recording rec = RECORDING_INIT;
	int r;

	r = recording_path(input, rest, &rec.path, err);
	if (r)
		return r;
	map_large_arrays();
	rec.name = ctx->said_recording;
	opts.event = filter->event;
	opts.from_ns = filter->from_ns;
	opts.to_ns = filter->to_ns;
	opts.from = filter->from;
	opts.to = filter->to;
	take_expression(filter, &opts);
	opts.by_thread |= view_filter_by_thread(filter);
	opts.by_request |= view_filter_by_request(filter);
	opts.slow_ns = filter->slower_than_ns;
	opts.ended = state_reasons(filter->ended);
	opts.idle = filter->has_idle ? &filter->idle : NULL;
	r = profile_read(rec.path, &opts, &rec.profile, &rec.report, err);
	if (r)
		return read_failed(rec.path, r, err);
	if (!has_samples(&rec.profile, any_event || read_options_of_all_events(&opts))) {
		no_samples(&rec, err);
		recording_close(&rec);
		return -ENODATA;
	}
	read_options_find_times(&opts, rec.profile.meta.start_realtime_ns);
	filter->from_ns = opts.from_ns;
	filter->to_ns = opts.to_ns;
	r = cmd_check_times(filter, err);
	if (r) {
		recording_close(&rec);
		return r;
	}
	warn_interrupted(ctx, &rec);
	if (opts.n_span_marks)
		cmd_warn_of_no_traces(ctx, &rec);
	*ret = rec;
	return 0;
}

int cmd_open_recording(const struct cmd_context *ctx, const char *input,
		       const struct option_rest *rest, struct view_filter *filter,
		       const struct read_options *needs, struct recording *ret, struct err *err)
{
	return open_recording(ctx, input, rest, filter, needs, false, ret, err);
}

int cmd_open_recording_of_any_event(const struct cmd_context *ctx, const char *input,
				    const struct option_rest *rest, struct view_filter *filter,
				    const struct read_options *needs, struct recording *ret,
				    struct err *err)
{
	return open_recording(ctx, input, rest, filter, needs, true, ret, err);
}

struct replay cmd_replay(const struct recording *rec, const struct view_filter *filter,
			 const struct read_options *needs)
{
	struct replay ret = { .path = rec->path,
			      .options = { .event = filter->event,
					   .wall = needs->wall,
					   .spans = needs->spans,
					   .from_ns = filter->from_ns,
					   .to_ns = filter->to_ns } };

	take_expression(filter, &ret.options);
	return ret;
}

int cmd_prepare_recording(struct recording *rec, const struct view_filter *filter, struct err *err)
{
	return err_code(err, stack_mode_prepare(&rec->profile, filter->stack));
}
