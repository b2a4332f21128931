/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which unit has an address is found in a table of the units' ranges, made from the units
 * themselves: .debug_aranges is not there always (clang) or not complete. A unit's functions are
 * put into such a table, too, when the unit is first looked into; from the function on, the DIEs
 * that have the address are followed downwards. libdw reads a unit's table of lines once, when
 * first asked, and keeps it.
 *
 * One byte of such a table may stand for a line, which takes libdw 50 bytes of memory: tables are
 * limited in size. What libdw does else for one step is linear, so that looking at the clock
 * between steps limits the time.
 */
#include "elf/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sorted.h"
#include "elf/debug_file.h"
#include "elf/debug_info.h"

#define MAX_SCOPES    16 /* namespaces and types around a function */
#define MAX_OVERLAP   16 /* ranges that start between an address and the start of its own */
#define STEPS_A_LOOK  8	 /* at the clock; one may read all ranges there are */
#define FIRST_ADDRESS 1	 /* linkers put what they drop to address 0 */

/* A part of a unit or of a function. */
struct line_range {
	uint64_t start, end;
	uint32_t index; /* of the unit or function */
};

struct ranges {
	struct line_range *v;
	size_t n, cap;
};

struct line_unit {
	Dwarf_Die die;
	bool indexed;	      /* its functions are known */
	bool measured;	      /* has_lines is */
	bool has_lines;	      /* its table of lines may be read */
	struct ranges ranges; /* of functions */
	Dwarf_Die *functions;
	size_t n, cap;
};

struct elf_lines {
	struct debug_info info, shared;
	Elf_Data *tables; /* .debug_line; libelf's, NULL if none */
	struct line_unit *units;
	size_t n_units, cap_units;
	struct ranges ranges; /* of units */
	size_t n_ranges;      /* of units and functions */
	uint64_t table_bytes; /* of tables of lines that may be read so far */
	uint64_t spent;	      /* ns of CPU time */
	uint64_t deadline;    /* ns of this thread's CPU time, for what goes on */
	uint32_t look;	      /* steps until the clock is read */
};

/* ---- time ---- */

static void start_clock(struct elf_lines *lines)
{
	lines->look = STEPS_A_LOOK;
	lines->deadline = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ELF_LINES_MAX_NS;
}

static void stop_clock(struct elf_lines *lines)
{
	uint64_t start = lines->deadline - ELF_LINES_MAX_NS;

	lines->spent += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static bool too_late(struct elf_lines *lines)
{
	if (lines->look--)
		return false;
	lines->look = STEPS_A_LOOK;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) > lines->deadline;
}

/* ---- ranges ---- */

/* Add those of @die, which become the ranges of @index. */
static int add_ranges(struct elf_lines *lines, struct ranges *ranges, Dwarf_Die *die,
		      uint32_t index)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (too_late(lines))
			return -ETIME;
		if (start < FIRST_ADDRESS || start >= end)
			continue;
		if (lines->n_ranges == ELF_LINES_MAX_RANGES)
			return -E2BIG;
		if (array_reserve(ranges->v, ranges->cap, ranges->n + 1))
			return -ENOMEM;
		ranges->v[ranges->n++] = (struct line_range) { start, end, index };
		lines->n_ranges++;
	}
	return 0;
}

/* find_range() takes the last one: the shortest, and of equal ones what the file has first. */
static int compare_ranges(const void *va, const void *vb)
{
	const struct line_range *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->index > b->index ? -1 : a->index < b->index;
}

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->v, ranges->n, sizeof(*ranges->v), compare_ranges);
}

static const struct line_range *find_range(const struct ranges *ranges, uint64_t addr)
{
	const size_t n = sorted_up_to(ranges->v, ranges->n, start, addr);
	size_t i;

	for (i = 0; i < n && i < MAX_OVERLAP; i++)
		if (addr < ranges->v[n - 1 - i].end)
			return &ranges->v[n - 1 - i];
	return NULL;
}

/* ---- functions of a unit ---- */

static int add_function(struct elf_lines *lines, struct line_unit *unit, Dwarf_Die *die)
{
	size_t before = unit->ranges.n;
	int r;

	r = add_ranges(lines, &unit->ranges, die, (uint32_t)unit->n);
	if (r || unit->ranges.n == before)
		return r;
	if (array_reserve(unit->functions, unit->cap, unit->n + 1)) {
		unit->ranges.n = before;
		return -ENOMEM;
	}
	unit->functions[unit->n++] = *die;
	return 0;
}

static bool may_have_functions(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	default:
		return false;
	}
}

/* Those that are children of @scope, or of namespaces and types in it. */
static int add_functions(struct elf_lines *lines, struct line_unit *unit, Dwarf_Die *scope,
			 unsigned int depth)
{
	Dwarf_Die die;
	int next, r = 0;

	for (next = dwarf_child(scope, &die); !next && !r; next = dwarf_siblingof(&die, &die)) {
		if (too_late(lines))
			return -ETIME;
		if (dwarf_tag(&die) == DW_TAG_subprogram)
			r = add_function(lines, unit, &die);
		else if (depth < MAX_SCOPES && may_have_functions(&die))
			r = add_functions(lines, unit, &die, depth + 1);
	}
	return r;
}

/* What was found before an error stands, and is all there will be. */
static void index_functions(struct elf_lines *lines, struct line_unit *unit)
{
	if (unit->indexed)
		return;
	unit->indexed = true;
	add_functions(lines, unit, &unit->die, 0);
	sort_ranges(&unit->ranges);
}

/* ---- tables of lines ---- */

/* Bytes of the table that @unit has, UINT64_MAX if it has none. */
static uint64_t table_size(const struct elf_lines *lines, struct line_unit *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	uint64_t long_size;
	uint32_t size;

	if (!lines->tables ||
	    dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attr), &offset) ||
	    offset > lines->tables->d_size || lines->tables->d_size - offset < 12)
		return UINT64_MAX;
	memcpy(&size, (char *)lines->tables->d_buf + offset, sizeof(size));
	memcpy(&long_size, (char *)lines->tables->d_buf + offset + 4, sizeof(long_size));
	return size == UINT32_MAX ? long_size : size;
}

static bool has_lines(struct elf_lines *lines, struct line_unit *unit)
{
	uint64_t size;

	if (!unit->measured) {
		unit->measured = true;
		size = table_size(lines, unit);
		unit->has_lines = size <= ELF_LINES_MAX_TABLE &&
				  size <= ELF_LINES_MAX_TABLES - lines->table_bytes;
		if (unit->has_lines)
			lines->table_bytes += size;
	}
	return unit->has_lines;
}

static void set_line(struct elf_lines *lines, struct line_unit *unit, uint64_t addr,
		     struct elf_line *out)
{
	Dwarf_Line *line;
	const char *file;
	int number;

	line = has_lines(lines, unit) ? dwarf_getsrc_die(&unit->die, addr) : NULL;
	if (!line)
		return;
	file = dwarf_linesrc(line, NULL, NULL);
	if (file)
		out->file = file;
	if (!dwarf_lineno(line, &number) && number > 0)
		out->line = (uint32_t)number;
}

static bool number_of(Dwarf_Die *die, unsigned int name, Dwarf_Word *ret)
{
	Dwarf_Attribute attr;

	return !dwarf_formudata(dwarf_attr(die, name, &attr), ret);
}

/* Where @inlined, an inlined function, was called. */
static void set_call(struct elf_lines *lines, struct line_unit *unit, Dwarf_Die *inlined,
		     struct elf_line *out)
{
	Dwarf_Files *files;
	const char *file;
	Dwarf_Word n;
	size_t n_files;

	if (number_of(inlined, DW_AT_call_line, &n) && n <= UINT32_MAX)
		out->line = (uint32_t)n;
	if (!number_of(inlined, DW_AT_call_file, &n) || !has_lines(lines, unit) ||
	    dwarf_getsrcfiles(&unit->die, &files, &n_files) || n >= n_files)
		return;
	file = dwarf_filesrc(files, n, NULL, NULL);
	if (file)
		out->file = file;
}

/* ---- an address ---- */

static const char *function_name(Dwarf_Die *die)
{
	static const unsigned int attributes[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
						   DW_AT_name };
	Dwarf_Attribute attr;
	const char *name;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(attributes); i++) {
		name = dwarf_formstring(dwarf_attr_integrate(die, attributes[i], &attr));
		if (name)
			return name;
	}
	return "";
}

/* Make @die its child that has @addr, if that is a block or an inlined function. */
static bool step_into(struct elf_lines *lines, uint64_t addr, Dwarf_Die *die)
{
	Dwarf_Die child;
	int next;

	for (next = dwarf_child(die, &child); !next; next = dwarf_siblingof(&child, &child)) {
		if (too_late(lines))
			return false;
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(&child, addr) != 1)
				continue;
			*die = child;
			return true;
		}
	}
	return false;
}

/* The function that has @addr and, each within the one before, those inlined into it. */
static size_t find_functions(struct elf_lines *lines, struct line_unit *unit, uint64_t addr,
			     Dwarf_Die *chain)
{
	const struct line_range *range = find_range(&unit->ranges, addr);
	size_t n = 1, steps;
	Dwarf_Die die;

	if (!range)
		return 0;
	chain[0] = die = unit->functions[range->index];
	for (steps = 1; steps < ELF_LINES_MAX_DEPTH && step_into(lines, addr, &die); steps++)
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			chain[n++] = die;
	return n;
}

static size_t find_in_unit(struct elf_lines *lines, struct line_unit *unit, uint64_t addr,
			   struct elf_line *out, size_t max)
{
	Dwarf_Die chain[ELF_LINES_MAX_DEPTH];
	size_t depth, n, i;

	index_functions(lines, unit);
	depth = find_functions(lines, unit, addr, chain);
	n = depth ? depth : 1;
	if (n > max)
		n = max;
	for (i = 0; i < n; i++) {
		out[i] = (struct elf_line) { .function = "", .file = "" };
		if (depth)
			out[i].function = function_name(&chain[depth - 1 - i]);
		if (i)
			set_call(lines, unit, &chain[depth - i], &out[i]);
		else
			set_line(lines, unit, addr, &out[i]);
	}
	return n;
}

size_t elf_lines_find(struct elf_lines *lines, uint64_t addr, struct elf_line *out, size_t max)
{
	const struct line_range *range = find_range(&lines->ranges, addr);
	size_t n;

	if (!range || !max || lines->spent > ELF_LINES_MAX_TOTAL_NS)
		return 0;
	start_clock(lines);
	n = find_in_unit(lines, &lines->units[range->index], addr, out, max);
	stop_clock(lines);
	return n == 1 && !out[0].function[0] && !out[0].line ? 0 : n;
}

/* ---- files ---- */

static int read_units(struct elf_lines *lines)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int next, r;

	while (!(next = dwarf_get_units(lines->info.dwarf, cu, &cu, NULL, NULL, &die, NULL))) {
		if (dwarf_tag(&die) != DW_TAG_compile_unit)
			continue;
		if (array_reserve(lines->units, lines->cap_units, lines->n_units + 1))
			return -ENOMEM;
		lines->units[lines->n_units].die = die;
		r = add_ranges(lines, &lines->ranges, &die, (uint32_t)lines->n_units++);
		if (r)
			return r;
	}
	sort_ranges(&lines->ranges);
	return lines->ranges.n ? 0 : next < 0 ? -EBADMSG : -ENOENT;
}

static int open_info(struct elf_lines *lines, int fd, const char *real,
		     const struct debug_roots *roots)
{
	static const char *const needed[] = {
		".debug_info",	".debug_abbrev",   ".debug_str",	 ".debug_line",
		".debug_addr",	".debug_line_str", ".debug_str_offsets", ".debug_ranges",
		".debug_types", ".debug_rnglists",
	};
	_cleanup_close_ int shared = -1;
	int r;

	r = debug_info_open(fd, needed, ARRAY_SIZE(needed), &lines->info);
	if (r)
		return r;
	if (roots)
		shared = debug_file_open_shared(fd, real, roots);
	if (shared >= 0 && !debug_info_open(shared, needed, ARRAY_SIZE(needed), &lines->shared))
		dwarf_setalt(lines->info.dwarf, lines->shared.dwarf);
	lines->tables = debug_info_section(&lines->info, ".debug_line");
	start_clock(lines);
	r = read_units(lines);
	stop_clock(lines);
	return r;
}

/* Of the file itself or, if it has none, of its debug file. */
static int open_any(struct elf_lines *lines, int fd, const char *path,
		    const struct debug_roots *roots)
{
	char where[PATH_MAX], real[PATH_MAX];
	_cleanup_close_ int debug = -1;
	int r;

	r = open_info(lines, fd, path, roots);
	if (r != -ENOENT || lines->info.elf || !roots)
		return r;
	debug = debug_file_open(fd, path, roots, where, real, sizeof(where));
	return debug < 0 ? -ENOENT : open_info(lines, debug, real, roots);
}

int elf_lines_open(int fd, const char *path, const struct debug_roots *roots,
		   struct elf_lines **ret)
{
	struct elf_lines *lines = calloc(1, sizeof(*lines));
	int r;

	if (!lines)
		return -ENOMEM;
	r = open_any(lines, fd, path, roots);
	if (r)
		elf_lines_close(lines);
	else
		*ret = lines;
	return r;
}

void elf_lines_close(struct elf_lines *lines)
{
	size_t i;

	if (!lines)
		return;
	for (i = 0; i < lines->n_units; i++) {
		free(lines->units[i].functions);
		free(lines->units[i].ranges.v);
	}
	free(lines->units);
	free(lines->ranges.v);
	debug_info_close(&lines->info);
	debug_info_close(&lines->shared);
	free(lines);
}
