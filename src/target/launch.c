/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fds.h"
#include "base/io.h"

/* Become the user who ran sudo. Only in the child. Returns 0 or -errno. */
static int become_invoker(void)
{
	struct passwd *pw;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0 || io_invoker(&uid, &gid))
		return 0;
	pw = getpwuid(uid);
	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setgid(gid) || setuid(uid))
		return -errno;
	if (pw && (setenv("HOME", pw->pw_dir, 1) || setenv("USER", pw->pw_name, 1) ||
		   setenv("LOGNAME", pw->pw_name, 1)))
		return -errno;
	return 0;
}

_Noreturn static void run_child(char *const *argv, bool as_root, int go_fd, int result_fd)
{
	sigset_t none;
	char go;
	int r;

	/* Ignored signals and the mask outlive exec; the program must not notice rbpf. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	fds_restore_limit();
	r = as_root ? 0 : become_invoker();
	if (!r) {
		if (read(go_fd, &go, 1) != 1)
			_exit(0); /* never let go */
		execvp(argv[0], argv);
		r = -errno;
	}
	if (write(result_fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(126);
	_exit(127);
}

int launch_prepare(char *const *argv, bool as_root, struct launch *ret, struct err *err)
{
	int go[2], result[2], r;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return err_set(err, -errno, ERR_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(result, O_CLOEXEC)) {
		r = err_set(err, -errno, ERR_RUNTIME, "cannot make a pipe: %s", strerror(errno));
		close(go[0]);
		close(go[1]);
		return r;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		run_child(argv, as_root, go[0], result[1]);
	}
	r = pid < 0 ? -errno : 0;
	close(go[0]);
	close(result[1]);
	if (r) {
		close(go[1]);
		close(result[0]);
		return err_set(err, r, ERR_RUNTIME, "cannot fork: %s", strerror(-r));
	}
	*ret = (struct launch) { .pid = pid, .go_fd = go[1], .result_fd = result[0] };
	return 0;
}

int launch_go(struct launch *l, const char *program, struct err *err)
{
	int r = 0, result;
	ssize_t n;
	uid_t uid;
	gid_t gid;

	/* A child that could not become the invoker has ended already, and has said why. */
	if (io_write_full(l->go_fd, "g", 1))
		r = -ESRCH;
	close(l->go_fd);
	l->go_fd = -1;
	/* The pipe closes at exec: end of file is success. */
	do {
		n = read(l->result_fd, &result, sizeof(result));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(result))
		r = result;
	close(l->result_fd);
	l->result_fd = -1;
	if (!r)
		return 0;
	err_set(err, r, ERR_TARGET, "cannot run %s: %s", program, strerror(-r));
	if (r == -ENOENT && strchr(program, ' '))
		err_hint(err, "no shell splits it: give the program and its arguments without "
			      "quotes, or sh -c '...'");
	else if ((r == -ENOENT || r == -EACCES) && !strchr(program, '/') && !io_invoker(&uid, &gid))
		/* EACCES: a directory of that PATH is closed to the user. */
		err_hint(
			err,
			"sudo has a PATH of its own: sudo env \"PATH=$PATH\" rbpf record -- %s ...",
			program);
	return r;
}

bool launch_ended(struct launch *l, bool block, int *status)
{
	pid_t r;

	do {
		r = waitpid(l->pid, status, block ? 0 : WNOHANG);
	} while (r < 0 && errno == EINTR && block);
	return r == l->pid;
}

void launch_deinit(struct launch *l)
{
	if (l->go_fd >= 0)
		close(l->go_fd);
	if (l->result_fd >= 0)
		close(l->result_fd);
	*l = (struct launch)LAUNCH_INIT;
}
