/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "export/shown.h"
#include "export/thread_samples.h"
#include "profile/replay.h"
#include "support/profile_file.h"
#include "view/filter.h"
#include "view/state.h"

static struct profile_builder b;
static char path[64];

/* Some thousand samples, also in a file. */
static void setup(void)
{
	builder_init(&b);
	snprintf(path, sizeof(path), "/tmp/rbpf-test-%d.data", (int)getpid());
	for (uint64_t seed = 1; seed < 4; seed++)
		builder_add_random(&b, seed, 1000);
	builder_finish(&b);
	profile_file_write(&b, path);
}

static void teardown(void)
{
	unlink(path);
	builder_deinit(&b);
}

#define MANY 36000

/* So many that those of a thread are kept in several blocks, with all that a sample can have. */
static void setup_many(void)
{
	uint64_t seed = 7;
	uint32_t threads, stacks;

	setup();
	threads = (uint32_t)b.out.profile.n_threads;
	stacks = (uint32_t)b.out.profile.n_stacks;
	for (size_t i = 0; i < MANY; i++) {
		const struct profile_sample sample = {
			.ts = b.now += builder_random(&seed, 3000000),
			.value = builder_random(&seed, 10000000),
			.thread = builder_random(&seed, threads),
			.stack = builder_random(&seed, stacks),
			.cpu = (uint16_t)builder_random(&seed, 1000),
			.flags = (uint16_t)builder_random(&seed, SAMPLE_FLAGS + 1),
		};

		builder_must(sink_sample(&b.out.sink, &sample));
	}
	builder_finish(&b);
	profile_file_write(&b, path);
}

TestSuite(replay, .init = setup, .fini = teardown);
TestSuite(thread_samples, .init = setup_many, .fini = teardown);

/* What a command does: read without keeping samples. */
static void read_again(struct replay *from, struct profile *ret)
{
	const struct read_options opts = { .by_thread = true, .read_again = true };
	struct read_report report;
	struct err err = { 0 };

	*from = (struct replay) { .path = path };
	cr_assert_eq(profile_read(path, &opts, ret, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(ret->n_kept, 0);
}

struct seen {
	size_t n;
	size_t stop; /* after so many */
	uint64_t value;
};

static int see(void *arg, const struct profile_sample *s)
{
	struct seen *seen = arg;
	const struct profile_sample *expected = &b.out.profile.samples[seen->n];

	cr_assert_eq(s->ts, expected->ts);
	cr_assert_eq(s->value, expected->value);
	cr_assert_eq(s->thread, expected->thread);
	cr_assert_eq(s->stack, expected->stack);
	return ++seen->n == seen->stop ? -EDOM : 0;
}

Test(replay, all_samples_in_their_order)
{
	struct profile p = PROFILE_INIT;
	struct replay from;
	struct seen seen = { 0 };

	read_again(&from, &p);
	cr_expect_eq(profile_each_sample(&p, &from, see, &seen, NULL), 0);
	cr_expect_eq(seen.n, 3000);
	seen = (struct seen) { 0 };
	cr_expect_eq(profile_each_sample(&b.out.profile, NULL, see, &seen, NULL), 0);
	cr_expect_eq(seen.n, 3000, "those that were kept");
	seen = (struct seen) { .stop = 70 };
	cr_expect_eq(profile_each_sample(&p, &from, see, &seen, NULL), -EDOM);
	cr_expect_eq(seen.n, 70);
	profile_deinit(&p);
}

/* The recording went on, or there is another one. */
Test(replay, of_a_file_that_has_changed)
{
	struct profile p = PROFILE_INIT;
	struct seen seen = { 0 };
	struct err err = { 0 };
	struct replay from;

	read_again(&from, &p);
	builder_add(&b, 0, 0, 100);
	profile_file_write(&b, path);
	cr_expect_eq(profile_each_sample(&p, &from, see, &seen, &err), 0, "%s", err.msg);
	cr_expect_eq(seen.n, 3000, "what came later is left out");

	builder_deinit(&b);
	builder_init(&b);
	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "x"), 1, "x"), 0, 3);
	builder_finish(&b);
	profile_file_write(&b, path);
	seen.n = 0;
	cr_expect_eq(profile_each_sample(&p, &from, see, &seen, &err), -ESTALE);
	cr_expect_eq(err.kind, ERR_PROFILE);
	unlink(path);
	cr_expect_eq(profile_each_sample(&p, &from, see, &seen, &err), -ENOENT);
	profile_deinit(&p);
}

struct list {
	struct thread_sample samples[MANY];
	size_t n;
};

static int add(void *arg, const struct thread_sample *s)
{
	struct list *list = arg;

	list->samples[list->n++] = *s;
	return 0;
}

/* The samples of @thread that @f lets through, as they are to be. */
static size_t expect_samples(const struct list *list, const struct shown *shown, uint32_t thread)
{
	const struct profile *p = &b.out.profile;
	bool hidden = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_sample *s = &p->samples[i];

		if (s->thread != thread)
			continue;
		if (!shown_sample(shown, s)) {
			hidden = true;
			continue;
		}
		cr_assert_lt(n, list->n);
		cr_assert_eq(list->samples[n].ts, s->ts);
		cr_assert_eq(list->samples[n].value, s->value);
		cr_assert_eq(list->samples[n].stack, shown_stack(shown, s->stack));
		cr_assert_eq(list->samples[n].flags, s->flags & SAMPLE_FLAGS);
		cr_assert_eq(list->samples[n].state, !(s->flags & SAMPLE_KERNEL) ? STATE_USER
						     : s->flags & SAMPLE_PAGE_FAULT
							     ? STATE_MINOR_FAULT
							     : STATE_SYSTEM);
		cr_assert_eq(list->samples[n].after_hidden, hidden);
		hidden = false;
		n++;
	}
	cr_expect_eq(n, list->n);
	return n;
}

/*
 * Rooms, in bytes: for nothing, so that each thread is read by itself, for one, for two that turn
 * out not to fit, for all.
 */
static void check_all(const struct profile *p, const struct replay *from,
		      const struct view_filter *f, size_t expected)
{
	static const size_t rooms[] = { 0, 180000, 250000, 4000000 };
	_cleanup_free_ struct list *list = calloc(1, sizeof(*list));
	struct shown shown;

	cr_assert_not_null(list);
	cr_assert_eq(shown_init(p, f, &shown), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct thread_samples *t;
		size_t sum = 0;

		cr_assert_eq(thread_samples_new(&shown, from, rooms[i], &t), 0);
		for (size_t k = 0; k < thread_samples_count(t); k++) {
			for (int twice = 0; twice < 2; twice++) {
				list->n = 0;
				cr_assert_eq(thread_samples_each(t, k, add, list, NULL), 0);
			}
			sum += expect_samples(list, &shown, thread_samples_thread(t, k));
		}
		cr_expect_eq(sum, expected, "%zu of %zu", sum, expected);
		thread_samples_free(t);
	}
	shown_deinit(&shown);
}

Test(thread_samples, all_of_each_thread)
{
	struct profile p = PROFILE_INIT;
	struct replay from;

	read_again(&from, &p);
	check_all(&p, &from, NULL, MANY + 3000);
	check_all(&b.out.profile, NULL, NULL, MANY + 3000);
	profile_deinit(&p);
}

Test(thread_samples, that_pass_a_filter)
{
	pid_t pid = 9;
	const struct view_filter f = { .pids = &pid, .n_pids = 1, .stack = STACK_RUBY };
	struct profile p = PROFILE_INIT;
	struct replay from;
	size_t n = 0;

	for (size_t i = 0; i < b.out.profile.n_kept; i++) {
		uint32_t thread = b.out.profile.samples[i].thread;

		n += b.out.profile.processes[b.out.profile.threads[thread].process].pid == 9;
	}
	read_again(&from, &p);
	cr_assert_eq(stack_mode_prepare(&p, STACK_RUBY), 0);
	cr_assert_eq(stack_mode_prepare(&b.out.profile, STACK_RUBY), 0);
	check_all(&p, &from, &f, n);
	profile_deinit(&p);
}

/* What the thread did between two that are shown is not known then. */
Test(thread_samples, that_come_after_hidden_ones)
{
	const struct view_filter f = { .states = 1u << STATE_USER };
	struct profile p = PROFILE_INIT;
	struct replay from;
	struct shown shown;
	size_t n = 0;

	read_again(&from, &p);
	cr_assert_eq(shown_init(&b.out.profile, &f, &shown), 0);
	for (size_t i = 0; i < b.out.profile.n_kept; i++)
		n += shown_sample(&shown, &b.out.profile.samples[i]);
	shown_deinit(&shown);
	cr_assert(n && n < b.out.profile.n_kept);
	check_all(&p, &from, &f, n);
	profile_deinit(&p);
}

/* What is kept of a sample has as many bytes as its difference from the one before needs. */
Test(thread_samples, values_of_all_sizes)
{
	for (unsigned int bits = 0; bits < 64; bits++) {
		builder_sample(&b, 0, 1, 1ull << bits, 0);
		builder_sample(&b, 0, 2, (1ull << bits) - 1, 0);
	}
	builder_sample(&b, 0, 0, UINT64_MAX, 0);
	builder_finish(&b);
	check_all(&b.out.profile, NULL, NULL, b.out.profile.n_kept);
}

/* In a recording that was made to hurt. */
Test(thread_samples, times_never_go_back)
{
	_cleanup_free_ struct list *list = calloc(1, sizeof(*list));
	struct thread_samples *t;
	struct shown shown;

	cr_assert_not_null(list);
	b.now = BUILDER_START;
	builder_add(&b, 0, 0, 2);
	cr_assert_eq(shown_init(&b.out.profile, NULL, &shown), 0);
	for (size_t room = 0; room <= 100000; room += 100000) {
		cr_assert_eq(thread_samples_new(&shown, NULL, room, &t), 0);
		for (size_t k = 0; k < thread_samples_count(t); k++) {
			list->n = 0;
			cr_assert_eq(thread_samples_each(t, k, add, list, NULL), 0);
			for (size_t i = 1; i < list->n; i++)
				cr_assert_geq(list->samples[i].ts, list->samples[i - 1].ts);
		}
		thread_samples_free(t);
	}
	shown_deinit(&shown);
}
