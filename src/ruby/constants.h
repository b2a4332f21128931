/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The constant part of a Ruby's memory (no Ruby constants): the read-only segments of the file that
 * holds the VM, read from that file. The texts of Strings that are C literals ("<main>") are there.
 * A forked child has such a page only once it has touched it, so the BPF programs may be unable to
 * read what the process itself could; and when the process has ended the file is still the same.
 *
 * Shared by the VMs of a process and its forks: counted. Not thread-safe.
 */
#ifndef RBPF_RUBY_CONSTANTS_H
#define RBPF_RUBY_CONSTANTS_H

#include <stddef.h>
#include <stdint.h>

struct elf_segment;
struct file_worker;
struct memory;
struct ruby_constants;

/*
 * Make the constants of the file @fd (the descriptor is duplicated), which has these @n segments
 * and is loaded at @base. @worker, which must outlive them, reads the file as file_worker_read()
 * does. Returns 0 or -errno. @ret: ruby_constants_unref().
 */
int ruby_constants_new(struct file_worker *worker, int fd, const struct elf_segment *segs, size_t n,
		       uint64_t base, struct ruby_constants **ret);

/* Both take NULL, too; ref() returns @c. */
struct ruby_constants *ruby_constants_ref(struct ruby_constants *c);
void ruby_constants_unref(struct ruby_constants *c);

/* The memory that consists of them: with NULL nothing can be read. @c must outlive it. */
struct memory ruby_constants_memory(const struct ruby_constants *c);

#endif
