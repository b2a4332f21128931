/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/debts.h"
#include "target/open_helper.h"
#include "target/remote.h"
#include "target/target_file.h"

/* What the path asks for. In the process, so that what it counts is told by its result. */
static int open_it(const struct target_file_request *req)
{
	static int calls;
	const uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	calls++;
	if (!strcmp(req->path, "/hangs"))
		for (;;)
			pause();
	if (!strcmp(req->path, "/dies"))
		raise(SIGKILL);
	while (!strcmp(req->path, "/computes") &&
	       clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < 3 * DEBTS_LIMIT_NS / 2)
		;
	if (!strcmp(req->path, "/calls"))
		return -calls;
	if (!strcmp(req->path, "/files"))
		return -1000 - open("/dev/null", O_RDONLY | O_CLOEXEC);
	return strcmp(req->path, "/null") ? -EXDEV : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static struct open_helper open_helper = OPEN_HELPER_INIT(open_it);

static int open_of(const char *root, const char *path)
{
	const struct target_file_request req = { .kind = TARGET_FILE_DEBUG,
						 .root = root,
						 .path = path };

	return open_helper_run(&open_helper, &req);
}

static void end(void)
{
	open_helper_deinit(&open_helper);
	remote_reset();
}

TestSuite(open_helper, .fini = end);

Test(open_helper, results)
{
	char longest[OPEN_HELPER_MAX_PATH + 1];
	int fd = open_of("/root", "/null");

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	cr_expect_eq(open_of("/root", "/other"), -EXDEV);
	cr_expect_eq(open_of("/root", "/calls"), -3, "all by the same process");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_eq(open_of("/root", longest), -ENAMETOOLONG);
	cr_expect_eq(open_of(longest, "/null"), -ENAMETOOLONG);
}

Test(open_helper, busy_is_not_hanging)
{
	cr_expect_eq(open_of("/root", "/computes"), -EXDEV);
	cr_expect_eq(open_of("/root", "/calls"), -2);
}

/* It has no file but its socket, which is not 0, so that the next one is. */
Test(open_helper, has_no_files_of_others)
{
	cr_expect_eq(open_of("/root", "/files"), -1000);
}

Test(open_helper, a_root_that_hangs)
{
	uint64_t begin;
	pid_t pid;

	cr_expect_eq(open_of("/root", "/other"), -EXDEV);
	pid = open_helper.pid;
	cr_expect_eq(open_of("/root", "/hangs"), -ETIMEDOUT);
	while (!kill(pid, 0) && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	cr_expect_eq(kill(pid, 0), -1, "it was killed");
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(open_of("/root", "/null"), -ETIMEDOUT, "not tried again");
	cr_expect_lt(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin, NSEC_PER_SEC);
	cr_expect_eq(open_helper.pid, 0);
	cr_expect_eq(open_of("/other", "/calls"), -1, "another root, another process");
	open_helper.hung[0].until_ns = 0;
	cr_expect_eq(open_of("/root", "/calls"), -2, "a while later");
	cr_expect_eq(open_helper.n_hung, 0);
}

Test(open_helper, many_roots_that_hang)
{
	char root[32];

	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	unsigned int i;

	for (i = 0; i < OPEN_HELPER_MAX_HUNG; i++) {
		snprintf(root, sizeof(root), "/%u", i);
		cr_expect_eq(open_of(root, "/hangs"), -ETIMEDOUT);
		cr_expect_eq(open_helper.n_hung, i + 1);
	}
	cr_expect_geq(clock_ns(CLOCK_MONOTONIC) - begin, DEBTS_LIMIT_NS, "the first had time");
	cr_expect_eq(open_of("/other", "/calls"), -1, "others are opened");
	cr_expect_eq(open_of("/0", "/null"), -ETIMEDOUT);
	cr_expect_eq(open_of("/one-more", "/hangs"), -ETIMEDOUT);
	cr_expect_eq(open_helper.n_hung, OPEN_HELPER_MAX_HUNG);
	cr_expect_eq(open_of("/0", "/calls"), -1, "the first is tried again");
}

Test(open_helper, somebody_kills_it)
{
	cr_expect_eq(open_of("/root", "/dies"), -EPIPE);
	cr_expect_eq(open_of("/root", "/calls"), -1, "another one");
	cr_expect_eq(open_helper.n_hung, 0);
}

/* A process that was forked since has one of its own. */
Test(open_helper, forked)
{
	int status;
	pid_t pid;

	cr_expect_eq(open_of("/root", "/calls"), -1);
	pid = fork();
	if (!pid)
		_exit(open_of("/root", "/calls") != -1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(open_of("/root", "/calls"), -2);
}

Test(open_helper, no_room_for_a_file)
{
	struct rlimit limit = { .rlim_cur = 64, .rlim_max = 64 };
	int fds[64], n = 0, fd;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(open_of("/root", "/calls"), -1);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		fds[n++] = fd;
	cr_expect_eq(open_of("/root", "/null"), -EMFILE);
	while (n)
		close(fds[--n]);
	fd = open_of("/root", "/null");
	cr_expect_geq(fd, 0);
	close(fd);
}
