/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which pages of programs are in memory, and shared with no process that was forked: those that
 * process_vm_readv(2) leaves as they are (memory_files.h says why). Most of a program's pages are,
 * and to ask for each page whenever it is read takes longer than to read it: what
 * /proc/PID/pagemap says of a window of pages is kept for a moment. What has changed since, a page
 * that is shared as of now or that was swapped out, is read all the same: it takes a page of
 * memory, or waits.
 */
#ifndef RBPF_TARGET_OWN_PAGES_H
#define RBPF_TARGET_OWN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_PAGES	 8u /* of a window */
#define OWN_WINDOWS	 1024u
#define PAGE_PRESENT	 (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define OWN_PAGES_FOR_NS 1000000000ull

struct own_window {
	uint64_t program; /* 0: nothing is known */
	uint64_t number;
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint32_t pages; /* a bit for each */
};

/* All 0: nothing is known yet. */
struct own_pages {
	struct own_window v[OWN_WINDOWS];
};

/*
 * Whether all pages of the @len bytes at @addr, at least one, of @program are; @fd is its pagemap.
 * False also for more than OWN_PAGES pages, and when the program is gone.
 */
bool own_pages_are(struct own_pages *own, uint64_t program, int fd, uint64_t now_ns, uint64_t addr,
		   size_t len);

#endif
