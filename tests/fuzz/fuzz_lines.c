/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files with debug information of any kind: all that is said about an address can be read, and
 * there is no more of it than was asked for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/lines.h"

#define ROOM 8

/* Each string is read to its end: a result that nobody used would not be read at all. */
static volatile size_t bytes_read;

static void look_up(struct elf_lines *lines)
{
	struct elf_line out[ROOM + 1];

	for (uint64_t addr = 0; addr < 0x1000; addr += 5) {
		const size_t room = addr % (ROOM + 1);
		size_t n;

		memset(out, 0, sizeof(out));
		n = elf_lines_find(lines, addr, out, room);
		if (n > room || out[room].function || out[room].file || out[room].line)
			abort();
		for (size_t i = 0; i < n; i++) {
			if (!out[i].function || !out[i].file)
				abort();
			bytes_read += strlen(out[i].function) + strlen(out[i].file);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_lines *lines;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!elf_lines_open(fd, "/none", NULL, &lines)) {
		look_up(lines);
		elf_lines_close(lines);
	}
	close(fd);
	return 0;
}
