/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "dump/frames.h"
#include "dump/locks.h"
#include "dump/requests.h"
#include "dump/waits_on.h"
#include "engine/engine.h"
#include "native/native_user_walk.h"
#include "ruby/gvl.h"
#include "ruby/mutex.h"
#include "ruby/not_found.h"
#include "ruby/thread_ecs.h"
#include "ruby/vm.h"
#include "ruby/walk.h"
#include "symbol/resolver.h"
#include "target/process.h"
#include "target/syscalls.h"

#define STACK_ATTEMPTS	 50
#define THREAD_ATTEMPTS	 10 /* of all of these */
#define REQUEST_ATTEMPTS 4  /* of all of those, until its request is known … */
#define NAME_ATTEMPTS	 16 /* … and its frames have names: 4 are too few on a busy machine */

struct dump {
	const struct process *process; /* not owned */
	struct engine *engine;	       /* not owned */
	struct ruby_vm vm;
	struct resolver *resolver;
	struct dump_requests requests;
	struct native_user_walk *here; /* NULL: native stacks are not read */
	struct rbpf_task *tasks;
	size_t n_tasks;
	struct rbpf_thread *threads; /* when registers were last read */
	size_t n_threads;
};

/*
 * Read the stack until it holds still. *@changing tells that it did not. @request: of that stack;
 * its .request is 0 if there is none, or it did not hold still.
 */
static int read_stack(const struct dump *d, uint64_t ec, struct ruby_stack *ret, bool *changing,
		      struct rbpf_ring_request *request)
{
	struct rbpf_ring_request last = { 0 };
	struct ruby_stack before, now;
	int attempt, r;

	r = dump_requests_walk(&d->requests, ec, &before, &last);
	for (attempt = 0; !r && attempt < STACK_ATTEMPTS; attempt++) {
		r = dump_requests_walk(&d->requests, ec, &now, request);
		if (r)
			break;
		*changing = now.hash != before.hash || now.status != before.status;
		ruby_stack_deinit(&before);
		if (!*changing || attempt == STACK_ATTEMPTS - 1) {
			if (request->request != last.request)
				request->request = 0;
			*ret = now;
			return 0;
		}
		before = now;
		last = *request;
	}
	return r;
}

/* What was read of a thread, not named yet. */
struct readings {
	struct ruby_stack ruby;
	struct native_stack native;
	struct dump_doing doing;
	bool has_ec, has_native, changing;
	bool waits_for_gvl;
	struct waits_on on;
	struct rbpf_ring_request request; /* .request is 0: none, or not known */
	uint64_t thread, self;		  /* the rb_thread_t; self of the innermost frame; or 0 */
};

static void readings_deinit(struct readings *r)
{
	ruby_stack_deinit(&r->ruby);
	native_stack_deinit(&r->native);
	*r = (struct readings) { .on = WAITS_ON_NOTHING };
}

/* ---- reading ---- */

/* Read the registers of all threads. */
static int read_registers(struct dump *d, struct err *err)
{
	struct rbpf_thread *threads;
	size_t n;
	int r;

	r = engine_read_registers(d->engine, d->process->pid, &threads, &n, err);
	if (r)
		return r;
	free(d->threads);
	d->threads = threads;
	d->n_threads = n;
	return 0;
}

/* Thread @tid as registers were last read; false: it had ended. */
static bool find_thread(const struct dump *d, uint32_t tid, struct rbpf_thread *ret)
{
	size_t i;

	for (i = 0; i < d->n_threads; i++) {
		if (d->threads[i].task.tid != tid)
			continue;
		*ret = d->threads[i];
		return true;
	}
	return false;
}

/* Whether the thread has not run between the two readings of its registers. */
static bool has_not_run(const struct rbpf_thread *before, const struct rbpf_thread *after)
{
	return !before->on_cpu && !after->on_cpu && before->has_regs == after->has_regs &&
	       before->task.runtime == after->task.runtime &&
	       (!after->has_regs || !memcmp(&before->regs, &after->regs, sizeof(before->regs)));
}

static int read_once(const struct dump *d, uint64_t tp, const struct rbpf_thread *thread,
		     struct readings *ret)
{
	uint64_t ec = 0;
	int r = 0;

	ret->has_ec = !ruby_thread_ec(&d->vm, tp, &ec);
	if (ret->has_ec) {
		ret->waits_for_gvl = ruby_gvl_waits(&d->vm, ec) == 1;
		memory_read_u64(&d->vm.mem, ec + d->vm.layout.ec_thread_ptr, &ret->thread);
		ruby_innermost_self(&d->vm, ec, &ret->self);
		r = read_stack(d, ec, &ret->ruby, &ret->changing, &ret->request);
	}
	if (r || !thread || !thread->has_regs)
		return r;
	ret->has_native = true;
	return native_user_walk_run(d->here, ret->has_ec ? ec : 0, &thread->regs, &ret->native);
}

/* A thread before or after its stack is read. */
struct sighting {
	bool alive;
	struct thread_moment moment;
	struct rbpf_thread thread; /* with native stacks, and if it runs or waits for a CPU */
};

/*
 * Look at a thread; @first: before its stack is read for the first time. Then registers that were
 * read for the thread before it are good enough: if it has run since, that shows afterwards. To
 * read them takes as long as the process has threads.
 */
static void look_at_thread(struct dump *d, pid_t tid, bool first, struct sighting *ret)
{
	*ret = (struct sighting) { .alive = false };
	if (thread_look(d->process->pid, tid, &ret->moment))
		return;
	ret->alive = true;
	if (!d->here && ret->moment.state != 'R')
		return;
	if (!d->here || !first)
		ret->alive = !read_registers(d, NULL);
	ret->alive = ret->alive && find_thread(d, (uint32_t)tid, &ret->thread);
}

/* Whether it has not run between the two; with native stacks nobody has changed its registers. */
static bool stood_still(const struct dump *d, const struct sighting *before,
			const struct sighting *after)
{
	if (before->moment.state != after->moment.state ||
	    before->moment.switches != after->moment.switches)
		return false;
	if (d->here || after->moment.state == 'R')
		return has_not_run(&before->thread, &after->thread);
	return true;
}

/* What the kernel says of a thread that was seen before its stack was read and after it. */
static struct dump_doing doing_of(const struct dump *d, const struct sighting *before,
				  const struct sighting *after)
{
	struct dump_doing doing = { .state = after->alive ? after->moment.state : 0,
				    .switches = after->moment.switches,
				    .still = after->alive && stood_still(d, before, after) };

	if (doing.state == 'R') {
		doing.on_cpu = before->thread.on_cpu || after->thread.on_cpu;
		doing.queued = doing.still;
	}
	return doing;
}

/* The system call in which thread @tid has been all the while that it was read. */
static void read_syscall(const struct dump *d, pid_t tid, struct readings *ret)
{
	struct thread_syscall call;

	if (!ret->doing.still || ret->doing.state == 'R' ||
	    thread_syscall(d->process->pid, tid, &call))
		return;
	ret->doing.syscall = syscall_name(call.number);
	ret->on = waits_on_read(&d->vm.mem, &call);
}

/*
 * Read the stacks of a thread, again if it has run meanwhile. One that runs all the time has a
 * Ruby stack nevertheless, if that holds still. Returns 0 or -ENOMEM.
 */
static int read_thread(struct dump *d, const struct rbpf_task *task, struct readings *ret)
{
	const pid_t tid = (pid_t)task->tid;
	struct sighting before, after;
	bool done = false;
	int attempt, r = 0;

	look_at_thread(d, tid, true, &before);
	for (attempt = 0; attempt < THREAD_ATTEMPTS && before.alive && !done && !r; attempt++) {
		readings_deinit(ret);
		r = read_once(d, task->thread_pointer, d->here ? &before.thread : NULL, ret);
		look_at_thread(d, tid, false, &after);
		ret->doing = doing_of(d, &before, &after);
		/* One that is in the queue, but was woken to look around, waits for a CPU. */
		ret->doing.waits_for_gvl = ret->doing.still && ret->doing.state != 'R' &&
					   ret->waits_for_gvl;
		done = ret->doing.still ||
		       (!d->here && before.moment.state == 'R' && after.moment.state == 'R');
		before = after;
	}
	read_syscall(d, tid, ret);
	ret->changing = ret->changing || !done;
	return r;
}

/* The names of what was read in era @sampled; *@ruby: the Ruby stack. Returns 0 or -ENOMEM. */
static int name_frames(const struct dump *d, const struct stack_era *sampled,
		       const struct readings *readings, struct dump_thread *t,
		       struct dump_ruby *ruby)
{
	int r;

	ruby->resolver = d->resolver;
	resolver_revalidate(d->resolver);
	r = resolver_stack(d->resolver, sampled, readings->ruby.frames, readings->ruby.n_frames,
			   NULL, &ruby->symbols, &ruby->n);
	return r ? r : dump_frames(d->here, ruby, &readings->native, &t->frames, &t->n_frames);
}

static void describe_thread(const struct dump *d, struct dump_thread *t)
{
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	char comm[16] = "";

	thread_name(d->process->pid, t->tid, comm);
	utf8_sanitise(&clean, comm, strlen(comm));
	snprintf(t->name, sizeof(t->name), "%s", buf_str(&clean));
}

static void thread_deinit(struct dump_thread *t)
{
	free(t->frames);
	dump_request_deinit(&t->request);
	*t = (struct dump_thread) { .tid = 0 };
}

/* Fill @t, all zero; *@known: with its request, if it is in one. */
static int read_and_name_once(struct dump *d, const struct rbpf_task *task, struct dump_thread *t,
			      bool *known)
{
	struct readings readings _cleanup_(readings_deinit) = { .on = WAITS_ON_NOTHING };
	struct stack_era sampled = { .gc_era = 0 };
	struct dump_ruby ruby;
	uint32_t i;
	int r;

	t->tid = (pid_t)task->tid;
	/* No collection since before the stack was read: what it leads to is what was there. */
	ruby_vm_gc_era(&d->vm, &sampled.gc_era, &sampled.gc_major);
	describe_thread(d, t);
	r = read_thread(d, task, &readings);
	if (!r)
		r = name_frames(d, &sampled, &readings, t, &ruby);
	if (!r)
		r = dump_requests_find(&d->requests, &sampled, &readings.request, &ruby,
				       &t->request, known);
	if (r)
		return r;
	t->has_ruby = readings.has_ec && readings.ruby.status == RBPF_OK;
	t->has_native = readings.has_native;
	t->changing = readings.changing;
	t->doing = readings.doing;
	dump_doing_conclude(&t->doing, t->frames, t->n_frames);
	t->on = (struct waits_on)WAITS_ON_NOTHING;
	if (dump_waits_on_counts(&t->doing))
		t->on = readings.on;
	t->thread = readings.thread;
	t->mutex = locks_waited_for(&d->vm, &t->doing, readings.self);
	t->end = readings.native.end;
	for (i = 0; i < readings.native.n_words; i++)
		t->n_gaps += readings.native.words[i] < RBPF_NATIVE_END_COUNT;
	return 0;
}

static bool all_named(const struct dump_thread *t)
{
	for (size_t i = 0; i < t->n_frames; i++)
		if (t->frames[i].kind == FRAME_UNKNOWN)
			return false;
	return true;
}

/*
 * Again if its request could not be told: the first time nobody knows which frames tell one. And
 * again if a frame has no name: if garbage was collected between reading the stack and the names,
 * these prove nothing of that stack, but they do of one that is read later (code_proof.h).
 */
static int read_and_name(struct dump *d, const struct rbpf_task *task, struct dump_thread *ret)
{
	struct dump_thread t = { .tid = 0 };
	bool known = false, done = false;
	int attempt, r = 0;

	for (attempt = 1; attempt <= NAME_ATTEMPTS && !done && !r; attempt++) {
		thread_deinit(&t);
		r = read_and_name_once(d, task, &t, &known);
		done = (known || attempt >= REQUEST_ATTEMPTS) && all_named(&t);
	}
	if (r)
		thread_deinit(&t);
	else
		*ret = t;
	return r;
}

/* Whether @now is of the thread as it was when its stack was read. */
static bool is_still_so(const struct dump_doing *doing, const struct rbpf_thread *now)
{
	if (doing->switches != now->switches)
		return false;
	if (doing->state != 'R')
		return doing->still && !now->on_cpu && !now->queued;
	return doing->queued ? now->queued : doing->on_cpu && now->on_cpu;
}

/* How long each has done what it does, and which are kept from it. Both lists are by tid. */
static void add_states(struct dump *d, struct dump_threads *threads)
{
	size_t i, j = 0;

	if (read_registers(d, NULL))
		return;
	for (i = 0; i < threads->n; i++) {
		struct dump_thread *t = &threads->v[i];

		while (j < d->n_threads && d->threads[j].task.tid < (uint32_t)t->tid)
			j++;
		if (j < d->n_threads && d->threads[j].task.tid == (uint32_t)t->tid &&
		    is_still_so(&t->doing, &d->threads[j])) {
			t->doing.for_ns = d->threads[j].for_ns;
			t->doing.kept = d->threads[j].kept;
		}
	}
}

int dump_read_threads(struct dump *d, struct dump_threads *ret)
{
	struct dump_threads threads = { .v = calloc(d->n_tasks + 1, sizeof(*threads.v)) };
	int r = threads.v ? 0 : -ENOMEM;

	while (!r && threads.n < d->n_tasks) {
		r = read_and_name(d, &d->tasks[threads.n], &threads.v[threads.n]);
		threads.n += !r;
	}
	if (r) {
		dump_threads_deinit(&threads);
		return r;
	}
	add_states(d, &threads);
	locks_find_owners(&d->vm, &threads);
	locks_find_gvl_owners(&d->vm, &threads);
	*ret = threads;
	return 0;
}

void dump_threads_deinit(struct dump_threads *t)
{
	for (size_t i = 0; i < t->n; i++)
		thread_deinit(&t->v[i]);
	free(t->v);
	*t = (struct dump_threads) { .n = 0 };
}

const char *dump_ruby_version(const struct dump *d)
{
	return d->vm.binary.version;
}

bool dump_has_native(const struct dump *d)
{
	return d->here;
}

/* ---- attaching ---- */

static int attach(struct dump *d, const struct ruby_attach_options *opts,
		  const struct request_rules *rules, bool native, struct err *err)
{
	struct ruby_attach_options with_tasks = *opts;
	pid_t pid = d->process->pid;
	int r;

	r = engine_read_threads(d->engine, pid, &d->tasks, &d->n_tasks, err);
	if (r)
		return r;
	with_tasks.tasks = d->tasks;
	with_tasks.n_tasks = d->n_tasks;
	r = ruby_vm_attach(pid, &with_tasks, &d->vm, err);
	if (r == -ENOENT)
		ruby_not_found(d->process, opts->worker, err);
	if (!r && resolver_new(&d->vm, &d->resolver))
		r = err_oom(err);
	if (!r)
		dump_requests_init(&d->requests, rules, &d->vm, d->resolver);
	if (!r && native)
		r = err_code(err, native_user_walk_new(&d->vm, &d->here));
	if (!r && native)
		r = read_registers(d, err);
	return r;
}

int dump_open(struct engine *engine, const struct process *process,
	      const struct ruby_attach_options *opts, const struct request_rules *rules,
	      bool native, struct dump **ret, struct err *err)
{
	struct dump *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_oom(err);
	d->engine = engine;
	d->process = process;
	r = attach(d, opts, rules, native, err);
	if (r)
		dump_close(d);
	else
		*ret = d;
	return r;
}

void dump_close(struct dump *d)
{
	if (!d)
		return;
	native_user_walk_free(d->here);
	dump_requests_deinit(&d->requests);
	resolver_free(d->resolver);
	ruby_vm_deinit(&d->vm);
	free(d->tasks);
	free(d->threads);
	free(d);
}
