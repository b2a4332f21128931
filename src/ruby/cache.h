/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remembers the proven layout of each binary, so that the next process of it need not be searched
 * again: the workers of a server, the scripts of a shell loop. A file is known by device, inode,
 * size and modification time, and by its build-id if it has one.
 *
 * What a process of one user shows is no fact for those of another, for its memory is what that user
 * makes it: each has entries of its own, and uses those of root's processes beside.
 */
#ifndef RBPF_RUBY_CACHE_H
#define RBPF_RUBY_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ruby/layout.h"

struct ruby_binary;
struct ruby_vm;

struct ruby_known;

#define RUBY_CACHE_MAX 1024 /* entries; the next one takes the place of the oldest */

struct ruby_cache {
	struct ruby_known *v;
	size_t n, cap;
	size_t next; /* to be replaced */
};

#define RUBY_CACHE_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Take the layout of a binary seen before in a process of @uid or of root: sets @vm->layout and source, and the addresses of two
 * variables in this process. Returns 0 or -ENOENT.
 */
int ruby_cache_get(const struct ruby_cache *cache, uid_t uid, struct ruby_vm *vm,
		   uint64_t *current_vm, uint64_t *symbols);

/* Remember @vm, which was proven, in place of what was known. Returns 0 or -ENOMEM. */
int ruby_cache_put(struct ruby_cache *cache, uid_t uid, const struct ruby_vm *vm,
		   uint64_t current_vm);
void ruby_cache_deinit(struct ruby_cache *cache);

#endif
