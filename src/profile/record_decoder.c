/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/record_decoder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "profile/cursor.h"
#include "profile/frame_label.h"
#include "profile/reason.h"
#include "profile/record_samples.h"
#include "profile/reserve.h"
#include "profile/sample_flags.h"
#include "rbpf_file.h"

static uint32_t get_str(const struct record_decoder *d, struct cursor *c)
{
	uint32_t id = get_id(c, d->n_strings);

	return c->bad ? 0 : d->strings[id];
}

/* A time; it becomes the base of the next one. */
static uint64_t get_time(struct record_decoder *d, struct cursor *c)
{
	uint64_t ts = d->base_ts + (uint64_t)get_zigzag(c);

	if (c->bad)
		return 0;
	d->base_ts = ts;
	if (ts > d->last_ts)
		d->last_ts = ts;
	return ts;
}

/* A file with more of something than it may have is damaged, as one with a wrong id is. */
static int too_many(int r)
{
	return r == -E2BIG ? -EBADMSG : r;
}

static int decode_string(struct record_decoder *d, struct cursor *c)
{
	size_t len = (size_t)(c->end - c->p);
	uint32_t id;
	int r;

	if (len > RBPF_FILE_MAX_STRING)
		return -EBADMSG;
	buf_reset(&d->clean);
	utf8_sanitise(&d->clean, (const char *)c->p, len);
	if (buf_failed(&d->clean))
		return -ENOMEM;
	r = too_many(RESERVE_ONE(d->strings, d->n_strings, d->cap_strings));
	if (r)
		return r;
	r = too_many(intern_add(&d->profile->strings, buf_str(&d->clean), d->clean.len, &id, NULL));
	if (r)
		return r;
	d->strings[d->n_strings++] = id;
	return 0;
}

/* The fields of PROCESS; its parent must be below @self. */
static void get_process(const struct record_decoder *d, struct cursor *c, uint32_t self,
			struct profile_process *ret)
{
	ret->pid = get_u32(c);
	ret->start_ticks = get(c);
	ret->exe = get_str(d, c);
	ret->cmdline = get_str(d, c);
	ret->ruby_version = get_str(d, c);
	ret->parent = get_opt_id(c, self);
	/* Since 1.2, and an update replaces all. */
	ret->cgroup = at_end(c) ? 0 : get_str(d, c);
	ret->container = at_end(c) ? 0 : get_str(d, c);
	ret->ns_pid = at_end(c) ? 0 : get_u32(c);
	ret->uid = at_end(c) ? PROFILE_NONE : get_opt_id(c, PROFILE_NONE);
	/* Since 1.9 and 2.2. */
	ret->attributes = at_end(c) ? 0 : get_str(d, c);
}

static int decode_process(struct record_decoder *d, struct cursor *c)
{
	struct profile_process process = { .exit_status = -1 };
	struct profile *p = d->profile;
	int r;

	get_process(d, c, (uint32_t)p->n_processes, &process);
	if (c->bad)
		return -EBADMSG;
	r = too_many(RESERVE_ONE(p->processes, p->n_processes, p->cap_processes));
	if (!r)
		p->processes[p->n_processes++] = process;
	return r;
}

static int decode_process_update(struct record_decoder *d, struct cursor *c)
{
	struct profile *p = d->profile;
	uint32_t id = get_id(c, p->n_processes);
	struct profile_process process;

	if (c->bad)
		return -EBADMSG;
	process = p->processes[id];
	get_process(d, c, id, &process);
	if (c->bad)
		return -EBADMSG;
	p->processes[id] = process;
	return 0;
}

static int decode_process_exit(struct record_decoder *d, struct cursor *c)
{
	struct profile *p = d->profile;
	uint32_t id = get_id(c, p->n_processes);
	uint64_t ts = get_time(d, c);
	uint64_t status = get_below(c, (uint64_t)INT_MAX + 2);

	if (c->bad)
		return -EBADMSG;
	p->processes[id].exited = true;
	p->processes[id].exit_status = status ? (int)(status - 1) : -1;
	p->processes[id].exit_ts = ts;
	return 0;
}

static int decode_thread(struct record_decoder *d, struct cursor *c)
{
	struct profile_thread thread = { 0 };
	struct profile *p = d->profile;
	int r;

	thread.process = get_id(c, p->n_processes);
	thread.tid = get_u32(c);
	thread.name = get_str(d, c);
	if (c->bad)
		return -EBADMSG;
	r = too_many(RESERVE_ONE(p->threads, p->n_threads, p->cap_threads));
	if (!r)
		p->threads[p->n_threads++] = thread;
	return r;
}

static int decode_thread_name(struct record_decoder *d, struct cursor *c)
{
	uint32_t id = get_id(c, d->profile->n_threads);
	uint32_t name = get_str(d, c);

	if (c->bad)
		return -EBADMSG;
	d->profile->threads[id].name = name;
	return 0;
}

static int decode_thread_cpu(struct record_decoder *d, struct cursor *c)
{
	uint32_t id = get_id(c, d->profile->n_threads);
	uint64_t cpu_ns = get(c);

	if (c->bad)
		return -EBADMSG;
	d->profile->threads[id].cpu_ns = cpu_ns;
	d->profile->threads[id].cpu_known = true;
	return 0;
}

static int decode_module(struct record_decoder *d, struct cursor *c)
{
	struct profile_module module = { 0 };
	struct profile *p = d->profile;
	int r;

	module.path = get_str(d, c);
	module.build_id = get_str(d, c);
	(void)get(c); /* kind: none is defined yet */
	if (c->bad)
		return -EBADMSG;
	r = too_many(RESERVE_ONE(p->modules, p->n_modules, p->cap_modules));
	if (!r)
		p->modules[p->n_modules++] = module;
	return r;
}

/*
 * Views and exports spell out @frame at least once for each record that uses it, and one name may
 * be long and used often.
 */
static int use_text(struct record_decoder *d, const struct profile_frame *frame)
{
	size_t name, file;

	intern_get(&d->profile->strings, frame->name, &name);
	intern_get(&d->profile->strings, frame->file, &file);
	d->text += name + file;
	return d->text > d->text_max ? -E2BIG : 0;
}

/* Whether a frame that has @reason is of another kind than the one that the file says. */
static bool stored_as_native(enum frame_reason reason)
{
	return reason != REASON_NONE && frame_reason_kind(reason) == FRAME_NOT_RECORDED;
}

/* Since 1.5 the record tells it; before, the name alone did. */
static uint32_t get_reason(const struct profile *p, struct cursor *c,
			   const struct profile_frame *frame)
{
	uint64_t reason;

	if (at_end(c))
		return frame->module == PROFILE_NONE
			       ? frame_reason_of_label(frame->kind, profile_str(p, frame->name))
			       : REASON_NONE;
	reason = get(c);
	if (reason >= FRAME_REASON_COUNT)
		return REASON_NONE; /* one that a newer rbpf knows */
	if (frame->kind == FRAME_NATIVE && stored_as_native((enum frame_reason)reason))
		return (uint32_t)reason;
	return frame_reason_fits((uint32_t)reason, frame->kind) ? (uint32_t)reason : REASON_NONE;
}

static int decode_frame(struct record_decoder *d, struct cursor *c)
{
	struct profile_frame frame = { 0 };
	struct profile *p = d->profile;
	uint64_t kind = get(c);
	int r;

	frame.kind = kind < FRAME_NOT_RECORDED ? (uint32_t)kind : FRAME_UNKNOWN;
	frame.name = get_str(d, c);
	frame.file = get_str(d, c);
	frame.line = get_u32(c);
	frame.module = get_opt_id(c, p->n_modules);
	frame.address = get(c);
	frame.func_line = get_u32(c);
	/* Since 1.1; those that we know are among the low ones. */
	frame.flags = at_end(c) ? 0 : (uint32_t)get(c);
	if (c->bad)
		return -EBADMSG;
	frame.reason = get_reason(p, c, &frame);
	if (c->bad)
		return -EBADMSG;
	if (stored_as_native(frame.reason))
		frame.kind = FRAME_NOT_RECORDED;
	r = too_many(RESERVE_ONE(p->frames, p->n_frames, p->cap_frames));
	if (!r)
		r = too_many(profile_frame_set_label(p, &frame, &d->clean));
	if (!r)
		p->frames[p->n_frames++] = frame;
	return r ? r : use_text(d, &frame);
}

static int decode_stack(struct record_decoder *d, struct cursor *c)
{
	struct profile_stack stack = { 0 };
	struct profile *p = d->profile;
	uint32_t depth;
	int r;

	stack.parent = get_id(c, p->n_stacks);
	stack.frame = get_id(c, p->n_frames);
	if (c->bad)
		return -EBADMSG;
	depth = d->depths[stack.parent] + 1;
	if (depth > RBPF_FILE_MAX_DEPTH)
		return -EBADMSG;
	r = too_many(RESERVE_ONE(p->stacks, p->n_stacks, p->cap_stacks));
	if (!r)
		r = array_reserve(d->depths, d->cap_depths, p->n_stacks + 1);
	if (r)
		return r;
	d->depths[p->n_stacks] = depth;
	p->stacks[p->n_stacks++] = stack;
	return use_text(d, &p->frames[stack.frame]);
}

static int decode_sample(struct record_decoder *d, struct cursor *c)
{
	struct profile_sample *sample = &d->sample;
	uint64_t base = d->base_ts;

	sample->thread = get_id(c, d->profile->n_threads);
	sample->ts = get_time(d, c);
	sample->stack = get_id(c, d->profile->n_stacks);
	sample->value = get(c);
	sample->cpu = (uint16_t)get_below(c, (uint64_t)UINT16_MAX + 1);
	sample->flags = sample_flags_of_file(get(c));
	sample->event = d->n_events ? (uint16_t)get_id(c, d->n_events) : 0;
	if (c->bad)
		return -EBADMSG;
	sample->request = sample->span = 0;
	if (sample->thread < d->n_threads) {
		sample->request = d->threads[sample->thread].request;
		sample->span = d->threads[sample->thread].span;
	}
	d->after_sample = true;
	d->sample_step = sample->ts - base;
	return record_samples_add(d, sample);
}

static int decode_run(struct record_decoder *d, struct cursor *c)
{
	struct profile_sample *sample = &d->sample;
	uint64_t n = get(c);
	int r = 0;

	if (c->bad || !d->after_sample)
		return -EBADMSG;
	if (n > d->run_left)
		return -E2BIG;
	d->run_left -= n;
	while (n-- && !r) {
		sample->ts += d->sample_step;
		r = record_samples_add(d, sample);
	}
	d->base_ts = sample->ts;
	if (sample->ts > d->last_ts)
		d->last_ts = sample->ts;
	return r;
}

static int decode_lost(struct record_decoder *d, struct cursor *c)
{
	struct profile_lost lost = { 0 };
	struct profile *p = d->profile;
	uint64_t reason;

	lost.ts = get_time(d, c);
	reason = get(c);
	lost.reason = reason < LOST_REASON_COUNT ? (uint32_t)reason : LOST_OTHER;
	lost.count = get(c);
	if (c->bad)
		return -EBADMSG;
	if (array_reserve(p->lost, p->cap_lost, p->n_lost + 1))
		return -ENOMEM;
	p->lost[p->n_lost++] = lost;
	return 0;
}

static int decode_request(struct record_decoder *d, struct cursor *c)
{
	uint32_t thread = get_id(c, d->profile->n_threads), id;
	struct profile_request_kind kind;

	kind.framework = get_str(d, c);
	kind.name = get_str(d, c);
	if (c->bad)
		return -EBADMSG;
	return too_many(profile_add_request(d->profile, thread, &kind, &id));
}

/* What the samples of @thread are of from now on, in *@ret. Returns 0 or -ENOMEM. */
static int thread_of(struct record_decoder *d, uint32_t thread, struct decoder_thread **ret)
{
	if (array_reserve(d->threads, d->cap_threads, (size_t)thread + 1))
		return -ENOMEM;
	for (; d->n_threads <= thread; d->n_threads++)
		d->threads[d->n_threads] = (struct decoder_thread) { 0 };
	*ret = &d->threads[thread];
	return 0;
}

static int decode_thread_request(struct record_decoder *d, struct cursor *c)
{
	const struct profile *p = d->profile;
	uint32_t thread = get_id(c, p->n_threads);
	uint32_t request = get_id(c, p->n_requests ? p->n_requests : 1);
	struct decoder_thread *of;
	int r;

	if (c->bad || (request && p->requests[request].thread != thread))
		return -EBADMSG;
	r = thread_of(d, thread, &of);
	if (!r)
		of->request = request;
	return r;
}

static int decode_span(struct record_decoder *d, struct cursor *c)
{
	struct profile_span span;
	uint16_t marks;
	uint32_t id;
	int r;

	if (c->end - c->p < RBPF_FILE_SPAN_BYTES || d->n_file_spans >= RBPF_FILE_MAX_IDS - 1)
		return -EBADMSG;
	d->n_file_spans++;
	d->profile->has_spans = true;
	if (!d->find_spans)
		return 0;
	if (array_reserve(d->spans, d->cap_spans, (size_t)d->n_file_spans + 1))
		return -ENOMEM;
	memcpy(&span, c->p, sizeof(span));
	marks = profile_span_marks(d->profile, &span);
	d->spans[d->n_file_spans] = 0;
	if (!d->keep_spans && !marks)
		return 0;
	r = too_many(intern_add(&d->profile->spans, &span, sizeof(span), &id, NULL));
	if (r)
		return r;
	d->spans[d->n_file_spans] = id + 1;
	return profile_mark_span(d->profile, id + 1, marks);
}

static int decode_thread_span(struct record_decoder *d, struct cursor *c)
{
	uint32_t thread = get_id(c, d->profile->n_threads);
	uint32_t span = get_id(c, (size_t)d->n_file_spans + 1);
	struct decoder_thread *of;
	int r;

	if (c->bad)
		return -EBADMSG;
	if (!d->find_spans)
		return 0;
	r = thread_of(d, thread, &of);
	if (!r)
		of->span = span ? d->spans[span] : 0;
	return r;
}

typedef int decode_fn(struct record_decoder *d, struct cursor *c);

/* MARKER has no place in struct profile yet and is skipped like a kind that is unknown. */
static decode_fn *const decoders[] = {
	[RBPF_FILE_REC_STRING] = decode_string,
	[RBPF_FILE_REC_PROCESS] = decode_process,
	[RBPF_FILE_REC_THREAD] = decode_thread,
	[RBPF_FILE_REC_MODULE] = decode_module,
	[RBPF_FILE_REC_FRAME] = decode_frame,
	[RBPF_FILE_REC_STACK] = decode_stack,
	[RBPF_FILE_REC_SAMPLE] = decode_sample,
	[RBPF_FILE_REC_RUN] = decode_run,
	[RBPF_FILE_REC_LOST] = decode_lost,
	[RBPF_FILE_REC_PROCESS_EXIT] = decode_process_exit,
	[RBPF_FILE_REC_PROCESS_UPDATE] = decode_process_update,
	[RBPF_FILE_REC_THREAD_NAME] = decode_thread_name,
	[RBPF_FILE_REC_THREAD_CPU] = decode_thread_cpu,
	[RBPF_FILE_REC_REQUEST] = decode_request,
	[RBPF_FILE_REC_THREAD_REQUEST] = decode_thread_request,
	[RBPF_FILE_REC_SPAN] = decode_span,
	[RBPF_FILE_REC_THREAD_SPAN] = decode_thread_span,
};

static int decode_record(struct record_decoder *d, uint64_t kind, struct cursor *body)
{
	if (!kind) /* never valid, so that a stretch of zeros is no row of records */
		return -EBADMSG;
	if (kind != RBPF_FILE_REC_SAMPLE && kind != RBPF_FILE_REC_RUN)
		d->after_sample = false;
	if (kind >= ARRAY_SIZE(decoders) || !decoders[kind])
		return 0;
	return decoders[kind](d, body);
}

static int decode_records(struct record_decoder *d, const void *data, size_t len)
{
	struct cursor c = { .p = data, .end = (const uint8_t *)data + len };

	while (c.p < c.end) {
		uint64_t kind = get(&c);
		uint64_t body_len = get(&c);
		struct cursor body = { .p = c.p };
		int r;

		if (c.bad || body_len > (uint64_t)(c.end - c.p))
			return -EBADMSG;
		c.p += body_len;
		body.end = c.p;
		r = decode_record(d, kind, &body);
		if (r)
			return r;
	}
	return 0;
}

int record_decoder_chunk(struct record_decoder *d, const void *data, size_t len)
{
	int decoded, r;

	d->after_sample = false;
	decoded = decode_records(d, data, len);
	r = record_samples_flush(d); /* those before a record that is wrong, too */
	return r ? r : decoded;
}

int record_decoder_init(struct record_decoder *d, struct profile *p)
{
	uint32_t empty;
	int r;

	*d = (struct record_decoder) {
		.profile = p,
		.base_ts = p->meta.start_monotonic_ns,
		.to_ts = UINT64_MAX,
		.run_left = RBPF_FILE_MAX_RUN,
		.waits = { .fn = record_samples_take_wait, .arg = d },
	};
	r = intern_add(&p->strings, "", 0, &empty, NULL);
	if (!r)
		r = array_reserve(d->strings, d->cap_strings, 1);
	if (!r)
		r = array_reserve(d->depths, d->cap_depths, 1);
	if (!r)
		r = array_reserve(p->stacks, p->cap_stacks, 1);
	if (r)
		return r;
	d->strings[0] = empty;
	d->n_strings = 1;
	d->depths[0] = 0;
	p->stacks[0] = (struct profile_stack) { .parent = 0, .frame = PROFILE_NONE };
	p->n_stacks = 1;
	return 0;
}

void record_decoder_deinit(struct record_decoder *d)
{
	aggregate_index_deinit(&d->aggregates);
	free(d->strings);
	free(d->depths);
	free(d->threads);
	free(d->spans);
	buf_deinit(&d->clean);
	wakeups_deinit(&d->wakeups);
	wait_lengths_deinit(&d->waits);
	*d = (struct record_decoder) { 0 };
}
