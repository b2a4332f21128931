/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/dir_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"

int dir_entry_init(int from, const char *path, struct dir_entry *ret)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[PATH_MAX];
	int fd;

	if (!*path)
		return -ENOENT; /* the directory of "" would be "." */
	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(path, "/"))
		return -EISDIR;
	if (!*name)
		return -ENOTDIR;
	if (strlen(name) > NAME_MAX || (size_t)(name - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	fd = openat(from, dir[0] ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = (struct dir_entry) { .dir = fd };
	memcpy(ret->name, name, strlen(name) + 1);
	return 0;
}

void dir_entry_deinit(struct dir_entry *p)
{
	if (p->dir >= 0)
		close(p->dir);
	p->dir = -1;
}

int dir_entry_open(const struct dir_entry *p, struct stat *ret)
{
	_cleanup_close_ int fd = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret))
		return -errno;
	return take_fd(&fd);
}

int fd_reopen(int fd, int flags)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, flags | O_CLOEXEC | O_NOCTTY);
	return ret < 0 ? -errno : ret;
}

bool uid_is_trusted(uid_t uid)
{
	uid_t invoker;
	gid_t gid;

	return uid == geteuid() || uid == 0 ||
	       (geteuid() == 0 && !io_invoker(&invoker, &gid) && uid == invoker);
}

bool dir_entry_may_be_planted(const struct dir_entry *p, const struct stat *st)
{
	struct stat dir;

	if (uid_is_trusted(st->st_uid))
		return false;
	return fstat(p->dir, &dir) || !uid_is_trusted(dir.st_uid) ||
	       dir.st_mode & (S_IWGRP | S_IWOTH);
}

int dir_entry_refuse(const char *verb, const char *path, const struct stat *st, struct err *err)
{
	err_set(err, -EPERM, ERR_RUNTIME, "cannot %s %s: it belongs to another user (uid %u)", verb,
		path, (unsigned int)st->st_uid);
	err_hint(err, "name a file in a directory of your own");
	return -EPERM;
}
