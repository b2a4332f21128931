/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The small ELF file, compressed by xz, that Fedora and others leave in stripped files for the sake
 * of backtraces: .gnu_debugdata, with the .symtab of the functions that are not in .dynsym.
 */
#ifndef RBPF_ELF_MINIDEBUG_H
#define RBPF_ELF_MINIDEBUG_H

#include <stddef.h>

struct buf;

#define MINIDEBUG_MAX_BYTES  (64u << 20)  /* compressed, and not */
#define MINIDEBUG_MAX_MEMORY (128u << 20) /* to uncompress; xz -9 needs 65 MiB */

/*
 * Append what the section's data, of @size bytes, holds uncompressed to @out. Returns 0, -EBADMSG,
 * -E2BIG (past the limits) or -ENOMEM; @out may then have a part of it.
 */
int minidebug_uncompress(const void *data, size_t size, struct buf *out);

#endif
