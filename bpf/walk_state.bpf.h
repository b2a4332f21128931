/* SPDX-License-Identifier: GPL-2.0-only */
/* What the Ruby walk (ruby_walk.bpf.h) works on, and the facts of the VM it relies on. */
#ifndef RBPF_WALK_STATE_BPF_H
#define RBPF_WALK_STATE_BPF_H

#include "rbpf_abi.h"

#define CF_CHUNK	      64   /* control frames read at a time */
#define CF_MAX_SIZE	      64   /* sizeof(rb_control_frame_t), at most */
#define CF_MAX_CHUNKS	      1024 /* bounds the loop: 65,536 frames, beyond any VM stack in use */
#define WALK_MAX_READS	      1024 /* single reads a stack, about 0.1 ms; see read_allowed() */
#define WINDOW_WORDS	      4096 /* values copied at a time; a power of two */
#define ME_SLOTS	      1024 /* remembered method entries; a power of two */
#define ENV_MAX_DEPTH	      16   /* nested blocks followed to their method */

/* ep[0], vm_core.h VM_FRAME_MAGIC_* and VM_FRAME_FLAG_*; 2.7 to 4.1-dev */
#define VM_FRAME_MAGIC_MASK   0x7fff0001ul
#define VM_FRAME_MAGIC_METHOD 0x11110001ul
#define VM_FRAME_MAGIC_CFUNC  0x55550001ul
#define VM_FRAME_MAGIC_DUMMY  0x79990001ul
#define VM_ENV_FLAG_LOCAL     0x0002ul
#define VM_FRAME_FLAG_BMETHOD 0x0040ul
#define VM_FRAME_FLAG_CFRAME  0x0080ul

/* RBasic.flags of an imemo: internal/imemo.h; 2.7 to 4.1-dev */
#define T_MASK		      0x1ful
#define T_IMEMO		      0x1aul
#define IMEMO_TYPE_SHIFT      12
#define IMEMO_TYPE_MASK	      0xful
#define IMEMO_SVAR	      2ul
#define IMEMO_MENT	      6ul

/* The parts of rb_control_frame_t that are read; vm_core.h, same offsets in all versions. */
struct walk_cf {
	__u64 pc;
	__u64 sp;
	__u64 iseq;
	__u64 self;
	__u64 ep;
};

/* ep[-2], ep[-1], ep[0] */
struct walk_env {
	__u64 me_cref; /* method entry, cref, svar or 0 */
	__u64 specval; /* block handler, or the enclosing ep | 1 where LOCAL is not set */
	__u64 flags;
};

/* The scratch of one CPU. */
struct walk {
	struct rbpf_layout layout;
	__u64 epoch;	/* also the seed of the fingerprint: differs by process */
	__u64 stack_lo; /* the VM stack, addresses [lo, hi) */
	__u64 stack_hi;
	__u64 cfp;    /* next frame to read */
	__u64 cf_end; /* address of the last slot, which is no frame */
	__u64 hash;
	__u64 win_lo; /* what win[] holds, addresses [lo, hi); hi 0 is nothing */
	__u64 win_hi;
	struct walk_env env; /* result of walk_env_read() */
	__u32 n_frames;	     /* in frames[] */
	__u32 n_cut;	     /* left out between the innermost frames and the root end */
	__u32 max_frames;    /* RBPF_MIN_FRAMES to RBPF_MAX_FRAMES */
	__u32 reads_left;
	__u8 cf[CF_CHUNK * CF_MAX_SIZE];
	__u64 win[WINDOW_WORDS];
	__u64 me_seen[ME_SLOTS];      /* method entry ^ epoch */
	struct rbpf_rec_stack record; /* the frames follow it, as in the ring */
	struct rbpf_frame frames[RBPF_MAX_FRAMES];
};

#endif
