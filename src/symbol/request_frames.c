/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/request_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "ruby/class.h"
#include "ruby/iseq.h"
#include "ruby/object.h"
#include "ruby/vm.h"

/* Entries of an environment that are looked at, as many as the BPF programs do. */
#define ENV_ENTRIES 64
/* It may be gone before it was read; and some servers' environments have no such key. */
#define ENV_TRIES   1000

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
	if (rule->text_from == REQUEST_TEXT_ENV) {
		const struct ruby_rules *rules = &code->vm->rules;

		ret.text_slot = ruby_iseq_local_named(code->vm, iseq, rule->env_local);
		ret.text_from = RBPF_REQUEST_ENV;
		ret.st_pointer = rules->hash_embeds ? 0 : RHASH_ST_POINTER;
		ret.st_bound =
			(uint8_t)(rules->st_bound + (rules->hash_embeds ? RHASH_ST_EMBED : 0));
		memcpy(ret.key_hash, f->key_hash, sizeof(ret.key_hash));
	}
	return ret;
}

/* Let the engine be told of iseq number @index of @code and its rule. */
static int tell(struct request_frames *f, const struct code_cache *code, size_t index,
		uint32_t rule)
{
	const struct cached_iseq *iseq = &code->iseqs[index];

	if (array_reserve(f->found, f->cap_found, f->n_found + 1))
		return -ENOMEM;
	f->found[f->n_found++] = (struct request_found) {
		.iseq = iseq->iseq.addr,
		.rule = abi_rule(f, code, &iseq->iseq, rule),
	};
	return 0;
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
	if (e->version == iseq->known.version && e->rule == rule)
		return 0;
	if (tell(f, code, ref->iseq, rule))
		return -ENOMEM;
	*e = (struct request_entry) { .version = iseq->known.version, .rule = rule };
	return 0;
}

/*
 * The process runs on: what is read may be of another Hash by now. The BPF programs compare the
 * key.
 */
static bool learn_keys(const struct ruby_vm *vm, uint64_t hash, uint64_t ret[RBPF_ENV_KEYS])
{
	static const char *const keys[] = {
		[RBPF_ENV_PATH] = "REQUEST_PATH", [RBPF_ENV_METHOD] = "REQUEST_METHOD"
	};
	struct ruby_st_entry entries[ENV_ENTRIES];
	uint64_t found[RBPF_ENV_KEYS] = { 0 };
	size_t n, i, key;

	n = ruby_hash_entries(vm, hash, entries, ENV_ENTRIES);
	for (i = 0; i < n; i++) {
		struct buf name _cleanup_buf_ = BUF_INIT;

		if (entries[i].hash == RUBY_ST_DELETED ||
		    ruby_string_read(vm, entries[i].key, &name))
			continue;
		for (key = 0; key < RBPF_ENV_KEYS; key++)
			if (!strcmp(buf_str(&name), keys[key]))
				found[key] = entries[i].hash;
	}
	if (!found[RBPF_ENV_PATH] || !found[RBPF_ENV_METHOD])
		return false;
	memcpy(ret, found, sizeof(found));
	return true;
}

int request_frames_learn(struct request_frames *f, const struct code_cache *code, uint64_t hash)
{
	if (f->env_tries >= ENV_TRIES)
		return 0;
	f->env_tries++;
	/*
	 * They are told also if they are known: of a child the BPF programs have what was known at
	 * its fork.
	 */
	if (!f->key_hash[RBPF_ENV_PATH] && !learn_keys(code->vm, hash, f->key_hash))
		return 0;
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].version && f->v[i].version == code->iseqs[i].known.version &&
		    f->rules->v[f->v[i].rule].text_from == REQUEST_TEXT_ENV &&
		    tell(f, code, i, f->v[i].rule))
			return -ENOMEM;
	return 0;
}

int request_frames_rule(const struct request_frames *f, const struct code_cache *code,
			const struct code_ref *ref)
{
	if (!ref->iseq_ok || ref->iseq >= f->n ||
	    f->v[ref->iseq].version != code->iseqs[ref->iseq].known.version)
		return -1;
	return (int)f->v[ref->iseq].rule;
}
