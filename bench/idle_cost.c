/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle_cost PROGRAM PID[,PID...] SECONDS HZ: what a BPF program costs that has nothing to do, in ns
 * a run, by the kernel's own statistics. On the same clock, threads and machine as what it is
 * compared with: the threads that these processes have at the beginning.
 *
 *   empty   does nothing: the yardstick for everything else
 *   other   the tick of rbpf in a process that is not followed
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "target/process.h"
#include "rbpf_abi.h"
#include "rbpf.skel.h"

static int attach_thread(struct bpf_program *program, pid_t tid, uint64_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = NSEC_PER_SEC / hz | RBPF_PERIOD_OF_CPU,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* The link lives as long as this process. */
	return bpf_program__attach_perf_event(program, fd) ? 0 : -errno;
}

static int attach(struct bpf_program *program, pid_t pid, uint64_t hz)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n;
	int r;

	r = process_threads(pid, &tids, &n);
	for (size_t i = 0; !r && i < n; i++) {
		r = attach_thread(program, tids[i], hz);
		if (r == -ESRCH) /* It has ended. */
			r = 0;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	_cleanup_free_ pid_t *pids = NULL;
	uint64_t seconds, hz;
	size_t n;
	struct err err = { 0 };
	struct bpf_program *program;
	struct rbpf_bpf *skel;
	int stats, r = 0;

	if (argc != 5 || (strcmp(argv[1], "empty") && strcmp(argv[1], "other")) ||
	    parse_pid_list(argv[2], "PID", &pids, &n, &err) ||
	    parse_u64(argv[3], "SECONDS", 1, 60, &seconds, &err) ||
	    parse_u64(argv[4], "HZ", 1, 10000, &hz, &err)) {
		fprintf(stderr, "usage: idle_cost {empty|other} PID[,PID...] SECONDS HZ %s\n",
			err.msg);
		return 2;
	}
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	skel = rbpf_bpf__open_and_load();
	if (stats < 0 || !skel) {
		fprintf(stderr, "idle_cost: cannot load: %s\n", strerror(errno));
		return 4;
	}
	program = strcmp(argv[1], "empty") ? skel->progs.tick : skel->progs.empty;
	for (size_t i = 0; !r && i < n; i++)
		r = attach(program, pids[i], hz);
	if (r) {
		fprintf(stderr, "idle_cost: cannot attach to %s: %s\n", argv[2], strerror(-r));
		return 3;
	}
	sleep((unsigned int)seconds);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) || !info.run_cnt) {
		fprintf(stderr, "idle_cost: it did not run\n");
		return 1;
	}
	printf("%.1f\n", (double)info.run_time_ns / (double)info.run_cnt);
	rbpf_bpf__destroy(skel);
	return 0;
}
