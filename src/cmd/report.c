/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/open_recording.h"
#include "cmd/output.h"
#include "cmd/report.h"
#include "ui/term.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/longest_requests.h"
#include "view/longest_waits.h"
#include "view/thread_series.h"

#define DEFAULT_LIMIT	     30
#define DEFAULT_STACKS	     5 /* each fills a screen */
/* Single requests and waits, for people and for programs. */
#define DEFAULT_LONGEST	     5
#define DEFAULT_WAITS	     10
#define DEFAULT_LONGEST_JSON 100

typedef int (*renderer)(const struct report *r, struct buf *out, struct err *err);

static int exclude_each_other(const char *one, const char *other, struct err *err)
{
	return err_set(err, -EINVAL, ERR_USAGE, "%s and %s exclude each other", one, other);
}

static bool asks_neighbours(const struct report_line *line)
{
	return line->callers || line->callees || line->sandwich;
}

/* What is reported, and the renderers that can: NULL where it is not to be had. */
struct report_kind {
	bool chosen;
	const char *name;
	renderer text, json, csv;
};

enum {
	KIND_FLAT,
	KIND_TREE,
	KIND_GC,
	KIND_NEIGHBOURS,
	KIND_BOTH,
	KIND_STATES,
	KIND_REQUESTS,
	KIND_WAITS,
	KIND_INFO,
	N_KINDS,
};

static const char *neighbours_option(const struct report_line *line)
{
	return line->sandwich ? "--sandwich" : line->callers ? "--callers" : "--callees";
}

static int choose_kind(const struct report_line *line, struct report_kind *ret, struct err *err)
{
	const struct report_kind kinds[N_KINDS] = {
		[KIND_FLAT] = { true, "a table", report_text, report_json, report_csv },
		[KIND_TREE] = { line->tree, "--tree", report_tree, report_tree_json,
				report_tree_csv },
		[KIND_GC] = { line->gc, "--gc", report_gc, report_gc_json, report_gc_csv },
		[KIND_NEIGHBOURS] = { asks_neighbours(line), neighbours_option(line),
				      report_neighbours, report_neighbours_json,
				      report_neighbours_csv },
		[KIND_BOTH] = { line->filter.stack == STACK_BOTH, "--stack both", report_both,
				report_both_json, NULL },
		[KIND_STATES] = { line->states, "--states", report_states, report_states_json,
				  report_states_csv },
		[KIND_REQUESTS] = { line->requests, "--requests", report_requests,
				    report_requests_json, report_requests_csv },
		[KIND_WAITS] = { line->waits, "--waits", report_waits, report_waits_json,
				 report_waits_csv },
		[KIND_INFO] = { line->info, "--info", report_info, NULL, NULL },
	};
	const struct report_kind *chosen = &kinds[KIND_FLAT];

	for (size_t i = KIND_FLAT + 1; i < N_KINDS; i++) {
		if (!kinds[i].chosen)
			continue;
		if (chosen != &kinds[KIND_FLAT])
			return exclude_each_other(chosen->name, kinds[i].name, err);
		chosen = &kinds[i];
	}
	if (line->match && chosen != &kinds[KIND_FLAT])
		return exclude_each_other("--match", chosen->name, err);
	if (line->inverted && !line->tree)
		return err_set(err, -EINVAL, ERR_USAGE, "--inverted needs --tree");
	*ret = *chosen;
	return 0;
}

static int choose_renderer(const struct report_line *line, renderer *ret, struct err *err)
{
	struct report_kind kind = { 0 };
	const struct {
		bool chosen;
		const char *name;
	} formats[] = { { line->json, "--json" }, { line->csv, "--csv" }, { line->md, "--md" } };
	const char *chosen = NULL;
	int r;

	r = choose_kind(line, &kind, err);
	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!formats[i].chosen)
			continue;
		if (chosen)
			return exclude_each_other(chosen, formats[i].name, err);
		chosen = formats[i].name;
	}
	*ret = line->json ? kind.json : line->csv ? kind.csv : kind.text;
	return *ret ? 0 : exclude_each_other(chosen, kind.name, err);
}

/* Options that are right by themselves, but not together. */
static int check_line(const struct report_line *line, struct err *err)
{
	/* What a row is there, and which comes first. */
	const char *fixed = line->states     ? "--states"
			    : line->requests ? "--requests"
			    : line->waits    ? "--waits"
					     : NULL;
	const char *narrow = line->gc				? "--gc"
			     : line->tree			? "--tree"
			     : asks_neighbours(line)		? neighbours_option(line)
			     : line->filter.stack == STACK_BOTH ? "--stack both"
								: NULL;

	if (line->sandwich && (line->callers || line->callees))
		return exclude_each_other("--sandwich", line->callers ? "--callers" : "--callees",
					  err);
	if (line->callers && line->callees)
		return err_set(
			err, -EINVAL, ERR_USAGE,
			"--callers and --callees exclude each other; --sandwich prints both");
	if (fixed && line->by != FLAT_BY_FUNCTION &&
	    !(line->states && (flat_by_thread(line->by) || line->by == FLAT_BY_TIME)))
		return exclude_each_other(fixed, "--by", err);
	if (fixed && line->sort != OPTION_UNSET)
		return exclude_each_other(fixed, "--sort", err);
	if (line->merge_threads && line->by != FLAT_BY_THREAD &&
	    (!line->states || line->by != FLAT_BY_FUNCTION))
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--merge-threads needs --by thread or --states");
	if (line->gc && line->filter.no_gc)
		return exclude_each_other("--gc", "--no-gc", err);
	if (narrow && line->by != FLAT_BY_FUNCTION && line->by != FLAT_BY_LINE)
		return err_set(err, -EINVAL, ERR_USAGE, "%s needs --by method or line, not --by %s",
			       narrow, report_by_word(line->by));
	return 0;
}

static int refuse_cpu_time(struct err *err)
{
	err_set(err, -EINVAL, ERR_USAGE, "--waits and --event %s exclude each other", EVENT_CPU);
	err_hint(err, "waits are of the events %s and %s", EVENT_WAIT, EVENT_WALL);
	return -EINVAL;
}

/*
 * What shows states needs an event whose samples have some: all time, if none is asked for; what
 * waits were for, and single ones, need that of waits. A table of states is of nothing else than
 * all time, for they add up to what has passed.
 */
static int choose_event(const struct report_line *line, const char **event, struct err *err)
{
	const bool of_waits = line->waits || line->by == FLAT_BY_PEER;
	const char *what = line->states		       ? "--states"
			   : line->waits	       ? "--waits"
			   : line->by == FLAT_BY_STATE ? "--by state"
			   : line->by == FLAT_BY_PEER  ? "--by peer"
						       : NULL;

	if (!what)
		return 0;
	if (!*event)
		*event = of_waits ? EVENT_WAIT : EVENT_WALL;
	if (line->waits && !strcmp(*event, EVENT_CPU))
		return refuse_cpu_time(err);
	if (line->states ? !strcmp(*event, EVENT_WALL) : event_is_of_own_time(*event))
		return 0;
	return cmd_refuse_event(&line->filter, what, *event, err);
}

/*
 * Methods are what a reader can change, so a table of them shows these alone. Where rows are not
 * methods, and in a tree, native frames tell more; but not the interpreter's own.
 */
static enum stack_mode usual_mode(const struct report_line *line)
{
	switch (line->by) {
	case FLAT_BY_FUNCTION:
	case FLAT_BY_LINE:
	case FLAT_BY_FILE:
		return line->tree ? STACK_MIXED : STACK_RUBY;
	default:
		return STACK_MIXED;
	}
}

static enum flat_sort usual_sort(const struct report_line *line)
{
	if (line->sort != OPTION_UNSET)
		return line->sort;
	return line->by == FLAT_BY_TIME ? FLAT_SORT_TIME : FLAT_SORT_SELF;
}

static uint64_t rows_wanted(const struct report_line *line, renderer render)
{
	if (line->limit == 0)
		return REPORT_NO_LIMIT;
	if (line->limit != REPORT_NO_LIMIT)
		return line->limit;
	if (usual_sort(line) == FLAT_SORT_TIME)
		return REPORT_NO_LIMIT;
	if (render == report_text || render == report_gc || render == report_neighbours ||
	    render == report_states)
		return DEFAULT_LIMIT;
	if (render == report_both)
		return DEFAULT_STACKS;
	return line->limit;
}

/* How many single requests or waits are listed; @most: at most. */
static size_t longest_wanted(const struct report_line *line, size_t usual, size_t most)
{
	if (line->limit == REPORT_NO_LIMIT)
		return line->json || line->csv ? DEFAULT_LONGEST_JSON : usual;
	return line->limit && line->limit < most ? (size_t)line->limit : most;
}

/* Whether single waits can be told of @rec, and of what is selected of it. */
static int check_waits(const struct recording *rec, struct err *err)
{
	const struct profile *p = &rec->profile;

	if (p->whole_waits)
		return 0;
	if (p->n_cuts) {
		err_set(err, -EINVAL, ERR_USAGE,
			"--waits needs a --filter that selects one range of times");
		err_hint(err, "--from and --to do, and 'time >= 1s and time < 2s and ...'");
		return -EINVAL;
	}
	err_set(err, -ENODATA, ERR_EMPTY,
		"%s has no single waits: they were added up by the second", recording_name(rec));
	err_hint(err, "'rbpf record --mode states' records each; top and serve do not");
	return -ENODATA;
}

/* The compiled patterns of the command line. */
struct report_patterns {
	struct view_filter filter;
	struct reshape_options shape;
	bool has_match, has_method;
	regex_t match, method;
};

static void patterns_deinit(struct report_patterns *p)
{
	view_filter_deinit(&p->filter);
	cmd_shape_release(&p->shape);
	if (p->has_match)
		regfree(&p->match);
	if (p->has_method)
		regfree(&p->method);
}

static int compile_patterns(struct report_line *line, struct report_patterns *p,
			    struct report *report, struct err *err)
{
	int r;

	r = cmd_filter(&line->filter, usual_mode(line), &p->filter, err);
	if (!r)
		r = cmd_shape(&line->shape, &p->shape, err);
	if (!r && line->match)
		r = view_filter_regex(&p->match, &p->has_match, line->match, "--match", err);
	if (r || !asks_neighbours(line))
		goto out;
	report->callers = line->callers || line->sandwich;
	report->callees = line->callees || line->sandwich;
	report->method_pattern = line->sandwich	 ? line->sandwich
				 : line->callers ? line->callers
						 : line->callees;
	r = view_filter_regex(&p->method, &p->has_method, report->method_pattern,
			      neighbours_option(line), err);
out:
	report->match = p->has_match ? &p->match : NULL;
	report->method = p->has_method ? &p->method : NULL;
	return r;
}

/* Rows for programs are written while they are made: there may be any number of them. */
static int write_rows(const struct report *report, renderer render, struct err *err)
{
	struct cmd_stream to;
	int r;

	cmd_stream_begin(&to, report->rec, NULL);
	r = cmd_rendered(render(report, &to.buf, err), report->rec, &to.buf, err);
	return cmd_stream_end(&to, r, err);
}

static int write_text(const struct report *report, renderer render, struct err *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	cmd_limit_output(report->rec, &out);
	r = render(report, &out, err);
	if (!r && report->markdown)
		report_to_markdown(&out);
	r = cmd_rendered(r, report->rec, &out, err);
	return r ? r : cmd_write(NULL, &out, err);
}

/* Whether waits are wanted, too, as requests take time: with --event, only samples of that are. */
static bool is_of_all_time(const struct report_line *line)
{
	return line->requests && !line->filter.blocker &&
	       (!line->filter.event || !strcmp(line->filter.event, EVENT_WALL));
}

static bool is_shaped(const struct report_line *line)
{
	return line->shape.root || line->shape.collapse_recursion;
}

/* Whether samples are needed by thread. */
static bool is_by_thread(const struct report_line *line, const struct view_filter *filter)
{
	if (line->gc || line->states || flat_by_thread(line->by) || filter->stack == STACK_BOTH)
		return true;
	/* Unless samples are left out, it is known without which threads have some. */
	return line->requests && (is_shaped(line) || view_filter_of_samples(filter));
}

/* Whether rows say how long waits were; a second has parts of them only. */
static bool has_lengths(const struct report_line *line, renderer render)
{
	return line->by != FLAT_BY_TIME &&
	       (render == report_text || render == report_json || render == report_csv);
}

static struct read_options needs_of(const struct report_line *line, renderer render,
				    const struct view_filter *filter)
{
	const bool by_time = line->by == FLAT_BY_TIME, by_trace = line->by == FLAT_BY_TRACE;
	/* The longest requests, by a filter of samples. */
	const bool longest = line->requests && !line->csv;
	/* Rows have percentiles, or are waits. */
	const bool by_wait = line->waits || line->by == FLAT_BY_STATE || line->by == FLAT_BY_PEER;

	return (struct read_options) {
		.wall = is_of_all_time(line),
		.gvl_caused = is_of_all_time(line),
		.keep_samples = (by_time && (is_shaped(line) || line->states)) ||
				(longest && is_shaped(line)),
		.read_again = by_time || (longest && longest_requests_need_samples(filter)),
		.by_thread = is_by_thread(line, filter),
		.by_request = line->requests || line->by == FLAT_BY_REQUEST || by_trace,
		.lengths = line->waits || has_lengths(line, render),
		.whole_waits = by_wait,
		.keep_waits = by_wait && is_shaped(line),
		.spans = by_trace,
		.by_span = by_trace,
	};
}

/* --info tells of a recording what it has, also if that is nothing of the event. */
static bool is_of_any_event(const struct report_line *line, const struct view_filter *filter)
{
	return line->info && !view_filter_of_samples(filter);
}

static int report_recording(const struct cmd_context *ctx, struct report_line *line,
			    const struct option_rest *rest, struct report_patterns *patterns,
			    struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	struct report report = {
		.rec = &rec,
		.filter = &patterns->filter,
		.by = line->by,
		.sort = usual_sort(line),
		.width = line->md ? 0 : term_width(STDOUT_FILENO),
		.color = !line->md && term_color(STDOUT_FILENO, ctx->color),
		.markdown = line->md,
		.inverted = line->inverted,
	};
	struct view_filter *filter = &patterns->filter;
	struct read_options needs;
	renderer render = report_text;
	int r;

	r = choose_renderer(line, &render, err);
	if (!r)
		r = check_line(line, err);
	if (r)
		return r;
	report.limit = rows_wanted(line, render);
	report.longest = longest_wanted(line, DEFAULT_LONGEST, LONGEST_REQUESTS_MAX);
	report.waits = longest_wanted(line, DEFAULT_WAITS, LONGEST_WAITS_MAX);
	r = compile_patterns(line, patterns, &report, err);
	if (!r)
		r = choose_event(line, &filter->event, err);
	if (r)
		return r;
	needs = needs_of(line, render, filter);
	/* These leave samples out, and who was charged with what is not known any more. */
	report.gvl_pairs = is_of_all_time(line) && !is_shaped(line);
	report.by_state = view_filter_by_state(filter);
	r = (is_of_any_event(line, filter) ? cmd_open_recording_of_any_event : cmd_open_recording)(
		ctx, line->input, rest, filter, &needs, &rec, err);
	if (r)
		return r;
	if (line->waits)
		r = check_waits(&rec, err);
	if (r)
		return r;
	/* A filter for traces has said so already. */
	if (needs.by_span && !(filter->expr && filter->expr->n_span_marks))
		cmd_warn_of_no_traces(ctx, &rec);
	if (render != report_info)
		r = cmd_shape_recording(&rec, filter, &patterns->shape, err);
	report.from = cmd_replay(&rec, filter, &needs);
	if (!r && line->merge_threads)
		r = err_code(err, thread_series_find(&rec.profile, filter));
	if (r)
		return r;
	return line->json || line->csv ? write_rows(&report, render, err)
				       : write_text(&report, render, err);
}

int report_run(struct report_line *line, const struct option_rest *rest, struct cmd_context *ctx,
	       struct err *err)
{
	struct report_patterns patterns = { .filter = VIEW_FILTER_INIT };
	int r = report_recording(ctx, line, rest, &patterns, err);

	patterns_deinit(&patterns);
	return r;
}
