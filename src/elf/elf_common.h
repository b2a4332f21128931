/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parsers of ELF files have in common; of no use to others.
 */
#ifndef RBPF_ELF_ELF_COMMON_H
#define RBPF_ELF_ELF_COMMON_H

#include <gelf.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#define ELF_HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_HOST_MACHINE EM_AARCH64
#else
#error "unsupported architecture"
#endif

static inline bool elf_is_of_this_machine(const Elf64_Ehdr *ehdr)
{
	return !memcmp(ehdr->e_ident, ELFMAG, SELFMAG) && ehdr->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ehdr->e_ident[EI_DATA] == ELFDATA2LSB && ehdr->e_machine == ELF_HOST_MACHINE;
}

/* The name of section @scn, and its header in *@shdr; NULL if either cannot be read. */
static inline const char *elf_section_name(Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) || !gelf_getshdr(scn, shdr))
		return NULL;
	return elf_strptr(elf, names, shdr->sh_name);
}

#endif
