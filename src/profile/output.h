/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens the output of a recording so that nothing of value is lost and nobody else's file is
 * written.
 *
 * It decides what may be replaced; what is written is the recorder's business.
 */
#ifndef RBPF_PROFILE_OUTPUT_H
#define RBPF_PROFILE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>

#include "base/dir_entry.h"

struct err;

struct output_file {
	int fd;			   /* what is written to; owned; -1 when not open */
	char *path;		   /* owned; NULL for stdout */
	struct dir_entry at;	   /* the same, opened */
	char hidden[NAME_MAX + 1]; /* name of a regular file until output_take_name(); "": none */
	bool force;
};

/* An output that output_close() accepts. */
#define OUTPUT_INIT                                                                                \
	{                                                                                          \
		.fd = -1, .at = DIR_ENTRY_INIT                                                     \
	}

/*
 * Open @path for writing from its start ("-" is stdout, which stays open when the result is
 * closed).
 *
 * A regular file is always a new one, which has no name that its user knows until
 * output_take_name(). That will rename an old recording of the name to PATH.old, and replace an
 * empty file. Another file is refused unless @force, which replaces it. A fifo or device
 * is written in place. A symbolic link as the last component is refused. What belongs to a user who
 * is not trusted (dir_entry.h) is refused unless @force, which replaces it, and never written to.
 * So is, also with @force, a recording that is being written: a new file is locked until it is
 * closed.
 *
 * Returns 0, or -errno as ERR_RUNTIME: -EEXIST (there is a file that is no recording), -EPERM (it
 * is another user's), -EBUSY (it is being written), -ELOOP (a symbolic link), -EISDIR, and what the
 * system says. @ret: output_close(), whatever is returned.
 */
int output_open(const char *path, bool force, struct output_file *ret, struct err *err);

/*
 * Give a regular file its name, if it has not got it. Whether what is there may be replaced is
 * examined again. Returns 0 or -errno, as output_open() does; after a failure it has no name.
 */
int output_take_name(struct output_file *o, struct err *err);

/*
 * Close @o. A regular file without its name is removed, and what was there before is as it was.
 * Returns 0, or what close() failed with.
 */
int output_close(struct output_file *o);

/* Whether @path is a recording that output_open() would keep as PATH.old. */
bool output_is_recording(const char *path);

/* The name of the output in messages: @path, or "standard output" for "-". */
const char *output_name(const char *path);

#endif
