/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "target/process.h"

static void assert_sane_process(const struct process *p, pid_t pid)
{
	cr_assert_eq(p->pid, pid);
	cr_assert(p->exe && p->cmdline && p->context.cgroup && p->context.container);
	cr_assert_gt(p->start_ticks, 0);
	cr_assert(p->pidfd < 0 || fcntl(p->pidfd, F_GETFD) & FD_CLOEXEC);
}

/* A child that waits to be killed; with @comm as its name. */
static pid_t child(const char *comm)
{
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
		if (comm)
			prctl(PR_SET_NAME, comm);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Kill it, and leave it a zombie. */
static void make_zombie(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

Test(process, own)
{
	struct process p = PROCESS_INIT;
	struct err err = { 0 };
	char exe[4096];
	ssize_t n;

	cr_assert_eq(process_open(getpid(), &p, &err), 0, "%s", err.msg);
	assert_sane_process(&p, getpid());
	cr_expect_eq(p.ppid, getppid());
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(p.exe, exe);
	cr_expect_str_not_empty(p.cmdline);
	cr_expect_eq(p.context.ns_pid, getpid());
	cr_expect_eq(p.context.uid, getuid());
	cr_expect(process_alive(&p));
	process_close(&p);
	cr_expect(p.pidfd == -1 && !p.exe && !p.cmdline && !p.context.cgroup);
	process_close(&p);
}

Test(process, dead)
{
	struct process p = { .pid = -7 };
	struct err err = { 0 };
	pid_t pid = child(NULL);

	end(pid);
	cr_expect_eq(process_open(pid, &p, &err), -ESRCH);
	cr_expect_eq(err.kind, ERR_TARGET);
	cr_expect_not_null(strstr(err.msg, "no process with pid"));
	cr_expect_eq(process_open(0x3fffffff, &p, &err), -ESRCH);
	cr_expect_str_eq(err.msg, "no process with pid 1073741823");
	cr_expect_eq(process_open(0x3fffffff, &p, NULL), -ESRCH);
	cr_expect(p.pid == -7 && !p.exe, "untouched");
}

Test(process, ends)
{
	struct process p = PROCESS_INIT, other;
	pid_t pid = child(NULL);
	struct pollfd poll_fd;

	cr_assert_eq(process_open(pid, &p, NULL), 0);
	cr_expect_eq(p.ppid, getpid());
	cr_expect(process_alive(&p));
	other = p;
	other.start_ticks++;
	cr_expect_not(process_alive(&other), "another process of that pid");
	if (p.pidfd >= 0) {
		poll_fd = (struct pollfd) { .fd = p.pidfd, .events = POLLIN };
		cr_expect_eq(poll(&poll_fd, 1, 0), 0, "the pidfd is not readable while it lives");
	}
	make_zombie(pid);
	cr_expect_not(process_alive(&p), "a zombie");
	cr_expect_eq(process_open(pid, &other, NULL), -ESRCH, "a zombie is no process");
	if (p.pidfd >= 0)
		cr_expect_eq(poll(&poll_fd, 1, 1000), 1, "it is, now");
	waitpid(pid, NULL, 0);
	cr_expect_not(process_alive(&p), "gone");
	process_close(&p);
}

/* The name is in parentheses in /proc/PID/stat, and may hold what the fields behind it hold. */
Test(process, names_that_look_like_fields)
{
	static const char *const names[] = { "a b", "x) S 1 2 3", ") R 0 0 0 (", "(((",
					     ")))", "a\nb",	  " ",		 "\xff\xfe)" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct process p = PROCESS_INIT;
		pid_t pid = child(names[i]);
		char comm[16];

		cr_assert_eq(process_open(pid, &p, NULL), 0, "\"%s\"", names[i]);
		assert_sane_process(&p, pid);
		cr_expect_eq(p.ppid, getpid(), "\"%s\"", names[i]);
		cr_expect(process_alive(&p), "\"%s\"", names[i]);
		for (int k = 0; k < 2000 && thread_state(pid, pid) != 'S'; k++)
			usleep(1000);
		cr_expect_eq(thread_state(pid, pid), 'S', "\"%s\"", names[i]);
		cr_expect_eq(thread_name(pid, pid, comm), 0);
		cr_expect_arr_eq(comm, names[i], strcspn(names[i], "\n"));
		process_close(&p);
		end(pid);
	}
}

Test(process, kernel_thread)
{
	struct process p = PROCESS_INIT;
	struct err err = { 0 };
	char comm[16];

	if (thread_name(2, 2, comm) || strcmp(comm, "kthreadd")) {
		cr_skip_test("pid 2 is not kthreadd (a container)");
	}
	cr_expect_eq(process_open(2, &p, &err), -ESRCH);
	cr_expect_str_eq(err.msg, "pid 2 is a kernel thread");
}

/* Run a program, wait until it is that program. */
static pid_t run(const char *const *argv)
{
	char path[64], now[4096];
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	for (int i = 0; i < 2000; i++) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, now, sizeof(now) - 1);

		if (fd >= 0)
			close(fd);
		if (n > 0 && !memcmp(now, "/bin/sleep", 11))
			break;
		usleep(1000);
	}
	return pid;
}

Test(process, command_line)
{
	static const char *const argv[] = { "/bin/sleep", "100", "0", NULL };
	struct process p = PROCESS_INIT;
	pid_t pid = run(argv);

	cr_assert_eq(process_open(pid, &p, NULL), 0);
	cr_expect_str_eq(p.cmdline, "/bin/sleep 100 0");
	cr_expect_not_null(strchr(p.exe, '/'));
	process_close(&p);
	end(pid);
}

static void *wait_on(void *arg)
{
	int *fds = arg;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	pthread_setname_np(pthread_self(), "work)\n er x");
	if (write(fds[1], &tid, sizeof(tid)) != sizeof(tid) || read(fds[2], &byte, 1) < 0)
		return fds;
	return NULL;
}

Test(process, linker)
{
	uint64_t base = 0;

	cr_assert_eq(process_linker_base(getpid(), &base), 0);
	cr_expect_eq(base, getauxval(AT_BASE));
	cr_expect_eq(process_linker_base(1 << 30, &base), -ENOENT, "no such process");
}

extern void *__libc_stack_end; /* glibc: the stack pointer that the program began with */

Test(process, start_ticks)
{
	struct process p = PROCESS_INIT;
	pid_t pid = child(NULL);
	uint64_t ticks = 0;

	cr_assert_eq(process_open(pid, &p, NULL), 0);
	cr_assert_eq(process_start_ticks(pid, &ticks), 0);
	cr_expect_eq(ticks, p.start_ticks);
	end(pid);
	cr_expect_eq(process_start_ticks(pid, &ticks), -ESRCH);
	process_close(&p);
}

Test(process, top_of_the_main_stack)
{
	cr_expect_eq(process_main_top(getpid()), (uintptr_t)__libc_stack_end);
	cr_expect_eq(process_main_top(1 << 30), 0, "no such process");
}

Test(process, threads)
{
	int fds[4];
	pid_t *tids, tid;
	pthread_t thread;
	uint64_t before, after, until;
	char comm[16];
	size_t n, i;

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(pipe(fds + 2), 0);
	cr_assert_eq(process_threads(getpid(), &tids, &n), 0);
	free(tids);
	before = n;
	cr_assert_eq(pthread_create(&thread, NULL, wait_on, fds), 0);
	cr_assert_eq(read(fds[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));

	cr_assert_eq(process_threads(getpid(), &tids, &n), 0);
	cr_expect_eq(n, before + 1);
	for (i = 1; i < n; i++)
		cr_expect_lt(tids[i - 1], tids[i], "ascending");
	for (i = 0; i < n && tids[i] != tid; i++)
		;
	cr_expect_lt(i, n, "the new one is among them");
	free(tids);
	cr_expect_eq(thread_name(getpid(), tid, comm), 0);
	cr_expect_str_eq(comm, "work)\n er x");
	cr_expect_neq(thread_state(getpid(), tid), 0);
	cr_expect_eq(thread_cpu_ns(tid, &after), 0);
	close(fds[3]);
	pthread_join(thread, NULL);

	/* The account is that of the scheduler's last tick, some milliseconds ago. */
	cr_assert_eq(thread_cpu_ns(getpid(), &before), 0);
	until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 50 * NSEC_PER_MSEC;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	cr_assert_eq(thread_cpu_ns(getpid(), &after), 0);
	cr_expect_gt(after, before + 20 * NSEC_PER_MSEC, "50 ms were used");

	cr_expect_eq(process_threads(0x3fffffff, &tids, &n), -ESRCH);
	cr_expect_eq(thread_cpu_ns(0xffffff, &after), -ESRCH);
	cr_expect_neq(thread_name(getpid(), 0x3fffffff, comm), 0);
	cr_expect_eq(thread_state(getpid(), 0x3fffffff), 0);
}

Test(process, times)
{
	struct process_times before, after;
	pid_t pid = child(NULL);
	uint64_t own, until;

	cr_assert_eq(process_times(pid, &before), 0);
	cr_expect_lt(before.age_ns, 30 * NSEC_PER_SEC, "it has just begun");
	cr_expect_lt(before.cpu_ns, NSEC_PER_SEC, "and waits");
	usleep(200000);
	cr_assert_eq(process_times(pid, &after), 0);
	cr_expect_geq(after.age_ns - before.age_ns, 190 * NSEC_PER_MSEC);
	end(pid);
	cr_expect_eq(process_times(pid, &after), -ESRCH);

	until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 300 * NSEC_PER_MSEC;
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
	own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_assert_eq(process_times(getpid(), &after), 0);
	cr_expect_geq(after.cpu_ns + 50 * NSEC_PER_MSEC, own, "counted in ticks");
	cr_expect_leq(after.cpu_ns, own + 50 * NSEC_PER_MSEC);
}

/* A child whose name looks like lines of /proc/PID/status. */
Test(process, a_thread_at_a_moment)
{
	pid_t pid = child("x\nState:\tD");
	struct thread_moment moment = { 0 }, again = { 0 };
	struct thread_syscall call;

	for (int k = 0; k < 2000 && moment.state != 'S'; k++, usleep(1000))
		cr_assert_eq(thread_look(pid, pid, &moment), 0);
	cr_expect_eq(moment.state, 'S');
	cr_expect_gt(moment.switches, 0);
	cr_assert_eq(thread_look(pid, pid, &again), 0);
	cr_expect_eq(again.switches, moment.switches, "it has slept");
	for (int k = 0; k < 10; k++) {
		kill(pid, SIGSTOP);
		while (thread_state(pid, pid) != 'T')
			usleep(100);
		kill(pid, SIGCONT);
		while (thread_state(pid, pid) != 'S')
			usleep(100);
	}
	cr_assert_eq(thread_look(pid, pid, &again), 0);
	cr_expect_geq(again.switches, moment.switches + 10, "it has run in between");
	cr_assert_eq(thread_syscall(pid, pid, &call), 0);
#ifdef SYS_pause
	cr_expect_eq(call.number, SYS_pause);
#else
	cr_expect_eq(call.number, SYS_ppoll);
#endif
	end(pid);
	cr_expect_eq(thread_look(pid, pid, &again), -ESRCH);
	cr_expect_eq(thread_syscall(pid, pid, &call), -ESRCH);
}

Test(process, list)
{
	bool self = false;
	pid_t *pids;
	size_t n;

	cr_assert_eq(process_list(&pids, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		self |= pids[i] == getpid();
		cr_expect(i == 0 || pids[i - 1] < pids[i], "ascending");
	}
	cr_expect(self);
	free(pids);
}

/* A title that is given later is read; where there is none to read, the old one stays. */
Test(process, title)
{
	struct process p;
	struct err err = { 0 };
	bool changed = true;
	siginfo_t info;
	int pipes[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		close(pipes[1]);
		(void)!read(pipes[0], &c, 1);
		execl("/bin/sleep", "/bin/sleep", "100", NULL);
		_exit(1);
	}
	close(pipes[0]);
	cr_assert_eq(process_open(pid, &p, &err), 0, "%s", err.msg);
	cr_expect_eq(process_read_title(&p, &changed), 0);
	cr_expect_not(changed);
	close(pipes[1]);
	for (int i = 0; i < 1000 && !changed; i++) {
		usleep(10000);
		cr_assert_eq(process_read_title(&p, &changed), 0);
	}
	cr_expect(changed);
	cr_expect_str_eq(p.cmdline, "/bin/sleep 100");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* a zombie has no arguments */
	cr_expect_eq(process_read_title(&p, &changed), 0);
	cr_expect_not(changed);
	cr_expect_str_eq(p.cmdline, "/bin/sleep 100");
	waitpid(pid, NULL, 0);
	process_close(&p);
}
