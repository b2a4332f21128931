/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a native frame to its caller, by a rule of include/rbpf_cfi.h: what the rules mean. The
 * BPF programs' walk does the same and is tested against this.
 */
#ifndef RBPF_ELF_CFI_STEP_H
#define RBPF_ELF_CFI_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rbpf_cfi.h"

/*
 * Bits of a code address of a process; arm64: what is above them may be the signature that
 * pointer authentication put there, and libdw does not tell where that is so.
 */
#define CFI_PC_MASK_X86_64  (~0ull)
#define CFI_PC_MASK_AARCH64 ((1ull << 48) - 1)

struct cfi_frame {
	uint64_t pc, sp, fp;
	uint64_t lr; /* arm64 */
	bool fp_known, lr_known;
	bool is_return; /* pc is a return address: look up pc - 1 */
	/*
	 * The registers by their DWARF numbers, for the innermost frame, or NULL; the caller's.
	 * They are not part of what cfi_step() gives.
	 */
	const uint64_t *registers;
	size_t n_registers;
};

enum cfi_step_result {
	CFI_STEP_CALLER = 0,
	CFI_STEP_END,	      /* there is no caller */
	CFI_STEP_NO_RULE,     /* the rule has no CFA: see its why */
	CFI_STEP_NO_REGISTER, /* the rule needs a register that is not known */
	CFI_STEP_FAULT,	      /* memory cannot be read */
	CFI_STEP_STUCK,	      /* the caller would not be further up the stack */
};

/* The word at @addr of the target. Returns 0, or anything else if it cannot be read. */
typedef int cfi_read_fn(void *ctx, uint64_t addr, uint64_t *ret);

/*
 * Make @frame its caller's, by @rule, which is the one for its pc. @pc_mask is one of
 * CFI_PC_MASK_*. On any other result than CFI_STEP_CALLER, @frame is left as it was.
 */
enum cfi_step_result cfi_step(const struct rbpf_cfi_rule *rule, uint64_t pc_mask, cfi_read_fn *read,
			      void *ctx, struct cfi_frame *frame);

#endif
