/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/page_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/memory.h"

#define PAGE  4096u
#define SET   1u  /* of an address in ->addr */
#define BATCH 64u /* pages that are read at a time */

struct missing_pages {
	struct memory_span spans[BATCH];
	size_t n;
};

static size_t slot_of(uint64_t page)
{
	return page / PAGE * 0x9e3779b97f4a7c15ull >> 32 & (PAGE_CACHE_PAGES - 1);
}

static bool holds(const struct page_cache *c, uint64_t page)
{
	return c->addr[slot_of(page)] == (page | SET);
}

/* Whether @span is read here: it is short, and no page of it is the last of all addresses. */
static bool is_kept(const struct memory_span *span)
{
	return span->len <= PAGE_CACHE_PIECE && span->addr < UINT64_MAX - PAGE_CACHE_PIECE - PAGE;
}

/* Note each page of @span that is not there. What does not fit is left out. */
static void miss(struct page_cache *c, const struct memory_span *span, struct missing_pages *m)
{
	uint64_t page = span->addr - span->addr % PAGE;

	for (; page < span->addr + span->len && m->n < BATCH; page += PAGE) {
		const size_t slot = slot_of(page);

		if (holds(c, page))
			continue;
		c->addr[slot] = page | SET;
		m->spans[m->n++] = (struct memory_span) { .addr = page,
							  .dst = c->bytes + slot * PAGE,
							  .len = PAGE };
	}
}

static void fetch(struct page_cache *c, struct missing_pages *m)
{
	size_t i;

	if (m->n)
		memory_read_spans(c->below, m->spans, m->n);
	/* Of those that want the same slot it is the last one's, as are its bytes. */
	for (i = 0; i < m->n; i++)
		c->whole[slot_of(m->spans[i].addr)] = m->spans[i].ok;
}

/* Returns false if a page of @span is not there: then that says nothing of the memory below. */
static bool copy(const struct page_cache *c, struct memory_span *span)
{
	uint64_t at = span->addr, page;
	uint8_t *to = span->dst;
	size_t left = span->len, len;

	span->ok = true;
	for (; left; at += len, to += len, left -= len) {
		page = at - at % PAGE;
		len = PAGE - at % PAGE;
		if (len > left)
			len = left;
		if (!holds(c, page))
			return false;
		span->ok &= c->whole[slot_of(page)];
		if (span->ok)
			memcpy(to, c->bytes + slot_of(page) * PAGE + at % PAGE, len);
	}
	return true;
}

static void read_spans(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct page_cache *c = mem->pages;
	struct missing_pages missing = { .n = 0 };
	size_t i;

	for (i = 0; i < n; i++)
		if (is_kept(&spans[i]))
			miss(c, &spans[i], &missing);
	fetch(c, &missing);
	for (i = 0; i < n; i++)
		if (!is_kept(&spans[i]) || !copy(c, &spans[i]))
			memory_read_spans(c->below, &spans[i], 1);
}

int page_cache_init(struct page_cache *c, const struct memory *below)
{
	*c = (struct page_cache) { .below = below };
	c->bytes = malloc((size_t)PAGE_CACHE_PAGES * PAGE);
	return c->bytes ? 0 : -ENOMEM;
}

void page_cache_deinit(struct page_cache *c)
{
	free(c->bytes);
	*c = (struct page_cache) { 0 };
}

struct memory page_cache_memory(struct page_cache *c)
{
	return (struct memory) { .read_spans = read_spans, .pid = c->below->pid, .pages = c };
}

void memory_refresh(const struct memory *mem)
{
	if (mem->pages)
		memset(mem->pages->addr, 0, sizeof(mem->pages->addr));
}

const struct memory *memory_now(const struct memory *mem)
{
	return mem->pages ? mem->pages->below : mem;
}
