/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "elf/symbols.h"
#include "support/elf_builder.h"
#include "support/little_endian.h"
#include "support/symbols_check.h"

#define CODE	  0x1000ull
#define CODE_SIZE 0x6000ull
#define DATA	  0x8000ull

enum { TEXT = 1, BSS = 2 }; /* sections */

/* ---- files ---- */

struct sym {
	const char *name;
	uint64_t value, size;
	unsigned char bind, type;
	uint16_t section;
};

static Elf64_Shdr *last_section(struct elf_builder *b)
{
	return (Elf64_Shdr *)(void *)(b->sections.data + b->sections.len - sizeof(Elf64_Shdr));
}

static void begin(struct elf_builder *b)
{
	elf_builder_init(b);
	elf_builder_section(b, ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, NULL, 0);
	last_section(b)->sh_addr = CODE;
	last_section(b)->sh_size = CODE_SIZE;
	elf_builder_section(b, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, NULL, 0);
	last_section(b)->sh_addr = DATA;
	last_section(b)->sh_size = 0x100;
}

static void add_table(struct elf_builder *b, uint32_t type, const struct sym *syms, size_t n)
{
	struct buf strings = BUF_INIT, table = BUF_INIT;
	Elf64_Sym sym = { 0 };

	buf_addch(&strings, '\0');
	buf_add(&table, &sym, sizeof(sym));
	for (size_t i = 0; i < n; i++) {
		sym = (Elf64_Sym) { .st_name = (uint32_t)strings.len,
				    .st_info = ELF64_ST_INFO(syms[i].bind, syms[i].type),
				    .st_shndx = syms[i].section,
				    .st_value = syms[i].value,
				    .st_size = syms[i].size };
		buf_add(&strings, syms[i].name, strlen(syms[i].name) + 1);
		buf_add(&table, &sym, sizeof(sym));
	}
	elf_builder_section(b, ".strtab", SHT_STRTAB, 0, strings.data, strings.len);
	elf_builder_section(b, type == SHT_SYMTAB ? ".symtab" : ".dynsym", type, 0, table.data,
			    table.len);
	last_section(b)->sh_link = b->count - 2u;
	last_section(b)->sh_entsize = sizeof(sym);
	buf_deinit(&strings);
	buf_deinit(&table);
}

static void read_builder(struct elf_builder *b, struct elf_symbols *ret)
{
	elf_builder_finish(b);
	cr_assert_eq(elf_symbols_read_image(b->bytes.data, b->bytes.len, ret), 0);
	assert_sane_elf_symbols(ret);
	for (uint64_t addr = CODE - 8; addr < CODE + CODE_SIZE + 8; addr++)
		cr_assert_eq(elf_symbols_find(ret, addr), naive_symbols_find(ret, addr), "at %#lx",
			     (unsigned long)addr);
	elf_builder_deinit(b);
}

static void read_table(const struct sym *syms, size_t n, struct elf_symbols *ret)
{
	struct elf_builder b;

	begin(&b);
	add_table(&b, SHT_SYMTAB, syms, n);
	read_builder(&b, ret);
}

static const char *name_at(const struct elf_symbols *s, uint64_t addr)
{
	const struct elf_function *f = elf_symbols_find(s, addr);

	return f ? f->name : "none";
}

/* ---- which symbols, which names ---- */

Test(symbols, one_name_of_many)
{
	static const struct sym syms[] = {
		{ "local", CODE, 8, STB_LOCAL, STT_FUNC, TEXT },
		{ "weak", CODE, 8, STB_WEAK, STT_FUNC, TEXT },
		{ "__global", CODE, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "_global", CODE, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "longer", CODE + 16, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "short", CODE + 16, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "b", CODE + 32, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "a", CODE + 32, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "no_size", CODE + 48, 0, STB_GLOBAL, STT_FUNC, TEXT },
		{ "size", CODE + 48, 8, STB_LOCAL, STT_FUNC, TEXT },
		{ "label", CODE + 64, 8, STB_GLOBAL, STT_NOTYPE, TEXT },
		{ "function", CODE + 64, 8, STB_LOCAL, STT_FUNC, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_expect_eq(s.n, 5);
	cr_expect_str_eq(name_at(&s, CODE), "_global");
	cr_expect_str_eq(name_at(&s, CODE + 16), "short");
	cr_expect_str_eq(name_at(&s, CODE + 32), "a");
	cr_expect_str_eq(name_at(&s, CODE + 48), "size");
	cr_expect_str_eq(name_at(&s, CODE + 64), "function");
	elf_symbols_deinit(&s);
}

/* Whatever size it claims to have. */
Test(symbols, a_function_ends_with_its_section)
{
	static const struct sym syms[] = {
		{ "last", CODE + CODE_SIZE - 16, 0x1000, STB_GLOBAL, STT_FUNC, TEXT },
		{ "wraps", CODE, UINT64_MAX, STB_GLOBAL, STT_FUNC, TEXT },
		{ "exact", CODE + 32, 16, STB_GLOBAL, STT_FUNC, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_assert_eq(s.n, 3);
	cr_expect_eq(s.functions[0].end, CODE + CODE_SIZE);
	cr_expect_eq(s.functions[1].end, CODE + 48);
	cr_expect_eq(s.functions[2].end, CODE + CODE_SIZE);
	elf_symbols_deinit(&s);
}

Test(symbols, what_is_no_function)
{
	static const struct sym syms[] = {
		{ "null", 0, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "undefined", CODE, 8, STB_GLOBAL, STT_FUNC, SHN_UNDEF },
		{ "object", CODE + 8, 8, STB_GLOBAL, STT_OBJECT, TEXT },
		{ "absolute", CODE + 16, 8, STB_GLOBAL, STT_NOTYPE, SHN_ABS },
		{ "data", DATA, 8, STB_GLOBAL, STT_FUNC, BSS },
		{ "end", CODE + CODE_SIZE, 0, STB_GLOBAL, STT_NOTYPE, TEXT },
		{ "", CODE + 24, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "@only_a_version", CODE + 32, 8, STB_GLOBAL, STT_FUNC, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_expect_eq(s.n, 0, "%s", s.n ? s.functions[0].name : "");
	elf_symbols_deinit(&s);
}

Test(symbols, names_as_they_stand)
{
	static const struct sym syms[] = {
		{ "memcpy@@GLIBC_2.14", CODE, 8, STB_GLOBAL, STT_GNU_IFUNC, TEXT },
		{ "f.constprop.0", CODE + 16, 8, STB_LOCAL, STT_FUNC, TEXT },
		{ "f.cold", CODE + 32, 8, STB_LOCAL, STT_FUNC, TEXT },
		{ "$x", CODE + 48, 8, STB_LOCAL, STT_FUNC, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_expect_str_eq(name_at(&s, CODE), "memcpy");
	cr_expect_str_eq(name_at(&s, CODE + 16), "f.constprop.0");
	cr_expect_str_eq(name_at(&s, CODE + 32), "f.cold");
	cr_expect_str_eq(name_at(&s, CODE + 48), ELF_BUILDER_MACHINE == EM_X86_64 ? "$x" : "none");
	elf_symbols_deinit(&s);
}

Test(symbols, arm64_mapping_symbols)
{
	static const struct sym syms[] = {
		{ "$x", CODE, 0, STB_LOCAL, STT_NOTYPE, TEXT },
		{ "$d.12", CODE + 8, 0, STB_LOCAL, STT_NOTYPE, TEXT },
		{ "$dollar", CODE + 16, 0, STB_LOCAL, STT_NOTYPE, TEXT },
	};
	struct elf_builder b;
	struct elf_symbols s;

	begin(&b);
	add_table(&b, SHT_SYMTAB, syms, ARRAY_SIZE(syms));
	elf_builder_finish(&b);
	((Elf64_Ehdr *)(void *)b.bytes.data)->e_machine = EM_AARCH64;
	cr_assert_eq(elf_symbols_read_image(b.bytes.data, b.bytes.len, &s), 0);
	cr_expect_eq(s.n, 1);
	cr_expect_str_eq(name_at(&s, CODE + 16), "$dollar");
	elf_symbols_deinit(&s);
	elf_builder_deinit(&b);
}

/* ---- where they end ---- */

Test(symbols, without_a_size)
{
	static const struct sym syms[] = {
		{ "first", CODE, 0, STB_GLOBAL, STT_NOTYPE, TEXT },
		{ "sized", CODE + 16, 16, STB_GLOBAL, STT_FUNC, TEXT },
		{ "within", CODE + 24, 0, STB_GLOBAL, STT_NOTYPE, TEXT },
		{ "last", CODE + 64, 0, STB_GLOBAL, STT_NOTYPE, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_expect_str_eq(name_at(&s, CODE + 15), "first");
	cr_expect_str_eq(name_at(&s, CODE + 24), "sized");
	cr_expect_str_eq(name_at(&s, CODE + 32), "none");
	cr_expect_str_eq(name_at(&s, CODE + CODE_SIZE - 1), "last");
	cr_expect_str_eq(name_at(&s, CODE + CODE_SIZE), "none");
	elf_symbols_deinit(&s);
}

Test(symbols, functions_within_others)
{
	static const struct sym syms[] = {
		{ "outer", CODE, 100, STB_GLOBAL, STT_FUNC, TEXT },
		{ "inner", CODE + 20, 20, STB_GLOBAL, STT_FUNC, TEXT },
		{ "innermost", CODE + 25, 5, STB_GLOBAL, STT_FUNC, TEXT },
		{ "second", CODE + 50, 10, STB_GLOBAL, STT_FUNC, TEXT },
		{ "beyond", CODE + 90, 30, STB_GLOBAL, STT_FUNC, TEXT },
		{ "endless", CODE + 200, UINT64_MAX, STB_GLOBAL, STT_FUNC, TEXT },
	};
	struct elf_symbols s;

	read_table(syms, ARRAY_SIZE(syms), &s);
	cr_expect_str_eq(name_at(&s, CODE + 29), "innermost");
	cr_expect_str_eq(name_at(&s, CODE + 30), "inner");
	cr_expect_str_eq(name_at(&s, CODE + 40), "outer");
	cr_expect_str_eq(name_at(&s, CODE + 60), "outer");
	cr_expect_str_eq(name_at(&s, CODE + 119), "beyond");
	cr_expect_str_eq(name_at(&s, CODE + 120), "none");
	cr_expect_str_eq(name_at(&s, CODE + CODE_SIZE - 1), "endless");
	elf_symbols_deinit(&s);
}

/* Of any shapes: what read_builder() compares. */
Test(symbols, functions_at_random)
{
	struct sym syms[200];
	struct elf_symbols s;

	srand(1);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(syms); i++)
			syms[i] = (struct sym) { "x",
						 CODE + (uint64_t)rand() % CODE_SIZE,
						 (uint64_t)rand() % (1u << rand() % 12),
						 STB_GLOBAL,
						 STT_FUNC,
						 TEXT };
		read_table(syms, ARRAY_SIZE(syms), &s);
		elf_symbols_deinit(&s);
	}
}

/* ---- sources ---- */

/* A table of two starts, as linkers make it. */
static void add_eh_frame_hdr(struct buf *image, uint64_t first, uint64_t second)
{
	const uint64_t at = 0x400;
	Elf64_Ehdr *ehdr;
	Elf64_Phdr ph = { .p_type = PT_GNU_EH_FRAME,
			  .p_offset = image->len + sizeof(ph),
			  .p_vaddr = at,
			  .p_filesz = 28 };

	ehdr = (Elf64_Ehdr *)(void *)image->data;
	ehdr->e_phoff = image->len;
	ehdr->e_phnum = 1;
	ehdr->e_phentsize = sizeof(ph);
	buf_add(image, &ph, sizeof(ph));
	buf_add(image, "\x01\x1b\x03\x3b\0\0\0\0", 8);
	buf_add_le32(image, 2);
	buf_add_le32(image, (uint32_t)(first - at));
	buf_add_le32(image, 0);
	buf_add_le32(image, (uint32_t)(second - at));
	buf_add_le32(image, 0);
}

Test(symbols, better_sources_first)
{
	static const struct sym symtab[] = {
		{ "local", CODE, 32, STB_LOCAL, STT_FUNC, TEXT },
	};
	static const struct sym dynsym[] = {
		{ "global", CODE, 64, STB_GLOBAL, STT_FUNC, TEXT },
		{ "within", CODE + 16, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "dynamic", CODE + 64, 8, STB_GLOBAL, STT_FUNC, TEXT },
		{ "label", CODE + 80, 8, STB_GLOBAL, STT_NOTYPE, TEXT },
	};
	struct elf_builder b;
	struct elf_symbols s;

	begin(&b);
	add_table(&b, SHT_SYMTAB, symtab, ARRAY_SIZE(symtab));
	add_table(&b, SHT_DYNSYM, dynsym, ARRAY_SIZE(dynsym));
	elf_builder_finish(&b);
	add_eh_frame_hdr(&b.bytes, CODE + 68, CODE + 128);
	cr_assert_eq(elf_symbols_read_image(b.bytes.data, b.bytes.len, &s), 0);
	assert_sane_elf_symbols(&s);
	cr_expect_eq(s.n, 3);
	cr_expect_str_eq(name_at(&s, CODE), "local");
	cr_expect_str_eq(name_at(&s, CODE + 16), "local");
	cr_expect_str_eq(name_at(&s, CODE + 32), "none");
	cr_expect_str_eq(name_at(&s, CODE + 71), "dynamic");
	cr_expect_str_eq(name_at(&s, CODE + 127), "none");
	cr_expect_str_eq(name_at(&s, CODE + 128), "");
	cr_expect_eq(elf_symbols_find(&s, CODE + 500)->start, CODE + 128);
	elf_symbols_deinit(&s);
	elf_builder_deinit(&b);
}

/* Compressed, the symbols of a file of its own. */
static struct buf debugdata(const struct sym *syms, size_t n)
{
	struct buf out = BUF_INIT;
	struct elf_builder b;
	uint8_t xz[65536];
	size_t len = 0;

	begin(&b);
	add_table(&b, SHT_SYMTAB, syms, n);
	elf_builder_finish(&b);
	cr_assert_eq(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (void *)b.bytes.data,
					     b.bytes.len, xz, &len, sizeof(xz)),
		     LZMA_OK);
	buf_add(&out, xz, len);
	elf_builder_deinit(&b);
	return out;
}

Test(symbols, gnu_debugdata)
{
	static const struct sym hidden[] = { { "hidden", CODE, 8, STB_LOCAL, STT_FUNC, TEXT } };
	static const struct sym known[] = { { "known", CODE + 8, 8, STB_GLOBAL, STT_FUNC, TEXT } };
	struct buf xz = debugdata(hidden, 1);
	struct elf_builder b;
	struct elf_symbols s;

	begin(&b);
	add_table(&b, SHT_DYNSYM, known, 1);
	elf_builder_section(&b, ".gnu_debugdata", SHT_PROGBITS, 0, xz.data, xz.len);
	read_builder(&b, &s);
	cr_expect_str_eq(name_at(&s, CODE), "hidden");
	cr_expect_str_eq(name_at(&s, CODE + 8), "known");
	elf_symbols_deinit(&s);

	/* Damaged, it costs only what it has. */
	for (size_t cut = 1; cut < xz.len; cut += 7) {
		begin(&b);
		add_table(&b, SHT_DYNSYM, known, 1);
		elf_builder_section(&b, ".gnu_debugdata", SHT_PROGBITS, 0, xz.data, xz.len - cut);
		read_builder(&b, &s);
		cr_expect_str_eq(name_at(&s, CODE + 8), "known");
		elf_symbols_deinit(&s);
	}
	buf_deinit(&xz);
}

/* 200 MiB of zeros in 30 KiB. */
Test(symbols, gnu_debugdata_too_large)
{
	static uint8_t zeros[1 << 16], xz[1 << 16];
	lzma_stream stream = LZMA_STREAM_INIT;
	struct elf_builder b;
	struct elf_symbols s;

	cr_assert_eq(lzma_easy_encoder(&stream, 0, LZMA_CHECK_NONE), LZMA_OK);
	stream.next_out = xz;
	stream.avail_out = sizeof(xz);
	for (int i = 0; i < 3200; i++) {
		stream.next_in = zeros;
		stream.avail_in = sizeof(zeros);
		cr_assert_leq(lzma_code(&stream, i < 3199 ? LZMA_RUN : LZMA_FINISH),
			      LZMA_STREAM_END);
	}
	begin(&b);
	elf_builder_section(&b, ".gnu_debugdata", SHT_PROGBITS, 0, xz, stream.total_out);
	lzma_end(&stream);
	read_builder(&b, &s);
	cr_expect_eq(s.n, 0);
	elf_symbols_deinit(&s);
}

/* Where this process has the kernel's own; returns its size, 0 if it has none. */
static size_t find_vdso(const void **ret)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];
	size_t size = 0;

	cr_assert_not_null(maps);
	while (!size && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			size = end - start;
	fclose(maps);
	*ret = (const void *)start;
	return size;
}

Test(symbols, vdso)
{
	const void *vdso;
	size_t size = find_vdso(&vdso);
	struct elf_symbols s;
	bool found = false;

	if (!size) {
		cr_skip_test("there is no vDSO");
	}
	cr_assert_eq(elf_symbols_read_image(vdso, size, &s), 0);
	assert_sane_elf_symbols(&s);
	for (size_t i = 0; i < s.n; i++)
		found |= strstr(s.functions[i].name, "clock_gettime") != NULL;
	cr_expect(found);
	elf_symbols_deinit(&s);
}

/* ---- failures ---- */

Test(symbols, no_elf_file)
{
	static const char text[] = "#!/bin/sh\n";
	struct elf_symbols s = { .n = 42 };
	int fd = elf_builder_memfd(text, sizeof(text));
	struct elf_builder b;

	cr_expect_eq(elf_symbols_read(fd, "/bin/x", NULL, &s), -ENOEXEC);
	cr_expect_eq(elf_symbols_read(-1, "/bin/x", NULL, &s), -ENOEXEC);
	cr_expect_eq(elf_symbols_read_image(text, 0, &s), -ENOEXEC);
	begin(&b);
	elf_builder_finish(&b);
	((Elf64_Ehdr *)(void *)b.bytes.data)->e_machine = EM_386;
	cr_expect_eq(elf_symbols_read_image(b.bytes.data, b.bytes.len, &s), -ENOEXEC);
	cr_expect_eq(s.n, 42, "ret is left alone");
	elf_builder_deinit(&b);
	close(fd);
}

/* A string table without an end, a name beyond it, and as many long names as it takes. */
Test(symbols, names_without_an_end)
{
	static const struct sym syms[] = { { "first", CODE, 8, STB_GLOBAL, STT_FUNC, TEXT },
					   { "last", CODE + 8, 8, STB_GLOBAL, STT_FUNC, TEXT } };
	struct elf_builder b;
	struct elf_symbols s;
	char *last;

	begin(&b);
	add_table(&b, SHT_SYMTAB, syms, 2);
	elf_builder_finish(&b);
	last = memmem(b.bytes.data, b.bytes.len, "first\0last", 11);
	cr_assert_not_null(last);
	last[10] = 'x';
	cr_assert_eq(elf_symbols_read_image(b.bytes.data, b.bytes.len, &s), 0);
	cr_expect_str_eq(name_at(&s, CODE), "first");
	cr_expect_str_eq(name_at(&s, CODE + 8), "none");
	elf_symbols_deinit(&s);
	elf_builder_deinit(&b);
}

Test(symbols, names_too_long)
{
	const size_t n = 20000; /* 320 MiB of names */
	struct sym *syms = calloc(n, sizeof(*syms));
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	struct elf_builder b;
	char *name;

	cr_assert_not_null(syms);
	name = malloc(2 * ELF_SYMBOLS_MAX_NAME);
	cr_assert_not_null(name);
	memset(name, 'x', 2 * ELF_SYMBOLS_MAX_NAME);
	name[2 * ELF_SYMBOLS_MAX_NAME - 1] = '\0';
	syms[0] = (struct sym) { name, CODE, 8, STB_GLOBAL, STT_FUNC, TEXT };
	read_table(syms, 1, &s);
	cr_expect_eq(strlen(name_at(&s, CODE)), ELF_SYMBOLS_MAX_NAME, "cut");
	elf_symbols_deinit(&s);

	/* All of them have one name. */
	for (size_t i = 0; i < n; i++)
		syms[i] = (struct sym) { "", CODE + i, 8, STB_GLOBAL, STT_FUNC, TEXT };
	begin(&b);
	add_table(&b, SHT_SYMTAB, syms, n);
	elf_builder_section(&b, ".strtab", SHT_STRTAB, 0, name, 2 * ELF_SYMBOLS_MAX_NAME);
	((Elf64_Shdr *)(void *)b.sections.data)[b.count - 2].sh_link = b.count - 1u;
	elf_builder_finish(&b);
	cr_assert_eq(elf_symbols_read_image(b.bytes.data, b.bytes.len, &s), 0);
	cr_expect_leq(s.n, ELF_SYMBOLS_MAX_NAMES / ELF_SYMBOLS_MAX_NAME, "the others are left out");
	elf_symbols_deinit(&s);
	elf_builder_deinit(&b);
	free(syms);
	free(name);
}
