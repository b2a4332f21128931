/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * On x86_64, glibc ends the entry of clone() and of clone3() before the system call, because two
 * threads come back from it, and begins another one, without a caller, where the new thread goes
 * its own way. Between them are the system call and a few branches. A program that starts threads
 * spends most of that time in the kernel, in this very call: up to a tenth of all its samples.
 *
 * The thread that called clone() has not moved its stack pointer there, so its caller is where it
 * was before. The new one is between the two for three instructions; what stands on its stack
 * instead of a return address is no address of code, so its stack ends with a gap.
 */
#include "elf/cfi_clone.h"

#include <stddef.h>

#define MAX_GAP 32 /* bytes; mov $nr,%eax may be among them */

/* syscall; test %rax,%rax; jl error; je new_thread; ret; 0: any byte. new_thread comes next. */
static const unsigned char returns_twice[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0,
					       0x7c, 0,	   0x74, 0x01, 0xc3 };

/* Nothing is on the stack but the return address. */
static bool is_entered(const struct rbpf_cfi_rule *rule)
{
	return rule->cfa == RBPF_CFI_CFA_SP && rule->cfa_off == 8 && rule->ra == RBPF_CFI_RA_CFA &&
	       rule->ra_off == -8 && rule->fp == RBPF_CFI_FP_SAME;
}

/* The @size bytes of code at @addr, libelf's; NULL if the file has none. */
static const unsigned char *code_at(Elf *elf, uint64_t addr, size_t size)
{
	Elf_Data *data;
	GElf_Phdr ph;
	size_t n, i;

	if (elf_getphdrnum(elf, &n))
		return NULL;
	for (i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || addr < ph.p_vaddr ||
		    addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)(ph.p_offset + (addr - ph.p_vaddr)), size,
					    ELF_T_BYTE);
		return data ? data->d_buf : NULL;
	}
	return NULL;
}

bool cfi_clone_continues(Elf *elf, uint16_t machine, uint64_t start, uint64_t end,
			 const struct rbpf_cfi_rule *before, const struct rbpf_cfi_rule *after)
{
	const unsigned char *code;
	size_t i;

	if (machine != EM_X86_64 || after->ra != RBPF_CFI_RA_END || !is_entered(before) ||
	    end - start < sizeof(returns_twice) || end - start > MAX_GAP)
		return false;
	code = code_at(elf, end - sizeof(returns_twice), sizeof(returns_twice));
	for (i = 0; code && i < sizeof(returns_twice); i++)
		if (returns_twice[i] && code[i] != returns_twice[i])
			return false;
	return code;
}
