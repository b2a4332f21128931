/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/layout.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

static const struct ruby_layout layouts[] = {
	{
		.version = "3.1",
		.walk = { .ec_thread_ptr = 48, .th_ec = 40, .cf_size = 64 },
		.lineno_is_value = true,
		.insns_body = 120,
		.insns_size = 136,
		.insns_index = 144,
		.parent_iseq = 168,
		.local_iseq = 176,
		.insn_entry = 12,
		.string_len_in_flags = true,
		.class_form = RUBY_CLASS_IV_TBL,
		.singleton_flag = 1 << 12,
		.qnil = 8,
		.last_op_id = 169,
	},
	{
		.version = "3.3",
		.walk = { .ec_thread_ptr = 48, .th_ec = 48, .cf_size = 56 },
		.insns_body = 112,
		.insns_size = 128,
		.insns_index = 136,
		.parent_iseq = 160,
		.local_iseq = 168,
		.insn_entry = 12,
		.class_form = RUBY_CLASS_EXT,
		.class_path = 152,
		.class_permanent = 149,
		.class_attached = 128,
		.singleton_flag = 1 << 12,
		.qnil = 4,
		.last_op_id = 169,
	},
	{
		.version = "3.4",
		.walk = { .ec_thread_ptr = 48, .th_ec = 48, .cf_size = 56 },
		.insns_body = 112,
		.insns_size = 128,
		.insns_index = 136,
		.parent_iseq = 160,
		.local_iseq = 168,
		.builtin_attrs = 260,
		.insn_entry = 12,
		.labels_from_parents = true,
		.class_form = RUBY_CLASS_EXT,
		.class_path = 152,
		.class_permanent = 149,
		.class_attached = 128,
		.singleton_flag = 1 << 13,
		.qnil = 4,
		.last_op_id = 170,
	},
};

const struct ruby_layout *ruby_layout_find(const char *version)
{
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(layouts); i++) {
		len = strlen(layouts[i].version);
		if (!strncmp(version, layouts[i].version, len) && version[len] == '.')
			return &layouts[i];
	}
	return NULL;
}

const char *ruby_layout_versions(void)
{
	return "3.1, 3.3, 3.4";
}
