/* SPDX-License-Identifier: GPL-2.0-only */
/* How often samples are taken, by what they cost. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "base/array.h"
#include "sample/collector_state.h"
#include "sample/thinning.h"
#include "support/collecting.h"

#define MACHINE (20 * NSEC_PER_SEC) /* two CPUs, for ten seconds */

/* Of a busy machine, @all in thousandths of its CPU time, half of it by ticks; the limit is 5. */
static struct thinning_cost cost_of(uint64_t all)
{
	return (struct thinning_cost) { .all = MACHINE / 1000 * all,
					.ticks = MACHINE / 1000 * all / 2,
					.limit = MACHINE / 1000 * 5,
					.busy = MACHINE / 100 * 99,
					.machine = MACHINE };
}

static uint32_t after(struct thinning *t, const struct thinning_cost *cost)
{
	const uint32_t before = t->divisor ? t->divisor : 1;
	const bool changed = thinning_note(t, cost);

	cr_expect_eq(changed, t->divisor != before);
	return t->divisor;
}

static uint32_t after_all(struct thinning *t, uint64_t all)
{
	const struct thinning_cost cost = cost_of(all);

	return after(t, &cost);
}

Test(thinning, as_much_as_is_needed)
{
	static const struct {
		uint64_t all;
		uint32_t divisor;
	} rows[] = { { 0, 1 }, { 5, 1 }, { 6, 2 }, { 10, 2 }, { 11, 3 }, { 15, 3 }, { 900, 4 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct thinning t = { 0 };

		cr_expect_eq(after_all(&t, rows[i].all), rows[i].divisor, "row %zu", i);
	}
}

/* Fewer samples are dearer each. */
Test(thinning, step_by_step)
{
	struct thinning t = { 0 };

	cr_expect_eq(after_all(&t, 9), 2);
	cr_expect_eq(after_all(&t, 6), 3);
	cr_expect_eq(after_all(&t, 5), 3);
	cr_expect_eq(after_all(&t, 6), 4);
	cr_expect_eq(after_all(&t, 6), 4, "no lower");
}

Test(thinning, more_again_after_a_minute)
{
	struct thinning t = { .divisor = 3 };

	for (int i = 0; i < 5; i++)
		cr_expect_eq(after_all(&t, 3), 3, "%d", i);
	cr_expect_eq(after_all(&t, 3), 2, "it would be 4.5, and a tenth");
	for (int i = 0; i < 20; i++)
		cr_expect_eq(after_all(&t, 3), 2, "it would be 6");
	for (int i = 0; i < 5; i++)
		cr_expect_eq(after_all(&t, 2), 2);
	cr_expect_eq(after_all(&t, 3), 2, "not all of a minute");
	for (int i = 0; i < 5; i++)
		cr_expect_eq(after_all(&t, 2), 2);
	cr_expect_eq(after_all(&t, 2), 1);
	cr_expect_eq(after_all(&t, 2), 1);
}

Test(thinning, not_of_what_a_machine_has_to_spare)
{
	struct thinning_cost cost = cost_of(20);
	struct thinning t = { 0 };

	cost.busy = MACHINE / 100 * 79;
	cr_expect_eq(after(&t, &cost), 1);
	cost.busy = MACHINE / 100 * 80;
	cr_expect_eq(after(&t, &cost), 4);
	cost.busy = 0;
	for (int i = 0; i < 6; i++)
		after(&t, &cost);
	cr_expect_eq(t.divisor, 3);
}

Test(thinning, not_of_what_something_else_costs)
{
	struct thinning_cost cost = cost_of(20);
	struct thinning t = { 0 };

	cost.ticks = cost.all / 12 - 1;
	cr_expect_eq(after(&t, &cost), 1);
	cost.ticks = cost.all / 12;
	cr_expect_eq(after(&t, &cost), 4);
}

/* Fewer samples spare what they cost, and not what else does. */
Test(thinning, as_much_as_is_of_samples)
{
	struct thinning_cost cost = cost_of(6);
	struct thinning t = { 0 };

	cost.ticks = cost.all / 8;
	cr_expect_eq(after(&t, &cost), 2);
	cost.all = MACHINE / 1000 * 5;
	cost.ticks = cost.all / 15;
	for (int i = 0; i < 6; i++)
		cr_expect_eq(after(&t, &cost), 2, "with the other half it would be 6");
	cost.all = MACHINE / 1000 * 35 / 10;
	cost.ticks = cost.all / 12;
	for (int i = 0; i < 5; i++)
		cr_expect_eq(after(&t, &cost), 2);
	cr_expect_eq(after(&t, &cost), 1, "it would be 4.4, and a tenth");
}

Test(thinning, no_cost_at_all)
{
	struct thinning_cost cost = cost_of(1);
	struct thinning t = { 0 };

	cost.limit = 0;
	cr_expect_eq(after(&t, &cost), 4);
}

/* ---- the collector ---- */

static struct collecting f;

static void setup(void)
{
	collecting_init(&f, &(struct collector_options) { .frequency = 99, .max_cost = 0.5 });
}

static void teardown(void)
{
	collecting_deinit(&f);
}

/* Ten seconds in which all CPUs were busy, and ticks took @percent of that. */
static uint64_t interval(uint64_t now, uint64_t percent)
{
	const uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	now += THINNING_INTERVAL;
	f.c->cost.busy -= cpus * THINNING_INTERVAL;
	f.engine.cost.ticks.ns += cpus * THINNING_INTERVAL / 100 * percent;
	f.engine.cost.all_ns = f.engine.cost.ticks.ns;
	max_cost_poll(f.c, now);
	return now;
}

static size_t asked(void)
{
	return f.engine.ops[SCRIPTED_SET_DIVISOR].asked;
}

static pid_t divisor(void)
{
	for (size_t i = f.engine.n_calls; i-- > 0;)
		if (f.engine.calls[i].op == SCRIPTED_SET_DIVISOR)
			return f.engine.calls[i].id;
	return 1;
}

Test(thinning, of_a_recording, .init = setup, .fini = teardown)
{
	struct collector_status st;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), lowered;

	f.c->began_ns = now;
	now = interval(now, 90);
	cr_expect_eq(asked(), 0, "the first interval is not judged");
	max_cost_poll(f.c, now + THINNING_INTERVAL / 2);
	cr_expect_eq(asked(), 0);
	lowered = now = interval(now, 1);
	cr_expect_eq(divisor(), 3, "with what this process took itself");
	now = interval(now, 1);
	cr_expect_eq(divisor(), 4);
	collector_status(f.c, &st);
	cr_expect_eq(st.frequency, 24);
	for (int i = 0; i < 18; i++)
		now = interval(now, 0);
	cr_expect_eq(divisor(), 1);
	collector_status(f.c, &st);
	cr_expect_eq(st.frequency, 99);
	cr_expect_eq(f.c->totals.lowest_hz, 24);
	cr_expect_eq(f.c->totals.lowered_ns, now - lowered);
	now = interval(now, 1);
	f.c->ending_ns = now + 5;
	max_cost_end(f.c);
	cr_expect_eq(f.c->totals.lowered_ns, now - THINNING_INTERVAL - lowered + 5);
}

/* Of what the kernel does not tell, what the BPF programs measure themselves has to do. */
Test(thinning, without_statistics, .init = setup, .fini = teardown)
{
	const uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	f.c->began_ns = now;
	now = interval(now, 0);
	now = interval(now, 0);
	cr_expect_eq(asked(), 0);
	f.c->totals.counters[COUNTER_SAMPLE_NS] += cpus * THINNING_INTERVAL / 100;
	interval(now, 0);
	cr_expect_eq(divisor(), 3);
}

Test(thinning, whatever_it_costs, .init = setup, .fini = teardown)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	f.c->opts.max_cost = 0;
	f.c->began_ns = now;
	for (int i = 0; i < 5; i++)
		now = interval(now, 50);
	cr_expect_eq(asked(), 0);
	cr_expect_eq(f.c->totals.lowest_hz, 0);
}
