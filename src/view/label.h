/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Labels of processes, threads, frames and their code in views and exports.
 */
#ifndef RBPF_VIEW_LABEL_H
#define RBPF_VIEW_LABEL_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct profile;
struct profile_frame;

/*
 * Append the short name of a process (by index): the last part of the path of the program in its
 * command line, e.g. "puma" of "puma: cluster worker 0: 77 [shop]" and "ruby" of
 * "/usr/bin/ruby bin/rails s"; else that of its executable; else "[unknown]". Never empty.
 */
void label_process(const struct profile *p, uint32_t process, struct buf *out);

/*
 * Append its pid, and where it has another one of its own: "pid 42", "pid 42, 7 inside" (in another
 * pid namespace), "pid 42, 7 in 3f2a9c1b0d4e", "pid 42, in 3f2a9c1b0d4e" (a container that shares
 * rbpf's).
 */
void label_pid(const struct profile *p, uint32_t process, struct buf *out);

/*
 * Append a container (a string: its id or name) as people write it: the first 12 of 64 hex digits,
 * or the whole name; "[no container]" for "".
 */
void label_container(const struct profile *p, uint32_t container, struct buf *out);

/* How much of the id or name @id of a container that is. */
size_t label_container_len(const char *id);

/* Append a version of Ruby (a string), "[no Ruby]" for "". */
void label_ruby(const struct profile *p, uint32_t version, struct buf *out);

/* Who ended a wait and is no thread of the recording; where that is one of processes. */
#define LABEL_NOT_RECORDED	  "[not a recorded thread]"
#define LABEL_NO_RECORDED_PROCESS "[not a recorded process]"

/*
 * Append the name of a thread (by index), "[unnamed]" if it has none; LABEL_NOT_RECORDED of the
 * index behind all threads.
 */
void label_thread(const struct profile *p, uint32_t thread, struct buf *out);

/* The name of a frame, "[unnamed]" if it is empty. */
const char *label_frame(const struct profile *p, uint32_t frame);

/* Append the line of execution of a frame: "12", or "~12" if it is approximate. */
void label_line(const struct profile_frame *frame, struct buf *out);

/* The part of @path behind its last '/'. */
const char *label_basename(const char *path);

/*
 * Where a frame's code comes from: what a reader wants to tell apart at first sight. Ruby code is
 * told apart by its path alone.
 */
enum code_origin {
	ORIGIN_APP,    /* Ruby code of the program itself */
	ORIGIN_GEM,    /* … of gems (gem.h) */
	ORIGIN_STDLIB, /* … of Ruby's standard library */
	ORIGIN_CORE,   /* … that is part of the interpreter: <internal:…> */
	ORIGIN_CFUNC,  /* methods written in C */
	ORIGIN_NATIVE,
	ORIGIN_GC,
	ORIGIN_KERNEL,
	ORIGIN_FIBER,	 /* what stands between the stacks of two fibers */
	ORIGIN_UNKNOWN,	 /* frames that were cut or could not be named */
	ORIGIN_GAP,	 /* what stands for native frames that are missing */
	ORIGIN_RUNNABLE, /* a thread waited: for a CPU … */
	ORIGIN_GVL,	 /* … the GVL, or did so while it held that */
	ORIGIN_LOCK,
	ORIGIN_IO, /* a file, the network, a pipe, a page of memory */
	ORIGIN_SLEEP,
	ORIGIN_WAIT, /* anything else */
	ORIGIN_IDLE,
	ORIGIN_NOT_RECORDED, /* who ended a wait is in no process that is recorded */
	ORIGIN_COUNT,
};

/* The word of the command line, "gems"; NULL past the last. */
const char *label_origin_word(size_t origin);

enum code_origin label_origin(const struct profile *p, uint32_t frame);

/*
 * Append what the frame's code is packaged in: "activerecord-7.1.3" for a gem, "ruby stdlib",
 * "ruby core" (also for C functions without a module), "libz.so.1", "kernel", "gc", "fiber", "app",
 * "not recorded".
 */
void label_package(const struct profile *p, uint32_t frame, struct buf *out);

#endif
