/* SPDX-License-Identifier: GPL-2.0-only */
/* Searching the tables of rbpf_cfi.h. Compiled by both sides. */
#ifndef RBPF_CFI_FIND_H
#define RBPF_CFI_FIND_H

#include "rbpf_cfi.h"

/*
 * Where a table is and how a word of it is got. A walker in BPF, whose tables are in the values of
 * a map, defines both before it includes this.
 */
#ifndef RBPF_CFI_TABLE
#define RBPF_CFI_TABLE const __u32 *
static inline __u32 rbpf_cfi_word(RBPF_CFI_TABLE table, __u32 i)
{
	return table[i];
}
#endif

/*
 * The number of the rule for @addr, counted from the lowest PT_LOAD, in a table of @pages pages. Of
 * a return address it is the address before it that counts: a call may be a function's last
 * instruction.
 */
static inline __attribute__((always_inline)) __u32 rbpf_cfi_find(RBPF_CFI_TABLE table, __u32 pages,
								 __u64 addr)
{
	__u32 low, high, middle, i;

	if (addr >> RBPF_CFI_PAGE_SHIFT >= pages)
		return RBPF_CFI_RULE_NONE;
	low = rbpf_cfi_word(table, addr >> RBPF_CFI_PAGE_SHIFT);
	high = rbpf_cfi_word(table, (addr >> RBPF_CFI_PAGE_SHIFT) + 1);
	for (i = 0; i < RBPF_CFI_SEARCH_MAX && high - low > 1; i++) {
		middle = low + (high - low) / 2;
		if ((rbpf_cfi_word(table, middle) & RBPF_CFI_PAGE_MASK) <=
		    (addr & RBPF_CFI_PAGE_MASK))
			low = middle;
		else
			high = middle;
	}
	return rbpf_cfi_word(table, low) >> 16;
}

#endif
