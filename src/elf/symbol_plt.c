/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stubs of the procedure linkage table have no symbols. Their order and size differ between linkers
 * and options (lazy or not, IBT, BTI; .plt, .plt.sec, .plt.got), so none is assumed: each stub is
 * read for the slot of the global offset table that it jumps through, and the relocation of that
 * slot has the name. What is taken for a stub by mistake names no such slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "elf/symbol_list.h"
#include "elf/symbols.h"

#define X86_64_STUB	16
#define X86_64_MAX_JUMP 5 /* offset of the jump in a stub: after endbr64 and bnd */
#define ARM64_MAX_STUB	24
#define ARM64_BTI_C	0xd503245fu
#define ARM64_BR_X17	0xd61f0220u

/* A slot of the global offset table, and the name of the function whose address it is to hold. */
struct got_slot {
	uint64_t addr;
	const char *name;
	uint32_t len;
};

struct slots {
	struct got_slot *v;
	size_t n, cap;
};

/* ---- slots ---- */

static int add_slot(struct slots *slots, uint64_t addr, const char *name, uint32_t len)
{
	if (!len || slots->n == ELF_SYMBOLS_MAX)
		return 0;
	if (array_reserve(slots->v, slots->cap, slots->n + 1))
		return -ENOMEM;
	slots->v[slots->n++] = (struct got_slot) { addr, name, len };
	return 0;
}

static bool is_named_slot(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static bool is_ifunc_slot(uint16_t machine, uint64_t type)
{
	return type == (machine == EM_X86_64 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE);
}

static int add_slots(struct symbol_list *list, Elf *elf, Elf_Data *relocations, uint32_t table,
		     struct slots *slots)
{
	Elf_Scn *scn = elf_getscn(elf, table);
	struct symbol_strings strings;
	const struct symbol *ifunc;
	GElf_Shdr shdr = { 0 };
	Elf_Data *symbols = scn ? symbol_section_data(scn, &shdr) : NULL;
	const char *name;
	GElf_Rela rela;
	GElf_Sym sym;
	int i, r = 0;

	strings = symbol_section_strings(elf, shdr.sh_link);
	for (i = 0; !r && gelf_getrela(relocations, i, &rela); i++) {
		uint64_t type = GELF_R_TYPE(rela.r_info);

		if (is_ifunc_slot(list->machine, type)) {
			ifunc = symbol_list_at(list, (uint64_t)rela.r_addend);
			if (ifunc)
				r = add_slot(slots, rela.r_offset, ifunc->name, ifunc->len);
		} else if (is_named_slot(list->machine, type) && symbols &&
			   gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym)) {
			name = symbol_string(&strings, sym.st_name);
			r = add_slot(slots, rela.r_offset, name, symbol_name_len(list, name));
		}
	}
	return r;
}

static int compare_slots(const void *va, const void *vb)
{
	const struct got_slot *a = va, *b = vb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int read_slots(struct symbol_list *list, Elf *elf, struct slots *slots)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	int r = 0;

	while (!r && (scn = symbol_next_section(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA)
			continue;
		data = symbol_section_data(scn, &shdr);
		if (data)
			r = add_slots(list, elf, data, shdr.sh_link, slots);
	}
	if (slots->n)
		qsort(slots->v, slots->n, sizeof(*slots->v), compare_slots);
	return r;
}

/* ---- stubs ---- */

struct stub {
	uint64_t slot;
	size_t size; /* of the stub */
};

/* [endbr64] [bnd] jmp *slot(%rip) */
static bool read_stub_x86_64(const uint8_t *p, size_t left, uint64_t addr, struct stub *stub)
{
	int32_t offset;
	size_t i;

	for (i = 0; i <= X86_64_MAX_JUMP && i + 6 <= left; i++) {
		if (p[i] != 0xff || p[i + 1] != 0x25)
			continue;
		memcpy(&offset, p + i + 2, sizeof(offset));
		stub->slot = addr + i + 6 + (uint64_t)(int64_t)offset;
		return true;
	}
	return false;
}

/* [bti c] adrp x16, slot; ldr x17, [x16, slot]; ... br x17 */
static bool read_stub_arm64(const uint8_t *p, size_t left, uint64_t addr, struct stub *stub)
{
	uint32_t words[ARM64_MAX_STUB / 4] = { 0 };
	size_t adrp, end;
	int64_t pages;

	memcpy(words, p, left < sizeof(words) ? left : sizeof(words));
	adrp = words[0] == ARM64_BTI_C;
	if ((words[adrp] & 0x9f00001f) != 0x90000010 ||
	    (words[adrp + 1] & 0xffc003ff) != 0xf9400211)
		return false;
	for (end = adrp + 2; words[end] != ARM64_BR_X17; end++)
		if (end + 1 == ARRAY_SIZE(words))
			return false;
	/* The 21 bits of the immediate, with their sign. */
	pages = (int64_t)((uint64_t)(words[adrp] >> 5 & 0x7ffff) << 45 |
			  (uint64_t)(words[adrp] >> 29 & 3) << 43) >>
		43;
	stub->slot = ((addr + 4 * adrp) & ~0xfffull) + ((uint64_t)pages << 12) +
		     (words[adrp + 1] >> 10 & 0xfff) * 8;
	stub->size = 4 * (end + 1);
	return true;
}

static int add_stubs(struct symbol_list *list, const Elf_Data *data, const GElf_Shdr *shdr,
		     const struct slots *slots)
{
	bool arm = list->machine == EM_AARCH64;
	size_t step = arm ? 4 : X86_64_STUB, at;
	const uint8_t *bytes = data->d_buf;
	int r = 0;

	if (!arm && shdr->sh_entsize == X86_64_STUB / 2)
		step = X86_64_STUB / 2;
	for (at = 0; !r && at < data->d_size; at += step) {
		size_t left = data->d_size - at;
		uint64_t addr = shdr->sh_addr + at;
		struct stub stub = { .size = left < step ? left : step };
		struct got_slot *slot, key;

		if (!(arm ? read_stub_arm64 : read_stub_x86_64)(bytes + at, left, addr, &stub))
			continue;
		key.addr = stub.slot;
		slot = bsearch(&key, slots->v, slots->n, sizeof(*slots->v), compare_slots);
		if (slot)
			r = symbol_list_add(list, SYMBOL_PLT, addr, stub.size, slot->name,
					    slot->len, 0);
	}
	return r;
}

int symbol_list_add_plt(struct symbol_list *list, Elf *elf)
{
	const struct symbol_strings names = symbol_section_names(elf);
	struct slots slots = { 0 };
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	int r;

	r = read_slots(list, elf, &slots);
	while (!r && slots.n && (scn = symbol_next_section(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) ||
		    strncmp(symbol_string(&names, shdr.sh_name), ".plt", 4))
			continue;
		data = symbol_section_data(scn, &shdr);
		if (data)
			r = add_stubs(list, data, &shdr, &slots);
	}
	free(slots.v);
	return r;
}
