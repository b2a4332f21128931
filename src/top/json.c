/* SPDX-License-Identifier: GPL-2.0-only */
#include "top/json.h"

#include <errno.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "top/model.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/label.h"
#include "view/request.h"
#include "view/state.h"

static const char *str(const struct profile *p, uint32_t id)
{
	return profile_str(p, id);
}

static void process_members(struct json *j, const struct profile *p, const struct flat_row *row)
{
	const struct profile_process *q = &p->processes[row->id];

	json_u64(j, "pid", q->pid);
	json_str(j, "command", str(p, q->cmdline));
	json_str(j, "ruby", str(p, q->ruby_version));
	if (str(p, q->container)[0])
		json_str(j, "container", str(p, q->container));
	json_bool(j, "ended", q->exited);
}

static void thread_members(struct json *j, const struct profile *p, const struct flat_row *row)
{
	const struct profile_thread *t = &p->threads[row->id];

	json_u64(j, "pid", p->processes[t->process].pid);
	json_u64(j, "tid", t->tid);
	json_str(j, "name", str(p, t->name));
}

static void request_members(struct json *j, const struct profile *p, const struct flat_row *row)
{
	json_str(j, "framework", request_framework(p, row->id));
	json_str(j, "request", request_label(p, row->id));
}

static void method_members(struct json *j, const struct profile *p, const struct flat_row *row)
{
	const struct profile_frame *f = &p->frames[row->frame];

	json_str(j, "kind", frame_kind_name(f->kind));
	json_str(j, "label", label_frame(p, row->frame));
	/* File and line of a C function are those of its caller. */
	json_str(j, "path", f->kind == FRAME_CFUNC ? "" : str(p, f->file));
	json_u64(j, "line", f->kind == FRAME_CFUNC ? 0 : f->func_line);
}

static void state_members(struct json *j, const struct profile *p, const struct flat_row *row)
{
	(void)p;
	json_str(j, "state", state_word(row->id & STATE_MASK));
	json_bool(j, "holds_gvl", row->id & STATE_HELD);
	json_bool(j, "gvl_turn", row->id & STATE_TURN);
}

struct list {
	const char *key;
	enum flat_by by;
	void (*members)(struct json *j, const struct profile *p, const struct flat_row *row);
	bool has_total;
};

static int add_list(struct json *j, const struct profile *p, const struct list *list,
		    const struct top_json_options *opts)
{
	const struct view_filter f = { .stack = opts->native ? STACK_MIXED : STACK_RUBY };
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int r = flat_build(p, &f, list->by, FLAT_SORT_SELF, &flat);

	if (r)
		return r;
	json_array_begin(j, list->key);
	for (size_t i = 0; i < flat.n_rows && (!opts->max_rows || i < opts->max_rows); i++) {
		const struct flat_row *row = &flat.rows[i];

		json_object_begin(j, NULL);
		list->members(j, p, row);
		json_u64(j, "samples", row->samples);
		json_u64(j, list->has_total ? "self_ns" : "ns", json_clamp(row->self_value));
		if (list->has_total)
			json_u64(j, "total_ns", json_clamp(row->total_value));
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

static int add_lists(struct json *j, struct window *w, const struct top_json_options *opts)
{
	static const struct list lists[] = {
		{ "processes", FLAT_BY_PROCESS, process_members, false },
		{ "threads", FLAT_BY_THREAD, thread_members, false },
		{ "requests", FLAT_BY_REQUEST, request_members, false },
		{ "methods", FLAT_BY_FUNCTION, method_members, true },
	};
	static const struct list states = { "states", FLAT_BY_STATE, state_members, false };
	const struct profile *p;
	int r = top_profile(w, opts->range, 0, &p);

	if (r)
		return r;
	json_u64(j, "samples", p->n_samples);
	json_u64(j, "cpu_ns", json_clamp(p->totals.cpu_sampled_ns));
	json_u64(j, "gc_ns", json_clamp(p->totals.gc_ns));
	json_u64(j, "gc_unknown_ns", json_clamp(p->totals.gc_unknown_ns));
	json_u64(j, "lost", json_clamp(p->totals.lost));
	for (size_t i = 0; i < ARRAY_SIZE(lists) && !r; i++)
		r = add_list(j, p, &lists[i], opts);
	if (!r && opts->states)
		r = top_profile(w, opts->range, PROFILE_NONE, &p);
	if (!r && opts->states)
		r = add_list(j, p, &states, opts);
	return r;
}

int top_json(struct window *w, const struct top_json_options *opts, struct buf *out)
{
	struct json j = JSON_INIT(out);
	int r;

	json_object_begin(&j, NULL);
	json_u64(&j, "time_ns", opts->start_realtime_ns + opts->range.from * NSEC_PER_SEC);
	json_u64(&j, "duration_ns", opts->duration_ns);
	r = add_lists(&j, w, opts);
	json_object_end(&j);
	buf_addch(out, '\n');
	return r || buf_failed(out) ? -ENOMEM : 0;
}
