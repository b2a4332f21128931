/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts about CRuby's structs, like ruby_abi.h: those that only user space needs, in more than one
 * file.
 */
#ifndef RBPF_RUBY_STRUCTS_H
#define RBPF_RUBY_STRUCTS_H

#include "ruby_abi.h"

/* struct RBasic: include/ruby/internal/core/rbasic.h */
#define RBASIC_KLASS_WORD   1
#define RBASIC_BYTES	    16

/*
 * rb_thread_t.self (vm_core.h) and rb_fiber_t.cont.self (cont.c): the T_DATA that wraps the struct
 */
#define RUBY_SELF	    16

/* The largest iseq_size, in words, that is believed: no method is as long as this. */
#define RUBY_ISEQ_SIZE_MAX  (8u << 20)

/* succ_index_table: several ranks are packed into a word, with so many bits each. */
#define RUBY_INDEX_IMM_BITS 7
#define RUBY_INDEX_IMM_RANK(word, position)                                                        \
	((word) >> ((position) % RUBY_INDEX_IMM_PACK * RUBY_INDEX_IMM_BITS) & 0x7f)

#endif
