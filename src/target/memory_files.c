/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/memory_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fds.h"

#define PAGES	32u	     /* that are looked at together */
#define PRESENT (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst */

enum presence { PRESENT_ALL, PRESENT_NOT_ALL, PRESENT_NO_PROGRAM };

static void close_file(struct memory_file *f)
{
	if (f->program && f->mem >= 0)
		close(f->mem);
	if (f->program && f->pages >= 0)
		close(f->pages);
	*f = (struct memory_file) { 0 };
}

void memory_files_deinit(struct memory_files *files)
{
	size_t i;

	for (i = 0; i < MEMORY_FILES; i++)
		close_file(&files->v[i]);
}

/* A descriptor of /proc/@pid/@name; or -errno. */
static int open_one(pid_t pid, const char *name)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fds_may_keep(fd))
		return fd;
	close(fd);
	return -EMFILE;
}

static bool want_descriptors(int fd)
{
	return fd == -EMFILE || fd == -ENFILE;
}

/* If there are no descriptors, it is tried again with the next read. */
static void open_files(struct memory_file *f, pid_t pid, uint64_t program)
{
	int mem = open_one(pid, "mem"), pages = mem < 0 ? mem : open_one(pid, "pagemap");

	*f = (struct memory_file) { .pid = pid, .mem = -1, .pages = -1 };
	if (pages >= 0) {
		f->mem = mem;
		f->pages = pages;
	} else if (mem >= 0) {
		close(mem);
	}
	if (!want_descriptors(pages))
		f->program = program;
}

static struct memory_file *find_file(struct memory_files *files, pid_t pid, uint64_t program)
{
	struct memory_file *f = &files->v[0], *oldest = f;

	for (; f < files->v + MEMORY_FILES; f++) {
		if (f->program == program && f->pid == pid)
			break;
		if (f->used < oldest->used)
			oldest = f;
	}
	if (f == files->v + MEMORY_FILES) {
		f = oldest;
		close_file(f);
		open_files(f, pid, program);
	}
	f->used = ++files->reads;
	return f;
}

/* Whether the @n pages from number @first on are in memory. */
static enum presence presence(const struct memory_file *f, uint64_t first, size_t n)
{
	uint64_t entries[PAGES];
	size_t i;

	if (pread(f->pages, entries, n * sizeof(*entries), (off_t)(first * sizeof(*entries))) !=
	    (ssize_t)(n * sizeof(*entries)))
		return PRESENT_NO_PROGRAM;
	for (i = 0; i < n; i++)
		if (!(entries[i] & PRESENT))
			return PRESENT_NOT_ALL;
	return PRESENT_ALL;
}

/* @len bytes, in at most PAGES pages. */
static bool read_piece(const struct memory_file *f, pid_t pid, uint64_t addr, void *dst, size_t len,
		       uint64_t page)
{
	struct iovec local = { dst, len }, there = { (void *)(uintptr_t)addr, len };
	const uint64_t first = addr / page;
	enum presence p = PRESENT_NOT_ALL;

	if (f->mem >= 0)
		p = presence(f, first, (addr + len - 1) / page - first + 1);
	if (p == PRESENT_NO_PROGRAM)
		return false;
	if (p == PRESENT_ALL)
		return pread(f->mem, dst, len, (off_t)addr) == (ssize_t)len;
	return process_vm_readv(pid, &local, 1, &there, 1, 0) == (ssize_t)len;
}

bool memory_files_read(struct memory_files *files, pid_t pid, uint64_t program, uint64_t addr,
		       void *dst, size_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct memory_file *f;
	size_t done, piece;

	if (!len)
		return true;
	if (addr + len - 1 < addr)
		return false;
	f = find_file(files, pid, program);
	for (done = 0; done < len; done += piece) {
		piece = PAGES * page - (addr + done) % page;
		if (piece > len - done)
			piece = len - done;
		if (!read_piece(f, pid, addr + done, (char *)dst + done, piece, page))
			return false;
	}
	return true;
}
