/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runner forks for each test, and what it forks asks for memory before it executes the test.
 * Where a thread held a lock of the allocator at that moment, the child waits for it for ever: gcc
 * 12's AddressSanitizer does nothing about its locks when a process forks (libasan.so.8 has no
 * fork() of its own). Criterion's messages have a thread, which begins just before the first test.
 * So the runner waits for it to sleep.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIES 1000
#define CALM  3 /* times one after another */

/* The letter of its state; not thread_state(), which would fork. */
static char state_of(pid_t tid)
{
	char path[64], state = '?';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	stat = fopen(path, "r");
	if (stat) {
		if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(stat);
	}
	return state;
}

static bool others_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	bool sleep = true;

	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid && tid != gettid())
			sleep &= state_of(tid) == 'S';
	}
	if (dir)
		closedir(dir);
	return sleep;
}

ReportHook(PRE_ALL)(struct criterion_test_set *set)
{
	int i, calm = 0;

	(void)set;
	for (i = 0; i < TRIES && calm < CALM; i++) {
		calm = others_sleep() ? calm + 1 : 0;
		usleep(10000);
	}
}
