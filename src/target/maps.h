/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory map of a process, /proc/PID/maps, as it was at one moment. It knows nothing of what
 * the mapped files hold.
 */
#ifndef RBPF_TARGET_MAPS_H
#define RBPF_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct map {
	uint64_t start, end; /* addresses [start, end) */
	uint64_t offset;     /* in the file */
	uint64_t inode;	     /* 0: no file. The device is left out: overlayfs shows another one */
	bool read, write, exec;
	char *path; /* as the target sees it, without " (deleted)"; "" if none; owned */
};

struct maps {
	struct map *v; /* ascending, disjoint; owned */
	size_t n, cap;
};

#define MAPS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* Returns 0, -ESRCH (no such process, or a zombie's empty map), -EACCES or -ENOMEM. */
int maps_read(pid_t pid, struct maps *ret, struct err *err);
/* Parse the text of such a file. -EINVAL if a line is not of that form. */
int maps_parse(const char *text, struct maps *ret);
void maps_deinit(struct maps *maps);

/* The mapping that holds @addr, or NULL. */
const struct map *maps_find(const struct maps *maps, uint64_t addr);

/* Open the file behind @map, as TARGET_FILE_MAPPED of target_file.h. Returns a descriptor or -errno. */
int maps_open_file(pid_t pid, const struct map *map);

#endif
