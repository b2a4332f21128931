/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc is listed again and again until nothing new is in it: a process that is not yet followed
 * may fork after the list was made, and its child is in the next one. What is followed is reported
 * when it forks, so the lists end: a target that forks without end makes no new strangers.
 */
#include "sample/descendants.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/stop.h"
#include "sample/collector_state.h"
#include "target/process.h"

/* Parents are read one after the other: with pids that are used again they could be a circle. */
#define MAX_GENERATIONS 1000

static bool is_followed(const struct collector *c, pid_t pid)
{
	const struct tracked_process *p = process_table_find(&c->table, pid);

	return p && !p->ended_ns;
}

/* Follow @pid, whose parent is followed. */
static int add(struct collector *c, pid_t pid, bool *added, struct err *err)
{
	struct tracked_process *p;
	int r;

	r = life_add(c, pid, 0, false, &p, NULL);
	if (!r) {
		*added = true;
		r = find_ruby(c, p, NULL, 0, NULL);
	}
	return r == -ENOMEM ? err_oom(err) : 0;
}

static int add_children(struct collector *c, const pid_t *pids, size_t n, bool *added,
			struct err *err)
{
	pid_t parent;
	int r = 0;

	for (size_t i = 0; i < n && !r && !stop_overdue(); i++) {
		if (pids[i] == getpid() || is_followed(c, pids[i]) ||
		    process_parent(pids[i], &parent) || !is_followed(c, parent))
			continue;
		r = add(c, pids[i], added, err);
	}
	return r;
}

bool descendants_have_ruby(const struct collector *c, pid_t pid)
{
	const struct tracked_process *p, *ancestor;
	unsigned int generations;

	LIST_FOREACH(p, &c->table.list, link) {
		ancestor = p->vm ? p : NULL;
		for (generations = 0; ancestor && generations < MAX_GENERATIONS; generations++) {
			if (ancestor->info.ppid == pid)
				return true;
			ancestor = process_table_find(&c->table, ancestor->info.ppid);
		}
	}
	return false;
}

int descendants_add(struct collector *c, struct err *err)
{
	bool added = true;
	int r = 0;

	while (added && !r && !stop_overdue()) {
		_cleanup_free_ pid_t *pids = NULL;
		size_t n;

		added = false;
		r = process_list(&pids, &n, err);
		if (!r)
			r = add_children(c, pids, n, &added, err);
	}
	return r;
}

/* The outermost ancestor of @p that is not in the recording; or itself. */
static struct tracked_process *unrecorded_ancestor(const struct collector *c,
						   struct tracked_process *p)
{
	struct tracked_process *parent;

	for (unsigned int i = 0; i < MAX_GENERATIONS; i++) {
		parent = process_table_find(&c->table, p->info.ppid);
		if (!parent || parent->id != PROFILE_NONE)
			break;
		p = parent;
	}
	return p;
}

int descendants_record(struct collector *c, struct tracked_process *p)
{
	int r = 0;

	while (p->id == PROFILE_NONE && !r)
		r = life_record(c, unrecorded_ancestor(c, p));
	return r;
}
