/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/protobuf.h"

#include "base/buf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void add_tag(struct buf *out, uint32_t field, enum wire_type type)
{
	buf_add_varint(out, (uint64_t)field << 3 | type);
}

void protobuf_u64(struct buf *out, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	add_tag(out, field, WIRE_VARINT);
	buf_add_varint(out, value);
}

void protobuf_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	add_tag(out, field, WIRE_BYTES);
	buf_add_varint(out, len);
	buf_add(out, data, len);
}
