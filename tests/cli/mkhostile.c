/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings that no recorder would write, and what may not come out of them:
 *
 *	mkhostile text FILE	every string holds what a terminal obeys or does not show
 *	mkhostile runs|inflate|deep|threads|names FILE
 *				a few kB that want to become gigabytes
 *	mkhostile check		standard input has none of that: status 0; else status 1, and where
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "profile/profile.h"
#include "support/file_builder.h"

#define INPUT_MAX (64u << 20)
#define TICK	  10000000ull

/* Byte sequences, by themselves: an encoder in common with rbpf would have its mistakes. */
static const char *const refused[] = {
	"\x1b]0;title\x07",
	"\x1b[31m",
	"\x9b"
	"31m",
	"\xc2\x9b"
	"31m",
	"\xc2\x9d"
	"0;t\xc2\x9c",
	"\xc2\x85",
	"\r",
	"\b",
	"\x7f",
	"\xe2\x80\xae",
	"\xe2\x80\xaa",
	"\xe2\x81\xa6",
	"\xe2\x81\xa9",
	"\xe2\x80\x8e",
	"\xe2\x80\x8f",
	"\xd8\x9c",
	"\xe2\x80\xa8",
	"\xe2\x80\xa9",
	"\xef\xbb\xbf",
	"\xe2\x80\x8b",
	"\xe2\x81\xa0",
	"\xf3\xa0\x80\xa1",
};

static uint64_t n_strings;

static uint64_t string(struct buf *records, const char *name)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_addf(&text, "Marked%s", name);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		buf_addf(&text, "%s%zu", refused[i], i);
	buf_addstr(&text, "\n");
	build_record_raw(records, RBPF_FILE_REC_STRING, text.data, text.len);
	return ++n_strings;
}

static void add_process(struct buf *records)
{
	uint64_t exe = string(records, "exe"), cmdline = string(records, "cmdline");
	uint64_t version = string(records, "version"), cgroup = string(records, "cgroup");
	uint64_t container = string(records, "container"), name = string(records, "thread");

	build_record(records, RBPF_FILE_REC_PROCESS, 42, 1, exe, cmdline, version, 0, cgroup,
		     container, 7, 1001);
	build_record(records, RBPF_FILE_REC_THREAD, 0, 42, name);
}

static void add_frames(struct buf *records)
{
	uint64_t path = string(records, "module"), id = string(records, "build-id");

	build_record(records, RBPF_FILE_REC_MODULE, path, id, 0);
	for (uint64_t kind = 0; kind < FRAME_KIND_COUNT; kind++) {
		uint64_t name = string(records, "name"), file = string(records, "file");

		build_record(records, RBPF_FILE_REC_FRAME, kind, name, file, 5,
			     kind == FRAME_NATIVE ? 1 : 0, 16, 4, 0);
		build_record(records, RBPF_FILE_REC_STACK, kind, kind);
	}
}

static void make_text(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	build_json(
		file, RBPF_CHUNK_META,
		"{\"rbpf_version\":\"\\u001b[31m\",\"command\":\"\\u009b31m \\u202e\","
		"\"hostname\":\"\\u001b]0;t\\u0007\",\"kernel\":\"\\u2028\",\"arch\":\"\\u0085\","
		"\"mode\":\"\\u200f\",\"frequency\":99,\"cpus\":2}");
	add_process(&records);
	add_frames(&records);
	for (uint64_t stack = 1; stack <= FRAME_KIND_COUNT; stack++)
		build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 2 * TICK, stack, TICK, 0,
			     stack == FRAME_GC + 1 ? SAMPLE_GC : SAMPLE_NATIVE);
	build_data(file, &records);
	build_json(file, RBPF_CHUNK_NOTE, "\"\x1b[31m\"");
}

/* ---- bombs ---- */

#define BOMB_CHUNKS 200
#define DEEP	    65535u
#define MANY	    100000u

/* One process with one thread, one frame, one stack. */
static void start_bomb(struct buf *file, struct buf *records)
{
	build_json(file, RBPF_CHUNK_META, "{}");
	build_record(records, RBPF_FILE_REC_PROCESS, 42, 1, 0, 0, 0, 0);
	build_record(records, RBPF_FILE_REC_THREAD, 0, 42, 0);
	build_record(records, RBPF_FILE_REC_FRAME, FRAME_RUBY, 0, 0, 5, 0, 0, 4, 0);
	build_record(records, RBPF_FILE_REC_STACK, 0, 0);
}

static void add_sample(struct buf *records, uint64_t thread, uint64_t stack)
{
	build_record(records, RBPF_FILE_REC_SAMPLE, thread, 2 * TICK, stack, TICK, 0, 0);
}

static void make_runs(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	start_bomb(file, &records);
	build_data(file, &records);
	for (int i = 0; i < BOMB_CHUNKS; i++) {
		buf_reset(&records);
		add_sample(&records, 0, 1);
		build_record(&records, RBPF_FILE_REC_RUN, RBPF_FILE_MAX_RUN);
		build_data(file, &records);
	}
}

/* A chunk of @records, compressed as well as zlib can. */
static void build_zlib(struct buf *file, const struct buf *records)
{
	uLongf len = compressBound(records->len);
	uint8_t *stored = malloc(len);

	if (!stored || compress2(stored, &len, (const Bytef *)records->data, records->len, 9))
		abort();
	build_chunk(file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, stored, len, records->len);
	free(stored);
}

static void make_inflate(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	start_bomb(file, &records);
	build_data(file, &records);
	buf_reset(&records);
	while (records.len < RBPF_FILE_MAX_CHUNK - 64)
		build_record(&records, RBPF_FILE_REC_SAMPLE, 0, 0, 1, 0, 0, 0);
	for (int i = 0; i < 5; i++)
		build_zlib(file, &records);
}

/* A stack as deep as can be, below which many others are. */
static void make_deep(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	start_bomb(file, &records);
	for (uint64_t i = 1; i < DEEP; i++)
		build_record(&records, RBPF_FILE_REC_STACK, i, 0);
	for (uint64_t i = 0; i < MANY; i++) {
		build_record(&records, RBPF_FILE_REC_FRAME, FRAME_RUBY, 0, 0, i, 0, 0, i, 0);
		build_record(&records, RBPF_FILE_REC_STACK, DEEP, 1 + i);
		add_sample(&records, 0, DEEP + 1 + i);
	}
	build_zlib(file, &records);
}

/* The same stack, in each of many threads. */
static void make_threads(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;

	start_bomb(file, &records);
	for (uint64_t i = 1; i < DEEP; i++)
		build_record(&records, RBPF_FILE_REC_STACK, i, 0);
	for (uint64_t i = 1; i < MANY; i++) {
		build_record(&records, RBPF_FILE_REC_PROCESS, i, 1, 0, 0, 0, 0);
		build_record(&records, RBPF_FILE_REC_THREAD, i, 42 + i, 0);
		add_sample(&records, i, DEEP);
	}
	build_zlib(file, &records);
}

/* Many frames with one name, which is as long as can be. */
static void make_names(struct buf *file)
{
	_cleanup_buf_ struct buf records = BUF_INIT;
	_cleanup_buf_ struct buf name = BUF_INIT;

	start_bomb(file, &records);
	buf_add_repeat(&name, '[', RBPF_FILE_MAX_STRING);
	build_record_raw(&records, RBPF_FILE_REC_STRING, name.data, name.len);
	for (uint64_t i = 1; i < MANY; i++) {
		build_record(&records, RBPF_FILE_REC_FRAME, FRAME_NATIVE, 1, 1, i, 0, i, i, 0);
		build_record(&records, RBPF_FILE_REC_STACK, 0, i);
		add_sample(&records, 0, 1 + i);
	}
	build_zlib(file, &records);
}

static const struct {
	const char *name;
	void (*make)(struct buf *file);
} kinds[] = {
	{ "text", make_text }, { "runs", make_runs },	    { "inflate", make_inflate },
	{ "deep", make_deep }, { "threads", make_threads }, { "names", make_names },
};

static int write_file(const char *path, const struct buf *file)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(file->data, 1, file->len, f) != file->len || fclose(f)) {
		perror(path);
		return 1;
	}
	return 0;
}

/* The first sequence of refused[] at @s, where a lone lead or continuation byte counts, too. */
static const char *find_refused(const char *s, size_t len)
{
	if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t' &&
	    !(*s == '\r' && len >= 2 && s[1] == '\n')) /* as CSV ends its lines */
		return "a C0 control";
	if (*s == 0x7f)
		return "DEL";
	if (len >= 2 && *s == '\xc2' && (unsigned char)s[1] < 0xa0)
		return "a C1 control";
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		size_t n = strlen(refused[i]);

		/* A C1 control as one byte is a part of other characters. */
		if ((unsigned char)refused[i][0] >= 0xc2 && n <= len && !memcmp(s, refused[i], n))
			return "a character that is not seen";
	}
	return NULL;
}

static int check(void)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (io_read_fd(0, INPUT_MAX, &text))
		return 1;
	for (size_t i = 0; i < text.len; i++) {
		const char *what = find_refused(text.data + i, text.len - i);

		if (!what)
			continue;
		printf("%s at byte %zu\n", what, i);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf file = BUF_INIT;

	if (argc == 2 && !strcmp(argv[1], "check"))
		return check();
	if (argc != 3)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		build_header(&file);
		kinds[i].make(&file);
		return buf_failed(&file) ? 1 : write_file(argv[2], &file);
	}
	return 2;
}
