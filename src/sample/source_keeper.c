/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/source_keeper.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "profile/chunk.h"
#include "profile/recorder.h"
#include "profile/source_heat.h"
#include "rbpf_file.h"
#include "target/process.h"
#include "target/remote.h"
#include "target/target_file.h"
#include "worker/file_worker.h"

#define TURN_NS (50 * NSEC_PER_MSEC)
/*
 * After a file of rbpf's own root, which is there when the process has ended, too: most are read at
 * the end.
 */
#define OWN_NS	NSEC_PER_SEC
#define TURN_FILES                                                                                 \
	32 /* that turn out to be known, at most: all files are looked through for each */
#define FINISH_NS NSEC_PER_SEC

void source_keeper_deinit(struct source_keeper *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->processes[i].cwd);
	free(k->processes);
	free(k->is_tried);
	intern_deinit(&k->roots);
	intern_deinit(&k->tried);
	intern_deinit(&k->kept);
	*k = (struct source_keeper) { 0 };
}

/* ---- processes ---- */

static bool read_link(pid_t pid, const char *name, char to[PATH_MAX])
{
	ssize_t n = remote_read_link(pid, name, to, PATH_MAX - 1);

	if (n < 0)
		return false;
	to[n] = '\0';
	return true;
}

/* @path as a process with the root @root names it; both as /proc tells them. */
static const char *within(const char *path, const char *root)
{
	size_t n = strlen(root);

	if (!strcmp(root, "/"))
		return path;
	return !strncmp(path, root, n) && (path[n] == '/' || !path[n]) ? path + n : "";
}

/* Two roots are one if they are the same directory of the same mount namespace. */
static bool read_root(struct source_keeper *k, pid_t pid, struct source_process *ret)
{
	char mounts[PATH_MAX], root[PATH_MAX], cwd[PATH_MAX], key[2 * PATH_MAX];
	int n;

	if (!read_link(pid, "ns/mnt", mounts) || !read_link(pid, "root", root))
		return false;
	n = snprintf(key, sizeof(key), "%s %s", mounts, root);
	if (intern_add(&k->roots, key, (size_t)n, &ret->root, NULL))
		return false;
	ret->cwd = strdup(read_link(pid, "cwd", cwd) ? within(cwd, root) : "");
	ret->uid = process_uid(pid);
	return ret->cwd != NULL;
}

/* Whether @pid still is the process that began at @start_ticks. */
static bool is_still(const struct source_heat_process *p)
{
	uint64_t start_ticks;

	return !process_start_ticks((pid_t)p->pid, &start_ticks) && start_ticks == p->start_ticks;
}

static bool look_at_own_root(struct source_keeper *k)
{
	struct source_process own = { .root = SOURCE_NO_ROOT };
	bool ok = read_root(k, getpid(), &own);

	free(own.cwd);
	k->own_root = own.root;
	return ok;
}

static void look_at_new(struct source_keeper *k, const struct source_heat *heat)
{
	if (!k->n && !look_at_own_root(k))
		return;
	while (k->n < heat->n_processes) {
		const struct source_heat_process *p = &heat->processes[k->n];
		struct source_process new = { .root = SOURCE_NO_ROOT, .uid = (uid_t)-1 };

		if (array_reserve(k->processes, k->cap, k->n + 1))
			return;
		if (!read_root(k, (pid_t)p->pid, &new) || !is_still(p))
			new.root = SOURCE_NO_ROOT;
		k->processes[k->n++] = new;
	}
}

/* ---- files ---- */

/* Returns a descriptor or -errno. */
static int open_source(const struct source_keeper *k, const struct source_process *p,
		       const struct source_heat_process *is, const char *path)
{
	const bool own = p->root == k->own_root;
	char root[32];
	const struct target_file_request req = {
		.kind = TARGET_FILE_DEBUG, .owner = p->uid, .root = root, .path = path
	};
	int fd;

	snprintf(root, sizeof(root), "/proc/%u/root", own ? (unsigned int)getpid() : is->pid);
	fd = target_file_open(&req);
	if (own || is_still(is))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ESRCH;
}

/*
 * Write it, unless a file of the same contents is kept by that name. A checksum that is the same by
 * chance, or on purpose, costs the second of two files.
 */
static void keep(struct source_keeper *k, struct recorder *rec, const char *path, const char *text,
		 size_t len)
{
	char key[SOURCE_HEAT_MAX_PATH + 64];
	bool is_new = false;
	uint32_t id;
	int n;

	n = snprintf(key, sizeof(key), "%x %zx %s", chunk_crc(text, len), len, path);
	if (!intern_add(&k->kept, key, (size_t)n, &id, &is_new) && is_new)
		recorder_source(rec, path, text, len);
}

static void read_source(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
			uint32_t process, const char *path)
{
	const struct source_process *p = &k->processes[process];
	const struct source_heat *heat = recorder_source_heat(rec);
	_cleanup_free_ char *text = malloc(RBPF_FILE_MAX_SOURCE + 1);
	_cleanup_close_ int fd = -1;
	char full[PATH_MAX];
	ssize_t n;

	if (!text)
		return;
	n = snprintf(full, sizeof(full), "%s%s%s", path[0] == '/' ? "" : p->cwd,
		     path[0] == '/' ? "" : "/", path);
	if ((size_t)n >= sizeof(full) || full[0] != '/')
		return;
	fd = open_source(k, p, &heat->processes[process], full);
	if (fd < 0)
		return;
	n = file_worker_read(worker, fd, text, RBPF_FILE_MAX_SOURCE + 1, 0);
	if (n < 0 || n > RBPF_FILE_MAX_SOURCE || memchr(text, '\0', (size_t)n))
		return;
	keep(k, rec, path, text, (size_t)n);
}

/* "<internal:kernel>", "(eval at x.rb:1)" and "-e" are no files. */
static bool is_path(const char *path)
{
	return path[0] != '<' && path[0] != '(' && path[0] != '-' && path[0] != '[';
}

/* Whether it was looked for by this path in this root before; from now on it was. */
static bool was_tried(struct source_keeper *k, uint32_t root, const char *path)
{
	char key[SOURCE_HEAT_MAX_PATH + 16];
	bool is_new = false;
	uint32_t id;
	int n = snprintf(key, sizeof(key), "%x %s", root, path);

	return intern_add(&k->tried, key, (size_t)n, &id, &is_new) || !is_new;
}

/* Whether file @i may be one to read. */
static bool is_readable(const struct source_keeper *k, const struct source_heat *heat, uint32_t i)
{
	uint32_t process;
	const char *path = source_heat_file(heat, i, &process);

	return process < k->n && k->processes[process].root != SOURCE_NO_ROOT && is_path(path);
}

/* The hottest file that is to be read, which no more is. Returns false if there is none. */
static bool next_file(struct source_keeper *k, const struct source_heat *heat, uint32_t *ret)
{
	bool found = false;

	if (array_reserve(k->is_tried, k->cap_tried, heat->files.count + 1))
		return false;
	for (; k->n_tried < heat->files.count; k->n_tried++)
		k->is_tried[k->n_tried] = !is_readable(k, heat, (uint32_t)k->n_tried);
	for (uint32_t i = 0; i < heat->files.count; i++) {
		if (k->is_tried[i] || (found && heat->samples[i] <= heat->samples[*ret]))
			continue;
		*ret = i;
		found = true;
	}
	if (found)
		k->is_tried[*ret] = 1;
	return found;
}

/*
 * Read the next file, unless the same was looked for in another process. *@root: the root in which
 * it was read, else SOURCE_NO_ROOT. Returns false if there is none.
 */
static bool take_next(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
		      uint32_t *root)
{
	const struct source_heat *heat = recorder_source_heat(rec);
	uint32_t process, i = 0;
	const char *path;

	*root = SOURCE_NO_ROOT;
	if (!next_file(k, heat, &i))
		return false;
	path = source_heat_file(heat, i, &process);
	if (was_tried(k, k->processes[process].root, path))
		return true;
	read_source(k, rec, worker, process, path);
	*root = k->processes[process].root;
	return true;
}

void source_keeper_turn(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
			uint64_t now)
{
	uint32_t root = SOURCE_NO_ROOT;

	if (now < k->next_ns)
		return;
	look_at_new(k, recorder_source_heat(rec));
	for (int i = 0; i < TURN_FILES && root == SOURCE_NO_ROOT; i++)
		if (!take_next(k, rec, worker, &root))
			break;
	k->next_ns = now + (root != SOURCE_NO_ROOT && root == k->own_root ? OWN_NS : TURN_NS);
}

void source_keeper_finish(struct source_keeper *k, struct recorder *rec, struct file_worker *worker)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + FINISH_NS;
	uint32_t root;

	look_at_new(k, recorder_source_heat(rec));
	while (!stop_overdue() && clock_ns(CLOCK_MONOTONIC) < end &&
	       take_next(k, rec, worker, &root))
		;
}
