/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

const struct ruby_field_info ruby_field_info[RUBY_FIELDS] = {
#define X(member, name, type, path) { name, type, path },
	RUBY_LAYOUT_FIELDS(X)
#undef X
};

const char *ruby_source_name(enum ruby_source source)
{
	static const char *const names[RUBY_SOURCES] = {
		[RUBY_FROM_CODE] = "code",
		[RUBY_FROM_DWARF] = "dwarf",
		[RUBY_FROM_TABLE] = "table",
		[RUBY_FROM_SEARCH] = "search",
	};

	return names[source];
}

int ruby_sources_parse(const char *words, unsigned int *ret, struct err *err)
{
	unsigned int source, set = words ? 0 : (1u << RUBY_SOURCES) - 1;
	const char *word = words;
	size_t len;

	while (word) {
		len = strcspn(word, ",");
		for (source = 0; source < RUBY_SOURCES; source++)
			if (strlen(ruby_source_name(source)) == len &&
			    !strncmp(word, ruby_source_name(source), len))
				break;
		if (source == RUBY_SOURCES)
			return err_set(err, -EINVAL, ERR_USAGE,
				       "unknown source '%.*s' for --layout-from: there are code, "
				       "dwarf, table and search",
				       (int)len, word);
		set |= 1u << source;
		word = word[len] ? word + len + 1 : NULL;
	}
	*ret = set;
	return 0;
}

void ruby_layout_init(struct ruby_layout *l)
{
	memset(l, 0xff, sizeof(*l)); /* RUBY_UNKNOWN */
}

/* "3.1.2" as a number that compares: 0x030102. 0 if it is none. */
static uint32_t version_number(const char *version)
{
	unsigned int major, minor, teeny = 0;

	if (sscanf(version, "%3u.%3u.%3u", &major, &minor, &teeny) < 2 || major > 255 ||
	    minor > 255 || teeny > 255)
		return 0;
	return major << 16 | minor << 8 | teeny;
}

/* ---- the table ---- */

enum { V2_7, V3_0, V3_1, V3_2, V3_3, V3_4, V4_0, V4_1, MINORS };

static const struct {
	const char *name;
	uint32_t number;
} minors[MINORS] = {
	[V2_7] = { "2.7", 0x020700 }, [V3_0] = { "3.0", 0x030000 }, [V3_1] = { "3.1", 0x030100 },
	[V3_2] = { "3.2", 0x030200 }, [V3_3] = { "3.3", 0x030300 }, [V3_4] = { "3.4", 0x030400 },
	[V4_0] = { "4.0", 0x040000 }, [V4_1] = { "4.1", 0x040100 },
};

/* glibc's mutexes and jump buffers, which stand before some members, differ in size. */
#if defined(__aarch64__)
#define ARCH(x86, arm) (arm)
#else
#define ARCH(x86, arm) (x86)
#endif

#define F(member) RUBY_FIELD_##member

/*
 * From the debug information of the releases: the first of each minor, in release configuration.
 * clang-format would give each number a line.
 */
/* clang-format off */
static const uint16_t table[RUBY_FIELDS][MINORS] = {
	/*                         2.7  3.0  3.1  3.2  3.3  3.4  4.0  4.1 */
	[F(ec_fiber_ptr)]       = { 48,  48,  40,  40,  40,  40,  40,  40 },
	[F(ec_thread_ptr)]      = { 56,  56,  48,  48,  48,  48,  48,  48 },
	[F(ec_stack_start)]     = { 152, 152, 144, 152, 152, 144, 176, 176 },
	[F(cf_size)]            = { 56,  56,  64,  64,  56,  56,  56,  56 },
	[F(cf_jit_return)]      = { 0,   0,   56,  56,  48,  48,  48,  48 },
	[F(th_ractor)]          = { 0,   24,  24,  24,  24,  24,  24,  24 },
	[F(th_vm)]              = { 24,  32,  32,  32,  32,  32,  32,  32 },
	[F(th_ec)]              = { 32,  40,  40,  48,  48,  48,  48,  48 },
	[F(th_thread_id)]       = { 72,  0,   0,   0,   0,   0,   0,   0 },
	[F(th_ready)]           = { 88,  96,  104, 56,  72,  72,  72,  72 },
	[F(th_running_time)]    = { 84,  92,  96,  116, 244, 244, 252, 252 },
	[F(vm_gvl_owner)]       = { 8,   0,   0,   0,   0,   0,   0,   0 },
	[F(vm_gvl_queue)]       = { ARCH(56, 64), 0, 0, 0, 0, 0, 0, 0 },
	[F(vm_living_threads)]  = { ARCH(312, 328), 0, 0, 0, 0, 0, 0, 0 },
	[F(vm_lock_owner)]      = { 0, ARCH(88, 96), ARCH(88, 96), ARCH(88, 96), ARCH(88, 96),
				    ARCH(88, 96), ARCH(88, 96), ARCH(88, 96) },
	[F(vm_objspace)]        = { ARCH(1152, 1176), ARCH(1088, 1112), ARCH(1104, 1128),
				    ARCH(1128, 1152), ARCH(1304, 1328), ARCH(1296, 1320),
				    ARCH(1248, 1272), ARCH(1368, 1400) },
	[F(ractor_running_ec)]  = { 0, ARCH(520, 536), ARCH(520, 536), ARCH(520, 536),
				    ARCH(384, 400), ARCH(384, 400), ARCH(312, 328), ARCH(376, 392) },
	[F(ractor_gvl_queue)]   = { 0, ARCH(384, 400), ARCH(384, 400), ARCH(384, 400),
				    ARCH(344, 360), ARCH(344, 360), ARCH(272, 288), ARCH(336, 352) },
	[F(ractor_gvl_owner)]   = { 0, ARCH(336, 344), ARCH(336, 344), ARCH(336, 344),
				    ARCH(328, 344), ARCH(328, 344), ARCH(256, 272), ARCH(312, 328) },
	[F(objspace_flags)]     = { 16,  16,  16,  16,  16,  20,  28,  76 },
	[F(objspace_count)]     = { 424, 424, 440, 1280, 1392, 1008, 1048, 2168 },
	[F(fiber_ec)]           = { 80,  80,  80,  80,  80,  80,  80,  88 },
	/* Behind a jump buffer, the size of which each build chooses: no table can know it. */
	[F(fiber_prev)]         = { RUBY_UNKNOWN, RUBY_UNKNOWN, RUBY_UNKNOWN, RUBY_UNKNOWN,
				    RUBY_UNKNOWN, RUBY_UNKNOWN, RUBY_UNKNOWN, RUBY_UNKNOWN },
	[F(lineno_size)]        = { 8,   8,   8,   4,   4,   4,   4,   4 },
	[F(iseq_location)]      = { 64,  64,  64,  64,  64,  64,  64,  64 },
	[F(insns_body)]         = { 120, 120, 120, 112, 112, 112, 112, 112 },
	[F(insns_size)]         = { 136, 136, 136, 128, 128, 128, 128, 128 },
	[F(insns_index)]        = { 144, 144, 144, 136, 136, 136, 136, 136 },
	[F(insn_entry)]         = { 8,   8,   12,  12,  12,  12,  12,  12 },
	[F(parent_iseq)]        = { 168, 168, 168, 160, 160, 160, 168, 168 },
	[F(local_iseq)]         = { 176, 176, 176, 168, 168, 168, 176, 176 },
	[F(builtin_attrs)]      = { 0,   0,   0,   0,   260, 260, 268, 268 },
	[F(jit_entry)]          = { 256, 264, 280, 288, 288, 296, 304, 304 },
	[F(original_id)]        = { 32,  32,  32,  32,  32,  32,  32,  32 },
	[F(string_embed)]       = { 16,  16,  16,  24,  24,  24,  24,  24 },
	[F(class_form)]         = { RUBY_CLASS_IV_TBL, RUBY_CLASS_IV_TBL, RUBY_CLASS_IV_TBL,
				    RUBY_CLASS_IV_SLOTS, RUBY_CLASS_EXT, RUBY_CLASS_EXT,
				    RUBY_CLASS_EXT, RUBY_CLASS_EXT },
	[F(class_path)]         = { 0,   0,   0,   0,   152, 152, 152, 48 },
	[F(class_permanent)]    = { 0,   0,   0,   0,   149, 149, 149, 140 },
	[F(class_attached)]     = { 0,   0,   0,   0,   128, 128, 136, 128 },
	[F(singleton_bit)]      = { 12,  12,  12,  12,  12,  13,  13,  13 },
	[F(symbol_form)]        = { RUBY_SYMBOLS_ARRAY, RUBY_SYMBOLS_ARRAY, RUBY_SYMBOLS_ARRAY,
				    RUBY_SYMBOLS_ARRAY, RUBY_SYMBOLS_ARRAY, RUBY_SYMBOLS_ARRAY,
				    RUBY_SYMBOLS_ARRAY, RUBY_SYMBOLS_DATA },
};
/* clang-format on */

/* Members that moved between patch releases of a minor. */
static const struct {
	uint32_t since;
	enum ruby_field field;
	uint16_t value;
} patches[] = {
	{ 0x030105, F(vm_objspace), ARCH(1112, 1136) },
	{ 0x030203, F(vm_objspace), ARCH(1136, 1160) },
	{ 0x030204, F(vm_objspace), ARCH(1144, 1168) },
	{ 0x040006, F(vm_objspace), ARCH(1256, 1280) },
	{ 0x040006, F(ractor_running_ec), ARCH(320, 336) },
	{ 0x040006, F(ractor_gvl_queue), ARCH(280, 296) },
};

/* The column of @version, or MINORS. */
static size_t find_minor(uint32_t version)
{
	size_t minor;

	for (minor = 0; minor < MINORS; minor++)
		if (minors[minor].number >> 8 == version >> 8)
			break;
	return minor;
}

int ruby_layout_table(const char *version, struct ruby_layout *ret)
{
	uint32_t v = version_number(version);
	size_t i, minor = find_minor(v);

	if (minor == MINORS)
		return -ENOENT;
	for (i = 0; i < RUBY_FIELDS; i++)
		*ruby_layout_at(ret, i) = table[i][minor];
	for (i = 0; i < ARRAY_SIZE(patches); i++)
		if (patches[i].since >> 8 == v >> 8 && v >= patches[i].since)
			*ruby_layout_at(ret, patches[i].field) = patches[i].value;
	return 0;
}

const char *ruby_layout_row(const char *version)
{
	size_t minor = find_minor(version_number(version));

	return minor == MINORS ? NULL : minors[minor].name;
}

/*
 * The length of the digits and dots of "3.1.2" at the start of @s; 0 if there are no three numbers.
 */
static size_t three_numbers(const char *s)
{
	size_t len = 0, digits;
	int i;

	for (i = 0; i < 3; i++) {
		digits = strspn(s + len, "0123456789");
		if (!digits || digits > 3 || (i < 2 && s[len + digits] != '.'))
			return 0;
		len += digits + (i < 2);
	}
	return len;
}

bool ruby_version_valid(const char *version)
{
	size_t len = three_numbers(version);
	const char *suffix = version + len;

	return len && strlen(suffix) <= RUBY_VERSION_SUFFIX &&
	       !suffix[strspn(suffix, "abcdefghijklmnopqrstuvwxyz0123456789.-")];
}

bool ruby_version_supported(const char *version)
{
	return version_number(version) >= minors[0].number;
}

/* ---- behaviour ---- */

struct ruby_rules ruby_rules_for(const char *version)
{
	uint32_t v = version_number(version);

	return (struct ruby_rules) {
		.labels_from_parents = v >= 0x030400,
		.c_trace_is_cfunc = v >= 0x030400 && !(v >= 0x040000),
		.internal_is_cfunc = v >= 0x040000,
		.cfp_before_frame = !(v >= 0x030000),
		.caller_pc_late = (v >> 8) == 0x0301,
		.zjit_bare = (v >> 8) == 0x0400,
		.old_flags = v >= 0x030300 ? RUBY_FL_PROMOTED : RUBY_FL_PROMOTED_BOTH,
		.old_by_age = v >= 0x030300,
		.runs_early = v >= 0x030300,
		.gc_major_word = v >= 0x040100	 ? 0
				 : v >= 0x030000 ? 1
						 : 2,
		.mutex_form = v >= 0x040000   ? RUBY_MUTEX_SERIAL
			      : v >= 0x030000 ? RUBY_MUTEX_FIBER
					      : RUBY_MUTEX_THREAD,
		.hash_embeds = v >= 0x030300,
		.st_bound = v >= 0x040100 ? RUBY_ST_BOUND_4_1 : RUBY_ST_BOUND,
	};
}
