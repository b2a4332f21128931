/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of `perf script`: each sample with its thread, time, value and frames, the innermost
 * first. It is written while the recording is read.
 *
 * The text has no quoting, and what reads it takes it apart by regular expressions:
 *   - Blanks in the name of a thread become '_', and ';' becomes ':'. It has two characters at
 * least, and does not start with '#', as comments do.
 *   - Round brackets in the name of a function become square ones, for stackcollapse-perf.pl drops
 *     what is behind the first one, and all of a name that starts with one: it would make one
 *     function of all "block (2 levels) in …".
 *   - "->" becomes "=>", for it separates inlined functions; ';' becomes ':', and "+0x" gets a
 *     blank, for an offset of that form is cut off.
 *   - Blanks and round brackets in the name of a file become "\x20", ….
 *
 * In place of the file of code (the "DSO") Ruby methods have their source file, and what has
 * neither its kind, without brackets: stackcollapse-perf.pl takes what starts with one for the
 * kernel.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/number.h"
#include "export/export.h"
#include "export/exporters.h"
#include "export/forecast.h"
#include "export/function.h"
#include "export/origin.h"
#include "export/shown.h"
#include "profile/replay.h"
#include "view/label.h"

struct perf_script {
	const struct profile *profile;
	struct shown shown;
	const char *event;
	struct intern texts; /* lines of frames, and names of threads */
	uint32_t *of_frame;  /* text + 1 by frame; 0: not made yet; owned, as are the following */
	uint32_t *of_thread; /* the same by thread */
	uint64_t *last_ts;   /* by thread */
	uint32_t *frames;    /* scratch: of a stack */
	size_t cap_frames;
	struct buf scratch;
	struct buf *out;
	struct err *err;
};

static void perf_script_deinit(struct perf_script *s)
{
	shown_deinit(&s->shown);
	intern_deinit(&s->texts);
	free(s->of_frame);
	free(s->of_thread);
	free(s->last_ts);
	free(s->frames);
	buf_deinit(&s->scratch);
}

/* ---- names ---- */

static void add_function_name(struct buf *out, const char *name)
{
	static const char from[] = ";()\t", to[] = ":[] ";

	name += strspn(name, " \t");
	if (!*name)
		buf_addch(out, '_');
	for (; *name; name++) {
		const char *replaced = strchr(from, *name);

		if (name[0] == '-' && name[1] == '>')
			buf_addch(out, '=');
		else
			buf_addch(out, replaced ? to[replaced - from] : *name);
		if (!strncmp(name, "+0x", 3))
			buf_addch(out, ' ');
	}
}

static void add_file_name(struct buf *out, const char *name)
{
	for (; *name; name++) {
		if (strchr(" \t()", *name))
			buf_addf(out, "\\x%02x", (unsigned char)*name);
		else
			buf_addch(out, *name);
	}
}

static void add_frame(struct perf_script *s, uint32_t frame)
{
	const struct profile_frame *f = &s->profile->frames[frame];
	struct function function;

	function_of_frame(s->profile, frame, &function);
	buf_addf(&s->scratch, "\t%16" PRIx64 " ", f->address);
	add_function_name(&s->scratch, function.name);
	buf_addstr(&s->scratch, " (");
	if (f->kind == FRAME_KERNEL)
		buf_addstr(&s->scratch, "[kernel.kallsyms]");
	else if (*function_place(&function))
		add_file_name(&s->scratch, function_place(&function));
	else
		buf_addstr(&s->scratch, frame_kind_name(f->kind));
	buf_addstr(&s->scratch, ")\n");
}

static void add_thread(struct perf_script *s, uint32_t thread)
{
	const struct profile *p = s->profile;
	const struct profile_thread *t = &p->threads[thread];

	label_thread(s->profile, thread, &s->scratch);
	if (buf_failed(&s->scratch))
		return;
	for (size_t i = 0; i < s->scratch.len; i++) {
		char *c = &s->scratch.data[i];

		if (*c == ' ' || *c == '\t')
			*c = '_';
		else if (*c == ';')
			*c = ':';
	}
	if (s->scratch.data[0] == '#')
		s->scratch.data[0] = '_';
	if (s->scratch.len == 1)
		buf_addch(&s->scratch, '_');
	if (thread == p->n_threads)
		buf_addstr(&s->scratch, " 0/0");
	else
		buf_addf(&s->scratch, " %" PRIu32 "/%" PRIu32, p->processes[t->process].pid,
			 t->tid);
}

/* The text of a frame or thread, made the first time. */
static const char *text_of(struct perf_script *s, uint32_t *known, uint32_t id,
			   void (*add)(struct perf_script *s, uint32_t id), size_t *len)
{
	if (!known[id]) {
		buf_reset(&s->scratch);
		add(s, id);
		if (buf_failed(&s->scratch) ||
		    intern_add(&s->texts, s->scratch.data, s->scratch.len, &known[id], NULL))
			return NULL;
		known[id]++;
	}
	return intern_get(&s->texts, known[id] - 1, len);
}

/* ---- the text ---- */

static void write_header(struct perf_script *s)
{
	const struct profile_meta *meta = &s->profile->meta;
	const struct {
		const char *key, *value;
	} lines[] = {
		{ "hostname", meta->hostname }, { "os release", meta->kernel },
		{ "arch", meta->arch },		{ "rbpf version", meta->rbpf_version },
		{ "cmdline", meta->command },
	};

	buf_addstr(s->out, "# ========\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].value)
			buf_addf(s->out, "# %s : %s\n", lines[i].key, lines[i].value);
	buf_addstr(s->out, "# recording : ");
	origin_add(s->profile, s->out);
	buf_addch(s->out, '\n');
	buf_addstr(s->out, "# ========\n#\n\n");
}

/* Readers refuse times of a thread that go back, as they may in a damaged recording. */
static uint64_t time_of(struct perf_script *s, const struct profile_sample *sample)
{
	uint64_t *last = &s->last_ts[sample->thread];

	if (sample->ts > *last)
		*last = sample->ts;
	return *last;
}

static int write_sample(void *arg, const struct profile_sample *sample)
{
	struct perf_script *s = arg;
	const char *text;
	uint64_t ts;
	size_t n, len;
	int r;

	if (!shown_sample(&s->shown, sample))
		return 0;
	r = shown_frames(&s->shown, shown_stack(&s->shown, sample->stack), &s->frames,
			 &s->cap_frames, &n);
	text = text_of(s, s->of_thread,
		       profile_stack_not_recorded(s->profile, sample->stack)
			       ? (uint32_t)s->profile->n_threads
			       : sample->thread,
		       add_thread, &len);
	if (r || !text)
		return err_oom(s->err);
	ts = time_of(s, sample);
	buf_add(s->out, text, len);
	buf_addf(s->out, " [%03u] %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n", sample->cpu,
		 (uint64_t)(ts / NSEC_PER_SEC), (uint64_t)(ts % NSEC_PER_SEC / NSEC_PER_USEC),
		 sample->value, s->event);
	for (size_t i = 0; i < n; i++) {
		text = text_of(s, s->of_frame, s->frames[i], add_frame, &len);
		if (!text)
			return err_oom(s->err);
		buf_add(s->out, text, len);
	}
	buf_addch(s->out, '\n');
	return buf_failed(s->out) ? err_oom(s->err) : 0;
}

static int write_all(struct perf_script *s, const struct replay *from)
{
	const struct profile *p = s->profile;

	s->of_frame = calloc(p->n_frames + 1, sizeof(*s->of_frame));
	s->of_thread = calloc(p->n_threads + 1, sizeof(*s->of_thread));
	s->last_ts = calloc(p->n_threads + 1, sizeof(*s->last_ts));
	if (!s->of_frame || !s->of_thread || !s->last_ts)
		return -ENOMEM;
	write_header(s);
	return profile_each_sample(p, from, write_sample, s, s->err);
}

/* More text than this is worth a warning. */
#define MUCH_TEXT (1ull << 30)

static size_t bytes_of_frame(const struct profile *p, uint32_t frame)
{
	struct function f;

	function_of_frame(p, frame, &f);
	return strlen("\t0000000000000000  ()\n") + strlen(f.name) + strlen(function_place(&f));
}

int perf_script_warn(const struct profile *p, const struct export_options *opts, struct buf *text)
{
	uint64_t bytes;
	int r = forecast_bytes(
		p, opts->filter,
		strlen("thread 1000/1000 [000] 1000.000000:    1000000 cpu-clock: \n\n"),
		bytes_of_frame, &bytes);

	if (!r && bytes > MUCH_TEXT)
		buf_addf(
			text,
			"each sample is written with its stack, about %s in all. --from, --to or a "
			"filter takes a part",
			num_bytes(bytes).s);
	return r;
}

int export_perf_script(const struct profile *p, const struct export_options *opts, struct buf *out,
		       struct err *err)
{
	const struct profile_event *event = profile_event(p);
	struct perf_script s = {
		.profile = p,
		.event = event_is_cpu(event) ? "cpu-clock" : event->name,
		.out = out,
		.err = err,
	};
	int r = shown_init(p, opts->filter, &s.shown);

	if (!r)
		r = write_all(&s, &opts->replay);
	perf_script_deinit(&s);
	if (!r && buf_failed(out))
		r = -ENOMEM;
	return export_error(r, err);
}
