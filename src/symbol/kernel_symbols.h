/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of the kernel, of its modules and of BPF programs, from /proc/kallsyms, as they
 * were when first asked for. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_KERNEL_SYMBOLS_H
#define RBPF_SYMBOL_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/intern.h"

#define KERNEL_SYMBOLS_MAX	    4000000u
#define KERNEL_SYMBOLS_MAX_NAMES    (256u << 20) /* bytes */
#define KERNEL_SYMBOLS_MAX_FUNCTION (1u << 20)	 /* bytes; beyond, an address is of no function */

struct kernel_function; /* an entry */

struct kernel_symbols {
	bool loaded;
	int error;			   /* of loading */
	struct kernel_function *functions; /* by start, which differ; owned */
	size_t n, cap;
	struct buf names;      /* each with its NUL */
	struct intern modules; /* "[ext4]" */
};

#define KERNEL_SYMBOLS_INIT                                                                        \
	{                                                                                          \
		0                                                                                  \
	}

/* Strings are valid until kernel_symbols_deinit(). */
struct kernel_symbol {
	const char *name;
	const char *module; /* "[ext4]", "[bpf]"; "" if it is of the kernel itself */
	uint64_t start;
};

/*
 * The function that @addr is in; /proc/kallsyms is read if it was not yet. A function is taken to
 * end where the next one begins. @symbols was KERNEL_SYMBOLS_INIT before.
 *
 * Returns 0, -ENOENT (in none), -EPERM (the kernel does not tell addresses: kernel.kptr_restrict,
 * or the capability is missing) or another error of reading, which each later call returns, too.
 */
int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t addr, struct kernel_symbol *ret);

/*
 * Load @text, of @len bytes in the form of /proc/kallsyms, in its place. Lines that are in another
 * form are passed over. Returns 0, -EPERM as above, -ENOENT (no functions), -E2BIG or -ENOMEM.
 */
int kernel_symbols_parse(struct kernel_symbols *symbols, const char *text, size_t len);

/* Accepts KERNEL_SYMBOLS_INIT, and makes it that. */
void kernel_symbols_deinit(struct kernel_symbols *symbols);

#endif
