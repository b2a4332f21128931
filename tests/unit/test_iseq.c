/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "ruby/iseq.h"
#include "support/ruby_image.h"
#include "support/walk_host.h"

static void assert_sane_iseq(const struct ruby_iseq *q, uint64_t addr)
{
	cr_assert_eq(q->addr, addr);
	cr_assert(q->decoration && q->name && q->path, "all of them are there");
	cr_assert_gt(q->size, 0);
	cr_assert_leq(q->n_lines, q->size, "an instruction has one line at most");
	cr_assert_leq((uint32_t)q->type, RUBY_ISEQ_PLAIN);
	cr_assert(!q->hides_method || q->type == RUBY_ISEQ_RESCUE || q->type == RUBY_ISEQ_ENSURE);
}

static struct ruby_iseq read_iseq(struct ruby_image *img, uint64_t addr)
{
	struct ruby_iseq q;

	cr_assert_eq(ruby_iseq_read(&img->vm, addr, &q), 0, "%s: iseq %llx", img->version,
		     (unsigned long long)addr);
	assert_sane_iseq(&q, addr);
	return q;
}

/* 3.4 on: labels follow from what an iseq stands in. */
static bool from_parents(const struct ruby_image *img)
{
	return strcmp(img->version, "3.4") >= 0;
}

static void expect_none(struct ruby_image *img, uint64_t addr, int why)
{
	struct ruby_iseq q = { .addr = 77 };
	int r = ruby_iseq_read(&img->vm, addr, &q);

	cr_expect_eq(r, why, "%s: %d, not %d", img->version, r, why);
	cr_expect(q.addr == 77 && !q.name && !q.lines, "untouched");
	if (!r)
		ruby_iseq_deinit(&q);
}

/* Read again what ruby_iseq_check() looks at, as the resolver does. */
static bool still_there(struct ruby_image *img, const struct ruby_iseq *q)
{
	struct memory_span spans[RUBY_ISEQ_SPANS];
	struct ruby_iseq_id fresh;

	ruby_iseq_check_spans(&img->vm, q, &fresh, spans);
	memory_read_spans(&img->vm.mem, spans, RUBY_ISEQ_SPANS);
	for (size_t i = 0; i < RUBY_ISEQ_SPANS; i++)
		if (!spans[i].ok)
			return false;
	return ruby_iseq_check(&img->vm, q, &fresh);
}

/* ---- labels ---- */

enum { IN_METHOD = 1, IN_CLASS = 2, IN_FILE = 3 };

static const struct label_case {
	enum ruby_iseq_type type;
	int in;
	const char *label, *base;
	const char *decoration, *name;
} label_cases[] = {
	{ RUBY_ISEQ_METHOD, IN_METHOD, "foo", "foo", "", "foo" },
	{ RUBY_ISEQ_METHOD, IN_METHOD, "[]=", "[]=", "", "[]=" },
	{ RUBY_ISEQ_BLOCK, IN_METHOD, "block in foo", "foo", "block in ", "foo" },
	{ RUBY_ISEQ_BLOCK, IN_METHOD, "block (2 levels) in foo", "foo", "block (2 levels) in ",
	  "foo" },
	{ RUBY_ISEQ_BLOCK, IN_METHOD, "block (12 levels) in foo", "foo", "block (12 levels) in ",
	  "foo" },
	{ RUBY_ISEQ_CLASS, IN_CLASS, "<class:A>", "<class:A>", "", "<class:A>" },
	{ RUBY_ISEQ_CLASS, IN_CLASS, "<module:M>", "<module:M>", "", "<module:M>" },
	{ RUBY_ISEQ_CLASS, IN_CLASS, "singleton class", "singleton class", "", "singleton class" },
	{ RUBY_ISEQ_BLOCK, IN_CLASS, "block in <class:A>", "<class:A>", "block in ", "<class:A>" },
	{ RUBY_ISEQ_TOP, IN_FILE, "<top (required)>", "<top (required)>", "", "<top (required)>" },
	{ RUBY_ISEQ_MAIN, IN_FILE, "<main>", "<main>", "", "<main>" },
	{ RUBY_ISEQ_BLOCK, IN_FILE, "block in <main>", "<main>", "block in ", "<main>" },
	{ RUBY_ISEQ_EVAL, IN_METHOD, "foo", "foo", "", "foo" },
	{ RUBY_ISEQ_EVAL, IN_METHOD, "block in foo", "foo", "block in ", "foo" },
	{ RUBY_ISEQ_RESCUE, IN_METHOD, "rescue in foo", "foo", "rescue in ", "foo" },
	{ RUBY_ISEQ_ENSURE, IN_METHOD, "ensure in foo", "foo", "ensure in ", "foo" },
	{ RUBY_ISEQ_RESCUE, IN_METHOD, "rescue in block in foo", "foo", "rescue in block in ",
	  "foo" },
	{ RUBY_ISEQ_ENSURE, IN_METHOD, "ensure in rescue in foo", "foo", "ensure in rescue in ",
	  "foo" },
	{ RUBY_ISEQ_RESCUE, IN_FILE, "rescue in <main>", "<main>", "rescue in ", "<main>" },
	/* define_method("rescue in x") and the like: the name is the method's */
	{ RUBY_ISEQ_METHOD, IN_METHOD, "rescue in x", "rescue in x", "", "rescue in x" },
	{ RUBY_ISEQ_RESCUE, IN_METHOD, "rescue in rescue in x", "rescue in x", "rescue in ",
	  "rescue in x" },
	{ RUBY_ISEQ_BLOCK, IN_METHOD, "block in block in x", "block in x", "block in ",
	  "block in x" },
	/* A label that the C API was given does not end in its base. */
	{ RUBY_ISEQ_METHOD, IN_METHOD, "something", "else", "", "something" },
	{ RUBY_ISEQ_METHOD, IN_METHOD, "foo", "longer foo", "", "foo" },
	{ RUBY_ISEQ_METHOD, IN_METHOD, "", "", "", "" },
	{ RUBY_ISEQ_METHOD, IN_METHOD,
	  "gr\xc3\xbc\xc3\x9f"
	  "e",
	  "gr\xc3\xbc\xc3\x9f"
	  "e",
	  "",
	  "gr\xc3\xbc\xc3\x9f"
	  "e" },
};

/* Up to 3.3, where the label is stored as it is shown. */
Test(iseq, stored_labels)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t around[4] = { 0 };

		if (from_parents(img))
			continue;

		around[IN_METHOD] = image_iseq(
			img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "foo" });
		around[IN_CLASS] = image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_CLASS,
									  .label = "<class:A>" });
		around[IN_FILE] = image_iseq(
			img, &(struct image_iseq) { .type = RUBY_ISEQ_MAIN, .label = "<main>" });
		for (size_t i = 0; i < sizeof(label_cases) / sizeof(label_cases[0]); i++) {
			const struct label_case *c = &label_cases[i];
			bool own = c->type == RUBY_ISEQ_METHOD || c->type == RUBY_ISEQ_CLASS;
			struct ruby_iseq q;

			q = read_iseq(img,
				      image_iseq(img, &(struct image_iseq) {
							      .type = c->type,
							      .label = c->label,
							      .base = c->base,
							      .local = own ? 0 : around[c->in] }));
			cr_expect_eq(q.type, c->type);
			cr_expect_str_eq(q.decoration, c->decoration, "%s: \"%s\" gives \"%s\"",
					 img->version, c->label, q.decoration);
			cr_expect_str_eq(q.name, c->name, "%s: \"%s\" gives \"%s\"", img->version,
					 c->label, q.name);
			cr_expect_eq(q.in_method, c->in == IN_METHOD, "%s: \"%s\"", img->version,
				     c->label);
			cr_expect_not(q.hides_method);
			cr_expect_not(q.like_cfunc);
			ruby_iseq_deinit(&q);
			cr_expect_null(q.name);
			ruby_iseq_deinit(&q);
		}
	}
}

static uint64_t child_iseq(struct ruby_image *img, uint32_t type, uint64_t parent, uint64_t local)
{
	return image_iseq(img, &(struct image_iseq) { .type = type,
						      .label = "<compiled>",
						      .parent = parent,
						      .local = local });
}

static void expect_label(struct ruby_image *img, uint64_t addr, const char *decoration,
			 const char *name, bool in_method, bool hides_method)
{
	struct ruby_iseq q = read_iseq(img, addr);

	cr_expect_str_eq(q.decoration, decoration, "%s", q.decoration);
	cr_expect_str_eq(q.name, name, "%s%s", q.decoration, q.name);
	cr_expect_eq(q.in_method, in_method, "%s%s", q.decoration, q.name);
	cr_expect_eq(q.hides_method, hides_method, "%s%s", q.decoration, q.name);
	ruby_iseq_deinit(&q);
}

/* 3.4 on: what an iseq is called follows from what it stands in. */
Test(iseq, labels_from_parents)
{
	struct ruby_image *img = image_new("3.4");
	uint64_t method =
		image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "foo" });
	uint64_t klass = image_iseq(
		img, &(struct image_iseq) { .type = RUBY_ISEQ_CLASS, .label = "<class:A>" });
	uint64_t file =
		image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_MAIN, .label = "<main>" });
	uint64_t block = child_iseq(img, RUBY_ISEQ_BLOCK, method, method);
	uint64_t block2 = child_iseq(img, RUBY_ISEQ_BLOCK, block, method);
	uint64_t rescue = child_iseq(img, RUBY_ISEQ_RESCUE, block, method);
	uint64_t eval = child_iseq(img, RUBY_ISEQ_EVAL, method, method);
	uint64_t own = child_iseq(img, RUBY_ISEQ_EVAL, 0, 0);

	expect_label(img, method, "", "foo", true, false);
	expect_label(img, klass, "", "<class:A>", false, false);
	expect_label(img, file, "", "<main>", false, false);
	expect_label(img, block, "block in ", "foo", true, false);
	expect_label(img, block2, "block (2 levels) in ", "foo", true, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_BLOCK, klass, klass), "block in ", "<class:A>",
		     false, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_PLAIN, method, method), "block in ", "foo",
		     true, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_RESCUE, method, method), "", "foo", true, true);
	expect_label(img, rescue, "block in ", "foo", true, true);
	expect_label(img, child_iseq(img, RUBY_ISEQ_ENSURE, rescue, method), "block in ", "foo",
		     true, true);
	/* A block in a rescue clause counts the blocks only. */
	expect_label(img, child_iseq(img, RUBY_ISEQ_BLOCK, rescue, method), "block (2 levels) in ",
		     "foo", true, false);
	expect_label(img, eval, "", "foo", true, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_EVAL, block2, method), "block (2 levels) in ",
		     "foo", true, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_EVAL, file, file), "", "<main>", false, false);
	expect_label(img, child_iseq(img, RUBY_ISEQ_BLOCK, eval, method), "block in ", "foo", true,
		     false);
	/* RubyVM::InstructionSequence#eval: there is nothing around it. */
	expect_label(img, own, "", "<compiled>", false, false);
	image_free(img);
}

/* Parents that lead nowhere, or round in a circle, end in an error. */
Test(iseq, parents_that_are_none)
{
	struct ruby_image *img = image_new("3.4");
	uint64_t method =
		image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "foo" });
	uint64_t other = image_imemo(img, IMAGE_MENT, 0);
	uint64_t block = child_iseq(img, RUBY_ISEQ_BLOCK, method, method);
	uint64_t body = image_body(img, block);
	const struct image_facts *l = &img->facts;

	image_put64(img, body + l->parent_iseq, other);
	expect_none(img, block, -EINVAL);
	image_put64(img, body + l->parent_iseq, 0x5000);
	expect_none(img, block, -EFAULT);
	image_put64(img, body + l->parent_iseq, block);
	expect_none(img, block, -EINVAL);
	image_free(img);
}

Test(iseq, paths)
{
	FOR_EACH_IMAGE(img)
	{
		static const char *const paths[] = { "-e", "<internal:kernel>", "(eval at /a.rb:3)",
						     "/a path/with spaces.rb", "lib/\xff\x01.rb" };

		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			for (int both = 0; both < 2; both++) {
				struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
							  .label = "foo",
							  .path = paths[i],
							  .real = both ? "/real/path.rb" : NULL };
				struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));

				cr_expect_str_eq(q.path, paths[i]);
				ruby_iseq_deinit(&q);
			}
		}
	}
}

/* 3.4: what has the attribute c_trace. */
Test(iseq, shown_like_a_c_function)
{
	FOR_EACH_IMAGE(img)
	{
		for (uint32_t attrs = 0; attrs < 16; attrs++) {
			struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
						  .label = "each",
						  .attrs = attrs };
			struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));

			cr_expect_eq(q.like_cfunc, !strcmp(img->version, "3.4") && attrs & 8,
				     "%s: attributes %x", img->version, attrs);
			cr_expect_not(q.internal);
			ruby_iseq_deinit(&q);
		}
	}
}

/* 4.0 on: what is written in Ruby's own files, as vm_backtrace.c is_internal_location() says. */
Test(iseq, internal)
{
	static const struct {
		const char *path;
		bool internal;
	} paths[] = {
		{ "<internal:kernel>", true },	  { "<internal:", true },
		{ "<internal:/app/x.rb>", true }, { "<internal", false },
		{ "internal:kernel", false },	  { " <internal:kernel>", false },
		{ "/a/<internal:b>.rb", false },  { "", false },
	};

	FOR_EACH_IMAGE(img)
	{
		bool rule = strcmp(img->version, "4.0") >= 0;

		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
						  .label = "loop",
						  .path = paths[i].path };
			struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));

			cr_expect_eq(q.internal, rule && paths[i].internal, "%s: \"%s\"",
				     img->version, paths[i].path);
			cr_expect_eq(q.like_cfunc, q.internal, "%s: \"%s\"", img->version,
				     paths[i].path);
			ruby_iseq_deinit(&q);
		}
	}
}

Test(iseq, compiled)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo" };

		for (int compiled = 0; compiled < 2; compiled++) {
			struct ruby_iseq q;

			def.compiled = compiled;
			q = read_iseq(img, image_iseq(img, &def));
			cr_expect_eq(q.compiled, compiled, "%s", img->version);
			ruby_iseq_deinit(&q);
		}
	}
}

/* ---- lines ---- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Each position of an iseq of @size words, compared with a search in the plain table. */
static void check_lines(const char *version, uint32_t size, uint32_t density, uint64_t *seed)
{
	struct ruby_image *img = image_new(version);
	struct image_line *lines = malloc(size * sizeof(*lines));
	struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
				  .label = "foo",
				  .size = size,
				  .first_line = 9,
				  .lines = lines };
	struct ruby_iseq q;

	for (uint32_t pos = 0; pos < size; pos++)
		if (!pos || next_random(seed) % 100 < density)
			lines[def.n_lines++] =
				(struct image_line) { pos, (uint32_t)(next_random(seed) % 100000) };
	q = read_iseq(img, image_iseq(img, &def));
	cr_expect_eq(q.size, size);
	cr_expect_eq(q.n_lines, def.n_lines);
	cr_expect_eq(ruby_iseq_line(&q, q.encoded), lines[0].line ? lines[0].line : 9,
		     "before the first instruction");
	for (uint32_t pos = 0, entry = 0; pos < size; pos++) {
		uint32_t want, got = ruby_iseq_line(&q, image_pc(img, q.addr, pos));

		if (entry + 1 < def.n_lines && lines[entry + 1].position == pos)
			entry++;
		want = lines[entry].line ? lines[entry].line : 9;
		cr_assert_eq(got, want, "%s: %u lines in %u words: position %u is line %u, not %u",
			     version, def.n_lines, size, pos, got, want);
	}
	ruby_iseq_deinit(&q);
	free(lines);
	image_free(img);
}

Test(iseq, lines_of_all_small_sizes)
{
	uint64_t seed = 88172645463325252ull;

	for (uint32_t size = 1; size <= 130; size++)
		for (uint32_t density = 0; density <= 100; density += 20)
			check_lines(image_versions[size % IMAGE_VERSIONS].minor, size, density,
				    &seed);
}

/* Where one block of 512 positions ends and the next begins, and one word of 64. */
Test(iseq, lines_around_block_ends)
{
	uint64_t seed = 1234567;

	for (uint32_t block = 0; block <= 4; block++)
		for (uint32_t word = 0; word <= 8; word += 4)
			for (uint32_t at = 0; at < 5; at++)
				for (uint32_t density = 5; density <= 100; density += 95)
					check_lines("3.3", 54 + block * 512 + word * 64 + at - 2,
						    density, &seed);
}

Test(iseq, lines_of_random_tables)
{
	uint64_t seed = 0x853c49e6748fea9bull;

	for (int i = 0; i < 400; i++)
		check_lines(image_versions[i % IMAGE_VERSIONS].minor,
			    (uint32_t)(1 + next_random(&seed) % 3000),
			    (uint32_t)(next_random(&seed) % 101), &seed);
}

Test(iseq, pcs_that_are_not_of_it)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo", .size = 20 };
		struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));
		static const uint64_t others[] = { 0, 8, ~7ull, ~0ull, 1ull << 63 };

		for (uint64_t off = 0; off <= 160; off++) {
			cr_expect_eq(ruby_iseq_has_pc(&q, q.encoded + off), off % 8 == 0);
			cr_expect_eq(ruby_iseq_line(&q, q.encoded + off), off % 8 ? 0 : 1);
		}
		cr_expect_not(ruby_iseq_has_pc(&q, q.encoded - 8));
		cr_expect_not(ruby_iseq_has_pc(&q, q.encoded + 168));
		cr_expect_eq(ruby_iseq_line(&q, q.encoded + 168), 0);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			cr_expect_not(ruby_iseq_has_pc(&q, others[i]));
			cr_expect_eq(ruby_iseq_line(&q, others[i]), 0);
		}
		ruby_iseq_deinit(&q);
	}
}

/* It has its name, but no lines, and nothing of the table is kept. */
Test(iseq, table_too_large)
{
	static struct image_line line = { 0, 77 };
	struct image_iseq def = {
		.type = RUBY_ISEQ_METHOD, .label = "foo", .size = 100, .lines = &line, .n_lines = 1
	};

	for (size_t v = 0; v < IMAGE_VERSIONS; v++) {
		struct ruby_image *img = image_new(image_versions[v].minor);
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq);
		struct ruby_iseq q;

		image_put32(img, body + 4, 8000000);
		image_put32(img, body + img->vm.layout.insns_size, 8000000);
		q = read_iseq(img, iseq);
		cr_expect(q.lines_left_out && !q.n_lines && !q.index_words);
		cr_expect_str_eq(q.name, "foo");
		cr_expect_eq(ruby_iseq_line(&q, q.encoded + 8), 0, "%s: no line, not a wrong one",
			     image_versions[v].minor);
		ruby_iseq_deinit(&q);
		image_free(img);
	}
}

Test(iseq, no_line_table)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo" };
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq);
		struct ruby_iseq q;

		image_put32(img, body + img->facts.insns_size, 0);
		image_put64(img, body + img->facts.insns_body, 0);
		image_put64(img, body + img->facts.insns_index, 0);
		q = read_iseq(img, iseq);
		cr_expect_eq(ruby_iseq_line(&q, image_pc(img, iseq, 3)), 0);
		ruby_iseq_deinit(&q);

		/* A table of one line needs no index. */
		iseq = image_iseq(img, &def);
		image_put64(img, image_body(img, iseq) + img->facts.insns_index, 0);
		q = read_iseq(img, iseq);
		cr_expect_eq(ruby_iseq_line(&q, image_pc(img, iseq, 3)), 1);
		ruby_iseq_deinit(&q);
	}
}

/* An index that names entries which are not there: no line, and no read past the end. */
Test(iseq, garbage_in_the_line_index)
{
	static struct image_line lines[700];
	uint64_t seed = 99;

	for (uint32_t i = 0; i < 700; i++)
		lines[i] = (struct image_line) { i, i + 1 };
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
					  .label = "foo",
					  .size = 700,
					  .lines = lines,
					  .n_lines = 700 };
		uint64_t iseq = image_iseq(img, &def);
		uint64_t index = image_get64(img, image_body(img, iseq) + img->facts.insns_index);

		for (int round = 0; round < 20; round++) {
			struct ruby_iseq q;

			for (uint64_t i = 0; i < 6 + 2 * 10; i++)
				image_put64(img, index + i * 8, next_random(&seed));
			q = read_iseq(img, iseq);
			for (uint32_t pos = 0; pos < 700; pos++)
				cr_expect_leq(ruby_iseq_line(&q, image_pc(img, iseq, pos)), 700);
			ruby_iseq_deinit(&q);
		}
	}
}

/* ---- what is no iseq ---- */

Test(iseq, first_line)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
					  .label = "foo",
					  .first_line = 123456 };
		struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));

		cr_expect_eq(q.first_lineno, 123456);
		ruby_iseq_deinit(&q);
	}
}

/* What an engine puts before a template that begins at line 1. */
Test(iseq, lines_below_1)
{
	static const struct image_line lines[] = { { 0, (uint32_t)-5 }, { 4, 0 }, { 6, 1 } };

	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
					  .label = "__tilt_60",
					  .first_line = (uint32_t)-6,
					  .lines = lines,
					  .n_lines = ARRAY_SIZE(lines) };
		struct ruby_iseq q = read_iseq(img, image_iseq(img, &def));

		cr_expect_eq(q.first_lineno, 0);
		cr_expect_eq(ruby_iseq_line(&q, image_pc(img, q.addr, 2)), 0);
		cr_expect_eq(ruby_iseq_line(&q, image_pc(img, q.addr, 4)), 0);
		cr_expect_eq(ruby_iseq_line(&q, image_pc(img, q.addr, 8)), 1);
		ruby_iseq_deinit(&q);
	}
}

Test(iseq, no_iseq)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo" };
		uint64_t iseq = image_iseq(img, &def), flags = image_get64(img, iseq);

		for (uint64_t type = 0; type < 16; type++) {
			if (type == IMAGE_ISEQ_IMEMO)
				continue;
			image_put64(img, iseq, IMAGE_IMEMO(type));
			expect_none(img, iseq, -EINVAL);
		}
		image_put64(img, iseq, IMAGE_T_STRING | IMAGE_ISEQ_IMEMO << 12);
		expect_none(img, iseq, -EINVAL);
		image_put64(img, iseq, 0); /* freed */
		expect_none(img, iseq, -EINVAL);
		image_put64(img, iseq, flags);
		image_put64(img, iseq + 16, 0x5000);
		expect_none(img, iseq, -EFAULT);
		image_put64(img, iseq + 16, 0);
		expect_none(img, iseq, -EFAULT);
		expect_none(img, 0, -EFAULT);
		expect_none(img, iseq + 1, -EFAULT);
		expect_none(img, 0x5000, -EFAULT);
		expect_none(img, ~7ull, -EFAULT);
	}
}

/* One member of the body at a time is what a freed or reused one may hold. */
Test(iseq, half_freed)
{
	FOR_EACH_IMAGE(img)
	{
		const struct image_facts *l = &img->facts;
		bool stored = !from_parents(img); /* else a block's label is its method's */
		uint64_t zombie = image_string(img, "x"), other = image_imemo(img, IMAGE_MENT, 0);
		static const struct image_line lines[] = { { 0, 1 }, { 5, 2 } };
		uint64_t local = image_iseq(
			img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "foo" });
		struct image_iseq def = { .type = RUBY_ISEQ_BLOCK,
					  .label = "block in foo",
					  .base = "foo",
					  .local = local,
					  .lines = lines,
					  .n_lines = 2 };
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq);
		struct {
			uint64_t off, value;
			int why;
		} bad[] = {
			{ 0, 9 | 10ull << 32, -EINVAL },	      /* type */
			{ 0, ~0ull, -EINVAL },			      /* type and size */
			{ 0, RUBY_ISEQ_BLOCK, -EINVAL },	      /* size 0 */
			{ 0, RUBY_ISEQ_BLOCK | 1ull << 63, -EINVAL }, /* size */
			{ 8, 0, -EINVAL },			      /* iseq_encoded */
			{ 8, 0x7f0000000001, -EINVAL },
			{ 64, zombie, -EINVAL }, /* pathobj */
			{ 64, 0, -EFAULT },
			{ 72, zombie, stored ? -EINVAL : 0 }, /* base_label */
			{ 72, 8, stored ? -EINVAL : 0 },
			{ 80, zombie, stored ? -EINVAL : 0 }, /* label */
			{ 80, 0x5000, -EFAULT },
			{ l->local_iseq, other, stored ? -EINVAL : -EFAULT },
			{ l->local_iseq, 0, -EFAULT },
			{ l->local_iseq, 0x5000, -EFAULT },
			{ l->insns_size, 11, -EINVAL },
			{ l->insns_size, 0xffffffff, -EINVAL },
			{ l->insns_body, 0x5000, -EFAULT },
			{ l->insns_index, 0x5000, -EFAULT },
		};
		struct ruby_iseq q = read_iseq(img, iseq);

		ruby_iseq_deinit(&q);
		image_put64(img, zombie, IMAGE_T_ZOMBIE);
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			uint64_t before = image_get64(img, body + bad[i].off);

			image_put64(img, body + bad[i].off, bad[i].value);
			if (bad[i].why)
				expect_none(img, iseq, bad[i].why);
			image_put64(img, body + bad[i].off, before);
		}
		q = read_iseq(img, iseq);
		ruby_iseq_deinit(&q);
	}
}

/* The last body before unmapped memory: no byte is read that is not needed. */
Test(iseq, body_at_the_end_of_a_mapping)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo" };
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq), last;
		size_t size = img->facts.local_iseq + 8u;
		struct ruby_iseq q;

		last = image_alloc_last(img, size);
		memcpy(image_at(img, last, size), image_at(img, body, size), size);
		image_put64(img, iseq + 16, last);
		q = read_iseq(img, iseq);
		cr_expect_str_eq(q.name, "foo");
		ruby_iseq_deinit(&q);

		last = image_alloc_last(img, size - 8);
		memcpy(image_at(img, last, size - 8), image_at(img, body, size - 8), size - 8);
		image_put64(img, iseq + 16, last);
		expect_none(img, iseq, -EFAULT);
	}
}

/* ---- whether it is still the same ---- */

Test(iseq, what_makes_it_another_one)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD, .label = "foo" };
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq);
		static const uint64_t identity[] = { 0, 8, 64, 72, 80, 88 };
		struct ruby_iseq q = read_iseq(img, iseq);

		cr_assert(still_there(img, &q));
		for (size_t i = 0; i < sizeof(identity) / sizeof(identity[0]); i++) {
			uint64_t before = image_get64(img, body + identity[i]);

			image_put64(img, body + identity[i], before + 8);
			cr_expect_not(still_there(img, &q), "body +%llu",
				      (unsigned long long)identity[i]);
			image_put64(img, body + identity[i], before);
		}
		image_put64(img, body + 24, ~image_get64(img, body + 24));
		cr_expect(still_there(img, &q), "the parameters do not identify it");
		image_put64(img, iseq, IMAGE_IMEMO(IMAGE_ISEQ_IMEMO) | 1 << 5);
		cr_expect(still_there(img, &q), "nor do the bits of the GC");
		image_put64(img, iseq, IMAGE_IMEMO(IMAGE_MENT));
		cr_expect_not(still_there(img, &q), "another object");
		image_put64(img, iseq, IMAGE_IMEMO(IMAGE_ISEQ_IMEMO));
		image_put64(img, iseq + 16, body + 8);
		cr_expect_not(still_there(img, &q), "another body");
		image_put64(img, iseq + 16, body);
		cr_expect(still_there(img, &q), "all as before");
		image_hide_all(img, true);
		cr_expect_not(still_there(img, &q), "unreadable");
		ruby_iseq_deinit(&q);
	}
}

/* ---- texts ---- */

/*
 * Of a label, in the String itself and elsewhere, and what they might be after their String's place
 * was taken.
 */
struct text {
	const char *before, *after;
	bool heap;
};

static const struct text short_texts[] = {
	{ "foo", "bar", false },
	{ "a_method_of_23_bytes_ab", "a_method_of_23_bytes_ac", true },
	{ "block in process_all_the_rows", "block in process_all_the_cols", true },
	{ "exactly_sixteen!", "exactly_sixteen?", false },
};

static uint64_t text_iseq(struct ruby_image *img, const struct text *text, const char *path)
{
	uint64_t iseq = image_iseq(
		img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "x", .path = path });
	size_t len = strlen(text->before);

	image_put64(img, image_body(img, iseq) + 80,
		    text->heap ? image_string_heap(img, text->before, len)
			       : image_string_embed(img, text->before, len));
	image_put64(img, image_body(img, iseq) + 72, image_get64(img, image_body(img, iseq) + 80));
	return iseq;
}

/* The check that the BPF programs take. */
static uint64_t check_of(struct ruby_image *img, uint64_t iseq)
{
	struct walk *w = walk_host_new(&img->vm.walk, RBPF_MIN_FRAMES);
	uint64_t check;

	walk_host.mem = &img->vm.mem;
	walk_host.walk = w;
	check = walk_check_iseq(0, iseq, 0);
	free(w);
	return check;
}

/* Take the place of @text; returns whether it is noticed, by those who compare and by the check. */
static bool change_is_noticed(struct ruby_image *img, const struct text *text)
{
	uint64_t iseq = text_iseq(img, text, NULL);
	struct ruby_iseq before = read_iseq(img, iseq), after;
	bool noticed;

	cr_expect_eq(ruby_iseq_words_check(&before), check_of(img, iseq),
		     "%s: \"%s\": the BPF programs take another check", img->version, text->before);
	cr_assert(still_there(img, &before));
	image_label_text(img, iseq, text->after);
	after = read_iseq(img, iseq);
	cr_expect_str_eq(after.name, text->after);
	noticed = !still_there(img, &before) &&
		  ruby_iseq_words_check(&before) != ruby_iseq_words_check(&after);
	ruby_iseq_deinit(&before);
	ruby_iseq_deinit(&after);
	return noticed;
}

Test(iseq, another_label_in_the_same_place)
{
	FOR_EACH_IMAGE(img)
	for (size_t i = 0; i < sizeof(short_texts) / sizeof(short_texts[0]); i++)
		cr_expect(change_is_noticed(img, &short_texts[i]), "%s: \"%s\" for \"%s\"",
			  img->version, short_texts[i].after, short_texts[i].before);
}

/*
 * From 3.2 on a String can hold far more than its first words: names made by a program differ at
 * their end.
 */
Test(iseq, another_long_label_in_the_same_string)
{
	static const struct text texts[] = {
		{ "test_generated_001", "test_generated_002", false },
		{ "_app_views_orders_index_html_erb__1234567890_1",
		  "_app_views_orders_index_html_erb__1234567890_2", false },
	};

	FOR_EACH_IMAGE(img)
	{
		if (img->facts.string_embed != 24)
			continue;
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			cr_expect(change_is_noticed(img, &texts[i]), "%s: \"%s\" for \"%s\"",
				  img->version, texts[i].after, texts[i].before);
	}
}

/*
 * Only the end of a text is compared, where names that a program makes differ: so much is missed.
 */
Test(iseq, beginning_of_a_very_long_label)
{
	FOR_EACH_IMAGE(img)
	{
		char before[200], after[200];
		struct text text = { before, after, true };

		for (size_t at = 0; at < 199; at += 7) {
			memset(before, 'x', sizeof(before));
			before[199] = '\0';
			strcpy(after, before);
			after[at] = 'y';
			cr_expect_eq(change_is_noticed(img, &text),
				     at >= 199 - RBPF_LABEL_WORDS * 8, "%s: byte %zu", img->version,
				     at);
		}
	}
}

/* Of a path its String is compared, or the Array it stands in. */
Test(iseq, another_path_in_the_same_place)
{
	FOR_EACH_IMAGE(img)
	for (int both = 0; both < 2; both++) {
		struct image_iseq def = { .type = RUBY_ISEQ_METHOD,
					  .label = "foo",
					  .path = "/a.rb",
					  .real = both ? "/real/a.rb" : NULL };
		uint64_t iseq = image_iseq(img, &def);
		uint64_t path = image_get64(img, image_body(img, iseq) + 64);
		struct ruby_iseq q = read_iseq(img, iseq);

		image_put64(img, path, image_get64(img, path) | img->facts.old_flags);
		cr_expect(still_there(img, &q), "%s: it grew old", img->version);
		image_put64(img, path + (both ? 16 : img->facts.string_embed),
			    both ? image_string(img, "/b.rb") : 0x62722e622full /* "/b.rb" */);
		cr_expect_not(still_there(img, &q), "%s: with a real path: %d", img->version, both);
		ruby_iseq_deinit(&q);
	}
}

struct change {
	uint64_t when; /* an address that is read */
	uint64_t at, value;
	bool done;
};

static void change_on_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	struct change *c = img->arg;

	(void)len;
	if (c->done || addr != c->when)
		return;
	image_put64(img, c->at, c->value);
	c->done = true;
}

/* Another iseq takes its place while it is read: rather none than one with the other's lines. */
Test(iseq, changed_while_it_is_read)
{
	FOR_EACH_IMAGE(img)
	{
		static const struct image_line lines[] = { { 0, 1 }, { 5, 2 } };
		struct image_iseq def = {
			.type = RUBY_ISEQ_METHOD, .label = "foo", .lines = lines, .n_lines = 2
		};
		uint64_t iseq = image_iseq(img, &def), body = image_body(img, iseq);
		uint64_t table = image_get64(img, body + img->facts.insns_body);
		uint64_t label = image_get64(img, body + 80), other = image_string(img, "bar");
		uint64_t path = image_get64(img, body + 64);
		struct change changes[] = {
			{ table, body + 80, other, false },    { table, body + 64, other, false },
			{ label, body + 80, other, false },    { label, iseq, 0, false },
			{ table, label + 16, 2, false },       { table, path + 16, 2, false },
			{ table, iseq + 16, body + 8, false }, { table, body + 8, 0x9000, false },
		};

		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
			uint64_t before = image_get64(img, changes[i].at);

			img->on_read = change_on_read;
			img->arg = &changes[i];
			expect_none(img, iseq, -EINVAL);
			cr_expect(changes[i].done, "change %zu was not made", i);
			img->on_read = NULL;
			image_put64(img, changes[i].at, before);
		}
	}
}

/*
 * Where a layout that was searched for puts a member so far back in the body that the number of
 * local variables is behind what is read of it, none is known: not the type of the iseq, which
 * is 1.
 */
Test(iseq, local_variables_behind_what_is_read)
{
	FOR_EACH_IMAGE(img)
	{
		const size_t size = img->facts.body_size;
		const uint16_t off = RUBY_BODY_BYTES - 8;
		uint64_t iseq = image_iseq(
			img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD, .label = "foo" });
		uint64_t body = image_alloc(img, RUBY_BODY_BYTES);
		struct ruby_iseq q;

		memcpy(image_at(img, body, size), image_at(img, image_body(img, iseq), size), size);
		image_put64(img, iseq + 16, body);
		image_put64(img, body + off, iseq);
		img->vm.layout.local_iseq = off;
		q = read_iseq(img, iseq);
		cr_expect_eq(q.n_locals, 0, "%s: %u", img->version, q.n_locals);
		cr_expect_eq(ruby_iseq_local_slot(&img->vm, &q, 0), 0, "%s", img->version);
		ruby_iseq_deinit(&q);
	}
}
