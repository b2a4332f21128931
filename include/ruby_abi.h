/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRuby's structs and flags, as far as both the BPF programs and user space read them in the memory
 * of a process. Each fact has the file of CRuby that it comes from, and is the same from 2.7 to
 * 4.1-dev unless a version stands with it. Names are CRuby's own where it has one.
 *
 * Not here: members that moved between versions (struct rbpf_layout in rbpf_abi.h has their
 * offsets), what only the BPF programs read (bpf/walk_state.bpf.h), and what only user space reads
 * (src/ruby/structs.h and the files beside it).
 *
 * Offsets and sizes are in bytes; a name with _WORD, and each enum of the members of a struct, is
 * in words of 8 bytes from its start.
 */
#ifndef RBPF_RUBY_ABI_H
#define RBPF_RUBY_ABI_H

#ifdef __bpf__
/*
 * A BPF function has at most five arguments, and the verifier takes its prototype from BTF, which
 * is from before optimisation: so it is always inlined.
 */
#define RBPF_INLINE inline __attribute__((always_inline))
#else
#include <linux/types.h>
#define RBPF_INLINE inline
#endif

/* ---- values: include/ruby/internal/special_consts.h ---- */

#define RUBY_FIXNUM_FLAG    0x01ul
#define RUBY_IMMEDIATE_MASK 0x07ul   /* the bits that are 0 in the address of an object */
#define RUBY_OBJECT_MIN	    0x1000ul /* small numbers, nil and the like are not above it */

/* True for what can be a pointer to a heap object: no special constant, aligned. */
static RBPF_INLINE _Bool ruby_is_object(__u64 value)
{
	return value > RUBY_OBJECT_MIN && !(value & RUBY_IMMEDIATE_MASK);
}

/* ---- objects ---- */

/* RBasic.flags & RUBY_T_MASK: include/ruby/internal/value_type.h */
enum ruby_value_type {
	RUBY_T_CLASS = 0x02,
	RUBY_T_MODULE = 0x03,
	RUBY_T_STRING = 0x05,
	RUBY_T_ARRAY = 0x07,
	RUBY_T_HASH = 0x08,
	RUBY_T_DATA = 0x0c,
	RUBY_T_SYMBOL = 0x14,
	RUBY_T_ICLASS = 0x1c,
	RUBY_T_IMEMO = 0x1a,
};

#define RUBY_T_MASK		 0x1ful

/*
 * RBasic.flags: include/ruby/internal/fl_type.h. The meaning of RUBY_FL_USER() is each type's own.
 */
#define RUBY_FL_PROMOTED	 (1ul << 5) /* 3.3 on: it is old. Before, FL_PROMOTED0 */
/* Up to 3.2: FL_PROMOTED0 and FL_PROMOTED1 count the collections that an object has survived. */
#define RUBY_FL_PROMOTED_BOTH	 (RUBY_FL_PROMOTED | RUBY_FL_PROMOTED << 1)
#define RUBY_FL_USHIFT		 12
#define RUBY_FL_USER(n)		 (1ul << (RUBY_FL_USHIFT + (n)))

/*
 * Words of the smallest slot of the heap (sizeof(RVALUE), gc.c): of any object so many can be read.
 */
#define RUBY_OBJECT_WORDS	 5

/* RBasic.flags of an imemo, and the kinds: internal/imemo.h */
#define RUBY_IMEMO_MASK		 (RUBY_T_MASK | 0xful << RUBY_FL_USHIFT)
#define RUBY_IMEMO_KIND(n)	 (RUBY_T_IMEMO | (n) << RUBY_FL_USHIFT)
#define RUBY_IMEMO_SVAR		 RUBY_IMEMO_KIND(2ul)
#define RUBY_IMEMO_MENT		 RUBY_IMEMO_KIND(6ul)
#define RUBY_IMEMO_ISEQ		 RUBY_IMEMO_KIND(7ul)

/* struct RString: include/ruby/internal/core/rstring.h */
#define RSTRING_NOEMBED		 RUBY_FL_USER(1)
#define RSTRING_LEN_WORD	 2  /* up to 3.1 only with RSTRING_NOEMBED */
#define RSTRING_PTR_WORD	 3  /* with RSTRING_NOEMBED */
#define RSTRING_EMBED_SHORT	 16 /* text in the String itself: up to 3.1 … */
#define RSTRING_EMBED_LONG	 24 /* … and from 3.2 on */

/* … up to 3.1 without RSTRING_NOEMBED: the length is in the flags */
#define RSTRING_EMBED_LEN_MASK	 (0x1ful << (RUBY_FL_USHIFT + 2))
#define RSTRING_EMBED_LEN(flags) (((flags)&RSTRING_EMBED_LEN_MASK) >> (RUBY_FL_USHIFT + 2))

/* struct RArray: include/ruby/internal/core/rarray.h */
#define RARRAY_EMBED_FLAG	 RUBY_FL_USER(1)
#define RARRAY_LEN_WORD		 2 /* without RARRAY_EMBED_FLAG */
#define RARRAY_PTR_WORD		 4
#define RARRAY_EMBED		 16 /* elements in the Array itself, with it … */
#define RARRAY_EMBED_LEN(flags)	 ((flags) >> (RUBY_FL_USHIFT + 3) & 0x7f) /* … and their number */

/* struct RHash: internal/hash.h */
#define RHASH_ST_TABLE		 RUBY_FL_USER(3) /* it has a st_table … */
#define RHASH_ST_POINTER	 16 /* … to which a pointer here leads, up to 3.2 … */
#define RHASH_ST_EMBED		 24 /* … or which is here, from 3.3 on */

/* struct RTypedData: include/ruby/internal/core/rtypeddata.h */
#define RTYPEDDATA_DATA_WORD	 4
/* The word that says whether the data stands in the object itself … */
#define RTYPEDDATA_FLAG_WORD	 3
/*
 * … up to 3.4 typed_flag, behind the address of the type, and 1 without it; from 4.0 on that
 * address.
 */
#define RTYPEDDATA_EMBEDDED_FLAG 2u
#define RTYPEDDATA_EMBEDDED_TYPE 1u

/* How a Mutex tells who holds it: the first words of rb_mutex_t; thread_sync.c. */
enum ruby_mutex_form {
	RUBY_MUTEX_THREAD = 1, /* 2.7: the thread, or 0 */
	RUBY_MUTEX_FIBER = 2,  /* 3.0 to 3.4: the fiber, or 0 */
	RUBY_MUTEX_SERIAL = 3, /* 4.0: the number of the EC, or 0; and the thread */
};

/* ---- symbols: symbol.c, symbol.h ---- */

/* A Symbol that is no object: its ID above these bits; special_consts.h */
#define RUBY_SYMBOL_FLAG    0x0cul
#define RUBY_SYMBOL_MASK    0xfful
#define RUBY_SYMBOL_SHIFT   8
/* struct RSymbol, which it is otherwise: the String of its name; internal/symbol.h */
#define RSYMBOL_FSTR_WORD   3

/*
 * IDs of operators are their own serial, the others carry a scope in their low bits. tLAST_OP_ID is
 * 168 to 171, and so the first of the others is beyond 171 << 4: anything between them tells the
 * two apart.
 */
#define RUBY_ID_BETWEEN	    1000
#define RUBY_ID_SCOPE_SHIFT 4
#define RUBY_ID_ENTRY_UNIT  512 /* IDs of one unit of the table */
#define RUBY_SYMBOLS_IDS    16	/* rb_symbols_t.ids */

/*
 * What ids is: an Array of units; or, since each ractor has a heap (4.1), a T_DATA of struct
 * id_entry_dir, where a unit that was not made so far is 0 (symbol.c).
 */
enum { RUBY_ID_DIR_CAPA = 0, RUBY_ID_DIR_ENTRIES = 1, RUBY_ID_DIR_WORDS = 2 };

/* The units of ruby_global_symbols.ids. */
enum ruby_symbol_form {
	RUBY_SYMBOLS_ARRAY = 1, /* up to 4.0: Array of str, sym alternating */
	RUBY_SYMBOLS_DATA = 2,	/* 4.1: T_DATA, a darray of struct sym_id_entry */
};

#define RUBY_ID_ENTRY_SIZE   2 /* RUBY_SYMBOLS_ARRAY: elements of one ID, str first */
/*
 * RUBY_SYMBOLS_DATA: rb_darray_meta_t (darray.h), whose first word is the number of entries; then
 * { sym, str } for each ID.
 */
#define RUBY_DARRAY_HEADER   16
#define RUBY_SYM_ENTRY_BYTES 16
#define RUBY_SYM_ENTRY_STR   8

/* The serial number of an ID. */
static RBPF_INLINE __u64 ruby_id_serial(__u64 id)
{
	return id > RUBY_ID_BETWEEN ? id >> RUBY_ID_SCOPE_SHIFT : id;
}

/* ---- classes: internal/class.h ---- */

/* Where a class keeps its name and a singleton class its object. */
enum ruby_class_form {
	RUBY_CLASS_IV_TBL = 1,	 /* up to 3.1: st_table of instance variables behind RClass.ptr */
	RUBY_CLASS_IV_SLOTS = 2, /* 3.2: instance variables by shape, at iv_ptr */
	RUBY_CLASS_EXT = 3,	 /* 3.3 on: members of rb_classext_t */
};

#define RCLASS_PTR_WORD	   3 /* RUBY_CLASS_IV_TBL: RClass.ptr, a rb_classext_t, … */
#define RCLASSEXT_IV_TBL   8 /* … and its iv_tbl */
#define RCLASS_IV_PTR_WORD 4 /* RUBY_CLASS_IV_SLOTS: rb_classext_t.iv_ptr, in the class itself */

/* struct st_table: include/ruby/st.h */
#define RUBY_ST_BOUND	   40	   /* entries_bound; the word behind it is entries */
#define RUBY_ST_BOUND_4_1  32	   /* the same from 4.1 on, without bins before it */
#define RUBY_ST_DELETED	   (~0ull) /* st_table_entry.hash of one that was removed; st.c */

struct ruby_st_entry { /* st_table_entry; st.c */
	__u64 hash, key, record;
};

/* RBasic.flags of an object, and what a shape adds; shape.h, 3.2 */
#define RUBY_SHAPE_ID_SHIFT 32
#define RUBY_SHAPE_IVAR	    1

struct ruby_shape { /* rb_shape_t; shape.h, 3.2 */
	__u64 edges;
	__u64 edge_name;
	__u32 next_iv_index;
	__u32 capacity;
	__u8 type;
	__u8 size_pool_index;
	__u16 pad;
	__u32 parent;
};

_Static_assert(sizeof(struct ruby_st_entry) == 24, "as in st.c");
_Static_assert(sizeof(struct ruby_shape) == 32, "as in shape.h");

/* ---- iseqs: vm_core.h ---- */

/* rb_iseq_t */
enum { RUBY_ISEQ_FLAGS = 0, RUBY_ISEQ_BODY = 2, RUBY_ISEQ_WORDS = 3 };

/* rb_iseq_constant_body: the first members */
enum {
	RUBY_BODY_TYPE = 0, /* enum ruby_iseq_type, an int; then iseq_size, an unsigned int */
	RUBY_BODY_ENCODED = 1,
	RUBY_BODY_WORDS = 2,
};

/* rb_iseq_location_t, which is a member of it: those that all versions begin with */
enum {
	RUBY_LOCATION_PATHOBJ = 0, /* a String, or an Array of path and real path */
	RUBY_LOCATION_BASE_LABEL = 1,
	RUBY_LOCATION_LABEL = 2,
	RUBY_LOCATION_LINENO = 3,
	RUBY_LOCATION_WORDS = 4,
};

#define RUBY_BODY_BYTES 448 /* of it that are read in one piece; covers all members used */

/* rb_iseq_constant_body.type: ISEQ_TYPE_* of enum rb_iseq_type */
enum ruby_iseq_type {
	RUBY_ISEQ_TOP = 0,
	RUBY_ISEQ_METHOD = 1,
	RUBY_ISEQ_BLOCK = 2,
	RUBY_ISEQ_CLASS = 3,
	RUBY_ISEQ_RESCUE = 4,
	RUBY_ISEQ_ENSURE = 5,
	RUBY_ISEQ_EVAL = 6,
	RUBY_ISEQ_MAIN = 7,
	RUBY_ISEQ_PLAIN = 8,
};

/*
 * struct succ_index_table, iseq.c: the ranks of the first IMM positions stand PACK to a word, the
 * others in blocks of a rank (a u32 and padding), small ranks, and 8 words of bits.
 */
#define RUBY_INDEX_IMM	       54 /* IMMEDIATE_TABLE_SIZE */
#define RUBY_INDEX_IMM_PACK    9
#define RUBY_INDEX_IMM_WORDS   (RUBY_INDEX_IMM / RUBY_INDEX_IMM_PACK)
#define RUBY_INDEX_BLOCK       512
#define RUBY_INDEX_BLOCK_WORDS 10

/* Words of the table for @size positions, which is allocated short if they are few. */
static RBPF_INLINE __u64 ruby_index_words(__u64 size)
{
	return size < RUBY_INDEX_IMM
		       ? (size + RUBY_INDEX_IMM_PACK - 1) / RUBY_INDEX_IMM_PACK
		       : RUBY_INDEX_IMM_WORDS + (size - RUBY_INDEX_IMM + RUBY_INDEX_BLOCK - 1) /
							RUBY_INDEX_BLOCK * RUBY_INDEX_BLOCK_WORDS;
}

/* ---- method entries: method.h ---- */

/* rb_callable_method_entry_t */
enum {
	RUBY_ME_FLAGS = 0,
	RUBY_ME_DEFINED_CLASS = 1,
	RUBY_ME_DEF = 2,
	RUBY_ME_CALLED_ID = 3,
	RUBY_ME_OWNER = 4,
	RUBY_ME_WORDS = 5,
};

/* rb_method_definition_t: the first members; and how many words are read of it, at most */
enum { RUBY_DEF_FLAGS = 0, RUBY_DEF_BODY = 1, RUBY_DEF_WORDS = 16 };

/* ---- threads and stacks: vm_core.h ---- */

/* rb_execution_context_t: the first members */
enum { RUBY_EC_VM_STACK = 0, RUBY_EC_VM_STACK_SIZE = 1, RUBY_EC_CFP = 2, RUBY_EC_TAG = 3 };

#define RUBY_EC_BYTES	     256	  /* what is read of it; covers all members used */
#define RUBY_STACK_WORDS_MAX (1ull << 32) /* vm_stack_size beyond it is no VM stack's */

/*
 * rb_thread_t: ec is within the first RUBY_TH_BYTES. It is read in one piece with the ractor, which
 * is less than RUBY_TH_WORDS before or behind it: in all releases there are only vm and nt between
 * them.
 */
#define RUBY_TH_BYTES	     768
#define RUBY_TH_WORDS	     8

/* rb_thread_t.status, vm_core.h enum rb_thread_status; the same from 2.7 to 4.1-dev. */
#define RUBY_TH_STATUS_MASK  3u
#define RUBY_TH_RUNNABLE     0

/*
 * rb_thread_t.running_time_us, the next word: the VM's timer adds to it while the thread runs, and
 * has it give the GVL away from so many µs on (thread.c, rb_threadptr_execute_interrupts()). From
 * 3.4 on RUBY_THREAD_TIMESLICE can say otherwise.
 */
#define RUBY_TURN_US	     100000

/* What fills the buf of struct rb_vm_tag, and so where in it a function's registers are. */
enum ruby_tag_form {
	RUBY_TAG_UNKNOWN = 0, /* they cannot be told */
	RUBY_TAG_BUILTIN = 1, /* __builtin_setjmp() */
	RUBY_TAG_LIBC = 2,    /* setjmp() of the C library, as they are (musl) … */
	RUBY_TAG_MANGLED = 3, /* … or mangled (glibc): see ruby_tag_unmangle() */
};

/*
 * In words from buf on: the frame pointer, where the function goes on, its stack pointer, and,
 * behind buf, the tag further out. A jmp_buf has the registers, a flag and a mask of 1,024 signals
 * (glibc jmpbuf-offsets.h of sysdeps/x86_64 and aarch64, setjmp/setjmp.h; musl's setjmp.s has the
 * same order).
 */
#define RUBY_TAG_BUF 16 /* in the tag; bytes */
enum { RUBY_TAG_FP = 0, RUBY_TAG_PC = 1, RUBY_TAG_SP = 2, RUBY_TAG_PREV = 5 };
#if defined(__TARGET_ARCH_arm64) || (defined(__aarch64__) && !defined(__TARGET_ARCH_x86))
#define RUBY_TAG_LIBC_FP   10
#define RUBY_TAG_LIBC_PC   11
#define RUBY_TAG_LIBC_SP   13
#define RUBY_TAG_LIBC_PREV (22 + 1 + 16)
#define RUBY_TAG_ROTATED   0 /* bits of what is mangled … */
#define RUBY_TAG_HIDES_FP  0 /* … which the frame pointer is or not */
#else
#define RUBY_TAG_LIBC_FP   1
#define RUBY_TAG_LIBC_SP   6
#define RUBY_TAG_LIBC_PC   7
#define RUBY_TAG_LIBC_PREV (8 + 1 + 16)
#define RUBY_TAG_ROTATED   17
#define RUBY_TAG_HIDES_FP  1
#endif

/* As many words hold all registers, in each form from its frame pointer on. */
#define RUBY_TAG_WORDS 7

struct ruby_tag {
	__u64 fp, pc, sp;
};

/* Where in a tag the words are, and where the tag further out. */
static RBPF_INLINE __u64 ruby_tag_words(__u32 form)
{
	return RUBY_TAG_BUF + (form == RUBY_TAG_BUILTIN ? RUBY_TAG_FP : RUBY_TAG_LIBC_FP) * 8ul;
}

static RBPF_INLINE __u64 ruby_tag_prev(__u32 form)
{
	return RUBY_TAG_BUF + (form == RUBY_TAG_BUILTIN ? RUBY_TAG_PREV : RUBY_TAG_LIBC_PREV) * 8ul;
}

/* PTR_DEMANGLE() of glibc (pointer_guard.h of sysdeps/unix/sysv/linux/x86_64 and aarch64). */
static RBPF_INLINE __u64 ruby_tag_unmangle(__u64 word, __u64 guard)
{
	return (word >> RUBY_TAG_ROTATED | word << (64 - RUBY_TAG_ROTATED) % 64) ^ guard;
}

/* The registers in the @words of a tag of a known @form. */
static RBPF_INLINE void ruby_tag_registers(const __u64 words[RUBY_TAG_WORDS], __u32 form,
					   __u64 guard, struct ruby_tag *ret)
{
	ret->fp = words[0];
	if (form == RUBY_TAG_BUILTIN) {
		ret->pc = words[RUBY_TAG_PC - RUBY_TAG_FP];
		ret->sp = words[RUBY_TAG_SP - RUBY_TAG_FP];
		return;
	}
	ret->pc = words[RUBY_TAG_LIBC_PC - RUBY_TAG_LIBC_FP];
	ret->sp = words[RUBY_TAG_LIBC_SP - RUBY_TAG_LIBC_FP];
	if (form != RUBY_TAG_MANGLED)
		return;
	ret->pc = ruby_tag_unmangle(ret->pc, guard);
	ret->sp = ruby_tag_unmangle(ret->sp, guard);
	if (RUBY_TAG_HIDES_FP)
		ret->fp = ruby_tag_unmangle(ret->fp, guard);
}

/* rb_control_frame_t: the first members */
struct ruby_control_frame {
	__u64 pc;
	__u64 sp;
	__u64 iseq;
	__u64 self;
	__u64 ep;
};

/* Its size: with one of __bp__ and jit_return, or with both. */
#define RUBY_CF_SIZE_MIN 56
#define RUBY_CF_SIZE_MAX 64

/* struct list_node, ccan/list/list.h; the head of a list is one, too */
struct ruby_list_node {
	__u64 next, prev;
};

#define RUBY_MONITOR_MUTEX    16 /* struct rb_monitor, ext/monitor/monitor.c: count, owner, mutex */

/* ep[0]: "MMMM MMMM MMMM MMMM ____ _FFF FFFE EEEX", of which the highest bit is set in no M. */
#define VM_FRAME_MAGIC_MASK   0x7fff0001ul
#define VM_FRAME_MAGIC_METHOD 0x11110001ul
#define VM_FRAME_MAGIC_BLOCK  0x22220001ul
#define VM_FRAME_MAGIC_CFUNC  0x55550001ul
#define VM_FRAME_MAGIC_DUMMY  0x79990001ul

/* ---- garbage collection: gc.c, from 3.4 on gc/default/default.c ---- */

/* rb_objspace_t.flags.mode: enum gc_mode */
enum ruby_gc_mode {
	RUBY_GC_NONE = 0,
	RUBY_GC_MARKING = 1,
	RUBY_GC_SWEEPING = 2,
	RUBY_GC_COMPACTING = 3,
};

/* rb_objspace_t.flags */
#define RUBY_GC_MODE_MASK	  0x03u
#define RUBY_GC_DURING_GC_BIT	  5
#define RUBY_GC_DURING_GC	  (1u << RUBY_GC_DURING_GC_BIT)
#define RUBY_GC_DURING_COMPACTING 0x40u

#endif
