/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Instructions of ELF files of both machines: of bytes that are known by hand, of files that are
 * not what they say, and of whole functions of C libraries, which objdump shows, too.
 */
#include "elf/code.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "elf/symbols.h"
#include "support/elf_builder.h"
#include "support/test_worker.h"

#define START 0x401000

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	uint8_t code[64];
};

static struct image image_of(uint16_t machine, const void *code, size_t size)
{
	struct image image = {
		.ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = machine,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phoff = offsetof(struct image, phdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.phdr = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = offsetof(struct image, code),
			  .p_vaddr = START,
			  .p_filesz = size,
			  .p_memsz = size },
	};

	memcpy(image.code, code, size);
	return image;
}

static int read_image(const void *image, size_t image_size, uint64_t start, uint64_t size,
		      struct elf_code *ret)
{
	_cleanup_close_ int fd = elf_builder_memfd(image, image_size);

	if (elf_code_load())
		cr_skip_test("no libcapstone");
	return elf_code_read(fd, start, size, ret);
}

struct expected {
	uint32_t at, size;
	const char *text;
};

static void expect_code(const struct elf_code *code, const struct expected *v, size_t n)
{
	cr_assert_eq(code->n, n);
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(code->v[i].address, START + v[i].at, "%s", v[i].text);
		cr_expect_eq(code->v[i].size, v[i].size, "%s", v[i].text);
		cr_expect_str_eq(buf_str(&code->text) + code->v[i].text, v[i].text);
	}
}

static const uint8_t of_x86[] = {
	0x55,			      /* push */
	0x48, 0x89, 0xe5,	      /* mov */
	0xe8, 0x0b, 0x00, 0x00, 0x00, /* call what is 11 bytes behind it */
	0x75, 0xf9,		      /* jne back over the call */
	0x06,			      /* none in 64-bit mode */
	0xc3,			      /* ret */
};

static const struct expected x86[] = {
	{ 0, 1, "pushq %rbp" },	  { 1, 3, "movq %rsp, %rbp" }, { 4, 5, "callq 0x401014" },
	{ 9, 2, "jne 0x401004" }, { 11, 1, ".byte 0x06" },     { 12, 1, "retq" },
};

Test(elf_code, x86_64)
{
	const struct image image = image_of(EM_X86_64, of_x86, sizeof(of_x86));
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;

	cr_assert_eq(read_image(&image, sizeof(image), START, sizeof(of_x86), &code), 0);
	expect_code(&code, x86, ARRAY_SIZE(x86));
}

Test(elf_code, arm64)
{
	static const uint8_t bytes[] = {
		0xfd, 0x7b, 0xbf, 0xa9, /* stp */
		0x03, 0x00, 0x00, 0x94, /* bl three instructions on */
		0x00, 0x00, 0x00, 0x00, /* none */
		0xc0, 0x03, 0x5f, 0xd6, /* ret */
	};
	static const struct expected expected[] = {
		{ 0, 4, "stp x29, x30, [sp, #-0x10]!" },
		{ 4, 4, "bl #0x401010" },
		{ 8, 4, ".byte 0x00, 0x00, 0x00, 0x00" },
		{ 12, 4, "ret" },
	};
	const struct image image = image_of(EM_AARCH64, bytes, sizeof(bytes));
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;

	cr_assert_eq(read_image(&image, sizeof(image), START, sizeof(bytes), &code), 0);
	expect_code(&code, expected, ARRAY_SIZE(expected));
}

/* What is asked for, and no more than the file has. */
Test(elf_code, parts)
{
	struct image image = image_of(EM_X86_64, of_x86, sizeof(of_x86));
	struct elf_code code = ELF_CODE_INIT;

	cr_assert_eq(read_image(&image, sizeof(image), START, 4, &code), 0);
	expect_code(&code, x86, 2);
	elf_code_deinit(&code);
	cr_assert_eq(read_image(&image, sizeof(image), START, UINT64_MAX, &code), 0);
	expect_code(&code, x86, ARRAY_SIZE(x86));
	elf_code_deinit(&code);
	image.phdr.p_filesz = UINT64_MAX;
	cr_assert_eq(read_image(&image, offsetof(struct image, code) + 4, START, UINT64_MAX, &code),
		     0, "the file ends earlier than its header says");
	expect_code(&code, x86, 2);
	elf_code_deinit(&code);
}

Test(elf_code, no_code_there)
{
	const struct image good = image_of(EM_X86_64, of_x86, sizeof(of_x86));
	struct elf_code code = { .n = 77 };
	struct image image = good;

	cr_expect_eq(read_image(&good, sizeof(good), START - 1, 9, &code), -ENOENT);
	cr_expect_eq(read_image(&good, sizeof(good), START + sizeof(of_x86), 9, &code), -ENOENT);
	image.phdr.p_flags = PF_R | PF_W;
	cr_expect_eq(read_image(&image, sizeof(image), START, 9, &code), -ENOENT, "data");
	image = good;
	image.phdr.p_offset = UINT64_MAX / 2;
	cr_expect_eq(read_image(&image, sizeof(image), START, 9, &code), -ENOENT, "behind its end");
	image.phdr.p_offset = UINT64_MAX - 3;
	cr_expect_eq(read_image(&image, sizeof(image), START, 9, &code), -ENOENT, "before it");
	image = good;
	image.ehdr.e_machine = EM_RISCV;
	cr_expect_eq(read_image(&image, sizeof(image), START, 9, &code), -ENOEXEC);
	image = good;
	image.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	cr_expect_eq(read_image(&image, sizeof(image), START, 9, &code), -ENOEXEC);
	cr_expect_eq(read_image("#!/bin/sh\n", 10, START, 9, &code), -ENOEXEC);
	cr_expect_eq(read_image("", 0, START, 9, &code), -ENOEXEC);
	cr_expect_eq(code.n, 77, "untouched");
}

/* Larger functions than any compiler makes are cut. */
Test(elf_code, at_most_so_much)
{
	const size_t size = offsetof(struct image, code) + CODE_MAX_BYTES + 100;
	struct image header = image_of(EM_X86_64, "", 0);
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;
	_cleanup_free_ char *file = malloc(size);

	cr_assert_not_null(file);
	header.phdr.p_filesz = header.phdr.p_memsz = CODE_MAX_BYTES + 100;
	memset(file, 0x90, size);
	memcpy(file, &header, offsetof(struct image, code));
	cr_assert_eq(read_image(file, size, START, CODE_MAX_BYTES + 100, &code), 0);
	cr_expect_eq(code.n, CODE_MAX_BYTES);
}

/* The same by a worker, which may open nothing: the library is there from before. */
Test(elf_code, worker)
{
	const struct image image = image_of(EM_X86_64, of_x86, sizeof(of_x86));
	struct worker_file file = { .path = "/x" };
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;
	struct elf_code none = { .n = 77 };

	if (elf_code_load())
		cr_skip_test("no libcapstone");
	file.fd = elf_builder_memfd(&image, sizeof(image));
	cr_assert_eq(file_worker_code(test_worker(), &file, START, sizeof(of_x86), &code), 0);
	expect_code(&code, x86, ARRAY_SIZE(x86));
	cr_expect_eq(file_worker_code(test_worker(), &file, START - 1, 9, &none), -ENOENT);
	cr_expect_eq(none.n, 77, "untouched");
	cr_expect_eq(test_worker()->losses.files, 0);
	close(file.fd);
}

/* ---- objdump ---- */

/* The addresses that @command, an objdump, shows. */
static size_t addresses_of(const char *command, uint64_t *v, size_t max)
{
	FILE *out = popen(command, "r");
	char line[512], *colon, *address;
	size_t n = 0;

	cr_assert_not_null(out);
	while (n < max && fgets(line, sizeof(line), out)) {
		colon = strstr(line, ":\t");
		if (line[0] != ' ' || !colon)
			continue;
		*colon = '\0';
		address = line + strspn(line, " ");
		cr_assert_eq(sscanf(address, "%" SCNx64, &v[n++]), 1, "%s", line);
	}
	pclose(out);
	return n;
}

#define MAX_INSTRUCTIONS 20000

/* Functions of @path, as @objdump has them: all instructions begin where it says. */
static void compare(const char *objdump, const char *path, size_t n_functions)
{
	_cleanup_free_ uint64_t *expected = calloc(MAX_INSTRUCTIONS, sizeof(*expected));
	struct elf_symbols symbols = ELF_SYMBOLS_INIT;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t compared = 0, n, i;
	char command[512];

	snprintf(command, sizeof(command), "%s --version >/dev/null 2>&1", objdump);
	if (elf_code_load() || fd < 0 || system(command))
		cr_skip_test("no libcapstone, no %s or no %s", objdump, path);
	cr_assert_eq(elf_symbols_read(fd, path, NULL, &symbols), 0);
	for (i = 0; i < symbols.n && compared < n_functions; i += 1 + symbols.n / n_functions) {
		const struct elf_function *f = &symbols.functions[i];
		_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;

		if (strstr(f->name, "@plt"))
			continue;
		cr_assert_eq(elf_code_read(fd, f->start, f->end - f->start, &code), 0, "%s",
			     f->name);
		snprintf(command, sizeof(command),
			 "%s -dz --no-show-raw-insn --start-address=%#lx --stop-address=%#lx %s",
			 objdump, (unsigned long)f->start, (unsigned long)f->end, path);
		n = addresses_of(command, expected, MAX_INSTRUCTIONS);
		cr_assert_eq(code.n, n, "%s: %zu instead of %zu", f->name, code.n, n);
		for (size_t k = 0; k < n; k++)
			cr_assert_eq(code.v[k].address, expected[k], "%s: %lx", f->name,
				     (unsigned long)expected[k]);
		compared++;
	}
	elf_symbols_deinit(&symbols);
	cr_expect_gt(compared, n_functions / 2);
}

#define LIBZ(machine) "/lib/" machine "-linux-gnu/libz.so.1"

Test(elf_code, as_objdump_shows_x86_64)
{
	compare("objdump", LIBZ("x86_64"), 60);
}

Test(elf_code, as_objdump_shows_arm64)
{
	compare("aarch64-linux-gnu-objdump", "/usr/aarch64-linux-gnu/lib/libc.so.6", 60);
}
