/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walks (ruby_walk.bpf.h, native_walk.bpf.h) work on, and what only they know of CRuby.
 */
#ifndef RBPF_WALK_STATE_BPF_H
#define RBPF_WALK_STATE_BPF_H

#include "rbpf_abi.h"
#include "rbpf_cfi.h"

/*
 * Keeps the compiler from removing the bounds check of @v that follows: the compiler knows the
 * bounds from the arithmetic before it, the verifiers of older kernels do not.
 */
#ifndef barrier_var
#define barrier_var(v) __asm__ volatile("" : "+r"(v))
#endif

#define CF_CHUNK	      64 /* control frames read at a time */
#define CF_RUN		      8	 /* … and taken by one call */
#define COMPLETE_RUN	      64 /* frames completed by one call */
/*
 * What one walk does at most, whatever a target has in its memory, and of how many fibers; see
 * walk_window.bpf.h.
 */
#define WALK_MAX_CHUNKS	      256  /* of control frames: four times the RBPF_MAX_FRAMES shown */
#define WALK_MAX_READS	      1024 /* single reads, about 0.1 ms */
#define WALK_MAX_WINDOWS      128  /* copies of values, 4 MiB: VM stacks have 1 MiB, mostly */
#define WALK_MAX_ZJIT	      (2 * RBPF_MAX_FRAMES) /* frames of ZJIT, two reads each */
#define WINDOW_WORDS	      4096		    /* values copied at a time; a power of two */
#define ME_SLOTS	      4096		    /* remembered method entries; a power of two */
#define ME_NEAR		      512 /* … and those of the frames that a stack has there; a power of two */
#define ME_NEAR_SHIFT	      5	   /* bytes of a control frame for each place of me_near[] */
#define ISEQ_SLOTS	      4096 /* remembered iseqs; a power of two */
#define REQUEST_SEEN	      128 /* remembered objects that requests are told by; a power of two */
#define LOCK_SEEN	      64  /* remembered objects that are Mutexes, or not; a power of two */
#define REQUEST_SENT	      1024 /* remembered requests that were sent; a power of two */
#define ENV_MAX_DEPTH	      16   /* nested blocks followed to their method */
#define FIBER_MAX_DEPTH	      16   /* fibers followed to the one that resumed them */

/* ep[0], vm_core.h; the same from 2.7 to 4.1-dev. See VM_FRAME_MAGIC_MASK in ruby_abi.h. */
#define VM_FRAME_MAGIC_UNUSED 0x80000000ul /* the bit of the magic that none has */
#define VM_ENV_FLAG_LOCAL     0x0002ul
#define VM_ENV_FLAG_ESCAPED   0x0004ul
#define VM_FRAME_FLAG_FINISH  0x0020ul
#define VM_FRAME_FLAG_BMETHOD 0x0040ul
#define VM_FRAME_FLAG_CFRAME  0x0080ul

/*
 * What ep[-1] carries in its low bits where it is the enclosing ep; vm_core.h, GC_GUARDED_PTR_REF()
 */
#define GC_GUARDED_PTR_BITS   3ull

#define ZJIT_RETURN_C_FRAME   1ul /* cfp->jit_return of a C frame; zjit.h, 4.1 */

/* A frame of frames[] whose me is still the ep to look it up from. Both are multiples of 8. */
#define ME_PENDING	      1ul
#define ME_TAG_MASK	      7ul

/* ep[-2], ep[-1], ep[0] */
struct walk_env {
	__u64 me_cref; /* method entry, cref, svar or 0 */
	__u64 specval; /* block handler, or the enclosing ep | 1 where LOCAL is not set */
	__u64 flags;
};

/* Where a BPF program runs. The first `contexts` of size_maps() (bpf_object.c) have a scratch. */
enum rbpf_context {
	RBPF_IN_INTERRUPT = 0, /* of a clock: may interrupt programs in a task's context */
	RBPF_IN_TASK = 1,
};

enum { ZJIT_UNKNOWN = 0, ZJIT_OFF = 1, ZJIT_ON = 2 };

#define CAPTURE_WORDS	  8192 /* blocks of one record; a power of two */
#define CAPTURE_BLOCK_MAX 16384
#define CAPTURE_ITEMS	  128  /* iseqs and method entries copied at one tick; a power of two */
#define CAPTURE_DONE	  256  /* remembered addresses of what was copied; a power of two */
#define CAPTURE_KNOWN	  1024 /* remembered iseqs and method entries; a power of two */

/* An iseq or method entry in the record that is being made, see captured. */
struct walk_capture_item {
	__u64 addr;
	__u64 value;
	__u32 slot;
	__u32 pad;
};

/* Copies of what names need; see name_capture.bpf.h. */
struct walk_capture {
	__u64 process; /* tells a process, and its program, from all others */
	__u64 nonce;   /* differs for each record, and after each object that was copied in part */
	__u64 items_nonce; /* differs for each tick */
	__u32 used;	   /* words of words[] */
	__u32 at;	   /* where in it the bytes of the last block are … */
	__u32 body;	   /* … and those of the last iseq's body */
	__u32 n_items;	   /* in items[] */
	__u32 items_left;
	__u32 shape;	  /* the next one on the chain */
	__u64 value;	  /* of the variable that was looked for */
	__u32 incomplete; /* something of this stack was not copied */
	__u32 again;	  /* … but will be tried again with the next one */
	struct walk_capture_item items[CAPTURE_ITEMS];
	__u64 done[CAPTURE_DONE];
	__u64 known[CAPTURE_KNOWN];	/* address ^ seed: captured at some time */
	struct rbpf_ring_memory record; /* the blocks follow it, as in the ring */
	__u64 words[CAPTURE_WORDS];
};

#define NATIVE_WORDS  4096 /* of the stack copied at a time; a power of two */
#define NATIVE_FRAMES 2048 /* room for those of kernel and process, and gaps; a power of two */
#define NATIVE_RULES  2048 /* remembered rules; a power of two, at most 2^24 */

/* The native walk; see native_walk.bpf.h. */
struct walk_native {
	struct rbpf_regs regs; /* of the innermost frame */
	__u64 pc, sp, fp;      /* of the frame that was reached */
	__u64 lr;	       /* arm64 */
	__u64 cfa;
	__u64 word;	       /* result of native_read() */
	__u64 tag;	       /* the next one of the thread, 0 if none */
	__u64 start;	       /* where the VM says that the stack begins; 0 if unknown */
	__u64 top;	       /* it can be read up to this address; 0 if unknown */
	__u64 seed;	       /* of the fingerprint: differs by process and epoch */
	__u64 hash;	       /* of frames[] */
	__u64 win_lo, win_hi;  /* what win[] holds, addresses [lo, hi); hi 0 is nothing */
	struct rbpf_code code; /* the ranges of the process … */
	__u64 code_key;	       /* … and what tells them from others */
	__u32 range;	       /* that the last frame was in */
	__u32 n_frames;	       /* in frames[] … */
	__u32 n_kernel;	       /* … of them the kernel's */
	__u32 end;	       /* enum rbpf_native_end */
	__u8 fp_known, lr_known;
	__u8 exact;	 /* pc is no return address */
	__u8 innermost;	 /* regs are those of this frame */
	__u32 tags_left; /* that may be read still … */
	__s32 pages_left, pad;
	struct rbpf_cfi_rule rule; /* of the frame that was reached */
	__u64 rules[NATIVE_RULES]; /* by the address: see NATIVE_RULE_BITS */
	__u64 win[NATIVE_WORDS];
	struct rbpf_ring_native record; /* the frames follow it, as in the ring */
	__u64 frames[NATIVE_FRAMES];
};

/*
 * What was read of an object: of those that requests are told by the flags of a class, the check of
 * an iseq or method entry; of a Mutex or Monitor its rb_mutex_t.
 */
struct walk_seen {
	__u64 addr; /* of the object, ^ seed; 0: none */
	__u64 value;
};

/* What is remembered of a method entry. */
struct walk_me {
	__u64 seen; /* method entry ^ seed, or ^ old_seed if it is old: it is one */
	__u64 sent; /* ^ seed: it was sent; or ^ old_seed: its check was taken, and it is old */
};

/* … and of an iseq. */
struct walk_iseq {
	__u64 seen;  /* iseq ^ seed, or ^ old_seed if it is old: its check was taken … */
	__u64 check; /* … and is this; 0: it is not known */
};

/* What the collector was doing when the stack was sampled. */
struct walk_gc {
	__u64 era;	     /* 0 if unknown */
	__u64 major;	     /* rbpf_gc_major() */
	__u32 flags;	     /* rb_objspace_t.flags; 0 if unknown */
	__u32 in_transition; /* the era may be the next one: RBPF_STACK_GC_TRANSITION */
	__u32 of_several; /* only the flags are known, as each of several ractors has an objspace:
			     rbpf_layout.gc_single … */
	__u32 unknown;	  /* … or not even these */
};

/* Of the stack that is sent, Ruby or native: see checkpoints.bpf.h. */
struct walk_checkpoints {
	__u64 hash;    /* of the outermost frames, as far as they were taken; 0: it has none */
	__u64 outer;   /* the innermost one that was sent … */
	__u32 n_outer; /* … which has so many frames; 0: none */
	__u32 n;       /* in v[]: those that leave a frame inside of them */
	__u32 n_hold;  /* of these, those whose frames are durable */
	__u32 pad;
	__u64 v[RBPF_MAX_CHECKPOINTS];
};

/* The last wait of a thread; since 0: it is over. The members are as in struct rbpf_ring_wait. */
struct wait {
	__u64 since;
	__u64 woken;
	__u64 stack, native, request;
	struct rbpf_span span;
	__u64 runtime; /* of the thread by the kernel's account, when the wait began */
	__u64 gvl;     /* RBPF_WAIT_GVL, RBPF_WAIT_HELD: of which struct gvl; 0: it is not known */
	__u64 th;      /* the rb_thread_t; 0: it is not known */
	__u64 lock;    /* RBPF_WAIT_LOCK: the rb_mutex_t that it waits for; 0: it is not known */
	__u64 held;  /* the one that the thread held when it left the CPU, if others have waited for
			it; or 0 */
	__u64 ready; /* RBPF_WAIT_LOCK: when it was first seen to wait for the GVL; 0: it was not */
	__u64 charged; /* … and until when who had that was charged with it */
	__u64 args;    /* syscall_mark() of the system call that it waited in last; 0: of none */
	__u32 tgid;
	__u16 wait;
	__u16 status;
	__u16 flags;
	__u16 in_call; /* what it waited for there … */
	/* … and what is behind the descriptor; the last member, see WAIT_COPIED. */
	struct rbpf_waits_on on;
};

/*
 * The scratch of a CPU, of programs that run in one context. What each sample needs stands close
 * together: a page that was not touched lately costs as much as six lines of one that was.
 */
struct walk {
	struct rbpf_layout layout;
	struct rbpf_tls context; /* as in struct rbpf_proc */
	__u64 seed;	 /* of the fingerprint: differs by process, epoch and state of the GC */
	__u32 spread;	 /* differs by process: of forked ones, objects have the same addresses */
	__u32 periods;	 /* that the sample stands for */
	__u64 old_seed;	 /* differs by process and major collection; 0 if that is not known */
	__u64 ec;	 /* of the fiber that is walked */
	__u64 th;	 /* rb_thread_t; set with … */
	__u64 th_ec;	 /* … its current EC … */
	__u64 th_ractor; /* … and its ractor, 0 if there are none in this Ruby */
	__u64 stack_lo;	 /* the VM stack, addresses [lo, hi) */
	__u64 stack_hi;
	__u64 sp;     /* of the native stack, if in user mode and outside the VM's code; else 0 */
	__u64 cfp;    /* next frame to read */
	__u64 cf_top; /* the innermost frame of this fiber … */
	__u64 cf_own; /* … and of the one that runs */
	__u64 cf_end; /* address of the last slot, which is no frame */
	__u64 hash;
	__u64 win_lo; /* what win[] holds, addresses [lo, hi); hi 0 is nothing */
	__u64 win_hi;
	struct walk_env env; /* result of walk_env_read() */
	__u64 zjit_frame[2]; /* pc, iseq: result of walk_zjit_frame() */
	__u64 gvl_next;	     /* result of gvl_check_node() */
	__u64 lock_held;     /* result of lock_send() */
	__u32 gvl_unread;    /* whether gvl_search() could not read all of the list */
	__u32 n_frames;	     /* in frames[] */
	__u32 first_frame;   /* of this fiber, in frames[] */
	__u32 n_cut;	     /* frames left out in the middle of this fiber's stack */
	__u32 max_frames;    /* RBPF_MIN_FRAMES to RBPF_MAX_FRAMES */
	__u32 reads_left;    /* of WALK_MAX_READS … */
	__u32 windows_left;
	__u32 chunks_left;
	__u32 zjit_left;
	__u32 n_words;	     /* at frames[], once they are packed: stack_pack() */
	__u32 n_durable;     /* outermost frames that stay what they are: frame_is_durable() */
	__u32 lasting;	     /* checkpoints outlast the era: stack_lasts() */
	__u32 n_new;	     /* frames that are to be read: frame_is_new() */
	__u8 zjit_on;	     /* ZJIT_UNKNOWN until it matters */
	__u8 request_wanted; /* no frame with a rule was found yet; 0 also if there are no rules */
	__u8 request_found;
	__u8 wake_owed;			/* rbpf is to be woken … */
	__u64 woken_ns;			/* … which owed_wakeup_flags() did last then */
	__u32 request_frame;		/* index in frames[] of the frame with the rule … */
	__u32 request_class_new;	/* its class was not remembered … */
	__u64 request_self, request_ep; /* … and what its control frame says */
	__u64 request_class_flags;	/* … and its flags */
	struct rbpf_request_rule request_rule;
	struct rbpf_request_filter request_filter;
	struct rbpf_ring_request request;
	__u64 gc_words[RBPF_GC_WORDS]; /* room for gc_read() */
	struct walk_gc gc;	       /* here, because the BPF stack is short */
	__u64 ec_words[RUBY_EC_BYTES / 8];
	__u64 th_words[RUBY_TH_WORDS];	/* of the thread, with its EC and its ractor */
	__u64 text[RBPF_LABEL_WORDS];	/* of a label */
	struct rbpf_ring_sample sample; /* here, because the BPF stack is short … */
	struct wait wait;		/* … as is this: room for wait_note() */
	struct walk_checkpoints checkpoints;
	struct walk_seen request_seen[REQUEST_SEEN];
	struct walk_seen lock_seen[LOCK_SEEN];
	__u64 me_near[ME_NEAR]; /* as walk_me.seen, by the place of the control frame */
	__u8 cf[CF_CHUNK * RUBY_CF_SIZE_MAX];
	__u64 win[WINDOW_WORDS];
	struct walk_me mes[ME_SLOTS];
	struct walk_iseq iseqs[ISEQ_SLOTS];
	__u64 request_sent[REQUEST_SENT]; /* fingerprints of requests that were sent from here */
	struct walk_capture capture;
	struct walk_native native;
	struct rbpf_ring_stack record; /* the frames follow it, as in the ring */
	struct rbpf_frame frames[RBPF_MAX_FRAMES +
				 RBPF_MAX_CHECKPOINTS * sizeof(__u64) / sizeof(struct rbpf_frame)];
};

/* The word at @off of the EC that was read. */
static __always_inline __u64 ec_word(const struct walk *w, __u32 off)
{
	return w->ec_words[off / 8 & (RUBY_EC_BYTES / 8 - 1)];
}

#endif
