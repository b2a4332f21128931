/* SPDX-License-Identifier: GPL-2.0-only */
/* How long waits were, each as a whole: from a recording to the rows of a report. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/reader.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "support/profile_file.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/reshape.h"
#include "view/state.h"

#define MS   NSEC_PER_MSEC
#define LONG (2500 * MS) /* the wait that was sent in three parts */

static struct profile_builder b;
static uint32_t main_thread, worker, network, disk, runnable;
static char path[] = "/tmp/rbpf-lengths-XXXXXX";

static void sample(uint32_t thread, uint32_t stack, uint64_t value)
{
	builder_state(&b, thread, stack, BUILDER_WAIT, value, 0);
}

/*
 * The main thread waits 20 times for 5 ms, which 1 ms of something else follows, and then once, in
 * three parts, from 120 to 2620 ms; then 3 ms for a CPU. The worker begins to wait just when the
 * first of these ended, for 7 ms, and then for a disk, without having run, as far as one can tell.
 */
static void setup(void)
{
	int fd = mkstemp(path);
	uint32_t process;

	cr_assert_geq(fd, 0);
	close(fd);
	builder_init(&b);
	builder_states(&b);
	process = builder_process(&b, 42, "ruby app.rb");
	main_thread = builder_thread(&b, process, 42, "main");
	worker = builder_thread(&b, process, 43, "worker");
	network = builder_reason(&b, builder_path(&b, "<main>|read"), REASON_WAIT_NETWORK);
	disk = builder_reason(&b, builder_path(&b, "<main>|load"), REASON_WAIT_DISK);
	runnable = builder_reason(&b, builder_path(&b, "<main>|read"), REASON_WAIT_CPU);
	for (int i = 0; i < 20; i++) {
		sample(main_thread, network, 5 * MS);
		b.now += MS;
	}
	sample(main_thread, network, 1000 * MS);
	sample(worker, network, 7 * MS);
	sample(worker, disk, 1 * MS);
	b.now -= 8 * MS;
	sample(main_thread, network, 1000 * MS);
	sample(main_thread, network, 500 * MS);
	sample(main_thread, runnable, 3 * MS);
}

static void teardown(void)
{
	builder_deinit(&b);
	unlink(path);
}

TestSuite(wait_lengths, .init = setup, .fini = teardown);

static struct profile read_with(struct read_options opts)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	builder_finish(&b);
	profile_file_write(&b, path);
	if (!opts.event)
		opts.event = EVENT_WAIT;
	opts.lengths = true;
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	return p;
}

/* Rows of @by of @p: "NAME N NS LONGEST" in ms, for each. */
static void expect_rows(const struct profile *p, enum flat_by by, const char *want)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct recording rec = { .profile = *p };
	const struct report r = { .rec = &rec, .by = by };
	_cleanup_buf_ struct buf got = BUF_INIT;

	cr_assert_eq(flat_build(p, NULL, by, FLAT_SORT_TOTAL, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct wait_sum *w = &flat.rows[i].waits;

		buf_addstr(&got, i ? ", " : "");
		report_row_name(&r, by, &flat.rows[i], &got);
		buf_addf(&got, " %d %d %d", (int)w->n, (int)(w->ns / MS),
			 (int)(w->longest_ns / MS));
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

Test(wait_lengths, parts_are_one_wait)
{
	_cleanup_profile_ struct profile p = read_with((struct read_options) { .by_thread = true });

	cr_expect(p.with_lengths);
	expect_rows(&p, FLAT_BY_STATE, "network 22 2607 2500, wait-cpu 1 3 3, disk 1 1 1");
	expect_rows(&p, FLAT_BY_THREAD, "main (tid 42) 22 2603 2500, worker (tid 43) 2 8 7");
}

/* Of a method also those of what it called; a wait is one wait of all of them. */
Test(wait_lengths, of_methods)
{
	_cleanup_profile_ struct profile p =
		read_with((struct read_options) { .event = EVENT_WALL });

	expect_rows(&p, FLAT_BY_FUNCTION,
		    "<main> 24 2611 2500, read 23 2610 2500, (waits for the network) 22 2607 2500, "
		    "(waits for a CPU) 1 3 3, load 1 1 1, (waits for a file) 1 1 1");
}

/* A wait counts with all its length if any of it was in the time, and not at all otherwise. */
Test(wait_lengths, in_a_time)
{
	static const struct {
		uint64_t from, to;
		const char *rows;
	} cases[] = {
		{ 1000, 1100, "network 1 2500 2500" },
		{ 2600, 2622, "network 1 2500 2500, wait-cpu 1 3 3" },
		{ 2620, 0, "wait-cpu 1 3 3" },
		{ 0, 119, "network 20 100 5" },
		{ 110, 121, "network 3 2510 2500" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_profile_ struct profile p = read_with((struct read_options) {
			.from_ns = cases[i].from * MS, .to_ns = cases[i].to * MS });

		expect_rows(&p, FLAT_BY_STATE, cases[i].rows);
	}
}

/* What is left of the recording moves up, and its waits with it. */
Test(wait_lengths, below_a_method)
{
	_cleanup_profile_ struct profile p = read_with((struct read_options) { .by_thread = true });
	struct reshape_options opts = { .has_root = true };
	struct view_filter f = VIEW_FILTER_INIT;

	cr_assert_eq(regcomp(&opts.root, "^load$", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(profile_reshape(&p, &f, &opts), 0);
	regfree(&opts.root);
	expect_rows(&p, FLAT_BY_STATE, "disk 1 1 1");
}

/* Nothing says which samples on both sides of a cut are of one wait. */
Test(wait_lengths, not_told_where_times_divide_waits)
{
	const struct time_cut cut = { .since_start_ns = NSEC_PER_SEC };
	_cleanup_profile_ struct profile p =
		read_with((struct read_options) { .cuts = &cut, .n_cuts = 1, .by_thread = true });

	cr_expect_not(p.with_lengths);
	cr_expect_null(p.aggregate_waits);
}

/* As rbpf top saves them: a sample there is the mean of several. */
Test(wait_lengths, not_told_of_what_was_added_up)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	b.out.profile.meta.by_second = 1;
	p = read_with((struct read_options) { .by_thread = true });
	cr_expect_not(p.with_lengths);
}

Test(wait_lengths, not_told_of_cpu_time)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	builder_state(&b, main_thread, builder_path(&b, "<main>"), BUILDER_CPU, MS, 0);
	p = read_with((struct read_options) { .event = EVENT_CPU });
	cr_expect_not(p.with_lengths);
}
