/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a program beside a file system that is asked for files and does not answer.
 *
 *	fuse HOW DIR PROGRAM ARG...
 *
 * as root, which it stops being; users may do so in a user namespace.
 *
 * HOW is what is not answered: "lookup", "getattr" or "read" of a DIR that becomes such a file
 * system only after the program was started; or of one that is there before, "page" (reading),
 * "later" (the second time that something is read; the first time it fails), "flush" (closing a
 * file) or "overlay" (the same, and an overlay hides that it is such a file system). Until then
 * there is a file of any name, which anybody may write.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ATTACKER 54321

#define FILE_ID	 2

static char request[1 << 20];

static struct fuse_attr attributes(uint64_t id)
{
	if (id == FUSE_ROOT_ID)
		return (struct fuse_attr) { .ino = id, .mode = S_IFDIR | 0755, .nlink = 2 };
	return (struct fuse_attr) {
		.ino = id, .mode = S_IFREG | 0666, .nlink = 1, .size = 1 << 20, .uid = ATTACKER
	};
}

/* Answers all but @how, a FUSE_*, of which the first @fail fail. */
static void serve(int fd, uint32_t how, int fail)
{
	const struct fuse_in_header *in = (const void *)request;
	ssize_t n;

	while ((n = read(fd, request, sizeof(request))) > 0) {
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_attr_out attr;
				struct fuse_entry_out entry;
				struct fuse_open_out open;
				struct fuse_statfs_out statfs;
			};
		} out = { .head = { .unique = in->unique } };
		size_t len = 0;

		if (in->opcode == how && in->nodeid != (how == FUSE_GETATTR ? FUSE_ROOT_ID : 0)) {
			if (fail-- <= 0)
				continue;
			out.head.error = -EIO;
			out.head.len = sizeof(out.head);
			write(fd, &out, out.head.len);
			continue;
		}
		if (in->opcode == FUSE_INIT) {
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = FUSE_KERNEL_MINOR_VERSION;
			out.init.max_write = 4096;
			len = sizeof(out.init);
		} else if (in->opcode == FUSE_GETATTR) {
			out.attr.attr = attributes(in->nodeid);
			len = sizeof(out.attr);
		} else if (in->opcode == FUSE_LOOKUP) {
			out.entry.nodeid = FILE_ID;
			out.entry.attr = attributes(FILE_ID);
			len = sizeof(out.entry);
		} else if (in->opcode == FUSE_STATFS) {
			len = sizeof(out.statfs);
		} else if (in->opcode == FUSE_OPEN) {
			len = sizeof(out.open);
		} else if (in->opcode == FUSE_FORGET || in->opcode == FUSE_READ) {
			continue;
		} else {
			out.head.error = -ENOSYS;
		}
		out.head.len = (uint32_t)(sizeof(out.head) + len);
		write(fd, &out, out.head.len);
	}
}

static void become_program(char **argv)
{
	setgroups(0, NULL);
	setgid(ATTACKER);
	setuid(ATTACKER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], argv);
	_exit(127);
}

static void start_program(char **argv, int fd, int output)
{
	if (fork())
		return;
	close(fd);
	dup2(output, STDOUT_FILENO);
	become_program(argv);
}

/* In another process: the file system has to answer while it is mounted. */
static void cover(const char *dir, char **argv, int fd)
{
	char options[4200];

	if (fork())
		return;
	snprintf(options, sizeof(options), "lowerdir=%s:/usr", dir);
	if (mount("overlay", dir, "overlay", MS_RDONLY, options)) {
		perror("overlay");
		_exit(1);
	}
	close(fd);
	become_program(argv);
}

static void serve_at(const char *dir, int fd, uint32_t how, int fail, char **argv, bool before,
		     bool covered)
{
	char options[128];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=%d,group_id=%d,allow_other", fd, ATTACKER, ATTACKER);
	/* A Ruby has read its program by the time that nothing in /tmp can be read any more. */
	if (!before) {
		start_program(argv, fd, open("/dev/null", O_WRONLY | O_CLOEXEC));
		sleep(1);
	}
	if (mount("hangs", dir, "fuse", MS_NOSUID | MS_NODEV, options)) {
		perror("mount");
		exit(1);
	}
	if (covered)
		cover(dir, argv, fd);
	else if (before)
		start_program(argv, fd, STDOUT_FILENO);
	else
		printf("{\"ready\":true}\n");
	fflush(stdout);
	serve(fd, how, fail);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t op;
		int fail;
		bool before, covered;
	} hows[] = { { "lookup", FUSE_LOOKUP },
		     { "getattr", FUSE_GETATTR },
		     { "read", FUSE_READ },
		     { "page", FUSE_READ, 0, true },
		     { "later", FUSE_READ, 1, true },
		     { "flush", FUSE_FLUSH, 0, true },
		     { "overlay", FUSE_FLUSH, 0, true, true } };
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	size_t i;

	if (argc < 4 || fd < 0 || unshare(CLONE_NEWNS))
		return 1;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (!strcmp(argv[1], hows[i].name))
			serve_at(argv[2], fd, hows[i].op, hows[i].fail, argv + 3, hows[i].before,
				 hows[i].covered);
	return 1;
}
