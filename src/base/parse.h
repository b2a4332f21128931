/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one set of strict parsers for what people type: no sign, junk, blank, overflow or empty
 * string passes, and a list is either right as a whole or refused as a whole.
 *
 * @what is the name used in messages, as the user knows it ("--freq"). All errors are ERR_USAGE
 * with -EINVAL or -ERANGE, and leave *@ret alone.
 */
#ifndef RBPF_BASE_PARSE_H
#define RBPF_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* Decimal digits only, min <= value <= max. */
int parse_u64(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
	      struct err *err);

/*
 * "30", "30s" or "1.5" (seconds), "500ms", "200us", "5m", "2h" to ns, rounded down. Must be above 0
 * and below 10 years (of 365 days); at most 9 decimals.
 */
int parse_duration(const char *s, const char *what, uint64_t *ret, struct err *err);

/* The same of a time since the start of something, which may be 0. */
int parse_time_since(const char *s, const char *what, uint64_t *ret, struct err *err);

/* "65536", "64K", "8M", "1G" (powers of 1024) to bytes; above 0. */
int parse_size(const char *s, const char *what, uint64_t *ret, struct err *err);

/* A percentage, "0.5" or "0.5%", 0 to 100; at most 9 decimals. */
int parse_percent(const char *s, const char *what, double *ret, struct err *err);

/*
 * "42" or "42,43,99": pids from 1 to 2^22 (the kernel's PID_MAX_LIMIT), no duplicates. *@ret is a
 * malloc'ed array of *@n (at least 1, at most 4096) pids, owned by the caller.
 */
int parse_pid_list(const char *s, const char *what, pid_t **ret, size_t *n, struct err *err);

/*
 * The word of @words (of @n) nearest to @s by edit distance, or NULL if none is near enough
 * to be what was meant. For "did you mean".
 */
const char *parse_nearest(const char *s, const char *const *words, size_t n);

#endif
