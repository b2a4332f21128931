/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables give the form of each opcode, which is enough to find the next instruction and to know
 * which registers may change. Source: Intel SDM volume 2, chapter 2 and appendix A.
 */
#include "ruby/emulate_x86_64_insn.h"

#include <string.h>

/*
 * Form of an opcode:
 *
 *   n  no operands in the instruction      m  ModRM byte
 *   b  immediate byte                      1  ModRM and immediate byte
 *   d  immediate of operand size, <= 4     4  ModRM and such an immediate
 *   x  like m, y like 1, but no general register is written
 *   .  ends the path: invalid, privileged, rare, or a prefix (those are taken off before)
 */
static const char one_byte[] = "mmmmbd..mmmmbd..mmmmbd..mmmmbd.." /* 00 */
			       "mmmmbd..mmmmbd..mmmmbd..mmmmbd.." /* 20 */
			       "................nnnnnnnnnnnnnnnn" /* 40 */
			       "...m....d4b1....bbbbbbbbbbbbbbbb" /* 60 */
			       "14.1mmmmmmmm.m..n.......nn......" /* 80 */
			       "........bd......bbbbbbbbdddddddd" /* a0 */
			       "11.n..14.n......mmmm....xxxxxxxx" /* c0 */
			       "........dd.b.........nmmnn..nnmm" /* e0 */;

static const char two_byte[] = ".............x..xxxxxxxxxxxxxxxx" /* 0f 00 */
			       "........xxxxmmxx................" /* 0f 20 */
			       "mmmmmmmmmmmmmmmmmxxxxxxxxxxxxxxx" /* 0f 40 */
			       "xxxxxxxxxxxxxxxxyyyyxxxn....xxmx" /* 0f 60 */
			       "ddddddddddddddddmmmmmmmmmmmmmmmm" /* 0f 80 */
			       "...x1m.....m1mxmmm.m..mmm.1mmmmm" /* 0f a0 */
			       "mmyxy1ym........xxxxxxxmxxxxxxxx" /* 0f c0 */
			       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx." /* 0f e0 */;

_Static_assert(sizeof(one_byte) == 257 && sizeof(two_byte) == 257, "a form for each opcode");

/* The next @n bytes, a signed number. */
static bool take(struct x86_insn *i, unsigned int n, int64_t *ret)
{
	uint64_t v = 0;
	unsigned int k;

	if (i->size - i->at < n)
		return false;
	for (k = 0; k < n; k++)
		v |= (uint64_t)i->code[i->at++] << k * 8;
	*ret = n ? (int64_t)(v << (64 - n * 8)) >> (64 - n * 8) : 0;
	return true;
}

static bool take_u8(struct x86_insn *i, uint8_t *ret)
{
	int64_t v;

	if (!take(i, 1, &v))
		return false;
	*ret = (uint8_t)v;
	return true;
}

/* Take off the legacy prefixes and REX, the last one; *@op is the byte behind them. */
static bool decode_prefixes(struct x86_insn *i, uint8_t *op)
{
	while (take_u8(i, op)) {
		switch (*op) {
		case 0x66:
			i->operand16 = true;
			break;
		case 0x67:
			i->address32 = true;
			break;
		case 0x64:
			i->fs = true;
			break;
		case 0x26: /* segments without a base, lock, rep: also notrack, bnd, xacquire */
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		case 0x40 ... 0x4f:
			i->rex = *op;
			return take_u8(i, op);
		default:
			return true;
		}
	}
	return false;
}

/* The two or three bytes of a VEX prefix, behind its first. The register bits are inverted. */
static bool decode_vex(struct x86_insn *i, bool three, uint8_t *op)
{
	uint8_t a, b;

	if (!take_u8(i, &a))
		return false;
	b = three ? 0 : a & 0x7f;
	if (three && !take_u8(i, &b))
		return false;
	i->vex = true;
	i->rex = 0x40 | (~a >> 5 & (three ? 7 : 4)) | (b >> 4 & 8);
	i->vvvv = ~b >> 3 & 15;
	i->map = three ? (a & 0x1f) + 1 : 2;
	return i->map >= 2 && i->map <= 4 && take_u8(i, op);
}

/* The prefixes and the opcode; *@form is its form. */
static bool decode_opcode(struct x86_insn *i, char *form)
{
	uint8_t op;

	i->map = 1;
	if (!decode_prefixes(i, &op))
		return false;
	if (op == 0xc4 || op == 0xc5) {
		if (!decode_vex(i, op == 0xc4, &op))
			return false;
	} else if (op == 0x0f) {
		if (!take_u8(i, &op))
			return false;
		i->map = op == 0x38 ? 3 : op == 0x3a ? 4 : 2;
		if (i->map > 2 && !take_u8(i, &op))
			return false;
	}
	i->op = op;
	i->width = i->rex & 8 ? 8 : i->operand16 ? 2 : 4;
	*form = i->map == 1 ? one_byte[op] : i->map == 2 ? two_byte[op] : i->map == 3 ? 'm' : '1';
	i->modrm = strchr("m14xy", *form);
	i->general = !strchr("xy", *form);
	return *form != '.';
}

static unsigned int immediate_size(const struct x86_insn *i, char form)
{
	unsigned int full = i->width == 2 ? 2 : 4;

	if (i->map == 1 && (i->op & 0xfe) == 0xf6) /* group 3: only test has one */
		return (i->reg & 7) > 1 ? 0 : i->op == 0xf6 ? 1 : full;
	if (i->map == 1 && (i->op & 0xf8) == 0xb8)
		return i->width;
	/* Near branches do not know the operand size. */
	if ((i->map == 1 && (i->op & 0xfe) == 0xe8) || (i->map == 2 && (i->op & 0xf0) == 0x80))
		return 4;
	return strchr("b1y", form) ? 1 : strchr("d4", form) ? full : 0;
}

static bool decode_sib(struct x86_insn *i, const struct emu_state *s, uint8_t mod,
		       struct emu_value *base)
{
	struct emu_value index = emu_const(0);
	uint8_t sib, reg;

	if (!take_u8(i, &sib))
		return false;
	reg = (sib & 7) | (i->rex & 1) << 3;
	*base = (sib & 7) == X86_RBP && !mod ? emu_const(0) : s->reg[reg];
	reg = (sib >> 3 & 7) | (i->rex & 2) << 2;
	if (reg != X86_RSP) {
		index = s->reg[reg];
		if (sib >> 6)
			index = index.known ? emu_const(index.v << (sib >> 6))
					    : (struct emu_value) { 0 };
	}
	*base = emu_compute(EMU_ADD, *base, index);
	return true;
}

/* The operand in memory, but for what is relative to the next instruction. */
static bool decode_memory(struct x86_insn *i, const struct emu_state *s, uint8_t mod,
			  struct emu_value *base)
{
	uint8_t low = i->rm & 7;
	int64_t disp;

	*base = emu_const(0);
	if (low == X86_RSP) {
		if (!decode_sib(i, s, mod, base))
			return false;
		low = i->code[i->at - 1] & 7;
	} else if (mod || low != X86_RBP) {
		*base = s->reg[i->rm];
	}
	if (!take(i, mod == 1 ? 1 : mod == 2 || (!mod && low == X86_RBP) ? 4 : 0, &disp))
		return false;
	*base = emu_add(*base, disp);
	return true;
}

bool x86_decode(struct x86_insn *i, struct emulator *e, const struct emu_state *s)
{
	uint8_t modrm = 0xc0;
	char form;

	*i = (struct x86_insn) { 0 };
	i->size = emu_fetch(e, s->pc, i->code, sizeof(i->code));
	if (!decode_opcode(i, &form) || (i->modrm && !take_u8(i, &modrm)))
		return false;
	i->reg = (modrm >> 3 & 7) | (i->rex & 4) << 1;
	i->rm = (modrm & 7) | (i->rex & 1) << 3;
	i->mem = modrm < 0xc0;
	if (i->mem && (i->address32 || !decode_memory(i, s, modrm >> 6, &i->addr)))
		return false;
	if (!take(i, immediate_size(i, form), &i->imm))
		return false;
	if ((modrm & 0xc7) == X86_RBP) /* relative to %rip */
		i->addr = emu_add(i->addr, (int64_t)(s->pc + i->at));
	if (i->fs)
		i->addr = emu_add(i->addr, (int64_t)e->tp);
	return true;
}
