/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions that a JIT compiler made, from the file that it writes for profilers, for each a
 * line "START SIZE name" in hexadecimal: /tmp/perf-PID.map with the pid that the process itself
 * sees, in its own root. The caller finds and opens it.
 *
 * The file belongs to the target, grows while it runs and has what is not there any more: of
 * entries that overlap the later one holds. A line in another form is passed over, and names may
 * have any bytes but NUL and newline (base/utf8.h).
 *
 * What is read is limited, for each map and for all maps that share a budget: memory as long as
 * they hold it, and work by the second. Work beyond that is left for later: until then what was
 * known before holds. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_PERF_MAP_H
#define RBPF_SYMBOL_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Limits of one map. Bytes count each time that they are read: a file may be written anew. */
#define PERF_MAP_MAX_BYTES   (64u << 20) /* what follows is not read */
#define PERF_MAP_MAX_ENTRIES 500000u
#define PERF_MAP_MAX_NAME    4096u /* bytes; longer ones are cut */

/* Limits of all maps that share a budget. */
#define PERF_MAPS_MAX_MEMORY (96ull << 20) /* bytes; what does not fit in is left out */
#define PERF_MAPS_MAX_READ   (32ull << 20) /* bytes read, from one tick to the next */
#define PERF_MAPS_MAX_SORTED 500000ull	   /* entries sorted, from one tick to the next */

struct perf_map_budget {
	/* What is left of the limits above. */
	uint64_t memory; /* bytes */
	uint64_t read;	 /* bytes, until the next tick */
	uint64_t sorted; /* entries, until the next tick */
	uint64_t n_cut;	 /* maps of which something was left out, for good */
};

#define PERF_MAP_BUDGET_INIT                                                                       \
	{                                                                                          \
		.memory = PERF_MAPS_MAX_MEMORY, .read = PERF_MAPS_MAX_READ,                        \
		.sorted = PERF_MAPS_MAX_SORTED                                                     \
	}

/* Refill the budget: to be called once or twice a second. */
void perf_map_budget_tick(struct perf_map_budget *budget);

struct perf_map_entry {
	uint64_t start, end; /* start < end */
	uint32_t name;	     /* offset in names */
};

/* Addresses from start up to the next span's start belong to entry; PERF_MAP_NONE: to none. */
struct perf_map_span {
	uint64_t start;
	uint32_t entry;
};

#define PERF_MAP_NONE UINT32_MAX

struct perf_map {
	struct perf_map_budget *budget; /* outlives it; not NULL */
	struct perf_map_entry *entries; /* as in the file; owned */
	size_t n, cap;
	struct buf names;	     /* each with its NUL */
	struct perf_map_span *spans; /* by start, for the first n_indexed entries; owned */
	size_t n_spans, cap_spans;
	size_t n_indexed;
	uint64_t read;	  /* bytes of the file, whole lines */
	uint64_t n_bytes; /* read in all */
	uint64_t memory;  /* taken from the budget */
	bool is_cut;
};

#define PERF_MAP_INIT(of_all)                                                                      \
	{                                                                                          \
		.budget = (of_all)                                                                 \
	}

/*
 * Give back what @map has of its budget, and make it PERF_MAP_INIT again; it may be that already.
 */
void perf_map_deinit(struct perf_map *map);

/* Read up to @size bytes of the file at @offset. Returns how many, 0 at its end, or -errno. */
typedef ssize_t perf_map_read_fn(void *arg, void *to, size_t size, uint64_t offset);

/*
 * Read what was appended to the file since the last call, by @read, called with @arg. It has @size
 * bytes now, and must be the same file each time. A line that has no end yet is left for the next
 * time. A file that became shorter is read anew. Returns 0, what @read fails with or -ENOMEM; what
 * was read before stands.
 */
int perf_map_read(struct perf_map *map, uint64_t size, perf_map_read_fn *read, void *arg);

/*
 * The name of the function that @addr is in, NULL if in none, and its start in @start (which may be
 * NULL). Valid until the next call of perf_map_read() or perf_map_deinit(). The first call after
 * entries were added sorts all of them, if the budget allows it; else those added are not found
 * yet.
 */
const char *perf_map_find(struct perf_map *map, uint64_t addr, uint64_t *start);

#endif
