/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/memory_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "target/memory.h"

#define PAGES 32u /* that are looked at together */
#define RUN   64u /* spans that are read together */

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
		if (!(entries[i] & PAGE_PRESENT))
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

/* The same of any length. */
static bool read_one(const struct memory_file *f, pid_t pid, const struct memory_span *span)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t done, piece;

	if (span->len && span->addr + span->len - 1 < span->addr)
		return false;
	for (done = 0; done < span->len; done += piece) {
		piece = PAGES * page - (span->addr + done) % page;
		if (piece > span->len - done)
			piece = span->len - done;
		if (!read_piece(f, pid, span->addr + done, (char *)span->dst + done, piece, page))
			return false;
	}
	return true;
}

/*
 * Read the first of the @n spans, as many as process_vm_readv() may read, with one call: it stops
 * at one that it cannot read. Returns how many were read.
 */
static size_t read_run(struct memory_files *files, const struct memory_file *f, pid_t pid,
		       uint64_t now, struct memory_span *spans, size_t n)
{
	struct iovec local[RUN], there[RUN];
	size_t i, end = 0;
	ssize_t got;

	while (end < n && end < RUN && spans[end].len &&
	       own_pages_are(&files->own, f->program, f->pages, now, spans[end].addr,
			     spans[end].len)) {
		local[end] = (struct iovec) { spans[end].dst, spans[end].len };
		there[end] = (struct iovec) { (void *)(uintptr_t)spans[end].addr, spans[end].len };
		end++;
	}
	got = end ? process_vm_readv(pid, local, end, there, end, 0) : 0;
	for (i = 0; i < end && got >= (ssize_t)spans[i].len; i++) {
		got -= (ssize_t)spans[i].len;
		spans[i].ok = true;
	}
	return i;
}

/* Whether the program that @f is of still runs. */
static bool is_there(const struct memory_file *f)
{
	uint64_t entry;

	return pread(f->pages, &entry, sizeof(entry), 0) == (ssize_t)sizeof(entry);
}

void memory_files_read(struct memory_files *files, pid_t pid, uint64_t program,
		       struct memory_span *spans, size_t n)
{
	const struct memory_file *f = find_file(files, pid, program);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool by_pid = false;
	size_t i, run;

	for (i = 0; i < n; i++)
		spans[i].ok = false;
	for (i = 0; i < n;) {
		run = f->mem >= 0 ? read_run(files, f, pid, now, &spans[i], n - i) : 0;
		by_pid |= run;
		i += run;
		if (i < n && run < RUN) {
			spans[i].ok = read_one(f, pid, &spans[i]);
			i++;
		}
	}
	if (!by_pid || is_there(f))
		return;
	for (i = 0; i < n; i++)
		spans[i].ok = false;
}
