/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <jansson.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/function.h"
#include "export/xml.h"
#include "support/awkward.h"
#include "support/profile_builder.h"
#include "support/merged.h"
#include "view/filter.h"

Test(export, table)
{
	cr_expect_geq(n_exporters, 3);
	for (size_t i = 0; i < n_exporters; i++) {
		const struct exporter *e = &exporters[i];

		cr_expect_eq(exporter_find(e->name), e);
		cr_expect_eq(e->suffix[0], '.', "%s", e->name);
		cr_expect_not_null(e->run);
		cr_expect_str_not_empty(e->description);
	}
	cr_expect_eq(exporter_find("svg"), exporter_find("flame"), "also by suffix");
	cr_expect_null(exporter_find("fold"));
	cr_expect_null(exporter_find(""));
}

/* ---- functions ---- */

/* A module is no source file: readers would print its bytes as text. */
Test(export, modules_are_no_source_files)
{
	static const struct {
		const char *format;
		bool has_path;
	} formats[] = { { "stackprof", false },
			{ "callgrind", false },
			{ "sampling-prof", false },
			{ "speedscope", true },
			{ "perf-script", true } };
	const struct export_options opts = { 0 };
	struct profile_builder b;
	struct function f;
	struct err err = { 0 };
	uint32_t frame;

	builder_init(&b);
	frame = builder_frame(&b, FRAME_NATIVE, "malloc", "/lib/libc.so.6", 0, 0);
	builder_add(&b, builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x"),
		    builder_stack(&b, 0, frame), 1);
	builder_finish(&b);
	function_of_frame(&b.out.profile, frame, &f);
	cr_expect_str_eq(f.name, "malloc");
	cr_expect_str_eq(f.file, "");
	cr_expect_str_eq(f.module, "/lib/libc.so.6");
	cr_expect_str_eq(function_place(&f), "/lib/libc.so.6");
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct buf out = BUF_INIT;

		cr_assert_eq(
			exporter_find(formats[i].format)->run(&b.out.profile, &opts, &out, &err), 0,
			"%s", err.msg);
		cr_expect(strstr(buf_str(&out), "malloc"));
		cr_expect_eq(!!strstr(buf_str(&out), "/lib/libc.so.6"), formats[i].has_path, "%s",
			     formats[i].format);
		buf_deinit(&out);
	}
	builder_deinit(&b);
}

/* ---- json ---- */

static json_t *export_and_parse(struct profile_builder *b, const struct view_filter *f)
{
	const struct export_options opts = { .filter = f };
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	json_error_t why;
	json_t *root;

	builder_finish(b);
	cr_assert_eq(exporter_find("json")->run(&b->out.profile, &opts, &out, &err), 0, "%s",
		     err.msg);
	cr_expect_eq(out.data[out.len - 1], '\n');
	root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &why);
	cr_assert_not_null(root, "%s", why.text);
	buf_deinit(&out);
	return root;
}

static json_int_t int_of(const json_t *array, size_t i, const char *key)
{
	const json_t *value = json_object_get(json_array_get(array, i), key);

	cr_assert(json_is_integer(value), "%s", key);
	return json_integer_value(value);
}

static const char *str_of(const json_t *array, size_t i, const char *key)
{
	const json_t *value = json_object_get(json_array_get(array, i), key);

	cr_assert(json_is_string(value), "%s", key);
	return json_string_value(value);
}

Test(export, json_is_the_whole_recording)
{
	struct profile_builder b;
	const struct profile *p = &b.out.profile;
	json_t *root, *list, *approximate, *attributes;

	builder_init(&b);
	awkward_build(&b);
	builder_add_random(&b, 3, 100);
	b.out.profile.samples[0].flags = SAMPLE_KERNEL | SAMPLE_PAGE_FAULT | SAMPLE_FAILED |
					 SAMPLE_GC;
	b.out.profile.samples[0].value = 77;
	builder_select(&b, 0, 0);
	builder_approximate(&b, 0);
	builder_contain(&b, 1, "0123456789abcdef", 17);
	b.out.profile.processes[1].uid = 1000;
	b.out.profile.processes[1].attributes = builder_str(&b, "service.name=shop%2C 2,a.b=%0Ac");
	root = export_and_parse(&b, NULL);
	cr_expect_str_eq(json_string_value(json_object_get(root, "format")), "rbpf-recording");
	cr_expect(json_is_true(json_object_get(root, "complete")));

	list = json_object_get(root, "processes");
	cr_assert_eq(json_array_size(list), p->n_processes);
	cr_expect_eq(int_of(list, 0, "pid"), 4242);
	cr_expect(json_is_null(json_object_get(json_array_get(list, 0), "parent")));
	cr_expect_str_eq(str_of(list, 0, "ruby"), "3.3.6");
	cr_expect_str_eq(str_of(list, 0, "container"), "");
	cr_expect_str_eq(str_of(list, 0, "cgroup"), "");
	cr_expect_eq(int_of(list, 0, "ns_pid"), 0);
	cr_expect(json_is_null(json_object_get(json_array_get(list, 0), "uid")));
	cr_expect_str_eq(str_of(list, 1, "container"), "0123456789abcdef");
	cr_expect_str_eq(str_of(list, 1, "cgroup"), "/docker/0123456789abcdef");
	cr_expect_eq(int_of(list, 1, "ns_pid"), 17);
	cr_expect_eq(int_of(list, 1, "uid"), 1000);
	attributes = json_object_get(json_array_get(list, 1), "attributes");
	cr_expect_eq(json_object_size(attributes), 2);
	cr_expect_str_eq(json_string_value(json_object_get(attributes, "service.name")), "shop, 2");
	cr_expect_str_eq(json_string_value(json_object_get(attributes, "a.b")), "\uFFFDc");
	attributes = json_object_get(json_array_get(list, 0), "attributes");
	cr_expect(json_is_object(attributes) && !json_object_size(attributes));

	list = json_object_get(root, "threads");
	cr_assert_eq(json_array_size(list), p->n_threads);
	cr_expect_str_eq(str_of(list, 0, "name"), "ruby: puma w 1");

	list = json_object_get(root, "frames");
	cr_assert_eq(json_array_size(list), p->n_frames);
	for (size_t i = 0; i < p->n_frames; i++) {
		cr_expect_str_eq(str_of(list, i, "kind"), frame_kind_name(p->frames[i].kind));
		cr_expect_str_eq(str_of(list, i, "label"), profile_str(p, p->frames[i].name));
		cr_expect_str_eq(str_of(list, i, "path"), profile_str(p, p->frames[i].file));
		cr_expect_eq(int_of(list, i, "line"), p->frames[i].line);
		approximate = json_object_get(json_array_get(list, i), "approximate");
		if (i == p->n_frames - 1)
			cr_expect(json_is_true(approximate));
		else
			cr_expect_null(approximate, "an additional member where it is true");
	}

	list = json_object_get(root, "stacks");
	cr_assert_eq(json_array_size(list), p->n_stacks);
	cr_expect(json_is_null(json_object_get(json_array_get(list, 0), "frame")));
	for (size_t i = 1; i < p->n_stacks; i++) {
		cr_expect_eq(int_of(list, i, "parent"), p->stacks[i].parent);
		cr_expect_eq(int_of(list, i, "frame"), p->stacks[i].frame);
	}

	list = json_object_get(root, "samples");
	cr_assert_eq(json_array_size(list), p->n_samples);
	for (size_t i = 0; i < p->n_samples; i++) {
		cr_expect_eq((uint64_t)int_of(list, i, "ts_ns"), p->samples[i].ts);
		cr_expect_eq((uint64_t)int_of(list, i, "value"), p->samples[i].value);
		cr_expect_eq(int_of(list, i, "thread"), p->samples[i].thread);
		cr_expect_eq(int_of(list, i, "stack"), p->samples[i].stack);
	}
	list = json_object_get(json_array_get(list, 0), "flags");
	cr_expect_str_eq(json_string_value(json_array_get(list, 0)), "kernel");
	cr_expect_str_eq(json_string_value(json_array_get(list, 1)), "failed");
	cr_expect_str_eq(json_string_value(json_array_get(list, 2)), "gc");
	cr_expect_str_eq(json_string_value(json_array_get(list, 3)), "page-fault");
	list = json_object_get(root, "totals");
	cr_expect_eq(json_integer_value(json_object_get(list, "gc_ns")), 77);
	json_decref(root);
	builder_deinit(&b);
}

Test(export, json_of_filtered_samples)
{
	const struct view_filter f = { .stack = STACK_RUBY };
	struct profile_builder b;
	uint32_t thread, a, native, inner;
	json_t *root, *list;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");
	a = builder_path(&b, "a");
	native = builder_stack(&b, a, builder_frame(&b, FRAME_NATIVE, "vm_exec", "", 0, 0));
	inner = builder_stack(&b, native, builder_frame(&b, FRAME_RUBY, "b", "", 0, 0));
	builder_add(&b, thread, native, 1);
	builder_add(&b, thread, inner, 3);
	builder_select(&b, 0, 2 * BUILDER_PERIOD);
	root = export_and_parse(&b, &f);
	list = json_object_get(root, "samples");
	cr_assert_eq(json_array_size(list), 2);
	cr_expect_eq(int_of(list, 0, "stack"), a, "the nearest that is shown");
	cr_expect_eq(int_of(list, 1, "stack"), inner);
	cr_expect_eq(int_of(json_object_get(root, "stacks"), inner, "parent"), a);
	json_decref(root);
	builder_deinit(&b);
}

Test(export, json_of_native_stacks)
{
	const struct view_filter f = { .stack = STACK_RUBY };
	struct profile_builder b;
	const struct profile *p = &b.out.profile;
	json_t *root, *list, *frame;
	uint32_t thread, inlined;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 1, "ruby"), 1, "x");
	inlined = merged_native(&b, 0, "f", "/lib/f.so", 0x1234, FRAME_INLINED);
	merged_add(&b, thread, inlined, 1, SAMPLE_GAP);
	merged_add(&b, thread, merged_vm(&b, inlined, "rb_vm_exec"), 1, 0);
	merged_add(&b, thread, merged_ruby(&b, 0, "a", 3, FRAME_YJIT), 1, 0);
	merged_add(&b, thread, merged_ruby(&b, 0, "a", 3, FRAME_ZJIT), 1, 0);
	merged_add(&b, thread, merged_other(&b, 0, FRAME_GAP, MERGED_UNMAPPED), 1, SAMPLE_GAP);
	p->modules[0].build_id = builder_str(&b, "c0ffee");
	root = export_and_parse(&b, NULL);
	list = json_object_get(root, "frames");
	cr_assert_eq(json_array_size(list), 5);
	frame = json_array_get(list, 0);
	cr_expect_str_eq(str_of(list, 0, "kind"), "native");
	cr_expect(json_is_true(json_object_get(frame, "inlined")));
	cr_expect_null(json_object_get(frame, "internal"));
	cr_expect_null(json_object_get(frame, "jit"));
	cr_expect_eq(int_of(list, 0, "address"), 0x1234);
	cr_expect_eq(int_of(list, 0, "module"), 0);
	cr_expect(json_is_true(json_object_get(json_array_get(list, 1), "internal")));
	cr_expect_str_eq(str_of(list, 2, "jit"), "yjit");
	cr_expect_str_eq(str_of(list, 3, "jit"), "zjit");
	cr_expect_str_eq(str_of(list, 4, "kind"), "gap");
	list = json_object_get(root, "modules");
	cr_expect_str_eq(str_of(list, 0, "path"), "/lib/f.so");
	cr_expect_str_eq(str_of(list, 0, "build_id"), "c0ffee");
	list = json_object_get(json_array_get(json_object_get(root, "samples"), 0), "flags");
	cr_expect_str_eq(json_string_value(json_array_get(list, 0)), "native");
	cr_expect_str_eq(json_string_value(json_array_get(list, 1)), "gap");
	json_decref(root);

	cr_assert_eq(stack_mode_prepare(&b.out.profile, STACK_RUBY), 0);
	root = export_and_parse(&b, &f);
	list = json_object_get(root, "samples");
	cr_expect_eq(int_of(list, 0, "stack"), p->n_stacks - 1, "what stands for it");
	cr_expect_eq(int_of(list, 2, "stack"), p->samples[2].stack);
	json_decref(root);
	builder_deinit(&b);
}

Test(export, json_of_nothing)
{
	struct profile_builder b;
	json_t *root;

	builder_init(&b);
	root = export_and_parse(&b, NULL);
	cr_expect_eq(json_array_size(json_object_get(root, "samples")), 0);
	cr_expect_eq(json_array_size(json_object_get(root, "stacks")), 1);
	json_decref(root);
	builder_deinit(&b);
}

/* ---- escapes ---- */

#define EXPECT_TEXT(call, expected)                                                                \
	do {                                                                                       \
		struct buf out = BUF_INIT;                                                         \
                                                                                                   \
		call;                                                                              \
		cr_expect_str_eq(buf_str(&out), expected);                                         \
		buf_deinit(&out);                                                                  \
	} while (0)

/* Exited with 0, with 7, by SIGKILL, by nobody knows what; and one that goes on. */
Test(export, json_tells_how_processes_ended)
{
	static const int statuses[] = { 0, 7 << 8, 9, -1 };
	struct profile_builder b;
	json_t *root, *list;

	builder_init(&b);
	for (uint32_t i = 0; i < 5; i++)
		builder_process(&b, 42 + i, "ruby");
	for (uint32_t i = 0; i < 4; i++)
		builder_must(sink_process_exit(&b.out.sink, i, 1000 + i, statuses[i]));
	root = export_and_parse(&b, NULL);
	list = json_object_get(root, "processes");
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(int_of(list, i, "exit_ns"), 1000 + (json_int_t)i);
		cr_expect_eq(int_of(list, i, "exit_status"), statuses[i]);
	}
	cr_expect_eq(int_of(list, 3, "exit_ns"), 1003);
	cr_expect(json_is_null(json_object_get(json_array_get(list, 3), "exit_status")));
	cr_expect_null(json_object_get(json_array_get(list, 4), "exit_ns"));
	cr_expect_null(json_object_get(json_array_get(list, 4), "exit_status"));
	json_decref(root);
	builder_deinit(&b);
}

Test(export, json_has_the_samples_that_pass_the_filter)
{
	struct view_filter f = VIEW_FILTER_INIT;
	struct profile_builder b;
	uint32_t thread, kept;
	json_t *root, *list;

	builder_init(&b);
	thread = builder_thread(&b, builder_process(&b, 42, "ruby"), 42, "ruby");
	kept = builder_path(&b, "<main>|Foo#bar");
	builder_add(&b, thread, kept, 3);
	builder_add(&b, thread, builder_path(&b, "<main>|Foo#bar|Baz#qux"), 2);
	cr_assert_eq(view_filter_regex(&f.exclude, &f.has_exclude, "qux", "x", NULL), 0);
	root = export_and_parse(&b, &f);
	list = json_object_get(root, "samples");
	cr_expect_eq(json_array_size(list), 3);
	for (size_t i = 0; i < json_array_size(list); i++)
		cr_expect_eq(int_of(list, i, "stack"), kept);
	json_decref(root);
	view_filter_deinit(&f);
	builder_deinit(&b);
}

Test(export, xml_escapes)
{
	EXPECT_TEXT(xml_escape(&out, "a<b>&\"c\"'"), "a&lt;b&gt;&amp;&quot;c&quot;'");
	EXPECT_TEXT(xml_escape(&out, "\x01\t\n\x7f"), "\ufffd\t\n\ufffd");
	EXPECT_TEXT(xml_escape(&out, "\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"), "\ufffd\ufffd\ufffd");
	EXPECT_TEXT(xml_escape(&out, "日本 💎"), "日本 💎");
	EXPECT_TEXT(xml_escape_n(&out, "a<b", 2), "a&lt;");
	EXPECT_TEXT(xml_escape(&out, ""), "");
}
