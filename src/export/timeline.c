/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data of the timeline; timeline.js draws it.
 *
 * The samples are read once more, one by one (replay.h), and become spans (view/spans.h), which are
 * merged as far as needed. The page has
 *
 *	about	 JSON: what was recorded, the states, rows, kinds of requests, labels of frames
 *	spans	 packed: for each row the number of its spans, then the spans
 *	requests packed: the same of requests
 *	nodes	 packed: the stacks, as page_tree_write() does
 *
 * A span is packed as its state with flags (below), how far its start is from that of the span
 * before, its length, its value, its samples and the number of its stack's node. Of a merged span
 * the start is in widths, and the length is not there. The value is not there if it is the length.
 *
 * What a row says its thread did in all is counted from the samples, not from the spans, and is
 * what 'rbpf report --states' and '--by thread' say.
 */
#include "export/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/number.h"
#include "export/assets.h"
#include "export/flame_facts.h"
#include "export/page_about.h"
#include "export/page_tree.h"
#include "export/shown.h"
#include "page/assets.h"
#include "page/html.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/owner.h"
#include "view/request.h"
#include "view/spans.h"
#include "view/thread_states.h"

/* Of a packed span, above its state. */
#define SPAN_GC	       0x20u
#define SPAN_MERGED    0x40u
#define SPAN_HAS_VALUE 0x80u
_Static_assert(STATES <= SPAN_GC, "a state and the flags fit into one byte");

/* Rows that anybody scrolls through; threads with less time are only counted. */
#define MAX_ROWS      2000

/* Bytes of the page for a span, a request and a node, about: how many there may be at first. */
#define SPAN_BYTES    12
#define REQUEST_BYTES 60
#define NODE_BYTES    40

struct timeline {
	const struct profile *profile;
	const struct page_options *opts;
	struct shown shown;
	uint8_t *states;		/* by stack: state_of_stacks(); owned */
	struct thread_states *sums;	/* by thread; owned */
	struct thread_states_table all; /* of these, in the order of rows */
	struct spans spans, requests;
	struct page_tree tree;
	struct flame_facts facts;
	struct buf title;
	uint64_t *weights; /* by node: of the spans that show it; owned */
	uint64_t origin;   /* ns, CLOCK_MONOTONIC: times of the page are since then */
	size_t n_rows;
	size_t max_nodes;
};

static void timeline_deinit(struct timeline *t)
{
	shown_deinit(&t->shown);
	free(t->states);
	free(t->sums);
	thread_states_deinit(&t->all);
	spans_deinit(&t->spans);
	spans_deinit(&t->requests);
	page_tree_deinit(&t->tree);
	flame_facts_deinit(&t->facts);
	buf_deinit(&t->title);
	free(t->weights);
}

static uint64_t since_origin(const struct timeline *t, uint64_t ts)
{
	return ts > t->origin ? ts - t->origin : 0;
}

static int take_sample(void *arg, const struct profile_sample *s)
{
	struct timeline *t = arg;
	const unsigned int state = state_of(t->states, s->stack, s->flags);
	const struct time_span span = {
		.value = s->value,
		.stack = s->stack,
		.state = state & STATE_MASK,
		.gc = s->flags & SAMPLE_GC,
	};
	struct thread_states *sum = &t->sums[s->thread];
	const uint64_t ts = since_origin(t, s->ts);

	if (!shown_sample(&t->shown, s))
		return 0;
	thread_states_add(sum, state, s->value);
	if (span.state >= STATE_WAIT_CPU)
		return spans_add_wait(&t->spans, s->thread, ts, &span);
	return spans_add_cpu(&t->spans, s->thread, ts, &span);
}

static bool request_shown(const struct timeline *t, uint32_t id)
{
	return t->profile->requests[id].samples &&
	       view_one_request_selected(t->shown.selection, id);
}

static int take_requests(struct timeline *t)
{
	const struct profile *p = t->profile;
	int r = 0;

	for (uint32_t i = 1; i < p->n_requests && !r; i++) {
		const struct profile_request *request = &p->requests[i];
		struct time_span span = {
			.start = since_origin(t, request->first_ts),
			.value = request->value,
			.votes = request->value,
			.stack = request->kind,
			.samples = 1,
		};

		span.len = since_origin(t, request->last_ts) - span.start;
		if (request_shown(t, i))
			r = spans_add(&t->requests, request->thread, &span);
	}
	return r;
}

static int read_samples(struct timeline *t, uint64_t max_bytes, struct err *err)
{
	const struct profile *p = t->profile;
	int r;

	t->sums = calloc(p->n_threads + 1, sizeof(*t->sums));
	if (!t->sums || state_of_stacks(p, &t->states) ||
	    spans_init(p->n_threads, max_bytes / SPAN_BYTES, &t->spans) ||
	    spans_init(p->n_threads, max_bytes / REQUEST_BYTES, &t->requests) || take_requests(t))
		return err_oom(err);
	r = profile_each_sample(p, t->opts->from, take_sample, t, err);
	if (r)
		return r == -ENOMEM ? err_oom(err) : r;
	spans_finish(&t->spans);
	spans_finish(&t->requests);
	thread_states_finish(p, t->opts->filter, !strcmp(profile_event(p)->name, EVENT_WALL),
			     take_ptr(t->sums), &t->all);
	return 0;
}

/* All time that is not idle. */
static uint64_t busy(const struct thread_states *t)
{
	return t->sum_ns - t->ns[STATE_IDLE];
}

/* By process, that with the most time first; the threads of each stay as they are. */
static int sort_rows(struct timeline *t)
{
	const struct profile *p = t->profile;
	_cleanup_free_ uint64_t *sums = calloc(p->n_processes + 1, sizeof(*sums));
	_cleanup_free_ struct thread_states *rows = calloc(t->n_rows + 1, sizeof(*rows));
	size_t n = 0;

	if (!sums || !rows)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_rows; i++)
		profile_add(&sums[p->threads[t->all.v[i].id].process], busy(&t->all.v[i]) + 1);
	while (n < t->n_rows) {
		uint32_t first = PROFILE_NONE;

		for (size_t i = 0; i < t->n_rows; i++) {
			const uint32_t process = p->threads[t->all.v[i].id].process;

			if (sums[process] && (first == PROFILE_NONE || sums[process] > sums[first]))
				first = process;
		}
		for (size_t i = 0; i < t->n_rows; i++)
			if (p->threads[t->all.v[i].id].process == first)
				rows[n++] = t->all.v[i];
		sums[first] = 0;
	}
	memcpy(t->all.v, rows, n * sizeof(*rows));
	return 0;
}

/* Weigh the nodes by what the spans of rows show of them. */
static int weigh_nodes(struct timeline *t)
{
	const struct tree *tree = &t->tree.tree;

	t->weights = calloc(tree->n_nodes, sizeof(*t->weights));
	if (!t->weights)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct span_list *list = &t->spans.threads[t->all.v[i].id];

		for (size_t k = 0; k < list->n; k++)
			profile_add(&t->weights[page_tree_node(&t->tree, list->v[k].stack)],
				    list->v[k].value + 1);
	}
	for (size_t i = tree->n_nodes; i-- > 1;)
		profile_add(&t->weights[tree->nodes[i].parent], t->weights[i]);
	return 0;
}

static void pack_spans(const struct timeline *t, const struct spans *spans, bool requests,
		       struct buf *out)
{
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct span_list *list = &spans->threads[t->all.v[i].id];
		uint64_t before = 0;

		buf_add_varint(out, list->n);
		for (size_t k = 0; k < list->n; k++) {
			const struct time_span *s = &list->v[k];
			const bool has_value = s->value != s->len;
			const uint64_t unit = s->merged ? spans->width : 1;

			buf_addch(out, (char)(s->state | (s->gc ? SPAN_GC : 0) |
					      (s->merged ? SPAN_MERGED : 0) |
					      (has_value ? SPAN_HAS_VALUE : 0)));
			buf_add_varint(out, s->start / unit - before / unit);
			if (!s->merged)
				buf_add_varint(out, s->len);
			if (has_value)
				buf_add_varint(out, s->value);
			buf_add_varint(out, s->samples);
			buf_add_varint(out, requests ? s->stack : page_tree_id(&t->tree, s->stack));
			before = s->start;
		}
	}
}

static void add_sums(const struct thread_states *s, struct json *j)
{
	json_u64(j, "sum", json_clamp(s->sum_ns));
	json_u64(j, "held", json_clamp(s->held_ns));
	json_array_begin(j, "states");
	for (size_t i = 0; i < STATES; i++)
		json_u64(j, NULL, json_clamp(s->ns[i]));
	json_array_end(j);
}

static void add_rows(const struct timeline *t, struct json *j)
{
	const struct profile *p = t->profile;
	_cleanup_buf_ struct buf name = BUF_INIT;

	json_array_begin(j, "rows");
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct thread_states *s = &t->all.v[i];
		const struct profile_thread *thread = &p->threads[s->id];

		json_object_begin(j, NULL);
		json_u64(j, "process", thread->process);
		buf_reset(&name);
		owner_label(p, OWNER_PROCESS, thread->process, &name);
		json_str(j, "program", buf_str(&name));
		json_u64(j, "pid", p->processes[thread->process].pid);
		json_u64(j, "tid", thread->tid);
		buf_reset(&name);
		label_thread(p, s->id, &name);
		json_str(j, "name", buf_str(&name));
		add_sums(s, j);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_begin(j, "all");
	add_sums(&t->all.all, j);
	json_object_end(j);
	json_u64(j, "threads", t->all.n);
	j->out->failed |= name.failed;
}

static void add_states(struct json *j)
{
	json_array_begin(j, "states");
	for (size_t i = 0; i < STATES; i++) {
		json_array_begin(j, NULL);
		json_str(j, NULL, state_word(i));
		json_str(j, NULL, state_text(i));
		json_array_end(j);
	}
	json_array_end(j);
}

static void add_kinds(const struct timeline *t, struct json *j)
{
	const struct profile *p = t->profile;

	json_array_begin(j, "kinds");
	for (uint32_t i = 0; t->requests.n && i < request_kinds(p); i++) {
		json_array_begin(j, NULL);
		json_str(j, NULL, request_label(p, i));
		json_str(j, NULL, request_framework(p, i));
		json_array_end(j);
	}
	json_array_end(j);
}

/* What the page does not show as it was; nothing if it shows all. */
static void add_notes(const struct timeline *t, struct json *j)
{
	_cleanup_buf_ struct buf s = BUF_INIT;

	json_array_begin(j, "notes");
	if (t->spans.width) {
		buf_addstr(&s, "spans shorter than ");
		buf_addstr(&s, num_duration_fine(t->spans.width).s);
		buf_addf(&s, " are merged: %s", num_of(t->facts.samples, "sample", "samples").s);
		buf_addf(&s, " in %s", num_of(t->spans.n, "span", "spans").s);
		json_str(j, NULL, buf_str(&s));
	}
	if (t->requests.width) {
		buf_reset(&s);
		buf_addf(&s, "requests shorter than %s are merged",
			 num_duration_fine(t->requests.width).s);
		json_str(j, NULL, buf_str(&s));
	}
	if (t->all.n > t->n_rows) {
		buf_reset(&s);
		buf_addf(&s, "%s with less time have no row",
			 num_of(t->all.n - t->n_rows, "thread", "threads").s);
		json_str(j, NULL, buf_str(&s));
	}
	json_array_end(j);
	j->out->failed |= s.failed;
}

static uint64_t end_of(const struct timeline *t)
{
	const struct view_filter *f = t->opts->filter;
	uint64_t first, last;

	profile_time_range(t->profile, &first, &last);
	last = since_origin(t, last);
	return f->to_ns && f->to_ns < last ? f->to_ns : last;
}

static int add_data(struct timeline *t, struct buf *out)
{
	_cleanup_buf_ struct buf about = BUF_INIT, spans = BUF_INIT;
	_cleanup_buf_ struct buf requests = BUF_INIT, nodes = BUF_INIT;
	struct json j = JSON_INIT(&about);

	if (page_tree_keep(&t->tree, t->weights, t->max_nodes))
		return -ENOMEM;
	json_object_begin(&j, NULL);
	page_add_about(t->profile, &t->facts, t->opts, &t->title, &j);
	add_notes(t, &j);
	json_u64(&j, "from", json_clamp(t->opts->filter->from_ns));
	json_u64(&j, "to", json_clamp(end_of(t)));
	json_u64(&j, "width", t->spans.width);
	json_u64(&j, "request_width", t->requests.width);
	add_states(&j);
	add_rows(t, &j);
	add_kinds(t, &j);
	if (page_tree_write(&t->tree, NULL, &j, &nodes))
		return -ENOMEM;
	json_object_end(&j);
	pack_spans(t, &t->spans, false, &spans);
	pack_spans(t, &t->requests, true, &requests);
	html_add_json(out, "about", &about);
	html_add_packed(out, "spans", &spans);
	html_add_packed(out, "requests", &requests);
	html_add_packed(out, "nodes", &nodes);
	return buf_failed(out) ? -ENOMEM : 0;
}

/* The data, with less and less detail until it fits. */
static int add_fitting_data(struct timeline *t, uint64_t max_bytes, struct buf *out)
{
	size_t spans, nodes;
	int r;

	t->max_nodes = max_bytes / NODE_BYTES;
	do {
		buf_reset(out);
		r = add_data(t, out);
		if (r || out->len <= max_bytes)
			return r;
		spans = t->spans.n;
		nodes = t->max_nodes;
		spans_coarsen(&t->spans);
		if (t->requests.n > spans / 4)
			spans_coarsen(&t->requests);
		t->max_nodes = nodes > 64 ? nodes / 3 * 2 : nodes;
	} while (t->spans.n < spans || t->max_nodes < nodes);
	return 0;
}

static int add_page(struct timeline *t, uint64_t max_bytes, struct buf *out)
{
	_cleanup_buf_ struct buf data = BUF_INIT, css = BUF_INIT, js = BUF_INIT;
	int r = add_fitting_data(t, max_bytes, &data);

	if (r)
		return r;
	buf_addf(&css, "%s%s", page_css, timeline_css);
	buf_addf(&js, "%s%s", page_js, timeline_js);
	html_begin(out, buf_str(&t->title), buf_str(&css), buf_str(&js));
	buf_add(out, buf_str(&data), data.len);
	html_end(out, buf_str(&js));
	return buf_failed(out) || buf_failed(&css) || buf_failed(&js) ? -ENOMEM : 0;
}

/* Whether the values of @event are time that the threads of its samples had. */
static bool is_time_of_threads(const struct profile_event *event)
{
	return event_is_cpu(event) || !strcmp(event->name, EVENT_WAIT) ||
	       !strcmp(event->name, EVENT_WALL);
}

int timeline_render(const struct profile *p, const struct page_options *opts, struct buf *out,
		    struct err *err)
{
	const uint64_t max_bytes = opts->max_bytes ? opts->max_bytes : PAGE_MAX_BYTES;
	struct timeline t = { .profile = p, .opts = opts, .origin = p->meta.start_monotonic_ns };
	int r;

	if (!is_time_of_threads(profile_event(p))) {
		err_set(err, -EINVAL, ERR_USAGE,
			"a timeline shows the time of threads, which samples of '%s' are not",
			profile_event(p)->name);
		err_hint(err, "'rbpf heatmap --event %s' shows when they were taken",
			 profile_event(p)->name);
		return -EINVAL;
	}
	r = flame_facts_init(p, opts->filter, &t.facts);
	if (!r && !t.facts.samples)
		r = err_set(err, -ENODATA, ERR_EMPTY, "no sample passes the filters");
	else if (r || shown_init(p, opts->filter, &t.shown))
		r = err_oom(err);
	if (r)
		goto out;
	r = page_tree_init(p, opts->filter, true, &t.tree);
	if (r) {
		tree_error(r, err);
		goto out;
	}
	r = read_samples(&t, max_bytes, err);
	if (r)
		goto out;
	t.n_rows = t.all.n < MAX_ROWS ? t.all.n : MAX_ROWS;
	page_make_title(p, &t.facts, opts, "timeline of threads", &t.title);
	if (sort_rows(&t) || weigh_nodes(&t) || add_page(&t, max_bytes, out))
		r = err_oom(err);
out:
	timeline_deinit(&t);
	return r;
}
