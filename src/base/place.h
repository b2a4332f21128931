/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A name in a directory where a file is to be written.
 *
 * Root writes into directories where other users may plant links, FIFOs and files under names that
 * are easy to guess. So the directory is opened once, what is under the name is looked at by its own
 * descriptor, and what is used is what was looked at.
 */
#ifndef RBPF_BASE_PLACE_H
#define RBPF_BASE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct err;

struct place {
	int dir; /* O_PATH; owned; -1 when not open */
	char name[NAME_MAX + 1];
};

#define PLACE_INIT                                                                                 \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/*
 * The place that @path names, relative to the directory @from. Returns 0, -EISDIR or -ENOTDIR (it
 * ends in a slash or a dot), or what the system says of its directory; @ret: place_deinit().
 */
int place_init(int from, const char *path, struct place *ret);
void place_deinit(struct place *p);
#define _cleanup_place_ _cleanup_(place_deinit)

/*
 * Open what is there with O_PATH, without following a link. Returns the descriptor or -errno.
 */
int place_look(const struct place *p, struct stat *ret);

/* Open what place_look() or another O_PATH gave as @fd. Returns a descriptor or -errno. */
int place_reopen(int fd, int flags);

/* Whether @uid is ours, root's, or that of who ran sudo. */
bool place_trusts(uid_t uid);

/*
 * Whether what place_look() found may have been planted: it belongs to a user that is not trusted,
 * and so does the directory, or others may write to it.
 */
bool place_planted(const struct place *p, const struct stat *st);

/* Fill @err: cannot @verb ("write") @path because it is another user's. Returns -EPERM. */
int place_refuse(const char *verb, const char *path, const struct stat *st, struct err *err);

#endif
