/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/compare_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/open_recording.h"
#include "cmd/output.h"
#include "report/report.h"
#include "ui/term.h"
#include "view/filter.h"

#define COMPARE(member) .offset = offsetof(struct compare_line, member)

enum compare_by { COMPARE_BY_METHOD, COMPARE_BY_REQUEST };

static const char *by_choice(size_t i)
{
	static const char *const words[] = {
		[COMPARE_BY_METHOD] = "method", [COMPARE_BY_REQUEST] = "request"
	};

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

const struct option_spec compare_option_specs[N_COMPARE_OPTIONS] = {
	{
		.name = "normalize",
		.type = OPTION_CHOICE,
		COMPARE(normalize),
		.arg = "HOW",
		.help = "what to compare: shares of the side's time, time per second of the "
			"recordings, or times; check, whose rules are shares, takes total or "
			"time",
		.initial = "total",
		.choice = diff_normalize_name,
	},
	{
		.name = "by",
		.type = OPTION_CHOICE,
		COMPARE(by),
		.arg = "WHAT",
		.help = "compare methods, or the requests and jobs that threads served",
		.initial = "method",
		.choice = by_choice,
	},
	{
		.name = "self",
		.type = OPTION_FLAG,
		COMPARE(self),
		.help = "compare self times, not those with what methods call",
	},
	{
		.name = "json",
		.type = OPTION_FLAG,
		COMPARE(json),
		.help = "print JSON",
	},
	{
		.name = "csv",
		.type = OPTION_FLAG,
		COMPARE(csv),
		.help = "print comma-separated values",
	},
};

static void add_object(const struct report *report, uint64_t samples, uint64_t value,
		       struct buf *objects)
{
	_cleanup_buf_ struct buf path = BUF_INIT;
	struct json j = JSON_INIT(objects);

	utf8_sanitise(&path, report->rec->path, strlen(report->rec->path));
	if (buf_failed(&path))
		objects->failed = true;
	j.need_comma = objects->len;
	json_object_begin(&j, NULL);
	json_str(&j, "file", buf_str(&path));
	report_json_totals(report, samples, value, &j);
	json_object_end(&j);
}

/* How long what is compared of @rec is: without what --from and --to leave out. */
static uint64_t compared_ns(const struct recording *rec, const struct view_filter *filter)
{
	uint64_t from = filter->from_ns, to = recording_duration(rec);

	if (filter->to_ns && filter->to_ns < to)
		to = filter->to_ns;
	return from < to ? to - from : 0;
}

static int add_side(struct diff *d, enum compare_side side, const struct recording *rec,
		    const struct view_filter *filter, struct err *err)
{
	const struct report report = { .rec = rec, .filter = filter };
	struct comparison *c = d->comparison;
	uint64_t samples = c->all[side].samples, value = c->all[side].value;
	int r;

	r = comparison_add(c, side, &rec->profile, filter, compared_ns(rec, filter));
	if (r == -EMEDIUMTYPE)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s is of the event %s, those before it of %s: --event chooses one",
			       rec->path, profile_event(&rec->profile)->name, c->event.name);
	if (r)
		return err_code(err, r);
	d->max_output += profile_output_max(&rec->profile);
	samples = c->all[side].samples - samples;
	value = c->all[side].value - value;
	report_header(&report, samples, value, &d->sides[side]);
	report_quality(&report, &d->sides[side]);
	add_object(&report, samples, value, &d->objects[side]);
	return 0;
}

/* All arguments are recordings, so there is no -i to name another. */
static void hint_at_arguments(const char *path, struct err *err)
{
	if (path[0] == '-')
		err_hint(err, "options stand before BEFORE; after -- all arguments are recordings");
	else
		err_hint(err, "'rbpf record' makes a recording");
}

/* Recordings are read one after the other, so that memory is needed for one. */
static int add_recording(const struct cmd_context *ctx, const char *path, struct diff *d,
			 enum compare_side side, struct view_filter *filter, struct err *err)
{
	static const struct option_rest none = { 0 };
	const struct read_options needs = { .by_request = d->comparison->by_request };
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	const struct view_filter as_typed = *filter;
	int r;

	r = cmd_open_recording(ctx, path, &none, filter, &needs, &rec, err);
	if (r == -ENOENT && err->kind == ERR_PROFILE)
		hint_at_arguments(path, err);
	if (!r)
		r = cmd_prepare_recording(&rec, filter, err);
	if (!r)
		r = add_side(d, side, &rec, filter, err);
	/* A time of the clock is another one since the start of each recording. */
	filter->from_ns = as_typed.from_ns;
	filter->to_ns = as_typed.to_ns;
	return r;
}

/* The number of recordings before; the others are after. */
static int split_sides(const struct option_rest *rest, size_t *before, struct err *err)
{
	if (rest->n_before < rest->n)
		*before = rest->n_before;
	else if (rest->n == 2)
		*before = 1;
	else
		*before = 0;
	if (*before)
		return 0;
	err_set(err, -EINVAL, ERR_USAGE, "two recordings are needed: BEFORE and AFTER");
	err_hint(err, "several of a side: BEFORE... -- AFTER...");
	return -EINVAL;
}

static int add_recordings(const struct cmd_context *ctx, struct compare_line *line,
			  const struct option_rest *rest, struct diff *d,
			  struct view_filter *filter, struct err *err)
{
	size_t before = 0;
	int r;

	r = cmd_filter(&line->filter, STACK_RUBY, filter, err);
	if (!r && filter->stack == STACK_BOTH)
		r = err_set(err, -EINVAL, ERR_USAGE,
			    "methods are compared in one stack: not with --stack both");
	if (!r)
		r = split_sides(rest, &before, err);
	for (size_t i = 0; i < rest->n && !r; i++)
		r = add_recording(ctx, rest->argv[i], d,
				  i < before ? COMPARE_BEFORE : COMPARE_AFTER, filter, err);
	return r;
}

int cmd_compare(const struct cmd_context *ctx, struct compare_line *line,
		const struct option_rest *rest, struct diff *d, struct err *err)
{
	struct view_filter filter = VIEW_FILTER_INIT;
	int r;

	if (line->json && line->csv)
		return err_set(err, -EINVAL, ERR_USAGE, "--json and --csv exclude each other");
	if (line->self && line->by == COMPARE_BY_REQUEST)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--self is of methods: not with --by request");
	d->comparison->by_request = line->by == COMPARE_BY_REQUEST;
	d->options.normalize = line->normalize;
	d->options.self = line->self;
	d->options.z = COMPARE_Z;
	d->width = term_width(STDOUT_FILENO);
	d->color = term_color(STDOUT_FILENO, ctx->color);
	r = add_recordings(ctx, line, rest, d, &filter, err);
	view_filter_deinit(&filter);
	for (size_t i = 0; i < COMPARE_SIDES && !r; i++) {
		if (!d->comparison->all[i].samples)
			r = err_set(err, -ENODATA, ERR_EMPTY, "no sample of %s passes the filters",
				    i == COMPARE_BEFORE ? "the recordings before"
							: "the recordings after");
		else if (buf_failed(&d->sides[i]) || buf_failed(&d->objects[i]))
			r = err_oom(err);
	}
	if (!r)
		comparison_finish(d->comparison, &d->options);
	return r;
}

void cmd_compare_release(struct diff *d)
{
	comparison_deinit(d->comparison);
	for (size_t i = 0; i < COMPARE_SIDES; i++) {
		buf_deinit(&d->sides[i]);
		buf_deinit(&d->objects[i]);
	}
}

int cmd_compare_write(const struct compare_line *line, const struct diff *d, struct err *err)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	out.max = d->max_output;
	r = line->json	? diff_json(d, &out, err)
	    : line->csv ? diff_csv(d, &out, err)
			: diff_text(d, &out, err);
	if (out.exceeded)
		return err_set(err, -E2BIG, ERR_PROFILE,
			       "the output would be far larger than the recordings, of which one "
			       "is probably damaged");
	return r ? r : cmd_write(NULL, &out, err);
}
