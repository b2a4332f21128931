/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "worker/channel.h"

_Static_assert(SERVE_RENDERS <= CHANNEL_MAX_FDS, "a snapshot comes in one message");

#define MAX_WAIT_NS (20 * NSEC_PER_SEC) /* for a snapshot and a place */
#define MAX_ASK_NS  (15 * NSEC_PER_SEC) /* for an answer to serve_ask */

/* ---- what is done ---- */

static void fail(struct serve_request *rq, unsigned int status, const char *why)
{
	rq->stage = SERVE_DONE;
	rq->status = status;
	snprintf(rq->text, sizeof(rq->text), "%s\n", why);
}

/* What the render wrote to standard error becomes the text of the answer. */
static void take_text(struct serve_request *rq)
{
	ssize_t n = pread(rq->render.why, rq->text, sizeof(rq->text) - 1, 0);

	rq->text[n > 0 ? n : 0] = '\0';
	if (n <= 0)
		snprintf(rq->text, sizeof(rq->text), "this view could not be made\n");
}

static void take_render(struct serve_work *w, struct serve_request *rq, int status)
{
	static const unsigned int statuses[] = { 200, 500, 400, 500, 500, 422, 404 };

	w->places[rq->place] = NULL;
	rq->place = -1;
	if (status == -ETIMEDOUT) {
		fail(rq, 503,
		     "this view takes too long: choose a shorter time, or rbpf on the command "
		     "line");
	} else if (status == -EPERM) {
		fail(rq, 500, "this view was ended: it tried something that it is not allowed to");
	} else if (status < 0) {
		fail(rq, 503,
		     "this view takes too much: choose a shorter time, or rbpf on the command "
		     "line");
	} else {
		rq->stage = SERVE_DONE;
		rq->status = (size_t)status < ARRAY_SIZE(statuses) ? statuses[status] : 500;
		if (status) {
			take_text(rq);
		} else {
			rq->body = rq->render.out;
			rq->render.out = -1;
		}
	}
	serve_render_deinit(&rq->render);
}

/* ---- snapshots ---- */

static void drop_snapshot(struct serve_snapshot *s)
{
	for (size_t i = 0; i < SERVE_RENDERS; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	*s = (struct serve_snapshot) { .fds = { -1, -1 } };
}

static struct serve_snapshot *find_snapshot(struct serve_work *w, struct serve_ask range)
{
	for (size_t i = 0; i < SERVE_SNAPSHOTS; i++) {
		struct serve_snapshot *s = &w->snapshots[i];

		if (s->used &&
		    (!w->live || (s->asked.from == range.from && s->asked.to == range.to)))
			return s;
	}
	return NULL;
}

/* Room for one more, the oldest that nobody uses; NULL if all are used. */
static struct serve_snapshot *make_room(struct serve_work *w)
{
	struct serve_snapshot *oldest = NULL;

	for (size_t i = 0; i < SERVE_SNAPSHOTS; i++) {
		struct serve_snapshot *s = &w->snapshots[i];

		if (!s->used)
			return s;
		if (!s->users && (!oldest || s->age < oldest->age))
			oldest = s;
	}
	if (oldest)
		drop_snapshot(oldest);
	return oldest;
}

static void add_snapshot(struct serve_work *w, const struct serve_told *told, const int *fds,
			 size_t n)
{
	struct serve_snapshot *s = make_room(w);
	size_t i;

	if (!s || (!told->result && n != SERVE_RENDERS)) {
		for (i = 0; i < n; i++)
			close(fds[i]);
		return;
	}
	*s = (struct serve_snapshot) { .used = true,
				       .code = told->result,
				       .asked = told->asked,
				       .from = told->from,
				       .to = told->to,
				       .age = ++w->n_snapshots };
	for (i = 0; i < SERVE_RENDERS; i++)
		s->fds[i] = i < n ? fds[i] : -1;
}

static void ask(struct serve_work *w, struct serve_request *rq, uint64_t now)
{
	const struct channel_part part = { &rq->range, sizeof(rq->range) };

	if (w->asking || !make_room(w))
		return;
	if (channel_send(w->channel, &part, 1, NULL, 0))
		return; /* full: next time */
	w->asking = true;
	w->asked_ns = now;
}

static int take_told(struct serve_work *w)
{
	struct serve_told told;
	int fds[CHANNEL_MAX_FDS];
	size_t len, n;
	int r;

	while (!(r = channel_receive(w->channel, &told, sizeof(told), &len, fds, &n, 0))) {
		if (len != sizeof(told) || told.says != SERVE_SNAPSHOT) {
			while (n)
				close(fds[--n]);
			if (len == sizeof(told)) {
				w->from = told.from;
				w->to = told.to;
				w->ended = told.says == SERVE_ENDED;
			}
			continue;
		}
		w->asking = false;
		add_snapshot(w, &told, fds, n);
	}
	return r == -EAGAIN ? 0 : -EPIPE;
}

/* ---- requests ---- */

static void start(struct serve_work *w, struct serve_request *rq, int place)
{
	const struct serve_snapshot *s = rq->taken;
	_cleanup_buf_ struct buf words = BUF_INIT;
	int r = -ENOMEM;

	serve_query_command(&rq->query, SERVE_RENDER_PATH, s->from, s->to, &words);
	if (!buf_failed(&words))
		r = serve_render_start(w->run, w->run_arg, words.data, words.len, s->fds[place],
				       &rq->render);
	if (r) {
		fail(rq, 503, strerror(-r));
		return;
	}
	rq->stage = SERVE_RUNS;
	rq->place = place;
	w->places[place] = rq;
}

static void send_snapshot(struct serve_request *rq)
{
	rq->body = dup(rq->taken->fds[0]);
	if (rq->body < 0) {
		fail(rq, 503, strerror(errno));
		return;
	}
	rq->stage = SERVE_DONE;
	rq->status = 200;
}

static void go_on(struct serve_work *w, struct serve_request *rq, uint64_t now)
{
	if (rq->stage == SERVE_RUNS) {
		int status = serve_render_ended(&rq->render, now);

		if (status != -EAGAIN)
			take_render(w, rq, status);
		return;
	}
	if (now >= rq->deadline_ns) {
		fail(rq, 503, "too much else is being asked for: try again");
		return;
	}
	if (!rq->taken) {
		rq->taken = find_snapshot(w, rq->range);
		if (!rq->taken) {
			ask(w, rq, now);
			return;
		}
		rq->taken->users++;
	}
	if (rq->taken->code) {
		fail(rq, rq->taken->code == -ENODATA ? 404 : 503,
		     rq->taken->code == -ENODATA ? "nothing was sampled in that time"
						 : strerror(-rq->taken->code));
		return;
	}
	if (rq->query.view->kind == SERVE_RECORDING) {
		send_snapshot(rq);
		return;
	}
	for (int place = 0; place < SERVE_RENDERS; place++) {
		if (!w->places[place]) {
			start(w, rq, place);
			return;
		}
	}
}

void serve_work_add(struct serve_work *w, struct serve_request *rq, uint64_t now)
{
	struct serve_request **at = &w->first;

	while (*at)
		at = &(*at)->next;
	*at = rq;
	rq->stage = SERVE_WAITS;
	rq->render = (struct serve_render)SERVE_RENDER_INIT;
	rq->place = rq->body = -1;
	rq->deadline_ns = now + MAX_WAIT_NS;
	serve_query_seconds(&rq->query, &rq->range.from, &rq->range.to);
	if (rq->range.from < w->from)
		rq->range.from = w->from;
	if (rq->range.to > w->to)
		rq->range.to = w->to;
	if (rq->range.from >= rq->range.to)
		fail(rq, 404, "there is nothing of that time: not yet, or no more");
	else
		go_on(w, rq, now);
}

/* Nobody waits for it any more. What failed is tried anew when it is asked for again. */
static void leave_snapshot(const struct serve_work *w, struct serve_snapshot *s)
{
	s->users--;
	if (w->live && !s->users && s->code && s->code != -ENODATA)
		drop_snapshot(s);
}

void serve_work_drop(struct serve_work *w, struct serve_request *rq)
{
	struct serve_request **at = &w->first;

	while (*at && *at != rq)
		at = &(*at)->next;
	if (*at)
		*at = rq->next;
	if (rq->place >= 0)
		w->places[rq->place] = NULL;
	if (rq->taken)
		leave_snapshot(w, rq->taken);
	serve_render_deinit(&rq->render);
	if (rq->body >= 0)
		close(rq->body);
	serve_query_deinit(&rq->query);
	rq->body = rq->place = -1;
	rq->taken = NULL;
}

int serve_work_advance(struct serve_work *w, uint64_t now)
{
	int r = w->live ? take_told(w) : 0;

	/* The answer was lost: who has the samples could not send it. */
	if (w->asking && now > w->asked_ns + MAX_ASK_NS)
		w->asking = false;
	for (struct serve_request *rq = w->first; rq; rq = rq->next)
		if (rq->stage != SERVE_DONE)
			go_on(w, rq, now);
	return r;
}

size_t serve_work_poll(const struct serve_work *w, struct pollfd *fds)
{
	size_t n = 0;

	if (w->live)
		fds[n++] = (struct pollfd) { .fd = w->channel, .events = POLLIN };
	for (size_t i = 0; i < SERVE_RENDERS; i++)
		if (w->places[i])
			fds[n++] = (struct pollfd) { .fd = w->places[i]->render.pidfd,
						     .events = POLLIN };
	return n;
}

void serve_work_set_file(struct serve_work *w, const int fds[SERVE_RENDERS], uint64_t seconds)
{
	struct serve_snapshot *s = &w->snapshots[0];

	w->ended = true;
	w->to = seconds;
	*s = (struct serve_snapshot) { .used = true, .to = seconds, .asked = { .to = seconds } };
	memcpy(s->fds, fds, sizeof(s->fds));
}
