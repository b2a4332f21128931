/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static void assert_sane_buf(const struct buf *buf)
{
	if (!buf->data) {
		cr_assert_eq(buf->len, 0);
		cr_assert_eq(buf->cap, 0);
	} else {
		cr_assert_lt(buf->len, buf->cap, "room for the NUL");
		cr_assert_eq(buf->data[buf->len], '\0', "a NUL follows the bytes");
	}
	cr_assert_eq(buf_failed(buf), buf->failed);
}

static void assert_bytes(const struct buf *buf, const void *want, size_t len, const char *name)
{
	assert_sane_buf(buf);
	cr_assert_eq(buf->len, len, "%s: %zu bytes, not %zu", name, buf->len, len);
	cr_assert(!len || !memcmp(buf->data, want, len), "%s: other bytes", name);
}

Test(buf, empty)
{
	struct buf buf = BUF_INIT;

	assert_sane_buf(&buf);
	cr_expect_str_eq(buf_str(&buf), "");
	cr_expect(!buf_failed(&buf));
	buf_add(&buf, NULL, 0);
	buf_add(&buf, "x", 0);
	buf_addstr(&buf, "");
	buf_addf(&buf, "%s", "");
	buf_add_repeat(&buf, 'x', 0);
	assert_bytes(&buf, "", 0, "nothing was added");
	cr_expect_str_eq(buf_str(&buf), "");
	buf_deinit(&buf);
	buf_deinit(&buf);
	assert_sane_buf(&buf);
	buf_deinit(NULL);
}

Test(buf, adds_in_order)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	buf_addstr(&buf, "ab");
	buf_addch(&buf, 'c');
	buf_add(&buf, "d\0e", 3);
	buf_addch(&buf, '\0');
	buf_addf(&buf, "%d-%s", -7, "x");
	buf_add_repeat(&buf, '=', 3);
	assert_bytes(&buf, "abcd\0e\0-7-x===", 14, "all kinds");
	cr_expect_str_eq(buf_str(&buf), "abcd", "as a C string it ends at the first NUL");
}

Test(buf, grows_byte_by_byte)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	size_t growths = 0;

	for (size_t i = 0; i < 100000; i++) {
		size_t cap = buf.cap;

		buf_addch(&buf, (char)i);
		growths += buf.cap != cap;
		cr_assert_lt(buf.len, buf.cap);
	}
	assert_sane_buf(&buf);
	cr_assert_eq(buf.len, 100000);
	for (size_t i = 0; i < buf.len; i++)
		cr_assert_eq(buf.data[i], (char)i, "byte %zu", i);
	cr_expect_leq(growths, 20, "the room doubles: %zu growths", growths);
}

Test(buf, reset_keeps_the_memory)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	char *data;

	buf_reset(&buf);
	assert_sane_buf(&buf);
	buf_add_repeat(&buf, 'x', 1000);
	data = buf.data;
	buf_reset(&buf);
	assert_bytes(&buf, "", 0, "reset");
	cr_expect_str_eq(buf_str(&buf), "");
	cr_expect_eq(buf.data, data);
	buf_addstr(&buf, "again");
	cr_expect_str_eq(buf_str(&buf), "again");
}

Test(buf, truncate)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	buf_truncate(&buf, 0);
	assert_sane_buf(&buf);
	buf_addstr(&buf, "main;work");
	buf_truncate(&buf, 9);
	cr_expect_str_eq(buf_str(&buf), "main;work");
	buf_truncate(&buf, 100);
	cr_expect_str_eq(buf_str(&buf), "main;work");
	buf_truncate(&buf, 4);
	assert_bytes(&buf, "main", 4, "truncate");
	cr_expect_str_eq(buf_str(&buf), "main");
	buf_addstr(&buf, ";wait");
	cr_expect_str_eq(buf_str(&buf), "main;wait");
	buf_truncate(&buf, 0);
	cr_expect_str_eq(buf_str(&buf), "");
}

Test(buf, words_of_a_command_line)
{
	static const char *const words[][2] = {
		{ "rbpf", "rbpf" },
		{ "--comm=a.rb:1", "--comm=a.rb:1" },
		{ "puma|sidekiq", "'puma|sidekiq'" },
		{ "", "''" },
		{ "it's", "'it'\\''s'" },
		{ "$HOME", "'$HOME'" },
		{ "a b", "'a b'" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;

		buf_add_shell_word(&buf, words[i][0]);
		cr_expect_str_eq(buf_str(&buf), words[i][1]);
	}
}

/* Formatted text of each length around what a growth makes room for. */
Test(buf, addf_at_every_fill)
{
	static const char word[] = "0123456789abcdefghijklmnopqrstuvwxyz";

	for (size_t fill = 0; fill < 140; fill++) {
		for (size_t add = 0; add < sizeof(word); add++) {
			_cleanup_buf_ struct buf buf = BUF_INIT;

			buf_add_repeat(&buf, '.', fill);
			buf_addf(&buf, "%.*s", (int)add, word);
			assert_sane_buf(&buf);
			cr_assert_eq(buf.len, fill + add, "%zu + %zu", fill, add);
			cr_assert(!memcmp(buf.data + fill, word, add), "%zu + %zu", fill, add);
			cr_assert(!buf_failed(&buf));
		}
	}
}

Test(buf, addf_of_long_text)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	buf_addf(&buf, "%0*d|%s", 10000, 7, "end");
	assert_sane_buf(&buf);
	cr_assert_eq(buf.len, 10004);
	cr_expect_eq(buf.data[9999], '7');
	cr_expect_str_eq(buf.data + 10000, "|end", "the arguments are read right the second time");
}

Test(buf, overflow_fails_and_is_sticky)
{
	static const size_t sizes[] = { SIZE_MAX,
					SIZE_MAX - 1,
					SIZE_MAX - 3,
					(size_t)PTRDIFF_MAX,
					(size_t)PTRDIFF_MAX - 3,
					(size_t)PTRDIFF_MAX + 1 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;

		buf_addstr(&buf, "abc");
		buf_add_repeat(&buf, 'x', sizes[i]);
		cr_assert(buf_failed(&buf), "%zu bytes more", sizes[i]);
		assert_bytes(&buf, "abc", 3, "what was there stays");
		buf_addstr(&buf, "d");
		buf_addch(&buf, 'e');
		buf_addf(&buf, "%d", 1);
		buf_add_repeat(&buf, 'x', 2);
		buf_add_varint(&buf, 1);
		assert_bytes(&buf, "abc", 3, "later additions are ignored");
		cr_assert(buf_failed(&buf), "failure is sticky");
		buf_reset(&buf);
		cr_assert(!buf_failed(&buf), "reset forgets the failure");
		buf_addstr(&buf, "ok");
		assert_bytes(&buf, "ok", 2, "after reset");
	}
}

/* Small enough for the overflow check, but more than any machine has. */
Test(buf, malloc_failure)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	buf_addstr(&buf, "abc");
	buf_add_repeat(&buf, 'x', (size_t)1 << 62);
	cr_expect(buf_failed(&buf));
	assert_bytes(&buf, "abc", 3, "what was there stays");
}

Test(buf, addf_error_fails_and_adds_nothing)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;
	const wchar_t bad[] = { 0x110000, 0 }; /* no encoding has it: vsnprintf() returns -1 */

	buf_addstr(&buf, "abc");
	buf_addf(&buf, "12%ls", bad);
	cr_expect(buf_failed(&buf));
	assert_bytes(&buf, "abc", 3, "what was there stays");
}

Test(buf, varint)
{
	static const struct {
		uint64_t v;
		const char *bytes;
		size_t len;
	} cases[] = {
		{ 0, "\x00", 1 },
		{ 1, "\x01", 1 },
		{ 127, "\x7f", 1 },
		{ 128, "\x80\x01", 2 },
		{ 300, "\xac\x02", 2 },
		{ 16383, "\xff\x7f", 2 },
		{ 16384, "\x80\x80\x01", 3 },
		{ UINT32_MAX, "\xff\xff\xff\xff\x0f", 5 },
		{ (uint64_t)1 << 63, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10 },
		{ UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_buf_ struct buf buf = BUF_INIT;

		buf_add_varint(&buf, cases[i].v);
		assert_bytes(&buf, cases[i].bytes, cases[i].len, "varint");
	}
}

/* Each length of a varint, at its first and last value, reads back. */
Test(buf, varint_reads_back)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int minus = 0; minus < 2; minus++) {
			uint64_t v = ((uint64_t)1 << bit) - (uint64_t)minus;
			_cleanup_buf_ struct buf buf = BUF_INIT;
			uint64_t got = 0;

			buf_add_varint(&buf, v);
			for (size_t i = 0; i < buf.len; i++) {
				got |= (uint64_t)(buf.data[i] & 0x7f) << (7 * i);
				cr_assert_eq(!!(buf.data[i] & 0x80), i + 1 < buf.len,
					     "only the last byte has no high bit");
			}
			cr_assert_eq(got, v, "bit %u, minus %d", bit, minus);
		}
	}
}

Test(buf, limit)
{
	_cleanup_buf_ struct buf buf = { .max = 10 };

	buf_addstr(&buf, "12345");
	buf_addf(&buf, "%d", 67890);
	assert_bytes(&buf, "1234567890", 10, "as much as it may hold");
	cr_expect(!buf_failed(&buf) && !buf.exceeded);
	buf_addch(&buf, '1');
	cr_expect(buf_failed(&buf) && buf.exceeded, "a byte more");
	assert_bytes(&buf, "1234567890", 10, "what there was");
	buf_deinit(&buf);
	buf.max = 10;
	buf_add_repeat(&buf, 'x', 11);
	cr_expect(buf_failed(&buf) && buf.exceeded, "at one stroke");
}

/* ---- drained ---- */

struct sea {
	size_t n, sum, fail_at;
};

static int take_drained(void *arg, const void *data, size_t len)
{
	struct sea *sea = arg;

	for (size_t i = 0; i < len; i++)
		sea->sum += ((const unsigned char *)data)[i];
	sea->n += len;
	return sea->fail_at && sea->n >= sea->fail_at ? -1 : 0;
}

Test(buf, drained_output_takes_little_memory)
{
	struct sea sea = { 0 };
	struct buf buf = { .drain = take_drained, .drain_arg = &sea };
	size_t sum = 0;

	for (size_t i = 0; i < 5 * BUF_DRAIN / 8; i++) {
		buf_addf(&buf, "%08zu", i % 10);
		sum += 7 * '0' + '0' + i % 10;
	}
	cr_expect_not(buf_failed(&buf));
	cr_expect_lt(buf.cap, 4 * BUF_DRAIN);
	cr_expect_eq(buf.drained, sea.n);
	cr_expect_eq(sea.n + buf.len, 5 * BUF_DRAIN);
	take_drained(&sea, buf.data, buf.len);
	cr_expect_eq(sea.sum, sum);
	buf_deinit(&buf);
}

Test(buf, max_counts_what_was_drained)
{
	struct sea sea = { 0 };
	struct buf buf = { .drain = take_drained, .drain_arg = &sea, .max = 3 * BUF_DRAIN + 5 };

	buf_add_repeat(&buf, 'x', 2 * BUF_DRAIN);
	buf_add_repeat(&buf, 'x', BUF_DRAIN);
	cr_expect_not(buf_failed(&buf));
	buf_addstr(&buf, "12345");
	cr_expect_not(buf_failed(&buf));
	buf_addch(&buf, '6');
	cr_expect(buf_failed(&buf) && buf.exceeded);
	buf_deinit(&buf);
}

Test(buf, a_drain_that_fails_is_a_failure)
{
	struct sea sea = { .fail_at = 1 };
	struct buf buf = { .drain = take_drained, .drain_arg = &sea };

	buf_add_repeat(&buf, 'x', BUF_DRAIN);
	cr_expect_not(buf_failed(&buf));
	buf_addch(&buf, 'x');
	cr_expect(buf_failed(&buf) && !buf.exceeded);
	buf_deinit(&buf);
}

static void expect_decimal(uint64_t v)
{
	struct buf buf = BUF_INIT, expected = BUF_INIT;

	buf_add_u64(&buf, v);
	buf_addf(&expected, "%llu", (unsigned long long)v);
	cr_expect_str_eq(buf_str(&buf), buf_str(&expected));
	buf_deinit(&buf);
	buf_deinit(&expected);
}

Test(buf, decimal)
{
	expect_decimal(0);
	expect_decimal(12345678901234567890ull);
	expect_decimal(UINT64_MAX);
	for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
		expect_decimal(power - 1);
		expect_decimal(power);
		expect_decimal(power * 10 - 1);
	}
	for (unsigned int bit = 0; bit < 64; bit++) {
		expect_decimal((1ull << bit) - 1);
		expect_decimal(1ull << bit);
	}
}
