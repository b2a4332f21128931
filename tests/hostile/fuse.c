/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a Ruby whose /tmp is a file system that is asked for files and never answers.
 *
 *	fuse PROGRAM FILE	as root, which it stops being; users may do so in a user namespace
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ATTACKER 54321

static char request[1 << 20];

/* Answers what mounting asks, and what says how things are of the root directory; nothing else. */
static void serve(int fd)
{
	const struct fuse_in_header *in = (const void *)request;
	ssize_t n;

	while ((n = read(fd, request, sizeof(request))) > 0) {
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_attr_out attr;
			};
		} out = { .head = { .unique = in->unique } };
		size_t len;

		if (in->opcode == FUSE_INIT) {
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = FUSE_KERNEL_MINOR_VERSION;
			out.init.max_write = 4096;
			len = sizeof(out.init);
		} else if (in->opcode == FUSE_GETATTR && in->nodeid == FUSE_ROOT_ID) {
			out.attr.attr.ino = 1;
			out.attr.attr.mode = S_IFDIR | 0755;
			out.attr.attr.nlink = 2;
			len = sizeof(out.attr);
		} else {
			continue;
		}
		out.head.len = (uint32_t)(sizeof(out.head) + len);
		write(fd, &out, out.head.len);
	}
}

static void become_ruby(char **argv)
{
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
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];
	pid_t pid;

	if (argc != 3 || fd < 0 || unshare(CLONE_NEWNS))
		return 1;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=%d,group_id=%d,allow_other", fd, ATTACKER, ATTACKER);
	/* The Ruby has read its program by the time that nothing in /tmp can be read any more. */
	pid = fork();
	if (!pid) {
		close(fd);
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		become_ruby(argv);
	}
	sleep(1);
	if (mount("hangs", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options)) {
		perror("mount");
		return 1;
	}
	printf("{\"ready\":true}\n");
	fflush(stdout);
	serve(fd);
	return 0;
}
