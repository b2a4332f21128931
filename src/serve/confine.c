/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A render inherits the filter of the serving process, so that one allows what both need, and the
 * render's own leaves out what only the serving process does. The lists are what glibc,
 * libmicrohttpd and the commands of the views use, on kernels and architectures that differ in
 * names only: arm64 has dup3(), ppoll() and epoll_pwait() alone.
 */
#include "serve/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "serve/render.h"
#include "worker/sandbox.h"
#include "worker/seccomp.h"

#define SERVE_MAX_FILES	 256 /* connections, snapshots, and three of each render */
#define RENDER_MAX_FILES 32

/* With one of these, a new process would be no plain child of this one. */
#define NO_PLAIN_CHILD                                                                             \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
	 CLONE_NEWCGROUP | CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED)

#ifdef __x86_64__
#define REFUSE_OLD_NAMES REFUSE(open), REFUSE(readlink), REFUSE(access), REFUSE(stat), REFUSE(lstat)
#else
#define REFUSE_OLD_NAMES REFUSE(faccessat)
#endif

/* Without AT_EMPTY_PATH, which is of a descriptor, these name files. No terminal is open. */
#define ALLOW_FILES                                                                                \
	ALLOW(read), ALLOW(pread64), ALLOW(write), ALLOW(pwrite64), ALLOW(lseek), ALLOW(close),    \
		ALLOW(fstat), IF_EQUAL(__NR_newfstatat, 0, 4), ARGUMENT(3),                        \
		IF_BITS(AT_EMPTY_PATH, 0, 1), RETURN(SECCOMP_RET_ALLOW),                           \
		RETURN(SECCOMP_RET_ERRNO | EACCES), IF_EQUAL(__NR_statx, 0, 4), ARGUMENT(2),       \
		IF_BITS(AT_EMPTY_PATH, 0, 1), RETURN(SECCOMP_RET_ALLOW),                           \
		RETURN(SECCOMP_RET_ERRNO | EACCES), FAIL_WITH(ioctl, ENOTTY), REFUSE(openat),      \
		REFUSE(openat2), REFUSE(readlinkat), REFUSE(faccessat2), REFUSE_OLD_NAMES,         \
		IF_EQUAL(__NR_fcntl, 0, 7), ARGUMENT(1), IF_EQUAL(F_GETFD, 3, 0),                  \
		IF_EQUAL(F_GETFL, 2, 0), IF_EQUAL(F_DUPFD, 1, 0), IF_EQUAL(F_DUPFD_CLOEXEC, 0, 1), \
		RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)

/*
 * clone3() has its flags in memory, where a filter cannot look: without it, the C library uses
 * clone().
 */
#define ALLOW_THREADS                                                                              \
	FAIL_WITH(clone3, ENOSYS), ALLOW(set_robust_list), ALLOW(rseq), ALLOW(futex),              \
		ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(rt_sigreturn),                   \
		ALLOW(restart_syscall), ALLOW(sched_yield), ALLOW_EQUAL(sched_getaffinity, 0, 0)

#define ALLOW_FACTS                                                                                \
	ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(clock_nanosleep), ALLOW(getrandom),       \
		ALLOW(sysinfo), ALLOW(uname), ALLOW(getrusage), ALLOW(getpid), ALLOW(gettid),      \
		ALLOW(getppid), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid)

static const struct sock_filter serving[] = {
	SECCOMP_BEGIN,
	/* Connections, and the channel to who samples. */
	ALLOW(accept4),
	ALLOW(recvfrom),
	ALLOW(recvmsg),
	ALLOW(sendto),
	ALLOW(sendmsg),
	ALLOW(sendfile),
	ALLOW(writev),
	ALLOW(shutdown),
	ALLOW_EQUAL(setsockopt, 1, IPPROTO_TCP),
	ALLOW(epoll_ctl),
	ALLOW(epoll_pwait),
	ALLOW(ppoll),
#ifdef __x86_64__
	ALLOW(epoll_wait),
	ALLOW(poll),
	ALLOW(dup2),
#endif
	ALLOW_FILES,
	ALLOW_MEMORY,
	ALLOW_THREADS,
	ALLOW_FACTS,
	/* Renders: what they do before they are confined, too. */
	ALLOW_WITHOUT(clone, 0, NO_PLAIN_CHILD),
	ALLOW(wait4),
	ALLOW(pidfd_open),
	ALLOW(memfd_create),
	ALLOW(dup),
	ALLOW(dup3),
	ALLOW(close_range),
	ALLOW_EQUAL(prlimit64, 0, 0),
	ALLOW(setpriority),
	/* SIGKILL to one process: a filter does not see whose child that is. */
	IF_EQUAL(__NR_kill, 0, 6),
	ARGUMENT(1),
	IF_EQUAL(SIGKILL, 0, 3),
	ARGUMENT(0),
	IF_BITS(1u << 31, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	IF_EQUAL(__NR_prctl, 0, 6),
	ARGUMENT(0),
	IF_EQUAL(PR_SET_NAME, 2, 0),
	IF_EQUAL(PR_SET_PDEATHSIG, 1, 0),
	IF_EQUAL(PR_SET_SECCOMP, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	ALLOW(exit),
	ALLOW(exit_group),
	SECCOMP_END,
};

static const struct sock_filter rendering[] = {
	SECCOMP_BEGIN, ALLOW_FILES,   ALLOW(writev),
	ALLOW_MEMORY,  ALLOW_THREADS, ALLOW_WITH(clone, 0, CLONE_THREAD),
	ALLOW_FACTS,   ALLOW(exit),   ALLOW(exit_group),
	SECCOMP_END,
};

int serve_confine(void)
{
	const struct sandbox_limits limits = { .memory = SERVE_RENDER_MAX_MEMORY,
					       .write = SERVE_RENDER_MAX_OUTPUT,
					       .cpu_s = RLIM_INFINITY,
					       .files = SERVE_MAX_FILES };
	int r;

	tzset(); /* reads a file, once */
	r = sandbox_limit(&limits);
	return r ? r : sandbox_filter(serving, ARRAY_SIZE(serving));
}

int serve_confine_render(void)
{
	const struct sandbox_limits limits = { .memory = SANDBOX_SAME_MEMORY,
					       .write = SERVE_RENDER_MAX_OUTPUT,
					       .cpu_s = SERVE_RENDER_MAX_NS / NSEC_PER_SEC + 1,
					       .files = RENDER_MAX_FILES };
	int r = sandbox_limit(&limits);

	return r ? r : sandbox_filter(rendering, ARRAY_SIZE(rendering));
}
