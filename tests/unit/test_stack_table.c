/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "native/native_stacks.h"
#include "profile/profile_sink.h"
#include "sample/process_table.h"
#include "sample/stack_table.h"
#include "support/ring_frames.h"
#include "support/ruby_image.h"
#include "support/test_worker.h"
#include "symbol/resolver.h"

#define SECOND	   1000000000ull
#define GENERATION (40ull << RBPF_EPOCH_SHIFT)

/* ---- code of this process, as if it were a Ruby ---- */

static volatile int depth;

static __attribute__((noinline)) int vm_exec_core(int n)
{
	depth += n;
	return depth;
}

static __attribute__((noinline)) int rb_vm_exec(int n)
{
	return vm_exec_core(n + 1) + 1;
}

static __attribute__((noinline)) int vm_call_it(int n)
{
	return rb_vm_exec(n + 1) + 1;
}

static __attribute__((noinline)) int rb_ary_each(int n)
{
	return vm_call_it(n + 1) + 1;
}

static __attribute__((noinline)) int gc_start(int n)
{
	return rb_ary_each(n + 1) + 1;
}

#define AT(function) ((uint64_t)(function) | RBPF_NATIVE_EXACT)

/* ---- what the stacks are written to ---- */

struct fixture {
	struct ruby_image *img;
	struct tracked_process p;
	struct stack_table t;
	struct profile_sink out;
	uint64_t ts;
	uint32_t thread; /* in the recording */

	/* a method in Ruby, and one in C */
	struct rbpf_frame foo, each;
};

static void make_code(struct fixture *f)
{
	uint64_t iseq = image_iseq(f->img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
								  .label = "foo",
								  .path = "/a.rb",
								  .first_line = 7 });
	uint64_t each = image_ment(f->img, f->img->object, "each", IMAGE_CFUNC);

	image_put64(f->img, image_get64(f->img, each + 16) + 8, (uint64_t)rb_ary_each);
	f->foo = (struct rbpf_frame) { .iseq = iseq, .pc = image_pc(f->img, iseq, 2) };
	f->each = (struct rbpf_frame) { .me = each };
}

static void setup(struct fixture *f)
{
	const struct profile_sink_options opts = { .keep_samples = true };
	const struct profile_process process = { .parent = PROFILE_NONE, .exit_status = -1 };
	uint32_t id;

	cr_assert_gt(gc_start(1), 0);
	*f = (struct fixture) { .img = image_new("3.3"), .ts = 100 * SECOND };
	f->p.vm = &f->img->vm;
	f->img->vm.walk.cf_jit_return = 0; /* nothing is compiled */
	f->img->vm.walk.text_lo = (uint64_t)rb_vm_exec;
	cr_assert_eq(resolver_new(f->p.vm, &f->p.resolver), 0);
	cr_assert_eq(native_new(NULL, test_worker(), false, NULL, NULL, &f->t.native), 0);
	cr_assert_eq(native_process_new(f->t.native, getpid(), &f->p.info.context, &f->p.native),
		     0);
	cr_assert_eq(native_process_read_map(f->p.native, f->p.vm), 0);
	cr_assert_eq(profile_sink_init(&f->out, &opts), 0);
	cr_assert_eq(sink_process(&f->out.sink, &process, &id), 0);
	cr_assert_eq(sink_thread(&f->out.sink, id, 1, 0, &f->thread), 0);
	make_code(f);
}

static void teardown(struct fixture *f)
{
	profile_sink_deinit(&f->out);
	stack_table_deinit(&f->t);
	native_process_free(f->p.native);
	native_free(f->t.native);
	resolver_free(f->p.resolver);
	free(f->p.frame_ids);
	free(f->p.pushed);
	image_free(f->img);
}

/* ---- what the BPF programs send ---- */

static int define_ruby(struct fixture *f, uint64_t stack, const struct rbpf_frame *frames, size_t n)
{
	size_t len = sizeof(struct rbpf_ring_stack) + n * sizeof(*frames);
	struct rbpf_ring_stack *rec = calloc(1, len);
	int r;

	cr_assert_not_null(rec);
	rec->h.ts = f->ts;
	rec->stack = stack;
	rec->n_frames = (uint32_t)n;
	len = (size_t)((uint8_t *)ring_frames(rec + 1, frames, n) - (uint8_t *)rec);
	r = stack_table_define(&f->t, &f->out.sink, &f->p, rec, len);
	if (n)
		cr_expect_eq(stack_table_define(&f->t, &f->out.sink, &f->p, rec, len - 1), -EPROTO);
	free(rec);
	return r;
}

static int define_native(struct fixture *f, uint64_t stack, const uint64_t *words, size_t n,
			 uint32_t end)
{
	size_t len = sizeof(struct rbpf_ring_native) + n * sizeof(*words);
	struct rbpf_ring_native *rec = calloc(1, len);
	int r;

	cr_assert_not_null(rec);
	rec->h.ts = f->ts;
	rec->stack = stack;
	rec->n_frames = (uint32_t)n;
	rec->end = end;
	memcpy(rec + 1, words, n * sizeof(*words));
	r = stack_table_define_native(&f->t, &f->p, false, rec, len);
	if (n)
		cr_expect_eq(stack_table_define_native(&f->t, &f->p, false, rec, len - 1), -EPROTO);
	free(rec);
	return r;
}

/* Write a sample; it is the next one of the recording. */
static struct sample_stack sample(struct fixture *f, const struct stacks_taken *rec)
{
	struct sample_stack s = { .stack = PROFILE_NONE }, again;
	struct profile_sample out = { .ts = f->ts, .value = 1, .thread = f->thread };

	cr_assert_eq(stack_table_of_sample(&f->t, &f->out.sink, &f->p, rec, true, &s), 0);
	cr_assert_eq(stack_table_of_sample(&f->t, &f->out.sink, &f->p, rec, true, &again), 0);
	cr_expect(again.stack == s.stack && again.flags == s.flags, "twice the same");
	out.stack = s.stack;
	out.flags = s.flags;
	cr_assert_eq(sink_sample(&f->out.sink, &out), 0);
	return s;
}

static struct sample_stack sample_of(struct fixture *f, uint64_t ruby, uint64_t native)
{
	return sample(f, &(struct stacks_taken) { .ruby = ruby, .native = native });
}

static void print_stack(const struct profile *p, uint32_t stack, struct buf *out)
{
	const struct profile_frame *frame;

	if (!stack)
		return;
	frame = &p->frames[p->stacks[stack].frame];
	print_stack(p, p->stacks[stack].parent, out);
	buf_addf(out, "%s%s%s%s", out->len ? " " : "", frame->flags & FRAME_INTERNAL ? "(" : "",
		 (const char *)intern_get(&p->strings, frame->name, NULL),
		 frame->flags & FRAME_INTERNAL ? ")" : "");
}

static void expect_sample(const struct fixture *f, size_t i, const char *want, uint16_t flags)
{
	struct buf got _cleanup_buf_ = BUF_INIT;

	cr_assert_lt(i, f->out.profile.n_samples, "there is no sample %zu", i);
	print_stack(&f->out.profile, f->out.profile.samples[i].stack, &got);
	cr_expect_str_eq(buf_str(&got), want, "sample %zu is of\n%s\n  not\n%s", i, buf_str(&got),
			 want);
	cr_expect_eq(f->out.profile.samples[i].flags, flags, "sample %zu has the flags %x, not %x",
		     i, f->out.profile.samples[i].flags, flags);
}

/* foo, which calls each, and the native frames of that. */
static void define_each(struct fixture *f, uint64_t ruby, uint64_t native)
{
	struct rbpf_frame frames[] = { f->each, f->foo };
	const uint64_t words[] = { AT(rb_ary_each), AT(vm_call_it), AT(vm_exec_core),
				   AT(rb_vm_exec) };

	frames[1].pc |= RBPF_PC_FINISH;
	cr_assert_eq(define_ruby(f, ruby, frames, 2), 0);
	cr_assert_eq(define_native(f, native, words, 4, RBPF_NATIVE_OUTERMOST), 0);
}

#define EACH "(rb_vm_exec) (vm_exec_core) foo (vm_call_it) Object#each (rb_ary_each)"

/* ---- tests ---- */

Test(stack_table, ruby_and_native)
{
	struct sample_stack merged, ruby;
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	merged = sample_of(&f, 1, 2);
	ruby = sample_of(&f, 1, 0);
	cr_expect_neq(merged.stack, ruby.stack);
	sample_of(&f, 0, 2);
	sample_of(&f, 0, 0);
	cr_expect_eq(sample_of(&f, 1, 2).stack, merged.stack);
	expect_sample(&f, 0, EACH, SAMPLE_NATIVE);
	expect_sample(&f, 1, "foo Object#each", 0);
	expect_sample(&f, 2, "[no Ruby frame] (rb_vm_exec) (vm_exec_core) (vm_call_it) rb_ary_each",
		      SAMPLE_NO_RUBY | SAMPLE_NATIVE);
	expect_sample(&f, 3, "[no Ruby frame]", SAMPLE_NO_RUBY);
	teardown(&f);
}

Test(stack_table, gaps)
{
	const uint64_t words[] = { AT(rb_ary_each), RBPF_NATIVE_FAULT, AT(vm_exec_core),
				   AT(rb_vm_exec) };
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	cr_assert_eq(define_native(&f, 3, words, 4, RBPF_NATIVE_OUTERMOST), 0);
	cr_assert_eq(define_native(&f, 4, words, 1, RBPF_NATIVE_NO_RULE), 0);
	cr_assert_eq(define_native(&f, 5, words, 0, RBPF_NATIVE_NO_MAP), 0);
	cr_assert_eq(define_native(&f, 6, words, 0, RBPF_NATIVE_OUTERMOST), 0);
	cr_assert_eq(define_native(&f, 7, words, 1, 1000), 0);
	for (uint64_t native = 3; native <= 7; native++)
		sample_of(&f, 1, native);
	expect_sample(&f, 0,
		      "(rb_vm_exec) (vm_exec_core) foo [native frames missing: the stack cannot be "
		      "read] Object#each (rb_ary_each)",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 1,
		      "foo [native frames missing: the unwind table has no entry] Object#each "
		      "(rb_ary_each)",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 2,
		      "foo Object#each [native frames missing: the process was not looked at yet]",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 3, "foo Object#each", SAMPLE_NATIVE);
	expect_sample(&f, 4, "foo Object#each (rb_ary_each)", SAMPLE_NATIVE);
	teardown(&f);
}

/* Whose definition did not come, or comes later. */
Test(stack_table, lost_definitions)
{
	struct sample_stack lost;
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	lost = sample_of(&f, 1, 20);
	sample_of(&f, 10, 2);
	sample_of(&f, 10, 20);
	define_each(&f, 10, 20);
	cr_expect_neq(sample_of(&f, 1, 20).stack, lost.stack);
	sample_of(&f, 10, 20);
	expect_sample(&f, 0, "foo Object#each [native frames missing: lost]",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 1, "[stack lost] (rb_vm_exec) (vm_exec_core) (vm_call_it) rb_ary_each",
		      SAMPLE_FAILED | SAMPLE_NATIVE);
	expect_sample(&f, 2, "[stack lost] [native frames missing: lost]",
		      SAMPLE_FAILED | SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 3, EACH, SAMPLE_NATIVE);
	expect_sample(&f, 4, EACH, SAMPLE_NATIVE);
	teardown(&f);
}

/* With the call that needed memory, or else on top of the Ruby code. */
Test(stack_table, collections)
{
	const uint32_t marking = RBPF_SAMPLE_GC | RUBY_GC_MARKING << RBPF_SAMPLE_GC_PHASE_SHIFT;
	const uint64_t words[] = { AT(gc_start), AT(rb_ary_each), AT(vm_exec_core),
				   AT(rb_vm_exec) };
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	cr_assert_eq(define_native(&f, 3, words, 4, RBPF_NATIVE_OUTERMOST), 0);
	for (uint64_t native = 0; native < 4; native++)
		if (native != 1)
			sample(&f, &(struct stacks_taken) { .ruby = 1,
							    .native = native,
							    .flags = (uint16_t)marking });
	sample(&f, &(struct stacks_taken) { .ruby = 1, .flags = RBPF_SAMPLE_GC });
	sample_of(&f, 1, 3);
	/* The phase alone says nothing. */
	sample(&f, &(struct stacks_taken) { .ruby = 1,
					    .flags = (uint16_t)(marking & ~RBPF_SAMPLE_GC) });
	expect_sample(&f, 0, "foo Object#each (garbage collection) (marking)", SAMPLE_GC);
	expect_sample(
		&f, 1,
		"(rb_vm_exec) (vm_exec_core) foo (vm_call_it) Object#each (rb_ary_each) (garbage "
		"collection) (marking)",
		SAMPLE_GC | SAMPLE_NATIVE);
	expect_sample(
		&f, 2,
		"(rb_vm_exec) (vm_exec_core) foo Object#each (rb_ary_each) (garbage collection) "
		"(marking) gc_start",
		SAMPLE_GC | SAMPLE_NATIVE);
	expect_sample(&f, 3, "foo Object#each (garbage collection)", SAMPLE_GC);
	expect_sample(&f, 4, "(rb_vm_exec) (vm_exec_core) foo Object#each (rb_ary_each) gc_start",
		      SAMPLE_NATIVE);
	expect_sample(&f, 5, "foo Object#each", 0);
	teardown(&f);
}

/* What a thread waits for stands upon all else, and what it holds below that. */
Test(stack_table, waits)
{
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	sample(&f, &(struct stacks_taken) { .ruby = 1, .wait = 1 + RBPF_WAIT_CPU });
	sample(&f, &(struct stacks_taken) { .ruby = 1, .wait = 1 + RBPF_WAIT_GVL });
	sample(&f, &(struct stacks_taken) {
			   .ruby = 1, .wait = 1 + RBPF_WAIT_DISK, .flags = RBPF_WAIT_HELD });
	sample(&f, &(struct stacks_taken) {
			   .ruby = 1, .wait = 1 + RBPF_WAIT_CPU, .flags = RBPF_SAMPLE_GC });
	sample(&f, &(struct stacks_taken) { .ruby = 1, .wait = 1 + RBPF_WAITS });
	sample(&f, &(struct stacks_taken) { .status = RBPF_OK,
					    .wait = 1 + RBPF_WAIT_TIMER,
					    .flags = RBPF_WAIT_BEFORE });
	sample(&f, &(struct stacks_taken) { .status = RBPF_NO_EC, .wait = 1 + RBPF_WAIT_PIPE });
	sample(&f, &(struct stacks_taken) { .ruby = 1 });
	sample(&f, &(struct stacks_taken) {
			   .ruby = 1, .wait = 1 + RBPF_WAIT_GVL, .flags = RBPF_WAIT_TURN });
	sample(&f, &(struct stacks_taken) {
			   .ruby = 1, .wait = 1 + RBPF_WAIT_CPU, .flags = RBPF_WAIT_TURN });
	expect_sample(&f, 0, "foo Object#each (waits for a CPU)", 0);
	expect_sample(&f, 1, "foo Object#each (waits for the GVL)", 0);
	expect_sample(&f, 2, "foo Object#each (holds the GVL) (waits for a file)", 0);
	expect_sample(&f, 3, "foo Object#each (garbage collection) (waits for a CPU)", SAMPLE_GC);
	expect_sample(&f, 4, "foo Object#each (waits)", 0);
	expect_sample(&f, 5, "[waits since before the recording] (sleeps)", SAMPLE_NO_RUBY);
	expect_sample(&f, 6, "[native thread] (waits for a pipe)", SAMPLE_NO_RUBY);
	expect_sample(&f, 7, "foo Object#each", 0);
	expect_sample(&f, 8, "foo Object#each (its turn was over) (waits for the GVL)", 0);
	expect_sample(&f, 9, "foo Object#each (waits for a CPU)", 0);
	teardown(&f);
}

/* Of what is behind a descriptor there is a frame each, of connections to the same peer one. */
Test(stack_table, what_waits_are_for)
{
	struct rbpf_waits_on peer = {
		.kind = RBPF_ON_INET, .len = 4, .port = 80, .own_port = 40000
	};
	struct rbpf_waits_on again = peer;
	struct rbpf_waits_on file = { .kind = RBPF_ON_FILE, .len = 3, .name = "log" };
	struct rbpf_waits_on none = { .kind = RBPF_ON_NOTHING };
	struct stacks_taken taken = { .ruby = 1, .wait = 1 + RBPF_WAIT_NETWORK, .on = &peer };
	struct fixture f;

	again.own_port++;
	setup(&f);
	f.t.peers = true;
	define_each(&f, 1, 2);
	sample(&f, &taken);
	taken.on = &again;
	sample(&f, &taken);
	taken.on = &none;
	sample(&f, &taken);
	taken.wait = 1 + RBPF_WAIT_DISK;
	taken.on = &file;
	sample(&f, &taken);
	taken.wait = 1 + RBPF_WAIT_CPU; /* it was woken */
	sample(&f, &taken);
	f.t.peers = false;
	taken.wait = 1 + RBPF_WAIT_DISK;
	sample(&f, &taken);
	expect_sample(&f, 0, "foo Object#each (waits for the network: 0.0.0.0:80)", 0);
	expect_sample(&f, 1, "foo Object#each (waits for the network: 0.0.0.0:80)", 0);
	expect_sample(&f, 2, "foo Object#each (waits for the network)", 0);
	expect_sample(&f, 3, "foo Object#each (waits for a file: log)", 0);
	expect_sample(&f, 4, "foo Object#each (waits for a CPU)", 0);
	expect_sample(&f, 5, "foo Object#each (waits for a file)", 0);
	teardown(&f);
}

/* That a sample has no such flag says something only if the collector is known. */
Test(stack_table, unknown_collector)
{
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	sample(&f, &(struct stacks_taken) { .ruby = 1 });
	f.img->vm.walk.gc_owner = 0;
	sample(&f, &(struct stacks_taken) { .ruby = 1 });
	sample(&f, &(struct stacks_taken) { .ruby = 1, .flags = RBPF_SAMPLE_GC });
	f.p.vm = NULL; /* no Ruby, no collector */
	sample(&f, &(struct stacks_taken) { .ruby = 1 });
	sample(&f, &(struct stacks_taken) { .ruby = 1, .flags = RBPF_SAMPLE_GC_UNKNOWN });
	expect_sample(&f, 0, "foo Object#each", 0);
	expect_sample(&f, 1, "foo Object#each", SAMPLE_GC_UNKNOWN);
	expect_sample(&f, 2, "foo Object#each (garbage collection)", SAMPLE_GC);
	expect_sample(&f, 3, "foo Object#each", 0);
	expect_sample(&f, 4, "foo Object#each", SAMPLE_GC_UNKNOWN);
	teardown(&f);
}

Test(stack_table, placeholders)
{
	static const struct {
		uint16_t status;
		const char *name;
		uint16_t flags;
	} cases[] = {
		{ RBPF_OK, "[no Ruby frame]", SAMPLE_NO_RUBY },
		{ RBPF_NO_RUBY, "[no Ruby in process]", SAMPLE_NO_RUBY },
		{ RBPF_NO_EC, "[native thread]", SAMPLE_NO_RUBY },
		{ RBPF_EC_STALE, "[thread start or end]", SAMPLE_NO_RUBY },
		{ RBPF_EC_RANGE, "[stack inconsistent]", SAMPLE_FAILED },
		{ RBPF_FAULT_STACK, "[stack unreadable]", SAMPLE_FAILED },
		{ RBPF_EXITING, "[thread start or end]", SAMPLE_NO_RUBY },
		{ RBPF_EXECUTING, "[executing a program]", SAMPLE_NO_RUBY },
		{ RBPF_STATUS_COUNT, "[no Ruby frame]", SAMPLE_NO_RUBY },
		{ 0xffff, "[no Ruby frame]", SAMPLE_NO_RUBY },
	};
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	struct stacks_taken rec = { .status = RBPF_FAULT_EC };
	struct sample_stack s, exiting, executing;
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < n; i++)
		sample(&f, &(struct stacks_taken) { .status = cases[i].status });
	/* A layout that is not proven: that a walk failed says no more than that. */
	cr_assert_eq(stack_table_of_sample(&f.t, &f.out.sink, &f.p, &rec, false, &s), 0);
	cr_expect_eq(s.flags, SAMPLE_NO_RUBY);
	rec.status = RBPF_EXITING;
	cr_assert_eq(stack_table_of_sample(&f.t, &f.out.sink, &f.p, &rec, false, &exiting), 0);
	cr_expect_neq(s.stack, exiting.stack);
	rec.status = RBPF_EXECUTING;
	cr_assert_eq(stack_table_of_sample(&f.t, &f.out.sink, &f.p, &rec, false, &executing), 0);
	for (size_t i = 0; i < n; i++)
		expect_sample(&f, i, cases[i].name, cases[i].flags);
	cr_expect_eq(s.stack, f.out.profile.samples[1].stack);
	cr_expect_eq(exiting.stack, f.out.profile.samples[6].stack);
	cr_expect_eq(executing.stack, f.out.profile.samples[7].stack);
	teardown(&f);
}

Test(stack_table, cut_and_unknown_frames)
{
	const struct rbpf_frame unknown = { .iseq = 0x5000, .pc = 0x5000 };
	struct fixture f;

	setup(&f);
	const struct rbpf_frame frames[] = { f.foo, { .pc = 77 }, unknown, f.foo };

	cr_assert_eq(define_ruby(&f, 1, frames, 4), 0);
	sample_of(&f, 1, 0);
	expect_sample(&f, 0, "foo [unknown] [truncated 77 frames] foo",
		      SAMPLE_TRUNCATED | SAMPLE_UNRESOLVED);
	teardown(&f);
}

/* What was defined is known for one generation more, and then is not. */
Test(stack_table, generations)
{
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2); /* the first begins then */
	sample_of(&f, 1, 2);
	f.ts += GENERATION + 1;
	define_each(&f, 3, 4);
	sample_of(&f, 1, 2);
	sample_of(&f, 3, 2);
	sample_of(&f, 1, 4);
	f.ts -= SECOND; /* of another CPU */
	define_each(&f, 5, 6);
	sample_of(&f, 1, 2);
	f.ts += GENERATION + SECOND + 1;
	define_each(&f, 7, 8);
	sample_of(&f, 1, 2);
	sample_of(&f, 3, 8);
	for (size_t i = 0; i < 5; i++)
		expect_sample(&f, i, EACH, SAMPLE_NATIVE);
	expect_sample(&f, 5, "[stack lost] [native frames missing: lost]",
		      SAMPLE_FAILED | SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 6, EACH, SAMPLE_NATIVE);
	teardown(&f);
}

/* Names are given back, and made anew. */
Test(stack_table, forgetting_native_frames)
{
	struct fixture f;

	setup(&f);
	define_each(&f, 1, 2);
	sample_of(&f, 1, 2);
	f.ts += GENERATION + 1;
	define_each(&f, 3, 4);
	cr_assert_eq(native_forget(f.t.native), 0);
	stack_table_forget_native(&f.t);
	sample_of(&f, 1, 2);
	sample_of(&f, 3, 4);
	define_each(&f, 5, 6);
	sample_of(&f, 5, 6);
	sample_of(&f, 3, 6);
	expect_sample(&f, 0, EACH, SAMPLE_NATIVE);
	expect_sample(&f, 1, "foo Object#each [native frames missing: lost]",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 2, "foo Object#each [native frames missing: lost]",
		      SAMPLE_NATIVE | SAMPLE_GAP);
	expect_sample(&f, 3, EACH, SAMPLE_NATIVE);
	expect_sample(&f, 4, EACH, SAMPLE_NATIVE);
	teardown(&f);
}

Test(stack_table, nothing)
{
	struct stack_table t = { 0 };

	stack_table_forget_native(&t);
	stack_table_deinit(&t);
}
