/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading iseqs and method entries of a process that are not known yet, many at a time: in about as
 * many reads of its memory as one of them takes (target/gathered.h).
 *
 * Whether an object is what was sampled is not decided here, but that its pieces belong together:
 * after all have been read, what each is told by is read once more from the process itself.
 */
#ifndef RBPF_SYMBOL_CODE_LOAD_H
#define RBPF_SYMBOL_CODE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/iseq.h"
#include "ruby/method.h"

struct memory_span;
struct ruby_vm;

/* An object to be read, and what came of it. */
struct code_load {
	uint64_t addr;
	bool is_method;
	bool with_name; /* of a method */
	bool done;
	int result; /* 0: read; -E2BIG: there was no room; or as ruby_iseq_read() and
		       ruby_method_read() */
	union {
		struct ruby_iseq iseq; /* owned if result is 0 */
		struct ruby_method method;
	};
};

/*
 * Read the @n objects, as long as they take fewer than @room bytes. @together: their pieces may be
 * read all at once, and are compared at the end; else each one is compared right after it was read,
 * for where there are no eras its pieces are to lie close together in time. The @n_last spans @last
 * are read after all else, and in the same go. Returns 0 or -ENOMEM.
 */
int code_load(const struct ruby_vm *vm, struct code_load *loads, size_t n, size_t room,
	      bool together, struct memory_span *last, size_t n_last);

/* Free what was read and not taken, for which result was set to something else than 0. */
void code_load_free(struct code_load *loads, size_t n);

#endif
