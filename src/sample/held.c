/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

_Static_assert(sizeof(struct held_record) == sizeof(uint64_t), "records are aligned to words");

static size_t words_of(size_t size)
{
	return 1 + (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/*
 * Give the words of what was taken back to what comes, when they are the larger part: each record
 * is moved a few times at most, however long something is always held.
 */
static void move_down(struct held *h)
{
	if (h->first <= h->n / 2)
		return;
	h->n -= h->first;
	memmove(h->words, h->words + h->first, h->n * sizeof(*h->words));
	h->first = 0;
}

int held_add(struct held *h, const void *rec, size_t size, bool with_ruby)
{
	const struct held_record head = { .size = (uint32_t)size, .with_ruby = with_ruby };

	move_down(h);
	if (array_reserve(h->words, h->cap, h->n + words_of(size)))
		return -ENOMEM;
	memcpy(&h->words[h->n], &head, sizeof(head));
	memcpy(&h->words[h->n + 1], rec, size);
	h->n += words_of(size);
	return 0;
}

const struct held_record *held_first(const struct held *h)
{
	return h->first < h->n ? (const struct held_record *)&h->words[h->first] : NULL;
}

void held_pop(struct held *h)
{
	h->first += words_of(held_first(h)->size);
	if (h->first == h->n)
		held_deinit(h);
}

size_t held_bytes(const struct held *h)
{
	return (h->n - h->first) * sizeof(*h->words);
}

void held_deinit(struct held *h)
{
	free(h->words);
	*h = (struct held) { 0 };
}
