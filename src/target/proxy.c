/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/oom.h"
#include "base/priority.h"
#include "base/stop.h"
#include "target/memory.h"
#include "target/memory_files.h"

struct proxy_shared {
	_Atomic uint32_t asked;	   /* requests so far */
	_Atomic uint32_t answered; /* of them */
	struct proxy_request request;
};

/* Sleep while *@word is @value, for at most @ns; 0: without a limit. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };

	syscall(SYS_futex, word, FUTEX_WAIT, value, ns ? &ts : NULL, NULL, 0);
}

static void publish(_Atomic uint32_t *word, uint32_t value)
{
	*word = value;
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- the process ---- */

static void read_memory(struct proxy_request *req, struct memory_files *files)
{
	struct memory_span spans[PROXY_MAX_SPANS];
	size_t i, at = 0;

	for (i = 0; i < req->n; at += req->spans[i++].len)
		spans[i] = (struct memory_span) { .addr = req->spans[i].addr,
						  .dst = req->bytes + at,
						  .len = req->spans[i].len };
	memory_files_read(files, req->pid, req->program, spans, req->n);
	for (i = 0; i < req->n; i++)
		req->spans[i].ok = spans[i].ok;
}

/* A file of /proc gives a page at a time. */
static int32_t read_on(int fd, char *to, uint32_t len)
{
	uint32_t done = 0;
	ssize_t n;

	while (done < len) {
		n = read(fd, to + done, len - done);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (uint32_t)n;
	}
	return (int32_t)done;
}

static void execute(struct proxy_request *req, struct memory_files *files, int *fd)
{
	char path[sizeof("/proc//") + 3 * sizeof(pid_t) + PROXY_MAX_NAME];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)req->pid, req->name);
	switch (req->op) {
	case PROXY_MEMORY:
		read_memory(req, files);
		break;
	case PROXY_OPEN:
		cleanup_close(fd);
		*fd = open(path, O_RDONLY | O_CLOEXEC);
		req->result = *fd < 0 ? -errno : read_on(*fd, req->bytes, req->len);
		break;
	case PROXY_READ:
		req->result = read_on(*fd, req->bytes, req->len);
		break;
	case PROXY_LINK:
		n = readlink(path, req->bytes, req->len);
		req->result = n < 0 ? -errno : (int32_t)n;
		break;
	}
}

/* What reading takes; if rbpf has less, so does this process. */
static void drop_privileges(void)
{
	const uint32_t keep = 1u << CAP_SYS_PTRACE | 1u << CAP_DAC_READ_SEARCH;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return;
	data[0].permitted &= keep;
	data[0].effective &= keep;
	data[1].permitted = data[1].effective = 0;
	data[0].inheritable = data[1].inheritable = 0;
	syscall(SYS_capset, &header, data);
}

/* It gets no signal but SIGKILL, and keeps nothing going that rbpf has opened. */
_Noreturn static void serve(struct proxy_shared *shared, uint32_t done, pid_t parent)
{
	struct memory_files files = { 0 };
	sigset_t all;
	int fd = -1;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "rbpf-proxy");
	syscall(SYS_close_range, 0, ~0u, 0);
	priority_set_helper();
	oom_go_first();
	drop_privileges();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;) {
		while (shared->asked == done)
			sleep_on(&shared->asked, done, 0);
		done++;
		execute(&shared->request, &files, &fd);
		publish(&shared->answered, done);
	}
}

/* ---- rbpf's side ---- */

static int start(struct proxy *p)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	if (!pid)
		serve(p->shared, p->shared->answered, parent);
	if (pid < 0)
		return -errno;
	p->pid = pid;
	p->owner = parent;
	p->awake_ns = 0;
	return 0;
}

static void drop_shared(struct proxy *p)
{
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	p->shared = NULL;
}

static uint64_t cpu_of(const struct proxy *p)
{
	clockid_t clock;

	return p->pid && !clock_getcpuclockid(p->pid, &clock) ? clock_ns(clock) : 0;
}

uint64_t proxy_cpu_ns(const struct proxy *p)
{
	return p->ended_ns + cpu_of(p);
}

/*
 * End the process. If it is not gone by then, *@left is its pid, and its memory is not ours any
 * more.
 */
static void stop(struct proxy *p, pid_t *left)
{
	const pid_t pid = p->pid;

	p->ended_ns += cpu_of(p);
	kill(pid, SIGKILL);
	p->pid = 0;
	*left = waitpid(pid, NULL, WNOHANG) ? 0 : pid;
	if (*left)
		drop_shared(p);
}

void proxy_deinit(struct proxy *p)
{
	pid_t left;

	if (p->pid && p->owner == getpid())
		stop(p, &left);
	drop_shared(p);
	*p = (struct proxy)PROXY_INIT;
}

struct proxy_request *proxy_prepare(struct proxy *p)
{
	if (p->pid && p->owner != getpid()) {
		p->pid = 0;
		drop_shared(p);
	}
	if (!p->shared) {
		p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p->shared == MAP_FAILED)
			p->shared = NULL;
	}
	return p->shared && (p->pid || !start(p)) ? &p->shared->request : NULL;
}

/* ---- waiting ---- */

/* CPU time of the process and the time that it waited for a CPU; 0 where that is not counted. */
static uint64_t awake_ns(const struct proxy *p)
{
	uint64_t cpu, waited;
	char path[32], text[64];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%" SCNu64 " %" SCNu64, &cpu, &waited) == 2 ? cpu + waited : 0;
}

/* Whether it waits for a CPU, or runs: then it does not wait for a process. */
static bool is_runnable(const struct proxy *p)
{
	char path[32], text[128];
	_cleanup_close_ int fd = -1;
	const char *state;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'R';
}

/* How long the process slept since @began, when the last request began. */
static uint64_t slept(struct proxy *p, uint64_t began)
{
	const uint64_t took = clock_ns(CLOCK_MONOTONIC) - began, awake = awake_ns(p);
	/* Some of that may have been before @began: rather too little than too much. */
	const uint64_t since = awake > p->awake_ns ? awake - p->awake_ns : 0;

	p->awake_ns = awake;
	return took > since ? took - since : 0;
}

/* Wait for the answer to request @asked. Returns 0, -EPIPE, -EINTR or -ETIMEDOUT. */
static int wait_for(struct proxy *p, uint32_t asked, proxy_patience_fn *patience, void *arg)
{
	uint64_t asleep_since = clock_ns(CLOCK_MONOTONIC), now, limit = 0;
	uint64_t slice = PROXY_FIRST_NS, left;

	for (;;) {
		sleep_on(&p->shared->answered, asked - 1, slice);
		slice = PROXY_FIRST_NS;
		if (p->shared->answered == asked)
			return 0;
		if (waitpid(p->pid, NULL, WNOHANG))
			return -EPIPE;
		if (stop_overdue())
			return -EINTR;
		now = clock_ns(CLOCK_MONOTONIC);
		if (is_runnable(p)) {
			asleep_since = now;
			continue;
		}
		if (now - asleep_since < PROXY_FIRST_NS)
			continue;
		if (!limit)
			limit = patience(arg, p->shared->request.pid);
		if (now - asleep_since >= limit)
			return -ETIMEDOUT;
		left = limit - (now - asleep_since);
		slice = left < PROXY_SLICE_NS ? left + 1 : PROXY_SLICE_NS;
	}
}

int proxy_run(struct proxy *p, proxy_patience_fn *patience, void *arg, uint64_t *slept_ns,
	      pid_t *left)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	const uint32_t asked = p->shared->asked + 1;
	int tries, r = -EPIPE;

	*slept_ns = 0;
	*left = 0;
	publish(&p->shared->asked, asked);
	for (tries = 0; tries < 2; tries++) {
		r = wait_for(p, asked, patience, arg);
		if (r != -EPIPE)
			break;
		/* The next one finds the same request. */
		p->pid = 0;
		if (start(p))
			return -EPIPE;
	}
	if (clock_ns(CLOCK_MONOTONIC) - began >= PROXY_FIRST_NS)
		*slept_ns = slept(p, began);
	if (r)
		stop(p, left);
	/* The next one answers from here on. */
	if (r && p->shared)
		p->shared->answered = asked;
	return r;
}
