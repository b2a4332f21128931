/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread does, as far as that is known: what the kernel says of it, and the method that it
 * waits in. Nothing is concluded from a stack that is of another time than the state.
 */
#ifndef RBPF_DUMP_DOING_H
#define RBPF_DUMP_DOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct dump_frame;

struct dump_doing {
	char state;	     /* as /proc/PID/stat has it; 0: it ended */
	uint64_t switches;   /* how often it had left a CPU */
	uint64_t for_ns;     /* how long it is so: on a CPU, queued, or off both; 0: not known */
	bool on_cpu;	     /* 'R': it was seen on a CPU */
	bool queued;	     /* 'R': it was on none, all the time */
	uint32_t kept;	     /* enum rbpf_kept: the rest is of when that began */
	bool waits_for_gvl;  /* only if that is known */
	bool still;	     /* it did not run: the rest is of its stack */
	const char *method;  /* that it waits in: the label of a frame; NULL if that is not known */
	const char *syscall; /* NULL if that is not known */
	bool sleeps;	     /* the method is one that only sleeps */
	bool idle;	     /* it waits for something to do, so far as the method tells */
};

/*
 * Whether the frame is of a method that comes with Ruby and is written in Ruby, around a function
 * in C that has no frame.
 */
bool dump_frame_is_internal(const struct dump_frame *f);

/*
 * Fill in what follows from the frames, innermost first, if @d->still; @d has the rest. What it
 * points to is the frames'.
 */
void dump_doing_conclude(struct dump_doing *d, const struct dump_frame *frames, size_t n);

/* The word of machine output: "running", "sleeping", …. */
const char *dump_doing_state(const struct dump_doing *d);

/* Append it in words for people: "waits in Thread::Queue#pop". */
void dump_doing_add(struct buf *out, const struct dump_doing *d);

#endif
