/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which source files have samples, in which process, and how many: those whose innermost Ruby frame
 * is of the file. A file that is only further out in stacks has none, but is there.
 *
 * It takes what the recorder knows of stacks, processes and threads by the numbers of their order,
 * and reads no file. Not thread-safe.
 */
#ifndef RBPF_PROFILE_SOURCE_HEAT_H
#define RBPF_PROFILE_SOURCE_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/u64_map.h"

#define SOURCE_HEAT_MAX_FILES 16384u /* pairs of a process and a file; others are not counted */
#define SOURCE_HEAT_MAX_PATH  4096u  /* bytes */

struct source_heat_process {
	uint32_t pid;
	uint64_t start_ticks; /* /proc/PID/stat field 22 */
};

struct source_heat {
	struct source_heat_process *processes; /* owned */
	size_t n_processes, cap_processes;
	uint32_t *threads; /* the process of each; owned */
	size_t n_threads, cap_threads;
	uint32_t
		*seen; /* by node of the tree of stacks: 1 + the process last seen with it; owned */
	size_t n_seen, cap_seen;
	struct u64_map known; /* files by their process and what the recording calls their path */
	struct intern files;  /* the process in host order, then the path */
	uint64_t *samples;    /* by id of files; owned */
	size_t cap_samples;
};

void source_heat_deinit(struct source_heat *h);

/* The next process or thread. Return 0 or -ENOMEM. */
int source_heat_process(struct source_heat *h, uint32_t pid, uint64_t start_ticks);
int source_heat_thread(struct source_heat *h, uint32_t process);

/* There are @n nodes of stacks now. Returns 0 or -ENOMEM. */
int source_heat_stacks(struct source_heat *h, size_t n);

/* Nodes will be given to other stacks, and paths have other ids. */
void source_heat_forget(struct source_heat *h);

/*
 * Whether the process of @thread is another than the one that @node was seen with last, or the
 * first.
 */
bool source_heat_first(struct source_heat *h, uint32_t thread, uint32_t node);

/*
 * The process of @thread has code of the file @path, which is string @id of the recording; @hot:
 * and a sample. Returns 0 or -ENOMEM.
 */
int source_heat_add(struct source_heat *h, uint32_t thread, uint32_t id, const char *path,
		    size_t len, bool hot);

/* The same of a file that was added before. False: it was not. */
bool source_heat_again(struct source_heat *h, uint32_t thread, uint32_t id, bool hot);

/* File @i below h->files.count: its path, and of which process. */
const char *source_heat_file(const struct source_heat *h, uint32_t i, uint32_t *process);

#endif
