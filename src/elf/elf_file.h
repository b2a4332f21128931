/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ELF file: its symbols and segments. It knows nothing of processes: all addresses are the
 * file's own (st_value, p_vaddr); the caller adds the load bias.
 *
 * The file may be a hostile target's. It is read, never mapped, since it may become shorter
 * meanwhile, and no more of it than the limits below: what lies beyond is as if it were not there.
 * Not thread-safe.
 */
#ifndef RBPF_ELF_ELF_FILE_H
#define RBPF_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct elf_file;

#define ELF_FILE_MAX_READ     (64ull << 20) /* bytes, from elf_file_open() to elf_file_close() */
#define ELF_FILE_MAX_SECTIONS 4096	    /* a file with more has none; linkers make some 40 */
#define ELF_FILE_MAX_SEGMENTS 4096	    /* the same; linkers make a dozen */
#define ELF_FILE_MAX_NOTES    65536	    /* bytes of a section of notes */

struct elf_segment { /* a PT_LOAD */
	uint64_t vaddr;
	uint64_t memsz;
	uint64_t offset; /* in the file */
	uint64_t filesz;
	bool write;
	bool exec;
};

/*
 * Open @fd, which stays the caller's and must stay open meanwhile. @name is for messages.
 * Returns 0, or -ENOEXEC if it is no 64-bit ELF file of this machine's kind.
 */
int elf_file_open(int fd, const char *name, struct elf_file **ret, struct err *err);
void elf_file_close(struct elf_file *elf);

/*
 * Look up @n names in .dynsym, then, for those not found, in .symtab. @values[i] is left alone for
 * a name that is not defined. Returns how many were found.
 */
size_t elf_file_symbols(struct elf_file *elf, const char *const *names, uint64_t *values, size_t n);

/* The same in .dynsym alone. */
size_t elf_file_dynamic_symbols(struct elf_file *elf, const char *const *names, uint64_t *values,
				size_t n);

/* Whether it is linked with a shared library whose name begins with @prefix (DT_NEEDED). */
bool elf_file_needs(struct elf_file *elf, const char *prefix);

/* Copy at most @max PT_LOAD segments to @v; returns their number. */
size_t elf_file_segments(struct elf_file *elf, struct elf_segment *v, size_t max);

/* The build-id in hex, "" if there is none, into @out of @size bytes. */
void elf_file_build_id(struct elf_file *elf, char *out, size_t size);

#endif
