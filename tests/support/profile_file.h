/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a profile of profile_builder.h into a file, for tests of the commands that read one.
 */
#ifndef RBPF_TESTS_PROFILE_FILE_H
#define RBPF_TESTS_PROFILE_FILE_H

#include "profile/recorder.h"
#include "support/profile_builder.h"

static inline uint32_t profile_file_str(struct recorder *rec, const struct profile *p, uint32_t str)
{
	uint32_t id = 0;
	size_t len;
	const char *s = intern_get(&p->strings, str, &len);

	builder_must(sink_string(recorder_sink(rec), s, len, &id));
	return id;
}

/* Equal definitions have equal ids in both, for each is written once and in the same order. */
static inline void profile_file_definitions(struct recorder *rec, const struct profile *p)
{
	struct sink *sink = recorder_sink(rec);
	uint32_t id = 0;

	for (size_t i = 0; i < p->n_processes; i++) {
		struct profile_process def = p->processes[i];

		def.exe = profile_file_str(rec, p, def.exe);
		def.cmdline = profile_file_str(rec, p, def.cmdline);
		def.ruby_version = profile_file_str(rec, p, def.ruby_version);
		def.cgroup = profile_file_str(rec, p, def.cgroup);
		def.container = profile_file_str(rec, p, def.container);
		def.attributes = profile_file_str(rec, p, def.attributes);
		builder_must(sink_process(sink, &def, &id));
	}
	for (size_t i = 0; i < p->n_threads; i++)
		builder_must(sink_thread(sink, p->threads[i].process, p->threads[i].tid,
					 profile_file_str(rec, p, p->threads[i].name), &id));
	for (size_t i = 0; i < p->n_modules; i++) {
		struct profile_module def = p->modules[i];

		def.path = profile_file_str(rec, p, def.path);
		def.build_id = profile_file_str(rec, p, def.build_id);
		builder_must(sink_module(sink, &def, &id));
	}
	for (size_t i = 0; i < p->n_frames; i++) {
		struct profile_frame def = p->frames[i];

		def.name = profile_file_str(rec, p, def.name);
		def.file = profile_file_str(rec, p, def.file);
		def.raw_name = 0;
		builder_must(sink_frame(sink, &def, &id));
	}
	for (size_t i = 1; i < p->n_stacks; i++)
		builder_must(sink_stack(sink, p->stacks[i].parent, p->stacks[i].frame, &id));
}

/* Equal definitions have equal ids here, too. */
static inline void profile_file_requests(struct recorder *rec, const struct profile *p)
{
	uint32_t id = 0;

	for (size_t i = 1; i < p->n_requests; i++) {
		struct profile_request_kind kind = *profile_request_kind(p, p->requests[i].kind);

		kind.framework = profile_file_str(rec, p, kind.framework);
		kind.name = profile_file_str(rec, p, kind.name);
		builder_must(sink_request(recorder_sink(rec), p->requests[i].thread, &kind, &id));
	}
}

/* Write @b, which is finished, to @path. */
static inline void profile_file_write(struct profile_builder *b, const char *path)
{
	const struct recorder_options opts = { .path = path, .force = true };
	const struct profile *p = &b->out.profile;
	struct recorder *rec;
	struct err err = { 0 };

	builder_must(recorder_open(&opts, &p->meta, &rec, &err));
	profile_file_definitions(rec, p);
	profile_file_requests(rec, p);
	for (size_t i = 0; i < p->n_kept; i++)
		builder_must(sink_sample(recorder_sink(rec), &p->samples[i]));
	builder_must(recorder_close(rec, &p->totals, &err));
}

#endif
