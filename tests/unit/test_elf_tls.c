/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * elf_file_tls(): what files say of a TLS variable, in files of each way in which linkers write it.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "support/elf_builder.h"

#define NAME	 "otel_thread_ctx_v1"
#define STRINGS	 "\0other\0" NAME "\0function"
#define AT_OTHER 1
#define AT_NAME	 7
#define AT_FUNC	 (AT_NAME + sizeof(NAME))

#if defined(__x86_64__)
#define TPOFF  R_X86_64_TPOFF64
#define DTPMOD R_X86_64_DTPMOD64
#define DTPOFF R_X86_64_DTPOFF64
#define DESC   R_X86_64_TLSDESC
#define OTHER  R_X86_64_GLOB_DAT
#else
#define TPOFF  R_AARCH64_TLS_TPREL
#define DTPMOD R_AARCH64_TLS_DTPMOD
#define DTPOFF R_AARCH64_TLS_DTPREL
#define DESC   R_AARCH64_TLSDESC
#define OTHER  R_AARCH64_GLOB_DAT
#endif

enum { NONE, OTHER_VARIABLE, VARIABLE };

struct wanted {
	bool defined;
	uint64_t value;
	uint16_t type; /* of its symbol; 0: STT_TLS */
	Elf64_Rela rela[12];
	size_t n_rela;
	uint64_t block; /* size of PT_TLS; 0: there is none */
};

/* The section that was added last. */
static Elf64_Shdr *last_section(struct elf_builder *b)
{
	return (Elf64_Shdr *)(void *)b->sections.data + b->count - 1;
}

static void build(struct elf_builder *b, const struct wanted *w)
{
	const Elf64_Sym symbols[] = {
		[OTHER_VARIABLE] = { .st_name = AT_OTHER,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS),
				     .st_shndx = 3,
				     .st_value = 8 },
		[VARIABLE] = { .st_name = AT_NAME,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, w->type ? w->type : STT_TLS),
			       .st_shndx = w->defined ? 3 : SHN_UNDEF,
			       .st_value = w->value },
		[3] = { .st_name = AT_FUNC,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 3 },
	};
	const Elf64_Phdr tls = {
		.p_type = PT_TLS, .p_vaddr = 0x3de0, .p_memsz = w->block, .p_align = 16
	};
	Elf64_Ehdr *ehdr;

	elf_builder_init(b);
	elf_builder_section(b, ".dynsym", SHT_DYNSYM, SHF_ALLOC, symbols, sizeof(symbols));
	last_section(b)->sh_entsize = sizeof(Elf64_Sym);
	last_section(b)->sh_link = 2;
	elf_builder_section(b, ".dynstr", SHT_STRTAB, SHF_ALLOC, STRINGS, sizeof(STRINGS));
	elf_builder_section(b, ".rela.dyn", SHT_RELA, SHF_ALLOC, w->rela,
			    w->n_rela * sizeof(*w->rela));
	last_section(b)->sh_entsize = sizeof(Elf64_Rela);
	last_section(b)->sh_link = 1;
	elf_builder_finish(b);
	if (!w->block)
		return;
	buf_add_repeat(&b->bytes, '\0', -b->bytes.len % 8);
	ehdr = (Elf64_Ehdr *)(void *)b->bytes.data;
	ehdr->e_phoff = b->bytes.len;
	ehdr->e_phnum = 1;
	ehdr->e_phentsize = sizeof(tls);
	buf_add(&b->bytes, &tls, sizeof(tls));
}

static int look(const struct wanted *w, struct elf_tls *ret)
{
	struct elf_builder b;
	struct elf_file *elf;
	int fd, r;

	build(&b, w);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	cr_assert_eq(elf_file_open(fd, "test", &elf, NULL), 0);
	r = elf_file_tls(elf, NAME, ret);
	elf_file_close(elf);
	/*
	 * Cut anywhere, it is refused or less is found, and nothing is read beyond its end (ASan).
	 */
	for (size_t len = 0; len < b.bytes.len; len += 7) {
		struct elf_tls cut = { .n_places = 77 };

		cr_assert_eq(ftruncate(fd, (off_t)(b.bytes.len - len)), 0);
		if (elf_file_open(fd, "test", &elf, NULL))
			continue;
		if (elf_file_tls(elf, NAME, &cut))
			cr_expect_eq(cut.n_places, 77, "untouched");
		else
			cr_expect_leq(cut.n_places, ret->n_places);
		elf_file_close(elf);
	}
	close(fd);
	elf_builder_deinit(&b);
	return r;
}

#define RELA(symbol, type, at, addend)                                                             \
	{                                                                                          \
		at, ELF64_R_INFO((uint64_t)(symbol), type), addend                                 \
	}

static void expect_place(const struct wanted *w, uint64_t place, enum elf_tls_kind kind)
{
	struct elf_tls tls;

	cr_assert_eq(look(w, &tls), 0);
	cr_expect_eq(tls.defined, w->defined);
	cr_assert_eq(tls.n_places, 1);
	cr_expect_eq(tls.places[0].place, place);
	cr_expect_eq(tls.places[0].kind, kind);
}

Test(elf_tls, relocations_of_the_symbol)
{
	struct wanted w = { .defined = true, .value = 0x18, .block = 0x20 };

	w.rela[0] = (Elf64_Rela)RELA(OTHER_VARIABLE, DESC, 0x4000, 0);
	w.rela[1] = (Elf64_Rela)RELA(VARIABLE, DESC, 0x4010, 0);
	w.rela[2] = (Elf64_Rela)RELA(VARIABLE, OTHER, 0x4020, 0);
	w.n_rela = 3;
	expect_place(&w, 0x4010, ELF_TLS_DESC);
	w.rela[1] = (Elf64_Rela)RELA(VARIABLE, DTPMOD, 0x4010, 0);
	w.rela[2] = (Elf64_Rela)RELA(VARIABLE, DTPOFF, 0x4018, 0);
	expect_place(&w, 0x4010, ELF_TLS_INDEX);
	w.rela[1] = (Elf64_Rela)RELA(VARIABLE, TPOFF, 0x4010, 0);
	expect_place(&w, 0x4010, ELF_TLS_OFFSET);
	/* Who uses it knows as well as who defines it. */
	w.defined = false;
	w.block = 0;
	expect_place(&w, 0x4010, ELF_TLS_OFFSET);
	w.rela[1].r_addend = 8; /* what is behind it */
	cr_expect_eq(look(&w, &(struct elf_tls) { 0 }), -ENOENT);
}

/* The linker binds what no other file can replace: such relocations have no symbol. */
Test(elf_tls, relocations_without_a_symbol)
{
	struct wanted w = { .defined = true, .value = 0x18, .block = 0x20 };

	w.rela[0] = (Elf64_Rela)RELA(NONE, DESC, 0x4000, 8); /* another variable */
	w.rela[1] = (Elf64_Rela)RELA(NONE, DESC, 0x4010, 0x18);
	w.n_rela = 2;
	expect_place(&w, 0x4010, ELF_TLS_DESC);
	w.rela[0] = (Elf64_Rela)RELA(NONE, TPOFF, 0x4000, 0);
	w.rela[1] = (Elf64_Rela)RELA(NONE, TPOFF, 0x4010, 0x18);
	expect_place(&w, 0x4010, ELF_TLS_OFFSET);
	w.rela[1] = (Elf64_Rela)RELA(NONE, DTPMOD, 0x4010, 0);
	expect_place(&w, 0x4010, ELF_TLS_MODULE);
	w.defined = false;
	cr_expect_eq(look(&w, &(struct elf_tls) { 0 }), -ENOENT, "of another variable then");
}

Test(elf_tls, defined_and_nothing_else)
{
	struct wanted w = { .defined = true, .value = 0x18, .block = 0x20 };
	struct elf_tls tls = { 0 };

	cr_assert_eq(look(&w, &tls), 0);
	cr_expect(tls.defined);
	cr_expect_eq(tls.offset, 0x18);
	cr_expect_eq(tls.size, 0x20);
	cr_expect_eq(tls.vaddr, 0x3de0);
	cr_expect_eq(tls.align, 16);
	cr_expect_eq(tls.n_places, 0);
	w.value = 0x20;
	cr_expect_eq(look(&w, &tls), -ENOENT, "outside of its block");
	w.value = 0x18;
	w.block = 0;
	cr_expect_eq(look(&w, &tls), -ENOENT, "there is no block");
	w.block = 0x20;
	w.type = STT_OBJECT;
	cr_expect_eq(look(&w, &tls), -ENOENT, "a variable of all threads");
}

Test(elf_tls, places_have_a_limit)
{
	struct wanted w = { .defined = true, .value = 0x18, .block = 0x20, .n_rela = 12 };
	struct elf_tls tls;

	for (size_t i = 0; i < w.n_rela; i++)
		w.rela[i] = (Elf64_Rela)RELA(VARIABLE, TPOFF, 0x4000 + 8 * i, 0);
	cr_assert_eq(look(&w, &tls), 0);
	cr_expect_eq(tls.n_places, ELF_TLS_PLACES);
	cr_expect_eq(tls.places[ELF_TLS_PLACES - 1].place, 0x4000 + 8 * (ELF_TLS_PLACES - 1));
}
