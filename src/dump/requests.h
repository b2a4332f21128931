/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request that a thread serves, or the job that it runs, when its stack is read: by the same
 * rules as of samples (request/rules.h).
 *
 * What names it is read by the walk that reads the stack, which is made again until two agree. If
 * they do not, there is a request, but nobody knows which. How long it has been there no memory
 * tells.
 */
#ifndef RBPF_DUMP_REQUESTS_H
#define RBPF_DUMP_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_ruby;
struct request_found;
struct request_rules;
struct resolver;
struct ruby_stack;
struct ruby_vm;
struct rbpf_ring_request;
struct stack_era;

/* Of iseqs of one process, so many are looked for. */
#define DUMP_REQUESTS_MAX 1024

struct dump_requests {
	const struct request_rules *rules; /* NULL: none are told; not owned, as are: */
	const struct ruby_vm *vm;
	struct resolver *resolver;
	struct request_found *found; /* iseqs that have a rule; owned */
	size_t n, cap;
};

/* All must outlive @q. @rules may be NULL. */
void dump_requests_init(struct dump_requests *q, const struct request_rules *rules,
			const struct ruby_vm *vm, struct resolver *resolver);
void dump_requests_deinit(struct dump_requests *q);

/* Of a thread that is in one: strings that are valid UTF-8, owned. */
struct dump_request {
	char *name;	 /* "OrdersController#index", "[unknown request]"; NULL: it is in none */
	char *framework; /* "rails"; "" if it is unknown */
};

void dump_request_deinit(struct dump_request *r);

/*
 * ruby_walk() of the EC at @ec, and what names its request in *@request, whose .request is 0 if
 * none of the frames that are known to tell one is there.
 */
int dump_requests_walk(const struct dump_requests *q, uint64_t ec, struct ruby_stack *ret,
		       struct rbpf_ring_request *request);

/*
 * The request of @stack, which the resolver has just named: @read of it in era @sampled, if its
 * .request is not 0. *@known: it is told, or the thread is in none; else it may be told at another
 * attempt, for which the frames are known now. Returns 0 or -ENOMEM; @ret: dump_request_deinit().
 */
int dump_requests_find(struct dump_requests *q, const struct stack_era *sampled,
		       const struct rbpf_ring_request *read, const struct dump_ruby *stack,
		       struct dump_request *ret, bool *known);

#endif
