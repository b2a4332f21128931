/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file that a distribution puts an ELF file's debug information into, where gdb looks too:
 *
 *	ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, by the build-id
 *	ROOT/DIR/LINK, ROOT/DIR/.debug/LINK and ROOT/usr/lib/debug/DIR/LINK, by .gnu_debuglink
 *
 * in each of some roots, as the target's (/proc/PID/root) and then rbpf's own (""). A link is
 * followed within its root. What is found belongs to the ELF file by its build-id or, without one,
 * by the checksum in .gnu_debuglink. The network (debuginfod) is not asked: a profiler does not
 * tell others what runs here. Thread-safe for different files.
 */
#ifndef RBPF_ELF_DEBUG_FILE_H
#define RBPF_ELF_DEBUG_FILE_H

#include <stddef.h>

/*
 * Open the debug file of @fd, the ELF file at @path within the first root. @where, of @size bytes,
 * is set to its path with the root, cut if too long. Returns a descriptor that is the caller's, or
 * -ENOENT.
 */
int debug_file_open(int fd, const char *path, const char *const *roots, size_t n, char *where,
		    size_t size);

/*
 * Open the file that @fd, a file with debug information, shares some of it with (dwz's
 * "multifile", .gnu_debugaltlink): by its build-id, or by its name, which is relative to @fd's.
 * Returns as debug_file_open().
 */
int debug_file_open_shared(int fd, const char *const *roots, size_t n);

#endif
