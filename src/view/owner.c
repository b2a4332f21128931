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
#include "view/label.h"
#include "view/request.h"

size_t owner_limit(const struct profile *p, enum owner_kind kind)
{
	switch (kind) {
	case OWNER_PROCESS:
		return p->n_processes;
	case OWNER_THREAD:
		return p->n_threads;
	case OWNER_REQUEST:
		return request_kinds(p);
	default:
		return p->strings.count;
	}
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
		return thread;
	}
}

uint32_t owner_of_aggregate(const struct profile *p, enum owner_kind kind,
			    const struct profile_aggregate *a)
{
	return kind == OWNER_REQUEST ? a->request : owner_of_thread(p, kind, a->thread);
}

void owner_label(const struct profile *p, enum owner_kind kind, uint32_t id, struct buf *out)
{
	switch (kind) {
	case OWNER_PROCESS:
		label_process(p, id, out);
		buf_addstr(out, " (");
		label_pid(p, id, out);
		buf_addch(out, ')');
		return;
	case OWNER_THREAD:
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
	for (size_t i = 0; i < n; i++)
		ranks[entries[i].id] = (uint32_t)i;
	*ret = take_ptr(ranks);
	return 0;
}
