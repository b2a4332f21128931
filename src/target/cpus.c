/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"

#define ONLINE	 "/sys/devices/system/cpu/online"
#define STAT	 "/proc/stat"
#define CPUS_MAX 65536 /* far beyond CONFIG_NR_CPUS of any kernel */

static int add_range(struct cpus *cpus, int from, int to)
{
	int cpu;

	if (from > to || to >= CPUS_MAX || (cpus->n && from <= cpus->v[cpus->n - 1]))
		return -EINVAL;
	for (cpu = from; cpu <= to; cpu++) {
		if (array_reserve(cpus->v, cpus->cap, cpus->n + 1))
			return -ENOMEM;
		cpus->v[cpus->n++] = cpu;
	}
	return 0;
}

int cpus_parse(const char *text, struct cpus *ret)
{
	struct cpus cpus = CPUS_INIT;
	const char *p = text;
	int from, to, n, r;

	do {
		if (*p < '0' || *p > '9' || sscanf(p, "%6d%n", &from, &n) != 1) {
			r = -EINVAL;
			break;
		}
		p += n;
		to = from;
		if (p[0] == '-' && p[1] >= '0' && p[1] <= '9' &&
		    sscanf(p + 1, "%6d%n", &to, &n) == 1)
			p += 1 + n;
		r = add_range(&cpus, from, to);
	} while (!r && *p++ == ',');
	if (!r && p[-1] != '\n' && p[-1] != '\0')
		r = -EINVAL;
	if (r) {
		cpus_deinit(&cpus);
		return r;
	}
	*ret = cpus;
	return 0;
}

int cpus_online(struct cpus *ret, struct err *err)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	int r = io_read_file(AT_FDCWD, ONLINE, 1u << 20, &text);

	if (!r)
		r = cpus_parse(buf_str(&text), ret);
	return r ? err_set(err, r, ERR_ENV, "cannot read " ONLINE ": %s", strerror(-r)) : 0;
}

void cpus_deinit(struct cpus *cpus)
{
	free(cpus->v);
	*cpus = (struct cpus)CPUS_INIT;
}

/* Their numbers in the first line of /proc/stat; guests are within user and nice. See proc(5). */
enum {
	STAT_USER,
	STAT_NICE,
	STAT_SYSTEM,
	STAT_IDLE,
	STAT_IOWAIT,
	STAT_IRQ,
	STAT_SOFTIRQ,
	STAT_STEAL
};

int cpus_parse_times(const char *text, struct cpus_times *ret)
{
	const uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long long t[STAT_STEAL + 1];

	if (strncmp(text, "cpu ", 4) != 0 ||
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[STAT_USER],
		   &t[STAT_NICE], &t[STAT_SYSTEM], &t[STAT_IDLE], &t[STAT_IOWAIT], &t[STAT_IRQ],
		   &t[STAT_SOFTIRQ], &t[STAT_STEAL]) != (int)ARRAY_SIZE(t))
		return -EINVAL;
	ret->busy = (t[STAT_USER] + t[STAT_NICE] + t[STAT_SYSTEM] + t[STAT_IRQ] + t[STAT_SOFTIRQ]) *
		    tick_ns;
	ret->stolen = t[STAT_STEAL] * tick_ns;
	return 0;
}

int cpus_times(struct cpus_times *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	int r = io_read_file(AT_FDCWD, STAT, 64u << 20, &text);

	return r ? r : cpus_parse_times(buf_str(&text), ret);
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

bool cpus_has(const struct cpus *cpus, int cpu)
{
	return cpus->n && bsearch(&cpu, cpus->v, cpus->n, sizeof(cpu), compare);
}
