/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/code.h"
#include "ruby/emulate.h"
#include "support/validate_fixture.h"

/* Which collector runs, and where it says what it does. */

static void expect_unknown(struct fixture *f, const char *what)
{
	f->vm.walk.gc_flags = f->vm.walk.gc_count = f->vm.walk.gc_owner = 0;
	f->vm.walk.flags = f->walk.flags;
	expect_without(f, "garbage collector");
	cr_expect(!f->vm.walk.gc_flags && !f->vm.walk.gc_count && !f->vm.walk.gc_owner, "%s: %s",
		  f->img->version, what);
	cr_expect(f->vm.walk.flags & RBPF_LAYOUT_NO_AGE, "%s: checks are taken of old objects, too",
		  f->img->version);
}

static void expect_known(struct fixture *f, const char *what)
{
	cr_assert_eq(prove(f), 0, "%s: %s", f->img->version, f->err.msg);
	cr_expect(find_check(&f->vm, "garbage collector")->ok, "%s: %s: %s", f->img->version, what,
		  find_check(&f->vm, "garbage collector")->detail);
	cr_expect_eq(f->vm.walk.gc_flags, f->walk.gc_flags, "%s: %s", f->img->version, what);
	cr_expect_eq(f->vm.walk.gc_count, f->walk.gc_count, "%s: %s", f->img->version, what);
}

static void expect_of_several(struct fixture *f, bool known)
{
	const struct rbpf_layout *w = &f->vm.walk;

	f->vm.walk.flags = f->walk.flags;
	f->vm.walk.ractor_objspace = 0;
	prove(f);
	cr_expect_eq(find_check(&f->vm, "garbage collector")->ok, known, "%s: %s", f->img->version,
		     find_check(&f->vm, "garbage collector")->detail);
	cr_expect_eq(w->ractor_objspace, known ? GC_CODE_RACTOR_OBJSPACE : 0, "%s",
		     f->img->version);
	cr_expect(!w->gc_flags && !w->gc_count && !w->gc_single && !w->gc_ractor, "%s",
		  f->img->version);
	cr_expect(w->flags & RBPF_LAYOUT_NO_AGE, "%s", f->img->version);
}

Test(validate_gc, members_that_are_unknown)
{
	static const enum ruby_field fields[] = { RUBY_FIELD_vm_objspace, RUBY_FIELD_objspace_flags,
						  RUBY_FIELD_objspace_count };

	FOR_EACH_FIXTURE(f) {
		uint64_t during = f.vm.binary.symbol[RUBY_SYM_rb_during_gc];
		uint64_t count = f.vm.binary.symbol[RUBY_SYM_rb_gc_count];

		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			uint16_t *at = ruby_layout_at(&f.vm.layout, fields[i]), was = *at;

			*at = RUBY_UNKNOWN;
			expect_known(&f, "the code tells");
			cr_expect_eq(*at, was, "%s", f.img->version);
			*at = RUBY_UNKNOWN;
			f.vm.binary.symbol[RUBY_SYM_rb_during_gc] = i < 2 ? 0 : during;
			f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
			expect_unknown(&f, ruby_field_info[fields[i]].name);
			f.vm.binary.symbol[RUBY_SYM_rb_during_gc] = during;
			f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = count;
			*at = was;
		}
		expect_known(&f, "all members");
	}
}

/* Words where the collector's should be, that cannot be its: pointers, text. */
Test(validate_gc, words_that_cannot_be)
{
	FOR_EACH_FIXTURE(f) {
		image_gc_count(f.img, 0x7f0000001000);
		expect_unknown(&f, "a pointer as count");
		image_gc_counts(f.img, 30, 11);
		image_gc_flags(f.img, 0x7f000000);
		expect_unknown(&f, "text as flags");
		image_gc_flags(f.img, 0);
		image_put64(f.img, image_get64(f.img, f.img->current_vm) + f.img->facts.vm_objspace,
			    0x5000);
		expect_unknown(&f, "no objspace");
	}
}

/* Each member and its neighbours: the counts add up at one place only. */
Test(validate_gc, a_count_of_something_else)
{
	FOR_EACH_FIXTURE(f) {
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		for (int words = -8; words <= 8; words++) {
			uint16_t right = f.img->facts.objspace_count;

			if (!words)
				continue;
			f.vm.layout.objspace_count = (uint16_t)(right + words * 8);
			/* Near it are the counts themselves, and 0 is not yet a count. */
			expect_unknown(&f, "another word");
			f.vm.layout.objspace_count = right;
		}
	}
}

/* What would pass for a count, as it is small: another collector has no parts that add up to it. */
Test(validate_gc, a_small_number)
{
	FOR_EACH_FIXTURE(f) {
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		for (uint64_t count = 0; count < 200; count++) {
			if (count == 41)
				continue;
			image_gc_count(f.img, count);
			expect_unknown(&f, "the parts are of 41");
		}
	}
}

/* Before there were some collections, 0 and 0 add up, too. */
Test(validate_gc, too_few_collections)
{
	FOR_EACH_FIXTURE(f) {
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		for (uint64_t count = 0; count < 3; count++) {
			image_gc_counts(f.img, count, 0);
			expect_unknown(&f, "too few");
		}
		image_gc_counts(f.img, 2, 1);
		expect_known(&f, "some");
	}
}

/* The third look at the counts is after the collection that increases them. */
static void end_collection(struct ruby_image *img, uint64_t addr, size_t len)
{
	unsigned int *looks = img->arg;

	(void)len;
	if (addr == img->objspace + img->facts.objspace_flags && ++*looks == 6)
		image_gc_counts(img, 31, 11);
}

/* First the count of all is increased, then one of its parts. */
Test(validate_gc, in_the_midst_of_a_collection)
{
	FOR_EACH_FIXTURE(f) {
		uint64_t count = f.vm.binary.symbol[RUBY_SYM_rb_gc_count];
		unsigned int looks = 0;

		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		image_gc_flags(f.img, IMAGE_GC_DURING | IMAGE_GC_MARKING);
		image_gc_count(f.img, 42);
		expect_unknown(&f, "the parts are of 41 all the time");
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = count;
		expect_known(&f, "by its code");
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		f.img->on_read = end_collection;
		f.img->arg = &looks;
		expect_known(&f, "in the end they add up");
		f.img->on_read = NULL;
		image_gc_flags(f.img, 0);
		image_gc_count(f.img, 43);
		expect_unknown(&f, "no collection runs");
	}
}

Test(validate_gc, no_collecting_thread)
{
	FOR_EACH_FIXTURE(f) {
		uint64_t at = f.img->ractor + f.img->facts.running_ec;

		if (!f.img->facts.th_ractor)
			continue;
		image_put64(f.img, at, f.img->object);
		expect_without(&f, "collecting thread");
		cr_expect_eq(f.vm.walk.gc_owner, 0);
		cr_expect_eq(f.vm.walk.gc_count, f.walk.gc_count, "the rest is known");
		image_put64(f.img, at, 0); /* nobody runs: what is behind it tells */
		f.vm.layout.ractor_running_ec += 8;
		expect_without(&f, "collecting thread");
		f.vm.layout.ractor_running_ec -= 16;
		expect_without(&f, "collecting thread");
		f.vm.layout.ractor_running_ec += 8;
		cr_assert_eq(prove(&f), 0);
		cr_expect(find_check(&f.vm, "collecting thread")->ok, "%s", f.img->version);
	}
}

/* ---- what the code says ---- */

/*
 * Through a variable, as a Ruby for modular collectors does. Then also a first collection counts.
 */
Test(validate_gc, built_in)
{
	FOR_EACH_FIXTURE(f) {
		expect_known(&f, "some collections");
		image_gc_counts(f.img, 1, 0);
		expect_known(&f, "one");
		image_gc_counts(f.img, 0, 0);
		expect_known(&f, "none");
		image_gc_counts(f.img, 2, 1);
		image_gc_count(f.img, 4);
		expect_unknown(&f, "counts that do not add up");
		image_gc_flags(f.img, IMAGE_GC_DURING);
		expect_known(&f, "as a collection runs");
	}
}

/* The code of this process is surer than a table, or what was learnt of another process. */
Test(validate_gc, code_against_table)
{
	FOR_EACH_FIXTURE(f) {
		f.vm.layout.objspace_flags += 4;
		f.vm.layout.objspace_count = RUBY_UNKNOWN;
		f.vm.layout.vm_objspace -= 8;
		f.vm.source[RUBY_FIELD_objspace_flags] = RUBY_FROM_TABLE;
		expect_known(&f, "by code");
		cr_expect_eq(f.vm.source[RUBY_FIELD_objspace_flags], RUBY_FROM_CODE);
		cr_expect_eq(f.vm.layout.vm_objspace, f.img->facts.vm_objspace);
	}
}

/* What the code says of another VM in the process is nothing of this one. */
Test(validate_gc, code_of_another_vm)
{
	FOR_EACH_FIXTURE(f) {
		image_put64(f.img, f.code.var, f.img->object);
		expect_unknown(&f, "of another VM");
	}
}

/* What both kinds of processors run in these tests, as the emulator reads it. */
Test(validate_gc, code_of_both_machines)
{
	const struct emu_machine *const machines[] = { &emu_x86_64, &emu_arm64 };

	FOR_EACH_FIXTURE(f) {
		for (int arm64 = 0; arm64 < 2; arm64++) {
			const struct image_facts *facts = &f.img->facts;
			struct ruby_binary bin = f.vm.binary;
			struct ruby_code code;

			gc_code_new(f.img, &bin, arm64);
			ruby_code_read_machine(machines[arm64], &f.vm.mem, &bin, 0, &code);
			cr_expect_eq(code.layout.vm_objspace, facts->vm_objspace);
			cr_expect_eq(code.layout.objspace_flags, facts->objspace_flags,
				     "%s: arm64 %d", f.img->version, arm64);
			cr_expect_eq(code.layout.objspace_count, facts->objspace_count);
			cr_expect_not(code.gc_in_module || code.gc_elsewhere);
		}
	}
}

/* Where each ractor has an objspace of its own, that of the only one is known. */
Test(validate_gc, an_objspace_of_each_ractor)
{
	FOR_EACH_FIXTURE(f) {
		uint64_t single;

		if (!f.img->facts.th_ractor)
			continue;
		single = gc_code_of_only_ractor(&f.code, &f.vm.binary);
		expect_known(&f, "of the only ractor");
		cr_expect_eq(f.vm.walk.gc_single, single);
		cr_expect_eq(f.vm.walk.gc_ractor, f.img->ractor);
		cr_expect_eq(f.vm.walk.gc_during_bit, 6);
		cr_expect_eq(f.vm.walk.ractor_objspace, GC_CODE_RACTOR_OBJSPACE);
		cr_expect_eq(f.vm.walk.objspace_flags, f.img->facts.objspace_flags);
		image_put64(f.img, single, f.img->object);
		expect_unknown(&f, "of what is no ractor");
		image_put64(f.img, single, f.img->ractor);
		image_put64(f.img, f.img->ractor + GC_CODE_RACTOR_OBJSPACE, 0);
		expect_unknown(&f, "it has none");
	}
}

/*
 * If there are several, it is that of the running one. Its flags are known, and in which era an
 * object was seen is not.
 */
Test(validate_gc, an_objspace_of_each_of_several_ractors)
{
	FOR_EACH_FIXTURE(f) {
		uint64_t single;

		if (!f.img->facts.th_ractor)
			continue;
		gc_code_of_running_ractor(&f.code, &f.vm.binary, &f.t);
		expect_of_several(&f, true);
		image_put64(f.img, f.img->ractor + GC_CODE_RACTOR_OBJSPACE, 0);
		expect_of_several(&f, false);
		image_put64(f.img, f.img->ractor + GC_CODE_RACTOR_OBJSPACE, f.img->objspace);
		expect_of_several(&f, true);
		single = gc_code_of_only_ractor(&f.code, &f.vm.binary);
		image_put64(f.img, single, 0);
		expect_of_several(&f, true);
		gc_code_of_running_ractor(&f.code, &f.vm.binary, &f.t);
		image_put64(f.img, f.t.th + f.img->facts.th_ractor, f.img->object);
		expect_of_several(&f, false);
	}
}

/*
 * Where the version does not say which words are the counts of minor and major collections, the one
 * pair that adds up is.
 */
Test(validate_gc, major_collections_far_from_the_count)
{
	FOR_EACH_FIXTURE(f) {
		const uint64_t majors = f.walk.gc_majors;

		if (!majors)
			continue;
		expect_known(&f, "a pair");
		cr_expect_eq(f.vm.walk.gc_majors, majors);
		cr_expect_eq(f.vm.walk.gc_major_word, 1);
		image_put64(f.img, majors + 48, 40);
		image_put64(f.img, majors + 56, 1);
		expect_known(&f, "two pairs");
		cr_expect_eq(f.vm.walk.gc_majors, 0);
		cr_expect_eq(f.vm.walk.gc_major_word, 0);
		image_put64(f.img, majors + 56, 2);
		expect_known(&f, "one again");
		cr_expect_eq(f.vm.walk.gc_majors, majors);
		image_gc_counts(f.img, 41, 0);
		expect_known(&f, "none that is sure");
		cr_expect_eq(f.vm.walk.gc_majors, 0);
		image_gc_counts(f.img, 1, 1);
		expect_known(&f, "too few");
		cr_expect_eq(f.vm.walk.gc_majors, 0);
	}
}

/* So, on both kinds of processors; the VM has one only to end with. */
Test(validate_gc, code_of_an_objspace_of_each_ractor)
{
	const struct emu_machine *const machines[] = { &emu_x86_64, &emu_arm64 };

	FOR_EACH_FIXTURE(f) {
		for (int arm64 = 0; arm64 < 2 && f.img->facts.th_ractor; arm64++) {
			struct ruby_binary bin = f.vm.binary;
			const struct gc_code c = gc_code_new(f.img, &bin, arm64);
			const uint64_t single = gc_code_of_only_ractor(&c, &bin);
			struct ruby_code code;

			ruby_code_read_machine(machines[arm64], &f.vm.mem, &bin, 0, &code);
			cr_expect_eq(code.single_ractor, single, "%s: arm64 %d", f.img->version,
				     arm64);
			cr_expect_eq(code.ractor_objspace, GC_CODE_RACTOR_OBJSPACE);
			cr_expect_eq(code.during_gc_bit, 6);
			cr_expect_eq(code.layout.vm_objspace, RUBY_UNKNOWN);
			cr_expect_eq(code.layout.objspace_flags, f.img->facts.objspace_flags);
			cr_expect_eq(code.layout.objspace_count, f.img->facts.objspace_count);

			image_put64(f.img, single, 0);
			gc_code_of_running_ractor(&c, &bin, &f.t);
			ruby_code_read_machine(machines[arm64], &f.vm.mem, &bin, 0, &code);
			cr_expect_eq(code.ractor_objspace, GC_CODE_RACTOR_OBJSPACE,
				     "%s: arm64 %d, of several", f.img->version, arm64);
			cr_expect_eq(code.single_ractor, 0);
			cr_expect_eq(code.layout.th_ractor, f.img->facts.th_ractor);
			cr_expect_eq(code.layout.objspace_flags, f.img->facts.objspace_flags);
			cr_expect_eq(code.layout.objspace_count, f.img->facts.objspace_count);
		}
	}
}

/* All zero is what flags are most of the time: nothing but the code tells where they are. */
Test(validate_gc, no_code)
{
	FOR_EACH_FIXTURE(f) {
		uint64_t count = f.vm.binary.symbol[RUBY_SYM_rb_gc_count];

		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		expect_known(&f, "the counts tell which they are");
		image_gc_counts(f.img, 1, 1);
		expect_unknown(&f, "too few");
		image_gc_counts(f.img, 30, 11);
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = count;
		f.vm.binary.symbol[RUBY_SYM_rb_during_gc] = 0;
		expect_unknown(&f, "nothing tells where the flags are");
	}
}

/* It is in a file of its own, but the same. */
Test(validate_gc, default_as_a_module)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_call(&f.code, f.code.module + GC_CODE_COLLECTOR);
		gc_code_load(&f.code, &f.vm.binary, "default");
		expect_known(&f, "default");
		image_gc_counts(f.img, 1, 0);
		expect_unknown(&f, "too few collections");
	}
}

/* The objspace is another struct: what the table says of it leads to words that look well. */
Test(validate_gc, another_module)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_call(&f.code, f.code.module + GC_CODE_COLLECTOR);
		gc_code_load(&f.code, &f.vm.binary, "mmtk");
		gc_code_never(&f.code, f.code.module + GC_CODE_COLLECTOR);
		expect_unknown(&f, "never runs");
		cr_expect_not_null(
			strstr(find_check(&f.vm, "garbage collector")->detail, "mmtk: "));
	}
}

/* Which has a count of its own and the flag in the same bit, by chance. */
Test(validate_gc, another_module_of_that_form)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_call(&f.code, f.code.module + GC_CODE_COLLECTOR);
		gc_code_load(&f.code, &f.vm.binary, "immix");
		gc_code_collector(&f.code, f.code.module + GC_CODE_COLLECTOR, 200, 216);
		image_put64(f.img, f.img->objspace + 216, 41);
		expect_unknown(&f, "counts as no other does");
	}
}

/* What has the flag elsewhere has not the table's count, whatever stands there. */
Test(validate_gc, module_of_which_half_is_known)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_call(&f.code, f.code.module + GC_CODE_COLLECTOR);
		gc_code_load(&f.code, &f.vm.binary, "immix");
		gc_code_collector(&f.code, f.code.module + GC_CODE_COLLECTOR, 200, 216);
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		expect_unknown(&f, "its count is not known");
	}
}

/* The module has another name, or is in no file: what the code calls is not known. */
Test(validate_gc, module_that_was_not_found)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_call(&f.code, f.code.module + GC_CODE_COLLECTOR);
		expect_unknown(&f, "code elsewhere");
	}
}

/* Loaded, and the code does not say whether it is used. */
Test(validate_gc, module_without_code)
{
	FOR_EACH_FIXTURE(f) {
		gc_code_load(&f.code, &f.vm.binary, "default");
		f.vm.binary.symbol[RUBY_SYM_rb_during_gc] = 0;
		f.vm.binary.symbol[RUBY_SYM_rb_gc_count] = 0;
		expect_unknown(&f, "no code");
	}
}
