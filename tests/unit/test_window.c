/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The window against a list of all samples, each with its names written out: whatever was dropped
 * and collected meanwhile, both must add up to the same for each range of seconds.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/profile_sink.h"
#include "profile/reason.h"
#include "profile/recorder.h"
#include "profile/sink.h"
#include "profile/window.h"
#include "support/profile_check.h"

#define START	     (7 * NSEC_PER_SEC + 123456)
#define RING	     20
#define SECONDS	     90
#define PER_SECOND   60
#define HELD_STACKS  8
#define HELD_THREADS 4

static const struct profile_meta meta = {
	.frequency = 99,
	.start_monotonic_ns = START,
	.events = { { .name = EVENT_CPU, .unit = UNIT_NS, .period = 10101010 },
		    { .name = EVENT_WAIT, .unit = UNIT_NS },
		    { .name = EVENT_GVL, .unit = UNIT_NS } },
	.n_events = 3,
};

static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

/* What fills the sink, as the collector does: it keeps ids, and what they stand for. */
struct filler {
	struct window *w;
	struct sink *s;
	uint32_t process;
	uint32_t threads[HELD_THREADS];
	char thread_names[HELD_THREADS][16];
	uint32_t stacks[HELD_STACKS];
	char stack_names[HELD_STACKS][96];
	struct profile_request_kind kind; /* strings, held as the collector holds them */
	uint32_t request;
	char request_name[16];
	uint32_t made; /* names so far, each another one */
	bool collects; /* now and then, also within a second */
};

/* One sample, in words. */
struct heard {
	uint64_t second, value;
	uint16_t event;
	char key[256];
};

struct listener {
	struct heard *v;
	size_t n, cap;
	uint64_t lost[SECONDS + RING];
};

static uint32_t str(struct sink *s, const char *text)
{
	uint32_t id = 0;

	cr_assert_eq(sink_string(s, text, strlen(text), &id), 0);
	return id;
}

static uint32_t push(struct filler *f, uint32_t parent, const char *name)
{
	struct profile_module module = { .path = str(f->s, name), .build_id = str(f->s, "ab12") };
	struct profile_frame frame;
	uint32_t id, stack = 0;

	memset(&frame, 0, sizeof(frame));
	frame.kind = name[0] == 'n' ? FRAME_NATIVE : FRAME_RUBY;
	frame.name = str(f->s, name);
	frame.file = str(f->s, "/srv/app/foo.rb");
	frame.line = 12;
	frame.func_line = 10;
	frame.module = PROFILE_NONE;
	if (name[0] == 'n')
		cr_assert_eq(sink_module(f->s, &module, &frame.module), 0);
	cr_assert_eq(sink_frame(f->s, &frame, &id), 0);
	cr_assert_eq(sink_stack(f->s, parent, id, &stack), 0);
	return stack;
}

/* A stack with names that there were not before, upon one that is held. */
static void new_stack(struct filler *f, uint32_t i)
{
	static const char kinds[] = "nm";
	char name[32], whole[96];
	uint32_t outer = below(HELD_STACKS);

	snprintf(name, sizeof(name), "%c%u", kinds[below(2)], f->made++);
	if (below(3) || strlen(f->stack_names[outer]) > 60)
		snprintf(whole, sizeof(whole), "%s", name);
	else
		snprintf(whole, sizeof(whole), "%.60s|%s", f->stack_names[outer], name);
	f->stacks[i] = push(f, strchr(whole, '|') ? f->stacks[outer] : 0, name);
	strcpy(f->stack_names[i], whole);
}

static void new_thread(struct filler *f, uint32_t i)
{
	struct profile_process def = {
		.pid = 100 + f->made++,
		.parent = below(2) ? f->process : PROFILE_NONE,
		.exe = str(f->s, "/usr/bin/ruby"),
		.cmdline = str(f->s, "ruby app.rb"),
		.attributes = str(f->s, "service.name=shop"),
		.exit_status = -1,
	};

	if (f->made < 2)
		def.parent = PROFILE_NONE;
	if (f->made < 2 || !below(4))
		cr_assert_eq(sink_process(f->s, &def, &f->process), 0);
	snprintf(f->thread_names[i], sizeof(f->thread_names[i]), "t%u", f->made++);
	cr_assert_eq(sink_thread(f->s, f->process, 1000 + f->made, str(f->s, f->thread_names[i]),
				 &f->threads[i]),
		     0);
}

static void new_request(struct filler *f)
{
	snprintf(f->request_name, sizeof(f->request_name), "R%u", below(2) ? f->made++ : 0);
	f->kind = (struct profile_request_kind) { .framework = str(f->s, "rails"),
						  .name = str(f->s, f->request_name) };
	cr_assert_eq(sink_request(f->s, f->threads[0], &f->kind, &f->request), 0);
}

static void held(void *arg, id_fn *fn, void *fn_arg)
{
	struct filler *f = arg;

	fn(fn_arg, ID_PROCESS, &f->process);
	for (size_t i = 0; i < HELD_THREADS; i++)
		fn(fn_arg, ID_THREAD, &f->threads[i]);
	for (size_t i = 0; i < HELD_STACKS; i++)
		fn(fn_arg, ID_STACK, &f->stacks[i]);
	fn(fn_arg, ID_STRING, &f->kind.framework);
	fn(fn_arg, ID_STRING, &f->kind.name);
	fn(fn_arg, ID_REQUEST, &f->request);
}

static void filler_init_with(struct filler *f, const struct window_options *opts)
{
	*f = (struct filler) { 0 };
	seed = 5;
	cr_assert_eq(window_new(opts, &f->w), 0);
	f->s = window_sink(f->w);
	for (uint32_t i = 0; i < HELD_THREADS; i++)
		new_thread(f, i);
	for (uint32_t i = 0; i < HELD_STACKS; i++)
		new_stack(f, i);
	new_request(f);
}

static void filler_init(struct filler *f, uint32_t seconds, size_t max_bytes)
{
	const struct window_options opts = { .seconds = seconds,
					     .max_bytes = max_bytes,
					     .meta = &meta };

	filler_init_with(f, &opts);
}

static void sample(struct filler *f, struct listener *l, uint64_t second)
{
	const uint32_t t = below(HELD_THREADS), k = below(HELD_STACKS);
	const bool in_request = below(3) == 0;
	const struct profile_sample s = {
		.ts = START + second * NSEC_PER_SEC + below(1000000000),
		.value = 1 + below(1000),
		.thread = f->threads[t],
		.stack = f->stacks[k],
		.request = in_request ? f->request : 0,
		.event = (uint16_t)below(3),
		.flags = below(4) ? 0 : SAMPLE_GC,
	};
	struct heard *h;

	cr_assert_eq(sink_sample(f->s, &s), 0);
	if (second < window_seconds(f->w).from) {
		l->lost[window_seconds(f->w).to]++;
		return;
	}
	cr_assert_eq(array_reserve(l->v, l->cap, l->n + 1), 0);
	h = &l->v[l->n++];
	*h = (struct heard) { .second = second, .value = s.value, .event = s.event };
	snprintf(h->key, sizeof(h->key), "%s %s %s %u", f->thread_names[t], f->stack_names[k],
		 in_request ? f->request_name : "-", s.flags);
}

/* Sums by key. */
struct sums {
	struct intern keys;
	uint64_t *samples, *value;
	size_t cap_samples, cap_value;
	uint64_t all;
};

static void add(struct sums *sums, const char *key, uint64_t samples, uint64_t value)
{
	uint32_t id;

	cr_assert_eq(intern_str(&sums->keys, key, &id), 0);
	cr_assert_eq(array_reserve(sums->samples, sums->cap_samples, id + 1), 0);
	cr_assert_eq(array_reserve(sums->value, sums->cap_value, id + 1), 0);
	sums->samples[id] += samples;
	sums->value[id] += value;
	sums->all += samples;
}

static void sums_deinit(struct sums *sums)
{
	intern_deinit(&sums->keys);
	free(sums->samples);
	free(sums->value);
}

static void path_of(const struct profile *p, uint32_t stack, struct buf *out)
{
	if (!stack)
		return;
	path_of(p, p->stacks[stack].parent, out);
	buf_addf(out, "%s%s", out->len ? "|" : "",
		 profile_str(p, p->frames[p->stacks[stack].frame].name));
}

static void sum_profile(const struct profile *p, struct sums *ret)
{
	for (size_t i = 0; i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		_cleanup_buf_ struct buf path = BUF_INIT, key = BUF_INIT;

		path_of(p, a->stack, &path);
		buf_addf(&key, "%s %s %s %u", profile_str(p, p->threads[a->thread].name),
			 buf_str(&path),
			 a->request ? profile_str(p, profile_request_kind(p, a->request)->name)
				    : "-",
			 a->flags);
		add(ret, buf_str(&key), a->samples, a->value);
	}
}

static void expect_same(const struct sums *a, const struct sums *b)
{
	uint32_t id;

	cr_expect_eq(a->keys.count, b->keys.count);
	cr_expect_eq(a->all, b->all);
	for (uint32_t i = 0; i < a->keys.count; i++) {
		const char *key = intern_get(&a->keys, i, NULL);

		cr_assert_eq(intern_find(&b->keys, key, strlen(key), &id), 0, "%s", key);
		cr_expect_eq(a->samples[i], b->samples[id], "%s", key);
		cr_expect_eq(a->value[i], b->value[id], "%s", key);
	}
}

/* Event PROFILE_NONE: the time that threads had, without what they made others wait. */
static void compare(struct filler *f, const struct listener *l, struct window_range range,
		    uint32_t event)
{
	const struct window_range has = window_seconds(f->w);
	struct sums want = { 0 }, got = { 0 };
	const struct profile *p = NULL;
	uint64_t lost = 0, value = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].second >= range.from && l->v[i].second < range.to &&
		    l->v[i].second >= has.from &&
		    (event == PROFILE_NONE ? l->v[i].event < 2 : l->v[i].event == event))
			add(&want, l->v[i].key, 1, l->v[i].value);
	for (uint64_t i = range.from < has.from ? has.from : range.from; i < range.to; i++)
		lost += l->lost[i];
	cr_assert_eq(window_profile(f->w, range, event, &p), 0);
	cr_expect_null(check_profile(p));
	for (size_t i = 0; i < p->n_processes; i++)
		cr_expect_str_eq(profile_str(p, p->processes[i].attributes), "service.name=shop");
	sum_profile(p, &got);
	expect_same(&want, &got);
	cr_expect_eq(p->n_samples, want.all);
	for (size_t i = 0; i < p->n_aggregates; i++)
		value += p->aggregates[i].value;
	cr_expect_eq(p->value, value);
	cr_expect_eq(p->totals.lost, lost);
	sums_deinit(&want);
	sums_deinit(&got);
}

static void play(struct filler *f, struct listener *l, uint64_t second)
{
	const struct profile_lost lost = { .ts = START + second * NSEC_PER_SEC, .count = 3 };

	const struct id_holder holder = { .each = held, .holder = f };

	for (uint32_t i = 0; i < PER_SECOND; i++) {
		if (f->collects && !below(PER_SECOND))
			cr_assert_eq(window_collect(f->w, &holder), 0);
		if (!below(5))
			new_stack(f, below(HELD_STACKS));
		if (!below(30))
			new_thread(f, below(HELD_THREADS));
		if (!below(20))
			new_request(f);
		/* Some are late, a few too late. */
		if (second > RING + 2 && !below(40))
			sample(f, l, second - 1 - below(RING + 2));
		else
			sample(f, l, second);
	}
	cr_assert_eq(sink_lost(f->s, &lost), 0);
	l->lost[second] += 3;
}

static void play_all(bool collect)
{
	struct listener *l = calloc(1, sizeof(*l));
	struct filler f;
	uint64_t second;

	filler_init(&f, RING, 64 << 20);
	f.collects = collect;
	for (second = 0; second < SECONDS; second++) {
		/* Nothing for a while, and once for longer than the ring. */
		if (second == 40)
			second += 5;
		if (second == 60)
			second += RING - 2;
		play(&f, l, second);
		window_advance(f.w, START + (second + 1) * NSEC_PER_SEC);
		for (uint32_t event = 0; event < 3; event++)
			compare(&f, l,
				(struct window_range) { second - below((uint32_t)second + 1),
							second + 1 },
				event);
		compare(&f, l, window_seconds(f.w), PROFILE_NONE);
		cr_expect_leq(window_seconds(f.w).to - window_seconds(f.w).from, RING - 1);
		cr_expect_eq(window_seconds(f.w).to, second + 1);
	}
	cr_expect_gt(l->n, 2000);
	window_free(f.w);
	free(l->v);
	free(l);
}

Test(window, adds_up_by_second)
{
	play_all(false);
}

Test(window, adds_up_when_it_was_collected)
{
	play_all(true);
}

/* What nobody names any more is gone, and what is held is there under its new id. */
Test(window, drops_what_is_unused)
{
	struct listener *l = calloc(1, sizeof(*l));
	const struct profile *p;
	struct filler f;
	struct id_holder holder = { .each = held, .holder = &f };
	uint64_t second;
	size_t stacks = 0, most = 0;

	filler_init(&f, 3, 64 << 20);
	for (second = 0; second < SECONDS; second++) {
		play(&f, l, second);
		cr_assert_eq(window_collect(f.w, &holder), 0);
		cr_assert_eq(window_profile(f.w, window_seconds(f.w), 0, &p), 0);
		if (second == 5)
			stacks = p->n_stacks;
		if (window_bytes(f.w) > most && second > 10)
			most = window_bytes(f.w);
		cr_expect_lt(p->n_stacks, 200);
		cr_expect_lt(p->n_threads, 60);
		cr_expect_lt(p->n_processes, 60);
		cr_expect_lt(p->strings.count, 400);
		cr_expect_lt(p->n_requests, 60);
	}
	cr_expect_gt(f.made, 1000, "too few to see whether they are dropped: %u", f.made);
	cr_expect_gt(stacks, 3);
	cr_expect_lt(most, 300 << 10);
	/* Longer than the ring without any: only what is held remains. */
	window_advance(f.w, START + (SECONDS + 10) * NSEC_PER_SEC);
	cr_assert_eq(window_collect(f.w, &holder), 0);
	cr_assert_eq(window_profile(f.w, window_seconds(f.w), 0, &p), 0);
	cr_expect_eq(p->n_samples, 0);
	cr_expect_leq(p->n_threads, HELD_THREADS);
	for (size_t i = 0; i < HELD_STACKS; i++) {
		_cleanup_buf_ struct buf path = BUF_INIT;

		path_of(p, f.stacks[i], &path);
		cr_expect_str_eq(buf_str(&path), f.stack_names[i]);
	}
	for (size_t i = 0; i < HELD_THREADS; i++)
		cr_expect_str_eq(profile_str(p, p->threads[f.threads[i]].name), f.thread_names[i]);
	cr_expect_str_eq(profile_str(p, f.kind.name), f.request_name);
	window_free(f.w);
	free(l->v);
	free(l);
}

/* Beyond its bytes the oldest seconds go, never the newest. */
Test(window, is_bounded)
{
	struct listener *l = calloc(1, sizeof(*l));
	struct filler f;
	struct id_holder holder = { .each = held, .holder = &f };
	const size_t max = 256 << 10;
	uint64_t second;

	filler_init(&f, 3600, max);
	for (second = 0; second < 20 * SECONDS; second++) {
		for (int i = 0; i < PER_SECOND; i++) {
			new_stack(&f, below(HELD_STACKS));
			cr_assert_eq(sink_sample(f.s,
						 &(struct profile_sample) {
							 .ts = START + second * NSEC_PER_SEC,
							 .value = 1,
							 .thread = f.threads[0],
							 .stack = f.stacks[below(HELD_STACKS)] }),
				     0);
		}
		if (!window_collection_due(f.w))
			continue;
		cr_assert_eq(window_collect(f.w, &holder), 0);
		cr_expect_leq(window_bytes(f.w), max);
		cr_expect(!window_collection_due(f.w));
		cr_expect_eq(window_seconds(f.w).to, second);
	}
	cr_expect_gt(window_seconds(f.w).from, 0);
	window_free(f.w);
	free(l);
}

/* Another sink is given the same samples, and each value to the last ns. */
Test(window, replays)
{
	const struct profile_sink_options opts = { .by_thread = true, .by_request = true };
	struct listener *l = calloc(1, sizeof(*l));
	struct sums want = { 0 }, got = { 0 };
	struct window_range range;
	const struct profile *p;
	struct profile_sink out;
	struct filler f;

	filler_init(&f, RING, 64 << 20);
	for (uint64_t second = 0; second < 30; second++)
		play(&f, l, second);
	range = window_seconds(f.w);
	range.from += 2;
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	memcpy(out.profile.meta.events, meta.events, sizeof(meta.events));
	out.profile.meta.n_events = meta.n_events;
	cr_assert_eq(window_replay(f.w, range, &out.sink), 0);
	cr_assert_eq(window_profile(f.w, range, 0, &p), 0);
	cr_expect_null(check_profile(&out.profile));
	cr_expect_eq(out.profile.n_samples, p->n_samples);
	cr_expect_eq(window_samples(f.w, range), p->totals.samples);
	cr_expect_geq(out.profile.first_ts, START + range.from * NSEC_PER_SEC);
	cr_expect_lt(out.profile.last_ts, START + range.to * NSEC_PER_SEC);
	cr_expect_eq(out.profile.totals.lost, p->totals.lost);
	sum_profile(p, &want);
	sum_profile(&out.profile, &got);
	cr_expect_gt(want.all, 100);
	expect_same(&want, &got);
	sums_deinit(&want);
	sums_deinit(&got);
	profile_sink_deinit(&out);
	window_free(f.w);
	free(l->v);
	free(l);
}

static uint32_t push_frame(struct filler *f, uint32_t parent, enum frame_kind kind,
			   const char *name, const char *file, enum frame_reason reason)
{
	struct profile_frame frame = { .kind = kind, .module = PROFILE_NONE, .reason = reason };
	uint32_t id, stack = 0;

	frame.name = str(f->s, name);
	frame.file = str(f->s, file);
	cr_assert_eq(sink_frame(f->s, &frame, &id), 0);
	cr_assert_eq(sink_stack(f->s, parent, id, &stack), 0);
	return stack;
}

/*
 * What a wait is, as views of recordings tell it; the stack that the collector holds stays what it
 * was.
 */
Test(window, tells_what_waits_are)
{
	struct filler f;
	struct id_holder holder = { .each = held, .holder = &f };
	uint32_t pool, wait;

	filler_init(&f, RING, 1 << 20);
	pool = push_frame(&f, 0, FRAME_RUBY, "block in Puma::ThreadPool#spawn_thread",
			  "/gems/puma/lib/puma/thread_pool.rb", 0);
	wait = push_frame(&f, pool, FRAME_CFUNC, "Thread::ConditionVariable#wait", "", 0);
	f.stacks[0] = push_frame(&f, wait, FRAME_WAIT, "(lock)", "", REASON_WAIT_LOCK);
	strcpy(f.stack_names[0], "held");
	/* The second time it has been collected since. */
	for (uint64_t second = 0; second < 2; second++) {
		const struct profile_sample sample = { .ts = START + second * NSEC_PER_SEC + 7,
						       .value = 7,
						       .thread = f.threads[0],
						       .stack = f.stacks[0],
						       .event = 1 };
		const struct profile *p;

		cr_assert_eq(sink_sample(f.s, &sample), 0);
		cr_assert_eq(
			window_profile(f.w, (struct window_range) { second, second + 1 }, 1, &p),
			0);
		cr_assert_eq(p->n_aggregates, 1);
		cr_expect_eq(p->aggregates[0].value, 7);
		cr_expect_eq(p->frames[p->stacks[p->aggregates[0].stack].frame].reason,
			     REASON_WAIT_IDLE);
		cr_expect_eq(p->frames[p->stacks[f.stacks[0]].frame].reason, REASON_WAIT_LOCK);
		cr_assert_eq(window_collect(f.w, &holder), 0);
	}
	window_free(f.w);
}

/* With a pattern of the user's; what is saved of a window has what was seen. */
Test(window, tells_what_is_idle_by_a_pattern)
{
	struct filler f;
	const struct profile *p;
	regex_t idle;
	uint32_t run;

	cr_assert_eq(regcomp(&idle, "Poller#run$", REG_EXTENDED | REG_NOSUB), 0);
	filler_init_with(
		&f, &(struct window_options) {
			    .seconds = RING, .max_bytes = 1 << 20, .meta = &meta, .idle = &idle });
	run = push_frame(&f, 0, FRAME_RUBY, "Poller#run", "/app/poller.rb", 0);
	f.stacks[0] = push_frame(&f, run, FRAME_WAIT, "(lock)", "", REASON_WAIT_LOCK);
	cr_assert_eq(sink_sample(f.s, &(struct profile_sample) { .ts = START + 7,
								 .value = 7,
								 .thread = f.threads[0],
								 .stack = f.stacks[0],
								 .event = 1 }),
		     0);
	cr_assert_eq(window_profile(f.w, (struct window_range) { 0, 1 }, 1, &p), 0);
	cr_assert_eq(p->n_aggregates, 1);
	cr_expect_eq(p->frames[p->stacks[p->aggregates[0].stack].frame].reason, REASON_WAIT_IDLE);
	cr_expect_eq(p->frames[p->stacks[f.stacks[0]].frame].reason, REASON_WAIT_LOCK);
	window_free(f.w);
	regfree(&idle);
}

/* Waits of @f in its thread 0, with its stack 0: @ns that end @end_ns after the start. */
static void add_wait(struct filler *f, uint64_t end_ns, uint64_t ns)
{
	const struct profile_sample s = { .ts = START + end_ns,
					  .value = ns,
					  .thread = f->threads[0],
					  .stack = f->stacks[0],
					  .event = 1 };

	cr_assert_eq(sink_sample(f->s, &s), 0);
}

/* How many samples of @event second @number has, what they are worth in ms, and what was lost. */
static void expect_second(struct filler *f, uint64_t number, uint32_t event, uint64_t samples,
			  uint64_t ms, uint64_t lost)
{
	const struct profile *p;

	cr_assert_eq(window_profile(f->w, (struct window_range) { number, number + 1 }, event, &p),
		     0);
	cr_expect_eq(p->n_samples, samples, "second %d: %d samples", (int)number,
		     (int)p->n_samples);
	cr_expect_eq(p->value, ms * NSEC_PER_MSEC, "second %d: %d ns", (int)number, (int)p->value);
	cr_expect_eq(p->totals.lost, lost, "second %d", (int)number);
}

#define MS(n) ((n)*NSEC_PER_MSEC)

/* As --from and --to of a recording have them. CPU time is of the moment of its tick. */
Test(window, waits_are_in_the_seconds_that_they_were_in)
{
	struct filler f;

	filler_init(&f, 4, 1 << 20);
	f.stacks[0] = push_frame(&f, f.stacks[1], FRAME_WAIT, "(lock)", "", REASON_WAIT_LOCK);
	add_wait(&f, MS(3500), MS(2250));
	add_wait(&f, MS(3700), MS(100));
	add_wait(&f, MS(4000), MS(200)); /* it ended just with second 3 */
	expect_second(&f, 1, 1, 1, 750, 0);
	expect_second(&f, 2, 1, 1, 1000, 0);
	expect_second(&f, 3, 1, 3, 800, 0);
	f.stacks[0] = f.stacks[1];
	add_wait(&f, MS(4500), MS(2250)); /* which it is not, with that stack */
	expect_second(&f, 4, 1, 1, 2250, 0);
	expect_second(&f, 3, 1, 3, 800, 0);
	window_free(f.w);
}

/* What is older than the ring is cut off, and is not lost; a wait that ended before that is. */
Test(window, waits_that_are_older_than_the_ring)
{
	struct filler f;

	filler_init(&f, 4, 1 << 20);
	f.stacks[0] = push_frame(&f, f.stacks[1], FRAME_WAIT, "(lock)", "", REASON_WAIT_LOCK);
	for (uint64_t second = 0; second <= 100; second++)
		window_advance(f.w, START + second * NSEC_PER_SEC);
	add_wait(&f, MS(100500), MS(90000));
	cr_expect_eq(window_seconds(f.w).from, 97);
	for (uint64_t second = 97; second < 100; second++)
		expect_second(&f, second, 1, 1, 1000, 0);
	expect_second(&f, 100, 1, 1, 500, 0);
	add_wait(&f, MS(97000), MS(300));
	expect_second(&f, 97, 1, 1, 1000, 0);
	expect_second(&f, 100, 1, 1, 500, 0);
	add_wait(&f, MS(96999), MS(300));
	expect_second(&f, 100, 1, 1, 500, 1);
	window_free(f.w);
}

/* So that the views of what it is replayed into have them in these seconds, too. */
Test(window, replays_waits_within_their_seconds)
{
	const struct profile_sink_options opts = { .by_thread = true, .keep_samples = true };
	uint64_t sums[4] = { 0 };
	struct profile_sink out;
	struct filler f;

	filler_init(&f, RING, 1 << 20);
	f.stacks[0] = push_frame(&f, f.stacks[1], FRAME_WAIT, "(lock)", "", REASON_WAIT_LOCK);
	add_wait(&f, MS(2500), MS(2250));
	for (uint64_t i = 0; i < 7; i++)
		add_wait(&f, MS(2600 + 57 * i), MS(57));
	add_wait(&f, MS(3000), 1);
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	memcpy(out.profile.meta.events, meta.events, sizeof(meta.events));
	out.profile.meta.n_events = meta.n_events;
	out.profile.event = 1;
	cr_assert_eq(window_replay(f.w, (struct window_range) { 0, 4 }, &out.sink), 0);
	cr_assert_eq(out.profile.n_kept, 11);
	for (size_t i = 0; i < out.profile.n_kept; i++) {
		const struct profile_sample *s = &out.profile.samples[i];
		const uint64_t second = (s->ts - START - 1) / NSEC_PER_SEC;

		cr_assert_lt(second, ARRAY_SIZE(sums));
		cr_expect_geq(s->ts - s->value, START + second * NSEC_PER_SEC, "sample %zu", i);
		sums[second] += s->value;
	}
	cr_expect_eq(sums[0], MS(750));
	cr_expect_eq(sums[1], MS(1000));
	cr_expect_eq(sums[2], MS(500 + 7 * 57) + 1);
	cr_expect_eq(sums[3], 0);
	profile_sink_deinit(&out);
	window_free(f.w);
}

#define MANY_KINDS   280
#define MANY_THREADS 280

/* A recorder knows the newest requests only: what it is given of an older one comes as a new one.
 */
Test(window, replays_more_requests_than_a_recorder_knows)
{
	_cleanup_free_ uint32_t *requests = calloc(MANY_KINDS * MANY_THREADS, sizeof(*requests));
	const struct recorder_options opts = { .memory = memfd_create("window", MFD_CLOEXEC) };
	uint32_t threads[MANY_THREADS];
	struct recorder *rec;
	struct err err = { 0 };
	struct filler f;
	char name[16];

	_Static_assert(MANY_KINDS * MANY_THREADS > RECORDER_REQUESTS_KEPT, "more than it knows");
	filler_init(&f, RING, 256 << 20);
	for (uint32_t i = 0; i < MANY_THREADS; i++)
		cr_assert_eq(sink_thread(f.s, f.process, 5000 + i, 0, &threads[i]), 0);
	for (uint32_t i = 0; i < MANY_KINDS * MANY_THREADS; i++) {
		snprintf(name, sizeof(name), "R%u", i / MANY_THREADS);
		f.kind.name = str(f.s, name);
		cr_assert_eq(sink_request(f.s, threads[i % MANY_THREADS], &f.kind, &requests[i]),
			     0);
	}
	for (uint64_t second = 1; second < 3; second++)
		for (uint32_t i = 0; i < MANY_KINDS * MANY_THREADS; i++)
			cr_assert_eq(sink_sample(f.s,
						 &(struct profile_sample) {
							 .ts = START + second * NSEC_PER_SEC + 5,
							 .value = 10101010,
							 .thread = threads[i % MANY_THREADS],
							 .request = requests[i] }),
				     0);
	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	cr_expect_eq(window_replay(f.w, (struct window_range) { 0, 4 }, recorder_sink(rec)), 0);
	cr_expect_eq(recorder_close(rec, NULL, &err), 0, "%s", err.msg);
	close(opts.memory);
	window_free(f.w);
}

Test(window, refuses_unknown_ids)
{
	struct filler f;
	uint32_t id;

	filler_init(&f, RING, 1 << 20);
	cr_expect_eq(sink_sample(f.s, &(struct profile_sample) { .thread = 99 }), -EINVAL);
	cr_expect_eq(sink_sample(f.s, &(struct profile_sample) { .stack = 999 }), -EINVAL);
	cr_expect_eq(sink_sample(f.s, &(struct profile_sample) { .request = 99 }), -EINVAL);
	cr_expect_eq(sink_sample(f.s, &(struct profile_sample) { .event = 3 }), -EINVAL);
	cr_expect_eq(sink_lost(f.s, &(struct profile_lost) { .reason = 99 }), -EINVAL);
	cr_expect_eq(sink_request(f.s, 99, &f.kind, &id), -EINVAL);
	window_free(f.w);
	window_free(NULL);
}
