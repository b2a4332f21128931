/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/target_process.h"
#include "target/own_pages.h"

#define PAGE  4096u
#define PAGES (4 * OWN_PAGES)

static _Alignas(PAGE) uint8_t inherited[PAGE];
static struct own_pages own;

static int page_map(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

/* All pieces of some windows of pages, one of which is not in memory. */
Test(own_pages, in_windows)
{
	uint8_t *base = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t hole = PAGES / 2 + 1;
	const int fd = page_map(getpid());

	cr_assert_neq((void *)base, MAP_FAILED);
	for (size_t i = 0; i < PAGES; i++)
		if (i != hole)
			base[i * PAGE] = 1;
	for (size_t from = 0; from < PAGES; from++)
		for (size_t n = 1; from + n <= PAGES; n++) {
			const uint64_t addr = (uint64_t)(uintptr_t)base + from * PAGE;
			const bool want = n <= OWN_PAGES && !(from <= hole && hole < from + n);

			cr_assert_eq(own_pages_are(&own, 1, fd, 5, addr + 100, n * PAGE - 100),
				     want, "%zu pages from %zu", n, from);
			if (n > 1)
				cr_assert_eq(own_pages_are(&own, 1, fd, 5, addr + PAGE - 1,
							   (n - 2) * PAGE + 2),
					     want, "the ends of %zu pages from %zu", n, from);
		}
	cr_expect_not(own_pages_are(&own, 1, fd, 5, UINT64_MAX - 3, 8));
	close(fd);
}

/* What is kept of one program is not said of another one at the same place in the table. */
Test(own_pages, of_each_program)
{
	const uint64_t addr = (uint64_t)(uintptr_t)inherited;
	struct target alone, sharing;
	int a, b;

	memset(inherited, 1, sizeof(inherited));
	alone = target_start();
	sharing = target_start();
	a = page_map(alone.pid);
	b = page_map(sharing.pid);
	target_write(alone.pid, inherited);
	cr_expect(own_pages_are(&own, 1, a, 5, addr, 8));
	cr_expect_not(own_pages_are(&own, 1 + OWN_WINDOWS, b, 5, addr, 8));
	cr_expect(own_pages_are(&own, 1, a, 5, addr, 8));
	close(a);
	close(b);
	target_end(&alone);
	target_end(&sharing);
}

/* For a moment it is not asked again. */
Test(own_pages, kept_for_a_moment)
{
	struct target t;
	int fd;

	memset(inherited, 1, sizeof(inherited));
	t = target_start();
	fd = page_map(t.pid);
	cr_expect_not(own_pages_are(&own, 1, fd, 1000, (uintptr_t)inherited, 8));
	target_write(t.pid, inherited);
	cr_expect_not(own_pages_are(&own, 1, fd, 1000 + OWN_PAGES_FOR_NS, (uintptr_t)inherited, 8));
	cr_expect(own_pages_are(&own, 1, fd, 1001 + OWN_PAGES_FOR_NS, (uintptr_t)inherited, 8));
	target_end(&t);
	cr_expect_not(own_pages_are(&own, 1, fd, 2 + 3 * OWN_PAGES_FOR_NS, (uintptr_t)inherited, 8),
		      "the program is gone");
	close(fd);
}
