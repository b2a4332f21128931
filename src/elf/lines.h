/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source line of an address of an ELF file, and the functions that were inlined there, from its
 * debug information (DWARF 2 to 5, read through libdw), of the file or of its debug file
 * (debug_file.h). It knows nothing of processes: addresses are the file's own.
 *
 * The file may belong to a hostile target: what is read is limited in size and in time, and an
 * answer may be wrong, but cannot harm its reader. Not thread-safe.
 */
#ifndef RBPF_ELF_LINES_H
#define RBPF_ELF_LINES_H

#include <stddef.h>
#include <stdint.h>

#define ELF_LINES_MAX_NS       2000000000ull  /* of CPU time to open a file, and for one address */
#define ELF_LINES_MAX_TOTAL_NS 20000000000ull /* for all addresses of a file */
#define ELF_LINES_MAX_TABLE    (8u << 20)     /* bytes of a unit's table of lines */
#define ELF_LINES_MAX_TABLES   (32u << 20)    /* of all that are looked into */
#define ELF_LINES_MAX_RANGES   (4u << 20)     /* of units, and of functions, in a file */
#define ELF_LINES_MAX_DEPTH    64 /* of functions inlined into each other, and of blocks */

struct debug_roots;
struct elf_lines;

/* Strings are valid until elf_lines_close(), and of any bytes. */
struct elf_line {
	const char *function; /* as its symbol: mangled, if its language does that; "" if unknown */
	const char *file;     /* with its directory, if that is known; "" if unknown */
	uint32_t line;	      /* 0 if unknown */
};

/*
 * Open the debug information of @fd, the ELF file at @path within the first of @roots, which are as
 * for debug_file_open(); NULL: none. @fd stays the caller's and is not needed afterwards.
 *
 * Returns 0, or -ENOENT if there is none, -E2BIG, -ETIME (past the limits), -EBADMSG or -ENOMEM.
 */
int elf_lines_open(int fd, const char *path, const struct debug_roots *roots,
		   struct elf_lines **ret);
/* Accepts NULL. */
void elf_lines_close(struct elf_lines *lines);

/*
 * What @addr belongs to, the innermost function first, then those it was inlined into, each with
 * the line at which it is. Fills at most @max of @out; returns how many, 0 if nothing is known.
 */
size_t elf_lines_find(struct elf_lines *lines, uint64_t addr, struct elf_line *out, size_t max);

#endif
