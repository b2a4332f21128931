/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The payload is a protobuf message, of which these fields are read:
 *
 *	ProcessContext	1: Resource, 2: KeyValue …
 *	Resource	1: KeyValue …
 *	KeyValue	1: key, 2: AnyValue
 *	AnyValue	1: string, 2: bool, 3: int64, 4: double
 *
 * Other fields are skipped, and values of other types (arrays, lists of pairs, bytes) are left out.
 * Nothing is nested deeper than that, so that no message can make the parser recurse.
 */
#include "target/otel_context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "target/maps.h"
#include "target/memory.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION	  2
#define TRIES	  4 /* to read what may be changing */

struct context_header {
	char signature[8];
	uint32_t version;
	uint32_t payload_size;
	uint64_t published_ns; /* 0: it is being changed; each change gives it another value */
	uint64_t payload;      /* address */
};

_Static_assert(sizeof(struct context_header) == 32, "what OTEP 4719 says");

/* ---- protobuf ---- */

enum payload_type { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_BYTES = 2, TYPE_FIXED32 = 5 };

struct payload_part {
	const uint8_t *p, *end;
};

struct field {
	uint64_t number;
	uint64_t value;		   /* of TYPE_VARINT, TYPE_FIXED64 and TYPE_FIXED32 */
	struct payload_part bytes; /* of TYPE_BYTES */
	enum payload_type type;
};

static bool get_varint(struct payload_part *s, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned int shift;

	for (shift = 0; shift < 64 && s->p < s->end; shift += 7) {
		v |= (uint64_t)(*s->p & 0x7f) << shift;
		if (!(*s->p++ & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool get_fixed(struct payload_part *s, size_t size, uint64_t *ret)
{
	size_t i;

	if ((size_t)(s->end - s->p) < size)
		return false;
	for (*ret = 0, i = 0; i < size; i++)
		*ret |= (uint64_t)*s->p++ << (8 * i);
	return true;
}

static bool get_bytes(struct payload_part *s, struct payload_part *ret)
{
	uint64_t len;

	if (!get_varint(s, &len) || len > (uint64_t)(s->end - s->p))
		return false;
	*ret = (struct payload_part) { s->p, s->p + len };
	s->p += len;
	return true;
}

/* The next field of message @s. Returns 1, 0 at the end, or -EBADMSG. */
static int next_field(struct payload_part *s, struct field *ret)
{
	uint64_t tag;
	bool ok;

	if (s->p == s->end)
		return 0;
	if (!get_varint(s, &tag))
		return -EBADMSG;
	*ret = (struct field) { .number = tag >> 3, .type = (enum payload_type)(tag & 7) };
	switch (tag & 7) {
	case TYPE_VARINT:
		ok = get_varint(s, &ret->value);
		break;
	case TYPE_FIXED64:
		ok = get_fixed(s, 8, &ret->value);
		break;
	case TYPE_BYTES:
		ok = get_bytes(s, &ret->bytes);
		break;
	case TYPE_FIXED32:
		ok = get_fixed(s, 4, &ret->value);
		break;
	default: /* groups, which no message of today has */
		ok = false;
	}
	return ok ? 1 : -EBADMSG;
}

/* ---- attributes ---- */

struct payload_parser {
	struct buf *out;
	struct payload_part keys[OTEL_MAX_ATTRIBUTES];
	size_t n_keys;
};

static size_t length(struct payload_part s)
{
	return (size_t)(s.end - s.p);
}

/* An AnyValue as text. Returns 1, 0 if it is of a type that is left out, or -EBADMSG. */
static int value_text(struct payload_part message, struct buf *ret)
{
	struct field f;
	double number;
	int r, found = 0;

	while ((r = next_field(&message, &f)) > 0) {
		found = 1;
		buf_reset(ret);
		if (f.number == 1 && f.type == TYPE_BYTES) {
			buf_add(ret, f.bytes.p, length(f.bytes));
		} else if (f.number == 2 && f.type == TYPE_VARINT) {
			buf_addstr(ret, f.value ? "true" : "false");
		} else if (f.number == 3 && f.type == TYPE_VARINT) {
			buf_addf(ret, "%" PRId64, (int64_t)f.value);
		} else if (f.number == 4 && f.type == TYPE_FIXED64) {
			memcpy(&number, &f.value, sizeof(number));
			buf_addf(ret, "%.17g", number);
		} else {
			found = 0;
		}
	}
	return r ? r : found;
}

static bool is_known(const struct payload_parser *p, struct payload_part key)
{
	size_t i;

	for (i = 0; i < p->n_keys; i++)
		if (length(p->keys[i]) == length(key) && !memcmp(p->keys[i].p, key.p, length(key)))
			return true;
	return false;
}

static int add_key_value(struct payload_parser *p, struct payload_part message)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct payload_part key = { 0 }, value = { 0 };
	size_t before;
	struct field f;
	int r;

	while ((r = next_field(&message, &f)) > 0) {
		if (f.type == TYPE_BYTES && f.number == 1)
			key = f.bytes;
		else if (f.type == TYPE_BYTES && f.number == 2)
			value = f.bytes;
	}
	if (r)
		return r;
	if (key.p == key.end || length(key) > OTEL_MAX_KEY || p->n_keys == OTEL_MAX_ATTRIBUTES ||
	    is_known(p, key))
		return 0;
	r = value_text(value, &text);
	if (r <= 0)
		return r;
	before = p->out->len;
	p->keys[p->n_keys++] = key;
	attributes_add(p->out, (const char *)key.p, length(key), buf_str(&text),
		       text.len < OTEL_MAX_VALUE ? text.len : OTEL_MAX_VALUE);
	if (p->out->len > OTEL_MAX_TEXT) {
		p->out->len = before;
		p->out->data[before] = '\0';
	}
	return buf_failed(&text) ? -ENOMEM : 0;
}

/* The KeyValues that are field @number of @message. */
static int add_key_values(struct payload_parser *p, struct payload_part message, uint64_t number)
{
	struct field f;
	int r;

	while ((r = next_field(&message, &f)) > 0) {
		if (f.number != number || f.type != TYPE_BYTES)
			continue;
		r = add_key_value(p, f.bytes);
		if (r)
			break;
	}
	return r;
}

static int add_resources(struct payload_parser *p, struct payload_part message)
{
	struct field f;
	int r;

	while ((r = next_field(&message, &f)) > 0) {
		if (f.number != 1 || f.type != TYPE_BYTES)
			continue;
		r = add_key_values(p, f.bytes, 1);
		if (r)
			break;
	}
	return r;
}

int otel_context_parse(const void *payload, size_t len, struct buf *out)
{
	const struct payload_part message = { payload, (const uint8_t *)payload + len };
	struct payload_parser p = { .out = out };
	int r;

	r = add_resources(&p, message);
	if (!r)
		r = add_key_values(&p, message, 2);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	if (r)
		buf_reset(out);
	return r;
}

/* ---- the mapping ---- */

static bool is_context(const struct context_header *header)
{
	return !memcmp(header->signature, SIGNATURE, sizeof(header->signature)) &&
	       header->version == VERSION;
}

/* Read it once. Returns as otel_context_read(). */
static int read_at(const struct memory *mem, uint64_t addr, struct buf *out)
{
	_cleanup_free_ char *payload = NULL;
	struct context_header header, again;

	if (memory_read(mem, addr, &header, sizeof(header)) || !is_context(&header))
		return -ENOENT;
	if (!header.published_ns)
		return -EAGAIN;
	if (header.payload_size > OTEL_MAX_PAYLOAD)
		return -EBADMSG;
	payload = malloc(header.payload_size + 1);
	if (!payload)
		return -ENOMEM;
	if (header.payload_size && memory_read(mem, header.payload, payload, header.payload_size))
		return -EAGAIN;
	if (memory_read(mem, addr, &again, sizeof(again)) ||
	    memcmp(&header, &again, sizeof(header)))
		return -EAGAIN;
	return otel_context_parse(payload, header.payload_size, out);
}

int otel_context_read(const struct memory *mem, const struct maps *maps, struct buf *out)
{
	unsigned int try;
	int r = -ENOENT;
	size_t i;

	for (i = 0; i < maps->n_contexts && r == -ENOENT; i++) {
		r = -EAGAIN;
		for (try = 0; try < TRIES && r == -EAGAIN; try++)
			r = read_at(mem, maps->contexts[i], out);
	}
	return r;
}
