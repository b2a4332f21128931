/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child process that does what a test tells it: makes and ends threads, forks, executes, exits.
 * It uses no CPU time meanwhile, and ends with the test.
 */
#ifndef RBPF_TESTS_TARGET_PROCESS_H
#define RBPF_TESTS_TARGET_PROCESS_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TARGET_MAX_THREADS 64

struct target {
	pid_t pid;
	int fd;
	bool reaped;
};

enum target_order {
	TARGET_THREAD,	   /* answers its tid */
	TARGET_END_THREAD, /* the one that was made last */
	TARGET_FORK,	   /* answers the child's pid */
	TARGET_SPAWN,	   /* the same; it executes `sleep 1000` */
	TARGET_EXEC,	   /* answers by closing its socket */
	TARGET_EXIT,	   /* the same */
};

struct target_message {
	int32_t order;
	int32_t value;
};

/* ---- in the child ---- */

struct target_thread {
	pthread_t id;
	sem_t begun, end;
	pid_t tid;
};

static inline void *target_thread_main(void *arg)
{
	struct target_thread *t = arg;

	t->tid = (pid_t)syscall(SYS_gettid);
	sem_post(&t->begun);
	while (sem_wait(&t->end))
		;
	return NULL;
}

static inline pid_t target_make_thread(struct target_thread *t)
{
	sem_init(&t->begun, 0, 0);
	sem_init(&t->end, 0, 0);
	if (pthread_create(&t->id, NULL, target_thread_main, t))
		return -1;
	while (sem_wait(&t->begun))
		;
	return t->tid;
}

static inline void target_end_of_thread(struct target_thread *t)
{
	sem_post(&t->end);
	pthread_join(t->id, NULL);
}

/* End when @parent does, also if it just has. */
static inline void target_end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static inline pid_t target_make_child(int fd, bool executes)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	if (pid)
		return pid;
	target_end_with(parent);
	close(fd);
	if (executes)
		execl("/bin/sleep", "sleep", "1000", NULL);
	for (;;)
		pause();
}

static inline void target_main(pid_t parent, int fd)
{
	static struct target_thread threads[TARGET_MAX_THREADS];
	struct target_message m;
	size_t n = 0;

	target_end_with(parent);
	while (read(fd, &m, sizeof(m)) == (ssize_t)sizeof(m)) {
		if (m.order == TARGET_THREAD)
			m.value = n < TARGET_MAX_THREADS ? target_make_thread(&threads[n++]) : -1;
		else if (m.order == TARGET_END_THREAD)
			target_end_of_thread(&threads[--n]);
		else if (m.order == TARGET_FORK)
			m.value = target_make_child(fd, false);
		else if (m.order == TARGET_SPAWN)
			m.value = target_make_child(fd, true);
		else if (m.order == TARGET_EXEC)
			execl("/bin/sleep", "sleep", "1000", NULL);
		else
			break;
		if (write(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
			break;
	}
	_exit(m.value);
}

/* ---- in the test ---- */

static inline struct target target_start(void)
{
	const pid_t parent = getpid();
	struct target t;
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	t = (struct target) { .pid = fork(), .fd = fds[0] };
	cr_assert_geq(t.pid, 0);
	if (!t.pid) {
		close(fds[0]);
		target_main(parent, fds[1]);
	}
	close(fds[1]);
	return t;
}

static inline int32_t target_ask(const struct target *t, enum target_order order, int32_t value)
{
	struct target_message m = { .order = (int32_t)order, .value = value };
	ssize_t n;

	cr_assert_eq(write(t->fd, &m, sizeof(m)), (ssize_t)sizeof(m));
	n = read(t->fd, &m, sizeof(m));
	if (order == TARGET_EXEC || order == TARGET_EXIT)
		cr_assert_eq(n, 0, "order %d: it still answers", (int)order);
	else
		cr_assert(n == (ssize_t)sizeof(m) && m.value >= 0, "order %d", (int)order);
	return m.value;
}

/* A thread more; returns its tid. */
static inline pid_t target_thread(const struct target *t)
{
	return target_ask(t, TARGET_THREAD, 0);
}

/* End @tid, the thread that was made last, and wait until nothing is left of it. */
static inline void target_end_thread(const struct target *t, pid_t tid)
{
	char path[64];

	target_ask(t, TARGET_END_THREAD, 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)t->pid, (int)tid);
	while (!access(path, F_OK))
		usleep(100);
}

/* A child of it, which waits; returns its pid. */
static inline pid_t target_fork(const struct target *t)
{
	return target_ask(t, TARGET_FORK, 0);
}

/* Write an "x" to @at, in its memory or in that of another process. */
static inline void target_write(pid_t pid, const void *at)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "x", 1, (off_t)(uintptr_t)at), 1);
	close(fd);
}

/* Wait until @pid has executed `sleep`. */
static inline void target_await_sleep(pid_t pid)
{
	char path[32], text[8] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	/* Its descriptors are closed before its arguments are in place. */
	while (strcmp(text, "sleep")) {
		usleep(100);
		file = fopen(path, "re");
		cr_assert_not_null(file);
		if (!fgets(text, sizeof("sleep"), file))
			text[0] = '\0';
		fclose(file);
	}
}

/* It executes `sleep 1000`. */
static inline void target_exec(const struct target *t)
{
	target_ask(t, TARGET_EXEC, 0);
	target_await_sleep(t->pid);
}

/* A child that has executed `sleep 1000`; returns its pid. */
static inline pid_t target_spawn(const struct target *t)
{
	const pid_t pid = target_ask(t, TARGET_SPAWN, 0);

	target_await_sleep(pid);
	return pid;
}

/* It exits; returns what wait(2) gives. */
static inline int target_exit(struct target *t, int value)
{
	int status = -1;

	target_ask(t, TARGET_EXIT, value);
	cr_assert_eq(waitpid(t->pid, &status, 0), t->pid);
	t->reaped = true;
	return status;
}

static inline void target_end(struct target *t)
{
	if (!t->reaped) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
	}
	t->reaped = true;
	close(t->fd);
}

#endif
