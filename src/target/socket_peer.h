/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is at the other end of a socket of a process, from the tables of /proc/PID/net. */
#ifndef RBPF_TARGET_SOCKET_PEER_H
#define RBPF_TARGET_SOCKET_PEER_H

#include <stdint.h>
#include <sys/types.h>

struct rbpf_waits_on;

/*
 * Of the socket with @inode of process @pid. These tables tell nothing of the other end of a Unix
 * socket: there it is the socket's own name. Returns 0, -ENOENT if none of them has the socket or
 * it has no name, or another -errno. Takes as long as its network namespace has sockets.
 */
int socket_peer_read(pid_t pid, uint64_t inode, struct rbpf_waits_on *ret);

#endif
