/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arm64, as far as compilers use it in accessors and in the first blocks of larger functions.
 * Source: Arm Architecture Reference Manual for A-profile, C4.1 (the encoding index).
 */
#include "ruby/emulate.h"

#include "base/array.h"

#define SP 31 /* or, where an instruction says so, the zero register */
#define LR 30

/* Bits @hi to @lo of an instruction, and the same as a signed number. */
static uint32_t field(uint32_t insn, unsigned int hi, unsigned int lo)
{
	return insn >> lo & ((2u << (hi - lo)) - 1);
}

static int64_t sfield(uint32_t insn, unsigned int hi, unsigned int lo)
{
	return (int64_t)((uint64_t)insn << (63 - hi)) >> (63 - hi + lo);
}

static unsigned int width_of(uint32_t insn)
{
	return insn >> 31 ? 8 : 4;
}

static struct emu_value get(const struct emu_state *s, uint32_t reg)
{
	return reg == SP ? emu_const(0) : s->reg[reg];
}

static void set(struct emu_state *s, uint32_t reg, struct emu_value v, unsigned int width)
{
	if (reg != SP)
		s->reg[reg] = emu_narrow(v, width);
}

/* ---- arithmetic ---- */

static enum emu_step nop(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	(void)insn, (void)e, (void)s;
	return EMU_NEXT;
}

static enum emu_step stop(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	(void)insn, (void)e, (void)s;
	return EMU_STOP;
}

/* Not modelled: its destination is unknown. */
static enum emu_step forget(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	(void)e;
	set(s, field(insn, 4, 0), (struct emu_value) { 0 }, 8);
	return EMU_NEXT;
}

static enum emu_step read_tp(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	set(s, field(insn, 4, 0), emu_const(e->tp), 8);
	return EMU_NEXT;
}

static enum emu_step adr(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	uint64_t pc = s->pc - 4, imm = (uint64_t)sfield(insn, 23, 5) << 2 | field(insn, 30, 29);

	(void)e;
	if (insn >> 31) { /* adrp */
		pc &= ~0xfffull;
		imm <<= 12;
	}
	set(s, field(insn, 4, 0), emu_const(pc + imm), 8);
	return EMU_NEXT;
}

static enum emu_step add_imm(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	struct emu_value imm = emu_const((uint64_t)field(insn, 21, 10) << field(insn, 22, 22) * 12);
	enum emu_op op = field(insn, 30, 30) ? EMU_SUB : EMU_ADD;
	bool flags = field(insn, 29, 29);
	uint32_t rd = field(insn, 4, 0);
	struct emu_value v;

	(void)e;
	v = emu_narrow(s->reg[field(insn, 9, 5)], width_of(insn)); /* 31 is the stack pointer */
	v = emu_compute(op, v, imm);
	if (rd != SP || !flags) /* else cmp */
		s->reg[rd] = emu_narrow(v, width_of(insn));
	return EMU_NEXT;
}

static enum emu_step add_reg(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	enum emu_op op = field(insn, 30, 30) ? EMU_SUB : EMU_ADD;
	unsigned int width = width_of(insn);

	(void)e;
	if (field(insn, 15, 10)) /* shifted */
		return forget(insn, e, s);
	set(s, field(insn, 4, 0),
	    emu_compute(op, emu_narrow(get(s, field(insn, 9, 5)), width),
			emu_narrow(get(s, field(insn, 20, 16)), width)),
	    width);
	return EMU_NEXT;
}

static enum emu_step mov_reg(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	(void)e;
	set(s, field(insn, 4, 0), get(s, field(insn, 20, 16)), width_of(insn));
	return EMU_NEXT;
}

/* movn, movz, movk */
static enum emu_step mov_wide(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	uint32_t rd = field(insn, 4, 0), at = field(insn, 22, 21) * 16;
	uint64_t imm = (uint64_t)field(insn, 20, 5) << at;
	struct emu_value v = emu_const(imm);

	(void)e;
	switch (field(insn, 30, 29)) {
	case 0:
		v = emu_const(~imm);
		break;
	case 3:
		v = get(s, rd);
		v = v.known ? emu_const((v.v & ~(0xffffull << at)) | imm)
			    : (struct emu_value) { 0 };
		break;
	}
	set(s, rd, v, width_of(insn));
	return EMU_NEXT;
}

/* ubfm, when it takes bits from the middle: lsr, ubfx, uxtb, uxth */
static enum emu_step bitfield(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	uint32_t immr = field(insn, 21, 16), imms = field(insn, 15, 10);
	struct emu_value v;

	if (imms < immr)
		return forget(insn, e, s);
	v = emu_narrow(get(s, field(insn, 9, 5)), width_of(insn));
	v = emu_compute(EMU_SHR, v, emu_const(immr));
	v = emu_compute(EMU_AND, v, emu_const((2ull << (imms - immr)) - 1));
	set(s, field(insn, 4, 0), v, width_of(insn));
	return EMU_NEXT;
}

/* ---- control ---- */

static enum emu_step branch_always(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	struct emu_value target = emu_const(s->pc - 4 + (uint64_t)sfield(insn, 25, 0) * 4);

	if (!(insn >> 31))
		return emu_jump(e, s, target);
	emu_call(e, s, target);
	return EMU_NEXT;
}

/* b.cond, cbz, cbnz */
static enum emu_step branch_19(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	emu_branch(e, s, s->pc - 4 + (uint64_t)sfield(insn, 23, 5) * 4);
	return EMU_NEXT;
}

/* tbz, tbnz */
static enum emu_step branch_14(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	emu_branch(e, s, s->pc - 4 + (uint64_t)sfield(insn, 18, 5) * 4);
	return EMU_NEXT;
}

static enum emu_step branch_reg(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	struct emu_value target = get(s, field(insn, 9, 5));

	switch (field(insn, 22, 21)) {
	case 0:
		return emu_jump(e, s, target);
	case 1:
		emu_call(e, s, target);
		return EMU_NEXT;
	case 2:
		return EMU_RETURN;
	}
	return EMU_STOP;
}

/* ---- loads and stores ---- */

struct transfer {
	struct emu_value addr;
	unsigned int width; /* of one register */
	bool load, sign, vector;
};

static void transfer(const struct transfer *t, struct emulator *e, struct emu_state *s,
		     uint32_t reg, unsigned int at)
{
	struct emu_value addr = emu_add(t->addr, at), v;

	if (t->vector) {
		if (!t->load)
			emu_forget(s, addr, t->width);
	} else if (t->load) {
		v = emu_load(e, s, addr, t->width);
		if (t->sign && v.known && v.v >> (t->width * 8 - 1))
			v = (struct emu_value) { 0 };
		set(s, reg, v, 8);
	} else {
		emu_store(e, s, addr, emu_narrow(get(s, reg), t->width), t->width);
	}
}

static enum emu_step load_store(uint32_t insn, struct emulator *e, struct emu_state *s,
				struct emu_value addr)
{
	uint32_t size = field(insn, 31, 30), opc = field(insn, 23, 22);
	struct transfer t = { .addr = addr, .width = 1u << size, .load = opc };

	t.vector = field(insn, 26, 26);
	t.sign = opc > 1;
	if (t.vector) {
		t.width = opc > 1 ? 16 : 1u << size;
		t.load = opc & 1;
	} else if (size == 3 && opc > 1) {
		return EMU_NEXT; /* prefetch */
	}
	transfer(&t, e, s, field(insn, 4, 0), 0);
	return EMU_NEXT;
}

static enum emu_step load_store_imm12(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	bool vector16 = field(insn, 26, 26) && field(insn, 23, 23);
	unsigned int scale = vector16 ? 4 : field(insn, 31, 30);

	return load_store(
		insn, e, s,
		emu_add(s->reg[field(insn, 9, 5)], (int64_t)field(insn, 21, 10) << scale));
}

/* Unscaled, and with the base register changed before or after. */
static enum emu_step load_store_imm9(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	uint32_t mode = field(insn, 11, 10), rn = field(insn, 9, 5);
	struct emu_value moved = emu_add(s->reg[rn], sfield(insn, 20, 12));
	enum emu_step step = load_store(insn, e, s, mode == 1 ? s->reg[rn] : moved);

	if (mode & 1)
		s->reg[rn] = moved;
	return step;
}

static enum emu_step load_store_reg(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	struct emu_value index = get(s, field(insn, 20, 16));

	/* Only index registers that are neither shifted nor extended are modelled. */
	if (field(insn, 15, 12) != 6)
		index = (struct emu_value) { 0 };
	return load_store(insn, e, s, emu_compute(EMU_ADD, s->reg[field(insn, 9, 5)], index));
}

static enum emu_step load_store_pair(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	uint32_t mode = field(insn, 24, 23), opc = field(insn, 31, 30), rn = field(insn, 9, 5);
	struct transfer t = { .load = field(insn, 22, 22), .vector = field(insn, 26, 26) };
	struct emu_value moved;

	t.width = t.vector ? 4u << opc : opc == 2 ? 8 : 4;
	t.sign = opc == 1;
	moved = emu_add(s->reg[rn], sfield(insn, 21, 15) * t.width);
	t.addr = mode == 1 ? s->reg[rn] : moved;
	transfer(&t, e, s, field(insn, 4, 0), 0);
	transfer(&t, e, s, field(insn, 14, 10), t.width);
	if (mode & 1)
		s->reg[rn] = moved;
	return EMU_NEXT;
}

/* ldar, ldapr: loads that order memory. */
static enum emu_step load_acquire(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	set(s, field(insn, 4, 0),
	    emu_load(e, s, s->reg[field(insn, 9, 5)], 1u << field(insn, 31, 30)), 8);
	return EMU_NEXT;
}

static enum emu_step load_literal(uint32_t insn, struct emulator *e, struct emu_state *s)
{
	struct emu_value addr = emu_const(s->pc - 4 + (uint64_t)sfield(insn, 23, 5) * 4);
	uint32_t opc = field(insn, 31, 30);

	if (!field(insn, 26, 26) && opc < 2)
		set(s, field(insn, 4, 0), emu_load(e, s, addr, 4u << opc), 8);
	else
		forget(insn, e, s);
	return EMU_NEXT;
}

/* ---- which is which: the first that fits ---- */

static const struct {
	uint32_t mask, bits;
	enum emu_step (*run)(uint32_t insn, struct emulator *e, struct emu_state *s);
} insns[] = {
	{ 0x9f000000, 0x90000000, adr }, /* adrp */
	{ 0x9f000000, 0x10000000, adr },
	{ 0x1f800000, 0x11000000, add_imm },
	{ 0x1f800000, 0x12800000, mov_wide },
	{ 0x7f800000, 0x53000000, bitfield },
	{ 0x5f80001f, 0x1200001f, stop },   /* and sp, …; orr sp, … */
	{ 0x7f80001f, 0x5200001f, stop },   /* eor sp, … */
	{ 0x1c000000, 0x10000000, forget }, /* other arithmetic with an immediate */

	{ 0x7c000000, 0x14000000, branch_always },
	{ 0xff000010, 0x54000000, branch_19 },
	{ 0x7e000000, 0x34000000, branch_19 },
	{ 0x7e000000, 0x36000000, branch_14 },
	{ 0xff9ffc1f, 0xd61f0000, branch_reg },
	{ 0xfffffbff, 0xd65f0bff, branch_reg }, /* retaa, retab */
	{ 0xfffff01f, 0xd503201f, nop },	/* hints: nop, bti, paciasp … */
	{ 0xfffff01f, 0xd503301f, nop },	/* barriers */
	{ 0xffffffe0, 0xd53bd040, read_tp },	/* mrs tpidr_el0 */

	{ 0x3b000000, 0x39000000, load_store_imm12 },
	{ 0x3b200000, 0x38000000, load_store_imm9 },
	{ 0x3b200c00, 0x38200800, load_store_reg },
	{ 0x3a000000, 0x28000000, load_store_pair },
	{ 0x3ffffc00, 0x08dffc00, load_acquire }, /* ldar */
	{ 0x3ffffc00, 0x38bfc000, load_acquire }, /* ldapr */
	{ 0x3b000000, 0x18000000, load_literal },

	{ 0x7fe0ffe0, 0x2a0003e0, mov_reg },
	{ 0x1f200000, 0x0b000000, add_reg },
	{ 0x3f20001f, 0x0b20001f, stop },   /* add sp, …; sub sp, … */
	{ 0x0e000000, 0x0a000000, forget }, /* other arithmetic of registers */
	{ 0x0e000000, 0x0e000000, forget }, /* vectors; some give a general register */
};

static enum emu_step step(struct emulator *e, struct emu_state *s)
{
	uint8_t code[4];
	uint32_t insn;
	size_t i;

	if (s->pc % 4 || emu_fetch(e, s->pc, code, sizeof(code)) < sizeof(code))
		return EMU_STOP;
	insn = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
	s->pc += 4;
	for (i = 0; i < ARRAY_SIZE(insns); i++)
		if ((insn & insns[i].mask) == insns[i].bits)
			return insns[i].run(insn, e, s);
	return EMU_STOP;
}

const struct emu_machine emu_arm64 = {
	.step = step,
	.sp = SP,
	.result = 0,
	.argument = 0,
	.tlsdesc = 0,
	.scratch = 0x7ffff | 1u << LR, /* x0 to x18 */
	.dtv = { { 0, 16 }, { -8, 8 } },
};
