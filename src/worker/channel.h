/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The protocol of rbpf and its worker: messages over a SOCK_SEQPACKET socket, and a memfd for large
 * answers.
 *
 * rbpf sends a struct worker_request, with a descriptor of the file that it is about, if any, and
 * gets one WORKER_ANSWER. Before that the worker may ask for other files (WORKER_OPEN), each of
 * which rbpf answers with a struct worker_opened. There are no other messages, and one answer to a
 * request.
 *
 * Both ends are of one build and one machine, so numbers are as they are in memory. But a worker
 * may have been taken over by what it has read: rbpf checks all it says (answers.h).
 */
#ifndef RBPF_WORKER_CHANNEL_H
#define RBPF_WORKER_CHANNEL_H

#include <linux/limits.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_MAX_BYTES  (128u << 10) /* of a message */
#define CHANNEL_MAX_INLINE (32u << 10)	/* of an answer; larger ones are in the memfd */

enum worker_op {
	WORKER_HEADERS,
	WORKER_EXPORTS,
	WORKER_TABLE,
	WORKER_SYMBOLS,
	WORKER_FACTS,
	WORKER_LINES_OPEN,
	WORKER_LINES,
	WORKER_DEMANGLE,
	WORKER_READ,
	WORKER_CODE,
	WORKER_TLS,
	WORKER_OPS,
};

/* Followed by the bytes of its arguments, its path and its roots. */
struct worker_request {
	uint32_t op; /* enum worker_op */
	uint32_t args_size;
	uint32_t path_size;  /* of the file's path within the first root, with its NUL; 0: none */
	uint32_t roots_size; /* of the roots, each with its NUL; 0: no other files are to be had */
	uint64_t number;     /* what it is depends on op */
	uint64_t other;
};

enum worker_says {
	WORKER_ANSWER,
	WORKER_OPEN,
};

/* Followed by the bytes of the answer, if inline_size is not 0, or by the path to be opened. */
struct worker_message {
	uint32_t says;	      /* enum worker_says */
	int32_t result;	      /* WORKER_ANSWER: 0 or -errno */
	uint32_t root;	      /* WORKER_OPEN: the number of the root to look in */
	uint32_t inline_size; /* bytes that follow */
	uint64_t shared_size; /* bytes of the answer in the memfd; 0: it is inline */
};

/* The answer to WORKER_OPEN; comes with the descriptor, if result is 0. */
struct worker_opened {
	int32_t result;
	char real[PATH_MAX]; /* of the file within its root, links resolved */
};

/* Pieces of a message. */
struct channel_part {
	const void *data;
	size_t size;
};

/*
 * Send @n parts as one message, with the @n_fds descriptors in @fds, which stay the caller's. A
 * peer that does not read is not waited for. Returns 0 or -errno: -EPIPE if there is no peer.
 */
#define CHANNEL_MAX_PARTS 8
#define CHANNEL_MAX_FDS	  2
int channel_send(int sock, const struct channel_part *parts, size_t n, const int *fds,
		 size_t n_fds);

/*
 * Receive one message of at most @size bytes to @data, its length in *@len, and *@n_fds
 * descriptors, which are the caller's; @fds has room for CHANNEL_MAX_FDS. With @fds NULL
 * descriptors are not accepted. Waits only if @wait. Returns 0, -EAGAIN, -EPIPE (the peer is gone),
 * -EPROTO (a message that is longer) or -errno.
 */
int channel_receive(int sock, void *data, size_t size, size_t *len, int *fds, size_t *n_fds,
		    int wait);

#endif
