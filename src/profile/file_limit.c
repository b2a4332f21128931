/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/file_limit.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/err.h"
#include "base/number.h"

#define FLOOR_BYTES   (1ull << 30)
#define FLOOR_PERCENT 5

uint64_t file_limit_floor(uint64_t size, uint64_t free)
{
	uint64_t floor = size / 100 * FLOOR_PERCENT;

	if (floor < FLOOR_BYTES)
		floor = FLOOR_BYTES;
	return floor < free / 2 ? floor : free / 2;
}

/*
 * What users other than root can still write, who have no part in what ext4 reserves for root.
 * Returns false if the file system does not say, as some FUSE file systems and a tmpfs without a
 * limit, whose size is 0.
 */
static bool free_space(int fd, uint64_t *size, uint64_t *free)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) || !fs.f_blocks)
		return false;
	*size = (uint64_t)fs.f_blocks * fs.f_frsize;
	*free = (uint64_t)fs.f_bavail * fs.f_frsize;
	return true;
}

void file_limit_init(struct file_limit *l, int fd, uint64_t max_bytes)
{
	uint64_t size, free;
	struct stat st;

	*l = (struct file_limit) { .max_bytes = max_bytes };
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !free_space(fd, &size, &free))
		return;
	l->floor = file_limit_floor(size, free);
	l->has_floor = true;
}

int file_limit_size(const struct file_limit *l, uint64_t bytes, struct err *err)
{
	if (!l->max_bytes || bytes < l->max_bytes)
		return 0;
	err_set(err, -EFBIG, ERR_RUNTIME, "the recording has reached --max-size: %s",
		num_bytes(bytes).s);
	err_hint(err, "a lower -F makes recordings grow more slowly");
	return -EFBIG;
}

uint64_t file_limit_free(const struct file_limit *l, int fd)
{
	uint64_t size, free;

	return l->has_floor && free_space(fd, &size, &free) ? free : UINT64_MAX;
}

int file_limit_space(const struct file_limit *l, uint64_t free, const char *name, struct err *err)
{
	/* Not less: the floor of a file system that is full is 0. */
	if (!l->has_floor || free > l->floor)
		return 0;
	err_set(err, -ENOSPC, ERR_RUNTIME, "only %s is free on the file system of %s",
		num_bytes(free).s, name);
	err_hint(err, "-o FILE can be on another file system; a lower -F makes recordings grow "
		      "more slowly");
	return -ENOSPC;
}

bool file_limit_has_room(const struct file_limit *l, uint64_t free, uint64_t bytes)
{
	return !l->has_floor || free == UINT64_MAX ||
	       (free > l->floor / 2 && free - l->floor / 2 > bytes);
}
