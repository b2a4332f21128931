/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/file_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/stop.h"
#include "ruby/mapped_files.h"
#include "target/maps.h"
#include "target/target_file.h"
#include "worker/file_worker.h"

#define FILES_MAX 65536

struct ruby_file_key {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

void ruby_files_deinit(struct ruby_files *files)
{
	intern_deinit(&files->keys);
	free(files->kinds);
	*files = (struct ruby_files) { .worker = files->worker };
}

static enum ruby_file_kind read_kind(struct file_worker *worker, int fd)
{
	static const char *const names[] = { "ruby_version", "rb_during_gc", "rb_cObject" };
	const struct worker_file from = { .fd = fd };
	struct file_exports exports;

	if (file_worker_exports(worker, &from, true, "libruby", names, ARRAY_SIZE(names), &exports))
		return RUBY_FILE_OTHER;
	if (exports.values[0] && exports.values[1] && exports.values[2])
		return RUBY_FILE_VM;
	return exports.needs ? RUBY_FILE_NEEDS : RUBY_FILE_OTHER;
}

enum ruby_file_kind ruby_files_kind(struct ruby_files *files, int fd)
{
	enum ruby_file_kind kind;
	struct ruby_file_key key;
	struct statx st;
	bool is_new;
	uint32_t id;

	if (io_stat(fd, &st) || !S_ISREG(st.stx_mode))
		return RUBY_FILE_OTHER;
	key = (struct ruby_file_key) {
		.device = io_device(&st),
		.inode = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = io_time_ns(st.stx_mtime),
		.ctime_ns = io_time_ns(st.stx_ctime),
	};
	if (!intern_find(&files->keys, &key, sizeof(key), &id))
		return files->kinds[id];
	if (files->keys.count >= FILES_MAX)
		ruby_files_deinit(files);
	kind = read_kind(files->worker, fd);
	if (!array_reserve(files->kinds, files->cap, files->keys.count + 1) &&
	    !intern_add(&files->keys, &key, sizeof(key), &id, &is_new))
		files->kinds[id] = (uint8_t)kind;
	return kind;
}

enum ruby_file_kind ruby_files_of_exe(struct ruby_files *files, pid_t pid)
{
	const struct target_file_request req = { .kind = TARGET_FILE_EXE, .pid = pid };
	_cleanup_close_ int fd = target_file_open(&req);

	return fd < 0 ? RUBY_FILE_OTHER : ruby_files_kind(files, fd);
}

bool ruby_files_in_process(struct ruby_files *files, pid_t pid)
{
	_cleanup_free_ size_t *mapped = NULL;
	struct maps maps = MAPS_INIT;
	bool found = false;
	size_t i, n = 0;

	if (maps_read(pid, &maps, NULL))
		return false;
	if (mapped_files_list(&maps, &mapped, &n))
		n = 0;
	for (i = 0; i < n && !found && !stop_overdue(); i++) {
		_cleanup_close_ int fd = maps_open_file(pid, &maps.v[mapped[i]]);

		found = fd >= 0 && ruby_files_kind(files, fd) == RUBY_FILE_VM;
	}
	maps_deinit(&maps);
	return found;
}
