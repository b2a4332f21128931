/* SPDX-License-Identifier: GPL-2.0-only */
/* The worker that reads files in a test; it ends with the test's process. */
#ifndef RBPF_TESTS_SUPPORT_TEST_WORKER_H
#define RBPF_TESTS_SUPPORT_TEST_WORKER_H

#include <stdbool.h>

#include "worker/file_worker.h"

static struct file_worker *test_worker(void)
{
	static struct file_worker worker;
	static bool is_ready;

	if (!is_ready)
		file_worker_init(&worker, NULL);
	is_ready = true;
	return &worker;
}

#endif
