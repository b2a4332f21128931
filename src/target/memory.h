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

/*
 * How much may still be read of a process that can make what is read as large as it likes. Each
 * piece takes MEMORY_SPAN_COST beside its bytes, and each call MEMORY_CALL_COST, which is about the
 * CPU time that they take at the speed of memory. What exceeds it cannot be read, as if it were not
 * mapped.
 */
struct memory_budget {
	uint64_t left; /* bytes */
	bool used_up;  /* something was not read */
};
#define MEMORY_SPAN_COST 256
#define MEMORY_CALL_COST 2048

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
	pid_t pid;		      /* of memory_process() … */
	uint64_t program;	      /* … and that one has this number */
	const void *image;	      /* of other readers */
	struct gathered *gathered;    /* of gathered_memory(); else NULL */
	struct page_cache *pages;     /* of page_cache_memory(); else NULL */
	struct memory_budget *budget; /* NULL: none; not owned */
};

/*
 * The memory of the live process @pid and of the program that it runs when it is first read, which
 * another process reads (remote.h). None of it when stop_overdue(), or once @pid was given up.
 */
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

/*
 * Say that @len bytes at @addr are about to be read. Where reads are gathered (gathered.h) they are
 * read along with what else is missing; elsewhere that has no effect.
 */
void memory_expect(const struct memory *mem, uint64_t addr, size_t len);

/*
 * Where pages are kept (page_cache.h): drop them, since what follows looks once more at what
 * changes. Elsewhere that has no effect.
 */
void memory_refresh(const struct memory *mem);

/* @mem, or the memory below of which it keeps pages: for what has to be read in a certain order. */
const struct memory *memory_now(const struct memory *mem);

#endif
