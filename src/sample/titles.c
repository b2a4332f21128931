/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/titles.h"

#include "base/clock.h"
#include "base/stop.h"
#include "sample/collector_state.h"
#include "target/process.h"

static int read_again(struct collector *c, struct tracked_process *p)
{
	bool changed;
	int r;

	if (p->ended_ns || p->id == PROFILE_NONE)
		return 0;
	r = process_read_title(&p->info, &changed);
	return r || !changed ? r : life_record(c, p);
}

int titles_of_new(struct collector *c, uint64_t now)
{
	struct tracked_process *p;
	int r = 0;

	LIST_FOREACH(p, &c->table.list, link) {
		if (p->titled_ns == p->since_ns || now < p->since_ns + NSEC_PER_SEC)
			continue;
		p->titled_ns = p->since_ns;
		r = read_again(c, p);
		if (r)
			break;
	}
	return r;
}

int titles_at_end(struct collector *c)
{
	struct tracked_process *p;
	int r = 0;

	LIST_FOREACH(p, &c->table.list, link) {
		if (r || stop_overdue())
			break;
		r = read_again(c, p);
	}
	return r;
}
