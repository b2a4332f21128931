/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of an ELF file: which one an address belongs to. From, the better first:
 *
 *	.symtab, of the file or else of its debug file (debug_file.h) or else of the small ELF file
 *	in .gnu_debugdata (what Fedora leaves in stripped files)
 *	.dynsym
 *	the stubs of the procedure linkage table, as "memcpy@plt"
 *	.eh_frame_hdr, where a function has no name, but has a start that tells it from others
 *
 * What a worse one says counts where a better one says nothing. It knows nothing of processes:
 * addresses are the file's own. Names are as they stand there, mangled (demangle.h) and of any
 * bytes (base/utf8.h), without the version that may follow an "@".
 *
 * The file may belong to a hostile target: what is read is limited in size and number, what is past
 * the limits is left out, and nothing takes longer than n log n. Thread-safe for different files.
 */
#ifndef RBPF_ELF_SYMBOLS_H
#define RBPF_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct debug_roots;

#define ELF_SYMBOLS_MAX		4000000u       /* of all sources, before one is chosen an address */
#define ELF_SYMBOLS_MAX_SECTION (256ull << 20) /* bytes; larger ones are passed over */
#define ELF_SYMBOLS_MAX_NAMES	(256ull << 20) /* bytes, of all names that are looked at */
#define ELF_SYMBOLS_MAX_NAME	16384u	       /* bytes; longer ones are cut */

struct elf_function {
	uint64_t start, end; /* the file's addresses; start < end */
	const char *name;    /* "" if nameless */
};

/* The part of a function that lies behind another one nested in it. */
struct elf_function_rest {
	uint64_t start, end;
	size_t function; /* index */
};

struct elf_symbols {
	struct elf_function *functions; /* by start, which differ; they may overlap; owned */
	size_t n;
	struct elf_function_rest *rests; /* by start; apart from each other; owned */
	size_t n_rests;
	char *names; /* the functions'; owned */
};

#define ELF_SYMBOLS_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read the functions of @fd, which stays the caller's: the ELF file at @path within the first of
 * @roots, which are as for debug_file_open(). NULL: no debug file.
 *
 * Returns 0, also if there are none; -ENOEXEC (no ELF file of a machine that is known) or -ENOMEM.
 * What is damaged is passed over.
 */
int elf_symbols_read(int fd, const char *path, const struct debug_roots *roots,
		     struct elf_symbols *ret);

/* The same for a file in memory, as a process has a vDSO. */
int elf_symbols_read_image(const void *image, size_t size, struct elf_symbols *ret);

/* Accepts ELF_SYMBOLS_INIT, and makes it that. */
void elf_symbols_deinit(struct elf_symbols *symbols);

/*
 * The function that @addr lies in, NULL if in none; of several the one that starts last. Valid
 * until elf_symbols_deinit().
 */
const struct elf_function *elf_symbols_find(const struct elf_symbols *symbols, uint64_t addr);

#endif
