/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/memory.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "base/stop.h"

#define PAGE 4096u

static void read_nothing(struct memory_span *spans, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		spans[i].ok = false;
}

/* Whether the budget of @mem, if it has one, allows to read @spans; they are charged then. */
static bool charge(const struct memory *mem, const struct memory_span *spans, size_t n)
{
	struct memory_budget *b = mem->budget;
	uint64_t cost = MEMORY_CALL_COST;
	size_t i;

	if (!b)
		return true;
	for (i = 0; i < n; i++)
		if (__builtin_add_overflow(cost, MEMORY_SPAN_COST, &cost) ||
		    __builtin_add_overflow(cost, spans[i].len, &cost))
			break;
	if (i < n || cost > b->left) {
		b->used_up = true;
		return false;
	}
	b->left -= cost;
	return true;
}

/*
 * process_vm_readv() stops at the first remote piece that faults and tells only the bytes read
 * before it. So: count off the whole pieces, skip the one that failed, go on behind it.
 */
static void read_spans_process(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct iovec local[64], remote[64];
	size_t i = 0, k, batch;
	ssize_t got;

	if (stop_overdue()) {
		read_nothing(spans, n);
		return;
	}
	while (i < n) {
		batch = n - i < 64 ? n - i : 64;
		for (k = 0; k < batch; k++) {
			local[k] = (struct iovec) { spans[i + k].dst, spans[i + k].len };
			remote[k].iov_base = (void *)(uintptr_t)spans[i + k].addr;
			remote[k].iov_len = spans[i + k].len;
			spans[i + k].ok = false;
		}
		got = process_vm_readv(mem->pid, local, batch, remote, batch, 0);
		for (k = 0; k < batch && got >= (ssize_t)spans[i + k].len; k++) {
			got -= (ssize_t)spans[i + k].len;
			spans[i + k].ok = true;
		}
		i += k < batch ? k + 1 : k;
	}
}

struct memory memory_process(pid_t pid)
{
	return (struct memory) { .read_spans = read_spans_process, .pid = pid };
}

int memory_read(const struct memory *mem, uint64_t addr, void *dst, size_t len)
{
	struct memory_span span = { .addr = addr, .dst = dst, .len = len };

	memory_read_spans(mem, &span, 1);
	return span.ok ? 0 : -EFAULT;
}

int memory_read_u64(const struct memory *mem, uint64_t addr, uint64_t *ret)
{
	return memory_read(mem, addr, ret, sizeof(*ret));
}

void memory_read_spans(const struct memory *mem, struct memory_span *spans, size_t n)
{
	if (charge(mem, spans, n))
		mem->read_spans(mem, spans, n);
	else
		read_nothing(spans, n);
}

size_t memory_read_some(const struct memory *mem, uint64_t addr, void *dst, size_t len)
{
	size_t done = 0, step;

	if (!memory_read(mem, addr, dst, len))
		return len;
	while (done < len) {
		step = PAGE - (addr + done) % PAGE;
		if (step > len - done)
			step = len - done;
		if (memory_read(mem, addr + done, (char *)dst + done, step))
			break;
		done += step;
	}
	return done;
}
