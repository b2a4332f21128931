/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "elf/elf_headers.h"
#include "elf/debug_file.h"
#include "elf/symbols.h"
#include "rbpf_abi.h"
#include "symbol/code_readahead.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "symbol/code_symbols.h"
#include "symbol/kernel_symbols.h"
#include "symbol/native_names.h"
#include "target/maps.h"
#include "support/test_worker.h"

/* ---- code of this process ---- */

/* As if this program were a Ruby. */
static volatile int depth;
static int data;

static __attribute__((noinline)) int vm_exec_core(int n)
{
	depth += n;
	return depth;
}

static __attribute__((noinline)) int rb_vm_exec(int n)
{
	return vm_exec_core(n + 1) + 1;
}

static uint64_t exact(const void *function)
{
	return (uint64_t)function | RBPF_NATIVE_EXACT;
}

struct fixture {
	struct code_files files;
	struct native_names *names;
	struct code_map *map; /* of this process, as it is now */
};

static struct code_map *read_map(struct fixture *f)
{
	struct code_map *map;

	cr_assert_eq(code_map_read(&f->files, getpid(), CODE_JIT_NONE, f->map, &map, NULL), 0);
	return map;
}

static void setup_with(struct fixture *f, bool inlines)
{
	*f = (struct fixture) { 0 };
	cr_assert_eq(code_files_init(&f->files, test_worker(), code_symbols_free), 0);
	cr_assert_eq(native_names_new(&f->files, inlines, &f->names), 0);
	f->map = read_map(f);
}

static void setup(struct fixture *f)
{
	setup_with(f, false);
}

static void teardown(struct fixture *f)
{
	code_map_unref(f->map);
	native_names_free(f->names);
	code_files_deinit(&f->files);
}

static void assert_sane_name(const struct native_name *n)
{
	cr_assert(n->kind == FRAME_NATIVE || n->kind == FRAME_KERNEL || n->kind == FRAME_GAP);
	cr_assert_str_not_empty(n->name);
	for (const char *p = n->name; *p;) {
		size_t len = utf8_sequence(p, strlen(p));

		cr_assert_gt(len, 0, "\"%s\" is no UTF-8", n->name);
		p += len;
	}
	cr_assert(n->module && n->build_id);
	cr_assert_leq(n->function, n->address, "%s", n->name);
	if (n->kind != FRAME_NATIVE)
		cr_assert(!n->is && !n->function && !n->address && !n->build_id[0], "%s", n->name);
}

static const struct native_name *name(struct fixture *f, const struct code_map *map, uint64_t word,
				      uint32_t *id, uint64_t *bias)
{
	const struct native_code code = { .map = map };
	const struct native_name *n;
	uint32_t again;
	uint64_t same;

	cr_assert_eq(native_names_find(f->names, &code, word, id, bias), 0);
	cr_assert_eq(native_names_find(f->names, &code, word, &again, &same), 0);
	cr_assert(again == *id && same == *bias, "0x%" PRIx64 " is one name", word);
	n = native_names_get(f->names, *id);
	assert_sane_name(n);
	return n;
}

static void expect_name(struct fixture *f, const struct code_map *map, uint64_t word,
			enum frame_kind kind, const char *want, uint32_t is)
{
	uint32_t id;
	uint64_t bias;
	const struct native_name *n = name(f, map, word, &id, &bias);

	cr_expect(n->kind == kind && !strcmp(n->name, want) && n->is == is,
		  "0x%" PRIx64 " is %d \"%s\" %x, not %d \"%s\" %x", word, n->kind, n->name, n->is,
		  kind, want, is);
}

/* ---- functions inlined into each other ---- */

__attribute__((always_inline)) static inline int innermost(int n)
{
	depth += n;
	return depth;
}

__attribute__((always_inline)) static inline int middle(int n)
{
	return innermost(n) + depth++;
}

static __attribute__((noinline)) int outermost(int n)
{
	return middle(n + 1) + depth++;
}

/*
 * With the array of names at each fill, so that it has to grow in the middle of each depth: a name
 * must not be written to where the array was before.
 */
Test(native_names, inlined_functions)
{
	static const char *const want[] = { "innermost", "middle", "outermost" };
	size_t found = 0, filled, i;

	for (filled = 0; filled < 9; filled++) {
		struct fixture f;
		uint64_t bias, at;
		uint32_t id;

		setup_with(&f, true);
		for (i = 0; i < filled; i++)
			name(&f, NULL, i % RBPF_NATIVE_END_COUNT, &id, &bias);
		for (at = 0; at < 64; at++) {
			const struct native_name *n =
				name(&f, f.map, exact((const char *)outermost + at), &id, &bias);

			if (strcmp(n->name, want[0]))
				continue;
			found++;
			for (i = 0; i < 3; i++, id = n->outer) {
				cr_assert_neq(id, NATIVE_NONE);
				n = native_names_get(f.names, id);
				cr_assert_str_eq(n->name, want[i]);
				cr_assert_gt(n->line, 0, "%s", n->name);
			}
			cr_assert_eq(id, NATIVE_NONE);
			break;
		}
		teardown(&f);
	}
	cr_assert_eq(found, filled, "%d", outermost(0));
}

Test(native_names, functions_of_this_process)
{
	struct fixture f;
	const struct native_name *n;
	const struct code_range *range;
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	uint64_t bias;
	uint32_t id;

	cr_assert_gt(len, 0);
	path[len] = '\0';
	setup(&f);
	expect_name(&f, f.map, exact(native_names_find), FRAME_NATIVE, "native_names_find", 0);
	expect_name(&f, f.map, exact(rb_vm_exec), FRAME_NATIVE, "rb_vm_exec", 0);
	/* A return address may be behind the function that it returns to. */
	expect_name(&f, f.map, (uint64_t)rb_vm_exec + 1, FRAME_NATIVE, "rb_vm_exec", 0);
	n = name(&f, f.map, (uint64_t)rb_vm_exec, &id, &bias);
	cr_expect_str_neq(n->name, "rb_vm_exec");

	n = name(&f, f.map, exact((const char *)native_names_get + 1), &id, &bias);
	cr_expect_str_eq(n->name, "native_names_get");
	cr_expect_str_eq(n->module, path);
	cr_expect_eq(n->function + bias, (uint64_t)native_names_get);
	cr_expect_eq(n->address, n->function + 1);
	range = code_map_find(f.map, (uint64_t)native_names_get);
	cr_assert_not_null(range);
	cr_expect_eq(bias, range->bias);
	cr_expect_str_eq(n->build_id, range->file->headers.build_id);
	teardown(&f);
}

/* Ids are dense, and one for each address of a file. */
Test(native_names, ids)
{
	const uint64_t words[] = { exact(rb_vm_exec),
				   (uint64_t)rb_vm_exec + 1,
				   exact((const char *)rb_vm_exec + 1),
				   exact(vm_exec_core),
				   1,
				   2,
				   0x1000,
				   RBPF_NATIVE_KERNEL | 0x1000,
				   exact(rb_vm_exec) };
	static const uint32_t want[] = { 0, 0, 1, 2, 3, 4, 5, 6, 0 };
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t bias;
		uint32_t id;

		name(&f, f.map, words[i], &id, &bias);
		cr_expect_eq(id, want[i], "word %zu has id %u", i, id);
	}
	teardown(&f);
}

/* Those from before stay until it is done again, and get other ids when they are asked for. */
Test(native_names, renewed)
{
	struct fixture f;
	uint32_t ids[3];
	uint64_t bias;
	size_t before;

	setup(&f);
	for (uint32_t i = 0; i < 3; i++) {
		name(&f, f.map, exact(rb_vm_exec), &ids[i], &bias);
		cr_expect_eq(ids[i], i);
		cr_expect_str_eq(native_names_get(f.names, ids[i])->name, "rb_vm_exec");
		if (i)
			cr_expect_str_eq(native_names_get(f.names, ids[i - 1])->name, "rb_vm_exec");
		cr_expect_eq(native_names_first(f.names), i ? i - 1 : 0);
		before = native_names_bytes(f.names);
		native_names_renew(f.names);
		cr_expect_lt(native_names_bytes(f.names), before);
	}
	teardown(&f);
}

Test(native_names, gaps)
{
	struct fixture f;
	uint64_t word, bias;
	uint32_t id;

	setup(&f);
	for (word = 0; word < RBPF_NATIVE_END_COUNT; word++) {
		const struct native_name *n = name(&f, word % 2 ? f.map : NULL, word, &id, &bias);

		cr_expect_eq(n->kind, FRAME_GAP);
		cr_expect_eq(strncmp(n->name, "[native frames missing", 22), 0, "%s", n->name);
		cr_expect_str_eq(n->module, "");
		cr_expect_eq(id, word, "each has its own");
	}
	expect_name(&f, f.map, RBPF_NATIVE_END_COUNT, FRAME_NATIVE, "[anonymous code]",
		    NATIVE_IS_NAMELESS);
	teardown(&f);
}

Test(native_names, unknown_addresses)
{
	struct fixture f;

	setup(&f);
	expect_name(&f, f.map, 0x1000, FRAME_NATIVE, "[anonymous code]", NATIVE_IS_NAMELESS);
	expect_name(&f, NULL, exact(rb_vm_exec), FRAME_NATIVE, "[anonymous code]",
		    NATIVE_IS_NAMELESS);
	expect_name(&f, f.map, exact(&data), FRAME_NATIVE, "[anonymous code]", NATIVE_IS_NAMELESS);
	expect_name(&f, f.map, RBPF_NATIVE_EXACT, FRAME_NATIVE, "[anonymous code]",
		    NATIVE_IS_NAMELESS);
	teardown(&f);
}

Test(native_names, compiled_code)
{
	static const char text[] = "7e0000000000-7e0000010000 r-xp 00000000 00:00 0 \n";
	static const struct {
		enum code_jit jit;
		const char *name;
		uint32_t is;
	} cases[] = {
		{ CODE_JIT_YJIT, "[compiled Ruby code]", NATIVE_IS_COMPILED },
		{ CODE_JIT_ZJIT, "[compiled Ruby code]", NATIVE_IS_COMPILED },
		{ CODE_JIT_NONE, "[anonymous code]", NATIVE_IS_NAMELESS },
	};
	struct maps maps = MAPS_INIT;
	struct fixture f;

	setup(&f);
	cr_assert_eq(maps_parse(text, &maps), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code_map *map;

		cr_assert_eq(code_map_from(&f.files, getpid(), &maps, cases[i].jit, NULL, &map), 0);
		expect_name(&f, map, 0x7e0000000040, FRAME_NATIVE, cases[i].name, cases[i].is);
		expect_name(&f, map, 0x7e0000010000, FRAME_NATIVE, cases[i].name, cases[i].is);
		expect_name(&f, map, 0x7e0000010001, FRAME_NATIVE, "[anonymous code]",
			    NATIVE_IS_NAMELESS);
		code_map_unref(map);
	}
	maps_deinit(&maps);
	teardown(&f);
}

/* As /proc/kallsyms has them, or, if that tells nothing, all as one. */
Test(native_names, kernel)
{
	struct kernel_symbols symbols = KERNEL_SYMBOLS_INIT;
	struct kernel_symbol want = { .name = "[kernel]", .module = "" };
	const struct native_name *n;
	uint64_t addr = 0xffffffff81000000, bias;
	struct fixture f;
	FILE *kallsyms = fopen("/proc/kallsyms", "re");
	char type;
	uint32_t id;

	setup(&f);
	while (kallsyms && fscanf(kallsyms, "%" SCNx64 " %c %*s", &addr, &type) == 2 && type != 'T')
		;
	if (kallsyms)
		fclose(kallsyms);
	addr |= RBPF_NATIVE_KERNEL;
	if (kernel_symbols_find(&symbols, addr, &want))
		cr_log_info("/proc/kallsyms does not tell addresses");
	n = name(&f, NULL, addr, &id, &bias);
	cr_expect_eq(n->kind, FRAME_KERNEL);
	cr_expect_str_eq(n->name, want.name);
	cr_expect_str_eq(n->module, want.module[0] ? want.module : "[kernel]");
	cr_expect_eq(bias, 0);
	expect_name(&f, f.map, RBPF_NATIVE_KERNEL | 0x1000, FRAME_KERNEL, "[kernel]", 0);
	kernel_symbols_deinit(&symbols);
	teardown(&f);
}

/* ---- a file of which few functions have names ---- */

/* Map the code of @path; what its addresses are mapped with is *@bias. */
static void *map_code(const char *path, size_t *size, uint64_t *bias)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_headers headers;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skew;
	void *code = MAP_FAILED;

	cr_assert_geq(fd, 0);
	cr_assert_eq(elf_headers_read(fd, &headers), 0);
	for (size_t i = 0; i < headers.n && code == MAP_FAILED; i++) {
		if (!headers.v[i].exec)
			continue;
		skew = headers.v[i].offset % page;
		*size = headers.v[i].filesz + skew;
		code = mmap(NULL, *size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			    (off_t)(headers.v[i].offset - skew));
		*bias = (uint64_t)code + skew - headers.v[i].vaddr;
	}
	cr_assert_neq(code, MAP_FAILED);
	elf_headers_deinit(&headers);
	close(fd);
	return code;
}

static const char *libc_path(void)
{
	static char path[4096];
	Dl_info info;

	cr_assert(dladdr((void *)(uintptr_t)getpid, &info) && realpath(info.dli_fname, path));
	return path;
}

/* The first function of @path that has a name, or has none; its start. */
static uint64_t some_function(const char *path, bool named, char *ret, size_t size)
{
	struct elf_symbols symbols;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *const root = "";
	const struct debug_roots roots = { &root, 1, debug_file_open_regular, NULL };
	uint64_t start = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(elf_symbols_read(fd, path, &roots, &symbols), 0);
	for (size_t i = 0; i < symbols.n && !start; i++) {
		const struct elf_function *f = &symbols.functions[i];

		if (!!f->name[0] == named && f->end - f->start > 32 &&
		    elf_symbols_find(&symbols, f->start + 16) == f && strlen(f->name) < size) {
			start = f->start;
			snprintf(ret, size, "%s", f->name);
		}
	}
	elf_symbols_deinit(&symbols);
	close(fd);
	return start;
}

/* Of whatever this program is linked with. */
Test(native_names, a_function_without_name)
{
	char want[512], ignored[512];
	size_t found = 0;
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < f.map->n && !found; i++) {
		const struct code_range *range = &f.map->v[i];
		const struct native_name *n;
		uint64_t start, bias;
		uint32_t id;

		if (!range->file || range->file->path[0] != '/')
			continue;
		start = some_function(range->file->path, false, ignored, sizeof(ignored));
		if (!start || code_map_find(f.map, start + range->bias + 17) != range)
			continue;
		found++;
		snprintf(want, sizeof(want), "%s+0x%" PRIx64, strrchr(range->file->path, '/') + 1,
			 start);
		expect_name(&f, f.map, exact((void *)(start + range->bias)), FRAME_NATIVE, want,
			    NATIVE_IS_NAMELESS);
		n = name(&f, f.map, start + range->bias + 17, &id, &bias);
		cr_expect_str_eq(n->name, want);
		cr_expect_eq(n->is, NATIVE_IS_NAMELESS);
		cr_expect_eq(n->function, start);
		cr_expect_eq(n->address, start + 16);
		cr_expect_str_eq(n->module, range->file->path);
	}
	teardown(&f);
	if (!found)
		cr_skip_test("all functions have names here");
}

/* Wherever a file is mapped, and whichever map tells: ids are of its own addresses. */
Test(native_names, one_file_in_two_places)
{
	const char *path = libc_path();
	char want[512];
	uint64_t start = some_function(path, true, want, sizeof(want)), bias[2], found[2];
	size_t size[2];
	void *code[2];
	struct code_map *other;
	struct fixture f;
	uint32_t id[3];

	cr_assert_neq(start, 0);
	code[0] = map_code(path, &size[0], &bias[0]);
	setup(&f);
	code[1] = map_code(path, &size[1], &bias[1]);
	other = read_map(&f);
	cr_assert_neq(other, f.map);
	cr_assert_neq(bias[0], bias[1]);
	name(&f, f.map, start + bias[0] + 1, &id[0], &found[0]);
	cr_expect_eq(found[0], bias[0]);
	name(&f, other, start + bias[1] + 1, &id[1], &found[1]);
	cr_expect_eq(found[1], bias[1]);
	name(&f, other, start + bias[0] + 2, &id[2], &found[1]);
	cr_expect_eq(id[0], id[1], "it is one name");
	cr_expect_neq(id[0], id[2], "of another address");
	for (int i = 0; i < 2; i++)
		cr_expect_str_eq(native_names_get(f.names, id[2 * i])->name,
				 native_names_get(f.names, id[0])->name);
	munmap(code[0], size[0]);
	munmap(code[1], size[1]);
	code_map_unref(other);
	teardown(&f);
}

/* ---- the file of a VM ---- */

Test(native_names, interpreter)
{
	const uint64_t addr = (uint64_t)rb_vm_exec;
	struct fixture f;
	uint64_t bias, version;
	uint32_t before, after;

	cr_assert_gt(rb_vm_exec(1), 0);
	setup(&f);
	name(&f, f.map, exact(rb_vm_exec), &before, &bias);
	version = native_names_version(f.names);
	cr_assert_eq(native_names_vm(f.names, f.map, 0x1000, 0), 0, "of no file");
	cr_expect_eq(native_names_version(f.names), version);
	expect_name(&f, f.map, exact(rb_vm_exec), FRAME_NATIVE, "rb_vm_exec", 0);

	cr_assert_eq(native_names_vm(f.names, f.map, addr, 0), 1);
	cr_expect_neq(native_names_version(f.names), version);
	expect_name(&f, f.map, exact(rb_vm_exec), FRAME_NATIVE, "rb_vm_exec",
		    NATIVE_IS_VM | NATIVE_IS_EXEC);
	expect_name(&f, f.map, exact(vm_exec_core), FRAME_NATIVE, "vm_exec_core",
		    NATIVE_IS_VM | NATIVE_IS_CORE);
	expect_name(&f, f.map, exact(native_names_get), FRAME_NATIVE, "native_names_get",
		    NATIVE_IS_VM);
	expect_name(&f, f.map, (uint64_t)dlsym(RTLD_DEFAULT, "getppid") + 1, FRAME_NATIVE,
		    "getppid", 0);
	name(&f, f.map, exact(rb_vm_exec), &after, &bias);
	cr_expect_neq(after, before, "what was named before says less");
	cr_assert_eq(native_names_vm(f.names, f.map, addr, (uint64_t)native_names_get), 1);
	expect_name(&f, f.map, exact(native_names_get), FRAME_NATIVE, "native_names_get",
		    NATIVE_IS_VM);
	teardown(&f);
}

/* A file in which it is not found tells nothing, whatever address is said to be in it. */
Test(native_names, interpreter_that_is_not_found)
{
	const uint64_t addr = (uint64_t)dlsym(RTLD_DEFAULT, "getppid");
	const uint64_t labels[] = { 0, 1, (uint64_t)rb_vm_exec, ~0ull };
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		cr_assert_eq(native_names_vm(f.names, f.map, addr, labels[i]), 0);
		expect_name(&f, f.map, exact((void *)addr), FRAME_NATIVE, "getppid", 0);
	}
	teardown(&f);
}

/* Who cannot wait gets the place, and who comes later the name. */
Test(native_names, no_wait)
{
	const uint64_t words[] = { exact(rb_vm_exec), RBPF_NATIVE_NO_MAP, RBPF_NATIVE_KERNEL | 1 };
	struct native_code code = { .no_wait = true };
	const struct native_name *n;
	struct code_file *file;
	struct fixture f;
	uint64_t bias;
	uint32_t id;

	setup(&f);
	code.map = f.map;
	cr_assert_geq(native_names_ready(f.names, f.map, 0, words, 3), 0);
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	cr_assert_eq(native_names_ready(f.names, f.map, 0, words, 3), 1);
	/* As if it went on. */
	file = code_map_find(f.map, (uint64_t)rb_vm_exec)->file;
	file->queued |= CODE_PART_SYMBOLS;
	cr_assert_eq(native_names_ready(f.names, f.map, 0, words, 3), 0);
	cr_assert_eq(native_names_find(f.names, &code, words[0], &id, &bias), 0);
	n = native_names_get(f.names, id);
	cr_expect_not_null(strstr(n->name, "+0x"), "%s", n->name);
	cr_expect_eq(n->is, NATIVE_IS_NAMELESS);
	cr_expect_eq(n->address + bias, (uint64_t)rb_vm_exec);
	file->queued = 0;
	cr_assert_eq(native_names_find(f.names, &code, words[0], &id, &bias), 0);
	cr_expect_str_eq(native_names_get(f.names, id)->name, "rb_vm_exec");
	teardown(&f);
}

Test(native_names, freeing_nothing)
{
	native_names_free(NULL);
	code_symbols_free(NULL);
}
