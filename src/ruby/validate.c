/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "ruby/class.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/object.h"
#include "ruby/structs.h"
#include "ruby/gvl.h"
#include "ruby/validate_parts.h"
#include "ruby/vm.h"
#include "ruby/walk.h"

/*
 * What an offset may be at most: beyond it, it would lead out of what is read in one piece. For the
 * EC and the thread see ruby_abi.h.
 */
#define BODY_OFFSET_MAX	 (RUBY_BODY_BYTES - 8)
#define CLASS_OFFSET_MAX (RUBY_OWNER_WORDS * 8 - 8)

static int refuse(const struct ruby_vm *vm, const char *field, struct err *err)
{
	return err_set(err, -EPROTO, ERR_TARGET,
		       "the memory layout found for Ruby %s is wrong: self-check failed at '%s'",
		       vm->binary.version, field);
}

/* The first fact that cannot be, or RUBY_FIELDS. */
static enum ruby_field out_of_range(const struct ruby_layout *l)
{
	size_t i;

	for (i = RUBY_FIELD_insns_body; i <= RUBY_FIELD_local_iseq; i++)
		if (i != RUBY_FIELD_insn_entry && ruby_layout_get(l, i) > BODY_OFFSET_MAX)
			return i;
	if (l->iseq_location > RUBY_BODY_BYTES - RUBY_LOCATION_WORDS * 8)
		return RUBY_FIELD_iseq_location;
	if (l->original_id > (RUBY_DEF_WORDS - 1) * 8)
		return RUBY_FIELD_original_id;
	if (l->ec_thread_ptr > RUBY_EC_BYTES - 8)
		return RUBY_FIELD_ec_thread_ptr;
	if (l->th_ec > RUBY_TH_BYTES - 8)
		return RUBY_FIELD_th_ec;
	if (l->cf_size != RUBY_CF_SIZE_MIN && l->cf_size != RUBY_CF_SIZE_MAX)
		return RUBY_FIELD_cf_size;
	/* It is the last word of a frame. */
	if (ruby_layout_has(l->cf_jit_return) && l->cf_jit_return + 8 != l->cf_size)
		return RUBY_FIELD_cf_jit_return;
	if (l->insn_entry != 8 && l->insn_entry != 12)
		return RUBY_FIELD_insn_entry;
	if (l->string_embed != RSTRING_EMBED_SHORT && l->string_embed != RSTRING_EMBED_LONG)
		return RUBY_FIELD_string_embed;
	if (l->singleton_bit > 31)
		return RUBY_FIELD_singleton_bit;
	if (l->class_form == RUBY_CLASS_EXT) {
		if (l->class_path > CLASS_OFFSET_MAX)
			return RUBY_FIELD_class_path;
		if (l->class_attached > CLASS_OFFSET_MAX)
			return RUBY_FIELD_class_attached;
	}
	return RUBY_FIELDS;
}

/*
 * Members that are farther off than what is read in one piece, and are not needed for stacks and
 * names.
 */
static void forget_far(struct ruby_vm *vm)
{
	uint16_t *of_body[] = { &vm->layout.builtin_attrs, &vm->layout.jit_entry };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(of_body); i++)
		if (*of_body[i] > BODY_OFFSET_MAX)
			*of_body[i] = RUBY_UNKNOWN;
	/* The BPF programs read the ractor with the EC. */
	if (!ruby_layout_has(vm->layout.th_ractor) ||
	    abs(vm->layout.th_ractor - vm->layout.th_ec) < RUBY_TH_WORDS * 8)
		return;
	vm->layout.th_ractor = RUBY_UNKNOWN;
	vm->walk.th_ractor = 0;
	ruby_vm_check_add(vm, "ractor", false, false,
			  "too far from thread.ec: who collects and who has the GVL is unknown");
}

/*
 * The exported classes, whose names and singleton classes are known. What one class has by chance,
 * another has not: its origin is the class itself, too, and more than one byte has bit 0.
 */
static const struct {
	enum ruby_binary_symbol symbol;
	const char *methods,
		*singleton; /* what stands before a method of it, or of its singleton */
} classes[] = {
	{ RUBY_SYM_rb_cObject, "Object#", "Object." },
	{ RUBY_SYM_rb_cString, "String#", "String." },
	{ RUBY_SYM_rb_mKernel, "Kernel#", "Kernel." },
};

static bool class_fits(const struct ruby_vm *vm, size_t i)
{
	struct buf name _cleanup_buf_ = BUF_INIT, singleton _cleanup_buf_ = BUF_INIT;
	uint64_t klass, meta, flags;

	if (memory_read_u64(&vm->mem, vm->binary.symbol[classes[i].symbol], &klass) ||
	    ruby_owner_prefix(vm, klass, &name) || strcmp(buf_str(&name), classes[i].methods) ||
	    memory_read_u64(&vm->mem, klass + RBASIC_KLASS_WORD * 8, &meta))
		return false;
	/* Not each has one: its class is that of all modules then. */
	if (memory_read_u64(&vm->mem, meta, &flags) || !(flags >> vm->layout.singleton_bit & 1))
		return i != 0;
	/* A singleton class has a name of no kind. */
	return !ruby_owner_prefix(vm, meta, &singleton) &&
	       !strcmp(buf_str(&singleton), classes[i].singleton) &&
	       ruby_class_name(vm, meta, &singleton) == -ENOENT;
}

/*
 * Classes that every Ruby has, their names, and those of their singleton classes; one is enough of
 * a
 * @known layout.
 */
static int prove_classes(struct ruby_vm *vm, bool known, struct err *err)
{
	uint64_t object = 0;
	size_t i, n = 0;
	int r = 0;

	if (memory_read_u64(&vm->mem, vm->binary.symbol[RUBY_SYM_rb_cObject], &object) ||
	    !ruby_is_object(object))
		return err_set(err, -EAGAIN, ERR_TARGET, "Ruby in pid %d has not started yet",
			       (int)vm->pid);
	if (vm->layout.class_form != RUBY_CLASS_EXT)
		r = ruby_class_keys_learn(vm, object, vm->vm);
	for (i = 0; i < (known ? 1 : ARRAY_SIZE(classes)) && !r; i++) {
		if (!vm->binary.symbol[classes[i].symbol])
			continue;
		n++;
		r = class_fits(vm, i) ? 0 : -EPROTO;
	}
	ruby_vm_check_add(vm, "class names", !r, true,
			  r ? "a class has not the name that it must have"
			    : "of %zu with their singleton classes",
			  n);
	return r ? refuse(vm, "class name", err) : 0;
}

/* One stack, as far as it is named. */
struct naming_run {
	size_t total, iseqs, lines; /* frames; those with an iseq; of them, with a line */
	const char *member;	    /* for which one could not be named; NULL: none */
};

/* The member for which the label of @iseq cannot be read; NULL: it can. */
static const char *unreadable_label(const struct ruby_vm *vm, uint64_t iseq)
{
	struct buf label _cleanup_buf_ = BUF_INIT;
	uint64_t body, location[RUBY_LOCATION_WORDS];

	if (memory_read_u64(&vm->mem, iseq + RUBY_ISEQ_BODY * 8, &body) ||
	    memory_read(&vm->mem, body + vm->layout.iseq_location, location, sizeof(location)))
		return "iseq.body";
	if (ruby_string_read(vm, location[RUBY_LOCATION_LABEL], &label))
		return ruby_field_info[RUBY_FIELD_iseq_location].name;
	return NULL;
}

static int name_iseq(const struct ruby_vm *vm, const struct rbpf_frame *f, struct naming_run *n,
		     struct ruby_iseq *ret)
{
	if (ruby_iseq_read(vm, f->iseq, ret)) {
		n->member = unreadable_label(vm, f->iseq);
		if (!n->member)
			n->member = ruby_field_info[RUBY_FIELD_insns_body].name;
		return -EINVAL;
	}
	if (!(f->pc & RBPF_PC_STALE) && !ruby_iseq_has_pc(ret, rbpf_frame_pc(f)))
		n->member = "iseq.iseq_encoded";
	n->lines += ret->lines_left_out || ruby_iseq_line(ret, rbpf_frame_pc(f)) != 0;
	n->iseqs++;
	return 0;
}

static void name_frame(const struct ruby_vm *vm, const struct rbpf_frame *f, struct naming_run *n,
		       struct validate_evidence *ev)
{
	struct ruby_method method = { 0 };
	struct ruby_iseq iseq = { 0 };
	bool has_iseq = f->iseq && !name_iseq(vm, f, n, &iseq);
	bool has_method = f->me && !ruby_method_read(vm, f->me, !f->iseq, &method);

	if (f->me && !has_method)
		n->member = "method.def";
	n->total += f->iseq || f->me;
	if (has_iseq)
		validate_ask_frame(vm, &iseq, has_method ? &method : NULL, ev);
	ruby_iseq_deinit(&iseq);
	ruby_method_deinit(&method);
}

/*
 * Name each frame of one stack. Returns NULL, or the member for which one could not be; *@total
 * counts all. A frame may have no line, but not all of a stack.
 */
static const char *name_stack(const struct ruby_vm *vm, const struct ruby_stack *stack,
			      size_t *total, struct validate_evidence *ev)
{
	struct naming_run n = { 0 };
	size_t i;

	for (i = 0; i < stack->n_frames; i++)
		name_frame(vm, &stack->frames[i], &n, ev);
	*total += n.total;
	if (!n.member && n.iseqs && !n.lines)
		return ruby_field_info[RUBY_FIELD_insns_body].name;
	return n.member;
}

bool validate_is_current_ec(const struct ruby_vm *vm, uint64_t ec)
{
	uint64_t th, back;

	return ruby_is_object(ec) &&
	       !memory_read_u64(&vm->mem, ec + vm->layout.ec_thread_ptr, &th) &&
	       !memory_read_u64(&vm->mem, th + vm->layout.th_ec, &back) && back == ec;
}

bool validate_is_thread(const struct ruby_vm *vm, uint64_t th)
{
	uint64_t ec, back;

	return ruby_is_object(th) && !memory_read_u64(&vm->mem, th + vm->layout.th_ec, &ec) &&
	       ruby_is_object(ec) &&
	       !memory_read_u64(&vm->mem, ec + vm->layout.ec_thread_ptr, &back) && back == th;
}

uint64_t validate_current_ec(const struct ruby_vm *vm, uint64_t ec)
{
	uint64_t th, now;

	if (memory_read_u64(&vm->mem, ec + vm->layout.ec_thread_ptr, &th) ||
	    memory_read_u64(&vm->mem, th + vm->layout.th_ec, &now) ||
	    !validate_is_current_ec(vm, now))
		return ec;
	return now;
}

/*
 * Threads run on while they are looked at, so one bad stack proves nothing: it takes several
 * attempts at all threads without a single good stack to refuse a Ruby.
 */
#define PROVE_ATTEMPTS 5
#define PROVE_FRAMES   512 /* of a stack: the innermost, and some at its root */

/*
 * The member for which an iseq in the stack of @ec has no label; NULL: they have. The symbol table
 * is found by its Strings, and what a String is by labels, so both are missing then.
 */
static const char *unreadable_stack(const struct ruby_vm *vm, uint64_t ec)
{
	const char *member = NULL;
	struct ruby_stack stack;
	size_t i;

	if (ruby_walk(&vm->mem, &vm->walk, ec, PROVE_FRAMES, &stack))
		return NULL;
	for (i = 0; i < stack.n_frames && !member; i++)
		if (stack.frames[i].iseq)
			member = unreadable_label(vm, stack.frames[i].iseq);
	ruby_stack_deinit(&stack);
	return member;
}

static int prove_symbols(struct ruby_vm *vm, const uint64_t *ecs, size_t n, uint64_t symbols,
			 struct err *err)
{
	bool ok = ruby_symbols_check(vm, symbols);
	const char *member = NULL;
	size_t i;

	vm->symbols = ok ? symbols : 0;
	ruby_vm_check_add(vm, "symbol table", ok, true, ok ? "found at 0x%llx" : "not found",
			  (unsigned long long)symbols);
	if (ok)
		return 0;
	for (i = 0; i < n && !member; i++)
		member = unreadable_stack(vm, validate_current_ec(vm, ecs[i]));
	return refuse(vm, member ? member : "symbol table", err);
}

static int prove_stacks(struct ruby_vm *vm, const uint64_t *ecs, size_t n,
			struct validate_evidence *ev, struct err *err)
{
	const char *bad = NULL;
	struct ruby_stack stack;
	size_t i, total = 0;
	bool any_frame = false;
	int attempt;

	for (attempt = 0; attempt < PROVE_ATTEMPTS; attempt++) {
		for (i = 0; i < n; i++) {
			memory_refresh(&vm->mem);
			if (ruby_walk(&vm->mem, &vm->walk, validate_current_ec(vm, ecs[i]),
				      PROVE_FRAMES, &stack))
				return err_oom(err);
			total = 0;
			bad = stack.status ? "control frames" : name_stack(vm, &stack, &total, ev);
			any_frame |= stack.status || total; /* they are ECs: see tls.h */
			ruby_stack_deinit(&stack);
			if (!bad && total) {
				ruby_vm_check_add(vm, "stack", true, true,
						  "all %zu frames of a thread named", total);
				return 0;
			}
		}
	}
	ruby_vm_check_add(vm, "stack", false, true,
			  "no thread has a stack whose frames can all be named: %s",
			  bad ? bad : "none has a frame");
	if (!any_frame)
		return err_set(err, -EAGAIN, ERR_TARGET,
			       "pid %d holds Ruby %s, but no thread of it runs Ruby code (yet)",
			       (int)vm->pid, vm->binary.version);
	return refuse(vm, bad ? bad : "control frames", err);
}

#define JIT_FRAMES 64 /* of a stack that are asked */

/*
 * cfp.jit_return is 0 or an address of code, or (4.1) of the native stack. Up to 3.0 the last word
 * of a frame is __bp__, an address in the VM stack.
 */
static bool jit_return_fits(const struct ruby_vm *vm, uint64_t ec)
{
	uint64_t words[3], lo, end, cfp; /* vm_stack, vm_stack_size, cfp */
	uint64_t frames[JIT_FRAMES * RUBY_CF_SIZE_MAX / 8], *value = frames;
	size_t i, n, step = vm->layout.cf_size / 8u;

	if (memory_read(&vm->mem, ec, words, sizeof(words)))
		return true;
	lo = words[RUBY_EC_VM_STACK];
	end = lo + words[RUBY_EC_VM_STACK_SIZE] * 8;
	cfp = words[RUBY_EC_CFP];
	if (cfp < lo || cfp > end)
		return true;
	n = end - cfp < sizeof(frames) ? end - cfp : sizeof(frames);
	n = memory_read_some(&vm->mem, cfp, frames, n) / 8;
	value += vm->layout.cf_jit_return / 8;
	/* The last slot of a stack is no frame. */
	for (i = 0; i + step <= n && cfp + (i + step) * 8 < end; i += step)
		if (value[i] >= lo && value[i] < end)
			return false;
	return true;
}

/* A frame may be in the midst of being pushed: one look that fits is enough. */
static int prove_frames(const struct ruby_vm *vm, const uint64_t *ecs, size_t n, struct err *err)
{
	bool fits = true;
	int attempt;
	size_t i;

	for (i = 0; i < n && fits && ruby_layout_has(vm->layout.cf_jit_return); i++) {
		fits = false;
		for (attempt = 0; attempt < PROVE_ATTEMPTS && !fits; attempt++) {
			memory_refresh(&vm->mem);
			fits = jit_return_fits(vm, validate_current_ec(vm, ecs[i]));
		}
	}
	return fits ? 0 : refuse(vm, ruby_field_info[RUBY_FIELD_cf_jit_return].name, err);
}

/* Whether one of the first words of @ractor is @vm->vm. The VM knows its ractor, not vice versa. */
static bool knows_vm(const struct ruby_vm *vm, uint64_t th)
{
	uint64_t words[16] = { 0 }, ractor;
	size_t i, n;

	if (!ruby_layout_has(vm->layout.th_ractor) ||
	    memory_read_u64(&vm->mem, th + vm->layout.th_ractor, &ractor))
		return false;
	n = memory_read_some(&vm->mem, ractor, words, sizeof(words)) / 8;
	for (i = 0; i < n; i++)
		if (words[i] == vm->vm)
			return true;
	return false;
}

/* The thread of @ec and its VM. */
static int find_vm(struct ruby_vm *vm, uint64_t ec, uint64_t current_vm, uint64_t *th)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t var = 0;
	bool ok;

	if (memory_read_u64(&vm->mem, ec + l->ec_thread_ptr, th))
		return -EFAULT;
	if (current_vm && memory_read_u64(&vm->mem, current_vm, &var))
		var = 0;
	if (!ruby_layout_has(l->th_vm) || memory_read_u64(&vm->mem, *th + l->th_vm, &vm->vm))
		vm->vm = var;
	ok = ruby_is_object(vm->vm) && (!var || var == vm->vm) && !knows_vm(vm, *th);
	ruby_vm_check_add(vm, "virtual machine", ok, false,
			  !ruby_is_object(vm->vm) ? "not found"
			  : var && var != vm->vm
				  ? "at 0x%llx by a thread, but ruby_current_vm_ptr is 0x%llx"
			  : !ok ? "what a thread has at 0x%llx is its ractor"
			  : var ? "found at 0x%llx, by ruby_current_vm_ptr"
				: "found at 0x%llx, by a thread",
			  (unsigned long long)vm->vm, (unsigned long long)var);
	if (!ok)
		vm->vm = 0;
	return 0;
}

/* The fiber of @ec holds it, and was resumed by none or by one of the same thread. */
static void prove_fibers(struct ruby_vm *vm, uint64_t ec, uint64_t th)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t fiber = 0, prev = 0, other = 0;
	bool ok;

	ok = ruby_layout_has(l->ec_fiber_ptr) && ruby_layout_has(l->fiber_ec) &&
	     ruby_layout_has(l->fiber_prev) &&
	     !memory_read_u64(&vm->mem, ec + l->ec_fiber_ptr, &fiber) &&
	     fiber + l->fiber_ec == ec &&
	     !memory_read_u64(&vm->mem, fiber + l->fiber_prev, &prev) &&
	     (!prev || (ruby_is_object(prev) &&
			!memory_read_u64(&vm->mem, prev + l->fiber_ec + l->ec_thread_ptr, &other) &&
			other == th));
	ruby_vm_check_add(vm, "fibers", ok, false,
			  ok ? "found" : "not found: the frames that resumed a fiber are missing");
	if (!ok)
		vm->walk.fiber_prev = vm->walk.fiber_ec = 0;
}

/* The native stack of @ec: its start is above the innermost tag, by no more than its size. */
static void prove_native_stack(struct ruby_vm *vm, uint64_t ec)
{
	uint64_t words[3] = { 0 }; /* machine.stack_start, stack_end, stack_maxsize */
	uint16_t off = vm->layout.ec_stack_start;
	uint64_t tag = 0;
	bool ok = ruby_layout_has(off) && off + sizeof(words) <= RUBY_EC_BYTES &&
		  !memory_read(&vm->mem, ec + off, words, sizeof(words)) &&
		  !memory_read_u64(&vm->mem, ec + RUBY_EC_TAG * 8, &tag) &&
		  ruby_is_object(words[0]) && words[2] && words[2] < words[0] &&
		  (!tag || (tag < words[0] && words[0] - tag <= words[2]));

	ruby_vm_check_add(vm, "native stack", ok, false,
			  ok ? "%llu KiB" : "its bounds were not found",
			  (unsigned long long)words[2] >> 10);
	if (!ok)
		vm->walk.ec_stack_start = 0;
}

int ruby_validate(struct ruby_vm *vm, const uint64_t *ecs, size_t n, uint64_t tp,
		  uint64_t current_vm, uint64_t symbols, bool known, struct err *err)
{
	enum ruby_field bad = out_of_range(&vm->layout);
	struct validate_evidence ev = { .known = known };
	const char *another;
	uint64_t th;
	int r;

	if (bad != RUBY_FIELDS)
		return refuse(vm, ruby_field_info[bad].name, err);
	forget_far(vm);
	if (find_vm(vm, ecs[0], current_vm, &th))
		return refuse(vm, "ec.thread_ptr", err);
	r = prove_symbols(vm, ecs, n, symbols, err);
	if (!r)
		r = prove_classes(vm, known, err);
	if (!r)
		r = prove_stacks(vm, ecs, n, &ev, err);
	if (!r && !known)
		r = prove_frames(vm, ecs, n, err);
	if (r)
		return r;
	another = validate_names(vm, &ev);
	if (another)
		return refuse(vm, another, err);
	validate_gc(vm, tp, th);
	ruby_gvl_validate(vm, th);
	prove_fibers(vm, ecs[0], th);
	prove_native_stack(vm, ecs[0]);
	validate_tags(vm, ecs, n, tp);
	return 0;
}
