/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An instruction sequence: the code of a method, block or body, with its name, file and line table.
 *
 * A struct ruby_iseq is a copy. The original may be freed and its address used again at any time,
 * so it remembers the words that identify the original; ruby_iseq_check_*() tells, for the price of
 * a few pieces of a batched read, whether it still is that iseq.
 */
#ifndef RBPF_RUBY_ISEQ_H
#define RBPF_RUBY_ISEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct memory_span;
struct ruby_vm;

/* The words that identify an iseq, as they stand in memory. */
struct ruby_iseq_id {
	uint64_t head[RUBY_ISEQ_WORDS]; /* rb_iseq_t */
	uint64_t body[RUBY_BODY_WORDS];
	uint64_t location[RUBY_LOCATION_WORDS];
	/* the String of the label: with the text itself if it is short */
	uint64_t label[RUBY_OBJECT_WORDS];
	uint64_t text[RBPF_LABEL_WORDS]; /* the end of that text, if these words do not have it */
	/* the String of the path, or the Array of path and real path */
	uint64_t path[RUBY_OBJECT_WORDS];
};

struct ruby_iseq {
	uint64_t addr;
	struct ruby_iseq_id id;
	enum ruby_iseq_type type;
	uint64_t encoded;   /* iseq_encoded */
	uint64_t text_addr; /* of id.text, … */
	uint32_t text_len;  /* … in bytes; 0 if it is not used */
	uint64_t local;	    /* iseq of the method or body around it, or itself */
	uint32_t size;	    /* words in it */
	uint32_t n_locals;  /* local variables, with parameters; 0 also if it is not known */
	uint32_t first_lineno;
	char *decoration; /* "block in ", "rescue in ", …; "" if none; owned */
	char *name; /* what the decoration applies to: a method's name, "<class:Foo>", …; owned */
	bool in_method;	   /* name is a method's, so that its owner belongs before it */
	bool hides_method; /* 3.4 on, rescue and ensure: backtraces hide the frame that called it */
	bool like_cfunc;   /* written in Ruby, but shown like a C function */
	/*
	 * … from 4.0 on because its file is "<internal:…": what it calls, in C or internal, is
	 * hidden.
	 */
	bool internal;
	bool compiled;	 /* there was machine code for it when it was read */
	char *path;	 /* as backtraces show it; raw bytes; owned */
	uint32_t *lines; /* line of each entry of the table; owned */
	uint32_t n_lines;
	bool lines_left_out; /* larger than RUBY_ISEQ_MAX_LINES or _WORDS: no line is known */
	uint64_t *index;     /* the succinct index over it, see ruby_iseq_line(); owned */
	size_t index_words;
};

/* Entries of a line table, and words of code, beyond which the lines of an iseq are left out. */
#define RUBY_ISEQ_MAX_LINES 65536
#define RUBY_ISEQ_MAX_WORDS (1u << 20)

/* Read the iseq at @addr. Returns 0, -EINVAL (no iseq there), -EFAULT or -ENOMEM. */
int ruby_iseq_read(const struct ruby_vm *vm, uint64_t addr, struct ruby_iseq *ret);

/*
 * The same without its last step: what was read in pieces belongs together only if
 * ruby_iseq_check() of what ruby_iseq_check_spans() reads after that says so.
 */
int ruby_iseq_read_pieces(const struct ruby_vm *vm, uint64_t addr, struct ruby_iseq *ret);
void ruby_iseq_deinit(struct ruby_iseq *iseq);

/* Bytes of memory that @iseq owns. */
size_t ruby_iseq_bytes(const struct ruby_iseq *iseq);

/* The spans to read into @fresh for a check of @iseq … */
#define RUBY_ISEQ_SPANS 6
void ruby_iseq_check_spans(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			   struct ruby_iseq_id *fresh, struct memory_span *spans);
/* … and whether, by what was read, it is still the same. */
bool ruby_iseq_check(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
		     const struct ruby_iseq_id *fresh);

/* rbpf_check_iseq() of what was read. */
uint64_t ruby_iseq_words_check(const struct ruby_iseq *iseq);

/* Whether there is machine code for it now. */
bool ruby_iseq_is_compiled(const struct ruby_vm *vm, const struct ruby_iseq *iseq);

/* Whether @pc can be a pc of this iseq: inside its code, or just behind it. */
bool ruby_iseq_has_pc(const struct ruby_iseq *iseq, uint64_t pc);

/*
 * Whether the index leads from the first instruction to the first line, and from the last to the
 * last.
 */
bool ruby_iseq_index_fits(const struct ruby_iseq *iseq);

/*
 * How many words below ep local variable @n (0: the first parameter) of frames of @iseq stands; 0
 * if there is none, or that is not certain.
 */
uint16_t ruby_iseq_local_slot(const struct ruby_vm *vm, const struct ruby_iseq *iseq, uint32_t n);

/* The same of the local variable that is called @name. */
uint16_t ruby_iseq_local_named(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			       const char *name);

/* The line that is executed at @pc, 0 if the table has none. */
uint32_t ruby_iseq_line(const struct ruby_iseq *iseq, uint64_t pc);

#endif
