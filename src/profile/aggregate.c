/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "profile/profile.h"
#include "profile/reserve.h"
#include "rbpf_file.h"

#define SLOTS_MIN 1024u

_Static_assert(RBPF_FILE_MAX_IDS < 1u << HASH_SLOT_BITS, "an aggregate + 1 fits");

/* ---- by process ---- */

/* Make room for a thread of each process. */
static int reserve_stand_ins(struct aggregate_index *index, const struct profile *p)
{
	size_t n = index->cap_stand_ins;

	if (!p->by_process || p->n_processes <= n)
		return 0;
	if (array_reserve(index->stand_ins, index->cap_stand_ins, p->n_processes))
		return -ENOMEM;
	memset(index->stand_ins + n, 0, (index->cap_stand_ins - n) * sizeof(*index->stand_ins));
	return 0;
}

/* The thread that stands for all of its process: the first one that is met. */
static uint32_t stand_in(const struct aggregate_index *index, const struct profile *p,
			 uint32_t thread)
{
	uint32_t *met = &index->stand_ins[p->threads[thread].process];

	if (!*met)
		*met = thread + 1;
	return *met - 1;
}

/* ---- keys ---- */

/*
 * What aggregates are told apart by, of @s. How long a request takes is known at the end only:
 * until then those of different requests are told apart, if that matters.
 */
static struct profile_aggregate key_of(const struct aggregate_index *index, const struct profile *p,
				       const struct profile_sample *s)
{
	return (struct profile_aggregate) {
		.thread = p->by_thread	  ? s->thread
			  : p->by_process ? stand_in(index, p, s->thread)
					  : PROFILE_NONE,
		.stack = s->stack,
		.request = p->slow_ns	   ? s->request
			   : p->by_request ? profile_sample_kind(p, s)
					   : 0,
		.flags = s->flags & SAMPLE_FLAGS,
		.event = s->event,
		.marks = profile_marks(p, s),
	};
}

static int make(const struct aggregate_index *index, struct profile *p,
		const struct profile_sample *s, struct profile_aggregate **ret)
{
	int r = RESERVE_ONE(p->aggregates, p->n_aggregates, p->cap_aggregates);

	if (!r && p->by_span)
		r = array_reserve(p->aggregate_spans, p->cap_aggregate_spans, p->n_aggregates + 1);
	if (!r && p->with_lengths)
		r = array_reserve(p->aggregate_waits, p->cap_aggregate_waits, p->n_aggregates + 1);
	if (r)
		return r;
	if (p->with_lengths)
		p->aggregate_waits[p->n_aggregates] = (struct wait_sum) { 0 };
	if (p->by_span)
		p->aggregate_spans[p->n_aggregates] = s->span;
	*ret = &p->aggregates[p->n_aggregates++];
	**ret = key_of(index, p, s);
	return 0;
}

/* ---- by stack ---- */

static int reserve_last(struct aggregate_index *index, uint32_t stack)
{
	if (stack < index->n_last)
		return 0;
	if (array_reserve(index->last, index->cap_last, (size_t)stack + 1))
		return -ENOMEM;
	memset(index->last + index->n_last, 0,
	       (index->cap_last - index->n_last) * sizeof(*index->last));
	index->n_last = index->cap_last;
	return 0;
}

static int add_to_list(struct aggregate_index *index, struct profile *p,
		       const struct profile_sample *s, struct profile_aggregate **ret)
{
	size_t n = p->n_aggregates;
	int r;

	if (reserve_last(index, s->stack) || array_reserve(index->before, index->cap_before, n + 1))
		return -ENOMEM;
	r = make(index, p, s, ret);
	if (r)
		return r;
	index->before[n] = index->last[s->stack];
	index->last[s->stack] = (uint32_t)n + 1;
	return 0;
}

static int find_by_stack(struct aggregate_index *index, struct profile *p,
			 const struct profile_sample *s, struct profile_aggregate **ret)
{
	uint32_t i = s->stack < index->n_last ? index->last[s->stack] : 0;

	for (; i; i = index->before[i - 1]) {
		*ret = &p->aggregates[i - 1];
		if ((*ret)->flags == (s->flags & SAMPLE_FLAGS))
			return 0;
	}
	return add_to_list(index, p, s, ret);
}

/* ---- by thread or process, request and stack ---- */

/*
 * Thread and stack are less than 2^28 (RBPF_FILE_MAX_IDS). @span: 0 unless the profile is by_span.
 */
static uint32_t hash_of(const struct aggregate_index *index, const struct profile_aggregate *a,
			uint32_t span)
{
	uint64_t h = index->seed ^ ((uint64_t)a->thread << 32 | a->stack) ^ (uint64_t)span << 16;

	/* The finaliser of MurmurHash3. */
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33 ^ (uint64_t)a->request << 32 ^ (uint64_t)a->event << 16 ^ a->flags ^
	     (uint64_t)a->marks << 9) *
	    0xc4ceb9fe1a85ec53ull;
	return (uint32_t)(h ^ h >> 33);
}

static int grow(struct aggregate_index *index, const struct profile *p)
{
	size_t n = index->slots ? (index->mask + 1) * 2 : SLOTS_MIN;
	uint32_t *slots;

	/* At most half full. */
	if (index->slots && p->n_aggregates < (index->mask + 1) / 2)
		return 0;
	if (!index->slots)
		index->seed = hash_seed();
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const uint32_t hash = hash_of(index, a, p->by_span ? p->aggregate_spans[i] : 0);
		size_t slot = hash & (n - 1);

		while (slots[slot])
			slot = (slot + 1) & (n - 1);
		slots[slot] = hash_slot(hash, (uint32_t)i + 1);
	}
	free(index->slots);
	index->slots = slots;
	index->mask = n - 1;
	return 0;
}

static inline bool is_of(const struct profile_aggregate *a, const struct profile_aggregate *key)
{
	return a->thread == key->thread && a->stack == key->stack && a->request == key->request &&
	       a->flags == key->flags && a->event == key->event && a->marks == key->marks;
}

static int find_by_hash(struct aggregate_index *index, struct profile *p,
			const struct profile_sample *s, struct profile_aggregate **ret)
{
	const struct profile_aggregate key = key_of(index, p, s);
	const uint32_t span = p->by_span ? s->span : 0;
	uint32_t hash;
	size_t at;
	int r;

	if (grow(index, p))
		return -ENOMEM;
	hash = hash_of(index, &key, span);
	for (at = hash & index->mask; index->slots[at]; at = (at + 1) & index->mask) {
		const uint32_t slot = index->slots[at], i = hash_slot_number(slot) - 1;

		if (!hash_slot_fits(slot, hash))
			continue;
		*ret = &p->aggregates[i];
		if (is_of(*ret, &key) && (!p->by_span || p->aggregate_spans[i] == span))
			return 0;
	}
	r = make(index, p, s, ret);
	if (!r)
		index->slots[at] = hash_slot(hash, (uint32_t)p->n_aggregates);
	return r;
}

/* ---- by request and stack ---- */

static int find_by_last(struct aggregate_index *index, struct profile *p,
			const struct profile_sample *s, struct profile_aggregate **ret)
{
	const struct profile_aggregate key = key_of(index, p, s);
	uint32_t *last;
	int r;

	if (reserve_last(index, s->stack))
		return -ENOMEM;
	last = &index->last[s->stack];
	if (*last && is_of(&p->aggregates[*last - 1], &key)) {
		*ret = &p->aggregates[*last - 1];
		return 0;
	}
	r = find_by_hash(index, p, s, ret);
	if (!r)
		*last = (uint32_t)(*ret - p->aggregates) + 1;
	return r;
}

/* ---- all of them ---- */

/* How an aggregate is found. */
enum way {
	BY_STACK,
	BY_LAST,
	BY_HASH,
};

static enum way way_of(const struct profile *p)
{
	if (p->by_thread || p->by_process || p->by_span)
		return BY_HASH;
	return p->by_request ? BY_LAST : BY_STACK;
}

/* The aggregate of @sample, which is made if there is none. Room for stand-ins is reserved. */
static inline int find(struct aggregate_index *index, struct profile *p, enum way way,
		       const struct profile_sample *sample, struct profile_aggregate **ret)
{
	return way == BY_STACK	? find_by_stack(index, p, sample, ret)
	       : way == BY_LAST ? find_by_last(index, p, sample, ret)
				: find_by_hash(index, p, sample, ret);
}

static inline int add(struct aggregate_index *index, struct profile *p, enum way way,
		      const struct profile_sample *sample, uint64_t n)
{
	struct profile_aggregate *a;
	int r = find(index, p, way, sample, &a);

	if (r)
		return r;
	a->samples += n;
	profile_add(&a->value, sample->value);
	if (sample->event == p->event)
		p->threads[sample->thread].samples += n;
	return 0;
}

int aggregate_add_sum(struct aggregate_index *index, struct profile *p,
		      const struct profile_sample *sample, uint64_t n)
{
	return reserve_stand_ins(index, p) ? -ENOMEM : add(index, p, way_of(p), sample, n);
}

int aggregate_add(struct aggregate_index *index, struct profile *p,
		  const struct profile_sample *sample)
{
	return aggregate_add_sum(index, p, sample, 1);
}

int aggregate_add_length(struct aggregate_index *index, struct profile *p,
			 const struct profile_sample *wait)
{
	const struct wait_sum sum = { .n = 1, .ns = wait->value, .longest_ns = wait->value };
	struct profile_aggregate *a;
	int r = reserve_stand_ins(index, p) ? -ENOMEM : find(index, p, way_of(p), wait, &a);

	if (!r)
		wait_sum_add(&p->aggregate_waits[a - p->aggregates], &sum);
	return r;
}

/* Begin to bring what the search for these samples will look at. */
static void prefetch_by_stack(const struct aggregate_index *index, const struct profile *p,
			      const struct profile_sample *samples, size_t n)
{
	const uint32_t *places[AGGREGATE_BATCH];

	for (size_t i = 0; i < n; i++) {
		const uint32_t stack = samples[i].stack;

		places[i] = stack < index->n_last ? &index->last[stack] : NULL;
		__builtin_prefetch(places[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (places[i] && *places[i])
			__builtin_prefetch(&p->aggregates[*places[i] - 1], 1);
}

static void prefetch_by_hash(const struct aggregate_index *index, const struct profile *p,
			     const struct profile_sample *samples, size_t n)
{
	uint32_t hashes[AGGREGATE_BATCH];

	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate key = key_of(index, p, &samples[i]);

		hashes[i] = hash_of(index, &key, p->by_span ? samples[i].span : 0);
		__builtin_prefetch(&index->slots[hashes[i] & index->mask]);
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = hashes[i] & index->mask;

		while (index->slots[at] && !hash_slot_fits(index->slots[at], hashes[i]))
			at = (at + 1) & index->mask;
		if (index->slots[at])
			__builtin_prefetch(&p->aggregates[hash_slot_number(index->slots[at]) - 1],
					   1);
	}
}

int aggregate_add_batch(struct aggregate_index *index, struct profile *p,
			const struct profile_sample *samples, size_t n)
{
	const enum way way = way_of(p);
	int r = 0;

	if (reserve_stand_ins(index, p))
		return -ENOMEM;
	if (way != BY_HASH)
		prefetch_by_stack(index, p, samples, n);
	else if (index->slots)
		prefetch_by_hash(index, p, samples, n);
	for (size_t i = 0; i < n && !r; i++)
		r = add(index, p, way, &samples[i], 1);
	return r;
}

void aggregate_index_deinit(struct aggregate_index *index)
{
	free(index->last);
	free(index->before);
	free(index->slots);
	free(index->stand_ins);
	*index = (struct aggregate_index)AGGREGATE_INDEX_INIT;
}

void aggregate_tell_slow(struct profile *p)
{
	for (size_t i = 0; p->slow_ns && i < p->n_aggregates; i++) {
		struct profile_aggregate *a = &p->aggregates[i];

		a->slow = profile_request_is_slow(p, a->request);
		a->request = a->request ? p->requests[a->request].kind : 0;
	}
}
