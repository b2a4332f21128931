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
 * Beside the frames there are, invisible, those of the program's own code alone, as --app draws
 * them: a button of the script shows them instead. The script could hide frames itself, but then
 * boxes of the same method would stay apart, and their numbers would be those of the whole picture.
 *
 * <desc> holds where the picture comes from as JSON, so that a file that was mailed around can
 * still be asked for its command line, its filters and what it lacks.
 */
#include "export/flame.h"

#include <errno.h>
#include <inttypes.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/thread.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/assets.h"
#include "export/flame_picture.h"
#include "export/flame_states.h"
#include "export/xml.h"
#include "page/assets.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/state.h"

#define DEFAULT_WIDTH	  1200
#define MIN_WIDTH	  200
#define MAX_WIDTH	  20000
#define DEFAULT_MIN_WIDTH 0.01 /* percent */

/*
 * Of boxes, if nobody said how narrow they may be: a browser takes a second for three times that.
 * The program's own code may have a part of it.
 */
#define MAX_BYTES	  (3u << 20)
#define MAX_APP_BYTES	  (MAX_BYTES / 4)
#define BOX_BYTES_LEAST	  100 /* with its title */

#define FOOT		  26	/* pixels below the frames */
#define MANY_STACKS	  10000 /* of so many the trees are made at the same time */

static void flame_deinit(struct flame *fl)
{
	for (size_t i = 0; i < fl->n_panes; i++) {
		tree_deinit(&fl->panes[i].tree);
		flame_layout_deinit(&fl->panes[i].layout);
	}
	tree_deinit(&fl->app.tree);
	flame_layout_deinit(&fl->app.layout);
	flame_colors_deinit(&fl->colors);
	flame_facts_deinit(&fl->facts);
	buf_deinit(&fl->title);
	buf_deinit(&fl->name);
	buf_deinit(&fl->text);
}

void flame_add_text(struct buf *out, const struct buf *text)
{
	xml_escape(out, buf_str(text));
	out->failed |= text->failed;
}

static size_t count_boxes(const struct flame *fl)
{
	size_t n = 0;

	for (size_t i = 0; i < fl->n_panes; i++)
		n += fl->panes[i].layout.n_boxes;
	return n;
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

static void add_hidden(struct json *j, uint32_t origins)
{
	json_array_begin(j, "hide");
	for (size_t i = 0; i < ORIGIN_COUNT; i++)
		if (origins & 1u << i)
			json_str(j, NULL, label_origin_word(i));
	json_array_end(j);
}

static void add_states(struct json *j, uint64_t states)
{
	if (!states)
		return;
	json_array_begin(j, "state");
	for (size_t i = 0; i < STATES; i++)
		if (states & 1ull << i)
			json_str(j, NULL, state_word(i));
	if (states >> STATE_SET_HELD_SHIFT & ~states & STATE_SET_FREE)
		json_str(j, NULL, STATE_WORD_HELD);
	json_array_end(j);
}

/* The patterns themselves are in "drawn_by": compiled ones cannot be read. */
static void add_patterns(struct json *j, const struct view_filter *f)
{
	const struct {
		const char *key;
		bool given;
	} patterns[] = {
		{ "thread", f->has_thread },
		{ "comm", f->has_comm },
		{ "container", f->has_container },
		{ "request", f->has_request },
		{ "include", f->has_include || f->applied.include },
		{ "exclude", f->has_exclude || f->applied.exclude },
		{ "idle", f->has_idle },
		{ "expression", f->expr || f->applied.expr },
		{ "root", f->applied.root },
		{ "collapse_recursion", f->applied.collapse_recursion },
		{ "no_gc", f->no_gc },
	};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (patterns[i].given)
			json_bool(j, patterns[i].key, true);
}

static void add_filters(struct json *j, const struct view_filter *f)
{
	json_object_begin(j, "filters");
	if (f) {
		add_pids(j, "pid", f->pids, f->n_pids);
		add_pids(j, "tid", f->tids, f->n_tids);
		add_patterns(j, f);
		add_states(j, f->states | f->ended);
		if (f->slower_than_ns)
			json_u64(j, "request_slower_than_ns", f->slower_than_ns);
		if (f->from_ns)
			json_u64(j, "from_ns", f->from_ns);
		if (f->to_ns)
			json_u64(j, "to_ns", f->to_ns);
		if (f->stack != STACK_ALL && f->stack != STACK_MIXED)
			json_str(j, "stack", stack_mode_name(f->stack));
		if (f->hide)
			add_hidden(j, f->hide);
	}
	json_object_end(j);
}

static void add_desc(const struct flame *fl, struct buf *out)
{
	const struct profile *p = fl->profile;
	const struct profile_meta *meta = &p->meta;
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf note = BUF_INIT;
	struct json j = JSON_INIT(&text);

	flame_add_hidden_note(fl, &note);
	json_object_begin(&j, NULL);
	json_str(&j, "generator", "rbpf " RBPF_VERSION);
	add_optional(&j, "command", meta->command);
	add_optional(&j, "recorded_by", meta->rbpf_version);
	add_optional(&j, "drawn_by", fl->opts->command);
	add_optional(&j, "hostname", meta->hostname);
	add_optional(&j, "kernel", meta->kernel);
	add_optional(&j, "arch", meta->arch);
	json_str(&j, "ruby", buf_str(&fl->facts.rubies));
	json_str(&j, "event", profile_event(p)->name);
	json_str(&j, "unit", fl->by_samples ? "samples" : value_unit_name(profile_event(p)->unit));
	json_u64(&j, "total", fl->total);
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
	json_u64(&j, "frames", count_boxes(fl));
	json_u64(&j, "hidden_frames", fl->n_hidden);
	json_str(&j, "note", buf_str(&note));
	json_object_end(&j);
	buf_addstr(out, "<desc>");
	flame_add_text(out, &text);
	buf_addstr(out, "</desc>\n");
	out->failed |= note.failed;
}

/* ---- boxes ---- */

/* Of what no box is narrower, in percent of all: the script may show a part of it at first. */
static double least_percent(const struct flame *fl)
{
	return fl->min_percent * (fl->opts->min_width ? 1 : fl->seen);
}

static int lay_out(const struct flame *fl, struct flame_pane *panes, size_t n, size_t max_nodes)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		flame_layout_deinit(&panes[i].layout);
		r = flame_layout_build(&panes[i].tree, least_percent(fl), max_nodes / n,
				       &panes[i].layout);
	}
	return r;
}

/* What all panes have in common, or have together. */
static void sum_up(struct flame *fl)
{
	fl->n_hidden = 0;
	fl->max_depth = 0;
	fl->min_box = 0;
	for (size_t i = 0; i < fl->n_panes; i++) {
		const struct flame_layout *layout = &fl->panes[i].layout;

		fl->total = layout->total;
		fl->by_samples = layout->by_samples;
		fl->n_hidden += layout->n_hidden;
		if (layout->max_depth > fl->max_depth)
			fl->max_depth = layout->max_depth;
		if (flame_layout_limit(layout) > fl->min_box)
			fl->min_box = flame_layout_limit(layout);
	}
}

/*
 * The first boxes, if they may take @max_bytes: more than could be as few bytes are not even
 * written, for the text of all boxes of a long recording is 20 times as large as the picture.
 */
static int lay_out_at_most(const struct flame *fl, struct flame_pane *panes, size_t n,
			   size_t max_bytes)
{
	return lay_out(fl, panes, n, fl->opts->min_width ? SIZE_MAX : max_bytes / BOX_BYTES_LEAST);
}

static size_t count_nodes(const struct flame_pane *panes, size_t n_panes)
{
	size_t n = 0;

	for (size_t i = 0; i < n_panes; i++)
		for (size_t k = 0; k < panes[i].layout.n_boxes; k++)
			n += !panes[i].layout.boxes[k].is_rest;
	return n;
}

/*
 * Let @panes, whose boxes took @bytes, have so few that they take @max. Returns 1 if they have
 * fewer now, 0 if they were few enough, or if somebody said how narrow they may be, or -ENOMEM.
 */
static int have_fewer(const struct flame *fl, struct flame_pane *panes, size_t n, size_t bytes,
		      size_t max)
{
	/* Rests take room, too, but fewer nodes have fewer of them. */
	const size_t nodes = count_nodes(panes, n);
	const size_t fewer = (size_t)((double)nodes * (double)max / (double)(bytes + 1) * 0.9);
	int r;

	if (fl->opts->min_width || bytes <= max || nodes <= n)
		return 0;
	r = lay_out(fl, panes, n, fewer);
	return r ? r : 1;
}

/* The header is painted last, but its height is where the boxes begin. */
static int add_frames(struct flame *fl, size_t max_bytes, struct buf *out)
{
	int r;

	do {
		buf_reset(out);
		sum_up(fl);
		fl->height = fl->top + (fl->max_depth + 1) * ROW + FOOT;
		flame_add_frames(fl, out);
		r = have_fewer(fl, fl->panes, fl->n_panes, out->len, max_bytes);
	} while (r > 0);
	return r;
}

/* Nothing if there is no code of the program, or no other. */
static int add_app_frames(struct flame *fl, struct buf *out)
{
	int r = fl->app.tree.n_nodes ? lay_out_at_most(fl, &fl->app, 1, MAX_APP_BYTES) : 0;

	if (r)
		return r;
	do {
		buf_reset(out);
		flame_add_app_frames(fl, out);
		r = have_fewer(fl, &fl->app, 1, out->len, MAX_APP_BYTES);
	} while (r > 0);
	return r;
}

void flame_add_script(struct buf *out)
{
	buf_addf(out, "\n%s%s", page_js, flame_js);
	buf_addstr(out,
		   "flameGraph(document.currentScript ? document.currentScript.ownerSVGElement "
		   ": document.documentElement);\n");
}

static int add_svg(struct flame *fl, struct buf *out)
{
	_cleanup_buf_ struct buf header = BUF_INIT;
	_cleanup_buf_ struct buf frames = BUF_INIT;
	_cleanup_buf_ struct buf app = BUF_INIT;
	int r;

	flame_add_header(fl, &header);
	r = add_app_frames(fl, &app);
	if (!r)
		r = add_frames(fl, MAX_BYTES - (app.len < MAX_BYTES ? app.len : 0), &frames);
	if (r)
		return r;

	buf_addf(out,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		 "viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"",
		 fl->width, fl->height, fl->width, fl->height);
	flame_add_text(out, &fl->title);
	buf_addstr(out, "\">\n<title>");
	flame_add_text(out, &fl->title);
	buf_addstr(out, "</title>\n");
	add_desc(fl, out);
	buf_addstr(out, "<style>\n");
	buf_addstr(out, page_css);
	buf_addstr(out, flame_css);
	flame_colors_css(&fl->colors, out);
	buf_addstr(out, "</style>\n<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	buf_addf(out,
		 "<g id=\"frames\" class=\"frames\" data-total=\"%" PRIu64 "\" data-unit=\"%s\"",
		 fl->total, fl->by_samples ? "samples" : "ns");
	buf_addf(out, " data-row=\"%d\" data-pad=\"%d\"", ROW, PAD);
	if (fl->n_panes > 1)
		buf_addf(out, " data-gutter=\"%d\"", GUTTER);
	if (fl->seen < 1)
		buf_addf(out, " data-off=\"%d\"", STATE_IDLE);
	buf_addf(out, " data-icicle=\"%d\">\n", fl->opts->icicle);
	buf_add(out, buf_str(&frames), frames.len);
	buf_addstr(out, "</g>\n");
	if (app.len) {
		buf_addstr(out, "<g id=\"app\" class=\"frames\" display=\"none\">\n");
		buf_add(out, buf_str(&app), app.len);
		buf_addstr(out, "</g>\n");
	}
	buf_add(out, buf_str(&header), header.len);
	flame_add_footer(fl, out);
	buf_addstr(out, "<script><![CDATA[");
	flame_add_script(out);
	buf_addstr(out, "]]></script>\n</svg>\n");
	out->failed |= header.failed || frames.failed || app.failed;
	return 0;
}

static unsigned int clamp_width(unsigned int width)
{
	if (!width)
		return DEFAULT_WIDTH;
	return width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : width;
}

/* Where the panes are: side by side, each as wide as the others. */
static void place_panes(struct flame *fl)
{
	unsigned int n = (unsigned int)fl->n_panes;
	unsigned int width = (fl->width - 2 * PAD - (n - 1) * GUTTER) / n;

	for (unsigned int i = 0; i < n; i++) {
		fl->panes[i].left = PAD + i * (width + GUTTER);
		fl->panes[i].width = width;
	}
}

static int build_pane(const struct flame *fl, const struct view_filter *f, enum stack_mode stack,
		      struct flame_pane *pane)
{
	const struct tree_options opts = {
		.inverted = fl->opts->inverted,
		.split = fl->opts->split,
		.stack = stack,
		/* Of a difference the legend tells the change of all nodes. */
		.min_percent = fl->opts->base ? 0 : least_percent(fl),
		.exact = fl->opts->base,
		.states = fl->color == FLAME_COLOR_STATE,
	};

	return tree_build(fl->profile, f, &opts, &pane->tree);
}

static int add_pane(struct flame *fl, enum stack_mode stack, const char *root)
{
	struct flame_pane *pane = &fl->panes[fl->n_panes++];

	pane->root = root;
	return build_pane(fl, fl->opts->filter, stack, pane);
}

static bool has_frames(const struct tree *t)
{
	for (size_t i = 0; i < t->n_nodes; i++)
		if (t->nodes[i].frame != PROFILE_NONE)
			return true;
	return false;
}

/* The program's own code; all of it is in the Ruby stacks. */
static int build_app(struct flame *fl)
{
	struct view_filter f = fl->opts->filter ? *fl->opts->filter
						: (struct view_filter)VIEW_FILTER_INIT;

	f.hide |= ((1u << ORIGIN_COUNT) - 1) & ~(1u << ORIGIN_APP);
	return build_pane(fl, &f, STACK_RUBY, &fl->app);
}

static int build_panes(struct flame *fl)
{
	int r;

	if (!fl->opts->filter || fl->opts->filter->stack != STACK_BOTH)
		return add_pane(fl, STACK_ALL, NULL);
	r = add_pane(fl, STACK_RUBY, "Ruby stacks");
	return r ? r : add_pane(fl, STACK_NATIVE, "native stacks");
}

/* The tree of the program's own code, made in a thread of its own. */
struct app_work {
	struct flame *fl; /* only fl->app is changed */
	int result;
};

static void *run_app_work(void *arg)
{
	struct app_work *work = arg;

	work->result = build_app(work->fl);
	return NULL;
}

/* The panes, and what is beside them: there is none if no other code is shown. */
static int build_panes_and_app(struct flame *fl)
{
	struct app_work work = { .fl = fl };
	const bool beside = fl->profile->n_stacks >= MANY_STACKS;
	pthread_t thread;
	const bool begun = beside && thread_begin(&thread, run_app_work, &work);
	int r = build_panes(fl);

	if (begun)
		pthread_join(thread, NULL);
	else if (!r)
		work.result = build_app(fl);
	if (r || work.result)
		return r ? r : work.result;
	if (!has_frames(&fl->app.tree) || fl->app.tree.n_nodes == fl->panes[0].tree.n_nodes)
		tree_deinit(&fl->app.tree);
	return 0;
}

static int build(struct flame *fl)
{
	const struct tree *trees[MAX_PANES];
	int r;

	r = fl->opts->base ? build_panes(fl) : build_panes_and_app(fl);
	/* Before the boxes, which have room once the paths of the other recording are forgotten. */
	if (!r && fl->opts->base)
		r = flame_colors_init_diff(&fl->panes[0].tree, fl->opts->base, &fl->colors);
	if (!r)
		r = lay_out_at_most(fl, fl->panes, fl->n_panes, MAX_BYTES);
	if (r)
		return r;
	sum_up(fl);
	place_panes(fl);
	if (fl->opts->base)
		return 0;
	for (size_t i = 0; i < fl->n_panes; i++)
		trees[i] = &fl->panes[i].tree;
	r = flame_colors_init(trees, fl->n_panes, fl->opts->filter, fl->color, &fl->colors);
	if (!r && fl->app.tree.n_nodes)
		r = flame_colors_add_tree(&fl->colors, &fl->app.tree);
	return r;
}

static int choose_color(struct flame *fl)
{
	int r = 0;

	fl->color = fl->opts->color;
	if (fl->color == FLAME_COLOR_USUAL) {
		r = flame_states_differ(fl->profile, fl->opts->filter);
		fl->color = r > 0 ? FLAME_COLOR_STATE : FLAME_COLOR_KIND;
	}
	if (r >= 0 && fl->color == FLAME_COLOR_STATE && !fl->opts->base)
		r = flame_states_seen(fl->profile, fl->opts->filter, &fl->seen);
	return r < 0 ? r : 0;
}

int flame_render(const struct profile *p, const struct flame_options *opts, struct buf *out,
		 struct err *err)
{
	struct flame fl = {
		.profile = p,
		.opts = opts,
		.width = clamp_width(opts->width),
		.seen = 1,
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
		r = choose_color(&fl);
	if (!r)
		r = build(&fl);
	if (!r) {
		flame_make_title(&fl);
		r = add_svg(&fl, out);
	}
	if (!r && buf_failed(out)) {
		r = -ENOMEM;
	}
	if (r)
		r = tree_error(r, err);
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
