/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/top_save.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "cmd/sampling.h"
#include "profile/recorder.h"
#include "sample/collector.h"

int top_save_to(const struct sampling *s, struct window *w, struct window_range range,
		uint64_t start_ns, uint64_t start_realtime_ns, const struct recorder_options *opts,
		struct profile_totals *totals, struct err *err)
{
	const uint64_t offset = range.from * NSEC_PER_SEC;
	const struct profile *p;
	struct profile_meta meta;
	struct collector_status status;
	struct utsname names;
	struct recorder *rec;
	int r = window_profile(w, range, 0, &p);

	if (r)
		return err_code(err, r);
	*totals = p->totals;
	sampling_meta(s, &names, &meta);
	collector_status(s->collector, &status);
	totals->lowest_hz = status.lowest_hz; /* of the window, or of before */
	meta.start_monotonic_ns = start_ns + offset;
	meta.start_realtime_ns = start_realtime_ns + offset;
	meta.by_second = 1;
	r = recorder_open(opts, &meta, &rec, err);
	if (r)
		return r;
	r = window_replay(w, range, recorder_sink(rec));
	if (!r)
		return recorder_close(rec, totals, err);
	if (!recorder_error(rec, err))
		err_code(err, r);
	recorder_close(rec, NULL, NULL);
	return r;
}

void top_save(const struct sampling *s, struct window *w, struct window_range range,
	      uint64_t start_ns, uint64_t start_realtime_ns, char *said, size_t size)
{
	const uint64_t seconds = start_realtime_ns / NSEC_PER_SEC + range.from;
	struct profile_totals totals = { 0 };
	char path[64];
	const struct recorder_options opts = { .path = path };
	struct err err = { 0 };

	snprintf(path, sizeof(path), "rbpf-top-%llu.data", (unsigned long long)seconds);
	if (top_save_to(s, w, range, start_ns, start_realtime_ns, &opts, &totals, &err))
		snprintf(said, size, "%s", err.msg);
	else
		snprintf(said, size, "saved %s to %s",
			 num_of(totals.samples, "sample", "samples").s, path);
}
