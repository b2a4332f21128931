/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which source files have samples, in which process, and how many: those whose innermost Ruby frame
 * is of the file. A file that is only further out in stacks has none, but is there.
 *
 * It takes what the recorder knows of stacks, processes and threads by their ids in the recording,
 * and reads no file: whoever does marks those that it has taken. What is of a process that ended is
 * kept until it has been taken, or never can be: source_heat_collect(). Not thread-safe.
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

struct definitions;

struct source_heat_process {
	uint32_t id; /* in the recording */
	uint32_t pid;
	uint64_t start_ticks; /* /proc/PID/stat field 22 */
	bool ended;	      /* it gets no more files */
	bool needed;	      /* scratch of source_heat_collect() */
};

struct source_heat_file {
	uint64_t samples;
	bool taken; /* it was read, or is not to be: by whoever reads them */
};

struct source_heat {
	struct source_heat_process *processes; /* by id; owned */
	size_t n_processes, cap_processes;
	size_t n_ended; /* of them, since the last collection */
	uint32_t
		*seen; /* by node of the tree of stacks: 1 + the process last seen with it; owned */
	size_t n_seen, cap_seen;
	struct u64_map known; /* files by their process and what the recording calls their path */
	struct intern paths;  /* of files: the process in host order, then the path */
	struct source_heat_file *files; /* by id of paths; owned */
	size_t cap_files;
};

void source_heat_deinit(struct source_heat *h);

/* A process begins, which has the highest id so far. Returns 0 or -ENOMEM. */
int source_heat_process(struct source_heat *h, uint32_t id, uint32_t pid, uint64_t start_ticks);

/* Process @id has ended. */
void source_heat_ended(struct source_heat *h, uint32_t id);

/* Process @id; NULL: it is not kept any more. */
const struct source_heat_process *source_heat_find(const struct source_heat *h, uint32_t id);

/* Nodes will be given to other stacks, and paths have other ids. */
void source_heat_forget(struct source_heat *h);

/*
 * There is a sample of @process with @stack, which @defs has: the innermost Ruby frame says which
 * file it is of. Returns 0 or -ENOMEM.
 */
int source_heat_sample(struct source_heat *h, const struct definitions *defs, uint32_t process,
		       uint32_t stack);

/* File @i below h->paths.count: its path, and of which process. */
const char *source_heat_path(const struct source_heat *h, uint32_t i, uint32_t *process);

/* Whether enough processes have ended for a collection to be worth its time. */
bool source_heat_collection_due(const struct source_heat *h);

/*
 * Drop the files of processes that have ended but for those that @keep says are still to be taken,
 * and the processes that have no such. Files get other numbers. Returns 0, or -ENOMEM: nothing was
 * dropped.
 */
typedef bool source_heat_keep_fn(void *arg, uint32_t process, const char *path);
int source_heat_collect(struct source_heat *h, source_heat_keep_fn *keep, void *arg);

#endif
