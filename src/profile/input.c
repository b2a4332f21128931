/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir_entry.h"
#include "base/err.h"
#include "base/parse.h"

int input_cannot_read(const char *name, int code, struct err *err)
{
	if (code == -ENOMEM)
		return err_oom(err);
	return err_set(err, code, ERR_PROFILE, "cannot read %s: %s", name, strerror(-code));
}

/*
 * Open the recording @path. Not a FIFO, a device or a link that somebody may have left for us: to
 * open it may already do something. Returns the descriptor, or -errno; -EPERM fills @err.
 */
static int open_recording(const char *path, struct err *err)
{
	struct dir_entry at _cleanup_dir_entry_ = DIR_ENTRY_INIT;
	_cleanup_close_ int found = -1;
	struct stat st;
	int r;

	r = dir_entry_init(AT_FDCWD, path, &at);
	if (!r)
		found = dir_entry_open(&at, &st);
	if (found == -ENOENT)
		return found;
	if (r || found < 0) /* a directory; what is wrong with the path */
		r = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && dir_entry_may_be_planted(&at, &st))
		return dir_entry_refuse("read", path, &st, err);
	else if (S_ISLNK(st.st_mode))
		r = openat(at.dir, at.name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	else
		return fd_reopen(found, O_RDONLY);
	return r < 0 ? -errno : r;
}

/*
 * A descriptor that the process was given need not be of a file that it may open: then it is read
 * itself, from its start. Returns a copy, or -errno.
 */
static int open_descriptor(const char *path)
{
	static const char dir[] = "/dev/fd/";
	uint64_t number;
	int fd;

	if (strncmp(path, dir, strlen(dir)) ||
	    parse_u64(path + strlen(dir), path, 0, INT_MAX, &number, NULL))
		return -EACCES;
	fd = fcntl((int)number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd < 0 || !lseek(fd, 0, SEEK_SET))
		return fd < 0 ? -errno : fd;
	close(fd);
	return -EACCES;
}

int input_open(const char *path, int *ret, struct err *err)
{
	_cleanup_close_ int fd = open_recording(path, err);
	struct stat st;

	if (fd == -EACCES)
		fd = open_descriptor(path);
	if (fd == -EPERM && err && err->code)
		return fd;
	if (fd == -ENOENT) {
		err_set(err, fd, ERR_PROFILE, "there is no %s", path);
		err_hint(err, "'rbpf record' makes a recording");
		return fd;
	}
	if (fd < 0)
		return input_cannot_read(path, fd, err);
	/* read() of a directory would fail too, but say less. */
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, ERR_PROFILE, "%s is a directory, not an rbpf profile",
			       path);
	*ret = fd;
	fd = -1; /* owned by *ret now */
	return 0;
}
