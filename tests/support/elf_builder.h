/* SPDX-License-Identifier: GPL-2.0-only */
/* ELF files of nothing but sections, in memory. */
#ifndef RBPF_TESTS_ELF_BUILDER_H
#define RBPF_TESTS_ELF_BUILDER_H

#include <criterion/criterion.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"

#if defined(__x86_64__)
#define ELF_BUILDER_MACHINE EM_X86_64
#else
#define ELF_BUILDER_MACHINE EM_AARCH64
#endif

struct elf_builder {
	struct buf bytes;
	struct buf names;
	struct buf sections;
	uint16_t count;
};

static inline void elf_builder_section(struct elf_builder *b, const char *name, uint32_t type,
				       uint64_t flags, const void *data, size_t size)
{
	Elf64_Shdr shdr = { .sh_name = (uint32_t)b->names.len,
			    .sh_type = type,
			    .sh_flags = flags,
			    .sh_size = size,
			    .sh_addralign = 8 };

	buf_add_repeat(&b->bytes, '\0', -b->bytes.len % 8);
	shdr.sh_offset = b->bytes.len;
	buf_add(&b->bytes, data, size);
	buf_add(&b->names, name, strlen(name) + 1);
	buf_add(&b->sections, &shdr, sizeof(shdr));
	b->count++;
}

static inline void elf_builder_init(struct elf_builder *b)
{
	*b = (struct elf_builder) { 0 };
	buf_add_repeat(&b->bytes, '\0', sizeof(Elf64_Ehdr));
	elf_builder_section(b, "", SHT_NULL, 0, "", 0);
}

/* Make the file complete in b->bytes. */
static inline void elf_builder_finish(struct elf_builder *b)
{
	Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = ELF_BUILDER_MACHINE,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr) };
	struct buf names = BUF_INIT;

	buf_add(&names, b->names.data, b->names.len);
	buf_add(&names, ".shstrtab", sizeof(".shstrtab"));
	elf_builder_section(b, ".shstrtab", SHT_STRTAB, 0, names.data, names.len);
	buf_deinit(&names);
	buf_add_repeat(&b->bytes, '\0', -b->bytes.len % 8);
	ehdr.e_shoff = b->bytes.len;
	ehdr.e_shnum = b->count;
	ehdr.e_shstrndx = (uint16_t)(b->count - 1);
	buf_add(&b->bytes, b->sections.data, b->sections.len);
	memcpy(b->bytes.data, &ehdr, sizeof(ehdr));
}

static inline void elf_builder_deinit(struct elf_builder *b)
{
	buf_deinit(&b->bytes);
	buf_deinit(&b->names);
	buf_deinit(&b->sections);
}

/* A file in memory with these bytes; the caller closes it. */
static inline int elf_builder_memfd(const void *bytes, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

#endif
