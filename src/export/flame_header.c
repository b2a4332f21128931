/* SPDX-License-Identifier: GPL-2.0-only */
/* What stands above and below the frames: title, facts, legend, footer. */
#include "export/flame_picture.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "export/flame_diff.h"
#include "export/flame_text.h"
#include "profile/profile.h"

/* Pixels. */
#define TITLE_Y	    29
#define LINE	    19 /* of the header */
#define LEGEND_LINE 22
#define SWATCH	    11
#define FONT	    12	 /* of the header */
#define TITLE_CELL  1050 /* hundredths: a letter of the title, on average */

#define LEGEND	    "Self time:"

void flame_make_title(struct flame *fl)
{
	const struct profile *p = fl->profile;
	const struct profile_event *event = profile_event(p);
	struct buf *title = &fl->title;

	if (fl->opts->title) {
		utf8_sanitise(title, fl->opts->title, strlen(fl->opts->title));
		return;
	}
	flame_facts_programs(p, &fl->facts, title);
	buf_addf(title, ": %s flame graph", event_is_cpu(event) ? "CPU" : event->name);
	if (fl->opts->inverted)
		buf_addstr(title, ", innermost frames first");
}

void flame_add_min_width(const struct flame *fl, uint64_t min_box, struct buf *out)
{
	_cleanup_buf_ struct buf number = BUF_INIT;
	struct json j = JSON_INIT(&number);

	if (min_box) {
		buf_addstr(out, num_percent_fine(min_box, fl->total).s);
		return;
	}
	json_double(&j, NULL, fl->min_percent);
	buf_addf(out, "%s%%%s", buf_str(&number),
		 fl->seen < 1 && !fl->opts->min_width ? " of all but idle" : "");
}

void flame_add_hidden_note(const struct flame *fl, struct buf *out)
{
	buf_addf(out, "%s below ", num_of(fl->n_hidden, "frame", "frames").s);
	flame_add_min_width(fl, fl->min_box, out);
	buf_addstr(out, " hidden");
}

/*
 * Lines of pieces that are kept whole, broken at the width of the picture; the script breaks them
 * again at that of the window.
 */
struct paragraph {
	struct buf *out;
	const char *css_class;
	unsigned int y;	     /* baseline of the current line */
	unsigned int width;  /* pixels that a line may have */
	unsigned int height; /* of a line */
	uint64_t used;	     /* hundredths of a pixel of the current line */
};

static void add_piece(struct paragraph *par, struct buf *piece)
{
	uint64_t width = flame_sans_width(buf_str(piece)) * FONT;

	if (par->used && par->used + width > (uint64_t)par->width * 100) {
		buf_addstr(par->out, "</text>\n");
		par->y += par->height;
		par->used = 0;
	}
	if (!par->used)
		buf_addf(par->out, "<text class=\"%s\" x=\"%d\" y=\"%u\">", par->css_class, PAD,
			 par->y);
	else
		buf_addstr(par->out, " · ");
	flame_add_text(par->out, piece);
	par->used += width + flame_sans_width(" · ") * FONT;
	buf_reset(piece);
}

static void end_paragraph(struct paragraph *par)
{
	if (!par->used)
		return;
	buf_addstr(par->out, "</text>\n");
	par->y += par->height;
	par->used = 0;
}

/* The pieces of flame_facts.h come here. */
static void take_piece(void *arg, struct buf *piece)
{
	add_piece(arg, piece);
}

static struct flame_facts_text facts_text(const struct flame *fl, struct paragraph *par)
{
	return (struct flame_facts_text) {
		.profile = fl->profile,
		.facts = &fl->facts,
		.filter = fl->opts->filter,
		.piece = take_piece,
		.arg = par,
	};
}

static void add_subtitle(const struct flame *fl, struct paragraph *par)
{
	const struct flame_facts_text text = facts_text(fl, par);
	_cleanup_buf_ struct buf s = BUF_INIT;

	flame_facts_tell(&text);
	if (fl->opts->base) {
		buf_addstr(&s, "compared with ");
		utf8_sanitise(&s, fl->opts->base_name, strlen(fl->opts->base_name));
		buf_addf(&s, " (%s)", num_of(fl->opts->base->all.samples, "sample", "samples").s);
		add_piece(par, &s);
	}
	end_paragraph(par);
}

static void add_defects(const struct flame *fl, struct paragraph *par)
{
	const struct flame_facts_text text = facts_text(fl, par);

	flame_facts_tell_defects(&text);
	end_paragraph(par);
}

static void add_key_tip(const struct flame *fl, size_t category, size_t n_frames, struct buf *out)
{
	const struct flame_category *c = &fl->colors.categories[category];

	buf_addstr(out, buf_str(&c->name));
	if (c->about)
		buf_addf(out, "\n%s", c->about);
	if (c->unknown)
		buf_addstr(out, "\nself: unknown");
	else
		flame_add_amount(fl, "self", c->self_value, c->self_samples, out);
	buf_addch(out, '\n');
	buf_addstr(out, num_of(n_frames, "frame", "frames").s);
	buf_addstr(out, " in the picture");
}

/* *@x and *@y are where the next key may go, *@y being the baseline. */
static void add_key(const struct flame *fl, size_t category, size_t n_frames, unsigned int *x,
		    unsigned int *y, struct buf *out)
{
	const struct flame_category *c = &fl->colors.categories[category];
	bool by_samples = fl->by_samples;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf tip = BUF_INIT;
	unsigned int width;

	buf_addf(&text, "%s ", buf_str(&c->name));
	if (c->unknown)
		buf_addstr(&text, "unknown");
	else
		buf_addstr(&text,
			   num_percent_fine(by_samples ? c->self_samples : c->self_value, fl->total)
				   .s);
	add_key_tip(fl, category, n_frames, &tip);
	width = SWATCH + 6 + flame_sans_width(buf_str(&text)) * FONT / 100;
	if (*x > PAD && *x + width > fl->width - PAD) {
		*x = PAD;
		*y += LEGEND_LINE;
	}
	buf_addf(out, "<g class=\"key\" data-k=\"%zu\"><title>", category);
	flame_add_text(out, &tip);
	buf_addstr(out, "</title><rect class=\"");
	if (flame_colors_have_swatches(&fl->colors))
		buf_addch(out, (char)('a' + category));
	else
		buf_addstr(out, "none");
	buf_addf(out, "\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"2\"/>", *x, *y - 10,
		 SWATCH, SWATCH);
	buf_addf(out, "<text x=\"%u\" y=\"%u\">", *x + SWATCH + 6, *y);
	flame_add_text(out, &text);
	buf_addstr(out, "</text></g>\n");
	*x += width + 16;
}

/* Add the boxes of @pane to those of each category. */
static void count_frames(const struct flame *fl, const struct flame_pane *pane, size_t *n_frames)
{
	for (size_t i = 0; i < pane->layout.n_boxes; i++) {
		const struct tree_node *node = &pane->tree.nodes[pane->layout.boxes[i].node];

		if (node->frame != PROFILE_NONE)
			n_frames[flame_colors_category(&fl->colors, node)]++;
	}
}

/* Returns the baseline of the last line. */
static unsigned int add_legend(const struct flame *fl, unsigned int y, struct buf *out)
{
	size_t n_frames[FLAME_MAX_CATEGORIES] = { 0 };
	unsigned int x = PAD + flame_sans_width(LEGEND) * FONT / 100 + 12;

	for (size_t i = 0; i < fl->n_panes; i++)
		count_frames(fl, &fl->panes[i], n_frames);
	buf_addf(out, "<text id=\"legend\" x=\"%d\" y=\"%u\">%s</text>\n", PAD, y, LEGEND);
	for (size_t i = 0; i < fl->colors.n_categories; i++)
		if (fl->colors.categories[i].used)
			add_key(fl, i, n_frames[i], &x, &y, out);
	return y;
}

void flame_add_header(struct flame *fl, struct buf *out)
{
	struct paragraph par = {
		.out = out,
		.css_class = "sub",
		.y = TITLE_Y + 20,
		.width = fl->width - 2 * PAD,
		.height = LINE,
	};

	buf_reset(&fl->text);
	flame_fit(&fl->text, buf_str(&fl->title), (size_t)par.width * 100 / TITLE_CELL);
	buf_addf(out, "<g id=\"top\">\n<rect id=\"panel\" width=\"100%%\" height=\"0\"/>\n");
	buf_addf(out, "<text id=\"title\" x=\"%d\" y=\"%d\">", PAD, TITLE_Y);
	flame_add_text(out, &fl->text);
	buf_addstr(out, "</text>\n");
	add_subtitle(fl, &par);
	par.css_class = "warn";
	add_defects(fl, &par);
	fl->top = add_legend(fl, par.y + 5, out) + 14;
	buf_addstr(out, "</g>\n");
}

void flame_add_footer(struct flame *fl, struct buf *out)
{
	buf_reset(&fl->text);
	if (fl->n_hidden) {
		flame_add_hidden_note(fl, &fl->text);
		buf_addstr(&fl->text, " · ");
	}
	buf_addstr(&fl->text, "rbpf " RBPF_VERSION);
	buf_addf(out, "<g id=\"foot\"><text x=\"%d\" y=\"%u\">", PAD, fl->height - 9);
	flame_add_text(out, &fl->text);
	buf_addstr(out, "</text></g>\n");
}
