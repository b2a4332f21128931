/* SPDX-License-Identifier: GPL-2.0-only */
/* x86_64, as far as compilers use it in accessors and in the first blocks of larger functions. */
#include "base/array.h"
#include "ruby/emulate_x86_64_insn.h"

/* ---- operands ---- */

/* %ah, %ch, %dh and %bh, which are not modelled. */
static bool is_high_byte(const struct x86_insn *i, uint8_t reg, unsigned int width)
{
	return width == 1 && !i->rex && reg >= 4;
}

static struct emu_value get_reg(const struct x86_insn *i, const struct emu_state *s, uint8_t reg,
				unsigned int width)
{
	if (is_high_byte(i, reg, width))
		return (struct emu_value) { 0 };
	return emu_narrow(s->reg[reg], width);
}

static void set_reg(const struct x86_insn *i, struct emu_state *s, uint8_t reg, struct emu_value v,
		    unsigned int width)
{
	if (is_high_byte(i, reg, width)) {
		s->reg[reg - 4] = (struct emu_value) { 0 };
		return;
	}
	s->reg[reg] = emu_narrow(v, width);
	if (width < 4) { /* the upper bytes stay; which they are is of no interest */
		s->reg[reg].known = false;
		s->reg[reg].v = 0;
	}
}

static struct emu_value get_rm(const struct x86_insn *i, struct emulator *e, struct emu_state *s,
			       unsigned int width)
{
	return i->mem ? emu_load(e, s, i->addr, width) : get_reg(i, s, i->rm, width);
}

static void set_rm(const struct x86_insn *i, struct emulator *e, struct emu_state *s,
		   struct emu_value v, unsigned int width)
{
	if (i->mem)
		emu_store(e, s, i->addr, v, width);
	else
		set_reg(i, s, i->rm, v, width);
}

static void push(struct emulator *e, struct emu_state *s, struct emu_value v)
{
	s->reg[X86_RSP] = emu_add(s->reg[X86_RSP], -8);
	emu_store(e, s, s->reg[X86_RSP], v, 8);
}

static struct emu_value pop(struct emulator *e, struct emu_state *s)
{
	struct emu_value v = emu_load(e, s, s->reg[X86_RSP], 8);

	s->reg[X86_RSP] = emu_add(s->reg[X86_RSP], 8);
	return v;
}

/* ---- instructions ---- */

/* mul, div; cmpxchg */
static bool writes_implicitly(const struct x86_insn *i)
{
	return i->map == 1 ? (i->op & 0xfe) == 0xf6
			   : i->map == 2 && ((i->op & 0xfe) == 0xb0 || i->op == 0xc7);
}

/* An instruction that is not modelled: forget all that it may write. */
static void forget(const struct x86_insn *i, struct emu_state *s)
{
	static const uint8_t implicit[] = { X86_RAX, X86_RCX, X86_RDX, X86_RSI, X86_RDI };
	size_t k;

	if (i->mem)
		emu_forget(s, i->addr, 64);
	if (!i->general)
		return;
	if (i->modrm) {
		s->reg[i->reg] = (struct emu_value) { 0 };
		if (!i->mem)
			s->reg[i->rm] = (struct emu_value) { 0 };
	}
	if (i->vex)
		s->reg[i->vvvv] = (struct emu_value) { 0 };
	for (k = 0; k < ARRAY_SIZE(implicit) && (!i->modrm || writes_implicitly(i)); k++)
		s->reg[implicit[k]] = (struct emu_value) { 0 };
}

static const enum emu_op alu_ops[] = { EMU_ADD, EMU_OR,	 EMU_OTHER, EMU_OTHER,
				       EMU_AND, EMU_SUB, EMU_XOR,   EMU_OTHER /* cmp */ };
#define ALU_CMP 7

static void alu(const struct x86_insn *i, struct emulator *e, struct emu_state *s)
{
	bool imm = i->op >= 0x80, accumulator = !imm && (i->op & 4), to_reg = i->op & 2;
	unsigned int width = i->op & 1 ? i->width : 1, n = imm ? i->reg & 7 : i->op >> 3;
	struct emu_value a, b;

	if (imm || accumulator) {
		a = imm ? get_rm(i, e, s, width) : get_reg(i, s, X86_RAX, width);
		b = emu_narrow(emu_const((uint64_t)i->imm), width);
	} else {
		a = get_rm(i, e, s, width);
		b = get_reg(i, s, i->reg, width);
		if (to_reg) {
			struct emu_value t = a;

			a = b;
			b = t;
		}
	}
	if (n == ALU_CMP)
		return;
	a = emu_compute(alu_ops[n], a, b);
	/* The usual way to write 0, whatever the register held. */
	if (alu_ops[n] == EMU_XOR && !imm && !accumulator && !i->mem && i->reg == i->rm)
		a = emu_const(0);
	if (accumulator)
		set_reg(i, s, X86_RAX, a, width);
	else if (to_reg && !imm)
		set_reg(i, s, i->reg, a, width);
	else
		set_rm(i, e, s, a, width);
}

static void mov(const struct x86_insn *i, struct emulator *e, struct emu_state *s)
{
	unsigned int width = i->op & 1 ? i->width : 1;

	switch (i->op) {
	case 0x88:
	case 0x89:
		set_rm(i, e, s, get_reg(i, s, i->reg, width), width);
		break;
	case 0x8a:
	case 0x8b:
		set_reg(i, s, i->reg, get_rm(i, e, s, width), width);
		break;
	case 0xc6:
	case 0xc7:
		set_rm(i, e, s, emu_const((uint64_t)i->imm), width);
		break;
	default: /* b0 to bf */
		set_reg(i, s, (i->op & 7) | (i->rex & 1) << 3, emu_const((uint64_t)i->imm),
			i->op & 8 ? i->width : 1);
	}
}

/* movzx, movsx, movslq */
static void extend(const struct x86_insn *i, struct emulator *e, struct emu_state *s)
{
	bool sign = i->map == 1 || (i->op & 8);
	unsigned int width = i->map == 1 ? 4 : i->op & 1 ? 2 : 1;
	struct emu_value v = get_rm(i, e, s, width);

	if (sign && v.known && v.v >> (width * 8 - 1))
		v = (struct emu_value) { 0 };
	set_reg(i, s, i->reg, v, i->width);
}

static void shift(const struct x86_insn *i, struct emulator *e, struct emu_state *s)
{
	bool by_imm = i->op < 0xd0, by_1 = !by_imm && !(i->op & 2), right = (i->reg & 7) == 5;
	unsigned int width = i->op & 1 ? i->width : 1;
	struct emu_value count = { 0 };

	if (by_imm || by_1)
		count = emu_const(by_1 ? 1 : (uint64_t)i->imm & (width == 8 ? 63 : 31));
	set_rm(i, e, s, emu_compute(right ? EMU_SHR : EMU_OTHER, get_rm(i, e, s, width), count),
	       width);
}

static enum emu_step call_or_jump(const struct x86_insn *i, struct emulator *e, struct emu_state *s)
{
	struct emu_value target;

	switch (i->reg & 7) {
	case 2:
		target = get_rm(i, e, s, 8);
		emu_call(e, s, target);
		return EMU_NEXT;
	case 4:
		return emu_jump(e, s, get_rm(i, e, s, 8));
	case 6:
		push(e, s, get_rm(i, e, s, 8));
		return EMU_NEXT;
	case 0:
	case 1:
		set_rm(i, e, s, (struct emu_value) { 0 }, i->width); /* inc, dec */
		return EMU_NEXT;
	}
	return EMU_STOP;
}

static enum emu_step step_two_byte(const struct x86_insn *i, struct emulator *e,
				   struct emu_state *s)
{
	switch (i->op) {
	case 0x80 ... 0x8f:
		emu_branch(e, s, s->pc + (uint64_t)i->imm);
		break;
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		extend(i, e, s);
		break;
	default:
		forget(i, s);
	}
	return EMU_NEXT;
}

static enum emu_step step_one_byte(const struct x86_insn *i, struct emulator *e,
				   struct emu_state *s)
{
	uint8_t low = (i->op & 7) | (i->rex & 1) << 3; /* a register in the opcode */

	switch (i->op) {
	case 0x00 ... 0x3f:
	case 0x80:
	case 0x81:
	case 0x83:
		alu(i, e, s);
		break;
	case 0x50 ... 0x57:
		push(e, s, s->reg[low]);
		break;
	case 0x58 ... 0x5f:
		s->reg[low] = pop(e, s);
		break;
	case 0x63:
		extend(i, e, s);
		break;
	case 0x68:
	case 0x6a:
		push(e, s, emu_const((uint64_t)i->imm));
		break;
	case 0x70 ... 0x7f:
		emu_branch(e, s, s->pc + (uint64_t)i->imm);
		break;
	case 0x84:
	case 0x85:
		get_rm(i, e, s, i->op & 1 ? i->width : 1);
		break;
	case 0x88 ... 0x8b:
	case 0xb0 ... 0xbf:
	case 0xc6:
	case 0xc7:
		mov(i, e, s);
		break;
	case 0x8d:
		set_reg(i, s, i->reg, i->addr, i->width);
		break;
	case 0x90: /* nop; xchg %r8, %rax */
		return low ? EMU_STOP : EMU_NEXT;
	case 0xa8: /* test */
	case 0xa9:
		break;
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		shift(i, e, s);
		break;
	case 0xc3:
		return EMU_RETURN;
	case 0xc9:
		s->reg[X86_RSP] = s->reg[X86_RBP];
		s->reg[X86_RBP] = pop(e, s);
		break;
	case 0xe8:
		emu_call(e, s, emu_const(s->pc + (uint64_t)i->imm));
		break;
	case 0xe9:
	case 0xeb:
		return emu_jump(e, s, emu_const(s->pc + (uint64_t)i->imm));
	case 0xff:
		return call_or_jump(i, e, s);
	default:
		forget(i, s);
	}
	return EMU_NEXT;
}

static enum emu_step step(struct emulator *e, struct emu_state *s)
{
	struct x86_insn i;

	if (!x86_decode(&i, e, s))
		return EMU_STOP;
	s->pc += i.at;
	if (i.vex || i.map > 2)
		forget(&i, s);
	else
		return i.map == 2 ? step_two_byte(&i, e, s) : step_one_byte(&i, e, s);
	return EMU_NEXT;
}

const struct emu_machine emu_x86_64 = {
	.step = step,
	.sp = X86_RSP,
	.result = X86_RAX,
	.argument = X86_RDI,
	.tlsdesc = X86_RAX,
	.scratch = 1 << X86_RAX | 1 << X86_RCX | 1 << X86_RDX | 1 << X86_RSI | 1 << X86_RDI |
		   0xf << X86_R8, /* to %r11 */
	.dtv = { { 8, 16 }, { 8, 8 } },
};
