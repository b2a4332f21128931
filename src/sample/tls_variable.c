/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A variable of the executable has its place by the ABI: next to the thread pointer, at a distance
 * that follows from PT_TLS. That of a library is where the dynamic linker has put it: in static TLS
 * at a distance of its choice, or in a block that each thread gets when it needs it, which the DTV
 * leads to. It writes the one or the other to where the relocations of the symbol point; of a TLS
 * descriptor, which has an argument for either, the value tells, for a distance is no address.
 *
 * In glibc and musl alike the argument of a descriptor that goes through the DTV points to module
 * and offset (struct tlsdesc_dynamic_arg of elf/dl-tlsdesc.h in sysdeps;
 * src/ldso/$(ARCH)/tlsdesc.s).
 */
#include "sample/tls_variable.h"

#include <errno.h>

#include "elf/elf_file.h"
#include "target/dtv.h"
#include "target/memory.h"

#define OFFSET_MAX (1 << 20) /* of a variable in its block, or from the thread pointer; bytes */
#define ALIGN_MAX  (1 << 20)
#define TCB_SIZE   16 /* arm64: what stands at the thread pointer, before the first block */

/* @offset from the thread pointer is one where static TLS can be. */
static bool is_distance(int64_t offset)
{
#if defined(__x86_64__)
	return offset < 0 && offset >= -OFFSET_MAX;
#else
	return offset >= TCB_SIZE && offset < OFFSET_MAX;
#endif
}

static int at_distance(int64_t offset, struct rbpf_tls *ret)
{
	if (!is_distance(offset) || offset % (int64_t)sizeof(uint64_t))
		return -ENOENT;
	*ret = (struct rbpf_tls) { .model = RBPF_TLS_STATIC, .offset = offset };
	return 0;
}

/*
 * At @offset in the block of module @m. A block of static TLS is at the same distance in all
 * threads.
 */
static int in_module(const struct memory *mem, uint64_t tp, uint64_t m, uint64_t offset,
		     struct rbpf_tls *ret)
{
	enum dtv_form form;
	struct dtv dtv;

	if (!m || m >= DTV_MAX_MODULES || offset >= OFFSET_MAX || offset % sizeof(uint64_t))
		return -ENOENT;
	for (form = DTV_GLIBC; form < DTV_FORMS; form++)
		if (dtv_read(mem, tp, form, &dtv))
			break;
	if (form == DTV_FORMS)
		return -ENOENT;
	if (m < dtv.n && ruby_is_object(dtv_block(&dtv, m)) && dtv_is_static(&dtv, m, tp))
		return at_distance((int64_t)(dtv_block(&dtv, m) + offset - tp), ret);
	*ret = (struct rbpf_tls) { .model = RBPF_TLS_DTV,
				   .offset = (int64_t)offset,
				   .dtv_offset = dtv.offset,
				   .dtv_entry = dtv.entry,
				   .module = (uint32_t)m };
	return 0;
}

/*
 * ELF Handling For Thread-Local Storage, variants I (arm64) and II; as linkers do it, for any
 * vaddr.
 */
static int in_executable(const struct elf_tls *tls, struct rbpf_tls *ret)
{
	const uint64_t align = tls->align ? tls->align : 1;

	if (align & (align - 1) || align > ALIGN_MAX || tls->size > OFFSET_MAX ||
	    tls->offset >= tls->size)
		return -ENOENT;
#if defined(__x86_64__)
	return at_distance(
		(int64_t)(tls->offset - tls->size - ((-tls->vaddr - tls->size) & (align - 1))),
		ret);
#else
	return at_distance(
		(int64_t)(tls->offset + TCB_SIZE + ((tls->vaddr - TCB_SIZE) & (align - 1))), ret);
#endif
}

static int by_place(const struct memory *mem, uint64_t tp, const struct tls_file *file,
		    const struct elf_tls_place *place, struct rbpf_tls *ret)
{
	const uint64_t at = file->bias + place->place;
	uint64_t words[2];

	if (place->kind == ELF_TLS_OFFSET || place->kind == ELF_TLS_MODULE) {
		if (memory_read_u64(mem, at, words))
			return -ENOENT;
		return place->kind == ELF_TLS_OFFSET
			       ? at_distance((int64_t)words[0], ret)
			       : in_module(mem, tp, words[0], file->tls->offset, ret);
	}
	if (memory_read(mem, at, words, sizeof(words)))
		return -ENOENT;
	if (place->kind == ELF_TLS_DESC) {
		if (is_distance((int64_t)words[1]))
			return at_distance((int64_t)words[1], ret);
		if (memory_read(mem, words[1], words, sizeof(words)))
			return -ENOENT;
	}
	return in_module(mem, tp, words[0], words[1], ret);
}

int tls_variable_find(const struct memory *mem, uint64_t tp, const struct tls_file *file,
		      struct rbpf_tls *ret)
{
	size_t i;

	if (file->is_exe && file->tls->defined)
		return in_executable(file->tls, ret);
	for (i = 0; i < file->tls->n_places; i++)
		if (!by_place(mem, tp, file, &file->tls->places[i], ret))
			return 0;
	return -ENOENT;
}
