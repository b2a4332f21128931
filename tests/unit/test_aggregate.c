/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "profile/aggregate.h"
#include "support/profile_builder.h"

#define N_THREADS 7u
#define N_STACKS  900u
#define N_FLAGS	  4u

struct sum {
	uint64_t samples, value;
};

static struct profile p;
static struct aggregate_index finder;

static void setup(void)
{
	p = (struct profile)PROFILE_INIT;
	finder = (struct aggregate_index)AGGREGATE_INDEX_INIT;
	p.threads = calloc(N_THREADS, sizeof(*p.threads));
	cr_assert_not_null(p.threads);
	p.n_threads = p.cap_threads = N_THREADS;
}

static void teardown(void)
{
	profile_deinit(&p);
	aggregate_index_deinit(&finder);
}

TestSuite(aggregate, .init = setup, .fini = teardown);

static struct sum sums[N_THREADS][N_STACKS][N_FLAGS];

static struct profile_sample batch[AGGREGATE_BATCH];
static size_t n_batch;

static void add_batch(void)
{
	cr_assert_eq(aggregate_add_batch(&finder, &p, batch, n_batch), 0);
	n_batch = 0;
}

/*
 * Add up random samples here, in batches of up to @batch_size, and in sums[]. Returns how many
 * aggregates that must give.
 */
static size_t add_random(bool by_thread, size_t batch_size)
{
	uint64_t seed = 77;
	size_t n = 0;

	p.by_thread = by_thread;
	for (size_t i = 0; i < 100000; i++) {
		const struct profile_sample s = {
			.ts = i,
			.thread = builder_random(&seed, N_THREADS),
			.stack = builder_random(&seed, N_STACKS),
			.flags = (uint16_t)builder_random(&seed, N_FLAGS),
			.value = builder_random(&seed, 1000),
			.cpu = (uint16_t)i,
		};
		struct sum *sum = &sums[by_thread ? s.thread : 0][s.stack][s.flags];

		n += !sum->samples;
		sum->samples++;
		sum->value += s.value;
		batch[n_batch++] = s;
		if (n_batch == batch_size)
			add_batch();
	}
	add_batch();
	return n;
}

static void expect_sums(size_t n)
{
	uint64_t samples = 0;

	cr_assert_eq(p.n_aggregates, n, "each kind once");
	for (size_t i = 0; i < p.n_aggregates; i++) {
		const struct profile_aggregate *a = &p.aggregates[i];
		const struct sum *sum = &sums[p.by_thread ? a->thread : 0][a->stack][a->flags];

		cr_assert_eq(a->thread == PROFILE_NONE, !p.by_thread);
		cr_assert_eq(a->samples, sum->samples);
		cr_assert_eq(a->value, sum->value);
	}
	for (size_t i = 0; i < N_THREADS; i++)
		samples += p.threads[i].samples;
	cr_expect_eq(samples, 100000);
	cr_expect_gt(p.threads[3].samples, 10000);
}

Test(aggregate, by_thread)
{
	size_t n = add_random(true, 1);

	cr_expect_gt(n, 20000, "the table grew a few times");
	expect_sums(n);
}

Test(aggregate, by_stack)
{
	size_t n = add_random(false, 1);

	cr_expect_gt(n, 3000);
	expect_sums(n);
}

Test(aggregate, by_thread_in_batches)
{
	expect_sums(add_random(true, AGGREGATE_BATCH));
}

Test(aggregate, by_stack_in_batches)
{
	expect_sums(add_random(false, AGGREGATE_BATCH - 1));
}

/* A stack is met in one request and in another, or in none. */
Test(aggregate, by_request)
{
	uint64_t seed = 78;
	size_t n = 0;
	uint32_t id;

	p.by_request = true;
	for (uint32_t i = 1; i < 7; i++) {
		const struct profile_request_kind kind = { .name = i % 3 };

		cr_assert_eq(profile_add_request(&p, 0, &kind, &id), 0);
		cr_assert_eq(id, i);
	}
	for (size_t i = 0; i < 20000; i++) {
		const struct profile_sample s = {
			.stack = builder_random(&seed, N_STACKS),
			.request = builder_random(&seed, 7),
			.flags = (uint16_t)builder_random(&seed, 2),
			.value = builder_random(&seed, 1000),
		};
		struct sum *sum = &sums[profile_sample_kind(&p, &s)][s.stack][s.flags];

		n += !sum->samples;
		sum->samples++;
		sum->value += s.value;
		batch[n_batch++] = s;
		if (n_batch == AGGREGATE_BATCH)
			add_batch();
	}
	add_batch();
	cr_assert_eq(p.n_aggregates, n, "each kind once");
	for (size_t i = 0; i < n; i++) {
		const struct profile_aggregate *a = &p.aggregates[i];

		cr_assert_eq(a->samples, sums[a->request][a->stack][a->flags].samples);
		cr_assert_eq(a->value, sums[a->request][a->stack][a->flags].value);
	}
}

static void expect_in_order(bool by_thread)
{
	p.by_thread = by_thread;
	for (uint32_t i = 0; i < 5000; i++) {
		const struct profile_sample s = { .stack = i / 2 };

		cr_assert_eq(aggregate_add(&finder, &p, &s), 0);
	}
	cr_assert_eq(p.n_aggregates, 2500);
	for (uint32_t i = 0; i < p.n_aggregates; i++)
		cr_assert_eq(p.aggregates[i].stack, i);
}

Test(aggregate, by_thread_in_the_order_of_the_samples)
{
	expect_in_order(true);
}

Test(aggregate, by_stack_in_the_order_of_the_samples)
{
	expect_in_order(false);
}

/* Else whoever writes a recording could make lists of 65,536. */
Test(aggregate, unknown_flags_make_no_difference)
{
	for (int by_thread = 0; by_thread < 2; by_thread++) {
		p.n_aggregates = 0;
		p.by_thread = by_thread;
		for (uint32_t i = 0; i < 5000; i++) {
			const struct profile_sample s = { .flags = (uint16_t)(i << 10) };

			cr_assert_eq(aggregate_add(&finder, &p, &s), 0);
		}
		cr_expect_eq(p.n_aggregates, 1);
		cr_expect_eq(p.aggregates[0].flags, 0);
	}
}

Test(aggregate, sums_do_not_overflow)
{
	const struct profile_sample s = { .value = UINT64_MAX - 1 };

	for (int i = 0; i < 3; i++)
		cr_assert_eq(aggregate_add(&finder, &p, &s), 0);
	cr_expect_eq(p.aggregates[0].samples, 3);
	cr_expect_eq(p.aggregates[0].value, UINT64_MAX);
}

/*
 * Samples that differ in one thing alone are two aggregates, also where their hashes meet in the
 * table. The seed of the hashes is another each time: in so many tables they meet some dozens of
 * times.
 */
Test(aggregate, kinds_whose_hashes_meet)
{
	for (int round = 0; round < 200; round++) {
		p.by_thread = true;
		for (uint32_t i = 0; i < 4 * 300; i++) {
			const struct profile_sample s = { .thread = i / 2 % 2,
							  .stack = i / 4,
							  .flags = (uint16_t)(i % 2),
							  .value = 1 };

			cr_assert_eq(aggregate_add(&finder, &p, &s), 0);
		}
		cr_assert_eq(p.n_aggregates, 4 * 300);
		teardown();
		setup();
	}
}

/*
 * One thread stands for all of its process, also in batches, and threads still have their samples.
 */
Test(aggregate, by_process)
{
	static const uint32_t process_of[N_THREADS] = { 0, 1, 0, 1, 1, 0, 2 };
	uint64_t samples[3] = { 0 };

	p.by_process = true;
	p.n_processes = 3;
	for (uint32_t i = 0; i < N_THREADS; i++)
		p.threads[i].process = process_of[i];
	for (uint32_t i = 0; i < 10 * N_THREADS; i++) {
		batch[n_batch++] = (struct profile_sample) { .thread = (i + 2) % N_THREADS,
							     .stack = 5,
							     .value = i };
		if (n_batch == 13)
			add_batch();
	}
	add_batch();
	cr_assert_eq(p.n_aggregates, 3);
	for (size_t i = 0; i < p.n_aggregates; i++)
		samples[process_of[p.aggregates[i].thread]] += p.aggregates[i].samples;
	cr_expect_eq(samples[0], 30);
	cr_expect_eq(samples[1], 30);
	cr_expect_eq(samples[2], 10);
	cr_expect_eq(p.threads[3].samples, 10);
	p.n_processes = 0; /* there is no array */
}
