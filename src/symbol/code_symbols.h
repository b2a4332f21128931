/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The symbols of code files, and who reads them: when a name is needed at once, or ahead, while rbpf
 * does other things. A file of a hostile process may take seconds to read: what waits for its symbols
 * is that process' samples, not the loop that drains the ring.
 *
 * Not thread-safe.
 */
#ifndef RBPF_SYMBOL_CODE_SYMBOLS_H
#define RBPF_SYMBOL_CODE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"
#include "ruby/interpreter.h"

struct code_file;
struct code_files;

/* The part of a struct code_file that names its addresses. */
struct code_symbols {
	struct elf_symbols elf;
	bool is_wanted;	   /* they are being read, or will be: elf has none yet */
	uint64_t lines_id; /* for file_worker_lines() */
	bool no_lines;	   /* there are none, or they are not wanted */
	bool no_demangle;  /* the worker failed at a name of it */
	struct interpreter interpreter;
	bool is_vm;
	unsigned int labels; /* by which the interpreter was looked for */
};

struct symbol_reader {
	struct code_files *files;  /* not owned */
	bool inlines;		   /* lines and inlined functions are wanted, too */
	struct code_file **wanted; /* in this order; referred to; the first is being read if … */
	size_t n, cap;
	bool has_begun;
};

void symbol_reader_deinit(struct symbol_reader *r);

/* The symbols of @file, read now if they are not yet; NULL: no memory. */
struct code_symbols *symbol_reader_get(struct symbol_reader *r, struct code_file *file);

/*
 * Whether the symbols of @file have been read: if not, they will be. Returns 1, 0 (not yet: call
 * symbol_reader_poll()) or -ENOMEM.
 */
int symbol_reader_want(struct symbol_reader *r, struct code_file *file);

/* Take what was read since, and go on; if @wait, until all is read. Returns 0 or -ENOMEM. */
int symbol_reader_poll(struct symbol_reader *r, bool wait);

void code_symbols_free(struct code_symbols *symbols); /* accepts NULL */

#endif
