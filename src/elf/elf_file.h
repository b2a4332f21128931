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

/*
 * A word or two of the process, from @place on, that the dynamic linker has written for whoever
 * uses a variable of thread-local storage (TLS). ELF Handling For Thread-Local Storage, Drepper;
 * the psABIs.
 */
enum elf_tls_kind {
	ELF_TLS_OFFSET, /* a word: its distance from the thread pointer (TPOFF64, TLS_TPREL) */
	ELF_TLS_INDEX,	/* two: its module, and its offset in the block of that (DTPMOD64) */
	ELF_TLS_MODULE, /* a word: the module of this file (DTPMOD64 of no symbol) */
	ELF_TLS_DESC,	/* two: a function, and its argument (TLSDESC) */
	ELF_TLS_KINDS,
};

struct elf_tls_place {
	uint64_t place; /* an address of the file */
	enum elf_tls_kind kind;
};

#define ELF_TLS_PLACES 8

struct elf_tls {
	bool defined;
	uint64_t offset; /* of the variable in the block of this file; if it is defined here … */
	uint64_t vaddr, size, align; /* … with this PT_TLS */
	struct elf_tls_place places[ELF_TLS_PLACES];
	size_t n_places;
};

/*
 * What the file says of the TLS variable @name: whether .dynsym defines it, and where the dynamic
 * linker leaves where it is, if the file uses it. Returns 0 or -ENOENT: neither.
 */
int elf_file_tls(struct elf_file *elf, const char *name, struct elf_tls *ret);

/* The build-id in hex, "" if there is none, into @out of @size bytes. */
void elf_file_build_id(struct elf_file *elf, char *out, size_t size);

#endif
