/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/origin.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "profile/profile.h"

/* ", ruby 3.1.2, 3.3.6" */
static void add_rubies(const struct profile *p, struct buf *out)
{
	_cleanup_free_ uint32_t *versions = NULL;
	size_t n;

	if (profile_rubies(p, &versions, &n)) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "%s%s", i ? ", " : ", ruby ", profile_str(p, versions[i]));
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
