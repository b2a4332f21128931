/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file format of speedscope: https://www.speedscope.app/file-format-schema.json
 *
 * Frames are functions. The first profile is of all threads: each distinct stack once, in the order
 * of the call tree. Then each thread has a profile in the order of time, in which successive
 * samples with the same stack are one. Such a profile knows no pauses: what speedscope shows as
 * time is the value of the event so far, such as CPU time.
 *
 * Such a profile has the whole stack of each sample. If all would take more than speedscope can
 * open, they are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/number.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/forecast.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/shown.h"
#include "export/thread_samples.h"
#include "view/group.h"
#include "view/tree.h"

#define SCHEMA		"https://www.speedscope.app/file-format-schema.json"

/* About: the longest string that browsers on V8 can have. */
#define MAX_TIMED_BYTES (1ull << 29)

struct speedscope {
	const struct profile *profile;
	const struct export_options *opts;
	struct groups functions;
	struct shown shown;
	struct json json;
	uint32_t *frames; /* scratch: of a stack, owned */
	size_t cap_frames;

	/* Samples of the thread that follow each other and have the same stack. */
	uint32_t stack; /* PROFILE_NONE before the first one */
	uint64_t value; /* of them */
	uint64_t sum;	/* of all */
	bool weights;	/* write values, not stacks */
	bool is_timed;	/* threads have profiles */
};

/* ---- how much it is ---- */

/* An id and a comma. */
static size_t bytes_of_frame(const struct profile *p, uint32_t frame)
{
	size_t n = 2;

	(void)frame;
	for (size_t ids = p->n_frames; ids >= 10; ids /= 10)
		n++;
	return n;
}

/* The bytes of the samples in the order of time, brackets and a weight of each included. */
static int timed_bytes(const struct profile *p, const struct export_options *opts, uint64_t *ret)
{
	return forecast_bytes(p, opts->filter, sizeof("[],1000000,") - 1, bytes_of_frame, ret);
}

int speedscope_warn(const struct profile *p, const struct export_options *opts, struct buf *text)
{
	uint64_t bytes;
	int r = timed_bytes(p, opts, &bytes);

	if (r || bytes <= MAX_TIMED_BYTES)
		return r;
	buf_addf(text,
		 "threads in the order of time would take about %s, more than speedscope can open: "
		 "only all threads together are written. --from, --to or a filter takes a part",
		 num_bytes(bytes).s);
	return 0;
}

/* ---- frames ---- */

static void add_frames(struct speedscope *s)
{
	struct json *j = &s->json;

	json_object_begin(j, "shared");
	json_array_begin(j, "frames");
	for (size_t i = 0; i < s->functions.n; i++) {
		struct function f;

		function_of_frame(s->profile, s->functions.frame[i], &f);
		json_object_begin(j, NULL);
		json_str(j, "name", f.name);
		if (*function_place(&f))
			json_str(j, "file", function_place(&f));
		if (f.line)
			json_u64(j, "line", f.line);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

/* The name of a profile is all that is shown beside it, so it tells the event. */
static void begin_profile(struct speedscope *s, struct buf *name)
{
	static const char *const units[VALUE_UNITS] = {
		[UNIT_NS] = "nanoseconds",
		[UNIT_BYTES] = "bytes",
		[UNIT_OBJECTS] = "none",
		[UNIT_COUNT] = "none",
	};

	buf_addf(name, ", event %s", profile_event(s->profile)->name);
	s->json.out->failed |= buf_failed(name);
	json_object_begin(&s->json, NULL);
	json_str(&s->json, "type", "sampled");
	json_str(&s->json, "name", buf_str(name));
	json_str(&s->json, "unit", units[profile_event(s->profile)->unit]);
	json_u64(&s->json, "startValue", 0);
}

static void end_profile(struct speedscope *s)
{
	json_u64(&s->json, "endValue", s->sum);
	json_object_end(&s->json);
}

/* ---- all threads ---- */

static int add_node(struct speedscope *s, const struct tree *t, uint32_t node)
{
	size_t n = t->nodes[node].depth;

	if (array_reserve(s->frames, s->cap_frames, n))
		return -ENOMEM;
	for (size_t i = n; i--; node = t->nodes[node].parent)
		s->frames[i] = t->nodes[node].frame;
	json_array_begin(&s->json, NULL);
	for (size_t i = 0; i < n; i++)
		json_u64(&s->json, NULL, s->functions.of_frame[s->frames[i]]);
	json_array_end(&s->json);
	return buf_failed(s->json.out) ? -ENOMEM : 0;
}

static int add_all(struct speedscope *s)
{
	const struct tree_options opts = { 0 };
	_cleanup_buf_ struct buf name = BUF_INIT;
	_cleanup_tree_ struct tree t = { 0 };
	uint32_t node = 0;
	int r;

	r = tree_build(s->profile, s->opts->filter, &opts, &t);
	if (r)
		return r;
	buf_addstr(&name, "all threads (not in the order of time)");
	begin_profile(s, &name);
	json_array_begin(&s->json, "samples");
	do {
		if (t.nodes[node].self_samples)
			r = add_node(s, &t, node);
	} while (!r && (node = tree_next(&t, node)));
	json_array_end(&s->json);
	json_array_begin(&s->json, "weights");
	node = 0;
	do {
		if (t.nodes[node].self_samples)
			json_u64(&s->json, NULL, t.nodes[node].self_value);
	} while ((node = tree_next(&t, node)));
	json_array_end(&s->json);
	s->sum = t.nodes[0].total_value;
	end_profile(s);
	return r;
}

/* ---- one thread ---- */

static int add_stack(struct speedscope *s, uint32_t stack)
{
	size_t n;
	int r = shown_frames(&s->shown, stack, &s->frames, &s->cap_frames, &n);

	if (r)
		return r;
	json_array_begin(&s->json, NULL);
	while (n--)
		json_u64(&s->json, NULL, s->functions.of_frame[s->frames[n]]);
	json_array_end(&s->json);
	return buf_failed(s->json.out) ? -ENOMEM : 0;
}

/* Write the samples that are one. */
static int end_run(struct speedscope *s)
{
	if (s->stack == PROFILE_NONE)
		return 0;
	if (!s->weights)
		return add_stack(s, s->stack);
	json_u64(&s->json, NULL, s->value);
	profile_add(&s->sum, s->value);
	return buf_failed(s->json.out) ? -ENOMEM : 0;
}

static int add_sample(void *arg, const struct thread_sample *sample)
{
	struct speedscope *s = arg;
	int r = 0;

	if (sample->stack != s->stack) {
		r = end_run(s);
		s->stack = sample->stack;
		s->value = 0;
	}
	profile_add(&s->value, sample->value);
	return r;
}

static int add_column(struct speedscope *s, struct thread_samples *samples, size_t i,
		      const char *name, struct err *err)
{
	int r;

	s->weights = !strcmp(name, "weights");
	s->stack = PROFILE_NONE;
	s->sum = 0;
	json_array_begin(&s->json, name);
	r = thread_samples_each(samples, i, add_sample, s, err);
	if (!r)
		r = end_run(s);
	json_array_end(&s->json);
	return r;
}

static int add_thread(struct speedscope *s, struct thread_samples *samples, size_t i,
		      struct err *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	int r;

	function_thread_title(s->profile, thread_samples_thread(samples, i), &name);
	begin_profile(s, &name);
	r = add_column(s, samples, i, "samples", err);
	if (!r)
		r = add_column(s, samples, i, "weights", err);
	end_profile(s);
	return r;
}

static int add_profiles(struct speedscope *s, struct err *err)
{
	_cleanup_thread_samples_ struct thread_samples *samples = NULL;
	int r;

	r = thread_samples_new(&s->shown, &s->opts->replay, THREAD_SAMPLES_MAX, &samples);
	json_array_begin(&s->json, "profiles");
	if (!r)
		r = add_all(s);
	for (size_t i = 0; !r && s->is_timed && i < thread_samples_count(samples); i++)
		r = add_thread(s, samples, i, err);
	json_array_end(&s->json);
	return r;
}

/*
 * The title of the page, and the only text of a file that the format has: the recording and the
 * event are told there, too.
 */
static void add_name(struct speedscope *s)
{
	const struct profile *p = s->profile;
	_cleanup_buf_ struct buf name = BUF_INIT;

	buf_addf(&name, "%s (event %s, ", p->meta.command ? p->meta.command : "rbpf",
		 profile_event(p)->name);
	origin_add(p, &name);
	buf_addch(&name, ')');
	s->json.out->failed |= buf_failed(&name);
	json_str(&s->json, "name", buf_str(&name));
}

int export_speedscope(const struct profile *p, const struct export_options *opts, struct buf *out,
		      struct err *err)
{
	struct speedscope s = { .profile = p, .opts = opts, .json = JSON_INIT(out) };
	uint64_t bytes;
	int r;

	r = timed_bytes(p, opts, &bytes);
	if (r)
		return export_error(r, err);
	s.is_timed = bytes <= MAX_TIMED_BYTES;
	r = shown_init(p, opts->filter, &s.shown);
	if (!r)
		r = groups_init(p, GROUP_BY_FUNCTION, &s.functions);
	if (!r) {
		json_object_begin(&s.json, NULL);
		json_str(&s.json, "$schema", SCHEMA);
		json_str(&s.json, "exporter", "rbpf@" RBPF_VERSION);
		add_name(&s);
		json_u64(&s.json, "activeProfileIndex", 0);
		add_frames(&s);
		r = add_profiles(&s, err);
		json_object_end(&s.json);
		buf_addch(out, '\n');
	}
	groups_deinit(&s.functions);
	shown_deinit(&s.shown);
	free(s.frames);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
