/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known of iseqs and methods is in the code cache; here are made of it strings, symbols,
 * and a table
 *
 *   frames           by (iseq and its version, pc, method and its version, caller's source
 * location): the symbol
 *
 * so that naming a frame that was seen before is a lookup, and a stale copy can never be reached.
 */
#include "symbol/resolver.h"
#include "symbol/class_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/utf8.h"
#include "profile/frame_label.h"
#include "request/path.h"
#include "request/rules.h"
#include "ruby/backtrace.h"
#include "ruby/object.h"
#include "ruby/vm.h"
#include "symbol/frame_symbols.h"
#include "target/memory.h"

struct symbol_key { /* struct named_frame, its strings as ids */
	uint32_t kind, name, file, line, func_line, flags;
};

struct resolver {
	struct code_cache code;
	struct frame_symbols frames;
	struct intern strings;
	struct intern symbols;	    /* struct symbol_key */
	struct named_frame *symbol; /* by id */
	size_t cap_symbols;
	uint32_t unknown; /* symbol */
	uint32_t fiber;	  /* symbol */

	bool jit; /* iseqs may be compiled */
	struct request_frames requests;
	struct class_names classes;

	/* of one resolver_stack() */
	struct code_ref *refs;
	size_t cap_refs;
	uint32_t *ids;
	size_t cap_ids;
	struct frame_origin *origins;
	size_t cap_origins, first;
	struct buf text;
};

static int string_id(struct resolver *r, const char *s, uint32_t *ret)
{
	buf_reset(&r->text);
	utf8_sanitise(&r->text, s, strlen(s));
	if (buf_failed(&r->text))
		return -ENOMEM;
	return intern_add(&r->strings, buf_str(&r->text), r->text.len, ret, NULL);
}

/* The label that a symbol with this key is shown with: a string, its name in most cases. */
static int label_id(struct resolver *r, const struct symbol_key *key, uint32_t *ret)
{
	struct buf label _cleanup_buf_ = BUF_INIT;

	*ret = key->name;
	if (!frame_label(key->kind, intern_get(&r->strings, key->name, NULL),
			 intern_get(&r->strings, key->file, NULL), &label))
		return 0;
	return buf_failed(&label) ? -ENOMEM : string_id(r, buf_str(&label), ret);
}

static void find_rules(const struct resolver *r, struct named_frame *frame)
{
	const struct request_rules *rules = r->requests.rules;

	if (!rules || frame->kind != FRAME_RUBY)
		return;
	frame->request = (uint16_t)(request_rules_find(rules, frame->name, frame->file, false) + 1);
	frame->callee_request =
		(uint16_t)(request_rules_find(rules, frame->name, frame->file, true) + 1);
}

static int symbol_id(struct resolver *r, const struct symbol_key *key, uint32_t *ret)
{
	uint32_t id, label;
	bool is_new;
	int err;

	err = label_id(r, key, &label);
	if (!err)
		err = intern_add(&r->symbols, key, sizeof(*key), &id, &is_new);
	if (!err && is_new) {
		err = array_reserve(r->symbol, r->cap_symbols, id + 1);
		if (!err) {
			r->symbol[id] = (struct named_frame) {
				.kind = key->kind,
				.name = intern_get(&r->strings, key->name, NULL),
				.label = intern_get(&r->strings, label, NULL),
				.file = intern_get(&r->strings, key->file, NULL),
				.line = key->line,
				.func_line = key->func_line,
				.flags = key->flags,
			};
			find_rules(r, &r->symbol[id]);
		}
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
	uint32_t empty;

	if (!r)
		return -ENOMEM;
	r->jit = true;
	code_cache_init(&r->code, vm);
	if (string_id(r, "", &empty) || named_symbol(r, FRAME_UNKNOWN, "[unknown]", &r->unknown) ||
	    named_symbol(r, FRAME_FIBER, "[fiber]", &r->fiber)) {
		resolver_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	code_cache_deinit(&r->code);
	request_frames_deinit(&r->requests);
	class_names_deinit(&r->classes);
	frame_symbols_deinit(&r->frames);
	intern_deinit(&r->strings);
	intern_deinit(&r->symbols);
	free(r->symbol);
	free(r->refs);
	free(r->ids);
	free(r->origins);
	buf_deinit(&r->text);
	free(r);
}

void resolver_set_jit(struct resolver *r, bool possible)
{
	r->jit = possible;
}

void resolver_set_requests(struct resolver *r, const struct request_rules *rules)
{
	r->requests.rules = rules;
}

size_t resolver_bytes(const struct resolver *r)
{
	return code_cache_bytes(&r->code) + class_names_bytes(&r->classes) +
	       frame_symbols_bytes(&r->frames) + intern_bytes(&r->strings) +
	       intern_bytes(&r->symbols) + r->cap_symbols * sizeof(*r->symbol);
}

uint64_t resolver_refused(struct resolver *r)
{
	uint64_t n = r->code.refused;

	r->code.refused = 0;
	return n;
}

void resolver_revalidate(struct resolver *r)
{
	r->code.revalidation++;
}

const struct named_frame *resolver_symbol(const struct resolver *r, uint32_t id)
{
	return &r->symbol[id];
}

static void label_text(const struct ruby_iseq *iseq, const struct ruby_method *method,
		       struct buf *out)
{
	buf_addstr(out, iseq->decoration);
	if (iseq->in_method && method)
		buf_addstr(out, method->prefix);
	buf_addstr(out, iseq->name);
}

/*
 * The line of @iseq at the frame's pc; *@approximate tells that compiled code may have passed it.
 */
static uint32_t frame_line(const struct ruby_iseq *iseq, const struct rbpf_frame *f, bool unsaved,
			   bool *approximate)
{
	uint64_t pc = rbpf_frame_pc(f);

	/* MJIT and RJIT leave no trace in the frames of compiled code. */
	*approximate = f->pc & RBPF_PC_STALE || unsaved;
	if (*approximate && !ruby_iseq_has_pc(iseq, pc))
		return iseq->first_lineno;
	return ruby_iseq_line(iseq, pc);
}

/*
 * Whose code runs the frame: with either one in use the other is not. What 4.0's ZJIT leaves in
 * jit_return says nothing.
 */
static uint32_t jit_flag(const struct resolver *r, const struct rbpf_frame *f)
{
	if (!(f->pc & RBPF_PC_JIT))
		return 0;
	if (!ruby_vm_zjit_on(r->code.vm))
		return FRAME_YJIT;
	return r->code.vm->walk.flags & RBPF_LAYOUT_ZJIT_BARE ? 0 : FRAME_ZJIT;
}

static int ruby_symbol(struct resolver *r, const struct ruby_iseq *iseq,
		       const struct ruby_method *method, const struct rbpf_frame *f, bool unsaved,
		       const struct naming_state *caller, uint32_t *ret)
{
	struct buf label _cleanup_buf_ = BUF_INIT;
	struct symbol_key key;
	bool approximate;
	int err;

	memset(&key, 0, sizeof(key));
	/* With no Ruby code to be called from (as the prelude), it is shown where it is. */
	if (iseq->like_cfunc && caller->file) {
		key.kind = FRAME_CFUNC;
		key.file = caller->file;
		key.line = caller->line;
		if (method)
			buf_addstr(&label, method->prefix);
		buf_addstr(&label, iseq->name);
		err = 0;
	} else {
		key.kind = FRAME_RUBY;
		key.line = frame_line(iseq, f, unsaved, &approximate);
		key.flags = (approximate ? FRAME_LINE_APPROXIMATE : 0) | jit_flag(r, f);
		key.func_line = iseq->first_lineno;
		label_text(iseq, method, &label);
		err = string_id(r, iseq->path, &key.file);
	}
	if (!err)
		err = string_id(r, buf_str(&label), &key.name);
	return err ? err : symbol_id(r, &key, ret);
}

static int cfunc_symbol(struct resolver *r, const struct ruby_method *method,
			const struct naming_state *caller, uint32_t *ret)
{
	struct symbol_key key = { .kind = FRAME_CFUNC, .file = caller->file, .line = caller->line };
	struct buf label _cleanup_buf_ = BUF_INIT;
	int err;

	buf_addstr(&label, method->prefix);
	buf_addstr(&label, method->name);
	err = string_id(r, buf_str(&label), &key.name);
	return err ? err : symbol_id(r, &key, ret);
}

/* The symbol of a frame whose iseq or method is proven. */
static int frame_symbol(struct resolver *r, const struct rbpf_frame *f, const struct code_ref *ref,
			bool unsaved, const struct naming_state *caller, uint32_t *ret)
{
	const struct ruby_iseq *iseq = code_iseq(&r->code, ref);
	const struct ruby_method *method = code_method(&r->code, ref);
	struct frame_key key = { .pc = f->pc & ~RBPF_PC_FINISH, .unsaved = unsaved };
	int err = 0;

	key.iseq_version = iseq ? r->code.iseqs[ref->iseq].known.version : 0;
	key.method_version = method ? r->code.methods[ref->method].known.version : 0;
	if (!iseq || iseq->like_cfunc) {
		key.file = caller->file;
		key.line = caller->line & INT32_MAX; /* iseq.c shows none above */
	}
	if (!frame_symbols_get(&r->frames, &key, ret))
		return 0;
	*ret = r->unknown;
	if (iseq)
		err = ruby_symbol(r, iseq, method, f, unsaved, caller, ret);
	else if (method)
		err = cfunc_symbol(r, method, caller, ret);
	return err ? err : frame_symbols_add(&r->frames, &key, *ret);
}

static int cut_symbol(struct resolver *r, uint64_t count, uint32_t *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "[truncated %llu frames]", (unsigned long long)count);
	return named_symbol(r, FRAME_TRUNCATED, name, ret);
}

/* Whether all that the label of frame @f says is proven. */
static bool frame_proven(const struct resolver *r, const struct rbpf_frame *f,
			 const struct code_ref *ref)
{
	const struct ruby_iseq *iseq = code_iseq(&r->code, ref);

	if (!f->iseq)
		return ref->method_ok;
	return iseq && (!iseq->in_method || !f->me || ref->method_ok);
}

/* Whether the innermost frame is left out because its call has not begun. */
static bool half_written(const struct resolver *r, const struct rbpf_frame *f,
			 const struct code_ref *ref)
{
	const struct cached_iseq *e = f->iseq ? &r->code.iseqs[ref->iseq] : NULL;

	/* What was read of the iseq will do, proven or not: it is not shown. */
	return ruby_frame_half_written(&r->code.vm->rules, f,
				       e && e->known.version ? &e->iseq : NULL,
				       code_method(&r->code, ref));
}

static int name_frame(struct resolver *r, const struct rbpf_frame *f, const struct code_ref *ref,
		      bool unsaved, const struct naming_state *caller, uint32_t *ret)
{
	*ret = r->unknown;
	if (!f->iseq && !f->me) {
		if (f->pc)
			return cut_symbol(r, f->pc, ret);
		*ret = r->fiber;
		return 0;
	}
	return frame_proven(r, f, ref) ? frame_symbol(r, f, ref, unsaved, caller, ret) : 0;
}

/*
 * Whether compiled code may not have saved the pc of frame @i. It may have been compiled since its
 * iseq was read.
 */
static bool pc_unsaved(struct resolver *r, const struct rbpf_frame *frames, size_t i)
{
	const struct code_ref *ref = &r->refs[i];
	struct cached_iseq *e;

	if (!ref->iseq_ok || !ruby_frame_pc_may_be_unsaved(&r->code.vm->rules, frames, i))
		return false;
	e = &r->code.iseqs[ref->iseq];
	if (r->jit && !e->iseq.compiled && e->compiled_revalidation != r->code.revalidation) {
		e->iseq.compiled = ruby_iseq_is_compiled(r->code.vm, &e->iseq);
		e->compiled_revalidation = r->code.revalidation;
	}
	return e->iseq.compiled;
}

/* What is not named of a frame; @unshown activations begin with those right outside of it. */
static struct frame_origin frame_origin(const struct resolver *r, const struct rbpf_frame *f,
					const struct code_ref *ref, uint8_t unshown)
{
	const struct ruby_method *method = f->iseq ? NULL : code_method(&r->code, ref);

	return (struct frame_origin) {
		.function = method ? ruby_method_function(method) : 0,
		.finish = unshown + !!(f->pc & RBPF_PC_FINISH && (f->iseq || f->me)),
	};
}

static const struct symbol_key *symbol_key(const struct resolver *r, uint32_t id)
{
	return intern_get(&r->symbols, id, NULL);
}

/*
 * Note the rule of frame @f, whose symbol is @symbol, if it has one; a frame that such a frame
 * calls has it whatever it is called. Sets *@ret to 1 + the number of the rule, or 0.
 */
static int note_request(struct resolver *r, const struct code_ref *ref,
			const struct named_frame *symbol, struct naming_state *s, uint16_t *ret)
{
	uint16_t rule = symbol->request;

	*ret = 0;
	if (symbol->kind == FRAME_RUBY) {
		if (!rule)
			rule = s->callee_request;
		s->callee_request = symbol->callee_request;
	} else if (symbol->kind != FRAME_CFUNC) {
		s->callee_request = 0;
	}
	if (!rule || !ref->iseq_ok)
		return 0;
	*ret = rule;
	return request_frames_note(&r->requests, &r->code, ref, rule - 1u);
}

/* From the root, because a C function is shown where its caller is. */
static int name_frames(struct resolver *r, const struct rbpf_frame *frames, size_t n,
		       struct naming_range *naming)
{
	struct naming_point *point = naming->points, *end = point + naming->n_points;
	struct naming_state s = naming->begin;
	size_t i, out = n;
	int err = 0;

	for (i = n; i-- > 0 && !err;) {
		const struct rbpf_frame *f = &frames[i];
		const struct code_ref *ref = &r->refs[i];
		const struct ruby_iseq *iseq = code_iseq(&r->code, ref);
		uint16_t rule;
		uint32_t id;

		if (point < end && point->frame == i) {
			point->state = s;
			point->n_outside = n - out;
			point++;
		}
		if ((f->iseq && i > 0 &&
		     ruby_backtrace_hides_caller(code_iseq(&r->code, ref - 1))) ||
		    ruby_backtrace_hides_inside(f, iseq, s.inside) ||
		    (i == 0 && half_written(r, f, ref))) {
			s.unshown += !!(f->pc & RBPF_PC_FINISH);
			continue;
		}
		err = name_frame(r, f, ref, pc_unsaved(r, frames, i), &s, &id);
		if (!err)
			err = note_request(r, ref, &r->symbol[id], &s, &rule);
		if (err)
			break;
		if (r->symbol[id].kind == FRAME_RUBY) {
			s.file = symbol_key(r, id)->file;
			s.line = r->symbol[id].line;
		} else if (r->symbol[id].kind != FRAME_CFUNC) {
			s.file = s.line = 0;
		}
		s.inside = iseq && iseq->internal;
		r->ids[--out] = id;
		r->origins[out] = frame_origin(r, f, ref, s.unshown);
		r->origins[out].rule = rule;
		s.unshown = 0;
	}
	r->first = out;
	return err;
}

int resolver_captured(struct resolver *r, const struct stack_era *sampled, const void *blocks,
		      size_t len)
{
	return code_cache_captured(&r->code, sampled, blocks, len);
}

int resolver_stack(struct resolver *r, const struct stack_era *sampled,
		   const struct rbpf_frame *frames, size_t n, struct naming_range *naming,
		   const uint32_t **ids, size_t *n_ids)
{
	struct naming_range from_root = { 0 };
	int err;

	err = array_reserve(r->refs, r->cap_refs, n + 1);
	if (!err)
		err = array_reserve(r->ids, r->cap_ids, n + 1);
	if (!err)
		err = array_reserve(r->origins, r->cap_origins, n + 1);
	if (!err)
		err = code_cache_lookup(&r->code, sampled, frames, n, r->refs);
	if (!err)
		err = name_frames(r, frames, n, naming ? naming : &from_root);
	if (err)
		return err;
	*ids = r->ids + r->first;
	*n_ids = n - r->first;
	return 0;
}

const struct frame_origin *resolver_origins(const struct resolver *r)
{
	return r->origins + r->first;
}

/* ---- requests ---- */

const struct request_found *resolver_found_requests(struct resolver *r, size_t *n)
{
	*n = r->requests.n_found;
	r->requests.n_found = 0;
	return r->requests.found;
}

/* The text of @rec, in r->text. @of_env: it is a path. */
static void request_text(struct resolver *r, const struct rbpf_ring_request *rec, bool of_env,
			 struct resolved_request *ret)
{
	const uint16_t len = rec->text_len < RBPF_REQUEST_TEXT ? rec->text_len : RBPF_REQUEST_TEXT;

	buf_reset(&r->text);
	if (rec->flags & RBPF_REQUEST_NO_TEXT)
		return;
	if (of_env) {
		request_path(&r->text, rec->verb, rec->text, len,
			     rec->flags & RBPF_REQUEST_TEXT_CUT);
		ret->text = buf_str(&r->text);
		return;
	}
	if (rec->symbol && ruby_id_name(r->code.vm, rec->symbol, &r->text))
		return;
	if (!rec->symbol)
		buf_add(&r->text, rec->text, len);
	if (rec->flags & RBPF_REQUEST_TEXT_CUT)
		buf_addstr(&r->text, "...");
	ret->text = buf_str(&r->text);
}

int resolver_request(struct resolver *r, const struct rbpf_ring_request *rec,
		     struct resolved_request *ret)
{
	const struct stack_era sampled = { .gc_era = rec->gc_era,
					   .gc_major = rec->gc_major,
					   .gc_transition = rec->flags & RBPF_STACK_GC_TRANSITION };
	const struct rbpf_frame method = { .me = rec->me, .check = rec->me_check };
	const struct request_rule *rule;
	struct code_ref ref;
	int err;

	if (!r->requests.rules)
		return -ENOENT;
	*ret = (struct resolved_request) { 0 };
	err = code_cache_lookup(&r->code, &sampled, &rec->frame, 1, &ref);
	if (err)
		return err;
	if (request_frames_rule(&r->requests, &r->code, &ref) != rec->rule)
		return -ENOENT;
	ret->rule = rec->rule;
	rule = &r->requests.rules->v[ret->rule];
	if (rule->text_from == REQUEST_TEXT_METHOD && rec->me) {
		err = code_cache_lookup(&r->code, &sampled, &method, 1, &ref);
		if (!err && ref.method_ok)
			ret->method = code_method(&r->code, &ref)->name;
	}
	if (!err && rule->text_from == REQUEST_TEXT_ENV && rec->flags & RBPF_REQUEST_NO_TEXT)
		err = request_frames_learn(&r->requests, &r->code, rec->object);
	if (!err &&
	    (rule->text_from == REQUEST_TEXT_IN_LOCAL || rule->text_from == REQUEST_TEXT_ENV))
		request_text(r, rec, rule->text_from == REQUEST_TEXT_ENV, ret);
	if (!err && rec->klass)
		err = class_names_get(&r->classes, &r->code, &sampled, rec->klass,
				      rec->flags & RBPF_REQUEST_OLD_CLASS, &ret->klass);
	return err ? err : buf_failed(&r->text) ? -ENOMEM : 0;
}

size_t resolver_instructions(const struct resolver *r, uint64_t *ret, size_t max)
{
	size_t i, n = 0;

	for (i = 0; i < r->code.n_iseqs && n < max; i++)
		if (r->code.iseqs[i].known.version &&
		    !memory_read_u64(&r->code.vm->mem, r->code.iseqs[i].iseq.encoded, &ret[n]))
			n++;
	return n;
}
