/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information as nobody wrote it: a byte that says of which kind, then the section,
 * which is .eh_frame or .debug_frame, for x86_64 or arm64. Whatever is in it, the table is in order
 * and its rules can be applied.
 */
#include <elf.h>
#include <stdlib.h>

#include "elf/cfi.h"
#include "rbpf_cfi_find.h"
#include "elf/cfi_step.h"
#include "support/cfi_builder.h"

static int read_nothing(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = addr * 2654435761u;
	return 0;
}

static void check(const struct cfi_table *t, const struct cfi_rules *rules)
{
	uint64_t before = UINT64_MAX, size = (uint64_t)t->pages << RBPF_CFI_PAGE_SHIFT;

	if (t->n_words != t->pages + 1 + t->rows || t->words[t->pages] != t->n_words)
		abort();
	for (uint32_t page = 0; page < t->pages; page++) {
		if (t->words[page] >= t->words[page + 1])
			abort();
		for (uint32_t i = t->words[page]; i < t->words[page + 1]; i++) {
			uint64_t addr = (uint64_t)page << RBPF_CFI_PAGE_SHIFT |
					(t->words[i] & RBPF_CFI_PAGE_MASK);

			if ((before != UINT64_MAX && addr <= before) || addr >= size ||
			    rbpf_cfi_find(t->words, t->pages, addr) != t->words[i] >> 16)
				abort();
			before = addr;
		}
	}
	for (uint32_t i = 0; i < cfi_rules_count(rules); i++) {
		struct cfi_frame f = { .pc = 0x1000, .sp = 0x7000, .fp = 0x7100, .fp_known = true };

		cfi_step(cfi_rules_get(rules, i), CFI_PC_MASK_AARCH64, read_nothing, NULL, &f);
	}
}

/* Any gap that ends at a multiple of 10 is glibc's clone() (src/elf/cfi_clone.c). */
static void add_code(struct buf *code)
{
	static const uint8_t clone[] = {
		0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0xc3
	};

	for (int i = 0; i < 100; i++)
		buf_add(code, clone, sizeof(clone));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_rules rules = CFI_RULES_INIT;
	struct cfi_table table = CFI_TABLE_INIT;
	struct cfi_builder builder = { .machine = EM_X86_64 };
	struct buf image;

	if (size && data[0] & 1)
		builder.machine = EM_AARCH64;
	builder.is_debug = size && data[0] & 2;
	if (size)
		buf_add(&builder.frame, data + 1, size - 1);
	add_code(&builder.code);
	cfi_builder_finish(&builder, &image);
	if (!cfi_rules_init(&rules)) {
		if (!cfi_table_read_image(image.data, image.len, &rules, &table))
			check(&table, &rules);
		cfi_table_deinit(&table);
		cfi_rules_deinit(&rules);
	}
	cfi_builder_deinit(&builder);
	buf_deinit(&image);
	return 0;
}
