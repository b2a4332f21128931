/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "ruby/layout.h"
#include "ruby/method.h"

#if defined(__aarch64__)
#define A(x86, arm) (arm)
#else
#define A(x86, arm) (x86)
#endif

#define MINORS 8

static const char *const minors[MINORS] = {
	"2.7", "3.0", "3.1", "3.2", "3.3", "3.4", "4.0", "4.1"
};

/*
 * From the debug information of the releases, of each minor the first one; written down a second
 * time, on purpose.
 */
/* One member a line, one version a column: */
/* clang-format off */
#define U RUBY_UNKNOWN
#define ROW(member, ...) { RUBY_FIELD_##member, { __VA_ARGS__ } }
static const struct {
	enum ruby_field field;
	uint16_t value[MINORS];
} rows[] = {
	/*                      2.7  3.0  3.1  3.2  3.3  3.4  4.0  4.1 */
	ROW(ec_fiber_ptr,       48,  48,  40,  40,  40,  40,  40,  40),
	ROW(ec_thread_ptr,      56,  56,  48,  48,  48,  48,  48,  48),
	ROW(ec_stack_start,     152, 152, 144, 152, 152, 144, 176, 176),
	ROW(cf_size,            56,  56,  64,  64,  56,  56,  56,  56),
	ROW(cf_jit_return,      0,   0,   56,  56,  48,  48,  48,  48),
	ROW(th_ractor,          0,   24,  24,  24,  24,  24,  24,  24),
	ROW(th_vm,              24,  32,  32,  32,  32,  32,  32,  32),
	ROW(th_ec,              32,  40,  40,  48,  48,  48,  48,  48),
	/* 3.0 and 3.1 have it, too, but no thread is found by it. */
	ROW(th_thread_id,       72,  0,   0,   0,   0,   0,   0,   0),
	ROW(th_ready,           88,  96,  104, 56,  72,  72,  72,  72),
	ROW(th_running_time,    84,  92,  96,  116, 244, 244, 252, 252),
	ROW(vm_gvl_owner,       8,   0,   0,   0,   0,   0,   0,   0),
	ROW(vm_gvl_queue,       A(56, 64), 0, 0, 0, 0, 0, 0, 0),
	ROW(vm_living_threads,  A(312, 328), 0, 0, 0, 0, 0, 0, 0),
	ROW(vm_lock_owner,      0, A(88, 96), A(88, 96), A(88, 96), A(88, 96), A(88, 96), A(88, 96),
	                        A(88, 96)),
	ROW(vm_objspace,        A(1152, 1176), A(1088, 1112), A(1104, 1128), A(1128, 1152),
	                        A(1304, 1328), A(1296, 1320), A(1248, 1272), A(1368, 1400)),
	ROW(ractor_running_ec,  0, A(520, 536), A(520, 536), A(520, 536), A(384, 400), A(384, 400),
	                        A(312, 328), A(376, 392)),
	ROW(ractor_gvl_queue,   0, A(384, 400), A(384, 400), A(384, 400), A(344, 360), A(344, 360),
	                        A(272, 288), A(336, 352)),
	ROW(ractor_gvl_owner,   0, A(336, 344), A(336, 344), A(336, 344), A(328, 344), A(328, 344),
	                        A(256, 272), A(312, 328)),
	ROW(objspace_flags,     16,  16,  16,  16,  16,  20,  28,  76),
	ROW(objspace_count,     424, 424, 440, 1280, 1392, 1008, 1048, 2168),
	ROW(fiber_ec,           80,  80,  80,  80,  80,  80,  80,  88),
	/* Stands behind a jump buffer, the size of which each build chooses. */
	ROW(fiber_prev,         U,   U,   U,   U,   U,   U,   U,   U),
	ROW(lineno_size,        8,   8,   8,   4,   4,   4,   4,   4),
	ROW(iseq_location,      64,  64,  64,  64,  64,  64,  64,  64),
	ROW(insns_body,         120, 120, 120, 112, 112, 112, 112, 112),
	ROW(insns_size,         136, 136, 136, 128, 128, 128, 128, 128),
	ROW(insns_index,        144, 144, 144, 136, 136, 136, 136, 136),
	ROW(insn_entry,         8,   8,   12,  12,  12,  12,  12,  12),
	ROW(parent_iseq,        168, 168, 168, 160, 160, 160, 168, 168),
	ROW(local_iseq,         176, 176, 176, 168, 168, 168, 176, 176),
	ROW(builtin_attrs,      0,   0,   0,   0,   260, 260, 268, 268),
	ROW(jit_entry,          256, 264, 280, 288, 288, 296, 304, 304),
	ROW(original_id,        32,  32,  32,  32,  32,  32,  32,  32),
	ROW(string_embed,       16,  16,  16,  24,  24,  24,  24,  24),
	ROW(class_form,         1,   1,   1,   2,   3,   3,   3,   3),
	/* sizeof(struct RClass) and the offset in rb_classext_t */
	ROW(class_path,         0,   0,   0,   0,   32 + 120, 32 + 120, 24 + 128, 24 + 24),
	ROW(class_permanent,    0,   0,   0,   0,   32 + 117, 32 + 117, 24 + 125, 24 + 116),
	ROW(class_attached,     0,   0,   0,   0,   32 + 96,  32 + 96,  24 + 112, 24 + 104),
	ROW(singleton_bit,      12,  12,  12,  12,  12,  13,  13,  13),
	ROW(symbol_form,        1,   1,   1,   1,   1,   1,   1,   2),
};
#undef ROW
#undef U
/* clang-format on */

/* Where a later release of a minor differs from the first one. */
static const struct {
	const char *version;
	enum ruby_field field;
	uint16_t value;
} patches[] = {
	{ "3.1.4", RUBY_FIELD_vm_objspace, A(1104, 1128) },
	{ "3.1.5", RUBY_FIELD_vm_objspace, A(1112, 1136) },
	{ "3.1.7", RUBY_FIELD_vm_objspace, A(1112, 1136) },
	{ "3.2.2", RUBY_FIELD_vm_objspace, A(1128, 1152) },
	{ "3.2.3", RUBY_FIELD_vm_objspace, A(1136, 1160) },
	{ "3.2.4", RUBY_FIELD_vm_objspace, A(1144, 1168) },
	{ "3.2.11", RUBY_FIELD_vm_objspace, A(1144, 1168) },
	{ "4.0.5", RUBY_FIELD_vm_objspace, A(1248, 1272) },
	{ "4.0.6", RUBY_FIELD_vm_objspace, A(1256, 1280) },
	{ "4.0.5", RUBY_FIELD_ractor_running_ec, A(312, 328) },
	{ "4.0.6", RUBY_FIELD_ractor_running_ec, A(320, 336) },
	{ "4.0.12", RUBY_FIELD_ractor_running_ec, A(320, 336) },
	{ "4.0.5", RUBY_FIELD_ractor_gvl_queue, A(272, 288) },
	{ "4.0.6", RUBY_FIELD_ractor_gvl_queue, A(280, 296) },
};

static struct ruby_layout must_find(const char *version)
{
	struct ruby_layout l;

	ruby_layout_init(&l);
	cr_assert_eq(ruby_layout_table(version, &l), 0, "%s", version);
	for (size_t i = 0; i < RUBY_FIELDS; i++)
		cr_assert_eq(ruby_layout_get(&l, i) == RUBY_UNKNOWN, i == RUBY_FIELD_fiber_prev,
			     "%s: %s", version, ruby_field_info[i].name);
	return l;
}

static void assert_sane_layout(const struct ruby_layout *l, const char *version)
{
	const struct ruby_method_id *id = NULL;

	cr_assert(l->cf_size == 56 || l->cf_size == 64, "%s", version);
	cr_assert(!l->cf_jit_return || l->cf_jit_return == l->cf_size - 8, "%s", version);
	cr_assert(l->ec_thread_ptr < 64 && l->ec_thread_ptr == l->ec_fiber_ptr + 8, "%s", version);
	cr_assert_lt(l->ec_stack_start + 24, 256, "%s: read with the EC", version);
	cr_assert_eq(l->th_ec % 8, 0, "%s", version);
	cr_assert(l->insn_entry == 8 || l->insn_entry == 12, "%s", version);
	cr_assert_gt(l->local_iseq, l->parent_iseq, "%s", version);
	cr_assert_eq(!l->th_ractor, l->vm_gvl_owner != 0, "%s: the lock is the VM's or a ractor's",
		     version);
	if (l->class_form == RUBY_CLASS_EXT) {
		cr_assert_leq(l->class_path + 8u, sizeof(id->owner),
			      "%s: the name is beyond what is read of an owner", version);
		cr_assert_leq(l->class_attached + 8u, sizeof(id->owner), "%s", version);
	}
}

Test(layout, rows)
{
	char version[16];

	cr_assert_eq(sizeof(rows) / sizeof(rows[0]), RUBY_FIELDS, "each fact has a row");
	for (size_t v = 0; v < MINORS; v++) {
		struct ruby_layout l;

		snprintf(version, sizeof(version), "%s.0", minors[v]);
		l = must_find(version);
		assert_sane_layout(&l, version);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			cr_assert_eq(rows[i].field, i, "rows are in order");
			cr_expect_eq(ruby_layout_get(&l, i), rows[i].value[v],
				     "%s: %s is %u, not %u", version, ruby_field_info[i].name,
				     ruby_layout_get(&l, i), rows[i].value[v]);
		}
	}
}

Test(layout, patch_releases)
{
	for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
		struct ruby_layout l = must_find(patches[i].version);

		cr_expect_eq(ruby_layout_get(&l, patches[i].field), patches[i].value,
			     "%s: %s is %u, not %u", patches[i].version,
			     ruby_field_info[patches[i].field].name,
			     ruby_layout_get(&l, patches[i].field), patches[i].value);
	}
}

static bool has_moved(const char *version, enum ruby_field field)
{
	for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++)
		if (patches[i].field == field && !strncmp(patches[i].version, version, 4))
			return true;
	return false;
}

/* All that did not move is what it was in the first release, in each later one as well. */
Test(layout, other_releases)
{
	char version[16];

	for (size_t v = 0; v < MINORS; v++) {
		struct ruby_layout first, l;

		snprintf(version, sizeof(version), "%s.0", minors[v]);
		first = must_find(version);
		for (unsigned int teeny = 1; teeny < 20; teeny++) {
			snprintf(version, sizeof(version), "%s.%u", minors[v], teeny);
			l = must_find(version);
			for (size_t i = 0; i < RUBY_FIELDS; i++)
				if (!has_moved(version, i))
					cr_expect_eq(ruby_layout_get(&l, i),
						     ruby_layout_get(&first, i), "%s: %s", version,
						     ruby_field_info[i].name);
		}
	}
}

Test(layout, versions)
{
	static const struct {
		const char *version;
		bool supported;
		const char *row;
	} versions[] = {
		{ "2.7.0", true, "2.7" },
		{ "2.7.8", true, "2.7" },
		{ "3.3.8", true, "3.3" },
		{ "3.2.11", true, "3.2" },
		{ "4.0.6", true, "4.0" },
		{ "4.1.0", true, "4.1" },
		{ "4.1.0dev", true, "4.1" }, /* not what ruby_version says, but its beginning */
		/* not released yet: found by other means */
		{ "4.2.0", true, NULL },
		{ "5.0.0", true, NULL },
		{ "10.0.1", true, NULL },
		{ "3.10.1", true, NULL },
		{ "3.30.0", true, NULL },
		{ "13.1.2", true, NULL },
		/* too old */
		{ "2.6.10", false, NULL },
		{ "2.0.0", false, NULL },
		{ "1.9.3", false, NULL },
		{ "0.95", false, NULL },
		{ "0.0.0", false, NULL },
		/* none */
		{ "", false, NULL },
		{ "3", false, NULL },
		{ "3.", false, NULL },
		{ "x3.1.2", false, NULL },
		{ "3,1.2", false, NULL },
		{ ".3.1", false, NULL },
		{ "-3.1.2", false, NULL },
		{ "3.-1.2", false, NULL },
		{ "256.1.2", false, NULL },
		{ "4.256.0", false, NULL },
		{ "4294967299.1.2", false, NULL },
		{ "\xff\xfe\x01", false, NULL },
	};

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const char *version = versions[i].version, *row = ruby_layout_row(version);
		struct ruby_layout l;
		int r;

		ruby_layout_init(&l);
		r = ruby_layout_table(version, &l);
		cr_expect_eq(ruby_version_supported(version), versions[i].supported, "\"%s\"",
			     version);
		cr_expect_eq(r, versions[i].row ? 0 : -ENOENT, "\"%s\": %d", version, r);
		cr_expect(row && versions[i].row ? !strcmp(row, versions[i].row)
						 : !row && !versions[i].row,
			  "\"%s\" is of \"%s\"", version, row ? row : "none");
		if (r)
			cr_expect_eq(l.cf_size, RUBY_UNKNOWN, "untouched");
	}
}

Test(layout, only_a_version_is_taken_for_one)
{
	static const char *const valid[] = {
		"2.7.8",     "3.1.2",	      "3.10.12",    "10.0.0",
		"3.5.0-dev", "4.0.0preview1", "3.2.0.rc-1", "3.1.2-123456789abcdef",
	};
	static const char *const invalid[] = {
		"",
		"3",
		"3.1",
		"3.1.",
		"3..1",
		".3.1.2",
		" 3.1.2",
		"-3.1.2",
		"3.1.2 ",
		"3.1.2\n",
		"3.1.2\x1b[31m",
		"3.1.2\xc2\x9b",
		"3.1.2\xe2\x80\xae",
		"3.1.2DEV",
		"1234.1.2",
		"3.1.2abcdefghijklmnopq",
		"\xff.1.2",
	};

	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		cr_expect(ruby_version_valid(valid[i]), "%s", valid[i]);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		cr_expect_not(ruby_version_valid(invalid[i]), "%zu", i);
}

/*
 * What separates the versions is what their sources say; a Ruby of the future is like the newest.
 */
Test(layout, rules)
{
	static const struct {
		const char *version;
		struct ruby_rules rules;
	} cases[] = {
		{ "2.7.8",
		  { .cfp_before_frame = true,
		    .old_flags = 0x60,
		    .gc_major_word = 2,
		    .mutex_form = RUBY_MUTEX_THREAD } },
		{ "3.0.0",
		  { .old_flags = 0x60, .gc_major_word = 1, .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.1.2",
		  { .old_flags = 0x60,
		    .gc_major_word = 1,
		    .caller_pc_late = true,
		    .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.2.11",
		  { .old_flags = 0x60, .gc_major_word = 1, .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.3.0",
		  { .old_flags = 0x20,
		    .gc_major_word = 1,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.3.11",
		  { .old_flags = 0x20,
		    .gc_major_word = 1,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.4.0",
		  { .labels_from_parents = true,
		    .c_trace_is_cfunc = true,
		    .old_flags = 0x20,
		    .gc_major_word = 1,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_FIBER } },
		{ "3.4.9",
		  { .labels_from_parents = true,
		    .c_trace_is_cfunc = true,
		    .old_flags = 0x20,
		    .gc_major_word = 1,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_FIBER } },
		{ "4.0.0",
		  { .labels_from_parents = true,
		    .internal_is_cfunc = true,
		    .zjit_bare = true,
		    .old_flags = 0x20,
		    .gc_major_word = 1,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_SERIAL } },
		{ "4.1.0",
		  { .labels_from_parents = true,
		    .internal_is_cfunc = true,
		    .old_flags = 0x20,
		    .gc_major_word = 0,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_SERIAL } },
		{ "10.0.1",
		  { .labels_from_parents = true,
		    .internal_is_cfunc = true,
		    .old_flags = 0x20,
		    .gc_major_word = 0,
		    .old_by_age = true,
		    .runs_early = true,
		    .mutex_form = RUBY_MUTEX_SERIAL } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ruby_rules *want = &cases[i].rules;
		struct ruby_rules got = ruby_rules_for(cases[i].version);

		cr_expect_eq(got.labels_from_parents, want->labels_from_parents, "%s",
			     cases[i].version);
		cr_expect_eq(got.c_trace_is_cfunc, want->c_trace_is_cfunc, "%s", cases[i].version);
		cr_expect_eq(got.internal_is_cfunc, want->internal_is_cfunc, "%s",
			     cases[i].version);
		cr_expect_eq(got.caller_pc_late, want->caller_pc_late, "%s", cases[i].version);
		cr_expect_eq(got.cfp_before_frame, want->cfp_before_frame, "%s", cases[i].version);
		cr_expect_eq(got.zjit_bare, want->zjit_bare, "%s", cases[i].version);
		cr_expect_eq(got.old_flags, want->old_flags, "%s", cases[i].version);
		cr_expect_eq(got.old_by_age, want->old_by_age, "%s", cases[i].version);
		cr_expect_eq(got.gc_major_word, want->gc_major_word, "%s", cases[i].version);
		cr_expect_eq(got.mutex_form, want->mutex_form, "%s", cases[i].version);
	}
}

/* ---- sources ---- */

Test(layout, names_of_sources)
{
	static const char *const names[RUBY_SOURCES] = { "code", "dwarf", "table", "search" };
	unsigned int set;

	for (unsigned int i = 0; i < RUBY_SOURCES; i++) {
		cr_expect_str_eq(ruby_source_name(i), names[i]);
		cr_assert_eq(ruby_sources_parse(names[i], &set, NULL), 0, "%s", names[i]);
		cr_expect_eq(set, 1u << i, "%s", names[i]);
	}
	cr_assert_eq(ruby_sources_parse(NULL, &set, NULL), 0);
	cr_expect_eq(set, (1u << RUBY_SOURCES) - 1, "all of them");
	cr_assert_eq(ruby_sources_parse("search,code", &set, NULL), 0);
	cr_expect_eq(set, 1u << RUBY_FROM_CODE | 1u << RUBY_FROM_SEARCH, "in any order");
	cr_assert_eq(ruby_sources_parse("table,table", &set, NULL), 0);
	cr_expect_eq(set, 1u << RUBY_FROM_TABLE, "twice is once");
}

static void expect_no_sources(const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err err = { 0 };
		unsigned int set = 77;

		cr_expect_eq(ruby_sources_parse(words[i], &set, &err), -EINVAL, "\"%s\"", words[i]);
		cr_expect_eq(set, 77, "\"%s\": untouched", words[i]);
		cr_expect_eq(err.kind, ERR_USAGE, "\"%s\"", words[i]);
	}
}

Test(layout, sources_that_are_none)
{
	static const char *const none[] = { "x",     "Code",	    " code",
					    "code ", ",code",	    "code,,table",
					    "codes", "code;table",  "code,x",
					    ",",     "code\ntable", "table,search,dwarf,coda",
					    "cod" };

	expect_no_sources(none, sizeof(none) / sizeof(none[0]));
}

Test(layout, sources_that_are_empty)
{
	static const char *const none[] = { "", "code," };

	expect_no_sources(none, sizeof(none) / sizeof(none[0]));
}

/* Debug information is asked for each member but those that it does not tell as such. */
Test(layout, members)
{
	for (size_t i = 0; i < RUBY_FIELDS; i++) {
		const struct ruby_field_info *f = &ruby_field_info[i];

		cr_expect(f->name && *f->name, "member %zu", i);
		cr_expect(f->type && *f->type, "%s", f->name);
		cr_expect(strcmp(f->type, "*") || !f->member, "%s", f->name);
		for (size_t k = 0; k < i; k++)
			cr_expect_str_neq(f->name, ruby_field_info[k].name);
	}
}
