/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The list of system calls is what glibc, libelf, libdw, liblzma and libiberty use while they read
 * an open file: they allocate (anonymous memory, never executable), pread() the file, and ask for
 * its size and the time. Nothing in it names a file, makes a socket, or touches another process.
 * libdw tries to open other files besides: these calls fail. All other calls end the process.
 * Since glibc 2.33, fstat() is newfstatat(); it is allowed with AT_EMPTY_PATH only, which is as
 * much as a filter can see of it being used on a descriptor.
 */
#include "worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "worker/seccomp.h"

#define NOBODY 65534

/* ---- privileges ---- */

static int close_others(const int *keep, size_t n)
{
	unsigned int from = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	size_t i;

	if (null < 0)
		return -errno;
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	for (i = 0; i < n; from = (unsigned int)keep[i++] + 1)
		if ((unsigned int)keep[i] > from &&
		    syscall(SYS_close_range, from, (unsigned int)keep[i] - 1, 0))
			return -errno;
	return syscall(SYS_close_range, from, ~0u, 0) ? -errno : 0;
}

/* The capabilities that a program could have after execve(). */
static void drop_bounding_set(void)
{
	int cap;

	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* Without the privilege to change them, user and groups stay what they are. */
static int drop_user(void)
{
	if (geteuid() != 0)
		return 0;
	if ((setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	     setresuid(NOBODY, NOBODY, NOBODY)) &&
	    errno != EPERM)
		return -errno;
	return 0;
}

/*
 * The signals that rbpf takes as the wish to stop are for rbpf alone: until it has ended it needs
 * those who help it. A service manager sends them to the whole control group.
 */
static void reset_signals(void)
{
	sigset_t blocked;
	int sig;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

int sandbox_drop_privileges(const int *keep, size_t n)
{
	const pid_t parent = getppid();
	int r;

	reset_signals();
	setsid();
	r = close_others(keep, n);
	if (r || chdir("/"))
		return r ? r : -errno;
	drop_bounding_set();
	r = drop_user();
	if (!r)
		r = drop_capabilities();
	if (r)
		return r;
	/* After the user has changed, which undoes both of the last. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/* ---- limits ---- */

static int limit(int resource, rlim_t value)
{
	const struct rlimit to = { value, value };

	return setrlimit(resource, &to) ? -errno : 0;
}

#ifndef __SANITIZE_ADDRESS__
/* The address space that is in use already is not this process's doing. */
static rlim_t memory_in_use(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int limit_memory(uint64_t max)
{
	return limit(RLIMIT_AS, memory_in_use() + max);
}
#else
/* AddressSanitizer maps terabytes for its shadow. */
static int limit_memory(uint64_t max)
{
	(void)max;
	return 0;
}
#endif

int sandbox_limit(const struct sandbox_limits *limits)
{
	int r;

	r = limit(RLIMIT_CORE, 0);
	if (!r)
		r = limit(RLIMIT_FSIZE, limits->write);
	if (!r)
		r = limit(RLIMIT_CPU, limits->cpu_s);
	if (!r)
		r = limit(RLIMIT_NOFILE, limits->files);
	return r || limits->memory == SANDBOX_SAME_MEMORY ? r : limit_memory(limits->memory);
}

/* ---- system calls ---- */

#ifndef __SANITIZE_ADDRESS__
int sandbox_filter(const struct sock_filter *filter, size_t n)
{
	const struct sock_fprog program = {
		.len = (unsigned short)n,
		.filter = (struct sock_filter *)filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}
#else
/* Its runtime makes calls of its own. */
int sandbox_filter(const struct sock_filter *filter, size_t n)
{
	(void)filter;
	(void)n;
	return 0;
}
#endif

static const struct sock_filter filter[] = {
	SECCOMP_BEGIN,
	ALLOW(pread64),
	ALLOW(read),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW_WITH(newfstatat, 3, AT_EMPTY_PATH),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(pwrite64), /* to what holds large answers: nothing else is open for writing */
	ALLOW(close),
	ALLOW_MEMORY,
	/* elf_begin() asks whether its descriptor is one, and whether it can be written to. */
	IF_EQUAL(__NR_fcntl, 0, 5),
	ARGUMENT(1),
	IF_EQUAL(F_GETFD, 1, 0),
	IF_EQUAL(F_GETFL, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	/* libdw looks for the path of what it reads, and for files that belong to it. */
	REFUSE(openat),
	REFUSE(readlinkat),
#ifdef __x86_64__
	REFUSE(open),
	REFUSE(readlink),
#endif
	ALLOW(clock_gettime),
	ALLOW(clock_getres),
	ALLOW(futex),
	ALLOW(getrandom),
	ALLOW(sysinfo), /* qsort() asks how much memory there is */
	ALLOW(rt_sigreturn),
	ALLOW(restart_syscall),
	ALLOW(exit),
	ALLOW(exit_group),
	SECCOMP_END,
};

int sandbox_confine(uint64_t max_memory)
{
	const struct sandbox_limits limits = { .memory = max_memory,
					       .write = SANDBOX_MAX_WRITE,
					       .cpu_s = SANDBOX_MAX_CPU,
					       .files = SANDBOX_MAX_FILES };
	int r = sandbox_limit(&limits);

	return r ? r : sandbox_filter(filter, ARRAY_SIZE(filter));
}
