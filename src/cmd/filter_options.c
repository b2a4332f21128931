/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/filter_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "view/expr.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/state.h"
#include "profile/profile.h"

#define FILTER(member) .offset = offsetof(struct filter_options, member)

const struct option_spec filter_option_specs[N_FILTER_OPTIONS] = {
	{
		.name = "filter",
		.type = OPTION_STRING,
		FILTER(filter),
		.arg = "EXPR",
		.help = "keep samples of which this is true: 'thread =~ /puma/ and not (frame = "
			"Foo#bar or time < 5s)'; see rbpf-filter(5)",
	},
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PIDS,
		FILTER(pids),
		.arg = "LIST",
		.help = "keep samples of these processes",
	},
	{
		.name = "tid",
		.type = OPTION_PIDS,
		FILTER(tids),
		.arg = "LIST",
		.help = "keep samples of these threads, by kernel thread id",
	},
	{
		.name = "thread",
		.type = OPTION_STRING,
		FILTER(thread),
		.arg = "REGEX",
		.help = "keep samples of threads whose name matches",
	},
	{
		.name = "comm",
		.type = OPTION_STRING,
		FILTER(comm),
		.arg = "REGEX",
		.help = "keep samples of processes whose command line matches",
	},
	{
		.name = "container",
		.type = OPTION_STRING,
		FILTER(container),
		.arg = "REGEX",
		.help = "keep samples of processes whose container or control group matches",
	},
	{
		.name = "request",
		.type = OPTION_STRING,
		FILTER(request),
		.arg = "REGEX",
		.help = "keep samples of requests and jobs whose name matches",
	},
	{
		.name = "request-slower-than",
		.type = OPTION_STRING,
		FILTER(slower_than),
		.arg = "TIME",
		.help = "keep samples of requests and jobs that took longer: 500ms, 2s",
	},
	{
		.name = "include",
		.type = OPTION_STRING,
		FILTER(include),
		.arg = "REGEX",
		.help = "keep samples with a frame whose name matches",
	},
	{
		.name = "exclude",
		.type = OPTION_STRING,
		FILTER(exclude),
		.arg = "REGEX",
		.help = "drop samples with a frame whose name matches",
	},
	{
		.name = "stack",
		.type = OPTION_CHOICE,
		FILTER(stack),
		.arg = "MODE",
		.help = "which frames to show:",
		.choice = stack_mode_name,
		.choice_help = stack_mode_help,
	},
	{
		.name = "ruby-only",
		.type = OPTION_FLAG,
		FILTER(ruby_only),
		.help = "the same as --stack ruby",
	},
	{
		.name = "app",
		.type = OPTION_FLAG,
		FILTER(app),
		.help = "show the program's own Ruby code only, with the time of all that it calls",
	},
	{
		.name = "hide",
		.type = OPTION_STRING,
		FILTER(hide),
		.arg = "LIST",
		.help = "do not show frames of these, but add their time to their callers: app, "
			"gems, stdlib, core, cfunc, native, gc, kernel, fiber, unknown, gap",
	},
	{
		.name = "no-gc",
		.type = OPTION_FLAG,
		FILTER(no_gc),
		.help = "drop samples that were taken during garbage collection",
	},
	{
		.name = "event",
		.type = OPTION_STRING,
		FILTER(event),
		.arg = "NAME",
		.help = "show samples of this event (default: the first; 'report --info' lists "
			"the events)",
	},
	{
		.name = "state",
		.type = OPTION_STRING,
		FILTER(state),
		.arg = "LIST",
		.help = "show time of threads in these states only: user, system, "
			"minor-fault, wait-cpu, throttled, gvl, lock, fault, disk, network, pipe, "
			"timer, join, child, stopped, other, idle; wait is all but the first "
			"three, "
			"gvl-held waits with the GVL (of recordings made with --mode states)",
	},
	{
		.name = "idle",
		.type = OPTION_STRING,
		FILTER(idle),
		.arg = "REGEX",
		.help = "also take for idle the waits of methods whose name matches: their own, "
			"and "
			"those in gems that they call, but not in other methods of the program",
	},
	{
		.name = "from",
		.type = OPTION_STRING,
		FILTER(from),
		.arg = "TIME",
		.help = "drop samples before this time: 12s, 5m since the start of the recording, "
			"or "
			"12:00:05 by the clock",
	},
	{
		.name = "to",
		.type = OPTION_STRING,
		FILTER(to),
		.arg = "TIME",
		.help = "drop samples after this time: 12s, 5m since the start of the recording, "
			"or "
			"12:00:05 by the clock",
	},
	/* Those of the time of others: N_FILTER_OF_OTHERS. */
	{
		.name = "blocker",
		.type = OPTION_FLAG,
		FILTER(blocker),
		.help = "show who made others wait for the GVL, a Mutex or a Monitor, by how long "
			"they did (the same as --event caused)",
	},
	{
		.name = "waker",
		.type = OPTION_FLAG,
		FILTER(waker),
		.help = "show who ended the waits of others, by how long they were (the same as "
			"--event wakeup; of recordings made with --waker; --state then says what "
			"the waits were for)",
	},
};

/* The stacks that are asked for, or @usual if none are. */
static int choose_stacks(const struct filter_options *opts, enum stack_mode usual,
			 enum stack_mode *ret, struct err *err)
{
	if (opts->ruby_only && opts->stack != OPTION_UNSET && opts->stack != STACK_RUBY)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--ruby-only means --stack ruby: it cannot be given with --stack %s",
			       stack_mode_name(opts->stack));
	*ret = opts->ruby_only ? STACK_RUBY : opts->stack == OPTION_UNSET ? usual : opts->stack;
	return 0;
}

static int parse_time(const char *s, const char *what, uint64_t *since_start,
		      struct wall_time *by_clock, struct err *err)
{
	if (!s)
		return 0;
	if (wall_time_is_meant(s))
		return wall_time_parse(s, what, by_clock, err);
	return parse_time_since(s, what, since_start, err);
}

/* The bit of the word of @len at @word. */
static int parse_origin(const char *word, size_t len, uint32_t *ret, struct err *err)
{
	const char *words[ORIGIN_COUNT];
	_cleanup_free_ char *copy = strndup(word, len);
	const char *nearest;

	if (!copy)
		return err_oom(err);
	for (size_t i = 0; i < ORIGIN_COUNT; i++) {
		words[i] = label_origin_word(i);
		if (!strcmp(copy, words[i])) {
			*ret |= 1u << i;
			return 0;
		}
	}
	nearest = parse_nearest(copy, words, ORIGIN_COUNT);
	err_set(err, -EINVAL, ERR_USAGE, "--hide: unknown kind of code '%.100s'%s%s%s", copy,
		nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
	err_hint(err, "--hide takes some of app,gems,stdlib,core,cfunc,native,gc,kernel,fiber,"
		      "unknown,gap");
	return -EINVAL;
}

static int parse_origins(const char *list, uint32_t *ret, struct err *err)
{
	int r = 0;

	while (list && !r) {
		size_t len = strcspn(list, ",");

		r = parse_origin(list, len, ret, err);
		list = list[len] ? list + len + 1 : NULL;
	}
	return r;
}

/* An end of the range of time that the expression asks for, unless an option does. */
static bool take_bound(struct view_expr *e, bool end, uint64_t *since_start,
		       struct wall_time *by_clock)
{
	struct time_cut bound;

	if (*since_start || by_clock->given || !view_expr_take_bound(e, end, &bound))
		return false;
	*since_start = bound.since_start_ns;
	*by_clock = bound.clock;
	return true;
}

static int parse_filter(const struct filter_options *opts, struct view_filter *ret, struct err *err)
{
	struct view_expr *e;
	int r;

	if (!opts->filter)
		return 0;
	r = view_expr_parse(opts->filter, "--filter", &ret->expr, err);
	if (r)
		return r;
	e = ret->expr;
	if (take_bound(e, false, &ret->from_ns, &ret->from))
		ret->from_name = "the start that --filter asks for";
	if (take_bound(e, true, &ret->to_ns, &ret->to))
		ret->to_name = "the end that --filter asks for";
	if (e->event && ret->event && strcmp(e->event, ret->event) != 0)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--filter asks for event %.100s, %s for %.100s", e->event,
			       cmd_event_option(opts), ret->event);
	if (e->event)
		ret->event = e->event;
	else if (!ret->event && view_expr_has(e, EXPR_STATE))
		ret->event = EVENT_WALL;
	return 0;
}

int cmd_check_times(const struct view_filter *f, struct err *err)
{
	if (f->to_ns && f->from_ns >= f->to_ns)
		return err_set(err, -EINVAL, ERR_USAGE, "%s must be before %s", f->from_name,
			       f->to_name);
	return 0;
}

static int take_times(const struct filter_options *opts, struct view_filter *ret, struct err *err)
{
	int r;

	ret->from_name = opts->from_option ? opts->from_option : "--from";
	ret->to_name = opts->to_option ? opts->to_option : "--to";
	r = parse_time(opts->from, ret->from_name, &ret->from_ns, &ret->from, err);
	if (!r)
		r = parse_time(opts->to, ret->to_name, &ret->to_ns, &ret->to, err);
	/* An end of 0 would be that of the recording. */
	if (!r && opts->to && !ret->to_ns && !ret->to.given)
		return err_set(err, -ERANGE, ERR_USAGE, "%s: %.80s is out of range (above 0)",
			       ret->to_name, opts->to);
	return r;
}

const char *cmd_event_option(const struct filter_options *opts)
{
	return opts->waker     ? "--waker"
	       : opts->blocker ? "--blocker"
	       : opts->event   ? "--event"
			       : NULL;
}

/* The event that the options ask for, in *@ret, or NULL. */
static int take_event(const struct filter_options *opts, const char **ret, struct err *err)
{
	const char *event = opts->waker ? EVENT_WAKEUP : opts->blocker ? EVENT_CAUSED : opts->event;
	const char *option = cmd_event_option(opts);

	if (opts->waker && opts->blocker)
		return err_set(err, -EINVAL, ERR_USAGE, "--waker and --blocker exclude each other");
	if (opts->event && strcmp(event, opts->event) != 0) {
		err_set(err, -EINVAL, ERR_USAGE, "%s and --event %s exclude each other", option,
			opts->event);
		err_hint(err, "%s is --event %s", option, event);
		return -EINVAL;
	}
	*ret = event;
	return 0;
}

int cmd_refuse_event(const struct filter_options *opts, const char *what, const char *event,
		     struct err *err)
{
	const char *option = cmd_event_option(opts);
	const bool is_named = !option || !strcmp(option, "--event");

	err_set(err, -EINVAL, ERR_USAGE, "%s and %s%s%.100s exclude each other", what,
		option ? option : "event", is_named ? " " : "", is_named ? event : "");
	if (!strcmp(event, EVENT_WAKEUP))
		err_hint(err, "'--waker --state gvl' shows who ended the waits for the GVL");
	else if (event_is_of_own_time(event))
		err_hint(err,
			 "%s is of all time of threads; '--by state --event %.100s' shows the "
			 "states of that event alone",
			 what, event);
	else
		err_hint(err,
			 "it is others that waited: '--event gvl-caused' has their waits for the "
			 "GVL, '--event lock-caused' those for a Mutex or a Monitor");
	return -EINVAL;
}

/*
 * Wakeups are told apart by the waits that they ended when they are read: what @f asks for of
 * states is taken out of it.
 */
static int take_ended(struct view_filter *f, struct err *err)
{
	const uint64_t never = STATE_SET_CPU | state_set_of(STATE_WAIT_CPU) |
			       state_set_of(STATE_THROTTLED);
	uint64_t states = f->states ? f->states : UINT64_MAX;

	if (f->expr)
		states &= view_expr_take_states(f->expr);
	if (f->expr && view_expr_has(f->expr, EXPR_STATE)) {
		err_set(err, -EINVAL, ERR_USAGE,
			"--filter: of wakeups, 'state' can only be joined to all else by and");
		err_hint(err, "'--waker --state gvl' shows who ended the waits for the GVL");
		return -EINVAL;
	}
	f->ended = states & ~never & STATE_SET_ALL;
	f->states = 0;
	if (f->ended)
		return 0;
	err_set(err, -EINVAL, ERR_USAGE, "nobody ends waits of these states");
	err_hint(err, "of wakeups, --state says what the wait was for that they ended: gvl, lock, "
		      "network, ...; wait is all of these");
	return -EINVAL;
}

/*
 * Samples of how long others waited have no state of their own; but a wakeup is selected by that of
 * the wait that it ended.
 */
static int check_states(const struct filter_options *opts, struct view_filter *f, struct err *err)
{
	const bool by_expr = f->expr && view_expr_has(f->expr, EXPR_STATE);

	if (!f->event || event_is_of_own_time(f->event) || !(by_expr || f->states))
		return 0;
	if (!strcmp(f->event, EVENT_WAKEUP))
		return take_ended(f, err);
	return cmd_refuse_event(opts, by_expr ? "--filter with 'state'" : "--state", f->event, err);
}

static int compile_patterns(const struct filter_options *opts, struct view_filter *ret,
			    struct err *err)
{
	const struct {
		const char *pattern;
		const char *what;
		regex_t *re;
		bool *has;
	} patterns[] = {
		{ opts->thread, "--thread", &ret->thread, &ret->has_thread },
		{ opts->comm, "--comm", &ret->comm, &ret->has_comm },
		{ opts->container, "--container", &ret->container, &ret->has_container },
		{ opts->request, "--request", &ret->request, &ret->has_request },
		{ opts->include, "--include", &ret->include, &ret->has_include },
		{ opts->exclude, "--exclude", &ret->exclude, &ret->has_exclude },
		{ opts->idle, "--idle", &ret->idle, &ret->has_idle },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(patterns) && !r; i++)
		if (patterns[i].pattern)
			r = view_filter_regex(patterns[i].re, patterns[i].has, patterns[i].pattern,
					      patterns[i].what, err);
	return r;
}

static int copy_list(const struct pid_list *list, pid_t **ret, size_t *n, struct err *err)
{
	if (!list->n)
		return 0;
	*ret = calloc(list->n, sizeof(**ret));
	if (!*ret)
		return err_oom(err);
	memcpy(*ret, list->pids, list->n * sizeof(**ret));
	*n = list->n;
	return 0;
}

int cmd_filter(const struct filter_options *opts, enum stack_mode usual, struct view_filter *ret,
	       struct err *err)
{
	int r;

	r = choose_stacks(opts, usual, &ret->stack, err);
	if (r)
		return r;
	if (opts->app)
		ret->hide = ((1u << ORIGIN_COUNT) - 1) & ~(1u << ORIGIN_APP);
	r = parse_origins(opts->hide, &ret->hide, err);
	if (r)
		return r;
	if (opts->slower_than)
		r = parse_duration(opts->slower_than, "--request-slower-than", &ret->slower_than_ns,
				   err);
	if (!r)
		r = take_times(opts, ret, err);
	if (!r)
		r = take_event(opts, &ret->event, err);
	if (!r)
		r = parse_filter(opts, ret, err);
	if (!r && !ret->from.given && !ret->to.given)
		r = cmd_check_times(ret, err);
	if (!r)
		r = compile_patterns(opts, ret, err);
	if (!r)
		r = copy_list(&opts->pids, &ret->pids, &ret->n_pids, err);
	if (!r)
		r = copy_list(&opts->tids, &ret->tids, &ret->n_tids, err);
	if (r)
		return r;
	if (opts->state) {
		r = state_set_parse(opts->state, &ret->states, err);
		if (r)
			return r;
		if (!ret->event)
			ret->event = EVENT_WALL;
	}
	ret->no_gc = opts->no_gc;
	return check_states(opts, ret, err);
}
