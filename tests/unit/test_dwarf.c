/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "elf/dwarf.h"
#include "support/elf_builder.h"
#include "support/little_endian.h"

/* ---- this very program's debug information ---- */

struct dwarf_test_inner {
	char pad[3];
	const volatile uint32_t number;
};

typedef struct dwarf_test_inner dwarf_test_alias;
typedef const dwarf_test_alias dwarf_test_alias_of_alias;

enum dwarf_test_enum {
	DWARF_TEST_ZERO,
	DWARF_TEST_BIG = 0x12345678,
};

struct dwarf_test_outer {
	struct dwarf_test_outer *next;
	struct {
		uint8_t before;
		dwarf_test_alias_of_alias inner;
	} named;
	union {
		struct {
			uint64_t first;
			uint64_t seen_through;
		};
		char bytes[40];
	};
	union {
		uint16_t small;
		uint64_t large;
	} either;
	uint8_t byte;
	unsigned int bit0 : 1;
	unsigned int bit1 : 1;
	unsigned int bits : 5;
	struct {
		uint32_t flag : 1;
		uint32_t rest : 31;
	} flags;
	enum dwarf_test_enum kind;
};

typedef struct dwarf_test_outer dwarf_test_outer_t;

/* A type is in the debug information when something is of it. */
dwarf_test_outer_t dwarf_test_object;

#define OUTER "dwarf_test_outer"

static void read_own(struct dwarf_fact *facts, size_t n)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), r;

	cr_assert_geq(fd, 0);
	r = dwarf_facts_read(fd, -1, facts, n);
	close(fd);
	if (r == -ENOENT)
		cr_skip_test("the tests are built without -g");
	cr_assert_eq(r, 0);
}

static void expect_found(const struct dwarf_fact *fact, uint64_t value, uint64_t size)
{
	const char *member = fact->member ? fact->member : "(size)";

	cr_expect_eq(fact->answer, DWARF_FOUND, "%s.%s", fact->type, member);
	cr_expect_eq(fact->value, value, "%s.%s is %zu, not %zu", fact->type, member,
		     (size_t)fact->value, (size_t)value);
	cr_expect_eq(fact->size, size, "%s.%s has %zu bytes, not %zu", fact->type, member,
		     (size_t)fact->size, (size_t)size);
}

Test(dwarf, own_members)
{
	static const struct {
		const char *member;
		size_t offset, size;
	} cases[] = {
#define CASE(m) { #m, offsetof(struct dwarf_test_outer, m), sizeof(dwarf_test_object.m) }
		CASE(next),
		CASE(named),
		CASE(named.before),
		CASE(named.inner),
		CASE(named.inner.number),
		CASE(seen_through),
		CASE(either),
		CASE(either.large),
		CASE(byte),
		CASE(flags),
		CASE(kind),
#undef CASE
		{ "nothing|either.small", offsetof(struct dwarf_test_outer, either), 2 },
		{ "byte|next", offsetof(struct dwarf_test_outer, byte), 1 },
		{ "named.none|none.number|named.inner.number|byte",
		  offsetof(struct dwarf_test_outer, named.inner.number), 4 },
	};
	struct dwarf_fact facts[ARRAY_SIZE(cases)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		facts[i] = (struct dwarf_fact) { .type = OUTER, .member = cases[i].member };
	read_own(facts, ARRAY_SIZE(facts));
	for (i = 0; i < ARRAY_SIZE(facts); i++) {
		expect_found(&facts[i], cases[i].offset, cases[i].size);
		cr_expect_eq(facts[i].bit, 0, "%s", cases[i].member);
	}
}

Test(dwarf, own_types)
{
	struct dwarf_fact facts[] = {
		{ .type = OUTER },
		{ .type = "dwarf_test_inner" },
		{ .type = "dwarf_test_outer_t" },
		{ .type = "dwarf_test_alias_of_alias", .member = "number" },
		{ .type = "dwarf_test_enum", .member = "DWARF_TEST_BIG" },
		{ .type = "dwarf_test_enum", .member = "DWARF_TEST_ZERO" },
	};

	read_own(facts, ARRAY_SIZE(facts));
	expect_found(&facts[0], sizeof(struct dwarf_test_outer), 0);
	expect_found(&facts[1], sizeof(struct dwarf_test_inner), 0);
	expect_found(&facts[2], sizeof(struct dwarf_test_outer), 0);
	expect_found(&facts[3], offsetof(struct dwarf_test_inner, number), 4);
	expect_found(&facts[4], DWARF_TEST_BIG, 0);
	expect_found(&facts[5], DWARF_TEST_ZERO, 0);
}

Test(dwarf, own_bitfields)
{
	struct dwarf_fact facts[] = {
		{ .type = OUTER, .member = "bit0" },
		{ .type = OUTER, .member = "bit1" },
		{ .type = OUTER, .member = "bits" },
		{ .type = OUTER, .member = "flags.flag" },
		{ .type = OUTER, .member = "flags.rest" },
	};
	size_t unit = offsetof(struct dwarf_test_outer, byte) + 1, i;

	read_own(facts, ARRAY_SIZE(facts));
	for (i = 0; i < 3; i++)
		expect_found(&facts[i], unit, 4);
	cr_expect_eq(facts[0].bit, 0);
	cr_expect_eq(facts[1].bit, 1);
	cr_expect_eq(facts[2].bit, 2);
	for (i = 3; i < 5; i++)
		expect_found(&facts[i], offsetof(struct dwarf_test_outer, flags), 4);
	cr_expect_eq(facts[3].bit, 0);
	cr_expect_eq(facts[4].bit, 1);
}

Test(dwarf, what_is_not_there)
{
	struct dwarf_fact facts[] = {
		{ .type = OUTER, .member = "none" },
		{ .type = OUTER, .member = "" },
		{ .type = OUTER, .member = "nex" },
		{ .type = OUTER, .member = "next." },
		{ .type = OUTER, .member = "next.next" }, /* behind a pointer */
		{ .type = OUTER, .member = "named.inner.number.more" },
		{ .type = OUTER, .member = "none|named.none|" },
		{ .type = "dwarf_test_enum", .member = "DWARF_TEST" },
		/* No complete type of that name: */
		{ .type = "dwarf_test_none", .member = "next" },
		{ .type = "dwarf_test_none" },
		{ .type = "*" },
	};
	size_t i;

	read_own(facts, ARRAY_SIZE(facts));
	for (i = 0; i < ARRAY_SIZE(facts); i++) {
		cr_expect_eq(facts[i].answer, i < 8 ? DWARF_NO_MEMBER : DWARF_NO_TYPE, "%zu", i);
		cr_expect_eq(facts[i].value, 0, "%zu", i);
	}
}

/* ---- debug information made by hand ---- */

enum abbrev {
	UNIT = 1,
	PARTIAL_UNIT,
	STRUCT,
	UNNAMED_STRUCT,
	DECLARED_STRUCT,
	MEMBER,
	UNNAMED_MEMBER,
	BLOCK_MEMBER,
	OLD_BITFIELD,
	TYPEDEF,
	BASE,
};

/* clang-format off */
static const uint8_t abbrevs[] = {
#define ATTR(name, form) DW_AT_##name, DW_FORM_##form
#define END		 0, 0
	UNIT, DW_TAG_compile_unit, 1, ATTR(language, data1), END,
	PARTIAL_UNIT, DW_TAG_partial_unit, 1, END,
	STRUCT, DW_TAG_structure_type, 1, ATTR(name, string), ATTR(byte_size, udata), END,
	UNNAMED_STRUCT, DW_TAG_structure_type, 1, ATTR(byte_size, udata), END,
	DECLARED_STRUCT, DW_TAG_structure_type, 0, ATTR(name, string),
	ATTR(declaration, flag_present), END,
	MEMBER, DW_TAG_member, 0, ATTR(name, string), ATTR(type, ref4),
	ATTR(data_member_location, udata), END,
	UNNAMED_MEMBER, DW_TAG_member, 0, ATTR(type, ref4), ATTR(data_member_location, udata), END,
	BLOCK_MEMBER, DW_TAG_member, 0, ATTR(name, string), ATTR(type, ref4),
	ATTR(data_member_location, block1), END,
	OLD_BITFIELD, DW_TAG_member, 0, ATTR(name, string), ATTR(type, ref4),
	ATTR(data_member_location, udata), ATTR(byte_size, udata), ATTR(bit_size, udata),
	ATTR(bit_offset, udata), END,
	TYPEDEF, DW_TAG_typedef, 0, ATTR(name, string), ATTR(type, ref4), END,
	BASE, DW_TAG_base_type, 0, ATTR(byte_size, udata), END,
	0,
#undef ATTR
#undef END
};
/* clang-format on */

struct info {
	struct buf bytes;
	size_t unit; /* where the current one starts */
};

/* A unit of DWARF 4; of no language if 0. */
static void unit_begin(struct info *in, uint8_t language)
{
	in->unit = in->bytes.len;
	buf_add_le32(&in->bytes, 0); /* length, later */
	buf_add_le16(&in->bytes, 4);
	buf_add_le32(&in->bytes, 0); /* abbreviations */
	buf_addch(&in->bytes, 8);    /* bytes of an address */
	buf_addch(&in->bytes, language ? UNIT : PARTIAL_UNIT);
	if (language)
		buf_addch(&in->bytes, (char)language);
}

static void end_children(struct info *in)
{
	buf_addch(&in->bytes, 0);
}

static void unit_end(struct info *in)
{
	uint32_t length;

	end_children(in);
	length = (uint32_t)(in->bytes.len - in->unit - 4);
	memcpy(in->bytes.data + in->unit, &length, 4);
}

/* Returns its reference. */
static uint32_t die(struct info *in, enum abbrev abbrev, const char *name)
{
	uint32_t ref = (uint32_t)(in->bytes.len - in->unit);

	buf_addch(&in->bytes, (char)abbrev);
	if (name)
		buf_add(&in->bytes, name, strlen(name) + 1);
	return ref;
}

static uint32_t struct_begin(struct info *in, const char *name, uint64_t size)
{
	uint32_t ref = die(in, name ? STRUCT : UNNAMED_STRUCT, name);

	buf_add_varint(&in->bytes, size);
	return ref;
}

static void member(struct info *in, const char *name, uint32_t type, uint64_t offset)
{
	die(in, name ? MEMBER : UNNAMED_MEMBER, name);
	buf_add_le32(&in->bytes, type);
	buf_add_varint(&in->bytes, offset);
}

static uint32_t type_alias(struct info *in, const char *name, uint32_t type)
{
	uint32_t ref = die(in, TYPEDEF, name);

	buf_add_le32(&in->bytes, type);
	return ref;
}

static uint32_t base(struct info *in, uint64_t size)
{
	uint32_t ref = die(in, BASE, NULL);

	buf_add_varint(&in->bytes, size);
	return ref;
}

static void elf_of_info(const struct info *in, struct elf_builder *b)
{
	elf_builder_init(b);
	elf_builder_section(b, ".debug_info", SHT_PROGBITS, 0, in->bytes.data, in->bytes.len);
	elf_builder_section(b, ".debug_abbrev", SHT_PROGBITS, 0, abbrevs, sizeof(abbrevs));
	elf_builder_finish(b);
}

static int fd_of_info(const struct info *in)
{
	struct elf_builder b;
	int fd;

	elf_of_info(in, &b);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	elf_builder_deinit(&b);
	return fd;
}

/* Read the facts from @in, which is released. */
static int read_info(struct info *in, struct dwarf_fact *facts, size_t n)
{
	int fd = fd_of_info(in), r;

	r = dwarf_facts_read(fd, -1, facts, n);
	close(fd);
	buf_deinit(&in->bytes);
	return r;
}

/* A unit with struct NAME { int x at OFFSET }. */
static void add_simple(struct info *in, uint8_t language, const char *name, uint64_t offset)
{
	uint32_t type;

	unit_begin(in, language);
	type = base(in, 4);
	struct_begin(in, name, offset + 4);
	member(in, "x", type, offset);
	end_children(in);
	unit_end(in);
}

Test(dwarf, units)
{
	struct dwarf_fact facts[] = {
		{ .type = "c", .member = "x" },	    { .type = "c17", .member = "x" },
		{ .type = "rust", .member = "x" },  { .type = "shared", .member = "x" },
		{ .type = "twice", .member = "x" },
	};
	struct info in = { 0 };

	add_simple(&in, DW_LANG_Rust, "rust", 8);
	add_simple(&in, DW_LANG_C99, "c", 16);
	add_simple(&in, 0x2c, "c17", 24);
	add_simple(&in, 0, "shared", 32);
	add_simple(&in, DW_LANG_Rust, "twice", 40);
	add_simple(&in, DW_LANG_C11, "twice", 48);
	add_simple(&in, DW_LANG_C11, "twice", 56);
	cr_expect_eq(read_info(&in, facts, ARRAY_SIZE(facts)), 0);
	expect_found(&facts[0], 16, 4);
	expect_found(&facts[1], 24, 4);
	cr_expect_eq(facts[2].answer, DWARF_NO_TYPE);
	expect_found(&facts[3], 32, 4);
	expect_found(&facts[4], 48, 4);
}

Test(dwarf, declarations_are_no_types)
{
	struct dwarf_fact facts[] = { { .type = "later", .member = "x" },
				      { .type = "later_t", .member = "x" },
				      { .type = "never", .member = "x" },
				      { .type = "never" } };
	struct info in = { 0 };

	unit_begin(&in, DW_LANG_C11);
	type_alias(&in, "later_t", die(&in, DECLARED_STRUCT, "later"));
	die(&in, DECLARED_STRUCT, "never");
	unit_end(&in);
	add_simple(&in, DW_LANG_C11, "later", 8);
	cr_expect_eq(read_info(&in, facts, ARRAY_SIZE(facts)), 0);
	expect_found(&facts[0], 8, 4);
	for (size_t i = 1; i < 4; i++)
		cr_expect_eq(facts[i].answer, DWARF_NO_TYPE, "%zu", i);
}

/* Forms that no compiler of today uses. */
Test(dwarf, old_forms)
{
	struct dwarf_fact facts[] = { { .type = "old", .member = "block" },
				      { .type = "old", .member = "field" },
				      { .type = "old", .member = "strange" } };
	static const uint8_t plus[] = { 2, DW_OP_plus_uconst, 100 };
	static const uint8_t other[] = { 1, DW_OP_dup };
	struct info in = { 0 };
	uint32_t type;

	unit_begin(&in, DW_LANG_C89);
	in.bytes.data[4] = 2; /* version */
	type = base(&in, 4);
	struct_begin(&in, "old", 200);
	die(&in, BLOCK_MEMBER, "block");
	buf_add_le32(&in.bytes, type);
	buf_add(&in.bytes, plus, sizeof(plus));
	die(&in, OLD_BITFIELD, "field");
	buf_add_le32(&in.bytes, type);
	buf_add_varint(&in.bytes, 104);
	buf_add_varint(&in.bytes, 4);  /* bytes of the unit */
	buf_add_varint(&in.bytes, 3);  /* bits */
	buf_add_varint(&in.bytes, 19); /* unused bits above them: bits 10 to 12 */
	die(&in, BLOCK_MEMBER, "strange");
	buf_add_le32(&in.bytes, type);
	buf_add(&in.bytes, other, sizeof(other));
	end_children(&in);
	unit_end(&in);
	cr_expect_eq(read_info(&in, facts, ARRAY_SIZE(facts)), 0);
	expect_found(&facts[0], 100, 4);
	expect_found(&facts[1], 105, 4);
	cr_expect_eq(facts[1].bit, 2);
	cr_expect_eq(facts[2].answer, DWARF_NO_TYPE, "not known to be absent");
}

/* ---- files ---- */

Test(dwarf, shared_file)
{
	struct dwarf_fact facts[] = { { .type = "own", .member = "x" },
				      { .type = "shared", .member = "x" } };
	struct info own = { 0 }, shared = { 0 };
	int fd, alt;

	add_simple(&own, DW_LANG_C11, "own", 8);
	add_simple(&shared, 0, "shared", 16);
	fd = fd_of_info(&own);
	alt = fd_of_info(&shared);
	cr_expect_eq(dwarf_facts_read(fd, alt, facts, 2), 0);
	expect_found(&facts[0], 8, 4);
	expect_found(&facts[1], 16, 4);
	/* Earlier answers are forgotten. */
	cr_expect_eq(dwarf_facts_read(fd, -1, facts, 2), 0);
	expect_found(&facts[0], 8, 4);
	cr_expect_eq(facts[1].answer, DWARF_NO_TYPE);
	cr_expect_eq(dwarf_facts_read(fd, STDIN_FILENO, facts, 2), 0, "no debug file at all");
	expect_found(&facts[0], 8, 4);
	close(fd);
	close(alt);
	buf_deinit(&own.bytes);
	buf_deinit(&shared.bytes);
}

static int read_compressed(const struct info *in, uint64_t claimed, struct dwarf_fact *fact)
{
	Elf64_Chdr chdr = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = claimed, .ch_addralign = 1 };
	uLongf len = compressBound(in->bytes.len);
	struct buf bytes = BUF_INIT;
	uint8_t *deflated = malloc(len);
	struct elf_builder b;
	int fd, r;

	cr_assert_eq(compress(deflated, &len, (void *)in->bytes.data, in->bytes.len), Z_OK);
	buf_add(&bytes, &chdr, sizeof(chdr));
	buf_add(&bytes, deflated, len);
	elf_builder_init(&b);
	elf_builder_section(&b, ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, bytes.data, bytes.len);
	elf_builder_section(&b, ".debug_abbrev", SHT_PROGBITS, 0, abbrevs, sizeof(abbrevs));
	/* Not needed, so that what is wrong with it does not matter. */
	elf_builder_section(&b, ".debug_line", SHT_PROGBITS, SHF_COMPRESSED, "junk", 4);
	elf_builder_finish(&b);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	r = dwarf_facts_read(fd, -1, fact, 1);
	close(fd);
	elf_builder_deinit(&b);
	buf_deinit(&bytes);
	free(deflated);
	return r;
}

Test(dwarf, compressed)
{
	struct dwarf_fact fact = { .type = "s", .member = "x" };
	struct info in = { 0 };

	add_simple(&in, DW_LANG_C11, "s", 8);
	cr_expect_eq(read_compressed(&in, in.bytes.len, &fact), 0);
	expect_found(&fact, 8, 4);
	cr_expect_eq(read_compressed(&in, DWARF_MAX_BYTES, &fact), -E2BIG, "of all sections");
	cr_expect_eq(read_compressed(&in, UINT64_MAX, &fact), -E2BIG);
	cr_expect_eq(read_compressed(&in, in.bytes.len - 1, &fact), -EBADMSG, "a lie");
	cr_expect_eq(fact.answer, DWARF_NO_TYPE);
	buf_deinit(&in.bytes);
}

Test(dwarf, no_debug_information)
{
	struct dwarf_fact fact = { .type = "s", .member = "x" };
	struct elf_builder b;
	int fd;

	elf_builder_init(&b);
	elf_builder_section(&b, ".debug_info", SHT_NOBITS, 0, NULL, 0);
	elf_builder_finish(&b);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	cr_expect_eq(dwarf_facts_read(fd, -1, &fact, 1), -ENOENT, "none in the file");
	close(fd);
	elf_builder_deinit(&b);
	fd = elf_builder_memfd("#!/usr/bin/env ruby\n", 20);
	cr_expect_eq(dwarf_facts_read(fd, -1, &fact, 1), -ENOENT, "a script");
	cr_assert_eq(ftruncate(fd, DWARF_MAX_BYTES + 1), 0);
	cr_expect_eq(dwarf_facts_read(fd, -1, &fact, 1), -E2BIG, "a large file");
	close(fd);
	cr_expect_eq(dwarf_facts_read(-1, -1, &fact, 1), -EBADF);
}

/* ---- hostile ---- */

Test(dwarf, circles)
{
	struct dwarf_fact facts[] = { { .type = "self", .member = "x" },
				      { .type = "a", .member = "x" },
				      { .type = "holds_itself", .member = "x" },
				      { .type = "holds_itself", .member = "next.next.before" },
				      { .type = "of_circle", .member = "c.x" },
				      { .type = "fine", .member = "x" } };
	struct info in = { 0 };
	uint32_t number, self, a;

	unit_begin(&in, DW_LANG_C11);
	number = base(&in, 4);
	self = (uint32_t)(in.bytes.len - in.unit);
	type_alias(&in, "self", self);
	a = (uint32_t)(in.bytes.len - in.unit);
	type_alias(&in, "a", a + 7); /* b follows: 1 + 2 + 4 bytes */
	type_alias(&in, "b", a);
	self = struct_begin(&in, "holds_itself", 8);
	member(&in, "before", number, 4);
	member(&in, "next", self, 8);
	member(&in, NULL, self, 0);
	member(&in, NULL, self, 0);
	end_children(&in);
	struct_begin(&in, "of_circle", 8);
	member(&in, "c", a, 0);
	end_children(&in);
	unit_end(&in);
	add_simple(&in, DW_LANG_C11, "fine", 8);
	cr_expect_eq(read_info(&in, facts, ARRAY_SIZE(facts)), 0);
	for (size_t i = 0; i < 5; i++)
		cr_expect_neq(facts[i].answer, DWARF_NO_MEMBER, "%zu", i);
	cr_expect_eq(facts[0].answer, DWARF_NO_TYPE);
	cr_expect_eq(facts[2].answer, DWARF_NO_TYPE);
	expect_found(&facts[5], 8, 4);
}

/* Each struct holds the next one ten times: no circle, but 10^14 paths. */
Test(dwarf, explosion)
{
	struct dwarf_fact fact = { .type = "explosion", .member = "none" };
	struct info in = { 0 };
	uint32_t type;

	unit_begin(&in, DW_LANG_C11);
	type = base(&in, 4);
	for (int depth = 14; depth >= 0; depth--) {
		uint32_t outer = struct_begin(&in, depth ? NULL : "explosion", 8);

		for (int i = 0; i < 10; i++)
			member(&in, NULL, type, 0);
		end_children(&in);
		type = outer;
	}
	unit_end(&in);
	cr_expect_eq(read_info(&in, &fact, 1), -ETIME);
	cr_expect_eq(fact.answer, DWARF_NO_TYPE);
}

/* Whatever is asked of damaged debug information, it is answered without reading past its end. */
Test(dwarf, damaged)
{
	struct elf_builder b;
	struct info in = { 0 };
	uint64_t random = 88172645463325252ull;

	add_simple(&in, DW_LANG_C11, "s", 8);
	add_simple(&in, 0, "t", 200);
	elf_of_info(&in, &b);
	for (int round = 0; round < 4000; round++) {
		struct dwarf_fact facts[] = { { .type = "s", .member = "x" },
					      { .type = "t", .member = "x.x|x" },
					      { .type = "t" },
					      { .type = "none", .member = "x" } };
		int fd = elf_builder_memfd(b.bytes.data, b.bytes.len);

		for (int i = 0; i < 1 + round % 4; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			cr_assert_eq(pwrite(fd, &random, 1,
					    (off_t)(64 + (random >> 8) % (b.bytes.len - 64))),
				     1);
		}
		if (round % 8 == 0)
			cr_assert_eq(ftruncate(fd, (off_t)(random % b.bytes.len)), 0);
		cr_expect_neq(dwarf_facts_read(fd, -1, facts, ARRAY_SIZE(facts)), -ETIME);
		cr_expect_eq(facts[3].answer, DWARF_NO_TYPE);
		close(fd);
	}
	elf_builder_deinit(&b);
	buf_deinit(&in.bytes);
}
