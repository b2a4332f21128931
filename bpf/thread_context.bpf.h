/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The span that the running thread is in, if its process publishes that as OTEP 4947 says: a
 * variable in thread-local storage points to a record, which a byte says to be valid.
 *
 * A thread changes its own record only, and stands still here, so that the byte suffices for a
 * process that does as the OTEP says. Of one that does not, the record might change meanwhile: it
 * is read twice.
 */
#ifndef RBPF_THREAD_CONTEXT_BPF_H
#define RBPF_THREAD_CONTEXT_BPF_H

#include "tls.bpf.h"

/* Where the record of the thread is, in *@ret; 0: it has none. Returns enum rbpf_status. */
static __always_inline int thread_context_record(__u64 variable, __u64 *ret)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)variable) ? RBPF_FAULT_TLS : RBPF_OK;
}

static __always_inline bool is_same_record(const struct rbpf_otel_record *a,
					   const struct rbpf_otel_record *b)
{
	return a->valid == b->valid && a->span.span == b->span.span &&
	       a->span.trace[0] == b->span.trace[0] && a->span.trace[1] == b->span.trace[1];
}

/*
 * Read the record at @at, which @variable leads to. Returns whether it can be read and holds still.
 */
static __noinline bool thread_context_take(__u64 variable, __u64 at, struct rbpf_otel_record *ret)
{
	struct rbpf_otel_record again = {};
	__u64 after;

	if (bpf_probe_read_user(ret, RBPF_OTEL_RECORD_BYTES, (void *)at) ||
	    bpf_probe_read_user(&again, RBPF_OTEL_RECORD_BYTES, (void *)at) ||
	    thread_context_record(variable, &after))
		return false;
	return after == at && is_same_record(ret, &again);
}

/*
 * Put the span of the running thread into the sample of scratch @walk_id, whose process has a
 * context.
 */
__noinline int thread_context_read(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct rbpf_otel_record record = {};
	__u64 variable, at;
	int r;

	if (!w || current_member(flags, flags) & PF_EXITING)
		return 0;
	r = tls_address(&w->context, current_member(THREAD_POINTER, THREAD_POINTER), true,
			&variable);
	if (r == RBPF_NO_EC)
		return 0;
	if (!r)
		r = thread_context_record(variable, &at);
	if (!r && !at)
		return 0;
	if (r || !thread_context_take(variable, at, &record)) {
		count(RBPF_CNT_CONTEXT_UNREAD);
		return 0;
	}
	if (record.valid == 1 && (record.span.trace[0] || record.span.trace[1]))
		w->sample.span = record.span;
	return 0;
}

#endif
