/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "profile/reason.h"
#include "rbpf_file.h"
#include "support/profile_builder.h"
#include "support/tree_check.h"
#include "support/merged.h"
#include "view/filter.h"
#include "view/state.h"
#include "view/tree.h"

static struct profile_builder b;
static uint32_t thread;

static void setup(void)
{
	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "/usr/bin/ruby app.rb"), 42, "main");
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(tree, .init = setup, .fini = teardown);

/* "all 5/1(Foo 4/4)": labels, total and self samples, children in parentheses. */
static char *render(const struct tree *t)
{
	struct buf out = BUF_INIT;
	uint32_t depth = 0, i = 0;

	do {
		const struct tree_node *node = &t->nodes[i];

		for (; depth > node->depth; depth--)
			buf_addch(&out, ')');
		depth = node->depth;
		if (i)
			buf_addch(&out, t->nodes[node->parent].first_child == i ? '(' : ' ');
		tree_node_label(t, i, &out);
		buf_addf(&out, " %d/%d", (int)node->total_samples, (int)node->self_samples);
		i = tree_next(t, i);
	} while (i);
	buf_add_repeat(&out, ')', depth);
	return out.data;
}

static void expect_tree(const struct view_filter *f, const struct tree_options *opts,
			const char *expected)
{
	struct tree t;
	char *got;

	cr_assert_eq(tree_build(&b.out.profile, f, opts, &t), 0);
	assert_sane_tree(&t);
	got = render(&t);
	cr_expect_str_eq(got, expected);
	free(got);
	tree_deinit(&t);
}

static const struct tree_options plain;

Test(tree, without_samples_is_a_root)
{
	expect_tree(NULL, &plain, "all 0/0");
}

Test(tree, names_are_sorted_and_prefixes_are_shared)
{
	builder_add(&b, thread, builder_path(&b, "<main>|Foo#bar"), 3);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo"), 2);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo|x"), 1);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo.baz"), 4);
	builder_add(&b, thread, builder_path(&b, "<main>"), 5);
	builder_add(&b, thread, 0, 6);
	expect_tree(NULL, &plain, "all 21/6(<main> 15/5(Foo 3/2(x 1/1) Foo#bar 3/3 Foo.baz 4/4))");
}

Test(tree, recursion_is_a_path)
{
	builder_add(&b, thread, builder_path(&b, "a|a|b|a"), 1);
	builder_add(&b, thread, builder_path(&b, "a|a"), 1);
	expect_tree(NULL, &plain, "all 2/0(a 2/0(a 2/1(b 1/0(a 1/1))))");
}

Test(tree, lines_of_a_function_are_one_node_or_many)
{
	static const struct tree_options by_line = { .by_line = true };
	uint32_t foo = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 12, 10);
	uint32_t foo_again = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 13, 10);
	uint32_t namesake = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 99, 98);
	uint32_t hash = builder_frame(&b, FRAME_CFUNC, "Hash#[]", "/app/foo.rb", 12, 0);
	uint32_t hash_again = builder_frame(&b, FRAME_CFUNC, "Hash#[]", "/app/foo.rb", 13, 0);

	builder_add(&b, thread, builder_stack(&b, builder_stack(&b, 0, foo), hash), 1);
	builder_add(&b, thread, builder_stack(&b, builder_stack(&b, 0, foo_again), hash_again), 2);
	builder_add(&b, thread, builder_stack(&b, 0, namesake), 3);
	expect_tree(NULL, &plain, "all 6/0(Foo#bar 3/0(Hash#[] 3/3) Foo#bar 3/3)");
	expect_tree(NULL, &by_line,
		    "all 6/0(Foo#bar foo.rb:12 1/0(Hash#[] foo.rb:12 1/1)"
		    " Foo#bar foo.rb:13 2/0(Hash#[] foo.rb:13 2/2) Foo#bar foo.rb:99 3/3)");
}

Test(tree, approximate_lines)
{
	static const struct tree_options by_line = { .by_line = true };
	uint32_t exact = builder_frame(&b, FRAME_RUBY, "Foo#bar", "/app/foo.rb", 12, 10);

	builder_add(&b, thread, builder_stack(&b, 0, builder_approximate(&b, exact)), 1);
	builder_add(&b, thread, builder_stack(&b, 0, exact), 2);
	expect_tree(NULL, &plain, "all 3/0(Foo#bar 3/3)");
	expect_tree(NULL, &by_line, "all 3/0(Foo#bar foo.rb:12 2/2 Foo#bar foo.rb:~12 1/1)");
}

Test(tree, symbols_of_two_modules_are_two_nodes)
{
	uint32_t libc = builder_frame(&b, FRAME_NATIVE, "memcpy", "/lib/libc.so.6", 0, 0);
	uint32_t mine = builder_frame(&b, FRAME_NATIVE, "memcpy", "/app/ext.so", 0, 0);

	builder_add(&b, thread, builder_stack(&b, 0, libc), 1);
	builder_add(&b, thread, builder_stack(&b, 0, mine), 2);
	expect_tree(NULL, &plain, "all 3/0(memcpy 2/2 memcpy 1/1)");
}

Test(tree, inverted)
{
	static const struct tree_options inverted = { .inverted = true };

	builder_add(&b, thread, builder_path(&b, "main|a|x"), 1);
	builder_add(&b, thread, builder_path(&b, "main|b|x"), 2);
	builder_add(&b, thread, builder_path(&b, "main|b"), 4);
	expect_tree(NULL, &inverted,
		    "all 7/0(b 4/0(main 4/4) x 3/0(a 1/0(main 1/1) b 2/0(main 2/2)))");
}

Test(tree, split)
{
	static const struct tree_options by_process = { .split = TREE_SPLIT_PROCESS };
	static const struct tree_options by_thread = { .split = TREE_SPLIT_THREAD };
	static const struct tree_options both = { .split = TREE_SPLIT_THREAD, .inverted = true };
	uint32_t worker = builder_thread(&b, b.out.profile.threads[thread].process, 100, "");
	uint32_t second = builder_thread(&b, builder_process(&b, 7, "ruby job.rb"), 7, "main");
	uint32_t path = builder_path(&b, "a|b");

	builder_add(&b, thread, path, 1);
	builder_add(&b, second, path, 2);
	builder_add(&b, worker, path, 4);
	builder_add(&b, worker, 0, 8);
	expect_tree(NULL, &by_process,
		    "all 15/0(ruby (pid 7) 2/0(a 2/0(b 2/2))"
		    " ruby (pid 42) 13/8(a 5/0(b 5/5)))");
	expect_tree(NULL, &by_thread,
		    "all 15/0([unnamed] (tid 100) 12/8(a 4/0(b 4/4))"
		    " main (tid 7) 2/0(a 2/0(b 2/2)) main (tid 42) 1/0(a 1/0(b 1/1)))");
	expect_tree(NULL, &both,
		    "all 15/0([unnamed] (tid 100) 12/8(b 4/0(a 4/4))"
		    " main (tid 7) 2/0(b 2/0(a 2/2)) main (tid 42) 1/0(b 1/0(a 1/1)))");
}

#define LONG_ID "3f2a9c1b0d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"

Test(tree, split_by_container_and_ruby)
{
	static const struct tree_options by_process = { .split = TREE_SPLIT_PROCESS };
	static const struct tree_options by_container = { .split = TREE_SPLIT_CONTAINER };
	static const struct tree_options by_ruby = { .split = TREE_SPLIT_RUBY };
	uint32_t first = b.out.profile.threads[thread].process;
	uint32_t web = builder_process(&b, 7, "ruby web.rb");
	uint32_t bash = builder_process(&b, 8, "bash");
	uint32_t path = builder_path(&b, "a");

	builder_contain(&b, first, LONG_ID, 1);
	builder_contain(&b, web, LONG_ID, 7);
	builder_contain(&b, bash, "", 3);
	b.out.profile.processes[bash].ruby_version = 0;
	builder_add(&b, thread, path, 1);
	builder_add(&b, builder_thread(&b, web, 7, "x"), path, 2);
	builder_add(&b, builder_thread(&b, bash, 8, "bash"), 0, 4);
	expect_tree(NULL, &by_process,
		    "all 7/0(bash (pid 8, 3 inside) 4/4"
		    " ruby (pid 7, in 3f2a9c1b0d4e) 2/0(a 2/2)"
		    " ruby (pid 42, 1 in 3f2a9c1b0d4e) 1/0(a 1/1))");
	expect_tree(NULL, &by_container, "all 7/0([no container] 4/4 3f2a9c1b0d4e 3/0(a 3/3))");
	expect_tree(NULL, &by_ruby, "all 7/0([no Ruby] 4/4 ruby 3.3.6 3/0(a 3/3))");
}

Test(tree, hidden_frames_leave_their_time_to_callers)
{
	static const struct tree_options inverted = { .inverted = true };
	const struct view_filter ruby_only = { .stack = STACK_RUBY };
	uint32_t a = builder_path(&b, "a");
	uint32_t vm = builder_stack(&b, a, builder_frame(&b, FRAME_NATIVE, "vm_exec", "", 0, 0));
	uint32_t inner = builder_stack(&b, vm, builder_frame(&b, FRAME_RUBY, "b", "", 0, 0));

	builder_add(&b, thread, a, 1);
	builder_add(&b, thread, vm, 2);
	builder_add(&b, thread, inner, 4);
	builder_add(&b, thread,
		    builder_stack(&b, 0, builder_frame(&b, FRAME_KERNEL, "k", "", 0, 0)), 8);
	expect_tree(&ruby_only, &plain, "all 15/8(a 7/3(b 4/4))");
	expect_tree(&ruby_only, &inverted, "all 15/8(a 3/3 b 4/0(a 4/4))");
}

Test(tree, filtered)
{
	builder_add(&b, thread, builder_path(&b, "a"), 2);
	builder_add(&b, thread, builder_path(&b, "b"), 2);
	builder_select(&b, 0, 3 * BUILDER_PERIOD);
	expect_tree(NULL, &plain, "all 3/0(a 2/2 b 1/1)");
}

Test(tree, labels_are_never_empty)
{
	static const struct tree_options by_process = { .split = TREE_SPLIT_PROCESS };
	uint32_t process = builder_process(&b, 9, "");

	builder_add(&b, builder_thread(&b, process, 9, ""), builder_path(&b, ""), 1);
	builder_add(&b, thread, builder_path(&b, "a"), 1);
	b.out.profile.processes[0].cmdline = builder_str(&b, "/opt/my app/bin/puma: worker 1");
	b.out.profile.processes[0].exe = builder_str(&b, "/opt/my app/bin/puma:");
	expect_tree(NULL, &by_process,
		    "all 2/0([unknown] (pid 9) 1/0([unnamed] 1/1) puma (pid 42) 1/0(a 1/1))");
}

Test(tree, random_profiles_add_up)
{
	for (unsigned int variant = 0; variant < 40; variant++) {
		const struct tree_options opts = {
			.by_line = variant & 1,
			.inverted = variant & 2,
			.split = variant / 4 % 5,
		};
		const struct view_filter f = { .stack = variant >= 20 ? STACK_RUBY : STACK_ALL };
		struct tree t;

		builder_add_random(&b, variant + 1, 500);
		builder_finish(&b);
		cr_assert_eq(tree_build(&b.out.profile, &f, &opts, &t), 0);
		assert_sane_tree(&t);
		cr_expect_eq(t.nodes[0].total_value, b.out.profile.totals.cpu_sampled_ns);
		cr_expect_eq(t.nodes[0].total_samples, b.out.profile.n_samples);
		tree_deinit(&t);
	}
}

/* Follows the nodes of a tree as the paths of its parts are walked. */
struct follower {
	const struct tree *whole;
	uint32_t at;	    /* the node that is to come; 0: none */
	uint32_t *frame_of; /* by path: its frame, the same in all parts */
	uint32_t *part_of;  /* by path: the last part that it was in, + 1 */
	uint32_t part;
};

static int follow(void *arg, const struct tree_path *path)
{
	struct follower *f = arg;
	const struct tree_node *node = &f->whole->nodes[f->at];

	cr_assert_neq(f->at, 0, "no further paths than nodes");
	cr_expect_eq(path->frame, node->frame);
	cr_expect_eq(path->self_value, node->self_value);
	cr_expect_eq(path->self_samples, node->self_samples);
	cr_expect_eq(path->id == 0, node->depth == 1);
	cr_expect(!path->id || path->parent < path->id, "parents come first");
	cr_expect(!path->id || f->part_of[path->parent] == f->part + 1, "so they are in the part");
	cr_expect(!f->part_of[path->id] || f->frame_of[path->id] == path->frame);
	f->frame_of[path->id] = path->frame;
	f->part_of[path->id] = f->part + 1;
	f->at = tree_next(f->whole, f->at);
	return 0;
}

/* Part by part, these are the paths that tree_build() has below its root, in its order. */
Test(tree, parts_are_those_of_the_whole_tree)
{
	/* Few paths of many groups, which are sorted in another way. */
	uint32_t small = builder_thread(&b, builder_process(&b, 77, "small"), 77, "small");

	builder_add(&b, small, builder_path(&b, "b"), 1);
	builder_add(&b, small, builder_path(&b, "a|c"), 2);
	builder_add(&b, small, builder_path(&b, "a|b"), 3);
	for (unsigned int variant = 0; variant < 16; variant++) {
		const struct tree_options opts = {
			.by_line = variant & 1,
			.inverted = variant & 2,
			.split = TREE_SPLIT_PROCESS + variant / 4 % 4,
		};
		struct follower f = { 0 };
		struct tree_parts *parts;
		struct tree whole;

		builder_add_random(&b, variant + 1, 200);
		builder_finish(&b);
		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &whole), 0);
		assert_sane_tree(&whole);
		cr_assert_eq(tree_parts_new(&b.out.profile, NULL, &opts, &parts), 0);
		f.whole = &whole;
		f.at = tree_next(&whole, 0);
		f.frame_of = calloc(tree_parts_paths(parts), sizeof(*f.frame_of));
		f.part_of = calloc(tree_parts_paths(parts), sizeof(*f.part_of));
		cr_assert(f.frame_of && f.part_of);
		for (; f.part < tree_parts_count(parts); f.part++) {
			cr_expect_eq(whole.nodes[f.at].label, tree_parts_owner(parts, f.part));
			cr_assert_eq(tree_parts_walk(parts, f.part, follow, &f), 0);
		}
		cr_expect_eq(f.at, 0, "no fewer paths than nodes");
		free(f.frame_of);
		free(f.part_of);
		tree_parts_free(parts);
		tree_deinit(&whole);
	}
}

static void expect_same_node(const struct tree_node *got, const struct tree_node *expected)
{
	cr_assert(got->frame == expected->frame && got->label == expected->label);
	cr_expect_eq(got->depth, expected->depth);
	cr_expect_eq(got->self_value, expected->self_value);
	cr_expect_eq(got->total_value, expected->total_value);
	cr_expect_eq(got->self_samples, expected->self_samples);
	cr_expect_eq(got->total_samples, expected->total_samples);
	cr_expect(got->jit_samples == expected->jit_samples && got->jit == expected->jit);
}

/* @whole without what is narrower than @min. */
static void expect_pruned(const struct tree *whole, const struct tree *got, double min,
			  bool by_samples)
{
	uint32_t i = 0, at = 0, skipped_to = 0;
	uint64_t left_out = 0, told = 0;

	do {
		const struct tree_node *node = &whole->nodes[i];
		bool narrow = (double)(by_samples ? node->total_samples : node->total_value) < min;

		if (i == skipped_to)
			skipped_to = 0;
		if (i && narrow && !skipped_to) {
			skipped_to = tree_skip(whole, i);
			if (!skipped_to)
				skipped_to = UINT32_MAX; /* up to the end */
		}
		if (!skipped_to) {
			expect_same_node(&got->nodes[at], node);
			at = tree_next(got, at);
		} else {
			left_out++;
		}
		i = tree_next(whole, i);
	} while (i);
	cr_expect_eq(at, 0, "no further nodes");
	cr_expect_eq(got->n_left_out, left_out);
	for (i = 0; i < got->n_nodes; i++)
		told += got->nodes[i].n_left_out;
	cr_expect_eq(told, left_out, "each is told of one node");
	cr_expect_eq(got->n_nodes + left_out, whole->n_nodes);
}

Test(tree, narrow_nodes_are_left_out)
{
	for (unsigned int variant = 0; variant < 60; variant++) {
		bool by_samples = variant >= 40;
		struct tree_options opts = {
			.inverted = variant & 1,
			.split = variant / 2 % 5,
		};
		struct tree whole, got;
		uint64_t total;

		if (variant == 40) { /* all values are 0 */
			teardown();
			setup();
		}
		if (by_samples) {
			builder_sample(&b, thread, builder_path(&b, variant & 4 ? "a|b" : "a|c|d"),
				       0, 0);
		} else {
			builder_add_random(&b, variant + 1, 100);
			merged_add(&b, thread, merged_foo(&b, 4, variant % 2 ? FRAME_YJIT : 0), 1,
				   0);
		}
		builder_finish(&b);
		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &whole), 0);
		opts.min_percent = variant % 7 * 5 + 0.5;
		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &got), 0);
		total = by_samples ? whole.nodes[0].total_samples : whole.nodes[0].total_value;
		cr_assert_eq(whole.nodes[0].total_value == 0, by_samples);
		expect_pruned(&whole, &got, (double)total * opts.min_percent / 100, by_samples);
		tree_deinit(&whole);
		tree_deinit(&got);
	}
}

/* Waits are exact: what is exact of a node is what the node of a tree of waits alone has. */
static void expect_exact(const struct tree *t, const struct tree *waits)
{
	size_t mixed = 0, none = 0;
	uint32_t i = 0, at = 0;

	do {
		const struct tree_node *node = &t->nodes[i];
		const struct tree_exact exact = tree_exact_of(t, i);

		i = tree_next(t, i);
		mixed += exact.samples && exact.samples < node->total_samples;
		none += !exact.samples;
		if (!exact.samples) {
			cr_expect_eq(exact.value, 0);
			continue;
		}
		cr_assert(node->frame == waits->nodes[at].frame &&
			  node->label == waits->nodes[at].label);
		cr_expect_eq(node->depth, waits->nodes[at].depth);
		cr_expect_eq(exact.samples, waits->nodes[at].total_samples);
		cr_expect_eq(exact.value, waits->nodes[at].total_value);
		at = tree_next(waits, at);
	} while (i);
	cr_expect_eq(at, 0, "no further nodes");
	cr_expect(mixed && none);
}

Test(tree, what_is_exact)
{
	const struct view_filter all = { .stack = STACK_ALL };
	const struct view_filter only = { .stack = STACK_ALL, .states = ~STATE_SET_CPU };
	uint64_t seed = 11;

	builder_event(&b, EVENT_WALL, BUILDER_PERIOD);
	for (unsigned int variant = 0; variant < 20; variant++) {
		struct tree_options opts = {
			.by_line = variant & 1,
			.inverted = variant & 2,
			.split = variant / 4,
			.exact = true,
		};
		struct tree t, waits;

		builder_add_random(&b, variant + 1, 60);
		for (size_t i = 0; i < 40; i++) {
			uint32_t stack = builder_random(&seed, (uint32_t)b.out.profile.n_stacks);

			if (!profile_stack_waits(&b.out.profile, stack))
				builder_sample(&b, builder_random(&seed, 2) ? thread : 0,
					       builder_reason(&b, stack, REASON_WAIT_NETWORK),
					       builder_random(&seed, 1000), 0);
		}
		builder_finish(&b);
		cr_assert_eq(tree_build(&b.out.profile, &all, &opts, &t), 0);
		opts.exact = false;
		cr_assert_eq(tree_build(&b.out.profile, &only, &opts, &waits), 0);
		expect_exact(&t, &waits);
		cr_expect_null(waits.exact, "it was not asked for");
		tree_deinit(&t);
		tree_deinit(&waits);
	}
}

/* Samples of no time are of no state. */
static uint32_t next_with_value(const struct tree *t, uint32_t node)
{
	do
		node = tree_next(t, node);
	while (node && !t->nodes[node].total_value);
	return node;
}

/* What each node of @t has of @part, whose samples alone @only is of: the nodes of one are the
 * other's. */
static void expect_state(const struct tree *t, const struct tree *only, unsigned int part)
{
	uint32_t i = 0, at = 0;

	do {
		const struct tree_states *of = &t->states[i];
		const struct tree_node *node = &t->nodes[i];

		i = tree_next(t, i);
		if (!of->total[part])
			continue;
		cr_assert(node->frame == only->nodes[at].frame &&
			  node->label == only->nodes[at].label &&
			  node->depth == only->nodes[at].depth);
		cr_expect_eq(of->total[part], only->nodes[at].total_value);
		cr_expect_eq(of->self[part], only->nodes[at].self_value);
		at = next_with_value(only, at);
	} while (i);
	cr_expect_eq(at, 0, "no further nodes");
}

static void expect_all_states(const struct tree *t)
{
	for (size_t i = 0; i < t->n_nodes; i++) {
		uint64_t self = 0, total = 0;

		for (size_t part = 0; part < STATE_PARTS; part++) {
			self += t->states[i].self[part];
			total += t->states[i].total[part];
		}
		cr_assert_eq(total, t->nodes[i].total_value, "node %zu", i);
		cr_assert_eq(self, t->nodes[i].self_value, "node %zu", i);
	}
}

/* A third of the samples waits, for the network or the disk, one of three with the GVL. */
static void add_waits(uint64_t *seed)
{
	for (size_t i = 0; i < 40; i++) {
		uint32_t stack = builder_random(seed, (uint32_t)b.out.profile.n_stacks);

		if (profile_stack_waits(&b.out.profile, stack))
			continue;
		if (i % 3 == 0)
			stack = builder_reason(&b, stack, REASON_GVL_HELD);
		stack = builder_reason(&b, stack, i & 1 ? REASON_WAIT_NETWORK : REASON_WAIT_DISK);
		builder_sample(&b, builder_random(seed, 2) ? thread : 0, stack,
			       1 + builder_random(seed, 1000), 0);
	}
}

Test(tree, states)
{
	static const struct {
		unsigned int part;
		uint64_t set;
	} parts[] = {
		{ STATE_USER, 1u << STATE_USER },
		{ STATE_SYSTEM, 1u << STATE_SYSTEM },
		{ STATE_MINOR_FAULT, 1u << STATE_MINOR_FAULT },
		{ STATE_NETWORK, 1u << STATE_NETWORK },
		{ STATE_DISK, 1u << STATE_DISK },
		{ STATE_PART_HELD, STATE_SET_HELD },
	};
	uint64_t seed = 12;

	for (unsigned int variant = 0; variant < 40; variant++) {
		struct tree_options opts = {
			.inverted = variant & 1,
			.split = variant / 2 % 5,
			.states = true,
		};
		struct tree t, only;

		builder_add_random(&b, variant + 1, 60);
		add_waits(&seed);
		builder_finish(&b);
		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &t), 0);
		expect_all_states(&t);
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			const struct view_filter f = { .states = parts[i].set };

			opts.states = false;
			cr_assert_eq(tree_build(&b.out.profile, &f, &opts, &only), 0);
			expect_state(&t, &only, parts[i].part);
			cr_expect_null(only.states, "it was not asked for");
			tree_deinit(&only);
		}
		tree_deinit(&t);
		opts.states = true;
		opts.min_percent = 5;
		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &t), 0);
		cr_expect_gt(t.n_left_out, 0);
		expect_all_states(&t);
		tree_deinit(&t);
	}
}

/* Sums wrap: what is below a narrow node may be wide. */
Test(tree, what_is_below_a_narrow_node_is_left_out)
{
	static const struct tree_options narrow = { .min_percent = 1 };
	struct tree whole, got;

	builder_sample(&b, thread, builder_path(&b, "a|b"), 1ull << 63, 0);
	builder_sample(&b, thread, builder_path(&b, "a|c"), (1ull << 63) + 1, 0);
	builder_sample(&b, thread, builder_path(&b, "d"), 999, 0);
	builder_finish(&b);
	cr_assert_eq(tree_build(&b.out.profile, NULL, &plain, &whole), 0);
	cr_assert_eq(tree_build(&b.out.profile, NULL, &narrow, &got), 0);
	expect_pruned(&whole, &got, 10, false);
	cr_expect_eq(got.n_nodes, 2);
	tree_deinit(&whole);
	tree_deinit(&got);
}

Test(tree, parts_need_a_split_and_threads)
{
	static const struct tree_options by_process = { .split = TREE_SPLIT_PROCESS };
	struct tree_parts *parts = NULL;

	builder_add(&b, thread, builder_path(&b, "a"), 1);
	builder_finish(&b);
	cr_expect_eq(tree_parts_new(&b.out.profile, NULL, &plain, &parts), -EINVAL);
	b.out.profile.by_thread = false;
	cr_expect_eq(tree_parts_new(&b.out.profile, NULL, &by_process, &parts), -EINVAL);
	cr_expect_null(parts);
	b.out.profile.by_thread = true;
	tree_parts_free(NULL);
}

/* The order of samples in the file is chance; the picture must not depend on it. */
Test(tree, order_of_samples_does_not_matter)
{
	struct tree t;
	char *forward, *backward;

	builder_add_random(&b, 5, 300);
	cr_assert_eq(tree_build(&b.out.profile, NULL, &plain, &t), 0);
	forward = render(&t);
	tree_deinit(&t);
	for (size_t i = 0, j = b.out.profile.n_samples - 1; i < j; i++, j--) {
		struct profile_sample tmp = b.out.profile.samples[i];

		b.out.profile.samples[i] = b.out.profile.samples[j];
		b.out.profile.samples[j] = tmp;
	}
	builder_select(&b, 0, 0);
	cr_assert_eq(tree_build(&b.out.profile, NULL, &plain, &t), 0);
	backward = render(&t);
	tree_deinit(&t);
	cr_expect_str_eq(forward, backward);
	free(forward);
	free(backward);
}

Test(tree, deep_stacks)
{
	uint32_t frame = builder_frame(&b, FRAME_RUBY, "deep", "/app/x.rb", 1, 1), stack = 0;

	for (size_t i = 0; i < RBPF_FILE_MAX_DEPTH; i++)
		stack = builder_stack(&b, stack, frame);
	builder_add(&b, thread, stack, 2);
	for (unsigned int inverted = 0; inverted < 2; inverted++) {
		const struct tree_options opts = { .inverted = inverted };
		struct tree t;

		cr_assert_eq(tree_build(&b.out.profile, NULL, &opts, &t), 0);
		assert_sane_tree(&t);
		cr_expect_eq(t.n_nodes, RBPF_FILE_MAX_DEPTH + 1);
		cr_expect_eq(t.nodes[RBPF_FILE_MAX_DEPTH].self_samples, 2);
		tree_deinit(&t);
	}
}

/* Compiled code ran a method that is not shown: of the functions that are, none is compiled. */
Test(tree, compiled_code_of_frames_that_are_hidden)
{
	const struct view_filter native = { .stack = STACK_NATIVE }, ruby = { .stack = STACK_RUBY };

	merged_add(&b, thread, merged_zlib(&b, merged_foo(&b, 4, FRAME_YJIT)), 3, 0);
	builder_finish(&b);
	for (int inverted = 0; inverted < 2; inverted++) {
		const struct tree_options opts = { .inverted = inverted };
		uint64_t compiled = 0;
		struct tree t;

		cr_assert_eq(tree_build(&b.out.profile, &native, &opts, &t), 0);
		cr_expect_gt(t.n_nodes, 3);
		for (uint32_t i = 0; i < t.n_nodes; i++)
			cr_expect(!t.nodes[i].jit && !t.nodes[i].jit_samples, "node %u", i);
		tree_deinit(&t);
		cr_assert_eq(tree_build(&b.out.profile, &ruby, &opts, &t), 0);
		for (uint32_t i = 0; i < t.n_nodes; i++)
			compiled += t.nodes[i].jit_samples;
		cr_expect_eq(compiled, 3, "of the method itself it is told");
		tree_deinit(&t);
	}
}
