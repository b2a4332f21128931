/* SPDX-License-Identifier: GPL-2.0-only */
/* The instructions of glibc's clone() and clone3() that its tables leave out. Part of cfi.c. */
#ifndef RBPF_ELF_CFI_CLONE_H
#define RBPF_ELF_CFI_CLONE_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "rbpf_cfi.h"

/*
 * Whether @before, the rule of the instruction before @start, still holds for the code in
 * [@start, @end), addresses of the file that no entry is for; @after is the rule for @end.
 */
bool cfi_clone_continues(Elf *elf, uint16_t machine, uint64_t start, uint64_t end,
			 const struct rbpf_cfi_rule *before, const struct rbpf_cfi_rule *after);

#endif
