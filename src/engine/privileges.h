/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The capabilities of rbpf itself, once it is set up: loading BPF programs and letting the kernel
 * measure them (bpf_enable_stats()) take more than recording does.
 */
#ifndef RBPF_ENGINE_PRIVILEGES_H
#define RBPF_ENGINE_PRIVILEGES_H

/*
 * Drop for good the capabilities that recording does not need. Programs that rbpf executes later
 * are not affected: execve() by root gives a full set. If the kernel refuses, rbpf keeps what it
 * has.
 */
void privileges_reduce(void);

#endif
