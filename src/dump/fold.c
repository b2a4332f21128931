/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* ---- groups ---- */

static int compare_threads(const void *a, const void *b, void *arg)
{
	const struct fold_thread *threads = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int diff = strcmp(threads[x].text, threads[y].text);

	return diff ? diff : (x > y) - (x < y);
}

struct fold_order {
	const struct fold_thread *threads;
	const size_t *of; /* struct fold.threads */
};

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct fold_order *order = arg;
	size_t x = order->of[((const struct fold_group *)a)->first];
	size_t y = order->of[((const struct fold_group *)b)->first];
	int diff = order->threads[x].idle - order->threads[y].idle;

	return diff ? diff : (x > y) - (x < y);
}

int fold_threads(const struct fold_thread *threads, size_t n, bool each, struct fold *ret)
{
	struct fold f = { .threads = calloc(n + 1, sizeof(*f.threads)),
			  .groups = calloc(n + 1, sizeof(*f.groups)) };
	struct fold_order order = { .threads = threads, .of = f.threads };
	size_t i;

	if (!f.threads || !f.groups) {
		fold_deinit(&f);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		f.threads[i] = i;
	qsort_r(f.threads, n, sizeof(*f.threads), compare_threads, (void *)threads);
	for (i = 0; i < n; i++) {
		if (each || !i ||
		    strcmp(threads[f.threads[i - 1]].text, threads[f.threads[i]].text))
			f.groups[f.n_groups++].first = i;
		f.groups[f.n_groups - 1].n++;
	}
	qsort_r(f.groups, f.n_groups, sizeof(*f.groups), compare_groups, &order);
	*ret = f;
	return 0;
}

void fold_deinit(struct fold *f)
{
	free(f->threads);
	free(f->groups);
	*f = (struct fold) { .n_groups = 0 };
}

/* ---- names ---- */

#define MAX_DIGITS 9

/* How many bytes of @name stand before the number at its end; all if there is none. */
static size_t stem_of(const char *name)
{
	size_t len = strlen(name), stem = len;

	while (stem && len - stem < MAX_DIGITS && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	/* The line in "app.rb:12", the name that Ruby gives a thread, is no number of it. */
	return stem && name[stem - 1] == ':' ? len : stem;
}

/* The digits at the end of a name, of which stem_of() leaves few enough. */
static unsigned int number_of(const char *digits)
{
	unsigned int n = 0;

	for (; *digits; digits++)
		n = 10 * n + (unsigned int)(*digits - '0');
	return n;
}

static bool same_stem(const char *a, const char *b)
{
	size_t stem = stem_of(a);

	return stem == stem_of(b) && !strncmp(a, b, stem) && !a[stem] == !b[stem];
}

/* Append the first name and those after it that have its stem, marking them in @done. */
static void add_series(struct buf *out, const char *const *names, size_t n, bool *done)
{
	const char *min = names[0], *max = names[0];
	size_t i, stem = stem_of(names[0]);

	for (i = 0; i < n; i++) {
		if (done[i] || !same_stem(names[0], names[i]))
			continue;
		done[i] = true;
		if (number_of(names[i] + stem) < number_of(min + stem))
			min = names[i];
		if (number_of(names[i] + stem) > number_of(max + stem))
			max = names[i];
	}
	buf_addf(out, "\"%s", min);
	if (strcmp(min, max))
		buf_addf(out, " … %s", max + stem);
	buf_addch(out, '"');
}

void fold_add_names(struct buf *out, const char *const *names, size_t n)
{
	_cleanup_free_ bool *done = calloc(n + 1, sizeof(*done));
	size_t i, series = 0, left = 0;

	if (!done) {
		out->failed = true;
		return;
	}
	for (i = 0; i < n; i++) {
		if (done[i])
			continue;
		if (series == FOLD_NAMES_MAX) {
			left++;
			continue;
		}
		if (series++)
			buf_addstr(out, ", ");
		add_series(out, names + i, n - i, done + i);
	}
	if (left)
		buf_addf(out, " and %zu other%s", left, left == 1 ? "" : "s");
}

void fold_add_ids(struct buf *out, const pid_t *ids, size_t n)
{
	size_t i, last;

	for (i = 0; i < n; i = last + 1) {
		for (last = i; last + 1 < n && ids[last + 1] == ids[last] + 1; last++)
			;
		buf_addf(out, i ? ", %d" : "%d", (int)ids[i]);
		if (last > i)
			buf_addf(out, last > i + 1 ? "-%d" : ", %d", (int)ids[last]);
	}
}
