/* SPDX-License-Identifier: GPL-2.0-only */
/* What a recording is of, and how it was made: report --info. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "report/report.h"
#include "ui/summary.h"
#include "view/filter.h"
#include "view/label.h"

static const char *or_unknown(const char *s)
{
	return s && *s ? s : "unknown";
}

/* "event      cpu (ns), 10 ms a sample, 99 Hz", or "cpu (ns), 24 to 99 Hz" */
static void info_event(const struct profile *p, const struct profile_event *event, struct buf *out)
{
	buf_addf(out, "event      %s (%s)", event->name, value_unit_name(event->unit));
	if (event->period && !p->totals.lowest_hz)
		buf_addf(out, ", %s a sample", num_value(event->unit, event->period).s);
	if (p->meta.frequency && event_is_cpu(event))
		buf_addf(out, ", %s", num_frequency(p->totals.lowest_hz, p->meta.frequency).s);
	buf_addch(out, '\n');
}

static void info_meta(const struct profile *p, struct buf *out)
{
	const struct profile_meta *meta = &p->meta;
	time_t start = (time_t)(meta->start_realtime_ns / NSEC_PER_SEC);
	char when[40] = "unknown";
	struct tm tm;

	if (meta->start_realtime_ns && localtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %Z", &tm);
	buf_addf(out, "made by    rbpf %s\n", or_unknown(meta->rbpf_version));
	buf_addf(out, "command    %s\n", or_unknown(meta->command));
	buf_addf(out, "host       %s (%s %s, %s)\n", or_unknown(meta->hostname),
		 or_unknown(meta->kernel), or_unknown(meta->arch),
		 num_of(meta->cpus, "CPU", "CPUs").s);
	buf_addf(out, "start      %s\n", when);
	for (uint32_t i = 0; i < meta->n_events; i++)
		info_event(p, &meta->events[i], out);
}

/* What of the recording passes the filters. */
struct selected {
	bool *processes, *threads; /* by id; owned */
	uint64_t samples;
};

static void selected_deinit(struct selected *s)
{
	free(s->processes);
	free(s->threads);
}

static int selected_init(const struct report *r, struct selected *ret)
{
	const struct profile *p = &r->rec->profile;
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	size_t i;
	int failed;

	ret->processes = calloc(p->n_processes + 1, sizeof(*ret->processes));
	ret->threads = calloc(p->n_threads + 1, sizeof(*ret->threads));
	if (!ret->processes || !ret->threads)
		return -ENOMEM;
	failed = view_selection_new(p, r->filter, &sel);
	if (failed)
		return failed;
	ret->samples = view_selected_threads(sel, ret->threads).samples;
	for (i = 0; i < p->n_threads; i++)
		ret->processes[p->threads[i].process] |= ret->threads[i];
	/* Where nothing was filtered, also what has no samples. */
	if (ret->samples == p->n_samples) {
		memset(ret->processes, true, p->n_processes);
		memset(ret->threads, true, p->n_threads);
	}
	return 0;
}

/* "3", or "3 of 100,000" */
static void info_count(const char *title, const bool *selected, size_t n, struct buf *out)
{
	size_t chosen = 0, i;

	for (i = 0; i < n; i++)
		chosen += selected[i];
	buf_addf(out, "%-10s %s", title, num_count(chosen).s);
	if (chosen < n)
		buf_addf(out, " of %s", num_count(n).s);
	buf_addch(out, '\n');
}

/* What a process publishes of itself, an attribute a line. */
static void info_attributes(const char *attributes, struct buf *out)
{
	_cleanup_buf_ struct buf key = BUF_INIT, value = BUF_INIT;

	while (attributes_next(&attributes, &key, &value))
		buf_addf(out, "    %s = %s\n", buf_str(&key), buf_str(&value));
	out->failed |= buf_failed(&key) || buf_failed(&value);
}

static void info_processes(const struct profile *p, const struct selected *selected,
			   struct buf *out)
{
	size_t i;

	info_count("processes", selected->processes, p->n_processes, out);
	for (i = 0; i < p->n_processes; i++) {
		const struct profile_process *process = &p->processes[i];
		const char *version = profile_str(p, process->ruby_version);

		if (!selected->processes[i])
			continue;
		buf_addstr(out, "  ");
		label_pid(p, (uint32_t)i, out);
		buf_addf(out, "  %s%s  %s\n", *version ? "ruby " : "no ruby", version,
			 profile_str(p, process->cmdline));
		info_attributes(profile_str(p, process->attributes), out);
	}
	info_count("threads", selected->threads, p->n_threads, out);
}

/* Losses by reason; the total stands in the summary. */
static void info_lost(const struct profile *p, struct buf *out)
{
	uint64_t counts[LOST_REASON_COUNT] = { 0 };
	size_t i;

	for (i = 0; i < p->n_lost; i++)
		if (p->lost[i].reason < LOST_REASON_COUNT)
			counts[p->lost[i].reason] += p->lost[i].count;
	for (i = 0; i < LOST_REASON_COUNT; i++)
		if (counts[i])
			buf_addf(out, "  lost: %s %s\n", lost_reason_name(i),
				 num_count(counts[i]).s);
}

static void render_info(const struct report *r, const struct selected *selected, struct buf *out)
{
	const struct profile *p = &r->rec->profile;
	const struct summary_recording recording = report_summary_recording(r);

	buf_addstr(out, "recording  ");
	utf8_sanitise(out, r->rec->path, strlen(r->rec->path));
	buf_addf(out, " (%s)\n", r->rec->report.complete ? "complete" : "was not closed properly");
	if (r->rec->report.lost_bytes)
		buf_addf(out, "unusable   %s at its end\n", num_bytes(r->rec->report.lost_bytes).s);
	info_meta(p, out);
	buf_addf(out, "duration   %s\n", num_duration(recording.duration_ns).s);
	info_processes(p, selected, out);
	buf_addf(out, "stacks     %s of %s\n", num_count(p->n_stacks ? p->n_stacks - 1 : 0).s,
		 num_of(p->n_frames, "frame", "frames").s);
	summary_totals(&p->totals, &recording, out);
	report_native(r, out);
	info_lost(p, out);
}

int report_info(const struct report *r, struct buf *out, struct err *err)
{
	struct selected selected = { 0 };
	int ret = selected_init(r, &selected);

	if (ret) {
		err_code(err, ret);
	} else if (!selected.samples && r->rec->profile.n_samples) {
		ret = report_nothing(r, err);
	} else {
		render_info(r, &selected, out);
		ret = buf_failed(out) ? err_oom(err) : 0;
	}
	selected_deinit(&selected);
	return ret;
}
