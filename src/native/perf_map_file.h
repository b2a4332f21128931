/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf map of a process, /tmp/perf-PID.map as it sees it: what its JIT compilers have written
 * of their code so far. It is read as it grows. Not thread-safe.
 */
#ifndef RBPF_NATIVE_PERF_MAP_FILE_H
#define RBPF_NATIVE_PERF_MAP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/perf_map.h"

struct file_worker;
struct process_context;

struct perf_map_file {
	struct perf_map map;
	uint64_t read_ns; /* CLOCK_MONOTONIC: when it was read last; 0: it was not */
	bool hangs;	  /* its file system does not answer: it is read no more */
	bool refused;	  /* it is not a file that the process may be believed to have written */
};

/* @budget must outlive *@f. */
void perf_map_file_init(struct perf_map_file *f, struct perf_map_budget *budget);
void perf_map_file_deinit(struct perf_map_file *f);

/*
 * Read what process @pid with @context has appended, by @worker, if it was not read just now.
 * Returns whether there is anything new.
 */
bool perf_map_file_read(struct perf_map_file *f, struct file_worker *worker, pid_t pid,
			const struct process_context *context);

#endif
