/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scope guards: a variable so marked is released when it leaves its scope. Ownership moves out
 * in one visible line, with take_ptr() or take_fd().
 */
#ifndef RBPF_BASE_CLEANUP_H
#define RBPF_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define _cleanup_free_	   _cleanup_(cleanup_free)
#define _cleanup_close_	   _cleanup_(cleanup_close)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)

/* Give away what @p owns: evaluates to it and leaves NULL behind. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_tmp = (p);                                                      \
		(p) = NULL;                                                                        \
		take_tmp;                                                                          \
	})

/* The same for a file descriptor; leaves -1 behind. */
static inline int take_fd(int *fd)
{
	int tmp = *fd;

	*fd = -1;
	return tmp;
}

#endif
