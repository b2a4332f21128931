/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests in a recording, in views, and where one ends and the next begins. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/array.h"
#include "base/err.h"
#include "profile/reader.h"
#include "profile/recorder.h"
#include "sample/process_table.h"
#include "sample/requests.h"
#include "sample/stack_table.h"
#include "support/file_builder.h"
#include "support/profile_builder.h"
#include "support/sink_define.h"
#include "view/filter.h"
#include "view/flat.h"
#include "view/request.h"
#include "view/request_stats.h"
#include "view/tree.h"

/* ---- a recording ---- */

static const struct profile_meta meta = { .mode = (char *)"cpu",
					  .frequency = 99,
					  .start_realtime_ns = 1700000000000000000,
					  .start_monotonic_ns = 1000 };

/* Two threads, 0 and 1, of one process. */
static void define_threads(struct sink *s)
{
	struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	uint32_t id;

	cr_assert_eq(sink_process(s, &process, &id), 0);
	cr_assert_eq(sink_thread(s, id, 11, 0, &id), 0);
	cr_assert_eq(sink_thread(s, 0, 12, 0, &id), 0);
}

static uint32_t request_of(struct sink *s, uint32_t thread, const char *name)
{
	const struct profile_request_kind kind = { .framework = string_of(s, *name ? "rails" : ""),
						   .name = string_of(s, name) };
	uint32_t id = 0;

	cr_assert_eq(sink_request(s, thread, &kind, &id), 0);
	return id;
}

static void sample_of(struct sink *s, uint32_t thread, uint64_t ts, uint32_t request)
{
	const struct profile_sample sample = {
		.ts = ts, .value = 10, .thread = thread, .request = request
	};

	cr_assert_eq(sink_sample(s, &sample), 0);
}

/* Requests that run at the same time in both threads, one of which goes on after a pause. */
static void write_some(struct sink *s)
{
	uint32_t a, b, c, unknown;

	define_threads(s);
	sample_of(s, 0, 1000, 0);
	a = request_of(s, 0, "A#x");
	sample_of(s, 0, 2000, a);
	b = request_of(s, 1, "B#x");
	sample_of(s, 1, 2500, b);
	sample_of(s, 0, 3000, a);
	c = request_of(s, 0, "A#x");
	sample_of(s, 0, 4000, c);
	sample_of(s, 1, 4500, b);
	sample_of(s, 0, 5000, 0);
	sample_of(s, 0, 6000, c);
	unknown = request_of(s, 1, "");
	sample_of(s, 1, 6500, unknown);
	cr_assert_eq(unknown, 4);
}

static void record_some(const char *path)
{
	struct recorder_options opts = { .path = path };
	struct profile_totals totals = { .samples = 9 };
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	write_some(recorder_sink(rec));
	cr_assert_eq(recorder_close(rec, &totals, &err), 0, "%s", err.msg);
}

static void expect_request(const struct profile *p, uint32_t id, const char *name, uint64_t first,
			   uint64_t last, uint64_t samples)
{
	const struct profile_request *r = &p->requests[id];

	cr_expect_str_eq(request_label(p, r->kind), name);
	cr_expect_eq(r->first_ts, first, "%u: %llu", id, (unsigned long long)r->first_ts);
	cr_expect_eq(r->last_ts, last, "%u: %llu", id, (unsigned long long)r->last_ts);
	cr_expect_eq(r->samples, samples);
	cr_expect_eq(r->value, samples * 10);
}

static void expect_some(const struct profile *p)
{
	static const uint32_t requests[] = { 0, 1, 2, 1, 3, 2, 0, 3, 4 };

	cr_assert_eq(p->n_requests, 5);
	expect_request(p, 1, "A#x", 2000, 3000, 2);
	expect_request(p, 2, "B#x", 2500, 4500, 2);
	expect_request(p, 3, "A#x", 4000, 6000, 2);
	expect_request(p, 4, "[unknown request]", 6500, 6500, 1);
	cr_expect_eq(p->requests[1].kind, p->requests[3].kind);
	cr_expect_eq(p->requests[2].thread, 1);
	cr_expect_str_eq(request_framework(p, p->requests[1].kind), "rails");
	cr_expect_str_eq(request_framework(p, p->requests[4].kind), "");
	cr_assert_eq(p->n_kept, ARRAY_SIZE(requests));
	for (size_t i = 0; i < p->n_kept; i++)
		cr_expect_eq(p->samples[i].request, requests[i], "sample %zu", i);
}

/* Rows as "name samples", in the order of the report. */
static void expect_rows(const struct profile *p, const char *pattern, const char *expected)
{
	struct view_filter filter = VIEW_FILTER_INIT;
	struct buf out = BUF_INIT;
	struct flat flat;

	if (pattern)
		cr_assert_eq(view_filter_regex(&filter.request, &filter.has_request, pattern,
					       "--request", NULL),
			     0);
	cr_assert_eq(flat_build(p, &filter, FLAT_BY_REQUEST, FLAT_SORT_SELF, &flat), 0);
	for (size_t i = 0; i < flat.n_rows; i++)
		buf_addf(&out, "%s %d\n", request_label(p, flat.rows[i].id),
			 (int)flat.rows[i].samples);
	cr_expect_str_eq(buf_str(&out), expected);
	buf_deinit(&out);
	flat_deinit(&flat);
	view_filter_deinit(&filter);
}

Test(requests, are_read_back)
{
	static const struct read_options opts = { .keep_samples = true, .by_request = true };
	char path[] = "/tmp/rbpf-requests-XXXXXX";
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	cr_assert_not_null(mkdtemp(path));
	cr_assert_eq(rmdir(path), 0);
	record_some(path);
	cr_assert_eq(profile_read(path, &opts, &p, &report, &err), 0, "%s", err.msg);
	unlink(path);
	cr_expect_eq(report.lost_bytes, 0);
	expect_some(&p);
	cr_expect_eq(p.n_aggregates, 4);
	expect_rows(&p, NULL, "A#x 4\nB#x 2\n[no request] 2\n[unknown request] 1\n");
	expect_rows(&p, "#x$", "A#x 4\nB#x 2\n");
	expect_rows(&p, "^\\[no", "[no request] 2\n");
	profile_deinit(&p);
}

Test(requests, of_a_sink_in_memory_are_the_same)
{
	static const struct profile_sink_options opts = { .by_request = true,
							  .keep_samples = true };
	struct profile_sink out;

	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	write_some(&out.sink);
	expect_some(&out.profile);
	expect_rows(&out.profile, NULL, "A#x 4\nB#x 2\n[no request] 2\n[unknown request] 1\n");
	profile_sink_deinit(&out);
}

Test(requests, views_need_them_told_apart)
{
	static const struct profile_sink_options opts = { .keep_samples = true };
	struct view_filter filter = VIEW_FILTER_INIT;
	struct view_selection *sel;
	struct profile_sink out;
	struct flat flat;

	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	write_some(&out.sink);
	cr_expect_eq(out.profile.n_aggregates, 1);
	cr_expect_eq(flat_build(&out.profile, NULL, FLAT_BY_REQUEST, FLAT_SORT_SELF, &flat),
		     -EINVAL);
	cr_assert_eq(
		view_filter_regex(&filter.request, &filter.has_request, "A", "--request", NULL), 0);
	cr_expect_eq(view_selection_new(&out.profile, &filter, &sel), -EINVAL);
	view_filter_deinit(&filter);
	profile_sink_deinit(&out);
}

Test(requests, many_kinds_are_told_apart)
{
	static const struct profile_sink_options opts = { .by_request = true };
	struct profile_sink to;

	cr_assert_eq(profile_sink_init(&to, &opts), 0);
	define_threads(&to.sink);
	for (int i = 0; i < 3000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "K%d", i);
		sample_of(&to.sink, 0, 5000, request_of(&to.sink, 0, name));
	}
	cr_expect_eq(to.profile.n_aggregates, 3000);
	profile_sink_deinit(&to);
}

static void expect_refused(struct sink *s)
{
	const struct profile_request_kind no_string = { .name = 77 }, none = { 0 };
	struct profile_sample sample = { .ts = 7000, .thread = 0, .request = 2 };
	uint32_t id = 99;

	write_some(s);
	cr_expect_eq(sink_sample(s, &sample), -EINVAL, "a request of another thread");
	sample.request = 5;
	cr_expect_eq(sink_sample(s, &sample), -EINVAL, "no request");
	cr_expect_eq(sink_request(s, 0, &no_string, &id), -EINVAL);
	cr_expect_eq(sink_request(s, 2, &none, &id), -EINVAL, "no thread");
	cr_expect_eq(id, 99);
}

Test(requests, wrong_ids_are_refused)
{
	static const struct profile_sink_options opts = { 0 };
	char path[] = "/tmp/rbpf-requests-XXXXXX";
	struct recorder_options to = { .path = path };
	struct recorder *rec = NULL;
	struct profile_sink out;
	struct err err = { 0 };

	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	expect_refused(&out.sink);
	profile_sink_deinit(&out);
	cr_assert_not_null(mkdtemp(path));
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(recorder_open(&to, &meta, &rec, &err), 0, "%s", err.msg);
	expect_refused(recorder_sink(rec));
	cr_assert_eq(recorder_close(rec, NULL, &err), 0, "%s", err.msg);
	unlink(path);
}

/*
 * Whether a recording with this record, after two threads and requests 1 and 2 of them, is read on.
 */
static void expect_record(bool ok, uint64_t kind, uint64_t x, uint64_t y, uint64_t z)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_header(&file);
	build_json(&file, RBPF_CHUNK_META, "{}");
	build_record(&records, RBPF_FILE_REC_PROCESS, 1, 0, 0, 0, 0, 0);
	build_record(&records, RBPF_FILE_REC_THREAD, 0, 1, 0);
	build_record(&records, RBPF_FILE_REC_THREAD, 0, 2, 0);
	build_record(&records, RBPF_FILE_REC_REQUEST, 0, 0, 0);
	build_record(&records, RBPF_FILE_REC_REQUEST, 1, 0, 0);
	build_record(&records, kind, x, y, z);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 2, 0, 1, 0, 0);
	build_data(&file, &records);
	cr_assert_eq(profile_read_mem(file.data, file.len, "x", NULL, &p, &report, &err), 0, "%s",
		     err.msg);
	cr_expect_eq(p.n_samples, ok, "kind %d: %d %d", (int)kind, (int)x, (int)y);
}

Test(requests, wrong_records_end_the_reading)
{
	expect_record(true, RBPF_FILE_REC_THREAD_REQUEST, 0, 1, 0);
	expect_record(true, RBPF_FILE_REC_THREAD_REQUEST, 0, 0, 0);
	expect_record(false, RBPF_FILE_REC_THREAD_REQUEST, 0, 2, 0); /* of the other thread */
	expect_record(false, RBPF_FILE_REC_THREAD_REQUEST, 0, 3, 0);
	expect_record(false, RBPF_FILE_REC_THREAD_REQUEST, 2, 0, 0);
	expect_record(true, RBPF_FILE_REC_REQUEST, 1, 0, 0);
	expect_record(false, RBPF_FILE_REC_REQUEST, 2, 0, 0);
	expect_record(false, RBPF_FILE_REC_REQUEST, 0, 1, 0);
	expect_record(false, RBPF_FILE_REC_REQUEST, 0, 0, 1);
}

/* ---- one after the other ---- */

static struct request_table table;
static struct profile_sink out;
static struct tracked_thread thread;

static void setup(void)
{
	static const struct profile_sink_options opts = { 0 };

	table = (struct request_table) { 0 };
	thread = (struct tracked_thread) { 0 };
	cr_assert_eq(profile_sink_init(&out, &opts), 0);
	define_threads(&out.sink);
}

static void teardown(void)
{
	request_table_deinit(&table);
	profile_sink_deinit(&out);
}

TestSuite(request_table, .init = setup, .fini = teardown);

/* Let @fingerprint stand for this. */
static void define(uint64_t fingerprint, uint64_t object, const char *name, bool complete)
{
	struct request_generation *g = &table.generations[0];
	uint32_t id;

	cr_assert_eq(intern_add(&g->fingerprints, &fingerprint, sizeof(fingerprint), &id, NULL), 0);
	cr_assert_eq(array_reserve(g->v, g->cap, id + 1), 0);
	g->v[id] = (struct request_definition) { .object = object,
						 .kind.name = string_of(&out.sink, name),
						 .klass = name[0],
						 .name = hash_bytes(name, strlen(name)),
						 .complete = complete };
}

static uint32_t request_by(uint64_t fingerprint, uint16_t rule)
{
	uint32_t id = 99;

	cr_assert_eq(request_table_of_sample(&table, &out.sink, &thread, fingerprint, rule, &id),
		     0);
	return id;
}

static uint32_t request_at(uint64_t fingerprint, bool in_request)
{
	return request_by(fingerprint, in_request ? REQUEST_ANY_RULE : 0);
}

static const char *name_of(uint32_t id)
{
	return request_label(&out.profile, out.profile.requests[id].kind);
}

Test(request_table, one_goes_on_until_another_receiver_or_a_gap)
{
	uint32_t first, second;

	define(1, 0x1000, "A#x", true);
	define(2, 0x1000, "A#x", true); /* of the next epoch */
	define(3, 0x2000, "A#x", true);
	first = request_at(1, true);
	cr_expect_eq(first, 1);
	cr_expect_eq(request_at(2, true), first);
	second = request_at(3, true);
	cr_expect_neq(second, first, "another receiver");
	cr_expect_str_eq(name_of(second), "A#x");
	cr_expect_eq(request_at(0, false), 0);
	cr_expect_neq(request_at(3, true), second, "there was a sample without it");
}

Test(request_table, the_same_receiver_with_another_name)
{
	uint32_t first;

	define(1, 0x1000, "A#x", true);
	define(2, 0x1000, "A#y", true);
	define(3, 0x1000, "A#[unknown]", false);
	first = request_at(1, true);
	cr_expect_eq(request_at(3, true), first, "what could not be read is not another name");
	cr_expect_neq(request_at(2, true), first);
}

/* A sink that forgot what it was told gives the same name another id. */
Test(request_table, the_same_name_by_another_id)
{
	uint32_t first;

	define(1, 0x1000, "A#x", true);
	define(2, 0x1000, "A#x", true);
	table.generations[0].v[1].kind.name = string_of(&out.sink, "as if it were another string");
	first = request_at(1, true);
	cr_expect_eq(request_at(2, true), first);
}

Test(request_table, unknown_is_never_the_last_one)
{
	uint32_t first, unknown;

	define(1, 0x1000, "A#x", true);
	first = request_at(1, true);
	unknown = request_at(0, true); /* a frame that the engine did not look for */
	cr_expect_neq(unknown, first);
	cr_expect_str_eq(name_of(unknown), "[unknown request]");
	cr_expect_eq(request_at(77, true), unknown, "the definition was lost");
	cr_expect_neq(request_at(1, true), unknown);
	cr_expect_eq(request_at(0, false), 0);
}

/*
 * The BPF programs knew of no frame that tells a request but one further out than the one that
 * does.
 */
Test(request_table, the_innermost_frame_tells)
{
	uint32_t first;

	define(1, 0x1000, "A#x", true);
	table.generations[0].v[0].rule = 3;
	first = request_by(1, 3);
	cr_expect_str_eq(name_of(first), "A#x");
	cr_expect_str_eq(name_of(request_by(1, 4)), "[unknown request]");
	cr_expect_str_eq(name_of(request_by(1, REQUEST_ANY_RULE)), "A#x");
	cr_expect_str_eq(name_of(request_by(1, 0)), "A#x", "the stack is not known");
}

/*
 * A server's frame tells no more than that nothing inside of it does: so all of that has to be
 * known.
 */
Test(request_table, of_a_rule_that_names_nothing)
{
	define(1, 0x1000, "Puma request", true);
	table.generations[0].v[0].rule = 3;
	table.generations[0].v[0].vague = true;
	cr_expect_str_eq(name_of(request_by(1, 3)), "Puma request");
	cr_expect_str_eq(name_of(request_by(1, REQUEST_ANY_RULE)), "[unknown request]");
	cr_expect_str_eq(name_of(request_by(1, 4)), "[unknown request]");
	cr_expect_str_eq(name_of(request_by(1, 0)), "[unknown request]");
}

Test(requests, of_a_stack_that_is_not_known)
{
	const struct sample_stack in = { .rule = 5 }, out_of = { 0 },
				  failed = { .flags = SAMPLE_FAILED },
				  unnamed = { .rule = 5, .flags = SAMPLE_UNRESOLVED };
	struct tracked_process p = { 0 };

	cr_expect_eq(process_request_rule(&p, &in), 5);
	cr_expect_eq(process_request_rule(&p, &unnamed), REQUEST_ANY_RULE);
	cr_expect_eq(process_request_rule(&p, &failed), 0, "it has never had one");
	p.requests.n = 1;
	cr_expect_eq(process_request_rule(&p, &out_of), 0);
	cr_expect_eq(process_request_rule(&p, &failed), REQUEST_ANY_RULE);
}

Test(requests, a_tree_for_each_kind)
{
	static const struct profile_sink_options opts = { .by_request = true }, apart = { 0 };
	const struct tree_options split = { .split = TREE_SPLIT_REQUEST };
	struct buf labels = BUF_INIT;
	struct profile_sink to;
	struct tree tree;

	cr_assert_eq(profile_sink_init(&to, &opts), 0);
	write_some(&to.sink);
	cr_assert_eq(tree_build(&to.profile, NULL, &split, &tree), 0);
	for (uint32_t i = tree_next(&tree, 0); i; i = tree_next(&tree, i)) {
		cr_expect_eq(tree.nodes[i].depth, 1);
		tree_node_label(&tree, i, &labels);
		buf_addf(&labels, " %d\n", (int)tree.nodes[i].total_samples);
	}
	cr_expect_str_eq(buf_str(&labels), "A#x 4\nB#x 2\n[no request] 2\n[unknown request] 1\n");
	buf_deinit(&labels);
	tree_deinit(&tree);
	profile_sink_deinit(&to);
	cr_assert_eq(profile_sink_init(&to, &apart), 0);
	write_some(&to.sink);
	cr_expect_eq(tree_build(&to.profile, NULL, &split, &tree), -EINVAL);
	profile_sink_deinit(&to);
}

/* ---- their lengths ---- */

Test(requests, counts_and_lengths)
{
	static const struct profile_sink_options opts = { .by_request = true, .by_thread = true };
	struct request_stats stats;
	struct profile_sink to;
	uint64_t at = 5000;
	uint32_t id;

	cr_assert_eq(profile_sink_init(&to, &opts), 0);
	to.profile.meta.n_events = 1;
	to.profile.meta.events[0] =
		(struct profile_event) { .name = EVENT_CPU, .unit = UNIT_NS, .period = 10 };
	define_threads(&to.sink);
	/* A hundred, of 0 ns to 990 ns, the longest first; and one of another kind. */
	for (uint64_t i = 100; i; i--) {
		id = request_of(&to.sink, i % 2, "A#x");
		sample_of(&to.sink, i % 2, at, id);
		sample_of(&to.sink, i % 2, at + (i - 1) * 10, id);
		at += 1000;
	}
	id = request_of(&to.sink, 0, "B#x");
	sample_of(&to.sink, 0, at, id);
	request_of(&to.sink, 0, "C#x"); /* without a sample */
	sample_of(&to.sink, 0, at + 10, 0);
	cr_assert_eq(request_stats_build(&to.profile, NULL, &stats), 0);
	cr_assert_eq(stats.n_rows, 3);
	cr_expect_eq(stats.samples, 202);
	cr_expect_str_eq(request_label(&to.profile, stats.rows[0].kind), "A#x");
	cr_expect_eq(stats.rows[0].requests, 100);
	cr_expect_eq(stats.rows[0].samples, 200);
	cr_expect_eq(stats.rows[0].value, 2000);
	cr_expect_eq(stats.rows[0].p50.least, 490);
	cr_expect_eq(stats.rows[0].p95.least, 940);
	cr_expect_eq(stats.rows[0].p99.least, 980);
	cr_expect_eq(stats.rows[0].p99.most, 0, "a thread that waits has no samples");
	cr_expect_str_eq(request_label(&to.profile, stats.rows[1].kind), "B#x");
	cr_expect_eq(stats.rows[1].requests, 1);
	cr_expect_eq(stats.rows[1].p50.least, 0, "one sample is of a moment");
	cr_expect_eq(stats.rows[1].p99.least, 0);
	cr_expect_eq(stats.rows[2].kind, 0);
	cr_expect_eq(stats.rows[2].requests, 0);
	request_stats_deinit(&stats);
	profile_sink_deinit(&to);
}
