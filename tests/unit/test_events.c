/* SPDX-License-Identifier: GPL-2.0-only */
/* Recordings of other events than CPU time, and of several: from the recorder to the reader. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/recorder.h"
#include "profile/replay.h"
#include "support/file_builder.h"
#include "support/profile_check.h"

static char dir[] = "/tmp/rbpf-events-XXXXXX";
static char path[64];

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.data", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(events, .init = setup, .fini = teardown);

static const struct profile_event cpu = { .name = EVENT_CPU, .unit = UNIT_NS, .period = 1000 };
static const struct profile_event wait = { .name = EVENT_WAIT, .unit = UNIT_NS };
static const struct profile_event alloc = { .name = "alloc", .unit = UNIT_BYTES };

/* Write a recording: of event i, i + 1 samples of value 10^i; those of the last event are in GC. */
static void record_in_mode(const char *mode, const struct profile_event *events, uint32_t n)
{
	struct profile_meta meta = {
		.mode = (char *)mode, .start_monotonic_ns = 1000, .frequency = 100, .n_events = n
	};
	const struct recorder_options opts = { .path = path, .force = true };
	const struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	struct profile_sample sample = { .ts = 1000, .value = 1 };
	struct err err = { 0 };
	struct recorder *rec;
	uint32_t id;

	for (uint32_t i = 0; i < n; i++)
		meta.events[i] = events[i];
	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	cr_assert_eq(sink_process(recorder_sink(rec), &process, &id), 0);
	cr_assert_eq(sink_thread(recorder_sink(rec), id, 1, 0, &id), 0);
	for (uint32_t i = 0; i < (n ? n : 1); i++, sample.value *= 10)
		for (uint32_t k = 0; k <= i; k++) {
			sample.ts++;
			sample.event = (uint16_t)i;
			sample.flags = i + 1 == n ? SAMPLE_GC : 0;
			cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
		}
	sample.event = (uint16_t)(n ? n : 1);
	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), -EINVAL, "there is no such event");
	/* Without totals, so that the reader makes them. */
	cr_assert_eq(recorder_close(rec, NULL, &err), 0, "%s", err.msg);
}

static void record(const struct profile_event *events, uint32_t n)
{
	record_in_mode(NULL, events, n);
}

static struct profile read_event(const char *event)
{
	const struct read_options opts = { .event = event, .keep_samples = true };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	const char *problem;

	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	problem = check_profile(&p);
	cr_assert_null(problem, "%s", problem);
	return p;
}

static unsigned int major_of_file(void)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t header[sizeof(struct rbpf_file_header)];
	struct rbpf_file_header h;

	cr_assert_eq(read(fd, header, sizeof(header)), sizeof(header));
	cr_assert_eq(file_header_unpack(header, &h), 0);
	return h.major;
}

Test(events, cpu_time_alone_is_what_older_ones_read)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT, named = PROFILE_INIT;

	record(NULL, 0);
	cr_expect_eq(major_of_file(), 1);
	p = read_event(NULL);
	cr_expect_eq(p.meta.n_events, 1);
	cr_expect(event_is_cpu(profile_event(&p)));
	cr_expect_eq(profile_event(&p)->period, 10000000, "by the frequency");
	cr_expect_eq(p.totals.cpu_sampled_ns, 1);
	record(&cpu, 1);
	cr_expect_eq(major_of_file(), 1);
	named = read_event(EVENT_CPU);
	cr_expect_eq(named.n_samples, 1);
	cr_expect_eq(profile_event(&named)->period, 1000);
}

Test(events, another_one_is_refused_by_older_ones)
{
	const struct profile_event ns = { .name = "wait", .unit = UNIT_NS };
	_cleanup_profile_ struct profile p = PROFILE_INIT;

	record(&ns, 1);
	cr_expect_eq(major_of_file(), 2);
	p = read_event(NULL);
	cr_expect_str_eq(profile_event(&p)->name, "wait");
	cr_expect_eq(p.n_samples, 1);
	cr_expect_eq(p.totals.samples, 1);
	cr_expect_eq(p.totals.cpu_sampled_ns, 0, "it is no CPU time");
	cr_expect_eq(p.totals.gc_ns, 0);
}

static void expect_event(const char *name, uint32_t number, size_t samples, uint64_t value,
			 size_t kept)
{
	_cleanup_profile_ struct profile p = read_event(name);

	cr_expect_eq(p.event, number);
	cr_expect_eq(p.n_samples, samples);
	cr_assert_eq(p.n_aggregates, 1);
	cr_expect_eq(p.aggregates[0].samples, samples);
	cr_expect_eq(p.aggregates[0].value, value);
	cr_expect_eq(p.n_kept, kept);
	cr_expect_eq(p.totals.samples, 3, "of all events");
	cr_expect_eq(p.totals.cpu_sampled_ns, 1);
}

/* CPU time and waits together are all time. */
Test(events, wall)
{
	const struct profile_event events[] = { cpu, alloc, wait };
	const struct read_options opts = { .event = EVENT_WALL };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	record(events, 3);
	p = read_event(EVENT_WALL);
	cr_expect_str_eq(profile_event(&p)->name, EVENT_WALL);
	cr_expect_eq(profile_event(&p)->unit, UNIT_NS);
	cr_expect_eq(p.n_samples, 1 + 3);
	cr_expect_eq(p.n_kept, 1 + 3);
	for (size_t i = 0; i < p.n_kept; i++)
		cr_expect_eq(p.samples[i].event, p.event);
	cr_expect_eq(p.totals.samples, 6, "of all events");
	cr_expect_eq(p.totals.cpu_sampled_ns, 1, "of CPU time alone");
	profile_deinit(&p);
	/* Without waits there is none. */
	record(events, 2);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), -ENOENT);
	cr_expect_not_null(strstr(err.hint, "--mode states"), "%s", err.hint);
}

/* A recording can say that all time is what it is to be read as. */
Test(events, mode_wall)
{
	const struct profile_event both[] = { cpu, wait };
	const struct read_options every = { .keep_samples = true, .take_all = true };
	_cleanup_profile_ struct profile all = PROFILE_INIT, one = PROFILE_INIT,
					 alone = PROFILE_INIT, parts = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	record_in_mode(META_MODE_WALL, both, 2);
	all = read_event(NULL);
	cr_expect_str_eq(profile_event(&all)->name, EVENT_WALL);
	cr_expect_eq(all.n_samples, 3);
	one = read_event(EVENT_CPU);
	cr_expect_eq(one.n_samples, 1);
	/* What takes samples of all events takes each as what it is. */
	cr_assert_eq(profile_read(path, &every, &parts, &report, &err), 0, "%s", err.msg);
	cr_expect_str_eq(profile_event(&parts)->name, EVENT_CPU);
	cr_assert_eq(parts.n_kept, 3);
	for (size_t i = 0; i < parts.n_kept; i++)
		cr_expect_lt(parts.samples[i].event, 2);
	record_in_mode(META_MODE_WALL, &cpu, 1);
	alone = read_event(NULL);
	cr_expect_str_eq(profile_event(&alone)->name, EVENT_CPU, "it has no waits");
}

/* What others waited, for the GVL and for locks: there may be either alone. */
Test(events, caused)
{
	const struct profile_event gvl = { .name = EVENT_GVL, .unit = UNIT_NS },
				   lock = { .name = EVENT_LOCK, .unit = UNIT_NS },
				   both[] = { cpu, gvl, wait, lock }, older[] = { cpu, wait, gvl };
	const struct read_options opts = { .event = EVENT_CAUSED };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	record(both, 4);
	p = read_event(EVENT_CAUSED);
	cr_expect_str_eq(profile_event(&p)->name, EVENT_CAUSED);
	cr_expect(event_is_exact(profile_event(&p)));
	cr_expect_eq(p.n_samples, 2 + 4);
	cr_expect_eq(p.totals.samples, 10, "of all events");
	profile_deinit(&p);
	record(older, 3);
	p = read_event(EVENT_CAUSED);
	cr_expect_eq(p.n_samples, 3);
	profile_deinit(&p);
	record(older, 2);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), -ENOENT);
	cr_expect_not_null(strstr(err.hint, "--mode states"), "%s", err.hint);
}

Test(events, several)
{
	const struct profile_event events[] = { cpu, alloc };

	record(events, 2);
	cr_expect_eq(major_of_file(), 2);
	expect_event(NULL, 0, 1, 1, 3);
	expect_event("cpu", 0, 1, 1, 1);
	expect_event("alloc", 1, 2, 20, 2);
}

Test(events, one_that_is_not_there)
{
	const struct profile_event events[] = { cpu, alloc };
	const struct read_options opts = { .event = "allocs" };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	record(events, 2);
	cr_expect_eq(profile_read(path, &opts, &p, &report, &err), -ENOENT);
	cr_expect_eq(err.kind, ERR_USAGE);
	cr_expect(strstr(err.msg, "/x.data has no event 'allocs'"), "%s", err.msg);
	cr_expect_str_eq(err.hint, "its events: cpu, alloc");
}

/*
 * Read a recording of major 2 with this META and a sample of event @event. *@n_samples: SIZE_MAX if
 * the sample is not usable.
 */
static int read_meta(const char *meta, uint64_t event, size_t *n_samples)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	int r;

	build_header_of(&file, RBPF_FILE_MAJOR_EVENTS);
	build_json(&file, RBPF_CHUNK_META, meta);
	build_record(&records, RBPF_FILE_REC_PROCESS, 1, 0, 0, 0, 0, 0);
	build_record(&records, RBPF_FILE_REC_THREAD, 0, 1, 0);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 0, 0, 7, 0, 0, event);
	build_data(&file, &records);
	r = profile_read_mem(file.data, file.len, "x.data", NULL, &p, &report, &err);
	*n_samples = r ? 0 : report.lost_bytes ? SIZE_MAX : p.n_samples;
	return r;
}

#define EVENTS(list) "{\"events\":[" list "]}"
#define NAMED(name)  "{\"name\":\"" name "\",\"unit\":\"bytes\"}"

Test(events, what_a_file_may_say)
{
	static const char *const wrong[] = {
		"{\"events\":1}",
		EVENTS("1"),
		EVENTS("{}"),
		EVENTS("{\"name\":\"x\"}"),
		EVENTS("{\"unit\":\"ns\"}"),
		EVENTS("{\"name\":\"x\",\"unit\":1}"),
		EVENTS("{\"name\":\"x\",\"unit\":\"ns\",\"period\":-1}"),
		EVENTS("{\"name\":\"x\",\"unit\":\"ns\",\"period\":\"1\"}"),
		EVENTS(NAMED("")),
		EVENTS(NAMED("a b")),
		EVENTS(NAMED("\\u001b[2J")),
		EVENTS(NAMED("Cpu")),
		EVENTS(NAMED("a1234567890123456789012345678901")),
	};
	_cleanup_buf_ struct buf many = BUF_INIT;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		cr_expect_eq(read_meta(wrong[i], 0, &n), -EBADMSG, "%s", wrong[i]);
	cr_expect_eq(read_meta(EVENTS(NAMED("a123456789012345678901234567890")), 0, &n), 0);
	cr_expect_eq(n, 1);
	cr_expect_eq(read_meta(EVENTS("{\"name\":\"x\",\"unit\":\"furlongs\"}"), 0, &n), 0,
		     "a newer unit");
	cr_expect_eq(read_meta(EVENTS(NAMED("a") "," NAMED("b")), 1, &n), 0);
	cr_expect_eq(n, 0, "it is of the other event");
	cr_expect_eq(read_meta(EVENTS(NAMED("a") "," NAMED("b")), 2, &n), 0);
	cr_expect_eq(n, SIZE_MAX, "there is no such event: there what is usable ends");

	buf_addstr(&many, "{\"events\":[" NAMED("e0"));
	for (int i = 1; i < PROFILE_MAX_EVENTS; i++)
		buf_addf(&many, "," NAMED("e%d"), i);
	buf_addstr(&many, "]}");
	cr_expect_eq(read_meta(buf_str(&many), 0, &n), 0);
	cr_expect_eq(n, 1);
	many.data[many.len - 2] = '\0';
	many.len -= 2;
	buf_addstr(&many, "," NAMED("more") "]}");
	cr_expect_eq(read_meta(buf_str(&many), 0, &n), -EBADMSG, "one too many");
}

/* ---- one by one ---- */

static int count(void *arg, const struct profile_sample *s)
{
	unsigned int *counts = arg;

	counts[s->event]++;
	return 0;
}

/* Read without keeping samples, and again with them: how many are of each event. */
static void count_again(const struct read_options *opts, bool all, unsigned int *counts)
{
	const struct replay from = { .path = path, .options = *opts };
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	memset(counts, 0, PROFILE_MAX_EVENTS * sizeof(*counts));
	cr_assert_eq(profile_read(path, opts, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_kept, 0);
	cr_expect_eq(
		(all ? profile_each_of_all : profile_each_sample)(&p, &from, count, counts, &err),
		0, "%s", err.msg);
	profile_deinit(&p);
}

Test(events, one_by_one_without_keeping_them)
{
	const struct profile_event events[] = { cpu, alloc, wait };
	unsigned int counts[PROFILE_MAX_EVENTS];

	record(events, 3);
	count_again(&(struct read_options) { .read_again = true }, true, counts);
	cr_expect(counts[0] == 1 && counts[1] == 2 && counts[2] == 3, "of all events");
	count_again(&(struct read_options) { .read_again = true }, false, counts);
	cr_expect(counts[0] == 1 && counts[1] == 0 && counts[2] == 0, "of the first");
	count_again(&(struct read_options) { .event = "alloc", .read_again = true }, true, counts);
	cr_expect(counts[0] == 0 && counts[1] == 2 && counts[2] == 0, "of the one that is named");
}

Test(events, all_time_if_there_are_waits)
{
	const struct profile_event events[] = { cpu, alloc, wait };
	const struct read_options opts = { .wall = true, .read_again = true };
	unsigned int counts[PROFILE_MAX_EVENTS];

	record(events, 3);
	count_again(&opts, false, counts);
	cr_expect(counts[3] == 1 + 3 && !counts[0] && !counts[1] && !counts[2], "CPU and waits");
	record(events, 2);
	count_again(&opts, false, counts);
	cr_expect(counts[0] == 1 && !counts[1], "there are no waits");
}
