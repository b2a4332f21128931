/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Root often records, often in a directory that belongs to someone else, and under a name that is
 * easy to guess. So a regular file is never opened for writing through a name that was there
 * before: the name is freed by rename() or unlink(), which change a directory only, and taken with
 * O_EXCL. A symbolic or hard link that somebody left for us then costs nothing but itself, and
 * fchown() and the mode 0600 apply to a file that is ours alone.
 */
#include "profile/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
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
	FOUND_SPECIAL, /* a device, fifo or socket */
};

static enum found classify_content(const char *path)
{
	_cleanup_close_ int fd = -1;
	char magic[RBPF_FILE_MAGIC_LEN];
	ssize_t n;

	/* O_NONBLOCK: should it have become a fifo since. */
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return FOUND_OTHER;
	n = read(fd, magic, sizeof(magic));
	if (n == 0)
		return FOUND_EMPTY;
	return n > 0 && file_magic_matches(magic, (size_t)n) ? FOUND_RECORDING : FOUND_OTHER;
}

static int classify(const char *path, enum found *ret)
{
	struct stat st;

	if (lstat(path, &st)) {
		if (errno != ENOENT)
			return -errno;
		*ret = FOUND_NOTHING;
	} else if (S_ISREG(st.st_mode)) {
		*ret = st.st_size ? classify_content(path) : FOUND_EMPTY;
	} else if (S_ISDIR(st.st_mode)) {
		*ret = FOUND_DIRECTORY;
	} else if (S_ISLNK(st.st_mode)) {
		*ret = FOUND_LINK;
	} else {
		*ret = FOUND_SPECIAL;
	}
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

/* Keep the recording @path as PATH.old, whose own predecessor goes. */
static int keep_old(const char *path, bool force, struct err *err)
{
	_cleanup_buf_ struct buf old = BUF_INIT;
	enum found found;
	int r;

	buf_addf(&old, "%s.old", path);
	if (buf_failed(&old))
		return err_oom(err);
	r = classify(buf_str(&old), &found);
	if (!r && found == FOUND_OTHER && !force)
		return refuse(buf_str(&old), err);
	if (!r && rename(path, buf_str(&old)))
		r = -errno;
	if (r)
		return err_set(err, r, ERR_RUNTIME, "cannot rename %s to %s: %s", path,
			       buf_str(&old), strerror(-r));
	return 0;
}

static int replace(const char *path, struct err *err)
{
	int r;

	if (!unlink(path) || errno == ENOENT)
		return 0;
	r = -errno;
	return err_set(err, r, ERR_RUNTIME, "cannot replace %s: %s", path, strerror(-r));
}

static int make_way(const char *path, enum found found, bool force, struct err *err)
{
	switch (found) {
	case FOUND_NOTHING:
	case FOUND_SPECIAL:
		break;
	case FOUND_EMPTY:
		return replace(path, err); /* it is not worth a PATH.old that may hold something */
	case FOUND_RECORDING:
		return keep_old(path, force, err);
	case FOUND_OTHER:
		return force ? replace(path, err) : refuse(path, err);
	case FOUND_DIRECTORY:
		return cannot_write(path, -EISDIR, err);
	case FOUND_LINK:
		err_set(err, -ELOOP, ERR_RUNTIME, "cannot write %s: it is a symbolic link", path);
		err_hint(err, "name the file itself, or '-' for standard output");
		return -ELOOP;
	}
	return 0;
}

int output_open(const char *path, bool force, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	enum found found = FOUND_SPECIAL;
	int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	int r;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	} else {
		r = classify(path, &found);
		if (r)
			return cannot_write(path, r, err);
		r = make_way(path, found, force, err);
		if (r)
			return r;
		if (found != FOUND_SPECIAL)
			flags |= O_CREAT | O_EXCL;
		fd = open(path, flags, 0600);
	}
	if (fd < 0)
		return cannot_write(path, -errno, err);
	if (found != FOUND_SPECIAL) {
		/* Not fatal: the file is good, it only needs sudo to be read. */
		(void)io_give_to_invoker(fd);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}
