/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One instruction of x86_64, decoded: of all general, SSE and AVX instructions its length and
 * operands, not what it does.
 */
#ifndef RBPF_RUBY_EMULATE_X86_64_INSN_H
#define RBPF_RUBY_EMULATE_X86_64_INSN_H

#include "ruby/emulate.h"

enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8 };

struct x86_insn {
	uint8_t code[15];
	size_t size; /* bytes in code[] */
	size_t at;   /* bytes decoded so far; at the end, the length of the instruction */

	bool operand16, address32, fs, vex; /* prefixes */
	uint8_t rex;			    /* W 8, R 4, X 2, B 1; 0x40 if there is one */
	uint8_t vvvv;			    /* a further register of VEX */

	uint8_t map; /* 1: one-byte opcodes, 2: 0f, 3: 0f 38, 4: 0f 3a */
	uint8_t op;
	bool modrm;	    /* it has a ModRM byte … */
	bool mem;	    /* … whose rm operand is in memory, not in a register */
	bool general;	    /* it may write general registers */
	uint8_t reg, rm;    /* numbers of registers; in some opcodes reg extends the opcode */
	unsigned int width; /* in bytes, of operands that are not bytes */
	int64_t imm;
	struct emu_value addr; /* of the operand in memory */
};

/* Decode the instruction at s->pc. False if it is invalid, rare, privileged or not in the text. */
bool x86_decode(struct x86_insn *i, struct emulator *e, const struct emu_state *s);

#endif
