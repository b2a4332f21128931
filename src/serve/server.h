/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that serves: HTTP by libmicrohttpd, in one thread that waits for nothing but events.
 *
 * It has a listening socket, and a recording or a channel to who samples; no privileges, no files,
 * no names of any, and few system calls (confine.h). What it is asked for it has others make
 * (work.h).
 */
#ifndef RBPF_SERVE_SERVER_H
#define RBPF_SERVE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/guard.h"
#include "serve/link.h"
#include "serve/render.h"

struct buf;

/* Limits. */
#define SERVE_CONNECTIONS	 64 /* at a time; a further one waits, then is closed */
#define SERVE_CONNECTIONS_OF_ONE 48 /* of one address: all that come through a tunnel have one */
#define SERVE_HEADER_BYTES	 (16u << 10)
#define SERVE_IDLE_S		 20 /* that nothing comes or goes */
#define SERVE_REQUEST_S		 20 /* until a request has come, also if it comes byte by byte */
#define SERVE_ANSWER_BYTES_PER_S (16u << 10) /* the least that a client must take, after 20 s */

struct serve_options {
	struct serve_token token;
	int listen;	   /* a socket that listens */
	bool anywhere;	   /* it is not the loopback's: serve_host_is_ours() */
	const char *name;  /* of this machine */
	const char *title; /* what is served, for people; valid UTF-8 */
	const char *event; /* shown if none is chosen: EVENT_CPU, or EVENT_WALL; of others … */
	bool waits;	   /* … there is no choice: only that of what has waits is offered */
	const char *svg_policy; /* Content-Security-Policy of flame graphs */
	serve_run_fn *run;	/* runs a command, in a process of its own, with: */
	void *run_arg;
	int channel;		  /* live: where snapshots come from; else -1 */
	int files[SERVE_RENDERS]; /* else the recording */
	uint64_t seconds;	  /* of the recording, rounded up */
};

/*
 * Fork the process. What @opts names by descriptors stays the caller's. *@ret is a child of this
 * process. Returns 0 or -errno.
 */
int serve_start(const struct serve_options *opts, pid_t *ret);

#endif
