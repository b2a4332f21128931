/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names that break exporters, each for a reason met in practice.
 */
#ifndef RBPF_TESTS_AWKWARD_H
#define RBPF_TESTS_AWKWARD_H

#include "support/profile_builder.h"

#define AWKWARD_HUGE  65536 /* bytes of the longest name */
#define AWKWARD_DEPTH 200

/* Paths for builder_path(), root first. */
static const char *const awkward_paths[] = {
	"<main>|Foo",
	"<main>|Foo#bar",
	"<main>|Foo.baz",
	"<main>|Foo|x",
	"<main>|block (2 levels) in <top (required)>",
	"<main>|Integer#<=>",
	"<main>|#<Class:Foo>.build \"x\" & y",
	"<main>|Foo#a;b",
	"<main>|Worker 12",
	"<main>|Worker 12|inner",
	"<main>|Worker\t1.5",
	"<main>|",
	"<main>||below the unnamed",
	"<main>|Größe#straße|日本語#メソッド|💎#🔥",
	"<main>|a  b\tc|]]>",
	"<main>|&amp;<![CDATA[",
	"<main>|bad \xff\xfe\x01\x7f bytes",
	"<main>| leading and trailing ",
	"<main>|# comment",
	"<main>|Very::Long::Namespace::Indeed#and_a_method_name_that_goes_on",
};

/* One sample of each and one more each time, in a thread with a name that is no easier. */
static inline void awkward_build(struct profile_builder *b)
{
	uint32_t process = builder_process(b, 4242, "/opt/my app/bin/puma: cluster worker");
	uint32_t thread = builder_thread(b, process, 4242, "ruby: puma w 1");
	uint32_t stack = builder_path(b, "<main>");
	uint32_t walk = builder_frame(b, FRAME_RUBY, "Tree#walk", "(eval at /app/a b.rb:3)", 5, 4);
	char *huge = malloc(AWKWARD_HUGE + 1);

	b->out.profile.processes[process].exe = builder_str(b, "/opt/my app/bin/puma:");
	for (size_t i = 0; i < ARRAY_SIZE(awkward_paths); i++)
		builder_add(b, thread, builder_path(b, awkward_paths[i]), i + 1);
	for (size_t i = 0; i < AWKWARD_DEPTH; i++)
		stack = builder_stack(b, stack, walk);
	builder_add(b, thread, stack, 20);
	if (!huge)
		abort();
	memset(huge, 'x', AWKWARD_HUGE);
	huge[AWKWARD_HUGE] = '\0';
	builder_add(b, thread, builder_path(b, huge), 12);
	free(huge);
	builder_add(b, thread, 0, 2);
}

#endif
