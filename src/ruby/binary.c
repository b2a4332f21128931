/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/binary.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/stop.h"
#include "ruby/constants.h"
#include "ruby/layout.h"
#include "ruby/mapped_files.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/process.h"
#include "worker/file_worker.h"

static const char *const symbol_names[RUBY_SYMS] = {
#define X(symbol) #symbol,
	RUBY_BINARY_SYMBOLS(X)
#undef X
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

/* Where the segments of the file are in the process. */
static void set_segments(const struct file_exports *file, struct ruby_binary *bin)
{
	size_t i;

	for (i = 0; i < file->n_segments; i++) {
		const struct elf_segment *seg = &file->segments[i];
		uint64_t lo = bin->base + seg->vaddr;

		if (seg->exec && !bin->text_hi) {
			bin->text_lo = lo;
			bin->text_hi = lo + seg->memsz;
		} else if (seg->write) {
			bin->data_lo = lo;
			bin->data_hi = lo + seg->memsz;
		}
	}
}

/* Whether @file is the VM's; then its part of @bin is set. */
static bool is_vm(const struct file_exports *file, const struct map *map, struct ruby_binary *bin)
{
	size_t i;

	if (!file->values[RUBY_SYM_ruby_version] || !file->values[RUBY_SYM_rb_during_gc] ||
	    !file->values[RUBY_SYM_rb_cObject] ||
	    !load_bias(file->segments, file->n_segments, map, &bin->base))
		return false;
	set_segments(file, bin);
	for (i = 0; i < RUBY_SYMS; i++)
		bin->symbol[i] = file->values[i] ? bin->base + file->values[i] : 0;
	snprintf(bin->build_id, sizeof(bin->build_id), "%s", file->build_id);
	return true;
}

/* Examine one mapped file. Returns 0 if it is the VM, -ENOENT if not. */
static int examine(struct file_worker *worker, pid_t pid, const struct map *map,
		   const struct memory *mem, struct ruby_binary *ret, struct err *err)
{
	struct ruby_binary bin = { .map_start = map->start, .map_end = map->end };
	_cleanup_close_ int fd = maps_open_file(pid, map);
	const struct worker_file from = { .fd = fd, .path = map->path };
	struct file_exports file;
	struct statx st;
	size_t n;
	int r;

	if (fd < 0 || io_stat(fd, &st) ||
	    file_worker_exports(worker, &from, false, "libruby", symbol_names, RUBY_SYMS, &file) ||
	    !is_vm(&file, map, &bin))
		return -ENOENT;
	n = memory_read_some(mem, bin.symbol[RUBY_SYM_ruby_version], bin.version,
			     sizeof(bin.version) - 1);
	bin.version[n] = '\0';
	/*
	 * Empty: not permitted to read it. It is printed, so no other text than a version may pass.
	 */
	if (n && !ruby_version_valid(bin.version))
		return -ENOENT;
	bin.device = io_device(&st);
	bin.inode = st.stx_ino;
	bin.size = st.stx_size;
	bin.mtime_ns = io_time_ns(st.stx_mtime);
	bin.path = strdup(map->path);
	if (!bin.path)
		return err_oom(err);
	r = ruby_constants_new(worker, fd, file.segments, file.n_segments, bin.base,
			       &bin.constants);
	if (r) {
		free(bin.path);
		if (r == -ENOMEM)
			return err_oom(err);
		return err_set(err, r, ERR_RUNTIME,
			       "cannot duplicate the file descriptor of %s: %s", map->path,
			       strerror(-r));
	}
	*ret = bin;
	return 0;
}

/*
 * The file of a modular collector: gc.c ruby_modular_gc_init() (3.4 on) loads no other name. It is
 * printed, so no other letters than that function permits may pass.
 */
#define GC_MODULE "librubygc."

static bool is_gc_module(const struct map *map, char *name, size_t size)
{
	const char *slash = strrchr(map->path, '/'), *base = slash ? slash + 1 : map->path;
	size_t len;

	if (!map->exec || !map->inode || strncmp(base, GC_MODULE, strlen(GC_MODULE)))
		return false;
	base += strlen(GC_MODULE);
	len = strspn(base, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
	snprintf(name, size, "%.*s", len ? (int)len : 1, len ? base : "?");
	return true;
}

/* The collector that is loaded as a module, if one is. */
static void find_gc_module(const struct maps *maps, struct ruby_binary *bin)
{
	size_t i;

	for (i = 0; i < maps->n; i++) {
		if (!is_gc_module(&maps->v[i], bin->gc_name, sizeof(bin->gc_name)))
			continue;
		bin->gc_lo = maps->v[i].start;
		bin->gc_hi = maps->v[i].end;
		return;
	}
}

/* What follows the code of the dynamic linker: its constants and its data. */
static void find_linker(pid_t pid, const struct maps *maps, struct ruby_binary *bin)
{
	uint64_t base;
	size_t i, k;

	if (process_linker_base(pid, &base))
		return;
	for (i = 0; i < maps->n; i++)
		if (maps->v[i].exec && maps->v[i].start - maps->v[i].offset == base)
			break;
	for (k = i + 1; k < maps->n && maps->v[k].inode == maps->v[i].inode && !maps->v[k].exec;
	     k++)
		if (maps->v[k].start != maps->v[k - 1].end)
			break;
	if (k > i + 1) {
		bin->linker_lo = maps->v[i].end;
		bin->linker_hi = maps->v[k - 1].end;
	}
}

int ruby_binary_find(struct file_worker *worker, pid_t pid, const struct maps *maps,
		     const struct memory *mem, struct ruby_binary *ret, struct err *err)
{
	_cleanup_free_ size_t *files = NULL;
	size_t i, n;
	int r;

	if (mapped_files_list(maps, &files, &n))
		return err_oom(err);
	for (i = 0; i < n && !stop_overdue(); i++) {
		r = examine(worker, pid, &maps->v[files[i]], mem, ret, err);
		if (!r) {
			find_gc_module(maps, ret);
			find_linker(pid, maps, ret);
		}
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int ruby_binary_open(pid_t pid, const struct ruby_binary *bin)
{
	struct map map = {
		.start = bin->map_start, .end = bin->map_end, .inode = bin->inode, .path = bin->path
	};

	return maps_open_file(pid, &map);
}

void ruby_binary_deinit(struct ruby_binary *bin)
{
	free(bin->path);
	ruby_constants_unref(bin->constants);
	*bin = (struct ruby_binary) { 0 };
}
