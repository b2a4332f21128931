/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/target_file.h"

/* ---- a directory of files of all types ---- */

static char dir[64];

static void setup(void)
{
	strcpy(dir, "/tmp/rbpf-target-file-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	umask(022);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	cr_assert_eq(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

TestSuite(target_file, .init = setup, .fini = teardown);

static const char *at(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s%s", dir, name);
	return path;
}

static ino_t put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct stat st;

	cr_assert_geq(fd, 0, "%s", name);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return st.st_ino;
}

/* ---- requests ---- */

static int open_debug(const char *root, const char *path)
{
	const struct target_file_request req = {
		.kind = TARGET_FILE_DEBUG,
		.root = root,
		.path = path,
		.owner = (uid_t)-1,
	};

	return target_file_open(&req);
}

/* In the directory, which is the root then. */
static int open_in(const char *path)
{
	return open_debug(dir, path);
}

static int open_perf_map_of(pid_t pid, const char *path)
{
	const struct target_file_request req = {
		.kind = TARGET_FILE_PERF_MAP,
		.pid = pid,
		.path = path,
	};

	return target_file_open(&req);
}

static int open_perf_map(const char *path)
{
	return open_perf_map_of(getpid(), path);
}

/* There is no mapping at 0, so that it must be found by its name. */
static int open_mapped_by_name(const char *path, ino_t inode)
{
	const struct target_file_request req = {
		.kind = TARGET_FILE_MAPPED,
		.pid = getpid(),
		.inode = inode,
		.path = path,
	};

	return target_file_open(&req);
}

static void expect_text(int fd, const char *text, const char *what)
{
	char read_text[64] = "";

	cr_assert_geq(fd, 0, "%s: %s", what, strerror(-fd));
	cr_expect_geq(read(fd, read_text, sizeof(read_text) - 1), 0, "%s", what);
	cr_expect_str_eq(read_text, text, "%s", what);
	close(fd);
}

static void expect_error(int fd, int error, const char *what)
{
	cr_expect_eq(fd, error, "%s: %d instead of %s", what, fd, strerror(-error));
	if (fd >= 0)
		close(fd);
}

/* ---- types ---- */

Test(target_file, regular_files)
{
	const struct target_file_request exe = { .kind = TARGET_FILE_EXE, .pid = getpid() };
	ino_t inode = put("/a", "text");
	struct stat st, self;
	int fd = open_in("/a");

	cr_assert_geq(fd, 0);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	expect_text(fd, "text", "debug");
	expect_text(open_perf_map(at("/a")), "text", "perf map");
	expect_text(open_mapped_by_name(at("/a"), inode), "text", "mapped, by name");
	fd = target_file_open(&exe);
	cr_assert_geq(fd, 0);
	cr_expect(!fstat(fd, &st) && !stat("/proc/self/exe", &self) && st.st_ino == self.st_ino);
	close(fd);
}

Test(target_file, what_is_not_there)
{
	const struct target_file_request exe = { .kind = TARGET_FILE_EXE, .pid = 0x3fffffff };
	const struct target_file_request kind = { .kind = (enum target_file_kind)77 };
	char longest[PATH_MAX + 100];

	expect_error(open_in("/none"), -ENOENT, "no file");
	expect_error(open_debug("/nonexistent", "/a"), -ENOENT, "no root");
	expect_error(open_perf_map_of(0x3fffffff, "/a"), -ENOENT, "no process");
	expect_error(target_file_open(&exe), -ENOENT, "no process");
	expect_error(target_file_open(&kind), -EINVAL, "no kind");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	expect_error(open_in(longest), -ENAMETOOLONG, "long path");
}

static void expect_refused(const char *path, const char *what)
{
	struct stat st = { 0 };

	cr_assert_eq(stat(path, &st), 0, "%s", what);
	expect_error(open_debug("/", path), -ENOTSUP, what);
	expect_error(open_perf_map(path), -ENOTSUP, what);
	expect_error(open_mapped_by_name(path, st.st_ino), -ENOTSUP, what);
}

Test(target_file, other_types)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(mkfifo(at("/fifo"), 0644), 0);
	cr_assert_eq(mkdir(at("/dir"), 0755), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", at("/socket"));
	cr_assert_eq(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	expect_refused(at("/fifo"), "FIFO");
	expect_refused(at("/dir"), "directory");
	expect_refused(at("/socket"), "socket");
	expect_refused("/dev/zero", "device");
	expect_refused("/dev/ptmx", "device of which each opening makes a terminal");
	close(s);
}

/* Files of the kernel's have the type of a regular one. */
Test(target_file, kernel_file_systems)
{
	expect_refused("/proc/self/maps", "/proc");
	expect_refused("/sys/kernel/mm/transparent_hugepage/enabled", "/sys");
}

/* Who leads a session without a terminal gets the one that it opens. */
Test(target_file, terminals)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), status;
	char path[64], byte;
	pid_t pid;

	cr_assert_geq(master, 0);
	cr_assert(!grantpt(master) && !unlockpt(master));
	cr_assert_eq(ptsname_r(master, path, sizeof(path)), 0);
	cr_assert_eq(symlink(path, at("/link")), 0);
	pid = fork();
	if (!pid) {
		int failed = setsid() < 0;

		failed |= open_debug("/", path) != -ENOTSUP;
		failed |= (open_debug("/", at("/link")) != -ENOTSUP) << 1;
		failed |= (open_perf_map(path) != -ENOTSUP) << 2;
		failed |= (open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0) << 3;
		_exit(failed);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%#x", status);
	/* Once the other side was opened and closed, this is EIO. */
	cr_expect(read(master, &byte, 1) < 0 && errno == EAGAIN, "%s", strerror(errno));
	close(master);
}

/* ---- links ---- */

Test(target_file, links)
{
	char outside[PATH_MAX], magic[64];
	int fd;

	cr_assert(!mkdir(at("/root"), 0755) && !mkdir(at("/root/sub"), 0755));
	put("/outside", "outside");
	put("/root/inside", "inside");
	snprintf(outside, sizeof(outside), "%s/outside", dir);
	cr_assert_eq(symlink("/inside", at("/root/absolute")), 0);
	cr_assert_eq(symlink("../inside", at("/root/sub/relative")), 0);
	cr_assert_eq(symlink("../../../inside", at("/root/above")), 0);
	cr_assert_eq(symlink("../outside", at("/root/out")), 0);
	cr_assert_eq(symlink(outside, at("/root/out_absolute")), 0);
	cr_assert_eq(symlink("/nothing", at("/root/dangling")), 0);
	cr_assert_eq(symlink("loop", at("/root/loop")), 0);
	expect_text(open_debug(at("/root"), "/absolute"), "inside", "absolute link");
	expect_text(open_debug(at("/root"), "/sub/relative"), "inside", "relative link");
	expect_text(open_debug(at("/root"), "/above"), "inside", "link to above the root");
	expect_text(open_debug(at("/root"), "/sub/../../inside"), "inside", "path with ..");
	expect_error(open_debug(at("/root"), "/out"), -ENOENT, "link out of the root");
	expect_error(open_debug(at("/root"), "/out_absolute"), -ENOENT, "link out of the root");
	expect_error(open_debug(at("/root"), "/../outside"), -ENOENT, "path out of the root");
	expect_error(open_debug(at("/root"), "/dangling"), -ENOENT, "dangling link");
	expect_error(open_debug(at("/root"), "/loop"), -ELOOP, "loop");

	fd = open(at("/outside"), O_RDONLY | O_CLOEXEC);
	snprintf(magic, sizeof(magic), "/proc/self/fd/%d", fd);
	expect_error(open_debug("/", magic), -ELOOP, "magic link");
	snprintf(magic, sizeof(magic), "/proc/self/root%s", at("/outside"));
	expect_error(open_perf_map(magic), -ELOOP, "path through a magic link");
	close(fd);
}

Test(target_file, perf_map_is_no_link)
{
	put("/map", "text");
	cr_assert_eq(symlink("map", at("/link")), 0);
	cr_assert_eq(symlink(dir, at("/directory")), 0);
	expect_error(open_perf_map(at("/link")), -ENOTSUP, "link");
	expect_text(open_perf_map(at("/directory/map")), "text", "in a directory that is a link");
}

/* ---- mapped files ---- */

Test(target_file, another_file_of_the_name)
{
	ino_t inode = put("/lib", "old");

	put("/new", "new");
	cr_assert_eq(rename(at("/new"), at("/lib")), 0);
	expect_error(open_mapped_by_name(at("/lib"), inode), -ESTALE, "replaced file");
}

Test(target_file, mapped_devices)
{
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero, 0);
	struct target_file_request req = { .kind = TARGET_FILE_MAPPED,
					   .pid = getpid(),
					   .start = (uintptr_t)p,
					   .end = (uintptr_t)p + 4096,
					   .path = "/dev/zero" };

	cr_assert_neq(p, MAP_FAILED);
	expect_error(target_file_open(&req), -ENOTSUP, "mapped device");
	munmap(p, 4096);
	close(zero);
}

Test(target_file, sizes)
{
	ino_t inode = put("/a", "");

	cr_assert_eq(truncate(at("/a"), (off_t)TARGET_FILE_MAX_MAPPED + 1), 0);
	expect_error(open_mapped_by_name(at("/a"), inode), -EFBIG, "mapped");
	cr_assert_eq(truncate(at("/a"), (off_t)TARGET_FILE_MAX_DEBUG + 1), 0);
	expect_error(open_in("/a"), -EFBIG, "debug");
	expect_text(open_perf_map(at("/a")), "", "perf map");
}

/* ---- owners and modes ---- */

static void set_mode(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	cr_assert_eq(chown(at(name), uid, gid), 0, "%s", strerror(errno));
	cr_assert_eq(chmod(at(name), mode), 0);
}

static bool is_root(void)
{
	if (geteuid())
		cr_skip_test("only root gives files to others");
	return !geteuid();
}

Test(target_file, modes)
{
	const struct target_file_request own = {
		.kind = TARGET_FILE_DEBUG, .root = dir, .path = "/a", .owner = geteuid()
	};

	put("/a", "text");
	cr_assert_eq(chmod(at("/a"), 0666), 0);
	expect_error(open_perf_map(at("/a")), -EPERM, "perf map that everybody may write");
	expect_error(open_debug("", at("/a")), -EPERM, "debug file that everybody may write");
	expect_text(open_in("/a"), "text", "the same in the root of a target");
	cr_assert_eq(chmod(at("/a"), 0600), 0);
	expect_text(open_perf_map(at("/a")), "text", "perf map of 0600");
	expect_error(open_debug("", at("/a")), -EPERM, "debug file of 0600");
	expect_error(open_in("/a"), -EPERM, "the same in the root of a target");
	expect_text(target_file_open(&own), "text", "the owner's");
	cr_assert_eq(chmod(at("/a"), 0644), 0);
	expect_text(open_debug("", at("/a")), "text", "debug file of 0644");
}

Test(target_file, owners_of_debug_files)
{
	if (!is_root())
		return;
	put("/a", "text");
	set_mode("/a", 0, 4711, 0664);
	expect_error(open_debug("", at("/a")), -EPERM, "a group may write it");
	set_mode("/a", 0, 0, 0664);
	expect_text(open_debug("", at("/a")), "text", "root's group may write it");
	set_mode("/a", 4711, 4711, 0644);
	expect_error(open_debug("", at("/a")), -EPERM, "another's");
	expect_text(open_in("/a"), "text", "another's, in the root of a target");
}

/* A child that waits, as user @uid, in @root unless that is NULL. */
static pid_t start_target(uid_t uid, const char *root)
{
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if ((root && (chroot(root) || chdir("/"))) ||
		    (uid &&
		     (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(0, uid, 0))) ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1, "the target did not start");
	close(ready[0]);
	return pid;
}

static void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(target_file, owners_of_perf_maps)
{
	pid_t pid;

	if (!is_root())
		return;
	pid = start_target(4711, NULL);
	put("/map", "text");
	set_mode("/map", 4711, 4711, 0600);
	expect_text(open_perf_map_of(pid, at("/map")), "text", "the effective user's");
	set_mode("/map", 0, 0, 0644);
	expect_error(open_perf_map_of(pid, at("/map")), -EPERM,
		     "root's, which the target may not read");
	set_mode("/map", 4712, 4711, 0644);
	expect_error(open_perf_map_of(pid, at("/map")), -EPERM, "another's");
	set_mode("/map", 4711, 4711, 0602);
	expect_error(open_perf_map_of(pid, at("/map")), -EPERM, "everybody may write it");
	end_target(pid);
}

/* ---- roots of targets ---- */

Test(target_file, in_the_root_of_the_target)
{
	pid_t pid;

	if (!is_root())
		return;
	cr_assert(!mkdir(at("/root"), 0755) && !mkdir(at("/root/real"), 0755));
	put("/map", "outside");
	put("/root/real/map", "inside");
	cr_assert_eq(symlink("/real", at("/root/tmp")), 0);
	cr_assert_eq(symlink(at("/map"), at("/root/real/link")), 0);
	pid = start_target(0, at("/root"));
	expect_text(open_perf_map_of(pid, "/tmp/map"), "inside", "an absolute link to /real");
	expect_error(open_perf_map_of(pid, at("/map")), -ENOENT, "no such file in its root");
	expect_error(open_perf_map_of(pid, "/../map"), -ENOENT, "no such file in its root");
	end_target(pid);
}

/* ---- those who want it to wait, or to open something else ---- */

Test(target_file, leases)
{
	int fd;

	put("/a", "text");
	signal(SIGIO, SIG_IGN);
	fd = open(at("/a"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0, "%s", strerror(errno));
	expect_error(open_in("/a"), -EAGAIN, "would wait until the lease is given up");
	close(fd);
	expect_text(open_in("/a"), "text", "given up");
}

struct swapper {
	char name[PATH_MAX], other[PATH_MAX];
	atomic_bool stop;
};

static void *swap(void *arg)
{
	struct swapper *s = arg;

	while (!atomic_load(&s->stop))
		renameat2(AT_FDCWD, s->name, AT_FDCWD, s->other, RENAME_EXCHANGE);
	return NULL;
}

static void open_while_swapping(const char *other)
{
	struct swapper s = { 0 };
	unsigned int opened = 0, refused = 0;
	pthread_t thread;
	struct stat st;

	snprintf(s.name, sizeof(s.name), "%s", at("/root/a"));
	snprintf(s.other, sizeof(s.other), "%s", at(other));
	cr_assert_eq(pthread_create(&thread, NULL, swap, &s), 0);
	for (int i = 0; i < 200000 && (i < 5000 || !opened || !refused); i++) {
		int fd = open_debug(at("/root"), "/a");

		if (fd < 0) {
			cr_assert(fd == -ENOTSUP || fd == -ENOENT, "%s: %s", other, strerror(-fd));
			refused++;
			continue;
		}
		opened++;
		expect_text(fd, "inside", other);
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	if (lstat(s.name, &st) || !S_ISREG(st.st_mode))
		cr_assert_eq(renameat2(AT_FDCWD, s.name, AT_FDCWD, s.other, RENAME_EXCHANGE), 0);
	cr_expect(opened && refused, "%s: %u opened, %u refused", other, opened, refused);
}

Test(target_file, files_that_are_swapped)
{
	cr_assert_eq(mkdir(at("/root"), 0755), 0);
	put("/root/a", "inside");
	put("/outside", "outside");
	cr_assert_eq(mkfifo(at("/root/fifo"), 0644), 0);
	cr_assert_eq(mkdir(at("/root/dir"), 0755), 0);
	cr_assert_eq(symlink("../outside", at("/root/link")), 0);
	open_while_swapping("/root/fifo");
	open_while_swapping("/root/dir");
	open_while_swapping("/root/link");
}
