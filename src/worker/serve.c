/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/serve.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "elf/code.h"
#include "elf/debug_file.h"
#include "elf/demangle.h"
#include "elf/dwarf.h"
#include "elf/elf_file.h"
#include "elf/lines.h"
#include "elf/symbols.h"
#include "worker/channel.h"
#include "worker/sandbox.h"
#include "worker/wire.h"

#define KEPT_PART      4  /* of the memory: what is kept open may take one part in so many */
#define MAX_LINES_OPEN 16 /* files whose debug information is kept open */

struct open_lines {
	uint64_t id;
	uint64_t used;		 /* higher than that of files used before */
	struct elf_lines *lines; /* NULL: none; owned */
};

struct server {
	int sock, memfd;
	uint64_t max_memory; /* bytes */
	struct open_lines lines[MAX_LINES_OPEN];
	uint64_t uses;

	/* The request. */
	_Alignas(8) char bytes[CHANNEL_MAX_BYTES];
	const struct worker_request *request;
	int fd;		  /* -1: none */
	const char *path; /* NULL: none */
	const char *roots[2];
	struct debug_roots where; /* other files are opened there */
	const char *args;

	struct buf answer;
};

/* ---- other files ---- */

static int ask_for_file(void *arg, uid_t owner, const char *root, const char *path, char *real,
			size_t size)
{
	struct server *s = arg;
	struct worker_message ask = { .says = WORKER_OPEN,
				      .inline_size = (uint32_t)strlen(path) + 1 };
	const struct channel_part parts[] = { { &ask, sizeof(ask) }, { path, ask.inline_size } };
	struct worker_opened opened;
	int fds[CHANNEL_MAX_FDS], r;
	size_t len, n_fds;

	(void)owner; /* rbpf looks itself */
	while (s->roots[ask.root] != root)
		ask.root++;
	r = channel_send(s->sock, parts, ARRAY_SIZE(parts), NULL, 0);
	if (!r)
		r = channel_receive(s->sock, &opened, sizeof(opened), &len, fds, &n_fds, 1);
	if (r)
		return r;
	if (opened.result || n_fds != 1)
		return -ENOENT;
	memcpy(real, opened.real, size < sizeof(opened.real) ? size : sizeof(opened.real));
	return fds[0];
}

static const struct debug_roots *roots_of(const struct server *s)
{
	return s->where.n ? &s->where : NULL;
}

/* ---- headers and exports ---- */

static struct wire_segment wire_segment(const struct elf_segment *from)
{
	return (struct wire_segment) { .vaddr = from->vaddr,
				       .memsz = from->memsz,
				       .offset = from->offset,
				       .filesz = from->filesz,
				       .write = from->write,
				       .exec = from->exec };
}

static int serve_headers(struct server *s)
{
	struct elf_headers h = ELF_HEADERS_INIT;
	struct wire_headers answer = { 0 };
	struct wire_segment segment;
	size_t i;
	int r;

	r = s->fd >= 0 ? elf_headers_read(s->fd, &h)
		       : elf_headers_read_image(s->args, s->request->args_size, &h);
	if (r)
		return r;
	answer.base = h.base;
	answer.n = (uint32_t)h.n;
	memcpy(answer.build_id, h.build_id, sizeof(h.build_id));
	buf_add(&s->answer, &answer, sizeof(answer));
	for (i = 0; i < h.n; i++) {
		segment = wire_segment(&h.v[i]);
		buf_add(&s->answer, &segment, sizeof(segment));
	}
	elf_headers_deinit(&h);
	return 0;
}

/* Strings, one after the other, up to @max of them. */
static size_t split(const char *at, size_t size, const char **ret, size_t max)
{
	const char *end = at + size;
	size_t n;

	for (n = 0; at < end && n < max; n++) {
		ret[n] = at;
		at += strnlen(at, (size_t)(end - at)) + 1;
	}
	return n;
}

/*
 * The first of its arguments is the library that it may be linked with, then come the names. Its
 * number is 1 if only .dynsym is to be looked into.
 */
static int serve_exports(struct server *s)
{
	const char *names[1 + WIRE_MAX_NAMES];
	struct elf_segment segments[WIRE_MAX_SEGMENTS];
	struct wire_exports answer = { 0 };
	struct elf_file *elf;
	size_t n, i;
	int r;

	n = split(s->args, s->request->args_size, names, ARRAY_SIZE(names));
	if (!n)
		return -EINVAL;
	r = elf_file_open(s->fd, "", &elf, NULL);
	if (r)
		return r;
	if (s->request->number)
		elf_file_dynamic_symbols(elf, names + 1, answer.values, n - 1);
	else
		elf_file_symbols(elf, names + 1, answer.values, n - 1);
	answer.needs = elf_file_needs(elf, names[0]);
	answer.n_segments = (uint32_t)elf_file_segments(elf, segments, WIRE_MAX_SEGMENTS);
	for (i = 0; i < answer.n_segments; i++)
		answer.segments[i] = wire_segment(&segments[i]);
	elf_file_build_id(elf, answer.build_id, sizeof(answer.build_id));
	elf_file_close(elf);
	buf_add(&s->answer, &answer, sizeof(answer));
	return 0;
}

/* ---- unwind tables ---- */

/* -ENOENT, too, if the debug file is not of this very file's addresses, as after prelink(8). */
static int read_debug_table(struct server *s, struct cfi_rules *rules, struct cfi_table *ret)
{
	char where[PATH_MAX];
	_cleanup_close_ int fd = -1;
	int r;

	if (!s->where.n)
		return -ENOENT;
	fd = debug_file_open(s->fd, s->path, &s->where, where, NULL, sizeof(where));
	if (fd < 0)
		return -ENOENT;
	r = cfi_table_read(fd, rules, ret);
	if (r || ret->base == s->request->number)
		return r;
	cfi_table_deinit(ret);
	return -ENOENT;
}

static int read_table(struct server *s, struct cfi_rules *rules, struct cfi_table *ret)
{
	int r;

	if (s->fd < 0)
		return cfi_table_read_image(s->args, s->request->args_size, rules, ret);
	r = cfi_table_read(s->fd, rules, ret);
	return r == -ENOENT ? read_debug_table(s, rules, ret) : r;
}

static void add_table(struct server *s, const struct cfi_rules *rules, const struct cfi_table *t)
{
	const struct wire_table answer = { .base = t->base,
					   .machine = t->machine,
					   .pages = t->pages,
					   .rows = t->rows,
					   .n_words = t->n_words,
					   .n_rules = cfi_rules_count(rules),
					   .stats = t->stats };
	uint32_t i;

	buf_add(&s->answer, &answer, sizeof(answer));
	for (i = 0; i < answer.n_rules; i++)
		buf_add(&s->answer, cfi_rules_get(rules, i), sizeof(struct rbpf_cfi_rule));
	buf_add(&s->answer, t->words, t->n_words * sizeof(*t->words));
}

/* Its number is the lowest address of the file. */
static int serve_table(struct server *s)
{
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table table = CFI_TABLE_INIT;
	int r;

	r = cfi_rules_init(&rules);
	if (!r)
		r = read_table(s, &rules, &table);
	if (!r)
		add_table(s, &rules, &table);
	cfi_table_deinit(&table);
	cfi_rules_deinit(&rules);
	return r;
}

/* ---- symbols ---- */

static void add_symbols(struct buf *out, const struct elf_symbols *e)
{
	struct wire_symbols answer = { .n = e->n, .n_rests = e->n_rests, .names_size = 1 };
	const char *name;
	size_t i;

	for (i = 0; i < e->n; i++) {
		name = e->functions[i].name;
		if (name[0] && (uint64_t)(name - e->names) + strlen(name) + 1 > answer.names_size)
			answer.names_size = (uint64_t)(name - e->names) + strlen(name) + 1;
	}
	buf_add(out, &answer, sizeof(answer));
	for (i = 0; i < e->n; i++) {
		const struct elf_function *f = &e->functions[i];
		const struct wire_function to = { .start = f->start,
						  .end = f->end,
						  .name = (uint32_t)(f->name - e->names) };

		buf_add(out, &to, sizeof(to));
	}
	for (i = 0; i < e->n_rests; i++) {
		const struct elf_function_rest *rest = &e->rests[i];
		const struct wire_rest to = { rest->start, rest->end, rest->function };

		buf_add(out, &to, sizeof(to));
	}
	buf_add(out, e->names, answer.names_size);
}

static int serve_symbols(struct server *s)
{
	struct elf_symbols e = ELF_SYMBOLS_INIT;
	int r;

	r = s->fd >= 0 ? elf_symbols_read(s->fd, s->path, roots_of(s), &e)
		       : elf_symbols_read_image(s->args, s->request->args_size, &e);
	if (r)
		return r;
	add_symbols(&s->answer, &e);
	elf_symbols_deinit(&e);
	return 0;
}

/* ---- debug information ---- */

/* Whether any of the first @n has an answer. */
static bool any_found(const struct dwarf_fact *facts, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (facts[i].answer == DWARF_FOUND)
			return true;
	return false;
}

static void read_facts(struct server *s, int fd, const char *real, struct dwarf_fact *facts,
		       size_t n)
{
	_cleanup_close_ int shared = -1;

	if (s->where.n)
		shared = debug_file_open_shared(fd, real, &s->where);
	dwarf_facts_read(fd, shared, facts, n);
}

static struct dwarf_fact *questions_of(const struct server *s, size_t n)
{
	const struct wire_question *q = (const void *)s->args;
	const char *strings = s->args + n * sizeof(*q);
	struct dwarf_fact *facts = calloc(n + 1, sizeof(*facts));
	size_t i;

	for (i = 0; facts && i < n; i++) {
		facts[i].type = strings + q[i].type;
		facts[i].member = q[i].member == UINT32_MAX ? NULL : strings + q[i].member;
	}
	return facts;
}

/*
 * Its number is how many questions there are, the other how many of them must not all be unknown.
 */
static int serve_facts(struct server *s)
{
	const size_t n = s->request->number;
	_cleanup_free_ struct dwarf_fact *facts = questions_of(s, n);
	struct wire_facts answer = { .where = "" };
	_cleanup_close_ int debug = -1;
	char real[PATH_MAX];
	size_t i;

	if (!facts)
		return -ENOMEM;
	read_facts(s, s->fd, s->path ? s->path : "", facts, n);
	if (!any_found(facts, s->request->other) && s->where.n)
		debug = debug_file_open(s->fd, s->path, &s->where, answer.where, real,
					sizeof(real));
	if (debug >= 0)
		read_facts(s, debug, real, facts, n);
	if (!any_found(facts, s->request->other))
		return -ENOENT;
	buf_add(&s->answer, &answer, sizeof(answer));
	for (i = 0; i < n; i++) {
		const struct wire_fact fact = { .value = facts[i].value,
						.size = facts[i].size,
						.answer = facts[i].answer,
						.bit = facts[i].bit };

		buf_add(&s->answer, &fact, sizeof(fact));
	}
	return 0;
}

static struct open_lines *find_lines(struct server *s, uint64_t id)
{
	size_t i;

	for (i = 0; i < MAX_LINES_OPEN; i++) {
		if (s->lines[i].lines && s->lines[i].id == id) {
			s->lines[i].used = ++s->uses;
			return &s->lines[i];
		}
	}
	return NULL;
}

/* The file that was not used for longest; with @empty also a place without one. */
static struct open_lines *least_used(struct server *s, bool empty)
{
	struct open_lines *least = NULL;
	size_t i;

	for (i = 0; i < MAX_LINES_OPEN; i++)
		if ((empty || s->lines[i].lines) && (!least || s->lines[i].used < least->used))
			least = &s->lines[i];
	return least;
}

static void close_lines(struct open_lines *place)
{
	elf_lines_close(place->lines);
	*place = (struct open_lines) { .lines = NULL };
}

/* What is kept open is to leave enough memory for the request. */
static void free_memory(struct server *s)
{
	struct open_lines *place;
	struct mallinfo2 info;

	while ((place = least_used(s, false))) {
		info = mallinfo2();
		if (info.uordblks + info.hblkhd < s->max_memory / KEPT_PART)
			return;
		close_lines(place);
	}
}

/* Its number is what the file is called from now on. */
static int serve_lines_open(struct server *s)
{
	struct open_lines *place = least_used(s, true);
	struct elf_lines *lines;
	int r;

	close_lines(place);
	r = elf_lines_open(s->fd, s->path ? s->path : "", roots_of(s), &lines);
	if (!r)
		*place = (struct open_lines) { s->request->number, ++s->uses, lines };
	return r;
}

static uint32_t add_text(struct buf *out, const char *text)
{
	uint32_t at = (uint32_t)out->len;

	buf_add(out, text, strnlen(text, WIRE_MAX_LINE_TEXT));
	buf_addch(out, '\0');
	return at;
}

/* Its number is that of a file, the other an address. -ENOKEY: the file is not open (any more). */
static int serve_lines(struct server *s)
{
	struct open_lines *open = find_lines(s, s->request->number);
	struct buf texts _cleanup_buf_ = BUF_INIT;
	struct elf_line lines[WIRE_MAX_LINES];
	struct wire_lines answer = { 0 };
	size_t i;

	if (!open)
		return -ENOKEY;
	answer.n = (uint32_t)elf_lines_find(open->lines, s->request->other, lines, WIRE_MAX_LINES);
	for (i = 0; i < answer.n; i++) {
		answer.v[i].function = add_text(&texts, lines[i].function);
		answer.v[i].file = add_text(&texts, lines[i].file);
		answer.v[i].line = lines[i].line;
	}
	if (buf_failed(&texts))
		return -ENOMEM;
	buf_add(&s->answer, &answer, sizeof(answer));
	buf_add(&s->answer, texts.data, texts.len);
	return 0;
}

static int serve_demangle(struct server *s)
{
	return demangle(s->args, &s->answer) ? 0 : -ENOENT;
}

/* Bytes as they are: its number is where, the other how many. */
static int serve_read(struct server *s)
{
	_cleanup_free_ char *bytes = malloc(s->request->other + 1);
	ssize_t n;

	if (!bytes)
		return -ENOMEM;
	n = pread(s->fd, bytes, s->request->other, (off_t)s->request->number);
	if (n < 0)
		return -errno;
	buf_add(&s->answer, bytes, (size_t)n);
	return 0;
}

/* Its number is where, the other how many bytes. */
static int serve_code(struct server *s)
{
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;
	struct wire_code answer;
	int r;

	r = elf_code_read(s->fd, s->request->number, s->request->other, &code);
	if (r)
		return r;
	answer = (struct wire_code) { .n = code.n, .text_size = code.text.len };
	buf_add(&s->answer, &answer, sizeof(answer));
	for (size_t i = 0; i < code.n; i++) {
		const struct wire_instruction to = { code.v[i].address, code.v[i].size,
						     code.v[i].text };

		buf_add(&s->answer, &to, sizeof(to));
	}
	buf_add(&s->answer, code.text.data, code.text.len);
	return 0;
}

/* Its argument is the name of a variable. */
static int serve_tls(struct server *s)
{
	struct wire_tls answer = { 0 };
	struct elf_file *elf;
	struct elf_tls tls;
	size_t i;
	int r;

	if (!s->request->args_size)
		return -EINVAL;
	r = elf_file_open(s->fd, "", &elf, NULL);
	if (r)
		return r;
	r = elf_file_tls(elf, s->args, &tls);
	elf_file_close(elf);
	if (r)
		return r;
	answer = (struct wire_tls) { .offset = tls.offset,
				     .vaddr = tls.vaddr,
				     .size = tls.size,
				     .align = tls.align,
				     .defined = tls.defined,
				     .n_places = (uint32_t)tls.n_places };
	for (i = 0; i < tls.n_places; i++) {
		answer.places[i].place = tls.places[i].place;
		answer.places[i].kind = tls.places[i].kind;
	}
	buf_add(&s->answer, &answer, sizeof(answer));
	return 0;
}

/* ---- requests ---- */

static int (*const operations[WORKER_OPS])(struct server *s) = {
	[WORKER_HEADERS] = serve_headers, [WORKER_EXPORTS] = serve_exports,
	[WORKER_TABLE] = serve_table,	  [WORKER_SYMBOLS] = serve_symbols,
	[WORKER_FACTS] = serve_facts,	  [WORKER_LINES_OPEN] = serve_lines_open,
	[WORKER_LINES] = serve_lines,	  [WORKER_DEMANGLE] = serve_demangle,
	[WORKER_READ] = serve_read,	  [WORKER_CODE] = serve_code,
	[WORKER_TLS] = serve_tls,
};

static int take_request(struct server *s)
{
	int fds[CHANNEL_MAX_FDS], r;
	size_t len, n_fds;
	const char *at;

	r = channel_receive(s->sock, s->bytes, sizeof(s->bytes), &len, fds, &n_fds, 1);
	if (r)
		return r;
	s->request = (const void *)s->bytes;
	s->fd = n_fds ? fds[0] : -1;
	s->args = at = s->bytes + sizeof(*s->request);
	at += s->request->args_size;
	s->path = s->request->path_size ? at : NULL;
	at += s->request->path_size;
	s->where = (struct debug_roots) { s->roots, 0, ask_for_file, s };
	s->where.n = split(at, s->request->roots_size, s->roots, ARRAY_SIZE(s->roots));
	return s->request->op < WORKER_OPS ? 0 : -EPROTO;
}

static int write_shared(const struct server *s)
{
	size_t done = 0;
	ssize_t n;

	while (done < s->answer.len) {
		n = pwrite(s->memfd, s->answer.data + done, s->answer.len - done, (off_t)done);
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int send_answer(struct server *s, int result)
{
	struct worker_message m = { .says = WORKER_ANSWER, .result = result };
	struct channel_part parts[] = { { &m, sizeof(m) }, { s->answer.data, 0 } };

	if (!result && buf_failed(&s->answer))
		m.result = -ENOMEM;
	else if (!result && s->answer.len > SANDBOX_MAX_WRITE)
		m.result = -E2BIG;
	if (!m.result && s->answer.len > CHANNEL_MAX_INLINE)
		m.shared_size = s->answer.len;
	else if (!m.result)
		parts[1].size = m.inline_size = (uint32_t)s->answer.len;
	if (m.shared_size && write_shared(s))
		return -EIO;
	return channel_send(s->sock, parts, ARRAY_SIZE(parts), NULL, 0);
}

void serve(int sock, int memfd, uint64_t max_memory)
{
	struct server *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	if (!r) {
		s->sock = sock;
		s->memfd = memfd;
		s->max_memory = max_memory;
	}
	while (!r) {
		r = take_request(s);
		if (!r && s->request->op != WORKER_LINES)
			free_memory(s);
		if (!r)
			r = send_answer(s, operations[s->request->op](s));
		if (s->fd >= 0)
			close(s->fd);
		/* What a large answer took is given back. */
		buf_deinit(&s->answer);
	}
}
