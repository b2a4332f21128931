/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tail calls: which functions a function of an ELF file may jump to as the last thing it does. A
 * compiler makes a jump of such a call, and moves code that is rarely executed out of the function.
 * The frame on the stack is then another function's. It knows nothing of processes: addresses are
 * the file's own.
 */
#ifndef RBPF_ELF_JUMPS_H
#define RBPF_ELF_JUMPS_H

#include <stddef.h>
#include <stdint.h>

struct elf_symbols;

#define ELF_JUMPS_MAX 16 /* of a function, that are told */

/*
 * The functions that begin where one of the @size bytes of code at @addr jumps to, the code being
 * of this machine's kind; what is jumped to through a stub of the procedure linkage table counts as
 * the function of that name. Any byte may be the first of a jump, so one that is none may be taken
 * for one, but only if it leads to where a function begins. Returns how many are in @ret.
 */
size_t elf_jumps(const struct elf_symbols *symbols, const uint8_t *code, size_t size, uint64_t addr,
		 uint64_t ret[ELF_JUMPS_MAX]);

#endif
