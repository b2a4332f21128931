/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which control frames CRuby's own backtraces leave out, and which hold something else than what
 * runs.
 *
 * Frames are as the walker gives them; what is known of their iseqs and method entries is NULL
 * where they were not read or are not proven.
 */
#ifndef RBPF_RUBY_BACKTRACE_H
#define RBPF_RUBY_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>

struct rbpf_frame;
struct ruby_iseq;
struct ruby_method;
struct ruby_rules;

/*
 * Whether a frame of @iseq (of a rescue or ensure clause) stands for its caller's frame, too, which
 * is hidden.
 */
bool ruby_backtrace_hides_caller(const struct ruby_iseq *iseq);

/*
 * Whether frame @f is hidden because an internal method calls it, from 4.0 on: it is if it is in C
 * or internal itself (its file is "<internal:…"). @inside: the last frame that is shown outside of
 * it is internal.
 */
bool ruby_backtrace_hides_inside(const struct rbpf_frame *f, const struct ruby_iseq *iseq,
				 bool inside);

/*
 * 2.7: whether the innermost frame was only being written when it was sampled: pc, iseq and method
 * entry do not belong together. The call has not begun, and the time is its caller's.
 */
bool ruby_frame_half_written(const struct ruby_rules *rules, const struct rbpf_frame *f,
			     const struct ruby_iseq *iseq, const struct ruby_method *method);

/*
 * Whether frame @i of @frames, innermost first, may have a saved pc that is out of date, if it runs
 * compiled code.
 */
bool ruby_frame_pc_may_be_unsaved(const struct ruby_rules *rules, const struct rbpf_frame *frames,
				  size_t i);

#endif
