/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/thread_series.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "profile/profile.h"
#include "view/filter.h"

static void add_pattern(const char *name, struct buf *out)
{
	bool is_line = false;

	for (const char *s = name; *s; s++) {
		const bool in_number = s > name && isdigit((unsigned char)s[-1]);

		if (!isdigit((unsigned char)*s)) {
			buf_addch(out, *s);
			continue;
		}
		if (!in_number)
			is_line = s > name && s[-1] == ':';
		if (is_line)
			buf_addch(out, *s);
		else if (!in_number)
			buf_addch(out, '*');
	}
}

/* What threads of one series have in common. */
static void add_key(const struct profile *p, const struct profile_thread *thread, struct buf *out)
{
	buf_addf(out, "%u ", thread->process);
	add_pattern(profile_str(p, thread->name), out);
}

static int find(const struct profile *p, const bool *selected, struct thread_series *series)
{
	_cleanup_intern_ struct intern keys = INTERN_INIT;
	_cleanup_free_ uint32_t *first = calloc(p->n_threads + 1, sizeof(*first)); /* by key */
	_cleanup_buf_ struct buf key = BUF_INIT;

	if (!first)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_threads; i++) {
		uint32_t id;
		bool is_new;

		series[i].first = i;
		if (!selected[i])
			continue;
		buf_reset(&key);
		add_key(p, &p->threads[i], &key);
		if (buf_failed(&key) || intern_add(&keys, buf_str(&key), key.len, &id, &is_new))
			return -ENOMEM;
		if (is_new)
			first[id] = i;
		series[i].first = first[id];
		series[first[id]].n++;
	}
	return 0;
}

int thread_series_find(struct profile *p, const struct view_filter *f)
{
	_cleanup_free_ struct thread_series *series = calloc(p->n_threads + 1, sizeof(*series));
	_cleanup_free_ bool *selected = calloc(p->n_threads + 1, sizeof(*selected));
	_cleanup_view_selection_ struct view_selection *sel = NULL;

	if (!series || !selected || view_selection_new(p, f, &sel))
		return -ENOMEM;
	view_selected_threads(sel, selected);
	if (find(p, selected, series))
		return -ENOMEM;
	free(p->series);
	p->series = take_ptr(series);
	return 0;
}

uint32_t thread_series_count(const struct profile *p, uint32_t thread)
{
	return p->series ? p->series[thread].n : 1;
}

void thread_series_name(const struct profile *p, uint32_t thread, struct buf *out)
{
	const char *name = profile_str(p, p->threads[thread].name);

	if (thread_series_count(p, thread) > 1)
		add_pattern(name, out);
	else
		buf_addstr(out, name);
}
