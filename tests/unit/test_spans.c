/* SPDX-License-Identifier: GPL-2.0-only */
/* Spans of threads, and what is left of them when they are merged. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/array.h"
#include "support/profile_builder.h"
#include "view/spans.h"

#define N_THREADS 3
#define N_STATES  4

static struct time_span like(uint64_t value, uint8_t state, uint32_t stack)
{
	return (struct time_span) { .value = value, .state = state, .stack = stack };
}

static void expect_span(const struct spans *s, size_t i, uint64_t start, uint64_t len,
			uint64_t value, uint32_t samples)
{
	const struct time_span *span = &s->threads[0].v[i];

	cr_assert_lt(i, s->threads[0].n);
	cr_expect_eq(span->start, start, "%zu: start %llu", i, (unsigned long long)span->start);
	cr_expect_eq(span->len, len, "%zu: len %llu", i, (unsigned long long)span->len);
	cr_expect_eq(span->value, value, "%zu: value %llu", i, (unsigned long long)span->value);
	cr_expect_eq(span->samples, samples, "%zu: samples %u", i, span->samples);
}

static void add_wait(struct spans *s, uint64_t ts, uint64_t value)
{
	const struct time_span span = like(value, 1, 7);

	cr_assert_eq(spans_add_wait(s, 0, ts, &span), 0);
}

static void add_cpu(struct spans *s, uint64_t ts, uint64_t value)
{
	const struct time_span span = like(value, 0, 5);

	cr_assert_eq(spans_add_cpu(s, 0, ts, &span), 0);
}

Test(spans, cpu_time_is_where_the_thread_did_not_wait)
{
	_cleanup_spans_ struct spans s = SPANS_INIT;

	cr_assert_eq(spans_init(1, 100, &s), 0);
	add_wait(&s, 100, 50);
	add_wait(&s, 300, 150); /* it ran from 100 to 150 */
	add_wait(&s, 400, 60);	/* … and from 300 to 340 */
	add_cpu(&s, 420, 80);	/* … and from 400 to 420 */
	spans_finish(&s);
	cr_assert_eq(s.threads[0].n, 6);
	expect_span(&s, 0, 50, 50, 50, 1);
	expect_span(&s, 1, 130, 20, 20, 0); /* the latest 80 of the 110 */
	expect_span(&s, 2, 150, 150, 150, 1);
	expect_span(&s, 3, 300, 40, 40, 0);
	expect_span(&s, 4, 340, 60, 60, 1);
	expect_span(&s, 5, 400, 20, 20, 1);
}

Test(spans, what_has_no_room_is_not_lost)
{
	_cleanup_spans_ struct spans s = SPANS_INIT;

	cr_assert_eq(spans_init(1, 100, &s), 0);
	add_cpu(&s, 100, 30);
	add_cpu(&s, 110, 30);  /* only 10 have passed */
	add_cpu(&s, 110, 30);  /* none */
	add_wait(&s, 105, 10); /* while it is known to have run */
	add_cpu(&s, 5, 1000);  /* before the beginning of time */
	spans_finish(&s);
	cr_assert_eq(s.threads[0].n, 5);
	expect_span(&s, 0, 5, 0, 1000, 1);
	expect_span(&s, 1, 70, 30, 30, 1);
	expect_span(&s, 2, 100, 10, 30, 1);
	expect_span(&s, 3, 105, 0, 10, 1);
	expect_span(&s, 4, 110, 0, 30, 1);
}

Test(spans, merged)
{
	_cleanup_spans_ struct spans s = SPANS_INIT;

	cr_assert_eq(spans_init(1, 100, &s), 0);
	add_wait(&s, 200, 100);	  /* [100, 200) */
	add_wait(&s, 1100, 700);  /* [400, 1100): divided at 1024 */
	add_wait(&s, 1500, 300);  /* [1200, 1500) */
	add_wait(&s, 9000, 7000); /* longer than the width: as it is */
	spans_coarsen(&s);
	cr_assert_eq(s.width, 1024);
	cr_assert_eq(s.threads[0].n, 3);
	expect_span(&s, 0, 0, 1024, 100 + 624, 1);
	expect_span(&s, 1, 1024, 1024, 76 + 300, 2);
	expect_span(&s, 2, 2000, 7000, 7000, 1);
	cr_expect(s.threads[0].v[0].merged && !s.threads[0].v[2].merged);
}

/* The most frequent stack is that of most time. */
Test(spans, stack_of_the_most)
{
	_cleanup_spans_ struct spans s = SPANS_INIT;

	cr_assert_eq(spans_init(1, 100, &s), 0);
	for (uint32_t i = 0; i < 9; i++) {
		const struct time_span span = { .start = i * 10,
						.len = 10,
						.value = 10,
						.votes = 10,
						.stack = i % 3 == 2 ? i : 42 };

		cr_assert_eq(spans_add(&s, 0, &span), 0);
	}
	spans_coarsen(&s);
	cr_assert_eq(s.threads[0].n, 1);
	cr_expect_eq(s.threads[0].v[0].stack, 42);
}

struct sums {
	uint64_t value[N_THREADS][N_STATES][2], samples[N_THREADS][N_STATES][2];
};

static void add_random(struct spans *s, uint64_t seed, size_t n, struct sums *sums)
{
	uint64_t now[N_THREADS] = { 0 };

	while (n--) {
		const uint32_t thread = builder_random(&seed, N_THREADS);
		struct time_span span =
			like(1 + builder_random(&seed, 1u << builder_random(&seed, 20)),
			     (uint8_t)builder_random(&seed, N_STATES), builder_random(&seed, 9));

		/* Mostly what can be; sometimes what cannot. */
		span.gc = !builder_random(&seed, 5);
		now[thread] += builder_random(&seed, 20) ? span.value + builder_random(&seed, 500)
							 : 3;
		sums->value[thread][span.state][span.gc] += span.value;
		sums->samples[thread][span.state][span.gc]++;
		cr_assert_eq(span.state ? spans_add_wait(s, thread, now[thread], &span)
					: spans_add_cpu(s, thread, now[thread], &span),
			     0);
	}
}

static void expect_sums(const struct spans *s, const struct sums *want)
{
	struct sums got = { 0 };
	size_t n = 0;

	for (size_t t = 0; t < N_THREADS; t++) {
		const struct span_list *list = &s->threads[t];

		n += list->n;
		for (size_t i = 0; i < list->n; i++) {
			const struct time_span *span = &list->v[i];

			cr_expect(!i || span->start >= span[-1].start, "in the order of time");
			cr_expect(!span->merged ||
				  (span->start % s->width == 0 && span->len == s->width));
			got.value[t][span->state][span->gc] += span->value;
			got.samples[t][span->state][span->gc] += span->samples;
		}
	}
	cr_expect_eq(n, s->n, "%zu spans, not %zu", n, s->n);
	cr_expect_arr_eq(&got, want, sizeof(got), "no time and no sample is lost");
}

Test(spans, sums_are_those_of_the_samples)
{
	static const size_t limits[] = { 100000, 2000, 300, 10 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		_cleanup_spans_ struct spans s = SPANS_INIT;
		struct sums sums = { 0 };

		cr_assert_eq(spans_init(N_THREADS, limits[i], &s), 0);
		add_random(&s, i + 1, 20000, &sums);
		spans_finish(&s);
		expect_sums(&s, &sums);
		cr_expect_eq(s.width > 0, i > 0);
		if (i && i < 3)
			cr_expect_leq(s.n, limits[i]);
		for (int k = 0; k < 70; k++)
			spans_coarsen(&s);
		expect_sums(&s, &sums);
		cr_expect_leq(s.n, N_THREADS * N_STATES * 2);
	}
}
