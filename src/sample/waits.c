/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time off the CPU: from records of waits to samples. Those that wait since before they were
 * followed, or their Ruby was known, have no Ruby stacks in their records: their memory still has
 * them, and is walked from here. It also tells for which descriptors they wait in poll() or
 * select(), which the kernel side can read of the current task only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine.h"
#include "profile/sink.h"
#include "rbpf_frame_words.h"
#include "ruby/mutex.h"
#include "ruby/thread_ecs.h"
#include "ruby/vm.h"
#include "ruby/walk.h"
#include "sample/collector_state.h"
#include "sample/thread_context.h"
#include "target/process.h"
#include "target/waits_on.h"

/*
 * Of so many threads of a process the stacks are walked from here: each takes two readings of the
 * list of its threads, and a process can have any number.
 */
#define MAX_SLEEPERS  256
/*
 * And for so long at the beginning, and for a part of the time later on: of a process with many
 * threads on a machine with many, where the kernel looks at all of them for each list, it would
 * take seconds.
 */
#define SLEEPERS_NS   (NSEC_PER_SEC / 2)
#define SLEEPERS_PART 50

/* ---- who waits since before ---- */

/* Thread @tid of @p, now. Returns 0, -ESRCH or another error. */
static int read_thread(struct collector *c, const struct tracked_process *p, uint32_t tid,
		       struct rbpf_task *ret)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r = engine_read_threads(c->engine, p->pid, &tasks, &n, &err);

	for (size_t i = 0; !r && i < n; i++) {
		if (tasks[i].tid != tid)
			continue;
		*ret = tasks[i];
		return 0;
	}
	return r ? r : -ESRCH;
}

/* Define @stack as if the BPF programs had sent it, with the fingerprint @rec->stack. */
static int define(struct collector *c, struct tracked_process *p, struct rbpf_ring_stack *rec,
		  const struct ruby_stack *stack)
{
	const size_t most = sizeof(*rec) + stack->n_frames * sizeof(*stack->frames);
	_cleanup_free_ struct rbpf_ring_stack *whole = malloc(most);
	__u64 *words = (__u64 *)(whole + 1);
	size_t i;

	if (!whole)
		return -ENOMEM;
	rec->n_frames = stack->n_frames;
	*whole = *rec;
	for (i = 0; i < stack->n_frames; i++)
		words += rbpf_frame_pack(&stack->frames[i], words);
	return stack_table_define(&c->stacks, c->sink, p, whole,
				  (size_t)((uint8_t *)words - (uint8_t *)whole));
}

/*
 * Whether the thread of @rec, a wait that goes on, has not run since; it is *@ret now. Its account
 * does not tell while it runs, up to the next tick, so that it does not run is asked first.
 */
static bool still_waits(struct collector *c, const struct tracked_process *p,
			const struct rbpf_ring_wait *rec, struct rbpf_task *ret)
{
	return thread_state(p->pid, (pid_t)rec->h.tid) != 'R' &&
	       !read_thread(c, p, rec->h.tid, ret) && ret->runtime == rec->runtime;
}

/*
 * What the BPF programs could not read of the thread with thread pointer @tp, whose wait @rec they
 * have not seen begin: which it is, and if it waits for a lock, for which. Returns 0 or -errno.
 */
static int read_thread_of(const struct ruby_vm *vm, uint64_t tp, const struct rbpf_ring_wait *rec,
			  struct rbpf_known_wait *ret)
{
	uint64_t ec, th = 0, mutex = 0, owner = 0;
	int r = ruby_thread_ec(vm, tp, &ec);

	if (!r)
		r = memory_read_u64(&vm->mem, ec + vm->walk.ec_thread_ptr, &th);
	if (r)
		return r;
	if (rec->wait == RBPF_WAIT_LOCK && vm->walk.mutex_form)
		ruby_mutex_waited_for(vm, ec, th, &mutex, &owner);
	*ret = (struct rbpf_known_wait) {
		.since = rec->since,
		.th = th,
		.mutex = mutex,
		.owner = owner,
		.at = clock_ns(CLOCK_MONOTONIC),
	};
	return 0;
}

/*
 * The stack of the thread with thread pointer @tp, in *@ret, with the status RBPF_NO_EC if it is
 * none of Ruby's, and RBPF_EC_STALE if it is none any more: up to 3.2 a Ruby keeps native threads
 * for the next threads. Returns 1, 0 (it cannot be walked, and there is no *@ret), or -ENOMEM.
 */
static int walk_thread(const struct ruby_vm *vm, uint64_t tp, struct ruby_stack *ret)
{
	struct ruby_stack stack = { .status = RBPF_NO_EC };
	uint64_t ec;
	int r = ruby_thread_ec(vm, tp, &ec);

	if (r && r != -ENOENT)
		return 0;
	r = r ? 0 : ruby_walk(&vm->mem, &vm->walk, ec, RBPF_MAX_FRAMES, &stack);
	if (r)
		return r;
	if (stack.status != RBPF_NO_EC && stack.status != RBPF_EC_STALE &&
	    (stack.status != RBPF_OK || !stack.n_frames)) {
		ruby_stack_deinit(&stack);
		return 0;
	}
	*ret = stack;
	return 1;
}

/*
 * What the thread of @rec waits for, and in *@peer who is at the other end of it: as the record has
 * it, but for one that was in poll() or select() already when it came to be followed.
 */
static uint16_t read_wait(const struct tracked_process *p, const struct rbpf_ring_wait *rec,
			  struct rbpf_waits_on *peer)
{
	struct thread_syscall call;
	struct waits_on on;

	if (rec->wait != RBPF_WAIT_OTHER || !(rec->flags & RBPF_WAIT_BEFORE) ||
	    thread_syscall(p->pid, (pid_t)rec->h.tid, &call) || !waits_on_is_polled(&call))
		return rec->wait;
	on = waits_on_read(&p->vm->mem, &call);
	*peer = on.peer;
	if (!on.file[0])
		return RBPF_WAIT_OTHER;
	/* Nobody waits for a file of a disk here: poll() says of all of them that they are ready.
	 */
	return waits_on_socket(&on) ? RBPF_WAIT_NETWORK : RBPF_WAIT_PIPE;
}

/*
 * Walk the stack of the thread of @rec, a wait that goes on, and define it: @taken is then what the
 * BPF programs would have sent, had they known the Ruby when the wait began, and *@wait and *@peer
 * what it is for. The thread must not have run since: its CPU time tells. Both are left as they are
 * if it has;
 * @taken, too, if it cannot be walked. Returns 0 or -errno.
 */
static int walk_sleeping(struct collector *c, struct tracked_process *p,
			 const struct rbpf_ring_wait *rec, struct stacks_taken *taken,
			 uint16_t *wait, struct rbpf_waits_on *peer)
{
	struct rbpf_waits_on on = *peer;
	struct rbpf_ring_stack def = { .h = rec->h };
	struct ruby_stack stack _cleanup_(ruby_stack_deinit) = { 0 };
	struct rbpf_known_wait known;
	struct resolver *names;
	struct rbpf_task task;
	uint64_t era, major;
	uint16_t found;
	bool walked, is_known;
	int r;

	r = samples_names(c, p, &names);
	if (r || !names)
		return r;
	p->n_sleepers++;
	walked = !ruby_vm_gc_era(p->vm, &era, &major);
	if (!still_waits(c, p, rec, &task))
		return 0;
	found = read_wait(p, rec, &on);
	is_known = !read_thread_of(p->vm, task.thread_pointer, rec, &known);
	r = walked ? walk_thread(p->vm, task.thread_pointer, &stack) : 0;
	if (r < 0 || !still_waits(c, p, rec, &task))
		return r < 0 ? r : 0;
	if (is_known)
		engine_know_wait(c->engine, (pid_t)rec->h.tid, &known);
	*wait = found;
	*peer = on;
	if (!r)
		return 0;
	taken->status = (uint16_t)stack.status;
	taken->flags &= (uint16_t)~RBPF_WAIT_BEFORE;
	if (!stack.n_frames)
		return 0;
	def.gc_era = era;
	def.gc_major = major;
	/* Of no stack of the BPF programs, for these have no such seed. */
	def.stack = taken->ruby = rbpf_mix(rbpf_mix(stack.hash, rec->since), rec->h.tid) | 1;
	return define(c, p, &def, &stack);
}

/* Whether the BPF programs had no Ruby stack of the wait @rec, though there may be one. */
static bool began_unknown(const struct rbpf_ring_wait *rec)
{
	return rec->flags & RBPF_WAIT_BEFORE || rec->status == RBPF_NO_RUBY;
}

static int walk_if_there_is_time(struct collector *c, struct tracked_process *p,
				 const struct rbpf_ring_wait *rec, struct stacks_taken *taken,
				 uint16_t *wait, struct rbpf_waits_on *peer)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (p->n_sleepers >= MAX_SLEEPERS ||
	    c->sleepers_ns > SLEEPERS_NS + (now - c->began_ns) / SLEEPERS_PART)
		return 0;
	r = walk_sleeping(c, p, rec, taken, wait, peer);
	c->sleepers_ns += clock_ns(CLOCK_MONOTONIC) - now;
	return r;
}

/* ---- waits ---- */

/* The stacks of a wait that goes on: the table of stacks may forget them before it ends. */
struct wait_stacks {
	struct sample_stack blocked, queued, runnable; /* queued: for the GVL */
	uint32_t request;			       /* id in the recording; 0: none */
};

void waits_ids(struct tracked_thread *t, id_fn *fn, void *arg)
{
	if (!t->wait)
		return;
	fn(arg, ID_STACK, &t->wait->blocked.stack);
	fn(arg, ID_STACK, &t->wait->queued.stack);
	fn(arg, ID_STACK, &t->wait->runnable.stack);
	fn(arg, ID_REQUEST, &t->wait->request);
}

/* The stack of @taken where the thread waits for @wait. */
static int wait_stack(struct collector *c, struct tracked_process *p,
		      const struct stacks_taken *taken, enum rbpf_wait wait, bool with_ruby,
		      struct sample_stack *ret)
{
	struct stacks_taken waits = *taken;

	waits.wait = 1 + (uint32_t)wait;
	return stack_table_of_sample(&c->stacks, c->sink, p, &waits, with_ruby, ret);
}

static struct stacks_taken taken_of(const struct rbpf_ring_wait *rec)
{
	return (struct stacks_taken) {
		.ruby = rec->stack,
		.native = rec->native,
		.status = rec->status,
		.flags = rec->flags,
		.on = &rec->on,
	};
}

/* Whether a thread of @p that waits as @wait says can be put into the queue for the GVL meanwhile.
 */
static bool may_be_queued(const struct tracked_process *p, uint16_t wait)
{
	return wait == RBPF_WAIT_LOCK && p->vm && p->vm->walk.flags & RBPF_LAYOUT_RUNS_EARLY;
}

/*
 * What is kept of the wait @rec of @t. When it first goes on all stacks are made: it can become
 * runnable at any time.
 */
static int keep_wait(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		     const struct rbpf_ring_wait *rec, bool with_ruby)
{
	struct stacks_taken taken = taken_of(rec);
	struct rbpf_waits_on peer;
	uint16_t wait = rec->wait;
	int r = 0;

	if (t->wait && t->wait_ns == rec->since)
		return 0;
	t->wait_ns = 0;
	if (!(rec->flags & RBPF_WAIT_OPEN))
		return 0;
	if (!t->wait)
		t->wait = calloc(1, sizeof(*t->wait));
	if (!t->wait)
		return -ENOMEM;
	t->wait->queued = (struct sample_stack) { 0 };
	peer = rec->on;
	taken.on = &peer;
	if (rec->flags & RBPF_WAIT_BEFORE || (p->vm && began_unknown(rec)))
		r = walk_if_there_is_time(c, p, rec, &taken, &wait, &peer);
	if (!r)
		r = wait_stack(c, p, &taken, wait, with_ruby, &t->wait->blocked);
	if (!r && may_be_queued(p, wait))
		r = wait_stack(c, p, &taken, RBPF_WAIT_GVL, with_ruby, &t->wait->queued);
	if (!r)
		r = wait_stack(c, p, &taken, RBPF_WAIT_CPU, with_ruby, &t->wait->runnable);
	if (!r)
		r = request_table_of_sample(&c->requests, c->sink, t, rec->request,
					    process_request_rule(p, &t->wait->blocked),
					    &t->wait->request);
	/* If no Ruby was found in the process yet, it is walked with the next record of it. */
	if (!r && (p->vm || !began_unknown(rec)))
		t->wait_ns = rec->since;
	return r;
}

/*
 * The stack that is kept of the wait @rec of @t where it waits for @wait; NULL: none is. A Ruby
 * that was found since may have its threads queued.
 */
static const struct sample_stack *kept_stack(const struct tracked_thread *t,
					     const struct rbpf_ring_wait *rec, enum rbpf_wait wait)
{
	if (!t->wait || t->wait_ns != rec->since)
		return NULL;
	if (wait == rec->wait)
		return &t->wait->blocked;
	if (wait == RBPF_WAIT_CPU)
		return &t->wait->runnable;
	return t->wait->queued.stack ? &t->wait->queued : NULL;
}

/* @sample, of thread @t, with the stack of @rec where it waits for @wait. */
static int wait_sample(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		       const struct rbpf_ring_wait *rec, enum rbpf_wait wait, bool with_ruby,
		       struct profile_sample *sample)
{
	const struct sample_stack *kept = kept_stack(t, rec, wait);
	const struct stacks_taken taken = taken_of(rec);
	struct sample_stack stack;
	int r = 0;

	if (kept) {
		stack = *kept;
		sample->request = t->wait->request;
	} else {
		r = wait_stack(c, p, &taken, wait, with_ruby, &stack);
		if (!r)
			r = request_table_of_sample(&c->requests, c->sink, t, rec->request,
						    process_request_rule(p, &stack),
						    &sample->request);
	}
	if (!r)
		r = thread_context_span(c->sink, &rec->span, &sample->span);
	if (r)
		return r;
	sample->cpu = (uint16_t)rec->h.cpu;
	sample->thread = t->id;
	sample->stack = stack.stack;
	sample->flags |= stack.flags;
	profile_count_sample(&c->totals, sample, false);
	return sink_sample(c->sink, sample);
}

/* Which edges of the wait @rec are those of the recording, of which [@from, …) is new. */
static uint16_t wait_edges(const struct collector *c, const struct rbpf_ring_wait *rec,
			   uint64_t from)
{
	uint16_t flags = 0;

	if (rec->flags & RBPF_WAIT_BEFORE && from == rec->since)
		flags |= SAMPLE_BEFORE;
	if (rec->flags & RBPF_WAIT_OPEN && c->ending_ns && rec->h.ts >= c->ending_ns)
		flags |= SAMPLE_AFTER;
	return flags;
}

/*
 * What of the wait @rec is new, from @from on: what it waited for, then perhaps for the GVL, then
 * for a CPU. @edges: of wait_edges().
 */
static int wait_parts(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		      const struct rbpf_ring_wait *rec, bool with_ruby, uint16_t edges,
		      uint64_t from)
{
	const uint64_t end = rec->h.ts, woken = rec->woken && rec->woken < end ? rec->woken : end;
	const struct {
		enum rbpf_wait wait;
		uint64_t until;
	} parts[] = { { rec->wait, rec->ready && rec->ready < woken ? rec->ready : woken },
		      { RBPF_WAIT_GVL, woken },
		      { RBPF_WAIT_CPU, end } };
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_SIZE(parts); i++) {
		const uint64_t until = parts[i].until;
		uint16_t flags = edges;

		if (until <= from)
			continue;
		if (until < end)
			flags &= (uint16_t)~SAMPLE_AFTER;
		edges &= (uint16_t)~SAMPLE_BEFORE;
		r = wait_sample(c, p, t, rec, parts[i].wait, with_ruby,
				&(struct profile_sample) { .ts = until,
							   .value = until - from,
							   .flags = flags,
							   .event = RBPF_EVENT_WAIT });
		from = until;
	}
	return r;
}

/* What others waited meanwhile for what the thread had: @ns of @event. */
static int wait_caused(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		       const struct rbpf_ring_wait *rec, bool with_ruby, enum rbpf_event event,
		       uint64_t ns)
{
	if (!ns)
		return 0;
	return wait_sample(c, p, t, rec, rec->wait, with_ruby,
			   &(struct profile_sample) {
				   .ts = rec->h.ts, .value = ns, .event = (uint16_t)event });
}

/*
 * Records of one wait overlap, as a wait that goes on is sent again: what is in the recording
 * already is left out.
 */
int waits_handle(struct collector *c, struct tracked_process *p, const struct rbpf_ring_wait *rec,
		 bool with_ruby)
{
	struct tracked_thread *t;
	uint64_t from;
	int r;

	r = samples_thread(c, p, (pid_t)rec->h.tid, rec->comm, &t);
	if (!r)
		r = keep_wait(c, p, t, rec, with_ruby);
	if (r)
		return r;
	from = rec->since > t->waits_until_ns ? rec->since : t->waits_until_ns;
	if (rec->h.ts > t->waits_until_ns)
		t->waits_until_ns = rec->h.ts;
	r = wait_parts(c, p, t, rec, with_ruby, wait_edges(c, rec, from), from);
	if (!r)
		r = wait_caused(c, p, t, rec, with_ruby, RBPF_EVENT_GVL, rec->caused);
	if (!r)
		r = wait_caused(c, p, t, rec, with_ruby, RBPF_EVENT_LOCK, rec->lock_caused);
	return r;
}
