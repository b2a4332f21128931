/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An engine that plays the records of a test, remembers what it was asked, and fails where it is
 * told to.
 *
 * It does to the sets of processes that are followed, and whose code is known, what the BPF
 * programs do (bpf/life.bpf.h), at the moment that a record is scripted: a child is followed if
 * its parent is. So a test can compare them with the processes that there are.
 *
 *	struct scripted_engine e;
 *
 *	scripted_engine_init(&e);
 *	scripted_engine_fail(&e, SCRIPTED_ADD_THREAD, 2, -EMFILE);
 *	opts.engine = &e.engine;
 *	…
 *	scripted_life(&e, RBPF_RING_FORK, &(struct rbpf_ring_life) { … });
 *	collector_poll(c, &err);
 */
#ifndef RBPF_TESTS_SCRIPTED_ENGINE_H
#define RBPF_TESTS_SCRIPTED_ENGINE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine.h"
#include "profile/profile.h"
#include "target/cpus.h"

enum scripted_op {
	SCRIPTED_FOLLOW,
	SCRIPTED_FOLLOW_AGAIN,
	SCRIPTED_FORGET,
	SCRIPTED_ADD_THREAD,
	SCRIPTED_REMOVE_THREAD,
	SCRIPTED_SET_CLOCKED,
	SCRIPTED_SET_CPUS,
	SCRIPTED_SET_DIVISOR,
	SCRIPTED_READ_THREADS,
	SCRIPTED_PRESET,
	SCRIPTED_FORGET_STACK,
	SCRIPTED_FORGET_STACKS,
	SCRIPTED_DRAIN,
	SCRIPTED_STOP,
	SCRIPTED_OPS,
};

struct scripted_call {
	enum scripted_op op;
	pid_t id;	   /* process or thread; SET_CPUS: how many; SET_DIVISOR: it; else 0 */
	uint64_t since_ns; /* FOLLOW; SET_CLOCKED: before_ns */
	uint64_t stack;	   /* FORGET_STACK */
	bool with_layout;  /* FOLLOW */
	int ret;
};

struct scripted_ids {
	pid_t *v; /* owned */
	size_t n, cap;
};

struct scripted_engine {
	struct engine engine;
	bool system_wide;	 /* THREAD is not sent, and each EXEC is */
	size_t batch;		 /* records that one drain hands over; 0: all */
	struct rbpf_task *tasks; /* what read_threads tells; owned by the test */
	size_t n_tasks;
	uint64_t counters[RBPF_COUNTERS];
	struct engine_cost cost;
	/*
	 * Called after each call, before it returns: may script records, and let processes change.
	 */
	void (*after)(struct scripted_engine *e, const struct scripted_call *call);
	void *arg;

	struct scripted_call *calls; /* in their order; owned */
	size_t n_calls, cap_calls;
	struct {
		size_t asked;
		size_t fail_at; /* 0: never */
		int ret;
	} ops[SCRIPTED_OPS];
	struct scripted_ids followed; /* tgids */
	struct scripted_ids coded;    /* tgids: those of set_code() */
	struct scripted_ids clocks;   /* tids */
	size_t doubled;		      /* clocks for threads that had one */
	struct buf records;	      /* each after its length, a uint64_t */
	size_t taken;		      /* bytes of them that were drained */
	struct unwind_memory memory;  /* owned */
};

/* ---- sets ---- */

static inline bool scripted_has(const struct scripted_ids *ids, pid_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i] == id)
			return true;
	return false;
}

static inline void scripted_put(struct scripted_ids *ids, pid_t id)
{
	if (scripted_has(ids, id))
		return;
	cr_assert_eq(array_reserve(ids->v, ids->cap, ids->n + 1), 0);
	ids->v[ids->n++] = id;
}

static inline void scripted_drop(struct scripted_ids *ids, pid_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i] == id)
			ids->v[i--] = ids->v[--ids->n];
}

/* ---- what it is asked ---- */

static inline struct scripted_engine *scripted_of(const struct engine *e)
{
	return (struct scripted_engine *)e;
}

/* What the call is to return: 0, or the failure that was asked for. */
static inline int scripted_begin(struct scripted_engine *e, enum scripted_op op)
{
	return ++e->ops[op].asked == e->ops[op].fail_at ? e->ops[op].ret : 0;
}

static inline int scripted_end(struct scripted_engine *e, const struct scripted_call *call)
{
	const struct scripted_call copy = *call;

	cr_assert_eq(array_reserve(e->calls, e->cap_calls, e->n_calls + 1), 0);
	e->calls[e->n_calls++] = copy;
	if (e->after)
		e->after(e, &copy);
	return copy.ret;
}

static inline int scripted_follow(struct engine *engine, pid_t tgid,
				  const struct rbpf_layout *layout, uint64_t since_ns,
				  struct err *err)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_FOLLOW,
				      .id = tgid,
				      .since_ns = since_ns,
				      .with_layout = layout != NULL,
				      .ret = scripted_begin(e, SCRIPTED_FOLLOW) };

	if (call.ret)
		err_set(err, call.ret, ERR_RUNTIME, "scripted: follow %d", (int)tgid);
	else if (!layout) /* otherwise it is there, or has ended */
		scripted_put(&e->followed, tgid);
	return scripted_end(e, &call);
}

static inline int scripted_follow_again(struct engine *engine, pid_t tgid, uint64_t since_ns,
					struct err *err)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_FOLLOW_AGAIN,
				      .id = tgid,
				      .since_ns = since_ns,
				      .ret = scripted_begin(e, SCRIPTED_FOLLOW_AGAIN) };

	if (call.ret)
		err_set(err, call.ret, ERR_RUNTIME, "scripted: follow %d again", (int)tgid);
	else
		scripted_put(&e->followed, tgid);
	return scripted_end(e, &call);
}

static inline void scripted_forget(struct engine *engine, pid_t tgid)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_FORGET);
	scripted_drop(&e->followed, tgid);
	scripted_drop(&e->coded, tgid);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_FORGET, .id = tgid });
}

/* Enough for the code of a few processes. */
static inline void scripted_unwind_memory(const struct engine *engine, struct unwind_memory *ret)
{
	struct unwind_memory *m = &scripted_of(engine)->memory;

	if (!m->words) {
		*m = (struct unwind_memory) { .n_words = 1u << 20,
					      .n_rules = RBPF_CFI_MAX_RULES,
					      .n_ranges = 4096 };
		m->words = calloc(m->n_words, sizeof(*m->words));
		m->rules = calloc(m->n_rules, sizeof(*m->rules));
		m->ranges = calloc(m->n_ranges, sizeof(*m->ranges));
		cr_assert(m->words && m->rules && m->ranges);
	}
	*ret = *m;
}

static inline void scripted_set_code(struct engine *engine, pid_t tgid,
				     const struct rbpf_code *code)
{
	struct scripted_engine *e = scripted_of(engine);

	if (code)
		scripted_put(&e->coded, tgid);
	else
		scripted_drop(&e->coded, tgid);
}

/* As the BPF engine, it has no words for failures that are expected. */
static inline int scripted_add_thread(struct engine *engine, pid_t tid, struct err *err)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_ADD_THREAD,
				      .id = tid,
				      .ret = scripted_begin(e, SCRIPTED_ADD_THREAD) };

	if (call.ret && call.ret != -ESRCH && call.ret != -ETIMEDOUT && call.ret != -EMFILE)
		err_set(err, call.ret, ERR_ENV, "scripted: thread %d", (int)tid);
	if (!call.ret) {
		e->doubled += scripted_has(&e->clocks, tid);
		scripted_put(&e->clocks, tid);
	}
	scripted_end(e, &call);
	return call.ret ? call.ret : tid;
}

/* The number of a clock is the id of its thread. */
static inline void scripted_remove_thread(struct engine *engine, int clock)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_REMOVE_THREAD);
	scripted_drop(&e->clocks, clock);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_REMOVE_THREAD, .id = clock });
}

static inline void scripted_set_clocked(struct engine *engine, pid_t tgid, uint64_t before_ns)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_SET_CLOCKED);
	scripted_end(e, &(struct scripted_call) {
				.op = SCRIPTED_SET_CLOCKED, .id = tgid, .since_ns = before_ns });
}

static inline int scripted_set_cpus(struct engine *engine, const struct cpus *cpus, struct err *err)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_SET_CPUS,
				      .id = (pid_t)cpus->n,
				      .ret = scripted_begin(e, SCRIPTED_SET_CPUS) };

	if (call.ret)
		err_set(err, call.ret, ERR_ENV, "scripted: CPUs");
	return scripted_end(e, &call);
}

static inline void scripted_set_divisor(struct engine *engine, uint32_t divisor)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_SET_DIVISOR);
	scripted_end(e,
		     &(struct scripted_call) { .op = SCRIPTED_SET_DIVISOR, .id = (pid_t)divisor });
}

static inline int scripted_read_threads(struct engine *engine, pid_t tgid, struct rbpf_task **ret,
					size_t *n, struct err *err)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_READ_THREADS,
				      .id = tgid,
				      .ret = scripted_begin(e, SCRIPTED_READ_THREADS) };
	struct rbpf_task *v;
	size_t count = 0;

	if (call.ret) {
		err_set(err, call.ret, ERR_RUNTIME, "scripted: threads of %d", (int)tgid);
		return scripted_end(e, &call);
	}
	v = calloc(e->n_tasks + 1, sizeof(*v));
	cr_assert_not_null(v);
	for (size_t i = 0; i < e->n_tasks; i++)
		if (!tgid || e->tasks[i].tgid == (uint32_t)tgid)
			v[count++] = e->tasks[i];
	*ret = v;
	*n = count;
	return scripted_end(e, &call);
}

static inline uint32_t scripted_events(const struct engine *engine, struct profile_event *ret)
{
	(void)engine;
	ret[RBPF_EVENT_CPU] =
		(struct profile_event) { .name = EVENT_CPU, .unit = UNIT_NS, .period = 10000000 };
	ret[RBPF_EVENT_WAIT] = (struct profile_event) { .name = EVENT_WAIT, .unit = UNIT_NS };
	ret[RBPF_EVENT_GVL] = (struct profile_event) { .name = EVENT_GVL, .unit = UNIT_NS };
	ret[RBPF_EVENT_LOCK] = (struct profile_event) { .name = EVENT_LOCK, .unit = UNIT_NS };
	ret[RBPF_EVENT_WAKEUP] = (struct profile_event) { .name = EVENT_WAKEUP, .unit = UNIT_NS };
	return RBPF_EVENTS;
}

static inline void scripted_keep_preset(struct engine *engine, const struct rbpf_preset_key *key,
					const struct rbpf_layout *layout)
{
	struct scripted_engine *e = scripted_of(engine);

	(void)key;
	(void)layout;
	scripted_begin(e, SCRIPTED_PRESET);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_PRESET });
}

static inline int scripted_hand_over(struct scripted_engine *e, engine_record_fn *handle, void *arg)
{
	size_t n = 0;
	uint64_t len;
	int r = 0;

	while (!r && e->taken < e->records.len) {
		if (e->batch && n++ == e->batch)
			return 1;
		memcpy(&len, e->records.data + e->taken, sizeof(len));
		e->taken += sizeof(len) + len;
		r = handle(arg, e->records.data + e->taken - len, len);
	}
	return r;
}

static inline void scripted_forget_stack(struct engine *engine, uint64_t stack)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_FORGET_STACK);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_FORGET_STACK, .stack = stack });
}

static inline void scripted_forget_stacks(struct engine *engine)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_FORGET_STACKS);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_FORGET_STACKS });
}

static inline int scripted_drain(struct engine *engine, engine_record_fn *handle, void *arg)
{
	struct scripted_engine *e = scripted_of(engine);
	struct scripted_call call = { .op = SCRIPTED_DRAIN,
				      .ret = scripted_begin(e, SCRIPTED_DRAIN) };

	if (!call.ret)
		call.ret = scripted_hand_over(e, handle, arg);
	return scripted_end(e, &call);
}

static inline void scripted_stop(struct engine *engine)
{
	struct scripted_engine *e = scripted_of(engine);

	scripted_begin(e, SCRIPTED_STOP);
	scripted_end(e, &(struct scripted_call) { .op = SCRIPTED_STOP });
}

static inline void scripted_counters(const struct engine *engine, uint64_t *ret)
{
	memcpy(ret, scripted_of(engine)->counters, sizeof(scripted_of(engine)->counters));
}

static inline void scripted_cost(const struct engine *engine, struct engine_cost *ret)
{
	*ret = scripted_of(engine)->cost;
}

/* The engine is the test's own memory: this releases what is in it. */
static inline void scripted_close(struct engine *engine)
{
	struct scripted_engine *e = scripted_of(engine);

	free(e->calls);
	free(e->followed.v);
	free(e->coded.v);
	free(e->clocks.v);
	free(e->memory.words);
	free(e->memory.rules);
	free(e->memory.ranges);
	buf_deinit(&e->records);
	*e = (struct scripted_engine) { 0 };
}

static inline void scripted_engine_init(struct scripted_engine *e)
{
	static const struct engine_ops ops = {
		.name = "scripted",
		.close = scripted_close,
		.follow = scripted_follow,
		.follow_again = scripted_follow_again,
		.forget = scripted_forget,
		.forget_stack = scripted_forget_stack,
		.forget_stacks = scripted_forget_stacks,
		.events = scripted_events,
		.add_thread = scripted_add_thread,
		.remove_thread = scripted_remove_thread,
		.set_clocked = scripted_set_clocked,
		.set_cpus = scripted_set_cpus,
		.set_divisor = scripted_set_divisor,
		.read_threads = scripted_read_threads,
		.drain = scripted_drain,
		.stop = scripted_stop,
		.keep_preset = scripted_keep_preset,
		.set_code = scripted_set_code,
		.unwind_memory = scripted_unwind_memory,
		.counters = scripted_counters,
		.cost = scripted_cost,
	};

	*e = (struct scripted_engine) { .engine.ops = &ops };
}

/* The @nth call of @op from now on, 1 the next, returns @ret and does nothing. */
static inline void scripted_engine_fail(struct scripted_engine *e, enum scripted_op op, size_t nth,
					int ret)
{
	e->ops[op].fail_at = e->ops[op].asked + nth;
	e->ops[op].ret = ret;
}

/* How often @op was asked for @id. */
static inline size_t scripted_count(const struct scripted_engine *e, enum scripted_op op, pid_t id)
{
	size_t count = 0;

	for (size_t i = 0; i < e->n_calls; i++)
		count += e->calls[i].op == op && e->calls[i].id == id;
	return count;
}

/* ---- the script ---- */

/* Any bytes, as a record. */
static inline void scripted_record(struct scripted_engine *e, const void *data, size_t len)
{
	const uint64_t size = len;

	buf_add(&e->records, &size, sizeof(size));
	buf_add(&e->records, data, len);
	cr_assert(!buf_failed(&e->records));
}

/* What the BPF programs do where they make @rec. Returns whether they send it. */
static inline bool scripted_kernel(struct scripted_engine *e, const struct rbpf_ring_life *rec)
{
	const pid_t tgid = (pid_t)rec->h.tgid, tid = (pid_t)rec->h.tid, child = (pid_t)rec->child;
	const bool followed = scripted_has(&e->followed, tgid);

	switch (rec->h.type) {
	case RBPF_RING_THREAD:
	case RBPF_RING_FORK:
		if (followed && rec->h.type == RBPF_RING_FORK)
			scripted_put(&e->followed, child);
		if (followed && scripted_has(&e->coded, tgid) && rec->h.type == RBPF_RING_FORK)
			scripted_put(&e->coded, child);
		return followed && (rec->h.type == RBPF_RING_FORK || !e->system_wide);
	case RBPF_RING_EXEC:
		if (followed)
			scripted_drop(&e->coded, tgid);
		if (rec->flags & RBPF_LIFE_PRESET && (followed || e->system_wide))
			scripted_put(&e->followed, tgid);
		return followed || e->system_wide;
	case RBPF_RING_EXIT:
		scripted_drop(&e->clocks, tid);
		return followed;
	default:
		if (tid == tgid) {
			scripted_drop(&e->followed, tgid);
			scripted_drop(&e->coded, tgid);
		}
		return followed;
	}
}

/*
 * Something of @type happens to a process now, or at @life->h.ts if that is not 0: a record of it
 * is sent if the BPF programs would send one. Returns when it happened.
 */
static inline uint64_t scripted_life(struct scripted_engine *e, enum rbpf_ring_record type,
				     const struct rbpf_ring_life *life)
{
	struct rbpf_ring_life rec = *life;

	rec.h.type = type;
	if (type == RBPF_RING_EXEC && !rec.child)
		rec.child = rec.h.tid; /* by the main thread */
	if (!rec.h.ts)
		rec.h.ts = clock_ns(CLOCK_MONOTONIC);
	if (scripted_kernel(e, &rec))
		scripted_record(e, &rec, sizeof(rec));
	return rec.h.ts;
}

/* The same for a sample, of whatever process. */
static inline uint64_t scripted_sample(struct scripted_engine *e,
				       const struct rbpf_ring_sample *sample)
{
	struct rbpf_ring_sample rec = *sample;

	rec.h.type = RBPF_RING_SAMPLE;
	if (!rec.h.ts)
		rec.h.ts = clock_ns(CLOCK_MONOTONIC);
	scripted_record(e, &rec, sizeof(rec));
	return rec.h.ts;
}

#endif
