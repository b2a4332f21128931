/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The symbols that the parts of an ELF file give for its functions, before one is chosen for each
 * address. Part of symbols.c.
 */
#ifndef RBPF_ELF_SYMBOL_LIST_H
#define RBPF_ELF_SYMBOL_LIST_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_LIST_MAX_CODE 64

/* The better first. */
enum symbol_source {
	SYMBOL_SYMTAB = 0,
	SYMBOL_DYNSYM,
	SYMBOL_PLT,
	SYMBOL_FDE, /* call frame information */
	SYMBOL_SOURCES,
};

struct symbol {
	uint64_t start;
	uint64_t end;	  /* start: how long it is is not known */
	const char *name; /* of len bytes, no NUL; in a section's data */
	uint32_t len;
	uint32_t rank; /* of those with the same start the least is the best */
};

struct symbol_range {
	uint64_t start, end;
};

struct symbol_list {
	uint16_t machine;
	struct symbol_range code[SYMBOL_LIST_MAX_CODE]; /* there are no functions elsewhere */
	size_t n_code;
	struct symbol *v; /* owned */
	size_t n, cap;
	uint64_t name_bytes; /* looked at so far */
};

/* The strings in a section. */
struct symbol_strings {
	const char *data;
	size_t len; /* up to the last NUL, with it */
};

/*
 * Begin the list of @elf's symbols. Returns 0 or -ENOEXEC. All that is added refers to the data of
 * the files it came from, which must stay open meanwhile.
 */
int symbol_list_init(struct symbol_list *list, Elf *elf);
void symbol_list_deinit(struct symbol_list *list);

/* These add symbols, as far as limits allow. They return 0, also if there are none, or -ENOMEM. */

/* From the first section of @type, SHT_SYMTAB or SHT_DYNSYM. */
int symbol_list_add_table(struct symbol_list *list, Elf *elf, uint32_t type);
/* From .eh_frame_hdr. */
int symbol_list_add_fdes(struct symbol_list *list, Elf *elf);
/* From the sections .plt*; IFUNCs have the names that are in the list, which must be sorted. */
int symbol_list_add_plt(struct symbol_list *list, Elf *elf);

/*
 * Add one that starts at @start; @size 0: not known. @rank is for those of one source. Outside of
 * code it is left out.
 */
int symbol_list_add(struct symbol_list *list, enum symbol_source source, uint64_t start,
		    uint64_t size, const char *name, uint32_t len, uint32_t rank);

enum symbol_source symbol_source(const struct symbol *symbol);

/* Sort by start, then by rank, then by name. */
void symbol_list_sort(struct symbol_list *list);

/* The best symbol at @start in a sorted list, NULL if there is none. */
const struct symbol *symbol_list_at(const struct symbol_list *list, uint64_t start);

/* The range of code that @addr is in, NULL if it is in none. */
const struct symbol_range *symbol_list_code(const struct symbol_list *list, uint64_t addr);

/* The contents of @scn, NULL if it is empty or too large. Sets @shdr in any case. */
Elf_Data *symbol_section_data(Elf_Scn *scn, GElf_Shdr *shdr);
struct symbol_strings symbol_section_strings(Elf *elf, size_t index);
const char *symbol_string(const struct symbol_strings *strings, size_t offset);

/*
 * How many bytes of @name, a symbol's, are its name; 0 once all names that were asked about are
 * past the limit.
 */
uint32_t symbol_name_len(struct symbol_list *list, const char *name);

/* The names of sections. */
struct symbol_strings symbol_section_names(Elf *elf);

/* The next section after @scn, NULL for the first; only so many of them. */
Elf_Scn *symbol_next_section(Elf *elf, Elf_Scn *scn);

#endif
