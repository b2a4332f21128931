/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command line may say of samples: patterns, lists, times and rules. Whatever they are, they
 * are refused, or they select a part of a profile that is sound afterwards.
 *
 * Lines of the input are the values of the options. Patterns are short, with few repetitions, and
 * without counts of these and back-references, for which the C library's regcomp() and regexec()
 * take any time and memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmd/filter_options.h"
#include "profile/wait_cause.h"
#include "report/diff.h"
#include "support/profile_builder.h"
#include "support/profile_check.h"
#include "view/filter.h"
#include "view/neighbours.h"
#include "view/reshape.h"

#define MAX_PATTERN	40
#define MAX_REPETITIONS 4 /* "a+" is compiled to "aa*", "a++++" so to 16 times a */

/* The next line, NULL if it is empty. */
static const char *next_line(char **rest)
{
	const char *line = strsep(rest, "\n");

	return line && *line ? line : NULL;
}

static const char *next_pattern(char **rest)
{
	const char *line = next_line(rest);
	size_t n = 0;

	if (!line || strlen(line) >= MAX_PATTERN || strpbrk(line, "{\\"))
		return NULL;
	for (const char *c = line; *c; c++)
		n += strchr("+*?", *c) != NULL;
	return n <= MAX_REPETITIONS ? line : NULL;
}

static uint64_t count_samples(const struct profile *p, const struct view_filter *f)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ bool *threads = calloc(p->n_threads + 1, sizeof(*threads));

	if (!threads || view_selection_new(p, f, &sel))
		abort();
	return view_selected_threads(sel, threads).samples;
}

static void check(struct view_filter *f, const struct reshape_options *shape, bool has_method,
		  const regex_t *method)
{
	struct profile_builder b;
	struct profile *p;
	uint64_t before, after;

	builder_init(&b);
	builder_add_random(&b, 7, 20);
	p = builder_finish(&b);
	builder_must(wait_causes(p, f->has_idle ? &f->idle : NULL));
	builder_must(stack_mode_prepare(p, f->stack));
	before = count_samples(p, f);
	if (profile_reshape(p, f, shape))
		abort();
	after = count_samples(p, f);
	if (before > 20 || after > before || (!shape->has_root && after != before))
		abort();
	if (check_profile(p))
		abort();
	if (has_method) {
		_cleanup_neighbours_ struct neighbours n = NEIGHBOURS_INIT;

		if (neighbours_build(p, f, GROUP_BY_FUNCTION, method, &n))
			abort();
		for (size_t i = 0; i < n.n_methods; i++)
			if (n.methods[i].time.total.samples > after ||
			    n.methods[i].time.self.samples > n.methods[i].time.total.samples)
				abort();
	}
	builder_deinit(&b);
}

static void check_rule(const char *text)
{
	struct check_rule rule = { 0 };
	struct err err = { 0 };

	if (text && !check_rule_parse(text, &rule, &err) &&
	    !(rule.has_method && rule.threshold >= 0 && rule.threshold <= 1))
		abort();
	check_rule_deinit(&rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	char *rest = text;
	struct filter_options opts = FILTER_OPTIONS_INIT;
	struct view_filter f = VIEW_FILTER_INIT;
	struct reshape_options shape = { 0 };
	struct err err = { 0 };
	const char *root, *method, *mode;
	bool has_method = false;
	regex_t re;
	int r;

	mode = next_line(&rest);
	opts.stack = mode ? (unsigned char)mode[0] % STACK_BOTH : OPTION_UNSET;
	opts.app = mode && mode[1] == 'a';
	opts.no_gc = mode && mode[1] == 'g';
	shape.collapse_recursion = mode && mode[1] && mode[2] == 'c';
	opts.hide = next_line(&rest);
	opts.from = next_line(&rest);
	opts.to = next_line(&rest);
	opts.thread = next_pattern(&rest);
	opts.comm = next_pattern(&rest);
	opts.container = next_pattern(&rest);
	opts.include = next_pattern(&rest);
	opts.exclude = next_pattern(&rest);
	root = next_pattern(&rest);
	method = next_pattern(&rest);
	check_rule(next_pattern(&rest));
	opts.idle = next_pattern(&rest);
	r = cmd_filter(&opts, STACK_RUBY, &f, &err);
	if (!r && root)
		r = view_filter_regex(&shape.root, &shape.has_root, root, "--root", &err);
	if (!r && method)
		r = view_filter_regex(&re, &has_method, method, "--callers", &err);
	if (!r)
		check(&f, &shape, has_method, &re);
	else if (!err.msg[0])
		abort();
	if (shape.has_root)
		regfree(&shape.root);
	if (has_method)
		regfree(&re);
	view_filter_deinit(&f);
	return 0;
}
