/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes of nonsense for the native walk: rules, tables, code of each kind, a stack with words
 * that look like what a walk looks for, and a chain of tags, all as dice have it. Include
 * native_host.h and native_naive.h before.
 */
#ifndef RBPF_TESTS_NATIVE_WORLD_H
#define RBPF_TESTS_NATIVE_WORLD_H

#define WORLD_CODE	 0x400000ull
#define WORLD_CODE_PAGES 2  /* of the table */
#define WORLD_ROWS	 64 /* of each */
#define WORLD_CODE_END	 (WORLD_CODE + WORLD_CODE_PAGES * 65536)
#define WORLD_VM	 (WORLD_CODE + 0x4000) /* the part of it that is the VM's … */
#define WORLD_VM_END	 (WORLD_CODE + 0x18000)
#define WORLD_JIT	 0x500000ull /* a range of each other kind, one after the other */
#define WORLD_JIT_SIZE	 0x10000ull
#define WORLD_RULES	 32
#define WORLD_STACK	 0x7f0000000000ull
#define WORLD_PAGES	 16 /* of the stack, at most */
/* Up to three windows a frame, each tried twice, and a tag in each word of the stack. */
#define WORLD_MAX_READS	 (16 * RBPF_MAX_NATIVE)

/* Numbers from an input, then zeroes; or, without one, from a seed. */
struct world_dice {
	const uint8_t *data;
	size_t len;
	uint64_t seed;
};

static struct {
	uint64_t words[WORLD_PAGES * 512];
	size_t n_words;
	uint32_t hidden; /* pages that cannot be read, a bit each */
	uint64_t tag;
	uint64_t top;
	bool calm; /* most of it makes sense, so that walks get far */
} world;

static inline uint64_t dice_number(struct world_dice *d, size_t bytes)
{
	uint64_t v = 0;

	if (!d->seed) {
		bytes = bytes < d->len ? bytes : d->len;
		memcpy(&v, d->data, bytes);
		d->data += bytes;
		d->len -= bytes;
		return v;
	}
	d->seed ^= d->seed << 13;
	d->seed ^= d->seed >> 7;
	d->seed ^= d->seed << 17;
	return bytes == 8 ? d->seed : d->seed >> 11 & ((1ull << bytes * 8) - 1);
}

static inline uint32_t dice(struct world_dice *d, uint32_t n)
{
	return (uint32_t)dice_number(d, n > 256 ? 2 : 1) % n;
}

/* ---- memory ---- */

static inline bool world_read_span(uint64_t addr, void *dst, size_t len)
{
	uint64_t off = addr - WORLD_STACK, size = world.n_words * 8;

	if (addr < WORLD_STACK || off >= size || len > size - off)
		return false;
	for (uint64_t page = off >> 12; page <= (off + len - 1) >> 12; page++)
		if (world.hidden >> page & 1)
			return false;
	memcpy(dst, (const uint8_t *)world.words + off, len);
	return true;
}

static inline void world_read(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	for (size_t i = 0; i < n; i++)
		spans[i].ok = !spans[i].len ||
			      world_read_span(spans[i].addr, spans[i].dst, spans[i].len);
}

/* An address of the stack not far above word @i, or anywhere in it. */
static inline uint64_t world_stack_address(struct world_dice *d, size_t i)
{
	uint64_t at = dice(d, 8) ? i + dice(d, 64) : dice_number(d, 2);

	return WORLD_STACK + at % (world.n_words + 1) * 8 + (dice(d, 32) ? 0 : dice(d, 8));
}

static inline uint64_t world_code_address(struct world_dice *d)
{
	return WORLD_CODE + dice_number(d, 3) % (WORLD_CODE_END - WORLD_CODE + 16);
}

static inline uint64_t world_word(struct world_dice *d, size_t i)
{
	if (world.calm && dice(d, 32))
		return world_code_address(d);
	switch (dice(d, 16)) {
	case 0:
		return 0;
	case 1:
		return dice_number(d, 8);
	case 2:
		return dice(d, 256);
	case 3:
		return WORLD_JIT + dice_number(d, 3) % (6 * WORLD_JIT_SIZE);
	case 4:
	case 5:
	case 6:
	case 7:
	case 8:
		return world_stack_address(d, i);
	default:
		return world_code_address(d);
	}
}

/* Fill the tag at word @at of the stack, as setjmp() does. */
static inline void world_put_tag(const struct rbpf_layout *l, size_t at, uint64_t fp, uint64_t pc,
				 uint64_t sp, uint64_t prev)
{
	const uint64_t values[] = { fp, pc, sp };
	const int *to = naive_tag(l);

	for (int i = 0; i < 3; i++)
		world.words[at + to[i]] = l->tag_form == RUBY_TAG_MANGLED
						  ? naive_mangle(values[i], i, l->tag_guard)
						  : values[i];
	world.words[at + to[3]] = prev;
}

/* Tags up the stack, linked, some of which are not what they should be. */
static inline void world_tags(struct world_dice *d, const struct rbpf_layout *l)
{
	const int prev = naive_tag(l)[3], n_words = prev + 1;
	size_t at = dice(d, 64), last = 0;

	world.tag = 0;
	for (int i = dice(d, 12); i > 0 && at + (size_t)n_words < world.n_words; i--) {
		uint64_t addr = WORLD_STACK + at * 8, fp, pc, sp;

		if (last)
			world.words[last + prev] = addr;
		else
			world.tag = addr;
		fp = world_stack_address(d, at);
		pc = world_code_address(d);
		sp = dice(d, 8) ? addr - dice(d, 32) * 8 : world_stack_address(d, at);
		world_put_tag(l, at, fp, pc, sp, dice(d, 4) ? 0 : world_stack_address(d, 0));
		last = at;
		at += (size_t)n_words + dice(d, 300);
	}
}

static inline void world_memory(struct world_dice *d, const struct rbpf_layout *l)
{
	for (size_t i = 0; i < world.n_words; i++)
		world.words[i] = world_word(d, i);
	world.hidden = dice(d, 2) ? 0 : (uint32_t)dice_number(d, 2) & (uint32_t)dice_number(d, 2);
	world.top = 0;
	if (dice(d, 2))
		world.top = WORLD_STACK + (dice(d, 2) ? world.n_words / 512 : dice(d, 20)) * 4096;
	world_tags(d, l);
}

/* ---- code ---- */

static inline int32_t world_offset(struct world_dice *d)
{
	switch (dice(d, 16)) {
	case 0:
		return -8 * (int32_t)dice(d, 32);
	case 1:
		return (int32_t)dice_number(d, 2) & ~7;
	case 2:
		return (int32_t)dice_number(d, 4);
	default:
		return 8 * (int32_t)dice(d, 32);
	}
}

/* The same downwards; the lowest number has no positive one. */
static inline int32_t world_offset_down(struct world_dice *d)
{
	return (int32_t) - (uint32_t)world_offset(d);
}

static inline struct rbpf_cfi_rule world_rule(struct world_dice *d)
{
	struct rbpf_cfi_rule r = {
		.cfa = dice(d, 3) ? RBPF_CFI_CFA_SP : (uint8_t)dice(d, RBPF_CFI_CFA_PLT + 1),
		.ra = dice(d, 3) ? RBPF_CFI_RA_CFA : (uint8_t)dice(d, RBPF_CFI_RA_END + 1),
		.fp = (uint8_t)dice(d, RBPF_CFI_FP_LOST + 1),
		.flags = dice(d, 8) ? 0 : RBPF_CFI_SIGNAL,
		.cfa_off = world_offset(d),
		.cfa_arg = world_offset(d),
		.ra_off = world_offset_down(d),
		.fp_off = world_offset_down(d),
	};

	if (world.calm && dice(d, 16))
		r = (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_SP,
					     .cfa_off = 8 + 8 * (int32_t)dice(d, 32),
					     .ra_off = -8 };
	if (r.cfa == RBPF_CFI_CFA_REGISTER)
		r.cfa_arg &= RBPF_REGS - 1;
	return r;
}

static inline void world_code(struct world_dice *d)
{
	static const uint32_t kinds[] = { RBPF_CODE_YJIT, RBPF_CODE_RECORD, RBPF_CODE_UNREAD,
					  RBPF_CODE_NO_TABLE, RBPF_CODE_NO_ROOM };
	uint32_t at = WORLD_CODE_PAGES + 1;

	native_host.rules[RBPF_CFI_RULE_RECORD] = (struct rbpf_cfi_rule) { .cfa = RBPF_CFI_CFA_FP,
									   .cfa_off = 16,
									   .ra_off = -8,
									   .fp = RBPF_CFI_FP_CFA,
									   .fp_off = -16 };
	for (uint32_t i = RBPF_CFI_RULE_RECORD + 1; i < WORLD_RULES; i++)
		native_host.rules[i] = world_rule(d);
	for (uint32_t page = 0; page < WORLD_CODE_PAGES; page++) {
		native_host.words[page] = at;
		for (uint32_t i = 0; i < WORLD_ROWS; i++)
			native_host.words[at++] =
				(world.calm ? 1 + dice(d, WORLD_RULES - 1) : dice(d, WORLD_RULES))
					<< 16 |
				i * 65536 / WORLD_ROWS;
	}
	native_host.words[WORLD_CODE_PAGES] = at;
	native_host.ranges[0] = (struct rbpf_range) { .start = WORLD_CODE,
						      .end = WORLD_CODE_END,
						      .base = WORLD_CODE,
						      .pages = WORLD_CODE_PAGES,
						      .kind = RBPF_CODE_TABLE };
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		native_host.ranges[1 + i] =
			(struct rbpf_range) { .start = WORLD_JIT + i * WORLD_JIT_SIZE,
					      .end = WORLD_JIT + (i + 1) * WORLD_JIT_SIZE,
					      .kind = kinds[i] };
}

static inline struct rbpf_regs world_regs(struct world_dice *d)
{
	struct rbpf_regs regs = { .pc = dice(d, 8) ? world_code_address(d)
						   : WORLD_JIT + dice_number(d, 3) % WORLD_JIT_SIZE,
				  .sp = world_stack_address(d, 0),
				  .fp = world_stack_address(d, 8),
				  .lr = world_code_address(d) };

	for (int i = 0; i < RBPF_REGS; i++)
		regs.by_dwarf[i] = world_stack_address(d, 16);
	return regs;
}

/* ---- the walk ---- */

/* Walk once in such a process. What is wrong with it; NULL: nothing. */
static inline const char *world_walk(struct walk *w, struct world_dice *d)
{
	struct memory mem = { .read_spans = world_read };
	const char *problem;
	uint64_t hash;

	memset(&native_host, 0, sizeof(native_host));
	world.calm = dice(d, 2);
	world.n_words = (1 + dice(d, WORLD_PAGES)) * 512;
	w->layout = (struct rbpf_layout) { .tag_form = dice(d, RUBY_TAG_MANGLED + 1),
					   .tag_guard = dice_number(d, 8),
					   .text_lo = WORLD_VM,
					   .text_hi = WORLD_VM_END };
	world_code(d);
	w->native.regs = world_regs(d);
	world_memory(d, &w->layout);
	w->native.code.id++; /* rules that are remembered are of another world */
	native_host_run(w, &mem, world.tag, world.top);
	if (native_host.reads > WORLD_MAX_READS)
		return "too many reads";
	problem = native_naive_compare(w, world.tag);
	hash = w->native.hash;
	native_host_run(w, &mem, world.tag, world.top);
	return problem || hash == w->native.hash ? problem : "a second walk differs";
}

#endif
