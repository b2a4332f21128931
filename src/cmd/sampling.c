/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/oom.h"
#include "base/pace.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/record.h"
#include "cmd/request_rules.h"
#include "engine/bpf_engine.h"
#include "engine/engine.h"
#include "engine/privileges.h"
#include "profile/profile.h"
#include "ruby/layout.h"
#include "sample/collector.h"
#include "target/process.h"
#include "target/remote.h"

#define YOUNG_NS       (2 * NSEC_PER_SEC)
#define YOUNG_PAUSE_NS (50 * NSEC_PER_MSEC)

static void warn(void *arg, const char *message)
{
	const struct sampling *s = arg;

	if (s->warn)
		s->warn(s->warn_arg, message);
	else
		cmd_warn(s->ctx, "%s", message);
}

static int new_collector(struct sampling *s, struct err *err)
{
	struct collector_options opts = {
		.engine = s->engine,
		.worker = &s->worker,
		.system_wide = s->opts->all_ruby,
		.selection = s->opts->all_ruby ? &s->selection : NULL,
		.memory_limit = s->opts->memory_limit,
		.requests = s->opts->requests ? &s->requests : NULL,
		.frequency = (uint32_t)s->opts->frequency,
		.max_cost = s->opts->max_cost,
		.program_only = !s->opts->arguments,
		.native = s->opts->native,
		.inlines = s->opts->inlines,
		.peers = s->opts->peers,
		.warn = warn,
		.warn_arg = s,
	};
	int r;

	r = ruby_sources_parse(s->ctx->layout_from, &opts.sources, err);
	if (!r)
		r = selection_init(&s->selection, s->opts->comm, s->opts->cgroup,
				   s->opts->container, s->opts->user, err);
	if (!r)
		r = err_code(err, collector_new(&opts, &s->collector));
	return r;
}

static int open_engine(struct sampling *s, struct err *err)
{
	const struct engine_options opts = {
		.frequency = (uint32_t)s->opts->frequency,
		.max_frames = (uint32_t)s->opts->max_stack,
		.ring_bytes = s->opts->ring_bytes,
		.follow = s->opts->children,
		.system_wide = s->opts->all_ruby,
		.native = s->opts->native,
		.kernel = s->opts->kernel,
		.waits = record_mode_waits(s->opts->mode),
		.wakers = s->opts->waker,
	};

	return bpf_engine_open(&opts, &s->engine, err);
}

/* Fork the program that is to be run, with its output where @s->output says. */
static int prepare_child(struct sampling *s, struct err *err)
{
	_cleanup_close_ int in = -1, out = -1, err_out = -1;
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r;

	if (s->output == SAMPLING_OUTPUT_OURS)
		return launch_prepare(s->opts->command, s->opts->as_root, &s->child, err);
	in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	err_out = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (null < 0 || in < 0 || out < 0 || err_out < 0)
		return err_set(err, -errno, ERR_RUNTIME, "cannot redirect the output of %s: %s",
			       s->opts->command[0], strerror(errno));
	/* It inherits them when it is forked; then they are what they were. */
	if (s->output == SAMPLING_OUTPUT_NONE) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDERR_FILENO);
	}
	dup2(STDERR_FILENO, STDOUT_FILENO);
	r = launch_prepare(s->opts->command, s->opts->as_root, &s->child, err);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err_out, STDERR_FILENO);
	return r;
}

/*
 * Whether it began so recently that it may not have executed a Ruby yet, or that the dynamic linker
 * still loads one: on a busy machine that takes longer than rbpf takes to begin.
 */
static bool is_young(pid_t pid)
{
	struct process_times times;

	return !process_times(pid, &times) && times.age_ns < YOUNG_NS;
}

static int add_pid(struct sampling *s, pid_t pid, struct err *err)
{
	int r;

	for (;;) {
		r = s->opts->children ? collector_add_family(s->collector, pid, err)
				      : collector_add(s->collector, pid, true, err);
		if (r != -ENOENT || !is_young(pid) || stop_signals())
			return r;
		*err = (struct err) { 0 };
		nanosleep(&(struct timespec) { .tv_nsec = YOUNG_PAUSE_NS }, NULL);
	}
}

static int add_targets(struct sampling *s, struct err *err)
{
	size_t i;
	int r = 0;

	if (s->opts->command) {
		r = prepare_child(s, err);
		if (!r)
			r = collector_add(s->collector, s->child.pid, false, err);
		return r;
	}
	if (s->opts->all_ruby)
		return collector_scan(s->collector, err);
	for (i = 0; i < s->opts->pids.n && !r; i++)
		r = add_pid(s, s->opts->pids.pids[i], err);
	return r;
}

int sampling_open(struct sampling *s, const struct record_options *opts, struct cmd_context *ctx,
		  struct err *err)
{
	/* There are two workers at most. */
	const struct file_worker_options worker = { .max_memory = opts->memory_limit / 2 };
	int r;

	s->opts = opts;
	s->ctx = ctx;
	snprintf(s->own_name, sizeof(s->own_name), "rbpf %s", ctx->command);
	file_worker_init(&s->worker, &worker);
	r = opts->requests
		    ? cmd_request_rules(opts->request_rules, opts->request_paths, &s->requests, err)
		    : 0;
	if (!r)
		r = cmd_check_environment(ctx, err);
	if (r)
		return r;
	stop_catch_signals();
	cmd_log_libbpf(ctx);
	remote_set_direct(!opts->guarded);
	r = cmd_prepare_worker(&s->worker, err);
	if (!r)
		r = open_engine(s, err);
	if (!r)
		r = new_collector(s, err);
	if (!r)
		r = add_targets(s, err);
	if (r)
		return r;
	oom_go_first(); /* the command to be run has been forked, and does not inherit it */
	privileges_reduce();
	return 0;
}

void sampling_close(struct sampling *s)
{
	collector_free(s->collector);
	engine_close(s->engine);
	file_worker_deinit(&s->worker);
	selection_deinit(&s->selection);
	launch_deinit(&s->child);
	request_rules_deinit(&s->requests);
}

void sampling_meta(const struct sampling *s, struct utsname *names, struct profile_meta *ret)
{
	*names = (struct utsname) { 0 };
	uname(names);
	*ret = (struct profile_meta) {
		.rbpf_version = (char *)RBPF_VERSION,
		.command = (char *)(s->opts->arguments ? s->ctx->command_line : s->own_name),
		.hostname = names->nodename,
		.kernel = names->release,
		.arch = names->machine,
		.mode = (char *)record_mode_name(s->opts->mode),
		.frequency = (uint32_t)s->opts->frequency,
		.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.start_realtime_ns = clock_ns(CLOCK_REALTIME),
		.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC),
	};
	ret->n_events = engine_events(s->engine, ret->events);
}

int sampling_start(struct sampling *s, struct sink *sink, struct err *err)
{
	int r = collector_start(s->collector, sink, err);

	if (!r && s->child.pid > 0)
		r = launch_go(&s->child, s->opts->command[0], err);
	return r;
}

/*
 * Let some time pass if processes begin and end all the time. Each of these records wakes rbpf,
 * which runs ahead of all others (base/priority.h), and so does each answer of a helper that it
 * asks about a process. Who is in the kernel then goes on until it may be preempted, and the
 * kernel's account of that is rbpf's: a Ruby that began 300 programs a second had 8 % less by it
 * than it had used. Together they take less, for most have ended by then; and what does live for
 * some milliseconds still does.
 */
static void pace_lives(struct sampling *s)
{
	const uint64_t lives = collector_lives(s->collector);
	uint64_t ns;

	if (lives == s->lives)
		return;
	s->lives = lives;
	ns = pace_use(&s->pace, clock_ns(CLOCK_MONOTONIC));
	if (ns && !stop_signals())
		nanosleep(&(struct timespec) { .tv_nsec = (long)ns }, NULL);
}

static int tell_waits(struct sampling *s, struct err *err)
{
	uint64_t seconds;

	if (!s->seconds_since_ns)
		return 0;
	seconds = (clock_ns(CLOCK_MONOTONIC) - s->seconds_since_ns) / NSEC_PER_SEC;
	if (seconds == s->seconds_told)
		return 0;
	s->seconds_told = seconds;
	return collector_tell_waits(s->collector, err);
}

int sampling_poll(struct sampling *s, int timeout_ms, int fd, struct err *err)
{
	struct pollfd pfds[] = { { .fd = engine_fd(s->engine), .events = POLLIN },
				 { .fd = file_worker_fd(&s->worker), .events = POLLIN },
				 { .fd = fd, .events = POLLIN } };
	int r;

	if (timeout_ms) /* there are no more */
		pace_lives(s);
	poll(pfds, ARRAY_SIZE(pfds), timeout_ms);
	r = tell_waits(s, err);
	if (!r)
		r = collector_poll(s->collector, err);
	/* Reaped at once, so that it does not look alive as a zombie. */
	if (r >= 0 && s->child.pid > 0 && !s->child_ended)
		s->child_ended = launch_ended(&s->child, false, &s->child_status);
	return r;
}

int sampling_check_ruby(const struct sampling *s, struct err *err)
{
	struct collector_status st;

	collector_status(s->collector, &st);
	if (st.rubies || st.live || s->opts->all_ruby)
		return 0;
	err_set(err, -ENOENT, ERR_TARGET, "%s",
		st.refused[0] ? st.refused : "no Ruby was found in the recorded processes");
	if (!st.refused[0] && st.too_short && !stop_signals())
		err_hint(err, "a Ruby that ends within about 50 ms may not be found");
	return -ENOENT;
}

void sampling_pass_signal(struct sampling *s)
{
	bool by_process;
	int sig = stop_signal(&by_process);

	/* Typed at the terminal, the signal reached the program by itself. */
	if (sig && by_process && s->child.pid > 0 && !s->child_ended)
		kill(s->child.pid, sig);
}
