/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "elf/debug_file.h"
#include "elf/lines.h"
#include "support/elf_builder.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

static const char *const own_root[] = { "" };
static const struct debug_roots roots = { own_root, 1, debug_file_open_regular, NULL };

static struct elf_lines *open_lines(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_lines *lines;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(elf_lines_open(fd, path, &roots, &lines), 0, "%s", path);
	close(fd);
	return lines;
}

/* ---- functions inlined into each other ---- */

static int inner_line, middle_line, outer_line;
static volatile int sink;

__attribute__((noinline)) static void *here(void)
{
	return __builtin_return_address(0);
}

__attribute__((always_inline)) static inline void *inner(void)
{
	void *pc = (inner_line = __LINE__, here());

	sink++;
	return pc;
}

__attribute__((always_inline)) static inline void *middle(void)
{
	void *pc = (middle_line = __LINE__, inner());

	sink++;
	return pc;
}

__attribute__((noinline)) static void *outer(void)
{
	void *pc = (outer_line = __LINE__, middle());

	sink++;
	return pc;
}

static void expect_line(const struct elf_line *line, const char *function, int number)
{
	const char *slash = strrchr(line->file, '/');

	cr_expect_str_eq(line->function, function);
	cr_expect_str_eq(slash ? slash + 1 : line->file, "test_lines.c");
	cr_expect_eq(line->line, number, "%s: %u, not %d", function, line->line, number);
}

Test(lines, inlined_functions)
{
	struct elf_lines *lines = open_lines("/proc/self/exe");
	struct elf_line out[8];
	struct link_map *map;
	Dl_info info;
	uint64_t addr;

	cr_assert_neq(dladdr1(outer(), &info, (void **)&map, RTLD_DL_LINKMAP), 0);
	addr = (uint64_t)outer() - map->l_addr - 1;
	cr_assert_eq(elf_lines_find(lines, addr, out, 8), 3);
	expect_line(&out[0], "inner", inner_line);
	expect_line(&out[1], "middle", middle_line);
	expect_line(&out[2], "outer", outer_line);
	cr_assert_eq(elf_lines_find(lines, addr, out, 2), 2, "the innermost ones");
	expect_line(&out[1], "middle", middle_line);
	cr_expect_eq(elf_lines_find(lines, addr, out, 0), 0);
	cr_expect_eq(elf_lines_find(lines, 0, out, 8), 0);
	cr_expect_eq(elf_lines_find(lines, UINT64_MAX, out, 8), 0);
	elf_lines_close(lines);
}

Test(lines, without_debug_information)
{
	struct elf_lines *lines = (struct elf_lines *)&sink;
	int fd = elf_builder_memfd("no ELF file", 11);
	struct elf_builder b;

	cr_expect_eq(elf_lines_open(fd, "/none", &roots, &lines), -ENOENT);
	close(fd);
	elf_builder_init(&b);
	elf_builder_finish(&b);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	cr_expect_eq(elf_lines_open(fd, "/none", &roots, &lines), -ENOENT);
	cr_expect_eq(lines, (struct elf_lines *)&sink, "ret is left alone");
	elf_lines_close(NULL);
	elf_builder_deinit(&b);
	close(fd);
}

/* ---- whole files against libdwfl ---- */

struct comparison {
	const char *path;
	struct elf_lines *lines;
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias;
	size_t compared, inlined, wrong;
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

/* The line of the innermost function. */
static bool same_line(const struct comparison *c, uint64_t addr, const struct elf_line *line)
{
	Dwfl_Line *dwfl = dwfl_module_getsrc(c->module, addr + c->bias);
	int number = 0;
	const char *file = dwfl ? dwfl_lineinfo(dwfl, NULL, &number, NULL, NULL, NULL) : NULL;

	return (uint32_t)number == line->line && !strcmp(file ? file : "", line->file);
}

static bool same_function(Dwarf_Die *die, const struct elf_line *line)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));

	if (!name)
		name = dwarf_diename(die);
	return !strcmp(name ? name : "", line->function);
}

/* The functions around @addr, as eu-addr2line -i finds them. */
static bool same_functions(const struct comparison *c, uint64_t addr, const struct elf_line *lines,
			   size_t n)
{
	Dwarf_Die *cu, *scopes = NULL, *chain = NULL;
	int n_scopes, n_chain = 0;
	Dwarf_Addr bias;
	Dwarf_Word call;
	size_t i = 0;
	bool same = true;

	cu = dwfl_module_addrdie(c->module, addr + c->bias, &bias);
	n_scopes = cu ? dwarf_getscopes(cu, addr + c->bias - bias, &scopes) : 0;
	if (n_scopes > 0)
		n_chain = dwarf_getscopes_die(&scopes[0], &chain);
	for (int k = 0; k < n_chain && same; k++) {
		Dwarf_Attribute attr;
		int tag = dwarf_tag(&chain[k]);

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		same = i < n && same_function(&chain[k], &lines[i++]);
		if (tag == DW_TAG_subprogram)
			break;
		if (!dwarf_formudata(dwarf_attr(&chain[k], DW_AT_call_line, &attr), &call))
			same = same && i < n && lines[i].line == call;
	}
	free(scopes);
	free(chain);
	return same && (i == n || (!i && n == 1 && !lines[0].function[0]));
}

/* libdwfl counts what is between two units to the first one. */
static bool is_between_units(const struct comparison *c, uint64_t addr)
{
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(c->module, addr + c->bias, &bias);

	return !cu || dwarf_haspc(cu, addr + c->bias - bias) != 1;
}

static void compare_at(struct comparison *c, uint64_t addr)
{
	struct elf_line lines[ELF_LINES_MAX_DEPTH] = { { .function = "", .file = "" } };
	size_t n = elf_lines_find(c->lines, addr, lines, ELF_LINES_MAX_DEPTH);

	c->compared++;
	c->inlined += n > 1;
	if (n ? same_line(c, addr, &lines[0]) && same_functions(c, addr, lines, n)
	      : is_between_units(c, addr))
		return;
	if (c->wrong++ < 5)
		cr_log_error("%s: at %#lx: %zu: %s %s:%u", c->path, (unsigned long)addr, n,
			     lines[0].function, lines[0].file, lines[0].line);
}

static void compare_file(const char *path, uint64_t start, uint64_t end, uint64_t step)
{
	struct comparison c = { .path = path };
	uint64_t ns, opened;

	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	c.lines = open_lines(path);
	opened = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	for (uint64_t addr = start; addr < end; addr += step)
		elf_lines_find(c.lines, addr, (struct elf_line[1]) { 0 }, 1);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	open_dwfl(&c);
	for (uint64_t addr = start; addr < end; addr += step)
		compare_at(&c, addr);
	cr_log_info("%s: %.1f ms to open, %.1f ms for %zu addresses, %zu with inlined functions",
		    path, (double)opened / 1e6, (double)(ns - opened) / 1e6, c.compared, c.inlined);
	cr_expect_eq(c.wrong, 0, "%s: %zu of %zu", path, c.wrong, c.compared);
	cr_expect_gt(c.inlined, 0);
	elf_lines_close(c.lines);
	dwfl_end(c.dwfl);
}

/* The file's code, from its segments. */
static void code_of(const char *path, uint64_t *start, uint64_t *end)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Phdr ph;
	size_t n;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	cr_assert_eq(elf_getphdrnum(elf, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X) {
			*start = ph.p_vaddr;
			*end = ph.p_vaddr + ph.p_memsz;
		}
	}
	elf_end(elf);
	close(fd);
}

Test(lines, own_binary)
{
	uint64_t start = 0, end = 0;
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	cr_assert_gt(n, 0);
	path[n] = '\0';
	code_of(path, &start, &end);
	/*
	 * The test's own file is as large as there are tests: addresses all over it, but only so
	 * many.
	 */
	compare_file(path, start, end, 101 + (end - start) / 20000);
}

/* Its debug file shares debug information with others where there is one (package libc6-dbg). */
Test(lines, libc)
{
	uint64_t start = 0, end = 0;
	struct elf_lines *lines;
	Dl_info info;
	int fd;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info), 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	if (elf_lines_open(fd, info.dli_fname, &roots, &lines)) {
		close(fd);
		cr_skip_test("there is no debug file of %s", info.dli_fname);
	}
	elf_lines_close(lines);
	close(fd);
	code_of(info.dli_fname, &start, &end);
	compare_file(info.dli_fname, start, end, 211);
}

/* ---- damage ---- */

/* What is looked up is read to its end. */
static size_t look_up(const char *bytes, size_t size)
{
	struct elf_line out[ELF_LINES_MAX_DEPTH];
	int fd = elf_builder_memfd(bytes, size);
	struct elf_lines *lines;
	size_t found = 0;

	if (!elf_lines_open(fd, "/none", NULL, &lines)) {
		for (uint64_t addr = 0x100; addr < 0x300; addr += 7) {
			size_t n = elf_lines_find(lines, addr, out, ELF_LINES_MAX_DEPTH);

			for (size_t i = 0; i < n; i++)
				found += strlen(out[i].file) + strlen(out[i].function) > 0;
		}
		elf_lines_close(lines);
	}
	close(fd);
	return found;
}

/* A small file, which is also what the fuzzer begins with, with some of its bytes changed. */
static void damage(const char *path)
{
	size_t read = 0, rounds = 3000 / SLOWDOWN;
	struct buf bytes = BUF_INIT, copy = BUF_INIT;

	cr_assert_eq(io_read_file(AT_FDCWD, path, 65536, &bytes), 0, "%s", path);
	cr_assert_gt(look_up(bytes.data, bytes.len), 0);
	srand(1);
	for (size_t i = 0; i < rounds; i++) {
		buf_reset(&copy);
		buf_add(&copy, bytes.data, bytes.len);
		for (int flips = 1 + rand() % 6; flips; flips--)
			copy.data[(size_t)rand() % copy.len] = (char)(rand() % 3 ? rand() : 0xff);
		read += look_up(copy.data, copy.len) > 0;
	}
	cr_log_info("%s: something found in %zu of %zu rounds", path, read, rounds);
	cr_expect_gt(read, 0);
	buf_deinit(&bytes);
	buf_deinit(&copy);
}

Test(lines, damaged_dwarf4)
{
	damage("tests/fuzz/corpus/lines/dwarf4");
}

Test(lines, damaged_dwarf5)
{
	damage("tests/fuzz/corpus/lines/dwarf5");
}
