/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes with all their living descendants, as /proc has them at one moment: for looking at each
 * once. A recording, which must miss none, finds them by sample/descendants.h. Not thread-safe.
 */
#ifndef RBPF_TARGET_FAMILY_H
#define RBPF_TARGET_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct family_member {
	pid_t pid;
	size_t parent; /* its index in the family; FAMILY_NONE if that is not in it */
	bool root;     /* it was asked for by its pid */
};

#define FAMILY_NONE SIZE_MAX

struct family {
	struct family_member *v; /* owned */
	size_t n;
};

/*
 * The processes @roots, in this order, and with @children also the descendants of each, behind it:
 * a child behind its parent and its older siblings' descendants, siblings by their pids. Each
 * process is in it once, and the calling one is in it only as a root. A root need not exist.
 * Returns 0, or a negative errno with @err set; @ret: family_deinit().
 */
int family_list(const pid_t *roots, size_t n, bool children, struct family *ret, struct err *err);
void family_deinit(struct family *f);

/* Whether member @i descends from member @ancestor, or is that. */
bool family_descends(const struct family *f, size_t i, size_t ancestor);

#endif
