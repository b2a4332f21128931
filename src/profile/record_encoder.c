/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/record_encoder.h"

#include "profile/sample_flags.h"

/* ---- processes and threads ---- */

static void put_process(struct record *r, const struct profile_process *def)
{
	record_put(r, def->pid);
	record_put(r, def->start_ticks);
	record_put(r, def->exe);
	record_put(r, def->cmdline);
	record_put(r, def->ruby_version);
	record_put_opt(r, def->parent);
	record_put(r, def->cgroup);
	record_put(r, def->container);
	record_put(r, def->ns_pid);
	record_put_opt(r, def->uid);
	record_put(r, def->attributes);
}

int record_write_process(struct record_writer *w, const struct profile_process *def)
{
	struct record r = record_begin(RBPF_FILE_REC_PROCESS);

	put_process(&r, def);
	return record_end(w, &r);
}

int record_write_process_update(struct record_writer *w, uint32_t process,
				const struct profile_process *def)
{
	struct record r = record_begin(RBPF_FILE_REC_PROCESS_UPDATE);

	record_put(&r, process);
	put_process(&r, def);
	return record_end(w, &r);
}

int record_write_process_exit(struct record_writer *w, uint32_t process, uint64_t ts, int status)
{
	struct record r = record_begin(RBPF_FILE_REC_PROCESS_EXIT);

	record_put(&r, process);
	record_put_time(w, &r, ts);
	record_put_opt(&r, status < 0 ? PROFILE_NONE : (uint32_t)status);
	return record_end(w, &r);
}

int record_write_thread(struct record_writer *w, uint32_t process, uint32_t tid, uint32_t name)
{
	struct record r = record_begin(RBPF_FILE_REC_THREAD);

	record_put(&r, process);
	record_put(&r, tid);
	record_put(&r, name);
	return record_end(w, &r);
}

/* Something that is said of @thread. */
static int write_of_thread(struct record_writer *w, enum rbpf_file_record kind, uint32_t thread,
			   uint64_t what)
{
	struct record r = record_begin(kind);

	record_put(&r, thread);
	record_put(&r, what);
	return record_end(w, &r);
}

int record_write_thread_name(struct record_writer *w, uint32_t thread, uint32_t name)
{
	return write_of_thread(w, RBPF_FILE_REC_THREAD_NAME, thread, name);
}

int record_write_thread_cpu(struct record_writer *w, uint32_t thread, uint64_t cpu_ns)
{
	return write_of_thread(w, RBPF_FILE_REC_THREAD_CPU, thread, cpu_ns);
}

int record_write_thread_request(struct record_writer *w, uint32_t thread, uint32_t id)
{
	return write_of_thread(w, RBPF_FILE_REC_THREAD_REQUEST, thread, id);
}

int record_write_thread_span(struct record_writer *w, uint32_t thread, uint32_t id)
{
	return write_of_thread(w, RBPF_FILE_REC_THREAD_SPAN, thread, id);
}

/* ---- what samples are of ---- */

int record_write_module(struct record_writer *w, const struct profile_module *def)
{
	struct record r = record_begin(RBPF_FILE_REC_MODULE);

	record_put(&r, def->path);
	record_put(&r, def->build_id);
	record_put(&r, 0); /* kind: none is defined yet */
	return record_end(w, &r);
}

int record_write_frame(struct record_writer *w, const struct profile_frame *def)
{
	struct record r = record_begin(RBPF_FILE_REC_FRAME);

	record_put(&r, def->kind == FRAME_NOT_RECORDED ? FRAME_NATIVE : def->kind);
	record_put(&r, def->name);
	record_put(&r, def->file);
	record_put(&r, def->line);
	record_put_opt(&r, def->module);
	record_put(&r, def->address);
	record_put(&r, def->func_line);
	record_put(&r, def->flags);
	record_put(&r, def->reason);
	return record_end(w, &r);
}

int record_write_stack(struct record_writer *w, uint32_t parent, uint32_t frame)
{
	struct record r = record_begin(RBPF_FILE_REC_STACK);

	record_put(&r, parent);
	record_put(&r, frame);
	return record_end(w, &r);
}

int record_write_request(struct record_writer *w, uint32_t thread,
			 const struct profile_request_kind *kind)
{
	struct record r = record_begin(RBPF_FILE_REC_REQUEST);

	record_put(&r, thread);
	record_put(&r, kind->framework);
	record_put(&r, kind->name);
	return record_end(w, &r);
}

_Static_assert(sizeof(struct profile_span) == RBPF_FILE_SPAN_BYTES, "no padding");

int record_write_span(struct record_writer *w, const struct profile_span *span)
{
	struct record r = record_begin(RBPF_FILE_REC_SPAN);

	record_put_bytes(&r, span, sizeof(*span));
	return record_end(w, &r);
}

/* ---- samples ---- */

int record_write_sample(struct record_writer *w, const struct profile_sample *sample,
			bool with_event)
{
	struct record r;

	/* As record_begin(), which clears all of it: most records are samples. */
	r.bytes[0] = RBPF_FILE_REC_SAMPLE;
	r.len = 2;
	record_put(&r, sample->thread);
	record_put_time(w, &r, sample->ts);
	record_put(&r, sample->stack);
	record_put(&r, sample->value);
	record_put(&r, sample->cpu);
	record_put(&r, sample_flags_to_file(sample->flags));
	if (with_event)
		record_put(&r, sample->event);
	return record_end(w, &r);
}

int record_write_lost(struct record_writer *w, const struct profile_lost *lost)
{
	struct record r = record_begin(RBPF_FILE_REC_LOST);

	record_put_time(w, &r, lost->ts);
	record_put(&r, lost->reason);
	record_put(&r, lost->count);
	return record_end(w, &r);
}
