/* SPDX-License-Identifier: GPL-2.0-only */
/* The symbols of code files: the part of a struct code_file that names its addresses. */
#ifndef RBPF_SYMBOL_CODE_SYMBOLS_H
#define RBPF_SYMBOL_CODE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/symbols.h"
#include "ruby/interpreter.h"

struct code_file;
struct code_files;

struct code_symbols {
	struct elf_symbols elf;
	uint64_t lines_id; /* for file_worker_lines() */
	bool no_lines;	   /* there are none, or they were not asked for */
	bool no_demangle;  /* the worker failed at a name of it */
	struct interpreter interpreter;
	bool is_vm;
	unsigned int labels; /* how many were tried, to find the interpreter */
};

/*
 * The symbols of @file; if they were not read yet, they are read now. With @inlines, source lines
 * can be asked for, too, if the file has some. NULL: no memory.
 */
struct code_symbols *code_symbols_get(struct code_files *files, struct code_file *file,
				      bool inlines);

/*
 * Whether the symbols of @file have been read; if not, they are queued (code_readahead.h). Returns
 * 1, 0 (not yet) or -ENOMEM.
 */
int code_symbols_queue(struct code_files *files, struct code_file *file, bool inlines);

/* Whether they are being read, or will be. */
bool code_symbols_queued(const struct code_file *file);

/*
 * Note that the symbols of @file were read into file->symbols, or cannot be read: then it has no
 * names.
 */
void code_symbols_set(struct code_files *files, struct code_file *file);

void code_symbols_free(struct code_symbols *symbols); /* accepts NULL */

#endif
