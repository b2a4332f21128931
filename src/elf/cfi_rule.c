/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of the rules that call frame information can express, code in use needs few. Counted in the rows
 * of libruby, libc, libcrypto, libstdc++, ld.so: 99.7 % have the CFA at a distance from sp or
 * rbp. The others are assembler's: the CFA in another register, in leaf functions (libcrypto, 750
 * rows), in memory (libcrypto, and gcc where it aligns the stack), or an expression (PLT, signals).
 * A frame's rule names CFA, return address and fp. That the caller's sp is the CFA is checked.
 */
#include "elf/cfi_rule.h"

#include <dwarf.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

/* No frame is larger: stacks are not. */
#define MAX_OFFSET	(1 << 30)

/*
 * What the kernel puts at sp for a signal handler on arm64 (arch/arm64/kernel/signal.c, struct
 * rt_sigframe): siginfo of 128 bytes, then ucontext, in which the registers begin at 184.
 */
#define ARM64_REGISTERS (128 + 184)
#define ARM64_X29	(ARM64_REGISTERS + 29 * 8)
#define ARM64_SP	(ARM64_REGISTERS + 31 * 8)
#define ARM64_PC	(ARM64_REGISTERS + 32 * 8)

struct numbers { /* of registers, in DWARF */
	int sp, fp;
};

static struct numbers numbers_of(uint16_t machine)
{
	return machine == EM_AARCH64 ? (struct numbers) { .sp = 31, .fp = 29 }
				     : (struct numbers) { .sp = 7, .fp = 6 };
}

/* ---- operations ---- */

/* A register and a distance from it. */
static bool is_register_plus(const Dwarf_Op *op, int *reg, int64_t *off)
{
	if (op->atom == DW_OP_bregx && op->number < 256) {
		*reg = (int)op->number;
		*off = (int64_t)op->number2;
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = op->atom - DW_OP_breg0;
		*off = (int64_t)op->number;
		return true;
	}
	return false;
}

static bool set_offset(int32_t *field, int64_t off)
{
	if (off < -MAX_OFFSET || off > MAX_OFFSET)
		return false;
	*field = (int32_t)off;
	return true;
}

/* ---- the CFA ---- */

static enum rbpf_cfi_why set_register(struct rbpf_cfi_rule *rule, struct numbers n, int reg,
				      int64_t off)
{
	rule->cfa = RBPF_CFI_CFA_REGISTER;
	rule->cfa_arg = reg;
	if (reg == n.sp || reg == n.fp) {
		rule->cfa = reg == n.sp ? RBPF_CFI_CFA_SP : RBPF_CFI_CFA_FP;
		rule->cfa_arg = 0;
	}
	return set_offset(&rule->cfa_off, off) ? RBPF_CFI_WHY_NONE : RBPF_CFI_WHY_RANGE;
}

/* What is in memory at a register and a distance from it, and a distance from that. */
static enum rbpf_cfi_why set_deref(struct rbpf_cfi_rule *rule, struct numbers n,
				   const Dwarf_Op *ops, size_t n_ops, int reg, int64_t off)
{
	int64_t more = 0;

	if (n_ops == 3 && ops[2].atom == DW_OP_plus_uconst)
		more = (int64_t)ops[2].number;
	else if (n_ops != 2)
		return RBPF_CFI_WHY_EXPRESSION;
	if (reg != n.sp && reg != n.fp)
		return RBPF_CFI_WHY_EXPRESSION;
	rule->cfa = reg == n.sp ? RBPF_CFI_CFA_SP_DEREF : RBPF_CFI_CFA_FP_DEREF;
	return set_offset(&rule->cfa_off, off) && set_offset(&rule->cfa_arg, more)
		       ? RBPF_CFI_WHY_NONE
		       : RBPF_CFI_WHY_RANGE;
}

/*
 * The linkers' for a PLT: entries of 16 bytes, which push a word at some point: rsp + 8 +
 * (((rip & 15) >= 11) << 3), or another number than 11.
 */
static bool is_plt(const Dwarf_Op *ops, size_t n_ops, int reg)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					 DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,	 DW_OP_plus };
	size_t i;

	if (n_ops != ARRAY_SIZE(atoms) || reg != 7 || ops[1].number)
		return false;
	for (i = 0; i < n_ops; i++)
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	return ops[4].atom >= DW_OP_lit0 && ops[4].atom <= DW_OP_lit15;
}

static enum rbpf_cfi_why set_cfa(struct rbpf_cfi_rule *rule, Dwarf_Frame *frame, uint16_t machine)
{
	const struct numbers n = numbers_of(machine);
	size_t n_ops;
	Dwarf_Op *ops;
	int64_t off;
	int reg;

	if (dwarf_frame_cfa(frame, &ops, &n_ops) || !n_ops)
		return RBPF_CFI_WHY_MALFORMED;
	if (!is_register_plus(&ops[0], &reg, &off))
		return RBPF_CFI_WHY_EXPRESSION;
	if (n_ops == 1)
		return set_register(rule, n, reg, off);
	if (ops[1].atom == DW_OP_deref)
		return set_deref(rule, n, ops, n_ops, reg, off);
	if (machine != EM_X86_64 || !is_plt(ops, n_ops, reg))
		return RBPF_CFI_WHY_EXPRESSION;
	rule->cfa = RBPF_CFI_CFA_PLT;
	rule->cfa_arg = ops[4].atom - DW_OP_lit0;
	return set_offset(&rule->cfa_off, off) ? RBPF_CFI_WHY_NONE : RBPF_CFI_WHY_RANGE;
}

/* ---- the registers ---- */

enum register_rule {
	REGISTER_SAME_VALUE, /* as in this frame */
	REGISTER_UNDEFINED,  /* not recoverable */
	REGISTER_AT_CFA,     /* in memory, at CFA + off */
	REGISTER_AT_SP,	     /* … sp + off */
	REGISTER_AT_FP,	     /* … fp + off */
	REGISTER_VAL_OFFSET, /* it is CFA + off */
	REGISTER_OTHER,
};

/* The DWARF rule of register @reg of the caller. */
static enum register_rule find_register(Dwarf_Frame *frame, struct numbers n, int reg, int64_t *off)
{
	Dwarf_Op room[3], *ops;
	enum register_rule found;
	size_t n_ops, i = 1;
	int base;

	*off = 0;
	if (dwarf_frame_register(frame, reg, room, &ops, &n_ops))
		return REGISTER_OTHER;
	if (!n_ops)
		return ops ? REGISTER_UNDEFINED : REGISTER_SAME_VALUE;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return REGISTER_OTHER;
	found = REGISTER_AT_CFA;
	if (i < n_ops && ops[i].atom == DW_OP_plus_uconst) {
		*off = (int64_t)ops[i++].number;
	} else if (i < n_ops && is_register_plus(&ops[i], &base, off)) {
		if (base != n.sp && base != n.fp)
			return REGISTER_OTHER;
		found = base == n.sp ? REGISTER_AT_SP : REGISTER_AT_FP;
		i++;
	}
	if (found == REGISTER_AT_CFA && i + 1 == n_ops && ops[i].atom == DW_OP_stack_value)
		return REGISTER_VAL_OFFSET;
	return i == n_ops ? found : REGISTER_OTHER;
}

static enum rbpf_cfi_why set_ra(struct rbpf_cfi_rule *rule, Dwarf_Frame *frame, uint16_t machine)
{
	int reg = dwarf_frame_info(frame, NULL, NULL, NULL);
	int64_t off;

	switch (find_register(frame, numbers_of(machine), reg, &off)) {
	case REGISTER_UNDEFINED:
		rule->ra = RBPF_CFI_RA_END;
		return RBPF_CFI_WHY_NONE;
	case REGISTER_SAME_VALUE:
		if (machine != EM_AARCH64 || reg != 30)
			return RBPF_CFI_WHY_RA;
		rule->ra = RBPF_CFI_RA_LR;
		return RBPF_CFI_WHY_NONE;
	case REGISTER_AT_CFA:
		rule->ra = RBPF_CFI_RA_CFA;
		break;
	case REGISTER_AT_SP:
		rule->ra = RBPF_CFI_RA_SP;
		break;
	default:
		return RBPF_CFI_WHY_RA;
	}
	return set_offset(&rule->ra_off, off) ? RBPF_CFI_WHY_NONE : RBPF_CFI_WHY_RANGE;
}

/* A frame whose fp is not known may still be left. */
static void set_fp(struct rbpf_cfi_rule *rule, Dwarf_Frame *frame, uint16_t machine)
{
	const struct numbers n = numbers_of(machine);
	int64_t off;

	switch (find_register(frame, n, n.fp, &off)) {
	case REGISTER_SAME_VALUE:
		rule->fp = RBPF_CFI_FP_SAME;
		break;
	case REGISTER_AT_CFA:
		rule->fp = RBPF_CFI_FP_CFA;
		break;
	case REGISTER_AT_SP:
		rule->fp = RBPF_CFI_FP_SP;
		break;
	case REGISTER_AT_FP:
		rule->fp = RBPF_CFI_FP_FP;
		break;
	default:
		rule->fp = RBPF_CFI_FP_LOST;
	}
	if (!set_offset(&rule->fp_off, off))
		rule->fp = RBPF_CFI_FP_LOST;
}

/* A signal's sp is among the saved registers, and so is what the CFA is read from. */
static enum rbpf_cfi_why check_sp(Dwarf_Frame *frame, uint16_t machine, bool is_signal)
{
	const struct numbers n = numbers_of(machine);
	int64_t off;

	switch (find_register(frame, n, n.sp, &off)) {
	case REGISTER_VAL_OFFSET:
		return off ? RBPF_CFI_WHY_SP : RBPF_CFI_WHY_NONE;
	case REGISTER_AT_SP:
	case REGISTER_AT_CFA:
		return is_signal ? RBPF_CFI_WHY_NONE : RBPF_CFI_WHY_SP;
	default:
		return RBPF_CFI_WHY_SP;
	}
}

/* ---- the rule ---- */

struct rbpf_cfi_rule cfi_rule_unknown(enum rbpf_cfi_why why)
{
	return (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_NONE, .why = (uint8_t)why };
}

/*
 * What the vDSO says of arm64's __kernel_rt_sigreturn leads to the interrupted function's own frame
 * record, past where it was interrupted, because unwinders are expected to know the signal frame.
 */
static struct rbpf_cfi_rule arm64_signal(void)
{
	return (struct rbpf_cfi_rule) {
		.cfa = RBPF_CFI_CFA_SP_DEREF,
		.ra = RBPF_CFI_RA_SP,
		.fp = RBPF_CFI_FP_SP,
		.flags = RBPF_CFI_SIGNAL,
		.cfa_off = ARM64_SP,
		.ra_off = ARM64_PC,
		.fp_off = ARM64_X29,
	};
}

struct rbpf_cfi_rule cfi_rule_of(Dwarf_Frame *frame, uint16_t machine)
{
	struct rbpf_cfi_rule rule = { 0 };
	enum rbpf_cfi_why why;
	bool is_signal = false;

	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) < 0)
		return cfi_rule_unknown(RBPF_CFI_WHY_MALFORMED);
	if (is_signal && machine == EM_AARCH64)
		return arm64_signal();
	rule.flags = is_signal ? RBPF_CFI_SIGNAL : 0;
	why = set_ra(&rule, frame, machine);
	if (!why && rule.ra == RBPF_CFI_RA_END) /* nothing else of it matters */
		return (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_END };
	if (!why)
		why = check_sp(frame, machine, is_signal);
	if (!why)
		why = set_cfa(&rule, frame, machine);
	if (why)
		return cfi_rule_unknown(why);
	set_fp(&rule, frame, machine);
	return rule;
}
