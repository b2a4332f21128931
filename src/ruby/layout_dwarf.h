/* SPDX-License-Identifier: GPL-2.0-only */
/* RUBY_FROM_DWARF: the layout as debug information has it. */
#ifndef RBPF_RUBY_LAYOUT_DWARF_H
#define RBPF_RUBY_LAYOUT_DWARF_H

#include <stddef.h>
#include <sys/types.h>

#include "ruby/layout.h"

struct file_worker;
struct ruby_binary;

/*
 * Fill in @ret from the debug information of @fd, the file that is mapped as @bin in process @pid,
 * or of its separate debug file (debug_file.h), which is looked for in the root of the target and
 * in rbpf's own. @worker reads both.
 *
 * What it does not tell is RUBY_UNKNOWN; RUBY_ABSENT is a member that this Ruby's struct does not
 * have. @where, of @size bytes, is set to the path that it came from, cut if too long. Returns 0,
 * or -ENOENT if no debug information that knows Ruby was found; @ret and @where are then untouched.
 */
int ruby_layout_dwarf(struct file_worker *worker, pid_t pid, int fd, const struct ruby_binary *bin,
		      struct ruby_layout *ret, char *where, size_t size);

#endif
