/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/binary.h"
#include "ruby/code.h"
#include "ruby/emulate.h"
#include "support/ruby_code.h"
#include "target/memory.h"

/* A process: pages that come into being when written to. Addresses are those of the file. */

#define PAGE  4096u
#define PAGES 128

struct process {
	struct {
		uint64_t addr;
		uint8_t bytes[PAGE];
	} page[PAGES];
	size_t n_pages;
	struct memory mem;
	struct ruby_binary bin;
};

static uint8_t *page_of(struct process *p, uint64_t addr, bool make)
{
	size_t i;

	for (i = 0; i < p->n_pages; i++)
		if (p->page[i].addr == addr / PAGE * PAGE)
			return p->page[i].bytes;
	if (!make)
		return NULL;
	cr_assert_lt(i, PAGES);
	p->page[i].addr = addr / PAGE * PAGE;
	p->n_pages++;
	return p->page[i].bytes;
}

static void put(struct process *p, uint64_t addr, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		page_of(p, addr + i, true)[(addr + i) % PAGE] = ((const uint8_t *)bytes)[i];
}

static void put64(struct process *p, uint64_t addr, uint64_t v)
{
	put(p, addr, &v, sizeof(v));
}

static void read_pages(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct process *p = (struct process *)mem->image;

	for (size_t i = 0; i < n; i++) {
		spans[i].ok = true;
		for (size_t k = 0; k < spans[i].len; k++) {
			const uint8_t *page = page_of(p, spans[i].addr + k, false);

			if (!page) {
				spans[i].ok = false;
				break;
			}
			((uint8_t *)spans[i].dst)[k] = page[(spans[i].addr + k) % PAGE];
		}
	}
}

/* The objects of the Ruby in it, far enough apart for any layout. */
#define HEAP	 0x7f0000000000ull
#define VM	 (HEAP + 0x00000)
#define OBJSPACE (HEAP + 0x02000)
#define RACTOR	 (HEAP + 0x04000)
#define THREAD	 (HEAP + 0x05000)
#define FIBER	 (HEAP + 0x06000)
#define SELF	 (HEAP + 0x07000) /* Thread.current */
#define IDS	 (HEAP + 0x07100)
#define BLOCK	 (HEAP + 0x08000) /* TLS of the libruby */
#define DTV	 (HEAP + 0x09000)
#define TP	 (HEAP + 0x0a000)
#define OUTSIDE	 0x7ffff0001000ull /* code in other files */

#define FIBER_EC 80

struct fact {
	enum ruby_field field;
	uint16_t value;
};

struct build {
	const char *name;
	const struct emu_machine *machine;
	const struct code_piece *code;
	uint64_t text_hi, data_lo, data_hi;
	uint64_t symbol[RUBY_SYMS];
	uint64_t got[8][2]; /* address, value */
	uint64_t vm_var, ractor_var, symbols;
	uint64_t ec_var; /* the slot or the global */
	uint16_t th_ec;
	struct fact facts[16]; /* all that the code tells */
};

#define FACT(field, value)                                                                         \
	{                                                                                          \
		RUBY_FIELD_##field, value                                                          \
	}

static const struct build builds[] = {
	{
		.name = "Debian 2.7.4, x86_64", /* a global EC, found through the GOT */
		.machine = &emu_x86_64,
		.code = x86_64_2_7,
		.text_hi = 0x250000, .data_lo = 0x33a000, .data_hi = 0x360000,
		.symbol = {
			[RUBY_SYM_rb_during_gc] = 0xc2210,
			[RUBY_SYM_rb_gc_count] = 0xc2230,
			[RUBY_SYM_rb_thread_main] = 0x1ea020,
			[RUBY_SYM_rb_thread_current] = 0x1e9b10,
			[RUBY_SYM_ruby_current_execution_context_ptr] = 0x35a8b0,
		},
		.got = { { 0x342d10, 0x35a8b8 }, { 0x342cc8, 0x35a8b0 } },
		.vm_var = 0x35a8b8,
		.ec_var = 0x35a8b0,
		.th_ec = 32,
		.facts = {
			FACT(ec_thread_ptr, 56), FACT(th_vm, 24), FACT(vm_objspace, 1152),
			FACT(objspace_flags, 16), FACT(objspace_count, 424),
		},
	},
	{
		.name = "Debian 3.1.2, x86_64", /* __tls_get_addr() through the PLT */
		.machine = &emu_x86_64,
		.code = x86_64_3_1,
		.text_hi = 0x28bae9, .data_lo = 0x3a43d0, .data_hi = 0x3c0228,
		.symbol = {
			[RUBY_SYM_rb_during_gc] = 0xcf4e0,
			[RUBY_SYM_rb_gc_count] = 0xcf500,
			[RUBY_SYM_rb_thread_main] = 0x2102d0,
			[RUBY_SYM_rb_thread_current] = 0x20fd20,
			[RUBY_SYM_rb_fiber_current] = 0x931a0,
			[RUBY_SYM_rb_fiber_yield] = 0x93420,
			[RUBY_SYM_rb_id2str] = 0x208410,
		},
		.got = {
			{ 0x3adc88, 0x3bc370 }, { 0x3ad5f0, 0x3bc368 }, { 0x3abc40, OUTSIDE },
			{ 0x3ada48, 2 }, { 0x3ada50, 8 }, /* module, offset */
		},
		.vm_var = 0x3bc370,
		.ractor_var = 0x3bc368,
		.symbols = 0x3ae1c0,
		.ec_var = BLOCK + 8,
		.th_ec = 40,
		.facts = {
			FACT(ec_thread_ptr, 48), FACT(ec_fiber_ptr, 40), FACT(th_ractor, 24),
			FACT(th_ec, 40), FACT(vm_objspace, 1104), FACT(ractor_running_ec, 520),
			FACT(objspace_flags, 16), FACT(objspace_count, 440),
			FACT(fiber_ec, FIBER_EC), FACT(fiber_prev, 512),
		},
	},
	{
		.name = "4.1-dev, x86_64, static", /* local TLS, a volatile EC, a call for it */
		.machine = &emu_x86_64,
		.code = x86_64_4_1,
		.text_hi = 0x658011, .data_lo = 0x8486a8, .data_hi = 0x885f88,
		.symbol = {
			[RUBY_SYM_rb_during_gc] = 0x90990,
			[RUBY_SYM_rb_gc_count] = 0x909c0,
			[RUBY_SYM_rb_thread_main] = 0x206970,
			[RUBY_SYM_rb_thread_current] = 0x206950,
			[RUBY_SYM_rb_fiber_current] = 0x570bb0,
			[RUBY_SYM_rb_fiber_yield] = 0x570fd0,
			[RUBY_SYM_rb_id2str] = 0x1f2260,
		},
		.vm_var = 0x871978,
		.ractor_var = 0x871970,
		.symbols = 0x86abd0,
		.ec_var = TP - 80,
		.th_ec = 48,
		.facts = {
			FACT(ec_thread_ptr, 48), FACT(ec_fiber_ptr, 40), FACT(th_ractor, 24),
			FACT(vm_objspace, 1368), FACT(ractor_running_ec, 376),
			FACT(objspace_flags, 76), FACT(objspace_count, 2168),
			FACT(fiber_ec, FIBER_EC), FACT(fiber_prev, 544),
		},
	},
	{
		.name = "Debian 3.1.2, arm64", /* a TLS descriptor */
		.machine = &emu_arm64,
		.code = arm64_3_1,
		.text_hi = 0x363a54, .data_lo = 0x376000, .data_hi = 0x392000,
		.symbol = {
			[RUBY_SYM_rb_during_gc] = 0xc9504,
			[RUBY_SYM_rb_thread_current] = 0x1febf0,
		},
		.got = { { 0x37fc00, 0x38e290 }, { 0x37f3e8, OUTSIDE }, { 0x37f3f0, 24 } },
		.vm_var = 0x38e290,
		.ec_var = TP + 24,
		.th_ec = 40,
		.facts = {
			FACT(ec_thread_ptr, 48), FACT(vm_objspace, 1128), FACT(objspace_flags, 16),
		},
	},
	{
		.name = "Debian 3.4.11, arm64", /* calls for the EC, one through the PLT; bit 37 */
		.machine = &emu_arm64,
		.code = arm64_3_4,
		.text_hi = 0x4a36c0, .data_lo = 0x4bf878, .data_hi = 0x4e4430,
		.symbol = {
			[RUBY_SYM_rb_during_gc] = 0x105440,
			[RUBY_SYM_rb_gc_count] = 0x10546c,
			[RUBY_SYM_rb_thread_main] = 0x252768,
			[RUBY_SYM_rb_thread_current] = 0x252140,
			[RUBY_SYM_rb_fiber_current] = 0xc6024,
			[RUBY_SYM_rb_fiber_yield] = 0xc6360,
			[RUBY_SYM_rb_id2str] = 0x247640,
		},
		.got = {
			{ 0x4cfba8, 0x4e0940 }, { 0x4cf380, 0x4e0928 }, { 0x4cd7a0, 0x1025f0 },
			{ 0x4cf2f0, OUTSIDE }, { 0x4cf2f8, 24 },
		},
		.vm_var = 0x4e0940,
		.ractor_var = 0x4e0928,
		.symbols = 0x4d0150,
		.ec_var = TP + 24,
		.th_ec = 48,
		.facts = {
			FACT(ec_thread_ptr, 48), FACT(ec_fiber_ptr, 40), FACT(th_ractor, 24),
			FACT(th_ec, 48), FACT(vm_objspace, 1320), FACT(ractor_running_ec, 400),
			FACT(objspace_flags, 20), FACT(objspace_count, 1008),
			FACT(fiber_ec, FIBER_EC), FACT(fiber_prev, 888),
		},
	},
};

#define N_BUILDS (sizeof(builds) / sizeof(builds[0]))

enum { RUBY_2_7, RUBY_3_1, RUBY_4_1, ARM64_3_1, ARM64_3_4 };

/* RUBY_UNKNOWN if the code of @b does not tell. */
static uint16_t fact_of(const struct build *b, enum ruby_field field)
{
	for (size_t i = 0; b->facts[i].value; i++)
		if (b->facts[i].field == field)
			return b->facts[i].value;
	return RUBY_UNKNOWN;
}

static void put_objects(struct process *p, const struct build *b)
{
	uint16_t fiber_ptr = fact_of(b, RUBY_FIELD_ec_fiber_ptr);
	uint16_t running_ec = fact_of(b, RUBY_FIELD_ractor_running_ec);

	for (uint64_t at = HEAP; at < HEAP + 0x10000; at += PAGE)
		page_of(p, at, true);
	put64(p, b->vm_var, VM);
	put64(p, VM + fact_of(b, RUBY_FIELD_vm_objspace), OBJSPACE);
	put64(p, b->ec_var, FIBER + FIBER_EC);
	put64(p, FIBER + FIBER_EC + fact_of(b, RUBY_FIELD_ec_thread_ptr), THREAD);
	if (fiber_ptr != RUBY_UNKNOWN)
		put64(p, FIBER + FIBER_EC + fiber_ptr, FIBER);
	put64(p, THREAD + 16, SELF);
	put64(p, THREAD + 24, b->ractor_var ? RACTOR : VM);
	put64(p, THREAD + b->th_ec, FIBER + FIBER_EC);
	put64(p, SELF, 0x0c); /* T_DATA */
	if (b->ractor_var) {
		put64(p, b->ractor_var, RACTOR);
		put64(p, RACTOR + running_ec, FIBER + FIBER_EC);
		put64(p, RACTOR + running_ec + 8, THREAD);
	}
	if (b->symbols) {
		put64(p, b->symbols, 5000);
		put64(p, b->symbols + 16, IDS);
		put64(p, IDS, 0x07); /* T_ARRAY */
	}
}

static struct process *process_new(const struct build *b)
{
	struct process *p = calloc(1, sizeof(*p));

	cr_assert(p);
	p->mem = (struct memory) { .read_spans = read_pages, .image = p };
	p->bin = (struct ruby_binary) { .text_lo = 0x1000,
					.text_hi = b->text_hi,
					.data_lo = b->data_lo,
					.data_hi = b->data_hi };
	memcpy(p->bin.symbol, b->symbol, sizeof(p->bin.symbol));
	for (const struct code_piece *c = b->code; c->size; c++)
		put(p, c->addr, c->bytes, c->size);
	for (size_t i = 0; i < sizeof(b->got) / sizeof(b->got[0]) && b->got[i][0]; i++)
		put64(p, b->got[i][0], b->got[i][1]);
	put64(p, TP + (b->machine == &emu_x86_64 ? 8 : 0), DTV);
	put64(p, DTV + 2 * 16, BLOCK);
	put_objects(p, b);
	return p;
}

static struct ruby_code read_code(const struct process *p, const struct build *b)
{
	struct ruby_code code;

	ruby_code_read_machine(b->machine, &p->mem, &p->bin, TP, &code);
	return code;
}

/* @unknown are not to be known though the code of @b tells them. */
static void expect_layout(const struct build *b, const struct ruby_code *code,
			  const enum ruby_field *unknown, size_t n)
{
	for (enum ruby_field f = 0; f < RUBY_FIELDS; f++) {
		uint16_t want = fact_of(b, f), got = ruby_layout_get(&code->layout, f);

		for (size_t i = 0; i < n; i++)
			if (unknown[i] == f)
				want = RUBY_UNKNOWN;
		cr_expect_eq(got, want, "%s: %s is %u, not %u", b->name, ruby_field_info[f].name,
			     got, want);
	}
}

#define UNKNOWN(...)                                                                               \
	(const enum ruby_field[]) { __VA_ARGS__ },                                                 \
		sizeof((enum ruby_field[]) { __VA_ARGS__ }) / sizeof(enum ruby_field)

Test(code, builds)
{
	for (size_t i = 0; i < N_BUILDS; i++) {
		const struct build *b = &builds[i];
		struct process *p = process_new(b);
		struct ruby_code code = read_code(p, b);

		expect_layout(b, &code, NULL, 0);
		cr_expect_eq(code.current_vm, b->vm_var, "%s", b->name);
		cr_expect_eq(code.symbols, b->symbols, "%s", b->name);
		cr_expect_eq(code.ec_slot, i == RUBY_2_7 ? 0 : b->ec_var, "%s", b->name);
		free(p);
	}
}

/* Once a second Ractor has run, there is no single one; and a VM may be about to end. */
Test(code, whatever_the_variables_hold)
{
	for (size_t i = 0; i < N_BUILDS; i++) {
		const struct build *b = &builds[i];
		struct process *p = process_new(b);
		struct ruby_code code;

		put64(p, b->vm_var, 0);
		if (b->ractor_var)
			put64(p, b->ractor_var, 0);
		code = read_code(p, b);
		expect_layout(b, &code, NULL, 0);
		cr_expect_eq(code.current_vm, b->vm_var, "%s", b->name);
		free(p);
	}
}

Test(code, dtv_of_musl)
{
	const struct build *b = &builds[RUBY_3_1];
	struct process *p = process_new(b);
	struct ruby_code code;

	put64(p, DTV + 2 * 16, 0);
	put64(p, DTV + 2 * 8, BLOCK);
	code = read_code(p, b);
	expect_layout(b, &code, NULL, 0);
	cr_expect_eq(code.ec_slot, b->ec_var);
	free(p);
}

/* A libruby that was loaded late has no place at the thread pointer. */
Test(code, descriptor_of_dynamic_tls)
{
	const struct build *b = &builds[ARM64_3_4];

	for (int musl = 0; musl < 2; musl++) {
		struct process *p = process_new(b);
		struct ruby_code code;

		put64(p, b->ec_var, 0);
		put64(p, BLOCK + 8, FIBER + FIBER_EC);
		put64(p, 0x4cf2f8, HEAP + 0x0b000); /* argument of the descriptor */
		put64(p, HEAP + 0x0b000, 2);
		put64(p, HEAP + 0x0b008, 8);
		if (musl) {
			put64(p, TP, 0);
			put64(p, TP - 8, DTV);
			put64(p, DTV + 2 * 16, 0);
			put64(p, DTV + 2 * 8, BLOCK);
		}
		code = read_code(p, b);
		expect_layout(b, &code, NULL, 0);
		cr_expect_eq(code.ec_slot, BLOCK + 8, "musl: %d", musl);
		free(p);
	}
}

/* Without an EC the loads are the same, but which of them are of the EC and the fiber? */
static void expect_without_ec(const struct build *b, const struct process *p)
{
	struct ruby_code code = read_code(p, b);

	expect_layout(b, &code,
		      UNKNOWN(RUBY_FIELD_fiber_ec, RUBY_FIELD_fiber_prev, RUBY_FIELD_th_ec,
			      RUBY_FIELD_th_ractor, RUBY_FIELD_th_vm));
	cr_expect_eq(code.ec_slot, 0, "%s", b->name);
	cr_expect_eq(code.current_vm, b->vm_var, "%s", b->name);
}

Test(code, thread_without_ec)
{
	for (size_t i = 0; i < N_BUILDS; i++) {
		struct process *p = process_new(&builds[i]);

		put64(p, builds[i].ec_var, 0);
		if (builds[i].ractor_var)
			put64(p, RACTOR + fact_of(&builds[i], RUBY_FIELD_ractor_running_ec), 0);
		expect_without_ec(&builds[i], p);
		free(p);
	}
}

Test(code, what_is_in_the_slot_is_no_ec)
{
	for (size_t i = 0; i < N_BUILDS; i++) {
		struct process *p = process_new(&builds[i]);

		put64(p, SELF, 0x05); /* a String is no Thread */
		if (builds[i].ractor_var)
			put64(p, RACTOR + fact_of(&builds[i], RUBY_FIELD_ractor_running_ec), 0);
		expect_without_ec(&builds[i], p);
		free(p);
	}
}

Test(code, tls_not_allocated)
{
	const uint64_t blocks[] = { 0, ~0ull, 0x5000 };

	for (size_t i = 0; i < 3; i++) {
		const struct build *b = &builds[RUBY_3_1];
		struct process *p = process_new(b);

		put64(p, DTV + 2 * 16, blocks[i]);
		expect_without_ec(b, p);
		free(p);
	}
}

/* A member of another Ruby, where this one has the running EC. */
Test(code, running_ec_is_proven)
{
	const struct build *b = &builds[RUBY_3_1];
	struct process *p = process_new(b);
	struct ruby_code code;

	put64(p, RACTOR + 520, SELF);
	code = read_code(p, b);
	expect_layout(b, &code, UNKNOWN(RUBY_FIELD_ractor_running_ec));
	free(p);
}

Test(code, symbols_are_proven)
{
	const struct build *b = &builds[RUBY_3_1];
	struct process *p = process_new(b);

	put64(p, IDS, 0x0c); /* T_DATA, as in 4.1 */
	cr_expect_eq(read_code(p, b).symbols, b->symbols);
	put64(p, IDS, 0x05);
	cr_expect_eq(read_code(p, b).symbols, 0);
	put64(p, b->symbols + 16, 20); /* true */
	cr_expect_eq(read_code(p, b).symbols, 0);
	free(p);
}

/* during_gc elsewhere: then the flags are others. */
Test(code, another_bit)
{
	const struct build *b = &builds[RUBY_3_1];
	struct process *p = process_new(b);
	struct ruby_code code;

	put(p, 0xcf4f5, "\xc0\xe8\x06", 3); /* shr $6,%al */
	code = read_code(p, b);
	expect_layout(b, &code, UNKNOWN(RUBY_FIELD_objspace_flags));
	free(p);
}

/* Two functions that disagree: neither is believed. */
Test(code, contradictions)
{
	const struct build *b = &builds[RUBY_3_1];
	struct process *p = process_new(b);
	struct ruby_code code;

	put(p, 0xcf50d, "\x58", 1); /* rb_gc_count: mov 0x458(%rax),%rax */
	code = read_code(p, b);
	expect_layout(b, &code, UNKNOWN(RUBY_FIELD_vm_objspace));
	cr_expect_eq(code.current_vm, b->vm_var);

	put64(p, 0x3adc88, b->data_hi); /* a GOT entry that leads elsewhere */
	code = read_code(p, b);
	cr_expect_eq(code.current_vm, 0);
	cr_expect_eq(code.layout.objspace_flags, RUBY_UNKNOWN);
	free(p);
}

/* Only 2.7 has an EC in a global variable, and only that one. */
Test(code, global_ec)
{
	const struct build *b = &builds[RUBY_2_7];
	struct process *p = process_new(b);

	p->bin.symbol[RUBY_SYM_ruby_current_execution_context_ptr] += 8;
	expect_without_ec(b, p);
	free(p);
}

Test(code, no_functions)
{
	struct process *p = process_new(&builds[RUBY_3_1]);
	struct ruby_code code;

	memset(p->bin.symbol, 0, sizeof(p->bin.symbol));
	code = read_code(p, &builds[RUBY_3_1]);
	for (enum ruby_field f = 0; f < RUBY_FIELDS; f++)
		cr_expect_eq(ruby_layout_get(&code.layout, f), RUBY_UNKNOWN);
	cr_expect(!code.current_vm && !code.symbols && !code.ec_slot);
	free(p);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 24;
}

/* Some bytes of the process are others: of its code, its GOT or its objects. */
Test(code, damaged)
{
	uint64_t seed = 1;

	for (int round = 0; round < 1500; round++) {
		const struct build *b = &builds[round % N_BUILDS];
		struct process *p = process_new(b);

		for (uint64_t n = next_random(&seed) % 16; n > 0; n--) {
			size_t page = next_random(&seed) % p->n_pages;
			size_t at = next_random(&seed) % PAGE;

			while (at < PAGE - 1 && !p->page[page].bytes[at])
				at++;
			p->page[page].bytes[at] = (uint8_t)next_random(&seed);
		}
		read_code(p, b);
		free(p);
	}
}

Test(code, random_bytes)
{
	uint64_t seed = 1;

	for (int round = 0; round < 200; round++) {
		const struct build *b = &builds[round % N_BUILDS];
		struct process *p = process_new(b);

		for (size_t i = 0; i < p->n_pages; i++)
			for (size_t k = 0; k < PAGE; k++)
				p->page[i].bytes[k] = (uint8_t)next_random(&seed);
		read_code(p, b);
		free(p);
	}
}
