/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers as no worker gave them: a byte that says to which request, then the answer. What is let
 * through must be in order: here it is used as rbpf uses it, and each string is read to its end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/demangle.h"
#include "rbpf_cfi_find.h"
#include "worker/answers.h"
#include "worker/file_worker.h"

enum { HEADERS, EXPORTS, TABLE, SYMBOLS, FACTS, LINES, TEXT, CODE, TLS, KINDS };

static void check_headers(const void *data, size_t size)
{
	struct elf_headers h;
	uint64_t addr;

	if (answer_headers(data, size, &h))
		return;
	for (size_t i = 0; i < h.n; i++)
		if (h.v[i].vaddr < h.base || strlen(h.build_id) >= sizeof(h.build_id))
			abort();
	elf_headers_address(&h, 4096, 8192, &addr);
	elf_headers_deinit(&h);
}

static void check_exports(const void *data, size_t size)
{
	struct file_exports e;

	if (!answer_exports(data, size, FILE_EXPORTS_NAMES, &e) &&
	    (e.n_segments > FILE_EXPORTS_SEGMENTS || strlen(e.build_id) >= sizeof(e.build_id)))
		abort();
}

static void check_tls(const void *data, size_t size)
{
	struct elf_tls tls;

	if (answer_tls(data, size, &tls))
		return;
	if (tls.n_places > ELF_TLS_PLACES || (!tls.defined && !tls.n_places))
		abort();
	for (size_t i = 0; i < tls.n_places; i++)
		if (tls.places[i].kind >= ELF_TLS_KINDS)
			abort();
}

static void check_table(const void *data, size_t size)
{
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table t = CFI_TABLE_INIT;

	if (cfi_rules_init(&rules))
		return;
	if (!answer_table(data, size, &rules, &t)) {
		for (uint64_t addr = 0; addr < (uint64_t)t.pages << RBPF_CFI_PAGE_SHIFT;
		     addr += 4093) {
			if (rbpf_cfi_find(t.words, t.pages, addr) >= cfi_rules_count(&rules))
				abort();
			if (addr > 1 << 24)
				break;
		}
	}
	cfi_table_deinit(&t);
	cfi_rules_deinit(&rules);
}

static void check_symbols(const void *data, size_t size)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	size_t length = 0;

	if (answer_symbols(data, size, &s))
		return;
	for (size_t i = 0; i < s.n; i++) {
		const struct elf_function *f = elf_symbols_find(&s, s.functions[i].start);

		if (f != &s.functions[i])
			abort();
		length += strlen(f->name);
	}
	for (size_t i = 0; i < s.n_rests; i++)
		elf_symbols_find(&s, s.rests[i].start);
	elf_symbols_deinit(&s);
	if (length > size * (size + 1))
		abort();
}

static void check_facts(const void *data, size_t size)
{
	struct dwarf_fact facts[8] = { 0 };
	char where[PATH_MAX] = "";

	if (!answer_facts(data, size, facts, 8, where) && strlen(where) >= sizeof(where))
		abort();
}

static void check_lines(const void *data, size_t size)
{
	void *copy = malloc(size + 1);
	struct file_lines lines = { .n = 0 };
	size_t length = 0;

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (answer_lines(copy, size, &lines)) {
		free(copy);
		return;
	}
	for (size_t i = 0; i < lines.n; i++)
		length += strlen(lines.v[i].function) + strlen(lines.v[i].file);
	file_lines_deinit(&lines);
	if (length > 2 * FILE_MAX_LINES * size)
		abort();
}

static void check_text(const void *data, size_t size)
{
	struct buf text = BUF_INIT;

	if (!answer_text(data, size, DEMANGLE_MAX_OUTPUT, &text) && strlen(text.data) != size)
		abort();
	buf_deinit(&text);
}

static void check_code(const void *data, size_t size)
{
	const uint64_t start = 0x1000, bytes = 0x1000;
	struct elf_code code = ELF_CODE_INIT;
	uint64_t next = start;
	size_t length = 0;

	if (answer_code(data, size, start, bytes, &code))
		return;
	for (size_t i = 0; i < code.n; i++) {
		if (code.v[i].address < next || !code.v[i].size)
			abort();
		next = code.v[i].address + code.v[i].size;
		length += strlen(buf_str(&code.text) + code.v[i].text);
	}
	if (next > start + bytes || length > size * (size + 1))
		abort();
	elf_code_deinit(&code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[KINDS])(const void *, size_t) = {
		check_headers, check_exports, check_table, check_symbols, check_facts,
		check_lines,   check_text,    check_code,  check_tls,
	};
	void *answer;

	if (!size)
		return 0;
	/* At a place of its own, as it is received: aligned, and with an end that ASan knows. */
	answer = malloc(size > 1 ? size - 1 : 1);
	if (!answer)
		return 0;
	memcpy(answer, data + 1, size - 1);
	checks[data[0] % KINDS](answer, size - 1);
	free(answer);
	return 0;
}
