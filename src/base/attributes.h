/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes: pairs of key and value as one line of text, "service.name=shop,service.version=2.1".
 *
 * That is the form of the environment variable OTEL_RESOURCE_ATTRIBUTES: '%', ',' and '=' within a
 * key or a value are written as '%' and two hex digits. It knows nothing of what keys mean.
 */
#ifndef RBPF_BASE_ATTRIBUTES_H
#define RBPF_BASE_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct json;

/* Append a pair to the text @out, with @value sanitised (utf8.h) and an empty key left out. */
void attributes_add(struct buf *out, const char *key, size_t key_len, const char *value,
		    size_t value_len);

/*
 * The first pair of *@text, which is left behind it, in place of what @key and @value have held.
 * Both are sanitised, whoever wrote the text; what is no pair is skipped. Returns false at the end.
 */
bool attributes_next(const char **text, struct buf *key, struct buf *value);

/* The value of the first pair with @key, in place of what @value has held; false: there is none. */
bool attributes_get(const char *text, const char *key, struct buf *value);

/* The pairs of @text without those with @key are added to @out, which is empty. */
void attributes_without(const char *text, const char *key, struct buf *out);

#define ATTRIBUTES_MAX                                                                             \
	64 /* pairs of a text; whoever wrote one with more, no more are shown as JSON */

/*
 * Add the pairs of @text as an object of strings, of those with equal keys the first; @name as of
 * json_object_begin().
 */
void attributes_json(const char *text, const char *name, struct json *j);

#endif
