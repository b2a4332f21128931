/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of DATA chunks, each with its fields in the order of rbpf-file(5): what
 * record_decoder.h reads, but for STRING (record_write_string()).
 *
 * It checks nothing: ids and numbers must be such as the file may have, which the recorder sees to.
 * Each function appends one record, and returns 0 or the failure that the writer keeps. Not
 * thread-safe.
 */
#ifndef RBPF_PROFILE_RECORD_ENCODER_H
#define RBPF_PROFILE_RECORD_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/record_writer.h"

int record_write_process(struct record_writer *w, const struct profile_process *def);
int record_write_process_update(struct record_writer *w, uint32_t process,
				const struct profile_process *def);
/* @status: of wait(2); -1 if it is not known. */
int record_write_process_exit(struct record_writer *w, uint32_t process, uint64_t ts, int status);

int record_write_thread(struct record_writer *w, uint32_t process, uint32_t tid, uint32_t name);
int record_write_thread_name(struct record_writer *w, uint32_t thread, uint32_t name);
int record_write_thread_cpu(struct record_writer *w, uint32_t thread, uint64_t cpu_ns);

/* The samples of @thread that follow are of request or span @id; 0: of none. */
int record_write_thread_request(struct record_writer *w, uint32_t thread, uint32_t id);
int record_write_thread_span(struct record_writer *w, uint32_t thread, uint32_t id);

int record_write_module(struct record_writer *w, const struct profile_module *def);
int record_write_frame(struct record_writer *w, const struct profile_frame *def);
int record_write_stack(struct record_writer *w, uint32_t parent, uint32_t frame);
int record_write_request(struct record_writer *w, uint32_t thread,
			 const struct profile_request_kind *kind);
int record_write_span(struct record_writer *w, const struct profile_span *span);

/* @with_event: say of which event it is. */
int record_write_sample(struct record_writer *w, const struct profile_sample *sample,
			bool with_event);
int record_write_lost(struct record_writer *w, const struct profile_lost *lost);

#endif
