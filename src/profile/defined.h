/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a recording has definitions of, and their ids in it, so that each is written once.
 *
 * What was defined can be forgotten, which gives its memory back. Ids go on from those before; what
 * is defined again then has another one. Not thread-safe.
 */
#ifndef RBPF_PROFILE_DEFINED_H
#define RBPF_PROFILE_DEFINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/prefix_tree.h"

/*
 * Definitions of one kind, told apart by their bytes. Zeroed, it is empty, and 0 is the id of the
 * first.
 */
struct defined {
	struct intern known;
	uint32_t first; /* id of the first in it */
};

void defined_deinit(struct defined *d);

/* The id that the next one gets: all that were ever defined have lower ones. */
uint32_t defined_end(const struct defined *d);

/* The id of these bytes; *@is_new: it must be defined in the file. Returns 0, -ENOMEM or -E2BIG. */
int defined_add(struct defined *d, const void *data, size_t len, uint32_t *ret, bool *is_new);

/* The bytes of @id, and unless it is NULL how many they are in *@len; NULL: they were forgotten. */
const void *defined_get(const struct defined *d, uint32_t id, size_t *len);

void defined_forget(struct defined *d);

/* Stacks: a frame each, upon another stack. 0 is the empty one, which is never defined. */
struct defined_stacks {
	struct prefix_tree tree; /* node n, from 1 on, is stack first + n - 1 */
	uint32_t first;
	uint32_t *depths; /* by node; owned */
	size_t cap_depths;
};

/* Returns 0 or -ENOMEM. @ret: defined_stacks_deinit(). */
int defined_stacks_init(struct defined_stacks *ret);
void defined_stacks_deinit(struct defined_stacks *s); /* accepts one that is all zero */

uint32_t defined_stacks_end(const struct defined_stacks *s);

/* How many are not forgotten. */
size_t defined_stacks_count(const struct defined_stacks *s);

/*
 * The id of @frame upon @parent; *@is_new: it must be defined in the file. Returns 0, -ENOMEM,
 * -E2BIG (there are RBPF_FILE_MAX_IDS, or it would be deeper than RBPF_FILE_MAX_DEPTH), or -EINVAL:
 * @parent is none, or was forgotten.
 */
int defined_stacks_add(struct defined_stacks *s, uint32_t parent, uint32_t frame, uint32_t *ret,
		       bool *is_new);

/* The node of @stack in @s->tree; 0: it is the empty stack, or was forgotten. */
uint32_t defined_stacks_node(const struct defined_stacks *s, uint32_t stack);

void defined_stacks_forget(struct defined_stacks *s);

/* All that is written once. */
struct definitions {
	struct defined strings; /* from 1: 0 is "" */
	struct defined modules;
	struct defined frames;
	struct defined spans; /* from 1: 0 is none */
	struct defined_stacks stacks;
};

/* Returns 0 or -ENOMEM. @ret: definitions_deinit(). */
int definitions_init(struct definitions *ret);
void definitions_deinit(struct definitions *d); /* accepts one that is all zero */

/* Bytes of memory of strings, modules and frames. */
size_t definitions_bytes(const struct definitions *d);

void definitions_forget(struct definitions *d);

#endif
