/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the native walk remembers of the addresses that it met: the rule by which a frame is left
 * there. Each scratch has a table of its own.
 *
 * Compiled like ruby_walk.bpf.h.
 */
#ifndef RBPF_NATIVE_RULES_BPF_H
#define RBPF_NATIVE_RULES_BPF_H

#include "walk_state.bpf.h"

/* What the rule of @addr is remembered by: as long as these ranges exist it stays what it is. */
static __always_inline __u64 native_rule_key(const struct walk_native *n, __u64 addr)
{
	return rbpf_mix(n->code_key, addr);
}

/*
 * What is remembered of an address, in one word: the upper bits of its key and, as nearly all rules
 * say no more than how many words the CFA is above sp or fp, and how many below it the return
 * address and the caller's fp are saved, the rule itself; or else its number. A rule in a word is
 * one part of memory that is far away, where a number leads to others.
 */
#define NATIVE_RULE_BITS 24
#define NATIVE_RULE_MASK ((1ull << NATIVE_RULE_BITS) - 1)
#define NATIVE_RULE_HERE 1ull /* the rule, no number, which begins at bit 1 */
#define NATIVE_RULE_FP	 2ull /* the CFA is above fp */
#define NATIVE_CFA_SHIFT 2
#define NATIVE_CFA_WORDS 1024
#define NATIVE_RA_SHIFT	 12
#define NATIVE_FP_SHIFT	 18
#define NATIVE_SAVED	 64 /* words below the CFA, fewer than that; 0 of fp: it is not saved */

/* Whether @off is that of a word below the CFA that a rule in a word can name. */
static __always_inline bool native_is_saved(__s32 off)
{
	return off < 0 && off > -8 * NATIVE_SAVED && !(off & 7);
}

/* Rule @i in the lower NATIVE_RULE_BITS of a word. */
static __always_inline __u64 native_rule_word(const struct rbpf_cfi_rule *rule, __u32 i)
{
	__u64 word = NATIVE_RULE_HERE;

	if ((rule->cfa != RBPF_CFI_CFA_SP && rule->cfa != RBPF_CFI_CFA_FP) || rule->flags ||
	    rule->cfa_off < 0 || rule->cfa_off >= 8 * NATIVE_CFA_WORDS || rule->cfa_off & 7 ||
	    rule->ra != RBPF_CFI_RA_CFA || !native_is_saved(rule->ra_off))
		return (__u64)i << 1;
	if (rule->fp == RBPF_CFI_FP_CFA && native_is_saved(rule->fp_off))
		word |= (__u64)(-rule->fp_off / 8) << NATIVE_FP_SHIFT;
	else if (rule->fp != RBPF_CFI_FP_SAME)
		return (__u64)i << 1;
	if (rule->cfa == RBPF_CFI_CFA_FP)
		word |= NATIVE_RULE_FP;
	return word | (__u64)(rule->cfa_off / 8) << NATIVE_CFA_SHIFT |
	       (__u64)(-rule->ra_off / 8) << NATIVE_RA_SHIFT;
}

#define NATIVE_WAYS 4 /* places of an address, in one line of memory */

static __always_inline __u64 *native_set(struct walk_native *n, __u64 key)
{
	return &n->rules[key & (NATIVE_RULES - NATIVE_WAYS)];
}

/* What is remembered of @key, 0 if nothing is. */
static __always_inline __u64 native_recall(struct walk_native *n, __u64 key)
{
	const __u64 *set = native_set(n, key);
	int i;

	for (i = 0; i < NATIVE_WAYS; i++)
		if (!((set[i] ^ key) >> NATIVE_RULE_BITS))
			return set[i];
	return 0;
}

/* In place of what was remembered first. */
static __always_inline void native_remember(struct walk_native *n, __u64 key, __u64 rule)
{
	__u64 *set = native_set(n, key);

	set[3] = set[2];
	set[2] = set[1];
	set[1] = set[0];
	set[0] = (key & ~NATIVE_RULE_MASK) | rule;
}

#endif
