/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An extension of Ruby whose C functions call Ruby, each other and the C library in every way that
 * the C API has, and that keeps account of it: a shadow stack of what is active, to which mixed.rb
 * adds its Ruby methods. It is the truth that a merged stack is compared with.
 *
 * It needs no headers of Ruby: what it uses is exported by every Ruby from 2.7 on, and a VALUE is a
 * machine word in all of them. It is linked with nothing, so that one file fits all, whatever their
 * C library:
 *
 *   gcc -O2 -fPIC -shared -nostdlib -fno-optimize-sibling-calls -fno-stack-protector \
 *       -o mixed.so mixed.c
 *
 * Versions in development load it with RUBY_ABI_CHECK=0 in their environment.
 *
 * An entry of the shadow stack is one of
 *
 *   {"ruby", label}                     a Ruby method or block of mixed.rb
 *   {"core", label}                     a method of Ruby itself, in C or in Ruby
 *   {"cfunc", label, C function}        a method of this extension, and the function that it is
 *   {"c", C function}                   any other function of this extension
 *
 * Who catches an exception or a throw cuts the stack back to where it was (depth); functions that
 * are left by one do nothing.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what is used of Ruby's C API ---- */

typedef unsigned long VALUE;
typedef unsigned long ID;

VALUE rb_define_module(const char *name);
void rb_define_module_function(VALUE module, const char *name, VALUE (*func)(), int argc);
ID rb_intern(const char *name);
ID rb_sym2id(VALUE symbol);
const char *rb_id2name(ID id);
long rb_num2long(VALUE number);
VALUE rb_funcallv(VALUE receiver, ID method, int argc, const VALUE *argv);
VALUE rb_funcallv_public(VALUE receiver, ID method, int argc, const VALUE *argv);
VALUE rb_yield(VALUE value);
VALUE rb_protect(VALUE (*func)(VALUE), VALUE data, int *state);
VALUE rb_ensure(VALUE (*body)(), VALUE data, VALUE (*ensure)(), VALUE more);
VALUE rb_rescue2(VALUE (*body)(), VALUE data, VALUE (*rescue)(), VALUE more, ...);
VALUE rb_block_call(VALUE receiver, ID method, int argc, const VALUE *argv, VALUE (*block)(),
		    VALUE data);
VALUE rb_catch(const char *tag, VALUE (*func)(), VALUE data);
VALUE rb_proc_new(VALUE (*func)(), VALUE data);
VALUE rb_mutex_new(void);
VALUE rb_mutex_synchronize(VALUE mutex, VALUE (*func)(VALUE), VALUE data);
VALUE rb_fiber_new(VALUE (*func)(), VALUE data);
VALUE rb_fiber_resume(VALUE fiber, int argc, const VALUE *argv);
VALUE rb_ary_new_capa(long capacity);
VALUE rb_ary_push(VALUE array, VALUE value);
VALUE rb_ary_pop(VALUE array);
void rb_set_errinfo(VALUE error);
void rb_raise(VALUE class, const char *format, ...) __attribute__((noreturn));
void *rb_thread_call_without_gvl(void *(*func)(void *), void *data, void (*unblock)(void *),
				 void *more);
void *rb_thread_call_with_gvl(void *(*func)(void *), void *data);
extern VALUE rb_eRuntimeError, rb_eStandardError;

/* The same bits in all versions since flonums came: false is 0, nil 4 or 8. */
static VALUE nil;

#define FIXNUM(n)   ((VALUE)(n) << 1 | 1)

/* Each function has to have a frame of its own, and to be there as long as what it calls. */
#define FRAME	    __attribute__((noipa))
#define HIDDEN	    static FRAME

/* The compiler has to have made the value. */
#define KEEP(value) __asm__ volatile("" : : "r"(value) : "memory")

/* ---- the shadow stack ---- */

enum { MAX_DEPTH = 4096, MAX_LINE = 1 << 17 };

struct entry {
	const char *kind, *label, *function;
};

/* Of a fiber. */
struct shadow {
	struct entry entries[MAX_DEPTH];
	int depth;
	struct shadow *resumer;
};

/* One thread runs. */
static struct shadow root_shadow, *shadow = &root_shadow;
static struct shadow *shadows[256]; /* of mixed.rb's fibers, by number */
static int n_shadows;
static uint64_t leaf_from;
static int leaf_ns = 5000000;

static int push(const char *kind, const char *label, const char *function)
{
	int depth = shadow->depth;

	if (depth == MAX_DEPTH)
		abort();
	shadow->entries[depth] = (struct entry) { kind, label, function };
	shadow->depth = depth + 1;
	return depth;
}

static void cut(int depth)
{
	shadow->depth = depth;
}

/* The first thing in a function of this file, and what stands for its end. */
#define ENTER()	       int own_depth = push("c", __func__, NULL)
#define ENTER_AS(name) int own_depth = push("cfunc", "Mixed." name, __func__)
#define LEAVE()	       cut(own_depth)
/* After something that may have been left by an exception. */
#define CAUGHT()       cut(own_depth + 1)

static struct shadow *fiber_begins(struct shadow *its)
{
	its->resumer = shadow;
	shadow = its;
	return its;
}

static void fiber_pauses(void)
{
	shadow = shadow->resumer;
}

static struct shadow *shadow_new(void)
{
	struct shadow *its = n_shadows < 256 ? calloc(1, sizeof(*its)) : NULL;

	if (!its)
		abort();
	shadows[n_shadows++] = its;
	return its;
}

/* ---- leaves ---- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static char *print_stack(char *at, char *end, const struct shadow *s)
{
	at += snprintf(at, end - at, "[");
	for (int i = 0; i < s->depth; i++) {
		const struct entry *e = &s->entries[i];

		at += snprintf(at, end - at, "%s[\"%s\",\"%s\"", i ? "," : "", e->kind, e->label);
		if (e->function)
			at += snprintf(at, end - at, ",\"%s\"", e->function);
		at += snprintf(at, end - at, "]");
		if (end - at < 512)
			abort();
	}
	return at + snprintf(at, end - at, "]");
}

static FRAME void leaf_ends(uint64_t to)
{
	static char line[MAX_LINE];
	char *end = line + sizeof(line), *at = line;

	at += snprintf(at, end - at, "{\"tid\":%d,\"from_ns\":%llu,\"to_ns\":%llu,\"leaf\":[",
		       (int)gettid(), (unsigned long long)leaf_from, (unsigned long long)to);
	for (const struct shadow *s = shadow; s; s = s->resumer) {
		if (s != shadow)
			*at++ = ',';
		at = print_stack(at, end, s);
	}
	at += snprintf(at, end - at, "]}\n");
	if (write(STDOUT_FILENO, line, at - line) != at - line)
		abort();
}

/* In one function, whose name is in the truth. */
static __attribute__((always_inline)) inline void burn(void)
{
	uint64_t stop = clock_ns(CLOCK_THREAD_CPUTIME_ID) + leaf_ns;

	leaf_from = clock_ns(CLOCK_MONOTONIC);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < stop) {
		for (int i = 0; i < 3000; i++)
			__asm__ volatile("" : : : "memory");
	}
	leaf_ends(clock_ns(CLOCK_MONOTONIC));
}

FRAME VALUE mixed_burn(VALUE self)
{
	ENTER_AS("burn");
	burn();
	LEAVE();
	return self;
}

HIDDEN void burn_at_last(int deeper)
{
	ENTER();
	if (deeper > 0)
		burn_at_last(deeper - 1);
	else
		burn();
	LEAVE();
}

FRAME VALUE mixed_burn_deep(VALUE self, VALUE left)
{
	ENTER_AS("burn_deep");
	burn_at_last((int)(rb_num2long(left) % 7));
	LEAVE();
	return self;
}

HIDDEN void *burn_unlocked(void *unused)
{
	ENTER();
	burn();
	LEAVE();
	return unused;
}

FRAME VALUE mixed_burn_unlocked(VALUE self)
{
	ENTER_AS("burn_unlocked");
	rb_thread_call_without_gvl(burn_unlocked, NULL, NULL, NULL);
	LEAVE();
	return self;
}

/* A method of C that is called by one. */
FRAME VALUE mixed_burn_nested(VALUE self)
{
	ENTER_AS("burn_nested");
	rb_funcallv(self, rb_intern("burn"), 0, NULL);
	LEAVE();
	return self;
}

HIDDEN VALUE fiber_of_c(VALUE value, VALUE self)
{
	(void)value;
	ENTER();
	rb_funcallv(self, rb_intern("burn_nested"), 0, NULL);
	LEAVE();
	fiber_pauses();
	return nil;
}

/* In a fiber that has no frame of Ruby. */
FRAME VALUE mixed_burn_in_fiber(VALUE self)
{
	VALUE fiber = rb_fiber_new(fiber_of_c, self);

	ENTER_AS("burn_in_fiber");
	fiber_begins(shadow_new());
	rb_fiber_resume(fiber, 0, NULL);
	KEEP(fiber);
	LEAVE();
	return self;
}

/* ---- what mixed.rb tells and asks ---- */

static VALUE mixed_enter(VALUE self, VALUE kind, VALUE label)
{
	(void)self;
	return FIXNUM(push(rb_id2name(rb_sym2id(kind)), rb_id2name(rb_sym2id(label)), NULL));
}

static VALUE mixed_cut(VALUE self, VALUE depth)
{
	cut((int)rb_num2long(depth));
	return self;
}

static VALUE mixed_leaf_begins(VALUE self)
{
	leaf_from = clock_ns(CLOCK_MONOTONIC);
	return self;
}

static VALUE mixed_leaf_ends(VALUE self)
{
	leaf_ends(clock_ns(CLOCK_MONOTONIC));
	return self;
}

static VALUE mixed_leaf_ns(VALUE self, VALUE ns)
{
	leaf_ns = (int)rb_num2long(ns);
	return self;
}

static VALUE mixed_cpu_ns(VALUE self)
{
	(void)self;
	return FIXNUM(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

static VALUE mixed_fiber_new(VALUE self)
{
	(void)self;
	shadow_new();
	return FIXNUM(n_shadows - 1);
}

/* Right before it is resumed. */
static VALUE mixed_fiber_begins(VALUE self, VALUE number)
{
	fiber_begins(shadows[rb_num2long(number)]);
	return self;
}

/* Right before it yields or ends. */
static VALUE mixed_fiber_pauses(VALUE self)
{
	fiber_pauses();
	return self;
}

static VALUE mixed_forget(VALUE self)
{
	while (n_shadows)
		free(shadows[--n_shadows]);
	shadow = &root_shadow;
	shadow->depth = 0;
	return self;
}

/* ---- C functions that call Ruby ---- */

struct step {
	VALUE mixer, left;
	ID method;
};

#define STEP(mixer, left)                                                                          \
	(struct step)                                                                              \
	{                                                                                          \
		mixer, left, rb_intern("go")                                                       \
	}

static __attribute__((always_inline)) inline void go(struct step *step)
{
	rb_funcallv(step->mixer, step->method, 1, &step->left);
}

FRAME VALUE mixed_call(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("call");
	go(&step);
	LEAVE();
	return self;
}

/* By another method of C. */
FRAME VALUE mixed_nested(VALUE self, VALUE mixer, VALUE left)
{
	VALUE arguments[] = { mixer, left };

	ENTER_AS("nested");
	rb_funcallv(self, rb_intern(rb_num2long(left) % 2 ? "call" : "deep"), 2, arguments);
	LEAVE();
	return self;
}

FRAME VALUE mixed_call_public(VALUE self, VALUE mixer, VALUE left)
{
	ENTER_AS("call_public");
	rb_funcallv_public(mixer, rb_intern("go"), 1, &left);
	LEAVE();
	return self;
}

HIDDEN VALUE deep_3(struct step *step)
{
	ENTER();
	go(step);
	LEAVE();
	return nil;
}

FRAME VALUE deep_2(struct step *step, int again)
{
	ENTER();
	if (again)
		deep_2(step, again - 1);
	else
		deep_3(step);
	LEAVE();
	return nil;
}

HIDDEN VALUE deep_1(struct step *step)
{
	ENTER();
	deep_2(step, (int)rb_num2long(step->left) % 5);
	LEAVE();
	return nil;
}

FRAME VALUE mixed_deep(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("deep");
	deep_1(&step);
	LEAVE();
	return self;
}

/* Frames of other shapes: of a size known only now, aligned, large. */

HIDDEN void of_any_size(struct step *step)
{
	size_t size = 100 + 16 * (size_t)rb_num2long(step->left);
	char *room = alloca(size);

	ENTER();
	memset(room, 1, size);
	KEEP(room);
	go(step);
	KEEP(room);
	LEAVE();
}

HIDDEN void aligned(struct step *step)
{
	char room[64] __attribute__((aligned(64)));

	ENTER();
	KEEP(room);
	of_any_size(step);
	KEEP(room);
	LEAVE();
}

HIDDEN void aligned_of_any_size(struct step *step)
{
	char room[64] __attribute__((aligned(128)));
	char *more = alloca(16 * (size_t)rb_num2long(step->left) + 1);

	ENTER();
	KEEP(room);
	KEEP(more);
	aligned(step);
	KEEP(room);
	LEAVE();
}

HIDDEN void large(struct step *step)
{
	char room[20000];

	ENTER();
	KEEP(room);
	aligned_of_any_size(step);
	KEEP(room);
	LEAVE();
}

FRAME VALUE mixed_shapes(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("shapes");
	large(&step);
	LEAVE();
	return self;
}

/* Some of the arguments are on the stack. */

HIDDEN long many(long a, long b, long c, long d, long e, long f, struct step *step, long g, long h)
{
	ENTER();
	go(step);
	LEAVE();
	return a + b + c + d + e + f + g + h;
}

FRAME VALUE mixed_arguments(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	long sum;

	ENTER_AS("arguments");
	sum = many(1, 2, 3, 4, 5, 6, &step, 7, 8);
	KEEP(sum);
	LEAVE();
	return self;
}

FRAME VALUE mixed_yield(VALUE self, VALUE left)
{
	ENTER_AS("yield");
	rb_yield(left);
	LEAVE();
	return self;
}

HIDDEN void yield_deeper(VALUE left, int deeper)
{
	ENTER();
	if (deeper)
		yield_deeper(left, deeper - 1);
	else
		rb_yield(left);
	LEAVE();
}

FRAME VALUE mixed_yield_deep(VALUE self, VALUE left)
{
	ENTER_AS("yield_deep");
	yield_deeper(left, (int)rb_num2long(left) % 4);
	LEAVE();
	return self;
}

/* ---- and that catch exceptions ---- */

HIDDEN VALUE protected_body(VALUE data)
{
	ENTER();
	go((struct step *)data);
	LEAVE();
	return nil;
}

FRAME VALUE mixed_protect(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	int state = 0;

	ENTER_AS("protect");
	rb_protect(protected_body, (VALUE)&step, &state);
	if (state)
		abort();
	LEAVE();
	return self;
}

HIDDEN VALUE raises_by_ruby(VALUE data)
{
	struct step *step = (struct step *)data;

	ENTER();
	rb_funcallv(step->mixer, rb_intern("raises"), 1, &step->left);
	LEAVE();
	return nil;
}

HIDDEN VALUE raises_in_c(VALUE data)
{
	(void)data;
	ENTER();
	KEEP(own_depth);
	rb_raise(rb_eRuntimeError, "of C");
}

/* Goes on after an exception came through C and Ruby. */
FRAME VALUE mixed_after_protect(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	int state = 0;

	ENTER_AS("after_protect");
	rb_protect(raises_by_ruby, (VALUE)&step, &state);
	if (!state)
		abort();
	rb_set_errinfo(nil);
	CAUGHT();
	go(&step);
	LEAVE();
	return self;
}

HIDDEN VALUE nothing_to_ensure(VALUE data)
{
	return data;
}

FRAME VALUE mixed_ensure(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("ensure");
	rb_ensure(protected_body, (VALUE)&step, nothing_to_ensure, nil);
	LEAVE();
	return self;
}

static int ensure_depth;

HIDDEN VALUE ensured(VALUE data)
{
	cut(ensure_depth);
	ENTER();
	go((struct step *)data);
	LEAVE();
	return nil;
}

HIDDEN VALUE ensures(VALUE data)
{
	ENTER();
	ensure_depth = shadow->depth;
	rb_ensure(raises_by_ruby, data, ensured, data);
	LEAVE();
	return nil;
}

/* What has to be done while an exception is on its way. */
FRAME VALUE mixed_while_raised(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	int state = 0;

	ENTER_AS("while_raised");
	rb_protect(ensures, (VALUE)&step, &state);
	if (!state)
		abort();
	rb_set_errinfo(nil);
	LEAVE();
	return self;
}

static int rescue_depth;

HIDDEN VALUE rescued(VALUE data)
{
	cut(rescue_depth);
	ENTER();
	go((struct step *)data);
	LEAVE();
	return nil;
}

FRAME VALUE mixed_rescue(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	bool by_ruby = rb_num2long(left) % 2;

	ENTER_AS("rescue");
	rescue_depth = shadow->depth;
	rb_rescue2(by_ruby ? raises_by_ruby : raises_in_c, (VALUE)&step, rescued, (VALUE)&step,
		   rb_eStandardError, (VALUE)0);
	LEAVE();
	return self;
}

/*
 * A call of a function that does not return may be the last instruction of its caller: the return
 * address is that of the next function.
 */
static __attribute__((noreturn, noipa)) void never_returns(struct step *step)
{
	ENTER();
	go(step);
	KEEP(own_depth);
	rb_raise(rb_eRuntimeError, "not to return");
}

HIDDEN VALUE calls_at_its_end(VALUE data)
{
	ENTER();
	KEEP(own_depth);
	never_returns((struct step *)data);
}

FRAME VALUE mixed_never_returns(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	int state = 0;

	ENTER_AS("never_returns");
	rb_protect(calls_at_its_end, (VALUE)&step, &state);
	if (!state)
		abort();
	rb_set_errinfo(nil);
	LEAVE();
	return self;
}

HIDDEN VALUE caught(VALUE tag, VALUE data)
{
	(void)tag;
	ENTER();
	go((struct step *)data);
	LEAVE();
	return nil;
}

FRAME VALUE mixed_catch(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("catch");
	rb_catch("mixed", caught, (VALUE)&step);
	LEAVE();
	return self;
}

/* ---- that are called by Ruby as blocks ---- */

HIDDEN VALUE block(VALUE value, VALUE data)
{
	(void)value;
	ENTER();
	go((struct step *)data);
	LEAVE();
	return nil;
}

HIDDEN VALUE array_of_one(void)
{
	return rb_ary_push(rb_ary_new_capa(1), FIXNUM(1));
}

FRAME VALUE mixed_block_call(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	VALUE array = array_of_one();
	int core;

	ENTER_AS("block_call");
	core = push("core", "Array#each", NULL);
	rb_block_call(array, rb_intern("each"), 0, NULL, block, (VALUE)&step);
	cut(core);
	KEEP(array);
	LEAVE();
	return self;
}

FRAME VALUE mixed_proc(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	VALUE proc = rb_proc_new(block, (VALUE)&step);

	ENTER_AS("proc");
	rb_funcallv(proc, rb_intern("call"), 1, &left);
	KEEP(proc);
	LEAVE();
	return self;
}

FRAME VALUE mixed_mutex(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	VALUE mutex = rb_mutex_new();

	ENTER_AS("mutex");
	rb_mutex_synchronize(mutex, protected_body, (VALUE)&step);
	KEEP(mutex);
	LEAVE();
	return self;
}

/* ---- by the C library ---- */

static struct step *comparing;

HIDDEN int compare(const void *a, const void *b)
{
	struct step *step = comparing;

	if (step) {
		ENTER();
		comparing = NULL;
		go(step);
		LEAVE();
	}
	return *(const int *)a - *(const int *)b;
}

FRAME VALUE mixed_qsort(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	int numbers[] = { 3, 1, 4, 1, 5, 9, 2, 6 };

	ENTER_AS("qsort");
	comparing = &step;
	qsort(numbers, 8, sizeof(int), compare);
	LEAVE();
	return self;
}

FRAME VALUE mixed_bsearch(VALUE self, VALUE mixer, VALUE left)
{
	/* A call, although headers have an inline one. */
	void *(*volatile search)(const void *, const void *, size_t, size_t,
				 int (*)(const void *, const void *)) = bsearch;
	struct step step = STEP(mixer, left);
	int numbers[] = { 1, 2, 3, 4 }, key = 2;

	ENTER_AS("bsearch");
	comparing = &step;
	KEEP(search(&key, numbers, 4, sizeof(int), compare));
	LEAVE();
	return self;
}

static struct step *handling;

HIDDEN void handler(int number)
{
	(void)number;
	ENTER();
	go(handling);
	LEAVE();
}

/* Two functions deep in C, then on in a signal handler. */
HIDDEN void signals_itself(void)
{
	ENTER();
	raise(SIGUSR2);
	LEAVE();
}

FRAME VALUE mixed_signal(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_NODEFER };

	ENTER_AS("signal");
	handling = &step;
	sigaction(SIGUSR2, &action, NULL);
	signals_itself();
	LEAVE();
	return self;
}

/* ---- without Ruby's lock, and with it again ---- */

HIDDEN void *locked(void *data)
{
	ENTER();
	go(data);
	LEAVE();
	return NULL;
}

HIDDEN void *unlocked(void *data)
{
	ENTER();
	rb_thread_call_with_gvl(locked, data);
	LEAVE();
	return NULL;
}

FRAME VALUE mixed_without_lock(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);

	ENTER_AS("without_lock");
	rb_thread_call_without_gvl(unlocked, &step, NULL, NULL);
	LEAVE();
	return self;
}

/* ---- in a fiber ---- */

HIDDEN VALUE fiber_body(VALUE value, VALUE data)
{
	(void)value;
	ENTER();
	go((struct step *)data);
	LEAVE();
	fiber_pauses();
	return nil;
}

FRAME VALUE mixed_fiber(VALUE self, VALUE mixer, VALUE left)
{
	struct step step = STEP(mixer, left);
	VALUE fiber = rb_fiber_new(fiber_body, (VALUE)&step);

	ENTER_AS("fiber");
	fiber_begins(shadow_new());
	rb_fiber_resume(fiber, 0, NULL);
	KEEP(fiber);
	LEAVE();
	return self;
}

void Init_mixed(void);
unsigned long long ruby_abi_version(void);

/* Of any version: see above. */
unsigned long long ruby_abi_version(void)
{
	return 0;
}

void Init_mixed(void)
{
	static const struct {
		const char *name;
		VALUE (*func)();
		int argc;
	} methods[] = {
		{ "enter", mixed_enter, 2 },
		{ "cut", mixed_cut, 1 },
		{ "leaf_begins", mixed_leaf_begins, 0 },
		{ "leaf_ends", mixed_leaf_ends, 0 },
		{ "leaf_ns=", mixed_leaf_ns, 1 },
		{ "cpu_ns", mixed_cpu_ns, 0 },
		{ "fiber_new", mixed_fiber_new, 0 },
		{ "fiber_begins", mixed_fiber_begins, 1 },
		{ "fiber_pauses", mixed_fiber_pauses, 0 },
		{ "forget", mixed_forget, 0 },
		/* leaves */
		{ "burn", mixed_burn, 0 },
		{ "burn_deep", mixed_burn_deep, 1 },
		{ "burn_unlocked", mixed_burn_unlocked, 0 },
		{ "burn_nested", mixed_burn_nested, 0 },
		{ "burn_in_fiber", mixed_burn_in_fiber, 0 },
		/* call what the block does */
		{ "yield", mixed_yield, 1 },
		{ "yield_deep", mixed_yield_deep, 1 },
		/* call mixer.go(left) */
		{ "call", mixed_call, 2 },
		{ "call_public", mixed_call_public, 2 },
		{ "nested", mixed_nested, 2 },
		{ "deep", mixed_deep, 2 },
		{ "shapes", mixed_shapes, 2 },
		{ "arguments", mixed_arguments, 2 },
		{ "protect", mixed_protect, 2 },
		{ "after_protect", mixed_after_protect, 2 },
		{ "ensure", mixed_ensure, 2 },
		{ "while_raised", mixed_while_raised, 2 },
		{ "rescue", mixed_rescue, 2 },
		{ "never_returns", mixed_never_returns, 2 },
		{ "catch", mixed_catch, 2 },
		{ "block_call", mixed_block_call, 2 },
		{ "proc", mixed_proc, 2 },
		{ "mutex", mixed_mutex, 2 },
		{ "qsort", mixed_qsort, 2 },
		{ "bsearch", mixed_bsearch, 2 },
		{ "signal", mixed_signal, 2 },
		{ "without_lock", mixed_without_lock, 2 },
		{ "fiber", mixed_fiber, 2 },
	};
	VALUE mixed = rb_define_module("Mixed");

	nil = rb_ary_pop(rb_ary_new_capa(0));
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		rb_define_module_function(mixed, methods[i].name, methods[i].func, methods[i].argc);
}
