/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the raw frames of one process to names.
 *
 * Addresses say nothing by themselves: an iseq or method entry can be freed and another one stand in its
 * place at any time. So what was read once is used again only after it was checked, in the same round, to be still
 * what it was; a round is what the caller reads from the ring buffer at once (resolver_round()). What cannot be
 * named for certain becomes FRAME_UNKNOWN, never a wrong name. When the process is gone nothing can be
 * checked any more; then what was known of it is used.
 *
 * Not thread-safe. Names are valid UTF-8.
 */
#ifndef RBPF_SYMBOL_RESOLVER_H
#define RBPF_SYMBOL_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "rbpf_abi.h"

struct ruby_vm;
struct resolver;

/* A named frame; see struct profile_frame for the members. Strings live as long as the resolver. */
struct symbol {
	enum frame_kind kind;
	const char *name;
	const char *file;
	uint32_t line;
	uint32_t func_line;
};

/* @vm must outlive the resolver. Returns 0 or -ENOMEM. */
int resolver_new(const struct ruby_vm *vm, struct resolver **ret);
void resolver_free(struct resolver *r);

/* From here on everything must be checked again before it is used. */
void resolver_round(struct resolver *r);

/*
 * Name @n raw frames (innermost first). *@ids are the symbols of the frames that Ruby itself would show, innermost
 * first (there may be fewer than @n), and *@n_ids their number; valid until the next call.
 * Returns 0 or -ENOMEM.
 */
int resolver_stack(struct resolver *r, const struct rbpf_frame *frames, size_t n,
		   const uint32_t **ids, size_t *n_ids);

/* Symbol @id, as returned by resolver_stack(). Ids are dense, from 0. */
const struct symbol *resolver_symbol(const struct resolver *r, uint32_t id);

#endif
