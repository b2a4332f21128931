/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/constants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "elf/elf_file.h"
#include "target/memory.h"
#include "worker/file_worker.h"

struct constant_segment {
	uint64_t start, end; /* addresses [start, end) */
	uint64_t offset;     /* in the file */
};

struct ruby_constants {
	unsigned int refs;
	struct file_worker *worker; /* not owned */
	int fd;			    /* owned */
	struct constant_segment segs[16];
	size_t n;
};

int ruby_constants_new(struct file_worker *worker, int fd, const struct elf_segment *segs, size_t n,
		       uint64_t base, struct ruby_constants **ret)
{
	struct ruby_constants *c = calloc(1, sizeof(*c));
	size_t i;
	int r;

	if (!c)
		return -ENOMEM;
	c->refs = 1;
	c->worker = worker;
	c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (c->fd < 0) {
		r = -errno;
		free(c);
		return r;
	}
	for (i = 0; i < n && c->n < ARRAY_SIZE(c->segs); i++)
		if (!segs[i].write)
			c->segs[c->n++] = (struct constant_segment) {
				.start = base + segs[i].vaddr,
				.end = base + segs[i].vaddr + segs[i].filesz,
				.offset = segs[i].offset,
			};
	*ret = c;
	return 0;
}

struct ruby_constants *ruby_constants_ref(struct ruby_constants *c)
{
	if (c)
		c->refs++;
	return c;
}

void ruby_constants_unref(struct ruby_constants *c)
{
	if (!c || --c->refs)
		return;
	close(c->fd);
	free(c);
}

static bool read_span(const struct ruby_constants *c, const struct memory_span *span)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		const struct constant_segment *s = &c->segs[i];
		uint64_t off = span->addr - s->start;

		if (span->addr < s->start || off >= s->end - s->start ||
		    span->len > s->end - s->start - off)
			continue;
		return file_worker_read(c->worker, c->fd, span->dst, span->len, s->offset + off) ==
		       (ssize_t)span->len;
	}
	return false;
}

static void read_spans_constants(const struct memory *mem, struct memory_span *spans, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		spans[i].ok = mem->image && read_span(mem->image, &spans[i]);
}

struct memory ruby_constants_memory(const struct ruby_constants *c)
{
	return (struct memory) { .read_spans = read_spans_constants, .image = c };
}
