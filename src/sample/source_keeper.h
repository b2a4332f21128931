/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps source files of the recorded processes in the recording: those that have samples, the
 * hottest first (source_heat.h), each once for each root that processes have.
 *
 * A file is read soon after its first sample, for a process may end, and its root with it; a few at
 * a time, so that sampling does not wait. The file of a process that ended before is read only if
 * it had rbpf's own root; what is not known of it by then is dropped, as is a process whose files
 * have been read. Files that are too large, binary, of other types, or that the target's
 * user may not read (target_file.h) are left out, and so is what has no room (rbpf_file.h). Nothing
 * here is a failure of the recording: what is not kept is not there.
 *
 * Not thread-safe.
 */
#ifndef RBPF_SAMPLE_SOURCE_KEEPER_H
#define RBPF_SAMPLE_SOURCE_KEEPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"

struct file_worker;
struct recorder;

/* A process as it was when it was first looked at. */
struct source_process {
	uint32_t id; /* in the recording */
	uid_t uid;   /* its real user; -1 if not known */
	char *root;  /* mount namespace and root directory, as /proc tells them; NULL: not known;
			owned */
	char *cwd;   /* within its root, for relative paths; "" if not known; owned */
};

/* Files that were looked for; beyond so many they are forgotten, and looked for again. */
#define SOURCE_TRIED_MAX 65536

struct source_keeper {
	struct source_process *processes; /* by id; owned */
	size_t n, cap;
	uint32_t next_id;    /* processes before it were looked at */
	char *own_root;	     /* rbpf's, as of a process; NULL before the first one; owned */
	struct intern tried; /* root and path of the files that were looked for */
	size_t n_seen;	     /* files of the source_heat: whether they can be read was looked at */
	struct intern kept;  /* path, length and checksum of what is in the recording */
	uint64_t next_ns;    /* when the next turn is due, CLOCK_MONOTONIC */
};

void source_keeper_deinit(struct source_keeper *k);

/* Look at new processes, and read the hottest file that was not read yet. @now: CLOCK_MONOTONIC. */
void source_keeper_turn(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
			uint64_t now);

/* Sampling has ended: read the files that are left, for at most a second. */
void source_keeper_finish(struct source_keeper *k, struct recorder *rec,
			  struct file_worker *worker);

#endif
