/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing JSON into a buf: commas and escapes are right by construction. Reading it is left to
 * jansson. Strings must be valid UTF-8 (see utf8.h). Nesting is at most JSON_MAX_DEPTH:
 * going deeper, or closing what is not open, makes the buf fail like running out of memory.
 */
#ifndef RBPF_BASE_JSON_H
#define RBPF_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define JSON_MAX_DEPTH 64

struct json {
	struct buf *out;
	unsigned int depth;
	bool need_comma;
};

#define JSON_INIT(buf_ptr)                                                                         \
	{                                                                                          \
		.out = (buf_ptr)                                                                   \
	}

/* @key is NULL inside arrays and at the top. */
void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_str(struct json *j, const char *key, const char *value);
void json_u64(struct json *j, const char *key, uint64_t value);
/*
 * JSON readers, jansson among them, hold integers in an int64_t: a greater one would make all of a
 * file unreadable.
 */
static inline uint64_t json_clamp(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : v;
}

void json_i64(struct json *j, const char *key, int64_t value);
/* The shortest form that reads back as @value; null if it is infinite or no number. */
void json_double(struct json *j, const char *key, double value);
/* @value divided by 10 to the power of @decimals, at most 19: exactly, "12.345000". */
void json_decimal(struct json *j, const char *key, uint64_t value, unsigned int decimals);
/* The same text to the beginning of @text, without a NUL; how many bytes. */
#define JSON_DECIMAL_MAX 40u
size_t json_decimal_digits(uint64_t value, unsigned int decimals,
			   char text[static JSON_DECIMAL_MAX]);
void json_bool(struct json *j, const char *key, bool value);
/* null; jansson has taken the obvious name. */
void json_nil(struct json *j, const char *key);
/* In an array: the values that another writer has added to @values, a buf that is not empty. */
void json_values(struct json *j, const struct buf *values);
/* In an object: the members of the object that another writer has added to @object; it has some. */
void json_members(struct json *j, const struct buf *object);

#endif
