/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call graph in graphviz' language: https://graphviz.org/doc/info/lang.html
 *
 * Functions are nodes, calls are edges, both as a sample counts for them: once, however often its
 * stack has them. A picture of all would be unreadable, so the MAX_NODES functions with the
 * greatest totals are drawn, of these those with a share of NODE_SHARE at least, and calls between
 * them with a share of EDGE_SHARE; the title says how many are left out. The numbers are also there
 * as attributes that graphviz knows nothing of: self, total, and value of a call.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/utf8.h"
#include "export/call_counts.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/shown.h"
#include "view/group.h"
#include "view/label.h"

#define MAX_NODES  80
#define NODE_SHARE 200	/* a 200th */
#define EDGE_SHARE 1000 /* a 1,000th */
#define MAX_TEXT   200	/* characters; graphviz reads strings of up to 16,384 bytes */

struct dot {
	const struct profile *profile;
	struct buf *out;
	struct shown shown;
	struct groups functions;
	struct stack_count *counts; /* with values in place of samples; owned, as is … */
	struct call_counts calls;
	bool *drawn; /* by function */
	size_t n_drawn, n_functions;
	uint64_t all; /* the value of all samples */
};

static void dot_deinit(struct dot *d)
{
	shown_deinit(&d->shown);
	groups_deinit(&d->functions);
	call_counts_deinit(&d->calls);
	free(d->counts);
	free(d->drawn);
}

/*
 * @s in a quoted string of graphviz' language, where a backslash begins an escape of its labels,
 * too. A long one is cut.
 */
static void add_text(struct dot *d, const char *s)
{
	const char *end = s + utf8_prefix(s, MAX_TEXT);

	for (; s < end; s++) {
		if (*s == '"' || *s == '\\')
			buf_addch(d->out, '\\');
		buf_addch(d->out, *s);
	}
	if (*end)
		buf_addstr(d->out, "…");
}

static void add_value(struct dot *d, uint64_t value)
{
	switch (profile_event(d->profile)->unit) {
	case UNIT_NS:
		buf_addstr(d->out, num_duration(value).s);
		break;
	case UNIT_BYTES:
		buf_addstr(d->out, num_bytes(value).s);
		break;
	default:
		buf_addstr(d->out, num_count(value).s);
	}
	buf_addf(d->out, " (%s)", num_percent(value, d->all).s);
}

/* ---- what is drawn ---- */

/* In place of its samples each stack gets its value, which call_counts adds up. */
static int count_values(struct dot *d)
{
	int r = stack_counts(&d->shown, &d->counts);

	for (size_t i = 0; !r && i < d->profile->n_stacks; i++) {
		d->counts[i].samples = d->counts[i].value;
		profile_add(&d->all, d->counts[i].value);
	}
	return r ? r
		 : call_counts_init(&d->shown, d->counts, d->functions.of_frame, d->functions.n,
				    &d->calls);
}

static int compare_totals(const void *a, const void *b, void *arg)
{
	const struct dot *d = arg;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const uint64_t tx = d->calls.total[x], ty = d->calls.total[y];

	if (tx != ty)
		return (tx < ty) - (tx > ty);
	if (x == d->functions.n || y == d->functions.n)
		return (x == d->functions.n) - (y == d->functions.n);
	return (d->functions.rank[x] > d->functions.rank[y]) -
	       (d->functions.rank[x] < d->functions.rank[y]);
}

static int choose_nodes(struct dot *d)
{
	const size_t n = d->functions.n + 1; /* and what stands for stacks without frames */
	_cleanup_free_ uint32_t *order = calloc(n, sizeof(*order));

	d->drawn = calloc(n, sizeof(*d->drawn));
	if (!order || !d->drawn)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (d->calls.total[i])
			order[d->n_functions++] = i;
	qsort_r(order, d->n_functions, sizeof(*order), compare_totals, d);
	while (d->n_drawn < d->n_functions && d->n_drawn < MAX_NODES &&
	       d->calls.total[order[d->n_drawn]] >= d->all / NODE_SHARE)
		d->drawn[order[d->n_drawn++]] = true;
	return 0;
}

static bool edge_is_drawn(const struct dot *d, const struct call_edge *e)
{
	return e->from != CALLS_ROOT && d->drawn[e->from] && d->drawn[e->to] && e->samples &&
	       e->samples >= d->all / EDGE_SHARE;
}

/* ---- the graph ---- */

static void add_place(struct dot *d, const struct function *f)
{
	if (!*function_place(f))
		return;
	buf_addstr(d->out, "\\n");
	add_text(d, label_basename(function_place(f)));
	if (f->line)
		buf_addf(d->out, ":%" PRIu32, f->line);
}

/* The larger its self time, the larger its name and the redder its box. */
static void add_node(struct dot *d, uint32_t id)
{
	const uint64_t self = d->calls.self[id], total = d->calls.total[id];
	const double share = d->all ? (double)self / (double)d->all : 0;
	struct function f = FUNCTION_INIT(FUNCTION_NONE);

	if (id < d->functions.n)
		function_of_frame(d->profile, d->functions.frame[id], &f);
	buf_addf(d->out, "\tf%" PRIu32 " [label=\"", id);
	add_text(d, f.name);
	add_place(d, &f);
	buf_addstr(d->out, "\\n");
	add_value(d, self);
	if (total != self) {
		buf_addstr(d->out, "\\nof ");
		add_value(d, total);
	}
	/* Integers, for a locale may have a comma where graphviz wants a point. */
	buf_addf(d->out,
		 "\", fontsize=%u, fillcolor=\"#ff%02x%02x\", self=\"%" PRIu64
		 "\", total=\"%" PRIu64 "\"];\n",
		 10 + (unsigned int)(30 * share), 255 - (unsigned int)(150 * share),
		 255 - (unsigned int)(170 * share), self, total);
}

static void add_edge(struct dot *d, const struct call_edge *e)
{
	const double share = d->all ? (double)e->samples / (double)d->all : 0;

	buf_addf(d->out, "\tf%" PRIu32 " -> f%" PRIu32 " [label=\" ", e->from, e->to);
	add_value(d, e->samples);
	buf_addf(d->out, "\", penwidth=%u, weight=%u, value=\"%" PRIu64 "\"];\n",
		 1 + (unsigned int)(5 * share), 1 + (unsigned int)(100 * share), e->samples);
}

static void add_title(struct dot *d, size_t n_edges)
{
	const struct profile_event *event = profile_event(d->profile);
	_cleanup_buf_ struct buf origin = BUF_INIT;

	buf_addstr(d->out, "digraph \"rbpf\" {\n\tlabel=\"");
	add_text(d, d->profile->meta.command ? d->profile->meta.command : "rbpf");
	buf_addf(d->out, "\\n%s: ", event->name);
	add_value(d, d->all);
	buf_addf(d->out, "\\n%s", num_of(d->n_drawn, "function", "functions").s);
	buf_addf(d->out, " of %s, ", num_count(d->n_functions).s);
	buf_addf(d->out, "%s", num_of(n_edges, "call", "calls").s);
	buf_addstr(d->out, "\\nrecording: ");
	origin_add(d->profile, &origin);
	d->out->failed |= buf_failed(&origin);
	add_text(d, buf_str(&origin));
	buf_addstr(d->out, "\";\n\tlabelloc=t;\n"
			   "\tnode [shape=box, style=filled, fontname=\"sans-serif\"];\n"
			   "\tedge [fontname=\"sans-serif\", fontsize=9];\n");
}

static int write_all(struct dot *d)
{
	size_t n_edges = 0;

	for (size_t i = 0; i < d->calls.n_edges; i++)
		n_edges += edge_is_drawn(d, &d->calls.edges[i]);
	add_title(d, n_edges);
	for (uint32_t i = 0; i <= d->functions.n; i++)
		if (d->drawn[i])
			add_node(d, i);
	for (size_t i = 0; i < d->calls.n_edges; i++)
		if (edge_is_drawn(d, &d->calls.edges[i]))
			add_edge(d, &d->calls.edges[i]);
	buf_addstr(d->out, "}\n");
	return buf_failed(d->out) ? -ENOMEM : 0;
}

int export_dot(const struct profile *p, const struct export_options *opts, struct buf *out,
	       struct err *err)
{
	struct dot d = { .profile = p, .out = out };
	int r = shown_init(p, opts->filter, &d.shown);

	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &d.functions);
	if (!r)
		r = count_values(&d);
	if (!r)
		r = choose_nodes(&d);
	if (!r)
		r = write_all(&d);
	dot_deinit(&d);
	return export_error(r, err);
}
