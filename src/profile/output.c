/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Root often records, often in a directory that belongs to someone else, and under a name that is
 * easy to guess. So a regular file is never opened for writing through a name that was there
 * before: the name is freed by rename() or unlink(), which change a directory only, and taken with
 * O_EXCL. A symbolic or hard link that somebody left for us then costs nothing but itself, and
 * fchown() and the mode 0600 apply to a file that is ours alone. All of it is done in one
 * directory, which is opened once, and a FIFO or device is opened by the descriptor that was
 * examined.
 *
 * Who writes a recording holds flock(LOCK_EX) on it, until the file is closed. Its name is not
 * taken from it meanwhile: what it says of its file at the end would be of another one. Where that
 * is not known, on a file system without flock(), nothing is refused. Between the creation of a
 * file and its lock are some microseconds, in which another rbpf can still take the name.
 */
#include "profile/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/dir_entry.h"
#include "profile/chunk.h"

const char *output_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard output";
}

/* What is found under a name. */
enum found {
	FOUND_NOTHING,
	FOUND_EMPTY,	 /* an empty regular file */
	FOUND_RECORDING, /* a regular file with our magic */
	FOUND_OTHER,	 /* any other regular file, also one that cannot be read */
	FOUND_DIRECTORY,
	FOUND_LINK,
	FOUND_SPECIAL, /* a device, fifo or socket … */
	FOUND_PLANTED, /* … that somebody may have left for us */
	FOUND_FOREIGN, /* a regular file of a user who is not trusted */
};

/* @fd is O_PATH and a regular file. */
static enum found classify_content(int fd)
{
	_cleanup_close_ int in = fd_reopen(fd, O_RDONLY | O_NONBLOCK);
	char magic[RBPF_FILE_MAGIC_LEN];
	ssize_t n;

	if (in < 0)
		return FOUND_OTHER;
	n = read(in, magic, sizeof(magic));
	if (n == 0)
		return FOUND_EMPTY;
	return n > 0 && file_magic_matches(magic, (size_t)n) ? FOUND_RECORDING : FOUND_OTHER;
}

/* *@fd is what was found, O_PATH, or -1. */
static int classify(const struct dir_entry *at, enum found *ret, int *fd, struct stat *st)
{
	*fd = dir_entry_open(at, st);
	if (*fd < 0 && *fd != -ENOENT)
		return *fd;
	if (*fd < 0)
		*ret = FOUND_NOTHING;
	else if (S_ISDIR(st->st_mode))
		*ret = FOUND_DIRECTORY;
	else if (S_ISLNK(st->st_mode))
		*ret = FOUND_LINK;
	else if (!S_ISREG(st->st_mode))
		*ret = dir_entry_may_be_planted(at, st) ? FOUND_PLANTED : FOUND_SPECIAL;
	else if (!uid_is_trusted(st->st_uid))
		*ret = FOUND_FOREIGN;
	else
		*ret = st->st_size ? classify_content(*fd) : FOUND_EMPTY;
	return 0;
}

static int refuse(const char *path, struct err *err)
{
	err_set(err, -EEXIST, ERR_RUNTIME, "%s exists and is not an rbpf recording", path);
	err_hint(err, "--force overwrites it");
	return -EEXIST;
}

static int cannot_write(const char *path, int code, struct err *err)
{
	return err_set(err, code, ERR_RUNTIME, "cannot write %s: %s", output_name(path),
		       strerror(-code));
}

static int refuse_foreign(const char *path, const struct stat *st, struct err *err)
{
	dir_entry_refuse("write", path, st, err);
	err_hint(err, "--force replaces it");
	return -EPERM;
}

/*
 * Refuse to take its name from the file @fd (O_PATH) if somebody writes it. A shared lock tells
 * that as well as LOCK_EX, and NFS gives it to who has opened a file for reading.
 */
static int refuse_locked(const char *path, int fd, struct err *err)
{
	_cleanup_close_ int in = fd_reopen(fd, O_RDONLY | O_NONBLOCK);

	if (in < 0 || !flock(in, LOCK_SH | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	err_set(err, -EBUSY, ERR_RUNTIME, "cannot replace %s: another rbpf is writing it", path);
	err_hint(err, "-o FILE writes this recording to another file");
	return -EBUSY;
}

/* Keep the recording at @at as PATH.old, whose own predecessor goes. */
static int keep_old(const char *path, const struct dir_entry *at, bool force, struct err *err)
{
	_cleanup_buf_ struct buf old_path = BUF_INIT;
	_cleanup_close_ int fd = -1;
	struct dir_entry old = *at; /* its directory is not owned */
	enum found found;
	struct stat st;
	int r;

	buf_addf(&old_path, "%s.old", path);
	if (buf_failed(&old_path))
		return err_oom(err);
	if (strlen(at->name) + strlen(".old") > NAME_MAX)
		return cannot_write(buf_str(&old_path), -ENAMETOOLONG, err);
	strcat(old.name, ".old");
	r = classify(&old, &found, &fd, &st);
	if (!r && found == FOUND_OTHER && !force)
		return refuse(buf_str(&old_path), err);
	if (!r && (found == FOUND_FOREIGN || found == FOUND_PLANTED) && !force)
		return refuse_foreign(buf_str(&old_path), &st, err);
	if (!r && found == FOUND_RECORDING && refuse_locked(buf_str(&old_path), fd, err))
		return -EBUSY;
	if (!r && renameat(at->dir, at->name, at->dir, old.name))
		r = -errno;
	if (r)
		return err_set(err, r, ERR_RUNTIME, "cannot rename %s to %s: %s", path,
			       buf_str(&old_path), strerror(-r));
	return 0;
}

static int replace(const char *path, const struct dir_entry *at, struct err *err)
{
	int r;

	if (!unlinkat(at->dir, at->name, 0) || errno == ENOENT)
		return 0;
	r = -errno;
	return err_set(err, r, ERR_RUNTIME, "cannot replace %s: %s", path, strerror(-r));
}

/* @fd and @st: of what was @found under the name. */
static int make_way(const char *path, const struct dir_entry *at, enum found found, int fd,
		    const struct stat *st, bool force, struct err *err)
{
	if ((found == FOUND_EMPTY || found == FOUND_RECORDING) && refuse_locked(path, fd, err))
		return -EBUSY;
	switch (found) {
	case FOUND_NOTHING:
	case FOUND_SPECIAL:
		break;
	case FOUND_EMPTY:
		/* It is not worth a PATH.old that may hold something. */
		return replace(path, at, err);
	case FOUND_RECORDING:
		return keep_old(path, at, force, err);
	case FOUND_OTHER:
		return force ? replace(path, at, err) : refuse(path, err);
	case FOUND_PLANTED:
	case FOUND_FOREIGN:
		return force ? replace(path, at, err) : refuse_foreign(path, st, err);
	case FOUND_DIRECTORY:
		return cannot_write(path, -EISDIR, err);
	case FOUND_LINK:
		err_set(err, -ELOOP, ERR_RUNTIME, "cannot write %s: it is a symbolic link", path);
		err_hint(err, "name the file itself, or '-' for standard output");
		return -ELOOP;
	}
	return 0;
}

/* Open what @path names as output_open() says. Returns the descriptor, or -errno as @err tells. */
static int open_path(const char *path, bool force, struct err *err)
{
	struct dir_entry at _cleanup_dir_entry_ = DIR_ENTRY_INIT;
	_cleanup_close_ int found_fd = -1;
	enum found found;
	struct stat st;
	int fd, r;

	r = dir_entry_init(AT_FDCWD, path, &at);
	if (!r)
		r = classify(&at, &found, &found_fd, &st);
	if (r)
		return cannot_write(path, r, err);
	r = make_way(path, &at, found, found_fd, &st, force, err);
	if (r)
		return r;
	if (found == FOUND_SPECIAL) {
		fd = fd_reopen(found_fd, O_WRONLY);
		return fd < 0 ? cannot_write(path, fd, err) : fd;
	}
	fd = openat(at.dir, at.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cannot_write(path, -errno, err);
	/*
	 * Neither is fatal: without its lock it can lose its name, and without its owner it only
	 * needs sudo to be read.
	 */
	(void)flock(fd, LOCK_EX | LOCK_NB);
	(void)io_give_to_invoker(fd);
	return fd;
}

int output_open(const char *path, bool force, int *ret_fd, struct err *err)
{
	int fd;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (fd < 0)
			return cannot_write(path, -errno, err);
	} else {
		fd = open_path(path, force, err);
		if (fd < 0)
			return fd;
	}
	*ret_fd = fd;
	return 0;
}
