/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/origin.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "profile/profile.h"

/* ", ruby 3.1.2, 3.3.6": each version once. */
static void add_rubies(const struct profile *p, struct buf *out)
{
	_cleanup_free_ bool *seen = calloc(p->strings.count + 1, sizeof(*seen));
	const char *before = ", ruby ";

	if (!seen) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < p->n_processes; i++) {
		const uint32_t version = p->processes[i].ruby_version;

		if (!version || seen[version])
			continue;
		seen[version] = true;
		buf_addf(out, "%s%s", before, profile_str(p, version));
		before = ", ";
	}
}

void origin_add(const struct profile *p, struct buf *out)
{
	const struct profile_totals *t = &p->totals;
	uint64_t first, last;

	profile_time_range(p, &first, &last);
	buf_addf(out, "%s", num_duration(last - first).s);
	add_rubies(p, out);
	buf_addf(out, ", %s", num_of(p->n_samples, "sample", "samples").s);
	buf_addf(out, " (%s truncated", num_count(t->truncated).s);
	buf_addf(out, ", %s unresolved", num_count(t->unresolved).s);
	buf_addf(out, ", %s failed)", num_count(t->failed).s);
	buf_addf(out, ", %s lost", num_count(t->lost).s);
}

void origin_add_json(const struct profile *p, struct json *j, const char *key)
{
	_cleanup_buf_ struct buf origin = BUF_INIT;

	origin_add(p, &origin);
	j->out->failed |= buf_failed(&origin);
	json_str(j, key, buf_str(&origin));
}
