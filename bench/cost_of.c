/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cost_of COMMAND [ARG...]: run a command without its output, and print its CPU time in seconds,
 * the most memory that it had in MiB, its exit status (-1: a signal), the bytes that it wrote, and
 * how long it took in seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static int run(char **argv, int out)
{
	if (dup2(out, STDOUT_FILENO) == STDOUT_FILENO)
		execvp(argv[0], argv);
	perror("cost_of");
	return 127;
}

/* Read what comes from @fd to its end. Returns how many bytes. */
static uint64_t count_bytes(int fd)
{
	static char bytes[1 << 16];
	uint64_t sum = 0;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
		sum += n > 0 ? (uint64_t)n : 0;
	return sum;
}

int main(int argc, char **argv)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	struct rusage used;
	uint64_t bytes;
	int status, ends[2];
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: cost_of COMMAND [ARG...]\n");
		return 2;
	}
	if (pipe2(ends, O_CLOEXEC)) {
		perror("cost_of");
		return 1;
	}
	pid = fork();
	if (!pid)
		_exit(run(argv + 1, ends[1]));
	close(ends[1]);
	bytes = count_bytes(ends[0]);
	if (pid < 0 || wait4(pid, &status, 0, &used) < 0) {
		perror("cost_of");
		return 1;
	}
	printf("%.3f %.1f %d %" PRIu64 " %.3f\n", seconds(&used.ru_utime) + seconds(&used.ru_stime),
	       (double)used.ru_maxrss / 1024, WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes,
	       (double)(clock_ns(CLOCK_MONOTONIC) - begun) / NSEC_PER_SEC);
	return 0;
}
