/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of the classes of one process that were met in samples, and the proof that a name is of the
 * class that was there when the sample was taken: by the eras alone (code_proof.h), as no check of
 * a class is sent. What cannot be proven has no name.
 *
 * Not thread-safe.
 */
#ifndef RBPF_SYMBOL_CLASS_NAMES_H
#define RBPF_SYMBOL_CLASS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "symbol/code_cache.h"

struct class_name;

struct class_names {
	struct u64_map at;    /* by address */
	struct class_name *v; /* owned */
	size_t n, cap;
	size_t bytes; /* of the names */
};

/* Names of one process; at this limit no new ones are learnt until the caller replaces them. */
#define CLASS_NAMES_MAX 16384

#define CLASS_NAMES_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void class_names_deinit(struct class_names *c);

/* Bytes of memory that it takes. */
size_t class_names_bytes(const struct class_names *c);

/*
 * The name of the class at @addr, in the process of @code, in era @sampled, when it @was_old or
 * that was not known: *@ret is raw bytes and
 * valid until the next call; NULL if it has none, or it cannot be proven. A
 * singleton class has none. Returns 0 or -ENOMEM.
 */
int class_names_get(struct class_names *c, const struct code_cache *code,
		    const struct stack_era *sampled, uint64_t addr, bool was_old, const char **ret);

#endif
