/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "target/transcript.h"

/* Memory from BASE on, of which what is read is counted by calls. */
#define BASE 0x10000u
static uint8_t image[4096];
static int calls;

static void read_image(const struct memory *mem, struct memory_span *spans, size_t n)
{
	size_t i;

	(void)mem;
	calls++;
	for (i = 0; i < n; i++) {
		spans[i].ok = spans[i].addr >= BASE &&
			      spans[i].addr - BASE + spans[i].len <= sizeof(image);
		if (spans[i].ok)
			memcpy(spans[i].dst, &image[spans[i].addr - BASE], spans[i].len);
	}
}

static const struct memory from = { .read_spans = read_image };

static bool is_the_same(const struct transcript *t)
{
	struct memory_span spans[TRANSCRIPT_SPANS];
	uint8_t bytes[TRANSCRIPT_BYTES];
	size_t n = transcript_again(t, spans, bytes), i;

	memory_read_spans(&from, spans, n);
	for (i = 0; i < n; i++)
		if (!spans[i].ok)
			return false;
	return !memcmp(bytes, t->bytes, t->len);
}

Test(transcript, all_in_one_read)
{
	struct transcript t;
	struct memory mem = transcript_memory(&t, &from);
	uint64_t next = BASE + 800, word = 7;
	char text[6];

	memcpy(image, &next, sizeof(next));
	memcpy(&image[800], &word, sizeof(word));
	memcpy(&image[1000], "Orders", 6);
	cr_assert_eq(memory_read_u64(&mem, BASE, &word), 0);
	cr_expect_eq(word, next);
	cr_assert_eq(memory_read_u64(&mem, word, &word), 0);
	cr_assert_eq(memory_read(&mem, BASE + 1000, text, sizeof(text)), 0);
	cr_expect(t.is_whole);
	cr_expect_eq(t.n, 3);
	cr_expect_eq(t.len, 22);
	calls = 0;
	cr_expect(is_the_same(&t));
	cr_expect_eq(calls, 1);
	for (size_t i = 0; i < 3; i++) {
		const size_t at[] = { 7, 800, 1005 };

		image[at[i]]++;
		cr_expect_not(is_the_same(&t), "byte %zu", at[i]);
		image[at[i]]--;
	}
	image[500]++;
	cr_expect(is_the_same(&t), "what was not read does not matter");
}

Test(transcript, what_is_not_whole)
{
	struct transcript t;
	struct memory mem = transcript_memory(&t, &from);
	uint8_t bytes[TRANSCRIPT_BYTES];
	uint64_t word;

	cr_expect_eq(memory_read_u64(&mem, 0x100, &word), -EFAULT);
	cr_expect_not(t.is_whole, "not all could be read");
	mem = transcript_memory(&t, &from);
	cr_expect(t.is_whole, "a new one");
	cr_expect_eq(memory_read(&mem, BASE, bytes, TRANSCRIPT_BYTES), 0);
	cr_expect(t.is_whole);
	cr_expect(is_the_same(&t));
	cr_expect_eq(memory_read(&mem, BASE, bytes, 1), 0);
	cr_expect_not(t.is_whole, "too long");
	mem = transcript_memory(&t, &from);
	for (unsigned int i = 0; i < TRANSCRIPT_SPANS; i++)
		cr_expect_eq(memory_read(&mem, BASE + 8 * i, bytes, 8), 0);
	cr_expect(t.is_whole);
	cr_expect(is_the_same(&t));
	cr_expect_eq(memory_read(&mem, BASE, bytes, 8), 0);
	cr_expect_not(t.is_whole, "too many pieces");
}
