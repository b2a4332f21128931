/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "support/profile_builder.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/state.h"

static struct profile_builder b;

/*
 * Samples 0 and 1 are of two spans of one trace, 2 is of another one whose span has the id of the
 * first.
 */
static void add_spans(struct profile *p)
{
	static const struct profile_span spans[] = {
		{ { 0x4b, [15] = 0x36 }, { 0x01, [7] = 0xff } },
		{ { 0x4b, [15] = 0x36 }, { 0x02 } },
		{ { 0x4c }, { 0x01, [7] = 0xff } },
	};
	uint32_t id;

	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(intern_add(&p->spans, &spans[i], sizeof(spans[i]), &id, NULL), 0);
		p->samples[i].span = id + 1;
	}
}

/*
 * Samples, 10 ms apart: 0 and 1 in thread 42 of pid 42, 2 to 4 in its thread 43, 5 in pid 50; 3 has
 * a native leaf, 4 collects garbage.
 */
static void setup(void)
{
	uint32_t puma, ruby, worker, other, qux;

	builder_init(&b);
	puma = builder_process(&b, 42, "puma: worker 0 [shop]");
	ruby = builder_thread(&b, puma, 42, "ruby");
	worker = builder_thread(&b, puma, 43, "puma srv \"1\"");
	other = builder_thread(&b, builder_process(&b, 50, "ruby job.rb"), 50, "ruby");
	builder_contain(&b, puma, "3f2a9c1b0d4e", 1);
	b.out.profile.processes[puma].attributes =
		builder_str(&b, "service.version=2,service.name=shop%2C web");
	qux = builder_path(&b, "<main>|Foo#bar|Baz.qux");
	builder_add(&b, ruby, builder_path(&b, "<main>|Foo#bar"), 1);
	builder_add(&b, ruby, qux, 1);
	builder_add(&b, worker, builder_path(&b, "<main>|Baz.qux|Foo#bar"), 1);
	builder_add(&b, worker,
		    builder_stack(&b, qux, builder_frame(&b, FRAME_NATIVE, "memcpy", "", 0, 0)), 1);
	builder_sample(&b, worker, builder_gc(&b, qux, "(marking)"), BUILDER_PERIOD, SAMPLE_GC);
	builder_add(&b, other, 0, 1);
	builder_finish(&b);
	add_spans(&b.out.profile);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(expr, .init = setup, .fini = teardown);

/* As the reader does, of a recording that starts with its first sample. */
static void set_marks(struct profile *p, const struct view_expr *e)
{
	p->n_cuts = e->n_cuts;
	for (size_t i = 0; i < e->n_cuts; i++)
		p->cuts[i] = p->first_ts + e->cuts[i].since_start_ns + e->cuts[i].after;
	p->n_span_marks = e->n_span_marks;
	memcpy(p->span_marks, e->span_marks, sizeof(p->span_marks));
	cr_assert_eq(profile_mark_span(p, 0, 0), 0);
	for (uint32_t i = 1; i <= p->spans.count; i++)
		cr_assert_eq(profile_mark_span(p, i, profile_span_marks(p, profile_span(p, i))), 0);
}

/* A bit for each sample that @text selects. */
static unsigned int selected(const char *text)
{
	struct view_filter f = { .stack = STACK_RUBY };
	struct profile *p = &b.out.profile;
	struct view_selection *sel = NULL;
	unsigned int bits = 0;
	struct err err = { 0 };

	cr_assert_eq(view_expr_parse(text, "--filter", &f.expr, &err), 0, "%s: %s", text, err.msg);
	set_marks(p, f.expr);
	cr_assert_eq(view_selection_new(p, &f, &sel), 0, "%s", text);
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_aggregate alike = profile_aggregate_of(p, &p->samples[i]);

		if (view_selected(sel, &alike))
			bits |= 1u << i;
	}
	view_selection_free(sel);
	view_filter_deinit(&f);
	return bits;
}

Test(expr, fields_and_operators)
{
	static const struct {
		const char *text;
		unsigned int selected;
	} cases[] = {
		{ "pid = 42", 0x1f },
		{ "pid!=42", 0x20 },
		{ "tid < 43", 0x03 },
		{ "tid <= 43", 0x1f },
		{ "tid > 43", 0x20 },
		{ "tid >= 43", 0x3c },
		{ "thread = ruby", 0x23 },
		{ "thread =~ /^puma/", 0x1c },
		{ "thread !~ /^puma/", 0x23 },
		{ "thread = \"puma srv \\\"1\\\"\"", 0x1c },
		{ "thread = 'puma srv \"1\"'", 0x1c },
		{ "thread = 'puma\\x20srv \\x221\"'", 0x1c },
		{ "comm =~ 'job\\\\.rb$'", 0x20 },
		{ "comm =~ /shop]/", 0x1f },
		{ "container = 3f2a9c1b0d4e", 0x1f },
		{ "container =~ /^\\/docker\\//", 0x1f },
		{ "container = \"\"", 0x20 },
		{ "service = 'shop, web'", 0x1f },
		{ "service =~ /^web/", 0 },
		{ "service = ''", 0x20 },
		{ "frame = Foo#bar", 0x1f },
		{ "frame != Foo#bar", 0x20 },
		{ "frame = memcpy", 0x08 },
		{ "leaf = Foo#bar", 0x05 },
		{ "leaf = Baz.qux", 0x0a },
		{ "leaf =~ /marking/", 0x10 },
		{ "caller = Baz.qux", 0x14 },
		{ "caller =~ /^Foo/", 0x1a },
		{ "caller = memcpy", 0 },
		{ "gc", 0x10 },
		{ "time < 20ms", 0x03 },
		{ "time <= 20ms", 0x07 },
		{ "time >= 20ms", 0x3c },
		{ "time > 20ms", 0x38 },
		{ "request = \"[no request]\"", 0x3f },
		{ "trace = 4b000000000000000000000000000036", 0x03 },
		{ "trace != '4B000000000000000000000000000036'", 0x3c },
		{ "trace = 4b000000000000000000000000000037", 0 },
		{ "span = 01000000000000ff", 0x05 },
		{ "trace = 4c000000000000000000000000000000 or span = 0200000000000000", 0x06 },
		{ "span = 01000000000000ff and time >= 10ms", 0x04 },
	};

	b.out.profile.by_request = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(selected(cases[i].text), cases[i].selected, "%s: %#x, not %#x",
			     cases[i].text, selected(cases[i].text), cases[i].selected);
}

Test(expr, operators_bind_as_documented)
{
	cr_expect_eq(selected("pid = 50 or pid = 42 and tid = 43"), 0x3c);
	cr_expect_eq(selected("(pid = 50 or pid = 42) and tid = 43"), 0x1c);
	cr_expect_eq(selected("not pid = 50 and tid = 43"), 0x1c);
	cr_expect_eq(selected("not (pid = 50 or tid = 43)"), 0x03);
	cr_expect_eq(selected("not not gc"), 0x10);
	cr_expect_eq(selected("time < 10ms or time > 40ms"), 0x21);
	cr_expect_eq(selected("not (time >= 10ms and time <= 40ms)"), 0x21);
}

/* Random expressions of the terms above, with what they select worked out beside them. */
static unsigned int random_expr(uint64_t *state, unsigned int depth, struct buf *out)
{
	static const char *const terms[] = { "tid = 43",       "pid != 42",	 "frame = Baz.qux",
					     "leaf =~ /qux$/", "caller=Foo#bar", "gc",
					     "time >= 20ms",   "time < 40ms",	 "thread =~ /ru/" };
	static const unsigned int truths[] = {
		0x1c, 0x20, 0x1e, 0x0a, 0x1a, 0x10, 0x3c, 0x0f, 0x23
	};
	uint32_t kind = depth ? builder_random(state, 4) : 3;
	unsigned int a, c;

	if (kind == 3) {
		kind = builder_random(state, sizeof(terms) / sizeof(*terms));
		buf_addstr(out, terms[kind]);
		return truths[kind];
	}
	if (kind == 2) {
		buf_addstr(out, "not (");
		a = ~random_expr(state, depth - 1, out) & 0x3f;
		buf_addch(out, ')');
		return a;
	}
	buf_addch(out, '(');
	a = random_expr(state, depth - 1, out);
	buf_addstr(out, kind ? " and\n" : " or ");
	c = random_expr(state, depth - 1, out);
	buf_addch(out, ')');
	return kind ? a & c : a | c;
}

Test(expr, random_ones_select_what_they_say)
{
	uint64_t state = 88172645463325252ull;

	for (int i = 0; i < 500; i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		unsigned int want = random_expr(&state, (unsigned int)i % 4, &text);

		cr_assert_eq(selected(buf_str(&text)), want, "%s", buf_str(&text));
	}
}

Test(expr, faults_and_their_places)
{
	static const struct {
		const char *text, *message;
		unsigned int column;
	} cases[] = {
		{ "", "a term is missing at the end", 0 },
		{ "thred = x", "there is no 'thred' (did you mean thread?)", 0 },
		{ "pid = 1 and", "a term is missing at the end", 11 },
		{ "pid = 1 pid = 2", "'and' or 'or' expected, not 'pid'", 8 },
		{ "(pid = 1", "this parenthesis is not closed", 0 },
		{ "pid = 1)", "no parenthesis is open here", 7 },
		{ "pid =~ /1/", "pid cannot be compared by =~", 4 },
		{ "gc = 1", "'and' or 'or' expected, not '='", 3 },
		{ "thread", "an operator is missing at the end", 6 },
		{ "thread = ", "a value is missing at the end", 9 },
		{ "thread = /x/", "= compares with a whole name; =~ with a pattern", 9 },
		{ "thread =~ /(/", "invalid pattern: Unmatched ( or \\(", 10 },
		{ "thread =~ ''", "the pattern is empty", 10 },
		{ "thread = 'a", "the string has no end", 9 },
		{ "thread = 'a\\", "unknown escape: a string has \\\\ \\\" \\' \\n \\t \\xHH", 11 },
		{ "thread = '\\x0g'", "\\x needs two hexadecimal digits, not both 0", 10 },
		{ "thread = '\\x00'", "\\x needs two hexadecimal digits, not both 0", 10 },
		{ "thread =~ /a\\", "the pattern has no end", 10 },
		{ "pid = -1", "'-1' is no number of a process or thread", 6 },
		{ "state = foo",
		  "'foo' is no state: user, system, minor-fault, wait-cpu, throttled, gvl, lock, "
		  "fault, disk, network, pipe, timer, join, child, stopped, other, idle, wait, "
		  "gvl-held",
		  8 },
		{ "time > now", "'now' is no time: 5s, 500ms, 12:00:05, 2026-11-23T12:00:05Z", 7 },
		{ "trace = 4b00000000000000000000000000003",
		  "'4b00000000000000000000000000003' is no id of a trace, which has 32 hexadecimal "
		  "digits",
		  8 },
		{ "span = 01000000000000ff0",
		  "'01000000000000ff0' is no id of a span, which has 16 hexadecimal digits", 7 },
		{ "span = 010000000000@0ff",
		  "'010000000000@0ff' is no id of a span, which has 16 hexadecimal digits", 7 },
		{ "trace =~ /4b/", "trace cannot be compared by =~", 6 },
		{ "pid = 1 && gc", "unexpected '&'", 8 },
		{ "event = a and event = b", "a view shows one event, not two", 14 },
		{ "gc or event = a",
		  "a view shows one event: event = NAME can only be joined to all "
		  "else by and",
		  6 },
		{ "thread = '\xc3\xa9\xc3\xa9' gc", "'and' or 'or' expected, not 'gc'", 14 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct view_expr *e = NULL;
		struct err err = { 0 };

		cr_assert_eq(view_expr_parse(cases[i].text, "x", &e, &err), -EINVAL, "%s",
			     cases[i].text);
		cr_expect_eq(err.kind, ERR_USAGE);
		cr_expect_str_eq(err.msg + strlen("x: "), cases[i].message, "%s: %s", cases[i].text,
				 err.msg);
		cr_expect_eq(err.column, cases[i].column, "%s: %u", cases[i].text, err.column);
		cr_expect_null(e);
		cr_expect_eq(view_expr_parse(cases[i].text, "x", &e, NULL), -EINVAL, "no err");
	}
}

static int parse_repeated(const char *first, const char *more, size_t n, const char *last)
{
	_cleanup_view_expr_ struct view_expr *e = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_addstr(&text, first);
	for (size_t i = 0; i < n; i++)
		buf_addstr(&text, more);
	buf_addstr(&text, last);
	return view_expr_parse(buf_str(&text), "x", &e, NULL);
}

Test(expr, limits)
{
	cr_expect_eq(parse_repeated("gc", " or gc", EXPR_MAX_TERMS - 1, ""), 0);
	cr_expect_eq(parse_repeated("gc", " or gc", EXPR_MAX_TERMS, ""), -EINVAL);
	cr_expect_eq(parse_repeated("", "not ", EXPR_MAX_DEPTH, "gc"), 0);
	cr_expect_eq(parse_repeated("", "not ", EXPR_MAX_DEPTH + 1, "gc"), -EINVAL);
	cr_expect_eq(parse_repeated("", "(", 100000, "gc"), -EINVAL);
	cr_expect_eq(parse_repeated("gc", " or time < 1s", PROFILE_MAX_CUTS, ""), 0);
	cr_expect_eq(parse_repeated("gc", " or time < 1s", PROFILE_MAX_CUTS + 1, ""), -EINVAL);
	cr_expect_eq(
		parse_repeated("span = 0123456789abcdef", " or time < 1s", PROFILE_MAX_CUTS, ""),
		-EINVAL);
	cr_expect_eq(parse_repeated("time < 1s", " or span = 0123456789abcdef",
				    PROFILE_MAX_CUTS - 1, ""),
		     0);
	cr_expect_eq(
		parse_repeated("time < 1s", " or span = 0123456789abcdef", PROFILE_MAX_CUTS, ""),
		-EINVAL);
	cr_expect_eq(parse_repeated("gc", " ", EXPR_MAX_BYTES - 2, ""), 0);
	cr_expect_eq(parse_repeated("gc", " ", EXPR_MAX_BYTES - 1, ""), -EINVAL);
}

Test(expr, what_bounds_the_whole_is_taken_out)
{
	_cleanup_view_expr_ struct view_expr *e = NULL;
	struct time_cut bound = { 0 };

	cr_assert_eq(view_expr_parse("time < 9s and (gc or time >= 3s) and event = wait and "
				     "(time > 1s and time >= 2s)",
				     "x", &e, NULL),
		     0);
	cr_expect_str_eq(e->event, "wait");
	cr_assert(view_expr_take_bound(e, false, &bound));
	cr_expect_eq(bound.since_start_ns, 2 * NSEC_PER_SEC,
		     "not the one in or, nor the inexact one");
	cr_expect_not(view_expr_take_bound(e, false, &bound));
	cr_assert(view_expr_take_bound(e, true, &bound));
	cr_expect_eq(bound.since_start_ns, 9 * NSEC_PER_SEC);
	cr_expect_not(view_expr_is_empty(e));
	cr_expect(view_expr_has(e, EXPR_GC));
	cr_expect_not(view_expr_has(e, EXPR_EVENT));
	cr_expect_not(view_expr_is_of_threads(e));
	view_expr_free(e);
	e = NULL;
	cr_assert_eq(view_expr_parse("time >= 2s", "x", &e, NULL), 0);
	cr_assert(view_expr_take_bound(e, false, &bound));
	cr_expect(view_expr_is_empty(e));
	view_expr_free(e);
	e = NULL;
	cr_assert_eq(view_expr_parse("not time >= 2s or pid = 1", "x", &e, NULL), 0);
	cr_expect_not(view_expr_take_bound(e, true, &bound), "it bounds a part only");
	view_expr_free(e);
	e = NULL;
	cr_assert_eq(view_expr_parse("time >= 0s and time < 0s", "x", &e, NULL), 0);
	cr_assert(view_expr_take_bound(e, false, &bound));
	cr_expect_eq(bound.since_start_ns, 0);
	cr_expect_not(view_expr_take_bound(e, true, &bound), "0 would be the end");
}

/* @left: whether there is anything else; @more: also of states. */
static void expect_states(const char *text, uint64_t states, bool left, bool more)
{
	_cleanup_view_expr_ struct view_expr *e = NULL;

	cr_assert_eq(view_expr_parse(text, "x", &e, NULL), 0, "%s", text);
	cr_expect_eq(view_expr_take_states(e) & STATE_SET_ALL, states, "%s", text);
	cr_expect_eq(!view_expr_is_empty(e), left, "%s", text);
	cr_expect_eq(view_expr_has(e, EXPR_STATE), more, "%s", text);
}

Test(expr, what_is_of_states_alone_is_taken_out)
{
	const uint64_t all = STATE_SET_ALL, gvl = state_set_of(STATE_GVL),
		       lock = state_set_of(STATE_LOCK);

	expect_states("pid = 1", all, true, false);
	expect_states("state = gvl", gvl, false, false);
	expect_states("state != gvl", all & ~gvl, false, false);
	expect_states("pid = 1 and (state = gvl or state = lock)", gvl | lock, true, false);
	expect_states("(pid = 1 and state = wait) and not (state = gvl and gc) and state != lock",
		      all & ~(STATE_SET_CPU | lock), true, true);
	expect_states("state = disk and state != gvl-held", 1u << STATE_DISK, false, false);
	expect_states("not (state = gvl-held or state = gvl)", all & ~STATE_SET_HELD & ~gvl, false,
		      false);
	expect_states("not (state = gvl or state = lock) and state != gvl", all & ~gvl & ~lock,
		      false, false);
	expect_states("state = gvl or pid = 1", all, true, true);
	expect_states("not (state = gvl and pid = 1)", all, true, true);
}

/* What the thread waited for, and whether it held the GVL, are terms of their own. */
Test(expr, states_with_the_gvl)
{
	static const struct {
		const char *text;
		unsigned int selected;
	} cases[] = {
		{ "state = disk", 0xc0 },
		{ "state = gvl-held", 0x80 },
		{ "state = disk and state != gvl-held", 0x40 },
		{ "state = wait and not state = gvl-held or pid = 50", 0x60 },
		{ "state = user", 0x3f },
		{ "leaf = Foo#bar", 0xc5 },
		{ "leaf = '(waits for a file)'", 0xc0 },
		{ "leaf = '(holds the GVL)'", 0x80 },
	};
	uint32_t foo = builder_path(&b, "<main>|Foo#bar");
	uint32_t held = builder_reason(&b, foo, REASON_GVL_HELD);

	builder_sample(&b, 0, builder_reason(&b, foo, REASON_WAIT_DISK), 5, 0);
	builder_sample(&b, 0, builder_reason(&b, held, REASON_WAIT_DISK), 7, 0);
	builder_finish(&b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(selected(cases[i].text), cases[i].selected, "%s: %#x", cases[i].text,
			     selected(cases[i].text));
}

Test(expr, a_profile_that_was_read_otherwise_is_refused)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct view_selection *sel = NULL;

	cr_assert_eq(view_expr_parse("time < 5s or request = a", "x", &f.expr, NULL), 0);
	cr_expect_eq(view_selection_new(&b.out.profile, &f, &sel), -EINVAL, "not by request");
	b.out.profile.by_request = true;
	cr_expect_eq(view_selection_new(&b.out.profile, &f, &sel), -EINVAL, "without the cut");
	set_marks(&b.out.profile, f.expr);
	cr_expect_eq(view_selection_new(&b.out.profile, &f, &sel), 0);
	cr_expect(view_request_selected(sel, 0), "the other term may hold");
	view_selection_free(sel);
	view_filter_deinit(&f);
	cr_assert_eq(view_expr_parse("request = a and not gc", "x", &f.expr, NULL), 0);
	set_marks(&b.out.profile, f.expr);
	cr_assert_eq(view_selection_new(&b.out.profile, &f, &sel), 0);
	cr_expect_not(view_request_selected(sel, 0));
	view_selection_free(sel);
	view_filter_deinit(&f);
}
