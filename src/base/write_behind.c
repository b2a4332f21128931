/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/write_behind.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/thread.h"

/* That were written are used again: new memory of that size would cost page faults each time. */
#define SPARE_PIECES 2

struct piece {
	STAILQ_ENTRY(piece) link;
	size_t cap, len;
	uint8_t bytes[];
};

STAILQ_HEAD(pieces, piece);

struct write_behind {
	write_behind_fn *write;
	void *arg;
	size_t max_bytes;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* for what is below */
	pthread_cond_t changed;
	struct pieces waiting; /* to be written, the first of which may be being written; owned */
	struct pieces spare;   /* owned */
	size_t n_spare;
	size_t bytes; /* of those that wait */
	int code;     /* of @write */
	bool end;     /* nothing is added any more */
};

/* The next piece to write; NULL if none will come. */
static struct piece *wait_for_bytes(struct write_behind *w)
{
	struct piece *piece;

	pthread_mutex_lock(&w->lock);
	while (!w->end && STAILQ_EMPTY(&w->waiting))
		pthread_cond_wait(&w->changed, &w->lock);
	piece = STAILQ_FIRST(&w->waiting);
	pthread_mutex_unlock(&w->lock);
	return piece;
}

/* @piece, the first, has been written, or cannot be: with @code. */
static void finish(struct write_behind *w, struct piece *piece, int code)
{
	pthread_mutex_lock(&w->lock);
	w->code = code;
	STAILQ_REMOVE_HEAD(&w->waiting, link);
	w->bytes -= piece->len;
	if (w->n_spare < SPARE_PIECES) {
		STAILQ_INSERT_HEAD(&w->spare, piece, link);
		w->n_spare++;
		piece = NULL;
	}
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	free(piece);
}

static void *write_pieces(void *arg)
{
	struct write_behind *w = arg;
	struct piece *piece;
	int r = 0;

	while ((piece = wait_for_bytes(w))) {
		if (!r)
			r = w->write(w->arg, piece->bytes, piece->len);
		finish(w, piece, r);
	}
	return NULL;
}

int write_behind_new(write_behind_fn *write, void *arg, size_t max_bytes, struct write_behind **ret)
{
	struct write_behind *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->write = write;
	w->arg = arg;
	w->max_bytes = max_bytes;
	STAILQ_INIT(&w->waiting);
	STAILQ_INIT(&w->spare);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->threaded = thread_begin(&w->thread, write_pieces, w);
	*ret = w;
	return 0;
}

/*
 * What @write failed with, once @len bytes more may wait, or because of it. *@ret is a spare piece,
 * however large, or NULL.
 */
static int wait_for_room(struct write_behind *w, size_t len, struct piece **ret)
{
	struct piece *piece;
	int r;

	*ret = NULL;
	pthread_mutex_lock(&w->lock);
	while (!w->code && w->bytes && (w->bytes >= w->max_bytes || len > w->max_bytes - w->bytes))
		pthread_cond_wait(&w->changed, &w->lock);
	r = w->code;
	piece = STAILQ_FIRST(&w->spare);
	if (!r && piece) {
		STAILQ_REMOVE_HEAD(&w->spare, link);
		w->n_spare--;
		*ret = piece;
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

/* @piece or a new one, for @len bytes; NULL: no memory. */
static struct piece *with_room(struct piece *piece, size_t len)
{
	if (piece && piece->cap >= len)
		return piece;
	free(piece);
	piece = malloc(sizeof(*piece) + len);
	if (piece)
		piece->cap = len;
	return piece;
}

static void put(struct write_behind *w, struct piece *piece)
{
	pthread_mutex_lock(&w->lock);
	STAILQ_INSERT_TAIL(&w->waiting, piece, link);
	w->bytes += piece->len;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

int write_behind_addv(struct write_behind *w, const struct iovec *iov, int n)
{
	struct piece *piece = NULL;
	size_t len = 0;
	int i, r = w->threaded ? 0 : w->code;

	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (w->threaded)
		r = wait_for_room(w, len, &piece);
	if (r)
		return r;
	piece = with_room(piece, len);
	if (!piece)
		return -ENOMEM;
	piece->len = 0;
	for (i = 0; i < n; i++) {
		memcpy(piece->bytes + piece->len, iov[i].iov_base, iov[i].iov_len);
		piece->len += iov[i].iov_len;
	}
	put(w, piece);
	if (w->threaded)
		return 0;
	finish(w, piece, w->write(w->arg, piece->bytes, piece->len));
	return w->code;
}

int write_behind_add(struct write_behind *w, const void *data, size_t len)
{
	const struct iovec iov = { (void *)data, len };

	return write_behind_addv(w, &iov, 1);
}

int write_behind_end(struct write_behind *w)
{
	struct piece *piece;
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
	while ((piece = STAILQ_FIRST(&w->spare))) {
		STAILQ_REMOVE_HEAD(&w->spare, link);
		free(piece);
	}
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}
