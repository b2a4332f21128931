/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each member of the layout changes places with the one that is most like it, and the validation
 * notices: it refuses the Ruby, does without the member, or has the right one from the code. The
 * last column of the table in doc/layout.md says which; tests/lint/layout-members.sh compares the
 * two.
 */
#include "ruby/layout.h"
#include "support/validate_fixture.h"

enum outcome {
	REFUSED,
	WITHOUT,   /* it, and what needs it */
	CORRECTED, /* by the code */
	UNSEEN,	   /* nothing tells */
	ATTACH,	   /* refused later, when threads are matched: test_vm.c, discover_test.rb */
};

struct twin {
	enum ruby_field field;
	enum outcome outcome;
	enum ruby_field of; /* the twin: another member, … */
	int16_t distance;   /* … or what stands so many bytes behind it, 0 for another member */
	const char *check;  /* that fails, of those without which rbpf works */
};

#define F(member) RUBY_FIELD_##member

/* clang-format off */
static const struct twin twins[] = {
	{ F(ec_fiber_ptr),       WITHOUT,   F(ec_thread_ptr),     0,  "fibers" },
	{ F(ec_thread_ptr),      REFUSED,   F(ec_fiber_ptr),      0,  NULL },
	{ F(ec_stack_start),     WITHOUT,   F(ec_stack_start),    8,  "native stack" }, /* stack_end */
	{ F(cf_size),            REFUSED,   F(cf_size),           8,  NULL },
	{ F(cf_jit_return),      REFUSED,   F(cf_jit_return),     -8, NULL }, /* __bp__ */
	{ F(th_ractor),          WITHOUT,   F(th_vm),             0,  "collecting thread" },
	{ F(th_vm),              WITHOUT,   F(th_ractor),         0,  "virtual machine" },
	{ F(th_ec),              REFUSED,   F(th_vm),             0,  NULL },
	{ F(th_thread_id),       ATTACH,    F(th_thread_id),      8,  NULL },
	{ F(th_ready),           WITHOUT,   F(th_ready),          8,  "GVL" },
	{ F(th_running_time),    UNSEEN,    F(th_running_time),   -4, NULL }, /* status */
	{ F(vm_gvl_owner),       WITHOUT,   F(vm_objspace),       0,  "collecting thread" },
	{ F(vm_gvl_queue),       WITHOUT,   F(vm_gvl_queue),      16, "GVL" },
	{ F(vm_living_threads),  ATTACH,    F(vm_gvl_queue),      0,  NULL },
	{ F(vm_lock_owner),      WITHOUT,   F(vm_lock_owner),     8,  "collecting thread" },
	{ F(vm_objspace),        CORRECTED, F(vm_objspace),       8,  NULL },
	{ F(ractor_running_ec),  WITHOUT,   F(ractor_running_ec), 8,  "collecting thread" }, /* main */
	{ F(ractor_gvl_queue),   WITHOUT,   F(ractor_running_ec), 0,  "GVL" },
	{ F(ractor_gvl_owner),   WITHOUT,   F(ractor_running_ec), 0,  NULL },
	{ F(objspace_flags),     CORRECTED, F(objspace_flags),    4,  NULL },
	{ F(objspace_count),     CORRECTED, F(objspace_count),    -8, NULL },
	{ F(fiber_ec),           WITHOUT,   F(fiber_ec),          8,  "fibers" },
	{ F(fiber_prev),         UNSEEN,    F(fiber_prev),        8,  NULL }, /* resuming_fiber */
	{ F(lineno_size),        REFUSED,   F(lineno_size),       4,  NULL },
	{ F(iseq_location),      REFUSED,   F(iseq_location),     8,  NULL },
	{ F(insns_body),         REFUSED,   F(insns_index),       0,  NULL },
	{ F(insns_size),         REFUSED,   F(insns_size),        4,  NULL },
	{ F(insns_index),        REFUSED,   F(insns_body),        0,  NULL },
	{ F(insn_entry),         REFUSED,   F(insn_entry),        4,  NULL },
	{ F(parent_iseq),        REFUSED,   F(local_iseq),        0,  NULL },
	{ F(local_iseq),         REFUSED,   F(parent_iseq),       0,  NULL },
	{ F(builtin_attrs),      WITHOUT,   F(insns_size),        0,  NULL },
	{ F(jit_entry),          UNSEEN,    F(local_iseq),        0,  NULL },
	{ F(original_id),        REFUSED,   F(original_id),       8,  NULL }, /* method_serial */
	{ F(string_embed),       REFUSED,   F(string_embed),      8,  NULL },
	{ F(class_form),         REFUSED,   F(class_form),        1,  NULL },
	{ F(class_path),         REFUSED,   F(class_attached),    0,  NULL },
	{ F(class_permanent),    REFUSED,   F(class_permanent),   1,  NULL },
	{ F(class_attached),     REFUSED,   F(class_path),        0,  NULL },
	{ F(singleton_bit),      REFUSED,   F(singleton_bit),     1,  NULL },
	{ F(symbol_form),        REFUSED,   F(symbol_form),       1,  NULL },
};
/* clang-format on */

/* Where there are two sizes or forms, the other one. */
static uint16_t twin_of(const struct ruby_layout *l, const struct twin *t)
{
	uint16_t right = ruby_layout_get(l, t->field);

	switch (t->field) {
	case F(cf_size):
		return RUBY_CF_SIZE_MIN + RUBY_CF_SIZE_MAX - right;
	case F(lineno_size):
		return 4 + 8 - right;
	case F(insn_entry):
		return 8 + 12 - right;
	case F(string_embed):
		return RSTRING_EMBED_SHORT + RSTRING_EMBED_LONG - right;
	case F(class_form):
		return right == RUBY_CLASS_IV_TBL ? RUBY_CLASS_IV_SLOTS : RUBY_CLASS_IV_TBL;
	case F(symbol_form):
		return RUBY_SYMBOLS_ARRAY + RUBY_SYMBOLS_DATA - right;
	default:
		return (uint16_t)(ruby_layout_get(l, t->of) + t->distance);
	}
}

/* A thread that waits for the GVL, so that its queue is not empty. */
static void push_waiter(struct fixture *f)
{
	const struct image_facts *facts = &f->img->facts;
	uint64_t head = facts->vm_gvl_queue ? f->img->vm.vm + facts->vm_gvl_queue
					    : f->img->ractor + facts->gvl_queue;
	uint64_t node = image_thread(f->img, 64).th + facts->th_ready;

	for (int i = 0; i < 2; i++) {
		image_put64(f->img, head + 8 * i, node);
		image_put64(f->img, node + 8 * i, head);
	}
}

/* What is not used any more if @field cannot be; true for those that a check speaks of. */
static bool is_dropped(const struct ruby_vm *vm, enum ruby_field field)
{
	switch (field) {
	case F(builtin_attrs):
		return vm->layout.builtin_attrs == RUBY_UNKNOWN;
	case F(ractor_gvl_owner):
		return !vm->walk.ractor_gvl_owner;
	case F(vm_gvl_owner):
	case F(vm_lock_owner):
	case F(ractor_running_ec):
		return !vm->walk.gc_owner;
	default:
		return true;
	}
}

static void expect(struct fixture *f, const struct twin *t, uint16_t right)
{
	const char *name = ruby_field_info[t->field].name;
	const struct ruby_vm_check *check;
	int r = prove(f);

	if (t->outcome == REFUSED) {
		cr_expect_eq(r, -EPROTO, "%s: %s: %d", f->img->version, name, r);
		return;
	}
	/* 3.2 keeps the names of classes in what the VM leads to. */
	if (t->field == F(th_vm) && f->img->facts.class_form == IMAGE_CLASS_IV_PTR) {
		cr_expect_eq(r, -EPROTO, "%s: %s: %d", f->img->version, name, r);
		return;
	}
	cr_expect_eq(r, 0, "%s: %s: %s", f->img->version, name, f->err.msg);
	cr_expect(t->outcome != CORRECTED || ruby_layout_get(&f->vm.layout, t->field) == right,
		  "%s: %s", f->img->version, name);
	cr_expect(t->outcome != WITHOUT || is_dropped(&f->vm, t->field), "%s: %s", f->img->version,
		  name);
	check = t->check ? find_check(&f->vm, t->check) : NULL;
	cr_expect(!t->check || (check && !check->ok && !check->needed), "%s: %s", f->img->version,
		  name);
}

Test(validate_twins, each_member)
{
	cr_assert_eq(sizeof(twins) / sizeof(twins[0]), RUBY_FIELDS, "each has a twin");
	for (size_t i = 0; i < RUBY_FIELDS; i++) {
		const struct twin *t = &twins[i];
		size_t tried = 0;

		cr_assert_eq(t->field, i, "%s", ruby_field_info[i].name);
		FOR_EACH_FIXTURE(f) {
			uint16_t right = ruby_layout_get(&f.vm.layout, t->field), twin;

			push_code(&f);
			push_waiter(&f);
			twin = twin_of(&f.vm.layout, t);
			if (!ruby_layout_has(right) || !ruby_layout_has(twin))
				continue;
			cr_assert_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
			memset(&f.vm.class_keys, 0, sizeof(f.vm.class_keys));
			f.vm.walk = f.walk;
			f.vm.walk.gc_owner = 0;
			*ruby_layout_at(&f.vm.layout, t->field) = twin;
			ruby_vm_fill_walk(&f.vm);
			if (t->outcome != ATTACH)
				expect(&f, t, right);
			tried++;
		}
		cr_expect(tried, "%s: no version has it", ruby_field_info[i].name);
	}
}
