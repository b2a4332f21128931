/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/label.h"
#include "view/stack_forest.h"

size_t request_kinds(const struct profile *p)
{
	return p->request_kinds.count + 1;
}

uint32_t request_shown_of(const struct profile *p, const struct profile_aggregate *a)
{
	return profile_stack_not_recorded(p, a->stack) ? (uint32_t)request_kinds(p) : a->request;
}

const char *request_label(const struct profile *p, uint32_t kind)
{
	const char *name;

	if (!kind)
		return "[no request]";
	if (kind == request_kinds(p))
		return LABEL_NOT_RECORDED;
	name = profile_str(p, profile_request_kind(p, kind)->name);
	return *name ? name : "[unknown request]";
}

const char *request_framework(const struct profile *p, uint32_t kind)
{
	return kind && kind < request_kinds(p)
		       ? profile_str(p, profile_request_kind(p, kind)->framework)
		       : "";
}

bool request_is_of_server(const struct profile *p, uint32_t kind)
{
	static const char *const servers[] = { "puma", "falcon", "unicorn" };
	const char *framework = request_framework(p, kind);

	for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
		if (!strcmp(framework, servers[i]))
			return true;
	return false;
}

static int compare_kinds(const void *a, const void *b, void *arg)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct profile *p = arg;
	int diff = strcmp(request_label(p, x), request_label(p, y));

	if (!diff)
		diff = strcmp(request_framework(p, x), request_framework(p, y));
	return diff ? diff : (x > y) - (x < y);
}

int request_ranks(const struct profile *p, uint32_t **ret)
{
	size_t n = request_kinds(p) + 1;
	_cleanup_free_ uint32_t *sorted = calloc(n, sizeof(*sorted));
	_cleanup_free_ uint32_t *ranks = calloc(n, sizeof(*ranks));

	if (!sorted || !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, n, sizeof(*sorted), compare_kinds, (void *)p);
	for (size_t i = 0; i < n; i++)
		ranks[sorted[i]] = (uint32_t)i;
	*ret = take_ptr(ranks);
	return 0;
}

int request_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat)
{
	size_t n = request_kinds(p) + 1;
	_cleanup_free_ struct flat_row *rows = calloc(n, sizeof(*rows));

	if (!p->by_request)
		return -EINVAL;
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const struct view_sum sum = view_sum_at(p, i);

		if (!view_selected(sel, a))
			continue;
		flat_add_self(&rows[request_shown_of(p, a)], &sum);
		flat_add_total(&rows[request_shown_of(p, a)], &sum);
	}
	return flat_add_rows(flat, rows, n);
}
