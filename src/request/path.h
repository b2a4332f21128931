/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paths of requests without what tells a person or an object: /orders/17 and /orders/18 are
 * /orders/:id. What looks like a number, an id, a token or an address is left out; a word is not,
 * and a name that stands in a path looks like one.
 */
#ifndef RBPF_REQUEST_PATH_H
#define RBPF_REQUEST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * Append "METHOD /path" to @out. @verb: the first 8 bytes of the method as they lie in memory, 0 if
 * it is not known. @path has @len bytes; @cut: it goes on, so that its last part is left out.
 */
void request_path(struct buf *out, uint64_t verb, const char *path, size_t len, bool cut);

#endif
