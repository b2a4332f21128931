/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cost_of COMMAND [ARG...]: run a command without its output, and print its CPU time in seconds, the most
 * memory that it had in MiB, and its exit status (-1: a signal).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage used;
	int status, null;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: cost_of COMMAND [ARG...]\n");
		return 2;
	}
	pid = fork();
	if (!pid) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO)
			execvp(argv[1], argv + 1);
		perror("cost_of");
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) < 0) {
		perror("cost_of");
		return 1;
	}
	printf("%.3f %.1f %d\n", seconds(&used.ru_utime) + seconds(&used.ru_stime),
	       (double)used.ru_maxrss / 1024, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
