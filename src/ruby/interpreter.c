/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/interpreter.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/elf_headers.h"
#include "elf/symbols.h"
#include "worker/file_worker.h"

#define TEXT_MAX (256u << 20) /* bytes of code that are looked through */

/* Code of the file. */
struct text {
	const uint8_t *bytes;
	size_t size;
	uint64_t addr;
	uint16_t machine; /* EM_* */
};

static void add(struct interpreter_function *f, uint64_t start)
{
	if (f->n < INTERPRETER_PARTS && !interpreter_is(f, start))
		f->starts[f->n++] = start;
}

bool interpreter_is(const struct interpreter_function *f, uint64_t start)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->starts[i] == start)
			return true;
	return false;
}

/* Whether @name is @function's, or that of a copy or a part of it: "vm_exec_core.cold". */
static bool is_named(const char *name, const char *function)
{
	size_t len = strlen(function);

	return !strncmp(name, function, len) && (!name[len] || name[len] == '.');
}

static void find_by_name(const struct elf_symbols *symbols, struct interpreter *ret)
{
	size_t i;

	for (i = 0; i < symbols->n; i++) {
		const struct elf_function *f = &symbols->functions[i];

		if (is_named(f->name, INTERPRETER_CORE))
			add(&ret->core, f->start);
		else if (is_named(f->name, INTERPRETER_EXEC))
			add(&ret->exec, f->start);
	}
}

/* ---- calls ---- */

static size_t next_call_x86_64(const struct text *text, size_t from, uint64_t target)
{
	const uint8_t *p = text->bytes + from, *end = text->bytes + text->size;

	/* call rel32; it may be in the midst of another instruction, but would then not fit. */
	while (end - p >= 5 && (p = memchr(p, 0xe8, (size_t)(end - p) - 4))) {
		uint64_t next = text->addr + (uint64_t)(p - text->bytes) + 5;
		int32_t rel;

		memcpy(&rel, p + 1, sizeof(rel));
		if (next + (uint64_t)(int64_t)rel == target)
			return (size_t)(p - text->bytes);
		p++;
	}
	return text->size;
}

static size_t next_call_aarch64(const struct text *text, size_t from, uint64_t target)
{
	size_t i;

	for (i = from + (-(text->addr + from) & 3); i + 4 <= text->size; i += 4) {
		uint32_t insn;

		/* bl: a signed number of words in its low 26 bits */
		memcpy(&insn, text->bytes + i, sizeof(insn));
		if (insn >> 26 == 0x25 &&
		    text->addr + i + (uint64_t)((int64_t)(int32_t)(insn << 6) >> 4) == target)
			return i;
	}
	return text->size;
}

/*
 * The first call of the function at @target at or behind byte @from; @text's size if there is none.
 */
static size_t next_call(const struct text *text, size_t from, uint64_t target)
{
	switch (text->machine) {
	case EM_X86_64:
		return next_call_x86_64(text, from, target);
	case EM_AARCH64:
		return next_call_aarch64(text, from, target);
	default:
		return text->size;
	}
}

static void find_callers(const struct text *text, const struct elf_symbols *symbols,
			 uint64_t target, struct interpreter_function *ret)
{
	const struct elf_function *f;
	size_t i;

	for (i = next_call(text, 0, target); i < text->size; i = next_call(text, i + 1, target)) {
		f = elf_symbols_find(symbols, text->addr + i);
		if (f && f->start != target)
			add(ret, f->start);
	}
}

static int find_callers_in(struct file_worker *worker, int fd, const struct elf_segment *segment,
			   const struct elf_symbols *symbols, const struct interpreter *known,
			   struct interpreter_function *ret)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct text text = { .addr = segment->vaddr };
	ssize_t n;
	size_t i;

	if (!segment->exec || segment->filesz > TEXT_MAX)
		return 0;
	bytes = malloc(segment->filesz + 1);
	if (!bytes)
		return -ENOMEM;
	n = file_worker_read(worker, fd, &text.machine, sizeof(text.machine),
			     offsetof(Elf64_Ehdr, e_machine));
	if (n == sizeof(text.machine))
		n = file_worker_read(worker, fd, bytes, segment->filesz, segment->offset);
	if (n < 0)
		return -EIO;
	text.bytes = bytes;
	text.size = (size_t)n;
	for (i = 0; i < known->core.n; i++)
		find_callers(&text, symbols, known->core.starts[i], ret);
	return 0;
}

int interpreter_find(struct file_worker *worker, int fd, const struct elf_headers *headers,
		     const struct elf_symbols *symbols, uint64_t label, struct interpreter *ret)
{
	const struct elf_function *core = label ? elf_symbols_find(symbols, label) : NULL;
	struct interpreter_function callers = { .n = 0 };
	size_t i;
	int r = 0;

	*ret = (struct interpreter) { .core.n = 0 };
	find_by_name(symbols, ret);
	/* A compiler may have put the one into the other. */
	if (core && !interpreter_is(&ret->exec, core->start))
		add(&ret->core, core->start);
	for (i = 0; i < headers->n && !r; i++)
		r = find_callers_in(worker, fd, &headers->v[i], symbols, ret, &callers);
	for (i = 0; i < callers.n; i++)
		add(&ret->exec, callers.starts[i]);
	return r ? r : ret->exec.n ? 0 : -ENOENT;
}
