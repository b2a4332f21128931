/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/mmap_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "target/cpus.h"

#define DATA_PAGES 32 /* a power of two: some thousand records between two readings */
#define RECORD_MAX 8192
#define VM_WORD	   "ruby" /* in the name of what is looked into */

struct cpu_buffer {
	int cpu;
	int fd;
	struct perf_event_mmap_page *page; /* with DATA_PAGES behind it */
};

struct mmap_watch {
	struct cpu_buffer *v;
	size_t n, cap;
	size_t page_size;
	/* A record that wraps around, in one piece. */
	_Alignas(8) char record[RECORD_MAX];
};

/* PERF_RECORD_MMAP2, as far as the file's name */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

static int open_cpu(struct mmap_watch *w, int cpu, struct err *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX, /* it is read often enough */
	};
	size_t size = (1 + DATA_PAGES) * w->page_size;
	void *page;
	int fd;

	if (array_reserve(w->v, w->cap, w->n + 1))
		return err_oom(err);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == ENODEV) /* offline */
		return 0;
	if (fd < 0)
		return err_set(err, -errno, ERR_ENV, "cannot watch for Rubies on CPU %d: %s", cpu,
			       strerror(errno));
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return err_set(err, -errno, ERR_ENV, "cannot watch for Rubies on CPU %d: %s", cpu,
			       strerror(errno));
	}
	w->v[w->n++] = (struct cpu_buffer) { .cpu = cpu, .fd = fd, .page = page };
	return 0;
}

int mmap_watch_open(struct mmap_watch **ret)
{
	struct mmap_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->page_size = (size_t)sysconf(_SC_PAGESIZE);
	*ret = w;
	return 0;
}

static void close_cpu(const struct mmap_watch *w, const struct cpu_buffer *b)
{
	munmap(b->page, (1 + DATA_PAGES) * w->page_size);
	close(b->fd);
}

static bool has_cpu(const struct mmap_watch *w, int cpu)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->v[i].cpu == cpu)
			return true;
	return false;
}

int mmap_watch_set_cpus(struct mmap_watch *w, const struct cpus *cpus, struct err *err)
{
	size_t i;
	int r = 0;

	for (i = w->n; i-- > 0;) {
		if (cpus_has(cpus, w->v[i].cpu))
			continue;
		close_cpu(w, &w->v[i]);
		w->v[i] = w->v[--w->n];
	}
	for (i = 0; i < cpus->n && !r; i++)
		if (!has_cpu(w, cpus->v[i]))
			r = open_cpu(w, cpus->v[i], err);
	return r;
}

void mmap_watch_close(struct mmap_watch *w)
{
	size_t i;

	if (!w)
		return;
	for (i = 0; i < w->n; i++)
		close_cpu(w, &w->v[i]);
	free(w->v);
	free(w);
}

static bool may_be_ruby(const struct mmap2_record *rec)
{
	const char *slash;

	if (rec->header.type != PERF_RECORD_MMAP2 ||
	    rec->header.size <= offsetof(struct mmap2_record, filename))
		return false;
	slash = strrchr(rec->filename, '/');
	return slash && strstr(slash, VM_WORD);
}

/* The record at @tail, in one piece; it is shorter than RECORD_MAX. */
static const struct perf_event_header *record_at(struct mmap_watch *w, const char *data,
						 uint64_t tail)
{
	size_t mask = DATA_PAGES * w->page_size - 1, at = tail & mask, part;
	const struct perf_event_header *h = (const struct perf_event_header *)(data + at);
	size_t size = h->size < RECORD_MAX ? h->size : RECORD_MAX;

	if (at + size <= mask + 1)
		return h;
	part = mask + 1 - at;
	memcpy(w->record, data + at, part);
	memcpy(w->record + part, data, size - part);
	return (const struct perf_event_header *)w->record;
}

static int read_cpu(struct mmap_watch *w, struct perf_event_mmap_page *page,
		    int (*found)(void *arg, pid_t pid), void *arg, bool *lost)
{
	const char *data = (const char *)page + w->page_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	int r = 0;

	while (tail < head && !r) {
		const struct perf_event_header *h = record_at(w, data, tail);
		const struct mmap2_record *rec = (const struct mmap2_record *)h;

		if (!h->size)
			break;
		tail += h->size;
		if (h->type == PERF_RECORD_LOST)
			*lost = true;
		else if (may_be_ruby(rec))
			r = found(arg, (pid_t)rec->pid);
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return r;
}

int mmap_watch_read(struct mmap_watch *w, int (*found)(void *arg, pid_t pid), void *arg, bool *lost)
{
	size_t i;
	int r = 0;

	*lost = false;
	for (i = 0; i < w->n && !r; i++)
		r = read_cpu(w, w->v[i].page, found, arg, lost);
	return r;
}
