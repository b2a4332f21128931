/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where samples go: definitions of what they refer to, and the samples themselves. Whoever takes
 * samples (sample/, native/) knows no more of it. recorder.h writes a recording, profile_sink.h
 * makes a profile in memory.
 *
 * An implementation puts struct sink first in its own struct, fills in the operations, and hands
 * out a pointer to it. The ids that it returns are those of profile.h. Not thread-safe.
 */
#ifndef RBPF_PROFILE_SINK_H
#define RBPF_PROFILE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

struct err;
struct sink;

/* Each is described at the function that calls it. Those from span on may be NULL. */
struct sink_ops {
	int (*string)(struct sink *s, const char *text, size_t len, uint32_t *ret);
	int (*process)(struct sink *s, const struct profile_process *def, uint32_t *ret);
	int (*thread)(struct sink *s, uint32_t process, uint32_t tid, uint32_t name, uint32_t *ret);
	int (*module)(struct sink *s, const struct profile_module *def, uint32_t *ret);
	int (*frame)(struct sink *s, const struct profile_frame *def, uint32_t *ret);
	int (*stack)(struct sink *s, uint32_t parent, uint32_t frame, uint32_t *ret);
	int (*request)(struct sink *s, uint32_t thread, const struct profile_request_kind *kind,
		       uint32_t *ret);
	int (*process_update)(struct sink *s, uint32_t process, const struct profile_process *def);
	int (*process_exit)(struct sink *s, uint32_t process, uint64_t ts, int status);
	int (*thread_name)(struct sink *s, uint32_t thread, uint32_t name);
	int (*thread_cpu)(struct sink *s, uint32_t thread, uint64_t cpu_ns);
	int (*sample)(struct sink *s, const struct profile_sample *sample);
	int (*lost)(struct sink *s, const struct profile_lost *lost);
	int (*span)(struct sink *s, const struct profile_span *span, uint32_t *ret);
	int (*flush)(struct sink *s);
	void (*thread_gone)(struct sink *s, uint32_t thread);
	void (*process_gone)(struct sink *s, uint32_t process);
	size_t (*bytes)(const struct sink *s);
	void (*forget)(struct sink *s);
	bool (*forget_stacks)(struct sink *s, size_t keep);
	int (*error)(const struct sink *s, struct err *err);
};

struct sink {
	const struct sink_ops *ops;
};

/*
 * Definitions. All return 0, -ENOMEM, -E2BIG (there are RBPF_FILE_MAX_IDS already, or the stack is
 * deeper than RBPF_FILE_MAX_DEPTH), -EINVAL (an id in @def was not returned by this sink), or the
 * failure that sink_error() tells; *@ret is written only on success. But for processes, threads and
 * requests, of which each call makes a new one, equal definitions have equal ids.
 *
 * sink_string() sanitises, and cuts what is longer than RBPF_FILE_MAX_STRING.
 */
int sink_string(struct sink *s, const char *text, size_t len, uint32_t *ret);
int sink_process(struct sink *s, const struct profile_process *def, uint32_t *ret);
int sink_thread(struct sink *s, uint32_t process, uint32_t tid, uint32_t name, uint32_t *ret);
int sink_module(struct sink *s, const struct profile_module *def, uint32_t *ret);
int sink_frame(struct sink *s, const struct profile_frame *def, uint32_t *ret);
int sink_stack(struct sink *s, uint32_t parent, uint32_t frame, uint32_t *ret);
int sink_request(struct sink *s, uint32_t thread, const struct profile_request_kind *kind,
		 uint32_t *ret);
/* 0, which is no span, of a sink that keeps none. */
int sink_span(struct sink *s, const struct profile_span *span, uint32_t *ret);

/*
 * Changes to what was defined, for all of the profile. The exit of a process is taken from
 * sink_process_exit() alone; @status is what wait(2) gives, -1 if unknown.
 */
int sink_process_update(struct sink *s, uint32_t process, const struct profile_process *def);
int sink_process_exit(struct sink *s, uint32_t process, uint64_t ts, int status);
int sink_thread_name(struct sink *s, uint32_t thread, uint32_t name);
int sink_thread_cpu(struct sink *s, uint32_t thread, uint64_t cpu_ns);

/*
 * Samples, each of an event that the sink was made for and of a request of its own thread or none
 * (else -EINVAL), and losses.
 */
int sink_sample(struct sink *s, const struct profile_sample *sample);
int sink_lost(struct sink *s, const struct profile_lost *lost);

/*
 * Write what has waited for a second; to be called a few times a second, also when nothing happens.
 */
int sink_flush(struct sink *s);

/*
 * Nothing will be told of @thread any more, or of @process, all of whose threads are gone: what the
 * sink needs to take samples of it may be forgotten. They stay what they are, and a process may
 * still be the parent of one to come.
 */
void sink_thread_gone(struct sink *s, uint32_t thread);
void sink_process_gone(struct sink *s, uint32_t process);

/* Bytes of memory that sink_forget() would give back; 0: it would not give any back. */
size_t sink_bytes(const struct sink *s);

/*
 * Forget what was defined, if that gives memory back: what is defined again may get new ids. Those
 * from before stay valid, but a stack from before is the parent of no new one (-EINVAL).
 */
void sink_forget(struct sink *s);

/*
 * The same of the stacks alone, if more than @keep are remembered. Returns whether they were
 * forgotten.
 */
bool sink_forget_stacks(struct sink *s, size_t keep);

/* The first failure that made the sink useless, whose message is for people, or 0. */
int sink_error(const struct sink *s, struct err *err);

#endif
