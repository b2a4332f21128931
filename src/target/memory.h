/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of another process, read without stopping it.
 *
 * What is read may be changing: nothing here is a snapshot, and the caller checks what it got. The
 * reader is a function, so that tests can present an image made by hand. Not thread-safe.
 */
#ifndef RBPF_TARGET_MEMORY_H
#define RBPF_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One piece to read. */
struct memory_span {
	uint64_t addr;
	void *dst;
	size_t len;
	bool ok; /* set by memory_read_spans(): all of it was read */
};

struct memory {
	/* Fill in ->ok of each of the @n spans. */
	void (*read_spans)(const struct memory *mem, struct memory_span *spans, size_t n);
	pid_t pid;	   /* of memory_process() */
	const void *image; /* of other readers */
};

/* The memory of the live process @pid: process_vm_readv(2), many spans a call. */
struct memory memory_process(pid_t pid);

/* Read all of @len bytes. Returns 0 or -EFAULT, and then *@dst holds nothing of use. */
int memory_read(const struct memory *mem, uint64_t addr, void *dst, size_t len);
int memory_read_u64(const struct memory *mem, uint64_t addr, uint64_t *ret);

/* Read as many of the spans as can be read; each one's ok tells. */
void memory_read_spans(const struct memory *mem, struct memory_span *spans, size_t n);

/*
 * Read up to @len bytes from @addr, less where the mapping ends: in steps of pages. Returns the
 * number of bytes read.
 */
size_t memory_read_some(const struct memory *mem, uint64_t addr, void *dst, size_t len);

#endif
