/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Much of this module is about what a process as a whole can do (its stdout, limits, umask, user,
 * mounts). Such tests run their step in a child, whose exit status is 0 or a number that says which
 * expectation failed.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

#define NOBODY 65534

enum { SKIPPED = 200 }; /* exit status of a child that may not do what the test needs */

static char dir[64]; /* made anew for each test, which is a process of its own */

static const char *in_dir(const char *name)
{
	static char paths[4][512];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void make_dir(void)
{
	strcpy(dir, "/tmp/rbpf-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static size_t count_entries(void)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return SIZE_MAX;
	while (readdir(d))
		n++;
	return n - 2;
}

static void remove_dir(void)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (unlinkat(dirfd(d), entry->d_name, 0))
			unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	}
	rmdir(dir);
}

/* Criterion does not call .fini for a test that is skipped. */
static void skip_test(const char *why)
{
	remove_dir();
	cr_skip_test("%s", why);
}

TestSuite(io, .init = make_dir, .fini = remove_dir);

static int run_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(fn());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
}

static void assert_file(const char *path, const char *want)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	cr_assert_eq(io_read_file(AT_FDCWD, path, 1 << 20, &buf), 0, "%s", path);
	cr_assert_str_eq(buf_str(&buf), want, "%s", path);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	cr_assert_eq(lstat(path, &st), 0, "%s", path);
	return st.st_mode;
}

/* Byte @i of a stream whose order can be checked. */
static char pattern(size_t i)
{
	return (char)(i * 31 + i / 251);
}

static char *make_pattern(size_t len)
{
	char *data = malloc(len);

	cr_assert_not_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = pattern(i);
	return data;
}

/* ---- reading ---- */

Test(io, read_of_all_sizes)
{
	static const size_t sizes[] = { 0, 1, 16383, 16384, 16385, 32768, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ char *data = make_pattern(sizes[i] + 1);
		_cleanup_buf_ struct buf buf = BUF_INIT;
		const char *path = in_dir("file");
		struct err err = { 0 };

		cr_assert_eq(io_write_output(path, data, sizes[i], &err), 0, "%s", err.msg);
		buf_addstr(&buf, "before");
		cr_assert_eq(io_read_file(AT_FDCWD, path, sizes[i], &buf), 0,
			     "just @max bytes are no error");
		cr_assert_eq(buf.len, 6 + sizes[i]);
		cr_assert(!memcmp(buf.data, "before", 6), "what was there stays");
		cr_assert(!memcmp(buf.data + 6, data, sizes[i]), "%zu bytes", sizes[i]);
	}
}

Test(io, read_past_max_is_efbig_and_leaves_buf_alone)
{
	static const size_t sizes[] = { 1, 2, 16384, 16385, 50000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ char *data = make_pattern(sizes[i]);
		_cleanup_buf_ struct buf buf = BUF_INIT;
		const char *path = in_dir("file");

		cr_assert_eq(io_write_output(path, data, sizes[i], NULL), 0);
		cr_expect_eq(io_read_file(AT_FDCWD, path, sizes[i] - 1, &buf), -EFBIG);
		cr_expect_str_eq(buf_str(&buf), "");
		buf_addstr(&buf, "before");
		cr_expect_eq(io_read_file(AT_FDCWD, path, sizes[i] - 1, &buf), -EFBIG);
		cr_expect_str_eq(buf_str(&buf), "before");
		cr_expect(!buf_failed(&buf), "too large is not out of memory");
	}
}

/* Files that never end, or do not say how long they are, as those of /proc. */
Test(io, read_does_not_trust_st_size)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	cr_expect_eq(io_read_file(AT_FDCWD, "/dev/zero", 1 << 20, &buf), -EFBIG);
	cr_expect_eq(buf.len, 0);
	cr_expect_eq(io_read_file(AT_FDCWD, "/proc/self/status", 1 << 20, &buf), 0);
	cr_expect(strstr(buf_str(&buf), "Pid:"));
}

Test(io, read_errors)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	cr_expect_eq(io_read_file(AT_FDCWD, in_dir("missing"), 10, &buf), -ENOENT);
	cr_expect_eq(io_read_file(AT_FDCWD, dir, 10, &buf), -EISDIR);
	cr_expect_eq(io_read_file(AT_FDCWD, "", 10, &buf), -ENOENT);
	cr_expect_eq(io_read_fd(-1, 10, &buf), -EBADF);
	cr_expect_eq(buf.len, 0);
	make_file(in_dir("file"), "text", 0600);
	buf.failed = true;
	cr_expect_eq(io_read_file(AT_FDCWD, in_dir("file"), 10, &buf), -ENOMEM,
		     "a buf that failed takes no more");
}

Test(io, read_relative_to_dirfd)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_buf_ struct buf buf = BUF_INIT;

	make_file(in_dir("file"), "text", 0600);
	cr_expect_eq(io_read_file(fd, "file", 4, &buf), 0);
	cr_expect_str_eq(buf_str(&buf), "text");
}

Test(io, read_fd_from_a_pipe_in_pieces)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	int fds[2];
	pid_t pid;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 20; i++) {
			if (write(fds[1], "piece ", 6) != 6)
				_exit(1);
			usleep(500);
		}
		_exit(0);
	}
	close(fds[1]);
	cr_expect_eq(io_read_fd(fds[0], 120, &buf), 0);
	cr_expect_eq(buf.len, 120);
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

/* ---- io_write_full ---- */

static void on_alarm(int sig)
{
	(void)sig;
}

/* Read slowly until the end; 0 if what came is the pattern of @len bytes. */
static int slow_reader(int fd, size_t len)
{
	char chunk[5000];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] != pattern(total + (size_t)i))
				return 1;
		}
		total += (size_t)n;
		usleep(300);
	}
	return n == 0 && total == len ? 0 : 2;
}

static void write_to_slow_reader(bool nonblocking, bool signals)
{
	enum { LEN = 300000 };
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART: EINTR */
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	_cleanup_free_ char *data = make_pattern(LEN);
	int fds[2], status;
	pid_t pid;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	cr_assert_geq(fcntl(fds[1], F_SETPIPE_SZ, 4096), 0);
	pid = fork();
	if (!pid) {
		close(fds[1]);
		_exit(slow_reader(fds[0], LEN));
	}
	close(fds[0]);
	if (nonblocking)
		cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	if (signals) {
		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
	}
	cr_expect_eq(io_write_full(fds[1], data, LEN), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	close(fds[1]);
	while (waitpid(pid, &status, 0) < 0)
		;
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "the reader must get all, in order (%x)", (unsigned int)status);
}

Test(io, write_full_to_a_slow_pipe)
{
	write_to_slow_reader(false, false);
}

Test(io, write_full_goes_on_after_short_writes_and_eintr)
{
	write_to_slow_reader(false, true);
}

Test(io, write_full_waits_on_a_nonblocking_pipe)
{
	write_to_slow_reader(true, false);
}

Test(io, write_full_nonblocking_and_interrupted)
{
	write_to_slow_reader(true, true);
}

Test(io, write_full_errors)
{
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	_cleanup_close_ int read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fds[2];

	cr_expect_eq(io_write_full(full, "x", 1), -ENOSPC);
	cr_expect_eq(io_write_full(full, "x", 0), 0, "nothing to write cannot fail");
	cr_expect_eq(io_write_full(-1, "x", 1), -EBADF);
	cr_expect_eq(io_write_full(read_only, "x", 1), -EBADF);
	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	cr_expect_eq(io_write_full(fds[1], "x", 1), -EPIPE);
	close(fds[1]);
}

/* ---- io_write_output: regular files ---- */

static int write_with_umask(void)
{
	umask(027);
	return io_write_output(in_dir("new"), "text", 4, NULL) ? 1 : 0;
}

Test(io, output_new_file)
{
	struct err err = { 0 };

	cr_assert_eq(io_write_output(in_dir("file"), "a\0b", 3, &err), 0, "%s", err.msg);
	assert_file(in_dir("file"), "a");
	cr_expect_eq(err.code, 0);
	cr_expect_eq(run_child(write_with_umask), 0);
	cr_expect_eq(mode_of(in_dir("new")) & 07777, geteuid() ? 0640 : 0600,
		     "0666 less the umask; root's is private");
	cr_expect_eq(count_entries(), 2, "no temporary file is left");
}

Test(io, output_empty_file)
{
	cr_expect_eq(io_write_output(in_dir("file"), NULL, 0, NULL), 0);
	assert_file(in_dir("file"), "");
}

Test(io, output_replaces_and_keeps_the_mode)
{
	static const mode_t modes[] = { 0600, 0644, 0664, 0777 };

	for (size_t i = 0; i < 4; i++) {
		make_file(in_dir("file"), "a long text that was there", modes[i]);
		cr_assert_eq(io_write_output(in_dir("file"), "new", 3, NULL), 0);
		assert_file(in_dir("file"), "new");
		cr_expect_eq(mode_of(in_dir("file")) & 07777, modes[i]);
	}
	make_file(in_dir("file"), "x", 04755);
	cr_assert_eq(io_write_output(in_dir("file"), "new", 3, NULL), 0);
	cr_expect_eq(mode_of(in_dir("file")) & 07777, 0755, "new content is not set-uid");
	cr_expect_eq(count_entries(), 1, "no temporary file is left");
}

/* Who has the old file open keeps reading the old one: it is replaced, not overwritten. */
Test(io, output_is_a_rename)
{
	_cleanup_buf_ struct buf old = BUF_INIT;
	_cleanup_close_ int fd = -1;

	make_file(in_dir("file"), "old text", 0644);
	fd = open(in_dir("file"), O_RDONLY | O_CLOEXEC);
	cr_assert_eq(io_write_output(in_dir("file"), "new", 3, NULL), 0);
	cr_assert_eq(io_read_fd(fd, 100, &old), 0);
	cr_expect_str_eq(buf_str(&old), "old text");
	assert_file(in_dir("file"), "new");
}

static int chdir_and_write(void)
{
	struct err err = { 0 };

	if (chdir(dir))
		return 1;
	return io_write_output("plain", "text", 4, &err) ? 2 : 0;
}

Test(io, output_relative_path)
{
	cr_expect_eq(run_child(chdir_and_write), 0);
	assert_file(in_dir("plain"), "text");
	cr_expect_eq(count_entries(), 1);
}

Test(io, output_longest_name)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	cr_expect_eq(io_write_output(in_dir(name), "text", 4, NULL), 0);
	assert_file(in_dir(name), "text");
	cr_expect_eq(count_entries(), 1);
}

Test(io, output_through_a_link_keeps_the_link)
{
	make_file(in_dir("target"), "old", 0640);
	cr_assert_eq(symlink("target", in_dir("link")), 0);
	cr_assert_eq(io_write_output(in_dir("link"), "new", 3, NULL), 0);
	cr_expect(S_ISLNK(mode_of(in_dir("link"))), "the link is still a link");
	assert_file(in_dir("target"), "new");
	cr_expect_eq(mode_of(in_dir("target")) & 07777, 0640);
}

Test(io, output_through_links_to_links)
{
	cr_assert_eq(mkdir(in_dir("sub"), 0755), 0);
	make_file(in_dir("sub/target"), "old", 0644);
	cr_assert_eq(symlink("target", in_dir("sub/relative")), 0);
	cr_assert_eq(symlink(in_dir("sub/relative"), in_dir("absolute")), 0);
	cr_assert_eq(symlink("absolute", in_dir("link")), 0);
	cr_assert_eq(io_write_output(in_dir("link"), "new", 3, NULL), 0);
	assert_file(in_dir("sub/target"), "new");
	cr_expect(S_ISLNK(mode_of(in_dir("link"))) && S_ISLNK(mode_of(in_dir("absolute"))) &&
		  S_ISLNK(mode_of(in_dir("sub/relative"))));
	cr_expect_eq(count_entries(), 3);
	unlink(in_dir("sub/target"));
	unlink(in_dir("sub/relative"));
}

Test(io, output_through_a_circle_of_links)
{
	cr_assert_eq(symlink("b", in_dir("a")), 0);
	cr_assert_eq(symlink("a", in_dir("b")), 0);
	cr_expect_eq(io_write_output(in_dir("a"), "new", 3, NULL), -ELOOP);
	cr_expect_eq(count_entries(), 2);
}

Test(io, output_below_proc_root)
{
	char path[200];

	snprintf(path, sizeof(path), "/proc/self/root%s", in_dir("file"));
	make_file(in_dir("file"), "old", 0644);
	cr_assert_eq(io_write_output(path, "new", 3, NULL), 0);
	assert_file(in_dir("file"), "new");
	cr_expect_eq(count_entries(), 1);
}

Test(io, output_replaces_a_dangling_link)
{
	cr_assert_eq(symlink("nowhere", in_dir("link")), 0);
	cr_assert_eq(io_write_output(in_dir("link"), "new", 3, NULL), 0);
	cr_expect(S_ISREG(mode_of(in_dir("link"))));
	assert_file(in_dir("link"), "new");
	cr_expect_eq(access(in_dir("nowhere"), F_OK), -1);
}

/* What another process left, or has in use, is not touched. */
Test(io, output_beside_stale_temporary_files)
{
	char name[64];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), ".rbpf-%d-%d.tmp", (int)getpid(), i);
		make_file(in_dir(name), "stale", 0644);
	}
	cr_assert_eq(io_write_output(in_dir("file"), "new", 3, NULL), 0);
	assert_file(in_dir("file"), "new");
	assert_file(in_dir(name), "stale");
	cr_expect_eq(count_entries(), 4);
}

Test(io, output_errors_name_the_path)
{
	static const struct {
		const char *path; /* below dir if it has no slash first */
		int code;
		const char *why;
	} cases[] = {
		{ "missing/file", -ENOENT, "No such file or directory" },
		{ "file/below", -ENOTDIR, "Not a directory" },
		{ "sub", -EISDIR, "Is a directory" },
		{ "new/", -ENOTDIR, "Not a directory" },
		{ "/", -EISDIR, "Is a directory" },
		{ "/dev/full", -ENOSPC, "No space left on device" },
	};

	make_file(in_dir("file"), "old", 0644);
	cr_assert_eq(mkdir(in_dir("sub"), 0755), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *path = cases[i].path[0] == '/' ? cases[i].path : in_dir(cases[i].path);
		struct err err = { 0 };
		char want[600];

		snprintf(want, sizeof(want), "cannot write %s: %s", path, cases[i].why);
		cr_expect_eq(io_write_output(path, "x", 1, &err), cases[i].code, "%s", path);
		cr_expect_eq(err.code, cases[i].code);
		cr_expect_eq(err.kind, ERR_RUNTIME);
		cr_expect_str_eq(err.msg, want);
		cr_expect_eq(io_write_output(path, "x", 1, NULL), cases[i].code,
			     "@err may be NULL");
	}
	cr_expect_eq(io_write_output("", "x", 1, NULL), -ENOENT);
	assert_file(in_dir("file"), "old");
	cr_expect_eq(count_entries(), 2, "no temporary file is left");
}

/* ---- io_write_output: failures leave the old file and no other ---- */

static int write_past_limit(void)
{
	static char data[100000];
	struct rlimit limit = { 50000, 50000 };
	struct err err = { 0 };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return SKIPPED;
	if (io_write_output(in_dir("file"), data, sizeof(data), &err) != -EFBIG)
		return 1;
	if (!strstr(err.msg, "cannot write /tmp/") || !strstr(err.msg, ": File too large"))
		return 2;
	return io_write_output(in_dir("new"), data, sizeof(data), &err) != -EFBIG ? 3 : 0;
}

Test(io, output_that_fails_halfway_leaves_the_old_file)
{
	make_file(in_dir("file"), "old text", 0644);
	cr_expect_eq(run_child(write_past_limit), 0);
	assert_file(in_dir("file"), "old text");
	cr_expect_eq(access(in_dir("new"), F_OK), -1, "no half of a new file");
	cr_expect_eq(count_entries(), 1, "no temporary file is left");
}

static int write_proc(const char *path, const char *fmt, unsigned int id)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[32];
	int n = snprintf(text, sizeof(text), fmt, id);

	return fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -1;
}

/* A mount namespace of its own; for an ordinary user in a user namespace where it is root. */
static int unshare_mounts(void)
{
	unsigned int uid = geteuid(), gid = getegid();

	if (!uid)
		return unshare(CLONE_NEWNS);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || write_proc("/proc/self/setgroups", "deny", 0) ||
	    write_proc("/proc/self/uid_map", "0 %u 1", uid) ||
	    write_proc("/proc/self/gid_map", "0 %u 1", gid))
		return -1;
	return 0;
}

static int write_on_full_disk(void)
{
	static char data[300000];
	struct err err = { 0 };
	const char *file = in_dir("file");

	if (unshare_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=128k"))
		return SKIPPED;
	if (io_write_output(file, "old text", 8, &err))
		return 1;
	if (io_write_output(file, data, sizeof(data), &err) != -ENOSPC)
		return 2;
	if (strncmp(err.msg, "cannot write /tmp/rbpf-test-", 28) ||
	    !strstr(err.msg, "/file: No space left on device"))
		return 3;
	if (io_write_output(in_dir("new"), data, sizeof(data), NULL) != -ENOSPC)
		return 4;
	{
		_cleanup_buf_ struct buf buf = BUF_INIT;

		if (io_read_file(AT_FDCWD, file, 100, &buf) || strcmp(buf_str(&buf), "old text"))
			return 5;
	}
	if (count_entries() != 1)
		return 6;
	/* The room of the failed attempt is free again. */
	return io_write_output(file, data, 60000, NULL) ? 7 : 0;
}

Test(io, output_on_a_full_disk_leaves_the_old_file)
{
	int status = run_child(write_on_full_disk);

	if (status == SKIPPED)
		skip_test("may not mount a small tmpfs");
	cr_expect_eq(status, 0, "step %d", status);
}

/* Become nobody, who may create files in dir. */
static int become_nobody(void)
{
	if (geteuid() == 0 && (chown(dir, NOBODY, NOBODY) || setresgid(NOBODY, NOBODY, NOBODY) ||
			       setresuid(NOBODY, NOBODY, NOBODY)))
		return SKIPPED;
	return 0;
}

static int write_to_read_only_file(void)
{
	struct err err = { 0 };

	if (become_nobody())
		return SKIPPED;
	if (io_write_output(in_dir("file"), "new", 3, &err) != -EACCES)
		return 1;
	if (!strstr(err.msg, "/file: Permission denied"))
		return 2;
	if (chmod(dir, 0555))
		return 3;
	if (io_write_output(in_dir("new"), "new", 3, &err) != -EACCES)
		return 4;
	return chmod(dir, 0755) ? 5 : 0;
}

Test(io, output_respects_write_protection)
{
	int status;

	make_file(in_dir("file"), "old", 0444);
	status = run_child(write_to_read_only_file);
	if (status == SKIPPED)
		skip_test("cannot become an ordinary user");
	cr_expect_eq(status, 0, "step %d", status);
	assert_file(in_dir("file"), "old");
	cr_expect_eq(count_entries(), 1);
}

/* A file that others may write too: replaced by a non-owner, it changes hands, not content. */
static int write_to_file_of_root(void)
{
	if (become_nobody())
		return SKIPPED;
	return io_write_output(in_dir("file"), "new", 3, NULL) ? 1 : 0;
}

Test(io, output_replaces_a_writable_file_of_another_user)
{
	if (geteuid())
		skip_test("needs root, to have a file of another user");
	make_file(in_dir("file"), "old", 0666);
	cr_expect_eq(run_child(write_to_file_of_root), 0);
	assert_file(in_dir("file"), "new");
	cr_expect_eq(mode_of(in_dir("file")) & 07777, 0666);
}

/* ---- io_write_output: streams ---- */

static int stdout_fd;	     /* what a child makes its stdout */
static const char *out_path; /* and writes to */
static size_t out_len;

static int write_to_stdout(void)
{
	char *data = make_pattern(out_len);
	struct err err = { 0 };
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (dup2(stdout_fd, STDOUT_FILENO) < 0)
		return 1;
	r = io_write_output(out_path, data, out_len, &err);
	free(data);
	if (r == -ENOSPC &&
	    strcmp(err.msg, "cannot write standard output: No space left on device"))
		return 3;
	return r == -ENOSPC ? 2 : r ? 4 : 0;
}

Test(io, output_to_stdout)
{
	static const char *const paths[] = { NULL, "-", "/dev/stdout", "/dev/fd/1",
					     "/proc/self/fd/1" };

	out_len = 1000;
	for (size_t i = 0; i < 5; i++) {
		int fds[2];

		cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
		out_path = paths[i];
		stdout_fd = fds[1];
		cr_expect_eq(run_child(write_to_stdout), 0, "path %zu", i);
		close(fds[1]);
		cr_expect_eq(slow_reader(fds[0], out_len), 0, "path %zu", i);
		close(fds[0]);
	}
}

Test(io, output_to_a_closed_pipe_is_success)
{
	static const char *const paths[] = { NULL, "-", "/dev/stdout" };

	out_len = 200000;
	for (size_t i = 0; i < 3; i++) {
		int fds[2];

		cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
		close(fds[0]);
		out_path = paths[i];
		stdout_fd = fds[1];
		cr_expect_eq(run_child(write_to_stdout), 0, "path %zu", i);
		close(fds[1]);
	}
}

Test(io, output_to_a_reader_that_leaves_is_success)
{
	int fds[2];
	pid_t pid;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		char few[100];

		close(fds[1]);
		_exit(read(fds[0], few, sizeof(few)) == sizeof(few) ? 0 : 1);
	}
	close(fds[0]);
	out_len = 1000000;
	out_path = "-";
	stdout_fd = fds[1];
	cr_expect_eq(run_child(write_to_stdout), 0);
	close(fds[1]);
	waitpid(pid, NULL, 0);
}

Test(io, output_to_full_stdout_is_an_error)
{
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	out_len = 10;
	out_path = "-";
	stdout_fd = full;
	cr_expect_eq(run_child(write_to_stdout), 2, "ENOSPC, said to be of standard output");
}

/* A shell's `>> log` with -o /dev/stdout: the log is not to be replaced. */
Test(io, output_to_dev_stdout_on_a_file_appends_in_place)
{
	_cleanup_close_ int fd = -1;
	struct stat before, after;

	make_file(in_dir("log"), "earlier ", 0644);
	fd = open(in_dir("log"), O_WRONLY | O_APPEND | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &before), 0);
	out_len = 10;
	out_path = "/dev/stdout";
	stdout_fd = fd;
	cr_expect_eq(run_child(write_to_stdout), 0);
	cr_assert_eq(stat(in_dir("log"), &after), 0);
	cr_expect_eq(before.st_ino, after.st_ino, "still the same file");
	cr_expect_eq(after.st_size, 8 + 10, "added after what was there");
}

Test(io, output_to_dev_null)
{
	struct stat st;

	cr_expect_eq(io_write_output("/dev/null", "text", 4, NULL), 0);
	cr_assert_eq(stat("/dev/null", &st), 0);
	cr_expect(S_ISCHR(st.st_mode), "a device is not replaced by a file");
}

Test(io, output_to_a_fifo)
{
	const char *path = in_dir("fifo");
	int status;
	pid_t pid;

	cr_assert_eq(mkfifo(path, 0600), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		_exit(slow_reader(fd, 100000));
	}
	{
		_cleanup_free_ char *data = make_pattern(100000);

		cr_expect_eq(io_write_output(path, data, 100000, NULL), 0);
	}
	waitpid(pid, &status, 0);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_expect(S_ISFIFO(mode_of(path)), "a fifo is not replaced by a file");
}

/* ---- sudo ---- */

Test(io, invoker)
{
	static const struct {
		const char *uid, *gid;
		bool ok;
	} cases[] = {
		{ NULL, NULL, false },
		{ "1000", NULL, false },
		{ NULL, "1000", false },
		{ "1000", "1001", true },
		{ "0", "0", true },
		{ "4294967294", "1", true },
		{ "4294967295", "1", false },
		{ "1", "4294967295", false },
		{ "", "", false },
		{ "-1", "1", false },
		{ "1000x", "1", false },
		{ " 1", "1", false },
		{ "1", "4294967296", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uid_t uid = 77;
		gid_t gid = 78;
		int r;

		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		if (cases[i].uid)
			setenv("SUDO_UID", cases[i].uid, 1);
		if (cases[i].gid)
			setenv("SUDO_GID", cases[i].gid, 1);
		r = io_invoker(&uid, &gid);
		cr_expect_eq(r, cases[i].ok ? 0 : -ENOENT, "case %zu", i);
		if (r) {
			cr_expect(uid == 77 && gid == 78, "untouched on failure, case %zu", i);
		} else {
			cr_expect_eq(uid, strtoul(cases[i].uid, NULL, 10), "case %zu", i);
			cr_expect_eq(gid, strtoul(cases[i].gid, NULL, 10), "case %zu", i);
		}
	}
}

static void expect_owner(const char *path, uid_t uid, gid_t gid)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_uid, uid, "%s", path);
	cr_expect_eq(st.st_gid, gid, "%s", path);
}

Test(io, new_output_belongs_to_who_ran_sudo)
{
	if (geteuid())
		skip_test("needs root, to give files away");
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	cr_assert_eq(io_write_output(in_dir("new"), "text", 4, NULL), 0);
	expect_owner(in_dir("new"), 1234, 2345);
}

Test(io, replaced_output_keeps_its_owner)
{
	if (geteuid())
		skip_test("needs root, to give files away");
	make_file(in_dir("file"), "old", 0600);
	cr_assert_eq(chown(in_dir("file"), 1234, 4567), 0);
	cr_expect_eq(io_write_output(in_dir("file"), "new", 3, NULL), -EPERM, "a stranger's");
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	cr_assert_eq(io_write_output(in_dir("file"), "new", 3, NULL), 0);
	expect_owner(in_dir("file"), 1234, 4567);
	make_file(in_dir("of root"), "old", 0600);
	cr_assert_eq(io_write_output(in_dir("of root"), "new", 3, NULL), 0);
	expect_owner(in_dir("of root"), 0, 0);
}

static int give_as_nobody(void)
{
	int fd = open(in_dir("file"), O_RDONLY | O_CLOEXEC);

	if (become_nobody())
		return SKIPPED;
	return io_give_to_invoker(fd) ? 1 : 0;
}

Test(io, give_to_invoker_does_nothing_unless_root)
{
	int status;

	make_file(in_dir("file"), "text", 0644);
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	status = run_child(give_as_nobody);
	if (status == SKIPPED)
		skip_test("cannot become an ordinary user");
	cr_expect_eq(status, 0);
}

Test(io, output_in_pieces_replaces_at_the_end)
{
	const char *path = in_dir("pieces");
	struct io_output *out;
	struct err err = { 0 };

	make_file(path, "old", 0644);
	cr_assert_eq(io_output_open(path, &out, &err), 0, "%s", err.msg);
	cr_expect_eq(io_output_write(out, "one ", 4, &err), 0);
	assert_file(path, "old");
	cr_expect_eq(io_output_write(out, "two", 3, &err), 0);
	cr_expect_eq(io_output_close(out, true, &err), 0, "%s", err.msg);
	assert_file(path, "one two");
	cr_expect_eq(count_entries(), 1);

	cr_assert_eq(io_output_open(path, &out, &err), 0, "%s", err.msg);
	cr_expect_eq(io_output_write(out, "three", 5, &err), 0);
	cr_expect_eq(io_output_close(out, false, &err), 0);
	assert_file(path, "one two");
	cr_expect_eq(count_entries(), 1, "what is not kept leaves nothing");
	cr_expect_eq(io_output_close(NULL, true, &err), 0);
}
