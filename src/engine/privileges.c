/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/privileges.h"

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

static const unsigned int needed[] = {
	CAP_BPF,		/* iterators over tasks, and what maps are told of new processes */
	CAP_PERFMON,		/* the clocks of new threads and CPUs */
	CAP_SYS_PTRACE,		/* memory, maps and roots of other users' processes */
	CAP_DAC_READ_SEARCH,	/* their files */
	CAP_CHECKPOINT_RESTORE, /* /proc/PID/map_files */
	CAP_SYSLOG,		/* addresses in /proc/kallsyms */
	CAP_KILL,		/* to end a worker, and to hand on a signal to the command */
	CAP_SYS_NICE,		/* base/priority.h */
	CAP_SYS_RESOURCE,	/* descriptors; memory for BPF before 5.11 */
	CAP_DAC_OVERRIDE,	/* outputs in the directory of who ran sudo ... */
	CAP_CHOWN,		/* ... which are given to them ... */
	CAP_FOWNER,		/* ... with the mode of what they replace */
};

static bool get(struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capget, &header, data);
}

static bool set(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capset, &header, data);
}

/* Keep of the effective ones those that are needed. */
static void keep_needed(struct __user_cap_data_struct *data)
{
	uint32_t wanted[2] = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(needed); i++)
		wanted[needed[i] / 32] |= 1u << needed[i] % 32;
	for (i = 0; i < 2; i++)
		data[i].effective &= wanted[i];
}

/*
 * CAP_PERFMON is enough for the kernels of kernel.org, from 5.8 on. Debian's older ones ask for
 * CAP_SYS_ADMIN where perf_event_paranoid is 3.
 */
static bool can_open_clocks(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.disabled = 1 };
	/* Of everybody's processes on a CPU, which takes more than of a process of one's own. */
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

void privileges_reduce(void)
{
	struct __user_cap_data_struct before[2], data[2];
	size_t i;

	if (!get(before))
		return;
	data[0] = before[0];
	data[1] = before[1];
	keep_needed(data);
	if (!set(data))
		return;
	/* What is still permitted can be had back. */
	if (!can_open_clocks()) {
		data[0].effective |= before[0].effective & 1u << CAP_SYS_ADMIN;
		if (!set(data))
			return;
	}
	for (i = 0; i < 2; i++)
		data[i].inheritable = data[i].permitted = data[i].effective;
	set(data);
}
