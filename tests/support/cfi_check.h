/* SPDX-License-Identifier: GPL-2.0-only */
/* What is true of each table of unwind rows. */
#ifndef RBPF_TESTS_CFI_CHECK_H
#define RBPF_TESTS_CFI_CHECK_H

#include <criterion/criterion.h>

#include "elf/cfi.h"
#include "rbpf_cfi_find.h"

/* The rule for @addr, an address of the file, in its list. */
static inline const struct rbpf_cfi_rule *cfi_table_rule(const struct cfi_table *table,
							 const struct cfi_rules *rules,
							 uint64_t addr)
{
	return cfi_rules_get(rules, rbpf_cfi_find(table->words, table->pages, addr - table->base));
}

static inline void assert_sane_cfi_rule(const struct rbpf_cfi_rule *r)
{
	cr_assert_leq(r->cfa, RBPF_CFI_CFA_PLT);
	cr_assert_leq(r->ra, RBPF_CFI_RA_END);
	cr_assert_leq(r->fp, RBPF_CFI_FP_LOST);
	cr_assert_leq(r->flags, RBPF_CFI_SIGNAL);
	cr_assert_lt(r->why, RBPF_CFI_WHY_MAX);
	cr_assert(!r->pad[0] && !r->pad[1] && !r->pad[2]);
	cr_assert(r->cfa || (!r->ra && !r->fp && !r->cfa_off), "a reason and nothing else");
	cr_assert(!r->cfa || !r->why);
}

static inline void assert_sane_cfi_table(const struct cfi_table *t, const struct cfi_rules *rules)
{
	uint32_t page, i, first = t->pages + 1;
	uint64_t bytes = t->stats.covered;

	cr_assert(t->pages && t->pages <= RBPF_CFI_MAX_PAGES);
	cr_assert_eq(t->n_words, first + t->rows);
	cr_assert_eq(t->words[0], first);
	cr_assert_eq(t->words[t->pages], t->n_words);
	for (page = 0; page < t->pages; page++) {
		cr_assert_lt(t->words[page], t->words[page + 1], "page %u has a row", page);
		cr_assert_leq(t->words[page + 1], t->n_words);
		for (i = t->words[page]; i < t->words[page + 1]; i++) {
			uint32_t row = t->words[i], before = t->words[i - 1];

			cr_assert_lt(row >> 16, cfi_rules_count(rules));
			if (i == t->words[page]) {
				cr_assert_eq(row & 0xffff, 0, "page %u begins with a row", page);
				continue;
			}
			cr_assert_gt(row & 0xffff, before & 0xffff, "row %u is sorted", i);
			cr_assert_neq(row >> 16, before >> 16, "row %u is merged", i);
		}
	}
	for (i = 0; i < cfi_rules_count(rules); i++)
		assert_sane_cfi_rule(cfi_rules_get(rules, i));
	for (i = 0; i < RBPF_CFI_WHY_MAX; i++)
		bytes += t->stats.uncovered[i];
	cr_assert_leq(bytes, (uint64_t)t->pages << RBPF_CFI_PAGE_SHIFT, "more code than addresses");
}

#endif
