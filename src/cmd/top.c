/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Top: the engine and the collector work as they do for a recording, but into a window of the last
 * minutes, from which each second is shown: on the screen, as plain lines, or as JSON.
 *
 * A second is shown when SETTLE_NS have passed since it ended: until then its last samples come out
 * of the ring buffer.
 */
#include "cmd/top.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/options.h"
#include "cmd/sampling.h"
#include "cmd/top_screen.h"
#include "profile/window.h"
#include "sample/collector.h"
#include "top/json.h"
#include "top/layout.h"
#include "top/model.h"
#include "ui/term.h"
#include "view/filter.h"

#define POLL_MS	    50
#define SETTLE_NS   (200 * NSEC_PER_MSEC)
#define WINDOW_PART 4 /* one part in so many of --memlimit is the window's */
#define PLAIN_WIDTH 100

struct watching {
	const struct top_options *opts;
	struct cmd_context *ctx;
	struct sampling s;
	struct window *window;
	bool has_idle;
	regex_t idle;
	struct top_choice choice;
	struct top_model model;
	struct top_page page;
	struct buf out;
	char targets[64];
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t start_realtime_ns;
	uint64_t shown; /* seconds before this one were shown */
	bool utf8;
};

static void name_targets(struct watching *run)
{
	const struct record_options *rec = &run->opts->record;

	if (rec->all_ruby)
		snprintf(run->targets, sizeof(run->targets), "all Rubies");
	else if (rec->command)
		snprintf(run->targets, sizeof(run->targets), "pid %d", (int)run->s.child.pid);
	else if (rec->pids.n == 1)
		snprintf(run->targets, sizeof(run->targets), "pid %d", (int)rec->pids.pids[0]);
	else
		snprintf(run->targets, sizeof(run->targets), "%zu processes", rec->pids.n);
}

static int open_window(struct watching *run, struct err *err)
{
	const uint64_t keep = (run->opts->keep_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	struct profile_meta meta;
	struct utsname names;
	const struct window_options opts = {
		/* The newest second has not ended, and the one before may still be waited for. */
		.seconds = (uint32_t)keep + 2,
		.max_bytes = run->opts->record.memory_limit / WINDOW_PART,
		.meta = &meta,
		.idle = run->has_idle ? &run->idle : NULL,
	};

	sampling_meta(&run->s, &names, &meta);
	return err_code(err, window_new(&opts, &run->window));
}

/* ---- lines ---- */

static uint32_t frequency_now(const struct watching *run)
{
	struct collector_status st;

	collector_status(run->s.collector, &st);
	return st.frequency;
}

/* The @seconds before second @to. */
static int show_plain(struct watching *run, uint64_t seconds, uint64_t to)
{
	const size_t width = term_width(STDOUT_FILENO);
	struct top_frame frame = {
		.width = width ? width : PLAIN_WIDTH,
		.utf8 = run->utf8,
		.targets = run->targets,
		.frequency = frequency_now(run),
		.selected = SIZE_MAX,
	};
	int r;

	run->choice.seconds = (uint32_t)seconds;
	run->choice.back = (uint32_t)(window_seconds(run->window).to - to);
	r = top_model_build(&run->model, run->window, &run->choice);
	if (r)
		return r;
	if (run->opts->rows && run->model.n_rows > run->opts->rows)
		run->model.n_rows = run->opts->rows;
	r = top_layout(&run->model, &run->choice, &frame, &run->page);
	for (size_t i = 0; i < run->page.n_lines && !r; i++)
		buf_addf(&run->out, "%s\n", top_line_text(&run->page, i));
	if (!run->opts->once)
		buf_addch(&run->out, '\n');
	return r;
}

/* The seconds from run->shown on and before @to, which ended at @end_ns or before. */
static int show(struct watching *run, uint64_t to, uint64_t end_ns, struct err *err)
{
	const struct top_json_options json = {
		.range = { .from = run->shown, .to = to },
		.duration_ns = end_ns - run->start_ns - run->shown * NSEC_PER_SEC,
		.start_realtime_ns = run->start_realtime_ns,
		.max_rows = run->opts->rows,
		.native = run->opts->record.native,
		.states = record_mode_waits(run->opts->record.mode),
	};
	int r;

	buf_reset(&run->out);
	r = run->opts->json ? top_json(run->window, &json, &run->out)
			    : show_plain(run, to - run->shown, to);
	run->shown = to;
	if (r || buf_failed(&run->out))
		return err_oom(err);
	return io_write_output("-", buf_str(&run->out), run->out.len, err);
}

/* ---- the loop ---- */

static bool ended(const struct watching *run)
{
	struct collector_status st;

	collector_status(run->s.collector, &st);
	return !st.live && !run->opts->record.all_ruby;
}

/* When to stop by itself: the end of a second; UINT64_MAX: never. */
static uint64_t end_of_time(const struct watching *run)
{
	uint64_t ns = run->opts->record.duration_ns;

	if (!ns && !run->opts->once)
		return UINT64_MAX;
	return run->start_ns + (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC * NSEC_PER_SEC +
	       (ns ? 0 : NSEC_PER_SEC);
}

static int collect_if_due(struct watching *run)
{
	const struct id_holder ids = collector_ids(run->s.collector);

	return window_collection_due(run->window) ? window_collect(run->window, &ids) : 0;
}

/* Show what has ended at @now, a second at a time but for --once. */
static int show_ended(struct watching *run, uint64_t now, struct err *err)
{
	const uint64_t at = now > SETTLE_NS ? now - SETTLE_NS : 0;
	int r = 0;

	window_advance(run->window, at);
	while (!r && !run->opts->once && run->shown < window_seconds(run->window).to)
		r = show(run, run->shown + 1, run->start_ns + (run->shown + 1) * NSEC_PER_SEC, err);
	return r;
}

/* What is left when all has ended at @end_ns. */
static int show_rest(struct watching *run, uint64_t end_ns, struct err *err)
{
	const uint64_t seconds = (end_ns - run->start_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	uint64_t second_end;
	int r = 0;

	window_advance(run->window, run->start_ns + seconds * NSEC_PER_SEC);
	if (run->opts->once)
		return show(run, seconds, end_ns, err);
	while (!r && run->shown < seconds) {
		second_end = run->start_ns + (run->shown + 1) * NSEC_PER_SEC;
		r = show(run, run->shown + 1, second_end < end_ns ? second_end : end_ns, err);
	}
	return r;
}

static int loop_lines(struct watching *run, struct err *err)
{
	const uint64_t end = end_of_time(run);
	struct profile_totals totals;
	uint64_t now;
	int r = 0;

	for (;;) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end || stop_signals() || ended(run))
			break;
		r = sampling_poll(&run->s,
				  r ? 0
				  : end - now < POLL_MS * NSEC_PER_MSEC
					  ? (int)((end - now) / NSEC_PER_MSEC) + 1
					  : POLL_MS,
				  -1, err);
		if (r < 0)
			return r;
		if (collect_if_due(run))
			return err_oom(err);
		if (show_ended(run, clock_ns(CLOCK_MONOTONIC), err))
			return err->code;
	}
	sampling_pass_signal(&run->s);
	r = collector_finish(run->s.collector, &totals, err);
	if (r == -EINTR && stop_signals() >= 2)
		r = 0;
	if (!r)
		r = sampling_check_ruby(&run->s, err);
	return r ? r : show_rest(run, now < end ? now : end, err);
}

/* ---- the screen ---- */

static int loop_screen(struct watching *run, struct err *err)
{
	const struct top_screen_options opts = {
		.sampling = &run->s,
		.window = run->window,
		.targets = run->targets,
		.start_ns = run->start_ns,
		.start_realtime_ns = run->start_realtime_ns,
		.end_ns = end_of_time(run),
		.settle_ns = SETTLE_NS,
		.has_states = record_mode_waits(run->opts->record.mode),
		.color = term_color(STDOUT_FILENO, run->ctx->color),
		.utf8 = run->utf8,
	};
	int r = top_screen_run(&opts, &run->choice, err);

	sampling_pass_signal(&run->s);
	return r ? r : sampling_check_ruby(&run->s, err);
}

/* A terminal on which the cursor can be moved, at both ends. */
static bool has_screen(const struct top_options *opts)
{
	const char *term = getenv("TERM");

	return !opts->once && !opts->plain && !opts->json && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static int watch(struct watching *run, bool screen, struct err *err)
{
	int r = open_window(run, err);

	if (!r)
		r = sampling_start(&run->s, window_sink(run->window), err);
	if (r)
		return r;
	run->start_ns = clock_ns(CLOCK_MONOTONIC);
	run->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	window_set_start(run->window, run->start_ns);
	run->s.seconds_since_ns = run->start_ns;
	name_targets(run);
	return screen ? loop_screen(run, err) : loop_lines(run, err);
}

int top_run(const struct top_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct watching run = { .opts = opts, .ctx = ctx, .s = SAMPLING_INIT };
	const bool screen = has_screen(opts);
	int r = 0;

	/* Widths and whether there is UTF-8; numbers stay as they are. */
	setlocale(LC_CTYPE, "");
	run.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	run.s.output = screen ? SAMPLING_OUTPUT_NONE : SAMPLING_OUTPUT_STDERR;
	run.choice.native = opts->record.native;
	run.choice.view = opts->view;
	if (opts->view == OPTION_UNSET)
		run.choice.view = opts->record.pids.n == 1 || opts->record.command ? TOP_METHODS
										   : TOP_PROCESSES;
	if (opts->idle)
		r = view_filter_regex(&run.idle, &run.has_idle, opts->idle, "--idle", err);
	if (!r)
		r = sampling_open(&run.s, &opts->record, ctx, err);
	if (!r)
		r = watch(&run, screen, err);
	sampling_close(&run.s);
	window_free(run.window);
	if (run.has_idle)
		regfree(&run.idle);
	top_choice_deinit(&run.choice);
	top_model_deinit(&run.model);
	top_page_deinit(&run.page);
	buf_deinit(&run.out);
	return r;
}
