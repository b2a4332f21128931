/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which ids of the sink the collector holds. Those that are only kept to save asking the sink again
 * are forgotten instead.
 */
#include <string.h>

#include "sample/collector_state.h"

static void of_thread(struct tracked_thread *t, id_fn *fn, void *arg)
{
	fn(arg, ID_THREAD, &t->id);
	fn(arg, ID_REQUEST, &t->request);
	request_definition_ids(&t->request_def, fn, arg);
	waits_ids(t, fn, arg);
}

static void of_process(struct tracked_process *p, id_fn *fn, void *arg)
{
	struct tracked_thread *t;

	fn(arg, ID_PROCESS, &p->id);
	fn(arg, ID_PROCESS, &p->parent);
	if (p->cap_frame_ids)
		memset(p->frame_ids, 0, p->cap_frame_ids * sizeof(*p->frame_ids));
	tracked_process_forget_pushed(p);
	LIST_FOREACH(t, &p->thread_list, link)
		of_thread(t, fn, arg);
}

static void of_collector(void *holder, id_fn *fn, void *arg)
{
	struct collector *c = holder;
	struct tracked_process *p;

	if (c->native)
		native_forget_ids(c->native);
	stack_table_ids(&c->stacks, fn, arg);
	request_table_ids(&c->requests, fn, arg);
	LIST_FOREACH(p, &c->table.list, link)
		of_process(p, fn, arg);
}

struct id_holder collector_ids(struct collector *c)
{
	return (struct id_holder) { .each = of_collector, .holder = c };
}
