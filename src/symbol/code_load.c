/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/vm.h"
#include "target/gathered.h"
#include "target/memory.h"

/* Longer chains of pointers, as those of a hostile process, are read one by one. */
#define ROUNDS 32

/* What tells an object from another one, as it is now. */
struct again {
	struct code_load *load;
	size_t span; /* the first of its spans */
	union {
		struct ruby_iseq_id iseq;
		struct ruby_method_id method;
	};
};

static size_t bytes_of(const struct code_load *l)
{
	return l->is_method ? ruby_method_bytes(&l->method) : ruby_iseq_bytes(&l->iseq);
}

static void drop(struct code_load *l, int why)
{
	if (l->done && !l->result) {
		if (l->is_method)
			ruby_method_deinit(&l->method);
		else
			ruby_iseq_deinit(&l->iseq);
	}
	l->done = true;
	l->result = why;
}

void code_load_free(struct code_load *loads, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		drop(&loads[i], -ENOENT);
	free(loads);
}

/* ---- one by one ---- */

static int load_alone(const struct ruby_vm *vm, struct code_load *l)
{
	l->result = l->is_method ? ruby_method_read(vm, l->addr, l->with_name, &l->method)
				 : ruby_iseq_read(vm, l->addr, &l->iseq);
	l->done = true;
	return l->result == -ENOMEM ? -ENOMEM : 0;
}

/* ---- together ---- */

/* Read the pieces of those objects of which none is missing. Returns 1 if one is, 0 or -ENOMEM. */
static int read_pieces(const struct ruby_vm *vm, struct code_load *loads, size_t n, size_t *room)
{
	int missing = 0;
	size_t i, size;

	for (i = 0; i < n; i++) {
		struct code_load *l = &loads[i];

		if (l->done)
			continue;
		vm->mem.gathered->missed = false;
		l->result = l->is_method
				    ? ruby_method_read_pieces(vm, l->addr, l->with_name, &l->method)
				    : ruby_iseq_read_pieces(vm, l->addr, &l->iseq);
		if (l->result == -ENOMEM)
			return -ENOMEM;
		l->done = true;
		if (vm->mem.gathered->missed) {
			drop(l, -EAGAIN);
			l->done = false;
			missing = 1;
			continue;
		}
		size = l->result ? 0 : bytes_of(l);
		if (size >= *room)
			drop(l, -E2BIG);
		else
			*room -= size;
	}
	return missing;
}

static int gather(const struct ruby_vm *vm, struct code_load *loads, size_t n, size_t *room)
{
	struct ruby_vm gathering = *vm;
	struct gathered g;
	int round, r = 1;

	gathered_init(&g, &vm->mem);
	gathering.mem = gathered_memory(&g);
	for (round = 0; round < ROUNDS && r > 0; round++) {
		r = read_pieces(&gathering, loads, n, room);
		if (r > 0 && gathered_fetch(&g))
			r = -ENOMEM;
	}
	gathered_deinit(&g);
	return r < 0 ? r : 0;
}

/* Whether the object is still what was read of it. */
static bool is_same(const struct ruby_vm *vm, const struct again *a,
		    const struct memory_span *spans)
{
	const size_t n = a->load->is_method ? RUBY_METHOD_SPANS : RUBY_ISEQ_SPANS;
	size_t i;

	for (i = 0; i < n; i++)
		if (!spans[a->span + i].ok)
			return false;
	return a->load->is_method ? ruby_method_check(vm, &a->load->method, &a->method)
				  : ruby_iseq_check(vm, &a->load->iseq, &a->iseq);
}

/* Compare those that were read with what the process has now, and read the @n_last spans @last. */
static int compare(const struct ruby_vm *vm, struct code_load *loads, size_t n,
		   struct memory_span *last, size_t n_last)
{
	struct again *again = calloc(n, sizeof(*again));
	struct memory_span *spans = calloc(n * RUBY_ISEQ_SPANS + n_last, sizeof(*spans));
	size_t i, n_again = 0, n_spans = 0;

	_Static_assert(RUBY_ISEQ_SPANS >= RUBY_METHOD_SPANS, "room for either");
	if (!again || !spans) {
		free(again);
		free(spans);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		struct again *a = &again[n_again];

		if (!loads[i].done || loads[i].result)
			continue;
		*a = (struct again) { .load = &loads[i], .span = n_spans };
		if (loads[i].is_method)
			ruby_method_check_spans(vm, &loads[i].method, &a->method, &spans[n_spans]);
		else
			ruby_iseq_check_spans(vm, &loads[i].iseq, &a->iseq, &spans[n_spans]);
		n_spans += loads[i].is_method ? RUBY_METHOD_SPANS : RUBY_ISEQ_SPANS;
		n_again++;
	}
	for (i = 0; i < n_last; i++)
		spans[n_spans + i] = last[i];
	memory_read_spans(&vm->mem, spans, n_spans + n_last);
	for (i = 0; i < n_last; i++)
		last[i] = spans[n_spans + i];
	for (i = 0; i < n_again; i++)
		if (!is_same(vm, &again[i], spans))
			drop(again[i].load, -EINVAL);
	free(again);
	free(spans);
	return 0;
}

int code_load(const struct ruby_vm *vm, struct code_load *loads, size_t n, size_t room,
	      bool together, struct memory_span *last, size_t n_last)
{
	size_t i, size;
	int r = 0;

	if (together && room)
		r = gather(vm, loads, n, &room);
	for (i = 0; i < n && !r; i++) {
		if (loads[i].done)
			continue;
		if (!room) {
			drop(&loads[i], -E2BIG);
			continue;
		}
		r = load_alone(vm, &loads[i]);
		size = r || loads[i].result ? 0 : bytes_of(&loads[i]);
		room -= size < room ? size : room;
	}
	if (!r && together)
		r = compare(vm, loads, n, last, n_last);
	else if (!r)
		memory_read_spans(&vm->mem, last, n_last);
	return r;
}
