/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file of callgrind's format, from the costs of lines and calls: callgrind.c says what they are
 * and adds them up.
 */
#ifndef RBPF_EXPORT_CALLGRIND_FILE_H
#define RBPF_EXPORT_CALLGRIND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/prefix_tree.h"

struct buf;
struct profile;

struct cost_sum {
	uint64_t value;
	uint64_t samples;
};

/* A function of callgrind's. */
struct callgrind_fn {
	uint32_t object; /* in callgrind_file.names, as are the next two */
	uint32_t file;
	uint32_t name;
	uint32_t depth; /* how many of the function are in the stack, with this one */
};

/* What is a line of the file: the own cost of a line, or a call from it. */
struct cost_key {
	uint32_t fn;
	uint32_t line;
	uint32_t callee; /* fn; NO_CALLEE: own cost */
	uint32_t callee_line;
};

#define NO_CALLEE UINT32_MAX

/* Not owned by callgrind_write(). */
struct callgrind_file {
	const struct profile *profile;
	const bool *threads; /* by thread: it has samples in the file */
	struct intern names; /* of objects, files and functions, as they are written */
	struct intern fns;   /* struct callgrind_fn */
	/*
	 * There may be millions of calls, so they are kept as pairs: a place is a line of a
	 * function, a key (struct cost_key) is a place and that which is called, 0 of an own cost.
	 */
	struct prefix_tree places, keys;
	struct cost_sum *costs; /* by key */
	struct cost_sum all;	/* of all samples */
};

/* Append the file to @out, which may be drained. Returns 0 or -ENOMEM. */
int callgrind_write(const struct callgrind_file *f, struct buf *out);

#endif
