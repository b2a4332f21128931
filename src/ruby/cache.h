/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remembers the proven layout of each binary, so that it need not be found again for the next
 * process of that binary: the workers of a server, the scripts of a shell loop. A file is known by
 * device, inode, size and modification time, and by its build-id if it has one.
 *
 * The memory of a process is under the control of its user, so a layout that was found in it is
 * used only for processes of the same user. Those that were found in root's processes are used for
 * all.
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
 * Take the layout of a binary that was seen before in a process of @uid or of root: sets
 * @vm->layout and @vm->source, and *@current_vm and *@symbols, the addresses of ruby_current_vm_ptr
 * and ruby_global_symbols in this process (0: not known). Returns 0 or -ENOENT.
 */
int ruby_cache_get(const struct ruby_cache *cache, uid_t uid, struct ruby_vm *vm,
		   uint64_t *current_vm, uint64_t *symbols);

/* Remember @vm, which was proven, in place of what was known. Returns 0 or -ENOMEM. */
int ruby_cache_put(struct ruby_cache *cache, uid_t uid, const struct ruby_vm *vm,
		   uint64_t current_vm);
void ruby_cache_deinit(struct ruby_cache *cache);

#endif
