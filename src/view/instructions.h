/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self and total of the instructions of native functions.
 *
 * A function is a row of a report: its name and the path of its module. It is chosen by its name.
 * A recording has the addresses at which it ran; which instructions are there is for the caller to
 * find out in the module, as it is on this machine, and to add as blocks: of a function that was
 * inlined into others, one for each of these. What no block has an instruction for is a row of its
 * own, so that the rows of a function always add up to its self time.
 */
#ifndef RBPF_VIEW_INSTRUCTIONS_H
#define RBPF_VIEW_INSTRUCTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "view/totals.h"

struct profile;
struct view_filter;

struct code_function {
	uint32_t frame; /* the first one of it */
	struct group_total time;
};

/* Where a function ran. */
struct code_place {
	uint32_t function; /* index */
	uint32_t module;   /* id: there may be several of one path */
	uint64_t address;  /* in it */
	uint32_t frame;	   /* the first one there */
	uint32_t row;	   /* PROFILE_NONE until there is one */
};

struct code_row {
	uint64_t address;
	uint32_t size; /* bytes of the instruction; 0: it is not known */
	uint32_t text; /* string: the instruction */
	uint32_t file; /* string: the source file; "" if unknown */
	uint32_t line; /* 0 if unknown */
	struct group_total time;
};

/* Consecutive code of a function. */
struct code_block {
	uint32_t function;   /* index */
	uint32_t module;     /* id */
	uint32_t symbol;     /* string: the function that has the code; "" if unknown … */
	bool inlined;	     /* … into which this one was inlined */
	uint64_t start, end; /* of that; both 0 if unknown */
	uint32_t note;	     /* string: why there are no instructions; "" if there are */
	size_t first, n;     /* rows, by address */
};

struct instructions {
	struct code_function *functions; /* the greatest total first; owned */
	size_t n_functions;
	size_t n_more;		   /* functions that match, too */
	struct code_place *places; /* by function, module and address; owned */
	size_t n_places;
	struct code_block *blocks; /* owned */
	size_t n_blocks, cap_blocks;
	struct code_row *rows; /* owned */
	size_t n_rows, cap_rows;
	struct intern strings; /* 0 is "" */
	struct view_sum all;   /* selected samples */
};

#define INSTRUCTIONS_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * The functions whose name @method matches, at most @max of them, and their places. Returns 0,
 * -ENOMEM, or -EINVAL (as view_selection_new()). @ret: instructions_deinit().
 */
int instructions_find(const struct profile *p, const struct view_filter *f, const regex_t *method,
		      size_t max, struct instructions *ret);
void instructions_deinit(struct instructions *c);
#define _cleanup_instructions_ _cleanup_(instructions_deinit)

/*
 * Add a block of a function. Rows that are added before the next block is begun are its rows, in
 * the order of their addresses. Return 0 or -ENOMEM.
 */
int instructions_add_block(struct instructions *c, const struct code_block *block);
int instructions_add_row(struct instructions *c, const struct code_row *row);

/*
 * End the last block, to which @n places from @places on belong: each gets the row with the
 * instruction that it lies in, or one of its own. Returns 0 or -ENOMEM.
 */
int instructions_end_block(struct instructions *c, struct code_place *places, size_t n);

/*
 * Add up the samples of each row, when all blocks are there. Returns as instructions_find().
 */
int instructions_add_up(const struct profile *p, const struct view_filter *f,
			struct instructions *c);

#endif
