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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/aggregate.h"
#include "profile/chunk.h"
#include "profile/chunk_reader.h"
#include "profile/input.h"
#include "profile/meta.h"
#include "profile/record_decoder.h"
#include "profile/record_samples.h"
#include "profile/wait_cause.h"

/* ---- chunks ---- */

struct reader {
	struct chunk_reader chunks;
	const char *name; /* for messages */
	struct read_options opts;
	uint32_t n_events; /* of the recording itself */
	uint16_t major;	   /* of the format */
	struct profile profile;
	struct record_decoder decoder;
	bool decoder_ready;
	uint64_t usable;    /* bytes up to the end of the last good chunk */
	uint64_t raw_bytes; /* sum of the raw lengths of DATA chunks */
};

/* Whether the DATA chunks so far, with this one, expand in proportion to the file. */
static bool in_proportion(struct reader *rd, const struct chunk *chunk)
{
	rd->raw_bytes += chunk->header.raw_len;
	return rd->raw_bytes <= RBPF_FILE_FREE_RAW + RBPF_FILE_MAX_RATIO * chunk->end;
}

static int use_data(struct reader *rd, const struct chunk *chunk)
{
	if (!in_proportion(rd, chunk))
		return -E2BIG;
	if (chunk->payload_code)
		return chunk->payload_code;
	rd->decoder.text_max = RBPF_FILE_FREE_TEXT + RBPF_FILE_TEXT_RATIO * chunk->end;
	return record_decoder_chunk(&rd->decoder, chunk->payload, chunk->header.raw_len);
}

/*
 * A chunk of a source file that is damaged costs that file only. What a writer would not have
 * written is left out, too.
 */
static int use_source(struct reader *rd, const struct chunk *chunk)
{
	struct profile *p = &rd->profile;
	int r = chunk->payload_code;

	if (!in_proportion(rd, chunk))
		return -E2BIG;
	if (!rd->opts.sources || r)
		return r == -ENOMEM ? r : 0;
	r = kept_sources_decode(&p->sources, chunk->payload, chunk->header.raw_len);
	return r == -ENOMEM ? r : 0;
}

/* Use a chunk after META. *@last is set by TOTALS. */
static int use_chunk(struct reader *rd, const struct chunk *chunk, bool *last)
{
	const struct rbpf_chunk_header *h = &chunk->header;
	int r;

	if (!chunk->known)
		return h->flags & RBPF_CHUNK_IGNORABLE ? 0 : -EBADMSG;
	if (h->type == RBPF_CHUNK_META)
		return -EBADMSG;
	if (h->type == RBPF_CHUNK_NOTE)
		return 0;
	if (h->type == RBPF_CHUNK_SOURCE)
		return use_source(rd, chunk);
	if (h->type == RBPF_CHUNK_DATA)
		return use_data(rd, chunk);
	r = chunk->payload_code;
	if (!r)
		r = totals_decode(chunk->payload, h->raw_len, &rd->profile.totals);
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

static int read_header(struct reader *rd, struct err *err)
{
	uint8_t bytes[RBPF_FILE_MAX_HEADER];
	struct rbpf_file_header h;
	size_t len;
	int r;

	r = chunk_reader_bytes(&rd->chunks, bytes, sizeof(h), &len);
	if (r)
		return input_cannot_read(rd->name, r, err);
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
	r = chunk_reader_bytes(&rd->chunks, bytes, h.header_len - sizeof(h), &len);
	if (r)
		return input_cannot_read(rd->name, r, err);
	rd->profile.meta.start_realtime_ns = h.start_realtime_ns;
	rd->profile.meta.start_monotonic_ns = h.start_monotonic_ns;
	rd->major = h.major;
	return 0;
}

static int read_meta(struct reader *rd, struct err *err)
{
	const struct chunk *chunk;
	int r;

	r = chunk_reader_next(&rd->chunks, &chunk);
	if (!r && (!chunk->known || chunk->header.type != RBPF_CHUNK_META))
		r = -EBADMSG;
	if (!r)
		r = chunk->payload_code;
	if (!r)
		r = meta_decode(chunk->payload, chunk->header.raw_len, &rd->profile.meta);
	if (r == -EBADMSG || r == -ENODATA)
		return err_set(err, -EBADMSG, ERR_PROFILE,
			       "%s is damaged or cut off at its start: nothing is usable",
			       rd->name);
	if (r)
		return input_cannot_read(rd->name, r, err);
	rd->usable = chunk->end;
	return 0;
}

void read_options_find_times(struct read_options *opts, uint64_t start_realtime_ns)
{
	if (opts->from.given)
		opts->from_ns = wall_time_since(&opts->from, start_realtime_ns);
	if (opts->to.given)
		opts->to_ns = wall_time_since(&opts->to, start_realtime_ns);
	/* Up to before the start is nothing, and not all. */
	if (opts->to.given && !opts->to_ns)
		opts->to_ns = 1;
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
	const struct chunk *chunk;
	bool last = false;
	int r = 0;

	chunk_reader_start(&rd->chunks);
	while (!r && !last) {
		r = chunk_reader_next(&rd->chunks, &chunk);
		if (!r)
			r = use_chunk(rd, chunk, &last);
		if (!r)
			rd->usable = chunk->end;
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
	if (!strcmp(rd->opts.event, EVENT_WALL) || !strcmp(rd->opts.event, EVENT_WAIT) ||
	    !strcmp(rd->opts.event, EVENT_CAUSED))
		err_hint(err, "'rbpf record --mode states' records waits, too");
	else if (!strcmp(rd->opts.event, EVENT_WAKEUP))
		err_hint(err, "'rbpf record --mode states --waker' records who ends waits, too");
	else
		err_hint(err, "its events: %s", buf_str(&names));
	return -ENOENT;
}

/* Of which events @sum is the sum: 1 << i for each, 0 if it is none. */
static uint32_t parts_of(const struct profile_meta *meta, const char *sum)
{
	uint32_t cpu = 0, waits = 0, caused = 0;

	for (uint32_t i = 0; i < meta->n_events; i++) {
		const struct profile_event *event = &meta->events[i];

		if (event_is_cpu(event))
			cpu |= 1u << i;
		else if (!strcmp(event->name, EVENT_WAIT))
			waits |= 1u << i;
		else if (!strcmp(event->name, EVENT_GVL) || !strcmp(event->name, EVENT_LOCK))
			caused |= 1u << i;
	}
	if (!strcmp(sum, EVENT_CAUSED))
		return caused;
	return !strcmp(sum, EVENT_WALL) && cpu && waits ? cpu | waits : 0;
}

/*
 * Whether the recording has what @sum adds up, and room for that: it is an event beside those of
 * the recording, which the decoder says its parts are of.
 */
static bool has_sum(const struct profile_meta *meta, const char *sum)
{
	return parts_of(meta, sum) && meta->n_events < PROFILE_MAX_EVENTS;
}

static void add_sum(struct profile_meta *meta, const char *sum)
{
	struct profile_event *event = &meta->events[meta->n_events];

	if (!has_sum(meta, sum))
		return;
	*event = (struct profile_event) {
		.unit = UNIT_NS, .period = strcmp(sum, EVENT_CAUSED) ? meta->events[0].period : 0
	};
	snprintf(event->name, sizeof(event->name), "%s", sum);
	meta->n_events++;
}

/* Whether all time is shown, if no event is asked for. */
static bool is_of_all_time(const struct reader *rd)
{
	const char *mode = rd->profile.meta.mode;

	return rd->opts.wall || (mode && !strcmp(mode, META_MODE_WALL));
}

/* Find the event that is selected. A recording that names none is of CPU time. */
static int select_event(struct reader *rd, struct err *err)
{
	struct profile_meta *meta = &rd->profile.meta;

	if (!rd->opts.event && !rd->opts.by_event && !rd->opts.take_all && is_of_all_time(rd) &&
	    has_sum(meta, EVENT_WALL))
		rd->opts.event = EVENT_WALL;
	if (!meta->n_events) {
		meta->events[0] = *profile_event(&rd->profile);
		meta->events[0].period = meta->frequency ? NSEC_PER_SEC / meta->frequency : 0;
		meta->n_events = 1;
	}
	rd->n_events = meta->n_events;
	if (rd->opts.event)
		add_sum(meta, rd->opts.event);
	for (uint32_t i = 0; rd->opts.event; i++) {
		if (i == meta->n_events)
			return no_such_event(rd, err);
		rd->profile.event = i;
		if (!strcmp(meta->events[i].name, rd->opts.event))
			break;
	}
	return 0;
}

/* When in the recording @opts' times are. */
static int find_times(struct reader *rd, struct err *err)
{
	uint64_t start = rd->profile.meta.start_realtime_ns;
	bool by_clock = rd->opts.from.given || rd->opts.to.given;

	for (size_t i = 0; i < rd->opts.n_cuts; i++)
		by_clock |= rd->opts.cuts[i].clock.given;
	if (by_clock && !start)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "%s does not say at what time it was made: --from, --to and "
			       "--filter need times since its start, such as 12s",
			       rd->name);
	read_options_find_times(&rd->opts, start);
	return 0;
}

static void find_cuts(const struct read_options *opts, struct profile *p)
{
	for (size_t i = 0; i < opts->n_cuts; i++) {
		const struct time_cut *cut = &opts->cuts[i];
		uint64_t at = cut->clock.given
				      ? wall_time_since(&cut->clock, p->meta.start_realtime_ns)
				      : cut->since_start_ns;

		p->cuts[i] = p->meta.start_monotonic_ns;
		profile_add(&p->cuts[i], at);
		profile_add(&p->cuts[i], cut->after);
		/* As with from_ns: what is from just before the start is from the start on. */
		if (!at)
			p->cuts[i] = 0;
	}
	p->n_cuts = opts->n_cuts;
}

static int find_span_marks(const struct read_options *opts, struct profile *p)
{
	if (!opts->n_span_marks)
		return 0;
	memcpy(p->span_marks, opts->span_marks, opts->n_span_marks * sizeof(*p->span_marks));
	p->n_span_marks = opts->n_span_marks;
	return profile_mark_span(p, 0, 0);
}

/* Whether samples of waits are selected, and each is of one wait. */
static bool tells_lengths(const struct reader *rd)
{
	const struct record_decoder *d = &rd->decoder;

	if (rd->opts.take || rd->opts.n_cuts || rd->profile.meta.by_second)
		return false;
	for (uint32_t i = 0; i < rd->n_events; i++)
		if (d->is_wait[i] && (i == d->event || d->in_sum[i]))
			return true;
	return false;
}

/* Tell the decoder which samples are selected. */
static void select_samples(struct reader *rd)
{
	uint64_t start = rd->profile.meta.start_monotonic_ns;
	struct record_decoder *d = &rd->decoder;
	uint32_t parts = 0;

	rd->profile.by_thread = rd->opts.by_thread;
	rd->profile.by_process = rd->opts.by_process && !rd->opts.by_thread;
	rd->profile.by_request = rd->opts.by_request;
	rd->profile.by_span = rd->opts.by_span && rd->opts.spans;
	rd->profile.slow_ns = rd->opts.by_request ? rd->opts.slow_ns : 0;
	find_cuts(&rd->opts, &rd->profile);
	rd->profile.by_event = rd->opts.by_event && !rd->opts.event;
	d->of_wakeups = !strcmp(profile_event(&rd->profile)->name, EVENT_WAKEUP);
	/* A wakeup alone does not tell which wait it ended, as a second reading needs it. */
	d->keep_samples = rd->opts.keep_samples || (d->of_wakeups && wait_set_any(&rd->opts.ended));
	d->keep_spans = rd->opts.spans;
	d->find_spans = rd->opts.spans || rd->opts.n_span_marks;
	d->all_events = !rd->opts.event;
	d->take = rd->opts.take;
	d->take_wait = rd->opts.take_wait;
	d->take_arg = rd->opts.take_arg;
	d->take_all = rd->opts.take_all && d->all_events;
	d->event = rd->profile.event;
	if (d->of_wakeups)
		d->wakeups.reasons = rd->opts.ended;
	d->in_ns = profile_event(&rd->profile)->unit == UNIT_NS;
	d->n_events = rd->major == RBPF_FILE_MAJOR_CPU ? 0 : rd->n_events;
	if (d->event >= rd->n_events)
		parts = parts_of(&rd->profile.meta, rd->opts.event);
	for (uint32_t i = 0; i < rd->n_events; i++) {
		const struct profile_event *event = &rd->profile.meta.events[i];

		d->is_cpu[i] = event_is_cpu(event);
		d->in_sum[i] = parts >> i & 1;
		d->is_wait[i] = !strcmp(event->name, EVENT_WAIT);
		d->is_caused[i] = rd->opts.gvl_caused && rd->opts.by_request &&
				  d->event >= rd->n_events && !strcmp(event->name, EVENT_GVL);
		d->keep_samples |= d->is_caused[i];
	}
	rd->profile.with_lengths = rd->opts.lengths && tells_lengths(rd);
	rd->profile.whole_waits = rd->profile.with_lengths && rd->opts.whole_waits;
	d->keep_waits = rd->profile.whole_waits && rd->opts.keep_waits;
	/*
	 * The buffers between the kernel and the recorder may hold samples of just before the
	 * start.
	 */
	if (rd->opts.from_ns && __builtin_add_overflow(start, rd->opts.from_ns, &d->from_ts))
		d->from_ts = UINT64_MAX;
	if (rd->opts.to_ns && __builtin_add_overflow(start, rd->opts.to_ns, &d->to_ts))
		d->to_ts = UINT64_MAX;
}

/* There are no more samples. One that is too many ends nothing: there is nothing behind it. */
static int end_samples(struct reader *rd)
{
	const int r = record_samples_end(&rd->decoder);

	return r == -EBADMSG ? 0 : r;
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
	if (!r)
		r = find_times(rd, err);
	if (r)
		return r;
	rd->decoder_ready = true;
	r = record_decoder_init(&rd->decoder, &rd->profile);
	select_samples(rd);
	if (!r)
		r = find_span_marks(&rd->opts, &rd->profile);
	if (!r)
		r = read_chunks(rd);
	if (!r)
		r = end_samples(rd);
	if (!r)
		r = wait_causes(&rd->profile, rd->opts.idle);
	if (!r && wait_set_any(&rd->decoder.wakeups.reasons))
		r = record_samples_add_wakeups(&rd->decoder);
	if (!r)
		r = chunk_reader_drain(&rd->chunks, &rd->profile.file_bytes);
	if (r == -E2BIG)
		return err_set(err, r, ERR_PROFILE,
			       "%s is not a valid recording: it expands to far more than its size",
			       rd->name);
	if (r)
		return input_cannot_read(rd->name, r, err);
	if (!rd->profile.complete)
		compute_totals(&rd->profile, &rd->decoder);
	rd->profile.totals.not_recorded = rd->decoder.totals.not_recorded;
	/* By the end of the recording, too, which is one of the totals. */
	aggregate_tell_slow(&rd->profile);
	return 0;
}

static void reader_deinit(struct reader *rd)
{
	if (rd->decoder_ready)
		record_decoder_deinit(&rd->decoder);
	chunk_reader_deinit(&rd->chunks);
	profile_deinit(&rd->profile);
}

/* Standard input is where its offset is, also if it is a file. */
static bool can_read_again(const struct source *src)
{
	struct stat st;

	return src->fd > STDIN_FILENO && !fstat(src->fd, &st) && S_ISREG(st.st_mode);
}

static int read_source(const struct source *src, const char *name, const struct read_options *opts,
		       struct profile *ret, struct read_report *report, struct err *err)
{
	struct reader rd = { .name = name };
	int r;

	if (opts)
		rd.opts = *opts;
	if (!can_read_again(src)) {
		rd.opts.keep_samples |= rd.opts.read_again;
		rd.opts.keep_waits |= rd.opts.whole_waits;
	}
	chunk_reader_init(&rd.chunks, src);
	r = read_all(&rd, err);
	if (!r) {
		*report = (struct read_report) {
			.complete = rd.profile.complete,
			.lost_bytes = rd.profile.file_bytes - rd.usable,
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

int profile_read(const char *path, const struct read_options *opts, struct profile *ret,
		 struct read_report *report, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct source src = { .fd = STDIN_FILENO };
	int r;

	if (!strcmp(path, "-"))
		return read_source(&src, "standard input", opts, ret, report, err);
	r = input_open(path, &fd, err);
	if (r)
		return r;
	src.fd = fd;
	return read_source(&src, path, opts, ret, report, err);
}
