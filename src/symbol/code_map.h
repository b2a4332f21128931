/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code that a process has mapped: its executable mappings, each with its file or, without one,
 * with what is known of the code that a JIT compiler writes there.
 *
 * A map never changes: when a process has loaded more code, it is read again into another one. So
 * all processes that were forked from one, and have loaded nothing since, share one. Addresses that
 * no range holds are no code, or code that came after the map was read. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_CODE_MAP_H
#define RBPF_SYMBOL_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"

struct code_file;
struct code_files;
struct err;
struct maps;

#define CODE_MAP_MAX	 4096		/* ranges of a process, the lowest; Rails has some 150 */
#define CODE_MAP_OPENED	 4096		/* mappings of it whose files are opened to make one map */
#define CODE_JIT_MAX	 (256ull << 20) /* bytes of a JIT's range; YJIT has 64 or 128 MiB */
#define CODE_JIT_WRITTEN (128ull << 10) /* bytes of a piece within it that is being written to */

/* The JIT compiler of the process, which writes the executable memory that is of no file. */
enum code_jit {
	CODE_JIT_NONE, /* none is possible, so code without a file may be anybody's */
	CODE_JIT_YJIT, /* YJIT, or not known which: no frame records on x86_64 */
	CODE_JIT_ZJIT, /* each frame has a frame record */
};

struct code_range {
	uint64_t start, end;
	uint64_t bias; /* with a file: the address here less the address in the file, modulo 2^64 */
	uint32_t kind; /* enum rbpf_code_kind: UNREAD with a file */
	struct code_file *file; /* NULL: none, or none that can be read; referred to */
};

struct code_map {
	struct code_range *v; /* ascending, disjoint; owned */
	size_t n, cap;
	size_t references;
	size_t processes; /* that have it: code_map_use() */
	bool is_cut;	  /* the process has more code than this */
	struct code_files *files;
};

/*
 * Read what process @pid has mapped; *@ret is referred to once. @old, NULL if there is none, is the
 * map that the process had before: what is still mapped as it was keeps its file. If all of it is,
 * *@ret is @old, referred to once more. @files must outlive the map.
 *
 * Returns 0, -ESRCH, -EACCES or -ENOMEM.
 */
int code_map_read(struct code_files *files, pid_t pid, enum code_jit jit, struct code_map *old,
		  struct code_map **ret, struct err *err);

/* The same from @maps, what /proc/PID/maps says of the process. Returns 0 or -ENOMEM. */
int code_map_from(struct code_files *files, pid_t pid, const struct maps *maps, enum code_jit jit,
		  struct code_map *old, struct code_map **ret);

struct code_map *code_map_ref(struct code_map *map);
void code_map_unref(struct code_map *map); /* accepts NULL */

/*
 * Note that one process more has @map, as what it has mapped, or one less: others may refer to the
 * map as well. Files that no process has are not kept open.
 */
void code_map_use(struct code_map *map);
void code_map_unuse(struct code_map *map);

/* The range that holds @addr, or NULL. */
const struct code_range *code_map_find(const struct code_map *map, uint64_t addr);

/*
 * Whether a JIT compiler may have made some of it: code of no file, or a library that MJIT has
 * made. Also if not all of it is known.
 */
bool code_map_may_have_jit(const struct code_map *map);

#endif
