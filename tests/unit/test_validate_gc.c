/* SPDX-License-Identifier: GPL-2.0-only */
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

Test(validate_gc, members_that_are_unknown)
{
	static const enum ruby_field fields[] = { RUBY_FIELD_vm_objspace, RUBY_FIELD_objspace_flags,
						  RUBY_FIELD_objspace_count };

	FOR_EACH_FIXTURE(f) {
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			uint16_t *at = ruby_layout_at(&f.vm.layout, fields[i]), was = *at;

			*at = RUBY_UNKNOWN;
			expect_unknown(&f, ruby_field_info[fields[i]].name);
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
		unsigned int looks = 0;

		image_gc_flags(f.img, IMAGE_GC_DURING | IMAGE_GC_MARKING);
		image_gc_count(f.img, 42);
		expect_unknown(&f, "the parts are of 41 all the time");
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

#ifdef __x86_64__

/* Code of the VM, and of a collector in another file. */
struct gc_code {
	uint64_t vm, module, slots;
};

#define IN_MODULE 0x100 /* of the functions of the collector, from the start of its code */

static void emit(struct ruby_image *img, uint64_t *at, const void *bytes, size_t n)
{
	memcpy(image_at(img, *at, n), bytes, n);
	*at += n;
}

static void emit32(struct ruby_image *img, uint64_t *at, uint64_t v)
{
	image_put32(img, *at, (uint32_t)v);
	*at += 4;
}

static void emit_relative(struct ruby_image *img, uint64_t *at, uint64_t target)
{
	emit32(img, at, target - (*at + 4));
}

/* Passes the objspace on to what @slot points to. */
static void emit_dispatch(struct fixture *f, uint64_t at, uint64_t slot)
{
	emit(f->img, &at, "\x48\x8b\x05", 3); /* mov ruby_current_vm_ptr(%rip),%rax */
	emit_relative(f->img, &at, f->img->current_vm);
	emit(f->img, &at, "\x48\x8b\xb8", 3); /* mov objspace(%rax),%rdi */
	emit32(f->img, &at, f->img->facts.vm_objspace);
	emit(f->img, &at, "\xff\x25", 2); /* jmp *slot(%rip) */
	emit_relative(f->img, &at, slot);
}

/* The functions that tell whether the collector runs, and how often it ran. */
static void emit_collector(struct ruby_image *img, uint64_t at, uint32_t flags, uint32_t count)
{
	uint64_t during = at, counts = at + 64;

	emit(img, &during, "\x0f\xb6\x87", 3); /* movzbl flags(%rdi),%eax */
	emit32(img, &during, flags);
	emit(img, &during, "\xc0\xe8\x05\x83\xe0\x01\xc3", 7); /* shr $5,%al; and $1,%eax; ret */
	emit(img, &counts, "\x48\x8b\x87", 3);		       /* mov count(%rdi),%rax */
	emit32(img, &counts, count);
	emit(img, &counts, "\xc3", 1);
}

/* Let the collector be called through variables that lead to @target. */
static void call_through(struct fixture *f, const struct gc_code *c, uint64_t target)
{
	image_put64(f->img, c->slots, target);
	image_put64(f->img, c->slots + 8, target + 64);
}

static struct gc_code with_code(struct fixture *f)
{
	struct gc_code c = { .vm = image_region(f->img, IMAGE_PAGE),
			     .module = image_region(f->img, IMAGE_PAGE),
			     .slots = image_region(f->img, IMAGE_PAGE) };
	const struct image_facts *facts = &f->img->facts;

	f->vm.binary.text_lo = c.vm;
	f->vm.binary.text_hi = c.vm + IMAGE_PAGE;
	f->vm.binary.data_lo = f->img->current_vm;
	f->vm.binary.data_hi = f->img->current_vm + IMAGE_PAGE;
	f->vm.binary.symbol[RUBY_SYM_rb_during_gc] = c.vm;
	f->vm.binary.symbol[RUBY_SYM_rb_gc_count] = c.vm + 64;
	emit_dispatch(f, c.vm, c.slots);
	emit_dispatch(f, c.vm + 64, c.slots + 8);
	emit_collector(f->img, c.vm + IN_MODULE, facts->objspace_flags, facts->objspace_count);
	emit_collector(f->img, c.module + IN_MODULE, facts->objspace_flags, facts->objspace_count);
	call_through(f, &c, c.vm + IN_MODULE);
	return c;
}

/* As that module is mapped. */
static void load_module(struct fixture *f, const struct gc_code *c, const char *name)
{
	f->vm.binary.gc_lo = c->module;
	f->vm.binary.gc_hi = c->module + IMAGE_PAGE;
	snprintf(f->vm.binary.gc_name, sizeof(f->vm.binary.gc_name), "%s", name);
}

/* Through a variable, as a Ruby for modular collectors does. Then also a first collection counts. */
Test(validate_gc, built_in)
{
	FOR_EACH_FIXTURE(f) {
		with_code(&f);
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
		with_code(&f);
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
		struct gc_code c = with_code(&f);
		uint64_t right = f.img->current_vm;

		image_put64(f.img, right + 8, f.img->object);
		f.img->current_vm = right + 8;
		emit_dispatch(&f, c.vm, c.slots);
		emit_dispatch(&f, c.vm + 64, c.slots + 8);
		f.img->current_vm = right;
		emit_collector(f.img, c.vm + IN_MODULE, 200, 216);
		expect_known(&f, "by the table");
	}
}

/* It is in a file of its own, but the same. */
Test(validate_gc, default_as_a_module)
{
	FOR_EACH_FIXTURE(f) {
		struct gc_code c = with_code(&f);

		call_through(&f, &c, c.module + IN_MODULE);
		load_module(&f, &c, "default");
		expect_known(&f, "default");
		image_gc_counts(f.img, 1, 0);
		expect_unknown(&f, "too few collections");
	}
}

/* The objspace is another struct: what the table says of it leads to words that look well. */
Test(validate_gc, another_module)
{
	FOR_EACH_FIXTURE(f) {
		struct gc_code c = with_code(&f);
		uint64_t at = c.module + IN_MODULE;

		call_through(&f, &c, at);
		load_module(&f, &c, "mmtk");
		emit(f.img, &at, "\x31\xc0\xc3", 3); /* xor %eax,%eax; ret: never */
		expect_unknown(&f, "never runs");
		cr_expect_not_null(
			strstr(find_check(&f.vm, "garbage collector")->detail, "mmtk: "));
		at = c.module + IN_MODULE;
		emit(f.img, &at, "\x83\x7f\x58\x02\x0f\x94\xc0\xc3", 8); /* phase == 2 */
		expect_unknown(&f, "compares a phase");
	}
}

/* Which has a count of its own and the flag in the same bit, by chance. */
Test(validate_gc, another_module_of_that_form)
{
	FOR_EACH_FIXTURE(f) {
		struct gc_code c = with_code(&f);

		call_through(&f, &c, c.module + IN_MODULE);
		load_module(&f, &c, "immix");
		emit_collector(f.img, c.module + IN_MODULE, 200, 216);
		image_put64(f.img, f.img->objspace + 216, 41);
		expect_unknown(&f, "counts as no other does");
	}
}

/* The module has another name, or is in no file: what the code calls is not known. */
Test(validate_gc, module_that_was_not_found)
{
	FOR_EACH_FIXTURE(f) {
		struct gc_code c = with_code(&f);

		call_through(&f, &c, c.module + IN_MODULE);
		expect_unknown(&f, "code elsewhere");
	}
}

/* Loaded, and the code does not say whether it is used. */
Test(validate_gc, module_without_code)
{
	FOR_EACH_FIXTURE(f) {
		struct gc_code c = { .module = image_region(f.img, IMAGE_PAGE) };

		load_module(&f, &c, "default");
		expect_unknown(&f, "no code");
	}
}

#endif
