/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A flame graph to look at, and to test, without a recording: a Rails application as it might be
 * (rails.txt, in the folder of this file), names that break pictures, very deep stacks, or native
 * ones.
 *
 * usage, from the root of the repository:
 *	flame_sample rails|awkward|deep|merged [OPTION…] > out.svg
 *
 * OPTION: icicle, inverted, module, hash, thread, process or both.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/flame.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "support/merged.h"
#include "view/filter.h"

#define RAILS	      "tests/validate/rails.txt"
#define MAX_FUNCTIONS 200
#define MAX_CALLEES   8
#define RANDOM_SEED   88172645463325252ull

/* A line of rails.txt; the strings are parts of it. */
struct function {
	const char *kind, *name, *file;
	uint32_t line;
	struct {
		uint32_t percent;
		const char *callee;
	} calls[MAX_CALLEES];
};

struct program {
	struct function functions[MAX_FUNCTIONS];
	size_t n;
	uint64_t random;
};

static const char *field(char **rest)
{
	const char *s = strsep(rest, "|");

	return s ? s : "";
}

static void parse_function(char *line, struct function *f)
{
	f->kind = field(&line);
	f->name = field(&line);
	f->file = field(&line);
	f->line = (uint32_t)strtoul(field(&line), NULL, 10);
	for (size_t i = 0; i < MAX_CALLEES && line; i++) {
		char *call = (char *)field(&line);

		f->calls[i].percent = (uint32_t)strtoul(call, &call, 10);
		f->calls[i].callee = call + strspn(call, " ");
	}
}

static int read_program(struct program *prog)
{
	FILE *file = fopen(RAILS, "re");
	char *line = NULL;
	size_t cap = 0;

	if (!file) {
		perror("flame_sample: " RAILS);
		return -1;
	}
	while (getline(&line, &cap, file) > 0 && prog->n < MAX_FUNCTIONS) {
		line[strcspn(line, "\n")] = '\0';
		if (*line != '#')
			parse_function(strdup(line), &prog->functions[prog->n++]);
	}
	free(line);
	fclose(file);
	return 0;
}

static const struct function *find(const struct program *prog, const char *name)
{
	for (size_t i = 0; i < prog->n; i++)
		if (!strcmp(prog->functions[i].name, name))
			return &prog->functions[i];
	fprintf(stderr, "flame_sample: %s: no function '%s'\n", RAILS, name);
	exit(1);
}

static enum frame_kind kind_of(const char *name)
{
	for (unsigned int kind = 0; kind < FRAME_KIND_COUNT; kind++)
		if (!strcmp(frame_kind_name(kind), name))
			return kind;
	return FRAME_UNKNOWN;
}

/* Which callee the dice choose; NULL: the function itself. */
static const struct function *callee_of(struct program *prog, const struct function *f)
{
	uint32_t dice = builder_random(&prog->random, 100);

	for (size_t i = 0; i < MAX_CALLEES && f->calls[i].percent; i++) {
		if (dice < f->calls[i].percent)
			return find(prog, f->calls[i].callee);
		dice -= f->calls[i].percent;
	}
	return NULL;
}

static uint32_t random_stack(struct profile_builder *b, struct program *prog)
{
	uint32_t stack = 0;

	for (const struct function *f = prog->functions; f; f = callee_of(prog, f))
		stack = builder_stack(
			b, stack,
			builder_frame(b, kind_of(f->kind), f->name, f->file, f->line, f->line));
	return stack;
}

static int build_rails(struct profile_builder *b)
{
	static struct program prog = { .random = RANDOM_SEED };
	uint32_t threads[6], process = 0;

	if (read_program(&prog))
		return -1;
	for (uint32_t i = 0; i < ARRAY_SIZE(threads); i++) {
		char name[32];

		if (i % 3 == 0)
			process = builder_process(b, 4242 + i, "puma: cluster worker [shop]");
		snprintf(name, sizeof(name), "puma srv tp %03u", i % 3 + 1);
		threads[i] = builder_thread(b, process, 4250 + i, name);
	}
	for (size_t i = 0; i < 11876; i++) {
		uint32_t thread = threads[builder_random(&prog.random, ARRAY_SIZE(threads))];
		uint32_t stack = random_stack(b, &prog);
		bool unnamed = b->out.profile.frames[b->out.profile.stacks[stack].frame].kind ==
			       FRAME_UNKNOWN;

		builder_sample(b, thread, stack, 9500000 + builder_random(&prog.random, 1000000),
			       unnamed ? SAMPLE_UNRESOLVED : 0);
		b->now -= BUILDER_PERIOD - 2526000; /* four CPUs are busy */
	}
	return 0;
}

/* The same with waits, each with a stack of its own; most of the time there is nothing to do. */
static int build_waits(struct profile_builder *b)
{
	static const enum frame_reason reasons[] = {
		REASON_WAIT_NETWORK, REASON_WAIT_GVL,  REASON_WAIT_CPU,	  REASON_WAIT_LOCK,
		REASON_WAIT_DISK,    REASON_WAIT_PIPE, REASON_WAIT_TIMER, REASON_WAIT_FAULT,
	};
	const struct profile *p = &b->out.profile;
	uint64_t random = RANDOM_SEED;

	builder_states(b);
	b->out.profile.by_event = false;
	if (build_rails(b))
		return -1;
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t stack = builder_random(&random, (uint32_t)p->n_stacks - 1) + 1;

		if (profile_stack_waits(p, stack))
			continue;
		if (i % 10 == 0)
			stack = builder_reason(b, stack, REASON_GVL_HELD);
		stack = builder_reason(b, stack, reasons[i * i % ARRAY_SIZE(reasons)]);
		builder_sample(b, i % 6, stack, builder_random(&random, 40000000), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t pool = builder_path(b, "Puma::ThreadPool#spawn_thread");

		builder_sample(b, i, builder_reason(b, pool, REASON_WAIT_IDLE), 90000000000, 0);
	}
	return 0;
}

static void build_deep(struct profile_builder *b)
{
	uint32_t thread = builder_thread(b, builder_process(b, 7, "ruby deep.rb"), 7, "ruby");
	const uint32_t frames[] = {
		builder_frame(b, FRAME_RUBY, "Deep#odd?", "/app/deep.rb", 3, 2),
		builder_frame(b, FRAME_RUBY, "Deep#even?", "/app/deep.rb", 10, 9),
	};
	uint32_t stack = 0;

	for (size_t i = 0; i < 10000; i++) {
		stack = builder_stack(b, stack, frames[i % 2]);
		if (i % 100 == 99)
			builder_add(b, thread, stack, 1);
	}
}

static int build(struct profile_builder *b, const char *what)
{
	if (!strcmp(what, "rails"))
		return build_rails(b);
	if (!strcmp(what, "waits"))
		return build_waits(b);
	if (!strcmp(what, "deep")) {
		build_deep(b);
		return 0;
	}
	if (!strcmp(what, "merged")) {
		merged_build(b);
		return 0;
	}
	awkward_build(b);
	b->out.profile.totals.lost = 3;
	b->out.profile.complete = false;
	return 0;
}

int main(int argc, char **argv)
{
	struct view_filter filter = { .stack = STACK_MIXED };
	struct flame_options opts = { .command = "flame_sample", .filter = &filter };
	struct profile_builder b;
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	for (int i = 2; i < argc; i++) {
		opts.icicle |= !strcmp(argv[i], "icicle");
		opts.inverted |= !strcmp(argv[i], "inverted");
		if (!strcmp(argv[i], "module"))
			opts.color = FLAME_COLOR_MODULE;
		if (!strcmp(argv[i], "hash"))
			opts.color = FLAME_COLOR_HASH;
		if (!strcmp(argv[i], "thread"))
			opts.split = TREE_SPLIT_THREAD;
		if (!strcmp(argv[i], "process"))
			opts.split = TREE_SPLIT_PROCESS;
		if (!strcmp(argv[i], "both"))
			filter.stack = STACK_BOTH;
	}
	builder_init(&b);
	if (build(&b, argc > 1 ? argv[1] : "rails"))
		return 1;
	builder_finish(&b);
	if (stack_mode_prepare(&b.out.profile, filter.stack))
		return 1;
	if (flame_render(&b.out.profile, &opts, &out, &err)) {
		fprintf(stderr, "flame_sample: %s\n", err.msg);
		return 1;
	}
	fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	builder_deinit(&b);
	return 0;
}
