/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What holds for every struct profile, whatever file it was read from. For unit tests and fuzzers.
 */
#ifndef RBPF_TESTS_PROFILE_CHECK_H
#define RBPF_TESTS_PROFILE_CHECK_H

#include <stdio.h>

#include "base/utf8.h"
#include "profile/profile.h"
#include "profile/reason.h"

#define CHECK_PROFILE(cond)                                                                        \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return #cond;                                                              \
	} while (0)

static inline const char *check_profile_strings(const struct profile *p)
{
	size_t len;

	CHECK_PROFILE(p->strings.count >= 1);
	for (uint32_t id = 0; id < p->strings.count; id++) {
		const char *s = intern_get(&p->strings, id, &len);

		CHECK_PROFILE(id || !len); /* id 0 is "" */
		for (size_t i = 0; i < len;) {
			size_t n = utf8_sequence(s + i, len - i);

			CHECK_PROFILE(n);
			CHECK_PROFILE(utf8_presentable(s + i, n));
			i += n;
		}
	}
	return NULL;
}

static inline const char *check_profile_definitions(const struct profile *p)
{
	size_t n_strings = p->strings.count;

	for (size_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];

		CHECK_PROFILE(q->parent == PROFILE_NONE || q->parent < i);
		CHECK_PROFILE(q->exe < n_strings && q->cmdline < n_strings);
		CHECK_PROFILE(q->ruby_version < n_strings && q->attributes < n_strings);
		CHECK_PROFILE(q->cgroup < n_strings && q->container < n_strings);
		CHECK_PROFILE(q->exit_status >= -1);
		CHECK_PROFILE(q->exited || q->exit_status == -1);
	}
	for (size_t i = 0; i < p->n_threads; i++) {
		CHECK_PROFILE(p->threads[i].process < p->n_processes);
		CHECK_PROFILE(p->threads[i].name < n_strings);
		CHECK_PROFILE(p->threads[i].cpu_known || !p->threads[i].cpu_ns);
	}
	for (size_t i = 1; i < p->n_requests; i++) {
		CHECK_PROFILE(p->requests[i].thread < p->n_threads);
		CHECK_PROFILE(p->requests[i].kind && p->requests[i].kind <= p->request_kinds.count);
		CHECK_PROFILE(p->requests[i].first_ts <= p->requests[i].last_ts);
	}
	for (uint32_t i = 1; i <= p->request_kinds.count; i++) {
		CHECK_PROFILE(profile_request_kind(p, i)->name < n_strings);
		CHECK_PROFILE(profile_request_kind(p, i)->framework < n_strings);
	}
	for (size_t i = 0; i < p->n_kept; i++)
		CHECK_PROFILE(!p->samples[i].request ||
			      (p->samples[i].request < p->n_requests &&
			       p->requests[p->samples[i].request].thread == p->samples[i].thread));
	for (size_t i = 0; i < p->n_modules; i++)
		CHECK_PROFILE(p->modules[i].path < n_strings && p->modules[i].build_id < n_strings);
	for (size_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *f = &p->frames[i];

		CHECK_PROFILE(f->kind < FRAME_KIND_COUNT);
		CHECK_PROFILE(f->name < n_strings && f->file < n_strings);
		CHECK_PROFILE(f->raw_name < n_strings && (!f->raw_name || f->raw_name != f->name));
		CHECK_PROFILE(f->module == PROFILE_NONE || f->module < p->n_modules);
		CHECK_PROFILE(frame_reason_fits(f->reason, f->kind));
	}
	CHECK_PROFILE(p->n_stacks >= 1);
	for (size_t i = 1; i < p->n_stacks; i++) {
		CHECK_PROFILE(p->stacks[i].parent < i);
		CHECK_PROFILE(p->stacks[i].frame < p->n_frames);
	}
	return NULL;
}

/* NULL, or the condition that does not hold. */
static inline const char *check_profile(const struct profile *p)
{
	const char *problem = check_profile_strings(p);

	if (!problem)
		problem = check_profile_definitions(p);
	if (problem)
		return problem;
	for (size_t i = 0; i < p->n_aggregates; i++) {
		CHECK_PROFILE(p->by_thread ? p->aggregates[i].thread < p->n_threads
					   : p->aggregates[i].thread == PROFILE_NONE);
		CHECK_PROFILE(p->aggregates[i].stack < p->n_stacks);
		CHECK_PROFILE(p->aggregates[i].samples > 0);
	}
	for (size_t i = 0; i < p->n_kept; i++) {
		CHECK_PROFILE(p->samples[i].thread < p->n_threads);
		CHECK_PROFILE(p->samples[i].stack < p->n_stacks);
	}
	for (size_t i = 0; i < p->n_lost; i++)
		CHECK_PROFILE(p->lost[i].reason < LOST_REASON_COUNT);
	return NULL;
}

#endif
