/* SPDX-License-Identifier: GPL-2.0-only */
/* Percentiles of the waits in rows of states and of peers, from a recording to its report. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/replay.h"
#include "report/report.h"
#include "support/profile_builder.h"
#include "support/profile_file.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/peer.h"
#include "view/reshape.h"
#include "view/state.h"

#define MS	 NSEC_PER_MSEC
#define RANDOM	 5000u

#define TEMPLATE "/tmp/rbpf-percentiles-XXXXXX"

static struct profile_builder b;
static uint32_t thread, other;
static char path[sizeof(TEMPLATE)];
static struct replay from; /* what was read last */

static void setup(void)
{
	uint32_t process;
	int fd;

	memcpy(path, TEMPLATE, sizeof(path));
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	close(fd);
	builder_init(&b);
	builder_states(&b);
	process = builder_process(&b, 42, "ruby app.rb");
	thread = builder_thread(&b, process, 42, "main");
	other = builder_thread(&b, process, 43, "other");
}

static void teardown(void)
{
	builder_deinit(&b);
	unlink(path);
}

TestSuite(wait_percentiles, .init = setup, .fini = teardown);

/* @method, that waits for @on. */
static uint32_t waits_for(const char *method, const char *on)
{
	return builder_wait_for(&b, builder_path(&b, method), REASON_WAIT_NETWORK, on);
}

/* A thread runs between two waits. */
static void add_wait(uint32_t of, uint32_t stack, uint64_t ns)
{
	b.now += MS;
	builder_state(&b, of, stack, BUILDER_WAIT, ns, 0);
}

/* Kept, waits come from memory; else they are read again. */
static struct profile read_with(struct read_options opts)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	builder_finish(&b);
	profile_file_write(&b, path);
	opts.event = opts.event ?: EVENT_WAIT;
	from = (struct replay) {
		.path = path,
		.options = { .event = opts.event, .from_ns = opts.from_ns, .to_ns = opts.to_ns }
	};
	opts.lengths = opts.whole_waits = true;
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(p.whole_waits);
	cr_expect_eq(p.n_waits != 0, opts.keep_waits);
	return p;
}

/* As many waits have their lengths counted as WAITS says, in each row. */
static void build(const struct profile *p, const struct view_filter *f, enum flat_by by,
		  struct flat *ret)
{
	struct err err = { 0 };

	cr_assert_eq(flat_build(p, f, by, FLAT_SORT_TOTAL, ret), 0);
	cr_assert_eq(wait_percentiles(p, &from, f, by, ret, &err), 0, "%s", err.msg);
	for (size_t i = 0; i < ret->n_rows; i++)
		cr_expect_eq(ret->rows[i].percentiles.n, ret->rows[i].waits.n, "%zu", i);
}

/* Rows of @p: "NAME N P50 P95 P99 LONGEST" in ms, for each. */
static void expect_rows(const struct profile *p, const struct view_filter *f, enum flat_by by,
			const char *want)
{
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct recording rec = { .profile = *p };
	const struct report r = { .rec = &rec, .by = by };
	_cleanup_buf_ struct buf got = BUF_INIT;

	build(p, f, by, &flat);
	for (size_t i = 0; i < flat.n_rows; i++) {
		const struct flat_row *row = &flat.rows[i];

		buf_addstr(&got, i ? ", " : "");
		report_row_name(&r, by, row, &got);
		buf_addf(&got, " %d %.0f %.0f %.0f %.0f", (int)row->waits.n,
			 (double)row->percentiles.p50 / MS, (double)row->percentiles.p95 / MS,
			 (double)row->percentiles.p99 / MS, (double)row->waits.longest_ns / MS);
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* From 1 ns to 2 s, as many of each order of magnitude. */
static uint64_t random_length(void)
{
	const uint64_t power = 1ull << random_u64() % 31;

	return power + random_u64() % power;
}

static int compare_u64(const void *one, const void *another)
{
	const uint64_t x = *(const uint64_t *)one, y = *(const uint64_t *)another;

	return (x > y) - (x < y);
}

static void expect_percentile(const uint64_t *sorted, size_t n, unsigned int percent, uint64_t got)
{
	const uint64_t exact = sorted[(n * percent + 99) / 100 - 1];

	cr_expect_geq(got, exact - exact / 64, "P%u of %zu: %lu, not %lu", percent, n, got, exact);
	cr_expect_leq(got, exact + exact / 64, "P%u of %zu: %lu, not %lu", percent, n, got, exact);
	cr_expect_leq(got, sorted[n - 1]);
	cr_expect_geq(got, sorted[0]);
}

/* The first @n waits, in stacks of three methods and two threads, in a row of one peer. */
static void expect_random(size_t n)
{
	const uint32_t stacks[] = { waits_for("a", "db"), waits_for("b", "db"),
				    waits_for("c", "db") };
	uint64_t *lengths = calloc(n, sizeof(*lengths));
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	cr_assert(lengths);
	for (size_t i = 0; i < n; i++) {
		lengths[i] = random_length();
		add_wait(i % 5 ? thread : other, stacks[random_u64() % 3], lengths[i]);
	}
	qsort(lengths, n, sizeof(*lengths), compare_u64);
	p = read_with((struct read_options) { .by_thread = true });
	build(&p, NULL, FLAT_BY_PEER, &flat);
	cr_assert_eq(flat.n_rows, 1);
	cr_expect_eq(flat.rows[0].waits.n, n);
	cr_expect_eq(flat.rows[0].waits.longest_ns, lengths[n - 1]);
	expect_percentile(lengths, n, 50, flat.rows[0].percentiles.p50);
	expect_percentile(lengths, n, 95, flat.rows[0].percentiles.p95);
	expect_percentile(lengths, n, 99, flat.rows[0].percentiles.p99);
	free(lengths);
}

Test(wait_percentiles, of_random_lengths)
{
	static const size_t sizes[] = { 1, 2, 3, 20, 99, 100, 101, 1000, RANDOM };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		teardown();
		setup();
		expect_random(sizes[i]);
	}
}

/* 95 waits of 5 ms and 5 of 50 ms for the first, one of 7 ms for the other one. */
static void add_servers(void)
{
	const uint32_t db = waits_for("query", "10.0.0.5:5432"), cache = waits_for("get", "redis");

	for (int i = 0; i < 100; i++)
		add_wait(i % 2 ? thread : other, db, i % 20 ? 5 * MS : 50 * MS);
	add_wait(thread, cache, 7 * MS);
}

Test(wait_percentiles, of_rows)
{
	add_servers();
	add_wait(thread, builder_reason(&b, builder_path(&b, "load"), REASON_WAIT_DISK), 2 * MS);
	builder_state(&b, thread, builder_path(&b, "<main>"), BUILDER_CPU, MS, 0);
	for (int keep = 0; keep < 2; keep++) {
		_cleanup_profile_ struct profile p = read_with(
			(struct read_options) { .event = EVENT_WALL, .keep_waits = keep });

		expect_rows(&p, NULL, FLAT_BY_PEER,
			    "10.0.0.5:5432 100 5 5 50 50, redis 1 7 7 7 7,  1 2 2 2 2,  0 0 0 0 0");
		expect_rows(&p, NULL, FLAT_BY_STATE,
			    "network 101 5 7 50 50, disk 1 2 2 2 2, minor-fault 0 0 0 0 0");
	}
}

/* What cannot be read again is kept, though nobody asked for it. */
Test(wait_percentiles, of_a_pipe)
{
	const struct read_options opts = { .event = EVENT_WAIT,
					   .lengths = true,
					   .whole_waits = true };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	char bytes[32 << 10]; /* what a pipe has room for */
	int fds[2], fd;
	ssize_t n;

	add_servers();
	builder_finish(&b);
	profile_file_write(&b, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	cr_assert(n > 0 && n < (ssize_t)sizeof(bytes), "%zd", n);
	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], bytes, (size_t)n), n);
	close(fds[1]);
	cr_assert_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
	from = (struct replay) { .path = "-", .options = { .event = EVENT_WAIT } };
	cr_assert_eq(profile_read("-", &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_eq(p.n_waits, 101);
	expect_rows(&p, NULL, FLAT_BY_PEER, "10.0.0.5:5432 100 5 5 50 50, redis 1 7 7 7 7");
}

/* Of what the filter selects, as the rows are. */
Test(wait_percentiles, filtered)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	add_servers(); /* all of the longer ones are of the other thread */
	p = read_with((struct read_options) { .by_thread = true });
	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "main", "--thread", &err), 0);
	expect_rows(&p, &f, FLAT_BY_PEER, "10.0.0.5:5432 50 5 5 5 5, redis 1 7 7 7 7");
	view_filter_deinit(&f);
	f.states = state_set_of(STATE_DISK);
	expect_rows(&p, &f, FLAT_BY_PEER, "");
}

/* A wait that went on is one, and counts with all its length where a part of it is selected. */
Test(wait_percentiles, in_a_time)
{
	const uint32_t db = waits_for("query", "db");

	for (int i = 0; i < 2; i++)
		add_wait(thread, db, 10 * MS);
	add_wait(thread, db, 1000 * MS);
	builder_state(&b, thread, db, BUILDER_WAIT, 500 * MS, 0);
	for (int keep = 0; keep < 2; keep++) {
		_cleanup_profile_ struct profile p = read_with((struct read_options) {
			.from_ns = 15 * MS, .to_ns = 100 * MS, .keep_waits = keep });

		expect_rows(&p, NULL, FLAT_BY_PEER, "db 2 10 1500 1500 1500");
	}
}

/* Stacks are others then than in the recording, so waits are kept. */
Test(wait_percentiles, below_a_method)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct reshape_options opts = { .has_root = true };
	struct view_filter f = VIEW_FILTER_INIT;

	add_servers();
	p = read_with((struct read_options) { .by_thread = true, .keep_waits = true });
	cr_assert_eq(regcomp(&opts.root, "^get$", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(profile_reshape(&p, &f, &opts), 0);
	regfree(&opts.root);
	cr_expect_eq(p.n_waits, 1);
	expect_rows(&p, NULL, FLAT_BY_PEER, "redis 1 7 7 7 7");
}

/* What the file has no more of than when it was read first is no result. */
Test(wait_percentiles, of_a_file_that_changed)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	_cleanup_flat_ struct flat flat = FLAT_INIT;
	struct err err = { 0 };

	add_servers();
	p = read_with((struct read_options) { .by_thread = true });
	cr_assert_eq(flat_build(&p, NULL, FLAT_BY_PEER, FLAT_SORT_SELF, &flat), 0);
	b.out.profile.n_kept = 50;
	profile_file_write(&b, path);
	cr_expect_eq(wait_percentiles(&p, &from, NULL, FLAT_BY_PEER, &flat, &err), -ESTALE);
	cr_expect_eq(err.kind, ERR_PROFILE);
}

/* Where nobody will ask for them nothing is kept. */
Test(wait_percentiles, only_if_wanted)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	const struct read_options opts = { .event = EVENT_WAIT, .lengths = true };
	struct read_report report;
	struct err err = { 0 };

	add_servers();
	builder_finish(&b);
	profile_file_write(&b, path);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_not(p.whole_waits);
	cr_expect_eq(p.n_waits, 0);
}

/* The line of titles in a terminal of @width columns, and whether all lines fit into it. */
static void expect_titles(const struct profile *p, enum flat_by by, size_t width, const char *want)
{
	struct recording rec = { .path = "x.data", .profile = *p };
	const struct report report = {
		.rec = &rec, .by = by, .limit = REPORT_NO_LIMIT, .width = width, .from = from
	};
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct err err = { 0 };
	const char *titles;

	cr_assert_eq(report_text(&report, &out, &err), 0, "%s", err.msg);
	titles = strchr(buf_str(&out), '\n') + 1;
	while (*titles == ' ')
		titles++;
	cr_expect_eq(strncmp(titles, want, strlen(want)), 0, "%zu:\n%s", width, titles);
}

Test(wait_percentiles, columns_of_a_terminal)
{
	static const char all[] = "SELF  SELF%   +/-  TOTAL  TOTAL%  WAITS     MEAN      P50      "
				  "P99  LONGEST  ";
	static const char usual[] = "SELF  SELF%   +/-  TOTAL  TOTAL%  PEER";
	static const char exact[] = "SELF  SELF%  WAITS      P50      P99  LONGEST  PEER";
	static const char both[] = "SELF  SELF%   +/-  WAITS      P50      P99  LONGEST  STATE";
	_cleanup_profile_ struct profile p = PROFILE_INIT, wall = PROFILE_INIT;

	add_servers();
	builder_state(&b, thread, builder_path(&b, "<main>"), BUILDER_CPU, MS, 0);
	p = read_with((struct read_options) { .by_thread = true });
	expect_titles(&p, FLAT_BY_PEER, 0, all);
	expect_titles(&p, FLAT_BY_PEER, 120, all);
	expect_titles(&p, FLAT_BY_PEER, 119, exact);
	expect_titles(&p, FLAT_BY_PEER, 80, exact);
	expect_titles(&p, FLAT_BY_PEER, 79, usual);
	wall = read_with((struct read_options) { .event = EVENT_WALL });
	expect_titles(&wall, FLAT_BY_STATE, 120, all);
	expect_titles(&wall, FLAT_BY_STATE, 80, both);
}
