/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "elf/elf_headers.h"
#include "elf/symbols.h"
#include "ruby/interpreter.h"

/* ---- code of a few calls, for either machine ---- */

#define CODE_ADDR   0x10000ull
#define CODE_OFFSET 0x1000
#define CODE_SIZE   0x4000

/* Function i is at FUNCTION(i), and each 0x400 bytes long. */
#define FUNCTION(i) (CODE_ADDR + 0x400ull * (i))
#define FUNCTIONS   (CODE_SIZE / 0x400)

struct program {
	uint16_t machine;
	uint8_t code[CODE_SIZE];
	const char *names[FUNCTIONS];
};

/* Let what is at @from call what is at @to. */
static void call(struct program *p, uint64_t from, uint64_t to)
{
	uint8_t *at = p->code + (from - CODE_ADDR);

	if (p->machine == EM_X86_64) {
		int32_t rel = (int32_t)(to - from - 5);

		*at = 0xe8;
		memcpy(at + 1, &rel, sizeof(rel));
	} else {
		uint32_t insn = 0x94000000 | ((uint32_t)(to - from) >> 2 & 0x3ffffff);

		memcpy(at, &insn, sizeof(insn));
	}
}

static int program_file(const struct program *p)
{
	Elf64_Ehdr ehdr = { .e_ident = ELFMAG, .e_machine = p->machine };
	int fd = memfd_create("program", MFD_CLOEXEC);

	cr_assert(fd >= 0 && pwrite(fd, &ehdr, sizeof(ehdr), 0) == sizeof(ehdr) &&
		  pwrite(fd, p->code, CODE_SIZE, CODE_OFFSET) == CODE_SIZE);
	return fd;
}

static int find(const struct program *p, uint64_t label, struct interpreter *ret)
{
	struct elf_segment segments[] = {
		{ .vaddr = 0, .memsz = 0x1000, .filesz = 0x1000 },
		{ .vaddr = CODE_ADDR,
		  .memsz = CODE_SIZE,
		  .offset = CODE_OFFSET,
		  .filesz = CODE_SIZE,
		  .exec = true },
	};
	const struct elf_headers headers = { .v = segments, .n = 2 };
	struct elf_function functions[FUNCTIONS];
	const struct elf_symbols symbols = { .functions = functions, .n = FUNCTIONS };
	int fd = program_file(p), r;

	for (size_t i = 0; i < FUNCTIONS; i++)
		functions[i] = (struct elf_function) { FUNCTION(i), FUNCTION(i + 1),
						       p->names[i] ? p->names[i] : "" };
	r = interpreter_find(NULL, fd, &headers, &symbols, label, ret);
	close(fd);
	return r;
}

static void expect_function(const char *what, const struct interpreter_function *f,
			    const uint64_t *want, size_t n)
{
	cr_expect_eq(f->n, n, "%s: %zu parts, not %zu", what, f->n, n);
	for (size_t i = 0; i < n; i++)
		cr_expect(interpreter_is(f, want[i]), "%s: 0x%llx is none of its parts", what,
			  (unsigned long long)want[i]);
	cr_expect_not(interpreter_is(f, 0), "%s: 0 is what nothing begins at", what);
}

static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };

#define FOR_EACH_MACHINE(p)                                                                        \
	for (size_t m_ = 0; m_ < 2; m_++)                                                          \
		for (struct program *p = calloc(1, sizeof(*p));                                    \
		     p && (p->machine = machines[m_], true); free(p), p = NULL)

Test(interpreter, callers_of_what_holds_the_label)
{
	FOR_EACH_MACHINE(p)
	{
		struct interpreter found;

		call(p, FUNCTION(5) + 0x100, FUNCTION(3)); /* back */
		call(p, FUNCTION(2) + 0x20, FUNCTION(3));  /* and forth */
		call(p, FUNCTION(2) + 0x40, FUNCTION(3));
		call(p, FUNCTION(3) + 0x40, FUNCTION(3)); /* itself */
		call(p, FUNCTION(7), FUNCTION(3) + 4);	  /* not where it begins */
		call(p, FUNCTION(8), FUNCTION(4));
		cr_assert_eq(find(p, FUNCTION(3) + 0x123, &found), 0);
		expect_function("core", &found.core, (uint64_t[]) { FUNCTION(3) }, 1);
		expect_function("exec", &found.exec, (uint64_t[]) { FUNCTION(2), FUNCTION(5) }, 2);

		cr_expect_eq(find(p, FUNCTION(6), &found), -ENOENT, "nothing calls it");
		expect_function("core", &found.core, (uint64_t[]) { FUNCTION(6) }, 1);
		cr_expect_eq(find(p, FUNCTION(FUNCTIONS), &found), -ENOENT, "no function's");
		cr_expect_eq(find(p, 0, &found), -ENOENT, "no label");
		cr_expect(!found.core.n && !found.exec.n);
	}
}

Test(interpreter, names)
{
	FOR_EACH_MACHINE(p)
	{
		struct interpreter found;

		p->names[1] = "vm_exec_core";
		p->names[2] = "vm_exec_core.cold";
		p->names[3] = "vm_exec_core_of_another";
		p->names[4] = "rb_vm_exec";
		p->names[5] = "rb_vm_exec.constprop.0";
		p->names[6] = "rb_vm_exec_";
		p->names[7] = "other";
		call(p, FUNCTION(4) + 0x40, FUNCTION(1));
		call(p, FUNCTION(8) + 0x40, FUNCTION(3));
		cr_assert_eq(find(p, 0, &found), 0);
		expect_function("core", &found.core, (uint64_t[]) { FUNCTION(1), FUNCTION(2) }, 2);
		expect_function("exec", &found.exec, (uint64_t[]) { FUNCTION(4), FUNCTION(5) }, 2);
		/* A part that has no name. */
		call(p, FUNCTION(9) + 0x40, FUNCTION(1));
		cr_assert_eq(find(p, FUNCTION(10), &found), 0);
		expect_function("core", &found.core,
				(uint64_t[]) { FUNCTION(1), FUNCTION(2), FUNCTION(10) }, 3);
		expect_function("exec", &found.exec,
				(uint64_t[]) { FUNCTION(4), FUNCTION(5), FUNCTION(9) }, 3);
		/* The compiler put the one into the other. */
		cr_assert_eq(find(p, FUNCTION(4) + 0x80, &found), 0);
		expect_function("core", &found.core, (uint64_t[]) { FUNCTION(1), FUNCTION(2) }, 2);
	}
}

Test(interpreter, too_many_parts)
{
	FOR_EACH_MACHINE(p)
	{
		struct interpreter found;

		for (size_t i = 1; i < FUNCTIONS; i++)
			call(p, FUNCTION(i), FUNCTION(0));
		cr_assert_eq(find(p, FUNCTION(0) + 8, &found), 0);
		cr_expect_eq(found.exec.n, INTERPRETER_PARTS);
	}
}

/* Calls at the very ends of the code, and bytes that are a part of one. */
Test(interpreter, ends_of_the_code)
{
	FOR_EACH_MACHINE(p)
	{
		const uint64_t last = CODE_ADDR + CODE_SIZE - (p->machine == EM_X86_64 ? 5 : 4);
		struct interpreter found;

		call(p, CODE_ADDR, FUNCTION(4));
		call(p, last, FUNCTION(4));
		cr_assert_eq(find(p, FUNCTION(4), &found), 0);
		expect_function("exec", &found.exec,
				(uint64_t[]) { FUNCTION(0), FUNCTION(FUNCTIONS - 1) }, 2);
		memmove(p->code + (last - CODE_ADDR) + 1, p->code + (last - CODE_ADDR),
			CODE_SIZE - (last - CODE_ADDR) - 1);
		memset(p->code, 0, 8);
		cr_expect_eq(find(p, FUNCTION(4), &found), -ENOENT);
	}
}

Test(interpreter, any_bytes)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;

	FOR_EACH_MACHINE(p)
	{
		for (int round = 0; round < 200; round++) {
			struct interpreter found;

			for (size_t i = 0; i < CODE_SIZE; i++) {
				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				p->code[i] = seed >> 40 & 1 ? (uint8_t)(seed >> 56) : 0xe8;
			}
			find(p, FUNCTION(seed >> 32 & 15), &found);
			cr_assert_leq(found.exec.n, INTERPRETER_PARTS);
		}
	}
}

/* What is not there is not read, and no other machine's code is understood. */
Test(interpreter, damaged_files)
{
	struct elf_segment segments[] = {
		{ .vaddr = CODE_ADDR, .offset = 1 << 20, .filesz = 0x1000, .exec = true },
		{ .vaddr = CODE_ADDR, .offset = 0, .filesz = ~0ull, .exec = true },
		{ .vaddr = ~0ull - 8, .offset = CODE_OFFSET, .filesz = 1 << 20, .exec = true },
		{ .vaddr = CODE_ADDR, .offset = CODE_OFFSET, .filesz = 0, .exec = true },
	};
	const struct elf_headers headers = { .v = segments, .n = ARRAY_SIZE(segments) };
	struct elf_function f = { CODE_ADDR, ~0ull, "vm_exec_core" };
	const struct elf_symbols symbols = { .functions = &f, .n = 1 };
	struct interpreter found;

	FOR_EACH_MACHINE(p)
	{
		int fd;

		call(p, FUNCTION(2), FUNCTION(0));
		cr_assert_eq(find(p, FUNCTION(0), &found), 0);
		fd = program_file(p);
		cr_expect_eq(interpreter_find(NULL, fd, &headers, &symbols, 0, &found), -ENOENT);
		cr_assert_eq(ftruncate(fd, 10), 0);
		cr_expect_eq(interpreter_find(NULL, fd, &headers, &symbols, 0, &found), -ENOENT);
		close(fd);
		p->machine = EM_RISCV;
		cr_expect_eq(find(p, FUNCTION(0), &found), -ENOENT);
	}
	cr_expect_eq(interpreter_find(NULL, -1, &headers, &symbols, 0, &found), -EIO);
}

/* ---- Rubies ---- */

/* As elf_headers_read(), but of any machine. */
static bool read_segments(int fd, struct elf_segment *v, size_t max, size_t *ret)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	size_t n = 0;

	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) || memcmp(ehdr.e_ident, ELFMAG, 4))
		return false;
	for (size_t i = 0; i < ehdr.e_phnum && n < max; i++) {
		off_t at = (off_t)(ehdr.e_phoff + i * sizeof(phdr));

		if (pread(fd, &phdr, sizeof(phdr), at) == sizeof(phdr) && phdr.p_type == PT_LOAD)
			v[n++] = (struct elf_segment) { .vaddr = phdr.p_vaddr,
							.memsz = phdr.p_memsz,
							.offset = phdr.p_offset,
							.filesz = phdr.p_filesz,
							.exec = phdr.p_flags & PF_X };
	}
	*ret = n;
	return true;
}

struct ruby {
	int fd;
	struct elf_segment segments[16];
	struct elf_headers headers;
	struct elf_symbols symbols;
};

static bool ruby_open(const char *path, struct ruby *ret)
{
	*ret = (struct ruby) { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (ret->fd < 0 || !read_segments(ret->fd, ret->segments, 16, &ret->headers.n))
		return false;
	ret->headers.v = ret->segments;
	cr_assert_eq(elf_symbols_read(ret->fd, path, NULL, &ret->symbols), 0, "%s", path);
	return true;
}

static void ruby_close(struct ruby *r)
{
	elf_symbols_deinit(&r->symbols);
	close(r->fd);
}

/* As it would be without the names. */
static void drop_names(struct elf_symbols *s, const char *begin)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strncmp(s->functions[i].name, begin, strlen(begin)))
			s->functions[i].name = "";
}

static uint64_t middle_of(const struct elf_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->functions[i].name, name))
			return (s->functions[i].start + s->functions[i].end) / 2;
	return 0;
}

static uint64_t start_of(const struct elf_symbols *s, const char *name)
{
	const struct elf_function *f = elf_symbols_find(s, middle_of(s, name));

	return f ? f->start : 0;
}

/* What is found in @r with @label is what @truth says. */
static void expect_found(const char *path, const struct ruby *r, uint64_t label,
			 const struct interpreter *truth, const struct elf_symbols *names)
{
	struct interpreter found;

	cr_assert_eq(interpreter_find(NULL, r->fd, &r->headers, &r->symbols, label, &found), 0,
		     "%s", path);
	cr_expect(interpreter_is(&found.core, start_of(names, "vm_exec_core")), "%s: core", path);
	cr_expect(interpreter_is(&found.exec, start_of(names, "rb_vm_exec")), "%s: exec", path);
	for (size_t i = 0; i < found.core.n; i++)
		cr_expect(interpreter_is(&truth->core, found.core.starts[i]), "%s: 0x%llx", path,
			  (unsigned long long)found.core.starts[i]);
	for (size_t i = 0; i < found.exec.n; i++)
		cr_expect(interpreter_is(&truth->exec, found.exec.starts[i]), "%s: 0x%llx", path,
			  (unsigned long long)found.exec.starts[i]);
}

/* A file that tells all, the same with names dropped, and @stripped, which is that of strip(1). */
static bool check_ruby(const char *path, const char *stripped)
{
	struct interpreter truth;
	struct ruby named, r;
	uint64_t label;

	if (!ruby_open(path, &named))
		return false;
	label = middle_of(&named.symbols, "vm_exec_core");
	if (!label) {
		ruby_close(&named);
		return false;
	}
	cr_assert_eq(interpreter_find(NULL, named.fd, &named.headers, &named.symbols, 0, &truth), 0,
		     "%s", path);
	for (size_t i = 0; i < truth.exec.n; i++) {
		const struct elf_function *f = elf_symbols_find(&named.symbols,
								truth.exec.starts[i]);

		/* It also tells where the instructions are, when the VM begins. */
		cr_expect(!strncmp(f->name, "rb_vm_exec", 10) ||
				  !strcmp(f->name, "rb_vm_get_insns_address_table"),
			  "%s: %s calls it", path, f->name);
	}
	cr_assert(ruby_open(path, &r));
	drop_names(&r.symbols, "");
	expect_found(path, &r, label, &truth, &named.symbols);
	ruby_close(&r);
	if (stripped && ruby_open(stripped, &r)) {
		struct interpreter found;

		cr_expect_eq(middle_of(&r.symbols, "vm_exec_core"), 0);
		/* Alpine's has no unwind table either, and so nothing that tells functions. */
		if (elf_symbols_find(&r.symbols, label))
			expect_found(stripped, &r, label, &truth, &named.symbols);
		else
			cr_expect_eq(
				interpreter_find(NULL, r.fd, &r.headers, &r.symbols, label, &found),
				-ENOENT, "%s", stripped);
		ruby_close(&r);
	}
	ruby_close(&named);
	return true;
}

/* What tests/support/fixtures.sh compiles of Ruby's source. */
Test(interpreter, vm_with_symbols)
{
	if (!check_ruby("build/ruby-vm/vm.so", "build/ruby-vm/vm-stripped.so"))
		cr_skip_test("there is no build/ruby-vm/vm.so (tests/support/fixtures.sh)");
}

/*
 * Rubies that somebody has built, in $RBPF_TEST_RUBIES/NAME and, stripped,
 * $RBPF_TEST_RUBIES/NAME-stripped.
 */
Test(interpreter, rubies)
{
	static const char *const patterns[] = { "lib/libruby.so.*.*.*", "bin/ruby" };
	const char *rubies = getenv("RBPF_TEST_RUBIES");
	char pattern[512], stripped[512];
	size_t checked = 0;
	glob_t g;

	if (!rubies)
		return;
	for (size_t p = 0; p < ARRAY_SIZE(patterns); p++) {
		snprintf(pattern, sizeof(pattern), "%s/*/%s", rubies, patterns[p]);
		if (glob(pattern, 0, NULL, &g))
			continue;
		for (size_t i = 0; i < g.gl_pathc; i++) {
			const char *path = g.gl_pathv[i], *dir = path + strlen(rubies) + 1;
			int len = (int)strcspn(dir, "/");

			snprintf(stripped, sizeof(stripped), "%s/%.*s-stripped%s", rubies, len, dir,
				 dir + len);
			checked += check_ruby(path, stripped);
		}
		globfree(&g);
	}
	cr_expect_gt(checked, 0, "no Ruby with symbols in %s", rubies);
}

/*
 * Debian's, where no name but that of rb_vm_exec() is left. Which function holds the instructions
 * is not told, but it is large, and no other large one is called there.
 */
static void check_debian(const char *path)
{
	struct ruby r;
	struct interpreter found;
	size_t candidates = 0;
	uint64_t exec;

	if (!ruby_open(path, &r)) {
		cr_skip_test("there is no %s", path);
	}
	exec = start_of(&r.symbols, "rb_vm_exec");
	cr_assert_neq(exec, 0, "%s", path);
	drop_names(&r.symbols, "rb_vm_exec");
	for (size_t i = 0; i < r.symbols.n; i++) {
		const struct elf_function *f = &r.symbols.functions[i];

		if (f->name[0] || f->end - f->start < 12000)
			continue;
		interpreter_find(NULL, r.fd, &r.headers, &r.symbols, (f->start + f->end) / 2,
				 &found);
		if (!interpreter_is(&found.exec, exec))
			continue;
		candidates++;
		cr_expect_leq(found.exec.n, 2, "%s: %zu functions call it", path, found.exec.n);
		cr_expect(interpreter_is(&found.core, f->start));
	}
	cr_expect_eq(candidates, 1, "%s: %zu may be it", path, candidates);
	ruby_close(&r);
}

/* $RBPF_TEST_LIBRUBY names another one, of any machine. */
Test(interpreter, debian)
{
	const char *other = getenv("RBPF_TEST_LIBRUBY");

	check_debian("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1");
	if (other)
		check_debian(other);
}
