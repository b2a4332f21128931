/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/jumps.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "elf/symbols.h"
#include "support/little_endian.h"

#define HERE	  0x1000ull /* of the code that is looked at */

/* Functions of 16 bytes, f0 at 0x2000, f1 at 0x2010 and so on; then stubs. */
#define FUNCTIONS 20
static struct elf_function functions[FUNCTIONS + 2];
static char names[FUNCTIONS][8];
static struct elf_symbols symbols;

static void begin(void)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		functions[i] = (struct elf_function) { 0x2000 + 16 * i, 0x2010 + 16 * i, names[i] };
	}
	functions[FUNCTIONS] = (struct elf_function) { 0x3000, 0x3010, "f3@plt" };
	functions[FUNCTIONS + 1] = (struct elf_function) { 0x3010, 0x3020, "elsewhere@plt" };
	symbols = (struct elf_symbols) { .functions = functions, .n = FUNCTIONS + 2 };
}

#if defined(__x86_64__)

/* jmp, or ja if @conditional, after @pad bytes of something else. */
static void add_jump(struct buf *code, uint64_t to, bool conditional, size_t pad)
{
	buf_add_repeat(code, '\x90', pad);
	buf_add(code, conditional ? "\x0f\x87" : "\xe9", conditional ? 2 : 1);
	buf_add_le32(code, (uint32_t)(to - (HERE + code->len + 4)));
}

#elif defined(__aarch64__)

/* b, or b.hi; @pad is in words. */
static void add_jump(struct buf *code, uint64_t to, bool conditional, size_t pad)
{
	uint64_t words;

	while (pad--)
		buf_add_le32(code, 0xd503201f); /* nop */
	words = (to - (HERE + code->len)) / 4;
	buf_add_le32(code, conditional ? 0x54000008 | (uint32_t)(words & 0x7ffff) << 5
				       : 0x14000000 | (uint32_t)(words & 0x3ffffff));
}

#endif

static void expect_jumps(const struct buf *code, const uint64_t *want, size_t n)
{
	uint64_t got[ELF_JUMPS_MAX];

	cr_assert_eq(elf_jumps(&symbols, (const uint8_t *)code->data, code->len, HERE, got), n);
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(got[i], want[i], "jump %zu goes to %#llx", i,
			     (unsigned long long)got[i]);
}

Test(jumps, of_both_kinds, .init = begin)
{
	struct buf code _cleanup_buf_ = BUF_INIT;

	add_jump(&code, 0x2010, false, 3);
	add_jump(&code, 0x2000, true, 0);
	add_jump(&code, 0x2010, true, 1); /* again */
	expect_jumps(&code, (uint64_t[]) { 0x2010, 0x2000 }, 2);
}

/* A loop, a jump into the middle of a function, one to no function. */
Test(jumps, that_are_no_calls, .init = begin)
{
	struct buf code _cleanup_buf_ = BUF_INIT;

	add_jump(&code, HERE, false, 0);
	add_jump(&code, 0x2004, false, 0);
	add_jump(&code, 0x201c, true, 0);
	add_jump(&code, 0x4000, false, 0);
	expect_jumps(&code, NULL, 0);
}

Test(jumps, through_a_stub, .init = begin)
{
	struct buf code _cleanup_buf_ = BUF_INIT;

	add_jump(&code, 0x3000, false, 0);
	add_jump(&code, 0x3010, false, 0);
	add_jump(&code, 0x2030, false, 0); /* the same as the first */
	expect_jumps(&code, (uint64_t[]) { 0x2030, 0x3010 }, 2);
}

/* The last instruction may be cut: what is behind the code is not read. */
Test(jumps, at_the_end, .init = begin)
{
	for (int conditional = 0; conditional < 2; conditional++) {
		struct buf code _cleanup_buf_ = BUF_INIT;

		add_jump(&code, 0x2000, conditional, 1);
		expect_jumps(&code, (uint64_t[]) { 0x2000 }, 1);
		code.len--;
		expect_jumps(&code, NULL, 0);
		code.len = 0;
		expect_jumps(&code, NULL, 0);
	}
}

Test(jumps, too_many, .init = begin)
{
	struct buf code _cleanup_buf_ = BUF_INIT;
	uint64_t want[ELF_JUMPS_MAX];

	for (size_t i = 0; i < FUNCTIONS; i++)
		add_jump(&code, 0x2000 + 16 * i, i % 2, 0);
	for (size_t i = 0; i < ELF_JUMPS_MAX; i++)
		want[i] = 0x2000 + 16 * i;
	expect_jumps(&code, want, ELF_JUMPS_MAX);
}
