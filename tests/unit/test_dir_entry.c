/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Outputs in a directory like /tmp, where another user has left something under the name that is
 * written to. Both ways to open an output are tried: io_write_output() and output_open().
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/dir_entry.h"
#include "profile/output.h"
#include "profile/reader.h"

#define STRANGER  3456
#define INVOKER	  1234
#define OTHER	  65534
#define SECRET	  "secret"
#define SWAPS	  400
#define SWAPS_MAX 1000000

static char dir[64];
static char out[128], victim[128];

static void make_dir(void)
{
	strcpy(dir, "/tmp/rbpf-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(out, sizeof(out), "%s/out", dir);
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	cr_assert_eq(chmod(dir, 01777), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void remove_dir(void)
{
	static const char *const names[] = { "out", "out.old", "victim", "sub/out", "sub" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (unlink(path))
			rmdir(path);
	}
	cr_expect_eq(rmdir(dir), 0, "no temporary file is left");
}

TestSuite(dir_entry, .init = make_dir, .fini = remove_dir);

static bool is_root(void)
{
	if (!geteuid())
		return true;
	remove_dir();
	cr_skip_test("needs root, to have files of other users");
	return false;
}

static void make_file(const char *path, const char *text, uid_t uid)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchown(fd, uid, uid), 0);
}

static void assert_file(const char *path, const char *want)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	cr_assert_eq(io_read_file(AT_FDCWD, path, 4096, &text), 0, "%s", path);
	cr_assert_str_eq(buf_str(&text), want, "%s", path);
}

static int write_output(struct err *err)
{
	return io_write_output(out, SECRET, strlen(SECRET), err);
}

static int write_recording(bool force, struct err *err)
{
	struct output_file o;
	int r = output_open(out, force, &o, err);

	if (!r)
		r = io_write_full(o.fd, SECRET, strlen(SECRET));
	if (!r)
		r = output_take_name(&o, err);
	output_close(&o);
	return r;
}

static void expect_refused(int r, const struct err *err)
{
	cr_expect_eq(r, -EPERM, "%d", r);
	cr_expect_eq(err->code, -EPERM);
	cr_expect_eq(err->kind, ERR_RUNTIME);
	cr_expect(strstr(err->msg, "/out: it belongs to another user (uid 3456)"), "%s", err->msg);
	cr_expect_str_not_empty(err->hint);
}

static void expect_both_refused(void)
{
	struct err err = { 0 };

	expect_refused(write_output(&err), &err);
	err = (struct err) { 0 };
	expect_refused(write_recording(false, &err), &err);
}

Test(dir_entry, file_of_another_user_is_refused)
{
	struct err err = { 0 };
	struct stat st;

	if (!is_root())
		return;
	make_file(out, "old", STRANGER);
	expect_both_refused();
	assert_file(out, "old");
	/* Also where others cannot write: the file could be read by them, or be given to them. */
	cr_assert_eq(chmod(dir, 0755), 0);
	expect_both_refused();

	cr_assert_eq(write_recording(true, &err), 0, "%s", err.msg);
	assert_file(out, SECRET);
	cr_assert_eq(stat(out, &st), 0);
	cr_expect_eq(st.st_uid, 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(dir_entry, predecessor_of_another_user_is_refused)
{
	char old[140];
	struct err err = { 0 };

	if (!is_root())
		return;
	snprintf(old, sizeof(old), "%s.old", out);
	make_file(old, "\x89RBPF\r\n\x1a", STRANGER);
	make_file(out, "\x89RBPF\r\n\x1a", 0);
	cr_expect_eq(write_recording(false, &err), -EPERM);
	cr_expect(strstr(err.msg, "/out.old: it belongs to another user"), "%s", err.msg);
	cr_expect_eq(write_recording(true, &err), 0);
	assert_file(out, SECRET);
}

/* What is under the hidden name of a recording that begins. */
Test(dir_entry, hidden_name_is_planted)
{
	char hidden[140];
	struct err err = { 0 };

	if (!is_root())
		return;
	snprintf(hidden, sizeof(hidden), "%s/.out.new", dir);
	make_file(victim, "precious", 0);
	cr_assert_eq(symlink("victim", hidden), 0);
	cr_assert_eq(lchown(hidden, STRANGER, STRANGER), 0);
	cr_expect_eq(write_recording(false, &err), -EEXIST);
	cr_expect(strstr(err.msg, "/out: .out.new beside it is not an rbpf recording"), "%s",
		  err.msg);
	cr_expect_eq(write_recording(true, &err), 0, "%s", err.msg);
	assert_file(out, SECRET);
	assert_file(victim, "precious");
}

Test(dir_entry, link_of_another_user_is_refused)
{
	struct err err = { 0 };

	if (!is_root())
		return;
	make_file(victim, "precious", 0);
	cr_assert_eq(symlink("victim", out), 0);
	cr_assert_eq(lchown(out, STRANGER, STRANGER), 0);
	expect_refused(write_output(&err), &err);
	cr_expect_eq(write_recording(false, &err), -ELOOP);
	cr_expect_eq(write_recording(true, &err), -ELOOP);
	assert_file(victim, "precious");

	/* Also one that leads to nothing. */
	cr_assert_eq(unlink(victim), 0);
	expect_refused(write_output(&err), &err);
	cr_expect_neq(access(victim, F_OK), 0);

	/* Where only root can put a link, it is meant. */
	make_file(victim, "old", 0);
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_expect_eq(write_output(&err), 0);
	assert_file(victim, SECRET);
}

Test(dir_entry, link_to_the_link_of_another_user_is_refused)
{
	char sub[140], link[160];
	struct err err = { 0 };

	if (!is_root())
		return;
	snprintf(sub, sizeof(sub), "%s/sub", dir);
	snprintf(link, sizeof(link), "%s/out", sub);
	make_file(victim, "precious", 0);
	cr_assert_eq(mkdir(sub, 0755), 0);
	cr_assert_eq(symlink(victim, link), 0);
	cr_assert_eq(symlink("sub/out", out), 0);
	cr_assert_eq(lchown(link, STRANGER, STRANGER), 0);
	cr_assert_eq(chown(sub, STRANGER, STRANGER), 0);
	expect_refused(write_output(&err), &err);
	assert_file(victim, "precious");
}

Test(dir_entry, fifo_of_another_user_is_refused)
{
	struct err err = { 0 };
	_cleanup_close_ int reader = -1;
	char got[16];

	if (!is_root())
		return;
	cr_assert_eq(mkfifo(out, 0666), 0);
	cr_assert_eq(chown(out, STRANGER, STRANGER), 0);
	reader = open(out, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	expect_both_refused();
	cr_expect_leq(read(reader, got, sizeof(got)), 0, "nothing was written");

	/* One's own is what was asked for. */
	cr_assert_eq(chown(out, 0, 0), 0);
	cr_expect_eq(write_output(&err), 0, "%s", err.msg);
	cr_expect_eq(write_recording(false, &err), 0, "%s", err.msg);
	cr_expect_eq(read(reader, got, sizeof(got)), 2 * strlen(SECRET));
}

Test(dir_entry, what_the_invoker_of_sudo_has_is_fine)
{
	struct err err = { 0 };
	struct stat st;

	if (!is_root())
		return;
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "1234", 1);
	make_file(victim, "old", INVOKER);
	cr_assert_eq(symlink("victim", out), 0);
	cr_assert_eq(lchown(out, INVOKER, INVOKER), 0);
	cr_expect_eq(write_output(&err), 0, "%s", err.msg);
	assert_file(victim, SECRET);
	cr_assert_eq(stat(victim, &st), 0);
	cr_expect_eq(st.st_uid, INVOKER);
}

static int write_as_other(void)
{
	struct err err = { 0 };

	if (setgid(OTHER) || setuid(OTHER))
		return 1;
	setenv("SUDO_UID", "3456", 1); /* means nothing to who is not root */
	setenv("SUDO_GID", "3456", 1);
	if (write_output(&err) != -EPERM || !strstr(err.msg, "another user"))
		return 2;
	return write_recording(false, &err) == -EPERM ? 0 : 3;
}

Test(dir_entry, without_privileges_the_same_holds)
{
	int status;
	pid_t pid;

	if (!is_root())
		return;
	make_file(out, "old", STRANGER);
	cr_assert_eq(chmod(out, 0666), 0);
	pid = fork();
	if (!pid)
		_exit(write_as_other());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%x", (unsigned int)status);
	assert_file(out, "old");
}

Test(dir_entry, what_another_user_left_is_not_read)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	if (!is_root())
		return;
	cr_assert_eq(mkfifo(out, 0666), 0);
	cr_assert_eq(chown(out, STRANGER, STRANGER), 0);
	expect_refused(profile_read(out, NULL, &p, &report, &err), &err);
	cr_assert_eq(unlink(out), 0);
	cr_assert_eq(symlink("/dev/null", out), 0);
	cr_assert_eq(lchown(out, STRANGER, STRANGER), 0);
	expect_refused(profile_read(out, NULL, &p, &report, &err), &err);
	cr_assert_eq(lchown(out, 0, 0), 0);
	cr_expect_eq(profile_read(out, NULL, &p, &report, &err), -ENODATA, "empty: %s", err.msg);
	cr_assert_eq(unlink(out), 0);
	make_file(out, "", STRANGER);
	cr_expect_eq(profile_read(out, NULL, &p, &report, &err), -ENODATA, "a file cannot harm");
}

/*
 * Another user who swaps, as fast as can be, what is under the name: a file that everybody can
 * read, a link to a file of root, a FIFO that is being read. Exit status 1: the FIFO brought the
 * secret.
 */
static void swap_for_ever(void)
{
	_cleanup_close_ int reader = -1;
	char path[140], got[16];

	snprintf(path, sizeof(path), "%s/fifo", dir);
	if (setgid(OTHER) || setuid(OTHER) || mkfifo(path, 0666))
		_exit(2);
	reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	for (;;) {
		close(open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
		unlink(out);
		if (!symlink(victim, out))
			unlink(out);
		if (!link(path, out))
			unlink(out);
		if (read(reader, got, sizeof(got)) > 0)
			_exit(1);
		if (getppid() == 1)
			_exit(3);
	}
}

Test(dir_entry, swaps_while_it_is_written)
{
	char fifo[140];
	int status, done = 0;
	struct stat st;
	pid_t pid;

	if (!is_root())
		return;
	make_file(victim, "precious", 0);
	pid = fork();
	if (!pid)
		swap_for_ever();
	/*
	 * On a busy machine the other process may stand still for long, and the file be its FIFO.
	 */
	for (int i = 0; i < SWAPS || (!done && i < SWAPS_MAX); i++) {
		int r = i % 2 ? write_output(NULL) : write_recording(true, NULL);

		done += !r;
		if (!lstat(out, &st) && S_ISREG(st.st_mode) && st.st_size) {
			cr_expect_eq(st.st_uid, 0, "the file with the secret is root's");
			cr_expect_eq(st.st_mode & 07777, 0600);
			unlink(out);
		}
	}
	assert_file(victim, "precious");
	cr_expect_eq(waitpid(pid, &status, WNOHANG), 0, "the FIFO brought nothing");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_expect_gt(done, 0, "it is written now and then");
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	unlink(fifo);
}
