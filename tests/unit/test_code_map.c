/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "support/code_image.h"
#include "support/test_worker.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "target/maps.h"

#if defined(__x86_64__)
#define YJIT_KIND RBPF_CODE_YJIT
#else
#define YJIT_KIND RBPF_CODE_RECORD
#endif

static void assert_sane_map(const struct code_map *map)
{
	cr_assert_leq(map->n, CODE_MAP_MAX);
	cr_assert_gt(map->references, 0);
	for (size_t i = 0; i < map->n; i++) {
		const struct code_range *r = &map->v[i];

		cr_assert_lt(r->start, r->end, "range %zu", i);
		cr_assert(!i || map->v[i - 1].end <= r->start, "range %zu is out of order", i);
		cr_assert_eq(r->kind == RBPF_CODE_UNREAD, r->file != NULL, "range %zu", i);
		cr_assert(r->file || !r->bias);
		cr_assert(!r->file || r->file->references, "the file of range %zu is kept", i);
		cr_expect_eq(code_map_find(map, r->start), r);
		cr_expect_eq(code_map_find(map, r->end - 1), r);
		cr_expect_neq(code_map_find(map, r->end), r);
	}
}

static struct code_map *read_own(struct code_files *files, struct code_map *old)
{
	struct code_map *map;
	struct err err = { 0 };

	cr_assert_eq(code_map_read(files, getpid(), CODE_JIT_NONE, old, &map, &err), 0, "%s",
		     err.msg);
	assert_sane_map(map);
	return map;
}

/* ---- this process ---- */

static int compare_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const struct code_map *map = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];
		const struct code_range *range;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		range = code_map_find(map, info->dlpi_addr + ph->p_vaddr);
		cr_assert_not_null(range, "%s", info->dlpi_name);
		cr_assert_not_null(range->file, "%s", info->dlpi_name);
		cr_expect_eq(range->bias, info->dlpi_addr, "%s", info->dlpi_name);
		cr_expect_eq(code_map_find(map, info->dlpi_addr + ph->p_vaddr + ph->p_memsz - 1),
			     range, "%s", info->dlpi_name);
	}
	return 0;
}

Test(code_map, own_as_the_dynamic_linker_has_it)
{
	const struct code_range *vdso;
	struct code_files files;
	struct code_map *map;
	int local = 0;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	map = read_own(&files, NULL);
	dl_iterate_phdr(compare_object, map);
	vdso = code_map_find(map, getauxval(AT_SYSINFO_EHDR));
	cr_assert(vdso && vdso->file);
	cr_expect_str_eq(vdso->file->path, CODE_VDSO_PATH);
	cr_expect_eq(vdso->bias, getauxval(AT_SYSINFO_EHDR));
	cr_expect_null(code_map_find(map, (uint64_t)(uintptr_t)&local));
	cr_expect_null(code_map_find(map, 0));
	cr_expect_null(code_map_find(map, 0xffffffffff600000), "vsyscall");
	cr_expect_not(code_map_may_have_jit(map));
	map->is_cut = true;
	cr_expect(code_map_may_have_jit(map));
	map->is_cut = false;
	free(map->v[0].file->path);
	map->v[0].file->path = strdup("/tmp/_ruby_mjit_p10u2.so");
	cr_expect(code_map_may_have_jit(map));
	code_map_unref(map);
	code_map_unref(NULL);
	cr_expect_eq(files.n_idle, files.n);
	code_files_deinit(&files);
}

Test(code_map, libraries_that_come_and_go)
{
	const struct code_range *range;
	struct code_map *before, *same, *after;
	struct code_files files;
	struct code_image image;
	size_t references;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	before = read_own(&files, NULL);
	same = read_own(&files, before);
	cr_expect_eq(same, before, "one for both");
	cr_expect_eq(before->references, 2);
	code_map_unref(same);

	code_image_make(&image, 1, 16);
	code_image_map(&image);
	after = read_own(&files, before);
	cr_expect_neq(after, before);
	cr_expect_eq(after->n, before->n + 1);
	range = code_map_find(after, (uint64_t)(uintptr_t)image.code);
	cr_assert(range && range->file);
	cr_expect_str_eq(range->file->path, image.path);
	cr_expect_eq(range->bias, (uint64_t)(uintptr_t)image.code - CFI_BUILDER_CODE);
	for (size_t i = 0; i < before->n; i++)
		cr_expect_eq(code_map_find(after, before->v[i].start)->file, before->v[i].file,
			     "range %zu keeps its file", i);
	references = before->v[0].file->references;
	code_map_unref(before);
	cr_expect_eq(after->v[0].file->references, references - 1);
	code_image_unmap(&image);
	before = read_own(&files, after);
	cr_expect_eq(before->n + 1, after->n);
	code_map_unref(before);
	code_map_unref(after);
	code_files_deinit(&files);
	code_image_remove(&image);
}

/* As package managers do it: a new file under the old name. */
Test(code_map, file_that_was_replaced)
{
	const struct code_range *range, *range2;
	struct code_map *map, *map2;
	const struct cfi_table *table, *table2;
	struct code_image image, image2;
	struct code_files files;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	code_image_make(&image, 1, 16);
	code_image_map(&image);
	code_image_remove(&image);
	image2 = image;
	code_image_write(&image2, 3, 16);
	map = read_own(&files, NULL);
	range = code_map_find(map, (uint64_t)(uintptr_t)image.code);
	cr_assert_not_null(range);
	if (!range->file) {
		code_map_unref(map);
		code_files_deinit(&files);
		code_image_remove(&image2);
		cr_skip_test("/proc/PID/map_files is not permitted");
	}
	code_image_map(&image2);
	map2 = read_own(&files, map);
	range2 = code_map_find(map2, (uint64_t)(uintptr_t)image2.code);
	cr_assert(range2 && range2->file);
	cr_expect_neq(range->file, range2->file);
	cr_expect_str_eq(range->file->path, range2->file->path);
	cr_assert_eq(code_file_table(&files, range->file, &table), 0);
	cr_assert_eq(code_file_table(&files, range2->file, &table2), 0);
	cr_expect_lt(table->rows, table2->rows, "each has its own table");
	code_map_unref(map2);
	code_map_unref(map);
	code_files_deinit(&files);
	code_image_remove(&image2);
}

Test(code_map, forked_process_and_one_that_is_gone)
{
	struct code_map *parent, *child = NULL;
	struct code_files files;
	pid_t pid;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	parent = read_own(&files, NULL);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	cr_assert_eq(code_map_read(&files, pid, CODE_JIT_NONE, parent, &child, NULL), 0);
	cr_expect_eq(child, parent, "one map");
	code_map_unref(child);
	cr_assert_eq(code_map_read(&files, pid, CODE_JIT_NONE, NULL, &child, NULL), 0);
	cr_assert_eq(child->n, parent->n);
	for (size_t i = 0; i < child->n; i++)
		cr_expect_eq(child->v[i].file, parent->v[i].file, "range %zu: one file", i);
	code_map_unref(child);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	child = parent;
	cr_expect_eq(code_map_read(&files, pid, CODE_JIT_NONE, NULL, &child, NULL), -ESRCH);
	cr_expect_eq(child, parent, "untouched");
	code_map_unref(parent);
	code_files_deinit(&files);
}

/* ---- code of no file ---- */

struct expected {
	uint64_t start, end;
	uint32_t kind;
};

static void expect_ranges(const char *text, enum code_jit jit, const struct expected *v, size_t n)
{
	struct maps maps = MAPS_INIT;
	struct code_files files;
	struct code_map *map;

	cr_assert_eq(maps_parse(text, &maps), 0);
	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	cr_assert_eq(code_map_from(&files, getpid(), &maps, jit, NULL, &map), 0);
	assert_sane_map(map);
	cr_assert_eq(map->n, n, "%zu ranges in\n%s", map->n, text);
	cr_expect(!map->is_cut);
	cr_expect_eq(code_map_may_have_jit(map), n > 0);
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(map->v[i].start, v[i].start, "%lx: range %zu of\n%s",
			     (unsigned long)map->v[i].start, i, text);
		cr_expect_eq(map->v[i].end, v[i].end, "%lx: range %zu of\n%s",
			     (unsigned long)map->v[i].end, i, text);
		cr_expect_eq(map->v[i].kind, v[i].kind, "%u: range %zu of\n%s", map->v[i].kind, i,
			     text);
	}
	code_map_unref(map);
	code_files_deinit(&files);
	maps_deinit(&maps);
}

#define EXPECT(text, jit, ...)                                                                     \
	expect_ranges(text, jit, (const struct expected[]) { __VA_ARGS__ },                        \
		      sizeof((const struct expected[]) { __VA_ARGS__ }) / sizeof(struct expected))

#define ANON  " 00000000 00:00 0 \n"
#define NAMED " 00000000 00:00 0    [anon:Ruby:rb_jit_reserve_addr_space]\n"

Test(code_map, jit_kinds)
{
	static const char *const texts[] = { "10000-20000 r-xp" ANON, "10000-20000 rwxp" NAMED,
					     "10000-20000 r-xs 00000000 00:00 0 //anon\n",
					     "10000-20000 r-xs 00000000 00:01 7 /memfd:jit\n" };

	for (size_t i = 0; i < 4; i++) {
		EXPECT(texts[i], CODE_JIT_NONE, { 0x10000, 0x20000, RBPF_CODE_NO_TABLE });
		EXPECT(texts[i], CODE_JIT_YJIT, { 0x10000, 0x20000, YJIT_KIND });
		EXPECT(texts[i], CODE_JIT_ZJIT, { 0x10000, 0x20000, RBPF_CODE_RECORD });
	}
	EXPECT("10000-20000 rwxp 00000000 00:00 0 [stack]\n"
	       "30000-40000 rwxp 00000000 00:00 0 [heap]\n"
	       "50000-60000 r-xp 00000000 08:01 7 /no/such/file\n"
	       "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n",
	       CODE_JIT_YJIT, { 0x10000, 0x20000, RBPF_CODE_NO_TABLE },
	       { 0x30000, 0x40000, RBPF_CODE_NO_TABLE }, { 0x50000, 0x60000, RBPF_CODE_NO_TABLE });
}

/* The address space that was reserved is one range, whatever parts of it are in use. */
Test(code_map, jit_that_grows)
{
	static const char text[] = "10000000-10040000 r-xp" NAMED "10040000-10041000 rw-p" NAMED
				   "10041000-10050000 r-xp" NAMED "10050000-10060000 ---p" NAMED
				   "10060000-10070000 r-xp" NAMED "10070000-10072000 rw-p" NAMED
				   "10072000-18000000 ---p" NAMED "18000000-18021000 rw-p" ANON;
	static const char unnamed[] = "10000000-10040000 r-xp" ANON "10040000-10041000 rw-p" ANON
				      "10041000-18000000 ---p" ANON;

	EXPECT(text, CODE_JIT_YJIT, { 0x10000000, 0x18000000, YJIT_KIND });
	EXPECT(text, CODE_JIT_ZJIT, { 0x10000000, 0x18000000, RBPF_CODE_RECORD });
	EXPECT(unnamed, CODE_JIT_YJIT, { 0x10000000, 0x18000000, YJIT_KIND });
	EXPECT(text, CODE_JIT_NONE, { 0x10000000, 0x10040000, RBPF_CODE_NO_TABLE },
	       { 0x10041000, 0x10050000, RBPF_CODE_NO_TABLE },
	       { 0x10060000, 0x10070000, RBPF_CODE_NO_TABLE });
}

/* Memory of other kinds stands next to it, or is mapped with a gap. */
Test(code_map, jit_and_its_neighbours)
{
	/* a heap */
	EXPECT("10000-20000 rw-p" ANON "20000-30000 r-xp" ANON "30000-80000 rw-p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x30000, YJIT_KIND });
	/* a thread's stack, with its guard page, that of another below it */
	EXPECT("20000-30000 r-xp" ANON "30000-31000 ---p" ANON "31000-831000 rw-p" ANON
	       "831000-832000 ---p" ANON "832000-1032000 rw-p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x31000, YJIT_KIND });
	EXPECT("20000-30000 r-xp" ANON "30000-31000 ---p" ANON "31000-41000 rw-p" ANON
	       "41000-42000 ---p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x31000, YJIT_KIND });
	/* a malloc arena */
	EXPECT("20000-30000 r-xp" ANON "30000-51000 rw-p" ANON "51000-4030000 ---p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x30000, YJIT_KIND });
	/* a gap, and other code */
	EXPECT("20000-30000 r-xp" ANON "31000-40000 ---p" ANON "50000-60000 r-xp" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x30000, YJIT_KIND }, { 0x50000, 0x60000, YJIT_KIND });
	/* of another name */
	EXPECT("20000-30000 r-xp" NAMED "30000-40000 ---p" ANON, CODE_JIT_YJIT,
	       { 0x20000, 0x30000, YJIT_KIND });
	EXPECT("20000-30000 r-xp" ANON "30000-40000 r--p" ANON "40000-50000 ---p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x30000, YJIT_KIND });
	/* written to up to where something else begins */
	EXPECT("20000-30000 r-xp" ANON "30000-31000 rw-p" ANON "31000-32000 rw-s" ANON
	       "32000-33000 r--p" ANON,
	       CODE_JIT_YJIT, { 0x20000, 0x30000, YJIT_KIND });
}

/* As much as the largest JIT has, unless there is code in it. */
Test(code_map, jit_without_end)
{
	EXPECT("10000000-10001000 r-xp" ANON "10001000-f0000000 ---p" ANON, CODE_JIT_YJIT,
	       { 0x10000000, 0x10000000 + CODE_JIT_MAX, YJIT_KIND });
	EXPECT("10000000-f0000000 r-xp" ANON, CODE_JIT_YJIT, { 0x10000000, 0xf0000000, YJIT_KIND });
	EXPECT("10000000-10001000 r-xp" ANON "10001000-e0000000 ---p" ANON
	       "e0000000-f0000000 r-xp" ANON,
	       CODE_JIT_YJIT, { 0x10000000, 0x10000000 + CODE_JIT_MAX, YJIT_KIND },
	       { 0xe0000000, 0xf0000000, YJIT_KIND });
}

Test(code_map, too_many_ranges)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct maps maps = MAPS_INIT;
	struct code_files files;
	struct code_map *map;

	for (unsigned int i = 0; i < CODE_MAP_MAX + 10; i++)
		buf_addf(&text, "%x-%x r-xp" ANON, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000);
	cr_assert_eq(maps_parse(buf_str(&text), &maps), 0);
	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	cr_assert_eq(code_map_from(&files, getpid(), &maps, CODE_JIT_NONE, NULL, &map), 0);
	assert_sane_map(map);
	cr_expect_eq(map->n, CODE_MAP_MAX);
	cr_expect(map->is_cut);
	cr_expect_eq(map->v[0].start, 0x10000);
	code_map_unref(map);
	code_files_deinit(&files);
	maps_deinit(&maps);
}
