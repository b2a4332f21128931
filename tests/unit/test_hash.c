/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"

/* FNV-1a's published values for "a" and "foobar", through the finaliser of MurmurHash3. */
Test(hash, is_stable)
{
	cr_expect_eq(hash_bytes("", 0), 0xefd01f60ba992926ull);
	cr_expect_eq(hash_bytes(NULL, 0), 0xefd01f60ba992926ull);
	cr_expect_eq(hash_bytes("a", 1), 0x82a2a958a9bece5bull);
	cr_expect_eq(hash_bytes("foobar", 6), 0x2c22194922d1672bull);
	cr_expect_eq(hash_bytes("\0", 1), 0xb9034ad37056f5fbull);
}

/* Keys that differ little, as addresses do, must not end up in few slots. */
Test(hash, spreads_its_low_bits)
{
	static unsigned int stable[1024], seeded[1024], tags[8];

	for (uint64_t i = 0; i < 1024 * 64; i++) {
		uint64_t address = 0x7f0000000000 + i * 4096;
		uint32_t hash = (uint32_t)hash_seeded(hash_seed(), &address, sizeof(address));

		stable[hash_bytes(&address, sizeof(address)) & 1023]++;
		seeded[hash & 1023]++;
		tags[hash >> HASH_SLOT_BITS]++;
	}
	for (size_t i = 0; i < 1024; i++) {
		cr_assert(stable[i] > 16 && stable[i] < 160, "%u of 64 in slot %zu", stable[i], i);
		cr_assert(seeded[i] > 16 && seeded[i] < 160, "%u of 64 in slot %zu", seeded[i], i);
	}
	for (size_t i = 0; i < 8; i++)
		cr_assert(tags[i] > 7000 && tags[i] < 9400, "%u of 8192 with tag %zu", tags[i], i);
}

/*
 * Any bit, of any word, of the rest after the last word, of the length, of the seed changes about
 * half of the hash.
 */
Test(hash, each_bit_matters)
{
	char text[29] = "what tells apart two records";
	const uint64_t of = hash_seeded(hash_seed(), text, sizeof(text));

	for (size_t bit = 0; bit < sizeof(text) * 8; bit++) {
		int changed;

		text[bit / 8] ^= (char)(1 << bit % 8);
		changed = __builtin_popcountll(of ^ hash_seeded(hash_seed(), text, sizeof(text)));
		text[bit / 8] ^= (char)(1 << bit % 8);
		cr_expect(changed > 10 && changed < 54, "bit %zu changes %d bits", bit, changed);
	}
	for (size_t len = 0; len < sizeof(text); len++)
		cr_expect_neq(of, hash_seeded(hash_seed(), text, len), "the first %zu bytes", len);
	for (size_t bit = 0; bit < 64; bit++)
		cr_expect_neq(of, hash_seeded(hash_seed() ^ 1ull << bit, text, sizeof(text)),
			      "bit %zu of the seed", bit);
}

/* What is zero is told from what is shorter. */
Test(hash, zeros_by_their_number)
{
	static const char zeros[40];
	uint64_t hashes[sizeof(zeros)];

	for (size_t len = 0; len < sizeof(zeros); len++) {
		hashes[len] = hash_seeded(hash_seed(), zeros, len);
		for (size_t i = 0; i < len; i++)
			cr_expect_neq(hashes[i], hashes[len], "%zu and %zu zeros", i, len);
	}
}

/* The seed that a child of this process has. */
static uint64_t seed_of_child(void)
{
	uint64_t seed = 0;
	int fds[2], status;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		seed = hash_seed();
		_exit(write(fds[1], &seed, sizeof(seed)) != sizeof(seed));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(read(fds[0], &seed, sizeof(seed)), (ssize_t)sizeof(seed));
	close(fds[0]);
	close(fds[1]);
	return seed;
}

/*
 * Whoever knows the seed of one process knows nothing of that of the next; but inherited tables
 * stay usable.
 */
Test(hash, seed_is_of_one_process)
{
	const uint64_t a = seed_of_child(), b = seed_of_child(), own = hash_seed();

	cr_expect(a && b && own);
	cr_expect(a != b && a != own && b != own);
	cr_expect_eq(hash_seed(), own);
	cr_expect_eq(seed_of_child(), own);
}

Test(hash, slots)
{
	const uint32_t max = (1u << HASH_SLOT_BITS) - 1;

	for (uint32_t tag = 0; tag < 8; tag++) {
		const uint32_t hash = tag << HASH_SLOT_BITS | 12345, slot = hash_slot(hash, max);

		cr_expect_eq(hash_slot_number(slot), max);
		for (uint32_t other = 0; other < 8; other++)
			cr_expect_eq(hash_slot_fits(slot, other << HASH_SLOT_BITS | 777),
				     other == tag);
	}
}
