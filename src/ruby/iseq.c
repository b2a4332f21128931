/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Labels are kept as a decoration ("block (2 levels) in ") and a name ("foo", "<class:Foo>"),
 * between which the owner of a method belongs: "block (2 levels) in Foo#foo".
 *
 * Lines. iseq.c keeps one entry for each run of instructions with the same line, and a succinct bit
 * vector (succ_index_table) that maps an instruction's position to its entry; see ruby_iseq_line().
 */
#include "ruby/iseq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/object.h"
#include "ruby/structs.h"
#include "ruby/vm.h"
#include "target/memory.h"

#define LABEL_MAX_DEPTH	     64 /* nested iseqs */

#define BUILTIN_ATTR_C_TRACE 0x08 /* vm_core.h, 3.4 */
/* Up to 3.2 jit_func may hold a state instead of an address: mjit.h enum rb_mjit_iseq_func. */
#define JIT_LAST_STATE	     16
#define INTERNAL_PATH	     "<internal:"
#define LOCALS_MAX	     256
#define LOCALS_INTERNAL	     1000 /* less than any ID of a name (RUBY_ID_BETWEEN) */
#define VM_ENV_DATA_SIZE     3 /* words of an environment behind its local variables; vm_core.h */

struct body {
	uint8_t bytes[RUBY_BODY_BYTES];
};

static uint64_t body_u64(const struct body *b, size_t off)
{
	uint64_t v;

	memcpy(&v, b->bytes + off, sizeof(v));
	return v;
}

static uint32_t body_u32(const struct body *b, size_t off)
{
	uint32_t v;

	memcpy(&v, b->bytes + off, sizeof(v));
	return v;
}

/* Member @word of its location. */
static uint64_t location_word(const struct ruby_vm *vm, const struct body *b, size_t word)
{
	return body_u64(b, vm->layout.iseq_location + word * 8);
}

static uint32_t body_type(const struct body *b)
{
	return body_u32(b, RUBY_BODY_TYPE * 8);
}

static bool is_iseq(uint64_t flags)
{
	return (flags & RUBY_IMEMO_MASK) == RUBY_IMEMO_ISEQ;
}

static int read_name(const struct ruby_vm *vm, uint64_t value, char **ret)
{
	struct buf name _cleanup_buf_ = BUF_INIT;
	int r = ruby_string_read(vm, value, &name);

	if (r)
		return r;
	*ret = strdup(buf_str(&name));
	return *ret ? 0 : -ENOMEM;
}

/* pathobj: the path, or [path, realpath]. Backtraces show the path. */
static int read_path(const struct ruby_vm *vm, uint64_t pathobj, char **ret)
{
	uint64_t path;

	if (!ruby_array_get(vm, pathobj, 0, &path))
		pathobj = path;
	return read_name(vm, pathobj, ret);
}

/*
 * Members that are not in the layout, by where they stand next to some that are: vm_core.h
 * rb_iseq_constant_body. ruby_iseq_local_slot() proves what they lead to.
 */
static size_t local_table(const struct ruby_layout *l)
{
	return l->insns_index + 8u;
}

static uint32_t read_n_locals(const struct ruby_layout *l, const struct body *b)
{
	/* 2.7 and 3.0: there is no outer_variables in between. */
	size_t off = l->local_iseq + (l->insn_entry == 8 ? 56u : 64u);

	return off <= RUBY_BODY_BYTES - 4 ? body_u32(b, off) : 0;
}

static void expect_path(const struct ruby_vm *vm, uint64_t pathobj)
{
	uint64_t path;

	ruby_string_expect(vm, ruby_array_get(vm, pathobj, 0, &path) ? pathobj : path);
}

/* The body of the iseq at @addr. */
static int read_body(const struct ruby_vm *vm, uint64_t addr, struct body *ret)
{
	uint64_t head[RUBY_ISEQ_WORDS];

	if (!ruby_is_object(addr) || memory_read(&vm->mem, addr, head, sizeof(head)))
		return -EFAULT;
	if (!is_iseq(head[RUBY_ISEQ_FLAGS]))
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	if (memory_read_some(&vm->mem, head[RUBY_ISEQ_BODY], ret->bytes, sizeof(ret->bytes)) <
	    vm->layout.local_iseq + 8u)
		return -EFAULT;
	return 0;
}

/*
 * Up to 3.3. The stored label is complete ("block (2 levels) in foo", "rescue in foo"), and the
 * base label is that of the method or body around it ("foo"): what stands before it is the
 * decoration.
 */
static int stored_label(const struct ruby_vm *vm, const struct body *b, struct ruby_iseq *iseq)
{
	_cleanup_free_ char *label = NULL;
	_cleanup_free_ char *base = NULL;
	struct body local = *b;
	size_t len, base_len;
	int r;

	r = read_name(vm, location_word(vm, b, RUBY_LOCATION_LABEL), &label);
	if (!r)
		r = read_name(vm, location_word(vm, b, RUBY_LOCATION_BASE_LABEL), &base);
	if (!r && iseq->type != RUBY_ISEQ_METHOD)
		r = read_body(vm, body_u64(b, vm->layout.local_iseq), &local);
	if (r)
		return r;
	iseq->in_method = body_type(&local) == RUBY_ISEQ_METHOD;
	len = strlen(label);
	base_len = strlen(base);
	if (base_len > len || strcmp(label + len - base_len, base)) {
		/* Not of that form (a label given by a caller of the C API): taken as it is. */
		iseq->name = take_ptr(label);
		iseq->decoration = strdup("");
	} else {
		iseq->decoration = strndup(label, len - base_len);
		iseq->name = take_ptr(base);
	}
	return iseq->decoration ? 0 : -ENOMEM;
}

/*
 * How many blocks there are from @b, at @addr, up to the iseq around them, whose body becomes *@b.
 */
static int count_blocks(const struct ruby_vm *vm, uint64_t addr, struct body *b, unsigned int *ret)
{
	uint64_t local = body_u64(b, vm->layout.local_iseq);
	unsigned int depth;
	int r;

	*ret = 0;
	for (depth = 0; depth < LABEL_MAX_DEPTH; depth++) {
		if (addr == local)
			return 0;
		*ret += body_type(b) == RUBY_ISEQ_BLOCK;
		addr = body_u64(b, vm->layout.parent_iseq);
		r = read_body(vm, addr, b);
		if (r)
			return r;
	}
	return -EINVAL;
}

/*
 * 3.4 on (vm_backtrace.c calculate_iseq_label): a rescue, ensure or eval has the label of its
 * parent, a block is "block in" what it stands in.
 */
static int parents_label(const struct ruby_vm *vm, const struct body *own, struct ruby_iseq *iseq)
{
	struct buf decoration _cleanup_buf_ = BUF_INIT;
	struct body b = *own;
	uint64_t addr = iseq->addr;
	unsigned int depth, blocks;
	int r = 0;

	for (depth = 0; depth < LABEL_MAX_DEPTH && !r; depth++) {
		uint32_t type = body_type(&b);
		uint64_t parent = body_u64(&b, vm->layout.parent_iseq);

		if (!parent || type == RUBY_ISEQ_TOP || type == RUBY_ISEQ_CLASS ||
		    type == RUBY_ISEQ_MAIN || type == RUBY_ISEQ_METHOD)
			break;
		if (type == RUBY_ISEQ_BLOCK || type == RUBY_ISEQ_PLAIN) {
			uint64_t local = body_u64(&b, vm->layout.local_iseq);

			r = count_blocks(vm, addr, &b, &blocks);
			addr = local;
			if (!r && blocks <= 1)
				buf_addstr(&decoration, "block in ");
			else if (!r)
				buf_addf(&decoration, "block (%u levels) in ", blocks);
			/* A toplevel eval is its own local iseq: its parent is what it is in. */
			if (!r && body_type(&b) != RUBY_ISEQ_EVAL)
				break;
		} else {
			addr = parent;
			r = read_body(vm, addr, &b);
		}
	}
	if (r)
		return r;
	iseq->in_method = body_type(&b) == RUBY_ISEQ_METHOD;
	iseq->decoration = strdup(buf_str(&decoration));
	if (!iseq->decoration)
		return -ENOMEM;
	return read_name(vm, location_word(vm, &b, RUBY_LOCATION_LABEL), &iseq->name);
}

static int read_labels(const struct ruby_vm *vm, const struct body *b, struct ruby_iseq *iseq)
{
	const struct ruby_layout *l = &vm->layout;
	int r;

	r = read_path(vm, location_word(vm, b, RUBY_LOCATION_PATHOBJ), &iseq->path);
	if (!r)
		r = vm->rules.labels_from_parents ? parents_label(vm, b, iseq)
						  : stored_label(vm, b, iseq);
	if (r)
		return r;
	iseq->hides_method = vm->rules.labels_from_parents &&
			     (iseq->type == RUBY_ISEQ_RESCUE || iseq->type == RUBY_ISEQ_ENSURE);
	iseq->internal = vm->rules.internal_is_cfunc &&
			 !strncmp(iseq->path, INTERNAL_PATH, strlen(INTERNAL_PATH));
	iseq->like_cfunc = iseq->internal ||
			   (vm->rules.c_trace_is_cfunc && ruby_layout_has(l->builtin_attrs) &&
			    (body_u32(b, l->builtin_attrs) & BUILTIN_ATTR_C_TRACE));
	iseq->compiled = ruby_layout_has(l->jit_entry) &&
			 body_u64(b, l->jit_entry) > JIT_LAST_STATE;
	return 0;
}

/*
 * Template engines have the code that they put before a template evaluated with lines below 1, so
 * that those of the template are right. They are in no file.
 */
static uint32_t shown_line(uint32_t line)
{
	return line > INT32_MAX ? 0 : line;
}

static int read_lines(const struct ruby_vm *vm, const struct body *b, struct ruby_iseq *iseq)
{
	const struct ruby_layout *l = &vm->layout;
	_cleanup_free_ uint8_t *entries = NULL;
	uint32_t n = body_u32(b, l->insns_size), i;
	struct memory_span spans[2];

	if (n > iseq->size)
		return -EINVAL;
	iseq->lines_left_out = n > RUBY_ISEQ_MAX_LINES || iseq->size > RUBY_ISEQ_MAX_WORDS;
	if (!n || iseq->lines_left_out)
		return 0;
	iseq->index_words = n > 1 ? ruby_index_words(iseq->size) : 0;
	entries = malloc((size_t)n * l->insn_entry);
	iseq->lines = malloc(n * sizeof(*iseq->lines));
	iseq->index = malloc(iseq->index_words * 8 + 8);
	if (!entries || !iseq->lines || !iseq->index)
		return -ENOMEM;
	spans[0] = (struct memory_span) { .addr = body_u64(b, l->insns_body),
					  .dst = entries,
					  .len = (size_t)n * l->insn_entry };
	spans[1] = (struct memory_span) { .addr = body_u64(b, l->insns_index),
					  .dst = iseq->index,
					  .len = iseq->index_words * 8 };
	memory_read_spans(&vm->mem, spans, n > 1 ? 2 : 1);
	if (!spans[0].ok || (n > 1 && !spans[1].ok))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		memcpy(&iseq->lines[i], entries + (size_t)i * l->insn_entry, 4);
		iseq->lines[i] = shown_line(iseq->lines[i]);
	}
	iseq->n_lines = n;
	return 0;
}

/* Where the text of the label is, and how much of its end is kept, as the BPF programs do. */
static void find_text(const struct ruby_vm *vm, struct ruby_iseq *iseq)
{
	const uint64_t *label = iseq->id.label;
	uint64_t len = label[RSTRING_LEN_WORD];

	if (label[0] & RSTRING_NOEMBED)
		iseq->text_addr = label[RSTRING_PTR_WORD];
	else if (vm->layout.string_embed == RSTRING_EMBED_LONG)
		iseq->text_addr = iseq->id.location[RUBY_LOCATION_LABEL] + RSTRING_EMBED_LONG;
	else
		len = 0;
	if (len > sizeof(iseq->id.text)) {
		iseq->text_addr += len - sizeof(iseq->id.text);
		len = sizeof(iseq->id.text);
	}
	iseq->text_len = (uint32_t)len;
}

/*
 * What an iseq with this body needs is about to be read, as far as is known by now where it lies.
 */
static void expect_pieces(const struct ruby_vm *vm, const struct body *b)
{
	const struct ruby_layout *l = &vm->layout;
	const uint64_t local = body_u64(b, l->local_iseq), n = body_u32(b, l->insns_size);
	const uint64_t size = body_u32(b, 4);
	struct body around;

	memory_expect(&vm->mem, location_word(vm, b, RUBY_LOCATION_LABEL), RUBY_OBJECT_WORDS * 8);
	memory_expect(&vm->mem, location_word(vm, b, RUBY_LOCATION_PATHOBJ), RUBY_OBJECT_WORDS * 8);
	ruby_string_expect(vm, location_word(vm, b, RUBY_LOCATION_LABEL));
	expect_path(vm, location_word(vm, b, RUBY_LOCATION_PATHOBJ));
	if (!vm->rules.labels_from_parents)
		ruby_string_expect(vm, location_word(vm, b, RUBY_LOCATION_BASE_LABEL));
	if (body_type(b) != RUBY_ISEQ_METHOD && !read_body(vm, local, &around))
		ruby_string_expect(vm, location_word(vm, &around, RUBY_LOCATION_LABEL));
	if (!n || n > size || n > RUBY_ISEQ_MAX_LINES || size > RUBY_ISEQ_MAX_WORDS)
		return;
	memory_expect(&vm->mem, body_u64(b, l->insns_body), n * l->insn_entry);
	if (n > 1)
		memory_expect(&vm->mem, body_u64(b, l->insns_index), ruby_index_words(size) * 8);
}

int ruby_iseq_read_pieces(const struct ruby_vm *vm, uint64_t addr, struct ruby_iseq *ret)
{
	struct ruby_iseq iseq = { .addr = addr };
	uint64_t first_lineno;
	struct body body;
	size_t got;
	int r;

	if (!ruby_is_object(addr) ||
	    memory_read(&vm->mem, addr, iseq.id.head, sizeof(iseq.id.head)))
		return -EFAULT;
	if (!is_iseq(iseq.id.head[RUBY_ISEQ_FLAGS]))
		return -EINVAL;
	memset(&body, 0, sizeof(body));
	got = memory_read_some(&vm->mem, iseq.id.head[RUBY_ISEQ_BODY], body.bytes,
			       sizeof(body.bytes));
	if (got < vm->layout.local_iseq + 8u)
		return -EFAULT;
	memcpy(iseq.id.body, body.bytes, sizeof(iseq.id.body));
	memcpy(iseq.id.location, body.bytes + vm->layout.iseq_location, sizeof(iseq.id.location));
	if (vm->mem.gathered)
		expect_pieces(vm, &body);
	if (memory_read(&vm->mem, location_word(vm, &body, RUBY_LOCATION_LABEL), iseq.id.label,
			sizeof(iseq.id.label)) ||
	    memory_read(&vm->mem, location_word(vm, &body, RUBY_LOCATION_PATHOBJ), iseq.id.path,
			sizeof(iseq.id.path)))
		return -EFAULT;
	find_text(vm, &iseq);
	if (memory_read(&vm->mem, iseq.text_addr, iseq.id.text, iseq.text_len))
		return -EFAULT;
	iseq.local = body_u64(&body, vm->layout.local_iseq);
	iseq.type = body_type(&body);
	iseq.size = body_u32(&body, 4);
	iseq.encoded = iseq.id.body[RUBY_BODY_ENCODED];
	iseq.n_locals = read_n_locals(&vm->layout, &body);
	if (iseq.type > RUBY_ISEQ_PLAIN || !iseq.size || iseq.size > RUBY_ISEQ_SIZE_MAX ||
	    !ruby_is_object(iseq.encoded))
		return -EINVAL;
	first_lineno = iseq.id.location[RUBY_LOCATION_LINENO];
	iseq.first_lineno = shown_line(vm->layout.lineno_size == 8 ? (uint32_t)(first_lineno >> 1)
								   : (uint32_t)first_lineno);
	r = read_labels(vm, &body, &iseq);
	if (!r)
		r = read_lines(vm, &body, &iseq);
	if (r) {
		ruby_iseq_deinit(&iseq);
		return r;
	}
	*ret = iseq;
	return 0;
}

int ruby_iseq_read(const struct ruby_vm *vm, uint64_t addr, struct ruby_iseq *ret)
{
	struct memory_span spans[RUBY_ISEQ_SPANS];
	struct ruby_iseq_id again;
	struct ruby_iseq iseq;
	size_t i;
	int r;

	r = ruby_iseq_read_pieces(vm, addr, &iseq);
	if (r)
		return r;
	ruby_iseq_check_spans(vm, &iseq, &again, spans);
	memory_read_spans(&vm->mem, spans, RUBY_ISEQ_SPANS);
	for (i = 0; i < RUBY_ISEQ_SPANS; i++)
		r = spans[i].ok ? r : -EFAULT;
	if (!r && !ruby_iseq_check(vm, &iseq, &again))
		r = -EINVAL;
	if (r) {
		ruby_iseq_deinit(&iseq);
		return r;
	}
	*ret = iseq;
	return 0;
}

/* Whether @name is one that a local variable can have. */
static bool is_local_name(const char *name)
{
	return (*name >= 'a' && *name <= 'z') || *name == '_' || (unsigned char)*name >= 0x80;
}

/*
 * Which of the local variables of @iseq is called @name (NULL: variable @n). The table of names
 * tells whether their number is one: each of them has a name. Returns their number if there is
 * none, or that is not certain.
 */
static uint32_t find_local(const struct ruby_vm *vm, const struct ruby_iseq *iseq, const char *name,
			   uint32_t n)
{
	uint32_t i, found = name ? iseq->n_locals : n;
	uint64_t table, ids[LOCALS_MAX];

	if (iseq->n_locals > LOCALS_MAX || iseq->type != RUBY_ISEQ_METHOD ||
	    memory_read_u64(&vm->mem, iseq->id.head[RUBY_ISEQ_BODY] + local_table(&vm->layout),
			    &table) ||
	    memory_read(&vm->mem, table, ids, iseq->n_locals * sizeof(*ids)))
		return iseq->n_locals;
	for (i = 0; i < iseq->n_locals; i++) {
		struct buf local _cleanup_buf_ = BUF_INIT;

		/* Some have a number in place of a name: what the compiler adds, and (a, b). */
		if ((name || i != n) && ids[i] <= LOCALS_INTERNAL)
			continue;
		if (ruby_id_name(vm, ids[i], &local) || !is_local_name(buf_str(&local)))
			return iseq->n_locals;
		if (name && !strcmp(buf_str(&local), name))
			found = i;
	}
	return found;
}

static uint16_t local_slot(const struct ruby_iseq *iseq, uint32_t n)
{
	return n < iseq->n_locals ? (uint16_t)(iseq->n_locals + VM_ENV_DATA_SIZE - 1 - n) : 0;
}

uint16_t ruby_iseq_local_slot(const struct ruby_vm *vm, const struct ruby_iseq *iseq, uint32_t n)
{
	return n < iseq->n_locals ? local_slot(iseq, find_local(vm, iseq, NULL, n)) : 0;
}

uint16_t ruby_iseq_local_named(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			       const char *name)
{
	return local_slot(iseq, find_local(vm, iseq, name, 0));
}

size_t ruby_iseq_bytes(const struct ruby_iseq *iseq)
{
	return (iseq->decoration ? strlen(iseq->decoration) + 1 : 0) +
	       (iseq->name ? strlen(iseq->name) + 1 : 0) +
	       (iseq->path ? strlen(iseq->path) + 1 : 0) + iseq->n_lines * sizeof(*iseq->lines) +
	       iseq->index_words * sizeof(*iseq->index);
}

void ruby_iseq_deinit(struct ruby_iseq *iseq)
{
	free(iseq->decoration);
	free(iseq->name);
	free(iseq->path);
	free(iseq->lines);
	free(iseq->index);
	*iseq = (struct ruby_iseq) { 0 };
}

void ruby_iseq_check_spans(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			   struct ruby_iseq_id *fresh, struct memory_span *spans)
{
	spans[0] = (struct memory_span) { .addr = iseq->addr,
					  .dst = fresh->head,
					  .len = sizeof(fresh->head) };
	spans[1] = (struct memory_span) { .addr = iseq->id.head[RUBY_ISEQ_BODY],
					  .dst = fresh->body,
					  .len = sizeof(fresh->body) };
	spans[2] = (struct memory_span) { .addr = iseq->id.location[RUBY_LOCATION_LABEL],
					  .dst = fresh->label,
					  .len = sizeof(fresh->label) };
	spans[3] = (struct memory_span) { .addr = iseq->id.location[RUBY_LOCATION_PATHOBJ],
					  .dst = fresh->path,
					  .len = sizeof(fresh->path) };
	memset(fresh->text, 0, sizeof(fresh->text));
	spans[4] = (struct memory_span) { .addr = iseq->text_addr,
					  .dst = fresh->text,
					  .len = iseq->text_len };
	spans[5] = (struct memory_span) { .addr = iseq->id.head[RUBY_ISEQ_BODY] +
						  vm->layout.iseq_location,
					  .dst = fresh->location,
					  .len = sizeof(fresh->location) };
}

/*
 * Whether two copies of a String or Array have the same contents, or lead to the same. Flags that
 * come and go, as the age, do not count.
 */
static bool same_text(const struct ruby_vm *vm, const uint64_t *a, const uint64_t *b)
{
	uint64_t mask = RUBY_T_MASK | RUBY_FL_USER(1); /* RSTRING_NOEMBED, RARRAY_EMBED_FLAG */

	if (vm->layout.string_embed == RSTRING_EMBED_SHORT)
		mask |= RSTRING_EMBED_LEN_MASK;
	return (a[0] & mask) == (b[0] & mask) && !memcmp(a + RBASIC_BYTES / 8, b + RBASIC_BYTES / 8,
							 RUBY_OBJECT_WORDS * 8 - RBASIC_BYTES);
}

bool ruby_iseq_check(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		     const struct ruby_iseq_id *fresh)
{
	const struct ruby_iseq_id *id = &iseq->id;

	return is_iseq(fresh->head[RUBY_ISEQ_FLAGS]) &&
	       fresh->head[RUBY_ISEQ_BODY] == id->head[RUBY_ISEQ_BODY] &&
	       !memcmp(fresh->body, id->body, sizeof(id->body)) &&
	       !memcmp(fresh->location, id->location, sizeof(id->location)) &&
	       same_text(vm, id->label, fresh->label) && same_text(vm, id->path, fresh->path) &&
	       !memcmp(id->text, fresh->text, sizeof(id->text));
}

uint64_t ruby_iseq_words_check(const struct ruby_iseq *iseq)
{
	const struct ruby_iseq_id *id = &iseq->id;
	__u64 label[3], text[RBPF_LABEL_WORDS];

	memcpy(label, id->label + RSTRING_LEN_WORD, sizeof(label));
	memcpy(text, id->text, sizeof(text));
	return rbpf_check_iseq(0, id->head[RUBY_ISEQ_BODY], id->location[RUBY_LOCATION_PATHOBJ],
			       id->location[RUBY_LOCATION_LINENO], label, text);
}

bool ruby_iseq_is_compiled(const struct ruby_vm *vm, const struct ruby_iseq *iseq)
{
	uint64_t entry;

	return ruby_layout_has(vm->layout.jit_entry) &&
	       !memory_read_u64(&vm->mem, iseq->id.head[RUBY_ISEQ_BODY] + vm->layout.jit_entry,
				&entry) &&
	       entry > JIT_LAST_STATE;
}

bool ruby_iseq_has_pc(const struct ruby_iseq *iseq, uint64_t pc)
{
	return pc >= iseq->encoded && pc <= iseq->encoded + 8ull * iseq->size && !(pc & 7);
}

/* The rank of position @x in the succinct index: the number of the entry, from 1. */
static uint32_t index_lookup(const struct ruby_iseq *iseq, uint32_t x)
{
	const uint64_t *block;
	uint32_t o, s, rank;

	if (x < RUBY_INDEX_IMM)
		return RUBY_INDEX_IMM_RANK(iseq->index[x / RUBY_INDEX_IMM_PACK], x);
	o = (x - RUBY_INDEX_IMM) % RUBY_INDEX_BLOCK;
	block = iseq->index + RUBY_INDEX_IMM_WORDS +
		(x - RUBY_INDEX_IMM) / RUBY_INDEX_BLOCK * RUBY_INDEX_BLOCK_WORDS;
	s = o / 64;
	rank = (uint32_t)block[0];
	if (s)
		rank += block[1] >> ((s - 1) * 9) & 0x1ff;
	return rank + (uint32_t)__builtin_popcountll(block[2 + s] << (63 - o % 64));
}

bool ruby_iseq_index_fits(const struct ruby_iseq *iseq)
{
	return iseq->n_lines <= 1 ||
	       (index_lookup(iseq, 0) == 1 && index_lookup(iseq, iseq->size - 1) == iseq->n_lines);
}

uint32_t ruby_iseq_line(const struct ruby_iseq *iseq, uint64_t pc)
{
	uint32_t pos, entry, line;

	if (!ruby_iseq_has_pc(iseq, pc) || !iseq->n_lines)
		return 0;
	/* pc points behind the instruction that is executed. */
	pos = (uint32_t)((pc - iseq->encoded) / 8);
	if (pos)
		pos--;
	entry = iseq->n_lines == 1 ? 1 : index_lookup(iseq, pos);
	if (!entry || entry > iseq->n_lines)
		return 0;
	line = iseq->lines[entry - 1];
	return line ? line : iseq->first_lineno;
}
