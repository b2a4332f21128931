/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An EC (vm_core.h, rb_execution_context_t) starts with its VM stack, the size of it in words, and
 * the control frame pointer, in all versions. What proves one:
 *
 *   - the frame pointer lies in the stack, at a whole number of frames from its end;
 *   - the last slot there has the flags of the dummy frame that each stack starts with;
 *   - some word leads to a thread that points back at it. If it is not known which words these are,
 *     the thread must also be known to an object of class Thread: a RUBY_T_DATA that holds its
 * address.
 *
 * The DTV is read to its end where that is known. The size of a TLS block is known only if it is
 * a chunk of glibc's heap; else it is read up to the next block, or somewhat beyond its end, and
 * there can be any heap memory, even a thread or ractor that points to the EC. But the slot itself
 * is always among the places found. So the first place in a block counts, one in static TLS goes
 * before any others, and several blocks that have one are no answer.
 */
#include "ruby/tls.h"

#include <errno.h>

#include "base/array.h"
#include "target/dtv.h"
#include "target/memory.h"

#define EC_THREAD_PTR_MIN (RUBY_EC_TAG * 8) /* behind vm_stack, vm_stack_size and cfp */
#define TH_EC_MIN	  16		    /* behind the list node */
#define TLS_BLOCK_BYTES	  512
#define CHUNK_MAX	  4096 /* bytes of a heap chunk for a TLS block */

static const uint16_t cf_sizes[] = { RUBY_CF_SIZE_MIN, RUBY_CF_SIZE_MAX };

/* ---- what is an EC ---- */

/* Whether frames of @size bytes fit between @cfp and @end, the dummy frame in the last slot. */
static bool frames_fit(const struct memory *mem, uint64_t cfp, uint64_t end, uint16_t size)
{
	uint64_t ep, flags;

	return end - cfp >= size && (end - cfp) % size == 0 &&
	       !memory_read_u64(mem, end - size + offsetof(struct ruby_control_frame, ep), &ep) &&
	       ruby_is_object(ep) && !memory_read_u64(mem, ep, &flags) &&
	       (flags & VM_FRAME_MAGIC_MASK) == VM_FRAME_MAGIC_DUMMY;
}

static bool find_cf_size(const struct memory *mem, const uint64_t *ec, uint16_t *size)
{
	uint64_t stack = ec[RUBY_EC_VM_STACK], words = ec[RUBY_EC_VM_STACK_SIZE];
	uint64_t cfp = ec[RUBY_EC_CFP], end = stack + words * 8;
	uint16_t found = 0;
	size_t i;

	if (!ruby_is_object(stack) || !words || words > RUBY_STACK_WORDS_MAX ||
	    !ruby_is_object(cfp) || cfp <= stack || cfp >= end)
		return false;
	if (*size)
		return frames_fit(mem, cfp, end, *size);
	for (i = 0; i < ARRAY_SIZE(cf_sizes); i++) {
		if (!frames_fit(mem, cfp, end, cf_sizes[i]))
			continue;
		if (found)
			return false;
		found = cf_sizes[i];
	}
	*size = found;
	return found;
}

bool ruby_has_vm_stack(const struct memory *mem, uint64_t ec)
{
	uint64_t words[RUBY_EC_CFP + 1];
	uint16_t cf_size = 0;

	return ruby_is_object(ec) && !memory_read(mem, ec, words, sizeof(words)) &&
	       find_cf_size(mem, words, &cf_size);
}

/*
 * Whether one of the first words of the thread @th, which are @words, is a RUBY_T_DATA object that
 * wraps it.
 */
static bool is_wrapped(const struct memory *mem, uint64_t th, const uint64_t *words)
{
	uint64_t object[RTYPEDDATA_DATA_WORD + 1];
	size_t i;

	for (i = 0; i < RUBY_TH_BYTES / 8; i++)
		if (ruby_is_object(words[i]) &&
		    !memory_read(mem, words[i], object, sizeof(object)) &&
		    (object[0] & RUBY_T_MASK) == RUBY_T_DATA && object[RTYPEDDATA_DATA_WORD] == th)
			return true;
	return false;
}

/*
 * The one of the words up to @bytes of the thread @th that is @ec. 0 if there is none, or more than
 * one.
 */
static uint16_t find_th_ec(const struct memory *mem, uint64_t th, uint64_t ec, uint16_t bytes)
{
	uint64_t words[RUBY_TH_BYTES / 8] = { 0 };
	uint16_t off, found = 0;

	if (!ruby_is_object(th) || !memory_read_some(mem, th, words, sizeof(words)))
		return 0;
	for (off = TH_EC_MIN; off < bytes; off += 8) {
		if (words[off / 8] != ec)
			continue;
		if (found)
			return 0;
		found = off;
	}
	return found && is_wrapped(mem, th, words) ? found : 0;
}

/*
 * Find what @shape does not say of thread_ptr and th_ec, within the first @bytes of the EC, which
 * are @words, and
 * @th_bytes of a thread. If nothing fits there, it is left as it is.
 */
static bool find_thread(const struct memory *mem, uint64_t ec, const uint64_t *words,
			uint16_t bytes, uint16_t th_bytes, struct ruby_ec_shape *shape)
{
	struct ruby_ec_shape found = { 0 };
	uint16_t off, th_ec;

	for (off = EC_THREAD_PTR_MIN; off < bytes; off += 8) {
		if (shape->ec_thread_ptr && off != shape->ec_thread_ptr)
			continue;
		th_ec = find_th_ec(mem, words[off / 8], ec, th_bytes);
		if (!th_ec || (shape->th_ec && th_ec != shape->th_ec))
			continue;
		if (found.th_ec)
			return false;
		found.ec_thread_ptr = off;
		found.th_ec = th_ec;
	}
	if (!found.th_ec)
		return false;
	shape->ec_thread_ptr = found.ec_thread_ptr;
	shape->th_ec = found.th_ec;
	return true;
}

/*
 * How much of an EC and of a thread is searched; the first is enough for all releases. What is
 * farther off may be another struct's: a ractor has the running EC, too.
 */
static const struct {
	uint16_t ec, th;
} searched[] = {
	{ 128, 128 },
	{ RUBY_EC_BYTES, 128 },
	{ RUBY_EC_BYTES, 256 },
	{ RUBY_EC_BYTES, RUBY_TH_BYTES },
};

bool ruby_is_ec(const struct memory *mem, uint64_t ec, struct ruby_ec_shape *shape)
{
	struct ruby_ec_shape found = *shape;
	uint64_t words[RUBY_EC_BYTES / 8], back;
	size_t i;

	if (!ruby_is_object(ec) || found.ec_thread_ptr > RUBY_EC_BYTES - 8 ||
	    memory_read(mem, ec, words, sizeof(words)) || !find_cf_size(mem, words, &found.cf_size))
		return false;
	if (found.ec_thread_ptr && found.th_ec) {
		if (memory_read_u64(mem, words[found.ec_thread_ptr / 8] + found.th_ec, &back) ||
		    back != ec)
			return false;
	} else {
		for (i = 0; i < ARRAY_SIZE(searched); i++)
			if (find_thread(mem, ec, words, searched[i].ec, searched[i].th, &found))
				break;
		if (i == ARRAY_SIZE(searched))
			return false;
	}
	*shape = found;
	return true;
}

/* ---- where it is kept ---- */

/* Where a slot was found, in static or in dynamic TLS. */
struct slot {
	uint64_t addr; /* 0: nowhere */
	uint64_t block;
	uint32_t module;
	bool ambiguous;
	struct ruby_ec_shape shape;
};

/*
 * Where the heap chunk that holds block @m ends. glibc's malloc keeps its size, with flags in the
 * low bits, in the word before it. Another malloc has anything there: ~0 if that is no size.
 */
static uint64_t chunk_end(const struct memory *mem, const struct dtv *dtv, size_t m)
{
	uint64_t chunk = dtv_chunk(dtv, m), size;

	if (!ruby_is_object(chunk) || memory_read_u64(mem, chunk - 8, &size))
		return ~0ull;
	size &= ~7ull;
	return size % 16 || size < 32 || size > CHUNK_MAX ? ~0ull : chunk - 8 + size;
}

/* Bytes of block @m to look at. */
static size_t block_bytes(const struct memory *mem, const struct dtv *dtv, size_t m)
{
	uint64_t block = dtv_block(dtv, m), end = chunk_end(mem, dtv, m);
	size_t i;

	if (end <= block || end > block + TLS_BLOCK_BYTES)
		end = block + TLS_BLOCK_BYTES;
	for (i = 1; i < dtv->n; i++) {
		uint64_t next = dtv_block(dtv, i);

		if (next > block && next < end)
			end = next;
	}
	return end - block;
}

/* Words of block @m. Returns how many. */
static size_t read_block(const struct memory *mem, const struct dtv *dtv, size_t m,
			 uint64_t words[TLS_BLOCK_BYTES / 8])
{
	uint64_t block = dtv_block(dtv, m);

	if (!ruby_is_object(block))
		return 0;
	return memory_read_some(mem, block, words, block_bytes(mem, dtv, m)) / 8;
}

/* The first word of block @m that is an EC. */
static void search_block(const struct memory *mem, const struct dtv *dtv, size_t m,
			 const struct ruby_ec_shape *shape, struct slot *slot)
{
	uint64_t words[TLS_BLOCK_BYTES / 8], block = dtv_block(dtv, m);
	size_t i, n = read_block(mem, dtv, m, words);

	for (i = 0; i < n; i++) {
		struct ruby_ec_shape found = *shape;

		if (!ruby_is_ec(mem, words[i], &found))
			continue;
		*slot = (struct slot) {
			.addr = block + i * 8,
			.block = block,
			.module = (uint32_t)m,
			.ambiguous = slot->addr != 0,
			.shape = found,
		};
		return;
	}
}

enum ruby_tls_found ruby_tls_find(const struct memory *mem, uint64_t tp,
				  struct ruby_ec_shape *shape, struct rbpf_layout *l)
{
	enum dtv_form form;

	for (form = DTV_GLIBC; form < DTV_FORMS; form++) {
		struct slot in_static = { 0 }, in_dynamic = { 0 };
		struct dtv dtv;
		size_t m;

		dtv_read(mem, tp, form, &dtv);
		for (m = 1; m < dtv.n; m++)
			search_block(mem, &dtv, m, shape,
				     dtv_is_static(&dtv, m, tp) ? &in_static : &in_dynamic);
		if (in_static.addr && !in_static.ambiguous) {
			l->tls.model = RBPF_TLS_STATIC;
			l->tls.offset = (int64_t)(in_static.addr - tp);
			*shape = in_static.shape;
			return RUBY_TLS_FOUND;
		}
		if (in_dynamic.addr && !in_dynamic.ambiguous && !in_static.addr) {
			l->tls.model = RBPF_TLS_DTV;
			l->tls.dtv_offset = dtv.offset;
			l->tls.dtv_entry = dtv.entry;
			l->tls.module = in_dynamic.module;
			l->tls.offset = (int64_t)(in_dynamic.addr - in_dynamic.block);
			*shape = in_dynamic.shape;
			return RUBY_TLS_FOUND;
		}
		if (in_static.addr || in_dynamic.addr)
			return RUBY_TLS_SEVERAL;
	}
	return RUBY_TLS_NONE;
}

bool ruby_tls_has_stack(const struct memory *mem, uint64_t tp)
{
	uint64_t words[TLS_BLOCK_BYTES / 8];
	enum dtv_form form;
	struct dtv dtv;
	size_t m, i, n;

	for (form = DTV_GLIBC; form < DTV_FORMS; form++) {
		dtv_read(mem, tp, form, &dtv);
		for (m = 1; m < dtv.n; m++) {
			n = read_block(mem, &dtv, m, words);
			for (i = 0; i < n; i++)
				if (ruby_has_vm_stack(mem, words[i]))
					return true;
		}
	}
	return false;
}

/* The EC at the global of 2.7, if it belongs to the thread at @tp. */
static int read_global(const struct memory *mem, const struct rbpf_layout *l, uint64_t tp,
		       uint64_t *ret)
{
	uint64_t ec, th, id;

	if (memory_read_u64(mem, l->ec_global, &ec))
		return -EFAULT;
	if (!ec)
		return -ENOENT;
	if (memory_read_u64(mem, ec + l->ec_thread_ptr, &th) ||
	    memory_read_u64(mem, th + l->th_thread_id, &id))
		return -EFAULT;
	if (id != tp + (uint64_t)l->thread_id_bias)
		return -ENOENT;
	*ret = ec;
	return 0;
}

int ruby_tls_read(const struct memory *mem, const struct rbpf_layout *l, uint64_t tp, uint64_t *ret)
{
	uint64_t base = tp, ec;

	if (l->tls.model == RBPF_TLS_GLOBAL)
		return read_global(mem, l, tp, ret);
	if (l->tls.model == RBPF_TLS_DTV) {
		if (memory_read_u64(mem, tp + (uint64_t)(int64_t)l->tls.dtv_offset, &base) ||
		    memory_read_u64(mem, base + (uint64_t)l->tls.module * l->tls.dtv_entry, &base))
			return -EFAULT;
		if (!ruby_is_object(base))
			return -ENOENT;
	}
	if (memory_read_u64(mem, base + (uint64_t)l->tls.offset, &ec))
		return -EFAULT;
	if (!ec)
		return -ENOENT;
	*ret = ec;
	return 0;
}
