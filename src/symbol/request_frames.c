/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/request_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/class.h"
#include "ruby/iseq.h"

struct request_entry {
	uint32_t version; /* of the cached iseq that it is of; 0: none */
	uint32_t rule;
};

void request_frames_deinit(struct request_frames *f)
{
	free(f->v);
	free(f->found);
	*f = (struct request_frames) { 0 };
}

/*
 * What the BPF programs read. A local variable of which it is not certain where it is counts as
 * unreadable.
 */
static struct rbpf_request_rule abi_rule(const struct request_frames *f,
					 const struct code_cache *code,
					 const struct ruby_iseq *iseq, uint32_t number)
{
	static const uint8_t from[] = {
		[REQUEST_NO_CLASS] = RBPF_REQUEST_NO_CLASS,
		[REQUEST_CLASS_OF_SELF] = RBPF_REQUEST_OF_SELF,
		[REQUEST_CLASS_OF_LOCAL] = RBPF_REQUEST_OF_LOCAL,
		[REQUEST_CLASS_IN_LOCAL] = RBPF_REQUEST_LOCAL,
	};
	const struct request_rule *rule = &f->rules->v[number];
	struct rbpf_request_rule ret = { .rule = (uint16_t)number,
					 .class_from = from[rule->class_from] };

	if (rule->class_from != REQUEST_NO_CLASS)
		ret.super_word = (uint8_t)ruby_class_super_word(code->vm);
	if (rule->class_from > REQUEST_CLASS_OF_SELF)
		ret.class_slot = ruby_iseq_local_slot(code->vm, iseq, rule->class_local);
	if (rule->text_from == REQUEST_TEXT_IN_LOCAL)
		ret.text_slot = ruby_iseq_local_slot(code->vm, iseq, rule->text_local);
	return ret;
}

int request_frames_note(struct request_frames *f, const struct code_cache *code,
			const struct code_ref *ref, uint32_t rule)
{
	const struct cached_iseq *iseq = &code->iseqs[ref->iseq];
	struct request_entry *e;

	if (array_reserve(f->v, f->cap, (size_t)ref->iseq + 1))
		return -ENOMEM;
	if (f->n < f->cap) {
		memset(f->v + f->n, 0, (f->cap - f->n) * sizeof(*f->v));
		f->n = f->cap;
	}
	e = &f->v[ref->iseq];
	if (e->version == iseq->version && e->rule == rule)
		return 0;
	if (array_reserve(f->found, f->cap_found, f->n_found + 1))
		return -ENOMEM;
	f->found[f->n_found++] = (struct request_found) {
		.iseq = iseq->iseq.addr,
		.rule = abi_rule(f, code, &iseq->iseq, rule),
	};
	*e = (struct request_entry) { .version = iseq->version, .rule = rule };
	return 0;
}

int request_frames_rule(const struct request_frames *f, const struct code_cache *code,
			const struct code_ref *ref)
{
	if (!ref->iseq_ok || ref->iseq >= f->n ||
	    f->v[ref->iseq].version != code->iseqs[ref->iseq].version)
		return -1;
	return (int)f->v[ref->iseq].rule;
}
