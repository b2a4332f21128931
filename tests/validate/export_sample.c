/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings whose exports are read by their real consumers (export.mjs).
 *
 * usage: export_sample awkward|merged|random|gc|states FILE
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "support/awkward.h"
#include "support/merged.h"
#include "support/profile_file.h"

/* Names of files and functions that break what puts them between quotes, blanks or brackets. */
static const char *const names[] = {
	"a\\b",
	"\\",
	"it's \"quoted\"",
	"`x`",
	"%s%n%d",
	"(eval)",
	"(paren",
	"paren)",
	"x (y) z",
	"a->b",
	"f+0x12",
	"a=b",
	"fn=(1) x",
	"calls=1 2",
	"1 2",
	"<html>&amp;",
	"operator<<",
	"std::vec<T>::f(int)",
	"$x{y}",
	"x\u200d\u0301",
	"\U0001f468\u200d\U0001f469",
	"Foo::Bar<Baz>#qux!",
	"_[k]",
	"ünï/cödé",
	"0x10",
	"+3",
	"-1",
	"*",
	"ob=(2)",
};

static void build_names(struct profile_builder *b)
{
	uint32_t process = builder_process(b, 77, "/opt/a b/ruby: x \"y\" (z)");
	uint32_t main = builder_frame(b, FRAME_RUBY, "<main>", "/app/a b.rb", 3, 1);
	uint32_t outer = builder_stack(b, 0, main);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *other = names[(i + 7) % ARRAY_SIZE(names)];
		uint32_t thread = builder_thread(b, process, 77 + (uint32_t)i, names[i]);
		uint32_t stack = builder_stack(b, outer,
					       builder_frame(b, FRAME_RUBY, names[i], other, 5, 2));

		builder_add(b, thread, stack, 1);
		stack = builder_stack(b, stack,
				      builder_frame(b, FRAME_CFUNC, other, "/app/x.rb", 5, 0));
		builder_add(b, thread, stack, 2);
		stack = builder_stack(b, stack,
				      builder_frame(b, FRAME_NATIVE, names[i], other, 0, 0));
		builder_add(b, thread, stack, 1);
		stack = builder_stack(b, stack, main);
		builder_add(b, thread, stack, 1);
	}
}

static void build_gc(struct profile_builder *b)
{
	static const char *const phases[] = { "(marking)", "(sweeping)", NULL };

	for (uint32_t i = 0; i < 6; i++) {
		uint32_t process = builder_process(b, 100 + i / 2, "puma: cluster worker");
		uint32_t thread = builder_thread(b, process, 100 + i, "puma srv tp 001");
		uint32_t stack = builder_path(b, i % 2 ? "<main>|a|b" : "<main>|b|a|b");

		builder_add(b, thread, stack, 3);
		for (uint32_t k = 0; k < 5; k++)
			builder_sample(b, thread, builder_gc(b, stack, phases[k % 3]),
				       BUILDER_PERIOD + k, SAMPLE_GC);
	}
}

/*
 * Two threads of a server, by turns: each request has waits in it, and there are waits between
 * them. The second thread has requests without a name, and one with a name that is no easier than
 * those above.
 */
static void build_states(struct profile_builder *b)
{
	static const enum frame_reason reasons[] = { REASON_WAIT_GVL, REASON_WAIT_NETWORK,
						     REASON_WAIT_LOCK, REASON_WAIT_CPU,
						     REASON_WAIT_TIMER };
	uint32_t process = builder_process(b, 300, "puma: cluster worker 0");
	uint32_t threads[2], outer = builder_path(b, "<main>|Server#run");
	uint32_t method = builder_stack(
		b, outer, builder_frame(b, FRAME_RUBY, "Order#total", "/app/order.rb", 9, 4));
	uint64_t now;

	builder_states(b);
	for (uint32_t i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = builder_thread(b, process, 300 + i, "puma srv tp 00");
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t thread = threads[i % 2], stack = i % 3 ? method : outer;
		uint32_t request = builder_request(b, thread, i % 2 ? "" : "rails",
						   i % 4 == 1 ? ""
						   : i % 2    ? names[i % ARRAY_SIZE(names)]
							      : "OrdersController#index");

		builder_state(b, thread, builder_reason(b, outer, REASON_WAIT_IDLE), BUILDER_WAIT,
			      1234567 + i, 0);
		for (uint32_t k = 0; k < i % 7; k++) {
			builder_state(b, thread, stack, BUILDER_CPU, BUILDER_PERIOD, request);
			builder_state(b, thread, builder_reason(b, stack, reasons[(i + k) % 5]),
				      BUILDER_WAIT, 1000 * (i + 1) * (k + 1) + 1, request);
			builder_state(b, thread, stack, BUILDER_GVL, 100 + k, request);
		}
		if (i % 7 != 4)
			continue;
		/* Two that were told late, both from within the period of the last tick. */
		now = b->now;
		for (uint32_t k = 0; k < 2; k++) {
			b->now = now - BUILDER_PERIOD + k * 3000000;
			builder_state(b, thread, builder_reason(b, stack, reasons[k]), BUILDER_WAIT,
				      2000000, request);
		}
		b->now = now;
	}
}

static void build(struct profile_builder *b, const char *what)
{
	if (!strcmp(what, "awkward")) {
		awkward_build(b);
		build_names(b);
	} else if (!strcmp(what, "merged")) {
		merged_build(b);
	} else if (!strcmp(what, "states")) {
		build_states(b);
	} else if (!strcmp(what, "gc")) {
		build_gc(b);
	} else {
		for (uint64_t seed = 1; seed < 4; seed++)
			builder_add_random(b, seed, 700);
	}
}

int main(int argc, char **argv)
{
	struct profile_builder b;

	if (argc != 3)
		return 2;
	builder_init(&b);
	b.out.profile.meta.command = (char *)"export_sample";
	b.out.profile.meta.start_realtime_ns = 1700000000ull * 1000000000;
	build(&b, argv[1]);
	builder_finish(&b);
	profile_file_write(&b, argv[2]);
	b.out.profile.meta.command = NULL;
	builder_deinit(&b);
	return 0;
}
