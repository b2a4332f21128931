/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/chunk.h"

#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <string.h>

uint32_t chunk_crc(const void *data, size_t len)
{
	return libdeflate_crc32(0, data, len);
}

bool file_magic_matches(const void *data, size_t len)
{
	return len >= RBPF_FILE_MAGIC_LEN && !memcmp(data, RBPF_FILE_MAGIC, RBPF_FILE_MAGIC_LEN);
}

void file_header_pack(uint16_t major, uint64_t start_realtime_ns, uint64_t start_monotonic_ns,
		      uint8_t ret[sizeof(struct rbpf_file_header)])
{
	struct rbpf_file_header h = {
		.major = htole16(major),
		.minor = htole16(major == RBPF_FILE_MAJOR_CPU ? RBPF_FILE_MINOR_CPU
							      : RBPF_FILE_MINOR_EVENTS),
		.header_len = htole32(sizeof(h)),
		.start_realtime_ns = htole64(start_realtime_ns),
		.start_monotonic_ns = htole64(start_monotonic_ns),
	};

	memcpy(h.magic, RBPF_FILE_MAGIC, sizeof(h.magic));
	h.crc = htole32(chunk_crc(&h, offsetof(struct rbpf_file_header, crc)));
	memcpy(ret, &h, sizeof(h));
}

int file_header_unpack(const uint8_t data[sizeof(struct rbpf_file_header)],
		       struct rbpf_file_header *ret)
{
	struct rbpf_file_header h;
	bool known;

	memcpy(&h, data, sizeof(h));
	if (!file_magic_matches(data, sizeof(h)))
		return -EINVAL;
	if (le32toh(h.crc) != chunk_crc(data, offsetof(struct rbpf_file_header, crc)))
		return -EBADMSG;
	h.major = le16toh(h.major);
	h.minor = le16toh(h.minor);
	h.header_len = le32toh(h.header_len);
	h.start_realtime_ns = le64toh(h.start_realtime_ns);
	h.start_monotonic_ns = le64toh(h.start_monotonic_ns);
	h.flags = le32toh(h.flags);
	h.crc = le32toh(h.crc);
	known = h.major == RBPF_FILE_MAJOR_CPU || h.major == RBPF_FILE_MAJOR_EVENTS;
	if (known && (h.header_len < sizeof(h) || h.header_len > RBPF_FILE_MAX_HEADER ||
		      h.header_len % RBPF_CHUNK_ALIGN))
		return -EBADMSG;
	*ret = h;
	return known ? 0 : -EPROTONOSUPPORT;
}

void chunk_header_pack(uint8_t type, uint8_t flags, const void *stored, uint32_t stored_len,
		       uint32_t raw_len, uint8_t ret[sizeof(struct rbpf_chunk_header)])
{
	struct rbpf_chunk_header h = {
		.magic = htole32(RBPF_CHUNK_MAGIC),
		.type = type,
		.flags = flags,
		.stored_len = htole32(stored_len),
		.raw_len = htole32(raw_len),
		.payload_crc = htole32(chunk_crc(stored, stored_len)),
	};

	h.crc = htole32(chunk_crc(&h, offsetof(struct rbpf_chunk_header, crc)));
	memcpy(ret, &h, sizeof(h));
}

int chunk_header_unpack(const uint8_t data[sizeof(struct rbpf_chunk_header)],
			struct rbpf_chunk_header *ret)
{
	struct rbpf_chunk_header h;

	memcpy(&h, data, sizeof(h));
	h.magic = le32toh(h.magic);
	h.zero = le16toh(h.zero);
	h.stored_len = le32toh(h.stored_len);
	h.raw_len = le32toh(h.raw_len);
	h.payload_crc = le32toh(h.payload_crc);
	h.crc = le32toh(h.crc);
	if (h.magic != RBPF_CHUNK_MAGIC ||
	    h.crc != chunk_crc(data, offsetof(struct rbpf_chunk_header, crc)))
		return -EBADMSG;
	if (h.stored_len > RBPF_FILE_MAX_CHUNK || h.raw_len > RBPF_FILE_MAX_CHUNK)
		return -EBADMSG;
	*ret = h;
	return 0;
}
