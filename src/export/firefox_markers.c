/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/firefox_markers.h"

#include <errno.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "export/firefox_tables.h"
#include "export/thread_samples.h"
#include "view/request.h"
#include "view/state.h"

#define INTERVAL 1 /* the phase of a marker that has a start and an end */

/* The kind of a marker: a wait by its enum thread_state, or one of these. */
enum marker_kind { MARKER_GC = STATES, MARKER_REQUEST };

/* One of the columns of a thread's markers, while it is written. */
struct marker_column {
	const struct firefox_markers *m;
	struct json *json;
	struct buf *kinds; /* gets the kind of each marker; NULL: only one column does that */
	bool ends;	   /* it has ends, else starts */
	bool of_waits;	   /* samples may be of waits, and not of what others waited meanwhile */

	const struct request_span *request, *last_request; /* of the thread, not ended yet */
	bool in_gc;	   /* the last sample is of garbage collection … */
	uint64_t gc_start; /* … in the same request since then */
	uint64_t last_ts;  /* of the last sample */
	struct err *err;
};

static void add_marker(struct marker_column *c, unsigned int kind, uint64_t start, uint64_t end)
{
	firefox_add_time(c->m->tables, c->json, NULL, c->ends ? end : start);
	if (c->kinds)
		buf_addch(c->kinds, (char)kind);
}

/* The requests whose last sample is before @ts. */
static void add_requests(struct marker_column *c, uint64_t ts)
{
	const struct profile_request *requests = c->m->tables->profile->requests;

	for (; c->request < c->last_request && requests[c->request->id].last_ts < ts; c->request++)
		add_marker(c, MARKER_REQUEST, c->request->start, c->request->end);
}

/* Whether a sample at @ts, the next one, is of another request than the one before. */
static bool request_changes(const struct marker_column *c, uint64_t ts)
{
	const struct profile_request *r;

	if (c->request == c->last_request)
		return false;
	r = &c->m->tables->profile->requests[c->request->id];
	return r->last_ts < ts || (r->first_ts > c->last_ts && r->first_ts <= ts);
}

static int take_sample(void *arg, const struct thread_sample *s)
{
	struct marker_column *c = arg;
	const bool in_gc = s->flags & SAMPLE_GC;
	const bool goes_on = c->in_gc && in_gc && !request_changes(c, s->ts);

	if (c->in_gc && !goes_on)
		add_marker(c, MARKER_GC, c->gc_start, c->last_ts);
	add_requests(c, s->ts);
	if (!goes_on)
		c->gc_start = s->ts;
	if (c->of_waits && state_waits(s->state))
		add_marker(c, s->state, s->ts > s->value ? s->ts - s->value : 0, s->ts);
	c->in_gc = in_gc;
	c->last_ts = s->ts;
	return buf_failed(c->json->out) ? err_oom(c->err) : 0;
}

/* The column of starts or ends. Only that of starts fills m->kinds. */
static int add_times(struct firefox_markers *m, size_t i, bool ends, struct json *j,
		     struct err *err)
{
	const size_t *first = &m->requests.first[thread_samples_thread(m->samples, i)];
	struct marker_column c = {
		.m = m,
		.json = j,
		.kinds = ends ? NULL : &m->kinds,
		.ends = ends,
		.of_waits = event_is_of_own_time(profile_event(m->tables->profile)->name),
		.request = &m->requests.spans[first[0]],
		.last_request = &m->requests.spans[first[1]],
		.err = err,
	};
	int r = 0;

	json_array_begin(j, ends ? "endTime" : "startTime");
	if (m->in_samples)
		r = thread_samples_each(m->samples, i, take_sample, &c, err);
	if (c.in_gc)
		add_marker(&c, MARKER_GC, c.gc_start, c.last_ts);
	add_requests(&c, UINT64_MAX);
	json_array_end(j);
	return r;
}

/* ---- what does not need the samples ---- */

static uint32_t name_of(struct firefox_markers *m, struct json *j, unsigned int kind)
{
	if (kind == MARKER_GC)
		return firefox_string(m->tables, j, "GC (sampled)");
	if (kind == MARKER_REQUEST)
		return firefox_string(m->tables, j, "Request");
	return firefox_string(m->tables, j, state_text(kind));
}

static enum firefox_category category_of(unsigned int kind)
{
	switch (kind) {
	case MARKER_GC:
		return FIREFOX_GC;
	case MARKER_REQUEST:
		return FIREFOX_RUBY;
	case STATE_IDLE:
		return FIREFOX_IDLE;
	default:
		return FIREFOX_WAIT;
	}
}

static void add_data(const struct firefox_markers *m, unsigned int kind, uint32_t request,
		     struct json *j)
{
	const struct profile *p = m->tables->profile;

	json_object_begin(j, NULL);
	if (kind == MARKER_GC) {
		json_str(j, "type", "GC");
	} else if (kind == MARKER_REQUEST) {
		json_str(j, "type", "Request");
		json_str(j, "request", request_label(p, p->requests[request].kind));
		json_str(j, "framework", request_framework(p, p->requests[request].kind));
	} else {
		json_str(j, "type", "Wait");
		json_str(j, "state", state_word(kind));
	}
	json_object_end(j);
}

static void add_constants(struct firefox_markers *m, const struct request_span *request,
			  struct json *j)
{
	const size_t n = m->kinds.len;
	const char *kinds = buf_str(&m->kinds);

	json_array_begin(j, "data");
	for (size_t i = 0; i < n; i++)
		add_data(m, (unsigned int)kinds[i], kinds[i] == MARKER_REQUEST ? request++->id : 0,
			 j);
	json_array_end(j);
	json_array_begin(j, "name");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, name_of(m, j, (unsigned int)kinds[i]));
	json_array_end(j);
	json_array_begin(j, "phase");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, INTERVAL);
	json_array_end(j);
	json_array_begin(j, "category");
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, category_of((unsigned int)kinds[i]));
	json_array_end(j);
	json_u64(j, "length", n);
}

int firefox_add_markers(struct firefox_markers *m, size_t i, struct json *j, struct err *err)
{
	const size_t *first = &m->requests.first[thread_samples_thread(m->samples, i)];
	int r;

	buf_reset(&m->kinds);
	json_object_begin(j, "markers");
	r = add_times(m, i, false, j, err);
	if (!r)
		r = add_times(m, i, true, j, err);
	if (!r && buf_failed(&m->kinds))
		r = err_oom(err);
	if (!r)
		add_constants(m, &m->requests.spans[*first], j);
	json_object_end(j);
	return r;
}

/* ---- schemas ---- */

/*
 * A type of markers; @label is what one shows: "{marker.data.KEY}". @fields are pairs of key and
 * label.
 */
static void add_schema(struct json *j, const char *name, const char *description, const char *label,
		       const char *const *fields)
{
	json_object_begin(j, NULL);
	json_str(j, "name", name);
	json_array_begin(j, "display");
	json_str(j, NULL, "marker-chart");
	json_str(j, NULL, "marker-table");
	json_str(j, NULL, "timeline-overview");
	json_array_end(j);
	if (label) {
		json_str(j, "chartLabel", label);
		json_str(j, "tableLabel", label);
		json_str(j, "tooltipLabel", label);
	}
	json_str(j, "description", description);
	json_array_begin(j, "fields");
	for (; *fields; fields += 2) {
		json_object_begin(j, NULL);
		json_str(j, "key", fields[0]);
		json_str(j, "label", fields[1]);
		json_str(j, "format", "string");
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

void firefox_add_marker_schemas(struct json *j)
{
	static const char *const none[] = { NULL };
	static const char *const wait[] = { "state", "State", NULL };
	static const char *const request[] = { "request", "Request", "framework", "Framework",
					       NULL };

	json_array_begin(j, "markerSchema");
	add_schema(j, "GC", "successive samples that were taken during garbage collection", NULL,
		   none);
	add_schema(j, "Wait", "from when the thread left its CPU until it ran again",
		   "{marker.data.state}", wait);
	add_schema(j, "Request",
		   "a request that the thread served, or a job that it ran, from the first sample "
		   "of it to the last, and half a period of the clock beyond a tick",
		   "{marker.data.request}", request);
	json_array_end(j);
}

int firefox_markers_init(struct firefox_tables *tables, struct thread_samples *samples,
			 const struct replay *from, struct firefox_markers *ret, struct err *err)
{
	*ret = (struct firefox_markers) { .tables = tables,
					  .samples = samples,
					  .in_samples = spans_in_samples(tables->profile) };
	return request_spans_init(tables->profile, tables->shown.selection, from, &ret->requests,
				  err);
}

void firefox_markers_deinit(struct firefox_markers *m)
{
	request_spans_deinit(&m->requests);
	buf_deinit(&m->kinds);
}
