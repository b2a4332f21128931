/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops all that a process must not have when it reads hostile bytes. There is no way back, so it
 * is for processes that were forked for this. Errors are fatal to the caller: it must end then.
 */
#ifndef RBPF_WORKER_SANDBOX_H
#define RBPF_WORKER_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

struct sock_filter;

/* Limits of a process that parses (setrlimit(2)). */
#define SANDBOX_MAX_MEMORY (256ull << 20) /* of address space beyond what it begins with … */
#define SANDBOX_MIN_MEMORY (48ull << 20)  /* … and what is the least of use */
#define SANDBOX_MAX_WRITE  (64ull << 20)  /* bytes of the answer, the only file it can write to */
#define SANDBOX_MAX_CPU	   600		  /* seconds in its life; the parent replaces it sooner */
#define SANDBOX_MAX_FILES  16

/*
 * Become user and group "nobody" if that is permitted, with no capabilities, not to be had back by
 * executing anything; be of a session of one's own, so that no signal of a terminal comes; block
 * the signals that rbpf is stopped by, and end when the parent does; and close all descriptors but
 * @keep, in ascending order. Standard input, output and error become /dev/null. Returns 0 or
 * -errno.
 */
int sandbox_drop_privileges(const int *keep, size_t n);

#define SANDBOX_SAME_MEMORY UINT64_MAX

/* Limits of a process (setrlimit(2)). */
struct sandbox_limits {
	/*
	 * Bytes of address space beyond what it has, or SANDBOX_SAME_MEMORY: the limit that it has.
	 * Not in a build with Address Sanitizer.
	 */
	uint64_t memory;
	uint64_t write; /* bytes of a file */
	uint64_t cpu_s; /* seconds in its life */
	uint64_t files; /* open at a time */
};

/* Set them, and that no core is dumped. Returns 0 or -errno. */
int sandbox_limit(const struct sandbox_limits *limits);

/*
 * Allow only what the @n statements of @filter do (seccomp.h), in this process and all that it
 * forks; there must be no other thread. Needs sandbox_drop_privileges(). A build with Address
 * Sanitizer, whose runtime makes calls of its own, allows all. Returns 0 or -errno.
 */
int sandbox_filter(const struct sock_filter *filter, size_t n);

/*
 * Limit memory (to @max_memory bytes beyond what there is), files and CPU time, and then allow only
 * the system calls that reading open files, answering and allocating memory take. Opening a file
 * and readlink() fail with EACCES, for libdw tries them; any other call ends the process by SIGSYS.
 * A build with Address Sanitizer, which needs more memory and more calls, limits neither. Returns 0
 * or -errno.
 */
int sandbox_confine(uint64_t max_memory);

#endif
