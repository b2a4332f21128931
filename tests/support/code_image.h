/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files on disk that can be mapped as code, with unwind tables of a size that the test chooses;
 * what would be code is zeros. All are removed by code_image_remove().
 */
#ifndef RBPF_TESTS_CODE_IMAGE_H
#define RBPF_TESTS_CODE_IMAGE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "support/cfi_builder.h"
#include "support/elf_builder.h"

#define CODE_IMAGE_OFFSET 0x10000u /* of the code, in the file */
#define CODE_IMAGE_BLOCK  64u	   /* bytes of code that one entry is about, in 16 rows */
#define CODE_IMAGE_MAX	  800u	   /* entries */

struct code_image {
	char path[64];
	void *code; /* where code_image_map() put it */
};

/* Write @image->path anew, with @blocks entries, of which the CFA is @offset and less. */
static inline void code_image_write(struct code_image *image, unsigned int blocks, uint8_t offset)
{
	struct cfi_builder b = { .machine = ELF_BUILDER_MACHINE };
	uint8_t rows[16 * 3 + 2];
	struct buf bytes;
	Elf64_Phdr *code;
	uint32_t cie;
	int fd;

	cr_assert_leq(blocks, CODE_IMAGE_MAX);
	for (unsigned int i = 0; i < 16; i++)
		memcpy(rows + i * 3, (uint8_t[]) { 0x0e, offset - 8 * (i % 2), 0x44 }, 3);
	cie = cfi_builder_usual_cie(&b, "");
	for (unsigned int i = 0; i < blocks; i++)
		cfi_builder_fde(&b, cie, i * CODE_IMAGE_BLOCK, CODE_IMAGE_BLOCK, rows, 15 * 3 + 2);
	cfi_builder_finish(&b, &bytes);
	cfi_builder_deinit(&b);
	code = (Elf64_Phdr *)(bytes.data + sizeof(Elf64_Ehdr)) + 1;
	code->p_offset = CODE_IMAGE_OFFSET;
	code->p_filesz = CFI_BUILDER_SIZE;

	fd = open(image->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0, "%s", image->path);
	cr_assert_lt(bytes.len, CODE_IMAGE_OFFSET);
	cr_assert_eq(io_write_full(fd, bytes.data, bytes.len), 0);
	cr_assert_eq(ftruncate(fd, CODE_IMAGE_OFFSET + CFI_BUILDER_SIZE), 0);
	close(fd);
	buf_deinit(&bytes);
}

static inline void code_image_make(struct code_image *image, unsigned int blocks, uint8_t offset)
{
	int fd;

	*image = (struct code_image) { .path = "/tmp/rbpf-code-image-XXXXXX" };
	fd = mkstemp(image->path);
	cr_assert_geq(fd, 0);
	close(fd);
	code_image_write(image, blocks, offset);
}

static inline void code_image_map(struct code_image *image)
{
	int fd = open(image->path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", image->path);
	image->code = mmap(NULL, CFI_BUILDER_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			   CODE_IMAGE_OFFSET);
	cr_assert_neq(image->code, MAP_FAILED, "%s", image->path);
	close(fd);
}

static inline void code_image_unmap(struct code_image *image)
{
	munmap(image->code, CFI_BUILDER_SIZE);
}

static inline void code_image_remove(struct code_image *image)
{
	unlink(image->path);
}

#endif
