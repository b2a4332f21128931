/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading memory of other processes through /proc/PID/mem.
 *
 * process_vm_readv(2) pins the pages that it reads. Since Linux 5.19 a page that a process still
 * shares with the one that it was forked from is copied first when it is pinned, also for reading
 * (gup_must_unshare(), mm/gup.c). So by that call a profiler would take from workers of Puma or
 * Unicorn, page by page, the memory that they share with their master. What is read through
 * /proc/PID/mem stays shared.
 *
 * That needs the right to open the file: for processes of other users CAP_DAC_READ_SEARCH beside
 * CAP_SYS_PTRACE. Where it cannot be opened process_vm_readv() does the reading.
 *
 * Who reads may wait for ever (proxy.h). Not thread-safe.
 */
#ifndef RBPF_TARGET_MEMORY_FILES_H
#define RBPF_TARGET_MEMORY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_FILES 64u

struct memory_file {
	uint64_t program; /* 0: there is none */
	pid_t pid;
	int fd; /* -1: it cannot be opened */
};

/*
 * Those that were opened last; all 0: none yet. An open one keeps no memory of its process from
 * being freed.
 */
struct memory_files {
	struct memory_file v[MEMORY_FILES];
};

/*
 * Read all of @len bytes at @addr of @pid. @program is a number of the caller's for the program
 * that @pid runs, not 0: once it is used, nothing is read by it of what executes or is given that
 * pid later, unless the file could not be opened.
 */
bool memory_files_read(struct memory_files *files, pid_t pid, uint64_t program, uint64_t addr,
		       void *dst, size_t len);

/* Close them. */
void memory_files_deinit(struct memory_files *files);

#endif
