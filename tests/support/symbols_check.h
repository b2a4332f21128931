/* SPDX-License-Identifier: GPL-2.0-only */
/* What holds for the functions of any file. */
#ifndef RBPF_TESTS_SYMBOLS_CHECK_H
#define RBPF_TESTS_SYMBOLS_CHECK_H

#include <criterion/criterion.h>
#include <string.h>

#include "elf/symbols.h"

/* The function of @addr by looking at all of them. */
static inline const struct elf_function *naive_symbols_find(const struct elf_symbols *s,
							    uint64_t addr)
{
	for (size_t i = s->n; i--;)
		if (s->functions[i].start <= addr && addr < s->functions[i].end)
			return &s->functions[i];
	return NULL;
}

static inline void assert_sane_elf_symbols(const struct elf_symbols *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct elf_function *f = &s->functions[i];

		cr_assert_gt(f->start, i ? f[-1].start : 0, "function %zu is in order", i);
		cr_assert_gt(f->end, f->start, "function %zu is not empty", i);
		cr_assert_leq(strlen(f->name), ELF_SYMBOLS_MAX_NAME + 4, "its name ends");
		cr_assert_eq(elf_symbols_find(s, f->start), f, "function %zu is found", i);
	}
	for (size_t i = 0; i < s->n_rests; i++) {
		const struct elf_function_rest *r = &s->rests[i];

		cr_assert_lt(r->start, r->end, "rest %zu is not empty", i);
		cr_assert_lt(r->function, s->n, "rest %zu is of a function", i);
		cr_assert(!i || r[-1].end <= r->start, "rest %zu is in order", i);
		cr_assert_eq(elf_symbols_find(s, r->start), &s->functions[r->function]);
		cr_assert_eq(elf_symbols_find(s, r->end - 1), &s->functions[r->function]);
	}
}

#endif
