/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was proven of each binary, so that the next process of it need not be searched again: the
 * workers of a server, the scripts of a shell loop. A file is known by device, inode, size and
 * modification time, and by its build-id if it has one.
 */
#ifndef RBPF_RUBY_CACHE_H
#define RBPF_RUBY_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "ruby/layout.h"

struct ruby_binary;
struct ruby_vm;

struct ruby_known;

struct ruby_cache {
	struct ruby_known *v;
	size_t n, cap;
};

#define RUBY_CACHE_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Take the layout of a binary seen before: sets @vm->layout and source, and the addresses of two
 * variables in this process. Returns 0 or -ENOENT.
 */
int ruby_cache_get(const struct ruby_cache *cache, struct ruby_vm *vm, uint64_t *current_vm,
		   uint64_t *symbols);

/* Remember @vm, which was proven, in place of what was known. Returns 0 or -ENOMEM. */
int ruby_cache_put(struct ruby_cache *cache, const struct ruby_vm *vm, uint64_t current_vm);
void ruby_cache_deinit(struct ruby_cache *cache);

#endif
