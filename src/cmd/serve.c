/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serve: one process samples into a window, as top does, or has the recording; another, without
 * privileges, talks HTTP (src/serve/). That one asks for snapshots, recordings in memory. A short
 * one is written at once: after a fork, each page that this process changes would cost a page
 * fault, which takes longer. A long one is written by a fork of this process, which has the window
 * as it was then, while this one samples on.
 */
#include "cmd/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
#include "cmd/top_save.h"
#include "export/flame.h"
#include "page/html.h"
#include "profile/recorder.h"
#include "profile/window.h"
#include "sample/collector.h"
#include "serve/link.h"
#include "serve/server.h"
#include "ui/term.h"
#include "view/filter.h"
#include "worker/channel.h"

#define POLL_MS		100
#define SETTLE_NS	(200 * NSEC_PER_MSEC) /* until the last samples of a second have come */
#define WINDOW_PART	4	     /* one part in so many of --memlimit is the window's */
#define MAX_SNAPSHOT	(1ull << 30) /* bytes */
#define MAX_SNAPSHOT_NS (10 * NSEC_PER_SEC)
/* A short snapshot: some ms, in which rings fill. */
#define SHORT_SAMPLES	50000
#define SHORT_WINDOW	(16u << 20) /* bytes */

/* A snapshot that is being written. */
struct writing {
	pid_t pid; /* -1: none */
	int memfd; /* owned */
	struct serve_told told;
	uint64_t begun_ns;
};

struct serving {
	struct serve_line *line;
	struct cmd_context *ctx;
	struct buf title, policy;
	struct utsname names;
	struct serve_token token;
	int listen;
	pid_t server; /* -1: none */
	int files[SERVE_RENDERS];
	/* Live: */
	struct sampling s;
	struct window *window;
	int channel;
	struct writing writing;
	uint64_t start_ns, start_realtime_ns, told_seconds, not_before_ns;
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
	for (int i = 0; i < argc - 1; i++)
		buf_addf(&line, " %s", argv[i]);
	buf_addf(&line, " %s", ctx.recording);
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

	r = profile_open(path, &run->files[0], err);
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
	r = cmd_open_recording(run->ctx, run->line->input, rest, &filter, &needs, &rec, err);
	if (!r)
		r = open_files(run, rec.path, err);
	view_filter_deinit(&filter);
	if (r)
		return r;
	utf8_sanitise(&run->title, rec.path, strlen(rec.path));
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

/* ---- snapshots ---- */

static void tell(const struct serving *run, const struct serve_told *told, const int *fds, size_t n)
{
	const struct channel_part part = { told, sizeof(*told) };

	/* If it cannot be sent now, the server asks again. */
	channel_send(run->channel, &part, 1, fds, n);
}

static int write_snapshot(struct serving *run)
{
	const struct window_range range = { run->writing.told.from, run->writing.told.to };
	const struct recorder_options opts = { .memory = run->writing.memfd };
	struct profile_totals totals;
	struct err err = { 0 };

	return top_save_to(&run->s, run->window, range, run->start_ns, run->start_realtime_ns,
			   &opts, &totals, &err);
}

/* In a fork of this process. */
__attribute__((noreturn)) static void write_and_exit(struct serving *run)
{
	const struct rlimit most = { MAX_SNAPSHOT, MAX_SNAPSHOT };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	signal(SIGXFSZ, SIG_IGN);
	_exit(setrlimit(RLIMIT_FSIZE, &most) || write_snapshot(run) ? 1 : 0);
}

static void refuse_snapshot(struct serving *run, const struct serve_ask *asked, int code)
{
	const struct serve_told told = { .says = SERVE_SNAPSHOT, .result = code, .asked = *asked };

	tell(run, &told, NULL, 0);
}

/* Nobody can change what several renders read. */
static int reopen_snapshot(int memfd, int fds[SERVE_RENDERS])
{
	size_t i;

	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -errno;
	for (i = 0; i < SERVE_RENDERS; i++) {
		fds[i] = fd_reopen(memfd, O_RDONLY);
		if (fds[i] < 0)
			break;
	}
	if (i == SERVE_RENDERS)
		return 0;
	while (i)
		close(fds[--i]);
	return -EMFILE;
}

/* Send what was written, or that it was not. */
static void send_snapshot(struct serving *run, bool written, uint64_t now)
{
	struct writing *w = &run->writing;
	int fds[SERVE_RENDERS];

	/* The server cannot have this process write all the time. */
	run->not_before_ns = now + 2 * (now - w->begun_ns);
	w->told.result = written ? reopen_snapshot(w->memfd, fds) : -EFBIG;
	tell(run, &w->told, fds, w->told.result ? 0 : SERVE_RENDERS);
	for (size_t i = 0; !w->told.result && i < SERVE_RENDERS; i++)
		close(fds[i]);
	close(w->memfd);
	w->memfd = -1;
}

static bool is_short(const struct serving *run)
{
	const struct window_range range = { run->writing.told.from, run->writing.told.to };

	return window_bytes(run->window) <= SHORT_WINDOW &&
	       window_samples(run->window, range) <= SHORT_SAMPLES;
}

static void begin_snapshot(struct serving *run, const struct serve_ask *asked)
{
	const struct window_range has = window_seconds(run->window);
	struct writing *w = &run->writing;

	w->told = (struct serve_told) { .says = SERVE_SNAPSHOT, .asked = *asked };
	w->told.from = asked->from < has.from ? has.from : asked->from;
	w->told.to = asked->to > has.to ? has.to : asked->to;
	if (w->told.from >= w->told.to) {
		refuse_snapshot(run, asked, -ENODATA);
		return;
	}
	w->begun_ns = clock_ns(CLOCK_MONOTONIC);
	w->memfd = memfd_create("rbpf-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->memfd >= 0 && is_short(run)) {
		const bool written = !write_snapshot(run);

		send_snapshot(run, written, clock_ns(CLOCK_MONOTONIC));
		return;
	}
	w->pid = w->memfd < 0 ? -1 : fork();
	if (!w->pid)
		write_and_exit(run);
	if (w->pid < 0) {
		refuse_snapshot(run, asked, -errno);
		if (w->memfd >= 0)
			close(w->memfd);
		w->memfd = -1;
	}
}

static void end_snapshot(struct serving *run, uint64_t now)
{
	struct writing *w = &run->writing;
	int status;
	pid_t pid;

	if (w->pid > 0 && now > w->begun_ns + MAX_SNAPSHOT_NS)
		kill(w->pid, SIGKILL);
	pid = w->pid > 0 ? waitpid(w->pid, &status, WNOHANG) : 0;
	if (pid != w->pid)
		return;
	w->pid = -1;
	send_snapshot(run, !status, now);
}

static int answer_server(struct serving *run, uint64_t now, struct err *err)
{
	struct serve_ask asked;
	size_t len;
	int r;

	end_snapshot(run, now);
	if (run->writing.pid > 0 || now < run->not_before_ns)
		return 0;
	r = channel_receive(run->channel, &asked, sizeof(asked), &len, NULL, NULL, 0);
	if (r == -EAGAIN)
		return 0;
	if (r || len != sizeof(asked))
		return lost_server(run, err);
	begin_snapshot(run, &asked);
	return 0;
}

/* ---- live ---- */

static void tell_seconds(struct serving *run)
{
	const struct window_range has = window_seconds(run->window);
	const struct serve_told told = { .says = run->ended ? SERVE_ENDED : SERVE_SECONDS,
					 .from = has.from,
					 .to = has.to };

	if (has.to == run->told_seconds && !run->ended)
		return;
	run->told_seconds = has.to;
	tell(run, &told, NULL, 0);
}

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
	tell_seconds(run);
	cmd_info(run->ctx, "all processes have ended; what they did is served until Ctrl-C");
	return 0;
}

static int sample(struct serving *run, struct err *err)
{
	const struct id_holder ids = collector_ids(run->s.collector);
	struct collector_status st;
	int r = sampling_poll(&run->s, POLL_MS, run->channel, err);

	if (r < 0)
		return r;
	if (window_collection_due(run->window) && window_collect(run->window, &ids))
		return err_oom(err);
	window_advance(run->window, clock_ns(CLOCK_MONOTONIC) - SETTLE_NS);
	tell_seconds(run);
	collector_status(run->s.collector, &st);
	return st.live || run->line->record.all_ruby ? 0 : end_sampling(run, err);
}

static int loop(struct serving *run, struct err *err)
{
	struct pollfd channel = { .fd = run->channel, .events = POLLIN };
	int r = 0;

	while (!r && !stop_signals()) {
		if (run->ended)
			poll(&channel, 1, POLL_MS);
		else
			r = sample(run, err);
		if (!r)
			r = answer_server(run, clock_ns(CLOCK_MONOTONIC), err);
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
	int r;

	run->s.output = SAMPLING_OUTPUT_STDERR;
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
	run->start_ns = clock_ns(CLOCK_MONOTONIC);
	run->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	window_set_start(run->window, run->start_ns);
	run->s.seconds_since_ns = run->start_ns;
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
			       .channel = -1,
			       .writing = { .pid = -1, .memfd = -1 } };
	const int *fds[] = { &run.listen, &run.channel, &run.writing.memfd, &run.files[0],
			     &run.files[1] };
	int r;

	_Static_assert(SERVE_RENDERS == 2, "all files are listed");
	uname(&run.names);
	r = rest ? serve_file(&run, rest, err) : serve_live(&run, err);
	end(run.writing.pid);
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
