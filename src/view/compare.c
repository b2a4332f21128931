/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Intervals
 *
 * Samples come by chance, each standing for a value w, nearly the same for all of one recording.
 * The sum of a row then has the variance sum(w^2), which is estimated from the number of its
 * samples and the mean value of a sample in its recording. Recordings of different frequencies add
 * up so, too: a sum behaves like one of m = value^2 / variance samples, each of value^2 / m.
 *
 * Waits are no matter of chance: their exact time is added to both ends of the interval of the
 * rest.
 *
 * A share of the side's time is a proportion of the side's m samples. Its interval is Wilson's, as
 * in sum.c. A sum that is not a share is a Poisson count of its own m samples, with the score
 * interval
 *
 *	m + z^2 / 2 +- z * sqrt(m + z^2 / 4)
 *
 * of which the same holds: where there was no sample it is not 0 wide. The interval of the
 * difference of two such estimates is Newcombe's (Statistics in Medicine 17, 1998, method 10): the
 * distances from each estimate to its own limits, added as squares. For many samples it is the
 * familiar one, and it also holds where a method is on one side only.
 */
#include "view/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "view/filter.h"
#include "view/label.h"
#include "view/request.h"
#include "view/sum.h"
#include "view/totals.h"

void comparison_deinit(struct comparison *c)
{
	if (!c)
		return;
	intern_deinit(&c->keys);
	intern_deinit(&c->texts);
	free(c->rows);
	*c = (struct comparison)COMPARISON_INIT;
}

/* Whether a name says by itself what it names: "Foo#bar", "Foo.bar", "app/views/x.html.erb". */
static bool is_qualified(const char *name)
{
	return strpbrk(name, "#.") != NULL;
}

static void add_module(const struct profile *p, const struct profile_frame *f, struct buf *key)
{
	const char *name, *version;

	if (f->module == PROFILE_NONE)
		return;
	name = label_basename(profile_str(p, p->modules[f->module].path));
	version = strstr(name, ".so");
	buf_add(key, name, version ? (size_t)(version - name) : strlen(name));
}

/* Names have no control characters. */
void compare_key(const struct profile *p, uint32_t frame, struct buf *key)
{
	const struct profile_frame *f = &p->frames[frame];
	const char *name = profile_str(p, f->name);

	buf_reset(key);
	buf_addf(key, "%u\n%s\n", f->kind, name);
	if (f->kind == FRAME_NATIVE)
		add_module(p, f, key);
	else if (f->kind == FRAME_RUBY && !is_qualified(name))
		buf_addstr(key, label_basename(profile_str(p, f->file)));
}

static int add_row(struct comparison *c, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];
	struct compare_row row = { .kind = f->kind, .line = f->func_line };
	const char *path = f->kind == FRAME_CFUNC ? "" : profile_str(p, f->file);

	if (f->module != PROFILE_NONE && !*path)
		path = profile_str(p, p->modules[f->module].path);
	if (f->kind == FRAME_CFUNC)
		row.line = 0;
	if (intern_str(&c->texts, "", &row.path) || /* id 0 */
	    intern_str(&c->texts, label_frame(p, frame), &row.label) ||
	    intern_str(&c->texts, path, &row.path) ||
	    array_reserve(c->rows, c->cap_rows, c->n_rows + 1))
		return -ENOMEM;
	c->rows[c->n_rows++] = row;
	return 0;
}

/* The row of each frame; new ones are added. */
static int find_methods(struct comparison *c, const struct profile *p, uint32_t *row_of)
{
	_cleanup_buf_ struct buf key = BUF_INIT;

	for (size_t i = 0; i < p->n_frames; i++) {
		bool is_new;

		compare_key(p, (uint32_t)i, &key);
		if (buf_failed(&key) ||
		    intern_add(&c->keys, key.data, key.len, &row_of[i], &is_new) ||
		    (is_new && add_row(c, p, (uint32_t)i)))
			return -ENOMEM;
	}
	return 0;
}

/* The row of each kind of request; new ones are added. */
static int find_requests(struct comparison *c, const struct profile *p, uint32_t *row_of)
{
	_cleanup_buf_ struct buf key = BUF_INIT;
	struct compare_row row = { 0 };
	bool is_new;

	for (size_t i = 0; i <= request_kinds(p); i++) {
		const char *name = request_label(p, (uint32_t)i);
		const char *framework = request_framework(p, (uint32_t)i);

		buf_reset(&key);
		buf_addf(&key, "%s\n%s", name, framework);
		if (buf_failed(&key) ||
		    intern_add(&c->keys, key.data, key.len, &row_of[i], &is_new))
			return -ENOMEM;
		if (is_new && (intern_str(&c->texts, "", &row.path) || /* id 0 */
			       intern_str(&c->texts, name, &row.label) ||
			       intern_str(&c->texts, framework, &row.path) ||
			       array_reserve(c->rows, c->cap_rows, c->n_rows + 1)))
			return -ENOMEM;
		if (is_new)
			c->rows[c->n_rows++] = row;
	}
	return 0;
}

static void add_requests(const struct profile *p, const struct view_selection *sel,
			 const uint32_t *row_of, struct group_total *totals)
{
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		struct group_total *to = &totals[row_of[request_shown_of(p, a)]];
		struct view_sum sum;

		if (!view_selected(sel, a))
			continue;
		sum = view_sum_of(p, a);
		view_sum_add(&to->total, &sum);
		to->self = to->total;
	}
}

/* The sums of each row of @c, to which those of @p are added first. *@ret: free(). */
static int row_totals(struct comparison *c, const struct profile *p,
		      const struct view_selection *sel, struct group_total **ret)
{
	const size_t n = c->by_request ? request_kinds(p) + 1 : p->n_frames + 1;
	_cleanup_free_ uint32_t *row_of = calloc(n, sizeof(*row_of));
	_cleanup_free_ struct group_total *totals = NULL;

	if (!row_of || (c->by_request ? find_requests(c, p, row_of) : find_methods(c, p, row_of)))
		return -ENOMEM;
	totals = calloc(c->n_rows + 1, sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	if (c->by_request)
		add_requests(p, sel, row_of, totals);
	else if (group_totals(p, sel, row_of, c->n_rows, totals))
		return -ENOMEM;
	*ret = take_ptr(totals);
	return 0;
}

/* @weight is the mean value of a sample of the recording that is not exact. */
static void add_sum(struct compare_sum *to, const struct view_sum *s, double weight)
{
	to->samples += s->samples;
	profile_add(&to->value, s->value);
	to->exact_samples += s->exact_samples;
	profile_add(&to->exact_value, s->exact_value);
	to->variance += (double)(s->samples - s->exact_samples) * weight * weight;
}

static int same_event(struct comparison *c, const struct profile *p)
{
	const struct profile_event *event = profile_event(p);

	if (c->has_event && !event_is_same(&c->event, event))
		return -EMEDIUMTYPE;
	if (!c->has_event)
		c->event = *event;
	c->has_event = true;
	return 0;
}

int comparison_add(struct comparison *c, enum compare_side side, const struct profile *p,
		   const struct view_filter *f, uint64_t duration_ns)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	_cleanup_free_ struct group_total *totals = NULL;
	struct view_sum all;
	uint64_t by_chance;
	double weight;
	int r;

	if (c->by_request && !p->by_request)
		return -EINVAL;
	r = same_event(c, p);
	if (!r)
		r = view_selection_new(p, f, &sel);
	if (!r)
		r = row_totals(c, p, sel, &totals);
	if (r)
		return r;
	all = view_selected_sum(sel);
	by_chance = all.samples - all.exact_samples;
	weight = by_chance ? (double)(all.value - all.exact_value) / (double)by_chance : 0;
	if (all.unequal)
		weight *= VIEW_UNEQUAL;
	add_sum(&c->all[side], &all, weight);
	profile_add(&c->duration_ns[side], duration_ns);
	for (size_t i = 0; i < c->n_rows; i++) {
		add_sum(&c->rows[i].self[side], &totals[i].self, weight);
		add_sum(&c->rows[i].total[side], &totals[i].total, weight);
	}
	return 0;
}

double compare_z_of_many(size_t n)
{
	double miss = 0.05 / (double)(n ? n : 1), low = 0, high = 40;

	/* The two-sided tail beyond z is erfc(z / sqrt(2)), which falls. */
	for (int i = 0; i < 60; i++) {
		double z = (low + high) / 2;

		*(erfc(z / sqrt(2)) > miss ? &low : &high) = z;
	}
	return high;
}

struct estimate {
	double value, low, high;
};

/* The part of the sum that is not exact. */
static double chance_value(const struct compare_sum *s)
{
	return (double)(s->value - s->exact_value);
}

/* The number of equal samples that this part behaves like. */
static double effective_samples(const struct compare_sum *s)
{
	double value = chance_value(s);

	return s->variance > 0 ? value / s->variance * value : 0;
}

/* The interval of the proportion @p of @n samples, @p in it. */
static struct estimate proportion(double p, double n, double z)
{
	double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
	double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);

	return (struct estimate) { p, fmin(fmax(middle - half, 0), p),
				   fmax(fmin(middle + half, 1), p) };
}

static struct estimate share(const struct compare_sum *s, const struct compare_sum *all, double z)
{
	double n = effective_samples(all), of = chance_value(all), whole = (double)all->value;
	double exact = (double)s->exact_value, p;
	struct estimate e;

	if (!all->value)
		return (struct estimate) { 0, 0, 1 };
	p = fmin((double)s->value / whole, 1);
	if (n <= 0)
		return (struct estimate) { p, p, p };
	e = proportion(fmin(chance_value(s) / of, 1), n, z);
	return (struct estimate) { p, fmin((exact + e.low * of) / whole, p),
				   fmax(fmin((exact + e.high * of) / whole, 1), p) };
}

static struct estimate amount(const struct compare_sum *s, const struct compare_sum *all, double z,
			      double per)
{
	double m = effective_samples(s), value = chance_value(s), of_one, half;
	double exact = (double)s->exact_value;

	/* Where there is no sample, one would have been worth what others are. */
	of_one = m > 0 ? value / m : all->variance > 0 ? all->variance / chance_value(all) : 0;
	half = z * sqrt(m + z * z / 4);
	return (struct estimate) {
		(exact + value) / per,
		(exact + fmin(fmax((m + z * z / 2 - half) * of_one, 0), value)) / per,
		(exact + fmax((m + z * z / 2 + half) * of_one, value)) / per,
	};
}

static struct estimate estimate(const struct comparison *c, const struct compare_options *opts,
				const struct compare_sum *s, enum compare_side side)
{
	double seconds = (double)c->duration_ns[side] / NSEC_PER_SEC;
	/* CPU time per second is in ns, too: 1 is then one core. */
	double unit = c->event.unit == UNIT_NS ? NSEC_PER_SEC : 1;

	switch (opts->normalize) {
	case COMPARE_TOTAL:
		return share(s, &c->all[side], opts->z);
	case COMPARE_TIME:
		return amount(s, &c->all[side], opts->z, (seconds > 0 ? seconds : 1) * unit);
	case COMPARE_NONE:
		break;
	}
	return amount(s, &c->all[side], opts->z, 1);
}

static void add_interval(const struct estimate *b, const struct estimate *a, double *low,
			 double *high)
{
	double delta = a->value - b->value;

	*low = delta - hypot(a->value - a->low, b->high - b->value);
	*high = delta + hypot(a->high - a->value, b->value - b->low);
}

/* Whether all samples of a method are exact, on both sides. Without any, nothing is. */
static bool is_exact(const struct compare_sum *before, const struct compare_sum *after)
{
	const uint64_t samples = before->samples + after->samples;

	return samples && samples == before->exact_samples + after->exact_samples;
}

static void make_exact(struct estimate *before, struct estimate *after)
{
	before->low = before->high = before->value;
	after->low = after->high = after->value;
}

struct compare_share compare_shares(const struct compare_sum *before,
				    const struct compare_sum *all_before,
				    const struct compare_sum *after,
				    const struct compare_sum *all_after)
{
	struct estimate b = share(before, all_before, COMPARE_Z);
	struct estimate a = share(after, all_after, COMPARE_Z);
	struct compare_share ret = { .before = b.value, .after = a.value };

	if (is_exact(before, after))
		make_exact(&b, &a);
	add_interval(&b, &a, &ret.low, &ret.high);
	return ret;
}

static void finish_row(const struct comparison *c, const struct compare_options *opts,
		       struct compare_row *row)
{
	const struct compare_sum *s = opts->self ? row->self : row->total;
	struct estimate b = estimate(c, opts, &s[COMPARE_BEFORE], COMPARE_BEFORE);
	struct estimate a = estimate(c, opts, &s[COMPARE_AFTER], COMPARE_AFTER);

	if (is_exact(&row->total[COMPARE_BEFORE], &row->total[COMPARE_AFTER]) ||
	    is_exact(&s[COMPARE_BEFORE], &s[COMPARE_AFTER]))
		make_exact(&b, &a);
	row->value[COMPARE_BEFORE] = b.value;
	row->value[COMPARE_AFTER] = a.value;
	row->delta = a.value - b.value;
	add_interval(&b, &a, &row->low, &row->high);
	row->significant = row->low > 0 || row->high < 0;
}

struct row_order {
	const struct comparison *comparison;
	const struct compare_options *opts;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct compare_row *x = a, *y = b;
	const struct row_order *order = arg;
	const struct intern *texts = &order->comparison->texts;
	double dx = order->opts->by_delta ? x->delta : fabs(x->delta);
	double dy = order->opts->by_delta ? y->delta : fabs(y->delta);
	int diff;

	if (x->significant != y->significant)
		return y->significant - x->significant;
	if (dx != dy)
		return dx < dy ? 1 : -1;
	diff = strcmp(intern_get(texts, x->label, NULL), intern_get(texts, y->label, NULL));
	if (!diff)
		diff = strcmp(intern_get(texts, x->path, NULL), intern_get(texts, y->path, NULL));
	return diff ? diff : (x->kind > y->kind) - (x->kind < y->kind);
}

void comparison_finish(struct comparison *c, const struct compare_options *opts)
{
	struct row_order order = { c, opts };
	size_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		struct compare_row *row = &c->rows[i];

		if (!row->total[COMPARE_BEFORE].samples && !row->total[COMPARE_AFTER].samples)
			continue;
		c->rows[n] = *row;
		finish_row(c, opts, &c->rows[n++]);
	}
	c->n_rows = n;
	if (n)
		qsort_r(c->rows, n, sizeof(*c->rows), compare_rows, &order);
}
