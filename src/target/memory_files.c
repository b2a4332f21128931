/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/memory_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void close_file(struct memory_file *f)
{
	if (f->program && f->fd >= 0)
		close(f->fd);
	*f = (struct memory_file) { 0 };
}

void memory_files_deinit(struct memory_files *files)
{
	size_t i;

	for (i = 0; i < MEMORY_FILES; i++)
		close_file(&files->v[i]);
}

/* Programs are numbered one after the other: of those in use, few want the same place. */
static const struct memory_file *open_file(struct memory_files *files, pid_t pid, uint64_t program)
{
	struct memory_file *f = &files->v[program % MEMORY_FILES];
	char path[32];

	if (f->program == program && f->pid == pid)
		return f;
	close_file(f);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	*f = (struct memory_file) { .program = program,
				    .pid = pid,
				    .fd = open(path, O_RDONLY | O_CLOEXEC) };
	return f;
}

bool memory_files_read(struct memory_files *files, pid_t pid, uint64_t program, uint64_t addr,
		       void *dst, size_t len)
{
	const struct memory_file *f = open_file(files, pid, program);
	struct iovec local = { dst, len }, there = { (void *)(uintptr_t)addr, len };

	if (!len)
		return true;
	if (f->fd >= 0)
		return pread(f->fd, dst, len, (off_t)addr) == (ssize_t)len;
	return process_vm_readv(pid, &local, 1, &there, 1, 0) == (ssize_t)len;
}
