/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As ruby_abi.h, for what user space alone reads, in more than one file.
 */
#ifndef RBPF_RUBY_STRUCTS_H
#define RBPF_RUBY_STRUCTS_H

#include "ruby_abi.h"

/* struct RBasic: include/ruby/internal/core/rbasic.h */
#define RBASIC_KLASS_WORD	 1
#define RBASIC_BYTES		 16

/* struct RString, up to 3.1 without RSTRING_NOEMBED: the length is in the flags */
#define RSTRING_EMBED_LEN_MASK	 (0x1ful << (RUBY_FL_USHIFT + 2))
#define RSTRING_EMBED_LEN(flags) (((flags)&RSTRING_EMBED_LEN_MASK) >> (RUBY_FL_USHIFT + 2))

/* rb_thread_t.self (vm_core.h) and rb_fiber_t.cont.self (cont.c): the T_DATA that wraps the struct */
#define RUBY_SELF		 16

/* iseq_size, in words: a generated method of this size would not compile. */
#define RUBY_ISEQ_SIZE_MAX	 (8u << 20)

/* succ_index_table: the bits of one of the ranks that stand packed in a word. */
#define RUBY_INDEX_IMM_BITS	 7
#define RUBY_INDEX_IMM_RANK(word, position)                                                        \
	((word) >> ((position) % RUBY_INDEX_IMM_PACK * RUBY_INDEX_IMM_BITS) & 0x7f)

#endif
