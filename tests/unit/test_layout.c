/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ruby/layout.h"
#include "ruby/method.h"

/* From the debug information of the releases; written down a second time, on purpose. */
static const struct {
	const char *version;
	uint16_t thread_ptr, th_ec, cf_size, insns_body, insns_size, insns_index, local;
	bool lineno_is_value, string_len_in_flags, labels_from_parents;
	enum ruby_class_form form;
	uint16_t path, permanent, attached;
	uint64_t singleton, qnil;
	uint32_t last_op_id;
} rows[] = {
	{ "3.1.2", 48, 40, 64, 120, 136, 144, 176, true, true, false, RUBY_CLASS_IV_TBL, 0, 0, 0,
	  0x1000, 8, 169 },
	{ "3.3.8", 48, 48, 56, 112, 128, 136, 168, false, false, false, RUBY_CLASS_EXT, 32 + 120,
	  32 + 117, 32 + 96, 0x1000, 4, 169 },
	{ "3.4.9", 48, 48, 56, 112, 128, 136, 168, false, false, true, RUBY_CLASS_EXT, 32 + 120,
	  32 + 117, 32 + 96, 0x2000, 4, 170 },
};

static void assert_sane_layout(const struct ruby_layout *l)
{
	cr_assert(l->walk.cf_size == 56 || l->walk.cf_size == 64, "%s", l->version);
	cr_assert(l->walk.ec_thread_ptr < 64 && l->walk.ec_thread_ptr % 8 == 0, "%s", l->version);
	cr_assert_eq(l->walk.th_ec % 8, 0, "%s", l->version);
	cr_assert_eq(l->walk.tls_model, RBPF_TLS_NONE, "%s: found per process", l->version);
	cr_assert(l->insn_entry == 8 || l->insn_entry == 12, "%s", l->version);
	cr_assert(l->qnil == 4 || l->qnil == 8, "%s", l->version);
	cr_assert_gt(l->local_iseq, l->insns_index, "%s", l->version);
	if (l->class_form == RUBY_CLASS_EXT) {
		const struct ruby_method_id *id = NULL;

		cr_assert_leq(l->class_path + 8u, sizeof(id->owner),
			      "%s: the name is beyond what is read of an owner", l->version);
		cr_assert_lt(l->class_permanent, l->class_path, "%s", l->version);
		cr_assert_lt(l->class_attached, l->class_path, "%s", l->version);
	}
}

Test(layout, rows)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ruby_layout *l = ruby_layout_find(rows[i].version);

		cr_assert_not_null(l, "%s", rows[i].version);
		assert_sane_layout(l);
		cr_expect_eq(strncmp(l->version, rows[i].version, 3), 0);
		cr_expect_eq(l->walk.ec_thread_ptr, rows[i].thread_ptr);
		cr_expect_eq(l->walk.th_ec, rows[i].th_ec);
		cr_expect_eq(l->walk.cf_size, rows[i].cf_size);
		cr_expect_eq(l->insns_body, rows[i].insns_body);
		cr_expect_eq(l->insns_size, rows[i].insns_size);
		cr_expect_eq(l->insns_index, rows[i].insns_index);
		cr_expect_eq(l->local_iseq, rows[i].local);
		cr_expect_eq(l->insn_entry, 12);
		cr_expect_eq(l->lineno_is_value, rows[i].lineno_is_value);
		cr_expect_eq(l->string_len_in_flags, rows[i].string_len_in_flags);
		cr_expect_eq(l->labels_from_parents, rows[i].labels_from_parents);
		cr_expect_eq(l->class_form, rows[i].form);
		cr_expect_eq(l->class_path, rows[i].path);
		cr_expect_eq(l->class_permanent, rows[i].permanent);
		cr_expect_eq(l->class_attached, rows[i].attached);
		cr_expect_eq(l->singleton_flag, rows[i].singleton);
		cr_expect_eq(l->qnil, rows[i].qnil);
		cr_expect_eq(l->last_op_id, rows[i].last_op_id);
	}
}

Test(layout, versions)
{
	static const char *const none[] = { "",	      "3",	"3.",	  "3.1",
					    "3.10.1", "3.30.0", "13.1.2", "x3.1.2",
					    "1.9.3",  "9.9.9",	" 3.1.2", "3,1.2" };

	cr_expect_eq(ruby_layout_find("3.1.0"), ruby_layout_find("3.1.7"));
	cr_expect_neq(ruby_layout_find("3.1.0"), ruby_layout_find("3.3.0"));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect_null(ruby_layout_find(none[i]), "\"%s\"", none[i]);
}

/* The list for messages names each version that has a row, and no other. */
Test(layout, list_of_versions)
{
	const char *list = ruby_layout_versions();

	for (unsigned int major = 1; major < 6; major++) {
		for (unsigned int minor = 0; minor < 12; minor++) {
			char name[16], full[24];
			const char *at;
			bool listed;

			snprintf(name, sizeof(name), "%u.%u", major, minor);
			snprintf(full, sizeof(full), "%s.5", name);
			at = strstr(list, name);
			listed = at && (!at[strlen(name)] || at[strlen(name)] == ',');
			cr_expect_eq(listed, ruby_layout_find(full) != NULL, "%s", name);
			if (ruby_layout_find(full))
				assert_sane_layout(ruby_layout_find(full));
		}
	}
}
