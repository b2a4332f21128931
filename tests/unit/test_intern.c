/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/intern.h"

/* Every id is in exactly one slot and is found by its bytes; the table has free slots. */
static void assert_sane_intern(const struct intern *in)
{
	size_t used = 0;

	if (!in->slots) {
		cr_assert_eq(in->count, 0);
		return;
	}
	cr_assert_eq(in->slot_mask & (in->slot_mask + 1), 0, "a power of two");
	cr_assert_leq(in->count, in->cap);
	for (size_t i = 0; i <= in->slot_mask; i++) {
		cr_assert_leq(hash_slot_number(in->slots[i]), in->count, "slot %zu holds no id", i);
		used += in->slots[i] != 0;
	}
	cr_assert_eq(used, in->count, "as many slots are used as there are ids");
	cr_assert_leq(used, (in->slot_mask + 1) / 4 * 3, "the table is too full");
	for (uint32_t id = 0; id < in->count; id++) {
		uint32_t found = UINT32_MAX;
		size_t len;
		const char *p = intern_get(in, id, &len);

		cr_assert_eq((uintptr_t)p % 8, 0, "id %u is not aligned", id);
		cr_assert_eq(p[len], '\0', "a NUL follows id %u", id);
		cr_assert_eq(intern_find(in, p, len, &found), 0, "id %u", id);
		cr_assert_eq(found, id, "id %u is found as %u", id, found);
	}
}

Test(intern, empty)
{
	struct intern in = INTERN_INIT;
	uint32_t id = 77;

	cr_expect_eq(intern_find(&in, "x", 1, &id), -ENOENT);
	cr_expect_eq(intern_find(&in, NULL, 0, &id), -ENOENT, "\"\" is not there by itself");
	cr_expect_eq(id, 77, "untouched on failure");
	assert_sane_intern(&in);
	intern_deinit(&in);
	intern_deinit(&in);
	intern_deinit(NULL);
}

Test(intern, ids_in_order_of_appearance)
{
	static const char *const words[] = { "b", "a", "", "ab", "b", "", "c", "a" };
	static const uint32_t ids[] = { 0, 1, 2, 3, 0, 2, 4, 1 };
	static const bool news[] = { true, true, true, true, false, false, true, false };
	_cleanup_intern_ struct intern in = INTERN_INIT;

	for (size_t i = 0; i < 8; i++) {
		uint32_t id = UINT32_MAX;
		bool is_new = !news[i];

		cr_assert_eq(intern_add(&in, words[i], strlen(words[i]), &id, &is_new), 0);
		cr_expect_eq(id, ids[i], "\"%s\" got id %u", words[i], id);
		cr_expect_eq(is_new, news[i], "\"%s\"", words[i]);
	}
	cr_expect_eq(in.count, 5);
	cr_expect_str_eq(intern_get(&in, 3, NULL), "ab", "the length may be not asked for");
	assert_sane_intern(&in);
}

Test(intern, str_is_add_without_the_nul)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	uint32_t a, b;

	cr_assert_eq(intern_str(&in, "word", &a), 0);
	cr_assert_eq(intern_add(&in, "word", 4, &b, NULL), 0);
	cr_expect_eq(a, b);
	cr_assert_eq(intern_add(&in, "word", 5, &b, NULL), 0);
	cr_expect_neq(a, b, "the NUL is a byte like others");
}

Test(intern, null_with_length_0_is_the_empty_string)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	uint32_t a, b;
	size_t len = 9;

	cr_assert_eq(intern_add(&in, NULL, 0, &a, NULL), 0);
	cr_assert_eq(intern_str(&in, "", &b), 0);
	cr_expect_eq(a, b);
	cr_expect_str_eq(intern_get(&in, a, &len), "");
	cr_expect_eq(len, 0);
}

Test(intern, bytes_with_nul_and_prefixes_differ)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	static const char zeros[16];
	size_t len;
	uint32_t id;

	for (uint32_t n = 0; n <= 16; n++) {
		cr_assert_eq(intern_add(&in, zeros, n, &id, NULL), 0);
		cr_expect_eq(id, n, "%u zero bytes are a string of their own", n);
	}
	intern_get(&in, 11, &len);
	cr_expect_eq(len, 11);
	assert_sane_intern(&in);
}

Test(intern, bytes_are_copied)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	char text[] = "before";
	uint32_t id, found = 99;

	cr_assert_eq(intern_str(&in, text, &id), 0);
	memcpy(text, "after!", 6);
	cr_expect_str_eq(intern_get(&in, id, NULL), "before");
	cr_expect_eq(intern_find(&in, text, 6, &found), -ENOENT);
	cr_expect_eq(found, 99, "untouched on failure");
}

Test(intern, fixed_size_records)
{
	struct record {
		uint64_t a;
		uint32_t b;
		uint32_t pad;
	};
	_cleanup_intern_ struct intern in = INTERN_INIT;
	uint32_t id;

	for (uint32_t i = 0; i < 1000; i++) {
		struct record r = { .a = i % 10, .b = i % 7 };

		cr_assert_eq(intern_add(&in, &r, sizeof(r), &id, NULL), 0);
		cr_assert_eq(id, i % 70, "10 and 7 have no common divisor");
	}
	for (id = 0; id < 70; id++) {
		const struct record *r = intern_get(&in, id, NULL);

		cr_expect(r->a == id % 10 && r->b == id % 7, "record %u", id);
	}
	assert_sane_intern(&in);
}

Test(intern, growth_to_100000_keeps_ids_and_addresses)
{
	enum { N = 100000 };
	_cleanup_intern_ struct intern in = INTERN_INIT;
	const void **where = malloc(N * sizeof(*where));
	char text[64];
	bool is_new;
	uint32_t id;

	cr_assert_not_null(where);
	for (uint32_t i = 0; i < N; i++) {
		int n = snprintf(text, sizeof(text), "%*u", (int)(i % 40), i);

		cr_assert_eq(intern_add(&in, text, (size_t)n, &id, &is_new), 0);
		cr_assert(id == i && is_new, "entry %u", i);
		where[i] = intern_get(&in, i, NULL);
	}
	cr_assert_eq(in.count, N);
	for (uint32_t i = 0; i < N; i++) {
		int n = snprintf(text, sizeof(text), "%*u", (int)(i % 40), i);
		size_t len;

		cr_assert_eq(intern_get(&in, i, &len), where[i], "entry %u moved", i);
		cr_assert_eq(len, (size_t)n);
		cr_assert_str_eq(where[i], text, "entry %u changed", i);
		cr_assert_eq(intern_add(&in, text, (size_t)n, &id, &is_new), 0);
		cr_assert(id == i && !is_new, "entry %u is known", i);
	}
	cr_expect_eq(in.count, N);
	cr_expect_eq(intern_find(&in, "absent", 6, &id), -ENOENT);
	assert_sane_intern(&in);
	free(where);
}

/* Ids begin at 0 again, and what was known is not; the room of many is kept, but not for few. */
Test(intern, recycled)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	size_t bytes = 0;
	uint32_t id;

	intern_recycle(&in);
	assert_sane_intern(&in);
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 3000; i++) {
			const uint32_t record[] = { turn, i, 0, 0, 0, 0, 0 };

			cr_assert_eq(intern_add(&in, record, sizeof(record), &id, NULL), 0);
			cr_assert_eq(id, i, "turn %u: record %u has id %u", turn, i, id);
		}
		assert_sane_intern(&in);
		cr_expect_leq(intern_bytes(&in), bytes ? bytes : SIZE_MAX, "turn %u: %zu bytes",
			      turn, intern_bytes(&in));
		bytes = intern_bytes(&in);
		intern_recycle(&in);
		cr_expect_eq(in.count, 0);
		cr_expect_eq(intern_find(&in, (uint32_t[7]) { turn }, 28, &id), -ENOENT,
			     "turn %u is forgotten", turn);
		cr_expect(intern_bytes(&in) >= bytes / 3 && intern_bytes(&in) <= bytes,
			  "%zu of %zu bytes are kept", intern_bytes(&in), bytes);
		assert_sane_intern(&in);
	}
	cr_assert_eq(intern_str(&in, "one", &id), 0);
	intern_recycle(&in);
	cr_expect_eq(intern_bytes(&in), 0, "one string has not used %zu bytes", intern_bytes(&in));
	assert_sane_intern(&in);
}

/* Sizes around those of the blocks, and larger than any: small strings go on in the open block. */
Test(intern, strings_of_all_sizes)
{
	static const size_t sizes[] = {
		1,	7,    8,    9,	  1015,	 1023,	  1024,		 1025,	  4087,
		4088,	4095, 4096, 4097, 65536, 1 << 18, (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
		3 << 20
	};
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	_cleanup_intern_ struct intern in = INTERN_INIT;
	char *text = malloc(3 << 20);
	uint32_t id;

	cr_assert_not_null(text);
	for (uint32_t i = 0; i < N; i++) {
		memset(text, 'a' + (int)i, sizes[i]);
		cr_assert_eq(intern_add(&in, text, sizes[i], &id, NULL), 0);
		cr_assert_eq(id, 2 * i);
		memset(text, 'A' + (int)i, 3);
		cr_assert_eq(intern_add(&in, text, 3, &id, NULL), 0);
	}
	for (uint32_t i = 0; i < N; i++) {
		size_t len;
		const char *p = intern_get(&in, 2 * i, &len);

		cr_assert_eq(len, sizes[i]);
		memset(text, 'a' + (int)i, len);
		cr_assert(!memcmp(p, text, len), "string of %zu bytes", len);
	}
	assert_sane_intern(&in);
	free(text);
}

struct hashed {
	uint32_t hash, number;
};

static int compare_hashed(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/*
 * Strings with the same half hash, which is all that the table keeps: of 600,000 there are about 42
 * pairs.
 */
Test(intern, colliding_hashes_stay_apart)
{
	enum { N = 600000 };
	struct hashed *all = calloc(N, sizeof(*all));
	_cleanup_intern_ struct intern in = INTERN_INIT;
	char x[16], y[16];
	size_t pairs = 0;
	uint32_t a, b;

	cr_assert(all);
	for (uint32_t i = 0; i < N; i++) {
		const size_t len = (size_t)snprintf(x, sizeof(x), "m%u", i);

		all[i] = (struct hashed) { (uint32_t)hash_seeded(hash_seed(), x, len), i };
	}
	qsort(all, N, sizeof(*all), compare_hashed);
	for (size_t i = 1; i < N; i++) {
		if (all[i].hash != all[i - 1].hash)
			continue;
		snprintf(x, sizeof(x), "m%u", all[i - 1].number);
		snprintf(y, sizeof(y), "m%u", all[i].number);
		cr_assert_eq(intern_str(&in, x, &a), 0);
		cr_expect_eq(intern_find(&in, y, strlen(y), &b), -ENOENT, "%s, %s", x, y);
		cr_assert_eq(intern_str(&in, y, &b), 0);
		cr_expect_neq(a, b, "%s, %s", x, y);
		pairs++;
	}
	cr_expect(pairs > 5 && pairs < 200, "%zu pairs collide", pairs);
	assert_sane_intern(&in);
	free(all);
}

Test(intern, a_string_of_the_table_itself_may_be_added)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	char text[500];
	uint32_t id;

	memset(text, 'x', sizeof(text));
	cr_assert_eq(intern_add(&in, text, sizeof(text), &id, NULL), 0);
	for (uint32_t i = 1; i <= sizeof(text); i++) {
		size_t len;
		const char *p = intern_get(&in, i - 1, &len);

		cr_assert_eq(intern_add(&in, p, len - 1, &id, NULL), 0);
		cr_assert_eq(id, i);
	}
	cr_expect_str_eq(intern_get(&in, sizeof(text) - 3, NULL), "xxx");
	assert_sane_intern(&in);
}

Test(intern, too_large_is_refused_before_it_is_read)
{
	_cleanup_intern_ struct intern in = INTERN_INIT;
	uint32_t id = 77;

	cr_expect_eq(intern_add(&in, "x", UINT32_MAX, &id, NULL), -E2BIG);
	cr_expect_eq(intern_add(&in, "x", SIZE_MAX, &id, NULL), -E2BIG);
	cr_expect_eq(id, 77, "untouched on failure");
	assert_sane_intern(&in);
}

#ifndef __SANITIZE_ADDRESS__ /* whose address space cannot be limited */

/* Limit the address space to what is in use and @more. */
static int limit_memory(size_t more)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit))
		return -1;
	fclose(file);
	limit.rlim_cur = more == SIZE_MAX ? limit.rlim_max
					  : pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	return setrlimit(RLIMIT_AS, &limit);
}

/* Add "0 ...", "1 ..." and so on. Returns how many times memory ran out, which stops it. */
static size_t add_until_failure(struct intern *in, size_t max, size_t len)
{
	char text[512];
	uint32_t id;

	while (in->count < max) {
		int n = snprintf(text, sizeof(text), "%zu %*s", in->count, (int)len, "");
		size_t before = in->count;
		int r = intern_add(in, text, (size_t)n, &id, NULL);

		if (r) {
			cr_assert_eq(r, -ENOMEM);
			cr_assert_eq(in->count, before);
			return 1;
		}
		cr_assert_eq(id, before);
	}
	return 0;
}

/* At whatever step memory runs out, what was there stays and adding may go on afterwards. */
Test(intern, out_of_memory_changes_nothing)
{
	size_t failures = 0;

	/* Long strings run out of blocks; short ones, with luck, of entries or slots. */
	for (size_t len = 0; len <= 400; len += 100) {
		_cleanup_intern_ struct intern in = INTERN_INIT;

		for (size_t step = 0; step < 30; step++) {
			cr_assert_eq(limit_memory((step % 10 + 1) * 160 << 10), 0);
			failures += add_until_failure(&in, 200000, len);
			cr_assert_eq(limit_memory(SIZE_MAX), 0);
			cr_assert_eq(add_until_failure(&in, in.count + 3000, len), 0);
		}
		assert_sane_intern(&in);
	}
	cr_expect_geq(failures, 20, "memory ran out %zu times only", failures);
}

#endif
