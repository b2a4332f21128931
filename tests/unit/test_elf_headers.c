/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_headers.h"
#include "support/code_image.h"

static void assert_sane_headers(const struct elf_headers *h)
{
	bool found = false;

	cr_assert_gt(h->n, 0);
	for (size_t i = 0; i < h->n; i++) {
		cr_assert_geq(h->v[i].vaddr, h->base);
		cr_assert_gt(h->v[i].memsz, 0);
		found = found || h->v[i].vaddr == h->base;
	}
	cr_assert(found, "one of them begins at the base");
	cr_assert_lt(strlen(h->build_id), sizeof(h->build_id));
	cr_assert_eq(strspn(h->build_id, "0123456789abcdef"), strlen(h->build_id));
}

/* As libelf has them by way of sections. */
Test(elf_headers, own_binary)
{
	struct elf_headers headers = ELF_HEADERS_INIT;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_segment segments[64];
	char build_id[ELF_BUILD_ID_HEX];
	struct elf_file *elf;

	cr_assert_eq(elf_headers_read(fd, &headers), 0);
	assert_sane_headers(&headers);
	cr_assert_eq(elf_file_open(fd, "", &elf, NULL), 0);
	cr_expect_eq(elf_file_segments(elf, segments, 64), headers.n);
	for (size_t i = 0; i < headers.n; i++) {
		cr_expect_eq(headers.v[i].vaddr, segments[i].vaddr);
		cr_expect_eq(headers.v[i].offset, segments[i].offset);
		cr_expect_eq(headers.v[i].exec, segments[i].exec);
	}
	elf_file_build_id(elf, build_id, sizeof(build_id));
	cr_expect_str_eq(headers.build_id, build_id);
	elf_file_close(elf);
	elf_headers_deinit(&headers);
	cr_expect_null(headers.v);
	elf_headers_deinit(&headers);
	close(fd);
}

Test(elf_headers, what_is_no_file_of_this_machine)
{
	static const char *const contents[] = { "", "#!/bin/sh\n",
						"\x7f"
						"ELF" };
	struct elf_headers headers = { .n = 77 };
	struct code_image image;
	struct buf bytes = BUF_INIT;

	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(elf_headers_read_image(contents[i], strlen(contents[i]), &headers),
			     -ENOEXEC);
	code_image_make(&image, 1, 16);
	cr_assert_eq(io_read_file(AT_FDCWD, image.path, 1u << 20, &bytes), 0);
	((Elf64_Ehdr *)bytes.data)->e_machine = EM_S390;
	cr_expect_eq(elf_headers_read_image(bytes.data, bytes.len, &headers), -ENOEXEC);
	((Elf64_Ehdr *)bytes.data)->e_machine = ELF_BUILDER_MACHINE;
	cr_expect_eq(elf_headers_read_image(bytes.data, 100, &headers), -ENOEXEC,
		     "its headers are not all there");
	((Elf64_Ehdr *)bytes.data)->e_phnum = 0;
	cr_expect_eq(elf_headers_read_image(bytes.data, bytes.len, &headers), -ENOEXEC);
	cr_expect_eq(headers.n, 77, "untouched");
	buf_deinit(&bytes);
	code_image_remove(&image);
}

/* Two segments of code and one of data that begin and end within pages. */
Test(elf_headers, addresses)
{
	struct elf_segment segments[] = {
		{ .vaddr = 0x400234, .memsz = 0xe00, .offset = 0x234, .filesz = 0xe00 },
		{ .vaddr = 0x402034,
		  .memsz = 0x2000,
		  .offset = 0x1034,
		  .filesz = 0x2000,
		  .exec = true },
		{ .vaddr = 0x406100,
		  .memsz = 0x100,
		  .offset = 0x3100,
		  .filesz = 0x100,
		  .exec = true },
	};
	struct elf_headers headers = { .v = segments, .n = 3, .base = 0x400234 };
	uint64_t addr = 7;

	cr_expect_eq(elf_headers_address(&headers, 0, 0x1000, &addr), -ENOENT, "data");
	cr_expect_eq(addr, 7);
	cr_expect_eq(elf_headers_address(&headers, 0x1000, 0x3000, &addr), 0);
	cr_expect_eq(addr, 0x402000, "the page that the segment begins in");
	cr_expect_eq(elf_headers_address(&headers, 0x2000, 0x1000, &addr), 0);
	cr_expect_eq(addr, 0x403000);
	cr_expect_eq(elf_headers_address(&headers, 0x3000, 0x1000, &addr), 0);
	cr_expect_eq(addr, 0x406000, "most of the page is the third segment's");
	cr_expect_eq(elf_headers_address(&headers, 0x4000, 0x1000, &addr), -ENOENT, "no code");
	segments[1].offset = UINT64_MAX - 5;
	segments[2].filesz = UINT64_MAX;
	cr_expect_eq(elf_headers_address(&headers, UINT64_MAX, UINT64_MAX, &addr), 0, "no trap");
}
