/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A JSON object of a few short members, put together beside the buf and added at once: of some
 * exports there are 30 million, and these are most of their time.
 *
 *	struct json_row row;
 *
 *	json_row_begin(&row);
 *	JSON_ROW_U64(&row, "ts_ns", ts);
 *	JSON_ROW_RAW(&row, "flags", "[]", 2);
 *	json_row_end(&row, json);
 *
 * A row that gets longer than JSON_ROW_MAX makes the buf fail, as nesting that is too deep does in
 * json.h.
 */
#ifndef RBPF_BASE_JSON_ROW_H
#define RBPF_BASE_JSON_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define JSON_ROW_MAX 512u

struct json_row {
	size_t len; /* at most JSON_ROW_MAX */
	bool failed;
	/* A comma of the list that the object is in, and the members with a comma before each. */
	char text[JSON_ROW_MAX + JSON_DECIMAL_MAX];
};

static inline void json_row_begin(struct json_row *row)
{
	row->len = 1;
	row->failed = false;
}

static inline void json_row_put(struct json_row *row, const char *text, size_t len)
{
	/* A number has room behind the last byte of the longest row. */
	if (len > JSON_ROW_MAX - row->len) {
		row->failed = true;
		return;
	}
	memcpy(row->text + row->len, text, len);
	row->len += len;
}

static inline void json_row_put_decimal(struct json_row *row, uint64_t value, unsigned int decimals)
{
	row->len += json_decimal_digits(value, decimals, row->text + row->len);
	if (row->len > JSON_ROW_MAX) {
		row->len = JSON_ROW_MAX;
		row->failed = true;
	}
}

static inline void json_row_put_u64(struct json_row *row, uint64_t value)
{
	json_row_put_decimal(row, value, 0);
}

/* @key is a literal that needs no escapes; @text, of @len bytes, is a value as JSON writes it. */
#define JSON_ROW_KEY(row, key) json_row_put(row, ",\"" key "\":", sizeof(",\"" key "\":") - 1)
#define JSON_ROW_RAW(row, key, text, len)                                                          \
	do {                                                                                       \
		JSON_ROW_KEY(row, key);                                                            \
		json_row_put(row, text, len);                                                      \
	} while (0)
#define JSON_ROW_DECIMAL(row, key, value, decimals)                                                \
	do {                                                                                       \
		JSON_ROW_KEY(row, key);                                                            \
		json_row_put_decimal(row, value, decimals);                                        \
	} while (0)
#define JSON_ROW_U64(row, key, value)                                                              \
	do {                                                                                       \
		JSON_ROW_KEY(row, key);                                                            \
		json_row_put_u64(row, value);                                                      \
	} while (0)

/* Add the object, which has a member, to the array that @j is in. */
void json_row_end(struct json_row *row, struct json *j);

#endif
