/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/gathered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "target/memory.h"

void gathered_init(struct gathered *g, const struct memory *below)
{
	*g = (struct gathered) { .below = below };
}

void gathered_deinit(struct gathered *g)
{
	intern_deinit(&g->addrs);
	free(g->whole);
	free(g->bytes);
	free(g->spans);
	*g = (struct gathered) { 0 };
}

/*
 * Whether the block at @addr is there; *@ret is its index. If not, it is noted, for which there is
 * room.
 */
static bool find_block(struct gathered *g, uint64_t addr, uint32_t *ret)
{
	if (intern_add(&g->addrs, &addr, sizeof(addr), ret, NULL) || *ret >= g->n_fetched) {
		g->missed = true;
		return false;
	}
	return true;
}

/*
 * Copy what of @span is there to its destination, unless that is NULL. Returns whether all is, or
 * will be with the next gathered_fetch(); if not, the memory below has to be read.
 */
static bool take(struct gathered *g, struct memory_span *span)
{
	const uint64_t first = span->addr / GATHERED_BLOCK,
		       last = (span->addr + span->len - 1) / GATHERED_BLOCK;
	uint8_t *to = span->dst;
	uint64_t block, begin, end;
	uint32_t i;

	if (span->addr + span->len < span->addr || last - first >= GATHERED_BLOCKS - g->addrs.count)
		return false;
	span->ok = true;
	for (block = first; block <= last; block++) {
		if (!find_block(g, block * GATHERED_BLOCK, &i)) {
			span->ok = false;
			continue;
		}
		if (!g->whole[i])
			return false;
		if (!to)
			continue;
		begin = block == first ? span->addr % GATHERED_BLOCK : 0;
		end = block == last ? (span->addr + span->len - 1) % GATHERED_BLOCK + 1
				    : GATHERED_BLOCK;
		memcpy(to, g->bytes + (size_t)i * GATHERED_BLOCK + begin, end - begin);
		to += end - begin;
	}
	return true;
}

static void read_spans_gathered(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct gathered *g = mem->gathered;
	size_t i;

	for (i = 0; i < n; i++) {
		spans[i].ok = !spans[i].len;
		if (spans[i].len && !take(g, &spans[i]))
			memory_read_spans(g->below, &spans[i], 1);
	}
}

struct memory gathered_memory(struct gathered *g)
{
	return (struct memory) { .read_spans = read_spans_gathered, .gathered = g };
}

void memory_expect(const struct memory *mem, uint64_t addr, size_t len)
{
	struct memory_span span = { .addr = addr, .len = len };

	if (mem->gathered && len)
		take(mem->gathered, &span);
}

int gathered_fetch(struct gathered *g)
{
	const size_t n = g->addrs.count, first = g->n_fetched;
	size_t i;
	int r;

	r = array_reserve(g->whole, g->cap_whole, n);
	if (!r)
		r = array_room(g->bytes, g->cap_bytes, n * GATHERED_BLOCK);
	if (!r)
		r = array_reserve(g->spans, g->cap_spans, n - first);
	if (r)
		return r;
	for (i = first; i < n; i++) {
		struct memory_span *span = &g->spans[i - first];

		*span = (struct memory_span) { .dst = g->bytes + i * GATHERED_BLOCK,
					       .len = GATHERED_BLOCK };
		memcpy(&span->addr, intern_get(&g->addrs, (uint32_t)i, NULL), sizeof(span->addr));
	}
	memory_read_spans(g->below, g->spans, n - first);
	for (i = first; i < n; i++)
		g->whole[i] = g->spans[i - first].ok;
	g->n_fetched = n;
	return 0;
}
