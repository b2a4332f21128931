/* SPDX-License-Identifier: GPL-2.0-only */
/* One second of top for scripts: rbpf-top(1) has its members. */
#ifndef RBPF_TOP_JSON_H
#define RBPF_TOP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/window.h"

struct buf;

struct top_json_options {
	struct window_range range;
	uint64_t duration_ns;	    /* of it: the last second may have ended early */
	uint64_t start_realtime_ns; /* of second 0 */
	size_t max_rows;	    /* of each list; 0: all */
	bool native;		    /* native frames are methods, too */
	bool states;		    /* @w has waits */
};

/* Append an object and a newline to @out. Returns 0 or -ENOMEM. */
int top_json(struct window *w, const struct top_json_options *opts, struct buf *out);

#endif
