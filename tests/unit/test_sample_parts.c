/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits that are cut at the ends of a time, and divided at times. */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/sample_parts.h"
#include "support/profile_builder.h"
#include "support/profile_file.h"

#define END 24u /* all happens in so many ns */

static struct profile_builder b;
static uint32_t thread, runs, waits;

static void setup(void)
{
	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby app.rb"), 42, "main");
	runs = builder_path(&b, "<main>");
	waits = builder_reason(&b, runs, REASON_WAIT_NETWORK);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(sample_parts, .init = setup, .fini = teardown);

/* How much of the ns that end at each time from 1 to END is in parts. */
struct taken {
	uint32_t ns[END + 1];
	uint32_t n;
	uint64_t cut; /* those behind it count ten times */
};

static int take(void *arg, const struct profile_sample *s)
{
	struct taken *t = arg;
	/* A part that ends at a limit has the time before it. */
	const uint64_t behind = s->ts >= t->cut ? 10 : 1;

	cr_assert_gt(s->value, 0);
	t->n++;
	for (uint64_t i = 0; i < s->value; i++)
		t->ns[s->ts - i] += (uint32_t)behind;
	return 0;
}

static struct profile_sample wait_of(uint64_t begin, uint64_t end)
{
	return (struct profile_sample) {
		.ts = end, .value = end - begin, .thread = thread, .stack = waits
	};
}

/* The time that two stretches have in common. */
static uint64_t common(uint64_t begin, uint64_t end, uint64_t from, uint64_t to)
{
	const uint64_t first = begin > from ? begin : from, last = end < to ? end : to;

	return last > first ? last - first : 0;
}

Test(sample_parts, within_a_time)
{
	for (uint64_t begin = 0; begin < END; begin++)
		for (uint64_t end = begin + 1; end <= END; end++)
			for (uint64_t from = 0; from < END; from++)
				for (uint64_t to = from + 1; to <= END + 1; to++) {
					struct profile_sample s = wait_of(begin, end);
					const uint64_t want = common(begin, end, from, to);

					cr_assert_eq(
						sample_part_within(&b.out.profile, &s, from, to),
						want > 0, "%d to %d in %d to %d", (int)begin,
						(int)end, (int)from, (int)to);
					if (!want)
						continue;
					cr_assert_eq(s.value, want);
					cr_assert(s.ts >= from && s.ts < to);
				}
}

/* What is of a moment is whole, and so is a wait of no length. */
Test(sample_parts, of_a_moment)
{
	struct profile_sample run = { .ts = 10, .value = 8, .stack = runs }, s;

	for (uint64_t from = 0; from < END; from++)
		for (uint64_t to = from + 1; to <= END; to++) {
			s = run;
			cr_assert_eq(sample_part_within(&b.out.profile, &s, from, to),
				     from <= 10 && 10 < to);
			cr_assert_eq(s.value, 8);
			s = (struct profile_sample) { .ts = 10, .stack = waits };
			cr_assert_eq(sample_part_within(&b.out.profile, &s, from, to),
				     from <= 10 && 10 < to);
		}
	for (uint64_t at = 1; at < END; at++)
		cr_assert_not(sample_part_before(&b.out.profile, &run, at, &s));
}

/* What others waited meanwhile has the stack of the wait, and a value that may be longer than it.
 */
Test(sample_parts, of_what_others_waited)
{
	const struct profile_sample charge = {
		.ts = 10, .value = 30, .stack = waits, .event = BUILDER_GVL
	};
	struct profile *p = &b.out.profile;
	struct taken t = { .cut = END };
	struct profile_sample s;

	builder_states(&b);
	for (uint64_t at = 1; at < END; at++) {
		s = charge;
		cr_expect_eq(sample_part_within(p, &s, at, END), at <= 10);
		cr_expect_eq(s.value, 30);
		cr_expect_not(sample_part_before(p, &s, at, &s));
	}
	p->n_cuts = 1;
	p->cuts[0] = 5;
	s = charge;
	s.value = 8;
	cr_expect_eq(sample_parts_between_cuts(p, s, take, &t), 0);
	cr_expect_eq(t.n, 1);
	p->n_cuts = 0;
}

Test(sample_parts, between_cuts)
{
	struct profile *p = &b.out.profile;

	p->n_cuts = 2;
	for (uint64_t begin = 0; begin < END; begin++)
		for (uint64_t end = begin + 1; end <= END; end++)
			for (p->cuts[0] = 1; p->cuts[0] < END; p->cuts[0]++) {
				struct taken t = { .cut = p->cuts[0] };
				uint32_t before = 0, behind = 0;

				p->cuts[1] = END - p->cuts[0] / 2;
				cr_assert_eq(
					sample_parts_between_cuts(p, wait_of(begin, end), take, &t),
					0);
				for (size_t i = 0; i <= END; i++) {
					before += t.ns[i] % 10;
					behind += t.ns[i] / 10;
				}
				cr_assert_eq(before, common(begin, end, 0, t.cut));
				cr_assert_eq(behind, common(begin, end, t.cut, END));
				cr_assert_leq(t.n, 3);
			}
	p->n_cuts = 0;
}

/* ---- in files ---- */

static void read_file(const char *path, const struct read_options *opts, struct profile *ret)
{
	struct read_report report;
	struct err err = { 0 };

	cr_assert_eq(profile_read(path, opts, ret, &report, &err), 0, "%s", err.msg);
}

/* One wait from 100 to 400 ms, and 10 ms of CPU time at 450. */
static void write_file(const char *path)
{
	const uint64_t ms = NSEC_PER_SEC / 1000;

	b.now = BUILDER_START + 400 * ms;
	builder_sample(&b, thread, waits, 300 * ms, 0);
	b.now = BUILDER_START + 450 * ms;
	builder_sample(&b, thread, runs, 10 * ms, 0);
	builder_finish(&b);
	profile_file_write(&b, path);
}

Test(sample_parts, of_a_recording)
{
	static const struct {
		uint64_t from, to, ms;
	} cases[] = { { 0, 0, 310 },	{ 150, 0, 260 },  { 200, 300, 100 }, { 0, 200, 100 },
		      { 400, 0, 10 },	{ 0, 100, 0 },	  { 0, 401, 300 },   { 420, 440, 0 },
		      { 399, 451, 11 }, { 100, 400, 300 } };
	const uint64_t ms = NSEC_PER_SEC / 1000;
	char path[] = "/tmp/rbpf-parts-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	write_file(path);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct read_options opts = { .from_ns = cases[i].from * ms,
						   .to_ns = cases[i].to * ms,
						   .by_thread = true };
		_cleanup_profile_ struct profile p = PROFILE_INIT;
		uint64_t sum = 0;

		read_file(path, &opts, &p);
		for (size_t k = 0; k < p.n_aggregates; k++)
			sum += p.aggregates[k].value;
		cr_expect_eq(sum, cases[i].ms * ms, "%zu: %d us", i, (int)(sum / 1000));
	}
	unlink(path);
}

Test(sample_parts, of_a_recording_with_a_cut)
{
	const uint64_t ms = NSEC_PER_SEC / 1000;
	const struct time_cut cut = { .since_start_ns = 150 * ms };
	const struct read_options opts = { .cuts = &cut, .n_cuts = 1, .by_thread = true };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	char path[] = "/tmp/rbpf-parts-XXXXXX";
	uint64_t sums[2] = { 0 };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	write_file(path);
	read_file(path, &opts, &p);
	for (size_t k = 0; k < p.n_aggregates; k++)
		sums[p.aggregates[k].marks & 1] += p.aggregates[k].value;
	cr_expect_eq(sums[0], 50 * ms);
	cr_expect_eq(sums[1], 260 * ms);
	unlink(path);
}
