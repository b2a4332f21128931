/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opening files that a target names: what it has mapped, what it executes, what lies in its root.
 * No other code in src/ opens a path that a target chose (tests/lint/opens.sh).
 *
 * A target may lay anything there: a device, a terminal, a FIFO, a link out of its root, a file
 * with a lease. So a file is found with O_PATH, which opens nothing, then looked at, and only a
 * regular file that its kind allows is opened for reading, by its descriptor and not by its name.
 * Opening never waits for a writer or for a lease, and never makes a terminal the controlling one.
 * Where it may have to wait for the server of a file system, it does so for a limited time
 * (open_helper.h).
 *
 * What a descriptor leads to is checked once. Its contents may change at any time: they are to be
 * read, never mapped, since a page of a file that became shorter raises SIGBUS.
 *
 * A request is plain data, so that another process may execute it. Not thread-safe.
 */
#ifndef RBPF_TARGET_TARGET_FILE_H
#define RBPF_TARGET_TARGET_FILE_H

#include <stdint.h>
#include <sys/types.h>

enum target_file_kind {
	/*
	 * The file that @pid has mapped at [@start, @end), also when it was replaced or deleted.
	 * Where map_files may not be followed (that takes CAP_SYS_ADMIN or
	 * CAP_CHECKPOINT_RESTORE), @path in the root of @pid, if its inode is @inode.
	 */
	TARGET_FILE_MAPPED,
	/* The executable of @pid. */
	TARGET_FILE_EXE,
	/*
	 * @path in the root of @pid, the last component no link. It must belong to the effective
	 * user of @pid, and not be writable by everybody. root's will not do: in a mount namespace
	 * of its own, a process can put a file there that it may not read.
	 */
	TARGET_FILE_PERF_MAP,
	/*
	 * @path in @root. In a target's root: a file that everybody may read, or one of @owner. In
	 * rbpf's own: a file of root or of the user who runs rbpf, which nobody else may write and
	 * everybody may read. Source files of a target are opened as such files in its root, too.
	 */
	TARGET_FILE_DEBUG,
};

struct target_file_request {
	enum target_file_kind kind;
	pid_t pid;	     /* not of TARGET_FILE_DEBUG */
	uint64_t start, end; /* of TARGET_FILE_MAPPED */
	uint64_t inode;	     /* of TARGET_FILE_MAPPED, as /proc/PID/maps says */
	uid_t owner;	     /* of TARGET_FILE_DEBUG; -1: nobody */
	const char *root;    /* of TARGET_FILE_DEBUG: "/proc/PID/root", or "" for rbpf's own */
	const char *path;    /* as the target sees it; links are followed within the root */
};

/* Larger files are not opened; a perf map of any size is (perf_map.h limits what is read of it). */
#define TARGET_FILE_MAX_MAPPED (4ull << 30)
#define TARGET_FILE_MAX_DEBUG  (4ull << 30)

/*
 * Returns a descriptor for reading, which is the caller's, or
 *
 *	-ENOENT, -ESRCH, -EACCES, ...	as of open(2)
 *	-ENOTSUP	no regular file, or one of a file system of the kernel's (/proc, /sys)
 *	-EPERM		its owner or its mode are not what the kind asks for; or it is on a FUSE
 *			of a user who is not trusted (uid_is_trusted()), or on an overlay that may
 *			be on one: neither reading nor closing it need ever end
 *	-ESTALE		another file than the mapped one has its name
 *	-EFBIG		larger than its limit
 *	-ETIMEDOUT	its file system does not answer
 *	-EAGAIN		somebody holds a lease on it, or renames directories of its path
 */
int target_file_open(const struct target_file_request *req);

#endif
