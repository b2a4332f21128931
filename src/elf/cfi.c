/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file's entries are sorted, libdw is asked for one row after the other of each, and what it
 * answers becomes a rule (cfi_rule.c). libdw starts anew for each row, at 0.2 µs: libruby takes
 * some 20 ms. Neighbours with the same rule become one row; registers other than fp, which is what
 * most rows of the section are about, make no difference here.
 */
#include "elf/cfi.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/cfi_clone.h"
#include "elf/cfi_rule.h"
#include "elf/cfi_section.h"

#define MAX_SEGMENTS 64
#define RULE_FULL    2	/* what cfi_rules_init() adds third */
#define ROWS_A_LOOK  64 /* at the clock */

/* ---- rules ---- */

int cfi_rules_init(struct cfi_rules *rules)
{
	const struct rbpf_cfi_rule first[] = {
		[RBPF_CFI_RULE_NONE] = cfi_rule_unknown(RBPF_CFI_WHY_NONE),
		[RBPF_CFI_RULE_RECORD] = { .cfa = RBPF_CFI_CFA_FP,
					   .ra = RBPF_CFI_RA_CFA,
					   .fp = RBPF_CFI_FP_CFA,
					   .cfa_off = 16,
					   .ra_off = -8,
					   .fp_off = -16 },
		[RULE_FULL] = cfi_rule_unknown(RBPF_CFI_WHY_FULL),
	};
	uint16_t id;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		if (cfi_rules_add(rules, &first[i], &id)) {
			cfi_rules_deinit(rules);
			return -ENOMEM;
		}
	}
	return 0;
}

void cfi_rules_deinit(struct cfi_rules *rules)
{
	intern_deinit(&rules->in);
}

int cfi_rules_add(struct cfi_rules *rules, const struct rbpf_cfi_rule *rule, uint16_t *ret)
{
	uint32_t id = RULE_FULL;

	if (rules->in.count < RBPF_CFI_MAX_RULES) {
		if (intern_add(&rules->in, rule, sizeof(*rule), &id, NULL))
			return -ENOMEM;
	} else if (intern_find(&rules->in, rule, sizeof(*rule), &id)) {
		id = RULE_FULL;
	}
	*ret = (uint16_t)id;
	return 0;
}

const struct rbpf_cfi_rule *cfi_rules_get(const struct cfi_rules *rules, uint32_t i)
{
	return intern_get(&rules->in, i, NULL);
}

uint32_t cfi_rules_count(const struct cfi_rules *rules)
{
	return (uint32_t)rules->in.count;
}

/* ---- rows ---- */

struct code {
	uint64_t start, end;
};

struct builder {
	struct cfi_section section;
	struct cfi_rules *rules;
	struct cfi_table *table;

	struct code code[MAX_SEGMENTS]; /* the file's executable segments */
	size_t n_code;

	uint32_t *rows;
	size_t n, cap;
	uint32_t *index; /* of table->pages + 1 */
	uint32_t next_page;
	uint16_t rule;	   /* of the last row */
	uint64_t end;	   /* of what was put so far, an address of the file */
	uint64_t known;	   /* bytes that rows were put for */
	uint64_t deadline; /* ns of this thread's CPU time: a busy machine loses no table */
	uint32_t look;	   /* rows until the clock is read */
};

static int push_row(struct builder *b, uint64_t addr, uint16_t rule)
{
	if (b->n == CFI_MAX_ROWS)
		return -E2BIG;
	if (array_reserve(b->rows, b->cap, b->n + 1))
		return -ENOMEM;
	b->rows[b->n++] = (uint32_t)rule << 16 | (uint32_t)(addr & RBPF_CFI_PAGE_MASK);
	return 0;
}

/* Begin the pages up to the one before @page. Each begins with a row: the last one's rule. */
static int fill_pages(struct builder *b, uint32_t page)
{
	int r;

	for (; b->next_page < page; b->next_page++) {
		b->index[b->next_page] = (uint32_t)b->n;
		r = push_row(b, 0, b->rule);
		if (r)
			return r;
	}
	return 0;
}

/* From @addr on, an address of the file beyond all before, @rule holds. */
static int put_row(struct builder *b, uint64_t addr, uint16_t rule)
{
	uint64_t at = addr - b->table->base;
	uint32_t page = (uint32_t)(at >> RBPF_CFI_PAGE_SHIFT);
	int r;

	if (rule == b->rule)
		return 0;
	r = fill_pages(b, at & RBPF_CFI_PAGE_MASK ? page + 1 : page);
	if (r)
		return r;
	if (b->next_page == page)
		b->index[b->next_page++] = (uint32_t)b->n;
	b->rule = rule;
	return push_row(b, at, rule);
}

/* No entry is for the code from b->end up to @end; @after is what comes then. */
static int put_gap(struct builder *b, uint64_t end, const struct rbpf_cfi_rule *after)
{
	const struct rbpf_cfi_rule *before = cfi_rules_get(b->rules, b->rule);

	if (!cfi_clone_continues(b->section.elf, b->section.machine, b->end, end, before, after))
		return put_row(b, b->end, RBPF_CFI_RULE_NONE);
	b->table->stats.covered += end - b->end;
	b->known += end - b->end;
	return 0;
}

/* [@start, @end), with nothing before it but what was put, has @rule. */
static int put_range(struct builder *b, uint64_t start, uint64_t end,
		     const struct rbpf_cfi_rule *rule)
{
	struct cfi_stats *stats = &b->table->stats;
	uint16_t id;
	int r;

	r = cfi_rules_add(b->rules, rule, &id);
	if (!r && start > b->end)
		r = put_gap(b, start, rule);
	if (!r)
		r = put_row(b, start, id);
	if (r)
		return r;
	rule = cfi_rules_get(b->rules, id);
	if (rule->why) {
		stats->unknown[rule->why]++;
		stats->uncovered[rule->why] += end - start;
	} else {
		stats->covered += end - start;
	}
	b->known += end - start;
	b->end = end;
	return 0;
}

static int put_malformed(struct builder *b, uint64_t start, uint64_t end)
{
	const struct rbpf_cfi_rule rule = cfi_rule_unknown(RBPF_CFI_WHY_MALFORMED);

	return put_range(b, start, end, &rule);
}

static bool too_late(struct builder *b)
{
	if (b->look--)
		return false;
	b->look = ROWS_A_LOOK;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) > b->deadline;
}

/* The row for @start, which ends at *@end or earlier: then *@end is set to that. */
static int put_next(struct builder *b, uint64_t start, uint64_t *end)
{
	_cleanup_free_ Dwarf_Frame *frame = NULL;
	Dwarf_Addr row_start, row_end;
	struct rbpf_cfi_rule rule;

	if (dwarf_cfi_addrframe(b->section.cfi, start, &frame)) {
		frame = NULL;
		return put_malformed(b, start, *end);
	}
	if (dwarf_frame_info(frame, &row_start, &row_end, NULL) < 0 || row_start > start ||
	    row_end <= start)
		return put_malformed(b, start, *end);
	if (row_end < *end)
		*end = row_end;
	rule = cfi_rule_of(frame, b->section.machine);
	return put_range(b, start, *end, &rule);
}

static int put_extent(struct builder *b, uint64_t start, uint64_t end, bool broken)
{
	uint64_t next;
	int r = 0;

	if (broken)
		return put_malformed(b, start, end);
	for (; !r && start < end; start = next) {
		if (too_late(b))
			return -ETIME;
		next = end;
		r = put_next(b, start, &next);
	}
	return r;
}

/* Cut @extent to one segment of code and to what is not yet taken. False if nothing remains. */
static bool cut_extent(const struct builder *b, struct cfi_extent *extent, bool *outside)
{
	const struct code *code = NULL;
	size_t i;

	if (extent->start < b->end)
		extent->start = b->end;
	if (extent->start >= extent->end)
		return false;
	for (i = 0; i < b->n_code && !code; i++)
		if (extent->start >= b->code[i].start && extent->start < b->code[i].end)
			code = &b->code[i];
	if (!code) {
		*outside = true;
		return false;
	}
	if (extent->end > code->end)
		extent->end = code->end;
	return true;
}

static int compare_extents(const void *va, const void *vb)
{
	const struct cfi_extent *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static int put_extents(struct builder *b, struct cfi_extent *extents, size_t n)
{
	struct cfi_stats *stats = &b->table->stats;
	size_t i;
	int r;

	qsort(extents, n, sizeof(*extents), compare_extents);
	for (i = 0; i < n; i++) {
		bool outside = false;

		stats->entries++;
		stats->broken += extents[i].broken;
		if (!cut_extent(b, &extents[i], &outside)) {
			stats->outside += outside;
			continue;
		}
		r = put_extent(b, extents[i].start, extents[i].end, extents[i].broken);
		if (r)
			return r;
	}
	if ((b->end - b->table->base) >> RBPF_CFI_PAGE_SHIFT < b->table->pages) {
		r = put_row(b, b->end, RBPF_CFI_RULE_NONE);
		if (r)
			return r;
	}
	return fill_pages(b, b->table->pages);
}

/* ---- tables ---- */

static int read_segments(Elf *elf, struct builder *b)
{
	uint64_t lowest = UINT64_MAX, highest = 0, size = 0;
	GElf_Phdr ph;
	size_t n, i;

	if (elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (i = 0; i < n && b->n_code < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !ph.p_memsz)
			continue;
		if (ph.p_vaddr + ph.p_memsz < ph.p_vaddr)
			return -ENOEXEC;
		if (ph.p_vaddr < lowest)
			lowest = ph.p_vaddr;
		if (!(ph.p_flags & PF_X))
			continue;
		b->code[b->n_code++] = (struct code) { ph.p_vaddr, ph.p_vaddr + ph.p_memsz };
		size += ph.p_memsz;
		if (ph.p_vaddr + ph.p_memsz > highest)
			highest = ph.p_vaddr + ph.p_memsz;
	}
	if (!b->n_code)
		return -ENOENT;
	if (highest - lowest > (uint64_t)RBPF_CFI_MAX_PAGES << RBPF_CFI_PAGE_SHIFT)
		return -E2BIG;
	b->table->base = b->end = lowest;
	b->table->pages = (uint32_t)((highest - lowest + RBPF_CFI_PAGE_MASK) >>
				     RBPF_CFI_PAGE_SHIFT);
	b->table->stats.uncovered[RBPF_CFI_WHY_NONE] = size;
	return 0;
}

/* One array of the index and the rows. */
static int join(const struct builder *b, struct cfi_table *table)
{
	uint32_t n_index = table->pages + 1, i;
	uint32_t *words;

	words = malloc((n_index + b->n) * sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (i = 0; i < n_index; i++)
		words[i] = n_index + b->index[i];
	memcpy(words + n_index, b->rows, b->n * sizeof(*words));
	table->words = words;
	table->rows = (uint32_t)b->n;
	table->n_words = n_index + table->rows;
	return 0;
}

static int build(struct builder *b, struct cfi_extent *extents, size_t n)
{
	struct cfi_table *table = b->table;
	int r;

	table->machine = b->section.machine;
	b->index = calloc(table->pages + 1, sizeof(*b->index));
	if (!b->index)
		return -ENOMEM;
	b->deadline = clock_ns(CLOCK_THREAD_CPUTIME_ID) + CFI_MAX_NS;
	r = put_extents(b, extents, n);
	if (r)
		return r;
	b->index[table->pages] = (uint32_t)b->n;
	table->stats.uncovered[RBPF_CFI_WHY_NONE] -= b->known;
	return table->stats.broken == table->stats.entries ? -EBADMSG : join(b, table);
}

static bool is_known_machine(Elf *elf)
{
	GElf_Ehdr ehdr;

	return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	       ehdr.e_ident[EI_CLASS] == ELFCLASS64 && ehdr.e_ident[EI_DATA] == ELFDATA2LSB &&
	       (ehdr.e_machine == EM_X86_64 || ehdr.e_machine == EM_AARCH64);
}

static int read_elf(Elf *elf, struct cfi_rules *rules, struct cfi_table *ret)
{
	_cleanup_free_ struct cfi_extent *extents = NULL;
	struct cfi_table table = CFI_TABLE_INIT;
	struct builder b = { .rules = rules, .table = &table };
	size_t n;
	int r;

	if (!is_known_machine(elf))
		return -ENOEXEC;
	r = read_segments(elf, &b);
	if (r)
		return r;
	r = cfi_section_open(elf, &b.section, &extents, &n);
	if (r)
		return r;
	r = build(&b, extents, n);
	cfi_section_close(&b.section);
	free(b.rows);
	free(b.index);
	if (!r)
		*ret = table;
	return r;
}

/* Read, not mapped: the file may be a hostile target's, and shrink meanwhile. */
int cfi_table_read(int fd, struct cfi_rules *rules, struct cfi_table *ret)
{
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	r = read_elf(elf, rules, ret);
	elf_end(elf);
	return r;
}

int cfi_table_read_image(const void *image, size_t size, struct cfi_rules *rules,
			 struct cfi_table *ret)
{
	_cleanup_free_ char *copy = malloc(size ? size : 1);
	Elf *elf;
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, size);
	elf_version(EV_CURRENT);
	elf = elf_memory(copy, size);
	r = read_elf(elf, rules, ret);
	elf_end(elf);
	return r;
}

void cfi_table_deinit(struct cfi_table *table)
{
	free(table->words);
	*table = (struct cfi_table)CFI_TABLE_INIT;
}
