/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who serves a FUSE file system. Its server may be a program of any user, and decides whether a
 * read, a look at attributes and even the closing of a file ever end: not even SIGKILL ends a
 * process that closes one.
 */
#ifndef RBPF_TARGET_FUSE_H
#define RBPF_TARGET_FUSE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The user who serves the FUSE file system with the device @major:@minor that process @pid sees:
 * user_id= of the mount. If @pid is in another user namespace than rbpf, it is the owner of that
 * namespace, because its root can set any user_id. Returns 0 or -errno; -ENOENT if @pid sees no
 * such one.
 */
int fuse_server(pid_t pid, uint32_t major, uint32_t minor, uid_t *ret);

#endif
