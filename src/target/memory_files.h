/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading memory of other processes: pages that a process shares with another one through
 * /proc/PID/mem, if they are in memory, all else by process_vm_readv(2), many of them at once.
 *
 * process_vm_readv() pins the pages that it reads. Since Linux 5.19 a page that a process still
 * shares with the one that it was forked from is copied first when it is pinned, also for reading
 * (gup_must_unshare(), mm/gup.c). So by that call a profiler would take from workers of Puma or
 * Unicorn, page by page, the memory that they share with their master. What is read through
 * /proc/PID/mem stays shared. But if a page has to be fetched from swap or from a file first, that
 * waits with the lock of the process' memory map, and cannot be killed (__access_remote_vm() calls
 * get_user_pages_remote() so that it must not drop the lock); process_vm_readv() drops the lock.
 * /proc/PID/pagemap tells which pages are in memory.
 *
 * To open these files of processes of other users takes CAP_DAC_READ_SEARCH beside CAP_SYS_PTRACE.
 * Where they cannot be opened process_vm_readv() does all the reading.
 *
 * Who reads may wait for ever all the same (proxy.h). Not thread-safe.
 */
#ifndef RBPF_TARGET_MEMORY_FILES_H
#define RBPF_TARGET_MEMORY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/own_pages.h"

struct memory_span;

#define MEMORY_FILES 32u

struct memory_file {
	uint64_t program; /* 0: there is none */
	uint64_t used;	  /* by which read, counted */
	pid_t pid;
	int mem, pages; /* -1: they cannot be opened */
};

/*
 * Those that were used last; all 0: none yet. What is open keeps no memory of its process from
 * being freed.
 */
struct memory_files {
	uint64_t reads;
	struct memory_file v[MEMORY_FILES];
	struct own_pages own;
};

/*
 * Read the @n spans of @pid, in their order; each one's ok tells whether all of it was read.
 * @program is a number of the caller's for the program that @pid runs, not 0. As long as the files
 * are open that this program was read from first, nothing is read by its number of what executes or
 * is given that pid later.
 */
void memory_files_read(struct memory_files *files, pid_t pid, uint64_t program,
		       struct memory_span *spans, size_t n);

/* Close them. */
void memory_files_deinit(struct memory_files *files);

#endif
