/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that are shown as one, and the words for their names and ids. It knows of a thread only
 * what it is given: the text that is shown of it, and whether it is idle.
 */
#ifndef RBPF_DUMP_FOLD_H
#define RBPF_DUMP_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;

/* What is compared of a thread. */
struct fold_thread {
	const char *text;
	bool idle;
};

struct fold_group {
	size_t first, n; /* in struct fold: its threads */
};

struct fold {
	size_t *threads;	   /* their indexes, group by group, ascending in each; owned */
	struct fold_group *groups; /* owned */
	size_t n_groups;
};

/*
 * Put the threads into groups of the same text, those of idle ones last, and otherwise in the order
 * of their first thread; with @each, each thread into a group of its own. Returns 0 or -ENOMEM.
 * @ret: fold_deinit().
 */
int fold_threads(const struct fold_thread *threads, size_t n, bool each, struct fold *ret);
void fold_deinit(struct fold *f);

/*
 * Append names, of which those that differ only by the number at their end become one:
 * "puma srv tp 001 … 012", "reactor".
 */
#define FOLD_NAMES_MAX 6 /* and then "and 3 others" */
void fold_add_names(struct buf *out, const char *const *names, size_t n);

/* Append ids, which ascend: "4251-4254, 4260". */
void fold_add_ids(struct buf *out, const pid_t *ids, size_t n);

#endif
