/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unwind tables that the BPF programs walk native stacks with: the code ranges of each process,
 * the tables of their files, and the rules that the tables refer to. All of it is memory that the
 * programs read while this writes it.
 *
 * The ranges of a code map (symbol/code_map.h) are written once for all the processes that share
 * it. The table of a file is loaded when the BPF programs meet code of that file: from then on
 * every range of the file names the table. The kind of a range (enum rbpf_code_kind) is the result
 * of the request.
 *
 * When the pool is full, tables are dropped: first those that no range names, then the others, the
 * oldest first. A table that a range names is dropped only when it was loaded more than
 * UNWIND_STAY_NS ago: else code that does not fit in all at once would be loaded over and over.
 * What found no room (RBPF_CODE_NO_ROOM) may be asked for again when there is some.
 *
 * Times are ns of CLOCK_MONOTONIC and never less than those given before. Not thread-safe.
 */
#ifndef RBPF_NATIVE_UNWIND_TABLES_H
#define RBPF_NATIVE_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/engine.h"
#include "native/unwind_pool.h"
#include "rbpf_cfi.h"

struct code_files;
struct code_map;
struct unwind_tables;

struct unwind_tables_stats {
	uint32_t tables;  /* in the pool now, each once however many files have it */
	uint64_t words;	  /* of them */
	uint64_t bytes;	  /* that they take up in the pool */
	uint64_t dropped; /* tables, so far, to make room */
	uint64_t refused; /* requests, so far, that found no room */
};

/*
 * @files gives the tables; it and the memory that @mem names must outlive what is made.
 * Returns 0, -ENOMEM, or -E2BIG (2^32 elements or more in an array).
 */
int unwind_tables_new(const struct unwind_memory *mem, struct code_files *files,
		      struct unwind_tables **ret);
void unwind_tables_free(struct unwind_tables *t); /* accepts NULL */

/*
 * Write the ranges of @map, or, if they are there, count one more process that uses them. *@ret
 * tells the BPF programs where they are, until unwind_tables_remove() for that process. Returns 0,
 * -ENOSPC (no room for ranges) or -ENOMEM.
 */
int unwind_tables_add(struct unwind_tables *t, struct code_map *map, uint64_t now,
		      struct rbpf_code *ret);

/*
 * One process less uses @map: it has ended, or has another map. The BPF programs must not have its
 * struct rbpf_code any more.
 */
void unwind_tables_remove(struct unwind_tables *t, struct code_map *map, uint64_t now);

/*
 * Process @pid, which has @map, runs code at @addr that is RBPF_CODE_UNREAD: load its table, of
 * which no other copy is kept (code_file_forget_table()). It takes 15 ms for libruby, and some 2 s
 * for a file that a hostile target made for that (CFI_MAX_NS). If the file cannot be opened through
 * @pid, its ranges are RBPF_CODE_NO_TABLE, but not those of maps that are added later.
 *
 * With @ahead the worker reads the file meanwhile (code_readahead.h), and unwind_tables_poll()
 * loads the table when that is done.
 *
 * Returns 0, -ENOENT (@map was not added, or @addr is in no range of it, or in one that no file is
 * behind) or -ENOMEM, after which it may be asked for again.
 */
int unwind_tables_load(struct unwind_tables *t, struct code_map *map, pid_t pid, uint64_t addr,
		       uint64_t now, bool ahead);

/* Load what was read ahead. Returns 0 or -ENOMEM. */
int unwind_tables_poll(struct unwind_tables *t, uint64_t now);

/*
 * Free what has become free by @now, and let what found no room be asked for again. Every function
 * that takes @now does this, too. If none of them is called, call this about once a second.
 */
void unwind_tables_tick(struct unwind_tables *t, uint64_t now);

struct unwind_tables_stats unwind_tables_stats(const struct unwind_tables *t);

#endif
