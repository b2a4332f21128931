/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens the output of a recording so that nothing of value is lost and nobody else's file is
 * written.
 *
 * It decides what may be replaced; what is written is the recorder's business.
 */
#ifndef RBPF_PROFILE_OUTPUT_H
#define RBPF_PROFILE_OUTPUT_H

#include <stdbool.h>

struct err;

/*
 * Open @path for writing from its start ("-" is stdout, which stays open when the result is
 * closed).
 *
 * A regular file is always a new one: an old recording of the name is renamed to PATH.old, an empty
 * file is replaced, and another file is refused unless @force, which replaces it. A fifo or device
 * is written in place. A symbolic link as the last component is refused. What belongs to a user who
 * is not trusted (dir_entry.h) is refused unless @force, which replaces it, and never written to.
 * So is, also with @force, a recording that is being written: a new file is locked until it is
 * closed.
 *
 * Returns 0, or -errno as ERR_RUNTIME: -EEXIST (there is a file that is no recording), -EPERM (it
 * is another user's), -EBUSY (it is being written), -ELOOP (a symbolic link), -EISDIR, and what the
 * system says.
 */
int output_open(const char *path, bool force, int *ret_fd, struct err *err);

/* The name of the output in messages: @path, or "standard output" for "-". */
const char *output_name(const char *path);

#endif
