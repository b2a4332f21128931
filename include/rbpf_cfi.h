/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How to unwind native frames: for each address of a file, the rule that restores the caller's
 * registers, compiled from the file's call frame information (.eh_frame). src/elf/cfi.h makes the
 * tables; the native walk searches them and applies the rules. Both sides compile this header, so
 * it has only fixed-width __u* types (from vmlinux.h there, <linux/types.h> here), explicit
 * padding, and no pointers in what is shared.
 *
 * A table is an array of words, position-independent and little-endian. An address is counted from
 * the lowest PT_LOAD of its file and looked for within its page of 64 KiB:
 *
 *	word 0 … pages		for each page, the word that its rows begin at; then where all end
 *	then the rows		rule << 16 | the address in its page that the row begins at
 *
 * Rows are sorted, each reaches to the next one, and the first of each page begins at its start.
 * The rules are in one list for all files: a process of 110,000 rows has some 500 of them.
 */
#ifndef RBPF_CFI_H
#define RBPF_CFI_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define RBPF_CFI_PAGE_SHIFT  16
#define RBPF_CFI_PAGE_MASK   0xffffu
#define RBPF_CFI_MAX_PAGES   65536 /* of a table: 4 GiB of addresses */
#define RBPF_CFI_SEARCH_MAX  17	   /* halvings of a page's rows, of which there are 65536 at most */
#define RBPF_CFI_MAX_RULES   16384

/* Rules that every list of rules begins with. */
#define RBPF_CFI_RULE_NONE   0 /* nothing is said of this address */
/*
 * What code with a frame pointer does: the frame record {caller's fp, return address} is at fp.
 * Rows that say just this have it too; it is here for code that no table covers but that is known
 * to keep one, as JITs' on arm64.
 */
#define RBPF_CFI_RULE_RECORD 1

/*
 * The CFA is what the stack pointer was (x86_64: before the return address was pushed), and will
 * be in the caller.
 */
enum rbpf_cfi_cfa {
	RBPF_CFI_CFA_NONE = 0,	   /* not known, why says why */
	RBPF_CFI_CFA_SP = 1,	   /* sp + cfa_off */
	RBPF_CFI_CFA_FP = 2,	   /* fp + cfa_off */
	RBPF_CFI_CFA_SP_DEREF = 3, /* *(sp + cfa_off) + cfa_arg */
	RBPF_CFI_CFA_FP_DEREF = 4, /* *(fp + cfa_off) + cfa_arg */
	/*
	 * Register cfa_arg, by its DWARF number, + cfa_off. Only where all registers are known: in
	 * the innermost frame.
	 */
	RBPF_CFI_CFA_REGISTER = 5,
	RBPF_CFI_CFA_PLT = 6, /* x86_64: sp + cfa_off, and 8 more if (pc & 15) >= cfa_arg */
};

enum rbpf_cfi_ra {
	RBPF_CFI_RA_CFA = 0, /* at CFA + ra_off */
	RBPF_CFI_RA_SP = 1,  /* at sp + ra_off */
	RBPF_CFI_RA_LR = 2,  /* arm64: in x30, where that is known */
	RBPF_CFI_RA_END = 3, /* there is none: the outermost frame */
};

enum rbpf_cfi_fp {
	RBPF_CFI_FP_SAME = 0,
	RBPF_CFI_FP_CFA = 1,  /* at CFA + fp_off */
	RBPF_CFI_FP_SP = 2,   /* at sp + fp_off */
	RBPF_CFI_FP_FP = 3,   /* at fp + fp_off */
	RBPF_CFI_FP_LOST = 4, /* nobody knows */
};

/*
 * A signal handler's return: the pc found is where the thread was interrupted, no return address,
 * and the CFA may be lower than sp (on another stack). arm64: x30 is 8 after fp.
 */
#define RBPF_CFI_SIGNAL 1

/* Why there is no CFA. */
enum rbpf_cfi_why {
	RBPF_CFI_WHY_NONE = 0,	     /* no entry for this address */
	RBPF_CFI_WHY_EXPRESSION = 1, /* the CFA is a DWARF expression of an unknown kind */
	RBPF_CFI_WHY_RA = 2,	     /* the return address is in a register or an expression */
	RBPF_CFI_WHY_SP = 3,	     /* the caller's sp is not the CFA */
	RBPF_CFI_WHY_RANGE = 4,	     /* an offset that no real frame has */
	RBPF_CFI_WHY_MALFORMED = 5,  /* the entry is broken */
	RBPF_CFI_WHY_FULL = 6,	     /* more than RBPF_CFI_MAX_RULES rules */
	RBPF_CFI_WHY_MAX = 7,
};

struct rbpf_cfi_rule {
	__u8 cfa; /* enum rbpf_cfi_cfa */
	__u8 ra;  /* enum rbpf_cfi_ra */
	__u8 fp;  /* enum rbpf_cfi_fp */
	__u8 flags;
	__u8 why; /* enum rbpf_cfi_why */
	__u8 pad[3];
	__s32 cfa_off, cfa_arg;
	__s32 ra_off, fp_off;
};

_Static_assert(sizeof(struct rbpf_cfi_rule) == 24, "shared with BPF");

#endif
