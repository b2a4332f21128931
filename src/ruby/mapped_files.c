/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/mapped_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "target/maps.h"

/* Whether no mapping of the file of @m was seen. */
static int see(struct intern *seen, struct buf *key, const struct map *m, bool *is_new)
{
	uint32_t id;

	buf_reset(key);
	buf_add(key, &m->inode, sizeof(m->inode));
	buf_addstr(key, m->path);
	return buf_failed(key) ? -ENOMEM : intern_add(seen, key->data, key->len, &id, is_new);
}

/* Append those whose path has "ruby" in it, or (not @likely) the others. */
static int list(const struct maps *maps, bool likely, size_t *v, size_t *n)
{
	struct intern seen _cleanup_intern_ = INTERN_INIT;
	struct buf key _cleanup_buf_ = BUF_INIT;
	bool is_new;
	size_t i;
	int r;

	for (i = 0; i < maps->n && *n < MAPPED_FILES_MAX; i++) {
		const struct map *m = &maps->v[i];

		if (!m->exec || !m->inode || (strstr(m->path, "ruby") != NULL) != likely)
			continue;
		r = see(&seen, &key, m, &is_new);
		if (r)
			return r;
		if (is_new)
			v[(*n)++] = i;
	}
	return 0;
}

int mapped_files_list(const struct maps *maps, size_t **ret, size_t *n)
{
	_cleanup_free_ size_t *v = calloc(MAPPED_FILES_MAX, sizeof(*v));
	size_t count = 0;
	int r;

	r = v ? list(maps, true, v, &count) : -ENOMEM;
	if (!r)
		r = list(maps, false, v, &count);
	if (r)
		return r;
	*ret = take_ptr(v);
	*n = count;
	return 0;
}
