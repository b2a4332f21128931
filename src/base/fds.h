/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The limit of open files (RLIMIT_NOFILE). What is kept open for each process or thread that is
 * followed must leave some descriptors for what is opened and closed again, or nothing could be
 * read any more.
 */
#ifndef RBPF_BASE_FDS_H
#define RBPF_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>

#define FDS_MAX	    (1u << 20) /* descriptors that are asked for; the default of fs.nr_open */
#define FDS_RESERVE 64	       /* of them, for files that are open for a short time only */
#define FDS_LEAST   62	       /* for BPF programs, their maps, and one small recording */
#define FDS_CPU	    2	       /* for each CPU: its clock and the ring of its mappings */

/* What the user can do when they are too few. */
#define FDS_HINT                                                                                   \
	"raise the hard limit of open files: 'ulimit -n', or LimitNOFILE= of a systemd "           \
	"unit"

/*
 * Raise the limit to what the kernel allows: to the hard limit, and that to fs.nr_open for who may.
 * Returns what it is then. Programs started later inherit it.
 */
size_t fds_raise_limit(void);

/* In a child that becomes another program: the limits from before fds_raise_limit(). */
void fds_restore_limit(void);

/* Whether @fd is below the reserve, so that it may stay open for long. */
bool fds_may_keep(int fd);

/*
 * @want, or, if that is less, one part in 16 of the limit: how many may be kept to save opening
 * them anew.
 */
size_t fds_share(size_t want);

#endif
