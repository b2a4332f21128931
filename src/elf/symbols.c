/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All symbols are sorted by address, the best of each address is kept, and what lies within a
 * function of a better source is dropped: call frame information begins anew within functions that
 * have symbols, and hand-written assembler has labels without a size within those with one. Symbols
 * without a size end where the next function starts, and the code at the latest.
 *
 * Functions lie within others, in assembler. The one that starts last before an address is most
 * often the one; where it ended before, the one around it is found in a second, short table.
 */
#include "elf/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/sorted.h"
#include "elf/debug_file.h"
#include "elf/minidebug.h"
#include "elf/symbol_list.h"

static const char plt_suffix[] = "@plt";

/* ---- which symbols count ---- */

/* @reach: how far the functions before @symbol go, by source. */
static bool is_inside(const uint64_t *reach, const struct symbol *symbol)
{
	unsigned int source = symbol_source(symbol), i;

	for (i = 0; i < source; i++)
		if (symbol->start < reach[i])
			return true;
	return symbol->start == symbol->end && symbol->start < reach[source];
}

static void choose(struct symbol_list *list)
{
	uint64_t reach[SYMBOL_SOURCES] = { 0 };
	size_t kept = 0, i;

	for (i = 0; i < list->n; i++) {
		const struct symbol *symbol = &list->v[i];
		unsigned int source = symbol_source(symbol);

		if ((kept && list->v[kept - 1].start == symbol->start) || is_inside(reach, symbol))
			continue;
		if (symbol->end > reach[source])
			reach[source] = symbol->end;
		list->v[kept++] = *symbol;
	}
	list->n = kept;
}

static void set_ends(struct symbol_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		struct symbol *symbol = &list->v[i];

		if (symbol->end > symbol->start)
			continue;
		symbol->end = symbol_list_code(list, symbol->start)->end;
		if (i + 1 < list->n && list->v[i + 1].start < symbol->end)
			symbol->end = list->v[i + 1].start;
	}
}

/* ---- functions ---- */

static size_t name_size(const struct symbol *symbol)
{
	if (!symbol->len)
		return 0;
	return symbol->len + (symbol_source(symbol) == SYMBOL_PLT ? sizeof(plt_suffix) : 1);
}

static void copy_name(const struct symbol *symbol, char *to)
{
	memcpy(to, symbol->name, symbol->len);
	if (symbol_source(symbol) == SYMBOL_PLT)
		memcpy(to + symbol->len, plt_suffix, sizeof(plt_suffix));
	else
		to[symbol->len] = '\0';
}

static int copy_functions(const struct symbol_list *list, struct elf_symbols *s)
{
	size_t size = 1, i;
	char *to;

	for (i = 0; i < list->n; i++)
		size += name_size(&list->v[i]);
	s->functions = calloc(list->n + 1, sizeof(*s->functions));
	s->names = to = malloc(size);
	if (!s->functions || !s->names)
		return -ENOMEM;
	*to++ = '\0'; /* the name of the nameless */
	for (i = 0; i < list->n; i++) {
		const struct symbol *symbol = &list->v[i];

		s->functions[i] = (struct elf_function) { symbol->start, symbol->end, s->names };
		if (!symbol->len)
			continue;
		copy_name(symbol, to);
		s->functions[i].name = to;
		to += name_size(symbol);
	}
	s->n = list->n;
	return 0;
}

/* ---- functions around others ---- */

struct nesting {
	struct elf_symbols *symbols;
	size_t *open; /* functions that have started, each after those before it */
	size_t n;
	size_t cap_rests;
};

static int add_rest(struct nesting *nesting, uint64_t start, uint64_t end, size_t function)
{
	struct elf_symbols *s = nesting->symbols;

	if (array_reserve(s->rests, nesting->cap_rests, s->n_rests + 1))
		return -ENOMEM;
	s->rests[s->n_rests++] = (struct elf_function_rest) { start, end, function };
	return 0;
}

/* From the end of @last, the function that started last, to @until: which are around it? */
static int close_until(struct nesting *nesting, size_t last, uint64_t until)
{
	const struct elf_function *functions = nesting->symbols->functions;
	uint64_t at = functions[last].end;
	int r = 0;

	while (!r && nesting->n && at < until) {
		size_t top = nesting->open[nesting->n - 1];
		uint64_t end = functions[top].end;

		if (end <= at) {
			nesting->n--;
			continue;
		}
		if (end > until)
			end = until;
		r = add_rest(nesting, at, end, top);
		at = end;
	}
	return r;
}

static int find_rests(struct elf_symbols *s)
{
	struct nesting nesting = { .symbols = s };
	size_t i;
	int r = 0;

	nesting.open = calloc(s->n + 1, sizeof(*nesting.open));
	if (!nesting.open)
		return -ENOMEM;
	for (i = 0; !r && i < s->n; i++) {
		nesting.open[nesting.n++] = i;
		r = close_until(&nesting, i, i + 1 < s->n ? s->functions[i + 1].start : UINT64_MAX);
	}
	free(nesting.open);
	return r;
}

static int make_table(struct symbol_list *list, struct elf_symbols *ret)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	int r;

	symbol_list_sort(list);
	choose(list);
	set_ends(list);
	r = copy_functions(list, &s);
	if (!r)
		r = find_rests(&s);
	if (r)
		elf_symbols_deinit(&s);
	else
		*ret = s;
	return r;
}

/* ---- files ---- */

/* Where to look, and what the names are in until they are copied. */
struct sources {
	int fd;
	const char *path;
	const struct debug_roots *roots; /* NULL: there is no debug file */
	Elf *elf;
	int debug_fd; /* -1 if none */
	Elf *debug;
	struct buf image; /* the file in .gnu_debugdata */
	Elf *mini;
};

static void sources_close(struct sources *s)
{
	elf_end(s->mini);
	buf_deinit(&s->image);
	elf_end(s->debug);
	cleanup_close(&s->debug_fd);
	elf_end(s->elf);
}

static int add_minidebug(struct symbol_list *list, struct sources *s)
{
	const struct symbol_strings names = symbol_section_names(s->elf);
	Elf_Data *data = NULL;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (!data && (scn = symbol_next_section(s->elf, scn)))
		if (gelf_getshdr(scn, &shdr) &&
		    !strcmp(symbol_string(&names, shdr.sh_name), ".gnu_debugdata"))
			data = symbol_section_data(scn, &shdr);
	if (!data || minidebug_uncompress(data->d_buf, data->d_size, &s->image) || !s->image.len)
		return 0;
	s->mini = elf_memory(s->image.data, s->image.len);
	return s->mini ? symbol_list_add_table(list, s->mini, SHT_SYMTAB) : 0;
}

/* Read, not mapped: the file may be a hostile target's, and shrink meanwhile. */
static Elf *open_elf(int fd)
{
	elf_version(EV_CURRENT);
	return elf_begin(fd, ELF_C_READ, NULL);
}

static int add_debug_file(struct symbol_list *list, struct sources *s)
{
	char where[PATH_MAX];

	s->debug_fd = debug_file_open(s->fd, s->path, s->roots, where, NULL, sizeof(where));
	s->debug = s->debug_fd < 0 ? NULL : open_elf(s->debug_fd);
	return s->debug ? symbol_list_add_table(list, s->debug, SHT_SYMTAB) : 0;
}

/* The first that has any functions. */
static int add_symtab(struct symbol_list *list, struct sources *s)
{
	int r;

	r = symbol_list_add_table(list, s->elf, SHT_SYMTAB);
	if (!r && !list->n && s->roots)
		r = add_debug_file(list, s);
	if (!r && !list->n)
		r = add_minidebug(list, s);
	return r;
}

static int read_sources(struct sources *s, struct elf_symbols *ret)
{
	struct symbol_list list;
	int r;

	r = symbol_list_init(&list, s->elf);
	if (r)
		return r;
	r = add_symtab(&list, s);
	if (!r)
		r = symbol_list_add_table(&list, s->elf, SHT_DYNSYM);
	symbol_list_sort(&list);
	if (!r)
		r = symbol_list_add_plt(&list, s->elf);
	if (!r)
		r = symbol_list_add_fdes(&list, s->elf);
	if (!r)
		r = make_table(&list, ret);
	symbol_list_deinit(&list);
	return r;
}

int elf_symbols_read(int fd, const char *path, const struct debug_roots *roots,
		     struct elf_symbols *ret)
{
	struct sources s = {
		.fd = fd, .path = path, .roots = roots, .elf = open_elf(fd), .debug_fd = -1
	};
	int r;

	r = read_sources(&s, ret);
	sources_close(&s);
	return r;
}

int elf_symbols_read_image(const void *image, size_t size, struct elf_symbols *ret)
{
	_cleanup_free_ char *copy = malloc(size ? size : 1);
	struct sources s = { .debug_fd = -1 };
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, size);
	elf_version(EV_CURRENT);
	s.elf = elf_memory(copy, size);
	r = read_sources(&s, ret);
	sources_close(&s);
	return r;
}

void elf_symbols_deinit(struct elf_symbols *symbols)
{
	free(symbols->functions);
	free(symbols->rests);
	free(symbols->names);
	*symbols = (struct elf_symbols)ELF_SYMBOLS_INIT;
}

/* ---- lookup ---- */

static const struct elf_function *find_around(const struct elf_symbols *s, uint64_t addr)
{
	const size_t n = sorted_up_to(s->rests, s->n_rests, start, addr);

	return n && addr < s->rests[n - 1].end ? &s->functions[s->rests[n - 1].function] : NULL;
}

const struct elf_function *elf_symbols_find(const struct elf_symbols *symbols, uint64_t addr)
{
	const size_t n = sorted_up_to(symbols->functions, symbols->n, start, addr);

	if (n && addr < symbols->functions[n - 1].end)
		return &symbols->functions[n - 1];
	return find_around(symbols, addr);
}
