/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flame graph as SVG.
 *
 * The picture must be right where no script runs (GitHub, <img>, a printer), so all that it shows
 * is written here: boxes, text cut to fit, titles, a legend. The script (flame.js) then takes the
 * same elements over, fits them to the window and adds zoom, search and keys. It needs nothing
 * else: each frame carries its place as integers in the unit that was measured (data-x, data-w,
 * data-d), from which pixels follow, so that no rounding ever decides what is inside what.
 *
 * The parts, in the order of painting: background, frames, header, footer, script. Pixels are
 * computed in hundredths by integers: the same recording gives the same bytes on every machine.
 *
 * <desc> holds where the picture comes from as JSON, so that a file that was mailed around can
 * still be asked for its command line, its filters and what it lacks.
 */
#include "export/flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/flame_assets.h"
#include "export/flame_color.h"
#include "export/flame_facts.h"
#include "export/flame_layout.h"
#include "export/flame_text.h"
#include "export/human.h"
#include "export/xml.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/tree.h"

#define DEFAULT_WIDTH	  1200
#define MIN_WIDTH	  200
#define MAX_WIDTH	  20000
#define DEFAULT_MIN_WIDTH 0.01 /* percent */

/* Pixels. The script reads ROW and PAD from the file; its texts have the same fonts. */
#define PAD		  12 /* left and right of everything */
#define ROW		  17 /* from one level to the next */
#define BOX		  16 /* height of a box: one pixel of background between levels */
#define BASELINE	  12 /* of text, from the top of its box */
#define TEXT_PAD	  3  /* left and right of text in its box */
#define TITLE_Y		  29
#define LINE		  19 /* of the header */
#define LEGEND_LINE	  22
#define SWATCH		  11
#define FOOT		  26
#define GAP		  60 /* hundredths: right of a box, if that leaves most of the box */
#define CELL		  725 /* hundredths: width of 12 px monospace; all fonts of flame.css are below */
#define FONT		  12   /* of the header */
#define TITLE_CELL	  1050 /* hundredths: a letter of the title, on average */

#define LEGEND		  "Self time:"

/* A name in a title; the rest of it says nothing more to anyone. Code points. */
#define MAX_NAME	  4096

struct flame {
	const struct profile *profile;
	const struct flame_options *opts;
	struct tree tree;
	struct flame_layout layout;
	struct flame_colors colors;
	struct flame_facts facts;
	struct buf title; /* not escaped */
	struct buf name;  /* scratch */
	struct buf text;  /* scratch */
	unsigned int width;
	double min_percent;
	unsigned int top; /* height of the header */
	unsigned int height;
};

static void flame_deinit(struct flame *fl)
{
	tree_deinit(&fl->tree);
	flame_layout_deinit(&fl->layout);
	flame_colors_deinit(&fl->colors);
	flame_facts_deinit(&fl->facts);
	buf_deinit(&fl->title);
	buf_deinit(&fl->name);
	buf_deinit(&fl->text);
}

/* All that is not markup comes into the picture through here, so that it is escaped, and once. */
static void add_text(struct buf *out, const struct buf *text)
{
	xml_escape(out, buf_str(text));
	out->failed |= text->failed;
}

static const char *mode_of(const struct profile *p)
{
	return p->meta.mode && *p->meta.mode ? p->meta.mode : "cpu";
}

static void make_title(struct flame *fl)
{
	const struct flame_facts *facts = &fl->facts;
	const struct profile *p = fl->profile;
	struct buf *title = &fl->title;

	if (fl->opts->title) {
		utf8_sanitise(title, fl->opts->title, strlen(fl->opts->title));
		return;
	}
	if (facts->n_processes > 1 && facts->n_programs == 1)
		buf_addf(title, "%zu × ", facts->n_processes);
	buf_addstr(title, buf_str(&facts->programs));
	if (facts->n_processes == 1)
		buf_addf(title, " (pid %u)", p->processes[facts->process].pid);
	buf_addf(title, ": %s flame graph", strcmp(mode_of(p), "cpu") ? mode_of(p) : "CPU");
	if (fl->opts->inverted)
		buf_addstr(title, ", innermost frames first");
}

/* <desc> */

static void add_optional(struct json *j, const char *key, const char *s)
{
	if (s)
		json_str(j, key, s);
}

static void add_pids(struct json *j, const char *key, const pid_t *pids, size_t n)
{
	if (!n)
		return;
	json_array_begin(j, key);
	for (size_t i = 0; i < n; i++)
		json_i64(j, NULL, pids[i]);
	json_array_end(j);
}

/* The patterns themselves are in "drawn_by": compiled ones cannot be read. */
static void add_filters(struct json *j, const struct view_filter *f)
{
	json_object_begin(j, "filters");
	if (f) {
		add_pids(j, "pid", f->pids, f->n_pids);
		add_pids(j, "tid", f->tids, f->n_tids);
		if (f->has_thread)
			json_bool(j, "thread", true);
		if (f->has_comm)
			json_bool(j, "comm", true);
		if (f->has_include)
			json_bool(j, "include", true);
		if (f->has_exclude)
			json_bool(j, "exclude", true);
		if (f->from_ns)
			json_u64(j, "from_ns", f->from_ns);
		if (f->to_ns)
			json_u64(j, "to_ns", f->to_ns);
		if (f->ruby_only)
			json_bool(j, "ruby_only", true);
		if (f->no_gc)
			json_bool(j, "no_gc", true);
	}
	json_object_end(j);
}

/* "37 frames below 0.01% hidden" */
static void add_hidden_note(const struct flame *fl, struct buf *out)
{
	_cleanup_buf_ struct buf number = BUF_INIT;
	struct json j = JSON_INIT(&number);

	json_double(&j, NULL, fl->min_percent);
	human_count_of(out, fl->layout.n_hidden, "frame", "frames");
	buf_addf(out, " below %s%% hidden", buf_str(&number));
}

static void add_desc(const struct flame *fl, struct buf *out)
{
	const struct profile *p = fl->profile;
	const struct profile_meta *meta = &p->meta;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf note = BUF_INIT;
	struct json j = JSON_INIT(&text);

	add_hidden_note(fl, &note);
	json_object_begin(&j, NULL);
	json_str(&j, "generator", "rbpf " RBPF_VERSION);
	add_optional(&j, "command", meta->command);
	add_optional(&j, "recorded_by", meta->rbpf_version);
	add_optional(&j, "drawn_by", fl->opts->command);
	add_optional(&j, "hostname", meta->hostname);
	add_optional(&j, "kernel", meta->kernel);
	add_optional(&j, "arch", meta->arch);
	json_str(&j, "ruby", buf_str(&fl->facts.rubies));
	json_str(&j, "mode", mode_of(p));
	json_str(&j, "unit", fl->layout.by_samples ? "samples" : "ns");
	json_u64(&j, "total", fl->layout.total);
	json_u64(&j, "frequency_hz", meta->frequency);
	json_u64(&j, "period_ns", meta->frequency ? NSEC_PER_SEC / meta->frequency : 0);
	json_u64(&j, "start_realtime_ns", meta->start_realtime_ns);
	json_u64(&j, "duration_ns", fl->facts.duration_ns);
	json_u64(&j, "processes", fl->facts.n_processes);
	json_u64(&j, "threads", fl->facts.n_threads);
	json_u64(&j, "samples", fl->facts.samples);
	json_u64(&j, "recorded_samples", fl->facts.all_samples);
	json_u64(&j, "lost", p->totals.lost);
	json_u64(&j, "truncated", fl->facts.truncated);
	json_u64(&j, "unresolved", fl->facts.unresolved);
	json_u64(&j, "failed", fl->facts.failed);
	json_bool(&j, "complete", p->complete);
	add_filters(&j, fl->opts->filter);
	json_bool(&j, "inverted", fl->opts->inverted);
	json_u64(&j, "frames", fl->layout.n_boxes);
	json_u64(&j, "hidden_frames", fl->layout.n_hidden);
	json_str(&j, "note", buf_str(&note));
	json_object_end(&j);
	buf_addstr(out, "<desc>");
	add_text(out, &text);
	buf_addstr(out, "</desc>\n");
	out->failed |= note.failed;
}

/* Frames */

static void add_hundredths(struct buf *out, uint64_t n)
{
	static const char digits[] = "0123456789";

	buf_addf(out, "%" PRIu64, n / 100);
	n %= 100;
	if (!n)
		return;
	buf_addch(out, '.');
	buf_addch(out, digits[n / 10]);
	if (n % 10)
		buf_addch(out, digits[n % 10]);
}

/* Hundredths of a pixel, from the left of the picture, of @x in units of the layout. */
static uint64_t pixel_of(const struct flame *fl, uint64_t x)
{
	uint64_t inner = (uint64_t)(fl->width - 2 * PAD) * 100, total = fl->layout.total;

	return (uint64_t)(((unsigned __int128)x * inner + total / 2) / total) + PAD * 100;
}

static void add_amount(const struct flame *fl, const char *what, uint64_t ns, uint64_t samples,
		       struct buf *out)
{
	bool by_samples = fl->layout.by_samples;

	buf_addf(out, "\n%s ", what);
	if (!by_samples) {
		human_duration(out, ns);
		buf_addstr(out, " (");
	}
	human_percent(out, by_samples ? samples : ns, fl->layout.total);
	buf_addstr(out, by_samples ? ", " : "), ");
	human_count_of(out, samples, "sample", "samples");
}

/* "Ruby app · /app/cart.rb:57", below the name. */
static void add_place(const struct flame *fl, uint32_t frame, struct buf *out)
{
	const struct profile *p = fl->profile;
	const struct profile_frame *f = &p->frames[frame];
	const char *file = profile_str(p, f->file);

	buf_addf(out, "\n%s", buf_str(&fl->colors.categories[fl->colors.of_frame[frame]].name));
	if (*file && f->kind != FRAME_CFUNC) {
		buf_addf(out, " · %s", file);
		if (f->func_line)
			buf_addf(out, ":%u", f->func_line);
	} else if (f->module != PROFILE_NONE) {
		buf_addf(out, " · %s", profile_str(p, p->modules[f->module].path));
	}
}

/* The title of a frame whose label is in fl->name, not escaped. */
static void add_tip(const struct flame *fl, const struct tree_node *node, struct buf *out)
{
	const char *name = buf_str(&fl->name);
	size_t shown = utf8_prefix(name, MAX_NAME);

	buf_add(out, name, shown);
	if (name[shown])
		buf_addstr(out, "…");
	if (node->frame != PROFILE_NONE)
		add_place(fl, node->frame, out);
	add_amount(fl, "total", node->total_ns, node->total_samples, out);
	/* Where callers are above, a path's time is at its outermost frame: no self time. */
	if (!fl->opts->inverted)
		add_amount(fl, "self", node->self_ns, node->self_samples, out);
}

static void add_frame(struct flame *fl, const struct flame_box *box, struct buf *out)
{
	const struct tree_node *node = &fl->tree.nodes[box->node];
	uint64_t left = pixel_of(fl, box->x);
	uint64_t width = pixel_of(fl, box->x + box->w) - left;
	uint64_t gap = width >= 5 * GAP ? GAP : width / 5;
	uint32_t row = fl->opts->icicle ? box->depth : fl->layout.max_depth - box->depth;
	unsigned int y = fl->top + row * ROW;

	buf_reset(&fl->name);
	tree_node_label(&fl->tree, box->node, &fl->name);
	buf_addstr(out, "<g class=\"");
	if (node->frame == PROFILE_NONE)
		buf_addch(out, 'z');
	else
		flame_colors_class(&fl->colors, fl->profile, node->frame, out);
	buf_addf(out, "\" data-x=\"%" PRIu64 "\" data-w=\"%" PRIu64 "\" data-d=\"%u\"", box->x,
		 box->w, box->depth);
	if (node->frame != PROFILE_NONE)
		buf_addf(out, " data-k=\"%u\"", fl->colors.of_frame[node->frame]);
	buf_addstr(out, "><title>");
	buf_reset(&fl->text);
	add_tip(fl, node, &fl->text);
	add_text(out, &fl->text);
	buf_addstr(out, "</title><rect x=\"");
	add_hundredths(out, left);
	buf_addf(out, "\" y=\"%u\" width=\"", y);
	add_hundredths(out, width - gap);
	buf_addf(out, "\" height=\"%u\"/><text x=\"", BOX);
	add_hundredths(out, left + TEXT_PAD * 100);
	buf_addf(out, "\" y=\"%u\">", y + BASELINE);
	buf_reset(&fl->text);
	if (width > 2 * TEXT_PAD * 100)
		flame_fit(&fl->text, buf_str(&fl->name), (width - 2 * TEXT_PAD * 100) / CELL);
	add_text(out, &fl->text);
	buf_addstr(out, "</text></g>\n");
	out->failed |= fl->name.failed;
}

/* Header and footer */

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
	add_text(par->out, piece);
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

static void add_subtitle(const struct flame *fl, struct paragraph *par)
{
	const struct flame_facts *facts = &fl->facts;
	_cleanup_buf_ struct buf s = BUF_INIT;

	human_duration(&s, facts->duration_ns);
	add_piece(par, &s);
	human_count_of(&s, facts->n_processes, "process", "processes");
	add_piece(par, &s);
	human_count_of(&s, facts->n_threads, "thread", "threads");
	add_piece(par, &s);
	human_count(&s, facts->samples);
	if (facts->samples != facts->all_samples) {
		buf_addstr(&s, " of ");
		human_count(&s, facts->all_samples);
	}
	buf_addstr(&s, facts->all_samples == 1 ? " sample" : " samples");
	if (fl->profile->meta.frequency)
		buf_addf(&s, " at %u Hz", fl->profile->meta.frequency);
	add_piece(par, &s);
	if (facts->ns) {
		human_duration(&s, facts->ns);
		buf_addf(&s, " %s", strcmp(mode_of(fl->profile), "cpu") ? "in all" : "CPU time");
		add_piece(par, &s);
	}
	if (facts->rubies.len) {
		buf_addf(&s, "Ruby %s", buf_str(&facts->rubies));
		add_piece(par, &s);
	}
	if (fl->opts->filter && fl->opts->filter->ruby_only) {
		buf_addstr(&s, "Ruby frames only");
		add_piece(par, &s);
	}
	if (fl->opts->filter && fl->opts->filter->no_gc) {
		buf_addstr(&s, "without GC");
		add_piece(par, &s);
	}
	end_paragraph(par);
}

/* "3 samples truncated (0.02%)"; nothing if there are none. */
static void add_defect(const struct flame *fl, struct paragraph *par, uint64_t n, const char *what)
{
	_cleanup_buf_ struct buf s = BUF_INIT;

	if (!n)
		return;
	human_count_of(&s, n, "sample", "samples");
	buf_addf(&s, " %s (", what);
	human_percent(&s, n, fl->facts.samples);
	buf_addch(&s, ')');
	add_piece(par, &s);
}

/* What keeps the picture from being the whole truth; nothing if nothing does. */
static void add_defects(const struct flame *fl, struct paragraph *par)
{
	_cleanup_buf_ struct buf s = BUF_INIT;

	if (!fl->profile->complete) {
		buf_addstr(&s, "recording was interrupted");
		add_piece(par, &s);
	}
	if (fl->profile->totals.lost) {
		human_count_of(&s, fl->profile->totals.lost, "sample lost", "samples lost");
		add_piece(par, &s);
	}
	add_defect(fl, par, fl->facts.truncated, "cut at the depth limit");
	add_defect(fl, par, fl->facts.unresolved, "with unnamed frames");
	add_defect(fl, par, fl->facts.failed, "whose Ruby stack could not be read");
	add_defect(fl, par, fl->facts.frameless, "without any frame");
	end_paragraph(par);
}

static void add_key_tip(const struct flame *fl, size_t category, size_t n_frames, struct buf *out)
{
	const struct flame_category *c = &fl->colors.categories[category];

	buf_addstr(out, buf_str(&c->name));
	add_amount(fl, "self", c->self_ns, c->self_samples, out);
	buf_addch(out, '\n');
	human_count_of(out, n_frames, "frame", "frames");
	buf_addstr(out, " in the picture");
}

/* *@x and *@y are where the next key may go, *@y being the baseline. */
static void add_key(const struct flame *fl, size_t category, size_t n_frames, unsigned int *x,
		    unsigned int *y, struct buf *out)
{
	const struct flame_category *c = &fl->colors.categories[category];
	bool by_samples = fl->layout.by_samples;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf tip = BUF_INIT;
	unsigned int width;

	buf_addf(&text, "%s ", buf_str(&c->name));
	human_percent(&text, by_samples ? c->self_samples : c->self_ns, fl->layout.total);
	add_key_tip(fl, category, n_frames, &tip);
	width = SWATCH + 6 + flame_sans_width(buf_str(&text)) * FONT / 100;
	if (*x > PAD && *x + width > fl->width - PAD) {
		*x = PAD;
		*y += LEGEND_LINE;
	}
	buf_addf(out, "<g class=\"key\" data-k=\"%zu\"><title>", category);
	add_text(out, &tip);
	buf_addstr(out, "</title><rect class=\"");
	if (flame_colors_have_swatches(&fl->colors))
		buf_addch(out, (char)('a' + category));
	else
		buf_addstr(out, "none");
	buf_addf(out, "\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"2\"/>", *x, *y - 10,
		 SWATCH, SWATCH);
	buf_addf(out, "<text x=\"%u\" y=\"%u\">", *x + SWATCH + 6, *y);
	add_text(out, &text);
	buf_addstr(out, "</text></g>\n");
	*x += width + 16;
}

/* Returns the baseline of the last line. */
static unsigned int add_legend(const struct flame *fl, unsigned int y, struct buf *out)
{
	size_t n_frames[FLAME_MAX_CATEGORIES] = { 0 };
	unsigned int x = PAD + flame_sans_width(LEGEND) * FONT / 100 + 12;

	for (size_t i = 0; i < fl->layout.n_boxes; i++) {
		uint32_t frame = fl->tree.nodes[fl->layout.boxes[i].node].frame;

		if (frame != PROFILE_NONE)
			n_frames[fl->colors.of_frame[frame]]++;
	}
	buf_addf(out, "<text id=\"legend\" x=\"%d\" y=\"%u\">%s</text>\n", PAD, y, LEGEND);
	for (size_t i = 0; i < fl->colors.n_categories; i++)
		if (fl->colors.categories[i].used)
			add_key(fl, i, n_frames[i], &x, &y, out);
	return y;
}

/* Sets fl->top. */
static void add_header(struct flame *fl, struct buf *out)
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
	add_text(out, &fl->text);
	buf_addstr(out, "</text>\n");
	add_subtitle(fl, &par);
	par.css_class = "warn";
	add_defects(fl, &par);
	fl->top = add_legend(fl, par.y + 5, out) + 14;
	buf_addstr(out, "</g>\n");
}

static void add_footer(struct flame *fl, struct buf *out)
{
	buf_reset(&fl->text);
	if (fl->layout.n_hidden) {
		add_hidden_note(fl, &fl->text);
		buf_addstr(&fl->text, " · ");
	}
	buf_addstr(&fl->text, "rbpf " RBPF_VERSION);
	buf_addf(out, "<g id=\"foot\"><text x=\"%d\" y=\"%u\">", PAD, fl->height - 9);
	add_text(out, &fl->text);
	buf_addstr(out, "</text></g>\n");
}

static void add_svg(struct flame *fl, struct buf *out)
{
	_cleanup_buf_ struct buf header = BUF_INIT;
	_cleanup_buf_ struct buf frames = BUF_INIT;

	/* Painted last, but its height is where the frames begin. */
	add_header(fl, &header);
	fl->height = fl->top + (fl->layout.max_depth + 1) * ROW + FOOT;
	for (size_t i = 0; i < fl->layout.n_boxes; i++)
		add_frame(fl, &fl->layout.boxes[i], &frames);

	buf_addf(out,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		 "viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"",
		 fl->width, fl->height, fl->width, fl->height);
	add_text(out, &fl->title);
	buf_addstr(out, "\">\n<title>");
	add_text(out, &fl->title);
	buf_addstr(out, "</title>\n");
	add_desc(fl, out);
	buf_addstr(out, "<style>\n");
	buf_addstr(out, flame_css);
	flame_colors_css(&fl->colors, out);
	buf_addstr(out, "</style>\n<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	buf_addf(out, "<g id=\"frames\" data-total=\"%" PRIu64 "\" data-unit=\"%s\"",
		 fl->layout.total, fl->layout.by_samples ? "samples" : "ns");
	buf_addf(out, " data-row=\"%d\" data-pad=\"%d\" data-icicle=\"%d\">\n", ROW, PAD,
		 fl->opts->icicle);
	buf_add(out, buf_str(&frames), frames.len);
	buf_addstr(out, "</g>\n");
	buf_add(out, buf_str(&header), header.len);
	add_footer(fl, out);
	buf_addstr(out, "<script><![CDATA[\n");
	buf_addstr(out, flame_js);
	buf_addstr(out, "]]></script>\n</svg>\n");
	out->failed |= header.failed || frames.failed;
}

static unsigned int clamp_width(unsigned int width)
{
	if (!width)
		return DEFAULT_WIDTH;
	return width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : width;
}

int flame_render(const struct profile *p, const struct flame_options *opts, struct buf *out,
		 struct err *err)
{
	const struct tree_options tree_opts = { .inverted = opts->inverted, .split = opts->split };
	struct flame fl = {
		.profile = p,
		.opts = opts,
		.width = clamp_width(opts->width),
		.min_percent = opts->min_width == 0 ? DEFAULT_MIN_WIDTH : opts->min_width,
	};
	int r;

	if (fl.min_percent < 0)
		fl.min_percent = 0;
	r = flame_facts_init(p, opts->filter, &fl.facts);
	if (!r && !fl.facts.samples) {
		r = err_set(err, -ENODATA, ERR_EMPTY,
			    p->n_samples ? "no sample passes the filters"
					 : "the recording holds no samples");
		goto out;
	}
	if (!r)
		r = tree_build(p, opts->filter, &tree_opts, &fl.tree);
	if (!r)
		r = flame_layout_build(&fl.tree, fl.min_percent, &fl.layout);
	if (!r)
		r = flame_colors_init(&fl.tree, opts->color, &fl.colors);
	if (!r) {
		make_title(&fl);
		add_svg(&fl, out);
		r = buf_failed(out) ? -ENOMEM : 0;
	}
	if (r)
		r = err_oom(err);
out:
	flame_deinit(&fl);
	return r;
}

int export_flame(const struct profile *p, const struct export_options *opts, struct buf *out,
		 struct err *err)
{
	const struct flame_options flame_opts = { .filter = opts->filter };

	return flame_render(p, &flame_opts, out, err);
}
