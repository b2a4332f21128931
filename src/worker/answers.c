/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "elf/demangle.h"
#include "worker/file_worker.h"
#include "worker/wire.h"

/* What is left of an answer. */
struct answer_rest {
	const char *at;
	size_t left;
};

/* The next @n elements of @size bytes; NULL if there are not that many. */
static const void *next_bytes(struct answer_rest *r, uint64_t n, size_t size)
{
	const char *at = r->at;

	if (n > r->left / size)
		return NULL;
	r->at += n * size;
	r->left -= n * size;
	return at;
}

static bool is_string(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

/* ---- headers and exports ---- */

static bool take_segment(const struct wire_segment *from, struct elf_segment *ret)
{
	if (from->write > 1 || from->exec > 1)
		return false;
	*ret = (struct elf_segment) { .vaddr = from->vaddr,
				      .memsz = from->memsz,
				      .offset = from->offset,
				      .filesz = from->filesz,
				      .write = from->write,
				      .exec = from->exec };
	return true;
}

static uint64_t lowest(const struct elf_segment *v, size_t n)
{
	uint64_t base = v[0].vaddr;
	size_t i;

	for (i = 1; i < n; i++)
		if (v[i].vaddr < base)
			base = v[i].vaddr;
	return base;
}

int answer_headers(const void *data, size_t size, struct elf_headers *ret)
{
	struct answer_rest r = { data, size };
	const struct wire_headers *from = next_bytes(&r, 1, sizeof(*from));
	_cleanup_free_ struct elf_segment *v = NULL;
	const struct wire_segment *segments;
	size_t i;

	if (!from || !from->n || from->n > ELF_SEGMENTS_MAX ||
	    !is_string(from->build_id, ELF_BUILD_ID_HEX))
		return -EPROTO;
	segments = next_bytes(&r, from->n, sizeof(*segments));
	if (!segments || r.left)
		return -EPROTO;
	v = calloc(from->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < from->n; i++)
		if (!take_segment(&segments[i], &v[i]))
			return -EPROTO;
	if (from->base != lowest(v, from->n))
		return -EPROTO;
	*ret = (struct elf_headers) { .n = from->n, .base = from->base };
	strcpy(ret->build_id, from->build_id);
	ret->v = take_ptr(v);
	return 0;
}

int answer_exports(const void *data, size_t size, size_t n, struct file_exports *ret)
{
	const struct wire_exports *from = data;
	struct file_exports e = { .n_segments = 0 };
	size_t i;

	if (size != sizeof(*from) || from->n_segments > FILE_EXPORTS_SEGMENTS || from->needs > 1 ||
	    !is_string(from->build_id, sizeof(from->build_id)))
		return -EPROTO;
	for (i = 0; i < from->n_segments; i++)
		if (!take_segment(&from->segments[i], &e.segments[i]))
			return -EPROTO;
	e.n_segments = from->n_segments;
	for (i = 0; i < n; i++)
		e.values[i] = from->values[i];
	e.needs = from->needs;
	strcpy(e.build_id, from->build_id);
	*ret = e;
	return 0;
}

/* ---- thread-local storage ---- */

int answer_tls(const void *data, size_t size, struct elf_tls *ret)
{
	const struct wire_tls *from = data;
	struct elf_tls tls = { .n_places = 0 };
	uint32_t i;

	if (size != sizeof(*from) || from->defined > 1 || from->n_places > ELF_TLS_PLACES ||
	    (!from->defined && !from->n_places) || (from->defined && from->offset >= from->size))
		return -EPROTO;
	for (i = 0; i < from->n_places; i++) {
		if (from->places[i].kind >= ELF_TLS_KINDS)
			return -EPROTO;
		tls.places[i].place = from->places[i].place;
		tls.places[i].kind = (enum elf_tls_kind)from->places[i].kind;
	}
	tls.n_places = from->n_places;
	tls.defined = from->defined;
	tls.offset = from->offset;
	tls.vaddr = from->vaddr;
	tls.size = from->size;
	tls.align = from->align;
	*ret = tls;
	return 0;
}

/* ---- unwind tables ---- */

static bool is_rule(const struct rbpf_cfi_rule *rule)
{
	return rule->cfa <= RBPF_CFI_CFA_PLT && rule->ra <= RBPF_CFI_RA_END &&
	       rule->fp <= RBPF_CFI_FP_LOST && !(rule->flags & ~RBPF_CFI_SIGNAL) &&
	       rule->why < RBPF_CFI_WHY_MAX && !rule->pad[0] && !rule->pad[1] && !rule->pad[2];
}

/* What the numbers of the answer's rules are among @rules. */
static int take_rules(const struct rbpf_cfi_rule *from, uint32_t n, struct cfi_rules *rules,
		      uint16_t *numbers)
{
	uint32_t i;
	int r;

	for (i = 0; i < n; i++) {
		struct rbpf_cfi_rule rule = from[i];

		if (!is_rule(&rule))
			return -EPROTO;
		r = cfi_rules_add(rules, &rule, &numbers[i]);
		if (r)
			return r;
	}
	return 0;
}

/*
 * Check that pages and rows are as rbpf_cfi.h has them, and give the rows the numbers that their
 * rules have here.
 */
static bool take_rows(uint32_t *words, const struct wire_table *t, const uint16_t *numbers)
{
	uint32_t page, i, last;

	if (words[0] != t->pages + 1 || words[t->pages] != t->n_words)
		return false;
	for (page = 0; page < t->pages; page++) {
		if (words[page] >= words[page + 1] || words[page + 1] > t->n_words ||
		    words[words[page]] & RBPF_CFI_PAGE_MASK)
			return false;
		last = 0;
		for (i = words[page]; i < words[page + 1]; i++) {
			if ((words[i] & RBPF_CFI_PAGE_MASK) < last || words[i] >> 16 >= t->n_rules)
				return false;
			last = (words[i] & RBPF_CFI_PAGE_MASK) + 1;
			words[i] = (uint32_t)numbers[words[i] >> 16] << 16 |
				   (words[i] & RBPF_CFI_PAGE_MASK);
		}
	}
	return true;
}

int answer_table(const void *data, size_t size, struct cfi_rules *rules, struct cfi_table *ret)
{
	struct answer_rest r = { data, size };
	const struct wire_table *t = next_bytes(&r, 1, sizeof(*t));
	_cleanup_free_ uint32_t *words = NULL;
	const struct rbpf_cfi_rule *from;
	uint16_t *numbers;
	int err;

	if (!t || t->rows > CFI_MAX_ROWS || !t->pages || t->pages > RBPF_CFI_MAX_PAGES ||
	    t->n_words != t->pages + 1 + t->rows || t->n_rules > RBPF_CFI_MAX_RULES)
		return -EPROTO;
	from = next_bytes(&r, t->n_rules, sizeof(*from));
	if (!from || r.left != t->n_words * sizeof(*words))
		return -EPROTO;
	words = malloc(r.left);
	numbers = calloc(t->n_rules + 1, sizeof(*numbers));
	err = words && numbers ? take_rules(from, t->n_rules, rules, numbers) : -ENOMEM;
	if (!err) {
		memcpy(words, r.at, r.left);
		err = take_rows(words, t, numbers) ? 0 : -EPROTO;
	}
	free(numbers);
	if (err)
		return err;
	*ret = (struct cfi_table) { .base = t->base,
				    .machine = (uint16_t)t->machine,
				    .pages = t->pages,
				    .rows = t->rows,
				    .n_words = t->n_words,
				    .words = take_ptr(words),
				    .stats = t->stats };
	return 0;
}

/* ---- symbols ---- */

static int take_functions(const struct wire_function *from, const struct wire_symbols *s,
			  const char *names, struct elf_function *to)
{
	uint64_t i;

	for (i = 0; i < s->n; i++) {
		if (from[i].start >= from[i].end || from[i].name >= s->names_size ||
		    (i && from[i].start <= from[i - 1].start))
			return -EPROTO;
		to[i] = (struct elf_function) { from[i].start, from[i].end, names + from[i].name };
	}
	return 0;
}

static int take_rests(const struct wire_rest *from, const struct wire_symbols *s,
		      struct elf_function_rest *to)
{
	uint64_t i;

	for (i = 0; i < s->n_rests; i++) {
		if (from[i].start >= from[i].end || from[i].function >= s->n ||
		    (i && from[i].start < from[i - 1].end))
			return -EPROTO;
		to[i] = (struct elf_function_rest) { from[i].start, from[i].end, from[i].function };
	}
	return 0;
}

int answer_symbols(const void *data, size_t size, struct elf_symbols *ret)
{
	struct answer_rest r = { data, size };
	const struct wire_symbols *s = next_bytes(&r, 1, sizeof(*s));
	struct elf_symbols e = ELF_SYMBOLS_INIT;
	const struct wire_function *functions;
	const struct wire_rest *rests;
	int err;

	functions = s ? next_bytes(&r, s->n, sizeof(*functions)) : NULL;
	rests = functions ? next_bytes(&r, s->n_rests, sizeof(*rests)) : NULL;
	if (!rests || !s->names_size || r.left != s->names_size || r.at[0] || r.at[r.left - 1])
		return -EPROTO;
	e.functions = calloc(s->n + 1, sizeof(*e.functions));
	e.rests = calloc(s->n_rests + 1, sizeof(*e.rests));
	e.names = malloc(r.left);
	err = e.functions && e.rests && e.names ? 0 : -ENOMEM;
	if (!err) {
		memcpy(e.names, r.at, r.left);
		err = take_functions(functions, s, e.names, e.functions);
	}
	if (!err)
		err = take_rests(rests, s, e.rests);
	e.n = s->n;
	e.n_rests = s->n_rests;
	if (err)
		elf_symbols_deinit(&e);
	else
		*ret = e;
	return err;
}

/* ---- debug information ---- */

int answer_facts(const void *data, size_t size, struct dwarf_fact *facts, size_t n, char *where)
{
	struct answer_rest r = { data, size };
	const struct wire_facts *answer = next_bytes(&r, 1, sizeof(*answer));
	const struct wire_fact *from = answer ? next_bytes(&r, n, sizeof(*from)) : NULL;
	size_t i;

	if (!from || r.left || !is_string(answer->where, sizeof(answer->where)))
		return -EPROTO;
	for (i = 0; i < n; i++)
		if (from[i].answer > DWARF_FOUND)
			return -EPROTO;
	for (i = 0; i < n; i++) {
		facts[i].answer = (enum dwarf_answer)from[i].answer;
		facts[i].value = from[i].value;
		facts[i].size = from[i].size;
		facts[i].bit = from[i].bit;
	}
	strcpy(where, answer->where);
	return 0;
}

int answer_lines(void *data, size_t size, struct file_lines *ret)
{
	struct answer_rest r = { data, size };
	const struct wire_lines *from = next_bytes(&r, 1, sizeof(*from));
	struct file_lines lines = { .n = 0 };
	uint32_t i;

	if (!from || from->n > FILE_MAX_LINES || (r.left && r.at[r.left - 1]))
		return -EPROTO;
	for (i = 0; i < from->n; i++) {
		if (from->v[i].function >= r.left || from->v[i].file >= r.left)
			return -EPROTO;
		lines.v[i] = (struct elf_line) { .function = r.at + from->v[i].function,
						 .file = r.at + from->v[i].file,
						 .line = from->v[i].line };
	}
	lines.n = from->n;
	lines.text = data;
	*ret = lines;
	return 0;
}

/* ---- instructions ---- */

/* They are within the @bytes bytes at @start, one after the other. */
static bool take_instructions(const struct wire_instruction *from, const struct wire_code *c,
			      uint64_t start, uint64_t bytes, struct elf_instruction *to)
{
	uint64_t i, at, next = 0;

	for (i = 0; i < c->n; i++) {
		at = from[i].address - start;
		if (from[i].address < start || at < next || at >= bytes || !from[i].size ||
		    from[i].size > bytes - at || from[i].text >= c->text_size)
			return false;
		next = at + from[i].size;
		to[i] = (struct elf_instruction) { from[i].address, from[i].size, from[i].text };
	}
	return true;
}

int answer_code(const void *data, size_t size, uint64_t start, uint64_t bytes, struct elf_code *ret)
{
	struct answer_rest r = { data, size };
	const struct wire_code *c = next_bytes(&r, 1, sizeof(*c));
	const struct wire_instruction *from = c ? next_bytes(&r, c->n, sizeof(*from)) : NULL;
	struct elf_code code = ELF_CODE_INIT;
	int err;

	if (!from || r.left != c->text_size || (r.left && r.at[r.left - 1]))
		return -EPROTO;
	code.n = code.cap = c->n;
	code.v = calloc(c->n + 1, sizeof(*code.v));
	buf_add(&code.text, r.at, r.left);
	err = code.v && !buf_failed(&code.text) ? 0 : -ENOMEM;
	if (!err && !take_instructions(from, c, start, bytes, code.v))
		err = -EPROTO;
	if (err)
		elf_code_deinit(&code);
	else
		*ret = code;
	return err;
}

int answer_text(const void *data, size_t size, size_t max, struct buf *ret)
{
	if (!size || size > max || memchr(data, '\0', size))
		return -EPROTO;
	buf_add(ret, data, size);
	return buf_failed(ret) ? -ENOMEM : 0;
}
