/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "elf/elf_file.h"
#include "sample/thread_context.h"
#include "sample/tls_variable.h"
#include "target/dtv.h"
#include "target/memory.h"
#include "support/flat_memory.h"

/* The memory of a process with one thread, in an array. */
#define BASE	 0x7f0000100000ull
#define IMAGE	 (256u << 10)
#define GOT	 (BASE + 0x1000) /* where the relocations point */
#define ARGUMENT (BASE + 0x2000) /* of a TLS descriptor */
#define DTV_AT	 (BASE + 0x7010)
#define BLOCK	 (BASE + 0x9010) /* of the heap */
#define TP	 (BASE + 0x20000)
#define BIAS	 BASE
#define PLACE	 (GOT - BIAS) /* in the file */
#define MODULE	 3
#define OFFSET	 0x18

#if defined(__x86_64__)
#define STATIC_OFFSET (-0x80)
#define GLIBC_DTV_AT  8
#define MUSL_DTV_AT   8
#else
#define STATIC_OFFSET 0x40
#define GLIBC_DTV_AT  0
#define MUSL_DTV_AT   -8
#endif

static uint8_t bytes[IMAGE];

static void read_image(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	flat_memory_read(bytes, BASE, IMAGE, spans, n);
}

static const struct memory mem = { .read_spans = read_image };

static void put(uint64_t addr, uint64_t word)
{
	memcpy(bytes + (addr - BASE), &word, 8);
}

/* glibc's, with @block for the module, which is in a @chunk of the heap. */
static void build_dtv(uint64_t block, uint64_t chunk)
{
	memset(bytes, 0, sizeof(bytes));
	put(TP + GLIBC_DTV_AT, DTV_AT);
	put(DTV_AT - DTV_ENTRY_GLIBC, 16);
	put(DTV_AT, 1); /* generation */
	put(DTV_AT + MODULE * DTV_ENTRY_GLIBC, block);
	put(DTV_AT + MODULE * DTV_ENTRY_GLIBC + 8, chunk);
}

static int find(enum elf_tls_kind kind, struct rbpf_tls *ret)
{
	const struct elf_tls tls = { .defined = true,
				     .offset = OFFSET,
				     .size = 0x40,
				     .align = 16,
				     .n_places = 1,
				     .places = { { PLACE, kind } } };
	const struct tls_file file = { .tls = &tls, .bias = BIAS };

	memset(ret, 0x5a, sizeof(*ret));
	return tls_variable_find(&mem, TP, &file, ret);
}

static void expect_static(enum elf_tls_kind kind, int64_t offset)
{
	struct rbpf_tls found;

	cr_assert_eq(find(kind, &found), 0);
	cr_expect_eq(found.model, RBPF_TLS_STATIC);
	cr_expect_eq(found.offset, offset);
}

static void expect_dynamic(enum elf_tls_kind kind, uint16_t entry, int32_t dtv_offset)
{
	struct rbpf_tls found;

	cr_assert_eq(find(kind, &found), 0);
	cr_expect_eq(found.model, RBPF_TLS_DTV);
	cr_expect_eq(found.module, MODULE);
	cr_expect_eq(found.offset, OFFSET);
	cr_expect_eq(found.dtv_entry, entry);
	cr_expect_eq(found.dtv_offset, dtv_offset);
}

static void expect_unknown(enum elf_tls_kind kind, const char *why)
{
	struct rbpf_tls found, untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	cr_expect_eq(find(kind, &found), -ENOENT, "%s", why);
	cr_expect_arr_eq(&found, &untouched, sizeof(found), "%s", why);
}

Test(tls_variable, distance_from_the_thread_pointer)
{
	build_dtv(BLOCK, BLOCK);
	put(GOT, (uint64_t)STATIC_OFFSET);
	expect_static(ELF_TLS_OFFSET, STATIC_OFFSET);
	put(GOT, 0);
	expect_unknown(ELF_TLS_OFFSET, "not relocated yet");
	put(GOT, (uint64_t)-STATIC_OFFSET);
	expect_unknown(ELF_TLS_OFFSET, "on the other side");
	put(GOT, (uint64_t)STATIC_OFFSET + 1);
	expect_unknown(ELF_TLS_OFFSET, "not aligned");
	put(GOT, BLOCK);
	expect_unknown(ELF_TLS_OFFSET, "an address");
}

Test(tls_variable, module_and_offset)
{
	build_dtv(BLOCK, BLOCK);
	put(GOT, MODULE);
	put(GOT + 8, OFFSET);
	expect_dynamic(ELF_TLS_INDEX, DTV_ENTRY_GLIBC, GLIBC_DTV_AT);
	/* The offset that the file says, where the process has none. */
	put(GOT + 8, 0);
	expect_dynamic(ELF_TLS_MODULE, DTV_ENTRY_GLIBC, GLIBC_DTV_AT);
	put(DTV_AT + MODULE * DTV_ENTRY_GLIBC, ~0ull);
	expect_dynamic(ELF_TLS_MODULE, DTV_ENTRY_GLIBC, GLIBC_DTV_AT);
	put(GOT, 0);
	expect_unknown(ELF_TLS_INDEX, "no module");
	put(GOT, 1 << 20);
	expect_unknown(ELF_TLS_INDEX, "too many modules");
	put(GOT, MODULE);
	put(GOT + 8, 1ull << 40);
	expect_unknown(ELF_TLS_INDEX, "no offset");
	put(TP + GLIBC_DTV_AT, 0);
	put(GOT + 8, OFFSET);
	expect_unknown(ELF_TLS_INDEX, "no DTV");
}

Test(tls_variable, module_and_offset_with_musl)
{
	memset(bytes, 0, sizeof(bytes));
	put(TP + (uint64_t)(int64_t)MUSL_DTV_AT, DTV_AT);
	put(DTV_AT, MODULE);
	put(DTV_AT + 8, TP);
	put(DTV_AT + MODULE * DTV_ENTRY_MUSL, BLOCK);
	put(GOT, MODULE);
	put(GOT + 8, OFFSET);
	expect_dynamic(ELF_TLS_INDEX, DTV_ENTRY_MUSL, MUSL_DTV_AT);
}

/* What the DTV says to be static is at the same place in all threads: one read, not four. */
Test(tls_variable, module_of_static_tls)
{
	build_dtv(TP + (uint64_t)(int64_t)STATIC_OFFSET, 0);
	put(GOT, MODULE);
	put(GOT + 8, OFFSET);
	expect_static(ELF_TLS_INDEX, STATIC_OFFSET + OFFSET);
	expect_static(ELF_TLS_MODULE, STATIC_OFFSET + OFFSET);
}

Test(tls_variable, descriptor)
{
	build_dtv(BLOCK, BLOCK);
	put(GOT, 0x1234); /* a function */
	put(GOT + 8, (uint64_t)STATIC_OFFSET);
	expect_static(ELF_TLS_DESC, STATIC_OFFSET);
	put(GOT + 8, ARGUMENT);
	put(ARGUMENT, MODULE);
	put(ARGUMENT + 8, OFFSET);
	expect_dynamic(ELF_TLS_DESC, DTV_ENTRY_GLIBC, GLIBC_DTV_AT);
	/* Not resolved until it is used first: the argument is the relocation. */
	put(ARGUMENT, PLACE);
	put(ARGUMENT + 8, 7ull << 32 | 36);
	expect_unknown(ELF_TLS_DESC, "not resolved yet");
	put(GOT + 8, BASE + IMAGE);
	expect_unknown(ELF_TLS_DESC, "nothing is there");
	put(GOT + 8, 0);
	expect_unknown(ELF_TLS_DESC, "undefined and weak");
}

/* ---- the executable ---- */

static __thread uint64_t mine = 1; /* so that there is a block */

struct own {
	struct elf_tls tls;
	uint64_t block;
};

static int first_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct own *own = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_TLS)
			continue;
		own->tls.vaddr = ph->p_vaddr;
		own->tls.size = ph->p_memsz;
		own->tls.align = ph->p_align;
		own->block = (uintptr_t)info->dlpi_tls_data;
	}
	return 1; /* the executable comes first */
}

/* By the rule alone, as the program itself has it. */
Test(tls_variable, executable)
{
	struct own own = { .tls.defined = true };
	const struct tls_file file = { .tls = &own.tls, .is_exe = true };
	const uint64_t tp = (uintptr_t)__builtin_thread_pointer();
	struct rbpf_tls found;

	dl_iterate_phdr(first_module, &own);
	cr_assert(own.block, "the tests have no TLS");
	own.tls.offset = (uintptr_t)&mine - own.block;
	cr_assert_lt(own.tls.offset, own.tls.size);
	cr_assert_eq(tls_variable_find(&mem, tp, &file, &found), 0);
	cr_expect_eq(found.model, RBPF_TLS_STATIC);
	cr_expect_eq(tp + (uint64_t)found.offset, (uintptr_t)&mine);
	own.tls.align = 24;
	cr_expect_eq(tls_variable_find(&mem, tp, &file, &found), -ENOENT, "no alignment");
	own.tls.align = 8;
	own.tls.size = 1ull << 40;
	cr_expect_eq(tls_variable_find(&mem, tp, &file, &found), -ENOENT, "too large");
}

/* By linkers' rule, also where the segment begins off its alignment. */
Test(tls_variable, executable_of_any_alignment)
{
	struct elf_tls tls = {
		.defined = true, .offset = 8, .size = 0x28, .vaddr = 0x3df8, .align = 0x40
	};
	const struct tls_file file = { .tls = &tls, .is_exe = true };
	struct rbpf_tls found;

	cr_assert_eq(tls_variable_find(&mem, TP, &file, &found), 0);
#if defined(__x86_64__)
	/* The block must begin 0x38 behind a multiple of 0x40, and end at or below TP. */
	cr_expect_eq(found.offset, -0x48 + 8);
#else
	cr_expect_eq(found.offset, 0x38 + 8);
#endif
}

/* ---- whether it is to be looked for ---- */

Test(tls_variable, contexts_are_published)
{
	static const char *const yes[] = {
		"threadlocal.schema_version=tls_v1",
		"service.name=a,threadlocal.schema_version=tlsdesc_v1_dev"
	};
	static const char *const no[] = { "", "service.name=tls_v1", "threadlocal.schema_version=",
					  "threadlocal.schema_version=tls_v2",
					  "threadlocal.schema_version=go_pprof_labels_v1" };
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_expect(thread_context_is_published(yes[i]), "%s", yes[i]);
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_expect_not(thread_context_is_published(no[i]), "%s", no[i]);
	cr_expect_not(thread_context_is_published(NULL));
}
