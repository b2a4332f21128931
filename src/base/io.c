/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

#define READ_CHUNK    16384
#define TEMP_ATTEMPTS 100
#define LINKS_MAX     40 /* as the kernel */

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

/* EPIPE is success: the reader had enough. */
static int write_stream(int fd, const void *data, size_t len)
{
	int r = io_write_full(fd, data, len);

	return r == -EPIPE ? 0 : r;
}

/* For what is no regular file. */
static int write_in_place(const char *path, const void *data, size_t len)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	int r;

	if (fd < 0)
		return -errno;
	r = write_stream(fd, data, len);
	if (r)
		return r;
	return close(take_fd(&fd)) ? -errno : 0;
}

/*
 * The file that @path names, following links in its last part only: realpath() would also follow
 * /proc/PID/root, whose text is a path of another mount namespace.
 */
static int follow_links(const char *path, char **ret)
{
	_cleanup_free_ char *name = strdup(path);

	if (!name)
		return -ENOMEM;
	for (int i = 0; i < LINKS_MAX; i++) {
		_cleanup_free_ char *next = NULL;
		char link[PATH_MAX];
		ssize_t n = readlink(name, link, sizeof(link) - 1);

		if (n < 0 && errno != EINVAL)
			return -errno;
		if (n < 0) {
			*ret = take_ptr(name);
			return 0;
		}
		link[n] = '\0';
		if (asprintf(&next, "%s%s%s", link[0] == '/' ? "" : dirname(name),
			     link[0] == '/' ? "" : "/", link) < 0) {
			next = NULL;
			return -ENOMEM;
		}
		free(name);
		name = take_ptr(next);
	}
	return -ELOOP;
}

/*
 * Create a file in @dir that no other process uses. open() and not mkstemp(), because it obeys the
 * umask. Returns the fd or -errno, and the path in @temp.
 */
static int create_temp(const char *dir, char *temp, size_t temp_size)
{
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		int n, fd;

		n = snprintf(temp, temp_size, "%s/.rbpf-%d-%d.tmp", dir, (int)getpid(), i);
		if (n < 0 || (size_t)n >= temp_size)
			return -ENAMETOOLONG;
		fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* The new file looks like the one it replaces; a new one belongs to who ran sudo. */
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

static int fill_temp(int fd, const void *data, size_t len, const struct stat *old)
{
	int r = set_owner_and_mode(fd, old);

	if (!r)
		r = io_write_full(fd, data, len);
	/* Network file systems may find out only now that the disk is full. */
	if (close(fd) && !r)
		r = -errno;
	return r;
}

/* @old is what stat() says of @path, NULL if there is no such file. */
static int replace_file(const char *path, const struct stat *old, const void *data, size_t len)
{
	_cleanup_free_ char *target = NULL;
	_cleanup_free_ char *dir_copy = NULL;
	char temp[PATH_MAX];
	int fd, r;

	/* A link stays a link: what it names is replaced. A dangling one is replaced itself. */
	r = old ? follow_links(path, &target) : 0;
	if (r)
		return r;
	if (!target)
		target = strdup(path);
	if (!target)
		return -ENOMEM;
	/* Renaming would not ask, but a file that was made read-only is meant to stay. */
	if (old && faccessat(AT_FDCWD, target, W_OK, AT_EACCESS))
		return -errno;
	dir_copy = strdup(target);
	if (!dir_copy)
		return -ENOMEM;
	fd = create_temp(dirname(dir_copy), temp, sizeof(temp));
	if (fd < 0)
		return fd;
	r = fill_temp(fd, data, len, old);
	if (!r && rename(temp, target))
		r = -errno;
	if (r)
		unlink(temp);
	return r;
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

int io_write_output(const char *path, const void *data, size_t len, struct err *err)
{
	int fd = fd_of_path(path);
	struct stat st;
	int r;

	if (fd >= 0) {
		r = write_stream(fd, data, len);
		if (fd == STDOUT_FILENO)
			path = "standard output";
	} else if (!*path) {
		r = -ENOENT; /* the directory of "" would be "." */
	} else if (stat(path, &st)) {
		r = errno == ENOENT ? replace_file(path, NULL, data, len) : -errno;
	} else if (S_ISREG(st.st_mode)) {
		r = replace_file(path, &st, data, len);
	} else {
		r = write_in_place(path, data, len); /* or a directory: EISDIR */
	}
	return r ? write_failed(err, path, r) : 0;
}
