/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording on disk: every constant of the format, for the writer, the reader and the tests.
 * rbpf-file(5) is its full description.
 *
 *	File  := header (64 bytes) chunk*
 *	chunk := chunk header (24 bytes) payload, zeros up to a multiple of 8
 *
 * Integers outside records are little-endian. Inside a DATA payload they are varints: LEB128,
 * unsigned, at most 10 bytes; "zz" is a varint in zigzag code; "opt" is a varint that holds 0 for
 * none and the value + 1 otherwise.
 */
#ifndef RBPF_FILE_H
#define RBPF_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * As PNG does it: a high bit against 7-bit channels and against being taken for text, CR LF and LF
 * against newline conversion, ^Z so that DOS's `type` stops.
 */
#define RBPF_FILE_MAGIC	       "\x89RBPF\r\n\x1a"
#define RBPF_FILE_MAGIC_LEN    8

/*
 * A reader refuses a major that it does not know, and reads every minor of those that it knows.
 *
 * In a recording of major 1 all samples are of one event, CPU time in ns. One of other events, or
 * of several, is of major 2: a reader that knows only CPU time would add up what is none.
 */
#define RBPF_FILE_MAJOR_CPU    1
#define RBPF_FILE_MINOR_CPU    13
#define RBPF_FILE_MAJOR_EVENTS 2
#define RBPF_FILE_MINOR_EVENTS 6

struct rbpf_file_header {
	uint8_t magic[RBPF_FILE_MAGIC_LEN];
	uint16_t major;
	uint16_t minor;
	uint32_t header_len;	     /* where the first chunk starts; 64 in all versions so far */
	uint64_t start_realtime_ns;  /* CLOCK_REALTIME at the start, ns since 1970 */
	uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC at the same time: the base of all times */
	uint32_t flags;		     /* zero; a reader ignores them */
	uint8_t zero[24];
	uint32_t crc; /* CRC-32 (as in zlib) of the 60 bytes before */
};

_Static_assert(sizeof(RBPF_FILE_MAGIC) - 1 == RBPF_FILE_MAGIC_LEN, "the magic has 8 bytes");
_Static_assert(sizeof(struct rbpf_file_header) == 64, "layout is the format");
_Static_assert(offsetof(struct rbpf_file_header, start_realtime_ns) == 16, "layout is the format");
_Static_assert(offsetof(struct rbpf_file_header, crc) == 60, "layout is the format");

#define RBPF_CHUNK_MAGIC 0x31434252u /* "RBC1" */
#define RBPF_CHUNK_ALIGN 8u

struct rbpf_chunk_header {
	uint32_t magic;
	uint8_t type;  /* enum rbpf_chunk_type */
	uint8_t flags; /* RBPF_CHUNK_* */
	uint16_t zero;
	uint32_t stored_len;  /* bytes of the payload in the file, without padding */
	uint32_t raw_len;     /* bytes of the payload once decompressed */
	uint32_t payload_crc; /* of the payload as stored */
	uint32_t crc;	      /* of the 20 bytes before */
};

_Static_assert(sizeof(struct rbpf_chunk_header) == 24, "layout is the format");
_Static_assert(offsetof(struct rbpf_chunk_header, crc) == 20, "layout is the format");
_Static_assert(sizeof(struct rbpf_file_header) % RBPF_CHUNK_ALIGN == 0, "chunks are aligned");
_Static_assert(sizeof(struct rbpf_chunk_header) % RBPF_CHUNK_ALIGN == 0, "chunks are aligned");

#define RBPF_CHUNK_ZLIB	     (1u << 0) /* the payload is a zlib stream (RFC 1950) */
#define RBPF_CHUNK_IGNORABLE (1u << 1) /* a reader that does not know the type skips the chunk */

enum rbpf_chunk_type {
	/* JSON: how the recording was made; the first chunk, and only that */
	RBPF_CHUNK_META = 1,
	/* records */
	RBPF_CHUNK_DATA = 2,
	/* JSON: what was counted; the last chunk, absent if interrupted */
	RBPF_CHUNK_TOTALS = 3,
	/* JSON: remarks for people */
	RBPF_CHUNK_NOTE = 4,
	/*
	 * since 1.9 and 2.2, always with RBPF_CHUNK_IGNORABLE: varint length of a path, the path as
	 * frames name it, the text of that source file
	 */
	RBPF_CHUNK_SOURCE = 5,
};

/*
 * Records: varint kind, varint length of the body, body. A reader skips kinds that it does not know
 * and whatever follows the fields that it knows.
 *
 * STRING, PROCESS, THREAD, MODULE, FRAME, STACK, REQUEST and SPAN define something and number it:
 * the first record of the kind gets the lowest id, each further one the next. That is 0, but 1 for
 * strings, stacks, requests and spans, whose id 0 is "", the empty stack, no request and no span.
 * An id is used only after the record that defines it.
 *
 * A "time" is the zz difference to the time of the last SAMPLE, LOST or PROCESS_EXIT record before
 * it, in whichever chunk, or to start_monotonic_ns. No other kind may ever move that base, so that
 * a reader that skips it stays in step.
 */
enum rbpf_file_record {
	/* bytes */
	RBPF_FILE_REC_STRING = 1,
	/*
	 * pid, start_ticks, string exe, string cmdline, string ruby_version, opt process parent;
	 * since 1.2: string cgroup, string container, ns_pid, opt uid;
	 * since 1.9 and 2.2: string attributes
	 */
	RBPF_FILE_REC_PROCESS = 2,
	/* process, tid, string name */
	RBPF_FILE_REC_THREAD = 3,
	/* string path, string build_id, kind (0) */
	RBPF_FILE_REC_MODULE = 4,
	/*
	 * kind, string name, string file, line, opt module, address, func_line; since 1.1: flags.
	 * Since 1.3 there are kind 8 (FRAME_GAP) and the flags from FRAME_INTERNAL on
	 */
	RBPF_FILE_REC_FRAME = 5,
	/* stack of the callers, frame */
	RBPF_FILE_REC_STACK = 6,
	/*
	 * thread, time, stack, value, cpu, flags (profile/sample_flags.h); in major 2 also: event,
	 * its number in META
	 */
	RBPF_FILE_REC_SAMPLE = 7,
	/*
	 * n: the SAMPLE right before it in this chunk n times more, each as far from the one before
	 */
	RBPF_FILE_REC_RUN = 8,
	/* time, reason, count */
	RBPF_FILE_REC_LOST = 9,
	/* thread, time, duration, string name, string json */
	RBPF_FILE_REC_MARKER = 10,
	/* process, time, opt wait status */
	RBPF_FILE_REC_PROCESS_EXIT = 11,
	/* process, then the fields of PROCESS */
	RBPF_FILE_REC_PROCESS_UPDATE = 12,
	/* thread, string name */
	RBPF_FILE_REC_THREAD_NAME = 13,
	/* thread, ns */
	RBPF_FILE_REC_THREAD_CPU = 14,
	/* since 1.8 and 2.1: thread, string framework, string name; "": unknown */
	RBPF_FILE_REC_REQUEST = 15,
	/* since 1.8 and 2.1: thread, request that its samples are of from now on */
	RBPF_FILE_REC_THREAD_REQUEST = 16,
	/* since 1.10 and 2.3: the 16 bytes of a trace id, the 8 of a span id */
	RBPF_FILE_REC_SPAN = 17,
	/* since 1.10 and 2.3: thread, span that its samples are of from now on */
	RBPF_FILE_REC_THREAD_SPAN = 18,
};

#define RBPF_FILE_SPAN_BYTES   24 /* the body of a SPAN */

/* Limits. A writer stays within them, a reader stops at what exceeds them. */
#define RBPF_FILE_MAX_HEADER   4096u	   /* header_len */
#define RBPF_FILE_MAX_CHUNK    (16u << 20) /* stored_len and raw_len */
#define RBPF_FILE_MAX_JSON     (1u << 20)  /* raw_len of META and TOTALS */
#define RBPF_FILE_MAX_STRING   (1u << 20)  /* bytes of a string */
#define RBPF_FILE_MAX_IDS      (1u << 28)  /* things of one kind */
#define RBPF_FILE_MAX_DEPTH    (1u << 16)  /* frames of a stack */
#define RBPF_FILE_MAX_RUN      (1u << 20)  /* sum of the RUN records of a recording */
#define RBPF_FILE_MAX_SOURCE   (1u << 20)  /* bytes of a source file */
#define RBPF_FILE_MAX_SOURCES  (8u << 20)  /* sum of these, with their paths */
#define RBPF_FILE_FREE_RAW     (16u << 20) /* sum of raw_len that any recording may have … */
#define RBPF_FILE_MAX_RATIO    64u	   /* … and how much more for each byte of the file */
#define RBPF_FILE_FREE_TEXT    (64u << 20) /* sum of names and files of FRAMEs and STACKs … */
#define RBPF_FILE_TEXT_RATIO   256u	   /* … and how much more for each byte of the file */

/* A writer closes a chunk at the first of these. They bind no reader. */
#define RBPF_FILE_CHUNK_BYTES  (256u << 10)  /* raw */
#define RBPF_FILE_CHUNK_AGE_NS 1000000000ull /* after its first record */

_Static_assert(RBPF_FILE_CHUNK_BYTES + 2 * RBPF_FILE_MAX_STRING < RBPF_FILE_MAX_CHUNK,
	       "a chunk that was nearly full takes one more string");

#endif
