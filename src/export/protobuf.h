/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing messages of Protocol Buffers: https://protobuf.dev/programming-guides/encoding/
 *
 * A field with the default value, 0 or "", is left out, as readers expect of version 3. A message
 * within a message is made in a buffer of its own, and added with protobuf_bytes().
 */
#ifndef RBPF_EXPORT_PROTOBUF_H
#define RBPF_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

struct buf;

/* Also of types int64 and bool. */
void protobuf_u64(struct buf *out, uint32_t field, uint64_t value);

/* A string, a message, or packed numbers. Also if it is empty: of messages that means something. */
void protobuf_bytes(struct buf *out, uint32_t field, const void *data, size_t len);

#endif
