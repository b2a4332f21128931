/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries as compilers, assemblers and linkers write them, and as nobody does. Whole files are
 * compared with libdw in test_cfi_files.c, and what it is all for is in test_cfi_unwind.c.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "elf/cfi.h"
#include "elf/cfi_step.h"
#include "rbpf_cfi_find.h"
#include "support/cfi_builder.h"
#include "support/cfi_check.h"

/* A builder, and what is made of it. */
static struct cfi_builder builder;
static struct cfi_rules rules;
static struct cfi_table table;

static void begin(uint16_t machine)
{
	builder = (struct cfi_builder) { .machine = machine };
	cr_assert_eq(cfi_rules_init(&rules), 0);
}

static void begin_x86(void)
{
	begin(EM_X86_64);
}

static void begin_arm(void)
{
	begin(EM_AARCH64);
}

static void end(void)
{
	cfi_table_deinit(&table);
	cfi_rules_deinit(&rules);
	cfi_builder_deinit(&builder);
}

static int compile(void)
{
	struct buf image;
	int r;

	cfi_builder_finish(&builder, &image);
	cfi_table_deinit(&table);
	r = cfi_table_read_image(image.data, image.len, &rules, &table);
	buf_deinit(&image);
	if (!r)
		assert_sane_cfi_table(&table, &rules);
	return r;
}

static struct rbpf_cfi_rule rule_at(uint32_t addr)
{
	return *cfi_table_rule(&table, &rules, CFI_BUILDER_CODE + addr);
}

static void expect_rule_(uint32_t addr, struct rbpf_cfi_rule wanted, int line)
{
	struct rbpf_cfi_rule rule = rule_at(addr);

	cr_expect(!memcmp(&rule, &wanted, sizeof(rule)),
		  "line %d, at %#x: cfa %u %d %d, ra %u %d, fp %u %d, flags %u, why %u", line, addr,
		  rule.cfa, rule.cfa_off, rule.cfa_arg, rule.ra, rule.ra_off, rule.fp, rule.fp_off,
		  rule.flags, rule.why);
}

#define expect_rule(addr, ...)	 expect_rule_(addr, (struct rbpf_cfi_rule) { __VA_ARGS__ }, __LINE__)
#define expect_why(addr, reason) expect_rule(addr, .why = (reason))
/* x86_64, without a saved rbp */
#define expect_sp(addr, off)                                                                       \
	expect_rule(addr, .cfa = RBPF_CFI_CFA_SP, .cfa_off = (off), .ra_off = -8)

#define NONE RBPF_CFI_WHY_NONE

/* ---- what compilers write ---- */

/* push rbp; mov rbp, rsp; …; leave; ret */
Test(cfi, frame_pointer, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0x20, 0x40,
			CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x78, 0x0c, 7, 8, 0xc6));
	cr_assert_eq(compile(), 0);
	cr_expect_eq(table.base, CFI_BUILDER_BASE);
	cr_expect_eq(table.pages, 4);
	expect_why(0x1f, NONE);
	expect_sp(0x20, 8);
	expect_rule(0x21, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 16, .ra_off = -8,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -16);
	expect_rule(0x24, .cfa = RBPF_CFI_CFA_FP, .cfa_off = 16, .ra_off = -8,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -16);
	expect_rule(0x5b, .cfa = RBPF_CFI_CFA_FP, .cfa_off = 16, .ra_off = -8,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -16);
	expect_sp(0x5c, 8);
	expect_sp(0x5f, 8);
	expect_why(0x60, NONE);
	cr_expect_eq(rbpf_cfi_find(table.words, table.pages, 0x10024), RBPF_CFI_RULE_RECORD);
	cr_expect_eq(table.stats.covered, 0x40);
	cr_expect_eq(table.stats.uncovered[NONE], CFI_BUILDER_SIZE - 0x40);
	cr_expect_eq(table.stats.entries, 1);
}

/* Registers that do not matter here make no rows. */
Test(cfi, merged, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0, 0x10,
			CFI_BYTES(0x41, 0x0e, 16, 0x8f, 2, 0x44, 0x8e, 3, 0x44, 0x83, 4));
	cfi_builder_fde(&builder, cie, 0x10, 0x10, CFI_BYTES(0x0e, 16));
	cr_assert_eq(compile(), 0);
	expect_sp(0, 8);
	expect_sp(1, 16);
	expect_sp(0x1f, 16);
	cr_expect_eq(table.rows, 6, "the page before, 0, 1, 0x20, two pages after");
}

/* Two ends of a function apart from each other: the state is that of before. */
Test(cfi, remembered_state, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0, 0x40,
			CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x48, 0x0a, 0xc6, 0x0e, 8, 0x41, 0x0b,
				  0x48, 0xc6, 0x0e, 8));
	cr_assert_eq(compile(), 0);
	expect_sp(0, 8);
	expect_rule(1, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 16, .ra_off = -8, .fp = RBPF_CFI_FP_CFA,
		    .fp_off = -16);
	expect_sp(9, 8);
	expect_rule(10, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 16, .ra_off = -8, .fp = RBPF_CFI_FP_CFA,
		    .fp_off = -16);
	expect_sp(18, 8);
}

/* gcc, where it aligns the stack: the CFA in r10, then below rbp, where rbp itself is saved. */
Test(cfi, realigned_stack, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0, 0x40,
			CFI_BYTES(0x45, 0x0c, 10, 0, 0x49, 0x10, 6, 2, 0x76, 0, 0x46, 0x0f, 3, 0x76,
				  0x78, 0x06, 0x58, 0x0c, 10, 0, 0x45, 0x0c, 7, 8));
	cr_assert_eq(compile(), 0);
	expect_rule(5, .cfa = RBPF_CFI_CFA_REGISTER, .cfa_arg = 10, .ra_off = -8);
	expect_rule(14, .cfa = RBPF_CFI_CFA_REGISTER, .cfa_arg = 10, .ra_off = -8,
		    .fp = RBPF_CFI_FP_FP);
	expect_rule(20, .cfa = RBPF_CFI_CFA_FP_DEREF, .cfa_off = -8, .ra_off = -8,
		    .fp = RBPF_CFI_FP_FP);
	expect_rule(49, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 8, .ra_off = -8, .fp = RBPF_CFI_FP_FP);
}

/* ---- what assemblers, linkers and the C library write ---- */

/* OpenSSL keeps the CFA in memory. */
Test(cfi, cfa_in_memory, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0, 0x40, CFI_BYTES(0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8));
	cr_assert_eq(compile(), 0);
	expect_rule(0, .cfa = RBPF_CFI_CFA_SP_DEREF, .cfa_off = 40, .cfa_arg = 8, .ra_off = -8);
}

Test(cfi, plt, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0, 0x100,
			CFI_BYTES(0x0e, 16, 0x46, 0x0e, 24, 0x4a, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f,
				  0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));
	cr_assert_eq(compile(), 0);
	expect_sp(0, 16);
	expect_sp(6, 24);
	expect_rule(16, .cfa = RBPF_CFI_CFA_PLT, .cfa_off = 8, .cfa_arg = 11, .ra_off = -8);
	expect_rule(255, .cfa = RBPF_CFI_CFA_PLT, .cfa_off = 8, .cfa_arg = 11, .ra_off = -8);
}

/*
 * glibc's __restore_rt: all in the ucontext. Its entry begins before the code, for callers' sake.
 */
Test(cfi, signal_frame, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_cie(&builder, "S", CFI_NO_BYTES);

	cfi_builder_fde(&builder, cie, 0xf, 10,
			CFI_BYTES(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 7,
				  3, 0x77, 0xa0, 1, 0x10, 16, 3, 0x77, 0xa8, 1));
	cr_assert_eq(compile(), 0);
	expect_rule(0x10, .cfa = RBPF_CFI_CFA_SP_DEREF, .cfa_off = 160, .ra = RBPF_CFI_RA_SP,
		    .ra_off = 168, .fp = RBPF_CFI_FP_SP, .fp_off = 120, .flags = RBPF_CFI_SIGNAL);
}

/* _start, clone: nobody called them. */
Test(cfi, outermost, .init = begin_x86, .fini = end)
{
	uint32_t usual = cfi_builder_usual_cie(&builder, "");
	uint32_t cie = cfi_builder_cie(&builder, "", CFI_BYTES(0x0c, 7, 8, 0x07, 16));

	cfi_builder_fde(&builder, usual, 0, 0x10, CFI_BYTES(0x07, 16, 0x44, 0xd0));
	cfi_builder_fde(&builder, cie, 0x10, 0x10, CFI_NO_BYTES);
	cr_assert_eq(compile(), 0);
	expect_rule(0, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_END);
	expect_sp(4, 8);
	expect_rule(0x10, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_END);
}

/* glibc's clone(): an entry, the system call that no entry is for, where the new thread begins. */
static int compile_clone(const uint8_t *gap, uint32_t size, const uint8_t *caller, size_t n)
{
	uint32_t cie;

	builder.frame.len = 0;
	builder.code.len = 0;
	cie = cfi_builder_usual_cie(&builder, "");
	buf_add_repeat(&builder.code, '\x90', 0x20);
	buf_add(&builder.code, gap, size);
	cfi_builder_fde(&builder, cie, 0, 0x20, caller, n);
	cfi_builder_fde(&builder, cie, 0x20 + size, 0x10, CFI_BYTES(0x07, 16));
	return compile();
}

#define CLONE	   0x0f, CLONE_TAIL
#define CLONE_TAIL 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0xc3
#define CLONE_NR   0xb8, 0xb3, 0x01, 0x00, 0x00

Test(cfi, clone, .init = begin_x86, .fini = end)
{
	cr_assert_eq(compile_clone(CFI_BYTES(CLONE), CFI_NO_BYTES), 0);
	expect_sp(0x1f, 8);
	expect_sp(0x20, 8);
	expect_sp(0x29, 8);
	expect_rule(0x2a, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_END);
	cr_expect_eq(table.stats.uncovered[NONE], CFI_BUILDER_SIZE - 0x3a);

	cr_assert_eq(compile_clone(CFI_BYTES(CLONE_NR, CLONE), CFI_NO_BYTES), 0);
	expect_sp(0x20, 8);
	expect_sp(0x2e, 8);

	/* other code, a byte too few, something pushed, another machine */
	cr_assert_eq(compile_clone(CFI_BYTES(CLONE_TAIL, 0x90), CFI_NO_BYTES), 0);
	expect_why(0x20, NONE);
	cr_assert_eq(compile_clone(CFI_BYTES(CLONE_TAIL), CFI_NO_BYTES), 0);
	expect_why(0x20, NONE);
	cr_assert_eq(compile_clone(CFI_BYTES(CLONE), CFI_BYTES(0x41, 0x0e, 16)), 0);
	expect_sp(0x1f, 16);
	expect_why(0x20, NONE);
	builder.machine = EM_AARCH64;
	cr_assert_eq(compile_clone(CFI_BYTES(CLONE), CFI_NO_BYTES), 0);
	expect_why(0x20, NONE);
}

/* What cannot be expressed says so, and hides nothing else. */
Test(cfi, unknown, .init = begin_x86, .fini = end)
{
	static const struct {
		uint8_t code[16];
		uint8_t n;
		uint8_t why;
	} cases[] = {
		{ { 0x0f, 2, 0x71, 0, /* at r1, no deref of it */ 0x0f, 3, 0x71, 0, 0x06 },
		  9,
		  RBPF_CFI_WHY_EXPRESSION },
		{ { 0x0f, 4, 0x77, 8, 0x12, 0x22 }, 6, RBPF_CFI_WHY_EXPRESSION },
		{ { 0x0f, 1, 0x30 }, 3, RBPF_CFI_WHY_EXPRESSION },
		{ { 0x09, 16, 1 }, 3, RBPF_CFI_WHY_RA },
		{ { 0x08, 16 }, 2, RBPF_CFI_WHY_RA },
		{ { 0x16, 16, 2, 0x77, 0 }, 5, RBPF_CFI_WHY_RA },
		{ { 0x09, 7, 8 }, 3, RBPF_CFI_WHY_SP },
		{ { 0x14, 7, 1 }, 3, RBPF_CFI_WHY_SP },
		{ { 0x0e, 0x80, 0x80, 0x80, 0x80, 0x40 }, 6, RBPF_CFI_WHY_RANGE },
		{ { 0x90, 0x80, 0x80, 0x80, 0x80, 0x40 }, 6, RBPF_CFI_WHY_RANGE },
	};
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cfi_builder_fde(&builder, cie, i * 16, 8, cases[i].code, cases[i].n);
		cfi_builder_fde(&builder, cie, i * 16 + 8, 8, CFI_NO_BYTES);
	}
	cfi_builder_fde(&builder, cie, 0x1000, 8, CFI_BYTES(0x09, 6, 9, 0x44, 0x07, 6));
	cr_assert_eq(compile(), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		expect_why(i * 16, cases[i].why);
		expect_sp(i * 16 + 8, 8);
	}
	cr_expect_eq(table.stats.unknown[RBPF_CFI_WHY_EXPRESSION], 3);
	cr_expect_eq(table.stats.uncovered[RBPF_CFI_WHY_RA], 24);
	expect_rule(0x1000, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 8, .ra_off = -8,
		    .fp = RBPF_CFI_FP_LOST);
	expect_rule(0x1004, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 8, .ra_off = -8,
		    .fp = RBPF_CFI_FP_LOST);
}

/* ---- arm64 ---- */

/* A leaf; a frame record; the same with a signed return address, which is no row of its own. */
Test(cfi, arm64, .init = begin_arm, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");
	uint32_t key_b = cfi_builder_usual_cie(&builder, "B");

	cfi_builder_fde(&builder, cie, 0, 0x20, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie, 0x20, 0x40,
			CFI_BYTES(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x42, 0x0d, 29, 0x48, 0x0c, 31,
				  0, 0xdd, 0xde));
	cfi_builder_fde(&builder, key_b, 0x60, 0x40,
			CFI_BYTES(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x48, 0x0e, 0, 0xdd,
				  0xde, 0x41, 0x2d));
	cr_assert_eq(compile(), 0);
	for (uint32_t at = 0; at < 0x24; at += 4)
		expect_rule(at, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_LR);
	expect_rule(0x24, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 32, .ra_off = -24,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -32);
	expect_rule(0x2c, .cfa = RBPF_CFI_CFA_FP, .cfa_off = 32, .ra_off = -24,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -32);
	expect_rule(0x4c, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_LR);
	expect_rule(0x64, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_LR);
	expect_rule(0x68, .cfa = RBPF_CFI_CFA_SP, .cfa_off = 32, .ra_off = -24,
		    .fp = RBPF_CFI_FP_CFA, .fp_off = -32);
	expect_rule(0x88, .cfa = RBPF_CFI_CFA_SP, .ra = RBPF_CFI_RA_LR);
	cr_expect_eq(table.machine, EM_AARCH64);
}

/* As the vDSO describes it; it is not followed. */
Test(cfi, arm64_signal_frame, .init = begin_arm, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "S");

	cfi_builder_fde(&builder, cie, 0, 8, CFI_BYTES(0x0c, 29, 0, 0x9d, 0, 0x11, 30, 0x7f));
	cr_assert_eq(compile(), 0);
	expect_rule(0, .cfa = RBPF_CFI_CFA_SP_DEREF, .cfa_off = 560, .ra = RBPF_CFI_RA_SP,
		    .ra_off = 568, .fp = RBPF_CFI_FP_SP, .fp_off = 544, .flags = RBPF_CFI_SIGNAL);
}

/* ---- places ---- */

Test(cfi, pages, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0xfff0, 0x10010, CFI_BYTES(0x50, 0x0e, 16, 0x44, 0x0e, 24));
	cfi_builder_fde(&builder, cie, 0x2ffff, 1, CFI_NO_BYTES);
	cr_assert_eq(compile(), 0);
	expect_why(0, NONE);
	expect_why(0xffef, NONE);
	expect_sp(0xffff, 8);
	expect_sp(0x10000, 16);
	expect_sp(0x10004, 24);
	expect_sp(0x1ffff, 24);
	expect_why(0x20000, NONE);
	expect_why(0x2fffe, NONE);
	expect_sp(0x2ffff, 8);
	expect_why(0x30000, NONE);
	cr_expect_eq(rbpf_cfi_find(table.words, table.pages, 0), RBPF_CFI_RULE_NONE);
	cr_expect_eq(rbpf_cfi_find(table.words, table.pages, UINT64_MAX), RBPF_CFI_RULE_NONE);
}

/* Entries in any order, one within another, beyond the code's end, and for other addresses. */
Test(cfi, misplaced_entries, .init = begin_x86, .fini = end)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");

	cfi_builder_fde(&builder, cie, 0x2fff0, 0x20, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie, 0x100, 0x40, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie, 0x110, 0x10, CFI_BYTES(0x0e, 16));
	cfi_builder_fde(&builder, cie, 0x50000, 0x10, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie, (uint32_t)-0x8000, 0x10, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie, 0x40, 0x40, CFI_BYTES(0x0e, 32));
	cfi_builder_fde(&builder, cie, 0x200, 0, CFI_NO_BYTES);
	cr_assert_eq(compile(), 0);
	expect_sp(0x100, 8);
	expect_sp(0x118, 8);
	expect_sp(0x40, 32);
	expect_sp(0x2ffff, 8);
	expect_why(0x200, NONE);
	cr_expect_eq(table.stats.outside, 2);
	cr_expect_eq(table.stats.covered, 0x40 + 0x40 + 0x10);
}

Test(cfi, debug_frame, .init = begin_x86, .fini = end)
{
	uint32_t cie;

	builder.is_debug = true;
	cie = cfi_builder_usual_cie(&builder, "");
	cfi_builder_fde(&builder, cie, 0x10, 0x10, CFI_BYTES(0x44, 0x0e, 16));
	cfi_builder_fde(&builder, cie, 0x20, 0x10, CFI_BYTES(0x08, 0xff, 0xff, 0xff, 0x1f));
	cr_assert_eq(compile(), 0);
	expect_sp(0x10, 8);
	expect_sp(0x14, 16);
	expect_why(0x20, RBPF_CFI_WHY_MALFORMED);
	expect_why(0x30, NONE);
}

/* ---- what nobody writes ---- */

/* Each of these is without consequence for its neighbours, also those that would take long. */
Test(cfi, broken_entries, .init = begin_x86, .fini = end)
{
	static const uint8_t bad[][8] = {
		{ 0x08, 0xff, 0xff, 0xff, 0x1f }, /* a register that makes libdw take 2 GB */
		{ 0x01, 0, 0, 0, 0 },		  /* DW_CFA_set_loc */
		{ 0, 0, 0, 0x0f, 0x7f },	  /* a block longer than the entry */
		{ 0x3f },			  /* no instruction */
		{ 0, 0, 0, 0, 0, 0, 0, 0x0e },	  /* ends within an operand */
		{ 0, 0, 0, 0, 0x0e, 0x80, 0x80, 0x80 },
		{ 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x04 },
	};
	uint8_t remember[200];
	uint32_t i, cie, big;

	memset(remember, 0x0a, sizeof(remember));
	cie = cfi_builder_usual_cie(&builder, "");
	big = cfi_builder_cie(&builder, "", CFI_BYTES(0x08, 0xff, 0xff, 0xff, 0x1f));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		uint8_t code[11] = { 0 };

		memcpy(code + 3, bad[i], 8); /* so that no padding follows */
		cfi_builder_fde(&builder, cie, i * 16, 8, code, sizeof(code));
		cfi_builder_fde(&builder, cie, i * 16 + 8, 8, CFI_NO_BYTES);
	}
	cfi_builder_fde(&builder, cie, 0x1000, 16, remember, sizeof(remember));
	cfi_builder_fde(&builder, big, 0x1010, 16, CFI_NO_BYTES);
	cfi_builder_fde(&builder, cie + 4, 0x1020, 16, CFI_NO_BYTES); /* no CIE there */
	cfi_builder_fde(&builder, cie, 0x1030, 16, CFI_BYTES(0x0b));  /* nothing to restore */
	cr_assert_eq(compile(), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_why(i * 16, RBPF_CFI_WHY_MALFORMED);
		expect_sp(i * 16 + 8, 8);
	}
	expect_why(0x1000, RBPF_CFI_WHY_MALFORMED);
	expect_why(0x1010, RBPF_CFI_WHY_MALFORMED);
	expect_why(0x1020, NONE);
	expect_why(0x1030, RBPF_CFI_WHY_MALFORMED);
	cr_expect_eq(table.stats.broken, ARRAY_SIZE(bad) + 2);
}

Test(cfi, nothing_to_read, .init = begin_x86, .fini = end)
{
	struct cfi_table untouched = { .rows = 7 };
	struct buf image;
	uint32_t cie;

	cr_expect_eq(compile(), -ENOENT, "no entries");
	cie = cfi_builder_usual_cie(&builder, "");
	cr_expect_eq(compile(), -ENOENT, "a CIE alone");
	cfi_builder_fde(&builder, cie, 0, 16, CFI_BYTES(0x3f));
	cr_expect_eq(compile(), -EBADMSG, "nothing that is whole");

	cfi_builder_finish(&builder, &image);
	cr_expect_eq(cfi_table_read_image(image.data, 0, &rules, &untouched), -ENOEXEC);
	cr_expect_eq(cfi_table_read_image(image.data, 20, &rules, &untouched), -ENOEXEC);
	((Elf64_Ehdr *)image.data)->e_machine = EM_PPC64;
	cr_expect_eq(cfi_table_read_image(image.data, image.len, &rules, &untouched), -ENOEXEC);
	cr_expect_eq(cfi_table_read(-1, &rules, &untouched), -ENOEXEC);
	cr_expect_eq(untouched.rows, 7);
	buf_deinit(&image);
}

/* A list of rules that is full takes no more, but still knows those that it has. */
Test(cfi, rules_full, .init = begin_x86, .fini = end)
{
	struct rbpf_cfi_rule rule = { .cfa = RBPF_CFI_CFA_SP, .ra_off = -8 };
	uint16_t id, first;

	rule.cfa_off = 8;
	cr_assert_eq(cfi_rules_add(&rules, &rule, &first), 0);
	for (int32_t i = 0; i < RBPF_CFI_MAX_RULES + 10; i++) {
		rule.cfa_off = 16 + i;
		cr_assert_eq(cfi_rules_add(&rules, &rule, &id), 0);
	}
	cr_expect_eq(cfi_rules_count(&rules), RBPF_CFI_MAX_RULES);
	cr_expect_eq(cfi_rules_get(&rules, id)->why, RBPF_CFI_WHY_FULL);
	rule.cfa_off = 8;
	cr_assert_eq(cfi_rules_add(&rules, &rule, &id), 0);
	cr_expect_eq(id, first);

	cfi_builder_fde(&builder, cfi_builder_usual_cie(&builder, ""), 0, 16,
			CFI_BYTES(0x48, 0x0c, 3, 8));
	cr_assert_eq(compile(), 0);
	expect_sp(0, 8);
	expect_why(8, RBPF_CFI_WHY_FULL);
}

/* ---- damage ---- */

/*
 * The section at the end of readable memory: libdw, which no sanitizer looks into, would fault if
 * it read on.
 */
static bool read_guarded(const struct buf *image)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (image->len + page - 1) / page * page;
	char *room = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	char *at = room + size - image->len;
	struct cfi_table t = CFI_TABLE_INIT;
	bool has_rows = false;

	cr_assert_neq(room, MAP_FAILED);
	cr_assert_eq(mprotect(room + size, page, PROT_NONE), 0);
	memcpy(at, image->data, image->len);
	if (!cfi_table_read_image(at, image->len, &rules, &t)) {
		assert_sane_cfi_table(&t, &rules);
		has_rows = t.rows > t.pages;
	}
	cfi_table_deinit(&t);
	munmap(room, size + page);
	return has_rows;
}

/* Some of everything. */
static void build_mixture(void)
{
	uint32_t cie = cfi_builder_usual_cie(&builder, "");
	uint32_t signal = cfi_builder_cie(&builder, "S", CFI_NO_BYTES);

	cfi_builder_fde(&builder, cie, 0x20, 0x40,
			CFI_BYTES(0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6, 0x78, 0x0b, 0xc6));
	cfi_builder_fde(&builder, cie, 0x60, 0x20,
			CFI_BYTES(0x46, 0x0e, 24, 0x4a, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a,
				  0x3b, 0x2a, 0x33, 0x24, 0x22));
	cfi_builder_fde(&builder, signal, 0x80, 10,
			CFI_BYTES(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0, 0x16, 16,
				  3, 0x77, 0xa8, 1));
	cfi_builder_fde(
		&builder, cie, 0x100, 0x20000,
		CFI_BYTES(0x04, 0, 0, 1, 0, 0x2e, 16, 0x12, 7, 0x7e, 0x11, 6, 2, 0x05, 6, 4));
}

Test(cfi, truncated, .init = begin_x86, .fini = end)
{
	struct cfi_builder whole;
	size_t read = 0;

	build_mixture();
	whole = builder;
	for (size_t cut = 0; cut <= whole.frame.len; cut++) {
		struct buf image;

		builder.frame.len = cut;
		cfi_builder_finish(&builder, &image);
		read += read_guarded(&image);
		buf_deinit(&image);
	}
	cr_expect_gt(read, whole.frame.len / 2, "what is before the cut is read");
	builder = whole;
}

Test(cfi, damaged, .init = begin_x86, .fini = end)
{
	uint64_t random = 88172645463325252ull;
	size_t read = 0;
	struct buf image;

	build_mixture();
	for (int round = 0; round < 6000; round++) {
		cfi_builder_finish(&builder, &image);
		for (int i = 0; i < 1 + round % 3; i++) {
			size_t from = round % 4 ? image.len - builder.frame.len : 0;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			image.data[from + (random >> 16) % (image.len - from)] = (char)random;
		}
		((Elf64_Ehdr *)image.data)->e_machine = round & 1 ? EM_X86_64 : EM_AARCH64;
		read += read_guarded(&image);
		buf_deinit(&image);
	}
	cr_expect_gt(read, 2000);
}

/* ---- steps ---- */

static uint64_t stack[8]; /* at address 0x7000 */

static int read_stack(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	if (addr % 8 || addr < 0x7000 || addr >= 0x7000 + sizeof(stack))
		return -EFAULT;
	*ret = stack[(addr - 0x7000) / 8];
	return 0;
}

static struct cfi_frame frame_at(uint64_t sp)
{
	return (struct cfi_frame) { .pc = 0x400010,
				    .sp = sp,
				    .fp = 0x7020,
				    .lr = 0x400777,
				    .fp_known = true,
				    .lr_known = true };
}

static enum cfi_step_result step(struct rbpf_cfi_rule rule, uint64_t mask, struct cfi_frame *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(stack); i++)
		stack[i] = 0x1000 * (i + 1);
	return cfi_step(&rule, mask, read_stack, NULL, f);
}

/* A caller's frame is further out than its callee's: else one would go round and round. */
Test(cfi, step_goes_outwards)
{
	struct rbpf_cfi_rule rule = { .cfa = RBPF_CFI_CFA_FP, .cfa_off = 16, .ra_off = -8 };
	struct cfi_frame f = frame_at(0x7010);

	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_CALLER);
	cr_expect(f.sp == 0x7030 && f.pc == 0x6000 && f.is_return);
	f = frame_at(0x7030);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_STUCK, "no further out");
	cr_expect(f.sp == 0x7030 && f.pc == 0x400010, "untouched");
	f = frame_at(0x7038);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_STUCK, "further in");
	/* arm64: a function that has not pushed anything. */
	rule.ra = RBPF_CFI_RA_LR;
	f = frame_at(0x7030);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_CALLER);
	cr_expect(f.sp == 0x7030 && f.pc == 0x400777);
	f = frame_at(0x7038);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_STUCK, "further in all the same");
	f = frame_at(0x7030);
	f.lr_known = false;
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_NO_REGISTER);
}

/* A handler may run on another stack; all registers of what it interrupted are saved. */
Test(cfi, step_from_a_signal)
{
	const struct rbpf_cfi_rule rule = { .cfa = RBPF_CFI_CFA_SP_DEREF,
					    .ra = RBPF_CFI_RA_SP,
					    .fp = RBPF_CFI_FP_SP,
					    .flags = RBPF_CFI_SIGNAL,
					    .cfa_off = 8,
					    .ra_off = 16,
					    .fp_off = 24 };
	struct cfi_frame f = frame_at(0x7000);

	cr_expect_eq(step(rule, CFI_PC_MASK_AARCH64, &f), CFI_STEP_CALLER);
	cr_expect(f.sp == 0x2000 && f.pc == 0x3000 && f.fp == 0x4000 && f.fp_known);
	cr_expect(f.lr_known && f.lr == 0x5000, "x30 is next to x29");
	cr_expect_not(f.is_return);
	f = frame_at(0x7000);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_CALLER);
	cr_expect_not(f.lr_known, "x86_64 has none");
}

/* What cannot be read is missed only if it is needed. */
Test(cfi, step_with_memory_that_cannot_be_read)
{
	struct rbpf_cfi_rule rule = { .cfa = RBPF_CFI_CFA_SP,
				      .cfa_off = 16,
				      .ra_off = -8,
				      .fp = RBPF_CFI_FP_CFA,
				      .fp_off = 0x1000 };
	struct cfi_frame f = frame_at(0x7000);

	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_CALLER);
	cr_expect_not(f.fp_known);
	rule.cfa = RBPF_CFI_CFA_FP;
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_NO_REGISTER);
	rule.cfa = RBPF_CFI_CFA_SP;
	rule.ra_off = 0x1000;
	f = frame_at(0x7000);
	cr_expect_eq(step(rule, ~0ull, &f), CFI_STEP_FAULT);
	cr_expect_eq(f.pc, 0x400010, "untouched");
}
