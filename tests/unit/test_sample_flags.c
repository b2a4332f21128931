/* SPDX-License-Identifier: GPL-2.0-only */
/* The flags of samples in a file, by the numbers that rbpf-file(5) has. */
#include <criterion/criterion.h>

#include "base/array.h"
#include "profile/sample_flags.h"

static const struct {
	uint16_t flag;
	uint32_t in_file;
} flags[] = {
	{ SAMPLE_KERNEL, 1 },	{ SAMPLE_TRUNCATED, 2 }, { SAMPLE_UNRESOLVED, 4 },
	{ SAMPLE_NO_RUBY, 8 },	{ SAMPLE_FAILED, 16 },	 { SAMPLE_GC, 32 },
	{ SAMPLE_NATIVE, 64 },	{ SAMPLE_GAP, 128 },	 { SAMPLE_GC_UNKNOWN, 256 },
	{ SAMPLE_BEFORE, 512 }, { SAMPLE_AFTER, 1024 },	 { SAMPLE_PAGE_FAULT, 2048 },
};

Test(sample_flags, are_those_of_the_file)
{
	uint16_t all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		cr_expect_eq(sample_flags_to_file(flags[i].flag), flags[i].in_file, "%zu", i);
		cr_expect_eq(sample_flags_of_file(flags[i].in_file), flags[i].flag, "%zu", i);
		all |= flags[i].flag;
	}
	cr_expect_eq(all, SAMPLE_FLAGS | SAMPLE_BEFORE | SAMPLE_AFTER, "each is in the list");
	cr_expect_eq(sample_flags_of_file(4095), all);
}

/* As a newer rbpf writes them. */
Test(sample_flags, others_are_ignored)
{
	cr_expect_eq(sample_flags_of_file(4096 | 1), SAMPLE_KERNEL);
	cr_expect_eq(sample_flags_of_file(UINT64_MAX << 12), 0);
}
