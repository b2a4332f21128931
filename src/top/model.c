/* SPDX-License-Identifier: GPL-2.0-only */
#include "top/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "profile/reason.h"
#include "profile/sink.h"
#include "top/model_tree.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/label.h"
#include "view/request.h"
#include "view/state.h"

void top_model_deinit(struct top_model *m)
{
	free(m->rows);
	buf_deinit(&m->text);
	*m = (struct top_model) { 0 };
}

/* ---- rows ---- */

size_t top_text(struct top_model *m, const char *s)
{
	const size_t at = m->text.len;

	buf_addstr(&m->text, s);
	buf_addch(&m->text, '\0');
	return at;
}

int top_add_row(struct top_model *m, const struct top_row *row)
{
	int r = array_reserve(m->rows, m->cap_rows, m->n_rows + 1);

	if (r || buf_failed(&m->text))
		return -ENOMEM;
	m->rows[m->n_rows++] = *row;
	return 0;
}

bool top_matches(const struct top_model *m, const struct top_row *row,
		 const struct top_choice *choice)
{
	return !choice->filter[0] || strcasestr(top_label(m, row), choice->filter) ||
	       strcasestr(top_where(m, row), choice->filter);
}

/* ---- lists ---- */

static void process_row(struct top_model *m, const struct profile *p, uint32_t process,
			struct top_row *row)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	const struct profile_process *q = &p->processes[process];

	label_process(p, process, &name);
	row->label = top_text(m, buf_str(&name));
	buf_reset(&name);
	if (profile_str(p, q->ruby_version)[0])
		buf_addf(&name, "ruby %s", profile_str(p, q->ruby_version));
	if (profile_str(p, q->container)[0]) {
		buf_addstr(&name, name.len ? " in " : "in ");
		label_container(p, q->container, &name);
	}
	if (q->exited)
		buf_addstr(&name, name.len ? ", ended" : "ended");
	row->where = top_text(m, buf_str(&name));
	row->pid = q->pid;
	row->key = q->pid + (q->start_ticks << 24);
}

static void thread_row(struct top_model *m, const struct profile *p, uint32_t thread,
		       struct top_row *row)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	const struct profile_thread *t = &p->threads[thread];

	label_thread(p, thread, &name);
	row->label = top_text(m, buf_str(&name));
	buf_reset(&name);
	label_process(p, t->process, &name);
	row->where = top_text(m, buf_str(&name));
	row->pid = p->processes[t->process].pid;
	row->tid = t->tid;
	row->key = row->tid + ((uint64_t)row->pid << 32);
}

void top_frame_text(struct top_model *m, const struct profile *p, uint32_t frame,
		    struct top_row *row)
{
	_cleanup_buf_ struct buf where = BUF_INIT;
	const struct profile_frame *f = &p->frames[frame];
	const char *file = profile_str(p, f->file);

	/* File and line of a C function are those of its caller. */
	if (f->kind == FRAME_CFUNC)
		buf_addstr(&where, "C");
	else if (*file && f->func_line)
		buf_addf(&where, "%s:%u", file, f->func_line);
	else if (*file)
		buf_addstr(&where, file);
	else
		label_package(p, frame, &where);
	row->label = top_text(m, label_frame(p, frame));
	row->where = top_text(m, buf_str(&where));
	row->key = hash_bytes(buf_str(&where), where.len) * 31 +
		   hash_bytes(label_frame(p, frame), strlen(label_frame(p, frame)));
}

static void state_row(struct top_model *m, uint32_t id, struct top_row *row)
{
	row->label = top_text(m, state_text(id & STATE_MASK));
	row->where = top_text(m, state_and_gvl(id));
	row->key = id + 1;
}

static void request_row(struct top_model *m, const struct profile *p, uint32_t kind,
			struct top_row *row)
{
	const char *name = request_label(p, kind);

	row->label = top_text(m, name);
	row->where = top_text(m, request_framework(p, kind));
	row->key = hash_bytes(name, strlen(name));
}

static int add_flat_row(struct top_model *m, const struct profile *p, const struct flat_row *from,
			const struct top_choice *choice)
{
	struct top_row row = { .self_ns = from->self_value, .total_ns = from->total_value };
	const size_t text = m->text.len;

	switch (choice->view) {
	case TOP_PROCESSES:
		process_row(m, p, from->id, &row);
		break;
	case TOP_THREADS:
		thread_row(m, p, from->id, &row);
		break;
	case TOP_REQUESTS:
		request_row(m, p, from->id, &row);
		break;
	case TOP_STATES:
		state_row(m, from->id, &row);
		break;
	default:
		top_frame_text(m, p, from->frame, &row);
	}
	row.key |= !row.key;
	if (buf_failed(&m->text))
		return -ENOMEM;
	if (top_matches(m, &row, choice))
		return top_add_row(m, &row);
	m->n_hidden++;
	m->text.len = text;
	return 0;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct top_row *x = a, *y = b;
	const struct top_model *m = arg;

	return strcasecmp(top_label(m, x), top_label(m, y));
}

static int build_list(struct top_model *m, const struct profile *p, const struct view_filter *f,
		      const struct top_choice *choice)
{
	static const enum flat_by by[TOP_VIEWS] = {
		[TOP_PROCESSES] = FLAT_BY_PROCESS, [TOP_THREADS] = FLAT_BY_THREAD,
		[TOP_REQUESTS] = FLAT_BY_REQUEST,  [TOP_METHODS] = FLAT_BY_FUNCTION,
		[TOP_STATES] = FLAT_BY_STATE,
	};
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	int r;

	r = flat_build(p, f, by[choice->view],
		       choice->sort == TOP_SORT_TOTAL ? FLAT_SORT_TOTAL : FLAT_SORT_SELF, &flat);
	for (size_t i = 0; i < flat.n_rows && !r; i++)
		r = add_flat_row(m, p, &flat.rows[i], choice);
	if (!r && choice->sort == TOP_SORT_NAME)
		qsort_r(m->rows, m->n_rows, sizeof(*m->rows), compare_rows, m);
	return r;
}

/* ---- all ---- */

struct window_range top_range(const struct window *w, const struct top_choice *choice)
{
	struct window_range has = window_seconds(w);
	const uint64_t n = has.to - has.from;

	has.to -= choice->back < n ? choice->back : n;
	if (choice->seconds && has.to - has.from > choice->seconds)
		has.from = has.to - choice->seconds;
	return has;
}

/* The event whose time the rows tell. */
static uint32_t event_of(const struct top_choice *choice)
{
	return choice->view == TOP_STATES ? PROFILE_NONE : 0;
}

/* The stack that is shown where there are only frames that are not: see stack_mode_instead(). */
static int define_instead(struct sink *s)
{
	const enum frame_reason reason = REASON_NATIVE_THREAD;
	const char *label = frame_reason_label(reason);
	struct profile_frame def = { .kind = frame_reason_kind(reason),
				     .module = PROFILE_NONE,
				     .reason = reason };
	uint32_t id;
	int r;

	r = sink_string(s, label, strlen(label), &def.name);
	if (!r)
		r = sink_frame(s, &def, &id);
	return r ? r : sink_stack(s, 0, id, &id);
}

int top_profile(struct window *w, struct window_range range, uint32_t event,
		const struct profile **ret)
{
	int r = define_instead(window_sink(w));

	return r ? r : window_profile(w, range, event, ret);
}

int top_model_build(struct top_model *m, struct window *w, const struct top_choice *choice)
{
	struct view_filter f = { .stack = choice->native ? STACK_MIXED : STACK_RUBY };
	const struct profile *p;
	pid_t pid = choice->pid, tid = choice->tid;
	int r;

	m->n_rows = m->n_hidden = 0;
	buf_reset(&m->text);
	m->range = top_range(w, choice);
	m->window_ns = (m->range.to - m->range.from) * NSEC_PER_SEC;
	if (pid) {
		f.pids = &pid;
		f.n_pids = 1;
	}
	if (tid) {
		f.tids = &tid;
		f.n_tids = 1;
	}
	r = choice->request ? top_match_only(choice->request, &f.request, &f.has_request) : 0;
	if (!r)
		r = top_profile(w, m->range, event_of(choice), &p);
	if (r)
		goto out;
	m->samples = p->n_samples;
	m->only_waits = !m->samples && p->totals.samples;
	m->cpu_ns = p->totals.cpu_sampled_ns;
	m->gc_ns = p->totals.gc_ns;
	m->gc_unknown_ns = p->totals.gc_unknown_ns;
	m->lost = p->totals.lost;
	r = choice->view == TOP_TREE ? top_build_tree(m, p, &f, choice)
				     : build_list(m, p, &f, choice);
out:
	if (f.has_request)
		regfree(&f.request);
	return r == -E2BIG ? -ENOMEM : r;
}
