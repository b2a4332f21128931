/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compressing output while it is made: a buffer that is drained (buf.h) into a gzip file in
 * another.
 */
#ifndef RBPF_EXPORT_GZIP_H
#define RBPF_EXPORT_GZIP_H

#include <zlib.h>

#include "base/buf.h"

struct gzip {
	struct buf in;	 /* to be appended to */
	struct buf *out; /* not owned */
	z_stream z;
};

/*
 * Compress what is added to @g->in, at most as much as @out may take uncompressed, into @out.
 * Returns 0 or -ENOMEM. @g must stay where it is until gzip_finish(), which is to be called only
 * after success: it gives back the memory, and returns 0 or -ENOMEM if something could not be
 * added; if that is because it was too much, @out says so (buf.exceeded).
 */
int gzip_init(struct gzip *g, struct buf *out);
int gzip_finish(struct gzip *g);

#endif
