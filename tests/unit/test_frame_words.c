/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames as the ring has them are the frames that were walked. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "rbpf_frame_words.h"

#define HEAP 0x7f0012345678ull

/* What is sent of @f: as many words, and the same frame, unless its check is left out. */
static void expect_words(const struct rbpf_frame *f, __u32 n, bool checked)
{
	__u64 words[RBPF_FRAME_WORDS + 1];
	struct rbpf_frame got;
	__u32 i;

	memset(words, 0xa5, sizeof(words));
	cr_expect_eq(rbpf_frame_pack(f, words), n, "%#llx %#llx %#llx %#llx", f->iseq, f->pc, f->me,
		     f->check);
	cr_expect_eq(words[RBPF_FRAME_WORDS], 0xa5a5a5a5a5a5a5a5);
	memset(&got, 0xff, sizeof(got));
	for (i = 0; i < n; i++)
		cr_expect_eq(rbpf_frame_unpack(words, i, &got), 0, "%u words of %u", i, n);
	cr_expect_eq(rbpf_frame_unpack(words, n + 3, &got), n);
	cr_expect_eq(got.iseq, f->iseq);
	cr_expect_eq(got.pc, f->pc);
	cr_expect_eq(got.me, f->me, "%#llx for %#llx", got.me, f->me);
	cr_expect_eq(got.check, checked ? f->check : 0);
}

static void expect(__u64 iseq, __u64 pc, __u64 me, __u32 n)
{
	expect_words(&(struct rbpf_frame) { iseq, pc, me, 0 }, n, true);
	expect_words(&(struct rbpf_frame) { iseq, pc, me, 0x8000000000000001 }, n + 1, true);
}

Test(frame_words, forms)
{
	const __u64 near = 8ull << 31;

	expect(HEAP, 0x55aa11223340 | RBPF_PC_FLAGS, HEAP + 8, 2);
	expect(HEAP, RBPF_PC_STALE, HEAP - 8, 2);
	expect(HEAP, 8, 0, 2);
	expect(HEAP, 8, HEAP, 2);
	expect(HEAP, 8, HEAP + near - 8, 2);
	expect(HEAP, 8, HEAP + near, 3);
	expect(HEAP, 8, HEAP - near, 2);
	expect(HEAP, 8, HEAP - near - 8, 3);
	expect(8, RBPF_FRAME_PC, RBPF_FRAME_ADDRESS, 3);
	expect(RBPF_FRAME_ADDRESS, RBPF_FRAME_PC, RBPF_FRAME_ADDRESS, 2);
	expect(0, RBPF_PC_FINISH, HEAP, 2); /* a method in C */
	expect(0, 0, RBPF_FRAME_ADDRESS, 2);
	expect(0, 4711, 0, 2); /* cut frames */
	expect(0, 0, 0, 2);    /* a fiber */
}

/* Nonsense stays the same nonsense, but is not proven. */
Test(frame_words, what_is_no_address)
{
	static const struct rbpf_frame frames[] = {
		{ HEAP | 1, 8, HEAP, 0 },
		{ HEAP, 8, HEAP | 4, 5 },
		{ 1ull << 48 | HEAP, 8, HEAP, 5 },
		{ HEAP, 1ull << 48, HEAP, 5 },
		{ HEAP, 8, 1ull << 63, 5 },
		{ ~0ull, ~0ull, ~0ull, ~0ull },
		{ 0, ~0ull, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		expect_words(&frames[i], 4, false);
}

static __u64 random_word(unsigned int *seed)
{
	__u64 word = (__u64)rand_r(seed) << 31 ^ (__u64)rand_r(seed);

	return word >> rand_r(seed) % 24 << rand_r(seed) % 5;
}

Test(frame_words, any)
{
	__u64 words[RBPF_FRAME_WORDS];
	unsigned int seed = 1;
	struct rbpf_frame got;
	__u32 n;

	for (int i = 0; i < 1000000; i++) {
		struct rbpf_frame f = { random_word(&seed), random_word(&seed), random_word(&seed),
					rand_r(&seed) % 2 ? random_word(&seed) : 0 };

		if (rand_r(&seed) % 4 == 0)
			f.me = f.iseq + ((__u64)rand_r(&seed) << 4) - (1ull << 34);
		n = rbpf_frame_pack(&f, words);
		if (words[0] == RBPF_FRAME_RAW)
			f.check = 0;
		/* An assertion for each would take minutes. */
		if (rbpf_frame_unpack(words, n, &got) != n || memcmp(&f, &got, sizeof(f)))
			cr_assert_fail("%#llx %#llx %#llx", f.iseq, f.pc, f.me);
	}
}
