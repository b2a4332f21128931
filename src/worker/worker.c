/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

void worker_init(struct worker *w, const struct worker_options *opts)
{
	*w = (struct worker) { .opts = *opts, .pid = -1, .sock = -1, .memfd = -1 };
	if (!w->opts.max_cpu_ns)
		w->opts.max_cpu_ns = WORKER_MAX_CPU_NS;
	if (!w->opts.stall_ns)
		w->opts.stall_ns = WORKER_STALL_NS;
}

/* ---- processes ---- */

/* Forget those that are gone by now. Returns a place for one more, or NULL. */
static pid_t *reap_stuck(struct worker *w)
{
	pid_t *free_place = NULL;
	size_t i;

	for (i = 0; i < WORKER_MAX_STUCK; i++) {
		if (w->stuck[i] && waitpid(w->stuck[i], NULL, WNOHANG))
			w->stuck[i] = 0;
		if (!w->stuck[i])
			free_place = &w->stuck[i];
	}
	return free_place;
}

static uint64_t cpu_time(const struct worker *w)
{
	clockid_t clock;

	/* The process was not waited for: the pid is its own. */
	return clock_getcpuclockid(w->pid, &clock) ? 0 : clock_ns(clock);
}

/* Kill the process. It may take a moment, or for ever, until it is gone. */
static void give_up(struct worker *w)
{
	pid_t *place = reap_stuck(w);

	if (w->pid > 0) {
		w->ended_ns += cpu_time(w);
		kill(w->pid, SIGKILL);
		if (!waitpid(w->pid, NULL, WNOHANG) && place)
			*place = w->pid;
	}
	cleanup_close(&w->sock);
	cleanup_close(&w->memfd);
	w->pid = w->sock = w->memfd = -1;
	w->busy = false;
}

void worker_deinit(struct worker *w)
{
	if (w->pid > 0)
		give_up(w);
	reap_stuck(w);
}

static int spawn(struct worker *w)
{
	_cleanup_close_ int memfd = memfd_create("rbpf-answers", MFD_CLOEXEC);
	int socks[2], r;

	if (memfd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -errno;
	r = w->opts.spawn(w->opts.spawn_arg, socks[1], memfd, &w->pid);
	close(socks[1]);
	if (r) {
		close(socks[0]);
		return r;
	}
	w->sock = socks[0];
	w->memfd = take_fd(&memfd);
	return 0;
}

int worker_prepare(struct worker *w)
{
	if (w->pid > 0 && cpu_time(w) > WORKER_LIFE_NS)
		give_up(w);
	if (w->pid > 0)
		return 0;
	/* All of them hang: another one would, too. */
	if (!reap_stuck(w))
		return -EAGAIN;
	return spawn(w);
}

/* ---- asking ---- */

static size_t put_roots(struct worker *w, const struct worker_call *call, char *to, size_t size)
{
	struct statx st;

	w->n_roots = 0;
	if (!call->path || !w->opts.open)
		return 0;
	snprintf(w->root, sizeof(w->root), "/proc/%d/root", (int)call->pid);
	w->roots[0] = w->root;
	w->roots[1] = "";
	w->n_roots = 2;
	w->owner = io_stat(call->fd, &st) ? (uid_t)-1 : st.stx_uid;
	snprintf(to, size, "%s", w->root);
	to[strlen(w->root) + 1] = '\0';
	return strlen(w->root) + 2;
}

static int send_call(struct worker *w, const struct worker_call *call)
{
	struct worker_request request = { .op = call->op,
					  .path_size = call->path ? (uint32_t)strlen(call->path) + 1
								  : 0,
					  .args_size = (uint32_t)call->args_size,
					  .number = call->number,
					  .other = call->other };
	char roots[sizeof(w->root) + 1];
	struct channel_part parts[] = { { &request, sizeof(request) },
					{ call->args, call->args_size },
					{ call->path, request.path_size },
					{ roots, 0 } };

	request.roots_size = (uint32_t)put_roots(w, call, roots, sizeof(roots));
	parts[3].size = request.roots_size;
	return channel_send(w->sock, parts, 4, &call->fd, call->fd >= 0);
}

enum worker_failure worker_send(struct worker *w, const struct worker_call *call)
{
	if (call->args_size + (call->path ? strlen(call->path) : 0) + 256 > CHANNEL_MAX_BYTES)
		return WORKER_TOO_MUCH;
	if (worker_prepare(w))
		return WORKER_UNAVAILABLE;
	/* One that ended since its last answer is not this file's fault. */
	if (send_call(w, call)) {
		give_up(w);
		if (worker_prepare(w))
			return WORKER_UNAVAILABLE;
		if (send_call(w, call)) {
			give_up(w);
			return WORKER_CRASHED;
		}
	}
	w->busy = true;
	w->n_opens = 0;
	w->max_answer = call->max_answer;
	w->max_cpu_ns = call->max_cpu_ns ? call->max_cpu_ns : w->opts.max_cpu_ns;
	w->cpu_ns = w->seen_ns = cpu_time(w);
	w->seen_at_ns = clock_ns(CLOCK_MONOTONIC);
	return WORKER_OK;
}

uint64_t worker_cpu_ns(const struct worker *w)
{
	return w->ended_ns + (w->pid > 0 ? cpu_time(w) : 0);
}

void worker_abandon(struct worker *w)
{
	if (w->busy)
		give_up(w);
}

/* ---- answers ---- */

/* Room for any message of the worker. */
struct incoming {
	struct worker_message m;
	char bytes[CHANNEL_MAX_INLINE];
};

/*
 * Take a large answer. The worker may write to it meanwhile: what is copied here is checked later.
 */
static enum worker_failure copy_shared(struct worker *w, uint64_t size, void **ret)
{
	_cleanup_free_ char *data = malloc(size);
	uint64_t done = 0;
	ssize_t n;

	if (!data)
		return WORKER_TOO_MUCH;
	while (done < size) {
		n = pread(w->memfd, data + done, size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return WORKER_LIED;
		done += (uint64_t)n;
	}
	if (ftruncate(w->memfd, 0))
		return WORKER_LIED;
	*ret = take_ptr(data);
	return WORKER_OK;
}

static enum worker_failure take_answer(struct worker *w, const struct incoming *in,
				       struct worker_answer *ret)
{
	const uint64_t size = in->m.shared_size ? in->m.shared_size : in->m.inline_size;
	enum worker_failure why;
	void *data = NULL;

	if (in->m.result > 0 || (in->m.shared_size && in->m.inline_size))
		return WORKER_LIED;
	/* These say something of the worker, and nothing that it may say of a file. */
	if (in->m.result == -EAGAIN || in->m.result == -EBUSY)
		return WORKER_LIED;
	if (size > w->max_answer || in->m.result == -ENOMEM)
		return WORKER_TOO_MUCH;
	if (in->m.shared_size) {
		why = copy_shared(w, size, &data);
		if (why)
			return why;
	} else if (size) {
		data = malloc(size);
		if (!data)
			return WORKER_TOO_MUCH;
		memcpy(data, in->bytes, size);
	}
	*ret = (struct worker_answer) { in->m.result, data, size };
	w->busy = false;
	return WORKER_OK;
}

/* Another file, which the worker thinks is the debug file of the one it reads. */
static enum worker_failure open_file(struct worker *w, const struct incoming *in)
{
	struct worker_opened opened = { .result = -ENOENT };
	const struct channel_part part = { &opened, sizeof(opened) };
	_cleanup_close_ int fd = -1;

	if (in->m.root >= w->n_roots || ++w->n_opens > WORKER_MAX_OPENS || !in->m.inline_size ||
	    memchr(in->bytes, '\0', in->m.inline_size) != in->bytes + in->m.inline_size - 1)
		return WORKER_LIED;
	fd = w->opts.open(w->opts.open_arg, w->owner, w->roots[in->m.root], in->bytes, opened.real,
			  sizeof(opened.real));
	opened.result = fd < 0 ? fd : 0;
	return channel_send(w->sock, &part, 1, &fd, fd >= 0) ? WORKER_CRASHED : WORKER_OK;
}

static enum worker_failure take_message(struct worker *w, struct worker_answer *ret)
{
	struct incoming in;
	size_t len;
	int r;

	r = channel_receive(w->sock, &in, sizeof(in), &len, NULL, NULL, 0);
	if (r == -EAGAIN)
		return WORKER_OK;
	if (r)
		return r == -EPROTO ? WORKER_LIED : WORKER_CRASHED;
	if (len < sizeof(in.m) || len - sizeof(in.m) != in.m.inline_size)
		return WORKER_LIED;
	switch (in.m.says) {
	case WORKER_ANSWER:
		return take_answer(w, &in, ret);
	case WORKER_OPEN:
		return open_file(w, &in);
	default:
		return WORKER_LIED;
	}
}

/* Whether it waits for a CPU: then that nothing happens says nothing. */
static bool is_runnable(const struct worker *w)
{
	char path[32], text[256], *state;
	_cleanup_fclose_ FILE *file = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)w->pid);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'R';
}

static enum worker_failure check_time(struct worker *w)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t cpu = cpu_time(w);

	if (cpu < w->cpu_ns) /* it is gone, and its socket will say so */
		cpu = w->seen_ns;
	if (cpu - w->cpu_ns > w->max_cpu_ns)
		return WORKER_TOO_LONG;
	if (cpu != w->seen_ns || (now - w->seen_at_ns > w->opts.stall_ns && is_runnable(w))) {
		w->seen_ns = cpu;
		w->seen_at_ns = now;
	}
	return now - w->seen_at_ns > w->opts.stall_ns ? WORKER_HUNG : WORKER_OK;
}

int worker_receive(struct worker *w, int timeout, struct worker_answer *ret,
		   enum worker_failure *why)
{
	struct pollfd pfd = { .fd = w->sock, .events = POLLIN };

	poll(&pfd, 1, timeout);
	*why = pfd.revents ? take_message(w, ret) : check_time(w);
	if (*why) {
		give_up(w);
		return -EIO;
	}
	return w->busy ? -EAGAIN : 0;
}
