/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors as values.
 *
 * A fallible function returns 0 or a negative errno; the words a person needs travel in the
 * caller's struct err, filled once at the lowest layer that knows the path, pid or address.
 * Nothing below src/cmd/ prints or exits; src/cmd/ turns the kind into the exit status.
 */
#ifndef RBPF_BASE_ERR_H
#define RBPF_BASE_ERR_H

#include <stddef.h>

/* Kinds of errors, as the user sees them. The values are the exit statuses of rbpf(1). */
enum err_kind {
	ERR_RUNTIME = 1, /* I/O, memory, internal */
	ERR_USAGE = 2,	 /* the command line */
	ERR_TARGET = 3,	 /* no such process, not Ruby, unsupported Ruby */
	ERR_ENV = 4,	 /* privileges, BTF, kernel too old, lockdown */
	ERR_PROFILE = 5, /* the recording is unreadable or is none */
	ERR_EMPTY = 6,	 /* the recording holds no samples */
};

#define ERR_EXCERPT 256 /* bytes, with the NUL */

struct err {
	int code;	    /* negative errno; 0 when nothing was set */
	enum err_kind kind; /* valid when code is not 0 */
	char msg[512];	    /* one line, no newline, no "rbpf:" prefix */
	char hint[512];	    /* a command or a fact that helps; empty if none */
	/*
	 * The part of what was typed that is wrong, in a line, and how many characters of it are
	 * before the place; empty if there is none.
	 */
	char excerpt[ERR_EXCERPT];
	unsigned int column;
};

/*
 * Fill @err (which may be NULL) and return @code, so that a caller can write
 * `return err_set(...)`. Forgets an earlier hint and excerpt.
 */
int err_set(struct err *err, int code, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Add a hint to an error that was set. Returns nothing: it knows no code if @err is NULL. */
void err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add the place of an error that was set: byte @at of @text, which a user typed; at most its
 * length. Of a long text, what is around the place. Returns err->code (or @err NULL: 0).
 */
int err_excerpt(struct err *err, const char *text, size_t at);

/*
 * On the way up: put what was being done before the message of an error that was set, "while …:
 * MSG". Code, kind and hint stay. Returns err->code (or @err NULL: 0).
 */
int err_context(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* -ENOMEM as ERR_RUNTIME. */
int err_oom(struct err *err);

/* A code that came without words: -ENOMEM as err_oom(), another as an internal error; 0 is none. */
int err_code(struct err *err, int code);

#endif
