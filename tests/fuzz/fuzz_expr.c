/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filter expressions. Whatever they are, they are refused with a place in the text, or they select
 * a part of a profile, of which "not (…)" selects the rest.
 *
 * Patterns have few repetitions, and no counts of these and no back-references, for which the C
 * library's regcomp() and regexec() take any time and memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "support/profile_builder.h"
#include "view/expr.h"
#include "view/filter.h"

#define MAX_REPETITIONS 4

static bool is_cheap(const char *text)
{
	size_t n = 0;

	for (const char *c = text; *c; c++) {
		n += *c && strchr("*+?", *c);
		if (*c == '{' || (*c == '\\' && c[1] >= '0' && c[1] <= '9'))
			return false;
	}
	return n <= MAX_REPETITIONS;
}

/*
 * Parse it; what was taken for bounds and the event by the parser's callers is none of this
 * fuzzer's.
 */
static struct view_expr *parse(const char *text)
{
	struct view_expr *e = NULL;
	struct err err = { 0 };

	if (!view_expr_parse(text, "expr", &e, &err)) {
		if (!e || !e->n || e->n_terms > EXPR_MAX_TERMS ||
		    e->n_cuts + e->n_span_marks > PROFILE_MAX_CUTS)
			abort();
		return e;
	}
	if (e || !err.msg[0] || err.kind != ERR_USAGE || err.column > strlen(err.excerpt))
		abort();
	return NULL;
}

/* *@selected, with room for all, tells which aggregates it selects. */
static void apply(struct profile *p, struct view_expr *e, bool *selected)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	const struct view_filter f = { .expr = e, .stack = STACK_RUBY };

	p->n_cuts = e->n_cuts;
	for (size_t i = 0; i < e->n_cuts; i++)
		p->cuts[i] = p->first_ts + e->cuts[i].since_start_ns % (1u << 30);
	p->n_span_marks = e->n_span_marks;
	builder_must(profile_mark_span(p, 0, (uint16_t)(0x5555 << e->n_cuts)));
	builder_must(view_selection_new(p, &f, &sel));
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_aggregate alike = profile_aggregate_of(p, &p->samples[i]);

		selected[i] = view_selected(sel, &alike);
		if (selected[i] && !view_request_selected(sel, alike.request))
			abort();
	}
}

static void check(const char *text, struct view_expr *e)
{
	_cleanup_buf_ struct buf negated = BUF_INIT;
	_cleanup_view_expr_ struct view_expr *n = NULL;
	bool yes[20], no[20];
	struct profile_builder b;
	struct profile *p;

	builder_init(&b);
	builder_add_random(&b, 7, 20);
	p = builder_finish(&b);
	p->by_request = true;
	apply(p, e, yes);
	buf_addf(&negated, "not (%s)", text);
	n = e->event ? NULL : parse(buf_str(&negated)); /* NULL also if that is beyond a limit */
	if (n) {
		apply(p, n, no);
		for (size_t i = 0; i < p->n_kept; i++)
			if (yes[i] == no[i])
				abort();
	}
	builder_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	_cleanup_view_expr_ struct view_expr *e = NULL;

	if (!text || !is_cheap(text))
		return 0;
	e = parse(text);
	if (e)
		check(text, e);
	return 0;
}
