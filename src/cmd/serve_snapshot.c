/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/serve_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir_entry.h"
#include "base/err.h"
#include "cmd/top_save.h"
#include "profile/recorder.h"
#include "profile/window.h"
#include "worker/channel.h"

#define MAX_SNAPSHOT	(1ull << 30) /* bytes */
#define MAX_SNAPSHOT_NS (10 * NSEC_PER_SEC)
/* A short snapshot: some ms, in which rings fill. */
#define SHORT_SAMPLES	50000
#define SHORT_WINDOW	(16u << 20) /* bytes */

/* Who wrote has been waited for. */
static void forget_writer(struct serve_snapshots *s)
{
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->pid = s->pidfd = -1;
}

void serve_snapshots_deinit(struct serve_snapshots *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->memfd >= 0)
		close(s->memfd);
	s->memfd = -1;
	forget_writer(s);
}

static void tell(const struct serve_snapshots *s, const struct serve_told *told, const int *fds,
		 size_t n)
{
	const struct channel_part part = { told, sizeof(*told) };

	/* If it cannot be sent now, the server asks again. */
	channel_send(s->channel, &part, 1, fds, n);
}

void serve_snapshots_tell_seconds(struct serve_snapshots *s, bool ended)
{
	const struct window_range has = window_seconds(s->window);
	const struct serve_told told = { .says = ended ? SERVE_ENDED : SERVE_SECONDS,
					 .from = has.from,
					 .to = has.to };

	if (has.to == s->told_seconds && !ended)
		return;
	s->told_seconds = has.to;
	tell(s, &told, NULL, 0);
}

static int write_snapshot(struct serve_snapshots *s)
{
	const struct window_range range = { s->told.from, s->told.to };
	const struct recorder_options opts = { .memory = s->memfd };
	struct profile_totals totals;
	struct err err = { 0 };

	return top_save_to(s->sampling, s->window, range, s->start_ns, s->start_realtime_ns, &opts,
			   &totals, &err);
}

/* In a fork of this process. */
__attribute__((noreturn)) static void write_and_exit(struct serve_snapshots *s)
{
	const struct rlimit most = { MAX_SNAPSHOT, MAX_SNAPSHOT };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	signal(SIGXFSZ, SIG_IGN);
	_exit(setrlimit(RLIMIT_FSIZE, &most) || write_snapshot(s) ? 1 : 0);
}

static void refuse_snapshot(struct serve_snapshots *s, const struct serve_ask *asked, int code)
{
	const struct serve_told told = { .says = SERVE_SNAPSHOT, .result = code, .asked = *asked };

	tell(s, &told, NULL, 0);
}

/* Nobody can change what several renders read. */
static int reopen_snapshot(int memfd, int fds[SERVE_RENDERS])
{
	size_t i;
	int r;

	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -errno;
	for (i = 0; i < SERVE_RENDERS; i++) {
		fds[i] = fd_reopen(memfd, O_RDONLY);
		if (fds[i] < 0)
			break;
	}
	if (i == SERVE_RENDERS)
		return 0;
	r = fds[i];
	while (i)
		close(fds[--i]);
	return r;
}

/* Send what was written, or that it was not. */
static void send_snapshot(struct serve_snapshots *s, bool written, uint64_t now)
{
	int fds[SERVE_RENDERS];

	/* The server cannot have this process write all the time. */
	s->not_before_ns = now + 2 * (now - s->begun_ns);
	s->told.result = written ? reopen_snapshot(s->memfd, fds) : -EFBIG;
	tell(s, &s->told, fds, s->told.result ? 0 : SERVE_RENDERS);
	for (size_t i = 0; !s->told.result && i < SERVE_RENDERS; i++)
		close(fds[i]);
	close(s->memfd);
	s->memfd = -1;
}

static bool is_short(const struct serve_snapshots *s)
{
	const struct window_range range = { s->told.from, s->told.to };

	return window_bytes(s->window) <= SHORT_WINDOW &&
	       window_samples(s->window, range) <= SHORT_SAMPLES;
}

static void begin_snapshot(struct serve_snapshots *s, const struct serve_ask *asked)
{
	const struct window_range has = window_seconds(s->window);

	s->told = (struct serve_told) { .says = SERVE_SNAPSHOT, .asked = *asked };
	s->told.from = asked->from < has.from ? has.from : asked->from;
	s->told.to = asked->to > has.to ? has.to : asked->to;
	if (s->told.from >= s->told.to) {
		refuse_snapshot(s, asked, -ENODATA);
		return;
	}
	s->begun_ns = clock_ns(CLOCK_MONOTONIC);
	s->memfd = memfd_create("rbpf-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->memfd >= 0 && is_short(s)) {
		const bool written = !write_snapshot(s);

		send_snapshot(s, written, clock_ns(CLOCK_MONOTONIC));
		return;
	}
	s->pid = s->memfd < 0 ? -1 : fork();
	if (!s->pid)
		write_and_exit(s);
	if (s->pid > 0)
		s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pid < 0) {
		refuse_snapshot(s, asked, -errno);
		if (s->memfd >= 0)
			close(s->memfd);
		s->memfd = -1;
	}
}

static void end_snapshot(struct serve_snapshots *s, uint64_t now)
{
	int status;
	pid_t pid;

	if (s->pid > 0 && now > s->begun_ns + MAX_SNAPSHOT_NS)
		kill(s->pid, SIGKILL);
	pid = s->pid > 0 ? waitpid(s->pid, &status, WNOHANG) : 0;
	if (pid != s->pid)
		return;
	forget_writer(s);
	send_snapshot(s, !status, now);
}

int serve_snapshots_poll(struct serve_snapshots *s, uint64_t now)
{
	struct serve_ask asked;
	size_t len;
	int r;

	end_snapshot(s, now);
	if (s->pid > 0 || now < s->not_before_ns)
		return 0;
	r = channel_receive(s->channel, &asked, sizeof(asked), &len, NULL, NULL, 0);
	if (r == -EAGAIN)
		return 0;
	if (r || len != sizeof(asked))
		return r ? r : -EPROTO;
	begin_snapshot(s, &asked);
	return 0;
}

int serve_snapshots_fd(const struct serve_snapshots *s, uint64_t now, int *timeout_ms)
{
	uint64_t left;

	if (s->pid > 0)
		return s->pidfd;
	if (now >= s->not_before_ns)
		return s->channel;
	left = (s->not_before_ns - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	if (left < (uint64_t)*timeout_ms)
		*timeout_ms = (int)left;
	return -1;
}
