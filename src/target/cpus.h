/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs of the machine that are online, which may change. */
#ifndef RBPF_TARGET_CPUS_H
#define RBPF_TARGET_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct cpus {
	int *v; /* ascending; owned */
	size_t n, cap;
};

#define CPUS_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* The CPUs that are online now. Returns 0 or an error with @err set. */
int cpus_online(struct cpus *ret, struct err *err);

/* Parse a list as the kernel writes it: "0-3,6". Returns 0, -EINVAL or -ENOMEM. */
int cpus_parse(const char *text, struct cpus *ret);
void cpus_deinit(struct cpus *cpus);

/*
 * What all CPUs have done since the machine started, in ns, to the precision of the kernel's
 * accounts (10 ms): ran anything, or had work while a hypervisor gave the CPU to others.
 */
struct cpus_times {
	uint64_t busy;
	uint64_t stolen;
};

/* From /proc/stat. Returns 0 or a negative errno. */
int cpus_times(struct cpus_times *ret);

/* The same from the text of that file. Returns 0 or -EINVAL. */
int cpus_parse_times(const char *text, struct cpus_times *ret);

bool cpus_has(const struct cpus *cpus, int cpu);

#endif
