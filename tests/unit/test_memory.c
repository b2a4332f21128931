/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"
#include "support/target_process.h"
#include "target/memory.h"
#include "target/own_pages.h"
#include "target/remote.h"

#define PAGE 4096u

/* Readable pages of known bytes, with holes. */
struct fixture {
	struct memory mem;
	uint8_t *base;
	size_t pages;
};

static struct fixture setup(size_t pages)
{
	struct fixture f = { .mem = memory_process(getpid()), .pages = pages };

	f.base = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq((void *)f.base, MAP_FAILED);
	for (size_t i = 0; i < pages * PAGE; i++)
		f.base[i] = (uint8_t)(i * 31 + i / PAGE);
	return f;
}

/* Nobody can read what is mapped beyond the end of its file. */
static void punch(struct fixture *f, size_t page)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);

	cr_assert_neq(
		(void *)mmap(f->base + page * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
		MAP_FAILED);
	close(fd);
}

static void teardown(struct fixture *f)
{
	munmap(f->base, f->pages * PAGE);
}

static uint64_t addr_of(const struct fixture *f, size_t off)
{
	return (uint64_t)(uintptr_t)f->base + off;
}

Test(memory, own)
{
	struct fixture f = setup(4);
	uint8_t got[3 * PAGE];
	uint64_t word, want;

	cr_assert_eq(memory_read(&f.mem, addr_of(&f, 100), got, sizeof(got)), 0);
	cr_expect_arr_eq(got, f.base + 100, sizeof(got));
	cr_assert_eq(memory_read_u64(&f.mem, addr_of(&f, 123), &word), 0, "at any alignment");
	memcpy(&want, f.base + 123, 8);
	cr_expect_eq(word, want);
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, 0), got, 0), 0, "nothing is always there");
	teardown(&f);
}

Test(memory, child)
{
	volatile uint64_t secret = 1;
	struct memory mem;
	uint64_t got = 0;
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		secret = 0x1234567890abcdef;
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	mem = memory_process(pid);
	cr_expect_eq(memory_read_u64(&mem, (uint64_t)(uintptr_t)&secret, &got), 0);
	cr_expect_eq(got, 0x1234567890abcdef, "its memory, not ours");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_eq(memory_read_u64(&mem, (uint64_t)(uintptr_t)&secret, &got), -EFAULT, "gone");
	close(ready[0]);
	close(ready[1]);
}

Test(memory, unreadable)
{
	struct fixture f = setup(3);
	static const uint64_t nowhere[] = { 0, 8, 1ull << 47, 1ull << 63, ~0ull, ~7ull };
	uint8_t got[2 * PAGE];

	punch(&f, 1);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		cr_expect_eq(memory_read(&f.mem, nowhere[i], got, 8), -EFAULT, "%llx",
			     (unsigned long long)nowhere[i]);
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, PAGE), got, 8), -EFAULT);
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, PAGE - 1), got, 2), -EFAULT, "half of it");
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, PAGE - 8), got, 8), 0, "up to its end");
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, 2 * PAGE), got, PAGE), 0);
	teardown(&f);
}

/* One span of 24 bytes a page, some pages of which are holes: each span tells of itself. */
static void check_batch(size_t n, uint64_t holes, uint64_t straddle)
{
	struct memory_span spans[300];
	struct fixture f = setup(n + 1);
	uint8_t got[300][24];

	cr_assert_leq(n, 300);
	memset(got, 0xee, sizeof(got));
	for (size_t i = 0; i < n; i++)
		if (holes >> i % 64 & 1)
			punch(&f, i);
	for (size_t i = 0; i < n; i++)
		spans[i] = (struct memory_span) {
			.addr = addr_of(&f, i * PAGE + (straddle >> i % 64 & 1 ? PAGE - 8 : 40)),
			.dst = got[i],
			.len = 24,
			.ok = i & 1,
		};
	memory_read_spans(&f.mem, spans, n);
	for (size_t i = 0; i < n; i++) {
		bool over = straddle >> i % 64 & 1;
		bool want = !(holes >> i % 64 & 1) &&
			    !(over && i + 1 < n && holes >> (i + 1) % 64 & 1);

		cr_assert_eq(spans[i].ok, want, "span %zu of %zu (holes %llx)", i, n,
			     (unsigned long long)holes);
		if (want)
			cr_assert_arr_eq(got[i], f.base + i * PAGE + (over ? PAGE - 8 : 40), 24,
					 "span %zu", i);
	}
	teardown(&f);
}

Test(memory, batches)
{
	static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 300 };
	static const uint64_t holes[] = { 0,
					  1,
					  2,
					  1ull << 63,
					  1ull << 62,
					  3ull << 62,
					  0x5555555555555555,
					  0xaaaaaaaaaaaaaaaa,
					  ~0ull,
					  0x00ff00000000f001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(holes) / sizeof(holes[0]); k++) {
			check_batch(sizes[i], holes[k], 0);
			check_batch(sizes[i], holes[k], 0x9249249249249249);
		}
}

Test(memory, empty_spans_in_a_batch)
{
	struct fixture f = setup(3);
	uint8_t got[4][8];
	struct memory_span spans[] = {
		{ .addr = addr_of(&f, 0), .dst = got[0], .len = 8 },
		{ .addr = addr_of(&f, 8), .dst = got[1], .len = 0 },
		{ .addr = addr_of(&f, PAGE), .dst = got[2], .len = 8 },
		{ .addr = addr_of(&f, 2 * PAGE), .dst = got[3], .len = 8 },
	};

	memory_read_spans(&f.mem, spans, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect(spans[i].ok, "span %zu", i);
	punch(&f, 1);
	memory_read_spans(&f.mem, spans, 4);
	cr_expect(spans[0].ok && spans[1].ok && !spans[2].ok && spans[3].ok);
	teardown(&f);
}

/* ---- processes that were forked, and that execute ---- */

static _Alignas(PAGE) uint8_t inherited[2 * PAGE];

/* By the kernel: bit 56 of its page map (Documentation/admin-guide/mm/pagemap.rst). */
static bool is_its_alone(pid_t pid, const void *page)
{
	uint64_t entry = 0;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(pread(fd, &entry, 8, (off_t)((uintptr_t)page / PAGE * 8)), 8);
	close(fd);
	cr_assert(entry >> 63, "it is in memory");
	return entry >> 56 & 1;
}

static void check_sharing(bool direct)
{
	struct memory mem;
	struct target t;
	uint8_t got[16];

	memset(inherited, 7, sizeof(inherited));
	t = target_start();
	remote_set_direct(direct);
	mem = memory_process(t.pid);
	cr_assert_eq(memory_read(&mem, (uintptr_t)inherited, got, sizeof(got)), 0);
	cr_expect_eq(got[0], 7);
	cr_expect_not(is_its_alone(t.pid, inherited), "read");
	cr_expect_not(is_its_alone(t.pid, inherited + PAGE), "not read");
	target_write(t.pid, inherited + PAGE);
	cr_expect(is_its_alone(t.pid, inherited + PAGE), "what is written is copied");
	target_end(&t);
	remote_reset();
}

/* Who reads a process does not take from it what it shares with the one that it was forked from. */
Test(memory, what_is_shared_stays_shared)
{
	check_sharing(false);
	check_sharing(true);
}

/* A page that was the process' alone when it was read, and is not now that it has forked. */
static void check_shared_since(bool direct)
{
	struct target t = target_start();
	uint8_t *page = inherited;
	struct memory mem;
	uint8_t got[16];

	remote_set_direct(direct);
	mem = memory_process(t.pid);
	target_write(t.pid, page);
	cr_assert_eq(memory_read(&mem, (uintptr_t)page, got, sizeof(got)), 0);
	cr_assert_eq(got[0], 'x');
	target_fork(&t);
	cr_assert_not(is_its_alone(t.pid, page));
	usleep(OWN_PAGES_FOR_NS / NSEC_PER_USEC + 1000);
	cr_assert_eq(memory_read(&mem, (uintptr_t)page, got, sizeof(got)), 0);
	cr_expect_not(is_its_alone(t.pid, page), "it is asked again");
	target_end(&t);
	remote_reset();
}

Test(memory, what_is_shared_later_stays_shared)
{
	check_shared_since(false);
	check_shared_since(true);
}

/*
 * What is not in memory is left to process_vm_readv(), which may not read a page that the process
 * may not; /proc/PID/mem would fetch it.
 */
Test(memory, what_is_not_in_memory)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct memory mem = memory_process(getpid());
	uint64_t word;

	cr_assert_neq(page, MAP_FAILED);
	cr_expect_eq(memory_read_u64(&mem, (uintptr_t)page, &word), -EFAULT);
	cr_assert_eq(mprotect(page, PAGE, PROT_READ), 0);
	cr_expect_eq(memory_read_u64(&mem, (uintptr_t)page, &word), 0);
	munmap(page, PAGE);
}

/* The page of the stack of @pid with its arguments. */
static uint64_t stack_of(pid_t pid)
{
	char path[32], line[256];
	uint64_t high = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "[stack]"))
			cr_assert_eq(sscanf(line, "%*x-%" SCNx64, &high), 1);
	fclose(file);
	return high - PAGE;
}

static void check_exec(bool direct)
{
	struct memory before, after;
	struct target t = target_start();
	uint64_t stack;
	uint8_t got[16];

	remote_set_direct(direct);
	before = memory_process(t.pid);
	cr_assert_eq(memory_read(&before, (uintptr_t)inherited, got, sizeof(got)), 0);
	target_exec(&t);
	stack = stack_of(t.pid);
	cr_expect_eq(memory_read(&before, stack, got, sizeof(got)), -EFAULT);
	after = memory_process(t.pid);
	cr_expect_eq(memory_read(&after, stack, got, sizeof(got)), 0);
	cr_expect_eq(memory_read(&after, (uintptr_t)inherited, got, sizeof(got)), -EFAULT);
	target_end(&t);
	remote_reset();
}

Test(memory, of_the_program_that_was_read_first)
{
	check_exec(false);
	check_exec(true);
}

static void wait_for_arguments(pid_t pid, const char *last)
{
	char path[32], text[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	for (text[0] = '\0'; n < 2 || strcmp(text + n - 2, last); usleep(100)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		cr_assert_geq(fd, 0);
		n = read(fd, text, sizeof(text) - 1);
		cr_assert_geq(n, 0);
		text[n] = '\0';
		close(fd);
	}
}

/*
 * The same of pages that are no other process': the next program has some at the same addresses,
 * as nothing is placed at random.
 */
static void check_exec_in_place(bool direct)
{
	struct memory before, after;
	uint8_t got[16];
	uint64_t stack;
	int fds[2];
	pid_t pid;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		personality(ADDR_NO_RANDOMIZE);
		dup2(fds[0], 0);
		execl("/bin/sh", "sh", "-c", "read x; exec sh -c 'read x; exit' 2", "1", NULL);
		_exit(1);
	}
	cr_assert_geq(pid, 0);
	wait_for_arguments(pid, "1");
	remote_set_direct(direct);
	before = memory_process(pid);
	stack = stack_of(pid);
	cr_assert_eq(memory_read(&before, stack, got, sizeof(got)), 0);
	cr_assert(is_its_alone(pid, (const void *)(uintptr_t)stack));
	cr_assert_eq(write(fds[1], "\n", 1), 1);
	wait_for_arguments(pid, "2");
	cr_expect_eq(memory_read(&before, stack, got, sizeof(got)), -EFAULT);
	after = memory_process(pid);
	cr_expect_eq(memory_read(&after, stack, got, sizeof(got)), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	remote_reset();
}

Test(memory, of_the_program_that_was_read_first_also_at_its_addresses)
{
	check_exec_in_place(false);
	check_exec_in_place(true);
}

/* More programs than there are descriptors for: they are opened again. */
Test(memory, of_many_programs)
{
	struct memory mem[300];
	uint64_t word = 5, got;

	remote_set_direct(true);
	for (size_t i = 0; i < 300; i++)
		mem[i] = memory_process(getpid());
	for (size_t turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < 300; i++) {
			got = 0;
			cr_expect_eq(memory_read_u64(&mem[i], (uintptr_t)&word, &got), 0);
			cr_expect_eq(got, 5);
		}
	cr_expect_lt(dup(0), 100, "the others are closed");
	remote_reset();
}

Test(memory, of_a_dead_process)
{
	struct memory mem = memory_process(0x3fffffff);
	struct memory_span spans[100];
	uint64_t got[100];

	for (size_t i = 0; i < 100; i++)
		spans[i] = (struct memory_span) {
			.addr = (uint64_t)(uintptr_t)got, .dst = &got[i], .len = 8, .ok = true
		};
	memory_read_spans(&mem, spans, 100);
	for (size_t i = 0; i < 100; i++)
		cr_expect_not(spans[i].ok, "span %zu", i);
	cr_expect_eq(memory_read_some(&mem, (uint64_t)(uintptr_t)got, got, 8), 0);
}

Test(memory, as_much_as_there_is)
{
	struct fixture f = setup(8);
	uint8_t got[8 * PAGE];

	punch(&f, 5);
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 0), got, 5 * PAGE), 5 * PAGE);
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 0), got, 8 * PAGE), 5 * PAGE);
	cr_expect_arr_eq(got, f.base, 5 * PAGE);
	memset(got, 0, sizeof(got));
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 1000), got, 7 * PAGE), 5 * PAGE - 1000);
	cr_expect_arr_eq(got, f.base + 1000, 5 * PAGE - 1000);
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 5 * PAGE - 1), got, 2), 1);
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 5 * PAGE), got, PAGE), 0);
	cr_expect_eq(memory_read_some(&f.mem, addr_of(&f, 6 * PAGE), got, 0), 0);
	cr_expect_eq(memory_read_some(&f.mem, ~0ull - 10, got, 100), 0, "around the end of all");
	teardown(&f);
}

/*
 * What a process makes as large as it likes is read up to a limit, and then it is as if not there.
 */
Test(memory, budget)
{
	struct memory_budget budget = { .left = 3 * MEMORY_CALL_COST + 4 * MEMORY_SPAN_COST +
						PAGE };
	struct fixture f = setup(4);
	uint8_t got[PAGE];
	struct memory_span spans[] = {
		{ .addr = addr_of(&f, 0), .dst = got, .len = 100 },
		{ .addr = addr_of(&f, PAGE), .dst = got + 100, .len = 100 },
	};
	struct memory_span huge = { .addr = addr_of(&f, 0), .dst = got, .len = SIZE_MAX };
	uint64_t word;

	f.mem.budget = &budget;
	memory_read_spans(&f.mem, spans, 2);
	cr_expect(spans[0].ok && spans[1].ok);
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, 7), got, 1000), 0);
	memory_read_spans(&f.mem, &huge, 1);
	cr_expect(!huge.ok && budget.used_up, "more than there is, and no overflow");
	cr_expect_eq(memory_read(&f.mem, addr_of(&f, 0), got, PAGE), -EFAULT);
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), 0, "less can be read still");
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), 0);
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), -EFAULT, "until that is gone");
	f.mem.budget = NULL;
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), 0);
	teardown(&f);
}

/* When it is time to end nothing is read any more, however much there is. */
Test(memory, nothing_when_it_is_too_late)
{
	struct fixture f = setup(1);
	uint64_t word;

	stop_at(clock_ns(CLOCK_MONOTONIC) - STOP_GRACE_NS);
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), -EFAULT);
	stop_at(0);
	cr_expect_eq(memory_read_u64(&f.mem, addr_of(&f, 0), &word), 0);
	teardown(&f);
}
