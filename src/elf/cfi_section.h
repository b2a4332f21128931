/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The section with a file's call frame information, made safe to be asked about through libdw, and
 * which addresses it has entries for. Part of cfi.c.
 */
#ifndef RBPF_ELF_CFI_SECTION_H
#define RBPF_ELF_CFI_SECTION_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_section {
	Elf *elf; /* the caller's */
	unsigned char ident[EI_NIDENT];
	uint16_t machine;
	bool is_eh;	/* .eh_frame, else .debug_frame */
	uint64_t vaddr; /* of the section, 0 if .debug_frame */
	Elf_Data *data; /* libelf's, changed in memory */
	Dwarf *dwarf;	/* owned; NULL if .eh_frame */
	Dwarf_CFI *cfi; /* owned; if .debug_frame, dwarf's */
};

/* The code that an entry (FDE) is for. */
struct cfi_extent {
	uint64_t start, end; /* start < end */
	bool broken;	     /* libdw does not know of it any more */
};

/*
 * Find the section of @elf, whose data must be in memory that is this process's own and may be
 * changed, disable what is broken in it and list its entries in @extents, in no order; the list is
 * the caller's to free. Then @ret->cfi may be asked for any address.
 *
 * Returns 0, or -ENOEXEC, -ENOENT, -E2BIG, -EBADMSG or -ENOMEM as cfi_table_read(); then nothing is
 * left behind.
 */
int cfi_section_open(Elf *elf, struct cfi_section *ret, struct cfi_extent **extents, size_t *n);
void cfi_section_close(struct cfi_section *section);

#endif
