/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chunk by chunk, so that a recording need not fit into memory twice and may come from a pipe.
 *
 * Two kinds of trouble are kept apart. What prevents any use of the file (no recording, another
 * major version, no META) is an error. What comes after META and is wrong ends the reading: a
 * recorder that is killed leaves just that, and everything before is whole.
 *
 * No recorder leaves one that takes much more memory than the file has bytes. Such a file was made
 * to hurt, and is an error.
 */
#include "profile/reader.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/place.h"
#include "profile/chunk.h"
#include "profile/meta.h"
#include "profile/record_decoder.h"

/* ---- where the bytes come from ---- */

struct source {
	int fd;		    /* -1: memory; not owned */
	const uint8_t *mem; /* not owned */
	size_t mem_len;
	uint64_t pos; /* bytes read */
};

/*
 * Read @want bytes into @to, fewer only at the end. Returns 0 or -errno.
 */
static int source_read(struct source *src, void *to, size_t want, size_t *ret_len)
{
	size_t got = 0;

	if (src->fd < 0) {
		got = src->mem_len - (size_t)src->pos;
		if (got > want)
			got = want;
		if (got)
			memcpy(to, src->mem + src->pos, got);
	}
	while (src->fd >= 0 && got < want) {
		ssize_t n = read(src->fd, (char *)to + got, want - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	src->pos += got;
	*ret_len = got;
	return 0;
}

/* Go to the end; src->pos is then the length of it all. */
static int source_drain(struct source *src)
{
	char skipped[16384];
	size_t len;
	int r;

	do
		r = source_read(src, skipped, sizeof(skipped), &len);
	while (!r && len);
	return r;
}

/* ---- chunks ---- */

struct reader {
	struct source src;
	const char *name; /* for messages */
	struct read_options opts;
	uint16_t major; /* of the format */
	struct profile profile;
	struct record_decoder decoder;
	bool decoder_ready;
	uint64_t usable;			  /* bytes up to the end of the last good chunk */
	struct libdeflate_decompressor *inflater; /* owned; NULL until it is needed */
	uint8_t *stored;			  /* a payload as stored; owned */
	size_t cap_stored;
	uint8_t *raw; /* a payload decompressed; owned */
	size_t cap_raw;
	uint64_t raw_bytes; /* sum of the raw lengths of DATA chunks */
};

struct chunk {
	struct rbpf_chunk_header header;
	const uint8_t *stored; /* valid until the next chunk is read */
};

/*
 * Read the next chunk. Returns 0; -ENODATA at the end of the file, -EBADMSG if what comes is no
 * whole chunk, and other errors of reading.
 */
static int read_chunk(struct reader *rd, struct chunk *ret)
{
	uint8_t bytes[sizeof(struct rbpf_chunk_header)];
	struct rbpf_chunk_header h;
	size_t padded, len;
	int r;

	r = source_read(&rd->src, bytes, sizeof(bytes), &len);
	if (r)
		return r;
	if (len < sizeof(bytes))
		return len ? -EBADMSG : -ENODATA;
	r = chunk_header_unpack(bytes, &h);
	if (r)
		return r;
	padded = h.stored_len + chunk_padding(h.stored_len);
	if (array_reserve(rd->stored, rd->cap_stored, padded))
		return -ENOMEM;
	r = source_read(&rd->src, rd->stored, padded, &len);
	if (r)
		return r;
	if (len < padded || chunk_crc(rd->stored, h.stored_len) != h.payload_crc)
		return -EBADMSG;
	*ret = (struct chunk) { .header = h, .stored = rd->stored };
	return 0;
}

/*
 * The output is bounded by raw_len, which the header's limits bound: a zip bomb just fails. So does
 * a stream that is shorter or longer than the header says, at either end.
 */
static int inflate_chunk(struct reader *rd, const struct chunk *chunk)
{
	const struct rbpf_chunk_header *h = &chunk->header;
	size_t used;

	if (array_reserve(rd->raw, rd->cap_raw, h->raw_len + 1))
		return -ENOMEM;
	if (!rd->inflater)
		rd->inflater = libdeflate_alloc_decompressor();
	if (!rd->inflater)
		return -ENOMEM;
	if (libdeflate_zlib_decompress_ex(rd->inflater, chunk->stored, h->stored_len, rd->raw,
					  h->raw_len, &used, NULL) != LIBDEFLATE_SUCCESS)
		return -EBADMSG;
	return used == h->stored_len ? 0 : -EBADMSG;
}

/* The payload of a chunk, valid until the next one is read. */
static int chunk_payload(struct reader *rd, const struct chunk *chunk, const uint8_t **ret)
{
	int r;

	if (!(chunk->header.flags & RBPF_CHUNK_ZLIB)) {
		if (chunk->header.stored_len != chunk->header.raw_len)
			return -EBADMSG;
		*ret = chunk->stored;
		return 0;
	}
	r = inflate_chunk(rd, chunk);
	if (!r)
		*ret = rd->raw;
	return r;
}

static bool chunk_is_known(const struct rbpf_chunk_header *h)
{
	return h->type >= RBPF_CHUNK_META && h->type <= RBPF_CHUNK_NOTE &&
	       !(h->flags & ~(RBPF_CHUNK_ZLIB | RBPF_CHUNK_IGNORABLE));
}

/* Whether the DATA chunks so far, with one of @raw_len, expand in proportion to the file. */
static bool in_proportion(struct reader *rd, uint32_t raw_len)
{
	rd->raw_bytes += raw_len;
	return rd->raw_bytes <= RBPF_FILE_FREE_RAW + RBPF_FILE_MAX_RATIO * rd->src.pos;
}

static int use_data(struct reader *rd, const struct chunk *chunk)
{
	const uint8_t *payload;
	int r;

	if (!in_proportion(rd, chunk->header.raw_len))
		return -E2BIG;
	rd->decoder.text_max = RBPF_FILE_FREE_TEXT + RBPF_FILE_TEXT_RATIO * rd->src.pos;
	r = chunk_payload(rd, chunk, &payload);
	return r ? r : record_decoder_chunk(&rd->decoder, payload, chunk->header.raw_len);
}

/* Use a chunk after META. *@last is set by TOTALS. */
static int use_chunk(struct reader *rd, const struct chunk *chunk, bool *last)
{
	const struct rbpf_chunk_header *h = &chunk->header;
	const uint8_t *payload;
	int r;

	if (!chunk_is_known(h))
		return h->flags & RBPF_CHUNK_IGNORABLE ? 0 : -EBADMSG;
	if (h->type == RBPF_CHUNK_META)
		return -EBADMSG;
	if (h->type == RBPF_CHUNK_NOTE)
		return 0;
	if (h->type == RBPF_CHUNK_DATA)
		return use_data(rd, chunk);
	r = chunk_payload(rd, chunk, &payload);
	if (!r)
		r = totals_decode(payload, h->raw_len, &rd->profile.totals);
	if (!r)
		*last = true;
	return r;
}

/* ---- the start of a file ---- */

/* The first word or so of @data, fit to be shown: "<?xml", "\x7fELF". */
static void describe_start(const uint8_t *data, size_t len, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && i < 8 && n + sizeof("\\xff") < size; i++) {
		bool printable = data[i] < 0x80 && isprint(data[i]);

		if (n && isspace(data[i]))
			break;
		n += (size_t)snprintf(ret + n, size - n, printable ? "%c" : "\\x%02x", data[i]);
	}
	ret[n] = '\0';
}

static int refuse_start(const struct reader *rd, const uint8_t *data, size_t len, struct err *err)
{
	char start[40];

	if (!len)
		return err_set(err, -ENODATA, ERR_PROFILE, "%s is empty", rd->name);
	if (!memcmp(data, RBPF_FILE_MAGIC, len < RBPF_FILE_MAGIC_LEN ? len : RBPF_FILE_MAGIC_LEN))
		return err_set(err, -EBADMSG, ERR_PROFILE,
			       "%s is cut off within the first %zu bytes: nothing is usable",
			       rd->name, sizeof(struct rbpf_file_header));
	describe_start(data, len, start, sizeof(start));
	return err_set(err, -EINVAL, ERR_PROFILE, "%s is not an rbpf profile (starts with '%s')",
		       rd->name, start);
}

static int cannot_read(const char *name, int code, struct err *err)
{
	if (code == -ENOMEM)
		return err_oom(err);
	return err_set(err, code, ERR_PROFILE, "cannot read %s: %s", name, strerror(-code));
}

static int read_header(struct reader *rd, struct err *err)
{
	uint8_t bytes[RBPF_FILE_MAX_HEADER];
	struct rbpf_file_header h;
	size_t len;
	int r;

	r = source_read(&rd->src, bytes, sizeof(h), &len);
	if (r)
		return cannot_read(rd->name, r, err);
	if (len < sizeof(h))
		return refuse_start(rd, bytes, len, err);
	r = file_header_unpack(bytes, &h);
	if (r == -EINVAL)
		return refuse_start(rd, bytes, len, err);
	if (r == -EPROTONOSUPPORT) {
		err_set(err, r, ERR_PROFILE,
			"%s has format version %u.%u, this rbpf reads 1.x and 2.x", rd->name,
			h.major, h.minor);
		err_hint(err, "it takes the rbpf that recorded it, or a newer one");
		return r;
	}
	if (r)
		return err_set(err, r, ERR_PROFILE, "%s is damaged: wrong checksum of its header",
			       rd->name);
	/* What a newer minor version appended to the header. */
	r = source_read(&rd->src, bytes, h.header_len - sizeof(h), &len);
	if (r)
		return cannot_read(rd->name, r, err);
	rd->profile.meta.start_realtime_ns = h.start_realtime_ns;
	rd->profile.meta.start_monotonic_ns = h.start_monotonic_ns;
	rd->major = h.major;
	rd->usable = rd->src.pos;
	return 0;
}

static int read_meta(struct reader *rd, struct err *err)
{
	const uint8_t *payload;
	struct chunk chunk;
	int r;

	r = read_chunk(rd, &chunk);
	if (!r && (!chunk_is_known(&chunk.header) || chunk.header.type != RBPF_CHUNK_META))
		r = -EBADMSG;
	if (!r)
		r = chunk_payload(rd, &chunk, &payload);
	if (!r)
		r = meta_decode(payload, chunk.header.raw_len, &rd->profile.meta);
	if (r == -EBADMSG || r == -ENODATA)
		return err_set(err, -EBADMSG, ERR_PROFILE,
			       "%s is damaged or cut off at its start: nothing is usable",
			       rd->name);
	if (r)
		return cannot_read(rd->name, r, err);
	rd->usable = rd->src.pos;
	return 0;
}

/* ---- the whole ---- */

/* What TOTALS would have said of a recording that has none; the decoder counted the samples. */
static void compute_totals(struct profile *p, const struct record_decoder *d)
{
	struct profile_totals t = d->totals;
	bool cpu_known = p->n_threads > 0;

	t.end_monotonic_ns = d->last_ts;
	for (size_t i = 0; i < p->n_lost; i++)
		profile_add(&t.lost, p->lost[i].count);
	for (size_t i = 0; i < p->n_threads; i++) {
		profile_add(&t.cpu_kernel_ns, p->threads[i].cpu_ns);
		cpu_known &= p->threads[i].cpu_known;
	}
	if (!cpu_known)
		t.cpu_kernel_ns = 0;
	p->totals = t;
}

/* All chunks after META, as far as they are good. Returns 0, or an error of reading. */
static int read_chunks(struct reader *rd)
{
	struct chunk chunk;
	bool last = false;
	int r = 0;

	while (!r && !last) {
		r = read_chunk(rd, &chunk);
		if (!r)
			r = use_chunk(rd, &chunk, &last);
		if (!r)
			rd->usable = rd->src.pos;
	}
	rd->profile.complete = last;
	return r == -ENODATA || r == -EBADMSG ? 0 : r;
}

static int no_such_event(const struct reader *rd, struct err *err)
{
	const struct profile_meta *meta = &rd->profile.meta;
	_cleanup_buf_ struct buf names = BUF_INIT;

	for (uint32_t i = 0; i < meta->n_events; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", meta->events[i].name);
	err_set(err, -ENOENT, ERR_USAGE, "%s has no event '%s'", rd->name, rd->opts.event);
	err_hint(err, "its events: %s", buf_str(&names));
	return -ENOENT;
}

/* Find the event that is wanted. A recording that names none is of CPU time. */
static int select_event(struct reader *rd, struct err *err)
{
	struct profile_meta *meta = &rd->profile.meta;

	if (!meta->n_events) {
		meta->events[0] = *profile_event(&rd->profile);
		meta->events[0].period = meta->frequency ? NSEC_PER_SEC / meta->frequency : 0;
		meta->n_events = 1;
	}
	for (uint32_t i = 0; rd->opts.event; i++) {
		if (i == meta->n_events)
			return no_such_event(rd, err);
		rd->profile.event = i;
		if (!strcmp(meta->events[i].name, rd->opts.event))
			break;
	}
	return 0;
}

/* Tell the decoder which samples are wanted. */
static void select_samples(struct reader *rd)
{
	uint64_t start = rd->profile.meta.start_monotonic_ns;
	struct record_decoder *d = &rd->decoder;

	rd->profile.by_thread = rd->opts.by_thread;
	d->keep_samples = rd->opts.keep_samples;
	d->all_events = !rd->opts.event;
	d->event = rd->profile.event;
	d->n_events = rd->major == RBPF_FILE_MAJOR_CPU ? 0 : rd->profile.meta.n_events;
	for (uint32_t i = 0; i < rd->profile.meta.n_events; i++)
		d->is_cpu[i] = event_is_cpu(&rd->profile.meta.events[i]);
	/* The buffers between the kernel and the recorder may hold samples of just before the start. */
	if (rd->opts.from_ns && __builtin_add_overflow(start, rd->opts.from_ns, &d->from_ts))
		d->from_ts = UINT64_MAX;
	if (rd->opts.to_ns && __builtin_add_overflow(start, rd->opts.to_ns, &d->to_ts))
		d->to_ts = UINT64_MAX;
}

static int read_all(struct reader *rd, struct err *err)
{
	int r;

	r = read_header(rd, err);
	if (r)
		return r;
	r = read_meta(rd, err);
	if (!r)
		r = select_event(rd, err);
	if (r)
		return r;
	rd->decoder_ready = true;
	r = record_decoder_init(&rd->decoder, &rd->profile);
	select_samples(rd);
	if (!r)
		r = read_chunks(rd);
	if (!r)
		r = source_drain(&rd->src);
	if (r == -E2BIG)
		return err_set(err, r, ERR_PROFILE,
			       "%s is not a valid recording: it expands to far more than its size",
			       rd->name);
	if (r)
		return cannot_read(rd->name, r, err);
	rd->profile.file_bytes = rd->src.pos;
	if (!rd->profile.complete)
		compute_totals(&rd->profile, &rd->decoder);
	return 0;
}

static void reader_deinit(struct reader *rd)
{
	if (rd->decoder_ready)
		record_decoder_deinit(&rd->decoder);
	libdeflate_free_decompressor(rd->inflater);
	free(rd->stored);
	free(rd->raw);
	profile_deinit(&rd->profile);
}

static int read_source(const struct source *src, const char *name, const struct read_options *opts,
		       struct profile *ret, struct read_report *report, struct err *err)
{
	struct reader rd = { .src = *src, .name = name };
	int r;

	if (opts)
		rd.opts = *opts;
	r = read_all(&rd, err);
	if (!r) {
		*report = (struct read_report) {
			.complete = rd.profile.complete,
			.lost_bytes = rd.src.pos - rd.usable,
			.last_ts = rd.decoder.last_ts,
		};
		*ret = rd.profile;
		rd.profile = (struct profile)PROFILE_INIT; /* owned by *ret now */
	}
	reader_deinit(&rd);
	return r;
}

int profile_read_mem(const void *data, size_t len, const char *name,
		     const struct read_options *opts, struct profile *ret,
		     struct read_report *report, struct err *err)
{
	const struct source src = { .fd = -1, .mem = data, .mem_len = len };

	return read_source(&src, name, opts, ret, report, err);
}

/*
 * Open the recording @path. Not a FIFO, a device or a link that somebody may have left for us: to
 * open it may already do something. Returns the descriptor, or -errno; -EPERM fills @err.
 */
static int open_recording(const char *path, struct err *err)
{
	struct place at _cleanup_place_ = PLACE_INIT;
	_cleanup_close_ int found = -1;
	struct stat st;
	int r;

	r = place_init(AT_FDCWD, path, &at);
	if (!r)
		found = place_look(&at, &st);
	if (found == -ENOENT)
		return found;
	if (r || found < 0) /* a directory; what is wrong with the path */
		r = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && place_planted(&at, &st))
		return place_refuse("read", path, &st, err);
	else if (S_ISLNK(st.st_mode))
		r = openat(at.dir, at.name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	else
		return place_reopen(found, O_RDONLY);
	return r < 0 ? -errno : r;
}

int profile_read(const char *path, const struct read_options *opts, struct profile *ret,
		 struct read_report *report, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct source src = { .fd = STDIN_FILENO };
	struct stat st;
	int r;

	if (!strcmp(path, "-"))
		return read_source(&src, "standard input", opts, ret, report, err);
	fd = open_recording(path, err);
	if (fd < 0) {
		r = fd;
		if (r == -EPERM && err && err->code)
			return r;
		if (r != -ENOENT)
			return cannot_read(path, r, err);
		err_set(err, r, ERR_PROFILE, "there is no %s", path);
		err_hint(err, "'rbpf record' makes a recording");
		return r;
	}
	/* read() of a directory would fail too, but say less. */
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, ERR_PROFILE, "%s is a directory, not an rbpf profile",
			       path);
	src.fd = fd;
	return read_source(&src, path, opts, ret, report, err);
}
