/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of whole files against libdw: each row, at its start, in its middle, at its last byte and
 * wherever libdw begins a row of its own within it. What libdw answers is computed as it stands, as
 * operations on registers and memory that are made up, so it need not be understood twice.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf/cfi.h"
#include "rbpf_cfi_find.h"
#include "elf/cfi_step.h"
#include "support/cfi_check.h"

#define REGISTERS 33

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

/* ---- a thread that does not exist ---- */

/* Registers by their DWARF numbers. */
struct machine {
	int sp, fp, pc; /* pc: -1 if none */
	uint64_t pc_mask;
};

static const struct machine x86_64 = { 7, 6, 16, CFI_PC_MASK_X86_64 };
static const struct machine arm64 = { 31, 29, -1, CFI_PC_MASK_AARCH64 };
static const struct machine *machine; /* the file's */

/* sp is the lowest of all, so that no rule is found to lead down the stack. */
static uint64_t register_value(uint64_t reg)
{
	return (int)reg == machine->sp ? 0x7ffe00000000 : 0x7ffe40000000 + reg * 0x1000008;
}

static uint64_t memory_value(uint64_t addr)
{
	return 0x7fff00000000 + (addr * 2654435761u >> 8 & 0xfffffff8);
}

static int read_memory(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = memory_value(addr);
	return 0;
}

/* What @ops give, or read, if that is where a register is. */
static uint64_t compute(const Dwarf_Op *ops, size_t n, uint64_t cfa, uint64_t pc, bool is_place)
{
	uint64_t stack[8] = { 0 };
	size_t top = 0;

	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];
		uint64_t *under = top ? &stack[top - 1] : stack;

		cr_assert_lt(top, 7);
		if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			stack[top++] = op->atom - DW_OP_lit0;
			continue;
		}
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			uint64_t reg = op->atom - DW_OP_breg0;

			stack[top++] = ((int)reg == machine->pc ? pc : register_value(reg)) +
				       op->number;
			continue;
		}
		switch (op->atom) {
		case DW_OP_bregx:
			stack[top++] = register_value(op->number) + op->number2;
			break;
		case DW_OP_call_frame_cfa:
			stack[top++] = cfa;
			break;
		case DW_OP_plus_uconst:
			*under += op->number;
			break;
		case DW_OP_deref:
			*under = memory_value(*under);
			break;
		case DW_OP_stack_value:
			is_place = false;
			break;
		case DW_OP_and:
			top--;
			stack[top - 1] &= stack[top];
			break;
		case DW_OP_plus:
			top--;
			stack[top - 1] += stack[top];
			break;
		case DW_OP_ge:
			top--;
			stack[top - 1] = stack[top - 1] >= stack[top];
			break;
		case DW_OP_shl:
			top--;
			stack[top - 1] <<= stack[top];
			break;
		default:
			cr_assert_fail("operation %#x of a rule that was taken", op->atom);
		}
	}
	cr_assert_gt(top, 0);
	return is_place ? memory_value(stack[top - 1]) : stack[top - 1];
}

/* ---- comparison ---- */

struct comparison {
	const char *path;
	const struct cfi_table *table;
	const struct cfi_rules *rules;
	Dwarf_CFI *cfi;
	size_t compared, unknown, wrong, clone;
};

/* The caller's register @reg as libdw has it. Returns false if it has none. */
static bool libdw_register(Dwarf_Frame *frame, int reg, uint64_t cfa, uint64_t pc, uint64_t *ret)
{
	Dwarf_Op room[3], *ops;
	size_t n;

	cr_assert_eq(dwarf_frame_register(frame, reg, room, &ops, &n), 0);
	if (!n && ops)
		return false;
	*ret = n ? compute(ops, n, cfa, pc, true) : register_value((uint64_t)reg);
	return true;
}

static bool same_caller(const struct rbpf_cfi_rule *rule, Dwarf_Frame *frame, uint64_t pc)
{
	uint64_t registers[REGISTERS], cfa, ra = 0, fp = 0;
	struct cfi_frame f = { .pc = pc,
			       .sp = register_value((uint64_t)machine->sp),
			       .fp = register_value((uint64_t)machine->fp),
			       .lr = register_value(30),
			       .fp_known = true,
			       .lr_known = true,
			       .registers = registers,
			       .n_registers = REGISTERS };
	enum cfi_step_result r;
	bool is_signal;
	Dwarf_Op *ops;
	size_t n;
	int ra_reg;

	for (uint64_t i = 0; i < REGISTERS; i++)
		registers[i] = register_value(i);
	ra_reg = dwarf_frame_info(frame, NULL, NULL, &is_signal);
	r = cfi_step(rule, machine->pc_mask, read_memory, NULL, &f);
	cr_assert_eq(dwarf_frame_cfa(frame, &ops, &n), 0);
	cfa = compute(ops, n, 0, pc, false);
	if (!libdw_register(frame, ra_reg, cfa, pc, &ra))
		return r == CFI_STEP_END;
	return r == CFI_STEP_CALLER && f.sp == cfa && f.pc == ra && f.is_return == !is_signal &&
	       libdw_register(frame, machine->fp, cfa, pc, &fp) == f.fp_known &&
	       (!f.fp_known || f.fp == fp);
}

/* What holds in clone() and clone3() past their entries (cfi_clone.c). */
static bool is_entered(const struct rbpf_cfi_rule *rule)
{
	return machine == &x86_64 && rule->cfa == RBPF_CFI_CFA_SP && rule->cfa_off == 8 &&
	       rule->ra == RBPF_CFI_RA_CFA && rule->ra_off == -8;
}

/* Compare at @addr; returns where libdw's row ends, at least @addr + 1. */
static uint64_t compare_at(struct comparison *c, const struct rbpf_cfi_rule *rule, uint64_t addr)
{
	Dwarf_Addr start, end = addr + 1;
	Dwarf_Frame *frame = NULL;
	bool ok, found;

	found = !dwarf_cfi_addrframe(c->cfi, addr, &frame);
	if (found)
		dwarf_frame_info(frame, &start, &end, NULL);
	c->compared++;
	if (rule->why != RBPF_CFI_WHY_NONE) {
		c->unknown++;
		ok = found;
	} else if (rule->cfa == RBPF_CFI_CFA_NONE) {
		ok = !found;
	} else if (!found) {
		ok = is_entered(rule);
		c->clone += ok;
	} else {
		ok = same_caller(rule, frame, addr);
	}
	if (!ok && !c->wrong++)
		cr_log_error("%s: at %#lx, rule: cfa %u %d, ra %u %d, fp %u %d, why %u; libdw %s",
			     c->path, (unsigned long)addr, rule->cfa, rule->cfa_off, rule->ra,
			     rule->ra_off, rule->fp, rule->fp_off, rule->why,
			     found ? "differs" : "has none");
	if (found)
		free(frame);
	return end > addr ? end : addr + 1;
}

static void compare_row(struct comparison *c, uint32_t rule_number, uint64_t start, uint64_t end)
{
	const struct rbpf_cfi_rule *rule = cfi_rules_get(c->rules, rule_number);
	uint64_t addr = start;

	if (rule_number == RBPF_CFI_RULE_NONE) {
		compare_at(c, rule, start);
	} else {
		while (addr < end)
			addr = compare_at(c, rule, addr);
	}
	for (addr = start; rule->cfa == RBPF_CFI_CFA_PLT && addr < start + 16; addr++)
		compare_at(c, rule, addr);
	compare_at(c, rule, start + (end - start) / 2);
	compare_at(c, rule, end - 1);
	cr_assert_eq(rbpf_cfi_find(c->table->words, c->table->pages, start - c->table->base),
		     rule_number);
	cr_assert_eq(rbpf_cfi_find(c->table->words, c->table->pages, end - 1 - c->table->base),
		     rule_number);
}

static void compare_rows(struct comparison *c)
{
	const struct cfi_table *t = c->table;

	for (uint32_t page = 0; page < t->pages; page++) {
		uint64_t start = t->base + ((uint64_t)page << RBPF_CFI_PAGE_SHIFT);

		for (uint32_t i = t->words[page]; i < t->words[page + 1]; i++) {
			uint32_t next = i + 1 < t->words[page + 1] ? t->words[i + 1] & 0xffff
								   : 0x10000;

			compare_row(c, t->words[i] >> 16, start + (t->words[i] & 0xffff),
				    start + next);
		}
	}
}

/*
 * Compile the file at @path, in @max_ms, and compare. At most one place of @unknown that have an
 * entry may have no CFA. Returns how many places have one though libdw has no entry for them.
 */
static size_t compare_file(const char *path, size_t unknown, size_t max_ms)
{
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table table = CFI_TABLE_INIT;
	struct comparison c = { .path = path, .table = &table, .rules = &rules };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t ns;
	Elf *elf;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(cfi_rules_init(&rules), 0);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_assert_eq(cfi_table_read(fd, &rules, &table), 0, "%s", path);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	assert_sane_cfi_table(&table, &rules);
	machine = table.machine == EM_AARCH64 ? &arm64 : &x86_64;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	c.cfi = dwarf_getcfi_elf(elf);
	cr_assert_not_null(c.cfi);
	compare_rows(&c);
	cr_log_info("%s: %.1f ms, %u rows, %u rules, %zu places compared, %zu without a CFA", path,
		    (double)ns / 1e6, table.rows, cfi_rules_count(&rules), c.compared, c.unknown);
	cr_expect_eq(c.wrong, 0, "%s: %zu of %zu places", path, c.wrong, c.compared);
	cr_expect_leq(c.unknown * unknown, c.compared, "%s: %zu", path, c.unknown);
	cr_expect_leq(ns, max_ms * SLOWDOWN * 1000000, "%s: %.1f ms", path, (double)ns / 1e6);
	dwarf_cfi_end(c.cfi);
	elf_end(elf);
	cfi_table_deinit(&table);
	cfi_rules_deinit(&rules);
	close(fd);
	return c.clone;
}

/* @symbol is one that no sanitizer has too. */
static size_t compare_library_of(const char *symbol, size_t unknown)
{
	Dl_info info;

	cr_assert_neq(dladdr(dlsym(RTLD_DEFAULT, symbol), &info), 0, "%s", symbol);
	return compare_file(info.dli_fname, unknown, 150);
}

static void compare_matches(const char *pattern, size_t unknown)
{
	glob_t found = { 0 };

	if (glob(pattern, 0, NULL, &found)) {
		cr_skip_test("there is no %s", pattern);
	}
	cr_expect_eq(compare_file(found.gl_pathv[0], unknown, 150), 0);
	globfree(&found);
}

/*
 * longjmp and setcontext keep all in registers. clone() and, since 2.34, clone3() have ten bytes or
 * more that no entry is for: their first is compared, each one, one in the middle and their last.
 */
Test(cfi_files, libc)
{
	size_t clone = compare_library_of("gnu_get_libc_version", 1000);

#if defined(__x86_64__)
	cr_expect(clone >= 12 && clone <= 40, "%zu places", clone);
#else
	cr_expect_eq(clone, 0);
#endif
}

Test(cfi_files, dynamic_linker)
{
	cr_expect_eq(compare_library_of("_r_debug", 500), 0);
}

Test(cfi_files, own_binary)
{
	cr_expect_eq(compare_file("/proc/self/exe", 1000000, 1000), 0);
}

/* Assembler of many kinds. */
Test(cfi_files, libcrypto)
{
	compare_matches("/usr/lib/*/libcrypto.so.3", 5000);
}

Test(cfi_files, libruby)
{
	compare_matches("/usr/lib/*/libruby-*.so.*.*.*", 1000000);
}

/* Of another machine, where there is one (package libc6-arm64-cross). */
Test(cfi_files, arm64)
{
	compare_matches("/usr/aarch64-linux-gnu/lib/libc.so.6", 500);
}
