/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/binary.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "target/maps.h"
#include "target/memory.h"

enum { SYM_VERSION, SYM_DURING_GC, SYM_OBJECT, SYM_SYMBOLS, SYM_COUNT };

static const char *const symbol_names[SYM_COUNT] = {
	[SYM_VERSION] = "ruby_version",
	[SYM_DURING_GC] = "rb_during_gc",
	[SYM_OBJECT] = "rb_cObject",
	[SYM_SYMBOLS] = "ruby_global_symbols", /* hidden: only in builds that keep .symtab */
};

/* The bias that maps the segment of file offset @map->offset to @map->start. */
static bool load_bias(const struct elf_segment *segs, size_t n, const struct map *map,
		      uint64_t *ret)
{
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t page_off = segs[i].offset & ~0xfffull;

		if (page_off == map->offset && segs[i].exec == map->exec) {
			*ret = map->start - (segs[i].vaddr & ~0xfffull);
			return true;
		}
	}
	return false;
}

/* Examine one mapped file. Returns 0 if it is the VM, -ENOENT if not. */
static int examine(pid_t pid, const struct map *map, const struct memory *mem,
		   struct ruby_binary *ret, struct err *err)
{
	struct ruby_binary bin = { .inode = map->inode };
	_cleanup_close_ int fd = maps_open_file(pid, map);
	uint64_t values[SYM_COUNT] = { 0 };
	struct elf_segment segs[16];
	struct elf_file *elf;
	size_t i, n;
	int r = -ENOENT;

	if (fd < 0 || elf_file_open(fd, map->path, &elf, NULL))
		return -ENOENT;
	elf_file_symbols(elf, symbol_names, values, SYM_COUNT);
	n = elf_file_segments(elf, segs, ARRAY_SIZE(segs));
	if (!values[SYM_VERSION] || !values[SYM_DURING_GC] || !values[SYM_OBJECT] ||
	    !load_bias(segs, n, map, &bin.base))
		goto out;
	for (i = 0; i < n; i++) {
		uint64_t lo = bin.base + segs[i].vaddr;

		if (segs[i].exec && !bin.text_hi) {
			bin.text_lo = lo;
			bin.text_hi = lo + segs[i].memsz;
		} else if (segs[i].write) {
			bin.data_lo = lo;
			bin.data_hi = lo + segs[i].memsz;
		}
	}
	bin.cObject = bin.base + values[SYM_OBJECT];
	if (values[SYM_SYMBOLS])
		bin.symbols = bin.base + values[SYM_SYMBOLS];
	n = memory_read_some(mem, bin.base + values[SYM_VERSION], bin.version,
			     sizeof(bin.version) - 1);
	bin.version[n] = '\0';
	elf_file_build_id(elf, bin.build_id, sizeof(bin.build_id));
	bin.path = strdup(map->path);
	if (!bin.path) {
		r = err_oom(err);
		goto out;
	}
	*ret = bin;
	r = 0;
out:
	elf_file_close(elf);
	return r;
}

static bool seen_before(const struct maps *maps, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (maps->v[k].exec && maps->v[k].inode == maps->v[i].inode &&
		    !strcmp(maps->v[k].path, maps->v[i].path))
			return true;
	return false;
}

int ruby_binary_find(pid_t pid, const struct maps *maps, const struct memory *mem,
		     struct ruby_binary *ret, struct err *err)
{
	int likely, r;
	size_t i;

	/* Names decide nothing, but they tell where to look first: two passes. */
	for (likely = 1; likely >= 0; likely--) {
		for (i = 0; i < maps->n; i++) {
			const struct map *map = &maps->v[i];

			if (!map->exec || !map->inode || seen_before(maps, i) ||
			    (strstr(map->path, "ruby") != NULL) != likely)
				continue;
			r = examine(pid, map, mem, ret, err);
			if (r != -ENOENT)
				return r;
		}
	}
	return -ENOENT;
}

void ruby_binary_deinit(struct ruby_binary *bin)
{
	free(bin->path);
	*bin = (struct ruby_binary) { 0 };
}
