/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that works beside its caller, who joins it. Signals are for the threads that were there
 * before.
 */
#ifndef RBPF_BASE_THREAD_H
#define RBPF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Begin @run(@arg). False if no thread can be made: the caller does the work itself. */
bool thread_begin(pthread_t *ret, void *(*run)(void *), void *arg);

#endif
