/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/thread_samples.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "export/shown.h"
#include "profile/profile.h"
#include "profile/replay.h"
#include "view/filter.h"
#include "view/owner.h"
#include "view/state.h"

/* Bytes of the samples of a thread, one block after another. */
struct block {
	struct block *next;
	uint32_t len, size;
	uint8_t bytes[];
};

/*
 * Samples of a thread, each as what differs from the one before: a byte that tells how many bytes
 * each of the others takes (enum packed_size), then, as little endian: how much later it is, by how
 * much its value differs (zigzag), its stack, and all else (exclusive or).
 */
struct packed {
	struct block *first, *last; /* owned */
	struct thread_sample at;    /* the last one that was added */
	uint64_t n;		    /* that are still to come, at most */
	bool hidden;		    /* samples since then are not shown */
};

#define SAMPLE_BYTES_MAX   23					 /* 1 + 8 + 8 + 4 + 2 */
#define SAMPLE_BYTES	   9					 /* what a block reckons with */
#define SAMPLE_BYTES_LEAST 6					 /* of most threads */
#define SAMPLE_ROOM	   (SAMPLE_BYTES_MAX + sizeof(uint64_t)) /* words are read and written whole */
#define BLOCK_BYTES	   (32u << 10)

_Static_assert(STATES <= 1u << 5, "a state fits into thread_sample.state");

struct thread_samples {
	const struct shown *shown;
	const struct replay *from;
	size_t max;
	uint32_t *threads; /* those with samples, in their order; owned */
	size_t n;
	size_t first, end;     /* whose samples are kept, in @threads */
	size_t bytes;	       /* of their blocks */
	uint8_t *states;       /* by stack (state.h); NULL if there are no waits; owned */
	struct packed *packed; /* by thread id; owned */
	bool *kept;	       /* by thread id; owned */
};

static void forget(struct thread_samples *t, uint32_t thread)
{
	struct packed *packed = &t->packed[thread];

	for (struct block *block = packed->first, *next; block; block = next) {
		next = block->next;
		t->bytes -= sizeof(*block) + block->size;
		free(block);
	}
	*packed = (struct packed) { 0 };
	t->kept[thread] = false;
}

static void forget_all(struct thread_samples *t)
{
	while (t->end > t->first)
		forget(t, t->threads[--t->end]);
}

void thread_samples_free(struct thread_samples *t)
{
	if (!t)
		return;
	forget_all(t);
	free(t->threads);
	free(t->states);
	free(t->packed);
	free(t->kept);
	free(t);
}

static int compare_ranks(const void *a, const void *b, void *arg)
{
	const uint32_t *ranks = arg;
	uint32_t x = ranks[*(const uint32_t *)a], y = ranks[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

static int find_threads(struct thread_samples *t)
{
	const struct profile *p = t->shown->profile;
	_cleanup_free_ bool *selected = calloc(p->n_threads + 1, sizeof(*selected));
	_cleanup_free_ uint32_t *ranks = NULL;

	if (!selected || owner_ranks(p, OWNER_THREAD, &ranks))
		return -ENOMEM;
	view_selected_threads(t->shown->selection, selected);
	for (size_t i = 0; i < p->n_threads; i++)
		if (selected[i])
			t->threads[t->n++] = (uint32_t)i;
	if (t->n)
		qsort_r(t->threads, t->n, sizeof(*t->threads), compare_ranks, ranks);
	return 0;
}

int thread_samples_new(const struct shown *shown, const struct replay *from, size_t max,
		       struct thread_samples **ret)
{
	size_t n = shown->profile->n_threads + 1;
	struct thread_samples *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->shown = shown;
	t->from = from;
	t->max = max;
	t->threads = calloc(n, sizeof(*t->threads));
	t->packed = calloc(n, sizeof(*t->packed));
	t->kept = calloc(n, sizeof(*t->kept));
	if (!t->threads || !t->packed || !t->kept || find_threads(t) ||
	    (profile_has_waits(shown->profile) && state_of_stacks(shown->profile, &t->states))) {
		thread_samples_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

size_t thread_samples_count(const struct thread_samples *t)
{
	return t->n;
}

uint32_t thread_samples_thread(const struct thread_samples *t, size_t i)
{
	return t->threads[i];
}

static unsigned int state_of_sample(const struct thread_samples *t, const struct profile_sample *s)
{
	if (!t->states)
		return state_of_cpu(s->flags);
	return state_of(t->states, s->stack, s->flags) & STATE_MASK;
}

/* Also of a file that was made to hurt the times of a thread do not go back. */
static struct thread_sample make_sample(const struct thread_samples *t,
					const struct profile_sample *s, uint64_t not_before,
					bool after_hidden)
{
	return (struct thread_sample) {
		.ts = s->ts > not_before ? s->ts : not_before,
		.value = s->value,
		.stack = shown_stack(t->shown, s->stack),
		.flags = s->flags & SAMPLE_FLAGS,
		.after_hidden = after_hidden,
		.state = state_of_sample(t, s) & STATE_MASK,
	};
}

/* ---- samples that are kept ---- */

/* Where the first byte has the sizes, as indices of these. */
enum packed_size {
	SIZE_TIME = 0,
	SIZE_VALUE = 2,
	SIZE_STACK = 4,
	SIZE_REST = 6,
};

static const uint8_t time_sizes[] = { 2, 3, 4, 8 };
static const uint8_t value_sizes[] = { 0, 2, 4, 8 };
static const uint8_t stack_sizes[] = { 0, 2, 3, 4 };
static const uint8_t rest_sizes[] = { 0, 2 };

static uint16_t rest_of(const struct thread_sample *s)
{
	return (uint16_t)(s->flags | s->after_hidden << 10 | s->state << 11);
}

/*
 * Write the lowest bytes of @v: as many as the first of @sizes that takes it, whose index goes to
 * @head.
 */
static uint8_t *put(uint8_t *to, uint64_t v, const uint8_t *sizes, unsigned int at, uint8_t *head)
{
	const uint64_t le = htole64(v);
	unsigned int i = 0;

	while (sizes[i] < sizeof(v) && v >> 8 * sizes[i])
		i++;
	memcpy(to, &le, sizeof(le));
	*head |= (uint8_t)(i << at);
	return to + sizes[i];
}

static const uint8_t *take(const uint8_t *from, size_t size, uint64_t *ret)
{
	uint64_t le;

	memcpy(&le, from, sizeof(le));
	*ret = size == sizeof(le) ? le64toh(le) : le64toh(le) & ((1ull << 8 * size) - 1);
	return from + size;
}

/* A thread of few samples gets a small block. */
static struct block *add_block(struct thread_samples *t, struct packed *packed)
{
	uint64_t size = packed->n < BLOCK_BYTES / SAMPLE_BYTES
				? packed->n * SAMPLE_BYTES + SAMPLE_ROOM
				: BLOCK_BYTES;
	struct block *block = malloc(sizeof(*block) + size);

	if (!block)
		return NULL;
	*block = (struct block) { .size = (uint32_t)size };
	t->bytes += sizeof(*block) + size;
	if (packed->last)
		packed->last->next = block;
	else
		packed->first = block;
	return packed->last = block;
}

static int pack(struct thread_samples *t, struct packed *packed, const struct thread_sample *s)
{
	struct block *block = packed->last;
	const struct thread_sample *at = &packed->at;
	const uint64_t change = s->value - at->value;
	uint8_t *head, *end;

	if (!block || block->size - block->len < SAMPLE_ROOM)
		block = add_block(t, packed);
	if (!block)
		return -ENOMEM;
	head = block->bytes + block->len;
	*head = 0;
	end = put(head + 1, s->ts - at->ts, time_sizes, SIZE_TIME, head);
	end = put(end, change << 1 ^ -(change >> 63), value_sizes, SIZE_VALUE, head);
	end = put(end, s->stack ^ at->stack, stack_sizes, SIZE_STACK, head);
	end = put(end, rest_of(s) ^ rest_of(at), rest_sizes, SIZE_REST, head);
	block->len = (uint32_t)(end - block->bytes);
	packed->at = *s;
	packed->n -= packed->n > 0;
	return 0;
}

static const uint8_t *unpack(const uint8_t *from, struct thread_sample *s)
{
	const unsigned int head = *from++;
	uint64_t v;

	from = take(from, time_sizes[head >> SIZE_TIME & 3], &v);
	s->ts += v;
	from = take(from, value_sizes[head >> SIZE_VALUE & 3], &v);
	s->value += v >> 1 ^ -(v & 1);
	from = take(from, stack_sizes[head >> SIZE_STACK & 3], &v);
	s->stack ^= (uint32_t)v;
	from = take(from, rest_sizes[head >> SIZE_REST & 1], &v);
	v ^= rest_of(s);
	s->flags = v & SAMPLE_FLAGS;
	s->after_hidden = v >> 10 & 1;
	s->state = (uint16_t)v >> 11;
	return from;
}

static int keep(void *arg, const struct profile_sample *s)
{
	struct thread_samples *t = arg;
	struct thread_sample sample;
	struct packed *packed;

	if (!t->kept[s->thread])
		return 0;
	packed = &t->packed[s->thread];
	if (!shown_sample(t->shown, s)) {
		packed->hidden = true;
		return 0;
	}
	sample = make_sample(t, s, packed->at.ts, packed->hidden);
	packed->hidden = false;
	if (pack(t, packed, &sample))
		return -ENOMEM;
	while (t->bytes > t->max && t->end > t->first)
		forget(t, t->threads[--t->end]);
	return 0;
}

/*
 * Keep the samples of the threads from @i on, as many as there is room for; it may be none. How
 * much room they take shows when they are read: those of the last threads make room again.
 */
static int load(struct thread_samples *t, size_t i, struct err *err)
{
	const struct profile_thread *threads = t->shown->profile->threads;
	uint64_t room = t->max / SAMPLE_BYTES_LEAST;
	int r;

	forget_all(t);
	t->first = t->end = i;
	for (; t->end < t->n && threads[t->threads[t->end]].samples <= room; t->end++) {
		uint32_t thread = t->threads[t->end];

		t->kept[thread] = true;
		t->packed[thread].n = threads[thread].samples;
		room -= threads[thread].samples;
	}
	if (t->end == i)
		return 0;
	r = profile_each_sample(t->shown->profile, t->from, keep, t, err);
	return r == -ENOMEM ? err_oom(err) : r;
}

static int each_kept(const struct packed *packed, thread_sample_fn *fn, void *arg)
{
	struct thread_sample sample = { 0 };
	int r = 0;

	for (const struct block *block = packed->first; block && !r; block = block->next) {
		const uint8_t *at = block->bytes;

		while (at < block->bytes + block->len && !r) {
			at = unpack(at, &sample);
			r = fn(arg, &sample);
		}
	}
	return r;
}

/* ---- samples that are read again ---- */

/* Passes on the samples of one thread. */
struct pass {
	const struct thread_samples *t;
	uint32_t thread;
	uint64_t last_ts;
	bool hidden; /* samples since then are not shown */
	thread_sample_fn *fn;
	void *arg;
};

static int pass_on(void *arg, const struct profile_sample *s)
{
	struct pass *pass = arg;
	struct thread_sample sample;

	if (s->thread != pass->thread)
		return 0;
	if (!shown_sample(pass->t->shown, s)) {
		pass->hidden = true;
		return 0;
	}
	sample = make_sample(pass->t, s, pass->last_ts, pass->hidden);
	pass->hidden = false;
	pass->last_ts = sample.ts;
	return pass->fn(pass->arg, &sample);
}

int thread_samples_load(struct thread_samples *t, size_t i, uint64_t *n, struct err *err)
{
	const int r = i < t->first || i >= t->end ? load(t, i, err) : 0;

	*n = i < t->end ? t->shown->profile->threads[t->threads[i]].samples : 0;
	return r;
}

int thread_samples_each(struct thread_samples *t, size_t i, thread_sample_fn *fn, void *arg,
			struct err *err)
{
	struct pass pass = { .t = t, .thread = t->threads[i], .fn = fn, .arg = arg };
	uint64_t n;
	int r = thread_samples_load(t, i, &n, err);

	if (r)
		return r;
	if (i == t->end)
		return profile_each_sample(t->shown->profile, t->from, pass_on, &pass, err);
	return each_kept(&t->packed[t->threads[i]], fn, arg);
}
