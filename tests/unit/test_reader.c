/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "profile/reader.h"
#include "profile/reason.h"
#include "support/file_builder.h"
#include "support/profile_check.h"

#define META_JSON "{\"rbpf_version\":\"0.1.0\",\"mode\":\"cpu\",\"frequency\":99,\"cpus\":2}"

static const struct read_options keep = { .keep_samples = true };

static int read_buf(const struct buf *file, struct profile *ret, struct read_report *report,
		    struct err *err)
{
	int r = profile_read_mem(file->data, file->len, "x.data", &keep, ret, report, err);

	if (!r) {
		const char *problem = check_profile(ret);

		cr_assert_null(problem, "insane profile: %s", problem);
	} else {
		cr_assert_eq(r, err->code, "the code of the error is returned");
	}
	return r;
}

/* ---- a golden recording ---- */

/* Strings 1 to 4, process 0, threads 0 and 1, module 0, frames 0 and 1, stacks 1 and 2. */
static void build_definitions(struct buf *records)
{
	build_string(records, "ruby");
	build_string(records, "Foo#bar");
	build_string(records, "/app/foo.rb");
	build_string(records, "3.1.2");
	build_record(records, RBPF_FILE_REC_PROCESS, 42, 1234, 1, 1, 4, 0, 3, 2, 7, 1000 + 1);
	build_record(records, RBPF_FILE_REC_THREAD, 0, 42, 1);
	build_record(records, RBPF_FILE_REC_THREAD, 0, 43, 0);
	build_record(records, RBPF_FILE_REC_MODULE, 1, 0, 0);
	build_record(records, RBPF_FILE_REC_FRAME, FRAME_RUBY, 2, 3, 7, 0, 0, 5,
		     FRAME_LINE_APPROXIMATE);
	/* As version 1.0 has it, without flags. */
	build_record(records, RBPF_FILE_REC_FRAME, FRAME_NATIVE, 1, 0, 0, 1, 0x1234, 0);
	build_record(records, RBPF_FILE_REC_STACK, 0, 0);
	build_record(records, RBPF_FILE_REC_STACK, 1, 1);
}

#define ZZ(v) ((uint64_t)(v) << 1) /* of a value that is not negative */

static void build_start(struct buf *file)
{
	build_header(file);
	build_json(file, RBPF_CHUNK_META, META_JSON);
}

static void build_compressed(struct buf *file, const struct buf *records)
{
	uLongf len = compressBound(records->len);
	_cleanup_free_ uint8_t *stored = malloc(len);

	cr_assert_eq(compress(stored, &len, (const Bytef *)records->data, records->len), Z_OK);
	build_chunk(file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, records->len);
}

/* Five chunks, some compressed; @ends gets the offset behind the header and each chunk. */
static void build_golden(struct buf *file, size_t ends[6])
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	build_header(file);
	ends[0] = file->len;
	build_json(file, RBPF_CHUNK_META, META_JSON);
	ends[1] = file->len;
	build_definitions(&records);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1000), 2, 10101010, 1, SAMPLE_KERNEL);
	build_data(file, &records);
	ends[2] = file->len;
	buf_reset(&records);
	for (int i = 0; i < 20; i++)
		build_record(&records, RBPF_FILE_REC_SAMPLE, i % 2, ZZ(10000000), 1 + i % 2,
			     10101010, 0, 0);
	build_record(&records, RBPF_FILE_REC_THREAD_CPU, 0, 123456789);
	build_record(&records, RBPF_FILE_REC_THREAD_CPU, 1, 1);
	build_compressed(file, &records);
	ends[3] = file->len;
	buf_reset(&records);
	build_record(&records, RBPF_FILE_REC_LOST, ZZ(5), LOST_RING_FULL, 3);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 0, 1, 0,
		     SAMPLE_FAILED | SAMPLE_TRUNCATED | SAMPLE_UNRESOLVED | SAMPLE_NO_RUBY |
			     SAMPLE_GC);
	build_record(&records, RBPF_FILE_REC_PROCESS_EXIT, 0, ZZ(9), 0x100 + 1);
	build_data(file, &records);
	ends[4] = file->len;
	build_json(file, RBPF_CHUNK_TOTALS, "{\"samples\":22,\"lost\":3,\"end_monotonic_ns\":9}");
	ends[5] = file->len;
}

Test(reader, golden_file)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report = { 0 };
	struct err err = { 0 };
	uint64_t last = BUILD_START_MONOTONIC + 1000 + 20 * 10000000ull + 5 + 1 + 9;
	size_t ends[6];

	build_golden(&file, ends);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(report.complete);
	cr_expect(p.complete);
	cr_expect_eq(report.lost_bytes, 0);
	cr_expect_eq(report.last_ts, last);
	cr_expect_str_eq(p.meta.rbpf_version, "0.1.0");
	cr_expect_null(p.meta.command, "META does not have it");
	cr_expect_eq(p.meta.frequency, 99);
	cr_expect_eq(p.meta.start_realtime_ns, BUILD_START_REALTIME);
	cr_expect_eq(p.meta.start_monotonic_ns, BUILD_START_MONOTONIC);
	cr_assert_eq(p.n_processes, 1);
	cr_expect_eq(p.processes[0].pid, 42);
	cr_expect_eq(p.processes[0].start_ticks, 1234);
	cr_expect_eq(p.processes[0].parent, PROFILE_NONE);
	cr_expect_str_eq(profile_str(&p, p.processes[0].ruby_version), "3.1.2");
	cr_expect_str_eq(profile_str(&p, p.processes[0].cgroup), "/app/foo.rb");
	cr_expect_str_eq(profile_str(&p, p.processes[0].container), "Foo#bar");
	cr_expect_eq(p.processes[0].ns_pid, 7);
	cr_expect_eq(p.processes[0].uid, 1000);
	cr_expect(p.processes[0].exited);
	cr_expect_eq(p.processes[0].exit_status, 0x100);
	cr_expect_eq(p.processes[0].exit_ts, last);
	cr_assert_eq(p.n_threads, 2);
	cr_expect_eq(p.threads[1].tid, 43);
	cr_expect_eq(p.threads[0].cpu_ns, 123456789);
	cr_expect(p.threads[0].cpu_known);
	cr_assert_eq(p.n_frames, 2);
	cr_expect_eq(p.frames[0].module, PROFILE_NONE);
	cr_expect_eq(p.frames[0].line, 7);
	cr_expect_eq(p.frames[0].func_line, 5);
	cr_expect_eq(p.frames[0].flags, FRAME_LINE_APPROXIMATE);
	cr_expect_eq(p.frames[1].module, 0);
	cr_expect_eq(p.frames[1].address, 0x1234);
	cr_expect_eq(p.frames[1].flags, 0);
	cr_assert_eq(p.n_stacks, 3);
	cr_expect_eq(p.stacks[2].parent, 1);
	cr_assert_eq(p.n_samples, 22);
	cr_expect_eq(p.samples[0].ts, BUILD_START_MONOTONIC + 1000);
	cr_expect_eq(p.samples[0].cpu, 1);
	cr_expect_eq(p.samples[0].flags, SAMPLE_KERNEL);
	cr_expect_eq(p.samples[20].ts, BUILD_START_MONOTONIC + 1000 + 20 * 10000000ull);
	cr_assert_eq(p.n_lost, 1);
	cr_expect_eq(p.lost[0].count, 3);
	cr_expect_eq(p.totals.samples, 22);
	cr_expect_eq(p.totals.end_monotonic_ns, 9, "what TOTALS says is not computed again");
}

/* The bytes themselves, so that packing and unpacking cannot change together unnoticed. */
Test(reader, header_bytes_are_the_format)
{
	static const uint8_t want[] = {
		0x89, 'R',  'B',  'P',	'F',  0x0d, 0x0a, 0x1a, 1,    0,    13,	  0,
		64,   0,    0,	  0,	0,    0,    0xc5, 0xb2, 0x9f, 0xcf, 0x97, 0x17,
		0,    0xf2, 0x05, 0x2a, 0x01, 0,    0,	  0,	0,    0,    0,	  0,
	};
	static const uint8_t payload[] = { 7, 7, 7 };
	static const uint8_t want_chunk[] = {
		'R', 'B', 'C', '1', 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0
	};
	_cleanup_buf_ struct buf file = BUF_INIT;
	uint8_t header[64];
	uint32_t crc;

	file_header_pack(RBPF_FILE_MAJOR_CPU, 0x1797cf9fb2c50000, 5000000000, header);
	cr_expect_arr_eq(header, want, sizeof(want));
	for (size_t i = 36; i < 60; i++)
		cr_expect_eq(header[i], 0, "byte %zu", i);
	crc = (uint32_t)crc32(0, header, 60);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(header[60 + i], (crc >> (8 * i)) & 0xff);

	build_chunk(&file, RBPF_CHUNK_DATA, 0, payload, sizeof(payload), sizeof(payload));
	cr_assert_eq(file.len, 24 + 3 + 5, "padded to 8");
	cr_expect_arr_eq(file.data, want_chunk, sizeof(want_chunk));
	crc = (uint32_t)crc32(0, payload, sizeof(payload));
	cr_expect_eq((uint8_t)file.data[16], crc & 0xff);
	cr_expect_eq((uint8_t)file.data[19], crc >> 24);
	crc = (uint32_t)crc32(0, (const Bytef *)file.data, 20);
	cr_expect_eq((uint8_t)file.data[20], crc & 0xff);
	cr_expect_eq((uint8_t)file.data[23], crc >> 24);
}

/* ---- damage ---- */

static bool is_boundary(const size_t ends[6], size_t len)
{
	for (size_t i = 0; i < 6; i++)
		if (ends[i] == len)
			return true;
	return false;
}

Test(reader, truncated_at_every_byte)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	size_t before = 0;
	size_t ends[6];

	build_golden(&file, ends);
	for (size_t len = 0; len <= file.len; len++) {
		_cleanup_profile_ struct profile p = PROFILE_INIT;
		/* Of its own, so that ASan sees a byte too far. */
		_cleanup_free_ char *copy = malloc(len ? len : 1);
		struct read_report report;
		struct err err = { 0 };
		int r;

		memcpy(copy, file.data, len);
		r = profile_read_mem(copy, len, "x.data", NULL, &p, &report, &err);
		if (len < ends[1]) {
			cr_assert_lt(r, 0, "%zu bytes", len);
			cr_assert_eq(err.kind, ERR_PROFILE, "%zu bytes", len);
			continue;
		}
		cr_assert_eq(r, 0, "%zu bytes: %s", len, err.msg);
		cr_assert_null(check_profile(&p), "%zu bytes", len);
		cr_assert_geq(p.n_samples, before, "%zu bytes", len);
		cr_assert_eq(report.complete, len == file.len, "%zu bytes", len);
		cr_assert_eq(report.lost_bytes == 0, is_boundary(ends, len), "%zu bytes", len);
		before = p.n_samples;
	}
	cr_expect_eq(before, 22);
}

/* Whatever is said of a recording by its profile. */
static bool same_profile(const struct profile *a, const struct profile *b)
{
	if (a->n_samples != b->n_samples || a->n_stacks != b->n_stacks || a->n_lost != b->n_lost ||
	    a->strings.count != b->strings.count ||
	    memcmp(&a->totals, &b->totals, sizeof(a->totals)))
		return false;
	return !memcmp(a->samples, b->samples, a->n_kept * sizeof(*a->samples)) &&
	       !memcmp(a->stacks, b->stacks, a->n_stacks * sizeof(*a->stacks)) &&
	       a->meta.start_realtime_ns == b->meta.start_realtime_ns &&
	       a->meta.frequency == b->meta.frequency;
}

Test(reader, flip_of_each_bit_is_detected_or_harmless)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile whole = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	size_t ends[6];

	build_golden(&file, ends);
	cr_assert_eq(read_buf(&file, &whole, &report, &err), 0, "%s", err.msg);
	for (size_t i = 0; i < file.len * 8; i++) {
		_cleanup_profile_ struct profile p = PROFILE_INIT;
		char bit = (char)(1 << (i % 8));
		int r;

		file.data[i / 8] ^= bit;
		r = read_buf(&file, &p, &report, &err);
		file.data[i / 8] ^= bit;
		if (r) {
			cr_assert_eq(err.kind, ERR_PROFILE, "bit %zu", i);
		} else if (report.complete) {
			cr_assert_eq(report.lost_bytes, 0, "bit %zu", i);
			cr_assert(same_profile(&p, &whole), "bit %zu", i);
		} else {
			cr_assert_gt(report.lost_bytes, 0, "bit %zu", i);
			cr_assert_leq(p.n_samples, whole.n_samples, "bit %zu", i);
		}
	}
}

Test(reader, what_follows_totals_is_not_used)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	size_t ends[6];

	build_golden(&file, ends);
	buf_addstr(&file, "trailing");
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(report.complete);
	cr_expect_eq(report.lost_bytes, 8);
}

Test(reader, totals_of_an_interrupted_recording_are_computed)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	size_t ends[6];

	build_golden(&file, ends);
	file.len = ends[4];
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_not(report.complete);
	cr_expect_not(p.complete);
	cr_expect_eq(p.totals.samples, 22);
	cr_expect_eq(p.totals.lost, 3);
	cr_expect_eq(p.totals.truncated, 1);
	cr_expect_eq(p.totals.unresolved, 1);
	cr_expect_eq(p.totals.failed, 1);
	cr_expect_eq(p.totals.no_ruby, 1);
	cr_expect_eq(p.totals.cpu_sampled_ns, 21 * 10101010ull + 1);
	cr_expect_eq(p.totals.gc_ns, 1);
	cr_expect_eq(p.totals.cpu_kernel_ns, 123456790);
	cr_expect_eq(p.totals.end_monotonic_ns, report.last_ts);
}

/* ---- what is no recording ---- */

/* The file must be refused with this message, and leave *ret alone. */
static void assert_refused(const struct buf *file, int code, const char *msg)
{
	struct profile p = { .n_samples = 77 };
	struct read_report report = { .lost_bytes = 77 };
	struct err err = { 0 };
	int r = profile_read_mem(file->data, file->len, "x.data", NULL, &p, &report, &err);

	cr_assert_eq(r, code, "got %d: %s", r, err.msg);
	cr_expect_eq(err.kind, ERR_PROFILE);
	cr_expect_str_eq(err.msg, msg);
	cr_expect_eq(p.n_samples, 77, "untouched on failure");
	cr_expect_eq(report.lost_bytes, 77, "untouched on failure");
}

Test(reader, other_files_are_named_by_their_start)
{
	static const struct {
		const char *data;
		size_t len;
		const char *start;
	} cases[] = {
		{ "<?xml version=\"1.0\"?><svg>", 26, "<?xml" },
		{ "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/\">",
		  71, "<?xml" },
		{ "PERFILE2\x68\0\0\0\0\0\0\0", 16, "PERFILE2" },
		{ "\x7f"
		  "ELF\2\1\1\0",
		  8, "\\x7fELF\\x02\\x01\\x01\\x00" },
		{ "\x1b[31m\n", 6, "\\x1b[31m" },
		{ "\xff", 1, "\\xff" },
		{ "\n\n", 2, "\\x0a" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_buf_ struct buf file = BUF_INIT;
		char msg[100];

		buf_add(&file, cases[i].data, cases[i].len);
		snprintf(msg, sizeof(msg), "x.data is not an rbpf profile (starts with '%s')",
			 cases[i].start);
		assert_refused(&file, -EINVAL, msg);
	}
}

Test(reader, empty_and_cut_off)
{
	_cleanup_buf_ struct buf file = BUF_INIT;

	assert_refused(&file, -ENODATA, "x.data is empty");
	buf_addstr(&file, "\x89RBP");
	assert_refused(&file, -EBADMSG,
		       "x.data is cut off within the first 64 bytes: nothing is usable");
	buf_reset(&file);
	build_header(&file);
	assert_refused(&file, -EBADMSG,
		       "x.data is damaged or cut off at its start: nothing is usable");
}

Test(reader, first_chunk_must_be_meta)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	const char *msg = "x.data is damaged or cut off at its start: nothing is usable";

	build_header(&file);
	build_definitions(&records);
	build_data(&file, &records);
	assert_refused(&file, -EBADMSG, msg);
	for (size_t i = 0; i < 5; i++) {
		static const char *const wrong[] = { "", "{", "[]", "{\"frequency\":-1}",
						     "{\"mode\":3}" };

		buf_reset(&file);
		build_header(&file);
		build_json(&file, RBPF_CHUNK_META, wrong[i]);
		assert_refused(&file, -EBADMSG, msg);
	}
}

static void seal_header(struct buf *file)
{
	uint32_t crc = chunk_crc(file->data, 60);

	for (size_t i = 0; i < 4; i++)
		file->data[60 + i] = (char)(crc >> (8 * i));
}

Test(reader, other_major_versions_are_refused)
{
	_cleanup_buf_ struct buf file = BUF_INIT;

	build_start(&file);
	file.data[8] = 3;
	file.data[10] = 7;
	assert_refused(&file, -EBADMSG, "x.data is damaged: wrong checksum of its header");
	seal_header(&file);
	assert_refused(&file, -EPROTONOSUPPORT,
		       "x.data has format version 3.7, this rbpf reads 1.x and 2.x");
}

Test(reader, newer_minor_version_with_a_longer_header)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_header(&file);
	file.data[10] = 9;
	file.data[12] = 80;
	file.data[32] = 0xf; /* flags that mean nothing yet */
	seal_header(&file);
	buf_add_repeat(&file, 'x', 16);
	build_json(&file, RBPF_CHUNK_META, META_JSON);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_eq(p.meta.frequency, 99);
	cr_expect_eq(report.lost_bytes, 0);
}

Test(reader, absurd_header_length)
{
	static const uint32_t lens[] = { 0, 8, 63, 65, 4104, UINT32_MAX };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		_cleanup_buf_ struct buf file = BUF_INIT;

		build_start(&file);
		for (size_t b = 0; b < 4; b++)
			file.data[12 + b] = (char)(lens[i] >> (8 * b));
		seal_header(&file);
		assert_refused(&file, -EBADMSG, "x.data is damaged: wrong checksum of its header");
	}
}

Test(reader, meta_strings_are_sanitised)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_header(&file);
	build_json(&file, RBPF_CHUNK_META,
		   "{\"command\":\"a\\u001b[2Jb\",\"new_key\":[{}],\"cpus\":4}");
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_str_eq(p.meta.command, "a\xef\xbf\xbd[2Jb");
	cr_expect_eq(p.meta.cpus, 4);
}

/* ---- chunks that a reader must not trust ---- */

/* Read what was built; the caller says how many samples and whether a tail was lost. */
static void assert_reads(const struct buf *file, size_t n_samples, bool lost)
{
	size_t added_up = 0;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	cr_assert_eq(read_buf(file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_samples, n_samples, "%zu samples instead of %zu", p.n_samples, n_samples);
	for (size_t i = 0; i < p.n_aggregates; i++)
		added_up += p.aggregates[i].samples;
	cr_assert_eq(added_up, n_samples, "%zu samples in aggregates instead of %zu", added_up,
		     n_samples);
	cr_assert_eq(report.lost_bytes > 0, lost, "%llu bytes lost",
		     (unsigned long long)report.lost_bytes);
}

static void build_one_sample(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	build_start(file);
	build_definitions(&records);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1000), 2, 10101010, 1, 0);
	build_data(file, &records);
}

static void assert_too_large(const struct buf *file)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report = { .last_ts = 7 };
	struct err err = { 0 };

	cr_assert_eq(read_buf(file, &p, &report, &err), -E2BIG);
	cr_expect_eq(err.kind, ERR_PROFILE);
	cr_expect(strstr(err.msg, " is not a valid recording: it expands to far more"), "%s",
		  err.msg);
	cr_expect_eq(report.last_ts, 7, "untouched");
	cr_expect_null(p.samples);
}

/* Chunks of samples that compress a thousand times, and chunks that do so as little as is usual. */
Test(reader, chunks_expand_in_proportion_to_the_file)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	size_t before, free_chunks = RBPF_FILE_FREE_RAW / (4u << 20);
	_cleanup_free_ uint8_t *stored = NULL;
	size_t samples = 0;
	uLongf len;

	while (records.len < (4u << 20) - 64) {
		build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 0, 2, 0, 0, 0);
		samples++;
	}
	len = compressBound(records.len);
	stored = malloc(len);
	cr_assert_eq(compress2(stored, &len, (const Bytef *)records.data, records.len, 9), Z_OK);
	cr_assert_gt(records.len / len, RBPF_FILE_MAX_RATIO);
	build_one_sample(&file);
	before = file.len;
	for (size_t i = 0; i < free_chunks; i++)
		build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, records.len);
	assert_reads(&file, 1 + free_chunks * samples, false);
	for (size_t i = 0; i < free_chunks; i++)
		build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, records.len);
	cr_assert_lt(file.len, 160u << 10);
	assert_too_large(&file);

	/* What a recorder writes is bound to no size. */
	file.len = before;
	for (size_t i = 0; i < 2 * free_chunks; i++)
		build_data(&file, &records);
	assert_reads(&file, 1 + 2 * free_chunks * samples, false);
}

/* A long name that is used often: of frames, or of one frame in many stacks. */
Test(reader, text_is_in_proportion_to_the_file)
{
	size_t n = RBPF_FILE_FREE_TEXT / RBPF_FILE_MAX_STRING;

	for (int of_stacks = 0; of_stacks < 2; of_stacks++) {
		_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT, name = BUF_INIT;

		build_one_sample(&file);
		buf_add_repeat(&name, 'x', RBPF_FILE_MAX_STRING);
		build_record_raw(&records, RBPF_FILE_REC_STRING, name.data, name.len);
		for (size_t i = 0; i < n * 3 / 4; i++) {
			build_record(&records, RBPF_FILE_REC_FRAME, 0, 5, 0, i, 0, 0, 0, 0);
			if (of_stacks)
				build_record(&records, RBPF_FILE_REC_STACK, 0, 2);
		}
		build_compressed(&file, &records);
		if (of_stacks)
			assert_too_large(&file);
		else
			assert_reads(&file, 1, false);
	}
}

Test(reader, zip_bomb_stops_at_raw_len)
{
	_cleanup_buf_ struct buf file = BUF_INIT, zeros = BUF_INIT;
	uLongf len = compressBound(64u << 20);
	_cleanup_free_ uint8_t *stored = malloc(len);

	buf_add_repeat(&zeros, 0, 64u << 20);
	cr_assert_eq(compress(stored, &len, (const Bytef *)zeros.data, zeros.len), Z_OK);
	build_one_sample(&file);
	build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, 100);
	assert_reads(&file, 1, true);

	/* What is above the limit is not even tried. */
	buf_reset(&file);
	build_one_sample(&file);
	build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, 64u << 20);
	assert_reads(&file, 1, true);
	buf_reset(&file);
	build_one_sample(&file);
	build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, UINT32_MAX);
	assert_reads(&file, 1, true);
}

Test(reader, chunk_limit)
{
	for (size_t more = 0; more <= 1; more++) {
		_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
		/* One record of an unknown kind: 1 byte of kind, 4 of length. */
		size_t body_len = RBPF_FILE_MAX_CHUNK + more - 5;

		buf_addch(&records, 100);
		buf_add_varint(&records, body_len);
		buf_add_repeat(&records, 'x', body_len);
		cr_assert_eq(records.len, RBPF_FILE_MAX_CHUNK + more);
		build_one_sample(&file);
		build_compressed(&file, &records);
		assert_reads(&file, 1, more);
	}
}

Test(reader, compressed_length_must_be_exact)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	uint8_t stored[200];
	uLongf len = sizeof(stored) - 1;

	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	cr_assert_eq(compress(stored, &len, (const Bytef *)records.data, records.len), Z_OK);
	stored[len] = 0;
	for (int more = -1; more <= 1; more++) {
		buf_reset(&file);
		build_one_sample(&file);
		build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len,
			    records.len + (size_t)more);
		assert_reads(&file, more ? 1 : 2, more);
	}
	buf_reset(&file);
	build_one_sample(&file);
	build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len + 1, records.len);
	assert_reads(&file, 1, true);
	for (size_t cut = 1; cut <= len; cut++) {
		buf_reset(&file);
		build_one_sample(&file);
		build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len - cut,
			    records.len);
		assert_reads(&file, 1, true);
	}
	buf_reset(&file);
	build_one_sample(&file);
	build_chunk(&file, RBPF_CHUNK_DATA, 0, records.data, records.len, records.len + 1);
	assert_reads(&file, 1, true);
}

/* The checksum of the chunk is right: only the stream itself is wrong. */
Test(reader, compressed_bits_must_be_right)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	uint8_t stored[200];
	uLongf len = sizeof(stored);

	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	cr_assert_eq(compress(stored, &len, (const Bytef *)records.data, records.len), Z_OK);
	for (size_t i = 0; i < 8 * len; i++) {
		Bytef raw[200];
		uLongf raw_len = records.len, used = len;
		bool good;

		stored[i / 8] ^= (uint8_t)(1u << i % 8);
		good = uncompress2(raw, &raw_len, stored, &used) == Z_OK && used == len &&
		       raw_len == records.len;
		buf_reset(&file);
		build_one_sample(&file);
		build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, records.len);
		assert_reads(&file, good ? 2 : 1, !good);
		stored[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}

Test(reader, unknown_chunks)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;

	build_one_sample(&file);
	build_chunk(&file, 99, RBPF_CHUNK_IGNORABLE, "whatever", 8, 8);
	build_chunk(&file, 98, RBPF_CHUNK_IGNORABLE | 4, "other compression", 17, 1000);
	build_json(&file, RBPF_CHUNK_NOTE, "no JSON, but who reads it");
	build_chunk(&file, RBPF_CHUNK_DATA, 0, "", 0, 0);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	build_data(&file, &records);
	assert_reads(&file, 2, false);
	build_chunk(&file, 97, 0, "must be understood", 18, 18);
	build_data(&file, &records);
	assert_reads(&file, 2, true);
}

Test(reader, second_meta_ends_it)
{
	_cleanup_buf_ struct buf file = BUF_INIT;

	build_one_sample(&file);
	build_json(&file, RBPF_CHUNK_META, META_JSON);
	assert_reads(&file, 1, true);
}

/* A sum without one of the threads would be less than what was sampled. */
Test(reader, kernel_account_of_an_interrupted_recording_is_all_or_nothing)
{
	for (int known = 0; known <= 2; known++) {
		_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
		_cleanup_profile_ struct profile p = PROFILE_INIT;
		struct read_report report;

		build_start(&file);
		build_definitions(&records);
		build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1000), 2, 5, 1, 0);
		for (int i = 0; i < known; i++)
			build_record(&records, RBPF_FILE_REC_THREAD_CPU, 1 - i, 100);
		build_data(&file, &records);
		cr_assert_eq(read_buf(&file, &p, &report, NULL), 0);
		cr_assert_eq(p.n_threads, 2);
		cr_expect(!report.complete);
		cr_expect_eq(p.totals.cpu_kernel_ns, known == 2 ? 200 : 0, "%d of 2 are known",
			     known);
	}
}

Test(reader, wrong_totals_mean_incomplete)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_one_sample(&file);
	build_json(&file, RBPF_CHUNK_TOTALS, "{\"samples\":12,\"lost\":\"many\"}");
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_not(report.complete);
	cr_expect_eq(p.totals.samples, 1, "computed");
}

/* Recordings before 1.4 have no counters, those of a newer rbpf have more. */
Test(reader, counters_that_are_missing_or_unknown)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_one_sample(&file);
	build_json(&file, RBPF_CHUNK_TOTALS,
		   "{\"samples\":1,\"counters\":{\"ticks\":12,\"tocks\":13,\"lost_lives\":2}}");
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_expect(report.complete);
	cr_expect_eq(p.totals.counters[COUNTER_TICKS], 12);
	cr_expect_eq(p.totals.counters[COUNTER_LOST_LIFE], 2);
	cr_expect_eq(p.totals.counters[COUNTER_STACKS], 0, "missing");
}

Test(reader, wrong_counters_mean_incomplete)
{
	static const char *const wrong[] = { "{\"counters\":7}", "{\"counters\":{\"ticks\":-1}}",
					     "{\"counters\":{\"ticks\":\"many\"}}" };
	struct read_report report;
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_buf_ struct buf file = BUF_INIT;
		_cleanup_profile_ struct profile p = PROFILE_INIT;

		build_one_sample(&file);
		build_json(&file, RBPF_CHUNK_TOTALS, wrong[i]);
		cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
		cr_expect_not(report.complete, "%s", wrong[i]);
	}
}

/* ---- records that a reader must not trust ---- */

/* A record of one sample each stands before and behind the bytes in question. */
static void assert_record(const void *bytes, size_t len, bool ok, const char *what)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	buf_add(&records, bytes, len);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s: %s", what, err.msg);
	cr_expect_eq(p.n_samples, ok ? 3 : 2, "%s: %zu samples", what, p.n_samples);
	cr_expect_eq(report.lost_bytes > 0, !ok, "%s", what);
}

#define ASSERT_RECORD(ok, kind, ...)                                                               \
	do {                                                                                       \
		_cleanup_buf_ struct buf record = BUF_INIT;                                        \
                                                                                                   \
		build_record(&record, kind, __VA_ARGS__);                                          \
		assert_record(record.data, record.len, ok, #kind " " #__VA_ARGS__);                \
	} while (0)

#define HUGE (1ull << 63)

Test(reader, ids_must_be_defined)
{
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS, 1, HUGE, 4, 4, 4, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 5, 4, 4, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 5, 4, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, HUGE, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 2);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, UINT32_MAX + 1ull, 2, 4, 4, 4, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS_UPDATE, 0, 1, 2, 4, 4, 4, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_UPDATE, 1, 1, 2, 4, 4, 4, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_UPDATE, 0, 1, 2, 4, 4, 4, 1);
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 4, UINT32_MAX, UINT32_MAX);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 5, 4, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 5, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 4, UINT32_MAX + 1ull, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 4, 0, UINT32_MAX + 1ull);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_UPDATE, 0, 1, 2, 4, 4, 4, 0, 4, 5, 0, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS_EXIT, 0, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_EXIT, 1, 0, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS_EXIT, 0, 0, 1ull << 31);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_EXIT, 0, 0, (1ull << 31) + 1);
	ASSERT_RECORD(true, RBPF_FILE_REC_THREAD, 0, UINT32_MAX, 4);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD, 1, 1, 4);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD, 0, UINT32_MAX + 1ull, 4);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD, 0, 1, 5);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD_NAME, 2, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD_NAME, 1, 5);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD_CPU, 2, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_MODULE, 5, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_MODULE, 0, 5, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 1, HUGE, 1);
	ASSERT_RECORD(true, RBPF_FILE_REC_FRAME, HUGE, 4, 4, 1, 1, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 5, 4, 1, 1, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 5, 1, 1, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 4, HUGE, 1, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 2, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, UINT64_MAX, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 1, 0, HUGE);
	ASSERT_RECORD(true, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 1, 0, 1, HUGE);
	ASSERT_RECORD(true, RBPF_FILE_REC_STACK, 2, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_STACK, 3, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_STACK, 2, 2);
	ASSERT_RECORD(false, RBPF_FILE_REC_SAMPLE, 2, 0, 0, 0, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_SAMPLE, 0, 0, 3, 0, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_SAMPLE, 0, 0, 0, 0, 65536, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_LOST, 0, 0, HUGE);
	ASSERT_RECORD(true, RBPF_FILE_REC_LOST, 0, HUGE, 1);
}

Test(reader, fields_that_are_missing)
{
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_UPDATE, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS_EXIT, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD, 0, 1);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD_NAME, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_THREAD_CPU, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_MODULE, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 1, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_STACK, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_SAMPLE, 0, 0, 0, 0, 0);
	ASSERT_RECORD(false, RBPF_FILE_REC_LOST, 0, 0);
}

/* Flags may be missing, for version 1.0 has none; half a number is a wrong record all the same. */
Test(reader, flags_of_a_frame_cut_off)
{
	static const char record[] = { RBPF_FILE_REC_FRAME, 8, 0, 4, 4, 1, 1, 0, 1, '\x80' };

	assert_record(record, sizeof(record), false, "flags end within a number");
}

/*
 * Since 1.5 a frame tells why it is no function; before, its name did. A reason that does not fit
 * the kind of the frame is one that only a newer rbpf knows.
 */
Test(reader, reasons_of_frames)
{
	static const struct {
		const char *name;
		uint32_t kind;
		uint64_t module, told; /* 0: none; NOT_TOLD: the record ends before it */
		enum frame_reason want;
	} frames[] = {
#define NOT_TOLD UINT64_MAX
		{ "[native thread]", FRAME_NATIVE, 0, NOT_TOLD, REASON_NATIVE_THREAD },
		{ "[anonymous code]", FRAME_NATIVE, 0, NOT_TOLD, REASON_ANONYMOUS_CODE },
		{ "[native thread]", FRAME_NATIVE, 1, NOT_TOLD, REASON_NONE },
		{ "[native thread]", FRAME_RUBY, 0, NOT_TOLD, REASON_NONE },
		{ "[native frames missing: unknown code]", FRAME_GAP, 0, NOT_TOLD,
		  REASON_GAP_UNKNOWN_CODE },
		{ "[native frames missing: because]", FRAME_GAP, 0, NOT_TOLD, REASON_NONE },
		{ "(marking)", FRAME_GC, 0, NOT_TOLD, REASON_GC_MARKING },
		{ "(marking)", FRAME_GC, 0, REASON_NONE, REASON_NONE },
		{ "in other words", FRAME_GC, 0, REASON_GC_SWEEPING, REASON_GC_SWEEPING },
		{ "[native thread]", FRAME_NATIVE, 0, REASON_STACK_LOST, REASON_STACK_LOST },
		{ "[native thread]", FRAME_NATIVE, 0, REASON_GC, REASON_NONE },
		{ "[native thread]", FRAME_NATIVE, 0, FRAME_REASON_COUNT, REASON_NONE },
		{ "[native thread]", FRAME_NATIVE, 0, REASON_NATIVE_THREAD + (1ull << 32),
		  REASON_NONE },
	};
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_start(&file);
	build_string(&records, "/usr/bin/ruby");
	build_record(&records, RBPF_FILE_REC_MODULE, 1, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		build_string(&records, frames[i].name);
		if (frames[i].told == NOT_TOLD)
			build_record(&records, RBPF_FILE_REC_FRAME, frames[i].kind, 2 + i, 0, 0,
				     frames[i].module, 0, 0, 0);
		else
			build_record(&records, RBPF_FILE_REC_FRAME, frames[i].kind, 2 + i, 0, 0,
				     frames[i].module, 0, 0, 0, frames[i].told);
	}
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_frames, ARRAY_SIZE(frames));
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		cr_expect_eq(p.frames[i].reason, frames[i].want, "%zu: %u", i, p.frames[i].reason);
}

/* Version 1.1 ends a process with its parent; what came later is then unknown. */
Test(reader, process_of_an_older_version)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_start(&file);
	build_definitions(&records);
	build_record(&records, RBPF_FILE_REC_PROCESS, 43, 1, 1, 1, 4, 1);
	build_record(&records, RBPF_FILE_REC_PROCESS, 44, 1, 1, 1, 4, 0, 3,
		     2); /* cut by whom ever */
	build_record(&records, RBPF_FILE_REC_PROCESS_UPDATE, 0, 42, 1234, 1, 1, 4, 0);
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_processes, 3);
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(p.processes[i].pid, 42 + i);
		cr_expect_str_eq(profile_str(&p, p.processes[i].container), i < 2 ? "" : "Foo#bar");
		cr_expect_str_eq(profile_str(&p, p.processes[i].cgroup),
				 i < 2 ? "" : "/app/foo.rb");
		cr_expect_eq(p.processes[i].ns_pid, 0);
		cr_expect_eq(p.processes[i].uid, PROFILE_NONE);
	}
}

Test(reader, what_is_unknown_is_skipped)
{
	ASSERT_RECORD(true, 100, 1, 2, 3);
	ASSERT_RECORD(true, UINT64_MAX, 1, 2, 3);
	ASSERT_RECORD(true, RBPF_FILE_REC_MARKER, 0, 0, 1, 1, 0);
	ASSERT_RECORD(true, RBPF_FILE_REC_THREAD, 0, 1, 4, 9, 9, 9); /* fields of a newer version */
	ASSERT_RECORD(true, RBPF_FILE_REC_FRAME, 0, 4, 4, 1, 1, 0, 1, FRAME_LINE_APPROXIMATE, 9, 9);
	ASSERT_RECORD(true, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 4, 1, 1, 4, 9, 9);
	ASSERT_RECORD(false, RBPF_FILE_REC_PROCESS, 1, 2, 4, 4, 4, 0, 4, 4, 1, 1, 9);
	assert_record("\x64\0", 2, true, "unknown kind without a body");
	assert_record("\0\0", 2, false, "kind 0");
	assert_record("", 0, true, "nothing");
}

Test(reader, giant_varints)
{
	static const char ten[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"; /* 2^64 - 1 */
	static const char over[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";	/* 65 bits */
	static const char eleven[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
	static const char padded[] = "\x64\x82\x80\0xx"; /* length 2 in three bytes */
	_cleanup_buf_ struct buf r = BUF_INIT;

	assert_record(ten, 11, true, "kind 2^64 - 1 without a body");
	assert_record(over, 10, false, "65 bits");
	assert_record(eleven, 11, false, "11 bytes");
	assert_record(padded, 6, true, "padding with zeros is allowed");
	assert_record("\x64\xff\xff\xff\xff\x0f", 6, false, "length behind the end");
	assert_record("\x64\x7f", 2, false, "length behind the end");
	buf_addstr(&r, "\x0e\x0c"); /* THREAD_CPU */
	buf_addch(&r, 0);
	buf_add(&r, eleven, 11);
	assert_record(r.data, r.len, false, "11 bytes in a body");
}

Test(reader, payload_that_ends_within_a_record)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	for (size_t len = 0; len < records.len; len++) {
		_cleanup_buf_ struct buf file = BUF_INIT;

		build_one_sample(&file);
		build_chunk(&file, RBPF_CHUNK_DATA, 0, records.data, len, len);
		assert_reads(&file, 1, len > 0);
	}
}

Test(reader, string_limit)
{
	for (size_t more = 0; more <= 1; more++) {
		_cleanup_buf_ struct buf string = BUF_INIT, record = BUF_INIT;

		buf_add_repeat(&string, 'x', RBPF_FILE_MAX_STRING + more);
		build_record_raw(&record, RBPF_FILE_REC_STRING, string.data, string.len);
		assert_record(record.data, record.len, !more, "string limit");
	}
}

Test(reader, strings_are_sanitised_and_may_repeat)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_start(&file);
	build_record_raw(&records, RBPF_FILE_REC_STRING, "a\0b", 3);
	build_record_raw(&records, RBPF_FILE_REC_STRING, "\xff\x1b", 2);
	build_string(&records, "");
	build_string(&records, "same");
	build_string(&records, "same");
	build_record(&records, RBPF_FILE_REC_MODULE, 1, 2, 0);
	build_record(&records, RBPF_FILE_REC_MODULE, 3, 4, 0);
	build_record(&records, RBPF_FILE_REC_MODULE, 5, 0, 0);
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_modules, 3);
	cr_expect_str_eq(profile_str(&p, p.modules[0].path), "a\xef\xbf\xbd"
							     "b");
	cr_expect_str_eq(profile_str(&p, p.modules[0].build_id), "\xef\xbf\xbd\xef\xbf\xbd");
	cr_expect_str_eq(profile_str(&p, p.modules[1].path), "");
	cr_expect_str_eq(profile_str(&p, p.modules[1].build_id), "same");
	cr_expect_eq(p.modules[1].build_id, p.modules[2].path);
}

Test(reader, depth_limit)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_start(&file);
	build_definitions(&records);
	for (uint64_t i = 3; i <= RBPF_FILE_MAX_DEPTH; i++)
		build_record(&records, RBPF_FILE_REC_STACK, i - 1, 0);
	build_data(&file, &records);
	build_data(&file, &records); /* begins with definitions, all of which are new ids */
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_gt(p.n_stacks, RBPF_FILE_MAX_DEPTH);
	cr_expect_eq(profile_stack_depth(&p, RBPF_FILE_MAX_DEPTH), RBPF_FILE_MAX_DEPTH);

	buf_reset(&records);
	build_record(&records, RBPF_FILE_REC_STACK, RBPF_FILE_MAX_DEPTH, 0);
	build_data(&file, &records);
	assert_reads(&file, 0, true);
}

Test(reader, run_repeats_the_sample_before)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 1, ZZ(100), 2, 3, 1, 0);
	build_record(&records, RBPF_FILE_REC_RUN, 3);
	build_record(&records, RBPF_FILE_REC_RUN, 1);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(7), 2, 3, 1, 0);
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_samples, 1 + 5 + 1);
	cr_expect_eq(p.samples[5].ts, BUILD_START_MONOTONIC + 1000 + 5 * 100);
	cr_expect_eq(p.samples[5].thread, 1);
	cr_expect_eq(p.samples[6].ts, p.samples[5].ts + 7);
	cr_expect_eq(report.last_ts, p.samples[6].ts);
}

Test(reader, run_limits)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;

	/* In a chunk of its own there is no sample before it. */
	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_RUN, 1);
	build_data(&file, &records);
	assert_reads(&file, 1, true);

	buf_reset(&file);
	buf_reset(&records);
	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	build_record(&records, RBPF_FILE_REC_LOST, 0, 0, 1);
	build_record(&records, RBPF_FILE_REC_RUN, 1);
	build_data(&file, &records);
	assert_reads(&file, 2, true);

	buf_reset(&file);
	buf_reset(&records);
	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	build_record(&records, RBPF_FILE_REC_RUN, RBPF_FILE_MAX_RUN);
	build_record(&records, RBPF_FILE_REC_RUN, 0);
	build_data(&file, &records);
	assert_reads(&file, 2 + RBPF_FILE_MAX_RUN, false);
	build_record(&records, RBPF_FILE_REC_RUN, 1);
	build_data(&file, &records);
	assert_too_large(&file);
}

/* The limit is of the recording: many chunks take no more than one. */
Test(reader, run_limit_is_of_all_chunks)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;

	build_one_sample(&file);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(1), 2, 3, 1, 0);
	build_record(&records, RBPF_FILE_REC_RUN, RBPF_FILE_MAX_RUN / 2);
	build_data(&file, &records);
	build_data(&file, &records);
	assert_reads(&file, 3 + RBPF_FILE_MAX_RUN, false);
	for (int i = 0; i < 200; i++)
		build_data(&file, &records);
	cr_assert_lt(file.len, 16384);
	assert_too_large(&file);
}

Test(reader, time_goes_both_ways_and_wraps)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	build_start(&file);
	build_definitions(&records);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 1, 0, 0, 0, 0);		 /* - 1 */
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, UINT64_MAX, 0, 0, 0, 0); /* - 2^63 */
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, UINT64_MAX, 0, 0, 0, 0); /* and back */
	build_data(&file, &records);
	cr_assert_eq(read_buf(&file, &p, &report, &err), 0, "%s", err.msg);
	cr_assert_eq(p.n_samples, 3);
	cr_expect_eq(p.samples[0].ts, BUILD_START_MONOTONIC - 1);
	cr_expect_eq(p.samples[2].ts, BUILD_START_MONOTONIC - 1);
}

/* How many samples, ten of which are 100 ns apart from the start, are read of a time. */
static void expect_time(const struct buf *file, uint64_t from_ns, uint64_t to_ns, size_t n)
{
	const struct read_options opts = { .from_ns = from_ns,
					   .to_ns = to_ns,
					   .keep_samples = true };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	uint64_t samples = 0;

	cr_assert_eq(profile_read_mem(file->data, file->len, "x.data", &opts, &p, &report, &err), 0,
		     "%s", err.msg);
	for (size_t i = 0; i < p.n_aggregates; i++)
		samples += p.aggregates[i].samples;
	cr_expect_eq(samples, n, "%lu to %lu: %lu", from_ns, to_ns, samples);
	cr_expect_eq(p.n_kept, n);
	cr_expect_eq(p.n_samples, 11, "all are counted");
	cr_expect_eq(p.value, 11 * 3);
	cr_expect_eq(p.totals.samples, 11);
	cr_expect_eq(p.totals.failed, 10);
	cr_expect_eq(p.totals.cpu_sampled_ns, 11 * 3);
	cr_expect_eq(p.first_ts, BUILD_START_MONOTONIC - 1);
	cr_expect_eq(p.last_ts, BUILD_START_MONOTONIC + 1000);
}

Test(reader, samples_of_a_time)
{
	_cleanup_buf_ struct buf file = BUF_INIT, records = BUF_INIT;

	build_start(&file);
	build_definitions(&records);
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 1, 0, 3, 0, 0); /* 1 ns before the start */
	build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(101), 0, 3, 0, SAMPLE_FAILED);
	for (int i = 0; i < 9; i++)
		build_record(&records, RBPF_FILE_REC_SAMPLE, 0, ZZ(100), 0, 3, 0, SAMPLE_FAILED);
	build_data(&file, &records);
	expect_time(&file, 0, 0, 11);
	expect_time(&file, 1, 0, 10);
	expect_time(&file, 100, 0, 10);
	expect_time(&file, 101, 0, 9);
	expect_time(&file, 0, 100, 1);
	expect_time(&file, 0, 101, 2);
	expect_time(&file, 300, 501, 3);
	expect_time(&file, UINT64_MAX, 0, 0);
	expect_time(&file, 0, UINT64_MAX, 11);
}

Test(reader, samples_are_added_up)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	size_t ends[6];

	build_golden(&file, ends);
	cr_assert_eq(profile_read_mem(file.data, file.len, "x.data", NULL, &p, &report, &err), 0,
		     "%s", err.msg);
	cr_expect_eq(p.n_kept, 0, "none is kept that nobody asked for");
	cr_expect_eq(p.n_samples, 22);
	cr_assert_eq(p.n_aggregates, 4);
	cr_expect_eq(p.aggregates[0].samples, 1);
	cr_expect_eq(p.aggregates[1].samples, 10);
	cr_expect_eq(p.aggregates[2].samples, 10);
	cr_expect_eq(p.aggregates[3].samples, 1);
}

/* ---- files ---- */

static void assert_path_refused(const char *path, int code, const char *fmt)
{
	struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	char msg[300];

	snprintf(msg, sizeof(msg), fmt, path);
	cr_expect_eq(profile_read(path, NULL, &p, &report, &err), code, "%s", path);
	cr_expect_eq(err.kind, ERR_PROFILE);
	cr_expect_str_eq(err.msg, msg);
}

Test(reader, paths_that_cannot_be_read)
{
	char dir[] = "/tmp/rbpf-reader-XXXXXX";
	char path[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	assert_path_refused(dir, -EISDIR, "%s is a directory, not an rbpf profile");
	assert_path_refused(path, -ENOENT, "there is no %s");
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0));
	assert_path_refused("/dev/null", -ENODATA, "%s is empty");
	if (geteuid()) /* root may read everything */
		assert_path_refused(path, -EACCES, "cannot read %s: Permission denied");
	else
		assert_path_refused(path, -ENODATA, "%s is empty");
	unlink(path);
	rmdir(dir);
}

/* A pipe delivers in pieces and cannot seek. */
Test(reader, standard_input)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	size_t ends[6];
	int pipe_fds[2];

	build_golden(&file, ends);
	buf_addstr(&file, "more");
	cr_assert_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	cr_assert_eq(io_write_full(pipe_fds[1], file.data, file.len), 0);
	close(pipe_fds[1]);
	cr_assert_eq(dup2(pipe_fds[0], STDIN_FILENO), STDIN_FILENO);
	cr_assert_eq(profile_read("-", NULL, &p, &report, &err), 0, "%s", err.msg);
	cr_expect_eq(p.n_samples, 22);
	cr_expect_eq(report.lost_bytes, 4);
	close(pipe_fds[0]);
}

/* ---- profile.h ---- */

Test(profile, time_range)
{
	struct profile_lost lost[] = { { .ts = 70 } };
	struct profile p = PROFILE_INIT;
	uint64_t first = 1, last = 1;

	profile_time_range(&p, &first, &last);
	cr_expect_eq(first, 0);
	cr_expect_eq(last, 0);
	p.n_samples = 3;
	p.first_ts = 40;
	p.last_ts = 60;
	profile_time_range(&p, &first, &last);
	cr_expect_eq(first, 40);
	cr_expect_eq(last, 60);
	p.lost = lost;
	p.n_lost = 1;
	p.meta.start_monotonic_ns = 45;
	profile_time_range(&p, &first, &last);
	cr_expect_eq(first, 40, "a sample from before the start counts");
	cr_expect_eq(last, 70);
	p.meta.start_monotonic_ns = 10;
	p.totals.end_monotonic_ns = 100;
	profile_time_range(&p, &first, &last);
	cr_expect_eq(first, 10);
	cr_expect_eq(last, 100);
}

Test(profile, stack_depth)
{
	struct profile_stack stacks[] = {
		{ 0, PROFILE_NONE }, { 0, 0 }, { 1, 0 }, { 2, 1 }, { 1, 1 }
	};
	struct profile p = { .stacks = stacks, .n_stacks = 5 };

	cr_expect_eq(profile_stack_depth(&p, 0), 0);
	cr_expect_eq(profile_stack_depth(&p, 1), 1);
	cr_expect_eq(profile_stack_depth(&p, 3), 3);
	cr_expect_eq(profile_stack_depth(&p, 4), 2);
}

Test(profile, names)
{
	cr_expect_str_eq(frame_kind_name(FRAME_RUBY), "ruby");
	cr_expect_str_eq(frame_kind_name(FRAME_KIND_COUNT), "unknown");
	cr_expect_str_eq(frame_kind_name((enum frame_kind)UINT32_MAX), "unknown");
	cr_expect_str_eq(lost_reason_name(LOST_RING_FULL), "ring-full");
	cr_expect_str_eq(lost_reason_name(LOST_REASON_COUNT), "other");
	for (int i = 0; i < FRAME_KIND_COUNT; i++)
		cr_expect_not_null(frame_kind_name((enum frame_kind)i));
	for (int i = 0; i < LOST_REASON_COUNT; i++)
		cr_expect_not_null(lost_reason_name((enum lost_reason)i));
	profile_deinit(NULL);
}
