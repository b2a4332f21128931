/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/render.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/confine.h"
#include "serve/link.h"

#define RECORDING_FD 3 /* as SERVE_RENDER_PATH says */
#define MAX_WORDS    64
#define RENDER_NICE  10 /* behind those who serve, and all else */

static size_t split_words(char *words, size_t len, char *argv[MAX_WORDS + 1])
{
	size_t n = 0;

	for (char *word = words; word < words + len && n < MAX_WORDS; word += strlen(word) + 1)
		argv[n++] = word;
	argv[n] = NULL;
	return n;
}

/* Standard input stays /dev/null. */
static int take_files(int fd, int out, int why)
{
	/* None of them is where another one goes. */
	const int high = fcntl(fd, F_DUPFD, 100);

	if (high < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(why, STDERR_FILENO) < 0 ||
	    dup2(high, RECORDING_FD) < 0)
		return -errno;
	if (lseek(RECORDING_FD, 0, SEEK_SET) < 0)
		return -errno;
	return syscall(SYS_close_range, RECORDING_FD + 1, ~0u, 0) ? -errno : 0;
}

__attribute__((noreturn)) static void run_render(serve_run_fn *run, void *arg, char *words,
						 size_t len, int fd, int out, int why, pid_t parent)
{
	char *argv[MAX_WORDS + 1];
	size_t n = split_words(words, len, argv);

	prctl(PR_SET_NAME, "rbpf-render", 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, RENDER_NICE);
	/* A fork does not inherit it; and the parent may be gone before it is set. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent ||
	    take_files(fd, out, why) || serve_confine_render())
		_exit(1);
	_exit(run(arg, (int)n, argv));
}

int serve_render_start(serve_run_fn *run, void *arg, const char *words, size_t len, int fd,
		       struct serve_render *ret)
{
	const pid_t parent = getpid();
	struct serve_render render = SERVE_RENDER_INIT;
	char *copy = malloc(len + 1);
	int r = 0;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, words, len);
	render.out = memfd_create("rbpf-render", MFD_CLOEXEC);
	render.why = memfd_create("rbpf-render-errors", MFD_CLOEXEC);
	if (render.out < 0 || render.why < 0)
		r = -errno;
	if (!r)
		render.pid = fork();
	if (!r && !render.pid)
		run_render(run, arg, copy, len, fd, render.out, render.why, parent);
	if (!r && render.pid < 0)
		r = -errno;
	free(copy);
	if (!r) {
		render.pidfd = (int)syscall(SYS_pidfd_open, render.pid, 0);
		r = render.pidfd < 0 ? -errno : 0;
	}
	if (r) {
		serve_render_deinit(&render);
		return r;
	}
	render.deadline_ns = clock_ns(CLOCK_MONOTONIC) + SERVE_RENDER_MAX_NS;
	*ret = render;
	return 0;
}

static int reap(struct serve_render *r, int options, int *status)
{
	pid_t pid;

	do
		pid = waitpid(r->pid, status, options);
	while (pid < 0 && errno == EINTR);
	if (!pid)
		return -EAGAIN;
	r->pid = -1;
	return 0;
}

int serve_render_ended(struct serve_render *r, uint64_t now)
{
	const bool overdue = now >= r->deadline_ns;
	int status = 0;

	if (overdue)
		kill(r->pid, SIGKILL);
	if (reap(r, overdue ? 0 : WNOHANG, &status))
		return -EAGAIN;
	if (overdue)
		return -ETIMEDOUT;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return -EPERM;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECANCELED;
}

void serve_render_deinit(struct serve_render *r)
{
	int status;

	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		reap(r, 0, &status);
	}
	if (r->pidfd >= 0)
		close(r->pidfd);
	if (r->out >= 0)
		close(r->out);
	if (r->why >= 0)
		close(r->why);
	*r = (struct serve_render)SERVE_RENDER_INIT;
}
