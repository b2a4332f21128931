/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three tables, each keyed by bytes (base/intern.h):
 *
 *   iseqs, methods   by address: the copy, the round in which it was last checked, and a generation
 *                    that changes when something else was found at the address
 *   frames           by (iseq and its generation, pc, method and its generation, caller's place):
 *                    the symbol
 *
 * so that naming a frame that was seen before is a lookup, and a stale copy can never be reached.
 */
#include "symbol/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/utf8.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/vm.h"
#include "target/memory.h"

struct cached_iseq {
	struct ruby_iseq iseq;
	uint64_t round;	     /* last checked in; 0: never read */
	uint32_t generation; /* 0: nothing usable is known of it */
};

struct cached_method {
	struct ruby_method method;
	uint64_t round;
	uint32_t generation;
};

struct method_key {
	uint64_t addr;
	uint64_t with_name;
};

struct frame_key {
	uint64_t pc;
	uint32_t iseq, iseq_generation;	    /* index into iseqs */
	uint32_t method, method_generation; /* index into methods */
	uint32_t file, line;		    /* C functions: their caller's */
};

struct symbol_key { /* struct symbol, its strings as ids */
	uint32_t kind, name, file, line, func_line;
};

struct resolver {
	const struct ruby_vm *vm;
	uint64_t round;
	uint32_t generation; /* last one given */
	struct intern iseq_addrs;
	struct cached_iseq *iseqs;
	size_t cap_iseqs;
	struct intern method_addrs;
	struct cached_method *methods;
	size_t cap_methods;
	struct intern frames;
	uint32_t *frame_symbols; /* by id of frames */
	size_t cap_frame_symbols;
	struct intern strings;
	struct intern symbols; /* struct symbol_key */
	struct symbol *symbol; /* by id */
	size_t cap_symbols;
	uint32_t unknown; /* symbol */

	/* of one resolver_stack() */
	struct lookup *lookups;
	size_t cap_lookups;
	struct memory_span *spans;
	size_t cap_spans;
	struct pending *pending;
	size_t cap_pending;
	uint32_t *ids;
	size_t cap_ids;
	struct buf text;
};

/* A frame on its way to a symbol. Indices are PROFILE_NONE where there is none. */
struct lookup {
	uint32_t iseq;
	uint32_t method;
};

/* A cache entry that must be looked at in this round. */
struct pending {
	uint32_t index; /* of iseqs or methods */
	bool is_method;
	size_t span; /* the first of its spans, if there is a copy to check */
	union {
		struct ruby_iseq_id iseq;
		struct ruby_method_id method;
	} fresh;
};

/* Where a Ruby frame executes: what C functions called from it are shown at. */
struct place {
	uint32_t file; /* string */
	uint32_t line;
};

static int string_id(struct resolver *r, const char *s, uint32_t *ret)
{
	buf_reset(&r->text);
	utf8_sanitise(&r->text, s, strlen(s));
	if (buf_failed(&r->text))
		return -ENOMEM;
	return intern_add(&r->strings, buf_str(&r->text), r->text.len, ret, NULL);
}

static int symbol_id(struct resolver *r, const struct symbol_key *key, uint32_t *ret)
{
	uint32_t id;
	bool is_new;
	int err;

	err = intern_add(&r->symbols, key, sizeof(*key), &id, &is_new);
	if (!err && is_new) {
		err = array_reserve(r->symbol, r->cap_symbols, id + 1);
		if (!err)
			r->symbol[id] = (struct symbol) {
				.kind = key->kind,
				.name = intern_get(&r->strings, key->name, NULL),
				.file = intern_get(&r->strings, key->file, NULL),
				.line = key->line,
				.func_line = key->func_line,
			};
	}
	if (!err)
		*ret = id;
	return err;
}

static int named_symbol(struct resolver *r, enum frame_kind kind, const char *name, uint32_t *ret)
{
	struct symbol_key key = { .kind = kind };
	int err = string_id(r, name, &key.name);

	if (!err)
		err = string_id(r, "", &key.file);
	return err ? err : symbol_id(r, &key, ret);
}

int resolver_new(const struct ruby_vm *vm, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->vm = vm;
	r->round = 1;
	if (named_symbol(r, FRAME_UNKNOWN, "[unknown]", &r->unknown)) {
		resolver_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->iseq_addrs.count; i++)
		ruby_iseq_deinit(&r->iseqs[i].iseq);
	for (i = 0; i < r->method_addrs.count; i++)
		ruby_method_deinit(&r->methods[i].method);
	intern_deinit(&r->iseq_addrs);
	intern_deinit(&r->method_addrs);
	intern_deinit(&r->frames);
	intern_deinit(&r->strings);
	intern_deinit(&r->symbols);
	free(r->iseqs);
	free(r->methods);
	free(r->frame_symbols);
	free(r->symbol);
	free(r->lookups);
	free(r->spans);
	free(r->pending);
	free(r->ids);
	buf_deinit(&r->text);
	free(r);
}

void resolver_round(struct resolver *r)
{
	r->round++;
}

const struct symbol *resolver_symbol(const struct resolver *r, uint32_t id)
{
	return &r->symbol[id];
}

/* Find or add the cache entries that @frame needs. */
static int lookup_init(struct resolver *r, const struct rbpf_frame *frame, struct lookup *ret)
{
	struct method_key key = { .addr = frame->me, .with_name = !frame->iseq };
	int err = 0;

	*ret = (struct lookup) { PROFILE_NONE, PROFILE_NONE };
	if (frame->iseq) {
		err = array_reserve(r->iseqs, r->cap_iseqs, r->iseq_addrs.count + 1);
		if (!err)
			err = intern_add(&r->iseq_addrs, &frame->iseq, 8, &ret->iseq, NULL);
	}
	if (!err && frame->me) {
		err = array_reserve(r->methods, r->cap_methods, r->method_addrs.count + 1);
		if (!err)
			err = intern_add(&r->method_addrs, &key, sizeof(key), &ret->method, NULL);
	}
	return err;
}

static bool process_gone(const struct resolver *r)
{
	uint64_t word;

	return memory_read_u64(&r->vm->mem, r->vm->binary.cObject, &word);
}

static int load_iseq(struct resolver *r, uint32_t i)
{
	struct cached_iseq *c = &r->iseqs[i];
	uint64_t addr;
	int err;

	memcpy(&addr, intern_get(&r->iseq_addrs, i, NULL), sizeof(addr));
	ruby_iseq_deinit(&c->iseq);
	err = ruby_iseq_read(r->vm, addr, &c->iseq);
	if (err == -ENOMEM)
		return err;
	c->generation = err ? 0 : ++r->generation;
	return 0;
}

static int load_method(struct resolver *r, uint32_t i)
{
	struct cached_method *c = &r->methods[i];
	struct ruby_method fresh = { 0 };
	struct method_key key;
	bool same;
	int err;

	memcpy(&key, intern_get(&r->method_addrs, i, NULL), sizeof(key));
	err = ruby_method_read(r->vm, key.addr, key.with_name, &fresh);
	if (err == -ENOMEM)
		return err;
	/* The same words, read again: symbols made of them stay right. */
	same = !err && c->generation && !strcmp(c->method.prefix, fresh.prefix) &&
	       (!fresh.name || !strcmp(c->method.name, fresh.name));
	ruby_method_deinit(&c->method);
	c->method = fresh;
	if (!same)
		c->generation = err ? 0 : ++r->generation;
	return 0;
}

/*
 * An owner without a name may be given one at any time (a class assigned to a constant), which
 * changes none of the words that are compared.
 */
static bool may_get_name(const struct ruby_method *m)
{
	return !m->prefix[0];
}

/* Put the entry of iseq @i on the list of what this round must look at, unless it is there already.
 */
static void enlist_iseq(struct resolver *r, uint32_t i, size_t *n_pending, size_t *n_spans)
{
	struct cached_iseq *c = &r->iseqs[i];
	struct pending *p;

	if (c->round == r->round)
		return;
	c->round = r->round;
	p = &r->pending[(*n_pending)++];
	*p = (struct pending) { .index = i, .span = *n_spans };
	if (c->generation) {
		ruby_iseq_check_spans(&c->iseq, &p->fresh.iseq, &r->spans[*n_spans]);
		*n_spans += RUBY_ISEQ_SPANS;
	}
}

static void enlist_method(struct resolver *r, uint32_t i, size_t *n_pending, size_t *n_spans)
{
	struct cached_method *c = &r->methods[i];
	struct pending *p;

	if (c->round == r->round)
		return;
	c->round = r->round;
	p = &r->pending[(*n_pending)++];
	*p = (struct pending) { .index = i, .is_method = true, .span = *n_spans };
	if (c->generation) {
		ruby_method_check_spans(r->vm, &c->method, &p->fresh.method, &r->spans[*n_spans]);
		*n_spans += RUBY_METHOD_SPANS;
	}
}

enum verdict {
	COPY_RIGHT,
	COPY_WRONG,	/* something else is there now */
	COPY_UNCERTAIN, /* never read, unreadable, or of a kind that does not show changes */
};

static enum verdict judge(const struct resolver *r, const struct pending *p)
{
	const struct memory_span *spans = &r->spans[p->span];
	const struct ruby_method *m;

	if (!p->is_method) {
		if (!r->iseqs[p->index].generation || !spans[0].ok || !spans[1].ok)
			return COPY_UNCERTAIN;
		return ruby_iseq_check(&r->iseqs[p->index].iseq, &p->fresh.iseq) ? COPY_RIGHT
										 : COPY_WRONG;
	}
	if (!r->methods[p->index].generation || !spans[0].ok || !spans[1].ok || !spans[2].ok)
		return COPY_UNCERTAIN;
	m = &r->methods[p->index].method;
	if (!ruby_method_check(r->vm, m, &p->fresh.method))
		return COPY_WRONG;
	return may_get_name(m) ? COPY_UNCERTAIN : COPY_RIGHT;
}

static void forget(struct resolver *r, const struct pending *p)
{
	if (p->is_method)
		r->methods[p->index].generation = 0;
	else
		r->iseqs[p->index].generation = 0;
}

/*
 * Check all that this stack uses and that was not checked in this round, in one batch of reads;
 * then read anew what has changed or was never read.
 */
static int check_all(struct resolver *r, size_t n)
{
	size_t i, n_pending = 0, n_spans = 0;
	enum verdict verdict;
	int err;

	err = array_reserve(r->pending, r->cap_pending, 2 * n + 1);
	if (!err)
		err = array_reserve(r->spans, r->cap_spans,
				    n * (RUBY_ISEQ_SPANS + RUBY_METHOD_SPANS) + 1);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		if (r->lookups[i].iseq != PROFILE_NONE)
			enlist_iseq(r, r->lookups[i].iseq, &n_pending, &n_spans);
		if (r->lookups[i].method != PROFILE_NONE)
			enlist_method(r, r->lookups[i].method, &n_pending, &n_spans);
	}
	if (!n_pending)
		return 0;
	memory_read_spans(&r->vm->mem, r->spans, n_spans);
	for (i = 0; i < n_pending && !err; i++) {
		const struct pending *p = &r->pending[i];

		verdict = judge(r, p);
		if (verdict == COPY_RIGHT)
			continue;
		if (verdict == COPY_WRONG)
			forget(r, p);
		if (process_gone(r))
			continue; /* nothing can be read any more: what is known is used */
		err = p->is_method ? load_method(r, p->index) : load_iseq(r, p->index);
	}
	return err;
}

static bool usable_iseq(const struct resolver *r, const struct rbpf_frame *f,
			const struct lookup *l)
{
	return l->iseq != PROFILE_NONE && r->iseqs[l->iseq].generation &&
	       ruby_iseq_has_pc(&r->iseqs[l->iseq].iseq, f->pc);
}

static void label_text(const struct ruby_iseq *iseq, const struct ruby_method *method,
		       struct buf *out)
{
	buf_addstr(out, iseq->decoration);
	if (iseq->in_method && method)
		buf_addstr(out, method->prefix);
	buf_addstr(out, iseq->name);
}

static int ruby_symbol(struct resolver *r, const struct ruby_iseq *iseq,
		       const struct ruby_method *method, uint64_t pc, const struct place *caller,
		       uint32_t *ret)
{
	struct symbol_key key = { .kind = FRAME_RUBY };
	struct buf label _cleanup_buf_ = BUF_INIT;
	int err;

	label_text(iseq, method, &label);
	err = string_id(r, buf_str(&label), &key.name);
	if (iseq->like_cfunc) {
		key.kind = FRAME_CFUNC;
		key.file = caller->file;
		key.line = caller->line;
	} else {
		key.line = ruby_iseq_line(iseq, pc);
		key.func_line = iseq->first_lineno;
		if (!err)
			err = string_id(r, iseq->path, &key.file);
	}
	return err ? err : symbol_id(r, &key, ret);
}

static int cfunc_symbol(struct resolver *r, const struct ruby_method *method,
			const struct place *caller, uint32_t *ret)
{
	struct symbol_key key = { .kind = FRAME_CFUNC, .file = caller->file, .line = caller->line };
	struct buf label _cleanup_buf_ = BUF_INIT;
	int err;

	buf_addstr(&label, method->prefix);
	buf_addstr(&label, method->name);
	err = string_id(r, buf_str(&label), &key.name);
	return err ? err : symbol_id(r, &key, ret);
}

/* The symbol of a frame whose iseq or method is known to be right. */
static int frame_symbol(struct resolver *r, const struct rbpf_frame *f, const struct lookup *l,
			const struct place *caller, uint32_t *ret)
{
	const struct cached_method *method = l->method != PROFILE_NONE &&
							     r->methods[l->method].generation
						     ? &r->methods[l->method]
						     : NULL;
	const struct cached_iseq *iseq = l->iseq != PROFILE_NONE ? &r->iseqs[l->iseq] : NULL;
	struct frame_key key;
	uint32_t id;
	bool is_new;
	int err;

	memset(&key, 0, sizeof(key));
	key.pc = f->pc;
	key.iseq = l->iseq;
	key.method = l->method;
	key.iseq_generation = iseq ? iseq->generation : 0;
	key.method_generation = method ? method->generation : 0;
	if (!iseq || iseq->iseq.like_cfunc) {
		key.file = caller->file;
		key.line = caller->line;
	}
	err = intern_add(&r->frames, &key, sizeof(key), &id, &is_new);
	if (!err && is_new) {
		err = array_reserve(r->frame_symbols, r->cap_frame_symbols, id + 1);
		if (!err)
			r->frame_symbols[id] = r->unknown;
		if (!err && iseq)
			err = ruby_symbol(r, &iseq->iseq, method ? &method->method : NULL, f->pc,
					  caller, &r->frame_symbols[id]);
		else if (!err && method)
			err = cfunc_symbol(r, &method->method, caller, &r->frame_symbols[id]);
	}
	if (!err)
		*ret = r->frame_symbols[id];
	return err;
}

static int cut_symbol(struct resolver *r, uint64_t count, uint32_t *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "[truncated %llu frames]", (unsigned long long)count);
	return named_symbol(r, FRAME_TRUNCATED, name, ret);
}

int resolver_stack(struct resolver *r, const struct rbpf_frame *frames, size_t n,
		   const uint32_t **ids, size_t *n_ids)
{
	struct place caller = { 0 };
	size_t i, out = n;
	int err;

	err = array_reserve(r->lookups, r->cap_lookups, n + 1);
	if (!err)
		err = array_reserve(r->ids, r->cap_ids, n + 1);
	if (!err)
		err = string_id(r, "", &caller.file);
	for (i = 0; i < n && !err; i++)
		err = lookup_init(r, &frames[i], &r->lookups[i]);
	if (!err)
		err = check_all(r, n);

	/* From the root, because a C function is shown where its caller is. */
	for (i = n; i-- > 0 && !err;) {
		const struct rbpf_frame *f = &frames[i];
		const struct lookup *l = &r->lookups[i];
		uint32_t id = r->unknown;

		if (f->iseq && i > 0 && usable_iseq(r, &frames[i - 1], &r->lookups[i - 1]) &&
		    r->iseqs[r->lookups[i - 1].iseq].iseq.hides_method)
			continue;
		if (!f->iseq && !f->me)
			err = cut_symbol(r, f->pc, &id);
		else if (f->iseq ? usable_iseq(r, f, l) : r->methods[l->method].generation != 0)
			err = frame_symbol(r, f, l, &caller, &id);
		if (err)
			break;
		if (f->iseq && r->symbol[id].kind == FRAME_RUBY) {
			err = string_id(r, r->symbol[id].file, &caller.file);
			caller.line = r->symbol[id].line;
		} else if (r->symbol[id].kind != FRAME_CFUNC) {
			err = string_id(r, "", &caller.file);
			caller.line = 0;
		}
		r->ids[--out] = id;
	}
	if (err)
		return err;
	*ids = r->ids + out;
	*n_ids = n - out;
	return 0;
}
