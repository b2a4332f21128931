/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes that a thread of its own writes, so that who makes many of them goes on meanwhile.
 */
#ifndef RBPF_BASE_WRITE_BEHIND_H
#define RBPF_BASE_WRITE_BEHIND_H

#include <stddef.h>
#include <sys/uio.h>

struct write_behind;

/* Returns 0, or -errno: it is not called any more then. */
typedef int write_behind_fn(void *arg, const void *data, size_t len);

/*
 * @write gets all that is added, in that order, in one thread: not the caller's, unless no other
 * can be made. Up to @max_bytes are kept for it, or one piece that is larger. Returns 0 or -ENOMEM.
 * *@ret: write_behind_end().
 */
int write_behind_new(write_behind_fn *write, void *arg, size_t max_bytes,
		     struct write_behind **ret);

/*
 * Add a copy of @len bytes of @data, or of what the @n of @iov hold, as one piece. Waits while
 * there is no room for it. Returns 0, -ENOMEM, or what @write has failed with.
 */
int write_behind_add(struct write_behind *w, const void *data, size_t len);
int write_behind_addv(struct write_behind *w, const struct iovec *iov, int n);

/*
 * Wait until all is written, and free @w, which may be NULL. Returns 0, or what @write failed with.
 */
int write_behind_end(struct write_behind *w);

#endif
