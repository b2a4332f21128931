/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files with code of any kind, and any of their bytes as instructions: where and how many is in the
 * first 16 bytes, the rest is the file. The instructions follow each other within what was asked
 * for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/code.h"

struct input {
	uint64_t start, size;
};

static void check(const struct elf_code *code, const struct input *in)
{
	uint64_t at = 0;

	for (size_t i = 0; i < code->n; i++) {
		if (code->v[i].address != in->start + at || !code->v[i].size)
			abort();
		at += code->v[i].size;
		if (!strlen(buf_str(&code->text) + code->v[i].text))
			abort();
	}
	if (at > in->size || at > CODE_MAX_BYTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_code code = ELF_CODE_INIT;
	struct input in;
	int fd;

	if (size < sizeof(in) || elf_code_load())
		return 0;
	memcpy(&in, data, sizeof(in));
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + sizeof(in), size - sizeof(in)) < 0)
		abort();
	if (!elf_code_read(fd, in.start, in.size, &code))
		check(&code, &in);
	elf_code_deinit(&code);
	close(fd);
	return 0;
}
