/* SPDX-License-Identifier: GPL-2.0-only */
/* The rule that libdw's answer for an address comes to. Part of cfi.c. */
#ifndef RBPF_ELF_CFI_RULE_H
#define RBPF_ELF_CFI_RULE_H

#include <elfutils/libdw.h>
#include <stdint.h>

#include "rbpf_cfi.h"

/* Make @frame, of a file for @machine, a rule; one that says why if it cannot be expressed. */
struct rbpf_cfi_rule cfi_rule_of(Dwarf_Frame *frame, uint16_t machine);

/* The rule that says that there is none. */
struct rbpf_cfi_rule cfi_rule_unknown(enum rbpf_cfi_why why);

#endif
