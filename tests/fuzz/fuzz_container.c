/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of /proc/PID/cgroup and status, where a target chooses the names of control groups: what
 * is taken of it is part of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "target/container.h"

static void check_cgroup(const char *text)
{
	_cleanup_buf_ struct buf path = BUF_INIT, container = BUF_INIT;

	cgroup_path(text, &path);
	if (path.len && (!strstr(text, buf_str(&path)) || strchr(buf_str(&path), '\n')))
		abort();
	cgroup_container(buf_str(&path), &container);
	if (container.len > path.len)
		abort();
	buf_reset(&container);
	cgroup_container(text, &container);
	if (container.len > strlen(text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	struct process_context p = PROCESS_CONTEXT_INIT;

	check_cgroup(text);
	process_context_of_status(text, &p);
	if (p.cgroup || p.container || p.ns_pid < 0)
		abort();
	return 0;
}
