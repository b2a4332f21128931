/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that have just executed a program. A Ruby is found in one when it has used CPU time;
 * but a Ruby can be up before its first sample and wait from then on, or for long. So what executes
 * a Ruby is looked at by the clock, too, with pauses that double. Programs that embed one, and load
 * it later, have to be seen using CPU time.
 */
#include "base/stop.h"
#include "sample/collector_state.h"

#define LOOK_PAUSE (50 * NSEC_PER_MSEC) /* at first, and between two of all processes */
#define LOOK_UNTIL (5 * NSEC_PER_SEC)	/* after they began */

/* What lived no longer may have been a Ruby: it has to load its libraries before it is one. */
#define TOO_SHORT  (50 * NSEC_PER_MSEC)

void begun_note(struct collector *c, uint64_t ts)
{
	if (ts > c->begun_ns)
		c->begun_ns = ts;
}

bool begun_just_before(const struct tracked_process *p, uint64_t ts)
{
	return p->since_ns && ts < p->since_ns + TOO_SHORT;
}

/* Whether @p is to be looked at @now; it is not again before the next pause. */
static bool is_due(struct collector *c, struct tracked_process *p, uint64_t now)
{
	if (p->vm || p->ended_ns || p->let_go || !p->since_ns || now >= p->since_ns + LOOK_UNTIL)
		return false;
	if (p->begun_ns != p->since_ns) {
		p->begun_ns = p->since_ns;
		p->begun_look_ns = ruby_files_of_exe(&c->files, p->pid) == RUBY_FILE_OTHER
					   ? UINT64_MAX
					   : 0;
	}
	if (now < p->begun_look_ns)
		return false;
	p->begun_look_ns = now + (now - p->since_ns > LOOK_PAUSE ? now - p->since_ns : LOOK_PAUSE);
	return true;
}

int begun_poll(struct collector *c, uint64_t now)
{
	struct tracked_process *p;
	int r = 0;

	if (now >= c->begun_ns + LOOK_UNTIL || now < c->begun_look_ns)
		return 0;
	c->begun_look_ns = now + LOOK_PAUSE;
	LIST_FOREACH(p, &c->table.list, link) {
		if (r || stop_overdue())
			break;
		if (is_due(c, p, now))
			r = find_ruby_try_again(c, p);
	}
	return r;
}
