/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of symbols, as a file may hold them: what is demangled is appended, within its limit, and
 * what is not leaves the output as it was.
 *
 * libiberty may take for ever (demangle.h), for which rbpf kills the worker that demangles. Here a
 * timer of CPU time is the limit. It jumps out of libiberty: only a name that is malloc()ing at
 * that moment, after this much time, could be left in a bad state, and none takes that long to do
 * so. The kernel may give the signal to libFuzzer's other thread, which hands it on: a jump from
 * there would run two threads on one stack.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "elf/demangle.h"
#include "worker/file_worker.h"

static sigjmp_buf too_slow;
static pthread_t demangler;

static void out_of_time(int sig)
{
	if (pthread_equal(pthread_self(), demangler))
		siglongjmp(too_slow, 1);
	pthread_kill(demangler, sig);
}

static void set_timer(uint64_t ns)
{
	const struct itimerval timer = { .it_value.tv_usec = (suseconds_t)(ns / 1000) };

	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	demangler = pthread_self();
	signal(SIGVTALRM, out_of_time);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = strndup((const char *)data, size);
	_cleanup_buf_ struct buf out = BUF_INIT;
	bool done;

	buf_addstr(&out, "before ");
	if (sigsetjmp(too_slow, 1))
		return 0;
	set_timer(FILE_WORKER_DEMANGLE_NS);
	done = demangle(name, &out);
	set_timer(0);
	if (strncmp(buf_str(&out), "before ", 7) || strlen(buf_str(&out)) != out.len)
		abort();
	/* What follows a "." is appended to it as it is. */
	if (done != (out.len > 7) || out.len > 7 + DEMANGLE_MAX_OUTPUT + DEMANGLE_MAX_NAME)
		abort();
	return 0;
}
