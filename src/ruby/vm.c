/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaching: find the ECs of the threads (thread_ecs.h), find the layout (discover.h, or the cache
 * if the binary is known), validate it (validate.h).
 */
#include "ruby/vm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/stop.h"
#include "ruby/cache.h"
#include "ruby/class.h"
#include "ruby/constants.h"
#include "ruby/discover.h"
#include "ruby/object.h"
#include "ruby/thread_ecs.h"
#include "ruby/validate.h"
#include "target/maps.h"
#include "target/page_cache.h"

/* What is found on the way. */
struct attach {
	struct ruby_vm *vm;
	struct ruby_thread_ecs threads;
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
	w->th_ready = w->ractor_gvl_queue = w->ractor_gvl_owner = w->th_status = 0;
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

static int prove(struct attach *a, uint64_t current_vm, uint64_t symbols, bool known,
		 struct err *err)
{
	struct ruby_thread_ecs *threads = &a->threads;
	int r;

	ruby_vm_fill_walk(a->vm);
	ruby_thread_ecs_refresh(threads, a->vm);
	r = ruby_validate(a->vm, threads->ecs, threads->n_ecs, threads->first_tp, current_vm,
			  symbols, known, err);
	if (!r)
		r = ruby_thread_ecs_match(threads, a->vm, err);
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

	ruby_discover(vm, allowed, a->threads.first_tp, a->threads.ecs, a->threads.n_ecs,
		      &a->found);
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
	bool is_known;
	int r;

	if (ruby_thread_ecs_init(&a->threads, vm, opts->tasks, opts->n_tasks))
		return err_oom(err);
	is_known = opts->cache &&
		   !ruby_cache_get(opts->cache, opts->uid, vm, &current_vm, &symbols);
	a->threads.is_early = is_known && opts->just_begun;
	r = ruby_thread_ecs_find(&a->threads, vm, err);
	if (r)
		return r;
	if (!is_known)
		return discover(a, opts, err);
	n_checks = vm->n_checks;
	r = prove(a, current_vm, symbols, true, err);
	if (r != -EPROTO)
		return r;
	vm->n_checks = n_checks;
	if (opts->just_begun)
		return err_set(err, -EAGAIN, ERR_TARGET,
			       "what is known of Ruby %s is not so (yet) in pid %d",
			       vm->binary.version, (int)vm->pid);
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
	ruby_thread_ecs_deinit(&a.threads);
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
