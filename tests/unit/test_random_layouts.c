/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rubies with random layouts: rbpf finds the right one, or refuses the Ruby and says by what. It
 * never gives a wrong label, line or place of the collector.
 *
 * RBPF_RANDOM_LAYOUTS=N and RBPF_RANDOM_FIRST=SEED run others, and print how many were found; many
 * take RBPF_TEST_CPU=SECONDS, too (tests/support/limits.sh).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "ruby/discover.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/search.h"
#include "ruby/tls.h"
#include "ruby/validate.h"
#include "ruby/walk.h"
#include "support/random_ruby.h"

#define LAYOUTS 3000

/* IMPOSSIBLE: refused, as what rbpf takes to be the same in all Rubies is not. */
enum outcome { FOUND, REFUSED, IMPOSSIBLE, WRONG, OUTCOMES };

static bool is_impossible(const struct random_ruby *r)
{
	return r->swapped_lines;
}

/* The layout as debug information of that build has it. */
static void fill_layout(const struct image_facts *f, struct ruby_layout *l)
{
	ruby_layout_init(l);
	l->ec_fiber_ptr = f->ec_fiber_ptr;
	l->ec_thread_ptr = f->ec_thread_ptr;
	l->ec_stack_start = f->ec_stack_start;
	l->cf_size = f->cf_size;
	l->cf_jit_return = f->cf_jit_return;
	l->th_ractor = f->th_ractor;
	l->th_vm = f->th_vm;
	l->th_ec = f->th_ec;
	l->vm_lock_owner = f->vm_lock_owner;
	l->vm_objspace = f->vm_objspace;
	l->ractor_running_ec = f->running_ec;
	l->objspace_flags = f->objspace_flags;
	l->objspace_count = f->objspace_count;
	l->fiber_ec = f->fiber_ec;
	l->fiber_prev = f->fiber_prev;
	l->iseq_location = f->iseq_location;
	l->original_id = f->original_id;
	l->insns_body = f->insns_body;
	l->insns_size = f->insns_size;
	l->insns_index = f->insns_index;
	l->insn_entry = f->insn_entry;
	l->parent_iseq = f->parent_iseq;
	l->local_iseq = f->local_iseq;
	l->builtin_attrs = f->builtin_attrs;
	l->class_path = f->class_path;
	l->class_permanent = f->class_permanent;
	l->class_attached = f->class_attached;
}

struct proof {
	struct random_ruby *r;
	struct ruby_findings found;
	bool current_vm; /* its address is known */
};

static int prove(struct ruby_vm *vm, void *arg, struct err *err)
{
	struct proof *p = arg;

	ruby_vm_fill_walk(vm);
	return ruby_validate(vm, &p->r->t.ec, 1, 0, p->current_vm ? p->r->img->current_vm : 0,
			     p->found.symbols, false, err);
}

/* What the sources say; debug information may be of another build. */
static void ask_sources(struct proof *p)
{
	struct random_ruby *r = p->r;
	struct image_facts other = r->facts;
	struct ruby_search search;

	for (size_t i = 0; i < RUBY_SOURCES; i++)
		ruby_layout_init(&p->found.layout[i]);
	if (!random_one_in(r, 4))
		ruby_layout_table(r->img->vm.binary.version, &p->found.layout[RUBY_FROM_TABLE]);
	if (random_one_in(r, 6))
		fill_layout(&r->facts, &p->found.layout[RUBY_FROM_DWARF]);
	else if (random_one_in(r, 8)) {
		random_facts(r, &other);
		other.fiber_prev = RUBY_UNKNOWN; /* in a root fiber nothing tells */
		fill_layout(&other, &p->found.layout[RUBY_FROM_DWARF]);
	}
	ruby_search(&r->img->vm.mem, &r->img->vm.binary, &r->t.ec, 1, &search);
	p->found.layout[RUBY_FROM_SEARCH] = search.layout;
	p->found.symbols = search.symbols;
	p->current_vm = random_one_in(r, 2);
}

/* The label and line of a frame, as the resolver puts them together. */
static bool name_frame(const struct ruby_vm *vm, const struct rbpf_frame *f, char *label,
		       size_t size, uint32_t *line)
{
	struct ruby_method method = { 0 };
	struct ruby_iseq iseq = { 0 };
	bool ok = f->me && !ruby_method_read(vm, f->me, !f->iseq, &method);

	if (ok && f->iseq)
		ok = !ruby_iseq_read(vm, f->iseq, &iseq);
	if (ok)
		snprintf(label, size, "%s%s%s", f->iseq ? iseq.decoration : "", method.prefix,
			 f->iseq ? iseq.name : method.name);
	*line = ok && f->iseq ? ruby_iseq_line(&iseq, rbpf_frame_pc(f)) : 0;
	ruby_method_deinit(&method);
	ruby_iseq_deinit(&iseq);
	return ok;
}

/* What the BPF programs use besides names: each member is the right one, or not used. */
static void compare_members(const struct random_ruby *r, const struct rbpf_layout *w, char *why,
			    size_t size)
{
	const struct image_facts *f = &r->facts;
	uint64_t vm = r->img->vm.vm;
	uint64_t owner = vm + (f->vm_gvl_owner ? f->vm_gvl_owner : f->vm_lock_owner);
	const struct {
		const char *name;
		bool used;
		uint64_t value, right;
	} members[] = {
		{ "gc_owner", w->gc_owner, w->gc_owner, owner },
		{ "thread.ractor", w->gc_owner || w->th_ready, w->th_ractor, f->th_ractor },
		{ "running_ec", w->gc_owner, w->ractor_running_ec, f->running_ec },
		{ "fiber.cont.saved_ec", w->fiber_prev, w->fiber_ec, f->fiber_ec },
		{ "ec.fiber_ptr", w->fiber_prev, w->ec_fiber_ptr, f->ec_fiber_ptr },
		{ "fiber.prev", w->fiber_prev, w->fiber_prev, f->fiber_prev },
		{ "stack_start", w->ec_stack_start, w->ec_stack_start, f->ec_stack_start },
		{ "jit_return", w->cf_jit_return, w->cf_jit_return, f->cf_jit_return },
		/* With nobody in the queue, nothing tells. */
		{ "readyq", r->waits && w->th_ready, w->th_ready, f->th_ready },
		{ "GVL's queue", w->ractor_gvl_queue, w->ractor_gvl_queue, f->gvl_queue },
		{ "GVL's holder", w->ractor_gvl_owner, w->ractor_gvl_owner, f->gvl_owner },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !why[0]; i++)
		if (members[i].used && members[i].value != members[i].right)
			snprintf(why, size, "%s at %llu, not %llu", members[i].name,
				 (unsigned long long)members[i].value,
				 (unsigned long long)members[i].right);
}

/* What is wrong of what was found; "" if nothing is. */
static void compare(const struct random_ruby *r, const struct ruby_vm *vm, char *why, size_t size)
{
	const struct image_facts *f = &r->facts;
	struct ruby_stack stack;

	cr_assert_eq(ruby_walk(&vm->mem, &vm->walk, r->t.ec, 512, &stack), 0);
	if (stack.status || stack.n_frames != r->n_frames)
		snprintf(why, size, "%u frames, status %d", stack.n_frames, (int)stack.status);
	for (size_t i = 0; i < stack.n_frames && !why[0]; i++) {
		const struct random_frame *want = &r->frames[r->n_frames - 1 - i];
		char label[128];
		uint32_t line;

		if (!name_frame(vm, &stack.frames[i], label, sizeof(label), &line))
			continue; /* unknown */
		if (strcmp(label, want->label) || line != want->line)
			snprintf(why, size, "%s:%u, not %s:%u", label, line, want->label,
				 want->line);
	}
	ruby_stack_deinit(&stack);
	if (vm->walk.gc_count && (vm->walk.gc_count != r->img->objspace + f->objspace_count ||
				  vm->walk.gc_flags != r->img->objspace + f->objspace_flags))
		snprintf(why, size, "another collector");
	compare_members(r, &vm->walk, why, size);
}

static enum outcome attach(uint64_t seed, char *why, size_t size)
{
	struct err err = { 0 };
	struct random_ruby r;
	struct proof p = { .r = &r };
	struct ruby_ec_shape shape = { 0 };
	struct ruby_vm vm;
	int failed = -EPROTO;

	why[0] = '\0';
	random_make(&r, seed);
	vm = r.img->vm;
	vm.n_checks = 0;
	vm.vm = vm.symbols = 0;
	vm.walk = (struct rbpf_layout) { .tls.model = RBPF_TLS_STATIC };
	memset(&vm.class_keys, 0, sizeof(vm.class_keys));
	ask_sources(&p);
	if (ruby_is_ec(&vm.mem, r.t.ec, &shape))
		failed = ruby_layout_settle(&vm, &p.found, RUBY_ALL_SOURCES, prove, &p, &err);
	else
		err_set(&err, failed, ERR_TARGET, "'ec' is unknown");
	if (failed)
		snprintf(why, size, "%.200s", err.msg);
	else
		compare(&r, &vm, why, size);
	random_free(&r);
	if (!failed)
		return why[0] ? WRONG : FOUND;
	/* It names the member, or what was looked for. */
	if (failed != -EPROTO || !strchr(why, '\''))
		return WRONG;
	return is_impossible(&r) ? IMPOSSIBLE : REFUSED;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

Test(random_layouts, found_or_refused)
{
	uint64_t first = setting("RBPF_RANDOM_FIRST", 1),
		 n = setting("RBPF_RANDOM_LAYOUTS", LAYOUTS);
	uint64_t outcomes[OUTCOMES] = { 0 };
	char why[sizeof(((struct err *)NULL)->msg)];

	for (uint64_t seed = first; seed < first + n; seed++) {
		enum outcome outcome = attach(seed, why, sizeof(why));

		outcomes[outcome]++;
		cr_expect_neq(outcome, WRONG, "seed %llu: %s", (unsigned long long)seed, why);
		if (outcome == REFUSED && getenv("RBPF_RANDOM_LAYOUTS"))
			fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, why);
	}
	if (getenv("RBPF_RANDOM_LAYOUTS"))
		fprintf(stderr, "found %llu, refused %llu, impossible %llu, wrong %llu\n",
			(unsigned long long)outcomes[FOUND], (unsigned long long)outcomes[REFUSED],
			(unsigned long long)outcomes[IMPOSSIBLE],
			(unsigned long long)outcomes[WRONG]);
	cr_expect_geq(outcomes[FOUND] * 100, (n - outcomes[IMPOSSIBLE]) * 95);
}
