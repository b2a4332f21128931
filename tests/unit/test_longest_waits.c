/* SPDX-License-Identifier: GPL-2.0-only */
/* The longest single waits: which they are, when, how long, and what is said of them. */
#include <criterion/criterion.h>
#include <errno.h>
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
#include "view/longest_waits.h"
#include "view/request.h"
#include "view/reshape.h"
#include "view/state.h"

#define MS	 NSEC_PER_MSEC
#define MANY	 4000

#define TEMPLATE "/tmp/rbpf-waits-XXXXXX"

static struct profile_builder b;
static uint32_t process, thread, other;
static char path[sizeof(TEMPLATE)];
static struct replay from; /* what was read last */

static void setup(void)
{
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

TestSuite(longest_waits, .init = setup, .fini = teardown);

static uint32_t waits_in(const char *method, enum frame_reason reason)
{
	return builder_reason(&b, builder_path(&b, method), reason);
}

/* A wait of which the last part ends @end_ms after the start. */
static void add_part(uint32_t of, uint32_t stack, uint64_t end_ms, uint64_t ms, uint16_t flags,
		     uint32_t request)
{
	const struct profile_sample sample = { .ts = BUILDER_START + end_ms * MS,
					       .value = ms * MS,
					       .thread = of,
					       .stack = stack,
					       .flags = flags,
					       .event = BUILDER_WAIT,
					       .request = request };

	builder_must(sink_sample(&b.out.sink, &sample));
	b.now = sample.ts;
}

static void add_wait(uint32_t of, uint32_t stack, uint64_t end_ms, uint64_t ms)
{
	add_part(of, stack, end_ms, ms, 0, 0);
}

/*
 * The main thread: 5 ms for a database in a request, 2.1 s for a file, told in three parts, 3 ms
 * for a CPU after that, and 9 s of nothing to do. The other one: 7 ms for the GVL, for its turn was
 * over, 40 ms asleep with the GVL.
 */
static void add_waits(void)
{
	const uint32_t sync = waits_in("<main>|Log#write", REASON_WAIT_DISK);
	const uint32_t query = builder_wait_for(&b, builder_path(&b, "<main>|Db#query"),
						REASON_WAIT_NETWORK, "10.0.0.5:5432");
	const uint32_t turn = builder_reason(&b, builder_path(&b, "work"), REASON_GVL_TURN);
	const uint32_t held = builder_reason(&b, builder_path(&b, "nap"), REASON_GVL_HELD);
	const uint32_t request = builder_request(&b, thread, "rails", "Orders#show");

	add_part(thread, query, 15, 5, 0, request);
	add_wait(thread, sync, 1020, 1000);
	add_wait(other, builder_reason(&b, turn, REASON_WAIT_GVL), 1007, 7);
	add_wait(other, builder_reason(&b, held, REASON_WAIT_TIMER), 1050, 40);
	add_wait(thread, sync, 2020, 1000);
	add_wait(thread, sync, 2120, 100);
	add_wait(thread, waits_in("<main>|Log#write", REASON_WAIT_CPU), 2123, 3);
	add_wait(thread, waits_in("Pool#next", REASON_WAIT_IDLE), 12000, 9000);
}

/* What is expected of it. */
#define ALL                                                                                        \
	"disk 2100 at 20, main, Log#write\n"                                                       \
	"timer-held 40 at 1010, other, nap\n"                                                      \
	"gvl-turn 7 at 1000, other, work\n"                                                        \
	"network 5 at 10, main, Db#query, Orders#show\n"                                           \
	"wait-cpu 3 at 2120, main, Log#write\n"

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
	opts.lengths = opts.whole_waits = opts.by_thread = true;
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(p.whole_waits);
	return p;
}

static struct profile read_all(void)
{
	add_waits();
	return read_with((struct read_options) { 0 });
}

static void add_line(const struct profile *p, const struct longest_wait *w, struct buf *out)
{
	buf_addf(out, "%s%s%s %d at %d, %s", state_word(w->state & STATE_MASK),
		 w->state & STATE_HELD ? "-held" : "", w->state & STATE_TURN ? "-turn" : "",
		 (int)(w->ns / MS), (int)((w->begin_ts - BUILDER_START) / MS),
		 profile_str(p, p->threads[w->thread].name));
	if (w->method != PROFILE_NONE)
		buf_addf(out, ", %s", profile_str(p, p->frames[w->method].name));
	if (w->request)
		buf_addf(out, ", %s", request_label(p, w->request));
	buf_addf(out, "%s%s\n", w->began_before ? ", before" : "", w->went_on ? ", after" : "");
}

static void expect_list(const struct profile *p, const struct view_filter *f, size_t max,
			bool with_all, const char *want)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(longest_waits_build(p, f, &from, max, with_all, &list, &err), 0, "%s",
		     err.msg);
	for (size_t i = 0; i < list.n; i++)
		add_line(p, &list.v[i], &out);
	cr_expect_str_eq(buf_str(&out), want, "%s", buf_str(&out));
}

/* ---- which they are ---- */

Test(longest_waits, of_memory_and_of_a_file)
{
	add_waits();
	for (int keep = 0; keep < 2; keep++) {
		_cleanup_profile_ struct profile p =
			read_with((struct read_options) { .keep_waits = keep });

		cr_expect_eq(p.n_waits != 0, keep);
		expect_list(&p, NULL, LONGEST_WAITS_MAX, false, ALL);
		expect_list(&p, NULL, 1, false, "disk 2100 at 20, main, Log#write\n");
	}
}

/* With CPU time between them they are the same. */
Test(longest_waits, of_all_time)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	builder_state(&b, thread, builder_path(&b, "<main>"), BUILDER_CPU, 9 * MS, 0);
	add_waits();
	p = read_with((struct read_options) { .event = EVENT_WALL });
	expect_list(&p, NULL, LONGEST_WAITS_MAX, false, ALL);
}

Test(longest_waits, idle_ones_are_left_out)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_profile_ struct profile p = read_all();
	struct err err = { 0 };

	cr_assert_eq(longest_waits_build(&p, NULL, &from, 2, false, &list, &err), 0);
	cr_expect_eq(list.waits, 5);
	cr_expect_eq(list.idle, 1);
	expect_list(&p, NULL, 2, true,
		    "idle 9000 at 3000, main, Pool#next\n"
		    "disk 2100 at 20, main, Log#write\n");
}

static uint64_t lengths[MANY];

static int descending(const void *a, const void *c)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)c;

	return (x < y) - (x > y);
}

Test(longest_waits, of_many)
{
	static const size_t numbers[] = { 1, 2, 7, LONGEST_WAITS_MAX };
	const uint32_t stacks[] = { waits_in("a", REASON_WAIT_DISK),
				    waits_in("b", REASON_WAIT_LOCK) };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	uint64_t at = 0, random = 7;
	struct err err = { 0 };

	for (size_t i = 0; i < MANY; i++) {
		lengths[i] = 1 + builder_random(&random, 3000);
		at += lengths[i] + 1;
		add_wait(i % 3 ? thread : other, stacks[i % 2], at, lengths[i]);
	}
	p = read_with((struct read_options) { 0 });
	qsort(lengths, MANY, sizeof(*lengths), descending);
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;

		cr_assert_eq(longest_waits_build(&p, NULL, &from, numbers[k], false, &list, &err),
			     0);
		cr_assert_eq(list.n, numbers[k]);
		cr_expect_eq(list.waits, MANY);
		for (size_t i = 0; i < list.n; i++)
			cr_assert_eq(list.v[i].ns, lengths[i] * MS, "%zu of %zu", i, list.n);
		for (size_t i = 1; i < list.n; i++)
			cr_expect(list.v[i].ns < list.v[i - 1].ns ||
				  list.v[i].begin_ts >= list.v[i - 1].begin_ts);
	}
}

/* ---- what goes beyond the recording, or what is read of it ---- */

/* What the first part says, and the last one, is so of the whole; and not of the next wait. */
Test(longest_waits, that_go_beyond_the_recording)
{
	const uint32_t sync = waits_in("sync", REASON_WAIT_DISK);
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	add_part(thread, sync, 500, 500, SAMPLE_BEFORE, 0);
	add_part(other, sync, 600, 600, SAMPLE_BEFORE | SAMPLE_AFTER, 0);
	add_wait(thread, sync, 1000, 500);
	add_wait(thread, sync, 1700, 690);
	add_wait(thread, sync, 2000, 250);
	add_part(thread, sync, 2100, 100, SAMPLE_AFTER, 0);
	p = read_with((struct read_options) { 0 });
	expect_list(&p, NULL, 5, false,
		    "disk 1000 at 0, main, sync, before\n"
		    "disk 690 at 1010, main, sync\n"
		    "disk 600 at 0, other, sync, before, after\n"
		    "disk 350 at 1750, main, sync, after\n");
}

/* Of a wait of which a part is selected the times are those of all of it. */
Test(longest_waits, in_a_time)
{
	add_waits();
	for (int keep = 0; keep < 2; keep++) {
		_cleanup_profile_ struct profile p = read_with((struct read_options) {
			.from_ns = 500 * MS, .to_ns = 1015 * MS, .keep_waits = keep });

		expect_list(&p, NULL, 5, false,
			    "disk 2100 at 20, main, Log#write\n"
			    "timer-held 40 at 1010, other, nap\n"
			    "gvl-turn 7 at 1000, other, work\n");
	}
}

/* ---- filters ---- */

Test(longest_waits, of_a_thread_and_in_states)
{
	_cleanup_profile_ struct profile p = read_all();
	struct view_filter f = VIEW_FILTER_INIT;
	struct err err = { 0 };

	cr_assert_eq(view_filter_regex(&f.thread, &f.has_thread, "other", "--thread", &err), 0);
	expect_list(&p, &f, 5, false,
		    "timer-held 40 at 1010, other, nap\n"
		    "gvl-turn 7 at 1000, other, work\n");
	view_filter_deinit(&f);
	f = (struct view_filter)VIEW_FILTER_INIT;
	f.states = state_set_of(STATE_IDLE) | state_set_of(STATE_WAIT_CPU);
	expect_list(&p, &f, 5, true,
		    "idle 9000 at 3000, main, Pool#next\n"
		    "wait-cpu 3 at 2120, main, Log#write\n");
	f.states = STATE_SET_CPU;
	expect_list(&p, &f, 5, true, "");
}

Test(longest_waits, below_a_method)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct reshape_options opts = { .has_root = true };
	struct view_filter f = VIEW_FILTER_INIT;

	add_waits();
	p = read_with((struct read_options) { .keep_waits = true });
	cr_assert_eq(regcomp(&opts.root, "^Db#query$", REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(profile_reshape(&p, &f, &opts), 0);
	regfree(&opts.root);
	expect_list(&p, NULL, 5, false, "network 5 at 10, main, Db#query, Orders#show\n");
}

/* ---- who had the GVL ---- */

static uint32_t charged;

/* @of is charged at @at_ms with what others waited for the GVL since the charge before. */
static void charge(uint32_t of, uint64_t at_ms)
{
	const struct profile_sample sample = { .ts = BUILDER_START + at_ms * MS,
					       .value = MS,
					       .thread = of,
					       .stack = charged,
					       .event = BUILDER_GVL };

	builder_must(sink_sample(&b.out.sink, &sample));
}

static void expect_holder(const struct profile *p, const struct longest_wait *w, const char *name,
			  uint64_t ms)
{
	if (!name)
		cr_expect_eq(w->holder, PROFILE_NONE);
	else
		cr_expect_str_eq(profile_str(p, p->threads[w->holder].name), name);
	cr_expect_eq(w->held_ns, ms * MS, "%lu", w->held_ns / MS);
}

/*
 * The main thread waits from 100 to 200 ms: the other one is charged up to 130, a third one up to
 * 185, the other one again up to 190, and the main one with the rest. Then from 300 to 320, of
 * which the next charge in its process is at 400; and the third one from 600 to 630, but for 10 ms
 * charged to itself. A thread of another process is charged with nothing but its own wait.
 */
static void add_holders(void)
{
	const uint32_t stranger = builder_process(&b, 50, "ruby b.rb");
	const uint32_t third = builder_thread(&b, process, 44, "third");
	const uint32_t lone = builder_thread(&b, stranger, 50, "lone");
	const uint32_t gvl = waits_in("work", REASON_WAIT_GVL);

	charged = builder_path(&b, "hold");
	charge(third, 90);
	charge(other, 130);
	charge(third, 185);
	charge(other, 190);
	add_wait(thread, gvl, 200, 100);
	charge(thread, 210);
	add_wait(lone, gvl, 250, 50);
	add_wait(third, waits_in("nap", REASON_WAIT_LOCK), 290, 10);
	add_wait(thread, gvl, 320, 20);
	charge(lone, 330);
	charge(other, 400);
	charge(third, 500);
	charge(thread, 610);
	add_wait(third, gvl, 630, 30);
	charge(third, 650);
}

Test(longest_waits, who_had_the_gvl)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_holders();
	p = read_with((struct read_options) { 0 });
	cr_assert_eq(longest_waits_build(&p, NULL, &from, 5, false, &list, &err), 0, "%s", err.msg);
	cr_assert_eq(list.n, 5);
	expect_holder(&p, &list.v[0], "third", 55);
	expect_holder(&p, &list.v[1], NULL, 0);
	expect_holder(&p, &list.v[2], "main", 10);
	expect_holder(&p, &list.v[3], "other", 20);
	expect_holder(&p, &list.v[4], NULL, 0);
}

/* Of a recording that is of all time by default, too: that is not what charges are. */
Test(longest_waits, who_had_the_gvl_in_mode_wall)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	b.out.profile.meta.mode = strdup(META_MODE_WALL);
	add_holders();
	p = read_with((struct read_options) { 0 });
	cr_assert_eq(longest_waits_build(&p, NULL, &from, 5, false, &list, &err), 0, "%s", err.msg);
	expect_holder(&p, &list.v[0], "third", 55);
}

/* What was charged before the time that is read is not known, and is nobody's. */
Test(longest_waits, who_had_the_gvl_in_a_time)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_holders();
	p = read_with((struct read_options) { .from_ns = 187 * MS });
	cr_assert_eq(longest_waits_build(&p, NULL, &from, 1, false, &list, &err), 0, "%s", err.msg);
	cr_assert_eq(list.n, 1);
	cr_expect_eq(list.v[0].ns, 100 * MS);
	expect_holder(&p, &list.v[0], "other", 3);
}

/* What can be read only once has no charges any more. */
Test(longest_waits, who_had_the_gvl_is_unknown_of_what_was_kept)
{
	_cleanup_longest_waits_ struct longest_waits list = LONGEST_WAITS_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_holders();
	p = read_with((struct read_options) { .keep_waits = true });
	cr_assert_eq(longest_waits_build(&p, NULL, &from, 5, false, &list, &err), 0, "%s", err.msg);
	for (size_t i = 0; i < list.n; i++)
		expect_holder(&p, &list.v[i], NULL, 0);
}

/* ---- the method ---- */

/* What collects garbage, or stands between fibers, is no method; nor is what is not shown. */
Test(longest_waits, method_is_the_innermost_that_is_shown)
{
	static const struct view_filter ruby = { .stack = STACK_RUBY };
	static const struct view_filter all = { .stack = STACK_ALL };
	uint32_t stack = builder_path(&b, "<main>|Log#write");
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	stack = builder_stack(&b, stack,
			      builder_frame(&b, FRAME_CFUNC, "File#fsync", "/app/x.rb", 9, 0));
	stack = builder_stack(&b, stack,
			      builder_frame(&b, FRAME_NATIVE, "fdatasync", "/lib/libc.so.6", 0, 0));
	add_wait(thread, builder_reason(&b, stack, REASON_WAIT_DISK), 100, 50);
	stack = builder_stack(&b, builder_path(&b, "Lazy#next"),
			      builder_frame(&b, FRAME_FIBER, "[fiber]", "", 0, 0));
	stack = builder_gc(&b, stack, "(sweeping)");
	add_wait(thread, builder_reason(&b, stack, REASON_WAIT_CPU), 200, 20);
	add_wait(other, builder_reason(&b, 0, REASON_WAIT_NETWORK), 300, 10);
	p = read_with((struct read_options) { 0 });
	expect_list(&p, &ruby, 5, false,
		    "disk 50 at 50, main, File#fsync\n"
		    "wait-cpu 20 at 180, main, Lazy#next\n"
		    "network 10 at 290, other\n");
	expect_list(&p, &all, 1, false, "disk 50 at 50, main, fdatasync\n");
}

/* ---- reports ---- */

typedef int renderer(const struct report *, struct buf *, struct err *);

static int render(renderer *renders, const struct profile *p, const struct view_filter *f,
		  const char *name, struct buf *out, struct err *err)
{
	struct recording rec = { .path = name, .profile = *p, .report.complete = true };
	const struct report report = { .rec = &rec, .filter = f, .waits = 3, .from = from };

	rec.profile.meta.start_realtime_ns = 0;
	return renders(&report, out, err);
}

static void expect_text(const struct buf *out, const char *text, bool there)
{
	cr_expect_eq(!!strstr(buf_str(out), text), there, "\"%s\" in\n%s", text, buf_str(out));
}

Test(longest_waits, as_a_table)
{
	_cleanup_buf_ struct buf text = BUF_INIT, piped = BUF_INIT, short_ones = BUF_INIT;
	const struct view_filter f = { .states = state_set_of(STATE_NETWORK) };
	_cleanup_profile_ struct profile p = read_all();
	struct err err = { 0 };

	cr_assert_eq(render(report_waits, &p, NULL, "x.data", &text, &err), 0, "%s", err.msg);
	expect_text(&text,
		    "\n WAITED   BEGAN  FOR                        THREAD          METHOD     "
		    "WHERE\n"
		    " 2.10 s  0.020s  disk                       main (tid 42)   Log#write  "
		    "/app/x.rb:7\n"
		    "40.0 ms  1.010s  timer, and holds the GVL   other (tid 43)  nap        "
		    "/app/x.rb:7\n"
		    "7.00 ms  1.000s  gvl, as its turn was over  other (tid 43)  work       "
		    "/app/x.rb:7\n"
		    "  the longest 3 of 5 waits; WAITED is exact; BEGAN: since the start of the "
		    "recording\n"
		    "  1 wait of threads with nothing to do left out; '--state idle' shows these\n"
		    "  around the first one: rbpf timeline -i x.data -p 42 --from 0.000000s --to "
		    "2.330001s > wait.html\n",
		    true);
	expect_text(&text, "≥", false);
	expect_text(&text, "not closed", false);
	expect_text(&text, "HELD BY", false);
	cr_assert_eq(render(report_waits, &p, NULL, "-", &piped, &err), 0, "%s", err.msg);
	expect_text(&piped, "around the first one", false);
	cr_assert_eq(render(report_waits, &p, &f, "x.data", &short_ones, &err), 0, "%s", err.msg);
	expect_text(
		&short_ones,
		"\n WAITED   BEGAN  FOR                     THREAD         REQUEST      METHOD  "
		"  WHERE\n"
		"5.00 ms  0.010s  network: 10.0.0.5:5432  main (tid 42)  Orders#show  "
		"Db#query  /app/x.rb:7\n"
		"  the longest 1 of 1 wait; ",
		true);
	expect_text(&short_ones, "nothing to do", false);
}

Test(longest_waits, what_goes_beyond_is_said)
{
	_cleanup_buf_ struct buf text = BUF_INIT, json = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_part(thread, waits_in("sync", REASON_WAIT_DISK), 500, 500, SAMPLE_AFTER, 0);
	p = read_with((struct read_options) { 0 });
	cr_assert_eq(render(report_waits, &p, NULL, "x.data", &text, &err), 0, "%s", err.msg);
	expect_text(&text, "\n≥500 ms  0.000s  disk  ", true);
	expect_text(&text, "  ≥: at least; it began before the recording, or went on after it\n",
		    true);
	cr_assert_eq(render(report_waits_json, &p, NULL, "x.data", &json, &err), 0);
	expect_text(&json, "[{\"length_ns\":500000000,\"went_on\":true,\"from_ns\":0,", true);
}

Test(longest_waits, an_end_that_is_missing_is_said)
{
	_cleanup_profile_ struct profile p = read_all();
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct recording rec = { .path = "x.data", .profile = p };
	const struct report report = { .rec = &rec, .waits = 3, .from = from };
	struct err err = { 0 };

	cr_assert_eq(report_waits(&report, &text, &err), 0, "%s", err.msg);
	expect_text(&text,
		    "  the recording was not closed properly: waits at its end may have gone on\n",
		    true);
}

Test(longest_waits, as_csv)
{
	static const char want[] =
		"length_ns,began_before,went_on,from_ns,clock_ns,state,gvl_held,gvl_turn,peer,"
		"held_by_tid,held_by,held_by_ns,pid,tid,thread,request,framework,kind,label,path,"
		"line,module,approximate\r\n"
		"2100000000,0,0,20000000,0,disk,0,0,,,,,42,42,main,,,ruby,Log#write,/app/x.rb,7,,"
		"0\r\n"
		"40000000,0,0,1010000000,0,timer,1,0,,,,,42,43,other,,,ruby,nap,/app/x.rb,7,,0\r\n"
		"7000000,0,0,1000000000,0,gvl,0,1,,,,,42,43,other,,,ruby,work,/app/x.rb,7,,0\r\n";
	_cleanup_profile_ struct profile p = read_all();
	const struct view_filter network = { .states = state_set_of(STATE_NETWORK) };
	_cleanup_buf_ struct buf csv = BUF_INIT, one = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(render(report_waits_csv, &p, NULL, "x.data", &csv, &err), 0, "%s", err.msg);
	cr_expect_str_eq(buf_str(&csv), want);
	cr_assert_eq(render(report_waits_csv, &p, &network, "x.data", &one, &err), 0);
	expect_text(&one,
		    "\n5000000,0,0,10000000,0,network,0,0,10.0.0.5:5432,,,,42,42,main,"
		    "Orders#show,rails,ruby,Db#query,/app/x.rb,7,,0\r\n",
		    true);
}

Test(longest_waits, as_json)
{
	_cleanup_profile_ struct profile p = read_all();
	_cleanup_buf_ struct buf json = BUF_INIT;
	struct err err = { 0 };

	cr_assert_eq(render(report_waits_json, &p, NULL, "x.data", &json, &err), 0, "%s", err.msg);
	expect_text(&json,
		    ",\"selected_waits\":5,\"idle_left_out\":1,\"joins_left_out\":0,\"waits\":[{",
		    true);
	expect_text(&json,
		    "[{\"length_ns\":2100000000,\"from_ns\":20000000,\"clock_ns\":0,"
		    "\"state\":\"disk\",\"gvl_held\":0,\"gvl_turn\":0,\"peer\":\"\",\"pid\":42,"
		    "\"tid\":42,\"thread\":\"main\",\"request\":\"\",\"framework\":\"\","
		    "\"kind\":\"ruby\",\"label\":\"Log#write\",\"path\":\"/app/x.rb\",\"line\":7,"
		    "\"module\":\"\"},{\"length_ns\":40000000,",
		    true);
	expect_text(&json, "\"state\":\"timer\",\"gvl_held\":1,\"gvl_turn\":0,", true);
	expect_text(&json, "\"state\":\"gvl\",\"gvl_held\":0,\"gvl_turn\":1,", true);
}

Test(longest_waits, who_had_the_gvl_is_said)
{
	_cleanup_buf_ struct buf text = BUF_INIT, json = BUF_INIT, csv = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_holders();
	p = read_with((struct read_options) { 0 });
	cr_assert_eq(render(report_waits, &p, NULL, "x.data", &text, &err), 0, "%s", err.msg);
	expect_text(
		&text,
		"\n WAITED   BEGAN  FOR  HELD BY                THREAD          METHOD  WHERE\n"
		" 100 ms  0.100s  gvl  third (tid 44), 55.0%  main (tid 42)   work    /app/x.rb:7\n"
		"50.0 ms  0.200s  gvl                         lone (tid 50)   work    /app/x.rb:7\n"
		"30.0 ms  0.600s  gvl  main (tid 42), 33.3%   third (tid 44)  work    "
		"/app/x.rb:7\n",
		true);
	expect_text(&text, "\n  HELD BY: ", true);
	cr_assert_eq(render(report_waits_csv, &p, NULL, "x.data", &csv, &err), 0);
	expect_text(&csv, ",gvl,0,0,,44,third,55000000,42,42,main,,,ruby,work,/app/x.rb,7,,0\r\n",
		    true);
	cr_assert_eq(render(report_waits_json, &p, NULL, "x.data", &json, &err), 0);
	expect_text(
		&json,
		"\"state\":\"gvl\",\"gvl_held\":0,\"gvl_turn\":0,\"peer\":\"\",\"held_by_tid\":44,"
		"\"held_by\":\"third\",\"held_by_ns\":55000000,\"pid\":42,",
		true);
}

/* What the other thread waited for is a wait of its own. */
Test(longest_waits, for_a_thread_to_end_are_left_out)
{
	_cleanup_buf_ struct buf text = BUF_INIT, json = BUF_INIT, out = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct view_filter joins = VIEW_FILTER_INIT;
	struct err err = { 0 };

	add_wait(thread, waits_in("Thread#join", REASON_WAIT_LOCK), 5000, 4000);
	p = read_with((struct read_options) { 0 });
	cr_expect_eq(render(report_waits, &p, NULL, "x.data", &out, &err), -ENODATA);
	cr_expect_str_eq(err.msg, "no wait but for threads to end of x.data passes the filters");
	cr_expect_str_eq(err.hint, "'--state join' shows where threads wait for others to end");
	cr_assert_eq(state_set_parse("join", &joins.states, &err), 0);
	expect_list(&p, &joins, 5, true, "join 4000 at 1000, main, Thread#join\n");
	profile_deinit(&p);
	p = read_all();
	cr_assert_eq(render(report_waits, &p, NULL, "x.data", &text, &err), 0, "%s", err.msg);
	expect_text(&text, "  1 wait for threads to end left out; '--state join' shows these\n",
		    true);
	cr_assert_eq(render(report_waits_json, &p, NULL, "x.data", &json, &err), 0);
	expect_text(&json, ",\"idle_left_out\":1,\"joins_left_out\":1,", true);
}

/* Where there are none, or idle ones alone. */
Test(longest_waits, of_none)
{
	const struct view_filter of_cpu = { .states = STATE_SET_CPU };
	_cleanup_buf_ struct buf out = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct err err = { 0 };

	add_wait(thread, waits_in("Pool#next", REASON_WAIT_IDLE), 100, 100);
	p = read_with((struct read_options) { 0 });
	cr_expect_eq(render(report_waits, &p, NULL, "x.data", &out, &err), -ENODATA);
	cr_expect_eq(err.kind, ERR_EMPTY);
	cr_expect_str_eq(err.msg, "no wait but idle ones of x.data passes the filters");
	cr_expect_str_eq(err.hint, "'--state idle' shows what threads with nothing to do wait in");
	err = (struct err) { 0 };
	cr_expect_eq(render(report_waits_json, &p, &of_cpu, "x.data", &out, &err), -ENODATA);
	cr_expect_str_eq(err.msg, "no wait of x.data passes the filters");
	cr_expect_str_empty(err.hint);
}
