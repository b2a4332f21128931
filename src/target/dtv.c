/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the DTV is: glibc has entries of two words, the second 0 for static TLS, and their number
 * before the first; musl has one word each and their number in entry 0. Block m belongs to
 * module m. On x86_64 both are at the same place, and what lies behind musl's is the TLS and the
 * struct pthread, with pointers in plenty. But the word at 8 tells: of glibc's entry 0, the
 * generation, it is the unused half, 0 from calloc; musl has block 1 there, in every thread.
 * sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h, elf/dl-tls.c (allocate_dtv_entry,
 * allocate_dtv); musl src/internal/pthread_impl.h, src/env/__init_tls.c (__copy_tls).
 */
#include "target/dtv.h"

#include "rbpf_abi.h"
#include "target/memory.h"

static const struct {
	int32_t offset;
	uint16_t entry;
} forms[DTV_FORMS] = {
#if defined(__x86_64__)
	[DTV_GLIBC] = { 8, DTV_ENTRY_GLIBC },
	[DTV_MUSL] = { 8, DTV_ENTRY_MUSL },
#else
	[DTV_GLIBC] = { 0, DTV_ENTRY_GLIBC },
	[DTV_MUSL] = { -8, DTV_ENTRY_MUSL },
#endif
};

bool dtv_read(const struct memory *mem, uint64_t tp, enum dtv_form form, struct dtv *ret)
{
	uint64_t addr, count = 0;

	ret->offset = forms[form].offset;
	ret->entry = forms[form].entry;
	ret->n = 0;
	if (memory_read_u64(mem, tp + (uint64_t)(int64_t)ret->offset, &addr) ||
	    !ruby_is_object(addr))
		return false;
	ret->n = memory_read_some(mem, addr, ret->words, (size_t)DTV_MAX_MODULES * ret->entry) /
		 ret->entry;
	if (ret->n < 2 || (ret->words[1] != 0) != (form == DTV_MUSL))
		ret->n = 0;
	else if (form == DTV_MUSL)
		ret->n = ret->words[0] < ret->n ? ret->words[0] + 1 : 0;
	else if (!memory_read_u64(mem, addr - DTV_ENTRY_GLIBC, &count) && count && count < ret->n)
		ret->n = count + 1;
	return ret->n > 0;
}

uint64_t dtv_block(const struct dtv *dtv, size_t m)
{
	return dtv->words[m * dtv->entry / 8];
}

uint64_t dtv_chunk(const struct dtv *dtv, size_t m)
{
	return dtv->entry == DTV_ENTRY_GLIBC ? dtv->words[m * dtv->entry / 8 + 1] : 0;
}

bool dtv_is_static(const struct dtv *dtv, size_t m, uint64_t tp)
{
	uint64_t block = dtv_block(dtv, m);

	if (dtv_chunk(dtv, m))
		return false;
#if defined(__x86_64__)
	return tp - block <= DTV_STATIC_MAX;
#else
	return block - tp <= DTV_STATIC_MAX;
#endif
}
