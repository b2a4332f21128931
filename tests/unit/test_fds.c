/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "target/process.h"
#include "target/remote.h"

static struct rlimit limit(void)
{
	struct rlimit lim;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	return lim;
}

static void set_soft(rlim_t soft)
{
	struct rlimit lim = limit();

	lim.rlim_cur = soft;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

Test(fds, the_reserve_is_kept)
{
	set_soft(200);
	cr_expect(fds_may_keep(200 - FDS_RESERVE - 1));
	cr_expect_not(fds_may_keep(200 - FDS_RESERVE));
	cr_expect_not(fds_may_keep(199));
}

Test(fds, a_share_of_the_limit)
{
	set_soft(200);
	cr_expect_eq(fds_share(256), 12);
	cr_expect_eq(fds_share(12), 12);
	cr_expect_eq(fds_share(3), 3);
	set_soft(10);
	cr_expect_eq(fds_share(256), 1);
}

Test(fds, raised_to_what_is_allowed)
{
	rlim_t hard = limit().rlim_max;

	set_soft(200);
	cr_expect_eq(fds_raise_limit(), limit().rlim_cur);
	cr_expect_geq(limit().rlim_cur, hard < FDS_MAX ? hard : FDS_MAX);
	cr_expect_eq(limit().rlim_cur, limit().rlim_max);
	fds_raise_limit();
	fds_restore_limit();
	cr_expect_eq(limit().rlim_cur, 200);
	cr_expect_eq(limit().rlim_max, hard);
}

/* With too many files open a process is told by its pid and start time alone. */
Test(fds, process_without_a_pidfd)
{
	struct process p = PROCESS_INIT;
	pid_t pid;
	int fd;

	set_soft(200);
	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} while (fd >= 0 && fd < 200 - FDS_RESERVE);
	cr_assert_eq(fd, 200 - FDS_RESERVE);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	cr_assert_eq(process_open(pid, &p, NULL), 0);
	cr_expect_eq(p.pidfd, -1);
	cr_expect_not(process_ended(&p));
	remote_note_wait(pid, 1, 0, true);
	cr_expect_not(process_ended(&p), "one that may not be read has not ended");
	remote_reset();
	p.start_ticks++;
	cr_expect(process_ended(&p), "this is another one");
	p.start_ticks = 0;
	cr_expect_not(process_ended(&p), "when it began was not read");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect(process_ended(&p));
	process_close(&p);
}
