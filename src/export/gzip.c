/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/gzip.h"

#include <errno.h>

#define WINDOW_BITS  (15 + 16) /* of the largest window; a gzip file, whose header has no time */
#define LEVEL	     2	       /* a tenth larger than by default, in a third of the time */
#define MEMORY_LEVEL 8	       /* zlib's default */

static int deflate_all(struct gzip *g, const void *data, size_t len, int flush)
{
	unsigned char bytes[16384];
	int r;

	g->z.next_in = (unsigned char *)data;
	g->z.avail_in = (unsigned int)len;
	do {
		g->z.next_out = bytes;
		g->z.avail_out = sizeof(bytes);
		r = deflate(&g->z, flush);
		buf_add(g->out, bytes, sizeof(bytes) - g->z.avail_out);
	} while (r == Z_OK && !g->z.avail_out);
	return buf_failed(g->out) || r == Z_STREAM_ERROR ? -ENOMEM : 0;
}

/* zlib counts in an unsigned int. */
static int drain(void *arg, const void *data, size_t len)
{
	const unsigned char *at = data;
	size_t n;
	int r = 0;

	for (; len && !r; at += n, len -= n) {
		n = len < BUF_DRAIN ? len : BUF_DRAIN;
		r = deflate_all(arg, at, n, Z_NO_FLUSH);
	}
	return r;
}

int gzip_init(struct gzip *g, struct buf *out)
{
	*g = (struct gzip) { .out = out };
	g->in = (struct buf) { .max = out->max, .drain = drain, .drain_arg = g };
	return deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
			    Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

int gzip_finish(struct gzip *g)
{
	int r = buf_failed(&g->in) ? -ENOMEM : drain(g, buf_str(&g->in), g->in.len);

	if (!r)
		r = deflate_all(g, NULL, 0, Z_FINISH);
	g->out->exceeded |= g->in.exceeded;
	deflateEnd(&g->z);
	buf_deinit(&g->in);
	return r;
}
