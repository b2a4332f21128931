/* SPDX-License-Identifier: GPL-2.0-only */
/* An engine that has no more operations than it must have. */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/err.h"
#include "engine/engine.h"
#include "profile/profile.h"
#include "target/cpus.h"

static int asked; /* how often the engine's own operations were called */

static void close_small(struct engine *e)
{
	(void)e;
	asked++;
}

static int follow(struct engine *e, pid_t tgid, const struct rbpf_layout *layout, uint64_t since_ns,
		  struct err *err)
{
	(void)e;
	(void)layout;
	(void)since_ns;
	asked++;
	return tgid == 1 ? err_set(err, -ESRCH, ERR_TARGET, "not that one") : 0;
}

static void forget(struct engine *e, pid_t tgid)
{
	(void)e;
	(void)tgid;
	asked++;
}

static uint32_t events(const struct engine *e, struct profile_event *ret)
{
	(void)e;
	ret[0] = (struct profile_event) { .name = "steps", .unit = UNIT_COUNT };
	asked++;
	return 1;
}

static int drain(struct engine *e, engine_record_fn *take, void *arg)
{
	(void)e;
	asked++;
	return take(arg, "record", 7);
}

static int take(void *arg, const void *data, size_t len)
{
	cr_expect_eq(len, 7);
	cr_expect_str_eq(data, "record");
	return *(int *)arg;
}

static const struct engine_ops small_ops = {
	.name = "small",
	.close = close_small,
	.follow = follow,
	.forget = forget,
	.events = events,
	.drain = drain,
};

Test(engine, what_it_has)
{
	struct profile_event event[PROFILE_MAX_EVENTS];
	struct engine e = { .ops = &small_ops };
	struct err err = { 0 };
	int result = -EIO;

	cr_expect_eq(engine_follow(&e, 2, NULL, 0, &err), 0);
	cr_expect_eq(engine_follow(&e, 1, NULL, 0, &err), -ESRCH);
	cr_expect_str_eq(err.msg, "not that one");
	engine_forget(&e, 2);
	cr_expect_eq(engine_events(&e, event), 1);
	cr_expect_str_eq(event[0].name, "steps");
	cr_expect_eq(engine_drain(&e, take, &result), -EIO);
	engine_close(&e);
	engine_close(NULL);
	cr_expect_eq(asked, 6);
}

Test(engine, what_it_lacks)
{
	uint64_t counters[RBPF_COUNTERS];
	struct engine_cost cost;
	struct rbpf_task *tasks = (struct rbpf_task *)counters;
	struct engine e = { .ops = &small_ops };
	struct rbpf_thread *threads = NULL;
	const struct cpus cpus = { 0 };
	struct unwind_memory memory;
	struct err err = { 0 };
	size_t n = 1;

	cr_expect_eq(engine_add_thread(&e, 1, &err), 0);
	cr_expect_eq(engine_set_cpus(&e, &cpus, &err), 0);
	cr_expect_eq(engine_read_threads(&e, 0, &tasks, &n, &err), 0);
	cr_expect_null(tasks);
	cr_expect_eq(n, 0);
	cr_expect_eq(engine_read_registers(&e, 1, &threads, &n, &err), -ENOTSUP);
	cr_expect_str_eq(err.msg, "the engine 'small' does not read registers of threads");
	cr_expect_eq(engine_fd(&e), -1);
	cr_expect_eq(engine_follow_again(&e, 1, 0, &err), 0);
	engine_keep_preset(&e, NULL, NULL);
	engine_set_code(&e, 1, NULL);
	engine_copy_names(&e, 1, 2);
	engine_forget_stack(&e, 1);
	engine_stop(&e);

	memset(&memory, 1, sizeof(memory));
	engine_unwind_memory(&e, &memory);
	cr_expect_null(memory.words);
	cr_expect_eq(memory.n_ranges, 0);
	memset(counters, 1, sizeof(counters));
	engine_counters(&e, counters);
	for (size_t i = 0; i < RBPF_COUNTERS; i++)
		cr_expect_eq(counters[i], 0);
	memset(&cost, 1, sizeof(cost));
	engine_cost(&e, &cost);
	cr_expect_eq(cost.ticks.n, 0);
	cr_expect_eq(cost.all_ns, 0);
	engine_remove_thread(&e, 1);
	engine_set_clocked(&e, 1, 1);
	engine_redraw(&e);
	cr_expect_eq(asked, 0);
}
