/* SPDX-License-Identifier: GPL-2.0-only */
/* The boxes of the flame graph, with their titles. */
#include "export/flame_picture.h"

#include "base/number.h"
#include "base/utf8.h"
#include "export/flame_diff.h"
#include "export/flame_states.h"
#include "export/flame_text.h"
#include "profile/profile.h"

/* Pixels. */
#define BOX	 16  /* height of a box: one pixel of background between levels */
#define BASELINE 12  /* of text, from the top of its box */
#define TEXT_PAD 3   /* left and right of text in its box */
#define GAP	 60  /* hundredths: right of a box, if that leaves most of the box */
#define CELL	 725 /* hundredths: width of 12 px monospace; all fonts of flame.css are below */

/* A name in a title; the rest of it says nothing more to anyone. Code points. */
#define MAX_NAME 4096

/* There are ten thousands of boxes: printf() would take most of the time. */
static void add_number(struct buf *out, const char *before, uint64_t n)
{
	buf_addstr(out, before);
	buf_add_u64(out, n);
}

static void add_hundredths(struct buf *out, uint64_t n)
{
	static const char digits[] = "0123456789";

	buf_add_u64(out, n / 100);
	n %= 100;
	if (!n)
		return;
	buf_addch(out, '.');
	buf_addch(out, digits[n / 10]);
	if (n % 10)
		buf_addch(out, digits[n % 10]);
}

/* Hundredths of a pixel, from the left of the picture, of @x in units of the layout. */
static uint64_t pixel_of(const struct flame_pane *pane, uint64_t x)
{
	uint64_t inner = (uint64_t)pane->width * 100, total = pane->layout.total;

	return (uint64_t)(((unsigned __int128)x * inner + total / 2) / total) +
	       (uint64_t)pane->left * 100;
}

void flame_add_amount(const struct flame *fl, const char *what, uint64_t value, uint64_t samples,
		      struct buf *out)
{
	bool by_samples = fl->by_samples;

	buf_addch(out, '\n');
	buf_addstr(out, what);
	buf_addch(out, ' ');
	if (!by_samples) {
		flame_facts_value(out, profile_event(fl->profile)->unit, value);
		buf_addstr(out, " (");
	}
	buf_addstr(out, num_percent_fine(by_samples ? samples : value, fl->total).s);
	buf_addstr(out, by_samples ? ", " : "), ");
	buf_addstr(out, num_of(samples, "sample", "samples").s);
}

/* "Ruby app · /app/cart.rb:57", below the name. */
static void add_place(const struct flame *fl, const struct tree_node *node, struct buf *out)
{
	uint32_t frame = node->frame;
	const struct profile *p = fl->profile;
	const struct profile_frame *f = &p->frames[frame];
	const char *file = profile_str(p, f->file);

	buf_addch(out, '\n');
	buf_addstr(out, flame_colors_about(&fl->colors, p, node));
	if (f->module != PROFILE_NONE)
		buf_addf(out, " · %s", profile_str(p, p->modules[f->module].path));
	if (*file && f->kind != FRAME_CFUNC) {
		buf_addstr(out, " · ");
		buf_addstr(out, file);
		if (f->func_line) {
			buf_addch(out, ':');
			buf_add_u64(out, f->func_line);
		}
	}
}

/* "before 12.0%: +3.0%, from +1.0% to +5.0%" */
static void add_change(const struct flame *fl, const struct tree_node *node, struct buf *out)
{
	struct compare_share share;

	if (fl->colors.mode != FLAME_COLOR_DIFF)
		return;
	share = flame_diff_share(&fl->colors.diff, node);
	buf_addf(out, "\nbefore %.2f%%: %+.2f%%, from %+.2f%% to %+.2f%%", share.before * 100,
		 (share.after - share.before) * 100, share.low * 100, share.high * 100);
}

/* "[yjit]", or "[yjit] in 83.0%" of the samples: the same method is also interpreted. */
static void add_jit(const struct tree_node *node, struct buf *out)
{
	if (!node->jit_samples)
		return;
	buf_addf(out, "\n[%s%s%s]", node->jit & FRAME_YJIT ? "yjit" : "",
		 node->jit == FRAME_JIT ? ", " : "", node->jit & FRAME_ZJIT ? "zjit" : "");
	if (node->jit_samples < node->total_samples) {
		buf_addstr(out, " in ");
		buf_addstr(out, num_percent_fine(node->jit_samples, node->total_samples).s);
	}
}

/* By state, what @box has; NULL if that is not told. */
static const uint64_t *states_of(const struct flame_pane *pane, const struct flame_box *box)
{
	if (!pane->tree.states)
		return NULL;
	return box->is_rest ? pane->layout.rests[box->rest].states
			    : pane->tree.states[box->node].total;
}

/* The title of a frame whose label is in fl->name, not escaped. */
static void add_tip(const struct flame *fl, const struct tree_node *node, const uint64_t *states,
		    struct buf *out)
{
	const char *name = buf_str(&fl->name);
	size_t shown = utf8_prefix(name, MAX_NAME);

	buf_add(out, name, shown);
	if (name[shown])
		buf_addstr(out, "…");
	if (node->frame != PROFILE_NONE)
		add_place(fl, node, out);
	add_change(fl, node, out);
	if (states)
		flame_states_add_title(states, out);
	add_jit(node, out);
	flame_add_amount(fl, "total", node->total_value, node->total_samples, out);
	/* Where callers are above, a path's time is at its outermost frame: no self time. */
	if (!fl->opts->inverted)
		flame_add_amount(fl, "self", node->self_value, node->self_samples, out);
}

/* The text and the title of what stands for frames that are too narrow. */
static void name_rest(struct flame *fl, const struct flame_pane *pane, const struct flame_box *box)
{
	if (box->n_rest)
		buf_addf(&fl->name, "%s", num_of(box->n_rest, "smaller frame", "smaller frames").s);
	else
		buf_addstr(&fl->name, "smaller frames");
	buf_add(&fl->text, fl->name.data, fl->name.len);
	buf_addstr(&fl->text, "\neach narrower than ");
	flame_add_min_width(fl, flame_layout_limit(&pane->layout), &fl->text);
	buf_addstr(&fl->text, " of the whole");
	if (states_of(pane, box))
		flame_states_add_title(states_of(pane, box), &fl->text);
	flame_add_amount(fl, "total", box->rest_value, box->rest_samples, &fl->text);
}

static void name_node(struct flame *fl, const struct flame_pane *pane, const struct flame_box *box)
{
	if (!box->node && pane->root)
		buf_addstr(&fl->name, pane->root);
	else
		tree_node_label(&pane->tree, box->node, &fl->name);
	add_tip(fl, &pane->tree.nodes[box->node], states_of(pane, box), &fl->text);
}

/* The tag of a box and its title; leaves its name in fl->name. */
static void begin_frame(struct flame *fl, const struct flame_pane *pane,
			const struct flame_box *box, struct buf *out)
{
	const struct tree_node *node = &pane->tree.nodes[box->node];
	const uint64_t *states = states_of(pane, box);
	bool is_function = node->frame != PROFILE_NONE && !box->is_rest;

	buf_reset(&fl->name);
	buf_reset(&fl->text);
	if (box->is_rest)
		name_rest(fl, pane, box);
	else
		name_node(fl, pane, box);
	buf_addstr(out, "<g class=\"");
	if (is_function)
		flame_colors_class(&fl->colors, fl->profile, node, out);
	else
		buf_addch(out, 'z');
	add_number(out, "\" data-x=\"", box->x);
	add_number(out, "\" data-w=\"", box->w);
	add_number(out, "\" data-d=\"", box->depth);
	if (is_function)
		add_number(out, "\" data-k=\"", flame_colors_category(&fl->colors, node));
	buf_addch(out, '"');
	if (states && !(is_function && flame_states_is_one(states)))
		flame_states_add_data(states, out);
	if (pane > fl->panes && pane < fl->panes + fl->n_panes)
		buf_addf(out, " data-p=\"%zu\"", (size_t)(pane - fl->panes));
	buf_addstr(out, "><title>");
	flame_add_text(out, &fl->text);
	buf_addstr(out, "</title>");
	out->failed |= fl->name.failed;
}

static void add_frame(struct flame *fl, const struct flame_pane *pane, const struct flame_box *box,
		      struct buf *out)
{
	uint64_t left = pixel_of(pane, box->x);
	uint64_t width = pixel_of(pane, box->x + box->w) - left;
	uint64_t gap = width >= 5 * GAP ? GAP : width / 5;
	uint32_t row = fl->opts->icicle ? box->depth : fl->max_depth - box->depth;
	unsigned int y = fl->top + row * ROW;

	begin_frame(fl, pane, box, out);
	buf_addstr(out, "<rect x=\"");
	add_hundredths(out, left);
	add_number(out, "\" y=\"", y);
	buf_addstr(out, "\" width=\"");
	add_hundredths(out, width - gap);
	add_number(out, "\" height=\"", BOX);
	buf_addstr(out, "\"/><text x=\"");
	add_hundredths(out, left + TEXT_PAD * 100);
	add_number(out, "\" y=\"", y + BASELINE);
	buf_addstr(out, "\">");
	buf_reset(&fl->text);
	if (width > 2 * TEXT_PAD * 100)
		flame_fit(&fl->text, buf_str(&fl->name), (width - 2 * TEXT_PAD * 100) / CELL);
	flame_add_text(out, &fl->text);
	buf_addstr(out, "</text></g>\n");
}

void flame_add_frames(struct flame *fl, struct buf *out)
{
	for (size_t i = 0; i < fl->n_panes; i++)
		for (size_t k = 0; k < fl->panes[i].layout.n_boxes; k++)
			add_frame(fl, &fl->panes[i], &fl->panes[i].layout.boxes[k], out);
}

void flame_add_app_frames(struct flame *fl, struct buf *out)
{
	for (size_t i = 0; i < fl->app.layout.n_boxes; i++) {
		begin_frame(fl, &fl->app, &fl->app.layout.boxes[i], out);
		buf_addf(out, "<rect height=\"%u\"/><text/></g>\n", BOX);
	}
}
