/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of whole files against libdwfl: the function at an address begins where libdwfl's
 * symbol does; and damaged files do no harm.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "elf/debug_file.h"
#include "elf/symbols.h"
#include "support/symbols_check.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

#define PLACES                                                                                     \
	2000 /* functions, and other addresses, of a file: libdwfl looks at all its symbols */

static const char *const own_root[] = { "" };
static const struct debug_roots roots = { own_root, 1, debug_file_open_regular, NULL };

/* ---- libdwfl ---- */

struct comparison {
	const char *path;
	const struct elf_symbols *symbols;
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias;
	size_t compared, named, wrong;
};

static void open_dwfl(struct comparison *c)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};

	c->dwfl = dwfl_begin(&callbacks);
	cr_assert_not_null(c->dwfl);
	dwfl_report_begin(c->dwfl);
	c->module = dwfl_report_offline(c->dwfl, c->path, c->path, -1);
	cr_assert_not_null(c->module, "%s: %s", c->path, dwfl_errmsg(-1));
	dwfl_report_end(c->dwfl, NULL, NULL);
	cr_assert_not_null(dwfl_module_getelf(c->module, &c->bias));
}

/*
 * libdwfl knows neither stubs nor what has no name, and takes labels in code as functions or not.
 */
static bool is_ours_alone(const struct elf_function *f)
{
	size_t len = strlen(f->name);

	return !len || (len > 4 && !strcmp(f->name + len - 4, "@plt"));
}

static void compare_at(struct comparison *c, uint64_t addr)
{
	const struct elf_function *f = elf_symbols_find(c->symbols, addr);
	GElf_Off offset = 0;
	GElf_Sym sym;
	const char *name = dwfl_module_addrinfo(c->module, addr + c->bias, &offset, &sym, NULL,
						NULL, NULL);
	bool covers = name && (offset < sym.st_size || (!sym.st_size && f));

	c->compared++;
	if (f && is_ours_alone(f))
		f = NULL;
	if (covers && GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
	    GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC && !f)
		return;
	c->named += covers;
	if (covers ? f && addr - f->start == offset : !f || !name || addr < f->end)
		return;
	if (c->wrong++ < 5)
		cr_log_error("%s: at %#lx: %s from %#lx, libdwfl %s %+ld of %lu", c->path,
			     (unsigned long)addr, f ? f->name : "none",
			     f ? (unsigned long)f->start : 0, name, (long)offset,
			     (unsigned long)sym.st_size);
}

static void compare_functions(struct comparison *c)
{
	const struct elf_symbols *s = c->symbols;
	uint64_t start = s->functions[0].start, end = s->functions[s->n - 1].end, addr;

	for (size_t i = 0; i < s->n; i += 1 + s->n * SLOWDOWN / PLACES) {
		const struct elf_function *f = &s->functions[i];

		compare_at(c, f->start);
		compare_at(c, f->start + (f->end - f->start) / 2);
		compare_at(c, f->end - 1);
		compare_at(c, f->end);
	}
	for (addr = start; addr < end; addr += 1 + (end - start) * SLOWDOWN / PLACES)
		compare_at(c, addr);
}

static void log_file(const struct comparison *c, uint64_t ns)
{
	size_t plt = 0, nameless = 0;

	for (size_t i = 0; i < c->symbols->n; i++) {
		plt += strstr(c->symbols->functions[i].name, "@plt") != NULL;
		nameless += !c->symbols->functions[i].name[0];
	}
	cr_log_info("%s: %.1f ms, %zu functions (%zu stubs, %zu nameless), %zu rests; %zu places, "
		    "%zu of them named",
		    c->path, (double)ns / 1e6, c->symbols->n, plt, nameless, c->symbols->n_rests,
		    c->compared, c->named);
}

/* Read the file at @path, in @max_ms, and compare; of the places, @named % have a name. */
static void compare_file(const char *path, size_t max_ms, size_t named)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	struct comparison c = { .path = path, .symbols = &s };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t ns;

	cr_assert_geq(fd, 0, "%s", path);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_assert_eq(elf_symbols_read(fd, path, &roots, &s), 0, "%s", path);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	assert_sane_elf_symbols(&s);
	open_dwfl(&c);
	compare_functions(&c);
	log_file(&c, ns);
	cr_expect_eq(c.wrong, 0, "%s: %zu of %zu places", path, c.wrong, c.compared);
	cr_expect_geq(c.named * 100, c.compared * named);
	cr_expect_leq(ns, max_ms * SLOWDOWN * 1000000, "%s: %.1f ms", path, (double)ns / 1e6);
	dwfl_end(c.dwfl);
	elf_symbols_deinit(&s);
	close(fd);
}

static void compare_matches(const char *pattern, size_t max_ms)
{
	glob_t found = { 0 };

	if (glob(pattern, 0, NULL, &found)) {
		cr_skip_test("there is no %s", pattern);
	}
	compare_file(found.gl_pathv[0], max_ms, 1);
	globfree(&found);
}

static const char *path_of(const char *symbol)
{
	Dl_info info;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, symbol), &info), 0, "%s", symbol);
	return info.dli_fname;
}

Test(symbols_files, own_binary)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	cr_assert_gt(n, 0);
	path[n] = '\0';
	compare_file(path, 300, 50);
}

Test(symbols_files, libc)
{
	compare_file(path_of("gnu_get_libc_version"), 100, 1);
}

Test(symbols_files, dynamic_linker)
{
	compare_file(path_of("_r_debug"), 50, 1);
}

Test(symbols_files, libcrypto)
{
	compare_matches("/usr/lib/*/libcrypto.so.3", 200);
}

Test(symbols_files, libruby)
{
	compare_matches("/usr/lib/*/libruby-*.so.*.*.*", 200);
}

/* Of another machine, where there is one (package libc6-arm64-cross). */
Test(symbols_files, arm64)
{
	compare_matches("/usr/aarch64-linux-gnu/lib/libc.so.6", 200);
}

/* ---- files that linkers made, which are also what the fuzzer begins with ---- */

static void expect_function(const char *path, const char *name, uint64_t start, uint64_t size)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct elf_function *f;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(elf_symbols_read(fd, path, NULL, &s), 0);
	f = elf_symbols_find(&s, start);
	cr_assert_not_null(f, "%s: %s", path, name);
	cr_expect_str_eq(f->name, name, "%s: %s, not %s", path, f->name, name);
	cr_expect_eq(f->start, start, "%s: %s", path, name);
	cr_expect_eq(f->end - f->start, size, "%s: %s", path, name);
	elf_symbols_deinit(&s);
	close(fd);
}

#define CORPUS "tests/fuzz/corpus/symbols/"

Test(symbols_files, stubs)
{
	expect_function(CORPUS "x86_64", "puts@plt", 0x240, 16);
	expect_function(CORPUS "x86_64", "shown@plt", 0x250, 16);
	expect_function(CORPUS "ibt", "puts@plt", 0x2d0, 16);
	expect_function(CORPUS "ibt", "shown@plt", 0x2e0, 16);
	expect_function(CORPUS "arm64", "puts@plt", 0x250, 16);
	expect_function(CORPUS "arm64", "shown@plt", 0x260, 16);
}

/* From .symtab, from .dynsym, from what xz compressed, and between stubs without a name. */
Test(symbols_files, functions)
{
	expect_function(CORPUS "x86_64", "hidden", 0x260, 4);
	expect_function(CORPUS "arm64", "hidden", 0x270, 8);
	expect_function(CORPUS "debugdata", "weakling", 0x290, 10);
	expect_function(CORPUS "debugdata", "hidden", 0x260, 4);
	expect_function(CORPUS "debugdata", "", 0x230, 16);
}

/* Within libc, functions of which there are several for different processors have stubs, too. */
Test(symbols_files, stubs_of_ifuncs)
{
	const char *path = path_of("gnu_get_libc_version");
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;

	cr_assert_eq(elf_symbols_read(fd, path, NULL, &s), 0);
	for (size_t i = 0; i < s.n; i++)
		found |= !strcmp(s.functions[i].name, "strlen@plt");
	cr_expect(found, "%s: strlen@plt", path);
	elf_symbols_deinit(&s);
	close(fd);
}

/* ---- damage ---- */

/* Some bytes of the first and last KiB, where the headers are, or of anywhere. */
static void damage(char *bytes, size_t size)
{
	size_t flips = 1 + (size_t)rand() % 8;

	while (flips--) {
		size_t at = (size_t)rand() % (rand() % 3 ? 4096 : size);

		if (rand() % 2)
			at = size - 1 - at % size;
		bytes[at % size] = (char)(rand() % 3 ? rand() : bytes[at % size] ^ 0x80);
	}
}

static void damage_file(const char *path, int rounds)
{
	struct buf bytes = BUF_INIT, copy = BUF_INIT;
	size_t read = 0;

	cr_assert_eq(io_read_file(AT_FDCWD, path, 16u << 20, &bytes), 0, "%s", path);
	srand(1);
	for (int i = 0; i < rounds / SLOWDOWN; i++) {
		struct elf_symbols s = ELF_SYMBOLS_INIT;

		buf_reset(&copy);
		buf_add(&copy, bytes.data, i % 5 ? bytes.len : 1 + (size_t)rand() % bytes.len);
		damage(copy.data, copy.len);
		if (elf_symbols_read_image(copy.data, copy.len, &s))
			continue;
		assert_sane_elf_symbols(&s);
		read += s.n > 0;
		elf_symbols_deinit(&s);
	}
	cr_log_info("%s: something read in %zu of %d rounds", path, read, rounds / SLOWDOWN);
	cr_expect_gt(read, 0);
	buf_deinit(&bytes);
	buf_deinit(&copy);
}

Test(symbols_files, damaged_library)
{
	damage_file(path_of("_r_debug"), 3000);
}

Test(symbols_files, damaged_binary)
{
	damage_file("/bin/sh", 5000);
}
