/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/defined.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "rbpf_file.h"

_Static_assert(INTERN_MAX == RBPF_FILE_MAX_IDS, "interned ids are the ids of the file");

void defined_deinit(struct defined *d)
{
	intern_deinit(&d->known);
}

uint32_t defined_end(const struct defined *d)
{
	return d->first + (uint32_t)d->known.count;
}

int defined_add(struct defined *d, const void *data, size_t len, uint32_t *ret, bool *is_new)
{
	uint32_t id;
	int err;

	if (defined_end(d) >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	err = intern_add(&d->known, data, len, &id, is_new);
	if (!err)
		*ret = d->first + id;
	return err;
}

const void *defined_get(const struct defined *d, uint32_t id, size_t *len)
{
	return id < d->first ? NULL : intern_get(&d->known, id - d->first, len);
}

void defined_forget(struct defined *d)
{
	d->first = defined_end(d);
	intern_deinit(&d->known);
}

/* ---- stacks ---- */

int defined_stacks_init(struct defined_stacks *ret)
{
	*ret = (struct defined_stacks) { .first = 1 };
	return prefix_tree_init(&ret->tree);
}

void defined_stacks_deinit(struct defined_stacks *s)
{
	prefix_tree_deinit(&s->tree);
	free(s->depths);
	*s = (struct defined_stacks) { 0 };
}

size_t defined_stacks_count(const struct defined_stacks *s)
{
	return s->tree.n_nodes - 1;
}

uint32_t defined_stacks_end(const struct defined_stacks *s)
{
	return s->first + (uint32_t)defined_stacks_count(s);
}

uint32_t defined_stacks_node(const struct defined_stacks *s, uint32_t stack)
{
	return stack < s->first ? 0 : stack - s->first + 1;
}

int defined_stacks_add(struct defined_stacks *s, uint32_t parent, uint32_t frame, uint32_t *ret,
		       bool *is_new)
{
	const uint32_t end = defined_stacks_end(s), outer = defined_stacks_node(s, parent);
	uint32_t node, depth;
	int err;

	if (parent >= end || (parent && !outer))
		return -EINVAL;
	depth = outer ? s->depths[outer] : 0;
	if (depth >= RBPF_FILE_MAX_DEPTH || end >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	/* First, for it must not fail once the stack is known. */
	if (array_reserve(s->depths, s->cap_depths, s->tree.n_nodes + 1))
		return -ENOMEM;
	err = prefix_tree_child(&s->tree, outer, frame, &node);
	if (err)
		return err;
	*ret = s->first + node - 1;
	*is_new = *ret == end;
	if (*is_new)
		s->depths[node] = depth + 1;
	return 0;
}

void defined_stacks_forget(struct defined_stacks *s)
{
	s->first = defined_stacks_end(s);
	prefix_tree_shrink(&s->tree);
	free(s->depths);
	s->depths = NULL;
	s->cap_depths = 0;
}

/* ---- all of a recording ---- */

int definitions_init(struct definitions *ret)
{
	*ret = (struct definitions) { .strings.first = 1, .spans.first = 1 };
	return defined_stacks_init(&ret->stacks);
}

void definitions_deinit(struct definitions *d)
{
	defined_deinit(&d->strings);
	defined_deinit(&d->modules);
	defined_deinit(&d->frames);
	defined_deinit(&d->spans);
	defined_stacks_deinit(&d->stacks);
}

size_t definitions_bytes(const struct definitions *d)
{
	return intern_bytes(&d->strings.known) + intern_bytes(&d->modules.known) +
	       intern_bytes(&d->frames.known);
}

void definitions_forget(struct definitions *d)
{
	defined_forget(&d->strings);
	defined_forget(&d->modules);
	defined_forget(&d->frames);
	defined_forget(&d->spans);
	defined_stacks_forget(&d->stacks);
}
