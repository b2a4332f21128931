/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A window that is collected while the collector fills it: what this holds is found under its new
 * ids.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "profile/sink.h"
#include "profile/window.h"
#include "sample/collector_state.h"
#include "sample/forget.h"
#include "support/collecting.h"

#define SECONDS 5

static const struct profile_meta meta = {
	.start_monotonic_ns = NSEC_PER_SEC,
	.events = { { .name = EVENT_CPU, .unit = UNIT_NS } },
	.n_events = 1,
};

/* What nobody holds, with lower ids than what comes after it. */
static void define_unused(struct sink *s)
{
	struct profile_process process = { .pid = 1, .parent = PROFILE_NONE, .exit_status = -1 };
	struct profile_frame frame = { .kind = FRAME_RUBY, .module = PROFILE_NONE };
	uint32_t id, stack = 0;
	char name[16];

	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "unused %d", i);
		cr_assert_eq(sink_string(s, name, strlen(name), &frame.name), 0);
		cr_assert_eq(sink_frame(s, &frame, &id), 0);
		cr_assert_eq(sink_stack(s, stack, id, &stack), 0);
		cr_assert_eq(sink_process(s, &process, &id), 0);
		cr_assert_eq(sink_thread(s, id, 1, frame.name, &id), 0);
	}
}

static void expect_second(struct window *w, uint64_t second, const struct target *target, pid_t tid)
{
	const struct profile_aggregate *a;
	const struct profile *p;

	cr_assert_eq(window_profile(w, (struct window_range) { second, second + 1 }, 0, &p), 0);
	cr_expect_null(check_profile(p));
	cr_assert_eq(p->n_aggregates, 1);
	a = &p->aggregates[0];
	cr_expect_eq(a->value, 700 + second);
	cr_expect_str_eq(profile_str(p, p->frames[p->stacks[a->stack].frame].name),
			 "[no Ruby in process]");
	cr_expect_eq(p->threads[a->thread].tid, (uint32_t)tid);
	cr_expect_str_eq(profile_str(p, p->threads[a->thread].name), "worker");
	cr_expect_eq(p->processes[p->threads[a->thread].process].pid, (uint32_t)target->pid);
	cr_expect_eq(p->n_processes, 1, "of process 1 there is no sample");
	cr_expect_eq(p->n_threads, 2);
	cr_expect_eq(p->n_stacks, 2);
}

Test(collector_ids, change_with_the_window)
{
	const struct window_options opts = { .seconds = 60, .max_bytes = 1 << 20, .meta = &meta };
	struct rbpf_ring_sample rec = { .status = RBPF_NO_RUBY, .comm = "worker" };
	struct target target = target_start();
	struct collecting f;
	struct window *w;
	pid_t tid;

	collecting_init(&f, NULL);
	tid = target_thread(&target);
	cr_assert_eq(window_new(&opts, &w), 0);
	define_unused(window_sink(w));
	cr_assert_eq(collector_add(f.c, target.pid, false, &f.err), 0, "%s", f.err.msg);
	cr_assert_eq(collector_start(f.c, window_sink(w), &f.err), 0, "%s", f.err.msg);
	rec.h.tgid = (uint32_t)target.pid;
	for (uint64_t second = 0; second < SECONDS; second++) {
		const struct id_holder ids = collector_ids(f.c);

		/* A thread that comes late is of the process that was there before. */
		rec.h.tid = (uint32_t)(second == SECONDS - 1 ? target.pid : tid);
		rec.h.ts = (second + 1) * NSEC_PER_SEC + 1;
		rec.value = 700 + second;
		scripted_sample(&f.engine, &rec);
		collecting_poll(&f);
		cr_assert_eq(window_collect(w, &ids), 0);
		define_unused(window_sink(w));
		cr_assert_eq(window_collect(w, &ids), 0);
	}
	for (uint64_t second = 0; second < SECONDS; second++)
		expect_second(w, second, &target, second == SECONDS - 1 ? target.pid : tid);
	target_end(&target);
	collecting_deinit(&f);
	window_free(w);
}

static void leave(void *arg, enum id_kind kind, uint32_t *id)
{
	(void)arg;
	(void)kind;
	(void)id;
}

#define N_PUSHED 9

static void set_pushed(struct tracked_process *p)
{
	cr_assert_eq(array_reserve(p->pushed, p->cap_pushed, N_PUSHED), 0);
	for (size_t i = 0; i < N_PUSHED; i++)
		p->pushed[i] = (struct pushed_frame) { .parent = 1, .frame = 7, .stack = 3 };
}

static void expect_none_pushed(const struct tracked_process *p)
{
	for (size_t i = 0; i < N_PUSHED; i++)
		cr_expect_eq(p->pushed[i].stack, 0, "place %zu", i);
}

/* Ids that only save asking the sink again would name something else later. */
Test(collector_ids, what_is_kept_of_frames_is_forgotten)
{
	struct target target = target_start();
	struct tracked_process *p;
	struct collecting f;
	struct id_holder ids;

	collecting_init(&f, NULL);
	collecting_start(&f, &target);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	cr_assert_eq(array_reserve(p->frame_ids, p->cap_frame_ids, 9), 0);
	for (size_t i = 0; i < 9; i++)
		p->frame_ids[i] = 7;
	set_pushed(p);
	ids = collector_ids(f.c);
	ids.each(ids.holder, leave, NULL);
	for (size_t i = 0; i < 9; i++)
		cr_expect_eq(p->frame_ids[i], 0, "place %zu", i);
	expect_none_pushed(p);
	target_end(&target);
	collecting_deinit(&f);
}

static size_t to_keep[8];
static unsigned int n_asked;

static bool forget_stacks(struct sink *s, size_t keep)
{
	(void)s;
	to_keep[n_asked++ % ARRAY_SIZE(to_keep)] = keep;
	return true;
}

/*
 * The sink is asked each time that the collector keeps house, and what it forgot is pushed upon no
 * more.
 */
Test(collector_ids, many_stacks_are_forgotten)
{
	struct target target = target_start();
	struct tracked_process *p;
	struct collecting f;
	struct sink_ops ops;

	collecting_init(&f, NULL);
	collecting_start(&f, &target);
	ops = *f.c->sink->ops;
	ops.forget_stacks = forget_stacks;
	f.c->sink->ops = &ops;
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	for (int turn = 0; turn < 2; turn++) {
		set_pushed(p);
		f.c->housekeeping_ns = 0;
		collecting_poll(&f);
		cr_assert_eq(n_asked, turn + 1);
		expect_none_pushed(p);
	}
	cr_expect_lt(to_keep[0], to_keep[1], "they are new");
	f.c->forgot_stacks_ns = 0;
	forget_many_stacks(f.c);
	cr_expect_eq(to_keep[2], to_keep[0]);
	target_end(&target);
	collecting_deinit(&f);
}

static uint32_t threads_gone, processes_gone, forgotten;
static size_t bytes_told;

static void thread_gone(struct sink *s, uint32_t thread)
{
	(void)s;
	cr_expect_neq(thread, PROFILE_NONE);
	threads_gone++;
}

static void process_gone(struct sink *s, uint32_t process)
{
	(void)s;
	cr_expect_neq(process, PROFILE_NONE);
	processes_gone++;
}

static size_t told_bytes(const struct sink *s)
{
	(void)s;
	return bytes_told;
}

static void forget_told(struct sink *s)
{
	(void)s;
	forgotten++;
}

/* The sink is told that no record will name them any more: when they have been dropped here. */
Test(collector_ids, processes_and_threads_that_are_gone)
{
	struct target target = target_start();
	const pid_t tid = target_thread(&target);
	struct tracked_process *p;
	struct tracked_thread *t;
	struct collecting f;
	struct sink_ops ops;

	collecting_init(&f, NULL);
	collecting_start(&f, &target);
	ops = *f.c->sink->ops;
	ops.thread_gone = thread_gone;
	ops.process_gone = process_gone;
	f.c->sink->ops = &ops;
	collecting_tick(&f, target.pid, target.pid);
	collecting_tick(&f, target.pid, tid);
	collecting_poll(&f);
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	t = process_table_find_thread(p, tid);
	cr_assert_not_null(t);
	t->ended_ns = 1;
	cr_assert_eq(life_sweep(f.c, 100 * NSEC_PER_SEC), 0);
	cr_expect(threads_gone == 1 && !processes_gone);
	p->ended_ns = 1;
	cr_assert_eq(life_sweep(f.c, 100 * NSEC_PER_SEC), 0);
	cr_expect_eq(threads_gone, 2);
	cr_expect_eq(processes_gone, 1);
	target_end(&target);
	collecting_deinit(&f);
}

/* Much more was told than a minute after the beginning: the sink is to forget it, but not at once.
 */
Test(collector_ids, what_the_sink_was_told_gets_old)
{
	struct target target = target_start();
	struct tracked_process *p;
	struct collecting f;
	struct sink_ops ops;
	uint64_t now;

	collecting_init(&f, NULL);
	collecting_start(&f, &target);
	ops = *f.c->sink->ops;
	ops.bytes = told_bytes;
	ops.forget = forget_told;
	f.c->sink->ops = &ops;
	p = process_table_find(&f.c->table, target.pid);
	cr_assert_not_null(p);
	set_pushed(p);
	for (now = NSEC_PER_SEC; !forgotten && now < 3600 * NSEC_PER_SEC; now += NSEC_PER_SEC) {
		bytes_told += 64 << 10;
		forget_old_names(f.c, now);
	}
	cr_expect_eq(forgotten, 1);
	cr_expect_geq(now, NAMES_KEEP_NS);
	cr_expect_lt(now, NAMES_KEEP_NS + 10 * NSEC_PER_SEC);
	expect_none_pushed(p);
	forget_old_names(f.c, now);
	cr_expect_eq(forgotten, 1);
	target_end(&target);
	collecting_deinit(&f);
}
