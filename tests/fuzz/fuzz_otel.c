/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The payload of a process context, which its process chooses: it is refused, or it has at most so
 * many attributes of such sizes, which are read from their text as they were written into it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "target/otel_context.h"

#define MAX_GROWTH 3u /* a byte that is no UTF-8 becomes U+FFFD */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text _cleanup_buf_ = BUF_INIT, again _cleanup_buf_ = BUF_INIT;
	struct buf key _cleanup_buf_ = BUF_INIT, value _cleanup_buf_ = BUF_INIT;
	const char *rest;
	size_t n = 0;
	int r;

	r = otel_context_parse(data, size, &text);
	if (r) {
		if (r != -EBADMSG || text.len)
			abort();
		return 0;
	}
	rest = buf_str(&text);
	if (strlen(rest) != text.len || text.len > OTEL_MAX_TEXT)
		abort();
	for (; attributes_next(&rest, &key, &value); n++) {
		if (key.len > MAX_GROWTH * OTEL_MAX_KEY || value.len > MAX_GROWTH * OTEL_MAX_VALUE)
			abort();
		attributes_add(&again, buf_str(&key), key.len, buf_str(&value), value.len);
	}
	if (n > OTEL_MAX_ATTRIBUTES || strcmp(buf_str(&again), buf_str(&text)))
		abort();
	return 0;
}
