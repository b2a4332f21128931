/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups frames: those of one function differ by the line of execution, and are one row of a report
 * and one box of a flame graph.
 *
 * A group is a dense id. Groups are ranked by name, so that views can order what they show by
 * comparing numbers.
 */
#ifndef RBPF_VIEW_GROUP_H
#define RBPF_VIEW_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct profile;

enum group_by {
	/*
	 * Ruby: (name, file, line of the definition). C functions: the name only, because file and
	 * line of their frames are those of their callers. Native: (name, path of the module).
	 */
	GROUP_BY_FUNCTION,
	/*
	 * The above and the line of execution, an approximate one (FRAME_LINE_APPROXIMATE) being
	 * another than the exact one; C functions: with their caller's.
	 */
	GROUP_BY_LINE,
	GROUP_BY_FILE,	  /* source file, else the path of the module, else the kind */
	GROUP_BY_PACKAGE, /* label_package() */
	GROUP_BY_GEM,	  /* gem.h */
};

struct groups {
	uint32_t *of_frame; /* group by frame id; owned */
	uint32_t *frame;    /* by group: its first frame; owned */
	uint32_t *rank;	    /* by group: its place in the order of name, file, line, kind; owned */
	size_t n;
};

#define GROUPS_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

/* Returns 0 or -ENOMEM. @ret: groups_deinit(). */
int groups_init(const struct profile *p, enum group_by by, struct groups *ret);
void groups_deinit(struct groups *groups);
#define _cleanup_groups_ _cleanup_(groups_deinit)

#endif
