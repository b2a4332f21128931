/* SPDX-License-Identifier: GPL-2.0-only */
/* Who serves a FUSE file system: of mounts that nobody serves, so nothing in them is looked at. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/fuse.h"

#define NOBODY 65534

/* The device of what is mounted at @place. */
static bool find_device(const char *place, unsigned int *major, unsigned int *minor)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[256];
	bool found = false;

	cr_assert_not_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*u %*u %u:%u %*s %255s", major, minor, at) == 3 &&
			!strcmp(at, place);
	fclose(file);
	return found;
}

/* Mount one that @uid serves, in this process' own mount namespace, and say who does. */
static int server_of_mount(uid_t uid, uid_t *ret)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), r;
	char dir[] = "/tmp/rbpf-fuse.XXXXXX", options[128];
	unsigned int major, minor;

	cr_assert_geq(fd, 0);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=%d,group_id=0", fd,
		 (int)uid);
	cr_assert_eq(mount("a user_id=0 b", dir, "fuse.some", 0, options), 0, "%s",
		     strerror(errno));
	cr_assert(find_device(dir, &major, &minor));
	r = fuse_server(getpid(), major, minor, ret);
	cr_expect_eq(fuse_server(getpid(), major, minor + 1000, &(uid_t) { 0 }), -ENOENT);
	close(fd);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	return r;
}

Test(fuse, server)
{
	uid_t server = 1;

	if (geteuid() || access("/dev/fuse", R_OK | W_OK) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cr_skip_test("it takes root and /dev/fuse");
	cr_expect_eq(server_of_mount(NOBODY, &server), 0);
	cr_expect_eq(server, NOBODY);
	cr_expect_eq(server_of_mount(0, &server), 0);
	cr_expect_eq(server, 0);
}

Test(fuse, what_is_none)
{
	unsigned int major, minor;
	uid_t server;

	cr_assert(find_device("/proc", &major, &minor));
	cr_expect_eq(fuse_server(getpid(), major, minor, &server), -ENOENT);
	cr_expect_lt(fuse_server(0x3fffffff, major, minor, &server), 0);
}

/*
 * Who is root in a user namespace may note any user: it is the namespace's owner. Where there can
 * be none, as in a chroot, there is nothing to be fooled by.
 */
Test(fuse, server_in_another_user_namespace)
{
	uid_t server = 1;
	int ready[2];
	pid_t pid;
	char byte;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		bool ok = (geteuid() || !setuid(NOBODY)) && !unshare(CLONE_NEWUSER);

		if (write(ready[1], ok ? "y" : "n", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		cr_expect_eq(fuse_server(pid, 0, 12345, &server), 0);
		cr_expect_eq(server, geteuid() ? geteuid() : NOBODY);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
