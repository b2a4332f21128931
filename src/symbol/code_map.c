/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A JIT compiler of Ruby reserves addresses, inaccessible, and makes them usable from the lowest
 * up: executable as a rule, writable a page at a time while code is written, inaccessible again
 * where code was freed.
 *
 *	r-xp  rw-p  r-xp  ---p
 *
 * of one name (of none, before Linux 5.17 or Ruby 3.4), without gaps.
 *
 * All of it is one range from the lowest executable piece on, so that a map need not be read again
 * as code is added. But other mappings may follow without a gap, a thread's stack after its
 * inaccessible guard page, or a malloc arena: writable memory belongs to the range only if it
 * follows upon the JIT's own and leads on to more of it, and is small. An arena has 132 KiB.
 */
#include "symbol/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/prefix.h"
#include "base/stop.h"
#include "symbol/code_files.h"
#include "target/maps.h"

struct map_reader {
	struct code_files *files;
	pid_t pid;
	enum code_jit jit;
	const struct code_map *old; /* may be NULL */
	struct code_map *map;
	size_t opened; /* mappings whose files were */
};

/* ---- code of no file ---- */

static uint32_t jit_kind(enum code_jit jit)
{
	if (jit == CODE_JIT_NONE)
		return RBPF_CODE_NO_TABLE;
#ifdef __x86_64__
	if (jit == CODE_JIT_YJIT)
		return RBPF_CODE_YJIT;
#endif
	return RBPF_CODE_RECORD;
}

/* Not [heap], [stack] or the like, nor a file. "//anon" is what Valgrind and old kernels say. */
static bool is_anonymous(const struct map *m)
{
	static const char *const prefixes[] = { "[anon:", "//anon", "/memfd:", "/dev/zero" };

	return m->path[0] ? begins_with_any(m->path, prefixes, ARRAY_SIZE(prefixes)) : !m->inode;
}

static bool is_reserved(const struct map *m)
{
	return !m->read && !m->write && !m->exec;
}

static bool is_being_written(const struct map *m)
{
	return m->write && !m->exec && m->end - m->start <= CODE_JIT_WRITTEN;
}

/* Whether mapping @i goes on where the one before it, of the same memory, ends. */
static bool continues(const struct maps *maps, size_t i)
{
	return i < maps->n && maps->v[i].start == maps->v[i - 1].end &&
	       maps->v[i].inode == maps->v[i - 1].inode &&
	       !strcmp(maps->v[i].path, maps->v[i - 1].path);
}

/* The first mapping after @i, which is the JIT's, that is not. */
static size_t jit_end(const struct maps *maps, size_t i)
{
	size_t end = i + 1, written;

	for (; continues(maps, end); end++) {
		if (maps->v[end].exec || is_reserved(&maps->v[end]))
			continue;
		if (is_reserved(&maps->v[end - 1]))
			break;
		written = end;
		while (is_being_written(&maps->v[end]) && continues(maps, end + 1))
			end++;
		if (!maps->v[end].exec && !is_reserved(&maps->v[end]))
			return written;
	}
	return end;
}

/* The range that begins with mapping @i; *@next is the first mapping that is not in it. */
static struct code_range anonymous_range(const struct map_reader *reader, const struct maps *maps,
					 size_t i, size_t *next)
{
	struct code_range range = { .start = maps->v[i].start,
				    .end = maps->v[i].end,
				    .kind = jit_kind(reader->jit) };

	*next = i + 1;
	if (reader->jit == CODE_JIT_NONE)
		return range;
	*next = jit_end(maps, i);
	range.end = maps->v[*next - 1].end;
	if (range.end - range.start <= CODE_JIT_MAX)
		return range;
	while (*next > i + 1 && maps->v[*next - 1].start - range.start >= CODE_JIT_MAX)
		--*next;
	range.end = maps->v[*next - 1].end;
	if (is_reserved(&maps->v[*next - 1]))
		range.end = range.start + CODE_JIT_MAX;
	return range;
}

/* ---- code of files ---- */

static int bias_of(const struct code_file *file, const struct map *m, uint64_t *ret)
{
	uint64_t address;

	if (elf_headers_address(&file->headers, m->offset, m->end - m->start, &address))
		return -ENOENT;
	*ret = m->start - address;
	return 0;
}

/*
 * The file that was there before, if @m is still a mapping of it. As long as it is mapped its inode
 * is no other file's; that it was unloaded meanwhile, deleted, and one of the same inode and name
 * loaded to the very same place, is left out of account.
 */
static struct code_file *file_before(const struct map_reader *reader, const struct map *m)
{
	const struct code_range *range = reader->old ? code_map_find(reader->old, m->start) : NULL;
	uint64_t bias;

	if (!range || !range->file || range->end < m->end || strcmp(range->file->path, m->path))
		return NULL;
	if (m->inode ? m->inode != range->file->key.inode : !range->file->image)
		return NULL;
	return bias_of(range->file, m, &bias) || bias != range->bias ? NULL : range->file;
}

/* NULL, too, if there is none that can be read. Returns 0 or -ENOMEM. */
static int file_of(struct map_reader *reader, const struct map *m, struct code_file **ret)
{
	struct code_file *file = file_before(reader, m);
	int r = -ENOENT;

	if (file) {
		code_file_set_mapping(file, reader->pid, m->start, m->end);
		*ret = code_file_ref(reader->files, file);
		return 0;
	}
	if (m->inode && reader->opened++ < CODE_MAP_OPENED)
		r = code_files_of_map(reader->files, reader->pid, m, ret);
	else if (!m->inode && !strcmp(m->path, CODE_VDSO_PATH))
		r = code_files_of_vdso(reader->files, reader->pid, m, ret);
	if (!r || r == -ENOMEM)
		return r;
	*ret = NULL;
	return 0;
}

/* ---- maps ---- */

/* Append @range, whose reference to its file is the map's then. */
static int add_range(struct code_map *map, const struct code_range *range)
{
	struct code_range *last = map->n ? &map->v[map->n - 1] : NULL;

	if (last && last->end == range->start && last->file == range->file &&
	    last->kind == range->kind && last->bias == range->bias) {
		last->end = range->end;
		code_file_unref(map->files, range->file);
		return 0;
	}
	if (array_reserve(map->v, map->cap, map->n + 1)) {
		code_file_unref(map->files, range->file);
		return -ENOMEM;
	}
	map->v[map->n++] = *range;
	return 0;
}

/* Add the code that mapping @i is; *@next is the mapping to go on with. */
static int read_mapping(struct map_reader *reader, const struct maps *maps, size_t i, size_t *next)
{
	const struct map *m = &maps->v[i];
	struct code_range range = { .start = m->start, .end = m->end, .kind = RBPF_CODE_NO_TABLE };
	struct code_file *file;
	int r;

	*next = i + 1;
	/* Neither mapped nor run any more: what is called there, the kernel does itself. */
	if (!m->exec || !strcmp(m->path, "[vsyscall]"))
		return 0;
	r = file_of(reader, m, &file);
	if (r)
		return r;
	if (!file && is_anonymous(m)) {
		range = anonymous_range(reader, maps, i, next);
	} else if (file && !bias_of(file, m, &range.bias)) {
		range.kind = RBPF_CODE_UNREAD;
		range.file = code_file_ref(reader->files, file);
	}
	code_file_unref(reader->files, file);
	return add_range(reader->map, &range);
}

static bool same_ranges(const struct code_map *a, const struct code_map *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (a->v[i].start != b->v[i].start || a->v[i].end != b->v[i].end ||
		    a->v[i].bias != b->v[i].bias || a->v[i].kind != b->v[i].kind ||
		    a->v[i].file != b->v[i].file)
			return false;
	return true;
}

int code_map_from(struct code_files *files, pid_t pid, const struct maps *maps, enum code_jit jit,
		  struct code_map *old, struct code_map **ret)
{
	struct map_reader reader = { .files = files, .pid = pid, .jit = jit, .old = old };
	struct code_map *map = calloc(1, sizeof(*map));
	size_t i = 0;
	int r = 0;

	if (!map)
		return -ENOMEM;
	map->files = files;
	map->references = 1;
	reader.map = map;
	while (!r && i < maps->n && map->n < CODE_MAP_MAX && !stop_overdue())
		r = read_mapping(&reader, maps, i, &i);
	if (r) {
		code_map_unref(map);
		return r;
	}
	map->is_cut = i < maps->n || maps->n_lost || maps->is_cut;
	if (old && old->is_cut == map->is_cut && same_ranges(old, map)) {
		code_map_unref(map);
		map = code_map_ref(old);
	}
	*ret = map;
	return 0;
}

int code_map_read(struct code_files *files, pid_t pid, enum code_jit jit, struct code_map *old,
		  struct code_map **ret, struct err *err)
{
	struct maps maps = MAPS_INIT;
	int r;

	r = maps_read(pid, &maps, err);
	if (r)
		return r;
	r = code_map_from(files, pid, &maps, jit, old, ret);
	maps_deinit(&maps);
	return r;
}

struct code_map *code_map_ref(struct code_map *map)
{
	map->references++;
	return map;
}

void code_map_unref(struct code_map *map)
{
	size_t i;

	if (!map || --map->references)
		return;
	for (i = 0; i < map->n; i++)
		code_file_unref(map->files, map->v[i].file);
	free(map->v);
	free(map);
}

void code_map_use(struct code_map *map)
{
	if (map->processes++)
		return;
	for (size_t i = 0; i < map->n; i++)
		if (map->v[i].file)
			code_file_mapped(map->v[i].file);
}

void code_map_unuse(struct code_map *map)
{
	if (--map->processes)
		return;
	for (size_t i = 0; i < map->n; i++)
		if (map->v[i].file)
			code_file_unmapped(map->files, map->v[i].file);
}

const struct code_range *code_map_find(const struct code_map *map, uint64_t addr)
{
	size_t low = 0, high = map->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addr < map->v[middle].start)
			high = middle;
		else if (addr >= map->v[middle].end)
			low = middle + 1;
		else
			return &map->v[middle];
	}
	return NULL;
}

bool code_map_may_have_jit(const struct code_map *map)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		if (!map->v[i].file || strstr(map->v[i].file->path, "/_ruby_mjit_"))
			return true;
	return map->is_cut;
}
