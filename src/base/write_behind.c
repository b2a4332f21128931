/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/write_behind.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/thread.h"

struct piece {
	uint8_t *bytes; /* owned */
	size_t cap, len;
};

struct write_behind {
	write_behind_fn *write;
	void *arg;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* for what is below */
	pthread_cond_t changed;
	struct piece pieces[WRITE_BEHIND_PIECES];
	uint64_t n_added, n_written; /* in turn in each of @pieces */
	int code;		     /* of @write */
	bool end;		     /* nothing is added any more */
};

/* The next piece to write; NULL if none will come. */
static struct piece *wait_for_bytes(struct write_behind *w)
{
	struct piece *piece = NULL;

	pthread_mutex_lock(&w->lock);
	while (!w->end && w->n_added == w->n_written)
		pthread_cond_wait(&w->changed, &w->lock);
	if (w->n_added != w->n_written)
		piece = &w->pieces[w->n_written % WRITE_BEHIND_PIECES];
	pthread_mutex_unlock(&w->lock);
	return piece;
}

static void *write_pieces(void *arg)
{
	struct write_behind *w = arg;
	struct piece *piece;
	int r = 0;

	while ((piece = wait_for_bytes(w))) {
		if (!r)
			r = w->write(w->arg, piece->bytes, piece->len);
		pthread_mutex_lock(&w->lock);
		w->code = r;
		w->n_written++;
		pthread_cond_signal(&w->changed);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

int write_behind_new(write_behind_fn *write, void *arg, struct write_behind **ret)
{
	struct write_behind *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->write = write;
	w->arg = arg;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->threaded = thread_begin(&w->thread, write_pieces, w);
	*ret = w;
	return 0;
}

/* What @write failed with, once there is room for a piece, or because of it. */
static int wait_for_room(struct write_behind *w)
{
	int r;

	pthread_mutex_lock(&w->lock);
	while (!w->code && w->n_added - w->n_written == WRITE_BEHIND_PIECES)
		pthread_cond_wait(&w->changed, &w->lock);
	r = w->code;
	pthread_mutex_unlock(&w->lock);
	return r;
}

int write_behind_add(struct write_behind *w, const void *data, size_t len)
{
	struct piece *piece = &w->pieces[w->n_added % WRITE_BEHIND_PIECES];
	int r;

	if (!w->threaded)
		return w->code ? w->code : (w->code = w->write(w->arg, data, len));
	r = wait_for_room(w);
	if (r)
		return r;
	if (array_reserve(piece->bytes, piece->cap, len + 1))
		return -ENOMEM;
	memcpy(piece->bytes, data, len);
	piece->len = len;
	pthread_mutex_lock(&w->lock);
	w->n_added++;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

int write_behind_end(struct write_behind *w)
{
	int r;

	if (!w)
		return 0;
	if (w->threaded) {
		pthread_mutex_lock(&w->lock);
		w->end = true;
		pthread_cond_signal(&w->changed);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	r = w->code;
	for (size_t i = 0; i < WRITE_BEHIND_PIECES; i++)
		free(w->pieces[i].bytes);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}
