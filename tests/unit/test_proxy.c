/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/proxy.h"

static struct proxy proxy = PROXY_INIT;
static uint64_t slept;
static pid_t left;

static void end(void)
{
	proxy_deinit(&proxy);
}

TestSuite(proxy, .fini = end);

/* Times that it was asked. */
static uint64_t patience(void *arg, pid_t pid)
{
	(void)pid;
	++*(int *)arg;
	return 100 * NSEC_PER_MSEC;
}

static int ask(enum proxy_op op, const char *name, uint32_t len, int *asked)
{
	struct proxy_request *req = proxy_prepare(&proxy);

	cr_assert_not_null(req);
	req->op = op;
	req->pid = getpid();
	req->program = 1;
	req->len = len;
	snprintf(req->name, sizeof(req->name), "%s", name);
	return proxy_run(&proxy, patience, asked, &slept, &left);
}

static const struct proxy_request *answer(void)
{
	return proxy_prepare(&proxy);
}

Test(proxy, memory)
{
	const uint64_t words[] = { 11, 22 }, begin = clock_ns(CLOCK_MONOTONIC);
	struct proxy_request *req = proxy_prepare(&proxy);
	uint64_t got[2];
	int asked = 0;

	req->n = 3;
	req->spans[0] = (struct proxy_span) { (uintptr_t)&words[0], 8, 0 };
	req->spans[1] = (struct proxy_span) { 8, 8, 1 };
	req->spans[2] = (struct proxy_span) { (uintptr_t)&words[1], 8, 0 };
	cr_assert_eq(ask(PROXY_MEMORY, "", 0, &asked), 0);
	cr_expect_eq(answer()->spans[0].ok, 1);
	cr_expect_eq(answer()->spans[1].ok, 0);
	cr_expect_eq(answer()->spans[2].ok, 1);
	memcpy(&got[0], answer()->bytes, 8);
	memcpy(&got[1], answer()->bytes + 16, 8);
	cr_expect_eq(got[0], 11);
	cr_expect_eq(got[1], 22);
	cr_expect(!asked || clock_ns(CLOCK_MONOTONIC) - begin >= PROXY_FIRST_NS);
	cr_expect_neq(proxy.pid, getpid());
}

Test(proxy, files)
{
	int asked = 0;

	cr_assert_eq(ask(PROXY_OPEN, "comm", 3, &asked), 0);
	cr_assert_eq(answer()->result, 3);
	cr_assert_eq(ask(PROXY_READ, "", 100, &asked), 0);
	cr_expect_gt(answer()->result, 0);
	cr_expect_eq(answer()->bytes[answer()->result - 1], '\n');
	cr_assert_eq(ask(PROXY_READ, "", 100, &asked), 0);
	cr_expect_eq(answer()->result, 0, "the end");
	cr_assert_eq(ask(PROXY_OPEN, "nothing", 100, &asked), 0);
	cr_expect_eq(answer()->result, -ENOENT);
	cr_assert_eq(ask(PROXY_LINK, "ns/pid", 100, &asked), 0);
	cr_expect_eq(strncmp(answer()->bytes, "pid:[", 5), 0);
}

/* It has no file of ours, and no privilege to change anything. */
Test(proxy, has_little)
{
	char path[64], line[256];
	unsigned long long caps = ~0ull;
	int asked = 0, files = 0;
	FILE *file;

	cr_assert_eq(ask(PROXY_LINK, "ns/pid", 100, &asked), 0);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)proxy.pid, i);
		files += !access(path, F_OK);
	}
	cr_expect_eq(files, 0);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)proxy.pid);
	file = fopen(path, "r");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "CapPrm: %llx", &caps);
	fclose(file);
	cr_expect_eq(caps & ~(1ull << 19 | 1ull << 2), 0, "CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH");
}

/* As one that sleeps in the kernel; the request is not executed before it goes on. */
Test(proxy, hangs)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	const void *memory;
	int asked = 0;
	uint64_t awake;
	pid_t first;

	cr_assert_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0);
	first = proxy.pid;
	memory = answer();
	kill(first, SIGSTOP);
	/*
	 * What it ran or waited for a CPU before counts against it; nor was the first request
	 * always quick.
	 */
	awake = clock_ns(CLOCK_MONOTONIC) - begin;
	asked = 0;
	cr_expect_eq(ask(PROXY_OPEN, "stat", 100, &asked), -ETIMEDOUT);
	cr_expect_eq(asked, 1);
	cr_expect_geq(clock_ns(CLOCK_MONOTONIC) - begin, 100 * NSEC_PER_MSEC);
	cr_expect_geq(slept + awake, 90 * NSEC_PER_MSEC);
	cr_assert_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0, "by another one");
	cr_expect_gt(answer()->result, 0);
	cr_expect_neq(proxy.pid, first);
	if (left)
		cr_expect_neq((const void *)answer(), memory, "the first may still write there");
	while (waitpid(first, NULL, 0) < 0 && errno == EINTR)
		;
	cr_expect_eq(kill(first, 0), -1, "it was killed");
}

Test(proxy, somebody_kills_it)
{
	int asked = 0;
	pid_t first;

	cr_assert_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0);
	first = proxy.pid;
	kill(first, SIGKILL);
	cr_assert_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0, "another one answers");
	cr_expect_gt(answer()->result, 0);
	cr_expect_neq(proxy.pid, first);
}

/* A process that was forked since has one of its own. */
Test(proxy, forked)
{
	int asked = 0, status;
	pid_t pid;

	cr_assert_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0);
	pid = fork();
	if (!pid) {
		pid_t of_parent = proxy.pid;

		_exit(ask(PROXY_OPEN, "comm", 100, &asked) || proxy.pid == of_parent);
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
	cr_expect_eq(ask(PROXY_OPEN, "comm", 100, &asked), 0);
}
