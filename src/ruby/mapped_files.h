/* SPDX-License-Identifier: GPL-2.0-only */
/* The files whose code a process has mapped, each once, however often it is mapped. */
#ifndef RBPF_RUBY_MAPPED_FILES_H
#define RBPF_RUBY_MAPPED_FILES_H

#include <stddef.h>

struct maps;

#define MAPPED_FILES_MAX 1024 /* of one process that are looked into; Rails has some 150 */

/*
 * The first executable mapping of each file in @maps, as indices into it. Files with "ruby" in
 * their path come first, because they are likely to be a Ruby; the path decides nothing else. *@ret
 * is malloc'ed. Returns 0 or -ENOMEM.
 */
int mapped_files_list(const struct maps *maps, size_t **ret, size_t *n);

#endif
