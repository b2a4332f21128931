/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <libdeflate.h>

#include "base/err.h"
#include "export/export.h"
#include "export/origin.h"
#include "support/profile_builder.h"

static struct profile_builder b;

static void setup(void)
{
	builder_init(&b);
}

static void teardown(void)
{
	builder_deinit(&b);
}

TestSuite(origin, .init = setup, .fini = teardown);

static uint32_t version(const char *s)
{
	uint32_t id = 0;

	cr_assert_eq(intern_add(&b.out.profile.strings, s, strlen(s), &id, NULL), 0);
	return id;
}

/* Each version once, in the order of the processes; one of which no Ruby was found has none. */
Test(origin, versions_and_what_is_missing)
{
	const char *const versions[] = { "3.3.6", "2.7.4", "", "3.3.6" };
	struct profile *p = &b.out.profile;
	struct buf out = BUF_INIT;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t thread = builder_thread(&b, builder_process(&b, 40 + i, "ruby"), 40 + i,
						 "t");

		builder_add(&b, thread, builder_path(&b, "<main>"), 1);
	}
	builder_finish(&b);
	for (uint32_t i = 0; i < 4; i++)
		p->processes[i].ruby_version = *versions[i] ? version(versions[i]) : 0;
	p->totals.truncated = 1;
	p->totals.unresolved = 22;
	p->totals.failed = 333;
	p->totals.lost = 4444;
	origin_add(p, &out);
	cr_assert(!buf_failed(&out));
	cr_expect_str_eq(strchr(buf_str(&out), ','),
			 ", ruby 3.3.6, 2.7.4, 4 samples (1 truncated, 22 unresolved, 333 failed), "
			 "4,444 lost");
	buf_deinit(&out);
}

/* What a compressed file holds, in place of it. */
static void unzip(struct buf *file)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	static char bytes[1 << 16];
	size_t n;

	cr_assert_eq(libdeflate_gzip_decompress(d, file->data, file->len, bytes, sizeof(bytes), &n),
		     0);
	libdeflate_free_decompressor(d);
	buf_reset(file);
	buf_add(file, bytes, n);
}

/*
 * Folded stacks and sampling-prof have no place for it, json and flame have each part of it by
 * itself.
 */
Test(origin, every_format_with_a_place_for_it)
{
	static const char *const formats[] = { "speedscope",  "firefox", "pprof",     "callgrind",
					       "perf-script", "chrome",	 "stackprof", "dot" };
	const struct export_options opts = { 0 };
	struct buf line = BUF_INIT;
	struct err err = { 0 };

	builder_add(&b, builder_thread(&b, builder_process(&b, 40, "ruby"), 40, "t"),
		    builder_path(&b, "<main>"), 3);
	builder_finish(&b);
	b.out.profile.processes[0].ruby_version = version("3.3.6");
	b.out.profile.totals.lost = 4444;
	origin_add(&b.out.profile, &line);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct exporter *e = exporter_find(formats[i]);
		struct buf out = BUF_INIT;

		cr_assert_eq(e->run(&b.out.profile, &opts, &out, &err), 0, "%s: %s", formats[i],
			     err.msg);
		if (e->binary)
			unzip(&out);
		cr_expect(memmem(out.data, out.len, line.data, line.len), "%s", formats[i]);
		buf_deinit(&out);
	}
	buf_deinit(&line);
}
