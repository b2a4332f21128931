/* SPDX-License-Identifier: GPL-2.0-only */
/* Time off the CPU: from records of waits to samples. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "profile/reason.h"
#include "sample/collector_state.h"
#include "support/collecting.h"

static struct collecting f;
static struct target target;

static void setup(void)
{
	struct profile_meta *meta;

	collecting_init(&f, NULL);
	failing_sink_deinit(&f.sink);
	failing_sink_init(&f.sink, &(struct profile_sink_options) { .by_thread = true,
								    .keep_samples = true,
								    .event = RBPF_EVENT_WAIT });
	meta = &f.sink.out.profile.meta;
	meta->n_events = engine_events(&f.engine.engine, meta->events);
	target = target_start();
	collecting_start(&f, &target);
}

static void teardown(void)
{
	target_end(&target);
	collecting_deinit(&f);
}

/*
 * The target was off the CPU from @since to @until, and could run again at @woken, if that is not
 * 0.
 */
static void wait_for(enum rbpf_wait what, uint64_t since, uint64_t woken, uint64_t until,
		     uint16_t flags)
{
	const struct rbpf_ring_wait rec = { .h.type = RBPF_RING_WAIT,
					    .h.ts = until,
					    .h.tgid = (uint32_t)target.pid,
					    .h.tid = (uint32_t)target.pid,
					    .since = since,
					    .woken = woken,
					    .wait = what,
					    .flags = flags,
					    .comm = "waiter" };

	scripted_record(&f.engine, &rec, sizeof(rec));
}

/* "reason from-to", for each sample. */
static void expect_samples(const char *want)
{
	const struct profile *p = collecting_profile(&f);
	struct buf got _cleanup_buf_ = BUF_INIT;

	collecting_poll(&f);
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_frame *frame = &p->frames[p->stacks[s->stack].frame];

		cr_expect_eq(s->event, RBPF_EVENT_WAIT);
		buf_addf(&got, "%s%s %d-%d", i ? ", " : "", frame_reason_word(frame->reason),
			 (int)(s->ts - s->value), (int)s->ts);
	}
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
}

/* A wait, and then for a CPU. */
Test(waits, parts, .init = setup, .fini = teardown)
{
	wait_for(RBPF_WAIT_DISK, 100, 180, 200, 0);
	wait_for(RBPF_WAIT_CPU, 300, 300, 310, 0);
	wait_for(RBPF_WAIT_GVL, 400, 0, 500, 0);
	wait_for(RBPF_WAIT_LOCK, 600, 600, 600, 0);
	expect_samples("wait-disk 100-180, wait-cpu 180-200, wait-cpu 300-310, wait-gvl 400-500");
	collecting_finish(&f);
	cr_expect_eq(f.totals.samples, 4);
	cr_expect_eq(f.totals.cpu_sampled_ns, 0);
	cr_expect_str_eq(collecting_str(&f, collecting_thread(&f, target.pid)->name), "waiter");
}

/* Another thread has put it into the queue for the GVL meanwhile. */
static void wait_for_lock(uint64_t ready, uint64_t woken, uint64_t until, uint16_t flags)
{
	const struct rbpf_ring_wait rec = { .h.type = RBPF_RING_WAIT,
					    .h.ts = until,
					    .h.tgid = (uint32_t)target.pid,
					    .h.tid = (uint32_t)target.pid,
					    .since = 100,
					    .ready = ready,
					    .woken = woken,
					    .wait = RBPF_WAIT_LOCK,
					    .flags = flags };

	scripted_record(&f.engine, &rec, sizeof(rec));
}

Test(waits, for_a_lock_and_then_for_the_gvl, .init = setup, .fini = teardown)
{
	wait_for_lock(150, 180, 200, 0);
	expect_samples("wait-lock 100-150, wait-gvl 150-180, wait-cpu 180-200");
	collecting_finish(&f);
}

Test(waits, for_the_gvl_that_go_on, .init = setup, .fini = teardown)
{
	wait_for_lock(0, 0, 200, RBPF_WAIT_OPEN);
	wait_for_lock(250, 0, 300, RBPF_WAIT_OPEN);
	wait_for_lock(250, 0, 400, RBPF_WAIT_OPEN);
	wait_for_lock(250, 450, 500, 0);
	expect_samples("wait-lock 100-200, wait-lock 200-250, wait-gvl 250-300, wait-gvl 300-400, "
		       "wait-gvl 400-450, wait-cpu 450-500");
	collecting_finish(&f);
}

/* What has been sent of a wait that goes on is not counted again, nor is any time twice. */
Test(waits, that_go_on, .init = setup, .fini = teardown)
{
	wait_for(RBPF_WAIT_NETWORK, 100, 0, 200, RBPF_WAIT_OPEN);
	wait_for(RBPF_WAIT_NETWORK, 100, 0, 300, RBPF_WAIT_OPEN);
	wait_for(RBPF_WAIT_NETWORK, 100, 350, 360, RBPF_WAIT_OPEN);
	wait_for(RBPF_WAIT_NETWORK, 100, 350, 355, 0);
	wait_for(RBPF_WAIT_NETWORK, 100, 350, 400, 0);
	wait_for(RBPF_WAIT_PIPE, 390, 0, 450, 0);
	expect_samples("wait-network 100-200, wait-network 200-300, wait-network 300-350, "
		       "wait-cpu 350-360, wait-cpu 360-400, wait-pipe 400-450");
	collecting_finish(&f);
}

/* The edges of a wait that are not its own are marked, on the parts that have them. */
Test(waits, that_are_cut, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);
	const uint16_t before = RBPF_WAIT_BEFORE;
	uint64_t now;

	wait_for(RBPF_WAIT_NETWORK, 100, 0, 200, before | RBPF_WAIT_OPEN);
	wait_for(RBPF_WAIT_NETWORK, 100, 280, 300, before);
	wait_for(RBPF_WAIT_DISK, 400, 0, 500, RBPF_WAIT_OPEN);
	collecting_poll(&f);
	now = clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC; /* the end comes before */
	wait_for(RBPF_WAIT_DISK, 400, now - 10, now, RBPF_WAIT_OPEN);
	collecting_finish(&f);
	cr_assert_eq(p->n_kept, 6);
	cr_expect_eq(p->samples[0].flags & ~SAMPLE_FLAGS, SAMPLE_BEFORE);
	for (size_t i = 1; i < 5; i++)
		cr_expect_eq(p->samples[i].flags & ~SAMPLE_FLAGS, 0, "%zu", i);
	cr_expect_eq(p->samples[5].flags & ~SAMPLE_FLAGS, SAMPLE_AFTER);
}

/* One that is for a CPU from the beginning to the end has both. */
Test(waits, that_are_cut_twice, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;

	wait_for(RBPF_WAIT_CPU, now - 10, now - 10, now, RBPF_WAIT_BEFORE | RBPF_WAIT_OPEN);
	collecting_finish(&f);
	cr_assert_eq(p->n_kept, 1);
	cr_expect_eq(p->samples[0].flags & ~SAMPLE_FLAGS, SAMPLE_BEFORE | SAMPLE_AFTER);
}

/* The table of stacks may forget the stack of a long wait, but not what is known of the wait. */
Test(waits, longer_than_stacks_are_known, .init = setup, .fini = teardown)
{
	const struct profile *p = collecting_profile(&f);

	wait_for(RBPF_WAIT_LOCK, 100, 0, 200, RBPF_WAIT_OPEN | RBPF_WAIT_HELD);
	collecting_poll(&f);
	stack_table_forget(&f.c->stacks);
	wait_for(RBPF_WAIT_LOCK, 100, 0, 300, RBPF_WAIT_OPEN | RBPF_WAIT_HELD);
	wait_for(RBPF_WAIT_LOCK, 100, 310, 320, RBPF_WAIT_HELD);
	expect_samples("wait-lock 100-200, wait-lock 200-300, wait-lock 300-310, wait-cpu 310-320");
	cr_expect_eq(p->samples[0].stack, p->samples[1].stack);
	cr_expect_eq(p->samples[0].stack, p->samples[2].stack);
	cr_expect_eq(p->frames[p->stacks[p->stacks[p->samples[3].stack].parent].frame].reason,
		     REASON_GVL_HELD);
	collecting_finish(&f);
}

/* What others waited meanwhile is charged with the same stack, for each kind of lock. */
Test(waits, that_made_others_wait, .init = setup, .fini = teardown)
{
	const struct rbpf_ring_wait rec = { .h.type = RBPF_RING_WAIT,
					    .h.ts = 200,
					    .h.tgid = (uint32_t)target.pid,
					    .h.tid = (uint32_t)target.pid,
					    .since = 100,
					    .woken = 200,
					    .wait = RBPF_WAIT_TIMER,
					    .caused = 30,
					    .lock_caused = 50,
					    .comm = "waiter" };
	uint64_t values[RBPF_EVENTS] = { 0 };
	struct profile *p = &f.sink.out.profile;

	p->by_event = true;
	scripted_record(&f.engine, &rec, sizeof(rec));
	collecting_poll(&f);
	for (size_t i = 0; i < p->n_kept; i++) {
		values[p->samples[i].event] += p->samples[i].value;
		cr_expect_eq(p->samples[i].stack, p->samples[0].stack);
	}
	cr_expect_eq(values[RBPF_EVENT_WAIT], 100);
	cr_expect_eq(values[RBPF_EVENT_GVL], 30);
	cr_expect_eq(values[RBPF_EVENT_LOCK], 50);
	collecting_finish(&f);
}

/*
 * Who is in no process that is followed is a frame of its own in place of a stack, of the thread
 * that was woken.
 */
Test(waits, that_others_ended, .init = setup, .fini = teardown)
{
	struct rbpf_ring_waker rec = { .h.type = RBPF_RING_WAKER,
				       .h.ts = 200,
				       .h.tgid = (uint32_t)target.pid,
				       .h.tid = (uint32_t)target.pid,
				       .value = 70,
				       .pid = 1234,
				       .comm = "waiter",
				       .waker = "exactly15 bytes" };
	struct profile *p = &f.sink.out.profile;
	struct buf got _cleanup_buf_ = BUF_INIT;

	p->by_event = true;
	scripted_record(&f.engine, &rec, sizeof(rec));
	rec.pid = 0;
	rec.value = 8;
	scripted_record(&f.engine, &rec, sizeof(rec));
	rec.h.tgid = 1; /* it is not followed */
	scripted_record(&f.engine, &rec, sizeof(rec));
	collecting_poll(&f);
	for (size_t i = 0; i < p->n_kept; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_stack *stack = &p->stacks[s->stack];
		const struct profile_frame *frame = &p->frames[stack->frame];

		cr_expect_eq(s->event, RBPF_EVENT_WAKEUP);
		cr_expect_eq(s->flags, SAMPLE_NO_RUBY);
		cr_expect_eq(p->threads[s->thread].tid, (uint32_t)target.pid);
		cr_expect_eq(stack->parent, 0);
		buf_addf(&got, "%s %s %d\n", frame_reason_word(frame->reason),
			 collecting_str(&f, frame->name), (int)s->value);
	}
	cr_expect_str_eq(buf_str(&got),
			 "other-process [exactly15 bytes 1234] 70\ninterrupt [interrupt] 8\n", "%s",
			 buf_str(&got));
	collecting_finish(&f);
}

Test(waits, of_no_use, .init = setup, .fini = teardown)
{
	const struct rbpf_ring_wait rec = { .h.type = RBPF_RING_WAIT, .h.tgid = 1, .h.ts = 5 };

	scripted_record(&f.engine, &rec, sizeof(rec)); /* of a process that is not followed */
	wait_for(RBPF_WAIT_DISK, 200, 0, 100, 0);      /* it ends before it begins */
	expect_samples("");
	collecting_finish(&f);
}
