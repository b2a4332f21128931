/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What recording costs, and how often samples are taken for that (thinning.h). The first interval
 * is not judged: in it symbols, unwind tables and most names are read, once.
 */
#include <unistd.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "sample/collector_state.h"

/* What the CPUs have to give in such a time. */
static uint64_t machine_ns(uint64_t elapsed_ns)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (uint64_t)cpus * elapsed_ns : elapsed_ns;
}

static void read_account(const struct collector *c, uint64_t now, struct cost_account *ret)
{
	struct cpus_times machine;
	struct engine_cost kernel;

	engine_cost(c->engine, &kernel);
	/* Without the kernel's statistics, what the programs measure of samples has to do. */
	if (!kernel.all_ns)
		kernel.all_ns = kernel.ticks.ns = c->totals.counters[COUNTER_SAMPLE_NS];
	*ret = (struct cost_account) {
		.at_ns = now,
		.all = collector_cpu_ns(c) + kernel.all_ns,
		.ticks = kernel.ticks.ns,
		/* Where that cannot be read the machine counts as busy. */
		.busy = cpus_times(&machine) ? machine_ns(now) : machine.busy + machine.stolen,
	};
}

uint32_t max_cost_frequency(const struct collector *c)
{
	const uint32_t divisor = c->thinning.divisor ? c->thinning.divisor : 1;

	return c->opts.frequency >= divisor ? c->opts.frequency / divisor : 1;
}

static void note_lowered(struct collector *c, uint64_t now)
{
	if (c->lowered_at_ns)
		c->totals.lowered_ns += now - c->lowered_at_ns;
	c->lowered_at_ns = 0;
}

static void change_frequency(struct collector *c, uint64_t now)
{
	const uint32_t frequency = max_cost_frequency(c);

	engine_set_divisor(c->engine, c->thinning.divisor);
	note_lowered(c, now);
	if (frequency == c->opts.frequency)
		return;
	c->lowered_at_ns = now;
	if (!c->totals.lowest_hz || frequency < c->totals.lowest_hz)
		c->totals.lowest_hz = frequency;
}

void max_cost_poll(struct collector *c, uint64_t now)
{
	const struct cost_account before = c->cost;
	struct thinning_cost cost;

	if (!(c->opts.max_cost > 0) || now - c->began_ns < THINNING_INTERVAL ||
	    now - before.at_ns < THINNING_INTERVAL)
		return;
	read_account(c, now, &c->cost);
	if (!before.at_ns)
		return;
	cost = (struct thinning_cost) {
		.all = c->cost.all - before.all,
		.ticks = c->cost.ticks - before.ticks,
		.busy = c->cost.busy - before.busy,
		.machine = machine_ns(now - before.at_ns),
	};
	cost.limit = (uint64_t)((double)cost.machine * c->opts.max_cost / 100);
	if (thinning_note(&c->thinning, &cost))
		change_frequency(c, now);
}

void max_cost_end(struct collector *c)
{
	note_lowered(c, c->ending_ns);
}
