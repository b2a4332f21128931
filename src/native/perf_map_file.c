/* SPDX-License-Identifier: GPL-2.0-only */
#include "native/perf_map_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "target/container.h"
#include "target/target_file.h"
#include "worker/file_worker.h"

#define READ_AGE NSEC_PER_SEC /* it is not read more often */

void perf_map_file_init(struct perf_map_file *f, struct perf_map_budget *budget)
{
	*f = (struct perf_map_file) { .map = PERF_MAP_INIT(budget) };
}

void perf_map_file_deinit(struct perf_map_file *f)
{
	perf_map_deinit(&f->map);
}

/* What a worker reads. */
struct open_file {
	struct file_worker *worker;
	int fd;
};

static ssize_t read_by_worker(void *arg, void *to, size_t size, uint64_t offset)
{
	const struct open_file *file = arg;

	return file_worker_read(file->worker, file->fd, to, size, offset);
}

bool perf_map_file_read(struct perf_map_file *f, struct file_worker *worker, pid_t pid,
			const struct process_context *context)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	char path[64];
	const struct target_file_request req = { .kind = TARGET_FILE_PERF_MAP,
						 .pid = pid,
						 .path = path };
	const size_t n_before = f->map.n;
	struct open_file from = { .worker = worker };
	struct statx st;

	if (f->hangs || (f->read_ns && now - f->read_ns < READ_AGE))
		return false;
	f->read_ns = now;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map",
		 (int)(context->ns_pid ? context->ns_pid : pid));
	from.fd = target_file_open(&req);
	f->refused |= from.fd == -EPERM;
	if (from.fd < 0)
		return false;
	if (!io_stat(from.fd, &st))
		f->hangs = perf_map_read(&f->map, st.stx_size, read_by_worker, &from) == -EIO;
	close(from.fd);
	return f->map.n != n_before;
}
