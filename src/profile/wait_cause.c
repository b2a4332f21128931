/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/wait_cause.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/idle_pattern.h"
#include "profile/profile.h"
#include "profile/reason.h"
#include "profile/reserve.h"

/*
 * Methods that wait in futex(2), by their labels, and for what; what else waits there is a lock.
 * One of the threads of a Ruby that wait in this way does so in poll(2), for signals, which come
 * through a pipe (up to 3.2; thread_pthread.c, native_ppoll_sleep()).
 */
static const struct {
	const char *label;
	enum frame_reason reason;
} methods[] = {
	{ "Kernel#sleep", REASON_WAIT_TIMER },
	{ "Kernel.sleep", REASON_WAIT_TIMER },
	{ "Thread.stop", REASON_WAIT_TIMER },
	{ "Thread::Mutex#sleep", REASON_WAIT_TIMER }, /* that of a ConditionVariable is none */
	{ "Thread::Mutex#lock", REASON_WAIT_LOCK },
	{ "Thread::Mutex#synchronize", REASON_WAIT_LOCK },
	{ "Thread::ConditionVariable#wait", REASON_WAIT_LOCK },
	{ "Thread::Queue#pop", REASON_WAIT_LOCK },
	{ "Thread::SizedQueue#pop", REASON_WAIT_LOCK },
	{ "Thread::SizedQueue#push", REASON_WAIT_LOCK },
	{ "Thread#join", REASON_WAIT_JOIN },
	{ "Thread#value", REASON_WAIT_JOIN },
	{ "Monitor#enter", REASON_WAIT_LOCK },
	{ "Monitor#synchronize", REASON_WAIT_LOCK },
	{ "Monitor#wait_for_cond", REASON_WAIT_LOCK },
	{ "Kernel#`", REASON_WAIT_CHILD },
	{ "Kernel#system", REASON_WAIT_CHILD },
	{ "Process.wait", REASON_WAIT_CHILD },
	{ "Process.wait2", REASON_WAIT_CHILD },
	{ "Process.waitall", REASON_WAIT_CHILD },
	{ "Process.waitpid", REASON_WAIT_CHILD },
	{ "Process.waitpid2", REASON_WAIT_CHILD },
	{ "Process::Status.wait", REASON_WAIT_CHILD },
	{ "Addrinfo.getaddrinfo", REASON_WAIT_NETWORK },
	{ "Addrinfo#getnameinfo", REASON_WAIT_NETWORK },
	{ "IPSocket.getaddress", REASON_WAIT_NETWORK },
	{ "Socket.getaddrinfo", REASON_WAIT_NETWORK },
	{ "Socket.getnameinfo", REASON_WAIT_NETWORK },
	{ "TCPSocket#initialize", REASON_WAIT_NETWORK },
	{ "TCPSocket.gethostbyname", REASON_WAIT_NETWORK },
};

/*
 * Files of servers and pools, by the end of their paths: a thread is idle if the nearest method in
 * Ruby that is no part of Ruby itself stands in one of them.
 */
static const char *const idle_files[] = {
	"/puma/cluster.rb",
	"/puma/cluster/worker.rb",
	"/puma/launcher.rb",
	"/puma/reactor.rb",
	"/puma/server.rb",
	"/puma/single.rb",
	"/puma/thread_pool.rb",
	"/resque/worker.rb",
	"/sidekiq/cli.rb",
	"/sidekiq/launcher.rb",
	"/sidekiq/manager.rb",
	"/sidekiq/scheduled.rb",
	"/unicorn/http_server.rb",
	"/unicorn/worker.rb",
	"/webrick/httpserver.rb",
	"/webrick/server.rb",
	"/concurrent/executor/ruby_thread_pool_executor.rb",
	"/concurrent-ruby/concurrent/executor/ruby_thread_pool_executor.rb",
};

/*
 * Methods, and blocks in them, that fetch the next job or wait until it is time: whatever they call
 * to do so.
 */
static const char *const idle_methods[] = {
	"<class:RubyThreadLocalVar>", /* of concurrent-ruby */
	"ActiveRecord::ConnectionAdapters::ConnectionPool::Reaper.spawn_thread",
	"Concurrent::TimerSet#process_tasks", /* gives them to a pool */
	"Puma::Client#reset",		      /* whose connection stays open for the next request */
	"Sidekiq::BasicFetch#retrieve_work",
	"Sidekiq::Scheduled::Poller#initial_wait",
	"Sidekiq::Scheduled::Poller#wait",
	"Timeout.create_timeout_thread",
	"GoodJob::Notifier#wait_for_notify",
	"SolidQueue::Processes::Interruptible#interruptible_sleep",
};

/*
 * Loops that wait for something to do, and call what they do: a thread is idle if the nearest
 * method in Ruby that is no part of Ruby itself is one of these, or a block in it.
 */
static const char *const idle_loops[] = {
	"Bunny::ConsumerWorkPool#run_loop",
	"Datadog::Core::Workers::IntervalLoop#perform_loop",
	"Delayed::Worker#start",
	"NewRelic::Agent::EventLoop#wait_to_run",
	"OpenTelemetry::SDK::Trace::Export::BatchSpanProcessor#work",
	"PhusionPassenger::RequestHandler::ThreadHandler#accept_and_process_next_request",
	"Que::Worker#work_loop",
	"Rack::Timeout::Scheduler#run_loop!",
	"StatsD::Instrument::BatchedSink::Dispatcher#flush",
};

/*
 * What is asked for each wait is found out once for each stack and frame: a recording can have a
 * million waits upon one deep stack, and names of a megabyte.
 */
struct causes {
	const struct profile *p;
	uint32_t *methods; /* by stack: that of its innermost method; 0: it has none; NO_RUBY */
	uint8_t *known;	   /* by frame: FRAME_LOOKED_AT and so on; 0: not looked at yet */
	const bool *by_pattern; /* by stack: idle by the user's pattern; NULL: there is none */
};

/*
 * There is none, for the thread runs no Ruby: it is the VM's timer, or kept for the next Ruby
 * thread.
 */
#define NO_RUBY PROFILE_NONE

enum {
	FRAME_LOOKED_AT = 1,
	FRAME_RUBYS_OWN = 2,
	FRAME_IN_IDLE_FILE = 4,
	FRAME_OF_IDLE_METHOD = 8,
	FRAME_OF_IDLE_LOOP = 16,
};

static const struct profile_frame *frame_of(const struct profile *p, uint32_t stack)
{
	return &p->frames[p->stacks[stack].frame];
}

/* The id of a stack is above that of its callers'. */
static void find_methods(struct causes *c)
{
	for (size_t i = 1; i < c->p->n_stacks; i++) {
		const struct profile_frame *f = frame_of(c->p, (uint32_t)i);
		uint32_t outer = c->methods[c->p->stacks[i].parent];

		if (f->kind == FRAME_RUBY || f->kind == FRAME_CFUNC)
			c->methods[i] = (uint32_t)i;
		else if (!outer &&
			 (f->reason == REASON_NATIVE_THREAD || f->reason == REASON_THREAD_ENDS))
			c->methods[i] = NO_RUBY;
		else
			c->methods[i] = outer;
	}
}

/* The innermost method of @stack, or of its callers; 0: none. */
static uint32_t find_method(const struct causes *c, uint32_t stack)
{
	return c->methods[stack] == NO_RUBY ? 0 : c->methods[stack];
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

static bool is_one_of(const char *s, const char *const *list, size_t n,
		      bool (*fits)(const char *s, const char *of))
{
	for (size_t i = 0; i < n; i++)
		if (fits(s, list[i]))
			return true;
	return false;
}

/* Whether @label is that of method @name, or of a block in it. */
static bool is_of_method(const char *label, const char *name)
{
	size_t len = strlen(label), n = strlen(name);

	return ends_with(label, name) &&
	       (len == n || (len > n + 4 && !strncmp(label + len - n - 4, " in ", 4)));
}

/* Ruby's own files that stand between a pool and what it waits in. */
static bool is_rubys_own(const char *file)
{
	return !strncmp(file, "<internal:", strlen("<internal:")) || ends_with(file, "/monitor.rb");
}

/* How far out the methods are looked for that fetch a job: what they call is not deep. */
#define IDLE_DEPTH 40

static uint8_t look_at(struct causes *c, uint32_t frame)
{
	const struct profile_frame *f = &c->p->frames[frame];
	const char *file = profile_str(c->p, f->file), *name = profile_str(c->p, f->name);
	uint8_t *known = &c->known[frame];

	if (*known)
		return *known;
	*known = FRAME_LOOKED_AT;
	if (is_rubys_own(file))
		*known |= FRAME_RUBYS_OWN;
	if (is_one_of(file, idle_files, ARRAY_SIZE(idle_files), ends_with))
		*known |= FRAME_IN_IDLE_FILE;
	if (is_one_of(name, idle_methods, ARRAY_SIZE(idle_methods), is_of_method))
		*known |= FRAME_OF_IDLE_METHOD;
	if (is_one_of(name, idle_loops, ARRAY_SIZE(idle_loops), is_of_method))
		*known |= FRAME_OF_IDLE_LOOP;
	return *known;
}

static bool is_idle(struct causes *c, uint32_t stack)
{
	bool nearest = true;

	if (c->methods[stack] == NO_RUBY || (c->by_pattern && c->by_pattern[stack]))
		return true;
	stack = find_method(c, stack);
	for (int i = 0; stack && i < IDLE_DEPTH; i++) {
		uint8_t known = look_at(c, c->p->stacks[stack].frame);

		if (frame_of(c->p, stack)->kind == FRAME_RUBY && !(known & FRAME_RUBYS_OWN)) {
			if (nearest && known & (FRAME_IN_IDLE_FILE | FRAME_OF_IDLE_LOOP))
				return true;
			nearest = false;
		}
		if (known & FRAME_OF_IDLE_METHOD)
			return true;
		stack = find_method(c, c->p->stacks[stack].parent);
	}
	return false;
}

/*
 * What the innermost method of @stack waits for in futex(2), or in poll(2); @seen if nothing tells.
 */
static enum frame_reason reason_of_method(const struct causes *c, uint32_t stack,
					  enum frame_reason seen)
{
	const struct profile *p = c->p;
	uint32_t caller;
	const char *label;

	stack = find_method(c, stack);
	if (!stack)
		return seen;
	label = profile_str(p, frame_of(p, stack)->name);
	caller = find_method(c, p->stacks[stack].parent);
	/* In futex(2) without descriptors; otherwise in poll(2) or the like, and for them. */
	if (!strcmp(label, "IO.select") || !strcmp(label, "Kernel#select"))
		return seen == REASON_WAIT_LOCK ? REASON_WAIT_TIMER : seen;
	if (!strcmp(label, "Thread::Mutex#sleep") && caller &&
	    !strcmp(profile_str(p, frame_of(p, caller)->name), "Thread::ConditionVariable#wait"))
		return REASON_WAIT_LOCK;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(label, methods[i].label))
			return methods[i].reason;
	return seen;
}

/* Whether a pool may wait in this way for something to do. */
static bool may_be_idle(enum frame_reason reason)
{
	switch (reason) {
	case REASON_WAIT_LOCK:
	case REASON_WAIT_NETWORK:
	case REASON_WAIT_PIPE:
	case REASON_WAIT_TIMER:
	case REASON_WAIT_CHILD:
	case REASON_WAIT_OTHER:
		return true;
	default:
		return false;
	}
}

static enum frame_reason cause(struct causes *c, uint32_t stack)
{
	const struct profile *p = c->p;
	enum frame_reason reason = frame_of(p, stack)->reason;
	uint32_t parent = p->stacks[stack].parent;

	if (reason_is_of_gvl(reason) || !parent)
		return reason;
	if (may_be_idle(reason) && is_idle(c, parent))
		return REASON_WAIT_IDLE;
	if (reason != REASON_WAIT_LOCK && reason != REASON_WAIT_PIPE && reason != REASON_WAIT_OTHER)
		return reason;
	return reason_of_method(c, parent, reason);
}

struct profile_frame wait_cause_frame(uint32_t name, enum frame_reason reason)
{
	return (struct profile_frame) {
		.kind = FRAME_WAIT, .name = name, .module = PROFILE_NONE, .reason = reason
	};
}

/* A frame that has @reason. */
static int add_frame(struct profile *p, enum frame_reason reason, uint32_t *ret)
{
	uint32_t name;
	const char *label = frame_reason_label(reason);
	int r;

	r = intern_add(&p->strings, label, strlen(label), &name, NULL);
	if (!r)
		r = RESERVE_ONE(p->frames, p->n_frames, p->cap_frames);
	if (r)
		return r;
	*ret = (uint32_t)p->n_frames;
	p->frames[p->n_frames++] = wait_cause_frame(name, reason);
	return 0;
}

int wait_causes_find(const struct profile *p, const regex_t *idle, uint8_t **ret)
{
	_cleanup_free_ uint32_t *of_stacks = calloc(p->n_stacks + 1, sizeof(*of_stacks));
	_cleanup_free_ uint8_t *known = calloc(p->n_frames + 1, sizeof(*known));
	struct causes c = { .p = p, .methods = of_stacks, .known = known };
	_cleanup_free_ bool *by_pattern = NULL;
	uint8_t *reasons = calloc(p->n_stacks + 1, sizeof(*reasons));

	if (!of_stacks || !known || !reasons ||
	    (idle && idle_pattern_stacks(p, idle, &by_pattern))) {
		free(reasons);
		return -ENOMEM;
	}
	c.by_pattern = by_pattern;
	find_methods(&c);
	for (size_t i = 1; i < p->n_stacks; i++)
		if (frame_of(p, (uint32_t)i)->kind == FRAME_WAIT)
			reasons[i] = (uint8_t)cause(&c, (uint32_t)i);
	*ret = reasons;
	return 0;
}

int wait_causes(struct profile *p, const regex_t *idle)
{
	_cleanup_free_ uint8_t *reasons = NULL;
	uint32_t frames[FRAME_REASON_COUNT], *frame;
	int r = wait_causes_find(p, idle, &reasons);

	for (size_t i = 0; i < FRAME_REASON_COUNT; i++)
		frames[i] = PROFILE_NONE;
	for (size_t i = 1; i < p->n_stacks && !r; i++) {
		if (!reasons[i] || reasons[i] == frame_of(p, (uint32_t)i)->reason)
			continue;
		frame = &frames[reasons[i]];
		if (*frame == PROFILE_NONE)
			r = add_frame(p, reasons[i], frame);
		if (!r)
			p->stacks[i].frame = *frame;
	}
	return r;
}
