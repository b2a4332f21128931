/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a worker says, which may be any bytes: each answer as it should be, then with one thing of
 * it that cannot be. What is refused leaves the result alone.
 */
#include "worker/answers.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "support/cfi_check.h"
#include "worker/file_worker.h"
#include "worker/wire.h"

/* ---- headers ---- */

struct headers {
	struct wire_headers h;
	struct wire_segment v[2];
};

static struct headers good_headers(void)
{
	return (struct headers) {
		.h = { .base = 0x1000, .n = 2, .build_id = "c0ffee" },
		.v = { { .vaddr = 0x2000,
			 .memsz = 0x30,
			 .offset = 0x40,
			 .filesz = 0x20,
			 .exec = 1 },
		       { .vaddr = 0x1000,
			 .memsz = 0x10,
			 .offset = 0x50,
			 .filesz = 8,
			 .write = 1 } },
	};
}

static void expect_no_headers(const struct headers *answer, size_t size, const char *what)
{
	struct elf_headers ret = { .n = 77 };

	cr_expect_eq(answer_headers(answer, size, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.n, 77, "%s: untouched", what);
}

Test(answers, headers)
{
	struct headers a = good_headers();
	struct elf_headers ret;

	cr_assert_eq(answer_headers(&a, sizeof(a), &ret), 0);
	cr_expect_eq(ret.n, 2);
	cr_expect_eq(ret.base, 0x1000);
	cr_expect_str_eq(ret.build_id, "c0ffee");
	cr_expect_eq(ret.v[0].vaddr, 0x2000);
	cr_expect_eq(ret.v[0].memsz, 0x30);
	cr_expect_eq(ret.v[0].offset, 0x40);
	cr_expect_eq(ret.v[0].filesz, 0x20);
	cr_expect(ret.v[0].exec && !ret.v[0].write && !ret.v[1].exec && ret.v[1].write);
	elf_headers_deinit(&ret);
	for (size_t size = 0; size < sizeof(a); size++)
		expect_no_headers(&a, size, "cut");
}

Test(answers, headers_that_cannot_be)
{
	struct headers a = good_headers(), more[2] = { good_headers() };

	expect_no_headers(more, sizeof(a) + 1, "more than was said");
	a.h.n = 0;
	expect_no_headers(&a, sizeof(a.h), "no segments");
	a = good_headers();
	a.h.n = 3;
	expect_no_headers(&a, sizeof(a), "a segment that is not there");
	a.h.n = UINT32_MAX;
	expect_no_headers(&a, sizeof(a), "too many segments");
	a = good_headers();
	a.v[1].exec = 2;
	expect_no_headers(&a, sizeof(a), "neither true nor false");
	a = good_headers();
	a.v[0].write = 2;
	expect_no_headers(&a, sizeof(a), "neither true nor false");
	a = good_headers();
	a.h.base = 0x2000;
	expect_no_headers(&a, sizeof(a), "a segment below the base");
	a.h.base = 0x800;
	expect_no_headers(&a, sizeof(a), "a base that no segment has");
	a = good_headers();
	memset(a.h.build_id, 'a', ELF_BUILD_ID_HEX);
	expect_no_headers(&a, sizeof(a), "a build-id without end");
}

/* ---- exports ---- */

Test(answers, exports)
{
	struct wire_exports a = { .values = { 1, 2, 3 },
				  .needs = 1,
				  .n_segments = 1,
				  .segments = { { .vaddr = 5, .exec = 1 } },
				  .build_id = "c0ffee" };
	struct file_exports ret = { .n_segments = 77 };

	cr_assert_eq(answer_exports(&a, sizeof(a), 2, &ret), 0);
	cr_expect(ret.values[0] == 1 && ret.values[1] == 2 && !ret.values[2], "two were asked for");
	cr_expect(ret.needs);
	cr_expect_eq(ret.n_segments, 1);
	cr_expect_eq(ret.segments[0].vaddr, 5);
	cr_expect_str_eq(ret.build_id, "c0ffee");
}

Test(answers, exports_that_cannot_be)
{
	const struct wire_exports good = { .n_segments = 1 };
	struct wire_exports a[2] = { good };
	struct file_exports ret = { .n_segments = 77 };

	cr_expect_eq(answer_exports(a, sizeof(a[0]) - 1, 1, &ret), -EPROTO);
	cr_expect_eq(answer_exports(a, sizeof(a[0]) + 1, 1, &ret), -EPROTO);
	a->n_segments = FILE_EXPORTS_SEGMENTS + 1;
	cr_expect_eq(answer_exports(a, sizeof(a[0]), 1, &ret), -EPROTO, "too many segments");
	*a = good;
	a->needs = 2;
	cr_expect_eq(answer_exports(a, sizeof(a[0]), 1, &ret), -EPROTO, "neither true nor false");
	*a = good;
	a->segments[0].exec = 2;
	cr_expect_eq(answer_exports(a, sizeof(a[0]), 1, &ret), -EPROTO, "neither true nor false");
	*a = good;
	memset(a->build_id, 'a', sizeof(a->build_id));
	cr_expect_eq(answer_exports(a, sizeof(a[0]), 1, &ret), -EPROTO, "a build-id without end");
	cr_expect_eq(ret.n_segments, 77, "untouched");
}

/* ---- tables ---- */

/* Two pages with three rows, of two rules. */
struct table {
	struct wire_table t;
	struct rbpf_cfi_rule rules[2];
	uint32_t words[6];
};

static struct table good_table(void)
{
	return (struct table) {
		.t = { .base = 0x1000,
		       .machine = 62,
		       .pages = 2,
		       .rows = 3,
		       .n_words = 6,
		       .n_rules = 2 },
		.rules = { { .cfa = RBPF_CFI_CFA_SP, .cfa_off = 4321 },
			   { .cfa = RBPF_CFI_CFA_FP, .cfa_off = 1234 } },
		.words = { 3, 5, 6, 0, 1u << 16 | 0x10, 1u << 16 },
	};
}

static void expect_no_table(const struct table *answer, size_t size, const char *what)
{
	struct cfi_table ret = { .pages = 77 };
	struct cfi_rules rules = CFI_RULES_INIT;

	cr_assert_eq(cfi_rules_init(&rules), 0);
	cr_expect_eq(answer_table(answer, size, &rules, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.pages, 77, "%s: untouched", what);
	cfi_rules_deinit(&rules);
}

Test(answers, table)
{
	struct table a = good_table();
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table ret;

	cr_assert_eq(cfi_rules_init(&rules), 0);
	cr_assert_eq(answer_table(&a, sizeof(a), &rules, &ret), 0);
	cr_expect(ret.base == 0x1000 && ret.machine == 62 && ret.pages == 2 && ret.rows == 3);
	/* The numbers are those that the rules have here. */
	cr_expect_eq(cfi_table_rule(&ret, &rules, 0x1000 + 0xf)->cfa_off, 4321);
	cr_expect_eq(cfi_table_rule(&ret, &rules, 0x1000 + 0x10)->cfa_off, 1234);
	cr_expect_eq(cfi_table_rule(&ret, &rules, 0x1000 + 0x10000)->cfa_off, 1234);
	cfi_table_deinit(&ret);
	cfi_rules_deinit(&rules);
	for (size_t size = 0; size < sizeof(a); size++)
		expect_no_table(&a, size, "cut");
}

Test(answers, table_whose_numbers_cannot_be)
{
	struct table a = good_table(), more[2] = { good_table() };

	expect_no_table(more, sizeof(a) + 4, "more than was said");
	a.t.pages = 0;
	expect_no_table(&a, sizeof(a), "no pages");
	a = good_table();
	a.t.rows = 2;
	expect_no_table(&a, sizeof(a), "other numbers of rows and words");
	a = good_table();
	a.t.n_rules = 1;
	expect_no_table(&a, sizeof(a), "a rule is taken for words");
	a.t.n_rules = RBPF_CFI_MAX_RULES + 1;
	expect_no_table(&a, sizeof(a), "too many rules");
}

/* Each is the good one but for one word. */
Test(answers, table_whose_words_cannot_be)
{
	static const struct {
		size_t i;
		uint32_t word;
		const char *what;
	} v[] = {
		{ 0, 2, "rows among the pages" },
		{ 0, 4, "words between pages and rows" },
		{ 1, 3, "a page without rows" },
		{ 1, 2, "pages in disorder" },
		{ 1, 7, "a page beyond the end" },
		{ 2, 5, "an end before the end" },
		{ 2, 7, "an end beyond the end" },
		{ 3, 1, "a page whose first row does not begin it" },
		{ 4, 1u << 16, "two rows of one address" },
		{ 4, 2u << 16 | 0x10, "a rule that is not there" },
		{ 3, 0xffffu << 16, "nor that" },
		{ 5, 1u << 16 | 4, "a page whose first row does not begin it" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct table a = good_table();

		a.words[v[i].i] = v[i].word;
		expect_no_table(&a, sizeof(a), v[i].what);
	}
}

Test(answers, rules_that_cannot_be)
{
	static const struct rbpf_cfi_rule v[] = {
		{ .cfa = RBPF_CFI_CFA_PLT + 1 },
		{ .ra = RBPF_CFI_RA_END + 1 },
		{ .fp = RBPF_CFI_FP_LOST + 1 },
		{ .flags = 2 },
		{ .why = RBPF_CFI_WHY_MAX },
		{ .pad = { 1 } },
		{ .pad = { 0, 1 } },
		{ .pad = { 0, 0, 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct table a = good_table();

		a.rules[1] = v[i];
		expect_no_table(&a, sizeof(a), "a rule that cannot be");
	}
}

/* ---- symbols ---- */

/* f from 0x10 to 0x40, g within it, then f goes on. */
struct symbols {
	struct wire_symbols s;
	struct wire_function functions[2];
	struct wire_rest rests[2];
	char names[8];
};

static struct symbols good_symbols(void)
{
	return (struct symbols) {
		.s = { .n = 2, .n_rests = 2, .names_size = 8 },
		.functions = { { .start = 0x10, .end = 0x40, .name = 1 },
			       { .start = 0x20, .end = 0x30, .name = 3 } },
		.rests = { { 0x30, 0x38, 0 }, { 0x38, 0x40, 1 } },
		.names = "\0f\0g",
	};
}

static void expect_no_symbols(const struct symbols *answer, size_t size, const char *what)
{
	struct elf_symbols ret = { .n = 77 };

	cr_expect_eq(answer_symbols(answer, size, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.n, 77, "%s: untouched", what);
}

Test(answers, symbols)
{
	struct symbols a = good_symbols();
	struct elf_symbols ret;

	cr_assert_eq(answer_symbols(&a, sizeof(a), &ret), 0);
	cr_assert(ret.n == 2 && ret.n_rests == 2);
	cr_expect_str_eq(elf_symbols_find(&ret, 0x1f)->name, "f");
	cr_expect_str_eq(elf_symbols_find(&ret, 0x2f)->name, "g");
	cr_expect_str_eq(elf_symbols_find(&ret, 0x37)->name, "f");
	cr_expect_str_eq(elf_symbols_find(&ret, 0x3f)->name, "g");
	cr_expect_null(elf_symbols_find(&ret, 0x40));
	elf_symbols_deinit(&ret);
	for (size_t size = 0; size < sizeof(a); size++)
		expect_no_symbols(&a, size, "cut");
}

#define EXPECT_NO_SYMBOLS(change, what)                                                            \
	do {                                                                                       \
		struct symbols a = good_symbols();                                                 \
		change;                                                                            \
		expect_no_symbols(&a, sizeof(a), what);                                            \
	} while (0)

Test(answers, symbols_that_cannot_be)
{
	struct symbols more[2] = { good_symbols() };

	expect_no_symbols(more, sizeof(more[0]) + 1, "more than was said");
	EXPECT_NO_SYMBOLS(a.s.n = UINT64_MAX, "too many functions");
	EXPECT_NO_SYMBOLS(a.s.n_rests = 1ull << 61, "too many rests");
	EXPECT_NO_SYMBOLS(a.s.names_size = 7, "other numbers");
	EXPECT_NO_SYMBOLS(a.functions[0].name = 8, "a name behind the names");
	EXPECT_NO_SYMBOLS(a.functions[1].end = 0x20, "an empty function");
	EXPECT_NO_SYMBOLS(a.functions[1].start = 0x10, "two functions of one address");
	EXPECT_NO_SYMBOLS(a.functions[1].start = 0xf, "functions in disorder");
	EXPECT_NO_SYMBOLS(a.rests[0].function = 2, "a rest of a function that is not there");
	EXPECT_NO_SYMBOLS(a.rests[0].end = 0x30, "an empty rest");
	EXPECT_NO_SYMBOLS(a.rests[0].end = 0x39, "rests that overlap");
	EXPECT_NO_SYMBOLS(a.names[0] = 'x', "the nameless have a name");
	EXPECT_NO_SYMBOLS(a.names[7] = 'x', "names without end");
}

/* ---- debug information ---- */

Test(answers, facts)
{
	struct {
		struct wire_facts f;
		struct wire_fact v[2];
	} a = { .f = { .where = "/x.debug" },
		.v = { { .value = 5, .size = 8, .answer = DWARF_FOUND, .bit = 3 },
		       { .answer = DWARF_NO_TYPE } } };
	struct dwarf_fact facts[2] = { { .value = 77 }, { .value = 77 } };
	char where[PATH_MAX] = "untouched";

	cr_expect_eq(answer_facts(&a, sizeof(a) - 1, facts, 2, where), -EPROTO, "cut");
	cr_expect_eq(answer_facts(&a, sizeof(a), facts, 1, where), -EPROTO, "one too many");
	a.v[1].answer = DWARF_FOUND + 1;
	cr_expect_eq(answer_facts(&a, sizeof(a), facts, 2, where), -EPROTO, "no answer");
	a.v[1].answer = DWARF_NO_TYPE;
	memset(a.f.where, 'a', sizeof(a.f.where));
	cr_expect_eq(answer_facts(&a, sizeof(a), facts, 2, where), -EPROTO, "a path without end");
	cr_expect(facts[0].value == 77 && !strcmp(where, "untouched"));
	strcpy(a.f.where, "/x.debug");
	cr_assert_eq(answer_facts(&a, sizeof(a), facts, 2, where), 0);
	cr_expect(facts[0].value == 5 && facts[0].size == 8 && facts[0].bit == 3);
	cr_expect(facts[0].answer == DWARF_FOUND && facts[1].answer == DWARF_NO_TYPE);
	cr_expect_str_eq(where, "/x.debug");
}

/* Two lines whose strings are "f", "x.c" and "g". */
struct lines {
	struct wire_lines l;
	char text[8];
};

static struct lines good_lines(void)
{
	return (struct lines) { .l = { .n = 2,
				       .v = { { .function = 0, .file = 2, .line = 7 },
					      { .function = 6, .file = 2, .line = 8 } } },
				.text = "f\0x.c\0g" };
}

/* Of @size bytes at a place of their own, so that ASan sees who reads beyond them. */
static int take_lines(const struct lines *answer, size_t size, struct file_lines *ret)
{
	void *copy = malloc(size + !size);
	int r;

	cr_assert_not_null(copy);
	memcpy(copy, answer, size);
	r = answer_lines(copy, size, ret);
	if (r)
		free(copy);
	return r;
}

static void expect_no_lines(const struct lines *answer, size_t size, const char *what)
{
	struct file_lines ret = { .n = 77 };

	cr_expect_eq(take_lines(answer, size, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.n, 77, "%s: untouched", what);
}

Test(answers, lines)
{
	struct lines a = good_lines();
	struct file_lines ret;

	cr_assert_eq(take_lines(&a, sizeof(a), &ret), 0);
	cr_assert_eq(ret.n, 2);
	cr_expect_str_eq(ret.v[0].function, "f");
	cr_expect_str_eq(ret.v[0].file, "x.c");
	cr_expect_eq(ret.v[0].line, 7);
	cr_expect_str_eq(ret.v[1].function, "g");
	cr_expect_eq(ret.v[1].line, 8);
	file_lines_deinit(&ret);
	expect_no_lines(&a, sizeof(a.l) - 1, "cut");
	expect_no_lines(&a, sizeof(a.l), "no strings");
	expect_no_lines(&a, sizeof(a) - 1, "a string without end");
	a.l.v[1].function = sizeof(a.text);
	expect_no_lines(&a, sizeof(a), "a function behind the strings");
	a = good_lines();
	a.l.v[0].file = sizeof(a.text);
	expect_no_lines(&a, sizeof(a), "a file behind the strings");
	a = good_lines();
	a.l.n = FILE_MAX_LINES + 1;
	expect_no_lines(&a, sizeof(a), "too many lines");
}

Test(answers, text)
{
	struct buf out _cleanup_buf_ = BUF_INIT;

	buf_addstr(&out, "before ");
	cr_expect_eq(answer_text("", 0, 5, &out), -EPROTO);
	cr_expect_eq(answer_text("abcdef", 6, 5, &out), -EPROTO, "too long");
	cr_expect_eq(answer_text("ab\0cd", 5, 5, &out), -EPROTO, "a string within it ends");
	cr_expect_eq(answer_text("abcd", 5, 5, &out), -EPROTO, "with its end");
	cr_expect_str_eq(buf_str(&out), "before ");
	cr_expect_eq(answer_text("abcde", 5, 5, &out), 0);
	cr_expect_str_eq(buf_str(&out), "before abcde");
}

/* ---- instructions ---- */

/* Two of the 16 bytes at 0x1000. */
struct code_answer {
	struct wire_code c;
	struct wire_instruction v[2];
	char text[8];
};

static struct code_answer good_code(void)
{
	return (struct code_answer) { .c = { .n = 2, .text_size = 8 },
				      .v = { { 0x1000, 3, 0 }, { 0x1004, 12, 4 } },
				      .text = "ret\0nop" };
}

static void expect_no_code(const struct code_answer *answer, size_t size, const char *what)
{
	struct elf_code ret = { .n = 77 };

	cr_expect_eq(answer_code(answer, size, 0x1000, 16, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.n, 77, "%s: untouched", what);
}

Test(answers, instructions)
{
	struct code_answer a = good_code();
	struct elf_code ret;

	cr_assert_eq(answer_code(&a, sizeof(a), 0x1000, 16, &ret), 0);
	cr_assert_eq(ret.n, 2);
	cr_expect(ret.v[0].address == 0x1000 && ret.v[0].size == 3);
	cr_expect_str_eq(buf_str(&ret.text) + ret.v[0].text, "ret");
	cr_expect(ret.v[1].address == 0x1004 && ret.v[1].size == 12);
	cr_expect_str_eq(buf_str(&ret.text) + ret.v[1].text, "nop");
	elf_code_deinit(&ret);
	for (size_t size = 0; size < sizeof(a); size++)
		expect_no_code(&a, size, "cut");
	memset(&a.c, 0, sizeof(a.c));
	cr_expect_eq(answer_code(&a, sizeof(a.c), 0x1000, 16, &ret), 0, "none is an answer");
	elf_code_deinit(&ret);
}

Test(answers, instructions_that_cannot_be)
{
	struct code_answer a = good_code();

	a.text[7] = 'x';
	expect_no_code(&a, sizeof(a), "a text without end");
	a = good_code();
	a.v[1].text = 8;
	expect_no_code(&a, sizeof(a), "a text behind the texts");
	a = good_code();
	a.v[1].size = 13;
	expect_no_code(&a, sizeof(a), "one that ends behind the code");
	a = good_code();
	a.v[0].size = 5;
	expect_no_code(&a, sizeof(a), "one within another");
	a = good_code();
	a.v[0].size = 0;
	expect_no_code(&a, sizeof(a), "one of no bytes");
	a = good_code();
	a.v[0].address = 0xfff;
	expect_no_code(&a, sizeof(a), "one before the code");
	a = good_code();
	a.v[1].address = 0x1010;
	expect_no_code(&a, sizeof(a), "one behind the code");
	a = good_code();
	a.c.n = UINT64_MAX;
	expect_no_code(&a, sizeof(a), "more than there are");
	a = good_code();
	a.c.text_size = UINT64_MAX;
	expect_no_code(&a, sizeof(a), "more text than there is");
}

/* ---- thread-local storage ---- */

static struct wire_tls good_tls(void)
{
	return (struct wire_tls) { .offset = 8,
				   .vaddr = 0x3000,
				   .size = 0x20,
				   .align = 8,
				   .defined = 1,
				   .n_places = 2,
				   .places = { { .place = 0x4000, .kind = ELF_TLS_DESC },
					       { .place = 0x4010, .kind = ELF_TLS_MODULE } } };
}

static void expect_no_tls(const struct wire_tls *answer, size_t size, const char *what)
{
	struct elf_tls ret = { .n_places = 77 };

	cr_expect_eq(answer_tls(answer, size, &ret), -EPROTO, "%s", what);
	cr_expect_eq(ret.n_places, 77, "%s: untouched", what);
}

Test(answers, tls)
{
	struct wire_tls a = good_tls();
	struct elf_tls ret;

	cr_assert_eq(answer_tls(&a, sizeof(a), &ret), 0);
	cr_expect(ret.defined);
	cr_expect_eq(ret.offset, 8);
	cr_expect_eq(ret.size, 0x20);
	cr_expect_eq(ret.n_places, 2);
	cr_expect_eq(ret.places[1].place, 0x4010);
	cr_expect_eq(ret.places[1].kind, ELF_TLS_MODULE);
	expect_no_tls(&a, sizeof(a) - 1, "too short");
	a.defined = 2;
	expect_no_tls(&a, sizeof(a), "neither defined nor not");
	a = good_tls();
	a.n_places = ELF_TLS_PLACES + 1;
	expect_no_tls(&a, sizeof(a), "too many places");
	a = good_tls();
	a.places[1].kind = ELF_TLS_KINDS;
	expect_no_tls(&a, sizeof(a), "a kind that there is not");
	a = good_tls();
	a.offset = a.size;
	expect_no_tls(&a, sizeof(a), "outside of its block");
	a.defined = a.n_places = 0;
	expect_no_tls(&a, sizeof(a), "nothing");
}
