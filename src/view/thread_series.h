/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads of a pool, which views by thread can show as one: those of one process whose names differ
 * in numbers only, such as "puma srv tp 001" and "puma srv tp 002".
 *
 * Once they are found, the owner (owner.h) of a thread is the first one of its series. What filters
 * select is still asked of each thread.
 */
#ifndef RBPF_VIEW_THREAD_SERIES_H
#define RBPF_VIEW_THREAD_SERIES_H

#include <stdint.h>

struct buf;
struct profile;
struct view_filter;

/*
 * Find the series of threads that have samples which @f selects. @p is by_thread. Returns 0 or
 * -ENOMEM.
 */
int thread_series_find(struct profile *p, const struct view_filter *f);

/* How many threads the row of @thread, the first of its series, is of. */
uint32_t thread_series_count(const struct profile *p, uint32_t thread);

/*
 * Append the name of a thread that is the first of a series: of several ones with "*" for each
 * number in it. A number behind a colon is the line that Ruby names a thread after, "app.rb:12".
 */
void thread_series_name(const struct profile *p, uint32_t thread, struct buf *out);

#endif
