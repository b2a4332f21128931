/* SPDX-License-Identifier: GPL-2.0-only */
/* A perf map as a file of the test's own, that it reads itself. */
#ifndef RBPF_TESTS_SUPPORT_PERF_MAP_FILE_H
#define RBPF_TESTS_SUPPORT_PERF_MAP_FILE_H

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/perf_map.h"

static ssize_t read_here(void *arg, void *to, size_t size, uint64_t offset)
{
	ssize_t n = pread(*(int *)arg, to, size, (off_t)offset);

	return n < 0 ? -errno : n;
}

static int perf_map_read_file(struct perf_map *map, int fd)
{
	struct stat st = { .st_size = 0 };

	fstat(fd, &st);
	return perf_map_read(map, (uint64_t)st.st_size, read_here, &fd);
}

#endif
