/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells which processes of the machine map files that may hold a Ruby VM: how a Ruby is found in a
 * program that was started as something else. By perf's mmap records, which the kernel writes into
 * a buffer for each CPU. Not thread-safe.
 */
#ifndef RBPF_ENGINE_MMAP_WATCH_H
#define RBPF_ENGINE_MMAP_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct cpus;
struct err;
struct mmap_watch;

/* Returns 0 or -ENOMEM. */
int mmap_watch_open(struct mmap_watch **ret);

/* Watch these CPUs, which are online, and no others. Returns 0 or an error with @err set. */
int mmap_watch_set_cpus(struct mmap_watch *w, const struct cpus *cpus, struct err *err);
void mmap_watch_close(struct mmap_watch *w);

/*
 * Call @found for each process that has mapped such a file since the last call. *@lost tells that
 * some may have been missed. Returns 0 or the negative result of @found, which ends it.
 */
int mmap_watch_read(struct mmap_watch *w, int (*found)(void *arg, pid_t pid), void *arg,
		    bool *lost);

#endif
