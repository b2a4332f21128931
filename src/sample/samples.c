/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "engine/engine.h"
#include "profile/sink.h"
#include "ruby/vm.h"
#include "sample/collector_state.h"
#include "sample/thread_context.h"
#include "sample/titles.h"
#include "native/native_stacks.h"
#include "symbol/resolver.h"

/* Bytes of records that wait for names: of a process, and of all. */
#define MAX_HELD     (8u << 20)
#define MAX_HELD_ALL (16u << 20)

/* ---- Ruby stacks ---- */

/*
 * @p may have made its names as large as it likes: beyond its share they are learnt anew, and what
 * there was no room for is counted.
 */
static void bound_names(struct collector *c, struct tracked_process *p)
{
	if (!p->resolver)
		return;
	c->totals.counters[COUNTER_NAMES_REFUSED] += resolver_refused(p->resolver);
	if (resolver_bytes(p->resolver) >= CODE_CACHE_BYTES)
		tracked_process_forget_names(p);
}

int samples_names(struct collector *c, struct tracked_process *p, struct resolver **ret)
{
	int r;

	*ret = NULL;
	r = find_ruby_try(c, p, NULL, 0);
	if (!r && !p->vm)
		life_count_ended_unseen(c, p);
	if (r || !p->vm)
		return r;
	*ret = tracked_process_names(p);
	if (!*ret)
		return -ENOMEM;
	resolver_set_requests(*ret, c->opts.requests);
	resolver_set_jit(*ret, !p->native || native_process_may_have_jit(p->native));
	if (p->resolver_drain != c->drains) {
		resolver_revalidate(*ret);
		p->resolver_drain = c->drains;
	}
	return 0;
}

int samples_handle_memory(struct collector *c, const struct rbpf_ring_memory *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct stack_era sampled;
	struct resolver *names;
	int r;

	if (len < sizeof(*rec) || len - sizeof(*rec) < rec->n_bytes)
		return -EPROTO;
	if (!p)
		return 0;
	r = samples_names(c, p, &names);
	if (r || !names)
		return r;
	sampled = (struct stack_era) { .gc_era = rec->gc_era,
				       .gc_transition = rec->flags & RBPF_STACK_GC_TRANSITION };
	r = resolver_captured(names, &sampled, rec + 1, rec->n_bytes);
	bound_names(c, p);
	return r;
}

/* Iseqs have been seen: their code tells where the interpreter is. */
static int tell_interpreter(struct tracked_process *p, const struct resolver *names)
{
	int r;

	if (!p->native || p->interpreter_tries == INTERPRETER_TRIES)
		return 0;
	r = native_process_interpreter(p->native, p->vm, names);
	p->interpreter_pending = r == -EAGAIN;
	if (p->interpreter_pending)
		return 0;
	p->interpreter_tries = r > 0 ? INTERPRETER_TRIES : p->interpreter_tries + 1;
	return r < 0 ? r : 0;
}

/* Let the engine look for the frames that tell requests, of those that were named. */
static int tell_requests(struct collector *c, struct tracked_process *p, struct resolver *names)
{
	size_t n;
	const struct request_found *found = resolver_found_requests(names, &n);

	return n ? process_requests_add(p, c->engine, found, n) : 0;
}

int samples_handle_request(struct collector *c, const struct rbpf_ring_request *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct resolver *names;
	int r;

	if (!p || !c->opts.requests)
		return 0;
	r = samples_names(c, p, &names);
	if (!r && names)
		r = request_table_define(&c->requests, c->opts.requests, names, c->sink, rec, len);
	if (!r && names)
		r = tell_requests(c, p, names);
	bound_names(c, p);
	return r;
}

/* The BPF programs are not to refer to stacks that were dropped because they were many. */
static void send_dropped_again(struct collector *c)
{
	if (!stack_table_keeps_all(&c->stacks))
		engine_forget_stacks(c->engine);
}

int samples_handle_stack(struct collector *c, const struct rbpf_ring_stack *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct resolver *names;
	uint64_t until;
	int r;

	if (!p)
		return 0;
	r = samples_names(c, p, &names);
	/* None of a program that was replaced by exec meanwhile: its samples are [stack lost]. */
	if (!r && names)
		r = stack_table_define(&c->stacks, c->sink, p, rec, len);
	send_dropped_again(c);
	if (lost_names_ask_again(&p->lost_names))
		engine_forget_stack(c->engine, rec->stack);
	until = lost_names_copy_until(&p->lost_names, rec->h.ts);
	if (until)
		engine_copy_names(c->engine, p->pid, until);
	if (!r && names)
		r = tell_interpreter(p, names);
	if (!r && names)
		r = tell_requests(c, p, names);
	bound_names(c, p);
	return r;
}

int samples_handle_code_miss(struct collector *c, const struct rbpf_ring_code_miss *rec)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);

	return p && p->native ? native_process_miss(p->native, rec->addr, rec->end, p->vm) : 0;
}

int samples_thread(struct collector *c, struct tracked_process *p, pid_t tid,
		   const char comm[RBPF_COMM_LEN], struct tracked_thread **ret)
{
	struct tracked_thread *t;
	uint32_t name;
	bool is_new;
	int r;

	r = process_table_thread(&c->table, p, tid, &t, &is_new);
	if (!r && is_new && !c->opts.system_wide) { /* its birth was not told */
		t->has_base = true;
		r = clocks_note_birth(c, p, t, clock_ns(CLOCK_MONOTONIC));
	}
	if (r)
		return r;
	if (t->id == PROFILE_NONE || strncmp(t->comm, comm, sizeof(t->comm))) {
		memcpy(t->comm, comm, sizeof(t->comm));
		r = sink_string(c->sink, t->comm, strnlen(t->comm, sizeof(t->comm)), &name);
		if (!r && t->id == PROFILE_NONE)
			r = sink_thread(c->sink, p->id, (uint32_t)t->tid, name, &t->id);
		else if (!r)
			r = sink_thread_name(c->sink, t->id, name);
	}
	*ret = t;
	return r;
}

/*
 * The status of @rec, of @t. The VM of a process that exits is gone before its main thread, which
 * has no EC then, as a thread that was never one of Ruby's.
 */
static uint16_t status_of(struct tracked_thread *t, const struct rbpf_ring_sample *rec)
{
	t->ran_ruby |= rec->stack != 0;
	return rec->status == RBPF_NO_EC && t->ran_ruby && rec->h.tid == rec->h.tgid ? RBPF_EC_STALE
										     : rec->status;
}

/* @rec, of @p, in which a Ruby was known when it came (@with_ruby). */
static int handle_sample(struct collector *c, struct tracked_process *p,
			 const struct rbpf_ring_sample *rec, bool with_ruby)
{
	struct profile_sample sample = { .ts = rec->h.ts,
					 .value = rec->value,
					 .event = (uint16_t)rec->event,
					 .cpu = (uint16_t)rec->h.cpu };
	struct stacks_taken taken = { .ruby = rec->stack,
				      .native = rec->native,
				      .flags = rec->flags };
	struct sample_stack stack;
	struct tracked_thread *t;
	int r;

	r = samples_thread(c, p, (pid_t)rec->h.tid, rec->comm, &t);
	if (r)
		return r;
	taken.status = status_of(t, rec);
	r = stack_table_of_sample(&c->stacks, c->sink, p, &taken, with_ruby, &stack);
	if (!r)
		r = request_table_of_sample(&c->requests, c->sink, t, rec->request,
					    process_request_rule(p, &stack), &sample.request);
	if (!r)
		r = thread_context_span(c->sink, &rec->span, &sample.span);
	if (r)
		return r;
	sample.stack = stack.stack;
	sample.flags = stack.flags;
	if (rec->flags & RBPF_SAMPLE_KERNEL)
		sample.flags |= SAMPLE_KERNEL;
	if (rec->flags & RBPF_SAMPLE_PAGE_FAULT)
		sample.flags |= SAMPLE_PAGE_FAULT;
	sample.thread = t->id;
	profile_count_sample(&c->totals, &sample, rec->event == 0);
	return sink_sample(c->sink, &sample);
}

/* ---- records that are held until symbols are read ---- */

static int handle_held(struct collector *c, struct tracked_process *p,
		       const struct held_record *rec, bool no_wait)
{
	const struct rbpf_ring_hdr *h = (const struct rbpf_ring_hdr *)(rec + 1);
	const bool is_native = h->type == RBPF_RING_NATIVE;
	int r;

	if (c->full)
		r = -E2BIG;
	else if (is_native)
		r = stack_table_define_native(&c->stacks, p, no_wait, (const void *)h, rec->size);
	else if (h->type == RBPF_RING_WAIT)
		r = waits_handle(c, p, (const void *)h, rec->with_ruby);
	else
		r = handle_sample(c, p, (const void *)h, rec->with_ruby);
	return collector_note_full(c, r, !is_native);
}

/*
 * Whether the names of @rec, a native stack, are there; what is not of that form is not waited for.
 */
static int is_ready(struct tracked_process *p, const struct rbpf_ring_native *rec, size_t len)
{
	int r, err = 0;

	if (!p->native || len < sizeof(*rec) + (size_t)rec->n_frames * sizeof(uint64_t))
		return 1;
	r = native_ready(p->native, (const uint64_t *)(rec + 1), rec->n_frames);
	/* The Ruby stack that told where the interpreter is may be the last new one for long. */
	if (r > 0 && p->interpreter_pending && p->resolver)
		err = tell_interpreter(p, p->resolver);
	return err ? err : r;
}

/*
 * Take what is held of @p: with @wait up to the first native stack whose names are not there yet,
 * otherwise all of it, some without names.
 */
static int release(struct collector *c, struct tracked_process *p, bool wait)
{
	const size_t before = held_bytes(&p->held);
	const struct held_record *rec;
	int r = 0;

	while (!r && (rec = held_first(&p->held))) {
		const struct rbpf_ring_hdr *h = (const struct rbpf_ring_hdr *)(rec + 1);

		if (wait && h->type == RBPF_RING_NATIVE) {
			r = is_ready(p, (const void *)h, rec->size);
			if (r <= 0)
				break;
		}
		r = handle_held(c, p, rec, !wait);
		held_pop(&p->held);
	}
	c->held -= before - held_bytes(&p->held);
	return r;
}

int samples_release(struct collector *c, struct tracked_process *p)
{
	return release(c, p, false);
}

static int hold(struct collector *c, struct tracked_process *p, const void *rec, size_t len,
		bool with_ruby)
{
	size_t before;
	int r = 0;

	if (held_bytes(&p->held) + len > MAX_HELD || c->held + len > MAX_HELD_ALL)
		r = release(c, p, false);
	before = held_bytes(&p->held);
	if (!r)
		r = held_add(&p->held, rec, len, with_ruby);
	c->held += held_bytes(&p->held) - before;
	return r;
}

static int release_ready(struct collector *c)
{
	struct tracked_process *p;
	int r = 0;

	if (!c->held)
		return 0;
	LIST_FOREACH(p, &c->table.list, link) {
		r = release(c, p, true);
		if (r)
			break;
	}
	return r;
}

int samples_poll(struct collector *c)
{
	int r = c->native ? native_poll(c->native, false) : 0;

	return r ? r : release_ready(c);
}

int samples_finish(struct collector *c)
{
	int r = 0;

	/* What comes next may need other files. */
	while (c->held && !r) {
		r = native_poll(c->native, true);
		if (!r)
			r = release_ready(c);
	}
	return r;
}

int samples_handle_native(struct collector *c, const struct rbpf_ring_native *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	int r;

	if (!p)
		return 0;
	r = held_first(&p->held) ? 0 : is_ready(p, rec, len);
	if (r < 0)
		return r;
	r = r ? stack_table_define_native(&c->stacks, p, false, rec, len)
	      : hold(c, p, rec, len, false);
	send_dropped_again(c);
	return r;
}

int samples_handle_sample(struct collector *c, const struct rbpf_ring_sample *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	bool with_ruby;
	int r;

	/*
	 * Not selected: the BPF programs walk what executes a Ruby before it was examined.
	 * Otherwise the record that tells of it was lost, or it is one too many.
	 */
	if (!p) {
		c->unknown += system_wide_is_all(c);
		return unknown_look(c, (pid_t)rec->h.tgid);
	}
	if (p->let_go)
		return 0;
	with_ruby = p->vm != NULL; /* before this sample */
	r = titles_note_sample(c, p);
	if (!r)
		r = find_ruby_try_again(c, p);
	if (r)
		return r;
	return held_first(&p->held) ? hold(c, p, rec, len, with_ruby)
				    : handle_sample(c, p, rec, with_ruby);
}

int samples_handle_wait(struct collector *c, const struct rbpf_ring_wait *rec, size_t len)
{
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);

	if (len < sizeof(*rec))
		return -EPROTO;
	if (!p || p->let_go)
		return 0;
	return held_first(&p->held) ? hold(c, p, rec, len, p->vm != NULL)
				    : waits_handle(c, p, rec, p->vm != NULL);
}

/*
 * The waker is in no process that is followed, so it is a frame, "[curl 1234]", in place of a stack
 * of the thread that it woke.
 */
int samples_handle_waker(struct collector *c, const struct rbpf_ring_waker *rec, size_t len)
{
	struct profile_sample sample = { .ts = rec->h.ts,
					 .value = rec->value,
					 .event = RBPF_EVENT_WAKEUP,
					 .cpu = (uint16_t)rec->h.cpu,
					 .flags = SAMPLE_NO_RUBY };
	struct tracked_process *p = process_table_find(&c->table, (pid_t)rec->h.tgid);
	struct tracked_thread *t;
	int r;

	if (len < sizeof(*rec))
		return -EPROTO;
	if (!p)
		return 0;
	r = samples_thread(c, p, (pid_t)rec->h.tid, rec->comm, &t);
	if (!r)
		r = stack_of_waker(c->sink, rec->waker, rec->pid, &sample.stack);
	if (r)
		return r;
	sample.thread = t->id;
	profile_count_sample(&c->totals, &sample, false);
	c->totals.not_recorded++;
	return sink_sample(c->sink, &sample);
}
