/* SPDX-License-Identifier: GPL-2.0-only */
#include "support/validate_fixture.h"

/*
 * Each member that names and lines rest on changes places with the one that looks most like it:
 * all that is read can be read, but is another name or line.
 */

static void swap64(struct ruby_image *img, uint64_t a, uint64_t b)
{
	uint64_t v = image_get64(img, a);

	image_put64(img, a, image_get64(img, b));
	image_put64(img, b, v);
}

Test(validate_names, as_they_are)
{
	FOR_EACH_FIXTURE(f) {
		push_code(&f);
		cr_assert_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		cr_expect_str_eq(find_check(&f.vm, "names")->detail,
				 "4 method names, 8 tables of lines and 6 parents agree", "%s",
				 f.img->version);
		/* Of a layout that is known only the innermost frames of a stack are asked. */
		f.vm.n_checks = 0;
		cr_assert_eq(ruby_validate(&f.vm, &f.t.ec, 1, 0, f.img->current_vm, f.symbols, true,
					   &f.err),
			     0, "%s", f.err.msg);
		cr_expect_str_eq(find_check(&f.vm, "names")->detail,
				 "1 method names, 3 tables of lines and 3 parents agree", "%s",
				 f.img->version);
	}
}

/* Without any iseq nothing is asked, and nothing contradicts. */
Test(validate_names, nothing_to_ask)
{
	FOR_EACH_FIXTURE(f) {
		struct image_thread t = image_thread(f.img, 4096);

		image_push_cfunc(&t, image_ment(f.img, f.img->object, "sleep", IMAGE_CFUNC));
		f.t = t;
		cr_expect_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
	}
}

/* Array#each became Array#remainder: the other word is an ID, too, of another method. */
Test(validate_names, original_id_and_method_serial)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);
		uint64_t def = image_get64(f.img, c.me + 16);
		uint64_t fixture_me = image_get64(f.img, f.method + 16);

		image_put64(f.img, def + 40, image_id(f.img, "remainder"));
		image_put64(f.img, fixture_me + 40, image_id(f.img, "divmod"));
		swap64(f.img, def + 32, def + 40);
		swap64(f.img, fixture_me + 32, fixture_me + 40);
		expect_refused(&f, "method.original_id");
	}
}

/* Both are small numbers that grow from entry to entry. */
Test(validate_names, line_no_and_node_id)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);
		uint64_t iseqs[] = { c.outer, c.inner, c.innermost, f.iseq };

		if (f.img->facts.insn_entry != 12)
			continue;
		for (size_t i = 0; i < 4; i++) {
			uint64_t body = image_body(f.img, iseqs[i]), at, word;
			uint32_t n = (uint32_t)image_get64(f.img, body + f.img->facts.insns_size);

			at = image_get64(f.img, body + f.img->facts.insns_body);
			for (; n; n--, at += 12) {
				word = image_get64(f.img, at);
				image_put64(f.img, at, word << 32 | word >> 32);
			}
		}
		expect_refused(&f, "iseq.insns_info.line_no");
	}
}

/* The size of an entry: each other line is a flag or a number then. */
Test(validate_names, size_of_an_entry)
{
	FOR_EACH_FIXTURE(f) {
		push_code(&f);
		f.vm.layout.insn_entry = f.img->facts.insn_entry == 12 ? 8 : 12;
		cr_expect_eq(prove(&f), -EPROTO, "%s", f.img->version);
	}
}

/* A table of another iseq. */
Test(validate_names, succ_index_table)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);
		uint16_t at = f.img->facts.insns_index;

		swap64(f.img, image_body(f.img, c.outer) + at, image_body(f.img, c.inner) + at);
		expect_refused(&f, "iseq.insns_info.succ_index_table");
	}
}

Test(validate_names, local_iseq_and_parent_iseq)
{
	FOR_EACH_FIXTURE(f) {
		push_code(&f);
		f.vm.layout.local_iseq = f.img->facts.parent_iseq;
		f.vm.layout.parent_iseq = f.img->facts.local_iseq;
		cr_expect_eq(prove(&f), -EPROTO, "%s", f.img->version);
		/* In memory, as in a Ruby that has them so: the table is wrong then. */
		f.vm.layout.local_iseq = f.img->facts.local_iseq;
		f.vm.layout.parent_iseq = f.img->facts.parent_iseq;
		cr_expect_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
	}
}

/* Nothing but a method is on the stack. */
Test(validate_names, local_iseq_of_a_simple_stack)
{
	FOR_EACH_FIXTURE(f) {
		uint16_t right = f.vm.layout.local_iseq;

		f.vm.layout.local_iseq = f.vm.layout.parent_iseq;
		f.vm.layout.parent_iseq = right;
		expect_refused(&f, "iseq.local_iseq");
	}
}

/* original_iseq, say: of a block the method, too, but not what is between them. */
Test(validate_names, parent_iseq_and_another_iseq)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);
		uint64_t iseqs[] = { c.inner, c.innermost, c.rescue };

		for (size_t i = 0; i < 3; i++)
			image_put64(f.img, image_body(f.img, iseqs[i]) + f.img->facts.parent_iseq,
				    i ? c.rescue : c.outer);
		/* Where labels are made of parents, they cannot even be read. */
		cr_expect_eq(prove(&f), -EPROTO, "%s", f.img->version);
	}
}

/* It does not matter to names, so rbpf does without. */
Test(validate_names, builtin_attrs)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);

		if (!f.img->facts.builtin_attrs)
			continue;
		cr_assert_eq(prove(&f), 0);
		cr_expect_eq(f.vm.layout.builtin_attrs, f.img->facts.builtin_attrs);
		image_put32(f.img, image_body(f.img, c.outer) + f.img->facts.builtin_attrs, 12);
		image_put32(f.img, image_body(f.img, c.inner) + f.img->facts.builtin_attrs, 8);
		cr_assert_eq(prove(&f), 0, "%s: %s", f.img->version, f.err.msg);
		cr_expect_eq(f.vm.layout.builtin_attrs, RUBY_UNKNOWN, "%s", f.img->version);
	}
}

Test(validate_names, size_of_first_lineno)
{
	FOR_EACH_FIXTURE(f) {
		push_code(&f);
		f.vm.layout.lineno_size = f.img->facts.lineno_size == 8 ? 4 : 8;
		expect_refused(&f, "iseq.first_lineno");
	}
}

/* A clause whose parent is of another method. */
Test(validate_names, parent_of_a_clause)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);

		image_put64(f.img, image_body(f.img, c.rescue) + f.img->facts.parent_iseq, f.iseq);
		expect_refused(&f, "iseq.parent_iseq");
	}
}

/* Blocks that are said to stand in one another. */
Test(validate_names, local_iseq_of_blocks)
{
	FOR_EACH_FIXTURE(f) {
		struct code c = push_code(&f);
		uint16_t at = f.img->facts.local_iseq;

		if (f.vm.rules.labels_from_parents) /* then they cannot even be named */
			continue;
		image_put64(f.img, image_body(f.img, c.inner) + at, c.innermost);
		image_put64(f.img, image_body(f.img, c.innermost) + at, c.inner);
		expect_refused(&f, "iseq.local_iseq");
	}
}
