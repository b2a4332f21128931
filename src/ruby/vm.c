/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaching: hint and proof.
 *
 * The version names a layout row. Where a thread keeps its EC depends on how libruby was linked and
 * loaded, and stripped builds of 3.3 on do not name the variable; so the slot is found by its
 * contents. The thread pointer leads to the DTV, which lists the thread's TLS blocks, one a module;
 * and an EC is easily recognised: its control frame pointer lies in its VM stack at a whole number
 * of frames from the end, and its thread points back at it. If the block lies next to the thread
 * pointer (static TLS, as usual), the slot is at the same distance in each thread.
 *
 * Then the row is proven on a live stack: each frame must lead to an iseq or method entry whose
 * name can be read.
 */
#include "ruby/vm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/object.h"
#include "ruby/walk.h"
#include "target/maps.h"

/*
 * The DTV: glibc has entries of two words, musl of one; entry 0 is a count, block m belongs to
 * module m. sysdeps/x86_64/nptl/tls.h (tcbhead_t.dtv), sysdeps/aarch64/nptl/tls.h; musl
 * src/internal/pthread_impl.h.
 */
#if defined(__x86_64__)
#define DTV_OFFSET 8
#else
#define DTV_OFFSET 0
#endif
#define DTV_MAX_MODULES 256
#define TLS_BLOCK                                                                                  \
	512 /* bytes of a module's block that are searched: Ruby's have up to 22 words \
			     */
#define STATIC_TLS_MAX 65536 /* a block nearer to the thread pointer than this is in static TLS */

__attribute__((format(printf, 4, 5))) static void check_add(struct ruby_vm *vm, const char *name,
							    bool ok, const char *fmt, ...)
{
	struct ruby_vm_check *c = &vm->checks[vm->n_checks];
	va_list ap;

	if (vm->n_checks + 1 < RUBY_VM_CHECKS)
		vm->n_checks++;
	c->name = name;
	c->ok = ok;
	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
}

/* An EC whose stack can be walked, by everything that can be checked without naming a frame. */
static bool looks_like_ec(const struct memory *mem, const struct rbpf_layout *l, uint64_t ec)
{
	uint64_t w[8], th_ec, hi;

	if (!ruby_is_object(ec) || memory_read(mem, ec, w, sizeof(w)))
		return false;
	hi = w[0] + w[1] * 8;
	if (!ruby_is_object(w[0]) || !w[1] || w[1] > (1ull << 32) || w[2] <= w[0] || w[2] >= hi ||
	    (hi - w[2]) % l->cf_size)
		return false;
	return !memory_read_u64(mem, w[l->ec_thread_ptr / 8] + l->th_ec, &th_ec) && th_ec == ec;
}

/* The first word of the TLS block at @block that is an EC; *@ret is its address. */
static bool find_slot(const struct memory *mem, const struct rbpf_layout *l, uint64_t block,
		      uint64_t *ret)
{
	uint64_t words[TLS_BLOCK / 8];
	size_t i, n = memory_read_some(mem, block, words, sizeof(words)) / 8;

	for (i = 0; i < n; i++) {
		if (looks_like_ec(mem, l, words[i])) {
			*ret = block + i * 8;
			return true;
		}
	}
	return false;
}

/* Look through the TLS blocks of the thread at @tp. @entry: bytes of a DTV entry. */
static bool find_ec(const struct memory *mem, struct rbpf_layout *l, uint64_t tp, uint16_t entry)
{
	uint64_t dtv, words[DTV_MAX_MODULES * 2], slot;
	size_t n;
	uint32_t m;

	if (memory_read_u64(mem, tp + DTV_OFFSET, &dtv))
		return false;
	n = memory_read_some(mem, dtv, words, (size_t)DTV_MAX_MODULES * entry) / entry;
	for (m = 1; m < n; m++) {
		uint64_t block = words[m * entry / 8];

		if (!ruby_is_object(block) || !find_slot(mem, l, block, &slot))
			continue;
		if (slot - (tp - STATIC_TLS_MAX) < 2 * STATIC_TLS_MAX) {
			l->tls_model = RBPF_TLS_STATIC;
			l->tls_offset = (int64_t)(slot - tp);
			return true;
		}
		l->tls_model = RBPF_TLS_DTV;
		l->dtv_offset = DTV_OFFSET;
		l->dtv_entry = entry;
		l->tls_module = m;
		l->tls_offset = (int64_t)(slot - block);
		return true;
	}
	return false;
}

/* The main thread comes first: it has an EC, unless a program embeds Ruby in another thread. */
static int find_tls(struct ruby_vm *vm, const struct rbpf_task *tasks, size_t n, struct err *err)
{
	struct rbpf_layout *l = &vm->walk;
	size_t i;

	for (i = 0; i < n; i++) {
		if (tasks[i].tgid != (uint32_t)vm->pid || !tasks[i].thread_pointer)
			continue;
		if (!find_ec(&vm->mem, l, tasks[i].thread_pointer, 16) &&
		    !find_ec(&vm->mem, l, tasks[i].thread_pointer, 8))
			continue;
		if (l->tls_model == RBPF_TLS_STATIC)
			check_add(vm, "execution context", true,
				  "at thread pointer %+lld, static TLS", (long long)l->tls_offset);
		else
			check_add(vm, "execution context", true,
				  "at offset %lld of TLS module %u, through the DTV",
				  (long long)l->tls_offset, l->tls_module);
		return 0;
	}
	check_add(vm, "execution context", false, "no thread of the process has one");
	return err_set(err, -EAGAIN, ERR_TARGET,
		       "pid %d holds Ruby %s, but no thread of it runs Ruby code (yet)",
		       (int)vm->pid, vm->binary.version);
}

int ruby_vm_thread_ec(const struct ruby_vm *vm, uint64_t tp, uint64_t *ret)
{
	const struct rbpf_layout *l = &vm->walk;
	uint64_t base = tp, ec;

	if (l->tls_model == RBPF_TLS_DTV) {
		if (memory_read_u64(&vm->mem, tp + (uint64_t)(int64_t)l->dtv_offset, &base) ||
		    memory_read_u64(&vm->mem, base + (uint64_t)l->tls_module * l->dtv_entry, &base))
			return -EFAULT;
		if (!ruby_is_object(base))
			return -ENOENT;
	}
	if (memory_read_u64(&vm->mem, base + (uint64_t)l->tls_offset, &ec))
		return -EFAULT;
	if (!ec)
		return -ENOENT;
	*ret = ec;
	return 0;
}

/* Where C functions' names are found, and classes' names in the Rubies that keep them as ivars. */
static int find_names(struct ruby_vm *vm, struct err *err)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	uint64_t object = 0;
	int r;

	if (memory_read_u64(&vm->mem, vm->binary.cObject, &object) || !ruby_is_object(object))
		return err_set(err, -EAGAIN, ERR_TARGET, "Ruby in pid %d has not started yet",
			       (int)vm->pid);
	if (vm->layout->class_form == RUBY_CLASS_IV_TBL) {
		r = ruby_class_keys_learn(vm, object, &vm->key_classpath, &vm->key_attached);
		check_add(vm, "class names", !r, "__classpath__ and __attached__ of Object");
	} else {
		r = ruby_class_name(vm, object, &name);
		r = r ? r : strcmp(buf_str(&name), "Object");
		check_add(vm, "class names", !r, "rb_cObject is named \"%s\"", buf_str(&name));
	}
	if (r)
		return err_set(
			err, -EPROTO, ERR_TARGET,
			"the %s layout does not match this build of Ruby %s (self-check failed "
			"at 'class name')",
			vm->layout->version, vm->binary.version);

	vm->symbols = vm->binary.symbols;
	r = 0;
	if (!vm->symbols)
		r = ruby_symbols_search(vm, vm->binary.data_lo, vm->binary.data_hi, &vm->symbols);
	check_add(vm, "symbol table", !r,
		  vm->binary.symbols ? "named by the file" : "found by its shape");
	if (r)
		return err_set(
			err, -EPROTO, ERR_TARGET,
			"the %s layout does not match this build of Ruby %s (self-check failed "
			"at 'symbol table')",
			vm->layout->version, vm->binary.version);
	return 0;
}

/* Name each frame of one stack. Returns how many could not be; *@total counts all. */
static size_t prove_stack(const struct ruby_vm *vm, const struct ruby_stack *stack, size_t *total)
{
	struct ruby_method method;
	struct ruby_iseq iseq;
	size_t i, bad = 0;

	for (i = 0; i < stack->n_frames; i++) {
		const struct rbpf_frame *f = &stack->frames[i];

		if (f->iseq) {
			if (ruby_iseq_read(vm, f->iseq, &iseq)) {
				bad++;
			} else {
				bad += !ruby_iseq_has_pc(&iseq, f->pc);
				ruby_iseq_deinit(&iseq);
			}
		} else if (f->me) {
			if (ruby_method_read(vm, f->me, true, &method))
				bad++;
			else
				ruby_method_deinit(&method);
		}
		(*total)++;
	}
	return bad;
}

/*
 * Threads run on while they are looked at, so one bad stack proves nothing: it takes several looks
 * at all threads without a single good stack to refuse a Ruby.
 */
#define PROVE_ATTEMPTS 5

static int prove(struct ruby_vm *vm, const struct rbpf_task *tasks, size_t n, struct err *err)
{
	struct ruby_stack stack;
	size_t i, total = 0, bad;
	uint64_t ec;
	int attempt;

	for (attempt = 0; attempt < PROVE_ATTEMPTS; attempt++) {
		for (i = 0; i < n; i++) {
			if (tasks[i].tgid != (uint32_t)vm->pid ||
			    ruby_vm_thread_ec(vm, tasks[i].thread_pointer, &ec))
				continue;
			if (ruby_walk(&vm->mem, &vm->walk, ec, RBPF_MAX_FRAMES, &stack))
				return err_oom(err);
			total = 0;
			bad = stack.status ? 1 : prove_stack(vm, &stack, &total);
			ruby_stack_deinit(&stack);
			if (!bad && total) {
				check_add(vm, "stack", true, "all %zu frames of thread %u named",
					  total, tasks[i].tid);
				return 0;
			}
		}
	}
	check_add(vm, "stack", false, "no thread has a stack whose frames can all be named");
	if (!total)
		return err_set(err, -EAGAIN, ERR_TARGET,
			       "pid %d holds Ruby %s, but no thread of it runs Ruby code (yet)",
			       (int)vm->pid, vm->binary.version);
	return err_set(err, -EPROTO, ERR_TARGET,
		       "the %s layout does not match this build of Ruby %s (self-check failed at "
		       "'iseq and method names')",
		       vm->layout->version, vm->binary.version);
}

int ruby_vm_attach(pid_t pid, const struct rbpf_task *tasks, size_t n_tasks, struct ruby_vm *ret,
		   struct err *err)
{
	struct maps maps = MAPS_INIT;
	struct ruby_vm *vm = ret;
	int r;

	*vm = (struct ruby_vm)RUBY_VM_INIT;
	vm->pid = pid;
	vm->mem = memory_process(pid);
	r = maps_read(pid, &maps, err);
	if (r)
		return r;
	r = ruby_binary_find(pid, &maps, &vm->mem, &vm->binary, err);
	maps_deinit(&maps);
	if (r == -ENOENT)
		return err_set(err, r, ERR_TARGET, "pid %d is not a Ruby process", (int)pid);
	if (r)
		return r;
	check_add(vm, "binary", true, "%s (build-id %s)", vm->binary.path,
		  vm->binary.build_id[0] ? vm->binary.build_id : "none");

	vm->layout = ruby_layout_find(vm->binary.version);
	check_add(vm, "layout", vm->layout != NULL, "Ruby %s, row %s", vm->binary.version,
		  vm->layout ? vm->layout->version : "none");
	if (!vm->layout)
		return err_set(err, -ENOTSUP, ERR_TARGET,
			       "pid %d runs CRuby %s, which rbpf has no memory layout for "
			       "(supported: %s)",
			       (int)pid, vm->binary.version, ruby_layout_versions());
	vm->walk = vm->layout->walk;
	r = find_tls(vm, tasks, n_tasks, err);
	if (!r)
		r = find_names(vm, err);
	if (!r)
		r = prove(vm, tasks, n_tasks, err);
	if (r == -EPROTO)
		err_hint(err, "attach the output of 'rbpf doctor -p %d' to a bug report", (int)pid);
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
	*ret = vm;
	return 0;
}
