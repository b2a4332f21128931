/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording: find the Rubies, open the file, let the engine and the collector work until something
 * says stop, and sum up.
 *
 * An older recording of the same name is kept as FILE.old only when there are samples to write: a
 * wrong pid or a command that ends at once costs nobody a recording.
 */
#include "cmd/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/priority.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/output.h"
#include "cmd/open_recording.h"
#include "cmd/sampling.h"
#include "profile/output.h"
#include "profile/recorder.h"
#include "sample/collector.h"
#include "sample/source_keeper.h"
#include "target/selection.h"
#include "ui/progress.h"
#include "ui/shell_path.h"
#include "ui/summary.h"

/* How long a program that has exited is waited for. */
#define CHILD_TRIES    40
#define CHILD_PAUSE_NS (5 * NSEC_PER_MSEC)

/* One run of the command. */
struct run {
	const struct record_options *opts;
	struct cmd_context *ctx;
	struct sampling s;
	struct recorder *recorder;
	struct source_keeper sources;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	struct profile_totals totals;
	struct err early; /* why it ended before it was to; code 0: it did not */
	bool dropped;	  /* it has no samples, and an older recording stays in its place */
	struct priority priority;
};

static int open_recorder(struct run *run, struct err *err)
{
	struct recorder_options opts = { .path = run->opts->output,
					 .force = run->opts->force,
					 .sync = run->opts->sync,
					 .behind = true,
					 .sources = run->opts->sources,
					 .max_bytes = run->opts->max_bytes };
	struct profile_meta meta;
	struct utsname names;

	sampling_meta(&run->s, &names, &meta);
	return recorder_open(&opts, &meta, &run->recorder, err);
}

/* "--comm RE --container ID": the conditions for a Ruby to be recorded, as they were given. */
static void add_selection(const struct record_options *opts, struct buf *out)
{
	const struct {
		const char *name, *value;
	} conditions[] = { { "--comm", opts->comm },
			   { "--cgroup", opts->cgroup },
			   { "--container", opts->container },
			   { "--user", opts->user } };

	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
		if (conditions[i].value)
			buf_addf(out, "%s%s %s", out->len ? " " : "", conditions[i].name,
				 conditions[i].value);
}

static void say_attached_to_all(const struct run *run, const struct collector_status *st)
{
	struct buf which _cleanup_(buf_deinit) = BUF_INIT;

	if (!selection_cgroup_exists(&run->s.selection))
		cmd_warn(run->ctx, "there is no control group %s yet", run->opts->cgroup);
	add_selection(run->opts, &which);
	cmd_info(run->ctx, "recording all Rubies%s%s: %s now (%s)%s",
		 which.len ? " that match " : "", buf_str(&which),
		 num_of(st->live, "process", "processes").s,
		 num_of(st->threads, "thread", "threads").s, st->live ? "" : ", waiting for more");
}

static void say_attached(const struct run *run)
{
	struct collector_status st;
	const char *version = collector_ruby_version(run->s.collector);
	size_t children;

	collector_status(run->s.collector, &st);
	children = st.processes - run->opts->pids.n;
	if (run->opts->command)
		cmd_info(run->ctx, "recording %s (pid %d)", run->opts->command[0],
			 (int)run->s.child.pid);
	else if (run->opts->all_ruby)
		say_attached_to_all(run, &st);
	else if (run->opts->pids.n == 1)
		cmd_info(run->ctx, "attached to pid %d%s%s (ruby %s, %s)",
			 (int)run->opts->pids.pids[0], children ? " and " : "",
			 children ? num_of(children, "child process", "child processes").s : "",
			 version[0] ? version : "not started yet",
			 num_of(st.threads, "thread", "threads").s);
	else
		cmd_info(run->ctx, "attached to %s (%s)",
			 num_of(st.processes, "process", "processes").s,
			 num_of(st.threads, "thread", "threads").s);
}

static void draw_progress(const struct run *run, struct progress *progress, uint64_t now)
{
	struct buf line _cleanup_(buf_deinit) = BUF_INIT;
	struct collector_status st;

	if (!progress_due(progress, now))
		return;
	collector_status(run->s.collector, &st);
	buf_addf(&line, "recording %s", num_clock(now - run->start_ns).s);
	if (run->opts->duration_ns)
		buf_addf(&line, " / %s", num_clock(run->opts->duration_ns).s);
	buf_addf(&line, "   %s   %s   %s lost   %s   Ctrl-C to stop",
		 num_of(st.processes, "process", "processes").s,
		 num_of(st.samples, "sample", "samples").s, num_count(st.lost).s,
		 num_bytes(recorder_bytes(run->recorder)).s);
	progress_draw(progress, now, buf_str(&line));
}

/* Milliseconds to sleep at most. */
static int poll_timeout(const struct run *run, uint64_t now)
{
	const int pause = collector_pause_ms(run->s.collector);
	uint64_t end = run->start_ns + run->opts->duration_ns, left;

	if (!run->opts->duration_ns)
		return pause;
	left = end > now ? (end - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0;
	return left < (uint64_t)pause ? (int)left : pause;
}

static bool done(struct run *run, uint64_t now)
{
	struct collector_status st;

	if (stop_signals() || recorder_full(run->recorder, &run->early) ||
	    (run->opts->duration_ns && now - run->start_ns >= run->opts->duration_ns))
		return true;
	collector_status(run->s.collector, &st);
	return !st.live && !run->opts->all_ruby;
}

/* The program that is run has been forked by now. */
static void raise_priority(struct run *run)
{
	if (!run->opts->priority)
		return;
	priority_raise(&run->priority);
	if (run->priority.kind == PRIORITY_REAL_TIME)
		cmd_verbose(run->ctx, "priority: SCHED_RR, at most %d %% of one CPU",
			    PRIORITY_PERCENT);
	else if (run->priority.kind == PRIORITY_NICED)
		cmd_verbose(run->ctx, "priority: nice %d, for SCHED_RR was refused: %s",
			    PRIORITY_NICE, strerror(-run->priority.refused));
	else
		cmd_verbose(
			run->ctx,
			"priority: unchanged, for it could not be raised: %s; on a busy machine "
			"rbpf may miss processes that live for some ms only",
			strerror(-run->priority.refused));
}

/* A recording that is full, as @err then says, ends like others: it is no failure. */
static int take_if_full(struct run *run, int r, struct err *err)
{
	struct collector_status st;

	collector_status(run->s.collector, &st);
	if (r != -E2BIG || !st.full)
		return r;
	run->early = *err;
	*err = (struct err) { 0 };
	return 0;
}

static int loop(struct run *run, struct err *err)
{
	struct progress progress;
	uint64_t now;
	int r = 0;

	progress_init(&progress, STDERR_FILENO, !run->ctx->quiet);
	for (;;) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (done(run, now))
			break;
		draw_progress(run, &progress, now);
		priority_turn(&run->priority);
		if (!r && run->opts->sources)
			source_keeper_turn(&run->sources, run->recorder, &run->s.worker, now);
		r = sampling_poll(&run->s, r ? 0 : poll_timeout(run, now), -1, err);
		if (r < 0)
			break;
	}
	run->end_ns = clock_ns(CLOCK_MONOTONIC);
	if (r < 0)
		r = take_if_full(run, r, err);
	if (run->early.code)
		stop_at(run->end_ns);
	progress_clear(&progress);
	sampling_pass_signal(&run->s);
	return r < 0 ? r : 0;
}

static int no_ruby(const struct record_options *opts, struct err *err)
{
	struct buf which _cleanup_(buf_deinit) = BUF_INIT;

	add_selection(opts, &which);
	if (!which.len)
		return err_set(err, -ESRCH, ERR_TARGET, "there was no Ruby process to record");
	err_set(err, -ESRCH, ERR_TARGET, "there was no Ruby process that matches %s",
		buf_str(&which));
	err_hint(err, "'rbpf ps' lists all, with their users and containers; 'rbpf ps --json' has "
		      "their control groups, too");
	return -ESRCH;
}

static int nothing_recorded(const struct run *run, const struct collector_status *st,
			    struct err *err)
{
	if (run->opts->all_ruby && !st->processes)
		return no_ruby(run->opts, err);
	if (st->live || run->opts->all_ruby)
		return 0;
	if (run->opts->command && !st->rubies)
		return 0; /* told by check_recorded() */
	if (run->opts->pids.n == 1)
		err_set(err, -ESRCH, ERR_TARGET, "pid %d exited before the first sample",
			(int)run->opts->pids.pids[0]);
	else
		err_set(err, -ESRCH, ERR_TARGET, "%s exited before the first sample",
			run->opts->command ? run->opts->command[0] : "all processes");
	err_hint(err, "samples are of CPU time: -F 999 takes ten times as many as -F 99, and "
		      "'--mode states' records waits, too");
	return -ESRCH;
}

/* Interrupted before a clock can have ticked: what CPU time was used before that says nothing. */
static bool ended_at_once(const struct run *run)
{
	return stop_signals() && run->end_ns - run->start_ns < NSEC_PER_SEC / run->opts->frequency;
}

/* Why it ended, if nobody asked for that; and why there are no samples. */
static void say_why_ended(const struct run *run, const struct collector_status *st)
{
	const struct num_text samples = num_of(run->totals.samples, "sample", "samples");
	const struct num_text took = num_duration(run->end_ns - run->start_ns);
	const struct num_text used = num_duration(run->totals.cpu_kernel_ns);

	if (run->early.code) {
		cmd_warn(run->ctx, "ended after %s: %s; saved %s", took.s, run->early.msg,
			 samples.s);
		cmd_hint(run->ctx, &run->early);
	} else if (!run->totals.samples && ended_at_once(run)) {
		cmd_warn(run->ctx, "no samples: interrupted as it began%s%s",
			 run->dropped ? "; kept the recording that was in " : "",
			 run->dropped ? run->opts->output : "");
	} else if (!run->totals.samples) {
		cmd_warn(run->ctx, "no samples: the processes used %s CPU time in %s%s%s",
			 run->totals.cpu_kernel_ns ? used.s : "no", took.s,
			 run->dropped ? "; kept the recording that was in " : "",
			 run->dropped ? run->opts->output : "");
	} else if (!st->live && run->opts->pids.n == 1) {
		cmd_warn(run->ctx, "pid %d exited after %s; saved %s", (int)run->opts->pids.pids[0],
			 took.s, samples.s);
	} else if (!st->live && run->opts->pids.n) {
		cmd_warn(run->ctx, "all processes exited after %s; saved %s", took.s, samples.s);
	}
}

/* Whether what was recorded is what was asked for. */
static int check_recorded(const struct run *run, struct err *err)
{
	struct collector_status st;
	int r = 0;

	collector_status(run->s.collector, &st);
	if (!run->totals.samples)
		r = nothing_recorded(run, &st, err);
	return r ? r : sampling_check_ruby(&run->s, err);
}

/*
 * Close the recording. One that has no samples is dropped if nothing was to be had, or if an older
 * one is in its place, which says more.
 */
static int close_recording(struct run *run, struct err *err)
{
	const int checked = check_recorded(run, err);
	bool complete = run->totals.samples;
	int r;

	if (!complete && !checked) {
		run->dropped = output_is_recording(run->opts->output);
		complete = !run->dropped;
	}
	r = recorder_close(run->recorder, complete ? &run->totals : NULL, checked ? NULL : err);
	run->recorder = NULL;
	return checked ? checked : r;
}

/*
 * That the program failed: rbpf's own status does not tell. It has been seen to exit; until it can
 * be waited for takes a moment. @failed: so has rbpf, whose status is then its own.
 */
static void say_child_status(struct run *run, bool failed)
{
	struct sampling *s = &run->s;
	struct collector_status st;
	struct err said = { 0 };
	const int *status = &s->child_status;

	collector_status(run->s.collector, &st);
	for (int i = 0; i < CHILD_TRIES && !s->child_ended; i++) {
		s->child_ended = launch_ended(&s->child, false, &s->child_status);
		if (st.live)
			break;
		if (!s->child_ended)
			nanosleep(&(struct timespec) { .tv_nsec = CHILD_PAUSE_NS }, NULL);
	}
	/* -d ends a recording, and not the program. */
	if (!s->child_ended && !stop_signals())
		cmd_info(run->ctx, "%s (pid %d) goes on, and is not recorded any more",
			 run->opts->command[0], (int)s->child.pid);
	if (!s->child_ended || !*status || stop_signals())
		return;
	if (WIFSIGNALED(*status))
		cmd_warn(run->ctx, "%s (pid %d) was killed by signal %d (%s)",
			 run->opts->command[0], (int)s->child.pid, WTERMSIG(*status),
			 strsignal(WTERMSIG(*status)));
	else
		cmd_warn(run->ctx, "%s (pid %d) exited with status %d", run->opts->command[0],
			 (int)s->child.pid, WEXITSTATUS(*status));
	if (failed || run->opts->exit_with_child)
		return;
	err_hint(&said, "--exit-with-child passes this status on");
	cmd_hint(run->ctx, &said);
}

static void say_outcome(const struct run *run)
{
	struct collector_status st;

	collector_status(run->s.collector, &st);
	cmd_warn_of_unread(run->ctx, &run->s.worker);
	if (stop_signals() >= 2)
		cmd_warn(run->ctx, "interrupted twice: samples that were not written yet are lost");
	else
		say_why_ended(run, &st);
}

static int export(const struct run *run, struct err *err)
{
	if (run->dropped) /* FILE is another recording */
		return err_set(err, -ENODATA, ERR_EMPTY, "there are no samples to export");
	return cmd_export_file(run->ctx, run->opts->output, run->opts->exporter,
			       run->opts->export_path, err);
}

/* What to do with the recording. */
static void add_next(const struct record_options *opts, struct buf *text)
{
	_cleanup_buf_ struct buf input = BUF_INIT;

	if (strcmp(opts->output, CMD_DEFAULT_RECORDING)) {
		buf_addstr(&input, " -i ");
		shell_path_add(opts->output, &input);
	}
	buf_addf(text, "next: rbpf report%s%s  |  rbpf flame%s%s > out.svg\n",
		 record_mode_waits(opts->mode) ? " --states" : "", buf_str(&input),
		 record_mode_waits(opts->mode) ? " --event wall" : "", buf_str(&input));
}

/* @exported: whether the recording was exported, too. */
static void say_summary(const struct run *run, uint64_t bytes, bool exported)
{
	const struct summary_recording recording = {
		.duration_ns = run->end_ns - run->start_ns,
		.frequency = (uint32_t)run->opts->frequency,
		.waits = record_mode_waits(run->opts->mode),
	};
	struct buf text _cleanup_(buf_deinit) = BUF_INIT;
	struct collector_status st;

	collector_status(run->s.collector, &st);
	buf_addf(&text, "recorded %s of %s", num_duration(recording.duration_ns).s,
		 num_of(st.processes, "process", "processes").s);
	if (!run->dropped)
		buf_addf(&text, " to %s (%s)",
			 strcmp(run->opts->output, "-") ? run->opts->output : "stdout",
			 num_bytes(bytes).s);
	buf_addch(&text, '\n');
	summary_totals(&run->totals, &recording, &text);
	if (exported)
		buf_addf(&text, "wrote %s\n", run->opts->export_path);
	if (run->totals.samples && strcmp(run->opts->output, "-"))
		add_next(run->opts, &text);
	cmd_lines(run->ctx, &text);
}

static int record(struct run *run, struct err *err)
{
	uint64_t bytes;
	int r;

	r = open_recorder(run, err);
	if (!r)
		r = sampling_start(&run->s, recorder_sink(run->recorder), err);
	if (r)
		return r;
	run->start_ns = clock_ns(CLOCK_MONOTONIC);
	if (run->opts->duration_ns)
		stop_at(run->start_ns + run->opts->duration_ns);
	say_attached(run);
	raise_priority(run);
	r = loop(run, err);
	priority_drop(&run->priority);
	if (r) /* cannot write: what could be written is a recording */
		return r;
	r = collector_finish(run->s.collector, &run->totals, err);
	if (r == -EINTR && stop_signals() >= 2)
		r = 0;
	if (r)
		return r;
	if (run->opts->sources)
		source_keeper_finish(&run->sources, run->recorder, &run->s.worker);
	recorder_flush(run->recorder, true);
	bytes = recorder_bytes(run->recorder);
	r = close_recording(run, err);
	if (run->opts->command)
		say_child_status(run, r);
	if (r)
		return r;
	say_outcome(run);
	if (run->opts->exporter)
		r = export(run, err);
	say_summary(run, bytes, run->opts->exporter && !r);
	return r;
}

int record_run(const struct record_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct run run = {
		.opts = opts, .ctx = ctx, .s = SAMPLING_INIT, .priority = PRIORITY_INIT
	};
	struct sampling *s = &run.s;
	int r;

	priority_allow_helpers(opts->priority);
	r = sampling_open(s, opts, ctx, err);
	if (!r)
		r = record(&run, err);
	recorder_close(run.recorder, NULL, NULL);
	source_keeper_deinit(&run.sources);
	if (s->child.pid > 0 && !r && opts->exit_with_child) {
		if (!s->child_ended)
			launch_ended(&s->child, true, &s->child_status);
		r = WIFEXITED(s->child_status) ? WEXITSTATUS(s->child_status)
					       : 128 + WTERMSIG(s->child_status);
	}
	sampling_close(s);
	return r;
}
