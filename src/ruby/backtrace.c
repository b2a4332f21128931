/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/backtrace.h"

#include "ruby/iseq.h"
#include "ruby/layout.h"
#include "ruby/method.h"

bool ruby_backtrace_hides_caller(const struct ruby_iseq *iseq)
{
	return iseq && iseq->hides_method;
}

bool ruby_backtrace_hides_inside(const struct rbpf_frame *f, const struct ruby_iseq *iseq,
				 bool inside)
{
	return inside && (f->iseq ? iseq && iseq->internal : f->me != 0);
}

bool ruby_frame_half_written(const struct ruby_rules *rules, const struct rbpf_frame *f,
			     const struct ruby_iseq *iseq, const struct ruby_method *method)
{
	if (!rules->cfp_before_frame || !f->iseq || !iseq)
		return false;
	return (!(f->pc & RBPF_PC_STALE) && !ruby_iseq_has_pc(iseq, rbpf_frame_pc(f))) ||
	       (method && ruby_method_has_iseq(method) && !ruby_method_is_of(method, iseq->local));
}

bool ruby_frame_pc_may_be_unsaved(const struct ruby_rules *rules, const struct rbpf_frame *frames,
				  size_t i)
{
	return i == 0 || (i == 1 && frames[0].pc & RBPF_PC_STALE && rules->caller_pc_late);
}
