/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libelf checks that what it gives is within the file, but not how much that is, and it looks for
 * the end of each string from the end of its section. So sections are asked for their size first,
 * and strings are made safe once.
 */
#include "elf/symbol_list.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"
#include "elf/symbols.h"

#define MAX_SECTIONS	  65536

/* Parts of a rank, the most important first. */
#define RANK_NO_SIZE	  (1u << 31)
#define RANK_SOURCE_SHIFT 29 /* two bits; what is below them is the source's own */
#define RANK_NO_TYPE	  (1u << 28)
#define RANK_BIND_SHIFT	  26 /* two bits */
#define RANK_LINE_SHIFT	  22 /* four bits: how many "_" it begins with */
#define RANK_MAX_LINES	  15u

_Static_assert(ELF_SYMBOLS_MAX_NAME < 1u << RANK_LINE_SHIFT, "a length fits below");
_Static_assert(SYMBOL_SOURCES <= 4, "a source fits");

/* ---- sections ---- */

Elf_Scn *symbol_next_section(Elf *elf, Elf_Scn *scn)
{
	scn = elf_nextscn(elf, scn);
	return scn && elf_ndxscn(scn) < MAX_SECTIONS ? scn : NULL;
}

Elf_Data *symbol_section_data(Elf_Scn *scn, GElf_Shdr *shdr)
{
	Elf_Data *data;

	if (!gelf_getshdr(scn, shdr)) {
		*shdr = (GElf_Shdr) { 0 };
		return NULL;
	}
	if (shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED ||
	    shdr->sh_size > ELF_SYMBOLS_MAX_SECTION)
		return NULL;
	data = elf_getdata(scn, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

struct symbol_strings symbol_section_strings(Elf *elf, size_t index)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	struct symbol_strings strings = { 0 };
	const char *last;
	Elf_Data *data;
	GElf_Shdr shdr;

	data = scn ? symbol_section_data(scn, &shdr) : NULL;
	last = data ? memrchr(data->d_buf, '\0', data->d_size) : NULL;
	if (!last)
		return strings;
	strings.data = data->d_buf;
	strings.len = (size_t)(last - strings.data) + 1;
	return strings;
}

struct symbol_strings symbol_section_names(Elf *elf)
{
	size_t index;

	if (elf_getshdrstrndx(elf, &index))
		return (struct symbol_strings) { 0 };
	return symbol_section_strings(elf, index);
}

const char *symbol_string(const struct symbol_strings *strings, size_t offset)
{
	return offset < strings->len ? strings->data + offset : "";
}

/* ---- code ---- */

static bool add_code(struct symbol_list *list, uint64_t start, uint64_t size)
{
	if (!size || start + size < start)
		return true;
	if (list->n_code == SYMBOL_LIST_MAX_CODE)
		return false;
	list->code[list->n_code++] = (struct symbol_range) { start, start + size };
	return true;
}

static bool add_code_sections(struct symbol_list *list, Elf *elf)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = symbol_next_section(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && (shdr.sh_flags & flags) == flags &&
		    !add_code(list, shdr.sh_addr, shdr.sh_size))
			return false;
	return list->n_code;
}

static void add_code_segments(struct symbol_list *list, Elf *elf)
{
	size_t n, i;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return;
	list->n_code = 0;
	for (i = 0; i < n && list->n_code < SYMBOL_LIST_MAX_CODE; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			add_code(list, ph.p_vaddr, ph.p_memsz);
}

const struct symbol_range *symbol_list_code(const struct symbol_list *list, uint64_t addr)
{
	size_t i;

	for (i = 0; i < list->n_code; i++)
		if (addr >= list->code[i].start && addr < list->code[i].end)
			return &list->code[i];
	return NULL;
}

/* ---- the list ---- */

int symbol_list_init(struct symbol_list *list, Elf *elf)
{
	GElf_Ehdr ehdr;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (ehdr.e_machine != EM_X86_64 && ehdr.e_machine != EM_AARCH64))
		return -ENOEXEC;
	*list = (struct symbol_list) { .machine = ehdr.e_machine };
	/* Without section headers, or with too many sections, segments will do. */
	if (!add_code_sections(list, elf))
		add_code_segments(list, elf);
	return 0;
}

void symbol_list_deinit(struct symbol_list *list)
{
	free(list->v);
	*list = (struct symbol_list) { 0 };
}

int symbol_list_add(struct symbol_list *list, enum symbol_source source, uint64_t start,
		    uint64_t size, const char *name, uint32_t len, uint32_t rank)
{
	const struct symbol_range *code = symbol_list_code(list, start);

	if (!start || !code || list->n == ELF_SYMBOLS_MAX)
		return 0;
	if (array_reserve(list->v, list->cap, list->n + 1))
		return -ENOMEM;
	if (size > code->end - start)
		size = code->end - start;
	rank |= (uint32_t)source << RANK_SOURCE_SHIFT | (size ? 0 : RANK_NO_SIZE);
	list->v[list->n++] = (struct symbol) {
		.start = start, .end = start + size, .name = name, .len = len, .rank = rank
	};
	return 0;
}

enum symbol_source symbol_source(const struct symbol *symbol)
{
	return (enum symbol_source)(symbol->rank >> RANK_SOURCE_SHIFT & 3);
}

static int compare_symbols(const void *va, const void *vb)
{
	const struct symbol *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->len == b->len ? memcmp(a->name, b->name, a->len) : a->len < b->len ? -1 : 1;
}

void symbol_list_sort(struct symbol_list *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare_symbols);
}

const struct symbol *symbol_list_at(const struct symbol_list *list, uint64_t start)
{
	const size_t i = sorted_below(list->v, list->n, start, start);

	return i < list->n && list->v[i].start == start ? &list->v[i] : NULL;
}

/* ---- symbol tables ---- */

uint32_t symbol_name_len(struct symbol_list *list, const char *name)
{
	const char *version;
	size_t len;

	if (list->name_bytes > ELF_SYMBOLS_MAX_NAMES)
		return 0;
	len = strnlen(name, ELF_SYMBOLS_MAX_NAME);
	version = memchr(name, '@', len);
	list->name_bytes += len + 1;
	return (uint32_t)(version ? (size_t)(version - name) : len);
}

/*
 * Of several names at one address perf, too, prefers a global one and then the one with the fewest
 * underscores; but of two that are left it takes the longer, which is the more decorated one.
 */
static uint32_t rank_of(const GElf_Sym *sym, const char *name, uint32_t len)
{
	uint32_t bind = 2, lines = 0;

	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		bind = 0;
		break;
	case STB_WEAK:
		bind = 1;
		break;
	}
	while (lines < len && lines < RANK_MAX_LINES && name[lines] == '_')
		lines++;
	return (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE ? RANK_NO_TYPE : 0) |
	       bind << RANK_BIND_SHIFT | lines << RANK_LINE_SHIFT | len;
}

/* arm64: "$x" and "$d", also with a suffix, say where code and data begin, and name nothing. */
static bool is_mapping_symbol(const struct symbol_list *list, const char *name)
{
	return list->machine == EM_AARCH64 && name[0] == '$' &&
	       (name[1] == 'x' || name[1] == 'd') && (!name[2] || name[2] == '.');
}

/* Assemblers give a type to what they are told to: other labels count if they are in code. */
static bool is_function(const GElf_Sym *sym, uint32_t table)
{
	if (sym->st_shndx == SHN_UNDEF)
		return false;
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return table == SHT_SYMTAB && sym->st_shndx < SHN_LORESERVE;
	default:
		return false;
	}
}

static int add_symbols(struct symbol_list *list, Elf_Data *data, uint32_t table,
		       const struct symbol_strings *strings)
{
	enum symbol_source source = table == SHT_SYMTAB ? SYMBOL_SYMTAB : SYMBOL_DYNSYM;
	const char *name;
	GElf_Sym sym;
	uint32_t len;
	int i, r = 0;

	for (i = 0; !r && gelf_getsym(data, i, &sym); i++) {
		if (!is_function(&sym, table))
			continue;
		name = symbol_string(strings, sym.st_name);
		len = symbol_name_len(list, name);
		if (!len || is_mapping_symbol(list, name))
			continue;
		r = symbol_list_add(list, source, sym.st_value, sym.st_size, name, len,
				    rank_of(&sym, name, len));
	}
	return r;
}

int symbol_list_add_table(struct symbol_list *list, Elf *elf, uint32_t type)
{
	struct symbol_strings strings;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;

	while ((scn = symbol_next_section(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
			continue;
		data = symbol_section_data(scn, &shdr);
		if (!data)
			continue;
		strings = symbol_section_strings(elf, shdr.sh_link);
		return add_symbols(list, data, type, &strings);
	}
	return 0;
}

/* ---- .eh_frame_hdr ---- */

struct fde_header {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

struct fde_entry {
	int32_t start, fde; /* relative to the header */
};

/*
 * @data is the section, which stands at @addr. All linkers write it in the one form there is here.
 */
static int add_fde_table(struct symbol_list *list, const Elf_Data *data, uint64_t addr)
{
	const char *bytes = data->d_buf;
	struct fde_header header;
	struct fde_entry entry;
	uint32_t i;
	int r = 0;

	if (data->d_size < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	if (header.version != 1 || (header.frame_encoding & 0xf) != DW_EH_PE_sdata4 ||
	    header.count_encoding != DW_EH_PE_udata4 ||
	    header.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return 0;
	for (i = 0; !r && i < header.count; i++) {
		size_t at = sizeof(header) + (size_t)i * sizeof(entry);

		if (data->d_size - at < sizeof(entry))
			break;
		memcpy(&entry, bytes + at, sizeof(entry));
		r = symbol_list_add(list, SYMBOL_FDE, addr + (uint64_t)(int64_t)entry.start, 0, "",
				    0, 0);
	}
	return r;
}

int symbol_list_add_fdes(struct symbol_list *list, Elf *elf)
{
	Elf_Data *data;
	GElf_Phdr ph;
	size_t n, i;

	if (elf_getphdrnum(elf, &n))
		return 0;
	for (i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		if (ph.p_filesz > ELF_SYMBOLS_MAX_SECTION)
			return 0;
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		return data && data->d_buf ? add_fde_table(list, data, ph.p_vaddr) : 0;
	}
	return 0;
}
