/* SPDX-License-Identifier: GPL-2.0-only */
/* For tests of one file: a collector and a target for it, of each test its own. */
#ifndef RBPF_TESTS_COLLECTING_TARGET_H
#define RBPF_TESTS_COLLECTING_TARGET_H

#include "support/collecting.h"
#include "support/target_process.h"

static struct collecting f;
static struct target target;

static void setup(void)
{
	collecting_init(&f, NULL);
	target = target_start();
}

static void teardown(void)
{
	target_end(&target);
	collecting_deinit(&f);
}

/* A thread of the target made by thread @by, as the BPF programs tell it. */
static inline pid_t born(pid_t by)
{
	pid_t tid = target_thread(&target);

	collecting_birth(&f, RBPF_RING_THREAD, target.pid, by, tid);
	return tid;
}

#endif
