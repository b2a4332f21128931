/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A line is "ffffffffc0a01000 t ext4_sync_fs\t[ext4]". There are 120,000 of them and more, of which
 * half are functions: an entry takes 16 bytes, names stand in one buffer, and the text is parsed in
 * pieces as it is read. The kernel's own come in order, the modules' do not.
 */
#include "symbol/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sorted.h"
#include "symbol/hex.h"

#define CHUNK		65536
#define MAX_MODULES	(1u << 16)

/* Of those at one address the least counts: global before weak before local, then few "_". */
#define RANK_BIND_SHIFT 4
#define RANK_MAX_LINES	15u

struct kernel_function {
	uint64_t start;
	uint32_t name;	 /* offset in names */
	uint16_t module; /* number of modules */
	uint16_t rank;
};

_Static_assert(sizeof(struct kernel_function) == 16, "there are many");

/* ---- lines ---- */

static bool is_function(char type)
{
	return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

static uint16_t rank_of(char type, const char *name, size_t len)
{
	unsigned int bind = type == 'T' ? 0 : type == 't' ? 2 : 1, lines = 0;

	while (lines < len && lines < RANK_MAX_LINES && name[lines] == '_')
		lines++;
	return (uint16_t)(bind << RANK_BIND_SHIFT | lines);
}

static int add_function(struct kernel_symbols *s, uint64_t start, char type, const char *name,
			size_t len, const char *module, size_t module_len)
{
	uint32_t id;
	int r;

	if (s->n == KERNEL_SYMBOLS_MAX || s->names.len > KERNEL_SYMBOLS_MAX_NAMES)
		return -E2BIG;
	if (array_reserve(s->functions, s->cap, s->n + 1))
		return -ENOMEM;
	r = intern_add(&s->modules, module, module_len, &id, NULL);
	if (r || id >= MAX_MODULES)
		return r ? r : -E2BIG;
	s->functions[s->n++] = (struct kernel_function) { .start = start,
							  .name = (uint32_t)s->names.len,
							  .module = (uint16_t)id,
							  .rank = rank_of(type, name, len) };
	buf_add(&s->names, name, len);
	buf_addch(&s->names, '\0');
	return buf_failed(&s->names) ? -ENOMEM : 0;
}

static int parse_line(struct kernel_symbols *s, const char *line, const char *end)
{
	const char *p = line, *name, *name_end, *module = end;
	uint64_t start;

	if (!hex_read(&p, end, &start) || end - p < 4 || p[0] != ' ' || p[2] != ' ' ||
	    !is_function(p[1]))
		return 0;
	name = p + 3;
	name_end = memchr(name, '\t', (size_t)(end - name));
	if (name_end)
		module = name_end + 1;
	else
		name_end = end;
	if (name_end == name)
		return 0;
	return add_function(s, start, p[1], name, (size_t)(name_end - name), module,
			    (size_t)(end - module));
}

/* Parse the whole lines; @used is how many bytes they have. */
static int parse_lines(struct kernel_symbols *s, const char *text, size_t len, size_t *used)
{
	const char *end;
	size_t at = 0;
	int r = 0;

	while (!r && (end = memchr(text + at, '\n', len - at))) {
		r = parse_line(s, text + at, end);
		at = (size_t)(end - text) + 1;
	}
	*used = at;
	return r;
}

/* ---- order ---- */

static int compare_functions(const void *va, const void *vb)
{
	const struct kernel_function *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* Sort, keep one of each address, and give back what memory is left over. */
static int finish(struct kernel_symbols *s)
{
	struct kernel_function *smaller;
	size_t kept = 0, i;

	if (!s->n)
		return -ENOENT;
	qsort(s->functions, s->n, sizeof(*s->functions), compare_functions);
	if (!s->functions[s->n - 1].start)
		return -EPERM;
	for (i = 0; i < s->n; i++)
		if (!kept || s->functions[kept - 1].start != s->functions[i].start)
			s->functions[kept++] = s->functions[i];
	s->n = kept;
	smaller = realloc(s->functions, kept * sizeof(*smaller));
	if (smaller) {
		s->functions = smaller;
		s->cap = kept;
	}
	return 0;
}

/* Remember @error, without which there is something to find. */
static int set_loaded(struct kernel_symbols *s, int error)
{
	if (error)
		kernel_symbols_deinit(s);
	s->loaded = true;
	s->error = error;
	return error;
}

int kernel_symbols_parse(struct kernel_symbols *symbols, const char *text, size_t len)
{
	size_t used;
	int r;

	kernel_symbols_deinit(symbols);
	r = parse_lines(symbols, text, len, &used);
	if (!r && used < len)
		r = parse_line(symbols, text + used, text + len);
	return set_loaded(symbols, r ? r : finish(symbols));
}

/* ---- /proc/kallsyms ---- */

static int read_lines(struct kernel_symbols *s, int fd)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);
	size_t have = 0, used;
	ssize_t n;
	int r;

	if (!chunk)
		return -ENOMEM;
	for (;;) {
		n = read(fd, chunk + have, CHUNK - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		have += (size_t)n;
		r = parse_lines(s, chunk, have, &used);
		if (r)
			return r;
		have -= used;
		memmove(chunk, chunk + used, have);
		if (have == CHUNK) /* no line is that long */
			return -EBADMSG;
	}
}

static int load(struct kernel_symbols *s)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return set_loaded(s, -errno);
	r = read_lines(s, fd);
	return set_loaded(s, r ? r : finish(s));
}

void kernel_symbols_deinit(struct kernel_symbols *symbols)
{
	free(symbols->functions);
	buf_deinit(&symbols->names);
	intern_deinit(&symbols->modules);
	*symbols = (struct kernel_symbols)KERNEL_SYMBOLS_INIT;
}

/* ---- lookup ---- */

int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t addr, struct kernel_symbol *ret)
{
	const struct kernel_function *f;
	size_t n;

	if (!symbols->loaded)
		load(symbols);
	if (symbols->error)
		return symbols->error;
	n = sorted_up_to(symbols->functions, symbols->n, start, addr);
	f = n ? &symbols->functions[n - 1] : NULL;
	if (!f || addr - f->start >= KERNEL_SYMBOLS_MAX_FUNCTION)
		return -ENOENT;
	*ret = (struct kernel_symbol) { .name = buf_str(&symbols->names) + f->name,
					.module = intern_get(&symbols->modules, f->module, NULL),
					.start = f->start };
	return 0;
}
