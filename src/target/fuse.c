/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

#define MOUNTS_MAX (16u << 20) /* bytes of /proc/PID/mountinfo: some 100,000 mounts */

/* The owner of the user namespace of @pid. Returns 0, -ENOENT if that is ours, or -errno. */
static int namespace_owner(pid_t pid, uid_t *ret)
{
	_cleanup_close_ int fd = -1, own = -1;
	struct stat st, ours;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || own < 0 || fstat(fd, &st) || fstat(own, &ours))
		return -errno;
	if (st.st_ino == ours.st_ino)
		return -ENOENT;
	return ioctl(fd, NS_GET_OWNER_UID, ret) ? -errno : 0;
}

/*
 * "36 35 0:41 / /mnt rw,nosuid shared:1 - fuse.sshfs host: rw,user_id=1000,group_id=1000"; what is
 * written by others, as the name of the source, has its blanks escaped.
 */
static int server_of_line(const char *line, uint32_t major, uint32_t minor, uid_t *ret)
{
	unsigned int line_major, line_minor, uid;
	const char *type = strstr(line, " - "), *options;

	if (sscanf(line, "%*u %*u %u:%u ", &line_major, &line_minor) != 2 || line_major != major ||
	    line_minor != minor || !type || strncmp(type + 3, "fuse", 4))
		return -ENOENT;
	options = strrchr(type, ' ');
	options = strstr(options, "user_id=");
	if (!options || sscanf(options, "user_id=%u", &uid) != 1)
		return -ENOENT;
	*ret = uid;
	return 0;
}

int fuse_server(pid_t pid, uint32_t major, uint32_t minor, uid_t *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	char path[32], *line, *end;
	int r;

	r = namespace_owner(pid, ret);
	if (r != -ENOENT)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	r = io_read_file(AT_FDCWD, path, MOUNTS_MAX, &text);
	if (r || !*buf_str(&text))
		return r ? r : -ENOENT;
	r = -ENOENT;
	for (line = text.data; r && line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		r = server_of_line(line, major, minor, ret);
	}
	return r;
}
