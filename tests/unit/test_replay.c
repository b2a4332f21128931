/* SPDX-License-Identifier: GPL-2.0-only */
/* The samples of a recording one by one: each once, and those of a thread in the order of time. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "profile/reader.h"
#include "profile/replay.h"
#include "support/profile_builder.h"
#include "support/profile_file.h"

#define THREADS 3u
#define SAMPLES 600u

static struct profile_builder b;
static uint32_t threads[THREADS], runs, waits;
static char path[64];

static void setup(void)
{
	snprintf(path, sizeof(path), "/tmp/rbpf-test-replay-%d.data", (int)getpid());
	builder_init(&b);
	builder_states(&b);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = builder_thread(&b, builder_process(&b, 42 + i, "ruby"), 42 + i, "x");
	runs = builder_path(&b, "a");
	waits = builder_reason(&b, runs, REASON_WAIT_NETWORK);
}

static void teardown(void)
{
	builder_deinit(&b);
	unlink(path);
}

TestSuite(late_waits, .init = setup, .fini = teardown);

/* What came, and whether it came in order. */
struct heard {
	uint64_t last[THREADS];
	size_t n, back; /* samples; those that are earlier than the one before of their thread */
	uint64_t sum;	/* of what is another number for each sample */
};

static int hear(void *arg, const struct profile_sample *s)
{
	struct heard *h = arg;

	h->n++;
	h->sum += s->ts * (s->thread + 1) + s->value;
	h->back += s->ts < h->last[s->thread];
	h->last[s->thread] = s->ts;
	return 0;
}

/* Kept in memory, and read again: of CPU time and waits together, or of all events. */
static void replay(bool keep, bool all, struct heard *ret)
{
	const struct read_options opts = { .wall = true, .read_again = true, .keep_samples = keep };
	const struct replay from = { .path = path, .options = opts };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	*ret = (struct heard) { 0 };
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_eq(p.n_kept != 0, keep);
	cr_assert_eq((all ? profile_each_of_all : profile_each_sample)(&p, &from, hear, ret, &err),
		     0, "%s", err.msg);
	profile_deinit(&p);
}

static void expect_replayed(const struct heard *want)
{
	struct heard got;

	builder_finish(&b);
	profile_file_write(&b, path);
	for (int keep = 0; keep < 2; keep++) {
		replay(keep, false, &got);
		cr_expect_eq(got.n, want->n, "%zu samples", got.n);
		cr_expect_eq(got.sum, want->sum);
		cr_expect_eq(got.back, want->back, "%zu are out of order", got.back);
	}
	/* As it is in the file. */
	replay(false, true, &got);
	cr_expect_eq(got.n, want->n);
	cr_expect_eq(got.sum, want->sum);
	cr_expect_gt(got.back, want->back);
}

static void put(const struct profile_sample *s, struct heard *want)
{
	builder_must(sink_sample(&b.out.sink, s));
	want->n++;
	want->sum += s->ts * (s->thread + 1) + s->value;
}

/* Waits come up to some samples late, as one does whose end was not seen; ticks never do. */
Test(late_waits, are_where_they_belong)
{
	struct profile_sample held[8];
	struct heard want = { 0 };
	size_t n_held = 0;
	uint64_t seed = 3;

	for (uint32_t i = 0; i < SAMPLES; i++) {
		const bool wait = builder_random(&seed, 2);
		const struct profile_sample s = {
			.ts = BUILDER_START + 1000 * (uint64_t)(i + 1),
			.value = wait ? 300 : 1000,
			.thread = threads[builder_random(&seed, THREADS)],
			.stack = wait ? waits : runs,
			.event = wait ? BUILDER_WAIT : BUILDER_CPU,
		};

		if (wait && n_held < ARRAY_SIZE(held) && !builder_random(&seed, 3)) {
			held[n_held++] = s;
			continue;
		}
		put(&s, &want);
		if (n_held && !builder_random(&seed, 4)) {
			const uint32_t k = builder_random(&seed, (uint32_t)n_held);

			put(&held[k], &want);
			held[k] = held[--n_held];
		}
	}
	while (n_held)
		put(&held[--n_held], &want);
	expect_replayed(&want);
}

/* Before some of them are removed, from which it can be told which are late. */
Test(late_waits, are_placed_among_those_that_are_kept)
{
	const struct read_options opts = { .wall = true, .keep_samples = true };
	struct profile p = PROFILE_INIT;
	struct heard before = { 0 }, got = { 0 }, want = { 0 };
	struct read_report report;
	struct err err = { 0 };
	struct profile_sample s = { .value = 10, .stack = runs };

	for (uint32_t i = 0; i < 4; i++) {
		s.ts = BUILDER_START + 1000 * (uint64_t)(i + 1);
		s.thread = threads[0];
		s.stack = runs;
		s.event = BUILDER_CPU;
		put(&s, &want);
		s.ts -= 500;
		s.stack = waits;
		s.event = BUILDER_WAIT;
		put(&s, &want);
	}
	builder_finish(&b);
	profile_file_write(&b, path);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_late, 4);
	for (size_t i = 0; i < p.n_kept; i++)
		hear(&before, &p.samples[i]);
	cr_assert_eq(before.back, 4);
	cr_assert_eq(profile_place_late(&p), 0);
	cr_assert_eq(p.n_late, 0);
	for (size_t i = 0; i < p.n_kept; i++)
		hear(&got, &p.samples[i]);
	cr_expect_eq(got.n, want.n);
	cr_expect_eq(got.sum, want.sum);
	cr_expect_eq(got.back, 0);
	profile_deinit(&p);
}

/* A damaged recording may have any number: what is beyond the limit comes where it is in the file.
 */
Test(late_waits, more_than_are_put_in_order)
{
	struct profile_sample s = {
		.ts = BUILDER_START + 1000000000, .value = 10, .thread = threads[1], .stack = runs
	};
	struct heard want = { 0 };

	put(&s, &want);
	s.stack = waits;
	s.event = BUILDER_WAIT;
	for (uint32_t i = 0; i < PROFILE_MAX_LATE + 100; i++) {
		s.ts = BUILDER_START + 100 * (uint64_t)(i + 1);
		put(&s, &want);
	}
	/* The first of the others is earlier than the tick; the others are in order. */
	want.back = 1;
	s.ts = BUILDER_START + 2000000000;
	put(&s, &want);
	s.ts -= 5;
	put(&s, &want);
	want.back++;
	builder_finish(&b);
	profile_file_write(&b, path);
	for (int keep = 0; keep < 2; keep++) {
		struct heard got;

		replay(keep, false, &got);
		cr_expect_eq(got.n, want.n, "%zu samples", got.n);
		cr_expect_eq(got.sum, want.sum);
		cr_expect_eq(got.back, want.back, "%zu are out of order", got.back);
	}
}
