/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the process that samples answers to the one that serves: here the test is the latter, at the
 * other end of the channel.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/record.h"
#include "cmd/sampling.h"
#include "cmd/serve_snapshot.h"
#include "profile/reader.h"
#include "profile/window.h"
#include "sample/collector_state.h"
#include "support/scripted_engine.h"
#include "support/sink_define.h"
#include "worker/channel.h"

#define START	NSEC_PER_SEC /* CLOCK_MONOTONIC: of the window */
#define SECONDS 10	     /* that have samples, one each if a test does not say otherwise */

static struct {
	struct scripted_engine engine;
	struct cmd_context ctx;
	struct record_options opts;
	struct sampling sampling;
	struct serve_snapshots s;
	int server; /* the other end */
} f;

static void add_samples(uint64_t second, size_t n)
{
	struct sink *sink = window_sink(f.s.window);
	const struct profile_frame frame = { .kind = FRAME_RUBY,
					     .name = string_of(sink, "foo"),
					     .module = PROFILE_NONE };
	struct profile_sample sample = { .ts = START + second * NSEC_PER_SEC + NSEC_PER_SEC / 2,
					 .value = 10000000 };
	uint32_t id;

	cr_assert_eq(sink_frame(sink, &frame, &id), 0);
	cr_assert_eq(sink_stack(sink, 0, id, &sample.stack), 0);
	while (n--)
		cr_assert_eq(sink_sample(sink, &sample), 0);
}

static void setup(void)
{
	const struct profile_process process = { .pid = 7, .parent = PROFILE_NONE };
	struct profile_meta meta = { .start_monotonic_ns = START };
	const struct window_options opts = { .seconds = 60, .max_bytes = 64u << 20, .meta = &meta };
	int socks[2];
	uint32_t id;

	scripted_engine_init(&f.engine);
	meta.n_events = engine_events(&f.engine.engine, meta.events);
	f.ctx.command_line = "rbpf serve";
	f.sampling = (struct sampling) { .opts = &f.opts, .ctx = &f.ctx };
	f.sampling.engine = &f.engine.engine;
	f.opts.frequency = 99;
	cr_assert_eq(collector_new(&(struct collector_options) { .engine = f.sampling.engine,
								 .frequency = 99 },
				   &f.sampling.collector),
		     0);
	f.s = (struct serve_snapshots)SERVE_SNAPSHOTS_INIT;
	f.s.sampling = &f.sampling;
	cr_assert_eq(window_new(&opts, &f.s.window), 0);
	cr_assert_eq(sink_process(window_sink(f.s.window), &process, &id), 0);
	cr_assert_eq(sink_thread(window_sink(f.s.window), id, 7, 0, &id), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	f.s.channel = socks[0];
	f.server = socks[1];
	f.s.start_ns = START;
	for (uint64_t second = 0; second < SECONDS; second++)
		add_samples(second, 1);
	window_advance(f.s.window, START + SECONDS * NSEC_PER_SEC);
}

static void teardown(void)
{
	serve_snapshots_deinit(&f.s);
	serve_snapshots_deinit(&f.s);
	cr_expect_eq(f.s.pid, -1);
	cr_expect_eq(f.s.memfd, -1);
	close(f.s.channel);
	if (f.server >= 0)
		close(f.server);
	window_free(f.s.window);
	collector_free(f.sampling.collector);
	engine_close(&f.engine.engine);
}

/* ---- the server ---- */

static void ask(uint64_t from, uint64_t to)
{
	const struct serve_ask asked = { from, to };
	const struct channel_part part = { &asked, sizeof(asked) };

	cr_assert_eq(channel_send(f.server, &part, 1, NULL, 0), 0);
}

/* What it was told next, into @ret, with descriptors if @fds is not NULL; false: nothing. */
static bool hear(struct serve_told *ret, int *fds)
{
	size_t len, n = 0;
	int r = channel_receive(f.server, ret, sizeof(*ret), &len, fds, &n, 0);

	if (r == -EAGAIN)
		return false;
	cr_assert_eq(r, 0);
	cr_assert_eq(len, sizeof(*ret));
	cr_assert_eq(n, ret->says == SERVE_SNAPSHOT && !ret->result ? SERVE_RENDERS : 0);
	return true;
}

static uint64_t samples_in(int fd)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	char path[32];
	uint64_t n;

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	cr_assert_eq(profile_read(path, NULL, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(report.complete);
	cr_expect_eq(p.totals.lowest_hz, f.sampling.collector->totals.lowest_hz);
	n = p.totals.samples;
	profile_deinit(&p);
	close(fd);
	return n;
}

/* The answer is a snapshot of these seconds, with so many samples. */
static void expect_snapshot(uint64_t from, uint64_t to, uint64_t samples)
{
	int fds[CHANNEL_MAX_FDS];
	struct serve_told told;

	cr_assert(hear(&told, fds), "there is no answer");
	cr_assert_eq(told.says, SERVE_SNAPSHOT);
	cr_assert_eq(told.result, 0, "%d", told.result);
	cr_expect_eq(told.from, from);
	cr_expect_eq(told.to, to);
	for (size_t i = 0; i < SERVE_RENDERS; i++) {
		cr_expect_eq(write(fds[i], "x", 1), -1, "it cannot be changed");
		cr_expect_eq(samples_in(fds[i]), samples, "descriptor %zu", i);
	}
}

/* ---- the tests ---- */

Test(serve_snapshot, seconds_are_told_when_there_is_another, .init = setup, .fini = teardown)
{
	struct serve_told told;

	serve_snapshots_tell_seconds(&f.s, false);
	cr_assert(hear(&told, NULL));
	cr_expect_eq(told.says, SERVE_SECONDS);
	cr_expect_eq(told.from, 0);
	cr_expect_eq(told.to, SECONDS);
	serve_snapshots_tell_seconds(&f.s, false);
	cr_expect_not(hear(&told, NULL), "it knows that");
	window_advance(f.s.window, START + (SECONDS + 1) * NSEC_PER_SEC);
	serve_snapshots_tell_seconds(&f.s, false);
	cr_assert(hear(&told, NULL));
	cr_expect_eq(told.to, SECONDS + 1);
	serve_snapshots_tell_seconds(&f.s, true);
	cr_assert(hear(&told, NULL), "that they end is told in any case");
	cr_expect_eq(told.says, SERVE_ENDED);
	cr_expect_eq(told.to, SECONDS + 1);
}

Test(serve_snapshot, one_with_fewer_samples_says_so, .init = setup, .fini = teardown)
{
	f.sampling.collector->totals.lowest_hz = 49;
	ask(2, 5);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	expect_snapshot(2, 5, 3);
}

Test(serve_snapshot, a_short_one_is_written_at_once, .init = setup, .fini = teardown)
{
	ask(2, 5);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	cr_expect_eq(f.s.pid, -1, "nobody else writes it");
	expect_snapshot(2, 5, 3);
}

Test(serve_snapshot, seconds_that_there_are, .init = setup, .fini = teardown)
{
	struct serve_told told;

	ask(7, 1000);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	expect_snapshot(7, SECONDS, SECONDS - 7);
	ask(SECONDS, SECONDS + 5);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	cr_assert(hear(&told, NULL));
	cr_expect_eq(told.says, SERVE_SNAPSHOT);
	cr_expect_eq(told.result, -ENODATA);
	cr_expect_eq(told.asked.from, SECONDS);
	cr_expect_eq(told.asked.to, SECONDS + 5);
}

Test(serve_snapshot, not_all_the_time, .init = setup, .fini = teardown)
{
	struct serve_told told;
	uint64_t until;

	ask(0, 1);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	expect_snapshot(0, 1, 1);
	until = f.s.not_before_ns;
	ask(0, 2);
	cr_assert_eq(serve_snapshots_poll(&f.s, until - 1), 0);
	cr_expect_not(hear(&told, NULL), "it has to wait");
	cr_assert_eq(serve_snapshots_poll(&f.s, until), 0);
	expect_snapshot(0, 2, 2);
}

Test(serve_snapshot, a_long_one_is_written_by_a_fork, .init = setup, .fini = teardown)
{
	const size_t many = 60000;
	struct serve_told told;

	add_samples(SECONDS, many);
	window_advance(f.s.window, START + (SECONDS + 1) * NSEC_PER_SEC);
	ask(0, SECONDS + 1);
	ask(0, 1);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	cr_assert_gt(f.s.pid, 0);
	/* What comes later is not of it. */
	add_samples(SECONDS + 1, 1);
	for (int i = 0; i < 2000 && f.s.pid > 0; i++) {
		cr_assert_not(hear(&told, NULL));
		poll(NULL, 0, 5);
		cr_assert_eq(serve_snapshots_poll(&f.s, clock_ns(CLOCK_MONOTONIC)), 0);
	}
	expect_snapshot(0, SECONDS + 1, SECONDS + many);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	expect_snapshot(0, 1, 1);
}

static bool is_ready(uint64_t now)
{
	int timeout_ms = 1000;
	struct pollfd fd = { .events = POLLIN };

	fd.fd = serve_snapshots_fd(&f.s, now, &timeout_ms);
	return poll(&fd, 1, 0) > 0;
}

/* Who waits for what is ready does not turn round and round until the next one may be begun. */
Test(serve_snapshot, a_question_that_has_to_wait, .init = setup, .fini = teardown)
{
	int timeout_ms = 1000;

	ask(0, SECONDS);
	cr_expect(is_ready(f.s.not_before_ns));
	f.s.not_before_ns = START;
	cr_expect_not(is_ready(START - 1));
	cr_expect_eq(serve_snapshots_fd(&f.s, START - 70 * NSEC_PER_MSEC + 1, &timeout_ms), -1);
	cr_expect_eq(timeout_ms, 70);
	timeout_ms = 50;
	serve_snapshots_fd(&f.s, START - 70 * NSEC_PER_MSEC, &timeout_ms);
	cr_expect_eq(timeout_ms, 50);
	cr_expect(is_ready(START));
}

Test(serve_snapshot, a_question_while_another_is_answered, .init = setup, .fini = teardown)
{
	siginfo_t info;

	add_samples(SECONDS, 60000);
	window_advance(f.s.window, START + (SECONDS + 1) * NSEC_PER_SEC);
	ask(0, SECONDS + 1);
	ask(0, SECONDS + 1);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	cr_assert_gt(f.s.pid, 0);
	cr_assert_eq(kill(f.s.pid, SIGSTOP), 0);
	cr_assert_eq(waitid(P_PID, (id_t)f.s.pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	if (info.si_code == CLD_STOPPED)
		cr_expect_not(is_ready(f.s.not_before_ns));
	cr_assert_eq(kill(f.s.pid, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)f.s.pid, &info, WEXITED | WNOWAIT), 0);
	cr_expect(is_ready(f.s.not_before_ns), "it has ended");
}

Test(serve_snapshot, one_that_takes_too_long, .init = setup, .fini = teardown)
{
	struct serve_told told;
	siginfo_t info;

	add_samples(SECONDS, 60000);
	window_advance(f.s.window, START + (SECONDS + 1) * NSEC_PER_SEC);
	ask(0, SECONDS + 1);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	cr_assert_gt(f.s.pid, 0);
	/* Stopped, it does not end by itself. */
	cr_assert_eq(kill(f.s.pid, SIGSTOP), 0);
	cr_assert_eq(waitid(P_PID, (id_t)f.s.pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	if (info.si_code != CLD_STOPPED)
		return; /* it was faster */
	for (int i = 0; i < 2000 && f.s.pid > 0; i++) {
		cr_assert_eq(serve_snapshots_poll(&f.s, f.s.begun_ns + 60 * NSEC_PER_SEC), 0);
		poll(NULL, 0, 1);
	}
	cr_assert(hear(&told, NULL));
	cr_expect_eq(told.says, SERVE_SNAPSHOT);
	cr_expect_eq(told.result, -EFBIG);
}

Test(serve_snapshot, who_still_writes_at_the_end, .init = setup)
{
	pid_t pid;

	add_samples(SECONDS, 60000);
	window_advance(f.s.window, START + (SECONDS + 1) * NSEC_PER_SEC);
	ask(0, SECONDS + 1);
	cr_assert_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), 0);
	pid = f.s.pid;
	cr_assert_gt(pid, 0);
	teardown();
	cr_expect_eq(kill(pid, 0), -1, "it is gone");
}

Test(serve_snapshot, a_server_that_is_gone, .init = setup, .fini = teardown)
{
	close(f.server);
	f.server = -1;
	cr_expect_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), -EPIPE);
	serve_snapshots_tell_seconds(&f.s, true);
}

Test(serve_snapshot, a_question_that_is_none, .init = setup, .fini = teardown)
{
	const uint64_t half = 1;
	const struct channel_part part = { &half, sizeof(half) };

	cr_assert_eq(channel_send(f.server, &part, 1, NULL, 0), 0);
	cr_expect_eq(serve_snapshots_poll(&f.s, f.s.not_before_ns), -EPROTO);
}
