/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/jumps.h"

#include <string.h>

#include "elf/symbols.h"

#define STUB "@plt"

/* The function that the stub @f leads to; @f itself if it is none, or leads out of the file. */
static const struct elf_function *behind_stub(const struct elf_symbols *symbols,
					      const struct elf_function *f)
{
	size_t len = strlen(f->name), i;

	if (len < sizeof(STUB) || strcmp(f->name + len - (sizeof(STUB) - 1), STUB))
		return f;
	len -= sizeof(STUB) - 1;
	for (i = 0; i < symbols->n; i++)
		if (!strncmp(symbols->functions[i].name, f->name, len) &&
		    !symbols->functions[i].name[len])
			return &symbols->functions[i];
	return f;
}

static size_t add(const struct elf_symbols *symbols, uint64_t target, uint64_t *ret, size_t n)
{
	const struct elf_function *f = elf_symbols_find(symbols, target);
	size_t i;

	if (!f || f->start != target || n == ELF_JUMPS_MAX)
		return n;
	target = behind_stub(symbols, f)->start;
	for (i = 0; i < n; i++)
		if (ret[i] == target)
			return n;
	ret[n] = target;
	return n + 1;
}

#if defined(__x86_64__)

/* The bytes that stand before the distance of a jump at @p, which is of 32 bits; 0: it is none. */
static size_t jump_at(const uint8_t *p)
{
	if (p[0] == 0xe9) /* jmp rel32 */
		return 1;
	return p[0] == 0x0f && (p[1] & 0xf0) == 0x80 ? 2 : 0; /* jcc rel32 */
}

size_t elf_jumps(const struct elf_symbols *symbols, const uint8_t *code, size_t size, uint64_t addr,
		 uint64_t ret[ELF_JUMPS_MAX])
{
	size_t i, at, n = 0;
	int32_t distance;

	for (i = 0; i + 5 <= size; i++) {
		at = jump_at(code + i);
		if (!at || i + at + 4 > size)
			continue;
		memcpy(&distance, code + i + at, sizeof(distance));
		n = add(symbols, addr + i + at + 4 + (uint64_t)(int64_t)distance, ret, n);
	}
	return n;
}

#elif defined(__aarch64__)

/* Words from an instruction to where it jumps to, in @bits bits from bit @low on. */
static uint64_t distance_in(uint32_t insn, int low, int bits)
{
	return (uint64_t)((int64_t)((uint64_t)insn << (64 - low - bits)) >> (64 - bits)) * 4;
}

size_t elf_jumps(const struct elf_symbols *symbols, const uint8_t *code, size_t size, uint64_t addr,
		 uint64_t ret[ELF_JUMPS_MAX])
{
	size_t i, n = 0;
	uint32_t insn;

	for (i = 0; i + 4 <= size; i += 4) {
		memcpy(&insn, code + i, sizeof(insn));
		if (insn >> 26 == 0x05) /* b */
			n = add(symbols, addr + i + distance_in(insn, 0, 26), ret, n);
		else if (insn >> 24 == 0x54 || (insn >> 25 & 0x3f) == 0x1a) /* b.cond, cbz, cbnz */
			n = add(symbols, addr + i + distance_in(insn, 5, 19), ret, n);
	}
	return n;
}

#else
#error "unsupported architecture"
#endif
