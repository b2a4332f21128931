/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a file that grows has to end: at a size that was asked for, or before its file system is
 * full. Programs that write to the same file system fail when it is, and rbpf is not to be the
 * reason.
 *
 * Only a regular file has such a file system: a pipe or a device has the size limit alone. Quotas
 * are not looked at. Not thread-safe.
 */
#ifndef RBPF_PROFILE_FILE_LIMIT_H
#define RBPF_PROFILE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct err;

struct file_limit {
	uint64_t max_bytes; /* 0: none */
	uint64_t floor;	    /* bytes that have to stay free; valid if … */
	bool has_floor;
};

/*
 * How many bytes have to stay free on a file system of @size, of which @free are free when the file
 * begins: 1 GiB or 5 %, whichever is more, but never more than half of what is free, so that a file
 * can begin on a machine that has little space.
 */
uint64_t file_limit_floor(uint64_t size, uint64_t free);

/* The limits of the file @fd, which begins, and is to have @max_bytes at most (0: any number). */
void file_limit_init(struct file_limit *l, int fd, uint64_t max_bytes);

/* Whether a file of @bytes bytes has to end. Returns 0 or -EFBIG; @err says why, as ERR_RUNTIME. */
int file_limit_size(const struct file_limit *l, uint64_t bytes, struct err *err);

/*
 * Bytes that are free for the file @fd, UINT64_MAX if that is no limit. A file system that hangs
 * may have it wait.
 */
uint64_t file_limit_free(const struct file_limit *l, int fd);

/*
 * Whether a file for which so many bytes are @free has to end. Returns 0 or -ENOSPC; @err says why,
 * as ERR_RUNTIME. @name is that of the file.
 */
int file_limit_space(const struct file_limit *l, uint64_t free, const char *name, struct err *err);

/*
 * Whether there is room for @bytes more that can be left out: half of what has to stay free is for
 * what cannot. The size limit does not count.
 */
bool file_limit_has_room(const struct file_limit *l, uint64_t free, uint64_t bytes);

#endif
