/* SPDX-License-Identifier: GPL-2.0-only */
/* The tokens of filter expressions (expr.h). */
#ifndef RBPF_VIEW_EXPR_TOKEN_H
#define RBPF_VIEW_EXPR_TOKEN_H

#include <stddef.h>

#include "base/buf.h"

struct err;

enum expr_token_kind {
	TOKEN_END,
	TOKEN_WORD,    /* thread, and, 42, 12:00:05, Cart#total */
	TOKEN_STRING,  /* "…" or '…' */
	TOKEN_PATTERN, /* /…/ */
	TOKEN_OPERATOR,
	TOKEN_OPEN,
	TOKEN_CLOSE,
};

struct expr_tokens {
	const char *text; /* the whole expression */
	const char *what; /* for messages: "--filter" */
	size_t next;	  /* byte behind the current token */
	struct err *err;  /* or NULL */

	/* The current one. */
	enum expr_token_kind kind;
	size_t at;	  /* byte where it begins */
	struct buf value; /* its text, without quotes and escapes; owned */
};

/* Take the next token. Returns 0, -ENOMEM, or -EINVAL as expr_fault(). */
int expr_token_next(struct expr_tokens *t);

/* Set .err to a usage error at byte @at of the expression. Returns -EINVAL. */
int expr_fault(const struct expr_tokens *t, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
