/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data of the heat map; heatmap.js draws it, and flame.js the flame graph of what is selected.
 *
 *	about	JSON: what was recorded, the grid, categories and labels of frames
 *	cells	packed: their values, column by column
 *	slots	packed: the number of slots with samples; of each, how far it is from the one
 *		before, the number of its nodes, and for each how far its number is from that of
 *		the node before, and its own value in that slot
 *	nodes	packed: the call tree, as page_tree_write() does
 *
 * Detail is given up in this order when the slots become too many: cells of a column are put
 * together, rare frames united with their callers, columns put together.
 */
#include "export/heatmap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/number.h"
#include "export/assets.h"
#include "export/flame_color.h"
#include "export/flame_facts.h"
#include "export/page_about.h"
#include "export/page_tree.h"
#include "export/shown.h"
#include "page/assets.h"
#include "page/html.h"
#include "profile/profile.h"
#include "profile/sample_parts.h"
#include "view/filter.h"
#include "view/heat.h"

#define DEFAULT_ROWS 50

/* Bytes of the page for a cell, a node of a slot, and a node, about. */
#define CELL_BYTES   20 /* so that cells take a quarter at most */
#define PAIR_BYTES   12
#define NODE_BYTES   60

/*
 * Nodes that are kept as long as the columns are not put together, and that are kept at any rate.
 */
#define ENOUGH_NODES 4096
#define FEW_NODES    1024

struct heatmap {
	const struct profile *profile;
	const struct page_options *opts;
	struct shown shown;
	struct page_tree tree;
	struct flame_colors colors;
	struct flame_facts facts;
	struct heat heat;
	struct buf title;
	uint64_t *weights; /* by node; owned */
	uint32_t *kept;	   /* by node: the node that it is united with; owned */
	uint32_t *node_of; /* by stack: the same of its node; owned */
	size_t max_nodes;
	bool by_samples; /* all values are 0 */
};

static void heatmap_deinit(struct heatmap *m)
{
	shown_deinit(&m->shown);
	page_tree_deinit(&m->tree);
	flame_colors_deinit(&m->colors);
	flame_facts_deinit(&m->facts);
	heat_deinit(&m->heat);
	buf_deinit(&m->title);
	free(m->weights);
	free(m->kept);
	free(m->node_of);
}

static int keep_nodes(struct heatmap *m, size_t max)
{
	m->max_nodes = max;
	if (page_tree_keep(&m->tree, m->weights, max))
		return -ENOMEM;
	for (size_t i = 0; i < m->tree.tree.n_nodes; i++)
		m->kept[i] = m->tree.nodes[m->tree.ids[i]];
	for (size_t i = 0; i < m->profile->n_stacks; i++)
		m->node_of[i] = m->kept[page_tree_node(&m->tree, (uint32_t)i)];
	return 0;
}

static int init_nodes(struct heatmap *m, uint64_t max_bytes)
{
	const struct tree *tree = &m->tree.tree;

	m->weights = calloc(tree->n_nodes, sizeof(*m->weights));
	m->kept = calloc(tree->n_nodes, sizeof(*m->kept));
	m->node_of = calloc(m->profile->n_stacks, sizeof(*m->node_of));
	if (!m->weights || !m->kept || !m->node_of)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_nodes; i++)
		m->weights[i] = m->by_samples ? tree->nodes[i].total_samples
					      : tree->nodes[i].total_value;
	return keep_nodes(m, max_bytes / NODE_BYTES);
}

/* Give up some detail. Returns 0 or -ENOMEM. */
static int shrink(struct heatmap *m)
{
	const bool whole_columns = m->heat.slot_cells >= m->heat.rows;
	int r = 0;

	if (m->max_nodes > m->tree.n)
		m->max_nodes = m->tree.n;
	if (whole_columns && m->max_nodes > FEW_NODES) {
		r = keep_nodes(m, m->max_nodes / 2);
		if (!r)
			r = heat_unite(&m->heat, m->kept);
		if (r || m->max_nodes > ENOUGH_NODES)
			return r;
	}
	return heat_widen(&m->heat);
}

/* @s is of one cell. */
static int add_to_cell(void *arg, const struct profile_sample *s)
{
	struct heatmap *m = arg;
	const uint64_t origin = m->profile->meta.start_monotonic_ns;

	while (heat_is_full(&m->heat))
		if (shrink(m))
			return -ENOMEM;
	heat_add(&m->heat, s->ts > origin ? s->ts - origin : 0, m->node_of[s->stack],
		 m->by_samples ? 1 : s->value);
	return 0;
}

static uint64_t cell_end(void *arg, uint64_t at)
{
	struct heatmap *m = arg;
	const uint64_t origin = m->profile->meta.start_monotonic_ns;
	const uint64_t end = heat_cell_end(&m->heat, at > origin ? at - origin : 0);

	return end < UINT64_MAX - origin ? origin + end : UINT64_MAX;
}

static int take_sample(void *arg, const struct profile_sample *sample)
{
	struct heatmap *m = arg;
	const struct sample_cells cells = { .end = cell_end, .fn = add_to_cell, .arg = m };
	const uint32_t whole = SAMPLE_MAX_PARTS * (uint32_t)m->heat.rows;
	struct profile_sample s = *sample;

	if (!shown_sample(&m->shown, &s))
		return 0;
	if (m->by_samples)
		return add_to_cell(m, &s);
	return sample_parts_in_cells(m->profile, s, whole + 1 /* the rest */, &cells);
}

static int read_samples(struct heatmap *m, uint64_t max_bytes, struct err *err)
{
	const struct profile *p = m->profile;
	const size_t rows = m->opts->rows ? m->opts->rows : DEFAULT_ROWS;
	uint64_t first, last;
	int r;

	profile_time_range(p, &first, &last);
	if (p->last_ts >= last)
		last = p->last_ts + 1; /* a sample of the end is in a cell, too */
	last = last > p->meta.start_monotonic_ns ? last - p->meta.start_monotonic_ns : 0;
	if (init_nodes(m, max_bytes) ||
	    heat_init(last, rows, max_bytes / CELL_BYTES, max_bytes / PAIR_BYTES, &m->heat))
		return err_oom(err);
	r = profile_each_sample(p, m->opts->from, take_sample, m, err);
	return r == -ENOMEM ? err_oom(err) : r;
}

static void pack_cells(const struct heatmap *m, struct buf *out)
{
	for (size_t i = 0; i < m->heat.columns * m->heat.rows; i++)
		buf_add_varint(out, m->heat.cells[i]);
}

static int pack_slots(const struct heatmap *m, struct buf *out)
{
	_cleanup_free_ struct heat_pair *pairs = NULL;
	const size_t n = m->heat.n_pairs;
	uint64_t n_slots = 0;
	uint32_t slot = 0;

	if (heat_pairs(&m->heat, &pairs))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		n_slots += !i || pairs[i].slot != pairs[i - 1].slot;
	buf_add_varint(out, n_slots);
	for (size_t i = 0, end; i < n; i = end) {
		uint32_t before = 0;

		for (end = i; end < n && pairs[end].slot == pairs[i].slot;)
			end++;
		buf_add_varint(out, pairs[i].slot - slot);
		buf_add_varint(out, end - i);
		slot = pairs[i].slot;
		for (size_t k = i; k < end; k++) {
			/* Numbers in the page grow with those of nodes. */
			const uint32_t id = m->tree.ids[pairs[k].node];

			buf_add_varint(out, id - before);
			buf_add_varint(out, pairs[k].value);
			before = id;
		}
	}
	return 0;
}

/* That of the lightest node in the page. */
static uint64_t least_weight(const struct heatmap *m)
{
	uint64_t least = m->weights[0];

	for (size_t i = 1; i < m->tree.n; i++)
		if (m->weights[m->tree.nodes[i]] < least)
			least = m->weights[m->tree.nodes[i]];
	return least;
}

/* What the page does not show as it was; nothing if it shows all. */
static void add_notes(const struct heatmap *m, struct json *j)
{
	const size_t all = m->tree.tree.n_nodes;
	const struct heat *h = &m->heat;
	_cleanup_buf_ struct buf s = BUF_INIT;

	json_array_begin(j, "notes");
	if (m->tree.n < all) {
		buf_addf(&s, "%s united with their callers: those below ",
			 num_of(all - m->tree.n, "frame is", "frames are").s);
		buf_addf(&s, "%s of the whole", num_percent_fine(least_weight(m), m->weights[0]).s);
		json_str(j, NULL, buf_str(&s));
	}
	if (h->slot_cells > 1) {
		buf_reset(&s);
		buf_addf(&s, "a range can be selected in steps of %s",
			 num_duration_fine(h->slot_cells >= h->rows
						   ? h->slot_cells / h->rows * h->column_ns
						   : h->slot_cells * h->cell_ns)
				 .s);
		json_str(j, NULL, buf_str(&s));
	}
	json_array_end(j);
	j->out->failed |= s.failed;
}

static void add_categories(const struct heatmap *m, struct json *j)
{
	json_array_begin(j, "categories");
	for (size_t i = 0; i < m->colors.n_categories; i++)
		json_str(j, NULL, buf_str(&m->colors.categories[i].name));
	json_array_end(j);
}

static int add_data(struct heatmap *m, struct buf *out)
{
	_cleanup_buf_ struct buf about = BUF_INIT, cells = BUF_INIT;
	_cleanup_buf_ struct buf slots = BUF_INIT, nodes = BUF_INIT;
	struct json j = JSON_INIT(&about);

	json_object_begin(&j, NULL);
	page_add_about(m->profile, &m->facts, m->opts, &m->title, &j);
	add_notes(m, &j);
	json_bool(&j, "by_samples", m->by_samples);
	json_u64(&j, "columns", m->heat.columns);
	json_u64(&j, "rows", m->heat.rows);
	json_u64(&j, "column_ns", m->heat.column_ns);
	json_u64(&j, "cell_ns", m->heat.cell_ns);
	json_u64(&j, "slot_cells", m->heat.slot_cells);
	add_categories(m, &j);
	if (page_tree_write(&m->tree, &m->colors, &j, &nodes) || pack_slots(m, &slots))
		return -ENOMEM;
	json_object_end(&j);
	pack_cells(m, &cells);
	html_add_json(out, "about", &about);
	html_add_packed(out, "cells", &cells);
	html_add_packed(out, "slots", &slots);
	html_add_packed(out, "nodes", &nodes);
	return buf_failed(out) ? -ENOMEM : 0;
}

/* The data, with less and less detail until it fits. */
static int add_fitting_data(struct heatmap *m, uint64_t max_bytes, struct buf *out)
{
	size_t pairs, nodes;
	int r;

	do {
		buf_reset(out);
		r = add_data(m, out);
		if (r || out->len <= max_bytes)
			return r;
		pairs = m->heat.n_pairs;
		nodes = m->tree.n;
		r = shrink(m);
		/* Few pairs, but long names. */
		if (!r && m->heat.n_pairs == pairs && m->tree.n == nodes && nodes > 2) {
			r = keep_nodes(m, nodes / 2);
			if (!r)
				r = heat_unite(&m->heat, m->kept);
		}
	} while (!r && (m->heat.n_pairs < pairs || m->tree.n < nodes));
	return r;
}

static int add_page(struct heatmap *m, uint64_t max_bytes, struct buf *out)
{
	_cleanup_buf_ struct buf data = BUF_INIT, css = BUF_INIT, js = BUF_INIT;
	int r = add_fitting_data(m, max_bytes, &data);

	if (r)
		return r;
	buf_addf(&css, "%s%s%s", page_css, flame_css, heatmap_css);
	flame_colors_css(&m->colors, &css);
	buf_addf(&js, "%s%s%s", page_js, flame_js, heatmap_js);
	html_begin(out, buf_str(&m->title), buf_str(&css), buf_str(&js));
	buf_add(out, buf_str(&data), data.len);
	html_end(out, buf_str(&js));
	return buf_failed(out) || buf_failed(&css) || buf_failed(&js) ? -ENOMEM : 0;
}

static int prepare(struct heatmap *m, struct err *err)
{
	const struct profile *p = m->profile;
	const struct view_filter *f = m->opts->filter;
	const struct tree *trees[] = { &m->tree.tree };
	int r = page_tree_init(p, f, false, &m->tree);

	if (r)
		return tree_error(r, err);
	m->by_samples = !m->tree.tree.nodes[0].total_value;
	if (shown_init(p, f, &m->shown) ||
	    flame_colors_init(trees, 1, f, FLAME_COLOR_KIND, &m->colors))
		return err_oom(err);
	return 0;
}

int heatmap_render(const struct profile *p, const struct page_options *opts, struct buf *out,
		   struct err *err)
{
	const uint64_t max_bytes = opts->max_bytes ? opts->max_bytes : PAGE_MAX_BYTES;
	struct heatmap m = { .profile = p, .opts = opts };
	int r = flame_facts_init(p, opts->filter, &m.facts);

	if (r)
		r = err_oom(err);
	else if (!m.facts.samples)
		r = err_set(err, -ENODATA, ERR_EMPTY, "no sample passes the filters");
	if (!r)
		r = prepare(&m, err);
	if (!r)
		r = read_samples(&m, max_bytes, err);
	if (!r) {
		page_make_title(p, &m.facts, opts, "heat map", &m.title);
		if (add_page(&m, max_bytes, out))
			r = err_oom(err);
	}
	heatmap_deinit(&m);
	return r;
}
