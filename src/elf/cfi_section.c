/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libdw does what an entry says: 250 bytes that name a register with a number of nine digits and
 * then remember the state 200 times have it ask for 400 GB (0.188). So nothing is left to it that
 * was not looked at before:
 *
 * - Entries are listed with dwarf_next_cfi(), as libdw does itself, from the section's start.
 *   .eh_frame_hdr, which could lead it to entries elsewhere, is hidden from it.
 * - Each entry's instructions are checked: they end where the entry does, name registers that there
 *   are, and remember no more than compilers do.
 * - An entry that fails, or whose CIE does, is changed into a CIE that no entry refers to. libdw
 *   runs a CIE's instructions only for an entry that it was asked about.
 */
#include "elf/cfi_section.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sorted.h"
#include "elf/cfi.h"
#include "elf/elf_common.h"

#define MAX_REGISTER   256 /* x86_64 has 130 numbers, arm64 128 */
#define MAX_REMEMBERED 16  /* compilers need 2 */
#define MAX_ALIGN      64  /* of code and data */

/* The header of entries (CIE). */
struct header {
	uint64_t offset;  /* in the section; what its entries refer to it by */
	uint8_t encoding; /* DW_EH_PE_*, of addresses */
	bool has_size;	  /* entries give the size of their augmentation data */
	bool broken;
};

struct headers {
	struct header *v;
	size_t n, cap;
};

/* ---- what is in an entry ---- */

/* The bytes from p on, of which none at end or beyond may be read. */
struct bytes {
	const uint8_t *p, *end;
	bool failed;
};

static uint64_t left(const struct bytes *b)
{
	return (uint64_t)(b->end - b->p);
}

static void skip(struct bytes *b, uint64_t n)
{
	if (n > left(b)) {
		b->failed = true;
		n = left(b);
	}
	b->p += n;
}

/* LEB128; signed numbers are only skipped, so their value is of no interest. */
static uint64_t read_leb(struct bytes *b)
{
	uint64_t value = 0;
	unsigned int shift;

	for (shift = 0; b->p < b->end && shift < 64; shift += 7) {
		uint8_t byte = *b->p++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	b->failed = true;
	return 0;
}

/* A number in the form @encoding, without what it is relative to. */
static uint64_t read_number(struct bytes *b, uint8_t encoding)
{
	static const uint8_t sizes[16] = {
		[DW_EH_PE_absptr] = 8, [DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4,
		[DW_EH_PE_udata8] = 8, [DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4,
		[DW_EH_PE_sdata8] = 8,
	};
	const uint8_t *at = b->p;
	uint64_t value = 0;
	size_t size = sizes[encoding & 0xf];

	if (!size)
		b->failed = true;
	skip(b, size);
	if (b->failed)
		return 0;
	memcpy(&value, at, size); /* all known machines are little-endian */
	if (encoding & DW_EH_PE_signed && size < 8 && value >> (8 * size - 1))
		value |= ~0ull << (8 * size);
	return value;
}

/*
 * What follows an instruction that has its number in the whole byte: r a register, n another
 * number, b a block, 1 2 4 bytes; "x" and none: not to be left to libdw, or not known to it.
 */
static const char *const operands_of[0x40] = {
	[DW_CFA_nop] = "",
	[DW_CFA_set_loc] = "x", /* of no compiler for these machines; libdw would go backwards */
	[DW_CFA_advance_loc1] = "1",
	[DW_CFA_advance_loc2] = "2",
	[DW_CFA_advance_loc4] = "4",
	[DW_CFA_offset_extended] = "rn",
	[DW_CFA_restore_extended] = "r",
	[DW_CFA_undefined] = "r",
	[DW_CFA_same_value] = "r",
	[DW_CFA_register] = "rr",
	[DW_CFA_remember_state] = "",
	[DW_CFA_restore_state] = "",
	[DW_CFA_def_cfa] = "rn",
	[DW_CFA_def_cfa_register] = "r",
	[DW_CFA_def_cfa_offset] = "n",
	[DW_CFA_def_cfa_expression] = "b",
	[DW_CFA_expression] = "rb",
	[DW_CFA_offset_extended_sf] = "rn",
	[DW_CFA_def_cfa_sf] = "rn",
	[DW_CFA_def_cfa_offset_sf] = "n",
	[DW_CFA_val_offset] = "rn",
	[DW_CFA_val_offset_sf] = "rn",
	[DW_CFA_val_expression] = "rb",
	[DW_CFA_GNU_window_save] = "", /* arm64: DW_CFA_AARCH64_negate_ra_state */
	[DW_CFA_GNU_args_size] = "n",
	[DW_CFA_GNU_negative_offset_extended] = "rn",
};

static void skip_operand(struct bytes *b, char kind)
{
	switch (kind) {
	case 'r':
		if (read_leb(b) >= MAX_REGISTER)
			b->failed = true;
		return;
	case 'n':
		read_leb(b);
		return;
	case 'b':
		skip(b, read_leb(b));
		return;
	case '1':
	case '2':
	case '4':
		skip(b, (uint64_t)(kind - '0'));
		return;
	default:
		b->failed = true;
	}
}

/* Whether libdw may run the instructions at @b. */
static bool instructions_ok(struct bytes b)
{
	unsigned int remembered = 0;
	const char *operands;
	uint8_t opcode;

	while (b.p < b.end && !b.failed) {
		opcode = *b.p++;
		switch (opcode & 0xc0) {
		case DW_CFA_advance_loc:
		case DW_CFA_restore:
			continue;
		case DW_CFA_offset:
			skip_operand(&b, 'n');
			continue;
		}
		remembered += opcode == DW_CFA_remember_state;
		remembered -= opcode == DW_CFA_restore_state && remembered;
		operands = operands_of[opcode];
		if (!operands || remembered > MAX_REMEMBERED)
			return false;
		for (; *operands; operands++)
			skip_operand(&b, *operands);
	}
	return !b.failed;
}

/* ---- headers ---- */

/* From the augmentation: how addresses are written. Other parts of it say nothing of interest. */
static bool read_augmentation(const Dwarf_CIE *cie, struct header *h)
{
	struct bytes b = { .p = cie->augmentation_data,
			   .end = cie->augmentation_data + cie->augmentation_data_size };
	const char *c = cie->augmentation;

	h->encoding = DW_EH_PE_absptr;
	h->has_size = *c == 'z';
	if (!h->has_size)
		return !*c;
	for (c++; *c && !b.failed; c++) {
		uint8_t encoding = b.p < b.end ? *b.p : 0;

		switch (*c) {
		case 'R':
			h->encoding = encoding;
			skip(&b, 1);
			break;
		case 'L':
			skip(&b, 1);
			break;
		case 'P':
			skip(&b, 1);
			read_number(&b, encoding);
			break;
		case 'S':
		case 'B': /* arm64: signed with the other key */
		case 'G': /* arm64: the stack is tagged */
			break;
		default:
			return false;
		}
	}
	/* Absolute, or relative to where it stands. */
	return !b.failed && ((h->encoding & 0xf0) == 0 || (h->encoding & 0xf0) == DW_EH_PE_pcrel);
}

static int add_header(struct headers *headers, uint64_t offset, const Dwarf_CIE *cie)
{
	struct bytes instructions = { .p = cie->initial_instructions,
				      .end = cie->initial_instructions_end };
	struct header *h;

	if (headers->n == CFI_MAX_ENTRIES)
		return -E2BIG;
	if (array_reserve(headers->v, headers->cap, headers->n + 1))
		return -ENOMEM;
	h = &headers->v[headers->n++];
	*h = (struct header) { .offset = offset };
	h->broken = !read_augmentation(cie, h) || !cie->code_alignment_factor ||
		    cie->code_alignment_factor > MAX_ALIGN ||
		    cie->data_alignment_factor > MAX_ALIGN ||
		    cie->data_alignment_factor < -MAX_ALIGN ||
		    cie->return_address_register >= MAX_REGISTER || !instructions_ok(instructions);
	return 0;
}

/* Headers are listed by their offsets. */
static const struct header *find_header(const struct headers *headers, uint64_t offset)
{
	const size_t i = sorted_below(headers->v, headers->n, offset, offset);

	return i < headers->n && headers->v[i].offset == offset ? &headers->v[i] : NULL;
}

/* ---- entries ---- */

/*
 * Read what @fde is about. Returns whether that can be read; extent->broken if nothing else of it
 * can be.
 */
static bool read_entry(const struct cfi_section *s, const struct header *h, const Dwarf_FDE *fde,
		       struct cfi_extent *extent)
{
	struct bytes b = { .p = fde->start, .end = fde->end };
	uint64_t start, length;

	start = read_number(&b, h->encoding);
	if ((h->encoding & 0x70) == DW_EH_PE_pcrel)
		start += s->vaddr + (uint64_t)(fde->start - (uint8_t *)s->data->d_buf);
	length = read_number(&b, h->encoding & 0xf);
	if (b.failed || !length || start + length < start)
		return false;
	*extent = (struct cfi_extent) { .start = start, .end = start + length };
	if (h->has_size)
		skip(&b, read_leb(&b));
	extent->broken = b.failed || h->broken || !instructions_ok(b);
	return true;
}

/* Let the entry at @offset be a CIE that no entry refers to. */
static void disable(const struct cfi_section *s, uint64_t offset)
{
	uint8_t *at = (uint8_t *)s->data->d_buf + offset;
	uint32_t length;
	size_t size = 4;

	memcpy(&length, at, 4);
	at += 4;
	if (length == 0xffffffff) {
		size = 8;
		at += 8;
	}
	memset(at, s->is_eh ? 0 : 0xff, size);
}

struct entry_cursor {
	uint64_t offset; /* of entry */
	uint64_t next;
	Dwarf_CFI_Entry entry;
};

/* The next entry that can be read at all; what libdw skips is skipped. */
static bool next_entry(const struct cfi_section *s, struct entry_cursor *c)
{
	Dwarf_Off next;
	int r;

	do {
		c->offset = next = c->next;
		r = dwarf_next_cfi(s->ident, s->data, s->is_eh, c->offset, &next, &c->entry);
		if (r > 0 || next <= c->offset)
			return false;
		c->next = next;
	} while (r);
	return true;
}

static int read_headers(const struct cfi_section *s, struct headers *headers)
{
	struct entry_cursor c = { 0 };
	int r = 0;

	while (!r && next_entry(s, &c))
		if (dwarf_cfi_cie_p(&c.entry))
			r = add_header(headers, c.offset, &c.entry.cie);
	return r;
}

static int read_entries(const struct cfi_section *s, const struct headers *headers,
			struct cfi_extent **ret, size_t *n)
{
	_cleanup_free_ struct cfi_extent *v = NULL;
	struct entry_cursor c = { 0 };
	size_t cap = 0, used = 0;

	while (next_entry(s, &c)) {
		struct cfi_extent extent = { .broken = true };
		const struct header *h;

		if (dwarf_cfi_cie_p(&c.entry))
			continue;
		h = find_header(headers, c.entry.fde.CIE_pointer);
		if (h && read_entry(s, h, &c.entry.fde, &extent)) {
			if (used == CFI_MAX_ENTRIES)
				return -E2BIG;
			if (array_reserve(v, cap, used + 1))
				return -ENOMEM;
			v[used++] = extent;
		}
		if (extent.broken)
			disable(s, c.offset);
	}
	*ret = take_ptr(v);
	*n = used;
	return 0;
}

/* ---- the section ---- */

/* What libdw could take for, or would uncompress besides, the section of the kind @is_eh. */
static bool is_rival(const char *name, bool is_eh)
{
	if (is_eh)
		return !strcmp(name, ".eh_frame") || !strcmp(name, ".eh_frame_hdr");
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8) ||
	       !strcmp(name, ".gnu_debugaltlink");
}

/* Find the section and hide the others from libdw, in memory only. */
static int select_section(Elf *elf, bool is_eh, Elf_Scn **ret, GElf_Shdr *ret_shdr)
{
	const char *section = is_eh ? ".eh_frame" : ".debug_frame";
	Elf_Scn *scn = NULL, *found = NULL;
	const char *name;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn))) {
		name = elf_section_name(elf, scn, &shdr);
		if (!name || shdr.sh_type == SHT_NOBITS)
			continue;
		if (!found && !strcmp(name, section)) {
			found = scn;
			*ret_shdr = shdr;
		} else if (is_rival(name, is_eh)) {
			shdr.sh_type = SHT_NOBITS;
			gelf_update_shdr(scn, &shdr);
		}
	}
	*ret = found;
	return found ? 0 : -ENOENT;
}

static bool is_too_large(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	GElf_Chdr chdr;

	return shdr->sh_size > CFI_MAX_BYTES ||
	       (gelf_getchdr(scn, &chdr) && chdr.ch_size > CFI_MAX_BYTES);
}

/* dwarf_begin_elf() uncompresses the section, so only then there is its data. */
static int get_data(Elf *elf, struct cfi_section *s)
{
	GElf_Shdr shdr;
	Elf_Scn *scn;
	int r;

	r = select_section(elf, s->is_eh, &scn, &shdr);
	if (r)
		return r;
	if (!shdr.sh_size)
		return -ENOENT;
	if (is_too_large(scn, &shdr))
		return -E2BIG;
	if (s->is_eh) {
		s->vaddr = shdr.sh_addr;
	} else {
		s->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		if (!s->dwarf)
			return -EBADMSG;
	}
	s->data = elf_rawdata(scn, NULL);
	return s->data && s->data->d_buf ? 0 : -EBADMSG;
}

static int list_entries(const struct cfi_section *s, struct cfi_extent **extents, size_t *n)
{
	struct headers headers = { 0 };
	int r;

	r = read_headers(s, &headers);
	if (!r)
		r = read_entries(s, &headers, extents, n);
	free(headers.v);
	return r;
}

static int open_kind(Elf *elf, bool is_eh, struct cfi_section *ret, struct cfi_extent **extents,
		     size_t *n)
{
	_cleanup_free_ struct cfi_extent *v = NULL;
	struct cfi_section s = { .elf = elf, .is_eh = is_eh };
	GElf_Ehdr ehdr;
	size_t count = 0;
	int r;

	if (!gelf_getehdr(elf, &ehdr))
		return -ENOEXEC;
	s.machine = ehdr.e_machine;
	memcpy(s.ident, ehdr.e_ident, EI_NIDENT);
	r = get_data(elf, &s);
	if (!r)
		r = list_entries(&s, &v, &count);
	if (!r && !count)
		r = -ENOENT;
	if (!r) {
		s.cfi = is_eh ? dwarf_getcfi_elf(elf) : dwarf_getcfi(s.dwarf);
		r = s.cfi ? 0 : -EBADMSG;
	}
	if (r) {
		cfi_section_close(&s);
		return r;
	}
	*ret = s;
	*extents = take_ptr(v);
	*n = count;
	return 0;
}

int cfi_section_open(Elf *elf, struct cfi_section *ret, struct cfi_extent **extents, size_t *n)
{
	int r;

	r = open_kind(elf, true, ret, extents, n);
	if (r == -ENOENT)
		r = open_kind(elf, false, ret, extents, n);
	return r;
}

void cfi_section_close(struct cfi_section *section)
{
	if (section->dwarf)
		dwarf_end(section->dwarf);
	else if (section->cfi)
		dwarf_cfi_end(section->cfi);
	*section = (struct cfi_section) { 0 };
}
