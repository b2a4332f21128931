/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers as people read them, the same in every locale and on every machine: no floating point.
 */
#ifndef RBPF_EXPORT_HUMAN_H
#define RBPF_EXPORT_HUMAN_H

#include <stdint.h>

#include "profile/profile.h"

struct buf;

void human_count(struct buf *out, uint64_t n);	   /* "11,876" */
void human_duration(struct buf *out, uint64_t ns); /* "30.0 s", "8.02 s", "340 ms" */
void human_value(struct buf *out, enum value_unit unit, uint64_t value); /* "30.0 s", "1.4 MB" */
void human_percent(struct buf *out, uint64_t part, uint64_t whole); /* "12.3%", "0.04%", "<0.01%" */

/* "1 process", "4 processes". */
void human_count_of(struct buf *out, uint64_t n, const char *one, const char *many);

#endif
