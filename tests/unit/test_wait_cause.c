/* SPDX-License-Identifier: GPL-2.0-only */
/* What waits are, from the methods that wait. */
#include <criterion/criterion.h>

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
	cr_assert_eq(wait_causes(&b.out.profile), 0);
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
	cr_assert_eq(wait_causes(&b.out.profile), 0);
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
