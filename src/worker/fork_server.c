/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/fork_server.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/oom.h"
#include "base/priority.h"
#include "worker/channel.h"
#include "worker/sandbox.h"

/* What the fork server says to a request. */
struct spawned {
	int32_t result; /* 0 or -errno */
	int32_t pid;
};

/* ---- the fork server's side ---- */

/* fork(), but as a child of this process's parent. */
static pid_t fork_sibling(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}

__attribute__((noreturn)) static void run_worker(int fork_server_sock, const int *fds, pid_t parent,
						 fork_server_main_fn *worker_main,
						 uint64_t max_memory)
{
	close(fork_server_sock);
	/* A fork does not inherit it; and the parent may be gone before it is set. */
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) && getppid() == parent) {
		prctl(PR_SET_NAME, "rbpf-worker", 0, 0, 0);
		if (!sandbox_confine(max_memory))
			worker_main(fds[0], fds[1], max_memory);
	}
	_exit(1);
}

__attribute__((noreturn)) static void keep(int sock, fork_server_main_fn *worker_main,
					   uint64_t max_memory)
{
	const pid_t parent = getppid();
	int fds[CHANNEL_MAX_FDS];
	size_t len, n;
	char request;

	prctl(PR_SET_NAME, "rbpf-forkserver", 0, 0, 0);
	priority_set_helper();
	oom_go_first();
	if (sandbox_drop_privileges(&sock, 1))
		_exit(1);
	while (!channel_receive(sock, &request, sizeof(request), &len, fds, &n, 1)) {
		struct spawned answer = { .result = -EINVAL };
		const struct channel_part part = { &answer, sizeof(answer) };

		if (n == 2) {
			answer.pid = fork_sibling();
			answer.result = answer.pid < 0 ? -errno : 0;
			if (!answer.pid)
				run_worker(sock, fds, parent, worker_main, max_memory);
		}
		while (n)
			close(fds[--n]);
		if (channel_send(sock, &part, 1, NULL, 0))
			break;
	}
	_exit(0);
}

/* ---- rbpf's side ---- */

int fork_server_start(struct fork_server *k, fork_server_main_fn *worker_main, uint64_t max_memory)
{
	int socks[2];
	pid_t pid;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -errno;
	pid = fork();
	if (pid < 0) {
		r = -errno;
		close(socks[0]);
		close(socks[1]);
		return r;
	}
	if (!pid)
		keep(socks[1], worker_main, max_memory);
	close(socks[1]);
	*k = (struct fork_server) { .pid = pid, .sock = socks[0] };
	return 0;
}

void fork_server_stop(struct fork_server *k)
{
	if (k->sock >= 0)
		close(k->sock);
	if (k->pid > 0) {
		kill(k->pid, SIGKILL);
		while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*k = (struct fork_server)FORK_SERVER_INIT;
}

int fork_server_spawn(struct fork_server *k, int sock, int memfd, pid_t *ret)
{
	const struct channel_part part = { "", 1 };
	const int fds[] = { sock, memfd };
	struct spawned answer;
	size_t len;
	int r;

	r = channel_send(k->sock, &part, 1, fds, 2);
	if (!r)
		r = channel_receive(k->sock, &answer, sizeof(answer), &len, NULL, NULL, 1);
	if (r)
		return r;
	if (len != sizeof(answer))
		return -EPROTO;
	if (!answer.result)
		*ret = answer.pid;
	return answer.result;
}
