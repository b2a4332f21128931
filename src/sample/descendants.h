/* SPDX-License-Identifier: GPL-2.0-only */
/* Which of the processes that ran before the recording descend from which. */
#ifndef RBPF_SAMPLE_DESCENDANTS_H
#define RBPF_SAMPLE_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

struct collector;
struct err;
struct tracked_process;

/*
 * Follow all living descendants of the processes that are followed. One that ends meanwhile, that
 * cannot be followed (which is counted), or that is no Ruby is no failure. Later ones are reported
 * by the engine. Returns 0 or -ENOMEM, or why /proc cannot be listed.
 */
int descendants_add(struct collector *c, struct err *err);

/* Whether a Ruby was found in a descendant of @pid. */
bool descendants_have_ruby(const struct collector *c, pid_t pid);

/*
 * Write @p to the recording, if it is not in it yet, and before it its ancestors: a process can
 * only refer to a parent that was written before it. Returns as life_record().
 */
int descendants_record(struct collector *c, struct tracked_process *p);

#endif
