/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "profile/chunk_reader.h"
#include "support/file_builder.h"

#define N_SMALL 500u /* several stretches by their number … */
#define N_LARGE 12u  /* … and by their bytes */

/* What is read, and where its chunks end. */
static struct buf file;
static size_t ends[N_SMALL + N_LARGE];
static size_t n_chunks;

static struct buf expected; /* the payload of one chunk */
static struct chunk_reader reader;

static void setup(void)
{
	file = expected = (struct buf)BUF_INIT;
	n_chunks = 0;
}

static void teardown(void)
{
	buf_deinit(&file);
	buf_deinit(&expected);
}

TestSuite(chunk_reader, .init = setup, .fini = teardown);

/* Fill `expected` with the payload of chunk @i: no two are the same. */
static void make_payload(size_t i)
{
	size_t numbers = i < N_SMALL ? i % 40 : 20000 + i;

	buf_reset(&expected);
	for (size_t n = 0; n < numbers; n++)
		buf_addf(&expected, "%zu;", i * n);
}

/* Every third one is stored as it is. */
static void build_payload(size_t i, uint8_t type)
{
	uLongf len = compressBound(expected.len);
	_cleanup_free_ uint8_t *stored = malloc(len);

	if (i % 3) {
		cr_assert_eq(compress(stored, &len, (const Bytef *)expected.data, expected.len),
			     Z_OK);
		build_chunk(&file, type, RBPF_CHUNK_ZLIB, stored, len, expected.len);
	} else {
		build_chunk(&file, type, 0, expected.data, expected.len, expected.len);
	}
}

static void build_file(size_t n)
{
	for (; n_chunks < n; n_chunks++) {
		make_payload(n_chunks);
		build_payload(n_chunks, RBPF_CHUNK_DATA);
		ends[n_chunks] = file.len;
	}
}

static void start_reading(bool threaded)
{
	const struct source src = { .fd = -1,
				    .mem = (const uint8_t *)file.data,
				    .mem_len = file.len };

	chunk_reader_init(&reader, &src);
	if (threaded)
		chunk_reader_start(&reader);
	cr_assert_eq(reader.threaded, threaded);
}

/* Chunks @from to @to - 1 come next, as they were built. */
static void expect_chunks(size_t from, size_t to)
{
	const struct chunk *chunk;

	for (size_t i = from; i < to; i++) {
		cr_assert_eq(chunk_reader_next(&reader, &chunk), 0, "chunk %zu", i);
		make_payload(i);
		cr_assert(chunk->known);
		cr_assert_eq(chunk->payload_code, 0, "chunk %zu", i);
		cr_assert_eq(chunk->header.raw_len, expected.len, "chunk %zu", i);
		cr_assert(!expected.len || !memcmp(chunk->payload, expected.data, expected.len),
			  "chunk %zu", i);
		cr_assert_eq(chunk->end, ends[i], "chunk %zu", i);
	}
}

static void expect_end(int code)
{
	const struct chunk *chunk = NULL;
	uint64_t len = 0;

	cr_assert_eq(chunk_reader_next(&reader, &chunk), code);
	cr_expect_null(chunk);
	cr_expect_eq(chunk_reader_drain(&reader, &len), 0);
	cr_expect_eq(len, file.len);
	chunk_reader_deinit(&reader);
}

Test(chunk_reader, chunks_come_in_order)
{
	build_file(N_SMALL + N_LARGE);
	for (int threaded = 0; threaded <= 1; threaded++) {
		start_reading(threaded);
		expect_chunks(0, n_chunks);
		expect_end(-ENODATA);
	}
}

Test(chunk_reader, starts_between_chunks)
{
	build_file(N_SMALL);
	start_reading(false);
	expect_chunks(0, 3);
	chunk_reader_start(&reader);
	expect_chunks(3, n_chunks);
	expect_end(-ENODATA);
}

/* What is before the damage is read, however far ahead the thread is. */
Test(chunk_reader, damage_ends_it)
{
	build_file(N_SMALL + N_LARGE);
	for (size_t i = 1; i < n_chunks; i += i < N_SMALL ? 31 : 3) {
		/* The checksum of the header. */
		file.data[ends[i - 1] + 20] ^= 1;
		for (int threaded = 0; threaded <= 1; threaded++) {
			start_reading(threaded);
			expect_chunks(0, i);
			expect_end(-EBADMSG);
		}
		file.data[ends[i - 1] + 20] ^= 1;
	}
}

/* A caller that has found something wrong itself asks for no more. */
Test(chunk_reader, can_be_left_anywhere)
{
	build_file(N_SMALL + N_LARGE);
	for (size_t i = 0; i <= n_chunks; i += 16) {
		uint64_t len = 0;

		start_reading(true);
		expect_chunks(0, i);
		if (i % 32) {
			cr_expect_eq(chunk_reader_drain(&reader, &len), 0);
			cr_expect_eq(len, file.len);
		}
		chunk_reader_deinit(&reader);
	}
}

/* It is the last, even if the caller does not understand it. */
Test(chunk_reader, nothing_is_read_after_totals)
{
	const struct chunk *chunk;
	size_t totals_end;

	build_file(3);
	build_json(&file, RBPF_CHUNK_TOTALS, "{}");
	totals_end = file.len;
	build_file(N_SMALL);
	for (int threaded = 0; threaded <= 1; threaded++) {
		start_reading(threaded);
		expect_chunks(0, 3);
		cr_assert_eq(chunk_reader_next(&reader, &chunk), 0);
		cr_expect_eq(chunk->header.type, RBPF_CHUNK_TOTALS);
		chunk_reader_deinit(&reader);
		cr_expect_eq(reader.src.pos, totals_end);
	}
}

/* Only the caller knows whether a payload matters. */
Test(chunk_reader, payload_that_is_wrong)
{
	const struct chunk *chunk;

	build_file(2);
	build_chunk(&file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, "no zlib", 7, 70);
	build_chunk(&file, RBPF_CHUNK_DATA, 0, "short", 5, 6);
	build_chunk(&file, RBPF_CHUNK_NOTE, RBPF_CHUNK_ZLIB, "no zlib", 7, 70);
	build_chunk(&file, 99, RBPF_CHUNK_IGNORABLE, "?", 1, 1);
	build_file(4);
	for (int threaded = 0; threaded <= 1; threaded++) {
		start_reading(threaded);
		expect_chunks(0, 2);
		for (int i = 0; i < 4; i++) {
			cr_assert_eq(chunk_reader_next(&reader, &chunk), 0);
			cr_expect_eq(chunk->payload_code, i < 2 ? -EBADMSG : 0);
			cr_expect_eq(chunk->known, i < 3);
		}
		expect_chunks(2, 4);
		expect_end(-ENODATA);
	}
}

/* The thread reads a pipe that gets its bytes bit by bit. */
Test(chunk_reader, pipe)
{
	struct source src = { .fd = -1 };
	size_t done = 0;
	int fds[2];

	build_file(60);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	src.fd = fds[0];
	chunk_reader_init(&reader, &src);
	chunk_reader_start(&reader);
	while (done < file.len) {
		ssize_t n = write(fds[1], file.data + done,
				  file.len - done < 997 ? file.len - done : 997);

		cr_assert_gt(n, 0);
		done += (size_t)n;
	}
	close(fds[1]);
	expect_chunks(0, n_chunks);
	expect_end(-ENODATA);
	close(fds[0]);
}

Test(chunk_reader, what_cannot_be_read)
{
	const struct source src = { .fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	const struct chunk *chunk;
	uint64_t len = 7;

	for (int threaded = 0; threaded <= 1; threaded++) {
		chunk_reader_init(&reader, &src);
		if (threaded)
			chunk_reader_start(&reader);
		cr_expect_eq(chunk_reader_next(&reader, &chunk), -EISDIR);
		cr_expect_eq(chunk_reader_drain(&reader, &len), -EISDIR);
		cr_expect_eq(len, 7, "untouched");
		chunk_reader_deinit(&reader);
	}
	close(src.fd);
}
