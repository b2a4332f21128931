/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/sink.h"

int sink_string(struct sink *s, const char *text, size_t len, uint32_t *ret)
{
	return s->ops->string(s, text, len, ret);
}

int sink_process(struct sink *s, const struct profile_process *def, uint32_t *ret)
{
	return s->ops->process(s, def, ret);
}

int sink_thread(struct sink *s, uint32_t process, uint32_t tid, uint32_t name, uint32_t *ret)
{
	return s->ops->thread(s, process, tid, name, ret);
}

int sink_module(struct sink *s, const struct profile_module *def, uint32_t *ret)
{
	return s->ops->module(s, def, ret);
}

int sink_frame(struct sink *s, const struct profile_frame *def, uint32_t *ret)
{
	return s->ops->frame(s, def, ret);
}

int sink_stack(struct sink *s, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	return s->ops->stack(s, parent, frame, ret);
}

int sink_request(struct sink *s, uint32_t thread, const struct profile_request_kind *kind,
		 uint32_t *ret)
{
	return s->ops->request(s, thread, kind, ret);
}

int sink_span(struct sink *s, const struct profile_span *span, uint32_t *ret)
{
	*ret = 0;
	return s->ops->span ? s->ops->span(s, span, ret) : 0;
}

int sink_process_update(struct sink *s, uint32_t process, const struct profile_process *def)
{
	return s->ops->process_update(s, process, def);
}

int sink_process_exit(struct sink *s, uint32_t process, uint64_t ts, int status)
{
	return s->ops->process_exit(s, process, ts, status);
}

int sink_thread_name(struct sink *s, uint32_t thread, uint32_t name)
{
	return s->ops->thread_name(s, thread, name);
}

int sink_thread_cpu(struct sink *s, uint32_t thread, uint64_t cpu_ns)
{
	return s->ops->thread_cpu(s, thread, cpu_ns);
}

int sink_sample(struct sink *s, const struct profile_sample *sample)
{
	return s->ops->sample(s, sample);
}

int sink_lost(struct sink *s, const struct profile_lost *lost)
{
	return s->ops->lost(s, lost);
}

int sink_flush(struct sink *s)
{
	return s->ops->flush ? s->ops->flush(s) : 0;
}

void sink_thread_gone(struct sink *s, uint32_t thread)
{
	if (s->ops->thread_gone)
		s->ops->thread_gone(s, thread);
}

void sink_process_gone(struct sink *s, uint32_t process)
{
	if (s->ops->process_gone)
		s->ops->process_gone(s, process);
}

size_t sink_bytes(const struct sink *s)
{
	return s->ops->bytes ? s->ops->bytes(s) : 0;
}

void sink_forget(struct sink *s)
{
	if (s->ops->forget)
		s->ops->forget(s);
}

bool sink_forget_stacks(struct sink *s, size_t keep)
{
	return s->ops->forget_stacks && s->ops->forget_stacks(s, keep);
}

int sink_error(const struct sink *s, struct err *err)
{
	return s->ops->error ? s->ops->error(s, err) : 0;
}
