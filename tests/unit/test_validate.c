/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "support/validate_fixture.h"

/* ---- as it is ---- */

Test(validate, all_versions)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		cr_assert_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		for (size_t i = 0; i < f.vm.n_checks; i++)
			cr_expect(f.vm.checks[i].ok, "%s: %s: %s", f.img->version,
				  f.vm.checks[i].name, f.vm.checks[i].detail);
		cr_expect_eq(f.vm.symbols, f.symbols);
		cr_expect_eq(f.vm.walk.gc_flags, f.walk.gc_flags, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.gc_count, f.walk.gc_count, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.gc_major_word, f.walk.gc_major_word, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.gc_majors, f.walk.gc_majors, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.gc_owner, f.walk.gc_owner, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.fiber_prev, f.walk.fiber_prev, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.ec_stack_start, f.walk.ec_stack_start, "%s", f.img->version);
		teardown(&f);
	}
}

/* If they are not what is expected of all of them, native stacks do without. */
Test(validate, exception_tags)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		const uint64_t outer = image_get64(f.img, f.tag + 56);
		const struct {
			uint64_t at, value;
		} bad[] = {
			{ f.tag + 24, FIXTURE_TEXT - 1 },
			{ f.tag + 24, FIXTURE_TEXT_END },
			{ f.tag + 24, 0x123456789abcdef }, /* as setjmp() hides it */
			{ outer + 24, 0 },
			{ f.tag + 32, f.tag + 8 },
			{ f.tag + 32, f.tag - (1 << 20) },
			{ f.tag + 56, f.tag },
			{ outer + 56, f.tag },
			{ f.tag + 56, 0x5000 },
			{ f.t.ec + 24, 0 },
			{ f.t.ec + 24, 0x5000 },
		};

		cr_assert_eq(prove(&f), 0);
		cr_expect_eq(f.vm.walk.tag_form, RUBY_TAG_BUILTIN, "%s", f.img->version);
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			uint64_t was = image_get64(f.img, bad[i].at);

			image_put64(f.img, bad[i].at, bad[i].value);
			expect_without(&f, "exception tags");
			cr_expect_eq(f.vm.walk.tag_form, RUBY_TAG_UNKNOWN, "%s: case %zu",
				     f.img->version, i);
			image_put64(f.img, bad[i].at, was);
		}
		teardown(&f);
	}
}

#ifdef __x86_64__
/*
 * Those of a Ruby whose tags the C library's setjmp() fills: glibc's has a guard, which each
 * process has of its own.
 */
Test(validate, exception_tags_of_the_c_library)
{
	const uint64_t guard = 0x8123456789abcdef;

	for (size_t v = 0; v < IMAGE_VERSIONS; v++)
		for (int mangled = 0; mangled < 2; mangled++) {
			struct fixture f = setup(image_versions[v].minor);
			const uint64_t outer = image_get64(f.img, f.tag + 56);
			const uint64_t tp = image_region(f.img, 4096);

			put_libc_tag(f.img, f.tag, outer, mangled ? guard : 0);
			put_libc_tag(f.img, outer, 0, mangled ? guard : 0);
			image_put64(f.img, tp + 0x30, guard);
			cr_assert_eq(prove_with(&f, tp), 0);
			cr_expect_eq(f.vm.walk.tag_form, mangled ? RUBY_TAG_MANGLED : RUBY_TAG_LIBC,
				     "%s", f.img->version);
			cr_expect_eq(f.vm.walk.tag_guard, mangled ? guard : 0, "%s",
				     f.img->version);
			image_put64(f.img, tp + 0x30, ~guard);
			cr_assert_eq(prove_with(&f, tp), 0);
			cr_expect_eq(f.vm.walk.tag_form, mangled ? RUBY_TAG_UNKNOWN : RUBY_TAG_LIBC,
				     "%s: of another process", f.img->version);
			cr_assert_eq(prove(&f), 0);
			cr_expect_eq(f.vm.walk.tag_form, mangled ? RUBY_TAG_UNKNOWN : RUBY_TAG_LIBC,
				     "%s: it is not known", f.img->version);
			cr_expect_eq(f.vm.walk.tag_guard, 0);

			f.vm.binary.linker_lo = image_region(f.img, 4096);
			f.vm.binary.linker_hi = f.vm.binary.linker_lo + 4096;
			image_put64(f.img, f.vm.binary.linker_lo + 16, ~guard);
			image_put64(f.img, f.vm.binary.linker_hi - 8, guard);
			cr_assert_eq(prove_with(&f, tp), 0);
			cr_expect_eq(f.vm.walk.tag_form, mangled ? RUBY_TAG_MANGLED : RUBY_TAG_LIBC,
				     "%s: in the linker's data", f.img->version);
			cr_expect_eq(f.vm.walk.tag_guard, mangled ? guard : 0, "%s",
				     f.img->version);
			teardown(&f);
		}
}
#endif

/* Whichever way leads to the VM. */
Test(validate, ways_to_the_vm)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t vm = image_get64(f.img, f.img->current_vm);

		f.img->current_vm = 0;
		cr_assert_eq(prove(&f), 0, "%s", f.img->version);
		cr_expect_eq(f.vm.vm, vm, "%s: by its thread", f.img->version);
		teardown(&f);

		f = setup(image_versions[v].minor);
		f.vm.layout.th_vm = RUBY_UNKNOWN;
		cr_assert_eq(prove(&f), 0, "%s", f.img->version);
		cr_expect_eq(f.vm.vm, vm, "%s: by the variable", f.img->version);
		teardown(&f);
	}
}

/* In a fiber that another one has resumed. */
Test(validate, in_a_fiber)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t iseq = image_iseq(
			f.img, &(struct image_iseq) { .type = RUBY_ISEQ_TOP, .label = "x" });

		f.t = image_fiber(&f.t, 4096);
		image_push_block(&f.t, iseq, image_pc(f.img, iseq, 1), 0);
		image_run(&f.t);
		cr_assert_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		cr_expect(find_check(&f.vm, "fibers")->ok, "%s", f.img->version);
		cr_expect_eq(f.vm.walk.fiber_prev, f.walk.fiber_prev);
		teardown(&f);
	}
}

/* Threads run on while they are looked at: one whose stack is good is enough. */
Test(validate, one_good_stack_of_many)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		struct image_thread bad = image_thread(f.img, 4096), idle = image_thread(f.img, 64);
		uint64_t ecs[3] = { bad.ec, idle.ec, f.t.ec };

		image_push_method(&bad, 0x5000, 0x5000, 0);
		cr_assert_eq(ruby_validate(&f.vm, ecs, 3, 0, f.img->current_vm, f.symbols, false,
					   &f.err),
			     0, "%s: %s", f.img->version, f.err.msg);
		cr_expect_eq(ruby_validate(&f.vm, ecs, 2, 0, f.img->current_vm, f.symbols, false,
					   &f.err),
			     -EPROTO, "%s", f.img->version);
		teardown(&f);
	}
}

/* ---- what rbpf cannot do without ---- */

Test(validate, symbol_tables_that_are_none)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		f.symbols += 8;
		expect_refused(&f, "symbol table");
		f.symbols = 0;
		expect_refused(&f, "symbol table");
		cr_expect_eq(f.vm.symbols, 0);
		/* It could not be found, since no label tells what a String is. */
		f.vm.layout.iseq_location += 8;
		expect_refused(&f, "iseq.location");
		teardown(&f);
	}
}

static void expect_refused_with(size_t version, enum ruby_field field, uint16_t value,
				const char *what)
{
	struct fixture f = setup(image_versions[version].minor);

	*ruby_layout_at(&f.vm.layout, field) = value;
	expect_refused(&f, what);
	teardown(&f);
}

/* Offsets that are wrong, but lead to something. */
Test(validate, wrong_names_of_classes)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct image_facts facts = image_facts_of(v);

		expect_refused_with(v, RUBY_FIELD_singleton_bit, 20, "class name");
		expect_refused_with(v, RUBY_FIELD_string_embed, facts.string_embed == 16 ? 24 : 16,
				    "symbol table");
		if (facts.class_form != IMAGE_CLASS_CLASSEXT) {
			expect_refused_with(v, RUBY_FIELD_class_form,
					    RUBY_CLASS_IV_TBL + RUBY_CLASS_IV_SLOTS -
						    facts.class_form,
					    "class name");
			continue;
		}
		expect_refused_with(v, RUBY_FIELD_class_path, facts.class_path - 8, "class name");
		expect_refused_with(v, RUBY_FIELD_class_attached, facts.class_attached - 8,
				    "class name");
		expect_refused_with(v, RUBY_FIELD_class_permanent, facts.class_permanent - 1,
				    "class name");
	}
}

/* What Object has by chance, String has not. */
Test(validate, members_of_classes_that_fit_one)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t meta = image_get64(f.img, f.img->object + 8);
		const uint16_t twin = 64; /* used for nothing else */

		if (f.img->facts.class_form != IMAGE_CLASS_CLASSEXT) {
			teardown(&f);
			continue;
		}
		/*
		 * The first to be made: the class that it is the singleton of is named elsewhere,
		 * too.
		 */
		image_put64(f.img, meta + twin, f.img->object);
		image_put64(f.img, f.img->object + twin,
			    image_get64(f.img, f.img->object + f.img->facts.class_path));
		cr_expect_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		f.vm.layout.class_attached = twin;
		expect_refused(&f, "class name");
		f.vm.layout.class_attached = f.img->facts.class_attached;
		f.vm.layout.class_path = twin;
		expect_refused(&f, "class name");
		f.vm.layout.class_path = f.img->facts.class_path;

		/* A byte of which bit 0 is set in all classes, of singletons, too. */
		for (int i = 0; i < 2; i++) {
			uint64_t klass = i ? f.string : f.img->object;

			*(uint8_t *)image_at(f.img, klass + twin + 9, 1) = 1;
			*(uint8_t *)image_at(f.img, image_get64(f.img, klass + 8) + twin + 9,
					     1) = 1;
			image_put64(f.img, image_get64(f.img, klass + 8) + f.img->facts.class_path,
				    image_string(f.img, "x"));
		}
		*(uint8_t *)image_at(f.img,
				     image_get64(f.img, f.vm.binary.symbol[RUBY_SYM_rb_mKernel]) +
					     twin + 9,
				     1) = 1;
		f.vm.layout.class_permanent = twin + 9;
		expect_refused(&f, "class name");
		teardown(&f);
	}
}

/* Another pointer of the EC, above which no native frame can be. */
Test(validate, native_stack_and_its_end)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint16_t at = f.img->facts.ec_stack_start;
		uint64_t start = image_get64(f.img, f.t.ec + at);

		image_put64(f.img, f.t.ec + at, f.tag - 64); /* below the tag: stack_end */
		expect_without(&f, "native stack");
		image_put64(f.img, f.t.ec + at, start + (1ull << 30));
		expect_without(&f, "native stack");
		teardown(&f);
	}
}

/* Offsets in the body of an iseq, where another member stands. */
Test(validate, wrong_line_tables)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct image_facts facts = image_facts_of(v);

		expect_refused_with(v, RUBY_FIELD_insns_body, facts.insns_body - 8,
				    "iseq.insns_info.body");
		expect_refused_with(v, RUBY_FIELD_insns_size, facts.insns_size - 16,
				    "iseq.insns_info.body");
	}
}

/* A table of no lines is one, but not for all frames. */
Test(validate, no_line_tables)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++)
		expect_refused_with(v, RUBY_FIELD_insns_size, image_facts_of(v).insns_size - 8,
				    "iseq.insns_info.body");
}

/* Beyond what is read in one piece: caught before it is used. */
Test(validate, facts_that_cannot_be)
{
	static const struct {
		enum ruby_field field;
		uint16_t value;
	} bad[] = {
		{ RUBY_FIELD_cf_size, 48 },	  { RUBY_FIELD_cf_size, 72 },
		{ RUBY_FIELD_cf_size, 0 },	  { RUBY_FIELD_cf_jit_return, 64 },
		{ RUBY_FIELD_cf_jit_return, 24 }, { RUBY_FIELD_insn_entry, 16 },
		{ RUBY_FIELD_insn_entry, 0 },	  { RUBY_FIELD_string_embed, 0 },
		{ RUBY_FIELD_string_embed, 32 },  { RUBY_FIELD_singleton_bit, 40 },
		{ RUBY_FIELD_insns_body, 448 },	  { RUBY_FIELD_insns_size, 60000 },
		{ RUBY_FIELD_insns_index, 448 },  { RUBY_FIELD_local_iseq, 1000 },
		{ RUBY_FIELD_parent_iseq, 1000 }, { RUBY_FIELD_iseq_location, 424 },
		{ RUBY_FIELD_original_id, 128 },
	};

	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			expect_refused_with(v, bad[i].field, bad[i].value,
					    ruby_field_info[bad[i].field].name);
		if (image_facts_of(v).class_form != IMAGE_CLASS_CLASSEXT)
			continue;
		expect_refused_with(v, RUBY_FIELD_class_path, 160,
				    ruby_field_info[RUBY_FIELD_class_path].name);
		expect_refused_with(v, RUBY_FIELD_class_attached, 160,
				    ruby_field_info[RUBY_FIELD_class_attached].name);
	}
}

/*
 * The last member that is read of an iseq's body in one piece, and the next word, which is not:
 * names are possible without some of them.
 */
Test(validate, end_of_a_body)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		f.vm.layout.jit_entry = 448 - 8;
		cr_expect_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		cr_expect_eq(f.vm.layout.jit_entry, 448 - 8);
		f.vm.layout.builtin_attrs = f.vm.layout.jit_entry = 448;
		cr_expect_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		cr_expect_eq(f.vm.layout.builtin_attrs, RUBY_UNKNOWN);
		cr_expect_eq(f.vm.layout.jit_entry, RUBY_UNKNOWN);
		teardown(&f);
		expect_refused_with(v, RUBY_FIELD_parent_iseq, 448,
				    ruby_field_info[RUBY_FIELD_parent_iseq].name);
	}
}

/* Not wrong, but too early. */
Test(validate, not_started_yet)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		struct image_thread idle = image_thread(f.img, 64);

		image_put64(f.img, f.vm.binary.symbol[RUBY_SYM_rb_cObject], 0);
		cr_expect_eq(prove(&f), -EAGAIN, "%s: no Object", f.img->version);
		image_put64(f.img, f.vm.binary.symbol[RUBY_SYM_rb_cObject], f.img->object);
		f.t = idle;
		cr_expect_eq(prove(&f), -EAGAIN, "%s: no frame", f.img->version);
		teardown(&f);
	}
}

Test(validate, process_is_gone)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		image_hide_all(f.img, true);
		cr_expect_neq(prove(&f), 0, "%s", f.img->version);
		teardown(&f);
	}
}

/* ---- what rbpf can do without ---- */

Test(validate, no_vm)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		/*
		 * The code names another one than the thread has. (3.2 needs it for its classes.)
		 */
		image_put64(f.img, f.img->current_vm, f.img->object);
		if (f.img->facts.class_form == IMAGE_CLASS_IV_PTR) {
			expect_refused(&f, "class name");
		} else {
			expect_without(&f, "virtual machine");
			cr_expect_eq(f.vm.vm, 0);
			cr_expect_eq(f.vm.walk.gc_count, 0, "%s", f.img->version);
		}
		teardown(&f);
	}
}

/* The BPF programs do not read as much of a thread. */
Test(validate, ractor_far_from_the_ec)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		if (f.img->facts.th_ractor) {
			f.vm.layout.th_ractor = f.vm.layout.th_ec + 64;
			f.vm.walk.th_ractor = f.vm.layout.th_ractor;
			expect_without(&f, "ractor");
			cr_expect_eq(f.vm.walk.th_ractor, 0, "%s", f.img->version);
			cr_expect_eq(f.vm.walk.gc_owner, 0, "%s", f.img->version);
		}
		teardown(&f);
	}
}

/* They stand next to each other, and both are structs that an object wraps. */
Test(validate, vm_and_ractor)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		if (f.img->facts.th_ractor && f.img->facts.class_form != IMAGE_CLASS_IV_PTR) {
			image_put64(f.img, f.img->vm.vm + 32, f.img->ractor);
			f.img->current_vm = 0;
			f.vm.layout.th_vm = f.img->facts.th_ractor;
			f.vm.layout.th_ractor = f.img->facts.th_vm;
			expect_without(&f, "virtual machine");
			cr_expect_eq(f.vm.vm, 0);
		}
		teardown(&f);
	}
}

/* Where the last word of a frame is __bp__. */
Test(validate, jit_return_and_bp)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);

		if (f.img->facts.cf_jit_return) {
			image_put64(f.img, f.t.cfp + f.img->facts.cf_jit_return, f.t.sp);
			expect_refused(&f, "cfp.jit_return");
		} else {
			f.vm.layout.cf_jit_return = 48;
			expect_refused(&f, "cfp.jit_return");
		}
		teardown(&f);
	}
}

Test(validate, no_fibers)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		struct image_thread other = image_thread(f.img, 64);

		/* A fiber that is said to be resumed by one of another thread. */
		image_put64(f.img, f.t.fiber + f.img->facts.fiber_prev, other.fiber);
		expect_without(&f, "fibers");
		cr_expect(!f.vm.walk.fiber_prev && !f.vm.walk.fiber_ec, "%s", f.img->version);
		teardown(&f);

		f = setup(image_versions[v].minor);
		f.vm.layout.fiber_ec += 8;
		expect_without(&f, "fibers");
		teardown(&f);
	}
}

Test(validate, no_native_stack)
{
	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct fixture f = setup(image_versions[v].minor);
		uint64_t at = f.t.ec + f.img->facts.ec_stack_start;
		uint64_t start = image_get64(f.img, at);

		image_put64(f.img, at, 0);
		expect_without(&f, "native stack");
		cr_expect_eq(f.vm.walk.ec_stack_start, 0);
		image_put64(f.img, at, start);
		image_put64(f.img, at + 16, start + 8); /* larger than all below it */
		expect_without(&f, "native stack");
		f.vm.layout.ec_stack_start = 240; /* beyond what is read of an EC */
		expect_without(&f, "native stack");
		f.vm.layout.ec_stack_start = RUBY_UNKNOWN;
		expect_without(&f, "native stack");
		teardown(&f);
	}
}
