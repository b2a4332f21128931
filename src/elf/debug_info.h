/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The debug information of a file, opened for libdw so that a hostile file does little harm: it is
 * read, not mapped, limited in size, names in it end, and libdw is kept from opening other files.
 */
#ifndef RBPF_ELF_DEBUG_INFO_H
#define RBPF_ELF_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct debug_info {
	Elf *elf;
	Dwarf *dwarf;
};

#define DEBUG_INFO_INIT                                                                            \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Open what @fd has of the @n debug sections (at most 64) named in @needed; the others, which libdw
 * would uncompress, too, are hidden. @fd stays the caller's and is not needed afterwards.
 *
 * Returns 0, -ENOENT (there is no .debug_info), -E2BIG (past DWARF_MAX_BYTES), -EBADMSG, or
 * -errno of fstat(2).
 */
int debug_info_open(int fd, const char *const *needed, size_t n, struct debug_info *ret);

/* Accepts DEBUG_INFO_INIT, and makes it that. */
void debug_info_close(struct debug_info *info);

/* The bytes of the section @name, uncompressed; NULL if there is none. */
Elf_Data *debug_info_section(const struct debug_info *info, const char *name);

#endif
