/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which processes publish the trace and span of each of their threads, as OTEP 4947 says
 * (doc/otel.md): their process context has "threadlocal.schema_version". In these the TLS variable
 * is looked for that leads to the record of a thread, in each mapped file until one tells where it
 * is, and the engine is told.
 */
#ifndef RBPF_SAMPLE_THREAD_CONTEXT_H
#define RBPF_SAMPLE_THREAD_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct collector;
struct maps;
struct sink;
struct tracked_process;

/*
 * Whether a process with these attributes (base/attributes.h) publishes contexts of threads, in a
 * form that is known.
 */
bool thread_context_is_published(const char *attributes);

/* Whether the engine reads the contexts of the threads of @p. */
bool thread_context_is_known(const struct tracked_process *p);

/* The child @p has its threads' contexts where @parent has. */
void thread_context_inherit(struct collector *c, struct tracked_process *p,
			    const struct tracked_process *parent);

/*
 * Look for the variable of @p, whose files are in @maps. Returns 0, also if it is not found, or
 * -ENOMEM.
 */
int thread_context_look(struct collector *c, struct tracked_process *p, const struct maps *maps);

/*
 * The id in the recording of what was read of a thread, in *@ret; 0: it has no span, or that is not
 * known.
 */
int thread_context_span(struct sink *out, const struct rbpf_span *span, uint32_t *ret);

#endif
