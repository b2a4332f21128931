/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serve: one process samples into a window, as top does, or has the recording; another, without
 * privileges, talks HTTP (src/serve/). That one asks for snapshots, recordings in memory.
 */
#include "cmd/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dir_entry.h"
#include "base/err.h"
#include "base/io.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/open_recording.h"
#include "cmd/sampling.h"
#include "cmd/serve_snapshot.h"
#include "export/flame.h"
#include "page/html.h"
#include "profile/input.h"
#include "profile/window.h"
#include "sample/collector.h"
#include "serve/link.h"
#include "serve/server.h"
#include "ui/term.h"
#include "view/filter.h"

#define POLL_MS	    100
#define SETTLE_NS   (200 * NSEC_PER_MSEC) /* until the last samples of a second have come */
#define WINDOW_PART 4			  /* one part in so many of --memlimit is the window's */
struct serving {
	struct serve_line *line;
	struct cmd_context *ctx;
	struct buf title, policy;
	struct utsname names;
	struct serve_token token;
	int listen;
	pid_t server; /* -1: none */
	int files[SERVE_RENDERS];
	bool waits, wall; /* of what is served: recorded with --mode states or wall; wall */
	/* Live: */
	struct sampling s;
	struct window *window;
	struct serve_snapshots snapshots;
	int channel;
	bool ended;
};

/* ---- in the processes that make views ---- */

static int run_view(void *arg, int argc, char **argv)
{
	const struct command *command = command_find(argv[0]);
	_cleanup_buf_ struct buf line = BUF_INIT;
	const struct serving *run = arg;
	struct cmd_context ctx = { .color = TERM_NEVER,
				   .recording = buf_str(&run->title),
				   .said_recording = run->channel < 0 ? "the recording"
								      : "the window" };
	struct err err = { 0 };
	int r;

	if (!command)
		return ERR_RUNTIME;
	buf_addstr(&line, "rbpf");
	for (int i = 0; i < argc; i++) {
		buf_addch(&line, ' ');
		buf_add_shell_word(&line, i < argc - 1 ? argv[i] : ctx.recording);
	}
	ctx.command_line = buf_str(&line);
	r = command->run(&ctx, argc, argv, &err);
	return r < 0 ? cmd_fail(&ctx, r, &err) : r;
}

/* ---- the address ---- */

static int open_listener(struct serving *run, struct err *err)
{
	struct serve_address *a = &run->line->address;
	const int on = 1;
	char text[SERVE_ADDRESS_TEXT];
	int r;

	serve_address_text(a, text);
	run->listen = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (run->listen >= 0)
		setsockopt(run->listen, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (run->listen < 0 || bind(run->listen, &a->sa, a->len) || listen(run->listen, 64) ||
	    getsockname(run->listen, &a->sa, &a->len)) {
		r = -errno;
		err_set(err, r, ERR_RUNTIME, "cannot listen on %s: %s", text, strerror(-r));
		if (r == -EADDRINUSE)
			err_hint(err, "port 0 takes any that is free");
		return r;
	}
	return 0;
}

/* The URL is what was asked for, so it alone goes to stdout. */
static int announce(const struct serving *run, struct err *err)
{
	const struct serve_address *a = &run->line->address;
	_cleanup_buf_ struct buf url = BUF_INIT;
	char text[SERVE_ADDRESS_TEXT];

	serve_address_text(a, text);
	if (serve_address_is_any(a))
		buf_addf(&url, "http://%s:%u/%s/\n", run->names.nodename, serve_address_port(a),
			 run->token.s);
	else
		buf_addf(&url, "http://%s/%s/\n", text, run->token.s);
	if (buf_failed(&url))
		return err_oom(err);
	if (serve_address_is_loopback(a))
		cmd_info(run->ctx,
			 "from another machine: ssh -L %u:%s %s, and open the same address there",
			 serve_address_port(a), text, run->names.nodename);
	else
		cmd_warn(run->ctx,
			 "%s can be reached by other machines, and what is sent is not encrypted: "
			 "whoever sees it can read the page",
			 text);
	return io_write_output("-", buf_str(&url), url.len, err);
}

/* Of a recording of so many seconds; 0: live. */
static int start_server(struct serving *run, uint64_t seconds, struct err *err)
{
	_cleanup_buf_ struct buf script = BUF_INIT;
	struct serve_options opts = {
		.listen = run->listen,
		.anywhere = !serve_address_is_loopback(&run->line->address),
		.name = run->names.nodename,
		.run = run_view,
		.run_arg = run,
		.channel = -1,
		.seconds = seconds,
		.event = run->wall ? EVENT_WALL : EVENT_CPU,
		.waits = run->waits,
	};
	int r, socks[2] = { -1, -1 };

	flame_add_script(&script);
	buf_addstr(&run->policy, "default-src 'none'; style-src 'unsafe-inline'; "
				 "frame-ancestors 'self'; script-src ");
	html_add_hash(&run->policy, buf_str(&script));
	if (buf_failed(&script) || buf_failed(&run->policy) || buf_failed(&run->title))
		return err_oom(err);
	opts.title = buf_str(&run->title);
	opts.svg_policy = buf_str(&run->policy);
	memcpy(opts.files, run->files, sizeof(opts.files));
	r = serve_token_make(&run->token);
	opts.token = run->token;
	if (!r && !seconds) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
			r = -errno;
		run->channel = socks[0];
		opts.channel = socks[1];
	}
	if (!r)
		r = serve_start(&opts, &run->server);
	if (socks[1] >= 0)
		close(socks[1]);
	close(run->listen);
	run->listen = -1;
	return r ? err_set(err, r, ERR_RUNTIME, "cannot start the serving process: %s",
			   strerror(-r))
		 : 0;
}

/* It ends only if something is wrong with it. */
static int server_ended(struct serving *run, int status, struct err *err)
{
	run->server = -1;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
		return err_set(err, -ECHILD, ERR_RUNTIME, "the serving process has ended");
	err_set(err, -ECHILD, ERR_RUNTIME,
		"the serving process was ended: it made a system call that it is not allowed to");
	err_hint(err, "'journalctl -k' may have its number; it is a fault of rbpf, or an attack");
	return -ECHILD;
}

static int check_server(struct serving *run, struct err *err)
{
	int status;

	return waitpid(run->server, &status, WNOHANG) == run->server
		       ? server_ended(run, status, err)
		       : 0;
}

/* The channel has closed, as it does when the serving process ends: await that. */
static int lost_server(struct serving *run, struct err *err)
{
	int status = 0;

	kill(run->server, SIGKILL);
	while (waitpid(run->server, &status, 0) < 0 && errno == EINTR)
		;
	return server_ended(run, status, err);
}

/* ---- a recording ---- */

/* @path again, as often as there may be renders at a time. */
static int open_files(struct serving *run, const char *path, struct err *err)
{
	int r;

	r = input_open(path, &run->files[0], err);
	if (r)
		return r;
	for (size_t i = 1; i < SERVE_RENDERS; i++) {
		run->files[i] = fd_reopen(run->files[0], O_RDONLY);
		if (run->files[i] < 0)
			return err_set(err, run->files[i], ERR_PROFILE, "cannot read %s: %s", path,
				       strerror(-run->files[i]));
	}
	return 0;
}

static int serve_file(struct serving *run, const struct option_rest *rest, struct err *err)
{
	static const struct read_options needs = { 0 };
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	struct view_filter filter = VIEW_FILTER_INIT;
	uint64_t seconds;
	int r;

	if ((run->line->input && !strcmp(run->line->input, "-")) ||
	    (rest->n && !strcmp(rest->argv[0], "-")))
		return err_set(err, -EINVAL, ERR_USAGE,
			       "serve reads a recording more than once, so it cannot be a pipe");
	/* Read once, so that what is wrong with it is said now. */
	r = cmd_open_recording_of_any_event(run->ctx, run->line->input, rest, &filter, &needs, &rec,
					    err);
	/* Of other commands, a number without -p is a pid that they do not take. */
	if (r == -ENOENT && rest->n && !rest->argv[0][strspn(rest->argv[0], "0123456789")])
		err_hint(err, "rbpf serve -p %s", rest->argv[0]);
	if (!r)
		r = open_files(run, rec.path, err);
	view_filter_deinit(&filter);
	if (r)
		return r;
	utf8_sanitise(&run->title, rec.path, strlen(rec.path));
	run->waits = profile_has_waits(&rec.profile);
	run->wall = rec.profile.meta.mode && !strcmp(rec.profile.meta.mode, META_MODE_WALL);
	seconds = (recording_duration(&rec) + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	recording_close(&rec);
	stop_catch_signals();
	r = open_listener(run, err);
	if (!r)
		r = start_server(run, seconds ? seconds : 1, err);
	if (!r)
		r = announce(run, err);
	while (!r && !stop_signals()) {
		poll(NULL, 0, POLL_MS * 4);
		r = check_server(run, err);
	}
	return r;
}

/* ---- live ---- */

/* All targets have ended: what was sampled stays to be looked at. */
static int end_sampling(struct serving *run, struct err *err)
{
	struct profile_totals totals;
	int r = collector_finish(run->s.collector, &totals, err);

	if (!r)
		r = sampling_check_ruby(&run->s, err);
	if (r)
		return r;
	window_advance(run->window, clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC);
	run->ended = true;
	serve_snapshots_tell_seconds(&run->snapshots, true);
	cmd_info(run->ctx, "all processes have ended; what they did is served until Ctrl-C");
	return 0;
}

static int sample(struct serving *run, struct err *err)
{
	const struct id_holder ids = collector_ids(run->s.collector);
	struct collector_status st;
	int timeout_ms = POLL_MS;
	const int fd = serve_snapshots_fd(&run->snapshots, clock_ns(CLOCK_MONOTONIC), &timeout_ms);
	int r = sampling_poll(&run->s, timeout_ms, fd, err);

	if (r < 0)
		return r;
	if (window_collection_due(run->window) && window_collect(run->window, &ids))
		return err_oom(err);
	window_advance(run->window, clock_ns(CLOCK_MONOTONIC) - SETTLE_NS);
	serve_snapshots_tell_seconds(&run->snapshots, false);
	collector_status(run->s.collector, &st);
	return st.live || run->line->record.all_ruby ? 0 : end_sampling(run, err);
}

static void await_question(const struct serving *run)
{
	int timeout_ms = POLL_MS;
	struct pollfd fd = { .events = POLLIN };

	fd.fd = serve_snapshots_fd(&run->snapshots, clock_ns(CLOCK_MONOTONIC), &timeout_ms);
	poll(&fd, 1, timeout_ms);
}

static int loop(struct serving *run, struct err *err)
{
	int r = 0;

	while (!r && !stop_signals()) {
		if (run->ended)
			await_question(run);
		else
			r = sample(run, err);
		if (!r && serve_snapshots_poll(&run->snapshots, clock_ns(CLOCK_MONOTONIC)))
			r = lost_server(run, err);
	}
	sampling_pass_signal(&run->s);
	return r;
}

static void name_targets(struct serving *run)
{
	const struct record_options *rec = &run->line->record;

	if (rec->all_ruby)
		buf_addf(&run->title, "all Rubies of ");
	else if (rec->pids.n == 1)
		buf_addf(&run->title, "pid %d on ", (int)rec->pids.pids[0]);
	else if (rec->pids.n)
		buf_addf(&run->title, "%zu processes on ", rec->pids.n);
	if (rec->command) {
		utf8_sanitise(&run->title, rec->command[0], strlen(rec->command[0]));
		buf_addstr(&run->title, " on ");
	}
	utf8_sanitise(&run->title, run->names.nodename, strlen(run->names.nodename));
}

static int open_window(struct serving *run, struct err *err)
{
	const uint64_t keep = (run->line->keep_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	struct utsname names;
	struct profile_meta meta;
	const struct window_options opts = {
		.seconds = (uint32_t)keep + 2,
		.max_bytes = run->line->record.memory_limit / WINDOW_PART,
		.meta = &meta,
	};

	sampling_meta(&run->s, &names, &meta);
	return err_code(err, window_new(&opts, &run->window));
}

static int serve_live(struct serving *run, struct err *err)
{
	uint64_t start;
	int r;

	run->s.output = SAMPLING_OUTPUT_STDERR;
	run->waits = record_mode_waits(run->line->record.mode);
	run->wall = run->line->record.mode == RECORD_WALL;
	name_targets(run);
	/*
	 * Before sampling is begun: this process still may change the user of that one, and shares
	 * nothing yet.
	 */
	r = open_listener(run, err);
	if (!r)
		r = start_server(run, 0, err);
	if (!r)
		r = sampling_open(&run->s, &run->line->record, run->ctx, err);
	if (!r)
		r = open_window(run, err);
	if (!r)
		r = sampling_start(&run->s, window_sink(run->window), err);
	if (r)
		return r;
	start = clock_ns(CLOCK_MONOTONIC);
	run->snapshots.sampling = &run->s;
	run->snapshots.window = run->window;
	run->snapshots.channel = run->channel;
	run->snapshots.start_ns = start;
	run->snapshots.start_realtime_ns = clock_ns(CLOCK_REALTIME);
	window_set_start(run->window, start);
	run->s.seconds_since_ns = start;
	r = announce(run, err);
	return r ? r : loop(run, err);
}

/* ---- the command ---- */

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int serve_run(struct serve_line *line, const struct option_rest *rest, struct cmd_context *ctx,
	      struct err *err)
{
	struct serving run = { .line = line,
			       .ctx = ctx,
			       .listen = -1,
			       .server = -1,
			       .files = { -1, -1 },
			       .s = SAMPLING_INIT,
			       .snapshots = SERVE_SNAPSHOTS_INIT,
			       .channel = -1 };
	const int *fds[] = { &run.listen, &run.channel, &run.files[0], &run.files[1] };
	int r;

	_Static_assert(SERVE_RENDERS == 2, "all files are listed");
	uname(&run.names);
	r = rest ? serve_file(&run, rest, err) : serve_live(&run, err);
	serve_snapshots_deinit(&run.snapshots);
	end(run.server);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	sampling_close(&run.s);
	window_free(run.window);
	buf_deinit(&run.title);
	buf_deinit(&run.policy);
	return r;
}
