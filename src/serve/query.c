/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/query.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/utf8.h"

/* ---- parameters ---- */

/* The form of a value. */
enum form {
	FORM_TEXT,   /* what the command takes as a text or a regular expression */
	FORM_LIST,   /* words or numbers: letters, digits, commas, hyphens */
	FORM_FLAG,   /* "1" */
	FORM_NUMBER, /* digits */
	FORM_FROM,   /* a time since the samples begin */
	FORM_TO,
	FORM_BASE_FROM,
	FORM_BASE_TO,
};

enum parameter {
	P_FROM,
	P_TO,
	P_BASE_FROM,
	P_BASE_TO,
	P_PID,
	P_TID,
	P_THREAD,
	P_COMM,
	P_CONTAINER,
	P_REQUEST,
	P_SLOWER,
	P_INCLUDE,
	P_EXCLUDE,
	P_STACK,
	P_APP,
	P_HIDE,
	P_NO_GC,
	P_EVENT,
	P_STATE,
	P_IDLE,
	P_BY,
	P_SORT,
	P_LIMIT,
	P_MATCH,
	P_SANDWICH,
	P_SPLIT,
	P_INVERTED,
	P_ICICLE,
};

static const struct {
	const char *name;
	enum form form;
} parameters_known[] = {
	[P_FROM] = { "from", FORM_FROM },
	[P_TO] = { "to", FORM_TO },
	[P_BASE_FROM] = { "base-from", FORM_BASE_FROM },
	[P_BASE_TO] = { "base-to", FORM_BASE_TO },
	[P_PID] = { "pid", FORM_LIST },
	[P_TID] = { "tid", FORM_LIST },
	[P_THREAD] = { "thread", FORM_TEXT },
	[P_COMM] = { "comm", FORM_TEXT },
	[P_CONTAINER] = { "container", FORM_TEXT },
	[P_REQUEST] = { "request", FORM_TEXT },
	[P_SLOWER] = { "request-slower-than", FORM_TEXT },
	[P_INCLUDE] = { "include", FORM_TEXT },
	[P_EXCLUDE] = { "exclude", FORM_TEXT },
	[P_STACK] = { "stack", FORM_LIST },
	[P_APP] = { "app", FORM_FLAG },
	[P_HIDE] = { "hide", FORM_LIST },
	[P_NO_GC] = { "no-gc", FORM_FLAG },
	[P_EVENT] = { "event", FORM_TEXT },
	[P_STATE] = { "state", FORM_LIST },
	[P_IDLE] = { "idle", FORM_TEXT },
	[P_BY] = { "by", FORM_LIST },
	[P_SORT] = { "sort", FORM_LIST },
	[P_LIMIT] = { "limit", FORM_NUMBER },
	[P_MATCH] = { "match", FORM_TEXT },
	[P_SANDWICH] = { "sandwich", FORM_TEXT },
	[P_SPLIT] = { "split", FORM_LIST },
	[P_INVERTED] = { "inverted", FORM_FLAG },
	[P_ICICLE] = { "icicle", FORM_FLAG },
};

_Static_assert(ARRAY_SIZE(parameters_known) <= 32, "a set of them is 32 bits");

#define BIT(p) (1u << (p))

/* ---- views ---- */

#define TIMES  (BIT(P_FROM) | BIT(P_TO))
#define FILTERS                                                                                    \
	(TIMES | BIT(P_PID) | BIT(P_TID) | BIT(P_THREAD) | BIT(P_COMM) | BIT(P_CONTAINER) |        \
	 BIT(P_REQUEST) | BIT(P_SLOWER) | BIT(P_INCLUDE) | BIT(P_EXCLUDE) | BIT(P_STACK) |         \
	 BIT(P_APP) | BIT(P_HIDE) | BIT(P_NO_GC) | BIT(P_EVENT) | BIT(P_STATE) | BIT(P_IDLE))

#define JSON	 "application/json"
#define HTML	 "text/html; charset=utf-8"
#define PROFILER "https://profiler.firefox.com"

static const char *const no_words[] = { NULL };
static const char *const as_json[] = { "--json", NULL };
static const char *const requests_as_json[] = { "--requests", "--json", NULL };
static const char *const states_as_json[] = { "--states", "--json", NULL };
static const char *const as_firefox[] = { "-f", "firefox", NULL };

static const struct serve_view views[] = {
	{ "", SERVE_PAGE, HTML, NULL, NULL, 0, NULL },
	{ "state.json", SERVE_STATE, JSON, NULL, NULL, 0, NULL },
	{ "rbpf.data", SERVE_RECORDING, "application/octet-stream", NULL, NULL, TIMES, NULL },
	{ "report.json", SERVE_COMMAND, JSON, "report", as_json,
	  FILTERS | BIT(P_BY) | BIT(P_SORT) | BIT(P_LIMIT) | BIT(P_MATCH) | BIT(P_SANDWICH), NULL },
	{ "requests.json", SERVE_COMMAND, JSON, "report", requests_as_json, FILTERS | BIT(P_LIMIT),
	  NULL },
	{ "states.json", SERVE_COMMAND, JSON, "report", states_as_json, FILTERS | BIT(P_LIMIT),
	  NULL },
	{ "flame.svg", SERVE_COMMAND, "image/svg+xml", "flame", no_words,
	  FILTERS | BIT(P_SPLIT) | BIT(P_INVERTED) | BIT(P_ICICLE) | BIT(P_BASE_FROM) |
		  BIT(P_BASE_TO),
	  NULL },
	{ "timeline.html", SERVE_COMMAND, HTML, "timeline", no_words, FILTERS, NULL },
	{ "heatmap.html", SERVE_COMMAND, HTML, "heatmap", no_words, FILTERS, NULL },
	{ "firefox.json", SERVE_COMMAND, JSON, "export", as_firefox, FILTERS, PROFILER },
};

static const struct serve_view *find_view(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		if (!strcmp(views[i].name, path))
			return &views[i];
	return NULL;
}

/* ---- parsing ---- */

static int refuse(const char *name, const char *why, struct err *err)
{
	return err_set(err, -EINVAL, ERR_USAGE, "parameter '%.40s' %s", name, why);
}

static bool is_list(const char *s)
{
	for (; *s; s++)
		if (!strchr("0123456789,-", *s) && (*s < 'a' || *s > 'z'))
			return false;
	return true;
}

/* Text that a message can show. */
static bool is_text(const char *s)
{
	size_t left = strlen(s), n;

	for (; left; s += n, left -= n) {
		n = utf8_sequence(s, left);
		if (!n || !utf8_presentable(s, n))
			return false;
	}
	return true;
}

static bool has_form(enum form form, const char *value)
{
	switch (form) {
	case FORM_TEXT:
		return is_text(value);
	case FORM_LIST:
		return is_list(value);
	case FORM_FLAG:
		return !strcmp(value, "1");
	case FORM_NUMBER:
		return !value[strspn(value, "0123456789")];
	default: /* the parser of times says what is wrong */
		return true;
	}
}

static int take(struct serve_query *q, enum parameter p, const char *value, struct buf *words,
		struct err *err)
{
	const char *name = parameters_known[p].name;
	const enum form form = parameters_known[p].form;

	if (!*value || strlen(value) > SERVE_MAX_VALUE || !has_form(form, value))
		return refuse(name, "has a value that it does not take", err);
	switch (form) {
	case FORM_FROM:
		return parse_time_since(value, name, &q->from_ns, err);
	case FORM_TO:
		return parse_time_since(value, name, &q->to_ns, err);
	case FORM_BASE_FROM:
		return parse_time_since(value, name, &q->base_from_ns, err);
	case FORM_BASE_TO:
		return parse_time_since(value, name, &q->base_to_ns, err);
	case FORM_FLAG:
		buf_addf(words, "--%s", name);
		break;
	default:
		buf_addf(words, "--%s=%s", name, value);
	}
	buf_addch(words, '\0');
	return 0;
}

static int take_all(struct serve_query *q, const struct serve_parameter *parameters, size_t n,
		    struct buf *words, struct err *err)
{
	uint32_t seen = 0;
	size_t p;
	int r = 0;

	if (n > SERVE_MAX_PARAMETERS)
		return err_set(err, -EINVAL, ERR_USAGE, "too many parameters");
	for (size_t i = 0; i < n && !r; i++) {
		for (p = 0; p < ARRAY_SIZE(parameters_known); p++)
			if (!strcmp(parameters_known[p].name, parameters[i].name))
				break;
		/* Of others the name is the client's, which no message shows. */
		if (p == ARRAY_SIZE(parameters_known))
			return refuse("?", "is not known", err);
		if (!(q->view->takes & BIT(p)))
			return refuse(parameters_known[p].name, "is not one of this view", err);
		if (seen & BIT(p))
			return refuse(parameters_known[p].name, "is given twice", err);
		seen |= BIT(p);
		r = parameters[i].value
			    ? take(q, (enum parameter)p, parameters[i].value, words, err)
			    : refuse(parameters_known[p].name, "has no value", err);
	}
	if (!r && q->to_ns <= q->from_ns)
		r = refuse("to", "is not after from", err);
	if (!r && (seen & BIT(P_BASE_FROM)) && q->base_to_ns <= q->base_from_ns)
		r = refuse("base-to", "is not after base-from", err);
	return r;
}

int serve_query_parse(const char *path, const struct serve_parameter *parameters, size_t n,
		      struct serve_query *ret, struct err *err)
{
	struct serve_query q = { .view = find_view(path), .to_ns = UINT64_MAX };
	_cleanup_buf_ struct buf words = BUF_INIT;
	int r;

	if (!q.view)
		return -ENOENT;
	r = take_all(&q, parameters, n, &words, err);
	if (r)
		return r;
	if (buf_failed(&words))
		return err_oom(err);
	q.words = words.data;
	q.words_len = words.len;
	words = (struct buf)BUF_INIT; /* owned by q now */
	*ret = q;
	return 0;
}

void serve_query_deinit(struct serve_query *q)
{
	free(q->words);
	*q = (struct serve_query) { 0 };
}

/* ---- the command line ---- */

static uint64_t second_after(uint64_t ns)
{
	return ns / NSEC_PER_SEC + !!(ns % NSEC_PER_SEC);
}

void serve_query_seconds(const struct serve_query *q, uint64_t *from, uint64_t *to)
{
	uint64_t from_ns = q->from_ns, to_ns = q->to_ns;

	if (q->base_to_ns && q->base_from_ns < from_ns)
		from_ns = q->base_from_ns;
	if (q->base_to_ns > to_ns)
		to_ns = q->base_to_ns;
	*from = from_ns / NSEC_PER_SEC;
	*to = second_after(to_ns);
}

/* @ns since the samples begin, as a time of the recording, which begins at second @from. */
static void add_time(struct buf *out, const char *option, uint64_t ns, uint64_t from)
{
	const uint64_t since = ns - from * NSEC_PER_SEC;

	buf_addf(out, "--%s=%llu.%09llu", option, (unsigned long long)(since / NSEC_PER_SEC),
		 (unsigned long long)(since % NSEC_PER_SEC));
	buf_addch(out, '\0');
}

/* As far as the recording has the range; a command refuses a time of 0. */
static void add_range(struct buf *out, const char *from_option, uint64_t from_ns,
		      const char *to_option, uint64_t to_ns, uint64_t from)
{
	if (from_ns > from * NSEC_PER_SEC)
		add_time(out, from_option, from_ns, from);
	if (to_ns != UINT64_MAX)
		add_time(out, to_option,
			 to_ns > from * NSEC_PER_SEC ? to_ns : from * NSEC_PER_SEC + 1, from);
}

void serve_query_command(const struct serve_query *q, const char *path, uint64_t from, uint64_t to,
			 struct buf *out)
{
	const bool to_the_end = second_after(q->to_ns) >= to && !(q->to_ns % NSEC_PER_SEC);

	buf_add(out, q->view->command, strlen(q->view->command) + 1);
	for (const char *const *word = q->view->words; *word; word++)
		buf_add(out, *word, strlen(*word) + 1);
	buf_add(out, q->words, q->words_len);
	add_range(out, "from", q->from_ns, "to",
		  to_the_end || q->to_ns == UINT64_MAX ? UINT64_MAX : q->to_ns, from);
	if (q->base_to_ns)
		add_range(out, "base-from", q->base_from_ns, "base-to", q->base_to_ns, from);
	buf_add(out, path, strlen(path) + 1);
}
