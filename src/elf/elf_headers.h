/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the program headers of an ELF file say: which part of it goes where, and its build-id. That
 * is enough to translate a process' address into the file's; sections, which a file may do without,
 * are not looked at.
 *
 * The file may belong to a hostile target, so it is read, not mapped: it may shrink meanwhile.
 * Thread-safe for different files.
 */
#ifndef RBPF_ELF_ELF_HEADERS_H
#define RBPF_ELF_ELF_HEADERS_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

#define ELF_HEADERS_MAX	 4096 /* program headers of a file; linkers make a dozen */
#define ELF_SEGMENTS_MAX 64   /* of them, that are kept */
#define ELF_BUILD_ID_HEX 129  /* a build-id of 64 bytes in hex, and NUL; linkers make 20 bytes */

struct elf_headers {
	struct elf_segment *v; /* each PT_LOAD that takes up memory, in the file's order; owned */
	size_t n;
	uint64_t base;			 /* the lowest vaddr of them */
	char build_id[ELF_BUILD_ID_HEX]; /* "" if there is none */
};

#define ELF_HEADERS_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read the headers of @fd, which stays the caller's. Returns 0, -ENOEXEC (no 64-bit ELF file of
 * this machine's kind, or one without segments or past the limits) or -ENOMEM.
 */
int elf_headers_read(int fd, struct elf_headers *ret);

/* The same for a file in memory, as a process has a vDSO. */
int elf_headers_read_image(const void *image, size_t size, struct elf_headers *ret);

/* Accepts ELF_HEADERS_INIT, and makes it that. */
void elf_headers_deinit(struct elf_headers *headers);

/*
 * The address that the file's byte at @offset has by the file's own account, where @len bytes from
 * there are mapped as code. Mappings are of whole pages, segments are not: the one that most of the
 * mapping belongs to counts. Returns 0, or -ENOENT if none of it is code.
 */
int elf_headers_address(const struct elf_headers *headers, uint64_t offset, uint64_t len,
			uint64_t *ret);

#endif
