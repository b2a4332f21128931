/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers as files of little-endian machines have them, whatever the host is. */
#ifndef RBPF_TESTS_LITTLE_ENDIAN_H
#define RBPF_TESTS_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>

#include "base/buf.h"

static inline void buf_add_le16(struct buf *buf, uint16_t v)
{
	v = htole16(v);
	buf_add(buf, &v, sizeof(v));
}

static inline void buf_add_le32(struct buf *buf, uint32_t v)
{
	v = htole32(v);
	buf_add(buf, &v, sizeof(v));
}

static inline void buf_add_le64(struct buf *buf, uint64_t v)
{
	v = htole64(v);
	buf_add(buf, &v, sizeof(v));
}

#endif
