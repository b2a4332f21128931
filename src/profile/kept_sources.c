/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/kept_sources.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "rbpf_file.h"

void kept_sources_deinit(struct kept_sources *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].path);
		free(s->v[i].text);
	}
	free(s->v);
	*s = (struct kept_sources) { 0 };
}

/* The length of the path, a varint of at most three bytes. Returns how many those were, or 0. */
static size_t path_length(const uint8_t *data, size_t len, size_t *ret)
{
	size_t v = 0;

	for (size_t i = 0; i < len && i < 3; i++) {
		v |= (size_t)(data[i] & 0x7f) << 7 * i;
		if (data[i] < 0x80) {
			*ret = v;
			return i + 1;
		}
	}
	return 0;
}

int kept_sources_decode(struct kept_sources *s, const void *data, size_t len)
{
	_cleanup_buf_ struct buf path = BUF_INIT;
	_cleanup_free_ char *text = NULL, *name = NULL;
	const uint8_t *at = data;
	size_t path_len, used = path_length(at, len, &path_len);

	if (!used || !path_len || path_len > len - used)
		return -EBADMSG;
	at += used;
	len -= used + path_len;
	if (len > RBPF_FILE_MAX_SOURCE || s->bytes + path_len + len > RBPF_FILE_MAX_SOURCES)
		return -E2BIG;
	if (memchr(at, '\0', path_len + len))
		return -EBADMSG;
	utf8_sanitise(&path, (const char *)at, path_len);
	name = strdup(buf_str(&path));
	text = strndup((const char *)at + path_len, len);
	if (buf_failed(&path) || !name || !text || array_reserve(s->v, s->cap, s->n + 1))
		return -ENOMEM;
	s->v[s->n++] =
		(struct kept_source) { .path = take_ptr(name), .text = take_ptr(text), .len = len };
	s->bytes += path_len + len;
	return 0;
}

const struct kept_source *kept_sources_find(const struct kept_sources *s, const char *path,
					    size_t *versions)
{
	const struct kept_source *found = NULL;

	*versions = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->v[i].path, path) != 0)
			continue;
		if (!found)
			found = &s->v[i];
		++*versions;
	}
	return found;
}
