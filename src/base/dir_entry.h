/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A directory entry: an open directory and a name in it, where a file is to be read or written.
 *
 * Root writes into directories where other users may plant links, FIFOs and files under names that
 * are easy to guess. So the directory is opened once, what is under the name is opened
 * with O_PATH and examined by that descriptor, through which it is then used.
 */
#ifndef RBPF_BASE_DIR_ENTRY_H
#define RBPF_BASE_DIR_ENTRY_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct err;

struct dir_entry {
	int dir; /* O_PATH; owned; -1 when not open */
	char name[NAME_MAX + 1];
};

#define DIR_ENTRY_INIT                                                                             \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/*
 * The entry that @path names, relative to the directory @from. Returns 0, -EISDIR or -ENOTDIR (it
 * ends in a slash or a dot), or what the system says of its directory; @ret: dir_entry_deinit().
 */
int dir_entry_init(int from, const char *path, struct dir_entry *ret);
void dir_entry_deinit(struct dir_entry *p);
#define _cleanup_dir_entry_ _cleanup_(dir_entry_deinit)

/*
 * Open what is there with O_PATH, without following a link. Returns the descriptor or -errno.
 */
int dir_entry_open(const struct dir_entry *p, struct stat *ret);

/* Open what dir_entry_open() or another O_PATH gave as @fd. Returns a descriptor or -errno. */
int fd_reopen(int fd, int flags);

/* Whether @uid is ours, root's, or that of who ran sudo. */
bool uid_is_trusted(uid_t uid);

/*
 * Whether what dir_entry_open() found may have been planted: it belongs to a user that is not
 * trusted, and so does the directory, or others may write to it.
 */
bool dir_entry_may_be_planted(const struct dir_entry *p, const struct stat *st);

/* Fill @err: cannot @verb ("write") @path because it is another user's. Returns -EPERM. */
int dir_entry_refuse(const char *verb, const char *path, const struct stat *st, struct err *err);

#endif
