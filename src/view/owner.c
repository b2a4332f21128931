/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/label.h"
#include "view/request.h"
#include "view/stack_forest.h"
#include "view/thread_series.h"

size_t owner_limit(const struct profile *p, enum owner_kind kind)
{
	switch (kind) {
	case OWNER_PROCESS:
		return p->n_processes + 1;
	case OWNER_THREAD:
		return p->n_threads + 1;
	case OWNER_REQUEST:
		return request_kinds(p) + 1;
	default:
		return p->strings.count;
	}
}

static uint32_t owner_not_recorded(const struct profile *p, enum owner_kind kind)
{
	return kind == OWNER_PROCESS || kind == OWNER_THREAD ? (uint32_t)owner_limit(p, kind) - 1
							     : 0;
}

uint32_t owner_of_thread(const struct profile *p, enum owner_kind kind, uint32_t thread)
{
	uint32_t process = p->threads[thread].process;

	switch (kind) {
	case OWNER_PROCESS:
		return process;
	case OWNER_CONTAINER:
		return p->processes[process].container;
	case OWNER_RUBY:
		return p->processes[process].ruby_version;
	default:
		return p->series ? p->series[thread].first : thread;
	}
}

uint32_t owner_of_aggregate(const struct profile *p, enum owner_kind kind,
			    const struct profile_aggregate *a)
{
	if (kind == OWNER_REQUEST)
		return request_shown_of(p, a);
	if (profile_stack_not_recorded(p, a->stack))
		return owner_not_recorded(p, kind);
	return owner_of_thread(p, kind, a->thread);
}

void owner_label(const struct profile *p, enum owner_kind kind, uint32_t id, struct buf *out)
{
	switch (kind) {
	case OWNER_PROCESS:
		if (id == p->n_processes) {
			buf_addstr(out, LABEL_NO_RECORDED_PROCESS);
			return;
		}
		label_process(p, id, out);
		buf_addstr(out, " (");
		label_pid(p, id, out);
		buf_addch(out, ')');
		return;
	case OWNER_THREAD:
		if (id == p->n_threads) {
			buf_addstr(out, LABEL_NOT_RECORDED);
			return;
		}
		if (thread_series_count(p, id) > 1) {
			thread_series_name(p, id, out);
			buf_addf(out, " (%" PRIu32 ")", thread_series_count(p, id));
			return;
		}
		label_thread(p, id, out);
		buf_addf(out, " (tid %" PRIu32 ")", p->threads[id].tid);
		return;
	case OWNER_CONTAINER:
		label_container(p, id, out);
		return;
	case OWNER_REQUEST:
		buf_addstr(out, request_label(p, id));
		return;
	case OWNER_RUBY:
		buf_addstr(out, id ? "ruby " : "");
		label_ruby(p, id, out);
		return;
	}
}

/* ---- their order ---- */

struct entry {
	size_t name;	 /* offset into the names */
	uint32_t number; /* pid or tid */
	uint32_t id;
};

static int compare_entries(const void *a, const void *b, void *arg)
{
	const struct entry *x = a, *y = b;
	const char *names = arg;
	int diff = strcmp(names + x->name, names + y->name);

	if (!diff)
		diff = (x->number > y->number) - (x->number < y->number);
	return diff ? diff : (x->id > y->id) - (x->id < y->id);
}

/* Append the name that decides and the NUL behind it. */
static struct entry entry_of(const struct profile *p, enum owner_kind kind, uint32_t id,
			     struct buf *names)
{
	struct entry entry = { .name = names->len, .id = id };

	switch (kind) {
	case OWNER_PROCESS:
		label_process(p, id, names);
		entry.number = p->processes[id].pid;
		break;
	case OWNER_THREAD:
		label_thread(p, id, names);
		entry.number = p->threads[id].tid;
		break;
	default:
		buf_addstr(names, profile_str(p, id));
	}
	buf_addch(names, '\0');
	return entry;
}

int owner_ranks(const struct profile *p, enum owner_kind kind, uint32_t **ret)
{
	size_t limit = owner_limit(p, kind), n = 0;
	_cleanup_free_ struct entry *entries = calloc(p->n_threads + 1, sizeof(*entries));
	_cleanup_free_ uint32_t *ranks = calloc(limit + 1, sizeof(*ranks));
	_cleanup_free_ bool *seen = calloc(limit + 1, sizeof(*seen));
	_cleanup_buf_ struct buf names = BUF_INIT;

	if (kind == OWNER_REQUEST)
		return request_ranks(p, ret);
	if (!entries || !ranks || !seen)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_threads; i++) {
		uint32_t id = owner_of_thread(p, kind, (uint32_t)i);

		if (!seen[id])
			entries[n++] = entry_of(p, kind, id, &names);
		seen[id] = true;
	}
	if (buf_failed(&names))
		return -ENOMEM;
	if (n)
		qsort_r(entries, n, sizeof(*entries), compare_entries, names.data);
	if (kind == OWNER_PROCESS || kind == OWNER_THREAD)
		ranks[owner_not_recorded(p, kind)] = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		ranks[entries[i].id] = (uint32_t)i;
	*ret = take_ptr(ranks);
	return 0;
}

/* ---- rows ---- */

/* Behind those of all threads, the sum of who is not recorded. */
static void weigh_threads(const struct profile *p, const struct view_selection *sel,
			  struct view_sum *sums)
{
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const struct view_sum sum = view_sum_at(p, i);

		if (view_selected(sel, a))
			view_sum_add(&sums[owner_of_aggregate(p, OWNER_THREAD, a)], &sum);
	}
}

/* Count the processes of each row that have samples, where a row may have several. */
static int count_processes(const struct profile *p, enum owner_kind kind,
			   const struct view_sum *threads, struct flat_row *rows)
{
	_cleanup_free_ bool *seen = calloc(p->n_processes + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	if (kind != OWNER_CONTAINER && kind != OWNER_RUBY)
		return 0;
	for (size_t i = 0; i < p->n_threads; i++) {
		uint32_t process = p->threads[i].process;
		struct flat_row *row = &rows[owner_of_thread(p, kind, (uint32_t)i)];

		if (!threads[i].samples || seen[process])
			continue;
		seen[process] = true;
		if (!row->n_processes++ || process < row->process)
			row->process = process;
	}
	return 0;
}

int owner_rows(const struct profile *p, const struct view_selection *sel, enum owner_kind kind,
	       struct flat *flat)
{
	size_t n = owner_limit(p, kind);
	_cleanup_free_ struct view_sum *threads = calloc(p->n_threads + 1, sizeof(*threads));
	_cleanup_free_ struct flat_row *rows = calloc(n + 1, sizeof(*rows));

	if (!threads || !rows)
		return -ENOMEM;
	weigh_threads(p, sel, threads);
	if (count_processes(p, kind, threads, rows))
		return -ENOMEM;
	for (size_t i = 0; i <= p->n_threads; i++) {
		struct flat_row *row =
			&rows[i < p->n_threads ? owner_of_thread(p, kind, (uint32_t)i)
					       : owner_not_recorded(p, kind)];

		flat_add_self(row, &threads[i]);
		flat_add_total(row, &threads[i]);
	}
	return flat_add_rows(flat, rows, n);
}
