/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "ruby/constants.h"
#include "target/memory.h"

#define BASE 0x7f0000000000ull

static const struct elf_segment segs[] = {
	{ .vaddr = 0, .offset = 0, .filesz = 100, .memsz = 100 },
	{ .vaddr = 0x1000, .offset = 100, .filesz = 50, .memsz = 60, .exec = true },
	{ .vaddr = 0x2000, .offset = 150, .filesz = 50, .memsz = 90, .write = true },
	{ .vaddr = 0x3000, .offset = 150, .filesz = 400, .memsz = 400 }, /* more than there is */
};

/* A file of 200 bytes, each its own offset. */
static int file(void)
{
	char path[] = "/tmp/test_constantsXXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	for (int i = 0; i < 200; i++)
		cr_assert_eq(write(fd, &(uint8_t) { (uint8_t)i }, 1), 1);
	return fd;
}

/* What is read there: the offset of its first byte, or -1. */
static int at(const struct ruby_constants *c, uint64_t addr, size_t len)
{
	struct memory mem = ruby_constants_memory(c);
	uint8_t bytes[512];

	if (memory_read(&mem, BASE + addr, bytes, len))
		return -1;
	for (size_t i = 1; i < len; i++)
		cr_assert_eq(bytes[i], (uint8_t)(bytes[0] + i));
	return bytes[0];
}

Test(constants, only_what_cannot_change)
{
	struct ruby_constants *c;
	int fd = file();

	cr_assert_eq(ruby_constants_new(NULL, fd, segs, sizeof(segs) / sizeof(segs[0]), BASE, &c),
		     0);
	close(fd); /* it has its own */
	cr_expect_eq(at(c, 0, 100), 0);
	cr_expect_eq(at(c, 99, 1), 99);
	cr_expect_eq(at(c, 99, 2), -1);
	cr_expect_eq(at(c, 0x1000, 50), 100);
	cr_expect_eq(at(c, 0x1000 + 49, 2), -1, "not in the file");
	cr_expect_eq(at(c, 0x2000, 8), -1, "writable");
	cr_expect_eq(at(c, 0x3000, 50), 150);
	cr_expect_eq(at(c, 0x3000, 51), -1, "the file is shorter");
	cr_expect_eq(at(c, 0x4000, 1), -1);
	cr_expect_eq(at(c, 0ull - 1, 1), -1);
	cr_expect_eq(at(c, 0, SIZE_MAX / 2 + 1), -1);
	ruby_constants_unref(c);
}

Test(constants, shared)
{
	struct ruby_constants *c, *other;
	int fd = file();

	cr_assert_eq(ruby_constants_new(NULL, fd, segs, 1, BASE, &c), 0);
	close(fd);
	other = ruby_constants_ref(c);
	ruby_constants_unref(c);
	cr_expect_eq(at(other, 7, 1), 7);
	ruby_constants_unref(other);
	cr_expect_null(ruby_constants_ref(NULL));
	ruby_constants_unref(NULL);
	cr_expect_eq(at(NULL, 0, 1), -1, "of none there is nothing");
	cr_expect_eq(ruby_constants_new(NULL, -1, segs, 1, BASE, &c), -EBADF);
}
