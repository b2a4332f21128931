/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "profile/reason.h"
#include "support/naive_samples.h"
#include "support/profile_builder.h"
#include "view/compare.h"

static const struct view_filter all = VIEW_FILTER_INIT;

static void add(struct comparison *c, enum compare_side side, const struct profile *p)
{
	cr_assert_eq(comparison_add(c, side, p, &all, 2000000000), 0);
}

static const struct compare_row *find(const struct comparison *c, const char *label)
{
	for (size_t i = 0; i < c->n_rows; i++)
		if (!strcmp(intern_get(&c->texts, c->rows[i].label, NULL), label))
			return &c->rows[i];
	return NULL;
}

/* A profile of @n samples, @hits of them of "x", each worth @value. */
static void add_hits(struct comparison *c, enum compare_side side, size_t hits, size_t n,
		     uint64_t value)
{
	struct profile_builder b;
	uint32_t thread, x, other;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main");
	x = builder_path(&b, "x");
	other = builder_path(&b, "other");
	for (size_t i = 0; i < n; i++)
		builder_sample(&b, thread, i < hits ? x : other, value, 0);
	add(c, side, builder_finish(&b));
	builder_deinit(&b);
}

static void expect_interval(size_t before, size_t n_before, size_t after, size_t n_after,
			    double low, double high)
{
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
	const struct compare_options opts = { .z = COMPARE_Z };
	const struct compare_row *row;

	add_hits(&c, COMPARE_BEFORE, before, n_before, BUILDER_PERIOD);
	add_hits(&c, COMPARE_AFTER, after, n_after, BUILDER_PERIOD);
	comparison_finish(&c, &opts);
	row = find(&c, "x");
	cr_assert_not_null(row);
	cr_expect_float_eq(row->low, low, 0.0001, "%f, not %f", row->low, low);
	cr_expect_float_eq(row->high, high, 0.0001, "%f, not %f", row->high, high);
}

/* Examples of Newcombe's paper, table II, method 10. */
Test(compare, intervals_are_those_that_were_published)
{
	expect_interval(48, 80, 56, 70, 0.0524, 0.3339);
	expect_interval(3, 10, 9, 10, 0.1705, 0.8090);
	expect_interval(2, 7, 6, 7, 0.0582, 0.8062);
	expect_interval(0, 29, 5, 56, -0.0381, 0.1926);
}

Test(compare, intervals_of_many)
{
	cr_expect_float_eq(compare_z_of_many(1), COMPARE_Z, 0.00001);
	cr_expect_float_eq(compare_z_of_many(10), 2.8070338, 0.00001);
	cr_expect_float_eq(compare_z_of_many(1000), 4.0556270, 0.00001);
	cr_expect_eq(compare_z_of_many(0), compare_z_of_many(1));
}

/* By self time, which is easy to draw at random: of @n samples each is "x" with @percent. */
static size_t draw(uint64_t *seed, size_t n, uint32_t percent)
{
	size_t hits = 0;

	while (n--)
		hits += builder_random(seed, 1000) < 10 * percent;
	return hits;
}

struct drawn {
	uint32_t percent;
	size_t n;
	uint64_t value;
};

/* How many of 1000 comparisons are significant. */
static size_t significant(const struct drawn *before, const struct drawn *after,
			  enum compare_normalize normalize, size_t pieces)
{
	const struct compare_options opts = { .z = COMPARE_Z, .normalize = normalize };
	uint64_t seed = 4711;
	size_t n = 0;

	for (size_t i = 0; i < 1000; i++) {
		_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
		const struct compare_row *row;

		for (size_t k = 0; k < pieces; k++) {
			add_hits(&c, COMPARE_BEFORE, draw(&seed, before->n, before->percent),
				 before->n, before->value);
			add_hits(&c, COMPARE_AFTER, draw(&seed, after->n, after->percent), after->n,
				 after->value << k);
		}
		comparison_finish(&c, &opts);
		row = find(&c, "x");
		n += row && row->significant;
	}
	return n;
}

static void expect_false_alarms(const struct drawn *before, const struct drawn *after,
				enum compare_normalize normalize, size_t pieces)
{
	size_t n = significant(before, after, normalize, pieces);

	cr_expect_geq(n, 15, "%zu of 1000 by chance: the intervals are too wide", n);
	cr_expect_leq(n, 70, "%zu of 1000 by chance: the intervals are too narrow", n);
}

/* 50 of 1000 are expected; of a method with few samples somewhat fewer. */
Test(compare, the_same_program_differs_by_chance_as_often_as_it_should)
{
	const struct drawn few = { 20, 100, 10000000 }, many = { 20, 400, 2500000 };
	const struct drawn rare = { 3, 400, 1000000 };

	expect_false_alarms(&few, &few, COMPARE_TOTAL, 1);
	expect_false_alarms(&few, &many, COMPARE_TOTAL, 1);
	expect_false_alarms(&rare, &rare, COMPARE_TOTAL, 1);
}

/* A sample of one recording of a side is worth several of another. */
Test(compare, frequencies_that_differ_within_a_side)
{
	const struct drawn some = { 20, 100, 10000000 };

	expect_false_alarms(&some, &some, COMPARE_TOTAL, 3);
}

/* Of @n samples, a fifth is worth four of the others; each is "x" with 20 percent. */
static void add_unequal(struct comparison *c, enum compare_side side, uint64_t *seed, size_t n)
{
	struct profile_builder b;
	uint32_t thread, x, other;

	builder_init(&b);
	builder_event(&b, EVENT_CPU, BUILDER_PERIOD);
	thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main");
	x = builder_path(&b, "x");
	other = builder_path(&b, "other");
	for (size_t i = 0; i < n; i++)
		builder_sample(&b, thread, builder_random(seed, 5) ? other : x,
			       builder_random(seed, 5) ? BUILDER_PERIOD : 4 * BUILDER_PERIOD, 0);
	add(c, side, builder_finish(&b));
	builder_deinit(&b);
}

/* As where the frequency was lowered on the way: the worst there can be. */
Test(compare, samples_that_are_worth_more_than_others)
{
	const struct compare_options opts = { .z = COMPARE_Z };
	uint64_t seed = 4711;
	size_t n = 0;

	for (size_t i = 0; i < 1000; i++) {
		_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
		const struct compare_row *row;

		add_unequal(&c, COMPARE_BEFORE, &seed, 150);
		add_unequal(&c, COMPARE_AFTER, &seed, 150);
		comparison_finish(&c, &opts);
		row = find(&c, "x");
		n += row && row->significant;
	}
	cr_expect_geq(n, 15, "%zu of 1000 by chance: the intervals are too wide", n);
	cr_expect_leq(n, 70, "%zu of 1000 by chance: the intervals are too narrow", n);
}

Test(compare, a_difference_is_found)
{
	const struct drawn before = { 10, 400, 10000000 }, after = { 20, 400, 2500000 };

	cr_expect_geq(significant(&before, &after, COMPARE_TOTAL, 1), 900);
	cr_expect_geq(significant(&after, &before, COMPARE_TOTAL, 1), 900);
}

Test(compare, per_second_and_as_recorded)
{
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
	struct compare_options opts = { .z = COMPARE_Z, .normalize = COMPARE_TIME };
	const struct compare_row *row;

	add_hits(&c, COMPARE_BEFORE, 100, 200, 10000000);
	add_hits(&c, COMPARE_AFTER, 25, 25, 20000000);
	comparison_finish(&c, &opts);
	row = find(&c, "x");
	cr_expect_float_eq(row->value[COMPARE_BEFORE], 0.5, 1e-9, "1 s of 2 s");
	cr_expect_float_eq(row->value[COMPARE_AFTER], 0.25, 1e-9);
	/* sqrt(100) samples of 5 ms and sqrt(25) of 10 ms, times 1.96, about. */
	cr_expect_float_eq(row->high - row->low, 2 * 1.96 * hypot(0.05, 0.05), 0.01);
	opts.normalize = COMPARE_NONE;
	comparison_finish(&c, &opts);
	row = find(&c, "x");
	cr_expect_float_eq(row->value[COMPARE_BEFORE], 1e9, 1);
	cr_expect_float_eq(row->delta, -0.5e9, 1);
	/* "other" is on one side only: its interval has a width all the same. */
	row = find(&c, "other");
	cr_expect_eq(row->total[COMPARE_AFTER].samples, 0);
	cr_expect_lt(row->low, row->delta);
	cr_expect_gt(row->high, row->delta);
	cr_expect(row->significant);
}

/* @hits of 100 samples of CPU time are of "x", and "read" waits once, for @wait_ns. */
static void add_wall(struct comparison *c, enum compare_side side, size_t hits, uint64_t wait_ns)
{
	static const struct profile_event wall = { .name = EVENT_WALL,
						   .unit = UNIT_NS,
						   .period = BUILDER_PERIOD };
	struct profile_builder b;
	uint32_t thread;

	builder_init(&b);
	b.out.profile.meta.events[0] = wall;
	b.out.profile.meta.n_events = 1;
	thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main");
	builder_add(&b, thread, builder_path(&b, "x"), hits);
	builder_add(&b, thread, builder_path(&b, "other"), 100 - hits);
	builder_sample(&b, thread,
		       builder_reason(&b, builder_path(&b, "read"), REASON_WAIT_NETWORK), wait_ns,
		       0);
	add(c, side, builder_finish(&b));
	builder_deinit(&b);
}

/* Samples of CPU time are worth 1 s on both sides, waits 1 s and 3 s. */
Test(compare, waits_are_no_matter_of_chance)
{
	_cleanup_comparison_ struct comparison wall = COMPARISON_INIT, cpu = COMPARISON_INIT;
	struct compare_options opts = { .z = COMPARE_Z, .normalize = COMPARE_NONE };
	const struct compare_row *x, *alone, *waits;

	add_wall(&wall, COMPARE_BEFORE, 50, NSEC_PER_SEC);
	add_wall(&wall, COMPARE_AFTER, 60, 3 * NSEC_PER_SEC);
	add_hits(&cpu, COMPARE_BEFORE, 50, 100, BUILDER_PERIOD);
	add_hits(&cpu, COMPARE_AFTER, 60, 100, BUILDER_PERIOD);
	for (opts.self = false;; opts.self = true) {
		comparison_finish(&wall, &opts);
		comparison_finish(&cpu, &opts);
		x = find(&wall, "x");
		alone = find(&cpu, "x");
		cr_assert(x && alone);
		cr_expect_float_eq(x->low, alone->low, 1);
		cr_expect_float_eq(x->high, alone->high, 1);
		waits = find(&wall, "read");
		cr_assert_not_null(waits);
		cr_expect_float_eq(waits->low, waits->delta, 1);
		cr_expect_float_eq(waits->high, waits->delta, 1);
		cr_expect(waits->significant != opts.self);
		if (opts.self)
			break;
	}
	/* x is 25 % of 2 s, then 15 % of 4 s. */
	opts = (struct compare_options) { .z = COMPARE_Z };
	comparison_finish(&wall, &opts);
	x = find(&wall, "x");
	cr_expect_float_eq(x->delta, -0.1, 1e-9);
	cr_expect_float_eq(x->high - x->delta, hypot(0.096 / 4, 0.097 / 2), 0.002);
	waits = find(&wall, "read");
	cr_expect_float_eq(waits->low, 0.25, 1e-9);
	cr_expect_float_eq(waits->high, 0.25, 1e-9);
}

/* Where a method waits and runs, what it ran is all that can be off; and what it may have run. */
Test(compare, a_method_that_waits_and_runs)
{
	struct compare_options opts = { .z = COMPARE_Z, .normalize = COMPARE_NONE };
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT, cpu = COMPARISON_INIT;
	const struct compare_row *row, *alone;
	struct profile_builder b;

	add_wall(&c, COMPARE_BEFORE, 0, NSEC_PER_SEC);
	add_hits(&cpu, COMPARE_BEFORE, 0, 100, BUILDER_PERIOD);
	builder_init(&b);
	b.out.profile.meta.events[0] = (struct profile_event) { .name = EVENT_WALL,
								.unit = UNIT_NS,
								.period = BUILDER_PERIOD };
	b.out.profile.meta.n_events = 1;
	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main"),
		    builder_path(&b, "read"), 16);
	add(&c, COMPARE_AFTER, builder_finish(&b));
	builder_deinit(&b);
	add_hits(&cpu, COMPARE_AFTER, 16, 16, BUILDER_PERIOD);
	comparison_finish(&c, &opts);
	comparison_finish(&cpu, &opts);
	row = find(&c, "read");
	alone = find(&cpu, "x");
	cr_assert(row && alone);
	cr_expect_float_eq(row->delta, 16.0 * BUILDER_PERIOD - NSEC_PER_SEC, 1);
	cr_expect_float_eq(row->high - row->delta, alone->high - alone->delta, 1);
	cr_expect_float_eq(row->delta - row->low, alone->delta - alone->low, 1);
	/* 50 % of 2 s, or up to 1.85 % more; then 100 % of 16 samples, or 19.36 % less. */
	opts = (struct compare_options) { .z = COMPARE_Z };
	comparison_finish(&c, &opts);
	row = find(&c, "read");
	cr_expect_float_eq(row->low, 0.5 - hypot(0.1936, 0.0185), 0.0003, "%f", row->low);
	cr_expect_float_eq(row->high, 0.5, 1e-9, "%f", row->high);
}

static void add_frame(struct profile_builder *b, uint32_t thread, enum frame_kind kind,
		      const char *name, const char *file, uint32_t line)
{
	builder_add(b, thread, builder_stack(b, 0, builder_frame(b, kind, name, file, line, line)),
		    1);
}

Test(compare, what_is_the_same_method)
{
	static const struct {
		enum frame_kind kind;
		const char *before, *file_before, *after, *file_after;
		bool same;
	} cases[] = {
		{ FRAME_RUBY, "Foo#bar", "/r/1/foo.rb", "Foo#bar", "/r/2/lib/bar.rb", true },
		{ FRAME_RUBY, "Foo.bar", "/a.rb", "Foo#bar", "/a.rb", false },
		{ FRAME_RUBY, "<main>", "/r/1/a.rb", "<main>", "/r/2/a.rb", true },
		{ FRAME_RUBY, "<main>", "/r/1/a.rb", "<main>", "/r/1/b.rb", false },
		{ FRAME_CFUNC, "Array#each", "/a.rb", "Array#each", "/b.rb", true },
		{ FRAME_NATIVE, "deflate", "/lib/libz.so.1.2", "deflate", "/l/libz.so.1.3", true },
		{ FRAME_NATIVE, "f", "/lib/libz.so", "f", "/lib/liby.so", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
		struct profile_builder b[COMPARE_SIDES];

		for (size_t side = 0; side < COMPARE_SIDES; side++) {
			uint32_t thread;

			builder_init(&b[side]);
			thread = builder_thread(&b[side], builder_process(&b[side], 1, "r"), 1,
						"t");
			add_frame(&b[side], thread, cases[i].kind,
				  side ? cases[i].after : cases[i].before,
				  side ? cases[i].file_after : cases[i].file_before,
				  3 + (uint32_t)side);
			add(&c, side, builder_finish(&b[side]));
			builder_deinit(&b[side]);
		}
		cr_expect_eq(c.n_rows, cases[i].same ? 1 : 2, "%s and %s", cases[i].before,
			     cases[i].after);
	}
}

/* ---- random profiles, counted sample by sample ---- */

/*
 * The identity of a method, told anew: by kind and name, and by a base name where that has no dot
 * or #.
 */
static void identity(const struct profile *p, uint32_t frame, char *ret, size_t size)
{
	const struct profile_frame *f = &p->frames[frame];
	const char *name = profile_str(p, f->name), *file = profile_str(p, f->file), *base = "";

	if (f->kind == FRAME_RUBY && !strchr(name, '#') && !strchr(name, '.'))
		base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	if (f->kind == FRAME_NATIVE && f->module != PROFILE_NONE) {
		base = profile_str(p, p->modules[f->module].path);
		base = strrchr(base, '/') ? strrchr(base, '/') + 1 : base;
	}
	snprintf(ret, size, "%u|%s|%s", f->kind, name, base);
}

static void naive_sums(const struct profile *p, const char *id, struct view_sum *self,
		       struct view_sum *total)
{
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	static struct naive_sample s;
	char other[200];

	cr_assert_eq(view_selection_new(p, &all, &sel), 0);
	for (size_t i = 0; i < p->n_kept; i++) {
		bool has = false, last = false;

		cr_assert(naive_sample(p, sel, i, &s));
		for (size_t k = 0; k < s.n; k++) {
			identity(p, s.frames[k], other, sizeof(other));
			last = !strcmp(other, id);
			has |= last;
		}
		total->samples += has;
		total->value += has ? s.value : 0;
		self->samples += last;
		self->value += last ? s.value : 0;
	}
}

Test(compare, random_profiles_against_a_count_of_each_sample)
{
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
	const struct compare_options opts = { .z = COMPARE_Z };
	struct profile_builder b[3];
	size_t checked = 0;

	for (size_t i = 0; i < 3; i++) {
		builder_init(&b[i]);
		builder_add_random(&b[i], 31 + i, 120);
		add(&c, i < 2 ? COMPARE_BEFORE : COMPARE_AFTER, builder_finish(&b[i]));
	}
	comparison_finish(&c, &opts);
	for (size_t f = 0; f < b[0].out.profile.n_frames; f++) {
		struct view_sum self[COMPARE_SIDES] = { 0 }, total[COMPARE_SIDES] = { 0 };
		const struct profile *p = &b[0].out.profile;
		bool found = false;
		char id[200];

		identity(p, (uint32_t)f, id, sizeof(id));
		for (size_t i = 0; i < 3; i++)
			naive_sums(&b[i].out.profile, id, &self[i / 2], &total[i / 2]);
		for (size_t i = 0; i < c.n_rows; i++)
			found |= c.rows[i].kind == p->frames[f].kind &&
				 c.rows[i].self[0].samples == self[0].samples &&
				 c.rows[i].self[1].value == self[1].value &&
				 c.rows[i].total[0].value == total[0].value &&
				 c.rows[i].total[1].samples == total[1].samples &&
				 !strcmp(intern_get(&c.texts, c.rows[i].label, NULL),
					 *profile_str(p, p->frames[f].name)
						 ? profile_str(p, p->frames[f].name)
						 : "[unnamed]");
		cr_expect(found, "%s", id);
		checked++;
	}
	cr_expect_gt(checked, 50);
	cr_expect_eq(c.all[COMPARE_BEFORE].samples, 240);
	for (size_t i = 0; i < 3; i++)
		builder_deinit(&b[i]);
}

/*
 * @wide of @n samples are of one request, half of the others of a job that has the same name, the
 * rest of none.
 */
static void add_served(struct comparison *c, enum compare_side side, size_t wide, size_t n,
		       const char *framework)
{
	struct profile_builder b;
	uint32_t thread, stack, request, job;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 1, "puma"), 1, "main");
	stack = builder_path(&b, "x");
	if (side == COMPARE_AFTER)
		builder_request(&b, thread, "rails", "of no sample");
	job = builder_request(&b, thread, "sidekiq", "A#a");
	request = builder_request(&b, thread, framework, "A#a");
	for (size_t i = 0; i < n; i++)
		builder_state(&b, thread, stack, BUILDER_CPU, BUILDER_PERIOD,
			      i < wide ? request
			      : i % 2  ? job
				       : 0);
	builder_select(&b, 0, 0);
	add(c, side, builder_finish(&b));
	builder_deinit(&b);
}

static const struct compare_row *find_served(const struct comparison *c, const char *framework)
{
	for (size_t i = 0; i < c->n_rows; i++)
		if (!strcmp(intern_get(&c->texts, c->rows[i].path, NULL), framework))
			return &c->rows[i];
	return NULL;
}

/* Ids of kinds differ from recording to recording, names and frameworks do not. */
Test(compare, requests)
{
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
	const struct compare_options opts = { .z = COMPARE_Z };
	const struct compare_row *row;

	c.by_request = true;
	add_served(&c, COMPARE_BEFORE, 48, 80, "rails");
	add_served(&c, COMPARE_AFTER, 56, 70, "rails");
	comparison_finish(&c, &opts);
	cr_assert_eq(c.n_rows, 3);
	row = find_served(&c, "rails");
	cr_assert_not_null(row);
	cr_expect_str_eq(intern_get(&c.texts, row->label, NULL), "A#a");
	cr_expect(row->total[0].samples == 48 && row->total[1].samples == 56);
	cr_expect_float_eq(row->low, 0.0524, 0.0001, "as Newcombe's paper has it");
	cr_expect_float_eq(row->high, 0.3339, 0.0001);
	row = find_served(&c, "sidekiq");
	cr_assert_not_null(row);
	cr_expect(row->total[0].samples == 16 && row->total[1].samples == 7);
	row = find(&c, "[no request]");
	cr_assert_not_null(row);
	cr_expect(row->total[0].samples == 16 && row->total[1].samples == 7);
}

Test(compare, requests_that_were_not_told_apart)
{
	_cleanup_comparison_ struct comparison c = COMPARISON_INIT;
	struct profile_builder b;

	builder_init(&b);
	builder_sample(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "main"),
		       builder_path(&b, "x"), 1, 0);
	c.by_request = true;
	cr_expect_eq(comparison_add(&c, COMPARE_BEFORE, builder_finish(&b), &all, 1), -EINVAL);
	builder_deinit(&b);
}
