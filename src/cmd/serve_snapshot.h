/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the process that samples gives to the one that serves (serve/link.h): which seconds the
 * window has, and recordings of a range of them, in memory.
 *
 * A short one is written at once: after a fork, each page that this process changes would cost a
 * page fault, which takes longer. A long one is written by a fork of this process, which has the
 * window as it was then, while this one samples on. There is one at a time. Not thread-safe.
 */
#ifndef RBPF_CMD_SERVE_SNAPSHOT_H
#define RBPF_CMD_SERVE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/link.h"

struct sampling;
struct window;

struct serve_snapshots {
	/* The caller's, not owned: */
	const struct sampling *sampling;
	struct window *window;
	int channel;			      /* to the serving process */
	uint64_t start_ns, start_realtime_ns; /* when second 0 of the window began */
	/* The snapshot that is being written: */
	pid_t pid; /* of who writes it; -1: there is none */
	int pidfd; /* of the same; -1: none, or it could not be had; owned */
	int memfd; /* owned; -1: none */
	struct serve_told told;
	uint64_t begun_ns;

	uint64_t not_before_ns; /* CLOCK_MONOTONIC: when the next one may be begun */
	uint64_t told_seconds;	/* up to which second the other process was told of */
};

#define SERVE_SNAPSHOTS_INIT                                                                       \
	{                                                                                          \
		.channel = -1, .pid = -1, .pidfd = -1, .memfd = -1                                 \
	}

/* End who still writes. */
void serve_snapshots_deinit(struct serve_snapshots *s);

/* Tell which seconds there are, if another one has come; or with @ended that none will follow. */
void serve_snapshots_tell_seconds(struct serve_snapshots *s, bool ended);

/*
 * Send the snapshot that has been written, or begin the next one that is asked for; @now: of
 * CLOCK_MONOTONIC. To be called often. Returns 0, or -errno: the serving process is gone.
 */
int serve_snapshots_poll(struct serve_snapshots *s, uint64_t now);

/*
 * The descriptor that becomes readable when serve_snapshots_poll() has something to do; -1: only
 * time brings that. A question that cannot be answered yet stays in the channel, which is not
 * waited for meanwhile: it would be readable all the time. *@timeout_ms is lowered to when one may
 * be. Another one each time, and not the caller's.
 */
int serve_snapshots_fd(const struct serve_snapshots *s, uint64_t now, int *timeout_ms);

#endif
