/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/profile_sink.h"
#include "profile/frame_label.h"
#include "profile/reason.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"
#include "profile/reserve.h"
#include "rbpf_file.h"

static struct profile_sink *of(struct sink *sink)
{
	return (struct profile_sink *)sink;
}

/* ---- definitions ---- */

static bool string_ok(const struct profile *p, uint32_t id)
{
	return id < p->strings.count;
}

static int add_string(struct sink *sink, const char *text, size_t len, uint32_t *ret)
{
	struct profile_sink *out = of(sink);

	buf_reset(&out->clean);
	utf8_sanitise(&out->clean, text, len < RBPF_FILE_MAX_STRING ? len : RBPF_FILE_MAX_STRING);
	if (buf_failed(&out->clean))
		return -ENOMEM;
	return intern_str(&out->profile.strings, buf_str(&out->clean), ret);
}

/* Parents come first, so that nobody who follows them can go round in circles. */
static bool process_ok(const struct profile *p, uint32_t self, const struct profile_process *def)
{
	return string_ok(p, def->exe) && string_ok(p, def->cmdline) &&
	       string_ok(p, def->ruby_version) && string_ok(p, def->cgroup) &&
	       string_ok(p, def->container) && string_ok(p, def->attributes) &&
	       (def->parent == PROFILE_NONE || def->parent < self);
}

static int add_process(struct sink *sink, const struct profile_process *def, uint32_t *ret)
{
	struct profile *p = &of(sink)->profile;
	int r;

	if (!process_ok(p, (uint32_t)p->n_processes, def))
		return -EINVAL;
	r = RESERVE_ONE(p->processes, p->n_processes, p->cap_processes);
	if (r)
		return r;
	p->processes[p->n_processes] = *def;
	*ret = (uint32_t)p->n_processes++;
	return 0;
}

/* All but how it ended, which is told by itself. */
static int update_process(struct sink *sink, uint32_t process, const struct profile_process *def)
{
	struct profile *p = &of(sink)->profile;
	struct profile_process old;

	if (process >= p->n_processes || !process_ok(p, process, def))
		return -EINVAL;
	old = p->processes[process];
	p->processes[process] = *def;
	p->processes[process].exited = old.exited;
	p->processes[process].exit_status = old.exit_status;
	p->processes[process].exit_ts = old.exit_ts;
	return 0;
}

static int end_process(struct sink *sink, uint32_t process, uint64_t ts, int status)
{
	struct profile *p = &of(sink)->profile;

	if (process >= p->n_processes || status < -1)
		return -EINVAL;
	p->processes[process].exited = true;
	p->processes[process].exit_status = status;
	p->processes[process].exit_ts = ts;
	return 0;
}

static int add_thread(struct sink *sink, uint32_t process, uint32_t tid, uint32_t name,
		      uint32_t *ret)
{
	struct profile *p = &of(sink)->profile;
	int r;

	if (process >= p->n_processes || !string_ok(p, name))
		return -EINVAL;
	r = RESERVE_ONE(p->threads, p->n_threads, p->cap_threads);
	if (r)
		return r;
	p->threads[p->n_threads] =
		(struct profile_thread) { .process = process, .tid = tid, .name = name };
	*ret = (uint32_t)p->n_threads++;
	return 0;
}

static int name_thread(struct sink *sink, uint32_t thread, uint32_t name)
{
	struct profile *p = &of(sink)->profile;

	if (thread >= p->n_threads || !string_ok(p, name))
		return -EINVAL;
	p->threads[thread].name = name;
	return 0;
}

static int set_thread_cpu(struct sink *sink, uint32_t thread, uint64_t cpu_ns)
{
	struct profile *p = &of(sink)->profile;

	if (thread >= p->n_threads)
		return -EINVAL;
	p->threads[thread].cpu_ns = cpu_ns;
	p->threads[thread].cpu_known = true;
	return 0;
}

static int add_module(struct sink *sink, const struct profile_module *def, uint32_t *ret)
{
	struct profile_sink *out = of(sink);
	struct profile *p = &out->profile;
	bool is_new;
	int r;

	if (!string_ok(p, def->path) || !string_ok(p, def->build_id))
		return -EINVAL;
	/* First, for it must not fail once the module is known. */
	r = RESERVE_ONE(p->modules, p->n_modules, p->cap_modules);
	if (!r)
		r = intern_add(&out->modules, def, sizeof(*def), ret, &is_new);
	if (!r && is_new)
		p->modules[p->n_modules++] = *def;
	return r;
}

static int add_frame(struct sink *sink, const struct profile_frame *def, uint32_t *ret)
{
	struct profile_sink *out = of(sink);
	struct profile *p = &out->profile;
	struct profile_frame frame = *def;
	bool is_new;
	int r;

	if (def->kind >= FRAME_KIND_COUNT || !string_ok(p, def->name) || !string_ok(p, def->file) ||
	    (def->module != PROFILE_NONE && def->module >= p->n_modules) ||
	    !frame_reason_fits(def->reason, def->kind) || def->raw_name)
		return -EINVAL;
	/* First, for it must not fail once the frame is known. */
	r = RESERVE_ONE(p->frames, p->n_frames, p->cap_frames);
	if (!r)
		r = profile_frame_set_label(p, &frame, &out->clean);
	if (!r)
		r = intern_add(&out->frames, def, sizeof(*def), ret, &is_new);
	if (!r && is_new)
		p->frames[p->n_frames++] = frame;
	return r;
}

static int add_stack(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	const struct profile_stack def = { .parent = parent, .frame = frame };
	struct profile_sink *out = of(sink);
	struct profile *p = &out->profile;
	uint32_t id;
	bool is_new;
	int r;

	if (parent >= p->n_stacks || frame >= p->n_frames)
		return -EINVAL;
	if (out->depths[parent] >= RBPF_FILE_MAX_DEPTH)
		return -E2BIG;
	/* First, for it must not fail once the stack is known. */
	r = RESERVE_ONE(p->stacks, p->n_stacks, p->cap_stacks);
	if (!r)
		r = array_reserve(out->depths, out->cap_depths, p->n_stacks + 1);
	if (!r)
		r = intern_add(&out->stacks, &def, sizeof(def), &id, &is_new);
	if (r)
		return r;
	if (is_new) {
		out->depths[p->n_stacks] = out->depths[parent] + 1;
		p->stacks[p->n_stacks++] = def;
	}
	*ret = id + 1;
	return 0;
}

static int add_request(struct sink *sink, uint32_t thread, const struct profile_request_kind *kind,
		       uint32_t *ret)
{
	struct profile *p = &of(sink)->profile;

	if (thread >= p->n_threads || !string_ok(p, kind->framework) || !string_ok(p, kind->name))
		return -EINVAL;
	return profile_add_request(p, thread, kind, ret);
}

static int add_span(struct sink *sink, const struct profile_span *span, uint32_t *ret)
{
	int r = intern_add(&of(sink)->profile.spans, span, sizeof(*span), ret, NULL);

	*ret += !r;
	return r;
}

/* ---- samples ---- */

static int add_sample(struct sink *sink, const struct profile_sample *sample)
{
	struct profile_sink *out = of(sink);
	struct profile *p = &out->profile;
	const uint32_t n_events = p->meta.n_events ? p->meta.n_events : 1;
	int r = 0;

	if (sample->thread >= p->n_threads || sample->stack >= p->n_stacks ||
	    sample->event >= n_events || sample->span > p->spans.count ||
	    (sample->request && (sample->request >= p->n_requests ||
				 p->requests[sample->request].thread != sample->thread)))
		return -EINVAL;
	profile_count_sample(&p->totals, sample,
			     !p->meta.n_events || event_is_cpu(&p->meta.events[sample->event]));
	profile_note_request(p, sample, sample->event == p->event, true);
	p->n_in_time++;
	if (sample->event == p->event)
		profile_note_sample(p, sample);
	else if (!p->by_event)
		return 0;
	if (out->keep_samples)
		r = profile_keep_sample(p, sample);
	return r ? r : aggregate_add(&out->aggregates, p, sample);
}

static int add_lost(struct sink *sink, const struct profile_lost *lost)
{
	struct profile *p = &of(sink)->profile;
	int r;

	if (lost->reason >= LOST_REASON_COUNT)
		return -EINVAL;
	r = RESERVE_ONE(p->lost, p->n_lost, p->cap_lost);
	if (r)
		return r;
	p->lost[p->n_lost++] = *lost;
	profile_add(&p->totals.lost, lost->count);
	return 0;
}

static const struct sink_ops profile_sink_ops = {
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
};

/* ---- life ---- */

int profile_sink_init(struct profile_sink *out, const struct profile_sink_options *opts)
{
	struct profile *p = &out->profile;
	uint32_t empty;

	*out = (struct profile_sink) { .sink.ops = &profile_sink_ops,
				       .keep_samples = opts->keep_samples };
	p->by_thread = opts->by_thread;
	p->by_request = opts->by_request;
	p->by_event = opts->by_event;
	p->event = opts->event;
	if (intern_str(&p->strings, "", &empty) || array_reserve(p->stacks, p->cap_stacks, 1) ||
	    array_reserve(out->depths, out->cap_depths, 1)) {
		profile_sink_deinit(out);
		return -ENOMEM;
	}
	out->depths[p->n_stacks] = 0;
	p->stacks[p->n_stacks++] = (struct profile_stack) { .frame = PROFILE_NONE };
	return 0;
}

void profile_sink_deinit(struct profile_sink *out)
{
	profile_deinit(&out->profile);
	intern_deinit(&out->modules);
	intern_deinit(&out->frames);
	intern_deinit(&out->stacks);
	aggregate_index_deinit(&out->aggregates);
	free(out->depths);
	buf_deinit(&out->clean);
}
