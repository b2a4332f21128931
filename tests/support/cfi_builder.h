/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files with call frame information, in memory, for any machine: one segment of data that the
 * section is in, one of code, of which there is only the size, or the first bytes.
 */
#ifndef RBPF_TESTS_CFI_BUILDER_H
#define RBPF_TESTS_CFI_BUILDER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "support/little_endian.h"

#define CFI_BUILDER_BASE  0x400000ull
#define CFI_BUILDER_FRAME 0x401000ull /* address of the section */
#define CFI_BUILDER_CODE  0x410000ull
#define CFI_BUILDER_SIZE  0x30000ull /* of the code: three pages of a table */

/* Instructions, or an augmentation: bytes and how many. */
#define CFI_BYTES(...)	  (const uint8_t[]) { __VA_ARGS__ }, sizeof((const uint8_t[]) { __VA_ARGS__ })
#define CFI_NO_BYTES	  NULL, 0

struct cfi_builder {
	uint16_t machine;
	bool is_debug; /* .debug_frame, with absolute addresses */
	struct buf frame;
	struct buf code; /* the first of it */
};

static inline void cfi_builder_entry(struct cfi_builder *b, const struct buf *body)
{
	size_t pad = -body->len % 8;

	buf_add_le32(&b->frame, (uint32_t)(body->len + pad));
	buf_add(&b->frame, body->data, body->len);
	buf_add_repeat(&b->frame, '\0', pad);
}

/* A CIE with the usual augmentation and more letters; returns its offset. */
static inline uint32_t cfi_builder_cie(struct cfi_builder *b, const char *letters,
				       const uint8_t *instructions, size_t n)
{
	uint32_t offset = (uint32_t)b->frame.len;
	struct buf body = BUF_INIT;
	bool arm = b->machine == EM_AARCH64;

	buf_add_le32(&body, b->is_debug ? 0xffffffff : 0);
	buf_addch(&body, 1);
	if (!b->is_debug)
		buf_addstr(&body, "zR");
	buf_addstr(&body, letters);
	buf_addch(&body, '\0');
	buf_addch(&body, arm ? 4 : 1);
	buf_addch(&body, 0x78); /* -8 */
	buf_addch(&body, arm ? 30 : 16);
	if (!b->is_debug) {
		buf_addch(&body, 1);
		buf_addch(&body, 0x1b); /* relative to where it stands, sdata4 */
	}
	buf_add(&body, instructions, n);
	cfi_builder_entry(b, &body);
	buf_deinit(&body);
	return offset;
}

/* What a compiler begins with: on x86_64 the CFA is rsp + 8 and the return address below it. */
static inline uint32_t cfi_builder_usual_cie(struct cfi_builder *b, const char *letters)
{
	if (b->machine == EM_AARCH64)
		return cfi_builder_cie(b, letters, CFI_BYTES(0x0c, 31, 0));
	return cfi_builder_cie(b, letters, CFI_BYTES(0x0c, 7, 8, 0x80 | 16, 1));
}

/* An entry for [@start, @start + @size), counted from CFI_BUILDER_CODE. */
static inline void cfi_builder_fde(struct cfi_builder *b, uint32_t cie, uint32_t start,
				   uint32_t size, const uint8_t *instructions, size_t n)
{
	uint64_t at = b->frame.len + 4, addr = CFI_BUILDER_CODE + start;
	struct buf body = BUF_INIT;

	if (b->is_debug) {
		buf_add_le32(&body, cie);
		buf_add_le64(&body, addr);
		buf_add_le64(&body, size);
	} else {
		buf_add_le32(&body, (uint32_t)(at - cie));
		buf_add_le32(&body, (uint32_t)(addr - (CFI_BUILDER_FRAME + at + 4)));
		buf_add_le32(&body, size);
		buf_addch(&body, 0);
	}
	buf_add(&body, instructions, n);
	cfi_builder_entry(b, &body);
	buf_deinit(&body);
}

/* The file, in @image, which is the caller's. The section is the last thing in it but the code. */
static inline void cfi_builder_finish(const struct cfi_builder *b, struct buf *image)
{
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr segments[2];
		Elf64_Shdr sections[3];
		char names[40];
	} f = { .ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = b->machine,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3,
			  .e_shstrndx = 1 },
		.segments = { { .p_type = PT_LOAD,
				.p_flags = PF_R,
				.p_vaddr = CFI_BUILDER_BASE,
				.p_memsz = CFI_BUILDER_CODE - CFI_BUILDER_BASE },
			      { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_vaddr = CFI_BUILDER_CODE,
				.p_offset = sizeof(f) + b->frame.len,
				.p_filesz = b->code.len,
				.p_memsz = CFI_BUILDER_SIZE } },
		.names = "\0.shstrtab\0.eh_frame\0.debug_frame" };

	f.ehdr.e_phoff = (uint64_t)((char *)f.segments - (char *)&f);
	f.ehdr.e_shoff = (uint64_t)((char *)f.sections - (char *)&f);
	f.sections[1] = (Elf64_Shdr) { .sh_name = 1,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = (uint64_t)(f.names - (char *)&f),
				       .sh_size = sizeof(f.names),
				       .sh_addralign = 1 };
	f.sections[2] = (Elf64_Shdr) { .sh_name = b->is_debug ? 21 : 11,
				       .sh_type = SHT_PROGBITS,
				       .sh_flags = b->is_debug ? 0 : SHF_ALLOC,
				       .sh_addr = b->is_debug ? 0 : CFI_BUILDER_FRAME,
				       .sh_offset = sizeof(f),
				       .sh_size = b->frame.len,
				       .sh_addralign = 8 };
	*image = (struct buf)BUF_INIT;
	buf_add(image, &f, sizeof(f));
	buf_add(image, b->frame.data, b->frame.len);
	buf_add(image, b->code.data, b->code.len);
}

static inline void cfi_builder_deinit(struct cfi_builder *b)
{
	buf_deinit(&b->frame);
	buf_deinit(&b->code);
}

#endif
