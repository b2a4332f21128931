/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the kernel keeps how deep in interrupts a CPU is: on x86_64 in a variable of each CPU,
 * which a BPF program may name only where the kernel was built with CONFIG_KALLSYMS_ALL. But a task
 * leads to the CPU's run queue, which is one, too, and the kernel's BTF tells how far apart all of
 * them are.
 */
#ifndef RBPF_ENGINE_PREEMPT_COUNT_H
#define RBPF_ENGINE_PREEMPT_COUNT_H

#include <stdint.h>

/* Bytes from a CPU's run queue to its preempt count; 0 if that is not known. */
int64_t preempt_count_from_rq(void);

#endif
