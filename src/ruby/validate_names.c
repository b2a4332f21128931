/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is readable is not yet right: two members of the same type can change places (another patch,
 * another version), and each name and line can still be read, but is another one. So of each member
 * that names rest on, something is asked that only the right one satisfies, of as many objects as
 * there are:
 *
 *   rb_method_definition_t.original_id  of a method whose code is an iseq is that iseq's label
 *   insns_info, line_no, first_lineno   lines are within location.code_location, which the compiler
 *                                       fills from the syntax tree, where it begins with the first
 *   succ_index_table                    has rank 1 at the first instruction, and at the last one
 *                                       that of the last entry
 *   local_iseq                          a method's or class body's is itself; a block's is none's
 *   parent_iseq                         leads from a block to its local iseq in as many steps as
 * its label says: "block (2 levels) in foo"; and a rescue or ensure clause to one of the same local
 * iseq builtin_attrs                       are only set of what is in "<internal:…"
 *
 * Objects that were read while they changed contradict, too. So a member is refuted only if a good
 * part of its objects do.
 *
 * Sources: iseq.c, compile.c, vm_method.c, vm_core.h of 2.7 to 4.1.
 */
#include "ruby/validate_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/object.h"
#include "ruby/structs.h"
#include "ruby/vm.h"

#define MAX_SHARE     4	    /* one in so many may contradict */
#define MAX_OF_STACK  32    /* iseqs of stacks that are asked */
#define MAX_OF_KNOWN  4	    /* … if the layout was valid in another process */
#define MAX_OF_HEAP   24    /* iseqs, and as many method entries, near one */
#define MAX_DEPTH     64    /* nested iseqs */
#define WINDOW	      65536 /* bytes of the heap: a page of it, or several */
#define PAGE	      4096
#define ATTRS_MAX     0xffu
#define COLUMNS_MAX   (1 << 24)
#define INTERNAL_PATH "<internal:"

/* What contradicts, by its name for people. */
static const char *const fields[VALIDATE_FACTS] = {
	[VALIDATE_METHOD_NAME] = "method.original_id",
	[VALIDATE_LINENO] = "iseq.first_lineno",
	[VALIDATE_LINES] = "iseq.insns_info.line_no",
	[VALIDATE_INDEX] = "iseq.insns_info.succ_index_table",
	[VALIDATE_LOCAL] = "iseq.local_iseq",
	[VALIDATE_PARENT] = "iseq.parent_iseq",
	[VALIDATE_ATTRS] = "iseq.builtin_attrs",
};

static void add(struct validate_evidence *ev, enum validate_fact fact, bool yes)
{
	if (yes)
		ev->yes[fact]++;
	else
		ev->no[fact]++;
}

/* ---- lines ---- */

/* rb_code_location_t, the last member of location; then what follows first_lineno and node_id. */
struct code_location {
	int32_t first_line, first_column, last_line, last_column;
};

/*
 * As it is if first_lineno, before it, has @size bytes. False if the struct does not tell: what is
 * there is of another form, or of another place.
 */
static bool read_location(const struct ruby_vm *vm, const struct ruby_iseq *iseq, uint16_t size,
			  struct code_location *ret)
{
	uint64_t first = iseq->id.location[RUBY_LOCATION_LINENO];
	uint64_t at = iseq->id.head[RUBY_ISEQ_BODY] + vm->layout.iseq_location +
		      RUBY_LOCATION_LINENO * 8 + size + sizeof(int32_t);

	first = size == 8 ? first >> 1 : (uint32_t)first;
	return !memory_read(&vm->mem, at, ret, sizeof(*ret)) && ret->first_line > 0 &&
	       (uint64_t)ret->first_line == first && ret->last_line >= ret->first_line &&
	       ret->first_column >= 0 && ret->first_column < COLUMNS_MAX && ret->last_column >= 0 &&
	       ret->last_column < COLUMNS_MAX;
}

static void ask_lines(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		      struct validate_evidence *ev)
{
	uint16_t size = vm->layout.lineno_size;
	struct code_location location, other;
	bool inside = true, any = false;
	uint32_t i;

	/* Clauses have the location of what they are in, or of their first node. */
	if (iseq->type > RUBY_ISEQ_CLASS)
		return;
	if (!read_location(vm, iseq, size, &location)) {
		if (read_location(vm, iseq, size == 8 ? 4 : 8, &other))
			add(ev, VALIDATE_LINENO, false);
		return;
	}
	add(ev, VALIDATE_LINENO, true);
	for (i = 0; i < iseq->n_lines; i++) {
		any |= iseq->lines[i] != 0;
		inside &= !iseq->lines[i] || (iseq->lines[i] >= (uint32_t)location.first_line &&
					      iseq->lines[i] <= (uint32_t)location.last_line);
	}
	if (any)
		add(ev, VALIDATE_LINES, inside);
}

/* ---- iseqs around it ---- */

/* Of the body of an iseq. */
struct relation {
	uint32_t type;
	uint64_t local, parent;
};

static bool read_relation(const struct ruby_vm *vm, uint64_t iseq, struct relation *ret)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t head[RUBY_ISEQ_WORDS];
	struct memory_span spans[3];

	if (!ruby_is_object(iseq) || memory_read(&vm->mem, iseq, head, sizeof(head)) ||
	    (head[RUBY_ISEQ_FLAGS] & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
		return false;
	spans[0] = (struct memory_span) { head[RUBY_ISEQ_BODY], &ret->type, sizeof(ret->type), 0 };
	spans[1] = (struct memory_span) { head[RUBY_ISEQ_BODY] + l->local_iseq, &ret->local,
					  sizeof(ret->local), 0 };
	spans[2] = (struct memory_span) { head[RUBY_ISEQ_BODY] + l->parent_iseq, &ret->parent,
					  sizeof(ret->parent), 0 };
	memory_read_spans(&vm->mem, spans, ARRAY_SIZE(spans));
	return spans[0].ok && spans[1].ok && spans[2].ok;
}

static void ask_local(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		      struct validate_evidence *ev)
{
	struct relation local;

	switch (iseq->type) {
	case RUBY_ISEQ_TOP:
	case RUBY_ISEQ_METHOD:
	case RUBY_ISEQ_CLASS:
	case RUBY_ISEQ_MAIN:
		add(ev, VALIDATE_LOCAL, iseq->local == iseq->addr);
		break;
	case RUBY_ISEQ_BLOCK:
		add(ev, VALIDATE_LOCAL,
		    read_relation(vm, iseq->local, &local) && local.type != RUBY_ISEQ_BLOCK);
		break;
	default:
		break;
	}
}

/* How many blocks its label says that a block stands in; 0 if it does not say so. */
static unsigned int levels_of_label(const struct ruby_vm *vm, const struct ruby_iseq *iseq)
{
	struct buf label _cleanup_buf_ = BUF_INIT;
	unsigned int levels;

	if (ruby_string_read(vm, iseq->id.location[RUBY_LOCATION_LABEL], &label))
		return 0;
	if (!strncmp(buf_str(&label), "block in ", strlen("block in ")))
		return 1;
	return sscanf(buf_str(&label), "block (%3u levels) in ", &levels) == 1 ? levels : 0;
}

/* The same by the parents; 0 if they do not lead to the local iseq. */
static unsigned int levels_of_parents(const struct ruby_vm *vm, const struct ruby_iseq *iseq)
{
	uint64_t addr = iseq->addr;
	unsigned int levels = 0, depth;
	struct relation r;

	for (depth = 0; depth < MAX_DEPTH; depth++) {
		if (addr == iseq->local)
			return levels;
		if (!read_relation(vm, addr, &r) || r.local != iseq->local)
			return 0;
		levels += r.type == RUBY_ISEQ_BLOCK;
		addr = r.parent;
	}
	return 0;
}

static void ask_parent(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		       struct validate_evidence *ev)
{
	struct relation own, parent;
	unsigned int levels;

	switch (iseq->type) {
	case RUBY_ISEQ_BLOCK:
		levels = levels_of_label(vm, iseq);
		if (levels)
			add(ev, VALIDATE_PARENT, levels_of_parents(vm, iseq) == levels);
		break;
	case RUBY_ISEQ_RESCUE:
	case RUBY_ISEQ_ENSURE:
		if (read_relation(vm, iseq->addr, &own))
			add(ev, VALIDATE_PARENT,
			    read_relation(vm, own.parent, &parent) && parent.local == own.local);
		break;
	default:
		break;
	}
}

/* ---- others ---- */

static void ask_attrs(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		      struct validate_evidence *ev)
{
	bool internal = !strncmp(iseq->path, INTERNAL_PATH, strlen(INTERNAL_PATH));
	uint32_t attrs;

	if (!ruby_layout_has(vm->layout.builtin_attrs) ||
	    memory_read(&vm->mem, iseq->id.head[RUBY_ISEQ_BODY] + vm->layout.builtin_attrs, &attrs,
			sizeof(attrs)) ||
	    (internal && !attrs))
		return;
	add(ev, VALIDATE_ATTRS, internal ? attrs <= ATTRS_MAX : !attrs);
}

static void ask_iseq(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		     struct validate_evidence *ev)
{
	ask_lines(vm, iseq, ev);
	if (iseq->n_lines > 1)
		add(ev, VALIDATE_INDEX, ruby_iseq_index_fits(iseq));
	ask_local(vm, iseq, ev);
	ask_parent(vm, iseq, ev);
	ask_attrs(vm, iseq, ev);
}

/* @method, if its code is @iseq. */
static void ask_method(const struct ruby_vm *vm, const struct ruby_method *method,
		       const struct ruby_iseq *iseq, struct validate_evidence *ev)
{
	struct buf name _cleanup_buf_ = BUF_INIT;

	if (!ruby_method_is_of(method, iseq->addr) || iseq->type != RUBY_ISEQ_METHOD)
		return;
	add(ev, VALIDATE_METHOD_NAME,
	    !ruby_id_name(vm, ruby_method_original_id(vm, method), &name) &&
		    !strcmp(buf_str(&name), iseq->name));
}

void validate_ask_frame(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			const struct ruby_method *method, struct validate_evidence *ev)
{
	if (ev->n_frames == (ev->known ? MAX_OF_KNOWN : MAX_OF_STACK))
		return;
	ev->n_frames++;
	ev->iseq = iseq->addr;
	ask_iseq(vm, iseq, ev);
	if (method)
		ask_method(vm, method, iseq, ev);
}

/* ---- the heap around an iseq ---- */

static void ask_iseq_at(const struct ruby_vm *vm, uint64_t addr, struct validate_evidence *ev)
{
	struct ruby_iseq iseq;

	if (ruby_iseq_read(vm, addr, &iseq))
		return;
	ask_iseq(vm, &iseq, ev);
	ruby_iseq_deinit(&iseq);
}

static void ask_method_at(const struct ruby_vm *vm, uint64_t addr, struct validate_evidence *ev)
{
	struct ruby_method method;
	struct ruby_iseq iseq;

	if (ruby_method_read(vm, addr, false, &method))
		return;
	if (ruby_method_has_iseq(&method) &&
	    !ruby_iseq_read(vm, method.id.def[RUBY_DEF_BODY], &iseq)) {
		ask_method(vm, &method, &iseq, ev);
		ruby_iseq_deinit(&iseq);
	}
	ruby_method_deinit(&method);
}

/* 0 where unreadable. */
static void read_window(const struct ruby_vm *vm, uint64_t lo, uint64_t *words)
{
	struct memory_span pages[WINDOW / PAGE];
	size_t i;

	memset(words, 0, WINDOW);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		pages[i] = (struct memory_span) { .addr = lo + i * PAGE,
						  .dst = words + i * PAGE / 8,
						  .len = PAGE };
	memory_read_spans(&vm->mem, pages, ARRAY_SIZE(pages));
}

/* Iseqs are seldom created alone, nor are the methods that they are the code of. */
static void ask_heap(const struct ruby_vm *vm, struct validate_evidence *ev)
{
	_cleanup_free_ uint64_t *words = malloc(WINDOW);
	uint64_t lo = ev->iseq & ~(uint64_t)(WINDOW - 1);
	unsigned int n_iseqs = 0, n_methods = 0;
	size_t i;

	if (!words || !ev->iseq)
		return;
	read_window(vm, lo, words);
	for (i = 0; i + RUBY_ME_WORDS <= WINDOW / 8; i++) {
		uint64_t kind = words[i] & RUBY_IMEMO_MASK;

		if (kind == RUBY_IMEMO_ISEQ && ruby_is_object(words[i + RUBY_ISEQ_BODY]) &&
		    n_iseqs++ < MAX_OF_HEAP)
			ask_iseq_at(vm, lo + i * 8, ev);
		else if (kind == RUBY_IMEMO_MENT && ruby_is_object(words[i + RUBY_ME_DEF]) &&
			 n_methods++ < MAX_OF_HEAP)
			ask_method_at(vm, lo + i * 8, ev);
	}
}

/* ---- the verdict ---- */

static bool refuted(const struct validate_evidence *ev, unsigned int fact)
{
	return ev->no[fact] * MAX_SHARE > ev->yes[fact] + ev->no[fact];
}

/* VALIDATE_FACTS if there is none. */
static unsigned int first_refuted(const struct validate_evidence *ev)
{
	unsigned int fact;

	for (fact = 0; fact < VALIDATE_FACTS; fact++)
		if (refuted(ev, fact))
			break;
	return fact;
}

static void say(struct ruby_vm *vm, const struct validate_evidence *ev, unsigned int bad)
{
	if (bad < VALIDATE_FACTS)
		ruby_vm_check_add(vm, "names", false, true,
				  "%s is another member: %u of %u objects contradict", fields[bad],
				  ev->no[bad], ev->no[bad] + ev->yes[bad]);
	else
		ruby_vm_check_add(vm, "names", true, true,
				  "%u method names, %u tables of lines and %u parents agree",
				  ev->yes[VALIDATE_METHOD_NAME], ev->yes[VALIDATE_LINES],
				  ev->yes[VALIDATE_PARENT]);
}

const char *validate_names(struct ruby_vm *vm, struct validate_evidence *ev)
{
	unsigned int bad = first_refuted(ev);

	if (!ev->known || bad < VALIDATE_FACTS)
		ask_heap(vm, ev);
	/* It only decides which methods are shown as if they were written in C. */
	if (refuted(ev, VALIDATE_ATTRS)) {
		vm->layout.builtin_attrs = RUBY_UNKNOWN;
		ev->no[VALIDATE_ATTRS] = 0;
	}
	bad = first_refuted(ev);
	say(vm, ev, bad);
	return bad < VALIDATE_FACTS ? fields[bad] : NULL;
}
