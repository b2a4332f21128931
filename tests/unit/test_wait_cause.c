/* SPDX-License-Identifier: GPL-2.0-only */
/* What waits are, from the methods that wait. */
#include <criterion/criterion.h>
#include <regex.h>

#include "base/array.h"
#include "profile/reason.h"
#include "profile/wait_cause.h"
#include "support/profile_builder.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(wait_cause, .init = setup, .fini = teardown);

static uint32_t push(uint32_t stack, enum frame_kind kind, const char *name, const char *file)
{
	return builder_stack(&b, stack, builder_frame(&b, kind, name, file, 1, 1));
}

#define APP  "/srv/shop/"
#define GEM  "/usr/local/bundle/gems/"
#define RUBY "/usr/local/lib/ruby/3.3.0/"

/* What the waits are with --idle @pattern. */
static void find_causes(const char *pattern)
{
	regex_t re;

	cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	cr_assert_eq(wait_causes(&b.out.profile, &re), 0);
	regfree(&re);
}

/* A wait of @stack in the C method @method, seen as one for @reason. */
static uint32_t wait_in(uint32_t stack, const char *method, enum frame_reason reason)
{
	return builder_reason(&b, push(stack, FRAME_CFUNC, method, "/x.rb"), reason);
}

static enum frame_reason reason_of(uint32_t stack)
{
	return b.out.profile.frames[b.out.profile.stacks[stack].frame].reason;
}

/* A C method that application code calls and that waits in futex(2). */
Test(wait_cause, methods)
{
	static const struct {
		const char *method;
		enum frame_reason reason;
	} cases[] = {
		{ "Kernel#sleep", REASON_WAIT_TIMER },
		{ "Thread::Mutex#lock", REASON_WAIT_LOCK },
		{ "Thread::Mutex#sleep", REASON_WAIT_TIMER },
		{ "Thread::Queue#pop", REASON_WAIT_LOCK },
		{ "Thread#join", REASON_WAIT_JOIN },
		{ "Thread#value", REASON_WAIT_JOIN },
		{ "Process.wait", REASON_WAIT_CHILD },
		{ "TCPSocket#initialize", REASON_WAIT_NETWORK },
		{ "Foo#sleep", REASON_WAIT_LOCK },
	};
	uint32_t app = push(0, FRAME_RUBY, "Foo#bar", "/app/foo.rb"), stacks[ARRAY_SIZE(cases)];
	uint32_t condition, other, signals, read;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		stacks[i] = push(app, FRAME_CFUNC, cases[i].method, "/app/foo.rb");
		stacks[i] = push(stacks[i], FRAME_NATIVE, "futex_wait", "/libc.so");
		stacks[i] = builder_reason(&b, stacks[i], REASON_WAIT_LOCK);
	}
	condition = push(app, FRAME_CFUNC, "Thread::ConditionVariable#wait", "/app/foo.rb");
	condition = push(condition, FRAME_CFUNC, "Thread::Mutex#sleep", "/app/foo.rb");
	condition = builder_reason(&b, condition, REASON_WAIT_LOCK);
	other = push(app, FRAME_CFUNC, "Kernel#sleep", "/app/foo.rb");
	other = builder_reason(&b, other, REASON_WAIT_GVL);
	/* A thread that sleeps, and is the one that signals come to; one that reads. */
	signals = builder_reason(&b, push(app, FRAME_CFUNC, "Kernel#sleep", "/app/foo.rb"),
				 REASON_WAIT_PIPE);
	read = builder_reason(&b, push(app, FRAME_CFUNC, "IO#read", "/app/foo.rb"),
			      REASON_WAIT_PIPE);
	cr_assert_eq(wait_causes(&b.out.profile, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(reason_of(stacks[i]), cases[i].reason, "%s", cases[i].method);
	cr_expect_eq(reason_of(condition), REASON_WAIT_LOCK, "it waits to be signalled");
	cr_expect_eq(reason_of(signals), REASON_WAIT_TIMER);
	cr_expect_eq(reason_of(read), REASON_WAIT_PIPE);
	cr_expect_eq(reason_of(other), REASON_WAIT_GVL, "only of futex(2) the method tells");
}

/* Pools and servers that have nothing to do; but not what is called by what they do. */
Test(wait_cause, idle)
{
	uint32_t pool = push(0, FRAME_RUBY, "block in Puma::ThreadPool#spawn_thread",
			     "/gems/puma-6.4.2/lib/puma/thread_pool.rb");
	uint32_t wait = push(pool, FRAME_CFUNC, "Thread::ConditionVariable#wait", "/x.rb");
	uint32_t app = push(pool, FRAME_RUBY, "Foo#bar", "/app/foo.rb");
	uint32_t lock = push(app, FRAME_CFUNC, "Thread::Queue#pop", "/app/foo.rb");
	uint32_t fetch = push(0, FRAME_RUBY, "Sidekiq::BasicFetch#retrieve_work", "/s/fetch.rb");
	uint32_t redis = push(fetch, FRAME_RUBY, "RedisClient#call", "/gems/redis/client.rb");
	uint32_t client = push(pool, FRAME_RUBY, "Puma::Server#process_client", "/puma/server.rb");
	uint32_t next = push(client, FRAME_RUBY, "Puma::Client#reset", "/puma/client.rb");
	uint32_t body = push(client, FRAME_RUBY, "Puma::Client#read_body", "/puma/client.rb");
	uint32_t loop = push(0, FRAME_RUBY, "block in Bunny::ConsumerWorkPool#run_loop", "/b/c.rb");
	uint32_t job = push(loop, FRAME_RUBY, "Orders#deliver", "/app/orders.rb");
	uint32_t timer = builder_reason(&b, 0, REASON_NATIVE_THREAD);
	uint32_t early = builder_reason(&b, 0, REASON_WAITED_BEFORE);
	uint32_t lost = builder_reason(&b, builder_reason(&b, 0, REASON_STACK_LOST),
				       REASON_WAIT_LOCK);
	uint32_t runs = builder_reason(&b, pool, REASON_WAIT_CPU),
		 gvl = builder_reason(&b, wait, REASON_WAIT_GVL);
	uint32_t held = builder_reason(&b, builder_reason(&b, app, REASON_GVL_HELD),
				       REASON_WAIT_TIMER);

	loop = builder_reason(&b, push(loop, FRAME_CFUNC, "Thread::Queue#pop", "/b/c.rb"),
			      REASON_WAIT_LOCK);
	job = builder_reason(&b, push(job, FRAME_CFUNC, "Thread::Queue#pop", "/app/orders.rb"),
			     REASON_WAIT_LOCK);
	wait = builder_reason(&b, wait, REASON_WAIT_LOCK);
	lock = builder_reason(&b, lock, REASON_WAIT_LOCK);
	redis = builder_reason(&b, redis, REASON_WAIT_NETWORK);
	next = builder_reason(&b, push(next, FRAME_CFUNC, "IO#wait_readable", "/puma/client.rb"),
			      REASON_WAIT_NETWORK);
	body = builder_reason(&b, push(body, FRAME_CFUNC, "IO#wait_readable", "/puma/client.rb"),
			      REASON_WAIT_NETWORK);
	timer = builder_reason(&b, timer, REASON_WAIT_PIPE);
	early = builder_reason(&b, early, REASON_WAIT_LOCK);
	cr_assert_eq(wait_causes(&b.out.profile, NULL), 0);
	cr_expect_eq(reason_of(wait), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(lock), REASON_WAIT_LOCK);
	cr_expect_eq(reason_of(redis), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(next), REASON_WAIT_IDLE, "for the next request");
	cr_expect_eq(reason_of(body), REASON_WAIT_NETWORK, "for the rest of this one");
	cr_expect_eq(reason_of(loop), REASON_WAIT_IDLE, "for the next job");
	cr_expect_eq(reason_of(job), REASON_WAIT_LOCK, "in a job");
	cr_expect_eq(reason_of(timer), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(early), REASON_WAIT_LOCK, "it may be anything");
	cr_expect_eq(reason_of(lost), REASON_WAIT_LOCK, "so may this");
	cr_expect_eq(reason_of(runs), REASON_WAIT_CPU);
	cr_expect_eq(reason_of(gvl), REASON_WAIT_GVL);
	cr_expect_eq(reason_of(held), REASON_WAIT_TIMER);
}

static uint32_t job_runner(void)
{
	uint32_t run = push(0, FRAME_RUBY, "Poller#run", APP "lib/poller.rb");

	run = push(run, FRAME_RUBY, "Kernel#loop", "<internal:kernel>");
	return push(run, FRAME_RUBY, "block in Poller#run", APP "lib/poller.rb");
}

/* In the loop itself, also through gems and Ruby's own; but not in what it calls of the program. */
Test(wait_cause, idle_by_a_pattern)
{
	const uint32_t run = job_runner();
	uint32_t redis = push(run, FRAME_RUBY, "Redis#blpop", GEM "redis-5.0.8/lib/redis.rb");
	uint32_t http = push(run, FRAME_RUBY, "Net::HTTP#start", RUBY "net/http.rb");
	uint32_t fetch = push(run, FRAME_RUBY, "Poller#fetch", APP "lib/poller.rb");
	uint32_t job = push(run, FRAME_RUBY, "Import#perform", APP "app/jobs/import.rb");
	uint32_t again = push(job, FRAME_RUBY, "Redis#blpop", GEM "redis-5.0.8/lib/redis.rb");
	uint32_t sleeps = wait_in(run, "Kernel#sleep", REASON_WAIT_LOCK);
	uint32_t pops = push(run, FRAME_RUBY, "Thread::Queue#pop", "<internal:thread_sync>");

	pops = builder_reason(&b, pops, REASON_WAIT_LOCK);
	redis = push(redis, FRAME_RUBY, "RedisClient#call", GEM "redis-client-0.22.2/lib/x.rb");
	redis = wait_in(redis, "IO#wait_readable", REASON_WAIT_NETWORK);
	http = wait_in(http, "IO#wait_readable", REASON_WAIT_NETWORK);
	fetch = wait_in(fetch, "Thread::Queue#pop", REASON_WAIT_LOCK);
	job = wait_in(job, "Kernel#sleep", REASON_WAIT_LOCK);
	again = wait_in(again, "IO#wait_readable", REASON_WAIT_NETWORK);
	find_causes("Poller#run$");
	cr_expect_eq(reason_of(sleeps), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(pops), REASON_WAIT_IDLE, "in a method of Ruby's own");
	cr_expect_eq(reason_of(redis), REASON_WAIT_IDLE, "in two gems");
	cr_expect_eq(reason_of(http), REASON_WAIT_IDLE, "in the standard library");
	cr_expect_eq(reason_of(fetch), REASON_WAIT_LOCK, "in another method of the program");
	cr_expect_eq(reason_of(job), REASON_WAIT_TIMER, "in a job");
	cr_expect_eq(reason_of(again), REASON_WAIT_NETWORK, "in a gem that a job calls");
}

/* What fetches the next job may be a method of the program, of a gem, or in C. */
Test(wait_cause, idle_in_what_fetches)
{
	const uint32_t run = job_runner();
	uint32_t fetch = push(run, FRAME_RUBY, "Poller#fetch", APP "lib/poller.rb");
	uint32_t redis = push(run, FRAME_RUBY, "Redis#blpop", GEM "redis-5.0.8/lib/redis.rb");
	uint32_t save = push(run, FRAME_RUBY, "Job#save", GEM "activerecord-7.1.3/lib/x.rb");
	uint32_t sleeps = wait_in(run, "Kernel#sleep", REASON_WAIT_LOCK);
	uint32_t accepts = wait_in(run, "TCPServer#accept", REASON_WAIT_NETWORK);

	fetch = wait_in(fetch, "Thread::Queue#pop", REASON_WAIT_LOCK);
	redis = wait_in(redis, "IO#wait_readable", REASON_WAIT_NETWORK);
	save = wait_in(save, "PG::Connection#exec", REASON_WAIT_NETWORK);
	find_causes("Poller#fetch|Redis#blpop|TCPServer#accept");
	cr_expect_eq(reason_of(fetch), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(redis), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(accepts), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(save), REASON_WAIT_NETWORK);
	cr_expect_eq(reason_of(sleeps), REASON_WAIT_TIMER);
}

/* Gems in folders of the program are its own code; and a job may be in gems alone. */
Test(wait_cause, work_that_no_pattern_makes_idle)
{
	const uint32_t run = job_runner();
	uint32_t billing = push(run, FRAME_RUBY, "Bill#send", APP "gems/billing/lib/billing.rb");
	uint32_t tool = push(run, FRAME_RUBY, "Tool#wait",
			     "/usr/local/bundle/bundler/gems/tool-0a1b2c3d4e5f/lib/tool.rb");
	uint32_t rack = push(run, FRAME_RUBY, "Rack::Lock#call",
			     "/usr/lib/ruby/vendor_ruby/rack/lock.rb");
	uint32_t mail = push(run, FRAME_RUBY, "ActiveJob::Execution#perform_now",
			     GEM "activejob-7.1.3/lib/active_job/execution.rb");
	uint32_t unknown = push(run, FRAME_UNKNOWN, "[unknown method]", "");

	mail = push(mail, FRAME_RUBY, "Mail::Message#deliver", GEM "mail-2.8.1/lib/mail.rb");
	billing = wait_in(billing, "IO#read", REASON_WAIT_NETWORK);
	tool = wait_in(tool, "IO#read", REASON_WAIT_NETWORK);
	rack = wait_in(rack, "IO#read", REASON_WAIT_NETWORK);
	mail = wait_in(mail, "IO#wait_readable", REASON_WAIT_NETWORK);
	unknown = wait_in(unknown, "IO#read", REASON_WAIT_NETWORK);
	find_causes("Poller#run$|ActiveJob");
	cr_expect_eq(reason_of(billing), REASON_WAIT_NETWORK);
	cr_expect_eq(reason_of(tool), REASON_WAIT_IDLE, "an installed gem");
	cr_expect_eq(reason_of(rack), REASON_WAIT_IDLE, "a gem of the system's");
	cr_expect_eq(reason_of(mail), REASON_WAIT_NETWORK, "a job, whatever matches");
	cr_expect_eq(reason_of(unknown), REASON_WAIT_NETWORK, "it may be anything");
}

/* Nobody waits for a disk, the GVL or a CPU for want of work. */
Test(wait_cause, waits_that_no_pattern_makes_idle)
{
	static const enum frame_reason never[] = { REASON_WAIT_CPU,   REASON_WAIT_THROTTLED,
						   REASON_WAIT_GVL,   REASON_WAIT_DISK,
						   REASON_WAIT_FAULT, REASON_WAIT_STOPPED };
	const uint32_t run = job_runner();
	uint32_t stacks[ARRAY_SIZE(never)], native, child, bare;

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		stacks[i] = builder_reason(&b, run, never[i]);
	native = builder_reason(&b, push(run, FRAME_NATIVE, "poll", "/libc.so"), REASON_WAIT_OTHER);
	child = wait_in(run, "Process.wait", REASON_WAIT_CHILD);
	bare = builder_reason(&b, builder_reason(&b, 0, REASON_WAITED_BEFORE), REASON_WAIT_LOCK);
	find_causes(".");
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		cr_expect_eq(reason_of(stacks[i]), never[i]);
	cr_expect_eq(reason_of(native), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(child), REASON_WAIT_IDLE);
	cr_expect_eq(reason_of(bare), REASON_WAIT_LOCK, "it has no method");
}
