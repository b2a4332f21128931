/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/cfi_step.h"

struct step {
	const struct rbpf_cfi_rule *rule;
	const struct cfi_frame *frame;
	cfi_read_fn *read;
	void *ctx;
};

static enum cfi_step_result read_at(const struct step *s, uint64_t addr, int32_t off, uint64_t *ret)
{
	return s->read(s->ctx, addr + (uint64_t)(int64_t)off, ret) ? CFI_STEP_FAULT
								   : CFI_STEP_CALLER;
}

static enum cfi_step_result read_deref(const struct step *s, uint64_t addr, uint64_t *ret)
{
	enum cfi_step_result r = read_at(s, addr, s->rule->cfa_off, ret);

	*ret += (uint64_t)(int64_t)s->rule->cfa_arg;
	return r;
}

static bool needs_fp(const struct rbpf_cfi_rule *rule)
{
	return rule->cfa == RBPF_CFI_CFA_FP || rule->cfa == RBPF_CFI_CFA_FP_DEREF;
}

static enum cfi_step_result step_cfa(const struct step *s, uint64_t *ret)
{
	const struct rbpf_cfi_rule *rule = s->rule;
	const struct cfi_frame *f = s->frame;
	uint64_t off = (uint64_t)(int64_t)rule->cfa_off;

	if (needs_fp(rule) && !f->fp_known)
		return CFI_STEP_NO_REGISTER;
	*ret = 0;
	switch (rule->cfa) {
	case RBPF_CFI_CFA_SP:
		*ret = f->sp + off;
		return CFI_STEP_CALLER;
	case RBPF_CFI_CFA_FP:
		*ret = f->fp + off;
		return CFI_STEP_CALLER;
	case RBPF_CFI_CFA_SP_DEREF:
		return read_deref(s, f->sp, ret);
	case RBPF_CFI_CFA_FP_DEREF:
		return read_deref(s, f->fp, ret);
	case RBPF_CFI_CFA_REGISTER:
		if (!f->registers || (uint32_t)rule->cfa_arg >= f->n_registers)
			return CFI_STEP_NO_REGISTER;
		*ret = f->registers[rule->cfa_arg] + off;
		return CFI_STEP_CALLER;
	case RBPF_CFI_CFA_PLT:
		*ret = f->sp + off + ((f->pc & 15) >= (uint32_t)rule->cfa_arg ? 8 : 0);
		return CFI_STEP_CALLER;
	default:
		return CFI_STEP_NO_RULE;
	}
}

static enum cfi_step_result step_ra(const struct step *s, uint64_t cfa, struct cfi_frame *caller)
{
	switch (s->rule->ra) {
	case RBPF_CFI_RA_CFA:
		return read_at(s, cfa, s->rule->ra_off, &caller->pc);
	case RBPF_CFI_RA_SP:
		return read_at(s, s->frame->sp, s->rule->ra_off, &caller->pc);
	case RBPF_CFI_RA_LR:
		caller->pc = s->frame->lr;
		return s->frame->lr_known ? CFI_STEP_CALLER : CFI_STEP_NO_REGISTER;
	default:
		return CFI_STEP_END;
	}
}

/* A frame pointer that cannot be read is not missed before a frame further out needs it. */
static void step_fp(const struct step *s, uint64_t cfa, struct cfi_frame *caller)
{
	const struct rbpf_cfi_rule *rule = s->rule;
	const struct cfi_frame *f = s->frame;
	uint64_t base = 0;

	switch (rule->fp) {
	case RBPF_CFI_FP_SAME:
		caller->fp = f->fp;
		caller->fp_known = f->fp_known;
		return;
	case RBPF_CFI_FP_CFA:
		base = cfa;
		break;
	case RBPF_CFI_FP_SP:
		base = f->sp;
		break;
	case RBPF_CFI_FP_FP:
		if (!f->fp_known)
			return;
		base = f->fp;
		break;
	default:
		return;
	}
	caller->fp_known = !read_at(s, base, rule->fp_off, &caller->fp);
}

enum cfi_step_result cfi_step(const struct rbpf_cfi_rule *rule, uint64_t pc_mask, cfi_read_fn *read,
			      void *ctx, struct cfi_frame *frame)
{
	const struct step s = { .rule = rule, .frame = frame, .read = read, .ctx = ctx };
	const bool is_signal = rule->flags & RBPF_CFI_SIGNAL;
	struct cfi_frame caller = { .is_return = !is_signal };
	enum cfi_step_result r;
	uint64_t cfa;

	if (rule->ra == RBPF_CFI_RA_END)
		return CFI_STEP_END;
	r = step_cfa(&s, &cfa);
	if (r)
		return r;
	/* arm64: only a frame that keeps its return address in x30 may be one of no size. */
	if (!is_signal && (cfa < frame->sp || (cfa == frame->sp && rule->ra != RBPF_CFI_RA_LR)))
		return CFI_STEP_STUCK;
	r = step_ra(&s, cfa, &caller);
	if (r)
		return r;
	step_fp(&s, cfa, &caller);
	if (is_signal && pc_mask == CFI_PC_MASK_AARCH64)
		caller.lr_known = !read_at(&s, frame->sp, rule->fp_off + 8, &caller.lr);
	caller.pc &= pc_mask;
	caller.sp = cfa;
	*frame = caller;
	return CFI_STEP_CALLER;
}
