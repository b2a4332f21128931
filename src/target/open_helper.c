/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/open_helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/oom.h"
#include "base/priority.h"
#include "base/stop.h"
#include "target/process.h"
#include "target/remote.h"
#include "target/target_file.h"

/* A request as it is sent: the strings behind it. */
struct wire {
	struct target_file_request req; /* the pointers in it mean nothing */
	char root[OPEN_HELPER_MAX_ROOT];
	char path[OPEN_HELPER_MAX_PATH];
};

/* ---- descriptors in messages ---- */

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* @result, and what it is if it is a descriptor. */
static void send_result(int sock, int result)
{
	struct iovec iov = { .iov_base = &result, .iov_len = sizeof(result) };
	union control control = { .bytes = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (result >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &result, sizeof(result));
	}
	sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* Returns the descriptor, the error that was sent, or -EPIPE. */
static int receive_result(int sock)
{
	int result, fd;
	struct iovec iov = { .iov_base = &result, .iov_len = sizeof(result) };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != sizeof(result))
		return -EPIPE;
	if (result < 0)
		return result;
	c = CMSG_FIRSTHDR(&msg);
	/* None was sent, or there was no room for one more here. */
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EMFILE;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* ---- the process ---- */

/*
 * It keeps no file of rbpf's open, so that nothing goes on because of it when rbpf has ended, and
 * gets no signal but SIGKILL.
 */
_Noreturn static void serve(int sock, open_helper_fn *open_it)
{
	struct wire wire;
	sigset_t all;
	int result;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "rbpf-open");
	priority_set_helper();
	oom_go_first();
	if (sock > 0)
		syscall(SYS_close_range, 0, sock - 1, 0);
	syscall(SYS_close_range, sock + 1, ~0u, 0);
	while (recv(sock, &wire, sizeof(wire), 0) == sizeof(wire)) {
		wire.req.root = wire.root;
		wire.req.path = wire.path;
		result = open_it(&wire.req);
		send_result(sock, result);
		if (result >= 0)
			close(result);
	}
	_exit(0);
}

static int start(struct open_helper *p)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -errno;
	pid = fork();
	if (!pid)
		serve(socks[1], p->open);
	close(socks[1]);
	if (pid < 0) {
		close(socks[0]);
		return -EAGAIN;
	}
	p->pid = pid;
	p->sock = socks[0];
	p->owner = getpid();
	return 0;
}

/* Let go of the process. Returns its pid if it hangs, or 0. */
static pid_t stop(struct open_helper *p)
{
	pid_t pid = p->pid;

	close(p->sock);
	kill(pid, SIGKILL);
	p->pid = 0;
	return waitpid(pid, NULL, WNOHANG) ? 0 : pid;
}

void open_helper_deinit(struct open_helper *p)
{
	if (p->pid && p->owner == getpid())
		stop(p);
	*p = (struct open_helper)OPEN_HELPER_INIT(p->open);
}

/* ---- roots that hang ---- */

static void forget_first(struct open_helper *p)
{
	memmove(&p->hung[0], &p->hung[1], --p->n_hung * sizeof(p->hung[0]));
}

static bool hangs(struct open_helper *p, const char *root)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t i;

	while (p->n_hung && now >= p->hung[0].until_ns)
		forget_first(p);
	for (i = 0; i < p->n_hung; i++)
		if (!strcmp(p->hung[i].root, root))
			return true;
	return false;
}

static void note_hung(struct open_helper *p, const char *root)
{
	struct open_helper_hung *h;

	if (p->n_hung == OPEN_HELPER_MAX_HUNG)
		forget_first(p);
	h = &p->hung[p->n_hung++];
	snprintf(h->root, sizeof(h->root), "%s", root);
	h->until_ns = clock_ns(CLOCK_MONOTONIC) + OPEN_HELPER_HUNG_NS;
}

/* ---- opening ---- */

/* Who is waited for. */
struct waiting {
	const char *root;
	pid_t pid;     /* whose root that is */
	bool is_whole; /* one that hangs here hangs for all that is read of the process */
};

/* A process that waits for a CPU does not hang: the machine is busy. */
static int wait_for(struct open_helper *p, const struct waiting *w)
{
	const uint64_t slice_ns = OPEN_HELPER_SLICE_MS * NSEC_PER_MSEC;
	struct pollfd poll_fd = { .fd = p->sock, .events = POLLIN };
	uint64_t slept = 0, limit = slice_ns;

	while (slept < limit && !stop_overdue()) {
		if (poll(&poll_fd, 1, OPEN_HELPER_SLICE_MS) > 0) {
			remote_note_wait(w->pid, slept, 0, false);
			return receive_result(p->sock);
		}
		slept = thread_state(p->pid, p->pid) == 'R' ? 0 : slept + slice_ns;
		if (slept == slice_ns)
			limit = remote_patience(w->pid);
	}
	if (slept >= limit)
		note_hung(p, w->root);
	remote_note_wait(w->pid, slept, stop(p), slept >= limit && w->is_whole);
	return -ETIMEDOUT;
}

static int ask(struct open_helper *p, const struct wire *wire, const struct waiting *w)
{
	int r;

	if (p->owner != getpid())
		p->pid = 0;
	r = p->pid ? 0 : start(p);
	if (r)
		return r;
	r = send(p->sock, wire, sizeof(*wire), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -EPIPE
										: wait_for(p, w);
	/* Somebody has killed it: there will be another one. */
	if (r == -EPIPE)
		stop(p);
	return r;
}

int open_helper_run(struct open_helper *p, const struct target_file_request *req)
{
	const char *own_root = req->root ? req->root : "", *path = req->path ? req->path : "";
	struct wire wire = { .req = *req };
	/* The links that lead to what a process has mapped are its own, as its memory is. */
	struct waiting w = { .root = own_root,
			     .pid = getpid(),
			     .is_whole = req->kind == TARGET_FILE_MAPPED };
	char root[OPEN_HELPER_MAX_ROOT];
	int pid;

	if (strlen(own_root) >= sizeof(wire.root) || strlen(path) >= sizeof(wire.path))
		return -ENAMETOOLONG;
	strcpy(wire.root, own_root);
	strcpy(wire.path, path);
	if (req->kind != TARGET_FILE_DEBUG) {
		snprintf(root, sizeof(root), "/proc/%d/root", (int)req->pid);
		w.root = root;
	}
	if (sscanf(w.root, "/proc/%d/", &pid) == 1)
		w.pid = (pid_t)pid;
	return hangs(p, w.root) || !remote_patience(w.pid) ? -ETIMEDOUT : ask(p, &wire, &w);
}
