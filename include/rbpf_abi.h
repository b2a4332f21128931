/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface of the BPF programs and user space: the layout that a process is walked with, and
 * the records of the ring buffer. Both sides compile it, so it has only fixed-width __u* types
 * (from vmlinux.h there, <linux/types.h> here), explicit padding and no pointers.
 */
#ifndef RBPF_ABI_H
#define RBPF_ABI_H

#include "rbpf_counters.h"
#include "ruby_abi.h"

/*
 * Limits of a walk. A stack of more than max_frames frames keeps its innermost frames and, so that
 * it still merges with others at its root, a quarter of max_frames at the root end.
 */
#define RBPF_MAX_FRAMES	      4096 /* frames kept of one stack, at most; a power of two */
#define RBPF_MIN_FRAMES	      16
#define RBPF_MAX_PROCS	      16384	/* processes followed at once */
#define RBPF_PID_LIMIT	      (4 << 20) /* ids of processes and threads are less: PID_MAX_LIMIT */
/* Of those whose names get lost, until when they are copied: by the low bits of the pid. */
#define RBPF_COPY_SLOTS	      1024
#define RBPF_MAX_PRESETS      1024 /* executables whose layout is kept for the next that runs them */
#define RBPF_COMM_LEN	      16   /* TASK_COMM_LEN */
#define RBPF_SENT_SLOTS	      65536 /* remembered stacks; a power of two */
#define RBPF_EPOCH_SHIFT      30    /* an epoch is 2^30 ns, about 1.07 s */
#define RBPF_CHECKPOINT	      8	    /* outer frames are sent once, in multiples of so many */
#define RBPF_MAX_CHECKPOINTS  (RBPF_MAX_FRAMES / RBPF_CHECKPOINT)
#define RBPF_CHECKPOINT_SHIFT 35 /* and again after 2^35 ns, about 34 s, at the latest */
/* … or 2^33 ns, 9 s, of native ones: they may be held for long, until their symbols are read. */
#define RBPF_NATIVE_SHIFT     33
#define RBPF_MAX_NATIVE	      1024 /* frames of a native stack; what is further out is left out */
#define RBPF_MAX_KERNEL	      127  /* of the kernel's part of it; PERF_MAX_STACK_DEPTH */

/* Where a thread has its variable. */
enum rbpf_tls_model {
	RBPF_TLS_NONE = 0,   /* it is not known, or there is none (yet) */
	RBPF_TLS_STATIC = 1, /* at thread pointer + offset */
	RBPF_TLS_DTV = 2,    /* at dtv[module] + offset: of a library that was dlopened */
	/*
	 * 2.7: the EC is one variable for all threads, at ec_global, of the thread that held the
	 * GVL last
	 */
	RBPF_TLS_GLOBAL = 3,
};

/* Where threads of a process have a variable of thread-local storage. */
struct rbpf_tls {
	__s64 offset;	  /* see enum rbpf_tls_model */
	__u32 model;	  /* enum rbpf_tls_model */
	__s32 dtv_offset; /* of the DTV pointer, from the thread pointer */
	__u32 module;	  /* index of the module in the DTV */
	__u16 dtv_entry;  /* size of a DTV entry: 16 glibc, 8 musl */
	__u16 pad;	  /* zero */
};

/*
 * What copying the memory that names are read from needs (bpf/name_capture.bpf.h): members of the
 * same names in struct ruby_layout (src/ruby/layout.h), but for addresses and IDs.
 */
struct rbpf_naming {
	__u64 symbols;			   /* ruby_global_symbols */
	__u64 shapes;			   /* RUBY_CLASS_IV_SLOTS: the first shape */
	__u64 key_classpath, key_attached; /* IDs; not RUBY_CLASS_EXT */
	__u16 parent_iseq, local_iseq;	   /* in rb_iseq_constant_body … */
	__u16 insns_body, insns_size, insns_index;
	__u16 insn_entry;
	__u16 class_path, class_attached; /* RUBY_CLASS_EXT */
	__u16 class_size;		  /* of a class, from its start, what is read of it */
	__u16 iseq_location;		  /* in rb_iseq_constant_body: RUBY_LOCATION_* */
	__u16 original_id;		  /* in rb_method_definition_t */
	__u8 class_form;		  /* enum ruby_class_form */
	__u8 symbol_form;		  /* enum ruby_symbol_form */
	__u8 singleton_bit;
	__u8 labels_from_parents;
	__u16 pad[3];
};

/*
 * Everything the walker needs to know of one Ruby process. Offsets in bytes; 0 for a member that
 * this Ruby does not have; addresses are of the process, 0 if unknown.
 */
struct rbpf_layout {
	struct rbpf_tls tls;	/* the EC */
	__u64 ec_global;	/* RBPF_TLS_GLOBAL */
	__s64 thread_id_bias;	/* RBPF_TLS_GLOBAL: rb_thread_t.thread_id less the thread pointer */
	__u64 threads;		/* RBPF_TLS_GLOBAL: address of rb_vm_t.living_threads */
	__u64 text_lo, text_hi; /* the VM's own code */
	__u64 gc_flags;		/* address of rb_objspace_t.flags */
	__u64 gc_count;		/* address of rb_objspace_t.profile.count */
	/*
	 * Address of what tells whose GC it is: 2.7 rb_vm_t.gvl.owner, a thread; later
	 * rb_vm_t.ractor.sync.lock_owner, a ractor, 0 with one ractor only.
	 */
	__u64 gc_owner;
	/*
	 * Where each ractor has an rb_objspace_t of its own, ractor_objspace is not 0, and gc_flags
	 * and gc_count are of the only ractor, gc_ractor, as long as ruby_single_main_ractor, at
	 * gc_single, says that it is. If it was not when rbpf attached these four are 0.
	 */
	__u64 gc_single, gc_ractor;
	/*
	 * The counts of minor and major collections, where they are farther before that of all than
	 * RBPF_GC_WORDS: they are read into the first two of these; else 0.
	 */
	__u64 gc_majors;
	__u64 zjit_entry;    /* address of rb_zjit_entry, if this Ruby has ZJIT */
	__u16 flags;	     /* RBPF_LAYOUT_* */
	__u16 ec_thread_ptr; /* rb_execution_context_t, below RUBY_EC_BYTES: thread_ptr … */
	__u16 ec_fiber_ptr;
	__u16 ec_stack_start; /* machine.stack_start; stack_maxsize is two words on */
	__u16 th_ec;	      /* rb_thread_t, below RUBY_TH_BYTES: ec … */
	__u16 th_ractor;
	__u16 th_thread_id;	 /* RBPF_TLS_GLOBAL */
	__u16 ractor_running_ec; /* rb_ractor_t.threads.running_ec */
	__u16 fiber_ec;		 /* rb_fiber_t: cont.saved_ec … */
	__u16 fiber_prev;
	__u16 cf_size; /* sizeof(rb_control_frame_t): 56 or 64 */
	__u16 cf_jit_return;
	__u16 gc_major_word;   /* see rbpf_gc_major() */
	__u16 ractor_objspace; /* in the rb_ractor_t … */
	__u16 objspace_flags;  /* … which has its flags here */
	/*
	 * The GVL; all 0 if that is not known: rb_thread_t, the node of the queue of those that
	 * wait …
	 */
	__u16 th_ready;
	/* … whose head is here in the rb_ractor_t, as is its owner. 2.7: see gvl_queue. */
	__u16 ractor_gvl_queue;
	__u16 ractor_gvl_owner;
	__u16 th_status;    /* the word whose low bits are rb_thread_t.status; 0: not known */
	__u8 mutex_form;    /* enum ruby_mutex_form; 0: not known */
	__u8 gc_during_bit; /* see rbpf_gc_flags() */
	__u16 tag_form;	    /* enum ruby_tag_form … */
	__u16 reserved[3];
	__u64 tag_guard; /* … and what ruby_tag_unmangle() needs */
	/* 2.7: addresses of rb_vm_t.gvl.waitq and .owner. */
	__u64 gvl_queue, gvl_owner;
	struct rbpf_naming naming;
};

/* 2.7: ec->cfp is set before the frame it points to is written. */
#define RBPF_LAYOUT_CFP_FIRST  (1u << 0)
/* 3.2 on: a String can hold text of any length in itself, from its fourth word. */
#define RBPF_LAYOUT_LONG_EMBED (1u << 1)
/* Up to 3.2: that an object is old proves nothing of its age. */
#define RBPF_LAYOUT_NO_AGE     (1u << 2)
/*
 * What names need is copied at once: the process is young, and may end before user space has
 * examined it; or its names get lost, as its objects do not live that long (struct lost_names).
 */
#define RBPF_LAYOUT_COPY       (1u << 3)
/* 4.0: nothing in a frame tells that it is ZJIT's, which writes no pc when it pushes one. */
#define RBPF_LAYOUT_ZJIT_BARE  (1u << 4)
/* 3.3 on: a thread that begins makes itself the running one of its ractor before it has the GVL. */
#define RBPF_LAYOUT_RUNS_EARLY (1u << 5)

_Static_assert(sizeof(struct rbpf_naming) == 64, "map ABI");
_Static_assert(sizeof(struct rbpf_layout) == 192 + 64, "map ABI");

/* A file, as the kernel knows it. All 0: none. */
struct rbpf_file {
	__u64 inode;
	__u32 device;	  /* dev_t of the kernel, which on overlayfs is not that of stat(2) */
	__u32 generation; /* tells it from another file that had the inode before */
};

/*
 * What a layout is kept by for the next process: what that executes, and the user who does. A
 * process can change its own memory such that another layout is found in it, and that must be its
 * own user's affair. Layouts of root's processes (uid 0) are for all.
 */
struct rbpf_preset_key {
	struct rbpf_file exe;
	__u32 uid; /* real */
	__u32 pad; /* zero */
};

_Static_assert(sizeof(struct rbpf_preset_key) == 24, "map ABI");

/* A followed process. */
struct rbpf_proc {
	struct rbpf_layout layout;
	struct rbpf_tls
		context; /* the variable that leads to the context of a thread: rbpf_otel_record */
	__u64 since;	 /* ns, CLOCK_MONOTONIC: forked or executed then; 0: before it was met */
	__u64 clocked; /* … threads that began before this have clocks of their own; 0: none has */
};

/*
 * The period of a clock, ns, is odd if the clock is of a CPU. (To load another program for these
 * would take the kernel as long again: it checks all that a program calls with each.)
 */
#define RBPF_PERIOD_OF_CPU 1ull

/* Of so many clocks of threads what they have had of their periods is kept as these change. */
#define RBPF_MAX_CARRIED   16384

/* ---- OpenTelemetry ---- */

/* The span that a thread is in, ids as they are in memory; span 0: none, or it is not known. */
struct rbpf_span {
	__u64 trace[2];
	__u64 span;
};

/* The record of a thread that OTEP 4947 defines, up to its attributes, which are not read. */
struct rbpf_otel_record {
	struct rbpf_span span;
	__u8 valid; /* 1: it is; anything else: it is being changed, or of no use */
	__u8 flags;
	__u16 attributes_size;
};
#define RBPF_OTEL_RECORD_BYTES 28 /* without the padding of the struct */

/* ---- native stacks ---- */

/* How code that stands at some addresses of a process is left. */
enum rbpf_code_kind {
	RBPF_CODE_TABLE = 0,	/* by its unwind table (rbpf_cfi.h) */
	RBPF_CODE_UNREAD = 1,	/* it has one that was not read yet: user space is asked to */
	RBPF_CODE_NO_TABLE = 2, /* its file has none, or it is no file's */
	RBPF_CODE_NO_ROOM = 3,	/* there is no room for it */
	/* Compiled by YJIT, x86_64: three registers pushed, then the return address. */
	RBPF_CODE_YJIT = 4,
	/* A frame record {caller's fp, return address} is at fp: ZJIT; on arm64 YJIT, too. */
	RBPF_CODE_RECORD = 5,
};

/*
 * Executable addresses [start, end) of a process; those of one process stand next to each other in
 * the map `ranges`, ascending and disjoint. Address a is a - base in its table (rbpf_cfi.h).
 */
struct rbpf_range {
	__u64 start, end;
	__u64 base;
	__u32 table; /* RBPF_CODE_TABLE: its first word in the pool of words … */
	__u32 pages; /* … and its pages */
	__u32 kind;  /* enum rbpf_code_kind */
	__u32 asked; /* RBPF_CODE_UNREAD: the BPF programs have asked for it */
};

/* The pool of words of all tables is a map with values of so many. */
#define RBPF_POOL_CHUNK_SHIFT 10
#define RBPF_POOL_CHUNK	      (1u << RBPF_POOL_CHUNK_SHIFT)

/* By process: where its ranges are, in the map `ranges`. */
struct rbpf_code {
	__u32 first, n;
	__u32 id; /* these ranges have it, and no others had it before; not 0 */
	__u32 pad;
};

#define RBPF_MAX_RANGES 4096 /* of one process */

/* Why a native stack goes on no further, or not without a gap. */
enum rbpf_native_end {
	RBPF_NATIVE_OUTERMOST = 0, /* it is complete */
	RBPF_NATIVE_NO_MAP = 1,	   /* the executable ranges of the process are not known yet */
	RBPF_NATIVE_NO_RANGE = 2,  /* an address in none of them */
	RBPF_NATIVE_UNREAD = 3,	   /* the table of that code was not read yet */
	RBPF_NATIVE_NO_TABLE = 4,  /* there is none */
	RBPF_NATIVE_NO_ROOM = 5,   /* there was no room for it */
	RBPF_NATIVE_NO_RULE = 6,   /* it says nothing, or nothing usable, of that address */
	RBPF_NATIVE_REGISTER = 7,  /* a register is needed that is not known */
	RBPF_NATIVE_FAULT = 8,	   /* the stack could not be read */
	RBPF_NATIVE_STUCK = 9,	   /* the caller would not be further up the stack */
	RBPF_NATIVE_JIT = 10,	   /* compiled code in the midst of a call or return */
	RBPF_NATIVE_LIMIT = 11,	   /* more than RBPF_MAX_NATIVE frames */
	RBPF_NATIVE_END_COUNT,
};

/*
 * One frame of a native stack, a word: an address of the kernel has its top bit set; one of the
 * process is a return address unless RBPF_NATIVE_EXACT is set; enum rbpf_native_end stands for a
 * gap, after which it goes on at the jump buffer that the VM keeps for exceptions.
 */
#define RBPF_NATIVE_EXACT  (1ull << 62) /* that instruction was next: look it up as it is */
#define RBPF_NATIVE_KERNEL (1ull << 63)

/* Why a sample has the Ruby stack it has, or none. Stored in a __u16. */
enum rbpf_status {
	RBPF_OK = 0,
	RBPF_NO_RUBY = 1,     /* no Ruby is known in the process: not attached yet, or none there */
	RBPF_NO_EC = 2,	      /* the thread has no EC: not a Ruby thread, or not one yet */
	RBPF_EC_STALE = 3,    /* its EC is not (any more) the EC of a running thread */
	RBPF_EC_RANGE = 4,    /* cfp does not point into the VM stack, or is misaligned */
	RBPF_FAULT_TLS = 5,   /* could not read the thread's TLS */
	RBPF_FAULT_EC = 6,    /* could not read the EC or its thread */
	RBPF_FAULT_STACK = 7, /* could not read the control frames */
	RBPF_EXITING = 8,     /* the thread is exiting: its memory is gone */
	RBPF_SWITCHING = 9,   /* between two fibers or threads: the EC is not that of the stack */
	RBPF_EXECUTING = 10,  /* in execve(2), where the memory may be the new program's already */
	RBPF_STATUS_COUNT,
};

/* What the BPF programs count, per CPU; summed and shown by user space: see rbpf_counters.h. */
enum rbpf_counter {
#define RBPF_COUNTER_NUMBER(name, key, when, one, many, text) RBPF_CNT_##name,
	RBPF_KERNEL_COUNTERS(RBPF_COUNTER_NUMBER)
#undef RBPF_COUNTER_NUMBER
		RBPF_COUNTERS,
};

/* Native stacks with a gap or an early end are counted by reason, from RBPF_CNT_NATIVE_CUT on. */
_Static_assert(RBPF_CNT_NATIVE_NO_MAP == RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_NO_MAP, "by reason");
_Static_assert(RBPF_COUNTERS == RBPF_CNT_NATIVE_CUT + RBPF_NATIVE_END_COUNT, "a counter a reason");

/*
 * @flags of rb_objspace_t as they are where during_gc is bit 5 of them. Where each ractor has an
 * objspace (4.1) it is @during_bit 6, and during_global_gc is between it and during_compacting.
 */
static RBPF_INLINE __u32 rbpf_gc_flags(__u32 flags, __u32 during_bit)
{
	if (during_bit <= RUBY_GC_DURING_GC_BIT)
		return flags;
	return (flags & RUBY_GC_MODE_MASK) |
	       (flags >> (during_bit & 31) & 1) << RUBY_GC_DURING_GC_BIT |
	       (flags >> ((during_bit + 2) & 31) & 1 ? RUBY_GC_DURING_COMPACTING : 0);
}

/*
 * The era of the heap, from the flags and the count of collections (rb_objspace_t.profile.count):
 * it ends when a collection has marked and begins to free. So an object that was on a stack in one
 * era is there to its end. (The count alone moves when marking begins, and what is on a stack in
 * the midst of that may still be freed by the same collection.) Never 0.
 */
static RBPF_INLINE __u64 rbpf_gc_era(__u64 count, __u32 flags)
{
	return (flags & RUBY_GC_MODE_MASK) == RUBY_GC_MARKING && count ? count : count + 1;
}

/* The words of rb_objspace_t.profile up to its count. */
#define RBPF_GC_WORDS 8

/*
 * Whether a collection has been counted as one (gc_start(), gc.c), but does not mark yet, and so is
 * none of the minor or major ones that are counted (gc_marks_start()): rbpf_gc_era() would be that
 * of when it has marked. @words and
 * @major_word are those of rbpf_gc_major(); where they are not known it is never said.
 */
static RBPF_INLINE int rbpf_gc_begins(const __u64 words[RBPF_GC_WORDS], __u32 major_word,
				      __u32 flags)
{
	__u64 major = words[major_word & (RBPF_GC_WORDS - 1)];
	__u64 minor = words[(major_word - 1) & (RBPF_GC_WORDS - 1)];

	return major_word && (flags & RUBY_GC_MODE_MASK) == RUBY_GC_NONE &&
	       minor + major + 1 == words[RBPF_GC_WORDS - 1];
}

static RBPF_INLINE __u64 rbpf_gc_words(__u64 gc_count)
{
	return gc_count - (RBPF_GC_WORDS - 1) * sizeof(__u64);
}

/*
 * How many major collections have marked: while that is the same, no old object is freed or moved.
 * (A minor collection frees young objects only, and none frees anything before it has marked.) 0
 * where it cannot be said: while a thread marks; if @major_word is 0, as that member is not known;
 * or if @words are not what they should be. They are the RBPF_GC_WORDS that end with the count of
 * all collections, which are minor and major ones, counted in @major_word - 1 and @major_word from
 * when they begin. One that marks little by little, while the program runs, is a major one
 * (gc_marks_start(), gc.c).
 */
static RBPF_INLINE __u64 rbpf_gc_major(const __u64 words[RBPF_GC_WORDS], __u32 major_word,
				       __u32 flags)
{
	__u64 major = words[major_word & (RBPF_GC_WORDS - 1)];
	__u64 minor = words[(major_word - 1) & (RBPF_GC_WORDS - 1)];
	int marks = (flags & RUBY_GC_MODE_MASK) == RUBY_GC_MARKING;

	if (!major_word || (marks && flags & RUBY_GC_DURING_GC) ||
	    minor + major != words[RBPF_GC_WORDS - 1])
		return 0;
	return marks && major ? major - 1 : major;
}

/* Whether @flags do not tell which: in the midst of a collection that neither marks nor frees. */
static RBPF_INLINE int rbpf_gc_in_transition(__u32 flags)
{
	return flags & RUBY_GC_DURING_COMPACTING ||
	       (flags & RUBY_GC_DURING_GC && (flags & RUBY_GC_MODE_MASK) == RUBY_GC_NONE);
}

/*
 * One frame as the BPF programs see it; user space names it.
 *
 * - a Ruby frame: iseq != 0; pc as in the control frame, with RBPF_PC_*; me the method entry, or 0
 * - a C function: iseq == 0, me != 0; pc only RBPF_PC_*
 * - frames that were cut: iseq == 0, me == 0, pc != 0; pc is their number
 * - a fiber: all 0; what follows is the fiber that resumed the one before
 */
/* pc is a multiple of 8 otherwise. */
#define RBPF_PC_STALE  1ull /* compiled code may not have saved it */
#define RBPF_PC_FINISH 2ull /* the outermost frame that a native frame of rb_vm_exec runs */
#define RBPF_PC_JIT    4ull /* compiled code runs it */
#define RBPF_PC_FLAGS  7ull

struct rbpf_frame {
	__u64 iseq; /* rb_iseq_t * */
	__u64 pc;
	__u64 me; /* rb_callable_method_entry_t * */
	/*
	 * Of what iseq and me held then, for telling later whether others have taken their place:
	 * rbpf_check_iseq() and rbpf_check_me() one after the other from 0. 0: it was not taken,
	 * because the iseq was sent with one in this era, is old, or could not be read; or because
	 * iseq or method entry was sent with one since the last major collection, and was old.
	 */
	__u64 check;
};

/* The pc of a Ruby frame alone. */
static RBPF_INLINE __u64 rbpf_frame_pc(const struct rbpf_frame *f)
{
	return f->pc & ~RBPF_PC_FLAGS;
}

static RBPF_INLINE __u64 rbpf_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

#define RBPF_LABEL_WORDS 16 /* of the end of a label's text */

/*
 * @body: address of the rb_iseq_constant_body, of which @pathobj and @lineno are words; @label: the
 * label's String, from its third word; @text: the end of its text, if that is not in these words.
 */
static RBPF_INLINE __u64 rbpf_check_iseq(__u64 h, __u64 body, __u64 pathobj, __u64 lineno,
					 const __u64 label[3], const __u64 text[RBPF_LABEL_WORDS])
{
	int i;

	h = rbpf_mix(rbpf_mix(rbpf_mix(h, body), pathobj), lineno);
	for (i = 0; i < 3; i++)
		h = rbpf_mix(h, label[i]);
	for (i = 0; i < RBPF_LABEL_WORDS; i++)
		h = rbpf_mix(h, text[i]);
	return h | 1;
}

static RBPF_INLINE __u64 rbpf_check_me(__u64 h, __u64 def, __u64 called_id, __u64 owner)
{
	return rbpf_mix(rbpf_mix(rbpf_mix(h, def), called_id), owner) | 1;
}

/* ---- requests ---- */

/*
 * Where on a stack it stands which request a thread serves, or which job it runs: in a Ruby frame
 * of an iseq that a rule names (src/request/rules.h). What the rule says is read of that frame.
 */
#define RBPF_REQUEST_TEXT 48 /* bytes of a String, at most */

/* Whose class names the request. Stored in a __u8. */
enum rbpf_request_class {
	RBPF_REQUEST_NO_CLASS = 0,
	RBPF_REQUEST_OF_SELF = 1,  /* of the receiver */
	RBPF_REQUEST_OF_LOCAL = 2, /* of the local variable at class_slot */
	RBPF_REQUEST_LOCAL = 3,	   /* the local variable at class_slot is the class */
};

/* What the local variable at text_slot is. Stored in a __u8. */
enum rbpf_request_text {
	RBPF_REQUEST_STRING = 0, /* a String or Symbol */
	/* Rack's environment, a Hash: the request's path and method are read of it */
	RBPF_REQUEST_ENV = 1,
};

/*
 * Of Rack's environment, the entries with these keys. Hashes of Strings are the same in a process
 * and its children, and user space learns them: they only say where to look, the key is compared.
 */
enum rbpf_env_key {
	RBPF_ENV_PATH = 0,   /* "REQUEST_PATH" */
	RBPF_ENV_METHOD = 1, /* "REQUEST_METHOD" */
	RBPF_ENV_KEYS,
};
#define RBPF_ENV_KEY_LEN(key) ((key) == RBPF_ENV_PATH ? 12 : 14)
/* The key after its first 8 bytes, "REQUEST_". */
#define RBPF_ENV_KEY_START    0x5f54534555514552ul
#define RBPF_ENV_KEY_END(key) ((key) == RBPF_ENV_PATH ? 0x48544150ul : 0x444f4854454dul)

/* What is read of frames of one iseq. A local variable is at ep[-slot]. */
struct rbpf_request_rule {
	__u16 rule; /* its number, for user space */
	__u16 class_slot;
	__u16 text_slot; /* 0: none */
	__u8 class_from; /* enum rbpf_request_class */
	__u8 super_word; /* of a class: its superclass; 0: unknown */
	__u8 text_from;	 /* enum rbpf_request_text */
	__u8 pad;
	/*
	 * RBPF_REQUEST_ENV: where entries_bound and entries of a Hash are, in bytes: of the Hash …
	 */
	__u8 st_bound;
	__u8 st_pointer; /* … or, if not 0, of the table to which a pointer here leads */
	__u32 pad2;
	__u64 key_hash[RBPF_ENV_KEYS]; /* 0: not known yet */
};

/* By which a rule is found. */
struct rbpf_request_key {
	__u64 iseq;
	__u32 tgid;
	__u32 pad; /* zero */
};

#define RBPF_MAX_REQUEST_FRAMES	  16384 /* iseqs with a rule, of all processes */
#define RBPF_MAX_REQUEST_PROCS	  4096	/* processes that have any */
#define RBPF_REQUEST_FILTER_WORDS 8

/*
 * For each iseq of a process that has a rule, the bit rbpf_request_bit() is set. The rules are
 * found under @tgid: of a forked child that user space has not seen yet, its parent's.
 */
struct rbpf_request_filter {
	__u64 bits[RBPF_REQUEST_FILTER_WORDS];
	__u32 tgid;
	__u32 pad; /* zero */
};

static RBPF_INLINE __u32 rbpf_request_bit(__u64 iseq)
{
	return (__u32)(iseq >> 3) * 0x9e3779b1u >> 23; /* 9 bits */
}

_Static_assert(RBPF_REQUEST_FILTER_WORDS * 64 == 1 << 9, "a bit for each");

/* Stored in a __u32. */
enum rbpf_ring_record {
	RBPF_RING_SAMPLE = 1,
	RBPF_RING_STACK = 2,
	RBPF_RING_FORK = 3,
	RBPF_RING_EXEC = 4,
	RBPF_RING_EXIT = 5,
	RBPF_RING_THREAD = 6,
	RBPF_RING_FREE = 7,
	RBPF_RING_MEMORY = 8,
	RBPF_RING_NATIVE = 9,
	RBPF_RING_CODE_MISS = 10,
	RBPF_RING_WAIT = 11,
	RBPF_RING_REQUEST = 12,
	RBPF_RING_WAKER = 13,
};

struct rbpf_ring_hdr {
	__u64 ts;   /* ns, CLOCK_MONOTONIC */
	__u32 type; /* enum rbpf_ring_record */
	__u32 tgid; /* in the initial pid namespace, as all ids here */
	__u32 tid;
	__u32 cpu;
};

#define RBPF_SAMPLE_KERNEL	    (1u << 0) /* the tick hit kernel mode */
#define RBPF_SAMPLE_GC		    (1u << 1) /* the thread was collecting garbage, in phase … */
#define RBPF_SAMPLE_GC_PHASE(flags) ((flags) >> 2 & 3) /* enum ruby_gc_mode */
#define RBPF_SAMPLE_GC_PHASE_SHIFT  2
#define RBPF_SAMPLE_GC_UNKNOWN	    (1u << 4) /* it may be collecting: see gc_single, gc_whose() */
#define RBPF_SAMPLE_PAGE_FAULT	    (1u << 5) /* … which handled a page fault: with _KERNEL */

/* What a sample is of. engine_events() gives the name, the unit and the period of each. */
enum rbpf_event {
	RBPF_EVENT_CPU = 0, /* CPU time, in ns */
	RBPF_EVENT_WAIT =
		1, /* time off the CPU, in ns: the samples of a wait are as long as it is */
	/* How long others waited for the GVL, in ns, while this thread had it. */
	RBPF_EVENT_GVL = 2,
	/* How long others waited for a Mutex or a Monitor, in ns, while this thread had it. */
	RBPF_EVENT_LOCK = 3,
	/* How long a thread waited, in ns, that this one woke. */
	RBPF_EVENT_WAKEUP = 4,
	RBPF_EVENTS,
};

/*
 * A sample. The stack it names was sent before it, in this epoch: the definition is sent when a
 * stack is first seen in an epoch, and counts as seen only once it is in the ring.
 */
struct rbpf_ring_sample {
	struct rbpf_ring_hdr h;
	__u64 stack;   /* fingerprint; 0 if there is no Ruby stack */
	__u64 native;  /* fingerprint of the native one; 0 if there is none */
	__u64 request; /* fingerprint of the request; 0 if no frame has a rule */
	struct rbpf_span span;
	__u64 value;  /* in the unit of its event */
	__u32 event;  /* enum rbpf_event */
	__u16 status; /* enum rbpf_status */
	__u16 flags;  /* RBPF_SAMPLE_* */
	char comm[RBPF_COMM_LEN];
};

/*
 * What a thread waits for while it is off the CPU: by the system call that it is in, what its file
 * descriptor is, and the VM's own state. Stored in a __u16.
 */
enum rbpf_wait {
	RBPF_WAIT_CPU = 0,     /* it could run, but other threads do */
	RBPF_WAIT_GVL = 1,     /* in the queue of those that want the lock of its Ruby or ractor */
	RBPF_WAIT_LOCK = 2,    /* in futex(2), and not for the GVL; a lock of a file */
	RBPF_WAIT_FAULT = 3,   /* for a page of memory */
	RBPF_WAIT_DISK = 4,    /* for a file or a directory */
	RBPF_WAIT_NETWORK = 5, /* for a socket, or for many descriptors at once (epoll) */
	RBPF_WAIT_PIPE = 6,    /* for a pipe, a FIFO, an eventfd and the like */
	RBPF_WAIT_TIMER = 7,   /* for a time to come */
	RBPF_WAIT_CHILD = 8,   /* for a child to end */
	RBPF_WAIT_STOPPED = 9, /* for SIGCONT, or for its tracer */
	RBPF_WAIT_OTHER = 10,  /* anything else, such as a signal */
	RBPF_WAIT_THROTTLED = 11, /* it could run, but its control group has used its CPU time */
	RBPF_WAITS,
};

/* What kind of name a struct rbpf_waits_on has. Stored in a __u8. */
enum rbpf_waits_on_kind {
	RBPF_ON_NOTHING = 0, /* none: it is not known what the thread waits for */
	RBPF_ON_INET = 1,    /* the peer's address, 4 bytes … */
	RBPF_ON_INET6 = 2,   /* … or 16 */
	RBPF_ON_UNIX = 3, /* the path of the peer, or its abstract name, which begins with a NUL */
	RBPF_ON_UNIX_OWN = 4, /* of the socket itself, whose peer has none */
	RBPF_ON_FILE = 5,     /* of the file in its directory */
};

#define RBPF_ON_NAME 44

/*
 * What is behind the descriptor that a thread waits for; what is not used is 0, but with
 * RBPF_ON_NOTHING it is of no meaning.
 */
struct rbpf_waits_on {
	__u8 kind;	/* enum rbpf_waits_on_kind */
	__u8 len;	/* of the name, in bytes: above RBPF_ON_NAME if it is longer than that */
	__u16 port;	/* of the peer; 0: it has none, as what listens has */
	__u16 own_port; /* ports are in the byte order of the CPU */
	__u16 pad;
	char name[RBPF_ON_NAME]; /* its beginning, without a NUL; of a path of a socket the end */
};
_Static_assert(sizeof(struct rbpf_waits_on) == 52, "ring ABI");

/* Of rbpf_ring_wait, beside RBPF_SAMPLE_*. */
#define RBPF_WAIT_HELD	 (1u << 8)  /* the thread held the GVL all the time */
#define RBPF_WAIT_OPEN	 (1u << 9)  /* it goes on */
#define RBPF_WAIT_BEFORE (1u << 10) /* it began before it was looked at: there are no stacks */
#define RBPF_WAIT_TURN                                                                             \
	(1u << 11) /* for the GVL, which the thread gave away to others and wants back */

/*
 * A wait: the thread of h was off the CPU from @since to h.ts. The stacks are those with which it
 * left the CPU: they were sent before it. A wait that goes on is sent again and again with the same
 * @since, the last time when it ends.
 */
struct rbpf_ring_wait {
	struct rbpf_ring_hdr h;
	__u64 since;  /* ns, CLOCK_MONOTONIC */
	__u64 woken;  /* since then it could run; 0: not yet */
	__u64 ready;  /* since then it waited for the GVL, as far as that was seen; 0: it was not */
	__u64 stack;  /* as in rbpf_ring_sample */
	__u64 native; /* so, too */
	__u64 request; /* so, too */
	struct rbpf_span span;
	__u64 runtime; /* ns of CPU time that the thread has had in its life */
	__u64 caused;  /* RBPF_WAIT_HELD: a value of RBPF_EVENT_GVL, of this wait so far; else 0 */
	__u64 lock_caused; /* a value of RBPF_EVENT_LOCK, of this wait so far */
	__u32 wait;	   /* enum rbpf_wait, up to ready or woken */
	__u16 status;	   /* enum rbpf_status */
	__u16 flags;	   /* RBPF_SAMPLE_*, RBPF_WAIT_* */
	char comm[RBPF_COMM_LEN];
	struct rbpf_waits_on on;
	__u32 pad;
};

/*
 * What user space has read of a thread whose wait began before the BPF programs could read it: they
 * read the memory of the current thread only.
 */
struct rbpf_known_wait {
	__u64 since;   /* of the wait that it is of */
	__u64 th;      /* the thread's rb_thread_t */
	__u64 mutex;   /* the rb_mutex_t that it waits for; 0: none, or it is not known */
	__u64 owner;   /* the rb_thread_t that held it … */
	__u64 at;      /* … then: ns, CLOCK_MONOTONIC */
	__u64 counted; /* from then on it counts among the waits for @mutex, ns; 0: it does not. The
			  BPF programs' */
};

/*
 * A sample of RBPF_EVENT_WAKEUP without a stack: whoever woke the thread of h is in no process that
 * is followed.
 */
struct rbpf_ring_waker {
	struct rbpf_ring_hdr h;
	__u64 value; /* ns */
	__u32 pid;   /* tgid; 0: an interrupt did */
	__u32 pad;
	char comm[RBPF_COMM_LEN];  /* of the thread of h */
	char waker[RBPF_COMM_LEN]; /* of the one that woke it */
};

/*
 * A stack: n_frames frames follow, innermost first, as rbpf_frame_words.h has them; then, to the
 * end of the record, n_checkpoints words. The stack goes on, further out, with the n_outer frames
 * of the checkpoint @outer, which was sent before. The words are its checkpoints that were not: of
 * its n_outer + RBPF_CHECKPOINT outermost frames, of RBPF_CHECKPOINT more, and so on.
 */
struct rbpf_ring_stack {
	struct rbpf_ring_hdr h;
	__u64 stack;  /* fingerprint */
	__u64 outer;  /* 0: none, the frames are all there are */
	__u64 gc_era; /* rbpf_gc_era() then; 0 if unknown */
	/*
	 * rbpf_gc_major() then: while it lasts an old object comes with a check once; 0: it is
	 * unknown, or names are copied
	 */
	__u64 gc_major;
	__u32 n_frames;
	__u32 n_outer; /* a multiple of RBPF_CHECKPOINT */
	__u32 n_checkpoints;
	__u32 flags; /* RBPF_STACK_* */
};

/*
 * A native stack: n_frames words follow, innermost first, the kernel's before those of the process;
 * then n_checkpoints words. It goes on with the n_outer words of the checkpoint @outer, and has
 * checkpoints of its own, as a struct rbpf_ring_stack. @end tells why it ends where it does: the
 * same for all that have
 * @outer.
 */
struct rbpf_ring_native {
	struct rbpf_ring_hdr h;
	__u64 stack; /* fingerprint */
	__u64 outer; /* 0: none */
	__u32 n_frames;
	__u32 n_outer; /* a multiple of RBPF_CHECKPOINT */
	__u32 n_checkpoints;
	__u32 end; /* enum rbpf_native_end */
};

/*
 * A request: what was read of the frame that tells it. Sent before the first sample of it, in an
 * epoch.
 */
struct rbpf_ring_request {
	struct rbpf_ring_hdr h;
	__u64 request; /* fingerprint */
	__u64 gc_era;  /* as in the definition of a stack */
	__u64 gc_major;
	struct rbpf_frame frame; /* without its method entry, with a check */
	__u64 me, me_check;	 /* that: as of a C function */
	/*
	 * tells it from the next one: the receiver, the local whose class it is, or the environment
	 */
	__u64 object;
	__u64 klass;  /* 0: none, or it could not be read */
	__u64 symbol; /* ID of a Symbol in place of a text; 0: none */
	__u64 verb;   /* RBPF_REQUEST_ENV: the first 8 bytes of the method; 0: not known */
	char text[RBPF_REQUEST_TEXT];
	__u16 text_len;
	__u16 rule;
	__u32 flags; /* RBPF_STACK_*, RBPF_REQUEST_* */
};

#define RBPF_REQUEST_NO_TEXT   (1u << 8)  /* there should be a text, but it could not be read */
#define RBPF_REQUEST_TEXT_CUT  (1u << 9)  /* it is longer than RBPF_REQUEST_TEXT */
#define RBPF_REQUEST_OLD_CLASS (1u << 10) /* the class was old, and gc_major is known */

/* A code miss: the walk met code at @addr of which it has no map or no table yet. */
struct rbpf_ring_code_miss {
	struct rbpf_ring_hdr h;
	__u64 addr;
	__u32 end; /* RBPF_NATIVE_NO_MAP, RBPF_NATIVE_NO_RANGE or RBPF_NATIVE_UNREAD */
	__u32 pad;
};

/*
 * Objects were being moved, or a collection was just beginning or ending: the era proves nothing.
 */
#define RBPF_STACK_GC_TRANSITION (1u << 0)

#define RBPF_LIFE_LAST		 (1u << 0) /* EXIT: it was the last thread of the process */
#define RBPF_LIFE_PRESET	 (1u << 1) /* EXEC: the layout kept for that file was given to it */

/*
 * Copies of memory from which iseqs and method entries can be named, made when a stack was sampled
 * whose definition follows: n_bytes of blocks. Each record holds all that what is in it needs.
 */
struct rbpf_ring_memory {
	struct rbpf_ring_hdr h;
	__u64 gc_era; /* as in the definition */
	__u32 n_bytes;
	__u32 flags; /* RBPF_STACK_* */
};

/* What begins with a block. Stored in a __u32. */
enum rbpf_block_kind {
	RBPF_BLOCK_PART = 0,   /* something that one of the others needs */
	RBPF_BLOCK_ISEQ = 1,   /* an iseq that is to be named */
	RBPF_BLOCK_METHOD = 2, /* a method entry, whose owner is to be named … */
	RBPF_BLOCK_CFUNC = 3,  /* … with the method's name */
};

/* The bytes follow, and as many of no meaning as there are to a multiple of 8. */
struct rbpf_block {
	__u64 addr;
	__u32 len;
	__u32 kind; /* enum rbpf_block_kind */
};

/*
 * RBPF_RING_FORK, RBPF_RING_THREAD: h is the parent, and h.ts when the child began, as the kernel
 * keeps it; RBPF_RING_EXEC, RBPF_RING_EXIT, RBPF_RING_FREE: the process or thread itself. FREE
 * comes some time after EXIT, when it has been waited for. FORK, THREAD: all after child is 0.
 */
struct rbpf_ring_life {
	struct rbpf_ring_hdr h;
	__u64 runtime;	 /* ns of CPU time the thread of h had in its life, up to the last time the
			  * scheduler looked: FREE: all of it; FORK, THREAD: 0 */
	__u32 child;	 /* FORK: tgid of the new process; THREAD: tid of the new thread; EXEC: tid
			  * that h.tid had before */
	__u32 exit_code; /* EXIT: as wait(2) gives it */
	__u32 flags;	 /* RBPF_LIFE_* */
	__u32 pad;
	struct rbpf_file exe; /* EXEC: what was executed */
	char comm[RBPF_COMM_LEN];
};

/* The clock of a CPU. Its period is drawn anew again and again: src/engine/clock_events.c. */
struct rbpf_cpu_clock {
	__u64 period;	/* ns */
	__u64 drawn_ns; /* CLOCK_MONOTONIC: the clock began anew then, with this period */
	__u64 first;	/* ns that its first tick since then stands for */
};

/* What the task iterator writes for each thread of a followed process. */
struct rbpf_task {
	__u32 tgid;
	__u32 tid;
	__u64 thread_pointer; /* fsbase, tpidr_el0 */
	__u64 runtime;	      /* ns of CPU time so far in its life */
	struct rbpf_file exe;
};

/* By their DWARF numbers: 17 of x86_64 with the return address, 32 of arm64; a power of two. */
#define RBPF_REGS 32

/* The registers of a thread in user mode. */
struct rbpf_regs {
	__u64 pc, sp, fp;
	__u64 lr; /* arm64 */
	__u64 by_dwarf[RBPF_REGS];
};

/* How a thread's control group keeps it from running. */
enum rbpf_kept {
	RBPF_KEPT_NOT = 0,
	RBPF_KEPT_FROZEN = 1,
	RBPF_KEPT_THROTTLED = 2, /* the group has used the CPU time of this period */
};

/*
 * What the iterator `registers` writes: the same, and where the thread entered the kernel. That is
 * where it is, unless it runs or has run since.
 */
struct rbpf_thread {
	struct rbpf_task task;
	__u32 on_cpu;	/* 1: it runs just now, in user mode maybe */
	__u32 has_regs; /* 0: it has none: a thread of the kernel's, or one that ends */
	__u32 queued;	/* 1: it is on none, but could run; 0 also if that is not known */
	__u32 kept;	/* enum rbpf_kept */
	__u64 switches; /* how often it has left a CPU */
	__u64 for_ns;	/* how long it has been so: on_cpu, queued or neither; 0: not known */
	struct rbpf_regs regs;
};

_Static_assert(sizeof(struct rbpf_tls) == 24, "map ABI");
_Static_assert(sizeof(struct rbpf_otel_record) == 32, "the record is shorter by its padding");
_Static_assert(sizeof(struct rbpf_frame) == 32, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_hdr) == 24, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_wait) == 200, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_sample) == 104, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_waker) == 72, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_request) == 24 + 24 + 32 + 48 + 48 + 8, "wire ABI");
_Static_assert(sizeof(struct rbpf_request_rule) == 32, "map ABI");
_Static_assert(sizeof(struct rbpf_request_key) == 16, "map ABI");
_Static_assert(sizeof(struct rbpf_request_filter) == 72, "map ABI");
_Static_assert(sizeof(struct rbpf_ring_stack) == 72, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_life) == 80, "wire ABI");
_Static_assert(sizeof(struct rbpf_proc) == 296, "map ABI");
_Static_assert(sizeof(struct rbpf_cpu_clock) == 24, "map ABI");
_Static_assert(sizeof(struct rbpf_task) == 40, "wire ABI");
_Static_assert(sizeof(struct rbpf_thread) == 48 + 24 + 32 + 8 * RBPF_REGS, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_memory) == 40, "wire ABI");
_Static_assert(sizeof(struct rbpf_block) == 16, "wire ABI");
_Static_assert(sizeof(struct rbpf_range) == 40, "map ABI");
_Static_assert(sizeof(struct rbpf_ring_native) == 56, "wire ABI");
_Static_assert(sizeof(struct rbpf_ring_code_miss) == 40, "wire ABI");

#endif
