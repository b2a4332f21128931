/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target: whatever the bytes, profile_read_mem() neither crashes nor returns an insane
 * profile.
 *
 * Checksums keep a fuzzer at the door, so the first byte of the input chooses how deep the rest
 * goes: as a whole file, or as a payload in a file whose framing is right. Its highest bit has
 * samples added up by thread.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/reader.h"
#include "support/file_builder.h"
#include "support/profile_check.h"

enum {
	INPUT_FILE,
	INPUT_RECORDS,
	INPUT_ZLIB,
	INPUT_META,
	INPUT_TOTALS,
	INPUT_EVENTS, /* records of a recording with two events */
	INPUT_KINDS,
};

#define BY_THREAD 0x80u

#define META_EVENTS                                                                                \
	"{\"events\":[{\"name\":\"cpu\",\"unit\":\"ns\"},{\"name\":\"alloc\",\"unit\":\"bytes\"}]" \
	"}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void build_start(struct buf *file)
{
	build_header(file);
	build_json(file, RBPF_CHUNK_META, "{}");
}

/* The end of the first short record that ends at @wanted or behind it. */
static size_t cut_at_record(const uint8_t *data, size_t size, size_t wanted)
{
	size_t cut = 0;

	while (cut < wanted && cut + 2 <= size && data[cut + 1] < 0x80)
		cut += 2 + (size_t)data[cut + 1];
	return cut < size ? cut : size;
}

/*
 * The records cut in two chunks, so that what a chunk keeps of the one before is tried too. The
 * last byte says where.
 */
static void build_records(struct buf *file, const uint8_t *data, size_t size)
{
	size_t cut = 0;

	if (size) {
		size--;
		cut = cut_at_record(data, size, data[size] * size / 256);
	}
	build_chunk(file, RBPF_CHUNK_DATA, 0, data, cut, cut);
	build_chunk(file, RBPF_CHUNK_DATA, 0, data + cut, size - cut, size - cut);
}

static void build_file(struct buf *file, unsigned int kind, const uint8_t *data, size_t size)
{
	switch (kind) {
	case INPUT_FILE:
		buf_add(file, data, size);
		break;
	case INPUT_RECORDS:
		build_start(file);
		build_records(file, data, size);
		break;
	case INPUT_EVENTS:
		build_header_of(file, RBPF_FILE_MAJOR_EVENTS);
		build_json(file, RBPF_CHUNK_META, META_EVENTS);
		build_records(file, data, size);
		break;
	case INPUT_ZLIB:
		build_start(file);
		build_chunk(file, RBPF_CHUNK_DATA, RBPF_CHUNK_ZLIB, data, size,
			    size ? data[0] * 64u : 0);
		break;
	case INPUT_META:
		build_header(file);
		build_chunk(file, RBPF_CHUNK_META, 0, data, size, size);
		break;
	case INPUT_TOTALS:
		build_start(file);
		build_chunk(file, RBPF_CHUNK_TOTALS, 0, data, size, size);
		break;
	}
}

static void check(const struct buf *file, bool by_thread)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };
	const struct read_options opts = { .keep_samples = true,
					   .by_thread = by_thread,
					   .sources = true };
	uint64_t first, last;
	const char *problem;

	if (profile_read_mem(file->data, file->len, "fuzz", &opts, &p, &report, &err)) {
		problem = err.code && err.msg[0] ? NULL : "an error without words";
	} else {
		problem = check_profile(&p);
		profile_time_range(&p, &first, &last);
		/* A sample takes 8 bytes; the zlib chunk of build_file() has up to 16 kB. */
		if (p.n_samples > RBPF_FILE_MAX_RUN + (file->len + 16384) / 8)
			problem = "samples out of proportion";
		if (p.complete != report.complete || report.lost_bytes > file->len)
			problem = "an absurd report";
	}
	if (problem) {
		fprintf(stderr, "%s\n", problem);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf file = BUF_INIT;

	if (!size)
		return 0;
	build_file(&file, (data[0] & ~BY_THREAD) % INPUT_KINDS, data + 1, size - 1);
	check(&file, data[0] & BY_THREAD);
	return 0;
}
