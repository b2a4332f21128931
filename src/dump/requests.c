/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/requests.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "dump/frames.h"
#include "profile/profile.h"
#include "request/rules.h"
#include "ruby/vm.h"
#include "ruby/walk.h"
#include "symbol/resolver.h"

#define UNKNOWN "[unknown request]"

void dump_requests_init(struct dump_requests *q, const struct request_rules *rules,
			const struct ruby_vm *vm, struct resolver *resolver)
{
	*q = (struct dump_requests) { .rules = rules, .vm = vm, .resolver = resolver };
	resolver_set_requests(resolver, rules);
}

void dump_requests_deinit(struct dump_requests *q)
{
	free(q->found);
	*q = (struct dump_requests) { 0 };
}

void dump_request_deinit(struct dump_request *r)
{
	free(r->name);
	free(r->framework);
	*r = (struct dump_request) { 0 };
}

/* ---- which frames ---- */

static struct request_found *find(const struct dump_requests *q, uint64_t iseq)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->found[i].iseq == iseq)
			return &q->found[i];
	return NULL;
}

static const struct rbpf_request_rule *rule_of(const void *arg, uint64_t iseq)
{
	const struct request_found *f = find(arg, iseq);

	return f ? &f->rule : NULL;
}

/* Take over what the resolver has found since. Returns 1 if there is any, 0, or -ENOMEM. */
static int take_found(struct dump_requests *q)
{
	size_t n;
	const struct request_found *found = resolver_found_requests(q->resolver, &n);

	for (size_t i = 0; i < n; i++) {
		struct request_found *f = find(q, found[i].iseq);

		if (!f && q->n == DUMP_REQUESTS_MAX)
			continue;
		if (!f && array_reserve(q->found, q->cap, q->n + 1))
			return -ENOMEM;
		if (!f)
			f = &q->found[q->n++];
		*f = found[i];
	}
	return n > 0;
}

/* The rule of the stack that the resolver has just named: see REQUEST_ANY_RULE. */
static uint16_t rule_of_stack(const struct dump_ruby *stack)
{
	const struct frame_origin *origins = resolver_origins(stack->resolver);
	bool named = true;

	for (size_t i = 0; i < stack->n; i++) {
		named &= resolver_symbol(stack->resolver, stack->symbols[i])->kind != FRAME_UNKNOWN;
		if (origins[i].rule)
			return named ? origins[i].rule : REQUEST_ANY_RULE;
	}
	return 0;
}

/* ---- reading it ---- */

int dump_requests_walk(const struct dump_requests *q, uint64_t ec, struct ruby_stack *ret,
		       struct rbpf_ring_request *request)
{
	const struct ruby_walk_rules rules = { .find = rule_of, .arg = q };
	bool found;

	request->request = 0;
	return ruby_walk_request(&q->vm->mem, &q->vm->walk, ec, RBPF_MAX_FRAMES,
				 q->n ? &rules : NULL, ret, request, &found);
}

static int set(const char *name, const char *framework, struct dump_request *ret)
{
	struct dump_request made = { .name = strdup(name), .framework = strdup(framework) };

	if (!made.name || !made.framework) {
		dump_request_deinit(&made);
		return -ENOMEM;
	}
	*ret = made;
	return 0;
}

/*
 * Name what was read: it is unknown if its era has ended since, its class cannot be read, or it was
 * told by another frame than the one that gives the stack its rule, @of_stack.
 */
static int name_request(const struct dump_requests *q, const struct rbpf_ring_request *rec,
			uint16_t of_stack, struct dump_request *ret, bool *known)
{
	struct buf name _cleanup_buf_ = BUF_INIT, clean _cleanup_buf_ = BUF_INIT;
	const struct request_rule *rule;
	struct resolved_request resolved;
	const char *text;
	int r;

	r = resolver_request(q->resolver, rec, &resolved);
	if (r && r != -ENOENT)
		return r;
	rule = r ? NULL : &q->rules->v[resolved.rule];
	text = !rule					? NULL
	       : rule->text_from == REQUEST_TEXT_METHOD ? resolved.method
							: resolved.text;
	*known = rule && request_rule_tells(rule, resolved.klass, text) &&
		 request_rule_fits(resolved.rule + 1, request_rule_is_vague(rule), of_stack);
	if (!*known)
		return set(UNKNOWN, "", ret);
	request_rule_name(rule, resolved.klass, text, &name);
	utf8_sanitise(&clean, buf_str(&name), name.len);
	if (buf_failed(&name) || buf_failed(&clean))
		return -ENOMEM;
	return set(buf_str(&clean), rule->framework, ret);
}

int dump_requests_find(struct dump_requests *q, const struct stack_era *sampled,
		       const struct rbpf_ring_request *read, const struct dump_ruby *stack,
		       struct dump_request *ret, bool *known)
{
	struct rbpf_ring_request rec = *read;
	uint16_t rule;
	int r;

	*known = true;
	if (!q->rules)
		return 0;
	r = take_found(q);
	rule = rule_of_stack(stack);
	if (r < 0 || !rule)
		return r < 0 ? r : 0;
	/* What was read may be of a frame further out than one that is only known now. */
	if (r || q->n == DUMP_REQUESTS_MAX || !rec.request) {
		*known = false;
		return set(UNKNOWN, "", ret);
	}
	rec.gc_era = sampled->gc_era;
	rec.gc_major = sampled->gc_major;
	r = name_request(q, &rec, rule, ret, known);
	if (r)
		return r;
	/* It has led to where the next walk finds its path. */
	r = take_found(q);
	if (r > 0)
		*known = false;
	return r < 0 ? r : 0;
}
