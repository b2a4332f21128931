/* SPDX-License-Identifier: GPL-2.0-only */
/* The call tree for programs: a row for each node, in preorder, which names its parent's row. */
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/fields.h"
#include "report/report.h"
#include "view/filter.h"
#include "view/tree.h"

static const enum report_field frame_fields[] = { FIELD_KIND, FIELD_LABEL, FIELD_PATH, FIELD_LINE,
						  FIELD_MODULE };

/* A tree, and the row of each of its nodes. */
struct tree_rows {
	struct tree tree;
	uint32_t *row_of; /* by node; owned */
};

static void rows_deinit(struct tree_rows *t)
{
	tree_deinit(&t->tree);
	free(t->row_of);
}

static int rows_init(const struct report *r, struct tree_rows *t, struct err *err)
{
	const struct tree_options opts = { .by_line = r->by == FLAT_BY_LINE,
					   .inverted = r->inverted };
	uint32_t node = 0, row = 0;
	int ret;

	ret = tree_build(&r->rec->profile, r->filter, &opts, &t->tree);
	if (ret)
		return tree_error(ret, err);
	if (!t->tree.nodes[0].total_samples)
		return report_nothing(r, err);
	t->row_of = calloc(t->tree.n_nodes + 1, sizeof(*t->row_of));
	if (!t->row_of)
		return err_oom(err);
	do {
		t->row_of[node] = row++;
	} while ((node = tree_next(&t->tree, node)));
	return 0;
}

static void json_node(const struct report *r, const struct tree_rows *t, uint32_t id,
		      struct json *j)
{
	const struct tree_node *node = &t->tree.nodes[id];

	json_object_begin(j, NULL);
	json_u64(j, "id", t->row_of[id]);
	if (id)
		json_u64(j, "parent", t->row_of[node->parent]);
	else
		json_nil(j, "parent");
	json_u64(j, "depth", node->depth);
	if (node->frame != PROFILE_NONE)
		report_json_frame(r, node->frame, j);
	json_u64(j, "samples", node->self_samples);
	json_u64(j, "total_samples", node->total_samples);
	json_u64(j, field_value_key(r, "self").s, node->self_value);
	json_u64(j, field_value_key(r, "total").s, node->total_value);
	json_object_end(j);
}

int report_tree_json(const struct report *r, struct buf *out, struct err *err)
{
	struct tree_rows t = { 0 };
	struct json j = JSON_INIT(out);
	uint32_t node = 0;
	uint64_t rows = 0;
	int ret;

	ret = rows_init(r, &t, err);
	if (ret) {
		rows_deinit(&t);
		return ret;
	}
	json_object_begin(&j, NULL);
	report_json_summary(r, t.tree.nodes[0].total_samples, t.tree.nodes[0].total_value, &j);
	json_array_begin(&j, "tree");
	do {
		json_node(r, &t, node, &j);
	} while (++rows < r->limit && (node = tree_next(&t.tree, node)));
	json_array_end(&j);
	json_object_end(&j);
	buf_addch(out, '\n');
	rows_deinit(&t);
	return buf_failed(out) ? err_oom(err) : 0;
}

static void csv_node(const struct report *r, const struct tree_rows *t, uint32_t id,
		     struct buf *out)
{
	const struct tree_node *node = &t->tree.nodes[id];
	_cleanup_buf_ struct buf scratch = BUF_INIT;

	buf_addf(out, "%u,", t->row_of[id]);
	if (id)
		buf_addf(out, "%u", t->row_of[node->parent]);
	buf_addf(out, ",%u,", node->depth);
	for (size_t i = 0; i < ARRAY_SIZE(frame_fields); i++) {
		if (node->frame != PROFILE_NONE)
			field_add_csv(field_of_frame(r, node->frame, frame_fields[i], &scratch),
				      out);
		buf_addch(out, ',');
	}
	buf_addf(out, "%llu,%llu,%llu,%llu\r\n", (unsigned long long)node->self_samples,
		 (unsigned long long)node->total_samples, (unsigned long long)node->self_value,
		 (unsigned long long)node->total_value);
}

int report_tree_csv(const struct report *r, struct buf *out, struct err *err)
{
	struct tree_rows t = { 0 };
	uint32_t node = 0;
	uint64_t rows = 0;
	int ret;

	ret = rows_init(r, &t, err);
	if (ret) {
		rows_deinit(&t);
		return ret;
	}
	buf_addf(out, "id,parent,depth,kind,label,path,line,module,samples,total_samples,%s,%s\r\n",
		 field_value_key(r, "self").s, field_value_key(r, "total").s);
	do {
		csv_node(r, &t, node, out);
	} while (++rows < r->limit && (node = tree_next(&t.tree, node)));
	rows_deinit(&t);
	return buf_failed(out) ? err_oom(err) : 0;
}
