/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading and writing whole files, and an output that is either complete or said to have failed.
 */
#ifndef RBPF_BASE_IO_H
#define RBPF_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct buf;
struct err;

/*
 * statx() of @fd that does not ask the server of a file system, which may never answer: the
 * attributes as far as the kernel knows them. Returns 0 or -errno.
 */
int io_stat(int fd, struct statx *ret);

/* The device of a file system, and a time in ns since 1970, as stat(2) has them. */
dev_t io_device(const struct statx *st);
int64_t io_time_ns(struct statx_timestamp time);

/*
 * Whether @st is of a file on a block device. A user may serve any other file system, and never
 * answer.
 */
bool io_is_on_device(const struct statx *st);

/* write() all of it, going on after EINTR, EAGAIN and short writes. Returns 0 or -errno. */
int io_write_full(int fd, const void *data, size_t len);

/*
 * Append all of @fd (or of the file @path, relative to @dirfd) to @buf, at most @max bytes
 * (-EFBIG). Returns 0 or -errno; after a failure @buf is as it was before.
 */
int io_read_fd(int fd, size_t max, struct buf *buf);
int io_read_file(int dirfd, const char *path, size_t max, struct buf *buf);

/*
 * Write @data to @path ("-" or NULL is stdout). A regular file is written beside the target and
 * renamed over it, so that a full disk never leaves half a file; devices, pipes and open files
 * (/dev/stdout, /dev/fd/N) are written in place, and there EPIPE is success: the reader had enough.
 * For that the process must ignore SIGPIPE.
 *
 * A new file is given to SUDO_UID:SUDO_GID when run by sudo (io_give_to_invoker), and is private
 * (0600) if root writes it; one that is replaced keeps its owner and mode, and is refused with
 * -EACCES if it is not writable.
 *
 * Refused with -EPERM: a regular file of a user that is not trusted (uid_is_trusted()), and a link,
 * FIFO or device of such a user where others can put one (dir_entry_may_be_planted()).
 *
 * Returns 0 or -errno with "cannot write PATH: why" as ERR_RUNTIME.
 */
int io_write_output(const char *path, const void *data, size_t len, struct err *err);

/*
 * The same in pieces, for what is longer than memory would like: what is at @path is replaced when
 * the last piece has been written. If the process is killed before, nothing of a regular file is
 * left, where its file system has files without a name (O_TMPFILE).
 *
 * Returns 0, or -errno and @err as above; *@ret: io_output_close().
 */
struct io_output;
int io_output_open(const char *path, struct io_output **ret, struct err *err);

/* After a failure the output can only be closed. */
int io_output_write(struct io_output *out, const void *data, size_t len, struct err *err);

/* Whether the reader of a pipe had enough: what is written from now on is in vain. */
bool io_output_ended(const struct io_output *out);

/*
 * @keep: the output is complete, @path gets it; else a regular file is left as it was. Frees @out,
 * which may be NULL.
 */
int io_output_close(struct io_output *out, bool keep, struct err *err);

/*
 * The user who ran sudo, from SUDO_UID and SUDO_GID. Returns 0, or -ENOENT when not under sudo (or
 * when they are not numbers).
 */
int io_invoker(uid_t *uid, gid_t *gid);

/* fchown @fd to the invoker of sudo, if root; nothing to do otherwise. Returns 0 or -errno. */
int io_give_to_invoker(int fd);

#endif
