/* SPDX-License-Identifier: GPL-2.0-only */
/* What a system call waits for, by its arguments, which are of this process. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "dump/doing.h"
#include "dump/waits_on.h"
#include "target/memory.h"
#include "target/process.h"
#include "target/waits_on.h"

static void expect_words(long number, uint64_t a, uint64_t b, uint64_t c, const char *words)
{
	const struct thread_syscall call = { .number = number, .args = { a, b, c } };
	const struct memory mem = memory_process(getpid());
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct waits_on on = waits_on_read(&mem, &call);

	dump_waits_on_add(&out, &on);
	cr_expect_str_eq(buf_str(&out), words);
}

/* Descriptor @fd, from now on, is @of. */
static void have(int fd, int of)
{
	cr_assert_eq(dup2(of, fd), fd);
}

Test(waits_on, kinds_of_descriptors)
{
	int pipes[2], sockets[2];

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	have(70, pipes[0]);
	have(71, sockets[0]);
	have(72, open("/dev/null", O_RDONLY));
	expect_words(SYS_read, 70, 0, 0, "descriptor 70, a pipe");
	expect_words(SYS_recvfrom, 71, 0, 0, "descriptor 71, a socket");
	expect_words(SYS_fsync, 72, 0, 0, "descriptor 72, /dev/null");
	expect_words(SYS_read, 99, 0, 0, "descriptor 99");
	expect_words(SYS_futex, 70, 0, 0, "");
}

Test(waits_on, many_descriptors)
{
	struct pollfd polled[3] = { { .fd = -1 }, { .fd = 80 }, { .fd = 81 } };
	fd_set read, write;

	FD_ZERO(&read);
	FD_ZERO(&write);
	FD_SET(83, &read);
	FD_SET(90, &read);
	FD_SET(85, &write);
	expect_words(SYS_ppoll, (uintptr_t)polled, 3, 0, "descriptor 80, and 1 other");
	expect_words(SYS_ppoll, (uintptr_t)polled, 2, 0, "descriptor 80");
	expect_words(SYS_ppoll, (uintptr_t)polled, 0, 0, "");
	expect_words(SYS_ppoll, 0, 2, 0, "");
	expect_words(SYS_pselect6, 91, (uintptr_t)&read, (uintptr_t)&write,
		     "descriptor 83, and 2 others");
	expect_words(SYS_pselect6, 90, (uintptr_t)&read, 0, "descriptor 83");
	expect_words(SYS_pselect6, 0, 0, 0, "");
	expect_words(SYS_pselect6, UINT32_MAX, (uintptr_t)&read, 0, "descriptor 83, and 1 other");
}

/* The VM has its own descriptor in the set. */
Test(waits_on, a_socket_among_others)
{
	int event = eventfd(0, 0), sockets[2];
	fd_set read, write;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	have(60, event);
	have(90, sockets[0]);
	have(95, event);
	FD_ZERO(&read);
	FD_ZERO(&write);
	FD_SET(60, &read);
	FD_SET(90, &write);
	expect_words(SYS_pselect6, 91, (uintptr_t)&read, (uintptr_t)&write,
		     "descriptor 90, a socket, and 1 other");
	FD_SET(95, &write);
	expect_words(SYS_pselect6, 96, (uintptr_t)&read, (uintptr_t)&write,
		     "descriptor 60, an eventfd, and 2 others");
	FD_SET(90, &read);
	FD_CLR(60, &read);
	expect_words(SYS_pselect6, 96, (uintptr_t)&read, (uintptr_t)&write,
		     "descriptor 90, a socket, and 2 others");
}

/* Of those beyond the ones that are looked at nobody knows whether they are negative. */
Test(waits_on, more_descriptors_than_are_looked_at)
{
	struct pollfd polled[100];

	for (int i = 0; i < 100; i++)
		polled[i].fd = 100 + i;
	expect_words(SYS_ppoll, (uintptr_t)polled, 100, 0, "descriptor 100, and 99 others");
}

Test(waits_on, what_is_polled_is_a_socket_or_not)
{
	struct pollfd polled = { .fd = 95 };
	const struct thread_syscall call = { .number = SYS_ppoll,
					     .args = { (uintptr_t)&polled, 1 } },
				    reads = { .number = SYS_read, .args = { 95 } },
				    selects = { .number = SYS_pselect6 };
	const struct memory mem = memory_process(getpid());
	struct waits_on on;
	int ends[2];

	cr_expect(waits_on_is_polled(&call));
	cr_expect(waits_on_is_polled(&selects));
	cr_expect_not(waits_on_is_polled(&reads));
	on = waits_on_read(&mem, &call);
	cr_expect_not(waits_on_socket(&on), "nothing is behind it");
	cr_assert_eq(pipe(ends), 0);
	have(95, ends[0]);
	on = waits_on_read(&mem, &call);
	cr_expect_not(waits_on_socket(&on));
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	have(95, ends[0]);
	on = waits_on_read(&mem, &call);
	cr_expect(waits_on_socket(&on));
}

Test(waits_on, children)
{
	expect_words(SYS_wait4, 4711, 0, 0, "child 4711");
	expect_words(SYS_wait4, (uint64_t)-1, 0, 0, "any child");
	expect_words(SYS_wait4, 0, 0, 0, "any child");
	expect_words(SYS_waitid, P_PID, 4711, 0, "child 4711");
	expect_words(SYS_waitid, P_ALL, 4711, 0, "any child");
}

Test(waits_on, what_the_vm_keeps_itself_does_not_count)
{
	const struct dump_doing pop = { .method = "Thread::Queue#pop" },
				select = { .method = "IO.select" }, unknown = { .syscall = "read" },
				sleeps = { .method = "Kernel#sleep", .sleeps = true },
				gvl = { .waits_for_gvl = true };

	cr_expect(dump_waits_on_counts(&select));
	cr_expect(dump_waits_on_counts(&unknown));
	cr_expect_not(dump_waits_on_counts(&pop));
	cr_expect_not(dump_waits_on_counts(&sleeps));
	cr_expect_not(dump_waits_on_counts(&gvl));
}
