/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/file_losses.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/utf8.h"

struct file_key {
	uint64_t device, inode, size;
	int64_t mtime_ns;
};

/* What tells a file from others. Of those in memory there are none that are given up for good. */
static bool key_of(const struct worker_file *file, struct file_key *ret, struct statx *st)
{
	if (!file || file->fd < 0 || io_stat(file->fd, st))
		return false;
	*ret = (struct file_key) {
		.device = io_device(st),
		.inode = st->stx_ino,
		.size = st->stx_size,
		.mtime_ns = io_time_ns(st->stx_mtime),
	};
	return true;
}

/* Of all files of a file system without a device, of which @n hung. */
static struct file_key key_of_server(const struct file_key *file, uint64_t n)
{
	return (struct file_key) { .device = file->device, .size = n };
}

static bool has(const struct file_losses *l, const struct file_key *key)
{
	uint32_t id;

	return !intern_find(&l->bad, key, sizeof(*key), &id);
}

bool file_losses_has(const struct file_losses *l, const struct worker_file *file)
{
	struct file_key key, server;
	struct statx st;

	if (!key_of(file, &key, &st))
		return false;
	server = key_of_server(&key, FILE_LOSSES_HANGS);
	return has(l, &key) || (!io_is_on_device(&st) && has(l, &server));
}

/* Returns whether @key is new. */
static bool add_bad(struct file_losses *l, const struct file_key *key)
{
	bool is_new = true;
	uint32_t id;

	if (l->bad.count < FILE_LOSSES_MAX_BAD)
		intern_add(&l->bad, key, sizeof(*key), &id, &is_new);
	return is_new;
}

/* A server that does not answer for one file will not for others: each would be waited for. */
static void note_hang(struct file_losses *l, const struct file_key *key)
{
	struct file_key server;
	uint64_t n;

	for (n = 1; n <= FILE_LOSSES_HANGS; n++) {
		server = key_of_server(key, n);
		if (add_bad(l, &server))
			return;
	}
}

static const char *words_for(enum worker_failure why)
{
	switch (why) {
	case WORKER_TOO_LONG:
		return "it took too long";
	case WORKER_HUNG:
		return "reading it hangs";
	case WORKER_TOO_MUCH:
		return "it takes too much memory";
	case WORKER_LIED:
		return "the answer makes no sense";
	default:
		return "its parser crashed";
	}
}

static void note_name(char to[FILE_LOSSES_NAME_SIZE], const struct worker_file *file,
		      enum worker_failure why)
{
	struct buf clean _cleanup_buf_ = BUF_INIT;
	char link[32], path[PATH_MAX] = "";
	ssize_t n;

	if (file && file->path) {
		snprintf(path, sizeof(path), "%s", file->path);
	} else if (file && file->fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
	}
	utf8_sanitise(&clean, path, strnlen(path, FILE_LOSSES_NAME_SIZE / 2));
	snprintf(to, FILE_LOSSES_NAME_SIZE, "%s (%s)", clean.len ? buf_str(&clean) : "a symbol",
		 words_for(why));
}

void file_losses_add(struct file_losses *l, const struct worker_file *file, enum worker_failure why)
{
	struct file_key key;
	struct statx st;

	if (why == WORKER_STOPPED)
		return;
	if (key_of(file, &key, &st)) {
		if (!add_bad(l, &key))
			return;
		if (why == WORKER_HUNG && !io_is_on_device(&st))
			note_hang(l, &key);
	}
	l->files++;
	if (l->n_names < FILE_LOSSES_NAMES)
		note_name(l->names[l->n_names++], file, why);
}

void file_losses_deinit(struct file_losses *l)
{
	intern_deinit(&l->bad);
}
