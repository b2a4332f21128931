/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records are appended to one buffer, in the order in which they were made. Since a caller can only
 * name an id that an earlier call returned, definitions precede their uses by construction; ids
 * are checked all the same, for one wrong id would make a reader stop there.
 *
 * The buffer becomes a chunk when it is large or old. The age is looked at where it is free: when a
 * sample's own time says so, and in recorder_flush(), which covers the quiet programs.
 *
 * If memory runs out between interning a definition and writing its record, the two disagree: that
 * failure is kept like a failed write, while other shortages of memory are the caller's to survive.
 */
#include "profile/recorder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "profile/chunk_writer.h"
#include "profile/meta.h"
#include "profile/reason.h"

/* What was defined since sink_forget(); ids go on from those before. */
struct dictionary {
	struct intern known;
	uint32_t first; /* id of the first in it */
};

struct recorder {
	struct sink sink;
	struct chunk_writer out;
	struct buf chunk;   /* records of the open chunk */
	uint64_t opened_ns; /* CLOCK_MONOTONIC when the chunk got its first record */
	uint64_t first_ts;  /* time of its first sample; valid if has_sample */
	bool has_sample;
	uint64_t base_ts; /* what the next time is relative to, see rbpf_file.h */

	struct dictionary strings; /* from 1: 0 is "" */
	struct dictionary modules;
	struct dictionary frames;
	struct dictionary stacks; /* struct profile_stack; from 1: 0 is the empty stack */
	uint32_t *depths;	  /* by stack id - stacks.first; owned */
	size_t cap_depths;
	uint32_t max_depth; /* of all stacks */
	uint32_t old_depth; /* … and of those forgotten, at most */
	uint32_t n_processes;
	uint32_t n_threads;
	uint32_t n_events;
	bool has_events;  /* samples say of which event they are */
	struct buf clean; /* scratch: a sanitised string */
};

_Static_assert(INTERN_MAX == RBPF_FILE_MAX_IDS, "interned ids are the ids of the file");
/* They are interned as bytes, so they must have no padding. */
_Static_assert(sizeof(struct profile_module) == 2 * sizeof(uint32_t), "no padding");
_Static_assert(sizeof(struct profile_frame) == 8 * sizeof(uint32_t) + sizeof(uint64_t),
	       "no padding");
_Static_assert(sizeof(struct profile_stack) == 2 * sizeof(uint32_t), "no padding");

static struct recorder *of(struct sink *sink)
{
	return (struct recorder *)sink;
}

/* ---- chunks ---- */

static int close_chunk(struct recorder *rec)
{
	int r;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (!rec->chunk.len)
		return 0;
	r = chunk_writer_write(&rec->out, RBPF_CHUNK_DATA, &rec->chunk);
	buf_reset(&rec->chunk);
	rec->has_sample = false;
	return r;
}

int recorder_flush(struct recorder *rec, bool force)
{
	if (rec->out.err.code)
		return rec->out.err.code;
	if (!rec->chunk.len)
		return 0;
	if (!force && clock_ns(CLOCK_MONOTONIC) - rec->opened_ns < RBPF_FILE_CHUNK_AGE_NS)
		return 0;
	return close_chunk(rec);
}

/* ---- records ---- */

#define MAX_FIELDS 11
#define MAX_VARINT 10

/* A record of numbers, built on the stack: its kind, its length in one byte, its fields. */
struct record {
	uint8_t bytes[2 + MAX_FIELDS * MAX_VARINT];
	size_t len;
};

_Static_assert(MAX_FIELDS *MAX_VARINT < 0x80, "the length of a record takes one byte");

static void put(struct record *r, uint64_t v)
{
	while (v >= 0x80) {
		r->bytes[r->len++] = (uint8_t)v | 0x80;
		v >>= 7;
	}
	r->bytes[r->len++] = (uint8_t)v;
}

/* "opt": 0 is none. */
static void put_opt(struct record *r, uint32_t v)
{
	put(r, v == PROFILE_NONE ? 0 : (uint64_t)v + 1);
}

static struct record record_begin(enum rbpf_file_record kind)
{
	return (struct record) { .bytes[0] = kind, .len = 2 };
}

static void put_time(struct recorder *rec, struct record *r, uint64_t ts)
{
	int64_t delta = (int64_t)(ts - rec->base_ts);

	put(r, ((uint64_t)delta << 1) ^ (delta < 0 ? UINT64_MAX : 0));
	rec->base_ts = ts;
}

/* After bytes were added to the chunk, which had @old_len bytes before. */
static int chunk_grew(struct recorder *rec, size_t old_len)
{
	if (buf_failed(&rec->chunk))
		return chunk_writer_oom(&rec->out);
	if (!old_len)
		rec->opened_ns = clock_ns(CLOCK_MONOTONIC);
	return rec->chunk.len >= RBPF_FILE_CHUNK_BYTES ? close_chunk(rec) : 0;
}

static int record_end(struct recorder *rec, struct record *r)
{
	size_t old_len = rec->chunk.len;

	r->bytes[1] = (uint8_t)(r->len - 2);
	buf_add(&rec->chunk, r->bytes, r->len);
	return chunk_grew(rec, old_len);
}

/* ---- definitions ---- */

/* The number of bytes, at most @max, that end at the end of a character of valid UTF-8 @s. */
static size_t clip(const struct buf *s, size_t max)
{
	size_t len = s->len < max ? s->len : max;

	while (len < s->len && len && ((uint8_t)s->data[len] & 0xc0) == 0x80)
		len--;
	return len;
}

static uint32_t dictionary_end(const struct dictionary *d)
{
	return d->first + (uint32_t)d->known.count;
}

/* The id of these bytes; *@is_new: it must be defined in the file. Returns 0, -ENOMEM or -E2BIG. */
static int dictionary_add(struct dictionary *d, const void *data, size_t len, uint32_t *ret,
			  bool *is_new)
{
	uint32_t id;
	int err;

	if (dictionary_end(d) >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	err = intern_add(&d->known, data, len, &id, is_new);
	if (!err)
		*ret = d->first + id;
	return err;
}

static void dictionary_forget(struct dictionary *d)
{
	d->first = dictionary_end(d);
	intern_deinit(&d->known);
}

/* The depth of @stack, or of one that was forgotten the most it can have. */
static uint32_t stack_depth(const struct recorder *rec, uint32_t stack)
{
	if (!stack)
		return 0;
	return stack < rec->stacks.first ? rec->old_depth : rec->depths[stack - rec->stacks.first];
}

static int emit_string(struct recorder *rec, const char *s, size_t len)
{
	size_t old_len = rec->chunk.len;

	buf_add_varint(&rec->chunk, RBPF_FILE_REC_STRING);
	buf_add_varint(&rec->chunk, len);
	buf_add(&rec->chunk, s, len);
	return chunk_grew(rec, old_len);
}

static int add_string(struct sink *sink, const char *s, size_t len, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int r;

	if (rec->out.err.code)
		return rec->out.err.code;
	buf_reset(&rec->clean);
	utf8_sanitise(&rec->clean, s, len < RBPF_FILE_MAX_STRING ? len : RBPF_FILE_MAX_STRING);
	if (buf_failed(&rec->clean))
		return -ENOMEM;
	len = clip(&rec->clean, RBPF_FILE_MAX_STRING);
	if (!len) {
		*ret = 0;
		return 0;
	}
	r = dictionary_add(&rec->strings, buf_str(&rec->clean), len, &id, &is_new);
	if (!r && is_new)
		r = emit_string(rec, buf_str(&rec->clean), len);
	if (!r)
		*ret = id;
	return r;
}

static bool string_ok(const struct recorder *rec, uint32_t id)
{
	return id < dictionary_end(&rec->strings);
}

/* Parents come first, so that nobody who follows them can go round in circles. */
static bool process_def_ok(const struct recorder *rec, uint32_t self,
			   const struct profile_process *def)
{
	return string_ok(rec, def->exe) && string_ok(rec, def->cmdline) &&
	       string_ok(rec, def->ruby_version) && string_ok(rec, def->cgroup) &&
	       string_ok(rec, def->container) &&
	       (def->parent == PROFILE_NONE || def->parent < self);
}

static void put_process(struct record *r, const struct profile_process *def)
{
	put(r, def->pid);
	put(r, def->start_ticks);
	put(r, def->exe);
	put(r, def->cmdline);
	put(r, def->ruby_version);
	put_opt(r, def->parent);
	put(r, def->cgroup);
	put(r, def->container);
	put(r, def->ns_pid);
	put_opt(r, def->uid);
}

static int add_process(struct sink *sink, const struct profile_process *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_PROCESS);
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (!process_def_ok(rec, rec->n_processes, def))
		return -EINVAL;
	if (rec->n_processes >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	put_process(&r, def);
	err = record_end(rec, &r);
	if (err)
		return err;
	*ret = rec->n_processes++;
	return 0;
}

static int update_process(struct sink *sink, uint32_t process, const struct profile_process *def)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_PROCESS_UPDATE);

	if (rec->out.err.code)
		return rec->out.err.code;
	if (process >= rec->n_processes || !process_def_ok(rec, process, def))
		return -EINVAL;
	put(&r, process);
	put_process(&r, def);
	return record_end(rec, &r);
}

static int end_process(struct sink *sink, uint32_t process, uint64_t ts, int status)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_PROCESS_EXIT);

	if (rec->out.err.code)
		return rec->out.err.code;
	if (process >= rec->n_processes || status < -1)
		return -EINVAL;
	put(&r, process);
	put_time(rec, &r, ts);
	put_opt(&r, status < 0 ? PROFILE_NONE : (uint32_t)status);
	return record_end(rec, &r);
}

static int add_thread(struct sink *sink, uint32_t process, uint32_t tid, uint32_t name,
		      uint32_t *ret)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_THREAD);
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (process >= rec->n_processes || !string_ok(rec, name))
		return -EINVAL;
	if (rec->n_threads >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	put(&r, process);
	put(&r, tid);
	put(&r, name);
	err = record_end(rec, &r);
	if (err)
		return err;
	*ret = rec->n_threads++;
	return 0;
}

static int name_thread(struct sink *sink, uint32_t thread, uint32_t name)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_THREAD_NAME);

	if (rec->out.err.code)
		return rec->out.err.code;
	if (thread >= rec->n_threads || !string_ok(rec, name))
		return -EINVAL;
	put(&r, thread);
	put(&r, name);
	return record_end(rec, &r);
}

static int set_thread_cpu(struct sink *sink, uint32_t thread, uint64_t cpu_ns)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_THREAD_CPU);

	if (rec->out.err.code)
		return rec->out.err.code;
	if (thread >= rec->n_threads)
		return -EINVAL;
	put(&r, thread);
	put(&r, cpu_ns);
	return record_end(rec, &r);
}

static int add_module(struct sink *sink, const struct profile_module *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_MODULE);
	uint32_t id;
	bool is_new;
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (!string_ok(rec, def->path) || !string_ok(rec, def->build_id))
		return -EINVAL;
	err = dictionary_add(&rec->modules, def, sizeof(*def), &id, &is_new);
	if (!err && is_new) {
		put(&r, def->path);
		put(&r, def->build_id);
		put(&r, 0); /* kind: none is defined yet */
		err = record_end(rec, &r);
	}
	if (!err)
		*ret = id;
	return err;
}

static int add_frame(struct sink *sink, const struct profile_frame *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_FRAME);
	uint32_t id;
	bool is_new;
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (def->kind >= FRAME_KIND_COUNT || !string_ok(rec, def->name) ||
	    !string_ok(rec, def->file) ||
	    (def->module != PROFILE_NONE && def->module >= dictionary_end(&rec->modules)) ||
	    !frame_reason_fits(def->reason, def->kind))
		return -EINVAL;
	err = dictionary_add(&rec->frames, def, sizeof(*def), &id, &is_new);
	if (!err && is_new) {
		put(&r, def->kind);
		put(&r, def->name);
		put(&r, def->file);
		put(&r, def->line);
		put_opt(&r, def->module);
		put(&r, def->address);
		put(&r, def->func_line);
		put(&r, def->flags);
		put(&r, def->reason);
		err = record_end(rec, &r);
	}
	if (!err)
		*ret = id;
	return err;
}

static int add_stack(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	const struct profile_stack def = { .parent = parent, .frame = frame };
	struct record r = record_begin(RBPF_FILE_REC_STACK);
	uint32_t id, depth;
	bool is_new;
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (parent >= dictionary_end(&rec->stacks) || frame >= dictionary_end(&rec->frames))
		return -EINVAL;
	depth = stack_depth(rec, parent);
	if (depth >= RBPF_FILE_MAX_DEPTH)
		return -E2BIG;
	/* First, for it must not fail once the stack is known. */
	if (array_reserve(rec->depths, rec->cap_depths, rec->stacks.known.count + 1))
		return -ENOMEM;
	err = dictionary_add(&rec->stacks, &def, sizeof(def), &id, &is_new);
	if (err)
		return err;
	if (is_new) {
		rec->depths[id - rec->stacks.first] = depth + 1;
		if (depth >= rec->max_depth)
			rec->max_depth = depth + 1;
		put(&r, parent);
		put(&r, frame);
		err = record_end(rec, &r);
	}
	if (!err)
		*ret = id;
	return err;
}

/* ---- events ---- */

static int add_sample(struct sink *sink, const struct profile_sample *sample)
{
	struct recorder *rec = of(sink);
	struct record r;
	int err;

	if (rec->out.err.code)
		return rec->out.err.code;
	if (sample->thread >= rec->n_threads || sample->stack >= dictionary_end(&rec->stacks) ||
	    sample->event >= rec->n_events)
		return -EINVAL;
	/* The free way to see that the chunk is a second old. */
	if (rec->has_sample && sample->ts > rec->first_ts &&
	    sample->ts - rec->first_ts >= RBPF_FILE_CHUNK_AGE_NS) {
		err = close_chunk(rec);
		if (err)
			return err;
	}
	if (!rec->has_sample) {
		rec->first_ts = sample->ts;
		rec->has_sample = true;
	}
	r.bytes[0] = RBPF_FILE_REC_SAMPLE;
	r.len = 2;
	put(&r, sample->thread);
	put_time(rec, &r, sample->ts);
	put(&r, sample->stack);
	put(&r, sample->value);
	put(&r, sample->cpu);
	put(&r, sample->flags);
	if (rec->has_events)
		put(&r, sample->event);
	return record_end(rec, &r);
}

static int add_lost(struct sink *sink, const struct profile_lost *lost)
{
	struct recorder *rec = of(sink);
	struct record r = record_begin(RBPF_FILE_REC_LOST);

	if (rec->out.err.code)
		return rec->out.err.code;
	if (lost->reason >= LOST_REASON_COUNT)
		return -EINVAL;
	put_time(rec, &r, lost->ts);
	put(&r, lost->reason);
	put(&r, lost->count);
	return record_end(rec, &r);
}

int recorder_error(const struct recorder *rec, struct err *err)
{
	if (rec->out.err.code && err)
		*err = rec->out.err;
	return rec->out.err.code;
}

uint64_t recorder_bytes(const struct recorder *rec)
{
	return rec->out.bytes;
}

/* ---- the sink ---- */

static int flush(struct sink *sink)
{
	return recorder_flush(of(sink), false);
}

static void forget(struct sink *sink)
{
	struct recorder *rec = of(sink);

	dictionary_forget(&rec->strings);
	dictionary_forget(&rec->modules);
	dictionary_forget(&rec->frames);
	dictionary_forget(&rec->stacks);
	free(rec->depths);
	rec->depths = NULL;
	rec->cap_depths = 0;
	rec->old_depth = rec->max_depth;
}

static int sticky_error(const struct sink *sink, struct err *err)
{
	return recorder_error((const struct recorder *)sink, err);
}

static const struct sink_ops recorder_ops = {
	.string = add_string,
	.process = add_process,
	.thread = add_thread,
	.module = add_module,
	.frame = add_frame,
	.stack = add_stack,
	.process_update = update_process,
	.process_exit = end_process,
	.thread_name = name_thread,
	.thread_cpu = set_thread_cpu,
	.sample = add_sample,
	.lost = add_lost,
	.flush = flush,
	.forget = forget,
	.error = sticky_error,
};

struct sink *recorder_sink(struct recorder *rec)
{
	return &rec->sink;
}

/* ---- life ---- */

static void recorder_free(struct recorder *rec)
{
	if (!rec)
		return;
	chunk_writer_deinit(&rec->out);
	free(rec->depths);
	buf_deinit(&rec->chunk);
	buf_deinit(&rec->clean);
	intern_deinit(&rec->strings.known);
	intern_deinit(&rec->modules.known);
	intern_deinit(&rec->frames.known);
	intern_deinit(&rec->stacks.known);
	free(rec);
}

static int write_meta(struct recorder *rec, const struct profile_meta *meta)
{
	_cleanup_buf_ struct buf json = BUF_INIT;

	meta_encode(meta, &json);
	if (buf_failed(&json))
		return chunk_writer_oom(&rec->out);
	return chunk_writer_write(&rec->out, RBPF_CHUNK_META, &json);
}

static int write_totals(struct recorder *rec, const struct profile_totals *totals)
{
	_cleanup_buf_ struct buf json = BUF_INIT;

	totals_encode(totals, &json);
	if (buf_failed(&json))
		return chunk_writer_oom(&rec->out);
	return chunk_writer_write(&rec->out, RBPF_CHUNK_TOTALS, &json);
}

int recorder_open(const struct recorder_options *opts, const struct profile_meta *meta,
		  struct recorder **ret, struct err *err)
{
	struct recorder *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return err_oom(err);
	rec->sink.ops = &recorder_ops;
	rec->out.fd = -1;
	rec->base_ts = meta->start_monotonic_ns;
	rec->strings.first = rec->stacks.first = 1;
	rec->n_events = meta->n_events ? meta->n_events : 1;
	rec->has_events = rec->n_events > 1 || (meta->n_events && !event_is_cpu(&meta->events[0]));
	r = chunk_writer_init(&rec->out, opts->path, opts->force, opts->sync,
			      rec->has_events ? RBPF_FILE_MAJOR_EVENTS : RBPF_FILE_MAJOR_CPU,
			      meta->start_realtime_ns, meta->start_monotonic_ns);
	if (!r)
		r = write_meta(rec, meta);
	if (r) {
		recorder_error(rec, err);
		goto out;
	}
	*ret = take_ptr(rec);
out:
	recorder_free(rec);
	return r;
}

int recorder_close(struct recorder *rec, const struct profile_totals *totals, struct err *err)
{
	int r;

	if (!rec)
		return 0;
	r = close_chunk(rec);
	if (!r && totals)
		write_totals(rec, totals);
	r = chunk_writer_close(&rec->out);
	recorder_error(rec, err);
	recorder_free(rec);
	return r;
}
