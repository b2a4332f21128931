/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A sink that makes a profile, as profile_sink.h, up to the n-th call, as a recording on a disk
 * that gets full then: that call and all later ones fail. Or up to the n-th definition, as a
 * recording that has as many as it can have: that and all later definitions fail.
 */
#ifndef RBPF_TESTS_FAILING_SINK_H
#define RBPF_TESTS_FAILING_SINK_H

#include <criterion/criterion.h>
#include <errno.h>

#include "base/err.h"
#include "profile/profile_sink.h"

struct failing_sink {
	struct sink sink;
	struct profile_sink out; /* what it took before */
	size_t calls;
	size_t fail_at; /* the call that fails first, from 1; 0: none does */
	int ret;	/* … with this */
	size_t definitions;
	size_t full_at; /* the definition that fails first, from 1, with -E2BIG; 0: none does */
};

static inline struct failing_sink *failing_of(const struct sink *s)
{
	return (struct failing_sink *)s;
}

static inline int failing_refuse(struct failing_sink *f)
{
	f->calls++;
	return f->fail_at && f->calls >= f->fail_at ? f->ret : 0;
}

static inline int failing_define(struct failing_sink *f)
{
	f->definitions++;
	return f->full_at && f->definitions >= f->full_at ? -E2BIG : failing_refuse(f);
}

static inline int failing_string(struct sink *s, const char *text, size_t len, uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_string(&failing_of(s)->out.sink, text, len, ret);
}

static inline int failing_process(struct sink *s, const struct profile_process *def, uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_process(&failing_of(s)->out.sink, def, ret);
}

static inline int failing_thread(struct sink *s, uint32_t process, uint32_t tid, uint32_t name,
				 uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_thread(&failing_of(s)->out.sink, process, tid, name, ret);
}

static inline int failing_module(struct sink *s, const struct profile_module *def, uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_module(&failing_of(s)->out.sink, def, ret);
}

static inline int failing_frame(struct sink *s, const struct profile_frame *def, uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_frame(&failing_of(s)->out.sink, def, ret);
}

static inline int failing_stack(struct sink *s, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	int r = failing_define(failing_of(s));

	return r ? r : sink_stack(&failing_of(s)->out.sink, parent, frame, ret);
}

static inline int failing_update(struct sink *s, uint32_t process,
				 const struct profile_process *def)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_process_update(&failing_of(s)->out.sink, process, def);
}

static inline int failing_exit(struct sink *s, uint32_t process, uint64_t ts, int status)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_process_exit(&failing_of(s)->out.sink, process, ts, status);
}

static inline int failing_name(struct sink *s, uint32_t thread, uint32_t name)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_thread_name(&failing_of(s)->out.sink, thread, name);
}

static inline int failing_cpu(struct sink *s, uint32_t thread, uint64_t cpu_ns)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_thread_cpu(&failing_of(s)->out.sink, thread, cpu_ns);
}

static inline int failing_sample(struct sink *s, const struct profile_sample *sample)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_sample(&failing_of(s)->out.sink, sample);
}

static inline int failing_lost(struct sink *s, const struct profile_lost *lost)
{
	int r = failing_refuse(failing_of(s));

	return r ? r : sink_lost(&failing_of(s)->out.sink, lost);
}

static inline int failing_flush(struct sink *s)
{
	return failing_refuse(failing_of(s));
}

static inline int failing_error(const struct sink *s, struct err *err)
{
	const struct failing_sink *f = failing_of(s);

	if (!f->fail_at || f->calls < f->fail_at)
		return 0;
	return err_set(err, f->ret, ERR_RUNTIME, "scripted: the sink takes no more");
}

static inline void failing_sink_init(struct failing_sink *f,
				     const struct profile_sink_options *opts)
{
	static const struct sink_ops ops = {
		.string = failing_string,
		.process = failing_process,
		.thread = failing_thread,
		.module = failing_module,
		.frame = failing_frame,
		.stack = failing_stack,
		.process_update = failing_update,
		.process_exit = failing_exit,
		.thread_name = failing_name,
		.thread_cpu = failing_cpu,
		.sample = failing_sample,
		.lost = failing_lost,
		.flush = failing_flush,
		.error = failing_error,
	};

	*f = (struct failing_sink) { .sink.ops = &ops, .ret = -ENOSPC };
	cr_assert_eq(profile_sink_init(&f->out, opts), 0);
}

static inline void failing_sink_deinit(struct failing_sink *f)
{
	profile_sink_deinit(&f->out);
}

#endif
