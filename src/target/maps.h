/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code that a process has mapped, by /proc/PID/maps, as it was at one moment: its executable
 * mappings, and those that follow upon one without a gap, which tell where a JIT compiler's memory
 * ends. It knows nothing of what the mapped files hold.
 *
 * A process may have millions of mappings, and each may have a long path, so that the text is read
 * piece by piece and the rest of it is not kept. What goes beyond the limits below is counted.
 */
#ifndef RBPF_TARGET_MAPS_H
#define RBPF_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define MAPS_MAX_BYTES	  (512ull << 20) /* of the text; what follows is not read */
#define MAPS_MAX_CODE	  262144u	 /* executable mappings that are kept, the lowest */
#define MAPS_MAX_OTHERS	  65536u	 /* others that are kept */
#define MAPS_MAX_PATH	  4096u		 /* bytes of a path; longer ones are cut */
#define MAPS_MAX_PATHS	  (16u << 20)	 /* bytes of all paths; later mappings have none */
#define MAPS_MAX_CONTEXTS 4		 /* mappings for a process context; there should be one */

struct map {
	uint64_t start, end; /* addresses [start, end) */
	uint64_t offset;     /* in the file */
	uint64_t inode;	     /* 0: no file. The device is left out: overlayfs shows another one */
	bool read, write, exec;
	const char *path; /* as the target sees it, without " (deleted)"; "" if none */
};

struct maps {
	struct map *v; /* ascending, disjoint; owned */
	size_t n, cap;
	size_t n_code;	/* of them, that are executable */
	size_t n_lines; /* mappings that the process has, of any kind */
	size_t n_lost;	/* executable ones past MAPS_MAX_CODE */
	bool is_cut;	/* there was more text than MAPS_MAX_BYTES */
	/* Where mappings begin whose names otel_context.h looks for. */
	uint64_t contexts[MAPS_MAX_CONTEXTS];
	size_t n_contexts;
	char **paths; /* of v; owned */
	size_t n_paths, cap_paths, path_bytes;
};

#define MAPS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Returns 0, -ESRCH (no such process, or a zombie's empty map), -EACCES, -EINVAL (a line is not of
 * the form of such a file) or -ENOMEM.
 */
int maps_read(pid_t pid, struct maps *ret, struct err *err);
/* The same of the text of such a file, of @fd, which stays the caller's. */
int maps_read_fd(int fd, struct maps *ret);
int maps_parse(const char *text, struct maps *ret);
void maps_deinit(struct maps *maps);

/*
 * Open the file behind @map, as TARGET_FILE_MAPPED of target_file.h. Returns a descriptor or
 * -errno.
 */
int maps_open_file(pid_t pid, const struct map *map);

#endif
