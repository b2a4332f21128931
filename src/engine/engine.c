/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/engine.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

void engine_close(struct engine *e)
{
	if (e)
		e->ops->close(e);
}

int engine_follow(struct engine *e, pid_t tgid, const struct rbpf_layout *layout, uint64_t since_ns,
		  struct err *err)
{
	return e->ops->follow(e, tgid, layout, since_ns, err);
}

int engine_follow_again(struct engine *e, pid_t tgid, uint64_t since_ns, struct err *err)
{
	return e->ops->follow_again ? e->ops->follow_again(e, tgid, since_ns, err) : 0;
}

void engine_forget(struct engine *e, pid_t tgid)
{
	e->ops->forget(e, tgid);
}

uint32_t engine_events(const struct engine *e, struct profile_event *ret)
{
	return e->ops->events(e, ret);
}

void engine_keep_preset(struct engine *e, const struct rbpf_preset_key *key,
			const struct rbpf_layout *layout)
{
	if (e->ops->keep_preset)
		e->ops->keep_preset(e, key, layout);
}

void engine_forget_stacks(struct engine *e)
{
	if (e->ops->forget_stacks)
		e->ops->forget_stacks(e);
}

void engine_forget_stack(struct engine *e, uint64_t stack)
{
	if (e->ops->forget_stack)
		e->ops->forget_stack(e, stack);
}

void engine_copy_names(struct engine *e, pid_t tgid, uint64_t until_ns)
{
	if (e->ops->copy_names)
		e->ops->copy_names(e, tgid, until_ns);
}

int engine_open_waits(struct engine *e, pid_t tgid, uint64_t least_ns, struct err *err)
{
	return e->ops->open_waits ? e->ops->open_waits(e, tgid, least_ns, err) : 0;
}

void engine_know_wait(struct engine *e, pid_t tid, const struct rbpf_known_wait *known)
{
	if (e->ops->know_wait)
		e->ops->know_wait(e, tid, known);
}

void engine_unwind_memory(const struct engine *e, struct unwind_memory *ret)
{
	*ret = (struct unwind_memory) { 0 };
	if (e->ops->unwind_memory)
		e->ops->unwind_memory(e, ret);
}

void engine_set_code(struct engine *e, pid_t tgid, const struct rbpf_code *code)
{
	if (e->ops->set_code)
		e->ops->set_code(e, tgid, code);
}

void engine_set_request(struct engine *e, pid_t tgid, uint64_t iseq,
			const struct rbpf_request_rule *rule)
{
	if (e->ops->set_request)
		e->ops->set_request(e, tgid, iseq, rule);
}

void engine_set_request_filter(struct engine *e, pid_t tgid,
			       const struct rbpf_request_filter *filter)
{
	if (e->ops->set_request_filter)
		e->ops->set_request_filter(e, tgid, filter);
}

void engine_set_thread_context(struct engine *e, pid_t tgid, const struct rbpf_tls *variable)
{
	if (e->ops->set_thread_context)
		e->ops->set_thread_context(e, tgid, variable);
}

int engine_add_thread(struct engine *e, pid_t tid, struct err *err)
{
	return e->ops->add_thread ? e->ops->add_thread(e, tid, err) : 0;
}

void engine_remove_thread(struct engine *e, int clock)
{
	if (e->ops->remove_thread)
		e->ops->remove_thread(e, clock);
}

void engine_set_clocked(struct engine *e, pid_t tgid, uint64_t before_ns)
{
	if (e->ops->set_clocked)
		e->ops->set_clocked(e, tgid, before_ns);
}

void engine_redraw(struct engine *e)
{
	if (e->ops->redraw)
		e->ops->redraw(e);
}

void engine_set_divisor(struct engine *e, uint32_t divisor)
{
	if (e->ops->set_divisor)
		e->ops->set_divisor(e, divisor);
}

int engine_set_cpus(struct engine *e, const struct cpus *cpus, struct err *err)
{
	return e->ops->set_cpus ? e->ops->set_cpus(e, cpus, err) : 0;
}

int engine_read_threads(struct engine *e, pid_t tgid, struct rbpf_task **ret, size_t *n,
			struct err *err)
{
	*ret = NULL;
	*n = 0;
	return e->ops->read_threads ? e->ops->read_threads(e, tgid, ret, n, err) : 0;
}

int engine_read_registers(struct engine *e, pid_t tgid, struct rbpf_thread **ret, size_t *n,
			  struct err *err)
{
	if (!e->ops->read_registers)
		return err_set(err, -ENOTSUP, ERR_ENV,
			       "the engine '%s' does not read registers of threads", e->ops->name);
	return e->ops->read_registers(e, tgid, ret, n, err);
}

int engine_fd(const struct engine *e)
{
	return e->ops->fd ? e->ops->fd(e) : -1;
}

int engine_drain(struct engine *e, engine_record_fn *handle, void *arg)
{
	return e->ops->drain(e, handle, arg);
}

void engine_stop(struct engine *e)
{
	if (e->ops->stop)
		e->ops->stop(e);
}

void engine_counters(const struct engine *e, uint64_t *ret)
{
	memset(ret, 0, RBPF_COUNTERS * sizeof(*ret));
	if (e->ops->counters)
		e->ops->counters(e, ret);
}

void engine_cost(const struct engine *e, struct engine_cost *ret)
{
	*ret = (struct engine_cost) { 0 };
	if (e->ops->cost)
		e->ops->cost(e, ret);
}
