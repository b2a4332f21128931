/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "target/launch.h"

/* As rbpf itself does: a child that is gone is an error, not the end. */
static void ignore_sigpipe(void)
{
	signal(SIGPIPE, SIG_IGN);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static struct launch prepare(const char *const *argv)
{
	struct launch l = LAUNCH_INIT;
	struct err err = { 0 };

	cr_assert_eq(launch_prepare((char *const *)argv, false, &l, &err), 0, "%s", err.msg);
	cr_assert_gt(l.pid, 0);
	cr_assert(fcntl(l.go_fd, F_GETFD) & FD_CLOEXEC, "no descriptor gets into the program");
	cr_assert(fcntl(l.result_fd, F_GETFD) & FD_CLOEXEC);
	return l;
}

static int wait_for(struct launch *l)
{
	int status = -1;

	cr_assert(launch_ended(l, true, &status));
	return status;
}

/* One line of /proc/PID/status of the program that was started. */
#define PRINT(line) "/bin/sh", "-c", "exit $(grep -c '" line "' /proc/self/status)", NULL

Test(launch, runs_when_told_to, .init = ignore_sigpipe)
{
	char dir[] = "/tmp/rbpf-test-launch-XXXXXX", path[64];
	const char *argv[] = { "/bin/sh", "-c", ": > \"$0\"; exit 7", path, NULL };
	struct stat st;
	struct launch l;
	int status;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	l = prepare(argv);
	usleep(100000);
	cr_expect_not(launch_ended(&l, false, &status), "it waits");
	cr_expect_neq(stat(path, &st), 0, "and has done nothing");
	cr_assert_eq(launch_go(&l, argv[0], NULL), 0);
	cr_expect(l.go_fd == -1 && l.result_fd == -1);
	status = wait_for(&l);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", (unsigned int)status);
	cr_expect_eq(stat(path, &st), 0);
	launch_deinit(&l);
	cr_expect_eq(l.pid, -1);
	unlink(path);
	rmdir(dir);
}

Test(launch, finds_programs_in_the_path, .init = ignore_sigpipe)
{
	const char *argv[] = { "true", NULL };
	struct launch l = prepare(argv);

	cr_assert_eq(launch_go(&l, argv[0], NULL), 0);
	cr_expect_eq(wait_for(&l), 0);
	launch_deinit(&l);
}

Test(launch, cannot_run, .init = ignore_sigpipe)
{
	static const struct {
		const char *program;
		int why;
	} programs[] = {
		{ "/nonexistent/program", -ENOENT },
		{ "rbpf-no-such-program", -ENOENT },
		{ "/etc/passwd", -EACCES },
		{ "/tmp", -EACCES },
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const char *argv[] = { programs[i].program, NULL };
		struct launch l = prepare(argv);
		struct err err = { 0 };

		cr_expect_eq(launch_go(&l, argv[0], &err), programs[i].why, "%s", argv[0]);
		cr_expect_eq(err.kind, ERR_TARGET);
		cr_expect_not_null(strstr(err.msg, argv[0]), "%s", err.msg);
		cr_expect_eq(WEXITSTATUS(wait_for(&l)), 127);
		launch_deinit(&l);
	}
}

/* As a shell would have been given it. */
Test(launch, a_whole_line_as_the_program, .init = ignore_sigpipe)
{
	static const char *const argv[] = { "ruby -e 1", NULL };
	struct launch l = prepare(argv);
	struct err err = { 0 };

	cr_expect_eq(launch_go(&l, argv[0], &err), -ENOENT);
	cr_expect(strstr(err.hint, "without quotes"), "%s", err.hint);
	wait_for(&l);
	launch_deinit(&l);
}

Test(launch, never_let_go, .init = ignore_sigpipe)
{
	const char *argv[] = { "/bin/sh", "-c", "exit 9", NULL };
	struct launch l = prepare(argv), copy = l;

	launch_deinit(&l);
	launch_deinit(&l);
	cr_expect_eq(wait_for(&copy), 0, "it ends without executing anything");
}

Test(launch, killed_before_it_goes, .init = ignore_sigpipe)
{
	const char *argv[] = { "/bin/sh", "-c", "exit 9", NULL };
	struct launch l = prepare(argv);
	struct err err = { 0 };
	int status;

	kill(l.pid, SIGKILL);
	status = wait_for(&l);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cr_expect_eq(launch_go(&l, argv[0], &err), -ESRCH);
	cr_expect_eq(err.kind, ERR_TARGET);
	launch_deinit(&l);
}

/* rbpf ignores SIGPIPE and may block others: the program starts as from a shell. */
Test(launch, signals_are_as_from_a_shell, .init = ignore_sigpipe)
{
	const char *blocked[] = { PRINT("^SigBlk:.*0000000000000000$") };
	const char *ignored[] = { "/bin/sh", "-c",
				  "set -- $(grep ^SigIgn: /proc/self/status); "
				  "exit $(( (0x$2 >> 12) & 1 ))",
				  NULL };
	struct launch l;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	l = prepare(blocked);
	cr_assert_eq(launch_go(&l, "sh", NULL), 0);
	cr_expect_eq(WEXITSTATUS(wait_for(&l)), 1, "nothing is blocked");
	launch_deinit(&l);
	l = prepare(ignored);
	cr_assert_eq(launch_go(&l, "sh", NULL), 0);
	cr_expect_eq(WEXITSTATUS(wait_for(&l)), 0, "SIGPIPE is not ignored");
	launch_deinit(&l);
}

/* Under sudo the program runs as the user who called it, unless told otherwise. */
Test(launch, becomes_the_invoker, .init = ignore_sigpipe)
{
	const char *argv[] = { "/bin/sh", "-c", "test \"$(id -u) $(id -g)\" = '12345 12346'",
			       NULL };
	const char *root[] = { "/bin/sh", "-c", "test \"$(id -u)\" = 0", NULL };
	struct launch l = LAUNCH_INIT;

	if (geteuid()) {
		cr_skip_test("needs root");
	}
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12346", 1);
	l = prepare(argv);
	cr_assert_eq(launch_go(&l, "sh", NULL), 0);
	cr_expect_eq(wait_for(&l), 0);
	launch_deinit(&l);
	cr_assert_eq(launch_prepare((char *const *)root, true, &l, NULL), 0);
	cr_assert_eq(launch_go(&l, "sh", NULL), 0);
	cr_expect_eq(wait_for(&l), 0, "as root");
	launch_deinit(&l);
}
