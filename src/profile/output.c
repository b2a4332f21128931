/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A new file begins under a hidden name beside its own, .NAME.new, and gets its name when its owner
 * says so. The hidden name is always the same, so that of two rbpfs which begin to write one file
 * the second learns that, and so that what a killed one left is replaced by the next.
 *
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
#include <stdlib.h>
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

/* Where the recording at @at is kept: PATH.old. @old borrows the directory of @at. */
static int old_entry(const char *path, const struct dir_entry *at, struct dir_entry *old,
		     struct buf *old_path, struct err *err)
{
	buf_addf(old_path, "%s.old", path);
	if (buf_failed(old_path))
		return err_oom(err);
	if (strlen(at->name) + strlen(".old") > NAME_MAX)
		return cannot_write(buf_str(old_path), -ENAMETOOLONG, err);
	*old = *at;
	strcat(old->name, ".old");
	return 0;
}

/* Refuse to keep the recording at @at as PATH.old if that would cost what is of value there. */
static int check_old(const char *path, const struct dir_entry *at, bool force, struct err *err)
{
	_cleanup_buf_ struct buf old_path = BUF_INIT;
	_cleanup_close_ int fd = -1;
	struct dir_entry old;
	enum found found;
	struct stat st;
	int r;

	r = old_entry(path, at, &old, &old_path, err);
	if (r)
		return r;
	r = classify(&old, &found, &fd, &st);
	if (r)
		return cannot_write(buf_str(&old_path), r, err);
	if (found == FOUND_OTHER && !force)
		return refuse(buf_str(&old_path), err);
	if ((found == FOUND_FOREIGN || found == FOUND_PLANTED) && !force)
		return refuse_foreign(buf_str(&old_path), &st, err);
	if (found == FOUND_DIRECTORY)
		return cannot_write(buf_str(&old_path), -EISDIR, err);
	return found == FOUND_RECORDING ? refuse_locked(buf_str(&old_path), fd, err) : 0;
}

/* Keep the recording at @at as PATH.old, whose own predecessor goes. */
static int keep_old(const char *path, const struct dir_entry *at, struct err *err)
{
	_cleanup_buf_ struct buf old_path = BUF_INIT;
	struct dir_entry old;
	int r;

	r = old_entry(path, at, &old, &old_path, err);
	if (r || !renameat(at->dir, at->name, at->dir, old.name))
		return r;
	r = -errno;
	return err_set(err, r, ERR_RUNTIME, "cannot rename %s to %s: %s", path, buf_str(&old_path),
		       strerror(-r));
}

static int replace(const char *path, const struct dir_entry *at, struct err *err)
{
	int r;

	if (!unlinkat(at->dir, at->name, 0) || errno == ENOENT)
		return 0;
	r = -errno;
	return err_set(err, r, ERR_RUNTIME, "cannot replace %s: %s", path, strerror(-r));
}

/* Refuse to replace what was @found at @at, and is @fd and @st. */
static int check_found(const char *path, const struct dir_entry *at, enum found found, int fd,
		       const struct stat *st, bool force, struct err *err)
{
	if ((found == FOUND_EMPTY || found == FOUND_RECORDING) && refuse_locked(path, fd, err))
		return -EBUSY;
	switch (found) {
	case FOUND_NOTHING:
	case FOUND_SPECIAL:
	case FOUND_EMPTY:
		break;
	case FOUND_RECORDING:
		return check_old(path, at, force, err);
	case FOUND_OTHER:
		return force ? 0 : refuse(path, err);
	case FOUND_PLANTED:
	case FOUND_FOREIGN:
		return force ? 0 : refuse_foreign(path, st, err);
	case FOUND_DIRECTORY:
		return cannot_write(path, -EISDIR, err);
	case FOUND_LINK:
		err_set(err, -ELOOP, ERR_RUNTIME, "cannot write %s: it is a symbolic link", path);
		err_hint(err, "name the file itself, or '-' for standard output");
		return -ELOOP;
	}
	return 0;
}

/* Look at what @path names, and refuse to replace it. *@fd is what was found, or -1. */
static int examine(const char *path, const struct dir_entry *at, bool force, enum found *ret,
		   int *fd, struct err *err)
{
	struct stat st;
	int r = classify(at, ret, fd, &st);

	return r ? cannot_write(path, r, err) : check_found(path, at, *ret, *fd, &st, force, err);
}

/* Free the name @at of what was @found there, and may be replaced. */
static int make_way(const char *path, const struct dir_entry *at, enum found found, struct err *err)
{
	switch (found) {
	case FOUND_NOTHING:
	case FOUND_SPECIAL: /* taking the name fails */
		return 0;
	case FOUND_RECORDING:
		return keep_old(path, at, err);
	default:
		/* An empty file is not worth a PATH.old that may hold something. */
		return replace(path, at, err);
	}
}

/* Free the hidden name @new of a recording that was killed before its first sample. */
static int clear_new(const char *path, const struct dir_entry *new, bool force, struct err *err)
{
	_cleanup_close_ int fd = -1;
	enum found found;
	struct stat st;
	int r;

	r = classify(new, &found, &fd, &st);
	if (r)
		return cannot_write(path, r, err);
	if (found == FOUND_NOTHING)
		return 0;
	if (found != FOUND_EMPTY && found != FOUND_RECORDING && !force) {
		err_set(err, -EEXIST, ERR_RUNTIME,
			"cannot write %s: %s beside it is not an rbpf recording", path, new->name);
		err_hint(err, "--force overwrites it");
		return -EEXIST;
	}
	return refuse_locked(path, fd, err) ?: replace(path, new, err);
}

/* Create the regular file that is to get the name @o->at. */
static int create_new(struct output_file *o, struct err *err)
{
	struct dir_entry new = o->at; /* its directory is not owned */
	int r;

	r = snprintf(new.name, sizeof(new.name), ".%s.new", o->at.name);
	if ((size_t)r >= sizeof(new.name))
		return cannot_write(o->path, -ENAMETOOLONG, err);
	r = clear_new(o->path, &new, o->force, err);
	if (r)
		return r;
	o->fd = openat(new.dir, new.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       0600);
	if (o->fd < 0)
		return cannot_write(o->path, -errno, err);
	strcpy(o->hidden, new.name);
	/*
	 * Neither is fatal: without its lock it can lose its name, and without its owner it only
	 * needs sudo to be read.
	 */
	(void)flock(o->fd, LOCK_EX | LOCK_NB);
	(void)io_give_to_invoker(o->fd);
	return 0;
}

static int open_path(struct output_file *o, struct err *err)
{
	_cleanup_close_ int found_fd = -1;
	enum found found;
	int r;

	r = dir_entry_init(AT_FDCWD, o->path, &o->at);
	if (r)
		return cannot_write(o->path, r, err);
	r = examine(o->path, &o->at, o->force, &found, &found_fd, err);
	if (r)
		return r;
	if (found != FOUND_SPECIAL)
		return create_new(o, err);
	o->fd = fd_reopen(found_fd, O_WRONLY);
	return o->fd < 0 ? cannot_write(o->path, take_fd(&o->fd), err) : 0;
}

int output_open(const char *path, bool force, struct output_file *ret, struct err *err)
{
	int r;

	*ret = (struct output_file)OUTPUT_INIT;
	ret->force = force;
	if (!strcmp(path, "-")) {
		ret->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		return ret->fd < 0 ? cannot_write(path, -errno, err) : 0;
	}
	ret->path = strdup(path);
	r = ret->path ? open_path(ret, err) : err_oom(err);
	if (r)
		output_close(ret);
	return r;
}

/* Not every file system can refuse to replace a name, as NFS; it has been examined just now. */
static int rename_new(const struct output_file *o)
{
	const int dir = o->at.dir;

	if (!renameat2(dir, o->hidden, dir, o->at.name, RENAME_NOREPLACE))
		return 0;
	if (errno == EINVAL && !renameat(dir, o->hidden, dir, o->at.name))
		return 0;
	return -errno;
}

int output_take_name(struct output_file *o, struct err *err)
{
	_cleanup_close_ int fd = -1;
	enum found found;
	int r;

	if (!o->hidden[0])
		return 0;
	r = examine(o->path, &o->at, o->force, &found, &fd, err);
	if (!r)
		r = make_way(o->path, &o->at, found, err);
	if (r)
		return r;
	r = rename_new(o);
	if (r)
		return cannot_write(o->path, r, err);
	o->hidden[0] = '\0';
	return 0;
}

int output_close(struct output_file *o)
{
	int r = 0;

	if (o->hidden[0])
		(void)unlinkat(o->at.dir, o->hidden, 0);
	if (o->fd >= 0 && close(o->fd))
		r = -errno;
	dir_entry_deinit(&o->at);
	free(o->path);
	*o = (struct output_file)OUTPUT_INIT;
	return r;
}

bool output_is_recording(const char *path)
{
	struct dir_entry at _cleanup_dir_entry_ = DIR_ENTRY_INIT;
	_cleanup_close_ int fd = -1;
	enum found found;
	struct stat st;

	return strcmp(path, "-") && !dir_entry_init(AT_FDCWD, path, &at) &&
	       !classify(&at, &found, &fd, &st) && found == FOUND_RECORDING;
}
