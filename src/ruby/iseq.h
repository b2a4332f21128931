/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An instruction sequence: the code of a method, block or body, with its name, file and line table.
 *
 * A struct ruby_iseq is a copy. The original may be freed and its address used again at any time,
 * so it remembers the words that identify the original; ruby_iseq_check_*() tells, for the price of
 * two pieces of a batched read, whether it still is that iseq.
 */
#ifndef RBPF_RUBY_ISEQ_H
#define RBPF_RUBY_ISEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_span;
struct ruby_vm;

enum ruby_iseq_type { /* rb_iseq_constant_body.type; the same in all versions */
		      RUBY_ISEQ_TOP = 0,
		      RUBY_ISEQ_METHOD = 1,
		      RUBY_ISEQ_BLOCK = 2,
		      RUBY_ISEQ_CLASS = 3,
		      RUBY_ISEQ_RESCUE = 4,
		      RUBY_ISEQ_ENSURE = 5,
		      RUBY_ISEQ_EVAL = 6,
		      RUBY_ISEQ_MAIN = 7,
		      RUBY_ISEQ_PLAIN = 8,
};

/* The words that identify an iseq, as they stand in memory. */
struct ruby_iseq_id {
	uint64_t head[3]; /* rb_iseq_t: flags, wrapper, body */
	uint64_t body[12]; /* the first 96 bytes of the body: type and size, encoded, …, location */
};

struct ruby_iseq {
	uint64_t addr;
	struct ruby_iseq_id id;
	enum ruby_iseq_type type;
	uint64_t encoded; /* iseq_encoded */
	uint32_t size;	  /* words in it */
	uint32_t first_lineno;
	char *decoration; /* "block in ", "rescue in ", …; "" if none; owned */
	char *name; /* what the decoration applies to: a method's name, "<class:Foo>", …; owned */
	bool in_method;	   /* name is a method's, so that its owner belongs before it */
	bool hides_method; /* a rescue or ensure frame that stands for the one below, too */
	bool like_cfunc; /* written in Ruby, but shown like a C function (Primitive.attr! :c_trace)
			  */
	char *path;	 /* as backtraces show it; raw bytes; owned */
	uint32_t *lines; /* line of each entry of the table; owned */
	uint32_t n_lines;
	uint64_t *index; /* the succinct index over it, see ruby_iseq_line(); owned */
	size_t index_words;
};

/* Read the iseq at @addr. Returns 0, -EINVAL (no iseq there), -EFAULT or -ENOMEM. */
int ruby_iseq_read(const struct ruby_vm *vm, uint64_t addr, struct ruby_iseq *ret);
void ruby_iseq_deinit(struct ruby_iseq *iseq);

/* The two spans to read into @fresh for a check of @iseq … */
#define RUBY_ISEQ_SPANS 2
void ruby_iseq_check_spans(const struct ruby_iseq *iseq, struct ruby_iseq_id *fresh,
			   struct memory_span *spans);
/* … and whether, by what was read, it is still the same. */
bool ruby_iseq_check(const struct ruby_iseq *iseq, const struct ruby_iseq_id *fresh);

/* Whether @pc can be a pc of this iseq: inside its code, or just behind it. */
bool ruby_iseq_has_pc(const struct ruby_iseq *iseq, uint64_t pc);

/* The line that is executed at @pc, 0 if the table has none. */
uint32_t ruby_iseq_line(const struct ruby_iseq *iseq, uint64_t pc);

#endif
