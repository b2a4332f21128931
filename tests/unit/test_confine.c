/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the serving process and its renders may do, asked of the kernel: each call in a process of
 * its own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/confine.h"
#include "serve/render.h"

/* AddressSanitizer needs other calls, so a build with it allows all. */
#ifndef __SANITIZE_ADDRESS__

/* ---- system calls, by name ---- */

static void *end_thread(void *arg)
{
	return arg;
}

static bool start_thread(void)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, end_thread, NULL) && !pthread_join(thread, NULL);
}

static bool fork_and_kill(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		for (;;)
			poll(NULL, 0, 1000);
	return pid > 0 && !kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool fork_alone(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid > 0;
}

static bool allocate(void)
{
	char *volatile large = malloc(64 << 20);

	if (!large)
		return false;
	large[1 << 20] = 1;
	free(large);
	return true;
}

static bool nothing_opens(void)
{
	return open("/etc/hostname", O_RDONLY) < 0 && errno == EACCES && access("/", F_OK) < 0 &&
	       errno == EACCES && isatty(STDOUT_FILENO) == 0;
}

static bool memory_has_an_end(void)
{
	return mmap(NULL, 2 * SERVE_RENDER_MAX_MEMORY, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) == MAP_FAILED &&
	       errno == ENOMEM;
}

/* Whether all is well, if the call came back at all. @socks are a pair of sockets. */
static bool try(char what, const int socks[2])
{
	static char program[] = "/bin/true";
	const int on = 1;
	char byte = 'x';

	switch (what) {
	case 't':
		return start_thread();
	case 'a':
		return allocate();
	case 'o':
		return nothing_opens();
	case 'l':
		return memory_has_an_end();
	case 'z': {
		time_t now = 0;
		return localtime(&now) != NULL;
	}
	case 'f':
		return fork_alone();
	case 'k':
		return fork_and_kill();
	case 'r':
		return send(socks[0], &byte, 1, MSG_NOSIGNAL) == 1 &&
		       recv(socks[1], &byte, 1, 0) == 1;
	case 'm':
		return memfd_create("test", MFD_CLOEXEC) >= 0;
	case 'n': /* not TCP's; but the filter does not see that */
		return setsockopt(socks[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 &&
		       errno == EOPNOTSUPP;
	/* What neither may. */
	case 'S':
		return socket(AF_INET, SOCK_STREAM, 0) >= 0;
	case 'C': {
		const struct sockaddr_in to = { .sin_family = AF_INET };
		return !connect(socks[0], (const struct sockaddr *)&to, sizeof(to));
	}
	case 'O':
		return !setsockopt(socks[0], SOL_SOCKET, SO_MARK, &on, sizeof(on));
	case 'E':
		return execv(program, (char *[]) { program, NULL });
	case 'P':
		return !ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	case 'A':
		return !kill(-0x3fffffff, SIGKILL); /* a group; one that does not exist */
	case 'T':
		return !kill(getpid(), SIGTERM);
	case 'X':
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0) != MAP_FAILED;
	case 'M':
		return mprotect((void *)((uintptr_t)program & ~4095ul), 4096,
				PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
	case 'U':
		return !unshare(CLONE_NEWUSER);
	case 'N':
		return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
	case 'D':
		return !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	case 'L': {
		const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
		return !prlimit(getppid(), RLIMIT_CPU, &none, NULL);
	}
	case 'W':
		return !unlink("/nowhere");
	case 'V':
		return !fcntl(socks[0], F_SETOWN, getpid());
	}
	return false;
}

/* ---- the serving process ---- */

#define ENDED_WELL 42

static int status_of_serving(char what)
{
	int socks[2], status = 0;
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
	pid = fork();
	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || serve_confine())
			_exit(3);
		_exit(try(what, socks) ? ENDED_WELL : 4);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	close(socks[0]);
	close(socks[1]);
	return status;
}

Test(confine, what_the_serving_process_does_it_may)
{
	for (const char *what = "taolzfkrmn"; *what; what++)
		cr_expect_eq(status_of_serving(*what), ENDED_WELL << 8, "%c", *what);
}

Test(confine, what_it_never_does_ends_it)
{
	for (const char *what = "SCOEPATXMUNDLWV"; *what; what++) {
		int status = status_of_serving(*what);

		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%c: %x", *what,
			  (unsigned int)status);
	}
}

/* ---- renders ---- */

static int run_try(void *arg, int argc, char **argv)
{
	(void)argc;
	return try(argv[0][0], arg) ? ENDED_WELL : 4;
}

/* What serve_render_ended() says of it; this process becomes confined as the serving one is. */
static int code_of_render(char what)
{
	const char words[] = { what, '\0' };
	struct serve_render render = SERVE_RENDER_INIT;
	int socks[2], code, file = memfd_create("recording", MFD_CLOEXEC);

	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || serve_confine() ||
	    serve_render_start(run_try, socks, words, sizeof(words), file, &render))
		return -EIO;
	do {
		struct pollfd end = { .fd = render.pidfd, .events = POLLIN };

		poll(&end, 1, 1000);
		code = serve_render_ended(&render, clock_ns(CLOCK_MONOTONIC));
	} while (code == -EAGAIN);
	serve_render_deinit(&render);
	return code;
}

/* Each letter of @what in a render of its own, which must end with @code. */
static void check_renders(const char *what, int code)
{
	int status = 0;
	pid_t pid;

	for (; *what; what++) {
		pid = fork();
		if (!pid)
			_exit(code_of_render(*what) == code ? ENDED_WELL : 4);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, ENDED_WELL << 8, "%c: %x", *what, (unsigned int)status);
	}
}

Test(confine, what_a_render_does_it_may)
{
	check_renders("taoz", ENDED_WELL);
}

/* Sockets, processes and new files are the serving process' alone. */
Test(confine, what_only_the_serving_process_does_ends_a_render)
{
	check_renders("fkrmnSCOEPATXMUNDLWV", -EPERM);
}

#endif
