/* SPDX-License-Identifier: GPL-2.0-only */
/* The names of system calls in which a thread may wait, by the numbers of this architecture. */
#ifndef RBPF_TARGET_SYSCALLS_H
#define RBPF_TARGET_SYSCALLS_H

#include <stdint.h>

/* "futex"; NULL for a call that does not wait for long, or is not known. */
const char *syscall_name(int64_t number);

#endif
