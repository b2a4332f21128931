/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings made by hand, also wrong ones: the checksums are right, the rest is the caller's.
 */
#ifndef RBPF_TESTS_FILE_BUILDER_H
#define RBPF_TESTS_FILE_BUILDER_H

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/chunk.h"

#define BUILD_START_REALTIME  1700000000000000000ull
#define BUILD_START_MONOTONIC 5000000000ull

static inline void build_header_of(struct buf *file, uint16_t major)
{
	uint8_t header[sizeof(struct rbpf_file_header)];

	file_header_pack(major, BUILD_START_REALTIME, BUILD_START_MONOTONIC, header);
	buf_add(file, header, sizeof(header));
}

static inline void build_header(struct buf *file)
{
	build_header_of(file, RBPF_FILE_MAJOR_CPU);
}

/* A chunk with a payload as stored, and whatever raw_len. */
static inline void build_chunk(struct buf *file, uint8_t type, uint8_t flags, const void *stored,
			       size_t stored_len, size_t raw_len)
{
	uint8_t header[sizeof(struct rbpf_chunk_header)];

	chunk_header_pack(type, flags, stored, (uint32_t)stored_len, (uint32_t)raw_len, header);
	buf_add(file, header, sizeof(header));
	buf_add(file, stored, stored_len);
	buf_add_repeat(file, 0, chunk_padding((uint32_t)stored_len));
}

static inline void build_json(struct buf *file, uint8_t type, const char *json)
{
	build_chunk(file, type, 0, json, strlen(json), strlen(json));
}

static inline void build_data(struct buf *file, const struct buf *records)
{
	build_chunk(file, RBPF_CHUNK_DATA, 0, records->data, records->len, records->len);
}

static inline void build_record_raw(struct buf *records, uint64_t kind, const void *body,
				    size_t len)
{
	buf_add_varint(records, kind);
	buf_add_varint(records, len);
	buf_add(records, body, len);
}

static inline void build_record_fields(struct buf *records, uint64_t kind, const uint64_t *fields,
				       size_t n)
{
	_cleanup_buf_ struct buf body = BUF_INIT;

	for (size_t i = 0; i < n; i++)
		buf_add_varint(&body, fields[i]);
	build_record_raw(records, kind, body.data, body.len);
}

/* A record of these varints: build_record(&records, RBPF_FILE_REC_STACK, 0, 3). */
#define build_record(records, kind, ...)                                                           \
	build_record_fields(records, kind, (const uint64_t[]) { __VA_ARGS__ },                     \
			    sizeof((const uint64_t[]) { __VA_ARGS__ }) / sizeof(uint64_t))

static inline void build_string(struct buf *records, const char *s)
{
	build_record_raw(records, RBPF_FILE_REC_STRING, s, strlen(s));
}

#endif
