/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaching: find the ECs of the threads, find the layout (discover.h, or the cache if the binary
 * is known), validate it (validate.h).
 */
#include "ruby/vm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/stop.h"
#include "ruby/cache.h"
#include "ruby/class.h"
#include "ruby/code.h"
#include "ruby/constants.h"
#include "ruby/discover.h"
#include "ruby/object.h"
#include "ruby/validate.h"
#include "ruby/tls.h"
#include "target/dtv.h"
#include "target/maps.h"
#include "target/page_cache.h"

/*
 * A thread that goes from one fiber to the next all the time is met between two of them now and
 * then.
 */
#define EC_ATTEMPTS 8
#define GVL_LIST_MAX                                                                               \
	65536 /* threads of a 2.7; it is looked through seldom, and no tick waits for it */
#if defined(__x86_64__) /* glibc and musl */
#define THREAD_ID_IS_POINTER 1
#else
#define THREAD_ID_IS_POINTER 0
#endif

/* What is found on the way. */
struct attach {
	struct ruby_vm *vm;
	uint64_t *tps; /* thread pointers of the process' threads; owned */
	size_t n_tps;
	uint64_t *ecs; /* owned */
	size_t n_ecs;
	struct ruby_ec_shape shape;
	uint64_t first_tp; /* of the thread whose EC is ecs[0] */
	bool no_thread; /* an EC was found that leads to no thread: too early, or another layout */
	struct ruby_findings found;
};

void ruby_vm_check_add(struct ruby_vm *vm, const char *name, bool ok, bool needed, const char *fmt,
		       ...)
{
	struct ruby_vm_check *c = &vm->checks[vm->n_checks];
	va_list ap;

	if (vm->n_checks + 1 < RUBY_VM_CHECKS)
		vm->n_checks++;
	c->name = name;
	c->ok = ok;
	c->needed = needed;
	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
}

static int attach_init(struct attach *a, const struct ruby_attach_options *opts)
{
	size_t i;

	a->tps = calloc(opts->n_tasks + 1, sizeof(*a->tps));
	a->ecs = calloc(opts->n_tasks + 1, sizeof(*a->ecs));
	if (!a->tps || !a->ecs)
		return -ENOMEM;
	for (i = 0; i < opts->n_tasks; i++)
		if (opts->tasks[i].tgid == (uint32_t)a->vm->pid && opts->tasks[i].thread_pointer)
			a->tps[a->n_tps++] = opts->tasks[i].thread_pointer;
	return 0;
}

static void attach_deinit(struct attach *a)
{
	free(a->tps);
	free(a->ecs);
}

/* 2.7: the EC of the thread that held the VM's lock last. */
static void find_global_ec(struct attach *a, struct ruby_ec_shape *shape)
{
	struct rbpf_layout *l = &a->vm->walk;
	uint64_t ec;

	l->ec_global = a->vm->binary.symbol[RUBY_SYM_ruby_current_execution_context_ptr];
	if (memory_read_u64(&a->vm->mem, l->ec_global, &ec))
		return;
	if (!ruby_is_ec(&a->vm->mem, ec, shape)) {
		a->no_thread = ruby_has_vm_stack(&a->vm->mem, ec);
		return;
	}
	l->tls.model = RBPF_TLS_GLOBAL;
	a->ecs[a->n_ecs++] = ec;
	a->first_tp = a->tps[0];
	ruby_vm_check_add(a->vm, "execution context", true, true, "one for all threads, at 0x%llx",
			  (unsigned long long)l->ec_global);
}

/*
 * The slot of the thread at @tp, where its contents do not tell it from others: the code that reads
 * it does, if it lies in static TLS.
 */
static bool find_slot_by_code(struct attach *a, uint64_t tp, struct ruby_ec_shape *shape)
{
	struct rbpf_layout *l = &a->vm->walk;
	struct ruby_code code;
	uint64_t ec;

	ruby_code_read(&a->vm->mem, &a->vm->binary, tp, &code);
	if (!code.ec_slot || code.ec_slot - (tp - DTV_STATIC_MAX) >= 2 * DTV_STATIC_MAX ||
	    memory_read_u64(&a->vm->mem, code.ec_slot, &ec))
		return false;
	if (!ruby_is_ec(&a->vm->mem, ec, shape)) {
		a->no_thread |= ruby_has_vm_stack(&a->vm->mem, ec);
		return false;
	}
	l->tls.model = RBPF_TLS_STATIC;
	l->tls.offset = (int64_t)(code.ec_slot - tp);
	return true;
}

/* The main thread comes first: it has an EC, unless a program embeds Ruby in another thread. */
static void find_tls_ecs(struct attach *a, struct ruby_ec_shape *shape)
{
	struct rbpf_layout *l = &a->vm->walk;
	uint64_t ec;
	size_t i;

	for (i = 0; i < a->n_tps && !a->n_ecs; i++) {
		if ((!ruby_tls_find(&a->vm->mem, a->tps[i], shape, l) &&
		     !find_slot_by_code(a, a->tps[i], shape)) ||
		    ruby_tls_read(&a->vm->mem, l, a->tps[i], &ec))
			continue;
		a->ecs[a->n_ecs++] = ec;
		a->first_tp = a->tps[i];
	}
	for (; a->n_ecs && i < a->n_tps; i++)
		if (!ruby_tls_read(&a->vm->mem, l, a->tps[i], &ec) &&
		    ruby_is_ec(&a->vm->mem, ec, shape))
			a->ecs[a->n_ecs++] = ec;
	for (i = 0; i < a->n_tps && !a->n_ecs && !a->no_thread; i++)
		a->no_thread = ruby_tls_has_stack(&a->vm->mem, a->tps[i]);
	if (l->tls.model == RBPF_TLS_STATIC)
		ruby_vm_check_add(a->vm, "execution context", true, true,
				  "at thread pointer %+lld, static TLS", (long long)l->tls.offset);
	else if (l->tls.model == RBPF_TLS_DTV)
		ruby_vm_check_add(a->vm, "execution context", true, true,
				  "at offset %lld of TLS module %u, through the DTV",
				  (long long)l->tls.offset, l->tls.module);
}

/* Returns whether there may be one the next time: something was found that leads to no thread. */
static bool try_ecs(struct attach *a)
{
	struct ruby_ec_shape shape = { 0 };

	memory_refresh(&a->vm->mem);
	a->no_thread = false;
	if (a->n_tps && a->vm->binary.symbol[RUBY_SYM_ruby_current_execution_context_ptr])
		find_global_ec(a, &shape);
	else
		find_tls_ecs(a, &shape);
	a->shape = shape;
	return !a->n_ecs && a->no_thread;
}

static int find_ecs(struct attach *a, struct err *err)
{
	int attempt;

	for (attempt = 0; attempt < EC_ATTEMPTS && try_ecs(a); attempt++)
		;
	if (a->n_ecs)
		return 0;
	ruby_vm_check_add(a->vm, "execution context", false, true,
			  a->no_thread ? "found, but it leads to no thread"
				       : "no thread of the process has one");
	if (a->no_thread)
		return err_set(
			err, -EAGAIN, ERR_TARGET,
			"cannot find out the memory layout of Ruby %s (yet): '%s' is unknown",
			a->vm->binary.version, ruby_field_info[RUBY_FIELD_th_ec].name);
	return err_set(err, -EAGAIN, ERR_TARGET,
		       "pid %d holds Ruby %s, but no thread of it runs Ruby code (yet)",
		       (int)a->vm->pid, a->vm->binary.version);
}

/* What the walker does without is 0 there. */
static uint16_t or_none(uint16_t offset)
{
	return offset == RUBY_UNKNOWN ? 0 : offset;
}

void ruby_vm_fill_walk(struct ruby_vm *vm)
{
	const struct ruby_layout *l = &vm->layout;
	struct rbpf_layout *w = &vm->walk;

	w->text_lo = vm->binary.text_lo;
	w->text_hi = vm->binary.text_hi;
	w->zjit_entry = vm->binary.symbol[RUBY_SYM_rb_zjit_entry];
	w->flags = vm->rules.cfp_before_frame ? RBPF_LAYOUT_CFP_FIRST : 0;
	w->flags |= l->string_embed == RSTRING_EMBED_LONG ? RBPF_LAYOUT_LONG_EMBED : 0;
	w->flags |= vm->rules.old_by_age ? 0 : RBPF_LAYOUT_NO_AGE;
	w->flags |= vm->rules.zjit_bare ? RBPF_LAYOUT_ZJIT_BARE : 0;
	w->flags |= vm->rules.runs_early ? RBPF_LAYOUT_RUNS_EARLY : 0;
	w->ec_thread_ptr = l->ec_thread_ptr;
	w->ec_fiber_ptr = or_none(l->ec_fiber_ptr);
	w->ec_stack_start = or_none(l->ec_stack_start);
	w->th_ec = l->th_ec;
	w->th_ractor = or_none(l->th_ractor);
	w->th_thread_id = or_none(l->th_thread_id);
	w->ractor_running_ec = or_none(l->ractor_running_ec);
	w->fiber_ec = or_none(l->fiber_ec);
	w->fiber_prev = or_none(l->fiber_prev);
	w->cf_size = l->cf_size;
	w->cf_jit_return = or_none(l->cf_jit_return);
	w->gc_flags = w->gc_count = w->gc_owner = 0;
	w->gc_single = w->gc_ractor = w->gc_majors = 0;
	w->ractor_objspace = w->objspace_flags = 0;
	w->gvl_queue = w->gvl_owner = 0;
	w->th_ready = w->ractor_gvl_queue = w->ractor_gvl_owner = 0;
	w->mutex_form = (uint8_t)vm->rules.mutex_form;
}

/* What the BPF programs need to copy what names are read from; all of it is proven. */
static void fill_naming(struct ruby_vm *vm)
{
	const struct ruby_layout *l = &vm->layout;

	vm->walk.naming = (struct rbpf_naming) {
		.symbols = vm->symbols,
		.shapes = vm->class_keys.shapes,
		.key_classpath = vm->class_keys.classpath,
		.key_attached = vm->class_keys.attached,
		.parent_iseq = l->parent_iseq,
		.local_iseq = l->local_iseq,
		.iseq_location = l->iseq_location,
		.original_id = l->original_id,
		.insns_body = l->insns_body,
		.insns_size = l->insns_size,
		.insns_index = l->insns_index,
		.insn_entry = l->insn_entry,
		.class_path = l->class_path,
		.class_attached = l->class_attached,
		.class_size = (uint16_t)ruby_class_size(l),
		.class_form = (uint8_t)l->class_form,
		.symbol_form = (uint8_t)l->symbol_form,
		.singleton_bit = (uint8_t)l->singleton_bit,
		.labels_from_parents = vm->rules.labels_from_parents,
	};
}

/*
 * 2.7: call @match for the thread_id of each thread that the VM lists, until it returns true.
 * Returns that rb_thread_t, or 0.
 */
static uint64_t gvl_each_thread(const struct ruby_vm *vm,
				bool (*match)(uint64_t thread_id, void *arg), void *arg)
{
	uint64_t node, id;
	size_t i;

	if (memory_read_u64(&vm->mem, vm->walk.threads, &node))
		return 0;
	for (i = 0; i < GVL_LIST_MAX && node != vm->walk.threads; i++) {
		if (memory_read_u64(&vm->mem, node + vm->walk.th_thread_id, &id))
			return 0;
		if (match(id, arg))
			return node;
		if (memory_read_u64(&vm->mem, node, &node))
			return 0;
	}
	return 0;
}

static bool same_id(uint64_t thread_id, void *arg)
{
	return thread_id == *(uint64_t *)arg;
}

static uint64_t gvl_thread(const struct ruby_vm *vm, uint64_t tp)
{
	uint64_t id = tp + (uint64_t)vm->walk.thread_id_bias;

	return gvl_each_thread(vm, same_id, &id);
}

/*
 * 2.7: how thread_id (a pthread_t) and thread pointer relate, which is the C library's affair: the
 * same on x86_64, a constant apart on arm64. Learnt from one that some thread must have.
 */
static int learn_thread_ids(struct attach *a, struct err *err)
{
	struct ruby_vm *vm = a->vm;
	uint64_t th, id;
	size_t i;

	if (vm->walk.tls.model != RBPF_TLS_GLOBAL)
		return 0;
	vm->walk.threads = vm->vm ? vm->vm + vm->layout.vm_living_threads : 0;
	if (memory_read_u64(&vm->mem, a->ecs[0] + vm->walk.ec_thread_ptr, &th) ||
	    memory_read_u64(&vm->mem, th + vm->walk.th_thread_id, &id))
		return err_set(err, -EPROTO, ERR_TARGET,
			       "cannot read the threads of Ruby %s in pid %d", vm->binary.version,
			       (int)vm->pid);
	for (i = 0; i < a->n_tps; i++) {
		vm->walk.thread_id_bias = (int64_t)(id - a->tps[i]);
		/* Threads' stacks lie at equal distances: another's pointer may fit, too. */
		if (THREAD_ID_IS_POINTER && vm->walk.thread_id_bias)
			continue;
		/* If it is the same, any thread of Ruby's will do; else it is the first. */
		if (gvl_thread(vm, a->tps[THREAD_ID_IS_POINTER ? i : 0]))
			break;
	}
	ruby_vm_check_add(vm, "threads", i < a->n_tps, true, "thread_id is thread pointer %+lld",
			  (long long)vm->walk.thread_id_bias);
	if (i == a->n_tps)
		return err_set(
			err, -EPROTO, ERR_TARGET,
			"cannot match the threads of Ruby %s with those of pid %d: self-check "
			"failed at 'thread.thread_id'",
			vm->binary.version, (int)vm->pid);
	return 0;
}

int ruby_vm_thread_ec(const struct ruby_vm *vm, uint64_t tp, uint64_t *ret)
{
	uint64_t th;

	if (vm->walk.tls.model != RBPF_TLS_GLOBAL)
		return ruby_tls_read(&vm->mem, &vm->walk, tp, ret);
	th = gvl_thread(vm, tp);
	if (!th)
		return -ENOENT;
	return memory_read_u64(&vm->mem, th + vm->walk.th_ec, ret);
}

bool ruby_vm_preset(const struct ruby_vm *vm, struct rbpf_layout *ret)
{
	struct rbpf_layout preset = vm->walk;

	/* ZJIT's frames cannot be told from others without an address. */
	if (preset.tls.model == RBPF_TLS_NONE || preset.tls.model == RBPF_TLS_GLOBAL ||
	    preset.zjit_entry)
		return false;
	preset.ec_global = preset.threads = 0;
	preset.text_lo = preset.text_hi = 0;
	preset.gc_flags = preset.gc_count = preset.gc_owner = 0;
	preset.gc_single = preset.gc_ractor = preset.gc_majors = 0;
	preset.ractor_objspace = preset.objspace_flags = 0;
	preset.gvl_queue = preset.gvl_owner = 0;
	preset.tag_form = RUBY_TAG_UNKNOWN;
	preset.tag_guard = 0;
	preset.naming.symbols = preset.naming.shapes = 0;
	*ret = preset;
	return true;
}

bool ruby_vm_zjit_on(const struct ruby_vm *vm)
{
	uint64_t entry = 0;

	return vm->walk.zjit_entry && !memory_read_u64(&vm->mem, vm->walk.zjit_entry, &entry) &&
	       entry;
}

void ruby_vm_era_spans(const struct ruby_vm *vm, struct ruby_era_words *words,
		       struct memory_span *spans)
{
	const bool known = vm->walk.gc_count && vm->walk.gc_flags;

	*words = (struct ruby_era_words) { 0 };
	spans[0] = (struct memory_span) { .addr = vm->walk.gc_count, .dst = &words->before };
	spans[1] = (struct memory_span) { .addr = vm->walk.gc_flags, .dst = &words->flags };
	spans[2] = (struct memory_span) { .addr = rbpf_gc_words(vm->walk.gc_count),
					  .dst = words->words };
	spans[3] = (struct memory_span) { .addr = vm->walk.gc_single, .dst = &words->ractor };
	spans[4] = (struct memory_span) { .addr = vm->walk.gc_majors, .dst = words->words };
	if (!known)
		return;
	spans[0].len = sizeof(words->before);
	spans[1].len = sizeof(words->flags);
	spans[2].len = sizeof(words->words);
	spans[3].len = vm->walk.gc_single ? sizeof(words->ractor) : 0;
	spans[4].len = vm->walk.gc_majors ? 2 * sizeof(words->words[0]) : 0;
}

int ruby_vm_era(const struct ruby_vm *vm, const struct ruby_era_words *words,
		const struct memory_span *spans, uint64_t *ret, uint64_t *major)
{
	const uint64_t after = words->words[RBPF_GC_WORDS - 1];
	uint32_t flags;

	*major = 0;
	if (!vm->walk.gc_count || !vm->walk.gc_flags)
		return -ENOENT;
	if (!spans[0].ok || !spans[1].ok || !spans[2].ok || !spans[3].ok || !spans[4].ok)
		return -EFAULT;
	if (words->ractor != vm->walk.gc_ractor)
		return -ENOENT;
	flags = rbpf_gc_flags(words->flags, vm->walk.gc_during_bit);
	*ret = rbpf_gc_era(after, flags);
	if (words->before != after || rbpf_gc_in_transition(flags)) {
		*ret = rbpf_gc_era(after, 0);
		return -EAGAIN;
	}
	*major = rbpf_gc_major(words->words, vm->walk.gc_major_word, flags);
	return 0;
}

int ruby_vm_gc_era(const struct ruby_vm *vm, uint64_t *ret, uint64_t *major)
{
	struct memory_span spans[RUBY_ERA_SPANS];
	struct ruby_era_words words;

	ruby_vm_era_spans(vm, &words, spans);
	memory_read_spans(&vm->mem, spans, ARRAY_SIZE(spans));
	return ruby_vm_era(vm, &words, spans, ret, major);
}

/*
 * The ECs of now: a thread may have switched to another fiber since, and the other may be gone,
 * since to find the layout takes a while.
 */
static void refresh_ecs(struct attach *a)
{
	const struct rbpf_layout *l = &a->vm->walk;
	struct ruby_ec_shape shape = a->shape;
	size_t i, n = 0;
	uint64_t ec;

	memory_refresh(&a->vm->mem);
	if (l->tls.model == RBPF_TLS_GLOBAL) {
		if (!memory_read_u64(&a->vm->mem, l->ec_global, &ec) &&
		    ruby_is_ec(&a->vm->mem, ec, &shape))
			a->ecs[0] = ec;
		return;
	}
	for (i = 0; i < a->n_tps; i++)
		if (!ruby_tls_read(&a->vm->mem, l, a->tps[i], &ec) &&
		    ruby_is_ec(&a->vm->mem, ec, &shape))
			a->ecs[n++] = ec;
	if (n)
		a->n_ecs = n;
}

static int prove(struct attach *a, uint64_t current_vm, uint64_t symbols, bool known,
		 struct err *err)
{
	int r;

	ruby_vm_fill_walk(a->vm);
	refresh_ecs(a);
	r = ruby_validate(a->vm, a->ecs, a->n_ecs, a->first_tp, current_vm, symbols, known, err);
	if (!r)
		r = learn_thread_ids(a, err);
	if (!r)
		fill_naming(a->vm);
	return r;
}

static int prove_found(struct ruby_vm *vm, void *arg, struct err *err)
{
	struct attach *a = arg;

	(void)vm;
	return prove(a, a->found.current_vm, a->found.symbols, false, err);
}

static int discover(struct attach *a, const struct ruby_attach_options *opts, struct err *err)
{
	unsigned int allowed = opts->sources ? opts->sources : RUBY_ALL_SOURCES;
	struct ruby_vm *vm = a->vm;
	int r;

	ruby_discover(vm, allowed, a->first_tp, a->ecs, a->n_ecs, &a->found);
	r = ruby_layout_settle(vm, &a->found, allowed, prove_found, a, err);
	if (!r && opts->cache)
		r = ruby_cache_put(opts->cache, opts->uid, vm, a->found.current_vm) ? err_oom(err)
										    : 0;
	return r;
}

static int attach(struct attach *a, const struct ruby_attach_options *opts, struct err *err)
{
	struct ruby_vm *vm = a->vm;
	uint64_t current_vm, symbols;
	size_t n_checks;
	int r;

	r = attach_init(a, opts);
	if (r)
		return err_oom(err);
	r = find_ecs(a, err);
	if (r)
		return r;
	n_checks = vm->n_checks;
	if (opts->cache && !ruby_cache_get(opts->cache, opts->uid, vm, &current_vm, &symbols)) {
		r = prove(a, current_vm, symbols, true, err);
		if (r != -EPROTO)
			return r;
		vm->n_checks = n_checks;
	}
	return discover(a, opts, err);
}

static int attach_within_budget(struct ruby_vm *vm, const struct ruby_attach_options *opts,
				struct err *err)
{
	struct maps maps = MAPS_INIT;
	struct attach a = { .vm = vm };
	uint64_t object;
	int r;

	r = maps_read(vm->pid, &maps, err);
	if (r)
		return r;
	r = ruby_binary_find(vm->worker, vm->pid, &maps, &vm->mem, &vm->binary, err);
	maps_deinit(&maps);
	if (r == -ENOENT)
		return err_set(err, r, ERR_TARGET, "pid %d is not a Ruby process", (int)vm->pid);
	if (r)
		return r;
	if (!ruby_version_supported(vm->binary.version))
		return err_set(err, -ENOTSUP, ERR_TARGET,
			       "pid %d runs CRuby %s, which rbpf does not know (supported: %s and "
			       "newer)",
			       (int)vm->pid, vm->binary.version, RUBY_OLDEST);
	vm->rules = ruby_rules_for(vm->binary.version);
	ruby_vm_check_add(vm, "binary", true, true, "Ruby %s, %s (build-id %s)", vm->binary.version,
			  vm->binary.path, vm->binary.build_id[0] ? vm->binary.build_id : "none");
	r = attach(&a, opts, err);
	attach_deinit(&a);
	if (r == -EPROTO &&
	    memory_read_u64(&vm->mem, vm->binary.symbol[RUBY_SYM_rb_cObject], &object))
		return err_set(
			err, -ESRCH, ERR_TARGET,
			"pid %d exited or executed another program while rbpf was attaching to it",
			(int)vm->pid);
	if (r == -EPROTO)
		err_hint(err, "attach the output of 'rbpf doctor -p %d' to a bug report",
			 (int)vm->pid);
	return r;
}

int ruby_vm_attach(pid_t pid, const struct ruby_attach_options *opts, struct ruby_vm *ret,
		   struct err *err)
{
	struct memory_budget reads = { .left = RUBY_ATTACH_BYTES };
	const struct memory process = memory_process(pid);
	struct page_cache pages;
	int r;

	*ret = (struct ruby_vm)RUBY_VM_INIT;
	ret->pid = pid;
	ret->mem = process;
	if (page_cache_init(&pages, &process))
		return err_oom(err);
	ret->mem = page_cache_memory(&pages);
	ret->mem.budget = &reads;
	ret->worker = opts->worker;
	r = attach_within_budget(ret, opts, err);
	ret->mem = process;
	page_cache_deinit(&pages);
	/* Those of other kinds are about the process, and name it. */
	if (r && err && err->code && err->kind == ERR_RUNTIME)
		err_context(err, "while attaching to pid %d", (int)pid);
	if (r && stop_overdue())
		return err_set(err, -EINTR, ERR_RUNTIME, "interrupted");
	if (r && reads.used_up)
		return err_set(
			err, -E2BIG, ERR_TARGET,
			"cannot attach to pid %d: more than %u MiB of its memory would have to be "
			"read",
			(int)pid, RUBY_ATTACH_BYTES >> 20);
	return r;
}

void ruby_vm_deinit(struct ruby_vm *vm)
{
	ruby_binary_deinit(&vm->binary);
	*vm = (struct ruby_vm)RUBY_VM_INIT;
}

int ruby_vm_fork(const struct ruby_vm *parent, pid_t pid, struct ruby_vm *ret)
{
	struct ruby_vm vm = *parent;

	vm.pid = pid;
	vm.mem = memory_process(pid);
	vm.binary.path = strdup(parent->binary.path);
	if (!vm.binary.path)
		return -ENOMEM;
	ruby_constants_ref(vm.binary.constants);
	*ret = vm;
	return 0;
}
