/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages between the process that has the samples and the one that serves them, over a
 * SOCK_SEQPACKET socket (worker/channel.h).
 *
 * The serving process asks for a snapshot, a recording of a range of seconds, and gets one answer
 * with descriptors of it. The other process says each second which seconds it has. Both ends are
 * one program, so numbers are as they are in memory; but the serving process talks with anybody,
 * so all that it asks is checked.
 */
#ifndef RBPF_SERVE_LINK_H
#define RBPF_SERVE_LINK_H

#include <stdint.h>

/*
 * A recording that is being rendered has a file offset of its own, so it comes as one descriptor
 * for each render that may run at a time. CHANNEL_MAX_FDS is as many.
 */
#define SERVE_RENDERS 2

/* To the process with the samples: a snapshot of the seconds from @from on and before @to. */
struct serve_ask {
	uint64_t from, to;
};

enum serve_says {
	SERVE_SECONDS,	/* from and to: the seconds that can be asked for */
	SERVE_SNAPSHOT, /* the answer to a struct serve_ask */
	SERVE_ENDED,	/* like SERVE_SECONDS, and none will follow them */
};

struct serve_told {
	uint32_t says;	   /* enum serve_says */
	int32_t result;	   /* SERVE_SNAPSHOT: 0 and SERVE_RENDERS descriptors, or -errno */
	uint64_t from, to; /* SERVE_SNAPSHOT: those that it has: not more than was asked for */
	struct serve_ask asked;
};

#endif
