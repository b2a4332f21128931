/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/transcript.h"

#include <string.h>

static void note(struct transcript *t, const struct memory_span *span)
{
	t->is_whole &= span->ok && t->n < TRANSCRIPT_SPANS &&
		       span->len <= TRANSCRIPT_BYTES - t->len;
	if (!t->is_whole)
		return;
	t->spans[t->n].addr = span->addr;
	t->spans[t->n++].len = (uint32_t)span->len;
	memcpy(&t->bytes[t->len], span->dst, span->len);
	t->len += span->len;
}

static void read_spans(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct transcript *t = (struct transcript *)mem->image;
	size_t i;

	memory_read_spans(t->from, spans, n);
	for (i = 0; i < n; i++)
		note(t, &spans[i]);
}

struct memory transcript_memory(struct transcript *t, const struct memory *from)
{
	t->from = from;
	t->n = 0;
	t->len = 0;
	t->is_whole = true;
	return (struct memory) { .read_spans = read_spans, .pid = from->pid, .image = t };
}

size_t transcript_again(const struct transcript *t, struct memory_span *spans, uint8_t *bytes)
{
	size_t i, at = 0;

	for (i = 0; i < t->n; i++) {
		spans[i] = (struct memory_span) { .addr = t->spans[i].addr,
						  .dst = &bytes[at],
						  .len = t->spans[i].len };
		at += t->spans[i].len;
	}
	return t->n;
}
