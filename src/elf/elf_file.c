/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each mapped file of each process is looked at here, by a privileged process, to see whether it is
 * a Ruby. So only what is asked for is read, with pread() and into memory of a limited size: the
 * file may be anything, and change meanwhile.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "elf/elf_common.h"

/* Relocations of thread-local storage, by what the dynamic linker writes: see enum elf_tls_kind. */
#if defined(__x86_64__)
#define ELF_RELOC_TLS_OFFSET R_X86_64_TPOFF64
#define ELF_RELOC_TLS_MODULE R_X86_64_DTPMOD64
#define ELF_RELOC_TLS_DESC   R_X86_64_TLSDESC
#else
#define ELF_RELOC_TLS_OFFSET R_AARCH64_TLS_TPREL
#define ELF_RELOC_TLS_MODULE R_AARCH64_TLS_DTPMOD
#define ELF_RELOC_TLS_DESC   R_AARCH64_TLSDESC
#endif

struct elf_file {
	int fd;
	uint64_t left; /* bytes that may still be read */
	Elf64_Phdr *segments;
	size_t n_segments;
	Elf64_Shdr *sections;
	size_t n_sections;
};

/* ---- reading ---- */

/* What lies past the end of the file is an error, too. */
static bool read_at(struct elf_file *f, uint64_t offset, void *buf, uint64_t size)
{
	uint64_t done = 0;
	ssize_t n;

	if (size > f->left || offset > INT64_MAX - size)
		return false;
	f->left -= size;
	while (done < size) {
		n = pread(f->fd, (char *)buf + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

/* With a NUL behind it. NULL: not there, too large, or no memory. */
static void *read_piece(struct elf_file *f, uint64_t offset, uint64_t size)
{
	_cleanup_free_ char *piece = size <= f->left ? malloc(size + 1) : NULL;

	if (!piece || !read_at(f, offset, piece, size))
		return NULL;
	piece[size] = '\0';
	return take_ptr(piece);
}

static void *read_section(struct elf_file *f, const Elf64_Shdr *shdr)
{
	return read_piece(f, shdr->sh_offset, shdr->sh_size);
}

/* The strings that section @shdr refers to. */
static char *read_strings(struct elf_file *f, const Elf64_Shdr *shdr, uint64_t *size)
{
	const Elf64_Shdr *strings;

	if (shdr->sh_link >= f->n_sections)
		return NULL;
	strings = &f->sections[shdr->sh_link];
	*size = strings->sh_size;
	return strings->sh_type == SHT_STRTAB ? read_section(f, strings) : NULL;
}

/* Without a table that can be read it has no segments, or no sections. */
static void read_tables(struct elf_file *f, const Elf64_Ehdr *ehdr)
{
	if (ehdr->e_phentsize == sizeof(Elf64_Phdr) && ehdr->e_phnum <= ELF_FILE_MAX_SEGMENTS)
		f->segments = read_piece(f, ehdr->e_phoff, ehdr->e_phnum * sizeof(*f->segments));
	f->n_segments = f->segments ? ehdr->e_phnum : 0;
	if (ehdr->e_shentsize == sizeof(Elf64_Shdr) && ehdr->e_shnum <= ELF_FILE_MAX_SECTIONS)
		f->sections = read_piece(f, ehdr->e_shoff, ehdr->e_shnum * sizeof(*f->sections));
	f->n_sections = f->sections ? ehdr->e_shnum : 0;
}

int elf_file_open(int fd, const char *name, struct elf_file **ret, struct err *err)
{
	struct elf_file *f;
	Elf64_Ehdr ehdr;

	f = calloc(1, sizeof(*f));
	if (!f)
		return err_oom(err);
	f->fd = fd;
	f->left = ELF_FILE_MAX_READ;
	if (!read_at(f, 0, &ehdr, sizeof(ehdr)) || !elf_is_of_this_machine(&ehdr)) {
		elf_file_close(f);
		return err_set(err, -ENOEXEC, ERR_TARGET,
			       "%s is not a 64-bit ELF file of this machine", name);
	}
	read_tables(f, &ehdr);
	*ret = f;
	return 0;
}

void elf_file_close(struct elf_file *elf)
{
	if (!elf)
		return;
	free(elf->segments);
	free(elf->sections);
	free(elf);
}

/* ---- symbols ---- */

struct symbol_search {
	const char *const *names;
	uint64_t *values;
	size_t n, hits;
	bool found[32];
};

static void find_symbols(struct symbol_search *s, const Elf64_Sym *syms, uint64_t n,
			 const char *strings, uint64_t size)
{
	uint64_t i;
	size_t k;

	for (i = 0; i < n && s->hits < s->n; i++) {
		if (syms[i].st_shndx == SHN_UNDEF || syms[i].st_name >= size)
			continue;
		for (k = 0; k < s->n; k++) {
			if (s->found[k] || strcmp(strings + syms[i].st_name, s->names[k]))
				continue;
			s->values[k] = syms[i].st_value;
			s->found[k] = true;
			s->hits++;
		}
	}
}

static void search_tables(struct elf_file *f, uint32_t type, struct symbol_search *s)
{
	size_t i;

	for (i = 0; i < f->n_sections && s->hits < s->n; i++) {
		const Elf64_Shdr *shdr = &f->sections[i];
		_cleanup_free_ Elf64_Sym *syms = NULL;
		_cleanup_free_ char *strings = NULL;
		uint64_t size;

		if (shdr->sh_type != type || shdr->sh_entsize != sizeof(*syms))
			continue;
		syms = read_section(f, shdr);
		strings = syms ? read_strings(f, shdr, &size) : NULL;
		if (strings)
			find_symbols(s, syms, shdr->sh_size / sizeof(*syms), strings, size);
	}
}

static struct symbol_search search_for(const char *const *names, uint64_t *values, size_t n)
{
	struct symbol_search s = { .names = names, .values = values };

	s.n = n < ARRAY_SIZE(s.found) ? n : ARRAY_SIZE(s.found);
	return s;
}

size_t elf_file_symbols(struct elf_file *elf, const char *const *names, uint64_t *values, size_t n)
{
	struct symbol_search s = search_for(names, values, n);

	search_tables(elf, SHT_DYNSYM, &s);
	search_tables(elf, SHT_SYMTAB, &s);
	return s.hits;
}

size_t elf_file_dynamic_symbols(struct elf_file *elf, const char *const *names, uint64_t *values,
				size_t n)
{
	struct symbol_search s = search_for(names, values, n);

	search_tables(elf, SHT_DYNSYM, &s);
	return s.hits;
}

/* ---- thread-local storage ---- */

/*
 * The numbers of the symbols that are @name: one that is defined, and one that is not. 0: there is
 * none.
 */
struct tls_symbols {
	uint64_t defined, used;
	uint64_t value; /* of the first one */
};

static void find_tls_symbols(const Elf64_Sym *syms, uint64_t n, const char *strings, uint64_t size,
			     const char *name, struct tls_symbols *ret)
{
	uint64_t i, *number;

	*ret = (struct tls_symbols) { 0 };
	for (i = 1; i < n && (!ret->defined || !ret->used); i++) {
		if (ELF64_ST_TYPE(syms[i].st_info) != STT_TLS || syms[i].st_name >= size ||
		    strcmp(strings + syms[i].st_name, name))
			continue;
		number = syms[i].st_shndx == SHN_UNDEF ? &ret->used : &ret->defined;
		if (*number)
			continue;
		*number = i;
		if (number == &ret->defined)
			ret->value = syms[i].st_value;
	}
}

/* Whether @rela is of the variable that @s says, and of what kind. */
static bool is_of_variable(const Elf64_Rela *rela, const struct tls_symbols *s,
			   enum elf_tls_kind *ret)
{
	const uint64_t symbol = ELF64_R_SYM(rela->r_info);
	bool own = !symbol &&
		   s->defined; /* of this file, and of no symbol: addends tell them apart */

	if (symbol ? (symbol != s->defined && symbol != s->used) || rela->r_addend : !own)
		return false;
	switch (ELF64_R_TYPE(rela->r_info)) {
	case ELF_RELOC_TLS_OFFSET:
		*ret = ELF_TLS_OFFSET;
		break;
	case ELF_RELOC_TLS_DESC:
		*ret = ELF_TLS_DESC;
		break;
	case ELF_RELOC_TLS_MODULE:
		*ret = own ? ELF_TLS_MODULE : ELF_TLS_INDEX;
		return true;
	default:
		return false;
	}
	return !own || (uint64_t)rela->r_addend == s->value;
}

/* Of the relocations of section @shdr, those of the variable. */
static void find_tls_places(struct elf_file *f, const Elf64_Shdr *shdr, const struct tls_symbols *s,
			    struct elf_tls *ret)
{
	_cleanup_free_ Elf64_Rela *v = read_section(f, shdr);
	uint64_t i, n = v ? shdr->sh_size / sizeof(*v) : 0;
	enum elf_tls_kind kind;

	for (i = 0; i < n && ret->n_places < ELF_TLS_PLACES; i++)
		if (is_of_variable(&v[i], s, &kind))
			ret->places[ret->n_places++] = (struct elf_tls_place) { v[i].r_offset,
										kind };
}

static const Elf64_Phdr *tls_segment(const struct elf_file *f)
{
	size_t i;

	for (i = 0; i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_TLS)
			return &f->segments[i];
	return NULL;
}

/* By section number @index, a .dynsym. */
static void tls_of_section(struct elf_file *f, size_t index, const char *name, struct elf_tls *ret)
{
	const Elf64_Shdr *shdr = &f->sections[index];
	const Elf64_Phdr *segment = tls_segment(f);
	_cleanup_free_ Elf64_Sym *syms = NULL;
	_cleanup_free_ char *strings = NULL;
	struct tls_symbols s;
	uint64_t size;
	size_t i;

	syms = read_section(f, shdr);
	strings = syms ? read_strings(f, shdr, &size) : NULL;
	if (!strings)
		return;
	find_tls_symbols(syms, shdr->sh_size / sizeof(*syms), strings, size, name, &s);
	if (!segment || s.value >= segment->p_memsz)
		s.defined = 0;
	if (s.defined) {
		ret->defined = true;
		ret->offset = s.value;
		ret->vaddr = segment->p_vaddr;
		ret->size = segment->p_memsz;
		ret->align = segment->p_align;
	}
	for (i = 0; i < f->n_sections && (s.defined || s.used); i++)
		if (f->sections[i].sh_type == SHT_RELA && f->sections[i].sh_link == index &&
		    f->sections[i].sh_entsize == sizeof(Elf64_Rela))
			find_tls_places(f, &f->sections[i], &s, ret);
}

int elf_file_tls(struct elf_file *elf, const char *name, struct elf_tls *ret)
{
	struct elf_tls tls = { .n_places = 0 };
	size_t i;

	for (i = 0; i < elf->n_sections && !tls.defined && !tls.n_places; i++)
		if (elf->sections[i].sh_type == SHT_DYNSYM &&
		    elf->sections[i].sh_entsize == sizeof(Elf64_Sym))
			tls_of_section(elf, i, name, &tls);
	if (!tls.defined && !tls.n_places)
		return -ENOENT;
	*ret = tls;
	return 0;
}

/* ---- the rest ---- */

static bool section_needs(struct elf_file *f, const Elf64_Shdr *shdr, const char *prefix)
{
	_cleanup_free_ Elf64_Dyn *dyn = read_section(f, shdr);
	_cleanup_free_ char *strings = NULL;
	uint64_t size = 0, i;

	strings = dyn ? read_strings(f, shdr, &size) : NULL;
	for (i = 0; strings && i < shdr->sh_size / sizeof(*dyn); i++)
		if (dyn[i].d_tag == DT_NEEDED && dyn[i].d_un.d_val < size &&
		    !strncmp(strings + dyn[i].d_un.d_val, prefix, strlen(prefix)))
			return true;
	return false;
}

bool elf_file_needs(struct elf_file *elf, const char *prefix)
{
	size_t i;

	for (i = 0; i < elf->n_sections; i++)
		if (elf->sections[i].sh_type == SHT_DYNAMIC &&
		    section_needs(elf, &elf->sections[i], prefix))
			return true;
	return false;
}

size_t elf_file_segments(struct elf_file *elf, struct elf_segment *v, size_t max)
{
	size_t i, n = 0;

	for (i = 0; i < elf->n_segments && n < max; i++) {
		const Elf64_Phdr *ph = &elf->segments[i];

		if (ph->p_type != PT_LOAD)
			continue;
		v[n++] = (struct elf_segment) {
			.vaddr = ph->p_vaddr,
			.memsz = ph->p_memsz,
			.offset = ph->p_offset,
			.filesz = ph->p_filesz,
			.write = ph->p_flags & PF_W,
			.exec = ph->p_flags & PF_X,
		};
	}
	return n;
}

static uint64_t align(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Whether one of the notes is the build-id. Each is a header, a name and a description. */
static bool find_build_id(const unsigned char *notes, uint64_t len, uint64_t to, char *out,
			  size_t size)
{
	uint64_t at = 0, desc;
	Elf64_Nhdr note;

	while (len - at >= sizeof(note)) {
		memcpy(&note, notes + at, sizeof(note));
		desc = align(at + sizeof(note) + note.n_namesz, to);
		if (desc > len || note.n_descsz > len - desc)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + at + sizeof(note), "GNU", sizeof("GNU")) &&
		    (size_t)note.n_descsz * 2 < size) {
			hex_of_bytes(notes + desc, note.n_descsz, out);
			return true;
		}
		at = align(desc + note.n_descsz, to);
		if (at > len)
			return false;
	}
	return false;
}

void elf_file_build_id(struct elf_file *elf, char *out, size_t size)
{
	size_t i;

	out[0] = '\0';
	for (i = 0; i < elf->n_sections; i++) {
		const Elf64_Shdr *shdr = &elf->sections[i];
		_cleanup_free_ unsigned char *notes = NULL;

		if (shdr->sh_type != SHT_NOTE || shdr->sh_size > ELF_FILE_MAX_NOTES)
			continue;
		notes = read_section(elf, shdr);
		if (notes &&
		    find_build_id(notes, shdr->sh_size, shdr->sh_addralign == 8 ? 8 : 4, out, size))
			return;
	}
}
