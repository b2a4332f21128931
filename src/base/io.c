/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/dir_entry.h"

#define READ_CHUNK    16384
#define TEMP_ATTEMPTS 100
#define TEMP_NAME     64 /* bytes of the name of a temporary file */
#define LINKS_MAX     40 /* as the kernel */

int io_stat(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, ret) ? -errno
											 : 0;
}

dev_t io_device(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

int64_t io_time_ns(struct statx_timestamp time)
{
	return time.tv_sec * (int64_t)NSEC_PER_SEC + time.tv_nsec;
}

bool io_is_on_device(const struct statx *st)
{
	return st->stx_dev_major;
}

int io_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			/* A pipe that another process made non-blocking. */
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
				return -errno;
			continue;
		}
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int io_read_fd(int fd, size_t max, struct buf *buf)
{
	char chunk[READ_CHUNK];
	size_t before = buf->len;
	size_t total = 0;
	int err = 0;

	while (!err) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			return 0;
		if (n < 0) {
			err = -errno;
			if (err == -EINTR)
				err = 0;
			continue;
		}
		if ((size_t)n > max - total) {
			err = -EFBIG;
			continue;
		}
		total += (size_t)n;
		buf_add(buf, chunk, (size_t)n);
		if (buf_failed(buf))
			err = -ENOMEM;
	}
	buf->len = before;
	if (buf->data)
		buf->data[before] = '\0';
	return err;
}

int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return io_read_fd(fd, max, buf);
}

int io_invoker(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID");
	const char *gid_text = getenv("SUDO_GID");
	uint64_t u, g;

	if (!uid_text || !gid_text)
		return -ENOENT;
	/* The largest value, (uid_t)-1, means "do not change" to chown(). */
	if (parse_u64(uid_text, "SUDO_UID", 0, (uid_t)-1 - 1, &u, NULL) ||
	    parse_u64(gid_text, "SUDO_GID", 0, (gid_t)-1 - 1, &g, NULL))
		return -ENOENT;
	*uid = (uid_t)u;
	*gid = (gid_t)g;
	return 0;
}

int io_give_to_invoker(int fd)
{
	uid_t uid;
	gid_t gid;

	/* `sudo -u somebody` may not give files away, and need not. */
	if (geteuid() != 0 || io_invoker(&uid, &gid))
		return 0;
	return fchown(fd, uid, gid) ? -errno : 0;
}

static int write_failed(struct err *err, const char *path, int code)
{
	return err_set(err, code, ERR_RUNTIME, "cannot write %s: %s", path, strerror(-code));
}

/*
 * Create a file in @dir that no other process uses. open() and not mkstemp(), because it obeys the
 * umask. What root makes of a profile is private, as the recording is. Returns the fd or -errno,
 * and its name in @temp: "" if it has none yet.
 */
static int create_temp(int dir, char *temp)
{
	mode_t mode = geteuid() == 0 ? 0600 : 0666;
	int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);

	temp[0] = '\0';
	if (fd >= 0)
		return fd;
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		snprintf(temp, TEMP_NAME, ".rbpf-%d-%d.tmp", (int)getpid(), i);
		fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Give the file @fd that has no name one in @dir, in @temp. */
static int name_temp(int dir, int fd, char *temp)
{
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		snprintf(temp, TEMP_NAME, ".rbpf-%d-%d.tmp", (int)getpid(), i);
		if (!linkat(AT_FDCWD, link, dir, temp, AT_SYMLINK_FOLLOW))
			return 0;
		if (errno != EEXIST)
			break;
	}
	temp[0] = '\0';
	return -errno;
}

/*
 * The new file looks like the one it replaces, whose owner is trusted; a new one belongs to who ran
 * sudo.
 */
static int set_owner_and_mode(int fd, const struct stat *old)
{
	struct stat st;

	if (!old)
		return io_give_to_invoker(fd);
	if (fstat(fd, &st))
		return -errno;
	/* Only root may give it back; for others the content counts more than the owner. */
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) && errno != EPERM)
		return -errno;
	return fchmod(fd, old->st_mode & 0777) ? -errno : 0;
}

/* What is written to, at the end of all links. */
struct output {
	struct dir_entry at;
	int fd; /* what is there, O_PATH; -1 if nothing is */
	struct stat st;
};

static void output_deinit(struct output *out)
{
	dir_entry_deinit(&out->at);
	if (out->fd >= 0)
		close(out->fd);
}

/*
 * Step from the link @out to where it leads; *@end is set if that is no file by a name. The links
 * of /proc/PID/fd lead to things without a name: their text is none.
 */
static int follow_link(struct output *out, bool *end)
{
	struct dir_entry next = DIR_ENTRY_INIT;
	char link[PATH_MAX];
	struct statfs fs;
	struct stat st;
	ssize_t n;
	int fd, r;

	if (!fstatfs(out->fd, &fs) && fs.f_type == PROC_SUPER_MAGIC) {
		fd = openat(out->at.dir, out->at.name, O_PATH | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st) && !S_ISREG(st.st_mode)) {
			close(out->fd);
			out->fd = fd;
			out->st = st;
			*end = true;
			return 0;
		}
		if (fd >= 0)
			close(fd);
	}
	n = readlinkat(out->fd, "", link, sizeof(link) - 1);
	if (n < 0)
		return -errno;
	link[n] = '\0';
	r = dir_entry_init(out->at.dir, link, &next);
	if (r)
		return r;
	dir_entry_deinit(&out->at);
	close(take_fd(&out->fd));
	out->at = next;
	out->fd = dir_entry_open(&out->at, &out->st);
	return out->fd < 0 ? out->fd : 0;
}

/*
 * Find what @path stands for. A link that dangles stands for itself. Links, devices and FIFOs that
 * somebody may have planted for us are refused, as the kernel does with fs.protected_symlinks, and
 * so is each file of another user. @ret: output_deinit(), whatever is returned. -EPERM fills @err.
 */
static int find_output(const char *path, struct output *ret, struct err *err)
{
	bool end = false;
	int r;

	r = dir_entry_init(AT_FDCWD, path, &ret->at);
	if (r)
		return r;
	ret->fd = dir_entry_open(&ret->at, &ret->st);
	for (int i = 0; ret->fd >= 0 && S_ISLNK(ret->st.st_mode) && !end; i++) {
		if (i == LINKS_MAX)
			return -ELOOP;
		if (dir_entry_may_be_planted(&ret->at, &ret->st))
			return dir_entry_refuse("write", path, &ret->st, err);
		r = follow_link(ret, &end);
		if (r == -ENOENT && ret->fd < 0) { /* dangling */
			dir_entry_deinit(&ret->at);
			return dir_entry_init(AT_FDCWD, path, &ret->at);
		}
		if (r)
			return r;
	}
	if (ret->fd == -ENOENT)
		return 0;
	if (ret->fd < 0)
		return ret->fd;
	if (S_ISDIR(ret->st.st_mode))
		return -EISDIR;
	if (S_ISREG(ret->st.st_mode) ? !uid_is_trusted(ret->st.st_uid)
				     : dir_entry_may_be_planted(&ret->at, &ret->st))
		return dir_entry_refuse("write", path, &ret->st, err);
	return 0;
}

/*
 * The number of the open file that @path stands for, -1 if it is no such name. Opening the name
 * would start again at offset 0, over what a shell's `>> log` meant to keep.
 */
static int fd_of_path(const char *path)
{
	static const char *const prefixes[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t fd;

	if (!path || !strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(path, prefixes[i], n) &&
		    !parse_u64(path + n, path, 0, INT_MAX, &fd, NULL))
			return (int)fd;
	}
	return -1;
}

struct io_output {
	char *path;	     /* for messages; owned */
	struct dir_entry at; /* where a regular file goes */
	int fd;		     /* what is written to; -1 if nothing is */
	bool own;	     /* @fd is to be closed */
	bool regular;
	bool ended; /* the reader of a pipe had enough */
	char temp[TEMP_NAME];
};

/* @old is the file that is there, NULL if there is none. */
static int open_regular(struct io_output *out, struct output *found, const struct stat *old)
{
	/* Renaming would not ask, but a file that was made read-only is meant to stay. */
	if (old && faccessat(found->at.dir, found->at.name, W_OK, AT_EACCESS))
		return -errno;
	out->fd = create_temp(found->at.dir, out->temp);
	if (out->fd < 0)
		return out->fd;
	out->own = true;
	out->regular = true;
	out->at = found->at;
	found->at = (struct dir_entry)DIR_ENTRY_INIT; /* owned by @out now */
	return set_owner_and_mode(out->fd, old);
}

static int open_path(struct io_output *out, struct err *err)
{
	struct output found _cleanup_(output_deinit) = { .at = DIR_ENTRY_INIT, .fd = -1 };
	int r;

	r = find_output(out->path, &found, err);
	if (r)
		return r;
	if (found.fd < 0)
		return open_regular(out, &found, NULL);
	if (S_ISREG(found.st.st_mode))
		return open_regular(out, &found, &found.st);
	out->fd = fd_reopen(found.fd, O_WRONLY);
	out->own = true;
	return out->fd < 0 ? out->fd : 0;
}

int io_output_open(const char *path, struct io_output **ret, struct err *err)
{
	struct io_output *out = calloc(1, sizeof(*out));
	int fd = fd_of_path(path), r = 0;
	struct err why = { 0 };

	if (!out)
		return err_oom(err);
	*out = (struct io_output) { .at = DIR_ENTRY_INIT, .fd = fd };
	out->path = strdup(fd == STDOUT_FILENO ? "standard output" : path);
	if (!out->path)
		r = -ENOMEM;
	else if (fd < 0)
		r = open_path(out, &why);
	if (!r) {
		*ret = out;
		return 0;
	}
	if (why.code && err)
		*err = why;
	else
		write_failed(err, path, r);
	io_output_close(out, false, NULL);
	return r;
}

int io_output_write(struct io_output *out, const void *data, size_t len, struct err *err)
{
	int r = out->ended ? 0 : io_write_full(out->fd, data, len);

	/* The reader had enough. */
	if (r == -EPIPE && !out->regular) {
		out->ended = true;
		r = 0;
	}
	return r ? write_failed(err, out->path, r) : 0;
}

bool io_output_ended(const struct io_output *out)
{
	return out->ended;
}

/* What was written becomes the file of its name, or vanishes. */
static int finish_regular(struct io_output *out, bool keep)
{
	int r = 0;

	if (keep && !out->temp[0])
		r = name_temp(out->at.dir, out->fd, out->temp);
	/* Network file systems may find out only now that the disk is full. */
	if (close(take_fd(&out->fd)) && !r)
		r = -errno;
	if (keep && !r && renameat(out->at.dir, out->temp, out->at.dir, out->at.name))
		r = -errno;
	if ((!keep || r) && out->temp[0])
		unlinkat(out->at.dir, out->temp, 0);
	return r;
}

int io_output_close(struct io_output *out, bool keep, struct err *err)
{
	int r = 0;

	if (!out)
		return 0;
	if (out->regular)
		r = finish_regular(out, keep);
	else if (out->own && out->fd >= 0 && close(out->fd))
		r = -errno;
	if (r && keep)
		write_failed(err, out->path, r);
	dir_entry_deinit(&out->at);
	free(out->path);
	free(out);
	return keep ? r : 0;
}

int io_write_output(const char *path, const void *data, size_t len, struct err *err)
{
	struct io_output *out;
	int r;

	r = io_output_open(path, &out, err);
	if (r)
		return r;
	r = io_output_write(out, data, len, err);
	if (r) {
		io_output_close(out, false, NULL);
		return r;
	}
	return io_output_close(out, true, err);
}
