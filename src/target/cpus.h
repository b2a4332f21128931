/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs of the machine that are online, which may change. */
#ifndef RBPF_TARGET_CPUS_H
#define RBPF_TARGET_CPUS_H

#include <stdbool.h>
#include <stddef.h>

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

bool cpus_has(const struct cpus *cpus, int cpu);

#endif
