/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "ruby/discover.h"
#include "ruby/vm.h"

#define ALL ((1u << RUBY_SOURCES) - 1)

/* Each source says its own number for each fact; none of them is known to be right here. */
static struct ruby_findings all_say(void)
{
	struct ruby_findings found = { 0 };

	for (unsigned int source = 0; source < RUBY_SOURCES; source++)
		for (size_t i = 0; i < RUBY_FIELDS; i++)
			*ruby_layout_at(&found.layout[source],
					i) = (uint16_t)(1000 * source + i + 1);
	return found;
}

static struct ruby_findings none_says(void)
{
	struct ruby_findings found = { 0 };

	for (unsigned int source = 0; source < RUBY_SOURCES; source++)
		ruby_layout_init(&found.layout[source]);
	return found;
}

Test(discover, the_most_trusted_source_wins)
{
	struct ruby_findings found = all_say();
	struct ruby_vm vm;

	for (unsigned int set = 1; set <= ALL; set++) {
		unsigned int first = (unsigned int)__builtin_ctz(set);

		memset(&vm, 0x55, sizeof(vm));
		cr_expect_eq(ruby_layout_merge(&vm, &found, set, NULL), 0);
		for (size_t i = 0; i < RUBY_FIELDS; i++) {
			cr_expect_eq(ruby_layout_get(&vm.layout, i), 1000 * first + i + 1,
				     "sources %x, %s", set, ruby_field_info[i].name);
			cr_expect_eq(vm.source[i], first, "sources %x, %s", set,
				     ruby_field_info[i].name);
		}
	}
}

/* Each fact comes from where it is known; also that a Ruby has no such member. */
Test(discover, sources_complete_each_other)
{
	struct ruby_findings found = all_say();
	struct ruby_vm vm = RUBY_VM_INIT;

	for (size_t i = 0; i < RUBY_FIELDS; i++)
		for (unsigned int source = 0; source < i % RUBY_SOURCES; source++)
			*ruby_layout_at(&found.layout[source], i) = RUBY_UNKNOWN;
	found.layout[RUBY_FROM_CODE].ec_fiber_ptr = RUBY_ABSENT;
	cr_expect_eq(ruby_layout_merge(&vm, &found, ALL, NULL), 0);
	cr_expect_eq(vm.layout.ec_fiber_ptr, RUBY_ABSENT, "that is knowledge, too");
	for (size_t i = 1; i < RUBY_FIELDS; i++)
		cr_expect_eq(vm.source[i], i % RUBY_SOURCES, "%s", ruby_field_info[i].name);
}

static bool is_one_of(enum ruby_field field, const enum ruby_field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fields[i] == field)
			return true;
	return false;
}

/* What only serves the collector, fibers, compiled code may be missing; nothing else. */
Test(discover, what_is_needed)
{
	static const enum ruby_field not_needed[] = {
		RUBY_FIELD_ec_fiber_ptr,
		RUBY_FIELD_ec_stack_start,
		RUBY_FIELD_cf_jit_return,
		RUBY_FIELD_th_ractor,
		RUBY_FIELD_th_vm,
		RUBY_FIELD_th_thread_id,
		RUBY_FIELD_th_ready,
		RUBY_FIELD_th_running_time,
		RUBY_FIELD_vm_gvl_owner,
		RUBY_FIELD_vm_gvl_queue,
		RUBY_FIELD_vm_living_threads,
		RUBY_FIELD_vm_lock_owner,
		RUBY_FIELD_vm_objspace,
		RUBY_FIELD_ractor_running_ec,
		RUBY_FIELD_ractor_gvl_queue,
		RUBY_FIELD_ractor_gvl_owner,
		RUBY_FIELD_objspace_flags,
		RUBY_FIELD_objspace_count,
		RUBY_FIELD_fiber_ec,
		RUBY_FIELD_fiber_prev,
		RUBY_FIELD_builtin_attrs,
		RUBY_FIELD_jit_entry,
	};
	static const enum ruby_field ext[] = { RUBY_FIELD_class_path, RUBY_FIELD_class_permanent,
					       RUBY_FIELD_class_attached };

	for (unsigned int form = RUBY_CLASS_IV_TBL; form <= RUBY_CLASS_EXT; form++) {
		for (size_t i = 0; i < RUBY_FIELDS; i++) {
			struct ruby_findings found = all_say();
			struct ruby_vm vm = RUBY_VM_INIT;
			bool needed = !is_one_of(i, not_needed, ARRAY_SIZE(not_needed)) &&
				      (form == RUBY_CLASS_EXT || !is_one_of(i, ext, 3));
			struct err err = { 0 };
			char message[256];
			int r;

			found.layout[RUBY_FROM_TABLE].class_form = (uint16_t)form;
			*ruby_layout_at(&found.layout[RUBY_FROM_TABLE], i) = RUBY_UNKNOWN;
			snprintf(vm.binary.version, sizeof(vm.binary.version), "3.9.1");
			snprintf(message, sizeof(message),
				 "cannot find out the memory layout of Ruby 3.9.1: '%s' is unknown",
				 ruby_field_info[i].name);
			r = ruby_layout_merge(&vm, &found, 1u << RUBY_FROM_TABLE, &err);
			cr_expect_eq(r, needed ? -EPROTO : 0, "%s in form %u",
				     ruby_field_info[i].name, form);
			cr_expect_str_eq(err.msg, needed ? message : "");
		}
	}
}

Test(discover, nothing_is_known)
{
	struct ruby_findings found = none_says();
	struct ruby_vm vm = RUBY_VM_INIT;

	cr_expect_eq(ruby_layout_merge(&vm, &found, ALL, NULL), -EPROTO);
	found = all_say();
	cr_expect_eq(ruby_layout_merge(&vm, &found, 0, NULL), -EPROTO, "nobody is asked");
	for (size_t i = 0; i < RUBY_FIELDS; i++)
		cr_expect_eq(ruby_layout_get(&vm.layout, i), RUBY_UNKNOWN);
}

/* The table needs no process; variables that the file names need no search. */
Test(discover, from_the_table)
{
	static const struct {
		const char *version;
		bool known;
	} versions[] = { { "2.7.8", true }, { "4.1.0", true }, { "4.2.0", false }, { "", false } };

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct ruby_vm vm = RUBY_VM_INIT;
		struct ruby_findings found;
		struct ruby_layout want;

		strcpy(vm.binary.version, versions[i].version);
		vm.binary.symbol[RUBY_SYM_ruby_current_vm_ptr] = 0x1000;
		vm.binary.symbol[RUBY_SYM_ruby_global_symbols] = 0x2000;
		ruby_discover(&vm, 1u << RUBY_FROM_TABLE, 0, NULL, 0, &found);
		cr_expect_eq(found.known[RUBY_FROM_TABLE], versions[i].known, "\"%s\"",
			     versions[i].version);
		cr_expect(!found.known[RUBY_FROM_CODE] && !found.known[RUBY_FROM_DWARF] &&
			  !found.known[RUBY_FROM_SEARCH]);
		cr_expect_eq(found.current_vm, 0x1000);
		cr_expect_eq(found.symbols, 0x2000);
		if (versions[i].known) {
			ruby_layout_table(versions[i].version, &want);
			cr_expect_arr_eq(&found.layout[RUBY_FROM_TABLE], &want, sizeof(want));
		}
	}
}

/* ---- what contradicts ---- */

/* What a proof is to accept; it says how often it was asked. */
struct judge {
	enum ruby_field field;
	uint16_t right;
	unsigned int asked;
};

static int judge(struct ruby_vm *vm, void *arg, struct err *err)
{
	struct judge *j = arg;

	j->asked++;
	return ruby_layout_get(&vm->layout, j->field) == j->right
		       ? 0
		       : err_set(err, -EPROTO, ERR_TARGET, "wrong");
}

static const struct ruby_vm_check *find_check(const struct ruby_vm *vm, const char *name)
{
	for (size_t i = 0; i < vm->n_checks; i++)
		if (!strcmp(vm->checks[i].name, name))
			return &vm->checks[i];
	return NULL;
}

/* The table and the search know all, and agree. */
static struct ruby_findings two_agree(void)
{
	struct ruby_findings found = none_says();

	for (size_t i = 0; i < RUBY_FIELDS; i++)
		*ruby_layout_at(&found.layout[RUBY_FROM_TABLE], i) = (uint16_t)(8 * i + 8);
	found.layout[RUBY_FROM_SEARCH] = found.layout[RUBY_FROM_TABLE];
	return found;
}

Test(discover, who_agrees_has_nothing_to_say)
{
	struct ruby_findings found = two_agree();
	struct ruby_vm vm = RUBY_VM_INIT;
	struct judge j = { .field = RUBY_FIELD_local_iseq,
			   .right = found.layout[RUBY_FROM_TABLE].local_iseq };

	cr_assert_eq(ruby_layout_settle(&vm, &found, ALL, judge, &j, NULL), 0);
	cr_expect_eq(j.asked, 1);
	cr_expect_eq(vm.source[RUBY_FIELD_local_iseq], RUBY_FROM_TABLE);
	cr_expect_null(find_check(&vm, "sources"));
}

/* What was found in the process is tried first. */
Test(discover, search_contradicts_the_table)
{
	struct ruby_findings found = two_agree();
	struct ruby_vm vm = RUBY_VM_INIT;
	struct judge j = { .field = RUBY_FIELD_local_iseq, .right = 4000 };

	found.layout[RUBY_FROM_SEARCH].local_iseq = 4000;
	found.layout[RUBY_FROM_SEARCH].parent_iseq = 4008;
	cr_assert_eq(ruby_layout_settle(&vm, &found, ALL, judge, &j, NULL), 0);
	cr_expect_eq(j.asked, 1);
	cr_expect_eq(vm.layout.parent_iseq, 4008);
	cr_expect_eq(vm.source[RUBY_FIELD_local_iseq], RUBY_FROM_SEARCH);
	cr_expect_eq(vm.source[RUBY_FIELD_insns_body], RUBY_FROM_TABLE, "they agree");
	cr_assert_not_null(find_check(&vm, "sources"));
	cr_expect_str_eq(find_check(&vm, "sources")->detail,
			 "search contradicts table at iseq.parent_iseq and 1 more: what search "
			 "found was proven");
}

Test(discover, search_is_refuted)
{
	struct ruby_findings found = two_agree();
	struct ruby_vm vm = RUBY_VM_INIT;
	struct judge j = { .field = RUBY_FIELD_local_iseq, .right = 3000 };

	found.layout[RUBY_FROM_SEARCH].local_iseq = 4000;
	found.layout[RUBY_FROM_DWARF].local_iseq = 3000;
	cr_assert_eq(ruby_layout_settle(&vm, &found, ALL, judge, &j, NULL), 0);
	cr_expect_eq(j.asked, 2);
	cr_expect_eq(vm.source[RUBY_FIELD_local_iseq], RUBY_FROM_DWARF);
	cr_assert_not_null(find_check(&vm, "sources"));
	cr_expect_str_eq(
		find_check(&vm, "sources")->detail,
		"search contradicts dwarf at iseq.local_iseq: what search found was refuted");
}

/* The code is surer than both. */
Test(discover, code_is_not_disputed)
{
	struct ruby_findings found = two_agree();
	struct ruby_vm vm = RUBY_VM_INIT;
	struct judge j = { .field = RUBY_FIELD_th_ec, .right = 2000 };

	found.layout[RUBY_FROM_SEARCH].th_ec = 4000;
	found.layout[RUBY_FROM_CODE].th_ec = 2000;
	cr_assert_eq(ruby_layout_settle(&vm, &found, ALL, judge, &j, NULL), 0);
	cr_expect_eq(j.asked, 1);
	cr_expect_null(find_check(&vm, "sources"));
}

/* Who is wrong about a member is not believed about what nothing proves. */
Test(discover, what_is_seldom_proven)
{
	struct ruby_findings found = two_agree();
	struct ruby_vm vm = RUBY_VM_INIT;

	for (size_t i = 0; i < RUBY_FIELDS; i++)
		if (i != RUBY_FIELD_th_ec)
			*ruby_layout_at(&found.layout[RUBY_FROM_SEARCH], i) = RUBY_UNKNOWN;
	cr_assert_eq(ruby_layout_merge(&vm, &found, ALL, NULL), 0);
	cr_expect_eq(vm.layout.th_ready, found.layout[RUBY_FROM_TABLE].th_ready);
	found.layout[RUBY_FROM_CODE].objspace_count = 2000;
	cr_assert_eq(ruby_layout_merge(&vm, &found, ALL, NULL), 0);
	cr_expect_eq(vm.layout.th_ready, found.layout[RUBY_FROM_TABLE].th_ready,
		     "patch releases have moved what is of the collector");
	found.layout[RUBY_FROM_CODE].th_ec = 2000;
	cr_assert_eq(ruby_layout_merge(&vm, &found, ALL, NULL), 0);
	cr_expect_eq(vm.layout.th_ready, RUBY_UNKNOWN);
	cr_expect_eq(vm.layout.th_vm, found.layout[RUBY_FROM_TABLE].th_vm, "it is proven");
	cr_expect_eq(vm.layout.jit_entry, RUBY_UNKNOWN, "of another struct");
	cr_expect_eq(vm.layout.ractor_running_ec, RUBY_UNKNOWN);
	cr_expect_eq(vm.layout.vm_lock_owner, RUBY_UNKNOWN);
	found.layout[RUBY_FROM_SEARCH].ractor_running_ec =
		found.layout[RUBY_FROM_TABLE].ractor_running_ec;
	found.layout[RUBY_FROM_SEARCH].vm_lock_owner = found.layout[RUBY_FROM_TABLE].vm_lock_owner;
	found.layout[RUBY_FROM_CODE].th_ready = 2008;
	cr_assert_eq(ruby_layout_merge(&vm, &found, ALL, NULL), 0);
	cr_expect_eq(vm.layout.th_ready, 2008, "the code is not of another build");
	cr_expect_eq(vm.layout.ractor_running_ec, found.layout[RUBY_FROM_TABLE].ractor_running_ec);
	cr_expect_eq(vm.layout.vm_lock_owner, found.layout[RUBY_FROM_TABLE].vm_lock_owner);
}
