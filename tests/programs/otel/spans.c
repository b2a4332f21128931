// SPDX-License-Identifier: GPL-2.0-only
/*
 * Publishes the span of each thread as OTEP 4947 says: what an SDK's extension does. Built with
 * each model of thread-local storage (-ftls-model, -mtls-dialect); spans.rb calls it through
 * Fiddle.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct record {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t valid;
	uint8_t flags;
	uint16_t attributes_size;
	uint8_t attributes[36];
};

_Static_assert(offsetof(struct record, attributes) == 28, "the record of OTEP 4947");

#ifndef PADDING
#define PADDING 24
#endif

/* Another variable beside it, so that it is not all of the block. */
__thread uint8_t spans_other[PADDING];
__thread struct record *volatile otel_thread_ctx_v1;

/* Two for each thread: one that stays, and one for who changes the pointer. */
static __thread struct record *records;

#define fence() atomic_signal_fence(memory_order_seq_cst)

static void fill(struct record *r, const void *trace_id, const void *span_id)
{
	memcpy(r->trace_id, trace_id, sizeof(r->trace_id));
	memcpy(r->span_id, span_id, sizeof(r->span_id));
	/* Attributes: http_route=/. */
	r->attributes_size = 3;
	memcpy(r->attributes, "\0\1/", 3);
}

/* The record stays where it is, and is not valid while it is changed. */
void spans_change(const void *trace_id, const void *span_id)
{
	volatile struct record *r;

	if (!records)
		records = calloc(2, sizeof(*records));
	r = &records[0];
	r->valid = 0;
	fence();
	fill(&records[0], trace_id, span_id);
	fence();
	r->valid = 1;
	otel_thread_ctx_v1 = &records[0];
}

/* The record is another one each time. */
void spans_swap(const void *trace_id, const void *span_id)
{
	struct record *next;

	if (!records)
		records = calloc(2, sizeof(*records));
	next = otel_thread_ctx_v1 == &records[0] ? &records[1] : &records[0];
	fill(next, trace_id, span_id);
	next->valid = 1;
	fence();
	otel_thread_ctx_v1 = next;
}

void spans_detach(void)
{
	otel_thread_ctx_v1 = NULL;
}

/* ---- what no SDK does ---- */

/*
 * A pointer to what is no record: 0 unmapped, 1 in the kernel's half, 2 at the end of a page, 3 odd
 * bytes, 4 a size that lies.
 */
void spans_garbage(int kind)
{
	static struct record lies = {
		.trace_id = "lies", .span_id = "lies", .valid = 1, .attributes_size = 0xffff
	};
	char *page;

	switch (kind) {
	case 0:
		otel_thread_ctx_v1 = (struct record *)0x10;
		break;
	case 1:
		otel_thread_ctx_v1 = (struct record *)0xffff888000000000ull;
		break;
	case 2:
		page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(page + 4096, 4096);
		otel_thread_ctx_v1 = (struct record *)(page + 4096 - 20);
		break;
	case 3:
		page = malloc(64);
		memset(page, 0xa5, 64);
		otel_thread_ctx_v1 = (struct record *)page;
		break;
	case 4:
		otel_thread_ctx_v1 = &lies;
		break;
	}
}

/* The record of the calling thread, for another one that changes it. */
void *spans_record(void)
{
	return otel_thread_ctx_v1;
}

/*
 * Change the record of another thread, so often, and every few µs: each span id goes with one trace
 * id.
 */
void spans_race(struct record *r, long times)
{
	volatile uint8_t *valid = &r->valid;
	volatile unsigned int pause;
	uint8_t n = 1;

	for (; times; times--) {
		*valid = 0;
		atomic_thread_fence(memory_order_seq_cst);
		memset(r->trace_id, n, sizeof(r->trace_id));
		memset(r->span_id, n, sizeof(r->span_id));
		atomic_thread_fence(memory_order_seq_cst);
		*valid = 1;
		for (pause = 0; pause < 3000; pause++)
			;
		n = n == 255 ? 1 : n + 1;
	}
}
