/* SPDX-License-Identifier: GPL-2.0-only */
/* Files with debug information of any kind: all that is said about an address can be read. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/lines.h"

static size_t look_up(struct elf_lines *lines)
{
	struct elf_line out[8];
	size_t read = 0;

	for (uint64_t addr = 0; addr < 0x1000; addr += 5) {
		size_t n = elf_lines_find(lines, addr, out, 8);

		for (size_t i = 0; i < n; i++)
			read += strlen(out[i].function) + strlen(out[i].file);
	}
	return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_lines *lines;

	if (write(fd, data, size) == (ssize_t)size && !elf_lines_open(fd, "/none", NULL, &lines)) {
		look_up(lines);
		elf_lines_close(lines);
	}
	close(fd);
	return 0;
}
