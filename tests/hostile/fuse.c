/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a Ruby whose /tmp is a file system that is asked for files and does not answer.
 *
 *	fuse PROGRAM FILE HOW	as root, which it stops being; users may do so in a user namespace
 *
 * HOW is what is not answered: "lookup", "getattr" or "read". Until then there is a perf map of any
 * name.
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

#define FILE_ID	 2

static char request[1 << 20];

static struct fuse_attr attributes(uint64_t id)
{
	if (id == FUSE_ROOT_ID)
		return (struct fuse_attr) { .ino = id, .mode = S_IFDIR | 0755, .nlink = 2 };
	return (struct fuse_attr) {
		.ino = id, .mode = S_IFREG | 0644, .nlink = 1, .size = 4096, .uid = ATTACKER
	};
}

/* Answers what comes before @how, a FUSE_*; nothing else. */
static void serve(int fd, uint32_t how)
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
		size_t len;

		if (in->opcode == how && in->nodeid != (how == FUSE_GETATTR ? FUSE_ROOT_ID : 0))
			continue;
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
	uint32_t how;
	pid_t pid;

	if (argc != 4)
		return 1;
	how = argv[3][0] == 'l' ? FUSE_LOOKUP : argv[3][0] == 'g' ? FUSE_GETATTR : FUSE_READ;
	argv[3] = NULL;
	if (fd < 0 || unshare(CLONE_NEWNS))
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
	serve(fd, how);
	return 0;
}
