/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which functions of a file may end in a tail call of which others: their frame is that of the
 * other one then. It is read from the code of the file (elf/jumps.h), once for each function that
 * is asked about. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_TAIL_CALLS_H
#define RBPF_SYMBOL_TAIL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

struct code_files;
struct code_map;
struct function_jumps;

struct tail_calls {
	struct code_files *files; /* not owned */
	bool inlines;		  /* as code_symbols_get() */
	struct intern keys;
	struct function_jumps *jumps; /* by id of its key; owned */
	size_t cap_jumps;
};

/* Forget what was read. */
void tail_calls_forget(struct tail_calls *t);

/* Bytes of memory that it takes. */
size_t tail_calls_bytes(const struct tail_calls *t);

/*
 * Whether the function that begins at @function of a process with @map may end in a tail call of
 * the one at @other, directly or through others.
 */
bool tail_calls_lead(struct tail_calls *t, const struct code_map *map, uint64_t function,
		     uint64_t other);

#endif
