/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native walk as it is on arm64: return addresses in x30, which may be signed, and in frames.
 */
#define __TARGET_ARCH_arm64

#include <criterion/criterion.h>

#include "support/native_host.h"
#include "support/native_naive.h"
#include "support/native_world.h"

Test(native_walk_arm64, agrees_with_cfi_step)
{
	struct walk *w = native_host_new();

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct world_dice d = { .seed = seed * 0x9e3779b97f4a7c15ull };
		const char *problem = world_walk(w, &d);

		cr_assert_null(problem, "seed %llu: %s", (unsigned long long)seed, problem);
	}
	free(w);
}

/*
 * A leaf that has saved nothing, called by a function that has: the signature is no part of a pc.
 */
Test(native_walk_arm64, leaf_and_signed_return_address)
{
	struct memory mem = { .read_spans = world_read };
	struct walk *w = native_host_new();

	native_host.ranges[0] = (struct rbpf_range) { .start = WORLD_CODE,
						      .end = WORLD_CODE_END,
						      .base = WORLD_CODE,
						      .pages = 1,
						      .kind = RBPF_CODE_TABLE };
	native_host.words[0] = 2;
	native_host.words[1] = 4;
	native_host.words[2] = 2u << 16;
	native_host.words[3] = 3u << 16 | 0x100;
	native_host.rules[2] = (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_SP,
							.ra = RBPF_CFI_RA_LR };
	native_host.rules[3] =
		(struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_SP, .cfa_off = 32, .ra_off = -24 };
	world.n_words = 512;
	world.words[1] = 0x1234ull << 48 | (WORLD_CODE + 0x300);
	w->native.regs = (struct rbpf_regs) { .pc = WORLD_CODE + 8,
					      .sp = WORLD_STACK,
					      .lr = 0x77ull << 56 | (WORLD_CODE + 0x200) };
	native_host_run(w, &mem, 0, 0);
	cr_assert_geq(w->native.n_frames, 3);
	cr_expect_eq(w->native.frames[0], (WORLD_CODE + 8) | RBPF_NATIVE_EXACT);
	cr_expect_eq(w->native.frames[1], WORLD_CODE + 0x200);
	cr_expect_eq(w->native.frames[2], WORLD_CODE + 0x300);
	free(w);
}
