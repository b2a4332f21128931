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
#include "base/sorted.h"
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

static void free_process(struct source_process *p)
{
	free(p->root);
	free(p->cwd);
}

void source_keeper_deinit(struct source_keeper *k)
{
	for (size_t i = 0; i < k->n; i++)
		free_process(&k->processes[i]);
	free(k->processes);
	free(k->own_root);
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
static bool read_root(pid_t pid, struct source_process *ret)
{
	char mounts[PATH_MAX], root[PATH_MAX], cwd[PATH_MAX];

	if (!read_link(pid, "ns/mnt", mounts) || !read_link(pid, "root", root))
		return false;
	if (asprintf(&ret->root, "%s %s", mounts, root) < 0)
		ret->root = NULL;
	ret->cwd = strdup(read_link(pid, "cwd", cwd) ? within(cwd, root) : "");
	ret->uid = process_uid(pid);
	return ret->root && ret->cwd;
}

/* Whether @pid still is the process that began at @start_ticks. */
static bool is_still(const struct source_heat_process *p)
{
	uint64_t start_ticks;

	return !process_start_ticks((pid_t)p->pid, &start_ticks) && start_ticks == p->start_ticks;
}

static bool look_at_own_root(struct source_keeper *k)
{
	struct source_process own = { 0 };

	if (!k->own_root && read_root(getpid(), &own)) {
		k->own_root = own.root;
		own.root = NULL;
	}
	free_process(&own);
	return k->own_root;
}

static int look_at(struct source_keeper *k, const struct source_heat_process *p)
{
	struct source_process new = { .id = p->id, .uid = (uid_t)-1 };

	if (array_reserve(k->processes, k->cap, k->n + 1))
		return -ENOMEM;
	if (!p->ended && (!read_root((pid_t)p->pid, &new) || !is_still(p))) {
		free(new.root);
		new.root = NULL;
	}
	k->processes[k->n++] = new;
	k->next_id = p->id + 1;
	return 0;
}

static void look_at_new(struct source_keeper *k, const struct source_heat *heat)
{
	size_t i = heat->n_processes;

	if (!look_at_own_root(k))
		return;
	while (i && heat->processes[i - 1].id >= k->next_id)
		i--;
	for (; i < heat->n_processes; i++)
		if (look_at(k, &heat->processes[i]))
			return;
}

static const struct source_process *find_process(const struct source_keeper *k, uint32_t id)
{
	const size_t i = sorted_below(k->processes, k->n, id, id);

	return i < k->n && k->processes[i].id == id ? &k->processes[i] : NULL;
}

static bool is_own(const struct source_keeper *k, const char *root)
{
	return root && !strcmp(root, k->own_root);
}

/* ---- files ---- */

/* Returns a descriptor or -errno. */
static int open_source(const struct source_keeper *k, const struct source_process *p,
		       const struct source_heat_process *is, const char *path)
{
	const bool own = is_own(k, p->root);
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
	uint32_t id;
	int n;

	n = snprintf(key, sizeof(key), "%x %zx %s", chunk_crc(text, len), len, path);
	if (intern_find(&k->kept, key, (size_t)n, &id) && !recorder_source(rec, path, text, len))
		intern_add(&k->kept, key, (size_t)n, &id, NULL);
}

static void read_source(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
			const struct source_process *p, const struct source_heat_process *is,
			const char *path)
{
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
	fd = open_source(k, p, is, full);
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

#define TRIED_KEY_MAX (SOURCE_HEAT_MAX_PATH + 2 * PATH_MAX + 4)

/* What @path of a process with @root is tried by. Returns its length. */
static size_t tried_key(char key[TRIED_KEY_MAX], const char *root, const char *path)
{
	return (size_t)snprintf(key, TRIED_KEY_MAX, "%s %s", root, path);
}

/* Whether it was looked for by this path in this root before; from now on it was. */
static bool was_tried(struct source_keeper *k, const char *root, const char *path)
{
	char key[TRIED_KEY_MAX];
	size_t n = tried_key(key, root, path);
	bool is_new = false;
	uint32_t id;

	if (k->tried.count >= SOURCE_TRIED_MAX)
		intern_deinit(&k->tried);
	return intern_add(&k->tried, key, n, &id, &is_new) || !is_new;
}

/* Whether file @i may be one to read. */
static bool is_readable(const struct source_keeper *k, const struct source_heat *heat, uint32_t i)
{
	const struct source_process *p;
	uint32_t process;
	const char *path = source_heat_path(heat, i, &process);

	p = find_process(k, process);
	return p && p->root && is_path(path);
}

/* The hottest file that is to be read, which no more is. Returns false if there is none. */
static bool next_file(struct source_keeper *k, struct source_heat *heat, uint32_t *ret)
{
	bool found = false;

	for (; k->n_seen < heat->paths.count; k->n_seen++)
		heat->files[k->n_seen].taken = !is_readable(k, heat, (uint32_t)k->n_seen);
	for (uint32_t i = 0; i < heat->paths.count; i++) {
		if (heat->files[i].taken ||
		    (found && heat->files[i].samples <= heat->files[*ret].samples))
			continue;
		*ret = i;
		found = true;
	}
	if (found)
		heat->files[*ret].taken = true;
	return found;
}

/*
 * Read the next file, unless the same was looked for in another process. *@root: the root in which
 * it was read, else NULL. Returns false if there is none.
 */
static bool take_next(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
		      const char **root)
{
	struct source_heat *heat = recorder_source_heat(rec);
	const struct source_process *p;
	uint32_t process, i = 0;
	const char *path;

	*root = NULL;
	if (!next_file(k, heat, &i))
		return false;
	path = source_heat_path(heat, i, &process);
	p = find_process(k, process);
	if (was_tried(k, p->root, path))
		return true;
	read_source(k, rec, worker, p, source_heat_find(heat, process), path);
	*root = p->root;
	return true;
}

/* ---- processes that ended ---- */

struct files_left {
	struct source_keeper *keeper;
	struct intern files; /* root and path of those that are kept */
};

/* What has to be read of a process that ended: a file of rbpf's root, of others by that path one.
 */
static bool is_left(void *arg, uint32_t process, const char *path)
{
	struct files_left *c = arg;
	const struct source_process *p = find_process(c->keeper, process);
	char key[TRIED_KEY_MAX];
	bool is_new = false;
	uint32_t id;
	size_t n;

	if (!p || !is_own(c->keeper, p->root))
		return false;
	n = tried_key(key, p->root, path);
	return intern_find(&c->keeper->tried, key, n, &id) &&
	       !intern_add(&c->files, key, n, &id, &is_new) && is_new;
}

static void collect(struct source_keeper *k, struct source_heat *heat)
{
	struct files_left c = { .keeper = k };
	size_t i, n = 0;

	if (!source_heat_collection_due(heat))
		return;
	if (!source_heat_collect(heat, is_left, &c)) {
		for (i = 0; i < k->n; i++)
			if (source_heat_find(heat, k->processes[i].id))
				k->processes[n++] = k->processes[i];
			else
				free_process(&k->processes[i]);
		k->n = n;
		k->n_seen = heat->paths.count;
	}
	intern_deinit(&c.files);
}

void source_keeper_turn(struct source_keeper *k, struct recorder *rec, struct file_worker *worker,
			uint64_t now)
{
	struct source_heat *heat = recorder_source_heat(rec);
	const char *root = NULL;
	bool own;

	if (now < k->next_ns)
		return;
	look_at_new(k, heat);
	for (int i = 0; i < TURN_FILES && !root; i++)
		if (!take_next(k, rec, worker, &root))
			break;
	own = is_own(k, root);
	k->next_ns = now + (own ? OWN_NS : TURN_NS);
	collect(k, heat);
}

void source_keeper_finish(struct source_keeper *k, struct recorder *rec, struct file_worker *worker)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + FINISH_NS;
	const char *root;

	look_at_new(k, recorder_source_heat(rec));
	while (!stop_overdue() && clock_ns(CLOCK_MONOTONIC) < end &&
	       take_next(k, rec, worker, &root))
		;
}
