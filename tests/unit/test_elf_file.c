/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "elf/elf_file.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* Exported and not, so that both symbol tables are looked into. */
__attribute__((noinline)) void rbpf_test_elf_symbol(void);
__attribute__((noinline)) void rbpf_test_elf_symbol(void)
{
	__asm__ volatile("");
}

static struct elf_file *open_path(const char *path, int *fd)
{
	struct elf_file *elf = NULL;
	struct err err = { 0 };

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(*fd, 0);
	cr_assert_eq(elf_file_open(*fd, path, &elf, &err), 0, "%s", err.msg);
	return elf;
}

static void assert_sane_segments(const struct elf_segment *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cr_assert_leq(v[i].filesz, v[i].memsz, "segment %zu", i);
		cr_assert(!i || v[i - 1].vaddr + v[i - 1].memsz <= v[i].vaddr, "segment %zu", i);
	}
}

Test(elf_file, own_binary)
{
	static const char *const names[] = { "rbpf_test_elf_symbol", "elf_file_open", "no such",
					     "gelf_getsym" /* used, not defined */ };
	uint64_t values[4] = { 7, 7, 7, 7 }, bias;
	struct elf_segment segs[16];
	struct elf_file *elf;
	bool inside = false;
	char id[64];
	size_t n;
	int fd;

	elf = open_path("/proc/self/exe", &fd);
	cr_assert_eq(elf_file_symbols(elf, names, values, 4), 2);
	cr_expect(values[2] == 7 && values[3] == 7, "left alone");
	bias = (uint64_t)(uintptr_t)rbpf_test_elf_symbol - values[0];
	cr_expect_eq(bias & 0xfff, 0);
	cr_expect_eq((uint64_t)(uintptr_t)elf_file_open - values[1], bias);

	n = elf_file_segments(elf, segs, 16);
	cr_assert_geq(n, 2);
	assert_sane_segments(segs, n);
	for (size_t i = 0; i < n; i++)
		inside |= segs[i].exec && !segs[i].write && values[0] >= segs[i].vaddr &&
			  values[0] < segs[i].vaddr + segs[i].memsz;
	cr_expect(inside, "the function is in an executable segment");
	cr_expect_eq(elf_file_segments(elf, segs, 1), 1);
	cr_expect_eq(elf_file_segments(elf, segs, 0), 0);

	elf_file_build_id(elf, id, sizeof(id));
	cr_expect(!id[0] || strlen(id) == 40, "\"%s\"", id);
	cr_expect_eq(strspn(id, "0123456789abcdef"), strlen(id));
	elf_file_close(elf);
	close(fd);
}

/* A stripped library: what it exports is all that it tells. */
Test(elf_file, library)
{
	static const char *const names[] = { "elf_begin", "elf_end", "gelf_getsym" };
	uint64_t values[3] = { 0 };
	struct elf_file *elf;
	Dl_info info;
	int fd;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, "elf_begin"), &info), 0);
	elf = open_path(info.dli_fname, &fd);
	cr_expect_eq(elf_file_symbols(elf, names, values, 3), 3);
	cr_expect_eq((uint64_t)(uintptr_t)info.dli_fbase + values[0],
		     (uint64_t)(uintptr_t)info.dli_saddr);
	elf_file_close(elf);
	close(fd);
	elf_file_close(NULL);
}

static int memory_file(const void *bytes, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

static void expect_no_elf(int fd, const char *what)
{
	struct elf_file *elf = (struct elf_file *)&fd;
	struct err err = { 0 };

	cr_expect_eq(elf_file_open(fd, what, &elf, &err), -ENOEXEC, "%s", what);
	cr_expect_eq(err.kind, ERR_TARGET);
	cr_expect_not_null(strstr(err.msg, what));
	cr_expect_eq(elf, (struct elf_file *)&fd, "untouched");
	cr_expect_eq(elf_file_open(fd, what, &elf, NULL), -ENOEXEC);
}

Test(elf_file, not_elf)
{
	Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = MACHINE,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(ehdr) };
	static const char text[] = "#!/usr/bin/env ruby\nputs 1\n";
	struct elf_file *elf;
	int fd;

	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	expect_no_elf(fd, "/dev/null");
	close(fd);
	fd = open("/tmp", O_RDONLY | O_CLOEXEC);
	expect_no_elf(fd, "a directory");
	close(fd);
	expect_no_elf(-1, "nothing");
	fd = memory_file(text, sizeof(text) - 1);
	expect_no_elf(fd, "a script");
	close(fd);
	fd = memory_file("!<arch>\n", 8);
	expect_no_elf(fd, "an archive");
	close(fd);

	fd = memory_file(&ehdr, sizeof(ehdr));
	cr_assert_eq(elf_file_open(fd, "a header", &elf, NULL), 0, "a header alone is one");
	elf_file_close(elf);
	close(fd);
	ehdr.e_machine = EM_PPC64;
	fd = memory_file(&ehdr, sizeof(ehdr));
	expect_no_elf(fd, "another machine");
	close(fd);
	ehdr.e_machine = MACHINE;
	ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	fd = memory_file(&ehdr, sizeof(ehdr));
	expect_no_elf(fd, "32 bits");
	close(fd);
}

/*
 * Whatever is asked of a damaged file, it is answered without reading past its end. Returns whether
 * it could be asked at all.
 */
static bool ask_everything(int fd)
{
	static const char *const names[] = { "printf", "no such", "rbpf_test_elf_symbol" };
	struct elf_segment segs[16];
	uint64_t values[3] = { 0 };
	struct elf_file *elf;
	char id[64];

	if (elf_file_open(fd, "damaged", &elf, NULL))
		return false;
	cr_expect_leq(elf_file_symbols(elf, names, values, 3), 3);
	cr_expect_leq(elf_file_segments(elf, segs, 16), 16);
	elf_file_build_id(elf, id, sizeof(id));
	cr_expect_lt(strlen(id), sizeof(id));
	elf_file_close(elf);
	return true;
}

/* The file's bytes; a library is small enough to be cut many times. */
static uint8_t *read_library(size_t *len)
{
	struct stat st;
	uint8_t *bytes;
	Dl_info info;
	int fd;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, "elf_begin"), &info), 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	bytes = malloc(*len);
	cr_assert_not_null(bytes);
	cr_assert_eq(read(fd, bytes, *len), (ssize_t)*len);
	close(fd);
	return bytes;
}

Test(elf_file, truncated)
{
	size_t len, cut, asked = 0;
	uint8_t *bytes = read_library(&len);

	for (cut = 0; cut <= len; cut += cut < 1200 ? 7 : len / 150) {
		int fd = memory_file(bytes, cut);

		asked += ask_everything(fd);
		close(fd);
	}
	cr_expect_gt(asked, 100);
	free(bytes);
}

Test(elf_file, damaged)
{
	size_t len, asked = 0;
	uint8_t *bytes = read_library(&len);
	uint64_t sections, random = 88172645463325252ull;

	memcpy(&sections, bytes + offsetof(Elf64_Ehdr, e_shoff), 8);
	for (int round = 0; round < 400; round++) {
		int fd = memory_file(bytes, len);

		for (int i = 0; i < 1 + round % 4; i++) {
			uint64_t at;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			at = random >> 8 & 1 ? random % 1000 : sections + random % (len - sections);
			cr_assert_eq(pwrite(fd, &random, 1 + round % 8, (off_t)at), 1 + round % 8);
		}
		cr_assert_eq(ftruncate(fd, (off_t)len), 0);
		asked += ask_everything(fd);
		close(fd);
	}
	cr_expect_gt(asked, 100);
	free(bytes);
}

/* Between two questions its owner makes it shorter: a page of a mapping of it is gone then. */
Test(elf_file, truncated_meanwhile)
{
	static const char *const names[] = { "elf_begin", "no such" };
	uint64_t values[2] = { 0 };
	struct elf_file *elf;
	size_t len;
	uint8_t *bytes = read_library(&len);
	char id[64] = "untouched";
	int fd = memory_file(bytes, len);

	cr_assert_eq(elf_file_open(fd, "a library", &elf, NULL), 0);
	cr_assert_eq(elf_file_symbols(elf, names, values, 1), 1);
	cr_assert_eq(ftruncate(fd, sizeof(Elf64_Ehdr)), 0);
	cr_expect_eq(elf_file_symbols(elf, names, values, 2), 0);
	cr_expect(!elf_file_needs(elf, "libz"));
	elf_file_build_id(elf, id, sizeof(id));
	cr_expect_str_eq(id, "");
	elf_file_close(elf);
	close(fd);
	free(bytes);
}

/* ---- sizes ---- */

#define BOMB_SECTIONS 4000

/* Symbol tables and strings as large as one may say, all of them in the same sparse file. */
static int build_bomb(uint16_t n, uint64_t size)
{
	static Elf64_Shdr sections[BOMB_SECTIONS];
	const Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT },
				  .e_machine = MACHINE,
				  .e_shoff = sizeof(ehdr),
				  .e_shentsize = sizeof(Elf64_Shdr),
				  .e_shnum = n };
	int fd = memory_file(&ehdr, sizeof(ehdr));

	for (uint16_t i = 0; i < n; i++)
		sections[i] = (Elf64_Shdr) { .sh_type = i % 2 ? SHT_STRTAB : SHT_DYNSYM,
					     .sh_link = i + 1u,
					     .sh_entsize = sizeof(Elf64_Sym),
					     .sh_size = size };
	cr_assert_eq(write(fd, sections, n * sizeof(*sections)), (ssize_t)(n * sizeof(*sections)));
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

Test(elf_file, bombs)
{
	static const uint64_t sizes[] = { 1 << 20, 100 << 20, 1ull << 32, 1ull << 42 };
	static const char *const names[] = { "printf", "no such" };
	uint64_t values[2] = { 0 }, begin;
	struct elf_file *elf;
	long before = peak_kib();

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = build_bomb(BOMB_SECTIONS, sizes[i]);

		begin = cpu_ns();
		cr_assert_eq(elf_file_open(fd, "a bomb", &elf, NULL), 0);
		cr_expect_eq(elf_file_symbols(elf, names, values, 2), 0);
		cr_expect(!elf_file_needs(elf, "libc"));
		elf_file_close(elf);
		close(fd);
		cr_expect_lt(cpu_ns() - begin, 10000000000ull, "%zu: CPU time", i);
	}
	cr_expect_lt(peak_kib() - before, (long)(ELF_FILE_MAX_READ >> 10) * 2);
}

/* ---- notes ---- */

struct note_file {
	Elf64_Ehdr ehdr;
	Elf64_Shdr sections[2];
	Elf64_Nhdr note;
	char name[8];
	uint8_t desc[80];
};

static int build_note(uint32_t type, const char *name, uint32_t size)
{
	struct note_file f = {
		.ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = MACHINE,
			  .e_version = EV_CURRENT,
			  .e_shoff = offsetof(struct note_file, sections),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 2 },
		.sections[1] = { .sh_type = SHT_NOTE,
				 .sh_offset = offsetof(struct note_file, note),
				 .sh_size = sizeof(Elf64_Nhdr) + 8 + (size + 3) / 4 * 4,
				 .sh_addralign = 4 },
		.note = { .n_namesz = (uint32_t)strlen(name) + 1,
			  .n_descsz = size,
			  .n_type = type },
	};

	strcpy(f.name, name);
	if (strlen(name) < 4) {
		memmove(f.name + 4, f.desc, 4); /* a short name takes four bytes */
		f.sections[1].sh_size -= 4;
		for (uint32_t i = 0; i < size; i++)
			((uint8_t *)f.name)[4 + i] = (uint8_t)(0xa0 + i);
	} else {
		for (uint32_t i = 0; i < size; i++)
			f.desc[i] = (uint8_t)(0xa0 + i);
	}
	return memory_file(&f, sizeof(f));
}

static void build_id(int fd, char *out, size_t size)
{
	struct elf_file *elf;

	cr_assert_eq(elf_file_open(fd, "a note", &elf, NULL), 0);
	elf_file_build_id(elf, out, size);
	elf_file_close(elf);
	close(fd);
}

Test(elf_file, build_ids)
{
	char id[64];

	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 4), id, sizeof(id));
	cr_expect_str_eq(id, "a0a1a2a3");
	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 20), id, sizeof(id));
	cr_expect_str_eq(id, "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3");
	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 31), id, sizeof(id));
	cr_expect_eq(strlen(id), 62);
	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 32), id, sizeof(id));
	cr_expect_str_eq(id, "", "rather none than a part of one");
	build_id(build_note(NT_GNU_ABI_TAG, "GNU", 16), id, sizeof(id));
	cr_expect_str_eq(id, "");
	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 4), id, 9);
	cr_expect_str_eq(id, "a0a1a2a3");
	build_id(build_note(NT_GNU_BUILD_ID, "GNU", 4), id, 8);
	cr_expect_str_eq(id, "");
}

/* SystemTap's notes, which Ruby may have, use the same number. */
Test(elf_file, notes_of_others)
{
	char id[64];

	build_id(build_note(3, "stapsdt", 20), id, sizeof(id));
	cr_expect_str_eq(id, "");
}

Test(elf_file, needs)
{
	struct elf_file *elf;
	int fd;

	elf = open_path("/proc/self/exe", &fd);
	cr_expect(elf_file_needs(elf, "libc.so"));
	cr_expect(elf_file_needs(elf, "libcriterion"));
	cr_expect(!elf_file_needs(elf, "libruby"));
	cr_expect(!elf_file_needs(elf, "criterion"), "a prefix");
	elf_file_close(elf);
	close(fd);
}

Test(elf_file, dynamic_symbols)
{
	static const char *const names[] = { "gelf_getsym", "elf_file_open" };
	uint64_t values[2] = { 0, 0 };
	struct elf_file *elf;
	int fd;

	elf = open_path("/proc/self/exe", &fd);
	cr_expect_eq(elf_file_dynamic_symbols(elf, names, values, 1), 0, "used, not defined");
	cr_expect_eq(elf_file_symbols(elf, names + 1, values, 1), 1);
	elf_file_close(elf);
	close(fd);
}
