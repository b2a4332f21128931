/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/instructions.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "support/profile_builder.h"

struct fixture {
	struct profile_builder b;
	uint32_t thread, modules[2];
	regex_t method;
	struct instructions code;
};

/* Two files of one path, as before and after an upgrade. */
static void setup(struct fixture *f, const char *pattern)
{
	memset(f, 0, sizeof(*f));
	builder_init(&f->b);
	f->thread = builder_thread(&f->b, builder_process(&f->b, 1, "ruby"), 1, "main");
	for (size_t i = 0; i < ARRAY_SIZE(f->modules); i++) {
		const struct profile_module def = {
			.path = builder_str(&f->b, "/lib/libx.so"),
			.build_id = builder_str(&f->b, i ? "bb" : "aa"),
		};

		builder_must(sink_module(&f->b.out.sink, &def, &f->modules[i]));
	}
	cr_assert_eq(regcomp(&f->method, pattern, REG_EXTENDED), 0);
}

static void teardown(struct fixture *f)
{
	instructions_deinit(&f->code);
	regfree(&f->method);
	builder_deinit(&f->b);
}

static uint32_t native(struct fixture *f, size_t module, const char *name, uint64_t address)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.kind = FRAME_NATIVE;
	frame.name = builder_str(&f->b, name);
	frame.module = f->modules[module];
	frame.address = address;
	return builder_add_frame(&f->b, &frame);
}

static uint32_t stack(struct fixture *f, const uint32_t *frames, size_t n)
{
	uint32_t id = 0;

	for (size_t i = 0; i < n; i++)
		id = builder_stack(&f->b, id, frames[i]);
	return id;
}

static void find(struct fixture *f, size_t max)
{
	cr_assert_eq(instructions_find(builder_finish(&f->b), NULL, &f->method, max, &f->code), 0);
}

/* A block of @n instructions of @size bytes at @start, with the places from @first on. */
static void add_block(struct fixture *f, uint64_t start, uint32_t size, size_t n, size_t first,
		      size_t n_places)
{
	struct instructions *c = &f->code;
	const struct code_block block = { .function = c->places[first].function,
					  .start = start,
					  .end = start + n * size };

	cr_assert_eq(instructions_add_block(c, &block), 0);
	for (size_t i = 0; i < n; i++) {
		const struct code_row row = { .address = start + i * size, .size = size };

		cr_assert_eq(instructions_add_row(c, &row), 0);
	}
	cr_assert_eq(instructions_end_block(c, c->places + first, n_places), 0);
}

static void expect_row(const struct fixture *f, size_t row, uint64_t address, uint64_t self,
		       uint64_t total)
{
	const struct code_row *r = &f->code.rows[row];

	cr_expect_eq(r->address, address, "row %zu: %lx", row, (unsigned long)r->address);
	cr_expect_eq(r->time.self.samples, self, "%lx: self %lu", (unsigned long)address,
		     (unsigned long)r->time.self.samples);
	cr_expect_eq(r->time.total.samples, total, "%lx: total %lu", (unsigned long)address,
		     (unsigned long)r->time.total.samples);
}

/*
 * A function calls itself: a caller's address is the last byte of its call, and a sample counts
 * once for an instruction that is there twice.
 */
Test(instructions, recursion)
{
	struct fixture f;
	uint32_t at, call;

	setup(&f, "^f$");
	at = native(&f, 0, "f", 0x104);
	call = native(&f, 0, "f", 0x107);
	builder_add(&f.b, f.thread, stack(&f, (uint32_t[]) { call, call, at }, 3), 3);
	builder_add(&f.b, f.thread, stack(&f, (uint32_t[]) { call, native(&f, 0, "g", 0x104) }, 2),
		    2);
	builder_add(&f.b, f.thread, stack(&f, (uint32_t[]) { native(&f, 0, "f", 0x108) }, 1), 1);
	find(&f, 9);
	cr_assert_eq(f.code.n_functions, 1);
	cr_expect_eq(f.code.functions[0].time.self.samples, 4);
	cr_expect_eq(f.code.functions[0].time.total.samples, 6);
	cr_expect_eq(f.code.all.samples, 6);
	cr_assert_eq(f.code.n_places, 3);
	add_block(&f, 0x100, 4, 4, 0, 3);
	cr_assert_eq(instructions_add_up(&f.b.out.profile, NULL, &f.code), 0);
	cr_assert_eq(f.code.n_rows, 4);
	expect_row(&f, 0, 0x100, 0, 0);
	expect_row(&f, 1, 0x104, 3, 5);
	expect_row(&f, 2, 0x108, 1, 1);
	expect_row(&f, 3, 0x10c, 0, 0);
	teardown(&f);
}

/* An address at which no instruction is known has a row of its own, in its place. */
Test(instructions, addresses_without_an_instruction)
{
	struct fixture f;

	setup(&f, "f");
	for (uint64_t address = 0xfe; address < 0x10e; address += 5)
		builder_add(&f.b, f.thread,
			    stack(&f, (uint32_t[]) { native(&f, 0, "f", address) }, 1), address);
	find(&f, 9);
	cr_assert_eq(f.code.n_places, 4);
	add_block(&f, 0x100, 4, 2, 0, 4);
	cr_assert_eq(instructions_add_up(&f.b.out.profile, NULL, &f.code), 0);
	cr_assert_eq(f.code.n_rows, 5);
	expect_row(&f, 0, 0xfe, 0xfe, 0xfe);
	expect_row(&f, 1, 0x100, 0x103, 0x103);
	expect_row(&f, 2, 0x104, 0, 0);
	expect_row(&f, 3, 0x108, 0x108, 0x108);
	expect_row(&f, 4, 0x10d, 0x10d, 0x10d);
	teardown(&f);
}

/* One function, as in a report, but the code of each file is another. */
Test(instructions, two_files_of_one_path)
{
	struct fixture f;

	setup(&f, "f");
	for (size_t module = 0; module < 2; module++)
		builder_add(&f.b, f.thread,
			    stack(&f, (uint32_t[]) { native(&f, module, "f", 0x104) }, 1),
			    module + 1);
	find(&f, 9);
	cr_assert_eq(f.code.n_functions, 1);
	cr_expect_eq(f.code.functions[0].time.self.samples, 3);
	cr_assert_eq(f.code.n_places, 2);
	cr_expect_eq(f.code.places[0].module, f.modules[0]);
	cr_expect_eq(f.code.places[1].module, f.modules[1]);
	add_block(&f, 0x100, 8, 1, 0, 1);
	add_block(&f, 0x104, 2, 1, 1, 1);
	cr_assert_eq(instructions_add_up(&f.b.out.profile, NULL, &f.code), 0);
	expect_row(&f, 0, 0x100, 1, 1);
	expect_row(&f, 1, 0x104, 2, 2);
	teardown(&f);
}

/* The heaviest ones; no frames but native ones of a file; none without samples. */
Test(instructions, which_functions)
{
	static const char *const names[] = { "light", "heavy", "middle", "unlike" };
	struct fixture f;

	setup(&f, "l|h");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		builder_add(&f.b, f.thread,
			    stack(&f, (uint32_t[]) { native(&f, 0, names[i], 0x10 + i) }, 1),
			    (const size_t[]) { 1, 5, 3, 0 }[i]);
	builder_add(&f.b, f.thread,
		    builder_stack(&f.b, 0, builder_frame(&f.b, FRAME_RUBY, "light", "/x.rb", 1, 1)),
		    7);
	builder_add(&f.b, f.thread,
		    builder_stack(&f.b, 0, builder_frame(&f.b, FRAME_KERNEL, "hrtimer", "", 0, 0)),
		    7);
	find(&f, 2);
	cr_assert_eq(f.code.n_functions, 2);
	cr_expect_eq(f.code.n_more, 1);
	cr_expect_eq(f.code.functions[0].time.total.samples, 5);
	cr_expect_eq(f.code.functions[1].time.total.samples, 3);
	cr_assert_eq(f.code.n_places, 2);
	cr_expect_eq(f.code.places[0].address, 0x11);
	cr_expect_eq(f.code.places[1].address, 0x12);
	cr_expect_eq(f.code.all.samples, 23);
	add_block(&f, 0x11, 1, 1, 0, 1);
	add_block(&f, 0x12, 1, 1, 1, 1);
	cr_assert_eq(instructions_add_up(&f.b.out.profile, NULL, &f.code), 0);
	expect_row(&f, 0, 0x11, 5, 5);
	expect_row(&f, 1, 0x12, 3, 3);
	teardown(&f);
}
