/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which container a process is in, as the kernel tells it: by the names of control groups and by
 * the pid namespaces. It asks no container runtime, so that it needs none, and it knows a container
 * only by the id (or name) that its runtime put into the name of a control group.
 *
 * All of it is as rbpf's own /proc shows it: paths are relative to the root of rbpf's cgroup
 * namespace, uids are those of its user namespace. Not thread-safe.
 */
#ifndef RBPF_TARGET_CONTAINER_H
#define RBPF_TARGET_CONTAINER_H

#include <stddef.h>
#include <sys/types.h>

struct buf;

/*
 * Append to @out the path of the control group that tells most of a process, out of @text, what
 * /proc/PID/cgroup holds (cgroups(7)). The line of version 2 ("0::") where there is no other; of
 * several hierarchies the one whose path names a container, else that of version 2, else systemd's,
 * else the longest. Nothing is appended if there is no valid line.
 */
void cgroup_path(const char *text, struct buf *out);

/*
 * Append to @out the container that the control group @path belongs to; of nested ones the
 * innermost; nothing if it is none that is known.
 *
 * An id of 64 hex digits at the end of a component is one of Docker, containerd, CRI-O or Podman,
 * unless it is of the monitor beside a container (conmon). Else it is a name: of LXC, LXD and Incus
 * (lxc/NAME, lxc.payload.NAME, lxc.payload/NAME), of systemd-nspawn (machine-NAME.scope,
 * systemd-nspawn@NAME.service), with systemd's \xNN escapes undone.
 */
void cgroup_container(const char *path, struct buf *out);

/* The user, control group, container and pid namespace of a process, as /proc tells them. */
struct process_context {
	char *cgroup;	 /* path, "" if unknown; owned */
	char *container; /* id or name, "" if it is in none; owned */
	pid_t ns_pid;	 /* its pid in its own (the innermost) pid namespace; 0 if unknown */
	uid_t uid;	 /* real; -1 if unknown */
};

#define PROCESS_CONTEXT_INIT                                                                       \
	{                                                                                          \
		.uid = (uid_t)-1                                                                   \
	}

/*
 * Read it. What cannot be read (@pid has ended, /proc is mounted with hidepid) is left unknown.
 * Returns 0 or -ENOMEM; @ret: process_context_deinit().
 */
int process_context_read(pid_t pid, struct process_context *ret);
void process_context_deinit(struct process_context *p);

/* The ns_pid and uid of @text, what /proc/PID/status holds; what it lacks is left alone. */
void process_context_of_status(const char *text, struct process_context *ret);

#endif
