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
#include <sys/types.h>

/*
 * Open @path as if @root were "/", a file that may be read on behalf of a file of @owner: see
 * TARGET_FILE_DEBUG. Its path within the root, links resolved, is written to @real, of @size bytes.
 * Returns a descriptor or -errno.
 */
typedef int debug_file_open_fn(void *arg, uid_t owner, const char *root, const char *path,
			       char *real, size_t size);

/* Where debug files are looked for, and how they are opened. */
struct debug_roots {
	const char *const *v; /* not owned */
	size_t n;
	debug_file_open_fn *open;
	void *arg;
};

/* For struct debug_roots, in a process that may open files. @arg is not used. */
debug_file_open_fn debug_file_open_regular;

/*
 * Open the debug file of @fd, the ELF file at @path within the first root. @where, of @size bytes,
 * is set to its path with the root, and @real, of as many, to that within it with links resolved;
 * both are cut if too long, and @real may be NULL. Returns a descriptor that is the caller's, or
 * -ENOENT.
 */
int debug_file_open(int fd, const char *path, const struct debug_roots *roots, char *where,
		    char *real, size_t size);

/*
 * Open the file that @fd, the file with debug information at @real, links resolved, shares some of
 * it with (dwz's "multifile", .gnu_debugaltlink): by its build-id, or by its name, which is
 * relative to @real. Returns as debug_file_open().
 */
int debug_file_open_shared(int fd, const char *real, const struct debug_roots *roots);

#endif
