/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The headers of an ELF file of any kind, and which debug file it asks for: the paths that are
 * tried are within the root, and are cut where the caller's room ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/debug_file.h"
#include "elf/elf_headers.h"

#define ROOM 200

static debug_file_open_fn open_none;

static int open_none(void *arg, uid_t owner, const char *root, const char *path, char *real,
		     size_t size)
{
	size_t *tried = arg;

	(void)owner;
	(void)real;
	(void)size;
	if (strcmp(root, "/root") || !path[0] || ++*tried > 64)
		abort();
	return -ENOENT;
}

static void check_headers(const uint8_t *data, size_t size)
{
	struct elf_headers h = ELF_HEADERS_INIT;
	uint64_t address;

	if (!elf_headers_read_image(data, size, &h)) {
		if (!h.n || h.n > ELF_SEGMENTS_MAX || !memchr(h.build_id, 0, sizeof(h.build_id)))
			abort();
		for (size_t i = 0; i < h.n; i++)
			elf_headers_address(&h, h.v[i].offset, h.v[i].memsz, &address);
	}
	elf_headers_deinit(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const roots[] = { "/root" };
	size_t tried = 0;
	const struct debug_roots all = { .v = roots, .n = 1, .open = open_none, .arg = &tried };
	char where[ROOM + 1], real[ROOM + 1];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	check_headers(data, size);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	where[ROOM] = real[ROOM] = '#';
	if (debug_file_open(fd, "/usr/lib/libx.so", &all, where, real, ROOM) >= 0 ||
	    debug_file_open_shared(fd, "/usr/lib/libx.so", &all) >= 0)
		abort();
	if (where[ROOM] != '#' || real[ROOM] != '#')
		abort();
	close(fd);
	return 0;
}
