/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/captured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"
#include "target/memory.h"

static int by_address(const void *a, const void *b)
{
	const struct captured_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Take the block at @data, of which @left bytes are there. Its size is stored in *@size. */
static int add_block(struct captured *c, const uint8_t *data, size_t left, size_t *size)
{
	struct rbpf_block head;
	int r;

	if (left < sizeof(head))
		return -EPROTO;
	memcpy(&head, data, sizeof(head));
	if (head.len > left - sizeof(head))
		return -EPROTO;
	r = array_reserve(c->blocks, c->cap, c->n + 1);
	if (r)
		return r;
	c->blocks[c->n++] = (struct captured_block) {
		.addr = head.addr,
		.bytes = data + sizeof(head),
		.len = head.len,
		.kind = head.kind,
	};
	*size = sizeof(head) + ((size_t)head.len + 7) / 8 * 8;
	return 0;
}

int captured_set(struct captured *c, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t reach = 0;
	size_t at, size, i;
	int r = 0;

	c->n = 0;
	for (at = 0; at < len && !r; at += size)
		r = add_block(c, bytes + at, len - at, &size);
	if (r) {
		c->n = 0;
		return r;
	}
	if (c->n)
		qsort(c->blocks, c->n, sizeof(*c->blocks), by_address);
	for (i = 0; i < c->n; i++) {
		struct captured_block *b = &c->blocks[i];

		if (b->addr + b->len > reach)
			reach = b->addr + b->len;
		b->reach = reach;
	}
	return 0;
}

void captured_deinit(struct captured *c)
{
	free(c->blocks);
	*c = (struct captured)CAPTURED_INIT;
}

static bool read_span(const struct captured *c, const struct memory_span *span)
{
	size_t i;

	if (!span->len)
		return true;
	for (i = sorted_up_to(c->blocks, c->n, addr, span->addr); i-- > 0;) {
		const struct captured_block *b = &c->blocks[i];
		uint64_t off = span->addr - b->addr;

		if (b->reach <= span->addr)
			return false;
		if (off < b->len && span->len <= b->len - off) {
			memcpy(span->dst, b->bytes + off, span->len);
			return true;
		}
	}
	return false;
}

static void read_spans_captured(const struct memory *mem, struct memory_span *spans, size_t n)
{
	const struct captured *c = mem->image;
	size_t i;

	for (i = 0; i < n; i++) {
		spans[i].ok = read_span(c, &spans[i]);
		if (!spans[i].ok && c->below)
			memory_read_spans(c->below, &spans[i], 1);
	}
}

struct memory captured_memory(const struct captured *c)
{
	return (struct memory) { .read_spans = read_spans_captured, .image = c };
}
