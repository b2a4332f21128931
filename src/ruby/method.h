/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A method entry: who owns a method and, if it is written in C, what it is called. Like struct
 * ruby_iseq a copy, with the words that identify the original.
 */
#ifndef RBPF_RUBY_METHOD_H
#define RBPF_RUBY_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby_abi.h"

struct memory_span;
struct ruby_vm;

#define RUBY_OWNER_WORDS 20

struct ruby_method_id {
	uint64_t me[RUBY_ME_WORDS];
	uint64_t def[RUBY_DEF_WORDS];
	/*
	 * The first words of its class, as far as they lead to the name or to the object of a
	 * singleton.
	 */
	uint64_t owner[RUBY_OWNER_WORDS];
};

struct ruby_method {
	uint64_t addr;
	struct ruby_method_id id;
	char *prefix; /* "Foo#", "Foo." or "": what stands before the name; raw bytes; owned */
	char *name;   /* original name; NULL unless asked for and found; owned */
};

/*
 * Read the method entry at @addr; @with_name also looks up its name (C functions have it nowhere
 * else). Returns 0, -EINVAL (no method entry there), -ENOENT (no name), -EFAULT or -ENOMEM.
 */
int ruby_method_read(const struct ruby_vm *vm, uint64_t addr, bool with_name,
		     struct ruby_method *ret);

/* The same without its last step: see ruby_iseq_read_pieces(). */
int ruby_method_read_pieces(const struct ruby_vm *vm, uint64_t addr, bool with_name,
			    struct ruby_method *ret);
void ruby_method_deinit(struct ruby_method *m);

/* Bytes of memory that @m owns. */
size_t ruby_method_bytes(const struct ruby_method *m);

/* rbpf_check_me() of what was read, on top of @check. */
uint64_t ruby_method_words_check(const struct ruby_method *m, uint64_t check);

/* The ID that it was defined by, which an alias has in common with what it is one of. */
uint64_t ruby_method_original_id(const struct ruby_vm *vm, const struct ruby_method *m);

/* Whether its method is written in Ruby, with def; and whether its code is the iseq at @iseq. */
bool ruby_method_has_iseq(const struct ruby_method *m);
bool ruby_method_is_of(const struct ruby_method *m, uint64_t iseq);

/* The address of the function of a method that is written in C, else 0. */
uint64_t ruby_method_function(const struct ruby_method *m);

/*
 * The spans to read for a check of @m, and whether it is still the same method entry: like
 * ruby_iseq_check_spans() and ruby_iseq_check().
 */
#define RUBY_METHOD_SPANS 3
void ruby_method_check_spans(const struct ruby_vm *vm, const struct ruby_method *m,
			     struct ruby_method_id *fresh, struct memory_span *spans);
bool ruby_method_check(const struct ruby_vm *vm, const struct ruby_method *m,
		       const struct ruby_method_id *fresh);

#endif
