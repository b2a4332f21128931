/* SPDX-License-Identifier: GPL-2.0-only */
/* A collector between a scripted engine and a profile in memory. */
#ifndef RBPF_TESTS_COLLECTING_H
#define RBPF_TESTS_COLLECTING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "sample/collector.h"
#include "support/failing_sink.h"
#include "support/profile_check.h"
#include "support/scripted_engine.h"
#include "support/target_process.h"
#include "support/test_worker.h"

/* More than passes between two times that the collector keeps house. */
#define COLLECTING_HOUSE_US 520000

struct collecting {
	struct scripted_engine engine;
	struct failing_sink sink;
	struct collector *c;
	struct profile_totals totals; /* after collecting_finish() */
	struct err err;
	unsigned int warnings;
	char warning[256]; /* the last one */
};

static inline void collecting_warn(void *arg, const char *message)
{
	struct collecting *f = arg;

	f->warnings++;
	snprintf(f->warning, sizeof(f->warning), "%s", message);
}

/* @opts but for what is this fixture's own; NULL: targets that are named. */
static inline void collecting_init(struct collecting *f, const struct collector_options *opts)
{
	struct collector_options o = opts ? *opts : (struct collector_options) { 0 };

	*f = (struct collecting) { 0 };
	scripted_engine_init(&f->engine);
	f->engine.system_wide = o.system_wide;
	failing_sink_init(&f->sink, &(struct profile_sink_options) { .by_thread = true,
								     .keep_samples = true });
	o.engine = &f->engine.engine;
	o.worker = test_worker();
	o.warn = collecting_warn;
	o.warn_arg = f;
	cr_assert_eq(collector_new(&o, &f->c), 0);
}

static inline void collecting_deinit(struct collecting *f)
{
	collector_free(f->c);
	engine_close(&f->engine.engine);
	failing_sink_deinit(&f->sink);
	file_worker_deinit(test_worker());
}

static inline const struct profile *collecting_profile(const struct collecting *f)
{
	return &f->sink.out.profile;
}

/* Begin with @t as the only target. */
static inline void collecting_start(struct collecting *f, const struct target *t)
{
	cr_assert_eq(collector_add(f->c, t->pid, false, &f->err), 0, "%s", f->err.msg);
	cr_assert_eq(collector_start(f->c, &f->sink.sink, &f->err), 0, "%s", f->err.msg);
}

static inline void collecting_poll(struct collecting *f)
{
	cr_assert_eq(collector_poll(f->c, &f->err), 0, "%s", f->err.msg);
}

/* As collecting_poll(), when it is time to keep house again. */
static inline void collecting_keep_house(struct collecting *f)
{
	usleep(COLLECTING_HOUSE_US);
	collecting_poll(f);
}

/* What holds whatever was recorded. */
static inline void assert_sane_collecting(const struct collecting *f)
{
	const struct profile *p = collecting_profile(f);
	const char *problem = check_profile(p);

	cr_assert_null(problem, "%s", problem);
	cr_assert_eq(f->engine.doubled, 0, "a thread has two clocks");
	cr_assert_eq(f->totals.samples, p->totals.samples);
	cr_assert_eq(f->totals.lost, p->totals.lost);
	cr_assert_eq(f->totals.no_ruby, p->totals.no_ruby);
	cr_assert_eq(f->totals.failed, p->totals.failed);
	cr_assert_eq(f->totals.cpu_sampled_ns, p->totals.cpu_sampled_ns);
}

static inline void collecting_finish(struct collecting *f)
{
	cr_assert_eq(collector_finish(f->c, &f->totals, &f->err), 0, "%s", f->err.msg);
	cr_assert_eq(f->engine.ops[SCRIPTED_STOP].asked, 1);
	assert_sane_collecting(f);
}

/* The process of that pid which was recorded last; PROFILE_NONE if there is none. */
static inline uint32_t collecting_find(const struct collecting *f, pid_t pid)
{
	const struct profile *p = collecting_profile(f);

	for (size_t i = p->n_processes; i-- > 0;)
		if (p->processes[i].pid == (uint32_t)pid)
			return (uint32_t)i;
	return PROFILE_NONE;
}

static inline const struct profile_process *collecting_process(const struct collecting *f,
							       pid_t pid)
{
	const uint32_t id = collecting_find(f, pid);

	cr_assert_neq(id, PROFILE_NONE, "process %d is not in the profile", (int)pid);
	return &collecting_profile(f)->processes[id];
}

/* The thread of that tid which was recorded last. */
static inline const struct profile_thread *collecting_thread(const struct collecting *f, pid_t tid)
{
	const struct profile *p = collecting_profile(f);

	size_t i = p->n_threads;

	while (i > 0 && p->threads[i - 1].tid != (uint32_t)tid)
		i--;
	cr_assert_gt(i, 0, "thread %d is not in the profile", (int)tid);
	return &p->threads[i - 1];
}

static inline const char *collecting_str(const struct collecting *f, uint32_t id)
{
	return profile_str(collecting_profile(f), id);
}

/* A tick of 10 ms in @tid of @tgid. */
static inline uint64_t collecting_tick(struct collecting *f, pid_t tgid, pid_t tid)
{
	return scripted_sample(&f->engine, &(struct rbpf_ring_sample) { .h.tgid = (uint32_t)tgid,
									.h.tid = (uint32_t)tid,
									.value = 10 * NSEC_PER_MSEC,
									.status = RBPF_NO_RUBY,
									.comm = "target" });
}

/* FORK or THREAD: @tid of @tgid makes @child. */
static inline uint64_t collecting_birth(struct collecting *f, enum rbpf_ring_record type,
					pid_t tgid, pid_t tid, pid_t child)
{
	return scripted_life(&f->engine, type,
			     &(struct rbpf_ring_life) { .h.tgid = (uint32_t)tgid,
							.h.tid = (uint32_t)tid,
							.child = (uint32_t)child });
}

/* EXIT of the last thread of @tgid, its first. */
static inline uint64_t collecting_exit(struct collecting *f, pid_t tgid, int status)
{
	return scripted_life(&f->engine, RBPF_RING_EXIT,
			     &(struct rbpf_ring_life) { .h.tgid = (uint32_t)tgid,
							.h.tid = (uint32_t)tgid,
							.exit_code = (uint32_t)status,
							.flags = RBPF_LIFE_LAST });
}

#endif
