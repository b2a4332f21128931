/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack walk of the BPF programs (bpf/ruby_walk.bpf.h) in a test's hands: what src/ruby/walk.c
 * hides (counters, the caches that outlive a walk, the epoch) is open here, and each read is
 * checked to go to a buffer that has room for it.
 */
#ifndef RBPF_TESTS_WALK_HOST_H
#define RBPF_TESTS_WALK_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rbpf_abi.h"
#include "target/memory.h"

struct walk;

/*
 * One for all files, each test being a process of its own: it is large, and LSan searches all of it
 * in each.
 */
struct walk_host {
	const struct memory *mem;
	struct walk *walk;
	uint64_t counters[RBPF_COUNTERS];
	size_t reads;
	size_t walk_reads;		    /* of them before what was put off was completed */
	size_t bytes;			    /* read in all */
	__u64 captured[65536];		    /* what was sent of objects, by slot */
	__u64 checkpoints[RBPF_SENT_SLOTS]; /* that were sent, by their low bits */
	bool ring_full;
	_Alignas(8) uint8_t sent[256 << 10]; /* records of capture_stack() … */
	size_t n_sent;			     /* … in bytes */
	size_t n_records;
	uint64_t request_iseq; /* has this rule */
	struct rbpf_request_rule request_rule;
};
struct walk_host walk_host __attribute__((common));

static inline int walk_host_read(void *dst, size_t size, uint64_t addr);
static inline int walk_host_send(const void *rec, size_t size);
static inline const struct rbpf_request_rule *walk_host_rule(uint64_t iseq);

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline		   static __attribute__((noinline))
#define walk_state(walk_id)	   ((void)(walk_id), walk_host.walk)
#define walk_read(dst, size, addr) walk_host_read((dst), (size), (addr))
#define walk_count(counter)	   (walk_host.counters[(counter)]++)
#define walk_request_rule(w, iseq) ((void)(w), walk_host_rule(iseq))

#define capture_slot(slot)	   (&walk_host.captured[(slot)])
#define capture_send(rec, size)	   walk_host_send((rec), (size))
#define capture_has_room()	   (!walk_host.ring_full)

#define checkpoint_slot(i)	   (&walk_host.checkpoints[(i)])

#include "frame_words.bpf.h"
#include "gc.bpf.h"
#include "name_capture.bpf.h"

static inline const struct rbpf_request_rule *walk_host_rule(uint64_t iseq)
{
	return iseq == walk_host.request_iseq ? &walk_host.request_rule : NULL;
}

/* True if [dst, dst + size) is in @member, which has @room bytes, and nowhere else. */
static inline bool walk_host_inside(const uint8_t *dst, size_t size, const void *member,
				    size_t room)
{
	const uint8_t *start = member;

	return dst >= start && dst <= start + room && size <= (size_t)(start + room - dst);
}

static inline int walk_host_read(void *dst, size_t size, uint64_t addr)
{
	const struct walk *w = walk_host.walk;

	/* What is not in the scratch is on the stack, which ASan looks after. */
	if (walk_host_inside(dst, 0, w, sizeof(*w)) &&
	    !walk_host_inside(dst, size, w->cf, sizeof(w->cf)) &&
	    !walk_host_inside(dst, size, w->win, sizeof(w->win)) &&
	    !walk_host_inside(dst, size, &w->env, sizeof(w->env)) &&
	    !walk_host_inside(dst, size, w->ec_words, sizeof(w->ec_words)) &&
	    !walk_host_inside(dst, size, w->th_words, sizeof(w->th_words)) &&
	    !walk_host_inside(dst, size, w->zjit_frame, sizeof(w->zjit_frame)) &&
	    !walk_host_inside(dst, size, w->capture.words, sizeof(w->capture.words)) &&
	    !walk_host_inside(dst, size, w->request.text, sizeof(w->request.text)) &&
	    !walk_host_inside(dst, size, w->text, sizeof(w->text))) {
		fprintf(stderr, "a read of %zu bytes leaves its buffer\n", size);
		abort();
	}
	walk_host.reads++;
	walk_host.bytes += size;
	return memory_read(walk_host.mem, addr, dst, size);
}

/* Let another epoch or era begin; @n tells it from others. */
static inline void walk_host_seed(struct walk *w, uint64_t n)
{
	w->seed = rbpf_mix(0x1234567890abcdefull, n);
}

/* A scratch as the BPF programs have it: zeroed once, then used by walk after walk. */
static inline struct walk *walk_host_new(const struct rbpf_layout *layout, uint32_t max_frames)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->layout = *layout;
	w->max_frames = max_frames;
	walk_host_seed(w, 0);
	return w;
}

/* Walk, and complete what was put off, as the tick program does for a stack that it sends. */
static inline int walk_host_run(struct walk *w, const struct memory *mem, uint64_t ec)
{
	int status;

	walk_host.mem = mem;
	walk_host.walk = w;
	walk_host.reads = walk_host.bytes = 0;
	memset(walk_host.counters, 0, sizeof(walk_host.counters));
	status = walk_ec(w, 0, ec);
	walk_host.walk_reads = walk_host.reads;
	walk_complete(0);
	return status;
}

/*
 * What send_stack() does of the frames that are in w->frames. @seed: of the checkpoints. Returns
 * how many new ones stand behind the words of the frames that are to be sent.
 */
static inline uint32_t walk_host_checkpoints(struct walk *w, uint64_t seed)
{
	uint32_t n;

	walk_host.walk = w;
	w->lasting = stack_lasts(w);
	checkpoint_begin(w, 0, seed);
	walk_complete(0);
	n = stack_pack(w, 0);
	if (n)
		checkpoint_note(0);
	return n;
}

/* The same of what send_native() does of the words in w->native.frames. */
static inline uint32_t walk_host_native_checkpoints(struct walk *w, uint64_t seed)
{
	uint32_t n;

	walk_host.walk = w;
	checkpoint_begin_native(w, 0, seed);
	n = (uint32_t)checkpoint_append_native(0);
	if (n)
		checkpoint_note(0);
	return n;
}

/* Put a record of copied memory where the ring would be. */
static inline int walk_host_send(const void *rec, size_t size)
{
	if (walk_host.ring_full || size > sizeof(walk_host.sent) - walk_host.n_sent)
		return -1;
	memcpy(walk_host.sent + walk_host.n_sent, rec, size);
	walk_host.n_sent += size;
	walk_host.n_records++;
	return 0;
}

/* Let nothing have been copied so far, in any process. */
static inline void walk_host_forget(void)
{
	memset(walk_host.captured, 0, sizeof(walk_host.captured));
}

/*
 * Copy what names of the frames that were walked last need, as the tick program does before it
 * sends them, in era @era: the records are in walk_host.sent.
 */
static inline void walk_host_capture(struct walk *w, uint64_t process, uint64_t era, uint32_t flags)
{
	walk_host.n_sent = walk_host.n_records = 0;
	w->record.gc_era = era;
	w->record.flags = flags;
	w->capture.again = 0;
	capture_stack(w, 0, process);
}

#endif
