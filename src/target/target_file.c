/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/dir_entry.h"
#include "target/fuse.h"
#include "target/open_helper.h"

#ifndef FUSE_SUPER_MAGIC /* linux/magic.h since 5.16 */
#define FUSE_SUPER_MAGIC 0x65735546
#endif

#define MOUNTS_MAX    (16u << 20) /* bytes of mountinfo */
#define STATUS_MAX    (64u << 10) /* bytes of /proc/PID/status; a list of 65536 groups comes last */

/* A path with ".." fails while a directory is renamed anywhere; then it is tried again. */
#define RESOLVE_TRIES 16

/* ---- finding ---- */

/* What lookup() and open_if() return if they may have to wait. */
#define MAY_WAIT      -EINPROGRESS

/* @wait false: what the kernel does not know yet is not looked up (Linux 5.12). */
static int lookup(int dir, const char *path, uint64_t extra_flags, bool wait)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | extra_flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (wait ? 0 : RESOLVE_CACHED),
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	if (fd < 0 && !wait && (errno == EAGAIN || errno == EINVAL))
		return MAY_WAIT;
	return fd < 0 ? -errno : fd;
}

static int find_in_root(const char *root, const char *path, uint64_t extra_flags, bool wait)
{
	_cleanup_close_ int dir = open(root[0] ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int i, r = -EAGAIN;

	if (dir < 0)
		return -errno;
	for (i = 0; i < RESOLVE_TRIES && r == -EAGAIN; i++)
		r = lookup(dir, path, extra_flags, wait);
	return r;
}

static int find_in_target(pid_t pid, const char *path, uint64_t extra_flags, bool wait)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	return find_in_root(root, path, extra_flags, wait);
}

static int find_link(const char *link)
{
	int fd = open(link, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* @named: it was found by a name, which may stand for another file by now. */
static int find_mapped(const struct target_file_request *req, bool wait, bool *named)
{
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)req->pid,
		 req->start, req->end);
	fd = find_link(link);
	if (fd >= 0)
		return fd;
	*named = true;
	return find_in_target(req->pid, req->path, 0, wait);
}

static int find(const struct target_file_request *req, bool wait, bool *named)
{
	char link[32];

	switch (req->kind) {
	case TARGET_FILE_MAPPED:
		return find_mapped(req, wait, named);
	case TARGET_FILE_EXE:
		snprintf(link, sizeof(link), "/proc/%d/exe", (int)req->pid);
		return find_link(link);
	case TARGET_FILE_PERF_MAP:
		*named = true;
		return find_in_target(req->pid, req->path, O_NOFOLLOW, wait);
	case TARGET_FILE_DEBUG:
		*named = true;
		return find_in_root(req->root, req->path, 0, wait);
	}
	return -EINVAL;
}

/* ---- checking ---- */

/* The effective user of @pid. */
static int read_user(pid_t pid, uid_t *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	const char *line;
	char path[32];
	unsigned int uid;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = io_read_file(AT_FDCWD, path, STATUS_MAX, &text);
	if (r)
		return r;
	line = strstr(buf_str(&text), "\nUid:");
	if (!line || sscanf(line, " Uid: %*u %u", &uid) != 1)
		return -ESRCH;
	*ret = uid;
	return 0;
}

/*
 * Files of these are regular by their type only: reading one may wait, or do something. None of
 * them can be mapped.
 */
static bool is_of_kernel(const struct statfs *fs)
{
	static const uint32_t kinds[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,	  DEBUGFS_MAGIC,    TRACEFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,  SECURITYFS_MAGIC, SELINUX_MAGIC,
		SMACK_MAGIC,	    PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,   BPF_FS_MAGIC,
		BINFMTFS_MAGIC,	    RDTGROUP_SUPER_MAGIC,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((uint32_t)fs->f_type == kinds[i])
			return true;
	return false;
}

/* In whose root the file is. */
static pid_t process_of(const struct target_file_request *req)
{
	int pid = (int)req->pid;

	if (req->kind == TARGET_FILE_DEBUG && sscanf(req->root, "/proc/%d/", &pid) != 1)
		pid = (int)getpid();
	return pid;
}

/*
 * Of a FUSE only if its server is a user who may do to us what he likes: one that does not answer
 * would stop rbpf for ever.
 */
static int check_file_system(const struct target_file_request *req, int fd, const struct statx *st)
{
	struct statfs fs;
	uid_t server;

	if (fstatfs(fd, &fs) || is_of_kernel(&fs))
		return -ENOTSUP;
	if ((uint32_t)fs.f_type != FUSE_SUPER_MAGIC)
		return 0;
	return !fuse_server(process_of(req), st->stx_dev_major, st->stx_dev_minor, &server) &&
			       uid_is_trusted(server)
		       ? 0
		       : -EPERM;
}

static int check_perf_map(const struct target_file_request *req, const struct statx *st)
{
	uid_t user;
	int r;

	if (st->stx_mode & S_IWOTH)
		return -EPERM;
	r = read_user(req->pid, &user);
	if (r)
		return r;
	return st->stx_uid == user ? 0 : -EPERM;
}

static int check_debug(const struct target_file_request *req, const struct statx *st)
{
	const bool readable = st->stx_mode & S_IROTH;

	if (st->stx_size > TARGET_FILE_MAX_DEBUG)
		return -EFBIG;
	if (req->root[0])
		return readable || st->stx_uid == req->owner ? 0 : -EPERM;
	if (!readable || (st->stx_uid && st->stx_uid != geteuid()) || st->stx_mode & S_IWOTH ||
	    (st->stx_mode & S_IWGRP && st->stx_gid))
		return -EPERM;
	return 0;
}

static int check(const struct target_file_request *req, int fd, bool named, const struct statx *st)
{
	int r = io_is_on_device(st) ? 0 : check_file_system(req, fd, st);

	if (r)
		return r;
	switch (req->kind) {
	case TARGET_FILE_MAPPED:
		if (named && st->stx_ino != req->inode)
			return -ESTALE;
		return st->stx_size > TARGET_FILE_MAX_MAPPED ? -EFBIG : 0;
	case TARGET_FILE_EXE:
		return st->stx_size > TARGET_FILE_MAX_MAPPED ? -EFBIG : 0;
	case TARGET_FILE_PERF_MAP:
		return check_perf_map(req, st);
	case TARGET_FILE_DEBUG:
		return check_debug(req, st);
	}
	return -EINVAL;
}

/* ---- opening ---- */

/*
 * O_NONBLOCK: opening does not wait up to 45 s (fs.lease-break-time) for who holds a lease on it.
 */
static int open_found(int fd)
{
	char link[32];
	int opened;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	opened = open(link, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

/* Whether @st is of a file system that is mounted where rbpf runs: users cannot do that. */
static bool is_mounted_here(const struct statx *st)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	unsigned int major, minor;
	const char *line;

	if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &text))
		return false;
	for (line = buf_str(&text); *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (sscanf(line, "%*u %*u %u:%u ", &major, &minor) == 2 &&
		    major == st->stx_dev_major && minor == st->stx_dev_minor)
			return true;
	return false;
}

/*
 * An overlay passes on what is done to its files, also their closing, to the file system below,
 * which may be a FUSE: users can mount that in a user namespace of their own. It does not tell
 * which one it is. But file systems on disks know where a file lies on them, and FUSE does not.
 */
static bool is_overlay_of_users(int fd, const struct statx *st)
{
	struct fiemap where = { .fm_length = 1 };
	struct statfs fs;

	if (fstatfs(fd, &fs) || (uint32_t)fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return false;
	return ioctl(fd, FS_IOC_FIEMAP, &where) && !is_mounted_here(st);
}

static int open_if(const struct target_file_request *req, bool wait)
{
	_cleanup_close_ int fd = -1;
	bool named = false;
	struct statx st;
	int r, opened;

	fd = find(req, wait, &named);
	if (fd < 0)
		return fd;
	/* The cached attributes do: a server is not asked for them. */
	r = io_stat(fd, &st);
	if (r)
		return r;
	if (!S_ISREG(st.stx_mode))
		return -ENOTSUP;
	if (!wait && !io_is_on_device(&st))
		return MAY_WAIT;
	r = check(req, fd, named, &st);
	if (r)
		return r;
	opened = open_found(fd);
	if (opened >= 0 && !io_is_on_device(&st) && is_overlay_of_users(opened, &st)) {
		close(opened);
		return -EPERM;
	}
	return opened;
}

static int open_and_wait(const struct target_file_request *req)
{
	return open_if(req, true);
}

int target_file_open(const struct target_file_request *req)
{
	/* The one process for all that may have to wait: what hangs is a fact of the machine. */
	static struct open_helper open_helper = OPEN_HELPER_INIT(open_and_wait);
	const bool is_ours = req->kind == TARGET_FILE_DEBUG && !req->root[0];
	/* What leads through /proc/PID may have to wait for that process: remote.h. */
	int r = is_ours ? open_if(req, false) : MAY_WAIT;

	return r == MAY_WAIT ? open_helper_run(&open_helper, req) : r;
}
