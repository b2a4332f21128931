/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A growable byte buffer, for everything that is built before it is written.
 *
 * Out of memory is sticky: after a failed append the buffer ignores further ones and
 * buf_failed() says so, so that a writer checks once at its end instead of at each call.
 * The bytes are always followed by a NUL that is not counted in len (data is NULL until something
 * is added). Not thread-safe.
 */
#ifndef RBPF_BASE_BUF_H
#define RBPF_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf {
	char *data; /* owned; NULL when nothing was added yet */
	size_t len;
	size_t cap;
	size_t max; /* bytes that may be added in all, 0 for no limit; more is a failure */
	bool failed;
	bool exceeded; /* … because of max */
	/*
	 * NULL, or what takes the contents away whenever there is BUF_DRAIN of them, so that output
	 * of any length needs little memory. It returns 0, or -errno for the buffer to fail. What
	 * is left at the end is not drained. A buffer with it can be appended to only.
	 */
	int (*drain)(void *arg, const void *data, size_t len);
	void *drain_arg;
	size_t drained; /* bytes, so far */
};

#define BUF_DRAIN (1u << 20)

#define BUF_INIT                                                                                   \
	{                                                                                          \
		0                                                                                  \
	}

/* Release the bytes and make @buf (which may be NULL) BUF_INIT again. */
void buf_deinit(struct buf *buf);
#define _cleanup_buf_ _cleanup_(buf_deinit)

/* Forget the contents and a failure, but not that max was exceeded; keep the memory. */
void buf_reset(struct buf *buf);

/* Forget what is behind the first @len bytes, of which there may be fewer. */
void buf_truncate(struct buf *buf, size_t len);

void buf_add(struct buf *buf, const void *data, size_t len);
void buf_addch(struct buf *buf, char c);
void buf_addstr(struct buf *buf, const char *s);
void buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *buf, const char *fmt, va_list ap);
void buf_add_repeat(struct buf *buf, char c, size_t n);

/* A word of a command line, in quotes where a shell would read anything else without them. */
void buf_add_shell_word(struct buf *buf, const char *word);

/* In decimal: many times faster than buf_addf(). */
void buf_add_u64(struct buf *buf, uint64_t v);

/* The same to the beginning of @digits, without a NUL; how many there are. */
#define BUF_U64_MAX 20u
size_t buf_u64_digits(uint64_t v, char digits[static BUF_U64_MAX]);

/* LEB128. */
void buf_add_varint(struct buf *buf, uint64_t v);

/* The contents as a C string; "" while nothing was added. Valid until the next change. */
const char *buf_str(const struct buf *buf);

/* Whether an append failed, for lack of memory or beyond max: the contents are then incomplete. */
bool buf_failed(const struct buf *buf);

#endif
