/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three parts: `entries` (by id: where the bytes are, how many, half of their hash), `slots` (an
 * open-addressing table of id + 1 with linear probing, a power of two in size and at most 3/4 full)
 * and `blocks`, append-only pieces of memory that hold the bytes. Blocks never move, so a pointer
 * from intern_get() survives growth, which only moves the first two.
 *
 * Nothing is ever removed, so the table needs no tombstones and a probe ends at the first free
 * slot. The stored half hash is enough to place an entry when the table grows (it has at most
 * 2^29 slots), and spares nearly all comparisons of bytes that differ.
 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

_Static_assert(INTERN_MAX < 1u << HASH_SLOT_BITS, "an id + 1 fits");

#define SLOTS_MIN 64u
#define BLOCK_MIN 4096u
#define BLOCK_MAX (1u << 20)
#define ALIGNMENT 8u

struct intern_entry {
	const char *data; /* in a block */
	uint32_t len;
	uint32_t hash; /* low half of hash_seeded() */
};

struct intern_block {
	struct intern_block *next; /* older */
	size_t used;
	size_t size; /* of data */
	char data[] __attribute__((aligned(ALIGNMENT)));
};

static void free_blocks(struct intern_block *block)
{
	while (block) {
		struct intern_block *next = block->next;

		free(block);
		block = next;
	}
}

void intern_deinit(struct intern *in)
{
	if (!in)
		return;
	free_blocks(in->blocks);
	free(in->entries);
	free(in->slots);
	*in = (struct intern)INTERN_INIT;
}

void intern_recycle(struct intern *in)
{
	struct intern_block *head = in->blocks;

	if (!head || in->count < in->cap / 4) {
		intern_deinit(in);
		return;
	}
	/*
	 * Of the blocks the head, which is about as large as the others together, unless there are
	 * many.
	 */
	free_blocks(head->next);
	head->next = NULL;
	head->used = 0;
	in->block_bytes = sizeof(*head) + head->size;
	memset(in->slots, 0, (in->slot_mask + 1) * sizeof(*in->slots));
	in->count = 0;
}

/* The slot that holds these bytes, or the free one where they belong. Needs a free slot. */
static size_t find_slot(const struct intern *in, const void *data, size_t len, uint32_t hash)
{
	size_t i = hash & in->slot_mask;

	for (;; i = (i + 1) & in->slot_mask) {
		const uint32_t slot = in->slots[i];
		const struct intern_entry *e;

		if (!slot)
			return i;
		if (!hash_slot_fits(slot, hash))
			continue;
		e = &in->entries[hash_slot_number(slot) - 1];
		if (e->hash == hash && e->len == len && (!len || !memcmp(e->data, data, len)))
			return i;
	}
}

/* Make room in the slots for one entry more. */
static int grow_slots(struct intern *in)
{
	size_t n = in->slots ? in->slot_mask + 1 : 0;
	uint32_t *slots;

	if (in->count < n / 4 * 3)
		return 0;
	n = n ? n * 2 : SLOTS_MIN;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < in->count; id++) {
		size_t i = in->entries[id].hash & (n - 1);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = hash_slot(in->entries[id].hash, (uint32_t)id + 1);
	}
	if (!in->slots)
		in->seed = hash_seed();
	free(in->slots);
	in->slots = slots;
	in->slot_mask = n - 1;
	return 0;
}

/*
 * A block with @size bytes of room, which becomes the one that is filled unless it is for one use.
 */
static struct intern_block *add_block(struct intern *in, size_t size)
{
	struct intern_block *head = in->blocks;
	struct intern_block *block;
	size_t block_size = in->block_bytes / BLOCK_MIN * BLOCK_MIN; /* as much as there is */
	bool single;

	if (block_size < BLOCK_MIN)
		block_size = BLOCK_MIN;
	if (block_size > BLOCK_MAX)
		block_size = BLOCK_MAX;
	single = size > block_size / 4;
	block = malloc(sizeof(*block) + (single ? size : block_size));
	if (!block)
		return NULL;
	in->block_bytes += sizeof(*block) + (single ? size : block_size);
	block->used = 0;
	block->size = single ? size : block_size;
	if (single && head) {
		/* Behind the head, whose free room is then still used. */
		block->next = head->next;
		head->next = block;
	} else {
		block->next = head;
		in->blocks = block;
	}
	return block;
}

size_t intern_bytes(const struct intern *in)
{
	return in->block_bytes + in->cap * sizeof(*in->entries) +
	       (in->slots ? (in->slot_mask + 1) * sizeof(*in->slots) : 0);
}

/* Copy @len bytes and a NUL to where they stay. */
static const char *store(struct intern *in, const void *data, size_t len)
{
	size_t size = (len + 1 + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	struct intern_block *block = in->blocks;
	char *p;

	if (!block || block->size - block->used < size)
		block = add_block(in, size);
	if (!block)
		return NULL;
	p = block->data + block->used;
	if (len)
		memcpy(p, data, len);
	memset(p + len, 0, size - len);
	block->used += size;
	return p;
}

int intern_add(struct intern *in, const void *data, size_t len, uint32_t *ret, bool *is_new)
{
	const char *copy;
	uint32_t hash;
	size_t slot;
	int err;

	if (len >= UINT32_MAX)
		return -E2BIG;
	/*
	 * Before the look-up, so that there is always a free slot; nothing is lost if it was vain.
	 */
	err = grow_slots(in);
	if (err)
		return err;
	hash = (uint32_t)hash_seeded(in->seed, data, len);
	slot = find_slot(in, data, len, hash);
	if (in->slots[slot]) {
		*ret = hash_slot_number(in->slots[slot]) - 1;
		if (is_new)
			*is_new = false;
		return 0;
	}
	if (in->count >= INTERN_MAX)
		return -E2BIG;
	err = array_reserve(in->entries, in->cap, in->count + 1);
	if (err)
		return err;
	copy = store(in, data, len);
	if (!copy)
		return -ENOMEM;
	in->entries[in->count] = (struct intern_entry) {
		.data = copy,
		.len = (uint32_t)len,
		.hash = hash,
	};
	*ret = (uint32_t)in->count++;
	in->slots[slot] = hash_slot(hash, *ret + 1);
	if (is_new)
		*is_new = true;
	return 0;
}

int intern_str(struct intern *in, const char *s, uint32_t *ret)
{
	return intern_add(in, s, strlen(s), ret, NULL);
}

int intern_find(const struct intern *in, const void *data, size_t len, uint32_t *ret)
{
	size_t slot;

	if (!in->slots)
		return -ENOENT;
	slot = find_slot(in, data, len, (uint32_t)hash_seeded(in->seed, data, len));
	if (!in->slots[slot])
		return -ENOENT;
	*ret = hash_slot_number(in->slots[slot]) - 1;
	return 0;
}

const void *intern_get(const struct intern *in, uint32_t id, size_t *len)
{
	const struct intern_entry *e = &in->entries[id];

	if (len)
		*len = e->len;
	return e->data;
}
