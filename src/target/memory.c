/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/memory.h"

#include <errno.h>

#include "target/remote.h"

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

static void read_spans_process(const struct memory *mem, struct memory_span *spans, size_t n)
{
	remote_read_memory(mem->pid, mem->program, spans, n);
}

struct memory memory_process(pid_t pid)
{
	static uint64_t programs;

	return (struct memory) { .read_spans = read_spans_process,
				 .pid = pid,
				 .program = ++programs };
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
