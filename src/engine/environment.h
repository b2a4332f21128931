/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What recording needs of the machine, probed before libbpf is touched, so that the user reads
 * what is missing and not what libbpf says about it. For BPF itself nothing beats trying: see
 * bpf_engine_trial().
 */
#ifndef RBPF_ENGINE_ENVIRONMENT_H
#define RBPF_ENGINE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct environment_row {
	const char *name;
	char detail[160];
	char hint[200]; /* what to do about a failure; empty if ok */
	bool ok;
	bool needed; /* recording cannot work without it */
};

#define ENVIRONMENT_ROWS 13

/*
 * Fill @rows (of ENVIRONMENT_ROWS) and return how many there are: kernel, user namespace,
 * privilege, BTF, lockdown, pid namespace, open files, of which the limit is raised as far as that
 * is allowed (base/fds.h); whether the kernel measures BPF programs; and what recording does worse
 * without a capability.
 */
size_t environment_probe(struct environment_row *rows);

/*
 * Fail with ERR_ENV and the words of the first row that is needed and not there; else 0. @what
 * needs it ("recording"), by the command line @command, for the hint.
 */
int environment_check(const char *what, const char *command, struct err *err);

/* Whether the kernel measures what BPF programs take without being asked to. */
bool environment_measures_bpf(void);

/* Whether rbpf is in the initial pid namespace, and no container hides processes from it. */
bool environment_sees_all_processes(void);

/*
 * Whether the pages that processes share stay shared when their memory is read: it takes
 * CAP_DAC_READ_SEARCH to read those of other users so (target/memory_files.h).
 */
bool environment_keeps_pages_shared(void);

/* Whether recording could hang a kernel of @release, which has PREEMPT_RT if @realtime. */
bool environment_may_hang(const char *release, bool realtime);

/*
 * Whether this process may read other processes' memory and load BPF programs: root, or CAP_BPF,
 * CAP_PERFMON and CAP_SYS_PTRACE.
 */
bool environment_privileged(void);

#endif
