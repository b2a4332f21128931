/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the server has been asked for and has not answered yet: it waits for a snapshot, then for
 * one of SERVE_RENDERS places, then for its render.
 *
 * It knows nothing of HTTP but the number of a status. Not thread-safe; nothing here waits.
 */
#ifndef RBPF_SERVE_WORK_H
#define RBPF_SERVE_WORK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/link.h"
#include "serve/query.h"
#include "serve/render.h"

#define SERVE_SNAPSHOTS 4 /* kept at a time */

/* A recording, or what became of asking for it. */
struct serve_snapshot {
	bool used;
	int code; /* 0 or -errno */
	struct serve_ask asked;
	uint64_t from, to;	/* seconds that it has */
	int fds[SERVE_RENDERS]; /* -1: none; owned */
	unsigned int users;	/* requests that are not answered yet */
	uint64_t age;		/* the greater, the newer */
};

enum serve_stage {
	SERVE_WAITS, /* for a snapshot or a place */
	SERVE_RUNS,
	SERVE_DONE,
};

struct serve_request {
	enum serve_stage stage;
	struct serve_query query;
	struct serve_ask range;	      /* seconds */
	struct serve_snapshot *taken; /* NULL: none yet */
	struct serve_render render;
	int place;	      /* of its render; -1: none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC: until then its render begins */
	/* When it is done: */
	unsigned int status; /* of HTTP */
	int body;	     /* the answer from its start, or -1: there is only text; owned */
	char text[1024];     /* what went wrong */
	void *connection;    /* the caller's */
	struct serve_request *next;
};

/* Not released by anything but the end of the process. */
struct serve_work {
	serve_run_fn *run;
	void *run_arg;
	bool live;
	bool ended;	   /* no more seconds will come */
	int channel;	   /* to who has the samples, if live; not owned */
	bool asking;	   /* an answer is due */
	uint64_t asked_ns; /* CLOCK_MONOTONIC */
	uint64_t from, to; /* seconds that there are */
	struct serve_snapshot snapshots[SERVE_SNAPSHOTS];
	uint64_t n_snapshots;			     /* so far */
	struct serve_request *places[SERVE_RENDERS]; /* who has each */
	struct serve_request *first; /* in the order in which they came; each is the caller's */
};

/*
 * Take up @rq, with its query, which is released with it by serve_work_drop(). It is done when its
 * stage says so, maybe at once.
 */
void serve_work_add(struct serve_work *w, struct serve_request *rq, uint64_t now);
void serve_work_drop(struct serve_work *w, struct serve_request *rq);

/*
 * Take what is told on the channel, and go on with all requests. Returns 0, or -EPIPE if who has
 * the samples is gone.
 */
int serve_work_advance(struct serve_work *w, uint64_t now);

/*
 * Fill @fds with what serve_work_advance() waits for. Returns how many: at most SERVE_RENDERS + 1.
 */
size_t serve_work_poll(const struct serve_work *w, struct pollfd *fds);

/* Give a FILE of @seconds to serve, of which @fds are descriptors, owned from now on. */
void serve_work_set_file(struct serve_work *w, const int fds[SERVE_RENDERS], uint64_t seconds);

#endif
