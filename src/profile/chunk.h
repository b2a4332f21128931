/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The framing of a recording (include/rbpf_file.h): headers between host memory and their bytes.
 *
 * It knows checksums and limits, not what is inside a chunk, and does no I/O. The structs hold host
 * order outside this module; the bytes are little-endian.
 */
#ifndef RBPF_PROFILE_CHUNK_H
#define RBPF_PROFILE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rbpf_file.h"

/* True if a file that begins with these bytes is, or wants to be, a recording. */
bool file_magic_matches(const void *data, size_t len);

/* The bytes of a header of this major version (rbpf_file.h), in its newest minor. */
void file_header_pack(uint16_t major, uint64_t start_realtime_ns, uint64_t start_monotonic_ns,
		      uint8_t ret[sizeof(struct rbpf_file_header)]);

/*
 * Returns 0; -EINVAL if this is no recording, -EBADMSG if the header is damaged, -EPROTONOSUPPORT
 * if the major version is not known (then @ret is filled all the same, for the message).
 */
int file_header_unpack(const uint8_t data[sizeof(struct rbpf_file_header)],
		       struct rbpf_file_header *ret);

/* The header of the chunk with this @stored payload of @stored_len bytes. */
void chunk_header_pack(uint8_t type, uint8_t flags, const void *stored, uint32_t stored_len,
		       uint32_t raw_len, uint8_t ret[sizeof(struct rbpf_chunk_header)]);

/* Returns 0, or -EBADMSG if the header is damaged or exceeds the limits. */
int chunk_header_unpack(const uint8_t data[sizeof(struct rbpf_chunk_header)],
			struct rbpf_chunk_header *ret);

/* The zeros that follow a payload of this length. */
static inline uint32_t chunk_padding(uint32_t stored_len)
{
	return -stored_len & (RBPF_CHUNK_ALIGN - 1);
}

/* CRC-32 as zlib has it. */
uint32_t chunk_crc(const void *data, size_t len);

#endif
