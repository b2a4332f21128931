/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records are written in the order in which they were made (record_writer.h). Since a caller can
 * only name an id that an earlier call returned, definitions precede their uses by construction;
 * ids are checked all the same, for one wrong id would make a reader stop there.
 *
 * If memory runs out between interning a definition and writing its record, the two disagree: that
 * failure is kept like a failed write, while other shortages of memory are the caller's to survive.
 */
#include "profile/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "profile/defined.h"
#include "profile/live_threads.h"
#include "profile/meta.h"
#include "profile/reason.h"
#include "profile/record_encoder.h"
#include "profile/record_writer.h"
#include "profile/source_heat.h"

/* Spans are over soon, and do not come back: so many are known. One that does is defined again. */
#define SPANS_KEPT 65536

struct recorder {
	struct sink sink;
	struct record_writer out;

	struct definitions defs;
	uint32_t n_processes;
	uint32_t n_threads;
	struct live_threads threads;
	uint32_t *request_threads; /* by request % RECORDER_REQUESTS_KEPT: its thread; owned */
	size_t n_requests, cap_requests; /* n_requests: with 0, which is none */
	uint32_t n_events;
	bool has_events;  /* samples say of which event they are */
	struct buf clean; /* scratch: a sanitised string */
	bool has_heat;
	struct source_heat heat; /* of source files, by process */
	uint64_t source_bytes;	 /* of those that are kept, with their paths */
};

/* They are interned as bytes, so they must have no padding. */
_Static_assert(sizeof(struct profile_module) == 2 * sizeof(uint32_t), "no padding");
_Static_assert(sizeof(struct profile_frame) == 10 * sizeof(uint32_t) + sizeof(uint64_t),
	       "no padding");

static struct recorder *of(struct sink *sink)
{
	return (struct recorder *)sink;
}

/* The sticky failure, or 0. */
static int failed(const struct recorder *rec)
{
	return rec->out.chunks.err.code;
}

int recorder_flush(struct recorder *rec, bool force)
{
	return record_writer_flush(&rec->out, force);
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

static int add_string(struct sink *sink, const char *s, size_t len, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int r;

	if (failed(rec))
		return failed(rec);
	buf_reset(&rec->clean);
	utf8_sanitise(&rec->clean, s, len < RBPF_FILE_MAX_STRING ? len : RBPF_FILE_MAX_STRING);
	if (buf_failed(&rec->clean))
		return -ENOMEM;
	len = clip(&rec->clean, RBPF_FILE_MAX_STRING);
	if (!len) {
		*ret = 0;
		return 0;
	}
	r = defined_add(&rec->defs.strings, buf_str(&rec->clean), len, &id, &is_new);
	if (!r && is_new)
		r = record_write_string(&rec->out, buf_str(&rec->clean), len);
	if (!r)
		*ret = id;
	return r;
}

static bool string_ok(const struct recorder *rec, uint32_t id)
{
	return id < defined_end(&rec->defs.strings);
}

/* Parents come first, so that nobody who follows them can go round in circles. */
static bool process_def_ok(const struct recorder *rec, uint32_t self,
			   const struct profile_process *def)
{
	return string_ok(rec, def->exe) && string_ok(rec, def->cmdline) &&
	       string_ok(rec, def->ruby_version) && string_ok(rec, def->cgroup) &&
	       string_ok(rec, def->container) && string_ok(rec, def->attributes) &&
	       (def->parent == PROFILE_NONE || def->parent < self);
}

static int add_process(struct sink *sink, const struct profile_process *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	int err = 0;

	if (failed(rec))
		return failed(rec);
	if (!process_def_ok(rec, rec->n_processes, def))
		return -EINVAL;
	if (rec->n_processes >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	/* First, for once the record is written the id is taken. */
	if (rec->has_heat)
		err = source_heat_process(&rec->heat, rec->n_processes, def->pid, def->start_ticks);
	if (!err)
		err = record_write_process(&rec->out, def);
	if (err)
		return err;
	*ret = rec->n_processes++;
	return 0;
}

static int update_process(struct sink *sink, uint32_t process, const struct profile_process *def)
{
	struct recorder *rec = of(sink);

	if (failed(rec))
		return failed(rec);
	if (process >= rec->n_processes || !process_def_ok(rec, process, def))
		return -EINVAL;
	return record_write_process_update(&rec->out, process, def);
}

static int end_process(struct sink *sink, uint32_t process, uint64_t ts, int status)
{
	struct recorder *rec = of(sink);

	if (failed(rec))
		return failed(rec);
	if (process >= rec->n_processes || status < -1)
		return -EINVAL;
	return record_write_process_exit(&rec->out, process, ts, status);
}

static int add_thread(struct sink *sink, uint32_t process, uint32_t tid, uint32_t name,
		      uint32_t *ret)
{
	struct recorder *rec = of(sink);
	int err;

	if (failed(rec))
		return failed(rec);
	if (process >= rec->n_processes || !string_ok(rec, name))
		return -EINVAL;
	if (rec->n_threads >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	err = live_threads_add(&rec->threads, rec->n_threads, process);
	if (err)
		return err;
	err = record_write_thread(&rec->out, process, tid, name);
	if (err) {
		live_threads_remove(&rec->threads, rec->n_threads);
		return err;
	}
	*ret = rec->n_threads++;
	return 0;
}

static int name_thread(struct sink *sink, uint32_t thread, uint32_t name)
{
	struct recorder *rec = of(sink);

	if (failed(rec))
		return failed(rec);
	if (thread >= rec->n_threads || !string_ok(rec, name))
		return -EINVAL;
	return record_write_thread_name(&rec->out, thread, name);
}

static int set_thread_cpu(struct sink *sink, uint32_t thread, uint64_t cpu_ns)
{
	struct recorder *rec = of(sink);

	if (failed(rec))
		return failed(rec);
	if (thread >= rec->n_threads)
		return -EINVAL;
	return record_write_thread_cpu(&rec->out, thread, cpu_ns);
}

static int add_module(struct sink *sink, const struct profile_module *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int err;

	if (failed(rec))
		return failed(rec);
	if (!string_ok(rec, def->path) || !string_ok(rec, def->build_id))
		return -EINVAL;
	err = defined_add(&rec->defs.modules, def, sizeof(*def), &id, &is_new);
	if (!err && is_new)
		err = record_write_module(&rec->out, def);
	if (!err)
		*ret = id;
	return err;
}

static int add_frame(struct sink *sink, const struct profile_frame *def, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int err;

	if (failed(rec))
		return failed(rec);
	if (def->kind >= FRAME_KIND_COUNT || !string_ok(rec, def->name) ||
	    !string_ok(rec, def->file) ||
	    (def->module != PROFILE_NONE && def->module >= defined_end(&rec->defs.modules)) ||
	    !frame_reason_fits(def->reason, def->kind) || def->raw_name)
		return -EINVAL;
	err = defined_add(&rec->defs.frames, def, sizeof(*def), &id, &is_new);
	if (!err && is_new)
		err = record_write_frame(&rec->out, def);
	if (!err)
		*ret = id;
	return err;
}

static int add_stack(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int err;

	if (failed(rec))
		return failed(rec);
	if (frame >= defined_end(&rec->defs.frames))
		return -EINVAL;
	err = defined_stacks_add(&rec->defs.stacks, parent, frame, &id, &is_new);
	if (!err && is_new)
		err = record_write_stack(&rec->out, parent, frame);
	if (!err)
		*ret = id;
	return err;
}

static int add_request(struct sink *sink, uint32_t thread, const struct profile_request_kind *kind,
		       uint32_t *ret)
{
	struct recorder *rec = of(sink);
	const size_t n = rec->n_requests ? rec->n_requests : 1;
	int err;

	if (failed(rec))
		return failed(rec);
	if (thread >= rec->n_threads || !string_ok(rec, kind->framework) ||
	    !string_ok(rec, kind->name))
		return -EINVAL;
	if (n >= RBPF_FILE_MAX_IDS)
		return -E2BIG;
	if (n < RECORDER_REQUESTS_KEPT &&
	    array_reserve(rec->request_threads, rec->cap_requests, n + 1))
		return -ENOMEM;
	err = record_write_request(&rec->out, thread, kind);
	if (err)
		return err;
	rec->request_threads[n % RECORDER_REQUESTS_KEPT] = thread;
	rec->n_requests = n + 1;
	*ret = (uint32_t)n;
	return 0;
}

static int add_span(struct sink *sink, const struct profile_span *span, uint32_t *ret)
{
	struct recorder *rec = of(sink);
	uint32_t id;
	bool is_new;
	int err;

	if (failed(rec))
		return failed(rec);
	if (rec->defs.spans.known.count >= SPANS_KEPT)
		defined_forget(&rec->defs.spans);
	err = defined_add(&rec->defs.spans, span, sizeof(*span), &id, &is_new);
	if (!err && is_new)
		err = record_write_span(&rec->out, span);
	if (!err)
		*ret = id;
	return err;
}

/* ---- events ---- */

/* Say of which request and span the samples of @thread are from now on, if that has changed. */
static int switch_ids(struct recorder *rec, struct live_thread *thread, uint32_t request,
		      uint32_t span)
{
	int err = 0;

	if (thread->request != request) {
		thread->request = request;
		err = record_write_thread_request(&rec->out, thread->id, request);
	}
	if (!err && thread->span != span) {
		thread->span = span;
		err = record_write_thread_span(&rec->out, thread->id, span);
	}
	return err;
}

/* Whether @request is one of @thread, as far as that is remembered. */
static bool request_ok(const struct recorder *rec, const struct live_thread *thread,
		       uint32_t request)
{
	if (!request || request == thread->request)
		return true;
	return request < rec->n_requests && rec->n_requests - request <= RECORDER_REQUESTS_KEPT &&
	       rec->request_threads[request % RECORDER_REQUESTS_KEPT] == thread->id;
}

static int add_sample(struct sink *sink, const struct profile_sample *sample)
{
	struct recorder *rec = of(sink);
	struct live_thread *thread;
	int err;

	if (failed(rec))
		return failed(rec);
	thread = live_threads_find(&rec->threads, sample->thread);
	if (!thread || sample->stack >= defined_stacks_end(&rec->defs.stacks) ||
	    sample->event >= rec->n_events || sample->span >= defined_end(&rec->defs.spans) ||
	    !request_ok(rec, thread, sample->request))
		return -EINVAL;
	err = record_writer_sample(&rec->out, sample->ts);
	if (!err)
		err = switch_ids(rec, thread, sample->request, sample->span);
	if (!err && rec->has_heat)
		err = source_heat_sample(&rec->heat, &rec->defs, thread->process, sample->stack);
	return err ? err : record_write_sample(&rec->out, sample, rec->has_events);
}

static int add_lost(struct sink *sink, const struct profile_lost *lost)
{
	struct recorder *rec = of(sink);

	if (failed(rec))
		return failed(rec);
	if (lost->reason >= LOST_REASON_COUNT)
		return -EINVAL;
	return record_write_lost(&rec->out, lost);
}

int recorder_error(const struct recorder *rec, struct err *err)
{
	if (failed(rec) && err)
		*err = rec->out.chunks.err;
	return failed(rec);
}

int recorder_full(struct recorder *rec, struct err *err)
{
	chunk_writer_poll(&rec->out.chunks);
	if (rec->out.chunks.full.code && err)
		*err = rec->out.chunks.full;
	return rec->out.chunks.full.code;
}

uint64_t recorder_bytes(const struct recorder *rec)
{
	return rec->out.chunks.bytes;
}

/* ---- source files ---- */

struct source_heat *recorder_source_heat(struct recorder *rec)
{
	return rec->has_heat ? &rec->heat : NULL;
}

int recorder_source(struct recorder *rec, const char *path, const char *text, size_t len)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	size_t path_len = strlen(path);

	if (failed(rec))
		return failed(rec);
	if (len > RBPF_FILE_MAX_SOURCE || path_len > RBPF_FILE_MAX_SOURCE ||
	    rec->source_bytes + path_len + len > RBPF_FILE_MAX_SOURCES)
		return -E2BIG;
	if (!chunk_writer_has_room(&rec->out.chunks, path_len + len))
		return -ENOSPC;
	buf_add_varint(&payload, path_len);
	buf_add(&payload, path, path_len);
	buf_add(&payload, text, len);
	if (buf_failed(&payload))
		return chunk_writer_oom(&rec->out.chunks);
	rec->source_bytes += path_len + len;
	return chunk_writer_write(&rec->out.chunks, RBPF_CHUNK_SOURCE, &payload, false);
}

/* ---- the sink ---- */

static int flush(struct sink *sink)
{
	return recorder_flush(of(sink), false);
}

static bool forget_stacks_beyond(struct sink *sink, size_t keep)
{
	struct recorder *rec = of(sink);

	if (defined_stacks_count(&rec->defs.stacks) <= keep)
		return false;
	defined_stacks_forget(&rec->defs.stacks);
	source_heat_forget(&rec->heat);
	return true;
}

static void thread_gone(struct sink *sink, uint32_t thread)
{
	live_threads_remove(&of(sink)->threads, thread);
}

/* Its threads were told before, each for itself. */
static void process_gone(struct sink *sink, uint32_t process)
{
	struct recorder *rec = of(sink);

	if (rec->has_heat)
		source_heat_ended(&rec->heat, process);
}

static size_t definition_bytes(const struct sink *sink)
{
	return definitions_bytes(&((const struct recorder *)sink)->defs);
}

static void forget(struct sink *sink)
{
	struct recorder *rec = of(sink);

	definitions_forget(&rec->defs);
	source_heat_forget(&rec->heat);
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
	.request = add_request,
	.process_update = update_process,
	.process_exit = end_process,
	.thread_name = name_thread,
	.thread_cpu = set_thread_cpu,
	.sample = add_sample,
	.lost = add_lost,
	.span = add_span,
	.flush = flush,
	.thread_gone = thread_gone,
	.process_gone = process_gone,
	.bytes = definition_bytes,
	.forget = forget,
	.forget_stacks = forget_stacks_beyond,
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
	record_writer_deinit(&rec->out);
	free(rec->request_threads);
	live_threads_deinit(&rec->threads);
	buf_deinit(&rec->clean);
	definitions_deinit(&rec->defs);
	source_heat_deinit(&rec->heat);
	free(rec);
}

static int write_meta(struct recorder *rec, const struct profile_meta *meta)
{
	_cleanup_buf_ struct buf json = BUF_INIT;

	meta_encode(meta, &json);
	if (buf_failed(&json))
		return chunk_writer_oom(&rec->out.chunks);
	return chunk_writer_write(&rec->out.chunks, RBPF_CHUNK_META, &json, false);
}

static int write_totals(struct recorder *rec, const struct profile_totals *totals)
{
	_cleanup_buf_ struct buf json = BUF_INIT;

	totals_encode(totals, &json);
	if (buf_failed(&json))
		return chunk_writer_oom(&rec->out.chunks);
	return chunk_writer_write(&rec->out.chunks, RBPF_CHUNK_TOTALS, &json, false);
}

int recorder_open(const struct recorder_options *opts, const struct profile_meta *meta,
		  struct recorder **ret, struct err *err)
{
	const struct chunk_output out = {
		.path = opts->path,
		.memory = opts->memory,
		.force = opts->force,
		.sync = opts->sync,
		.max_bytes = opts->max_bytes,
	};
	struct recorder *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec || definitions_init(&rec->defs)) {
		free(rec);
		return err_oom(err);
	}
	rec->sink.ops = &recorder_ops;
	rec->has_heat = opts->sources;
	record_writer_init(&rec->out, meta->start_monotonic_ns);
	rec->n_events = meta->n_events ? meta->n_events : 1;
	rec->has_events = rec->n_events > 1 || (meta->n_events && !event_is_cpu(&meta->events[0]));
	r = chunk_writer_init(&rec->out.chunks, &out,
			      rec->has_events ? RBPF_FILE_MAJOR_EVENTS : RBPF_FILE_MAJOR_CPU,
			      meta->start_realtime_ns, meta->start_monotonic_ns);
	if (!r)
		r = write_meta(rec, meta);
	if (r) {
		recorder_error(rec, err);
		goto out;
	}
	r = recorder_full(rec, err);
	if (r) {
		err_context(err, "cannot record");
		goto out;
	}
	if (opts->behind) {
		r = chunk_writer_write_behind(&rec->out.chunks);
		recorder_error(rec, err);
	}
	if (!r)
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
	r = record_writer_flush(&rec->out, true);
	if (!r && totals)
		write_totals(rec, totals);
	r = chunk_writer_close(&rec->out.chunks, totals);
	recorder_error(rec, err);
	recorder_free(rec);
	return r;
}
