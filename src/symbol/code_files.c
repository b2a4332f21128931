/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/hash.h"
#include "base/io.h"
#include "target/maps.h"
#include "target/memory.h"
#include "worker/file_worker.h"

/* ---- descriptors ---- */

static void close_file(struct code_files *files, struct code_file *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	file->fd = -1;
	files->n_open--;
}

static void use(struct code_files *files, struct code_file *file)
{
	file->used = ++files->uses;
}

static struct code_file *least_used(const struct code_files *files,
				    bool (*matches)(const struct code_file *))
{
	struct code_file *least = NULL;
	size_t i;

	for (i = 0; i < files->n; i++)
		if (matches(files->v[i]) && (!least || files->v[i]->used < least->used))
			least = files->v[i];
	return least;
}

static bool is_open(const struct code_file *file)
{
	return file->fd >= 0;
}

/* Give @file the descriptor @fd, which is its own from now on. */
static void keep_open(struct code_files *files, struct code_file *file, int fd)
{
	while (files->n_open >= fds_share(CODE_FILES_OPEN))
		close_file(files, least_used(files, is_open));
	file->fd = fd;
	files->n_open++;
}

static int read_key(int fd, struct code_key *ret)
{
	struct statx st;
	int r = io_stat(fd, &st);

	if (r)
		return r;
	if (!S_ISREG(st.stx_mode))
		return -ENOEXEC;
	*ret = (struct code_key) {
		.device = io_device(&st),
		.inode = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = io_time_ns(st.stx_mtime),
	};
	return 0;
}

void code_file_set_mapping(struct code_file *file, pid_t pid, uint64_t start, uint64_t end)
{
	file->mapping = (struct code_mapping) { .pid = pid, .start = start, .end = end };
}

int code_file_open(struct code_files *files, struct code_file *file)
{
	const struct map map = { .start = file->mapping.start,
				 .end = file->mapping.end,
				 .inode = file->key.inode,
				 .path = file->path };
	_cleanup_close_ int fd = -1;
	struct code_key key;

	use(files, file);
	if (file->image)
		return -ENOENT;
	if (file->fd >= 0)
		return file->fd;
	fd = maps_open_file(file->mapping.pid, &map);
	if (fd < 0 || read_key(fd, &key) || memcmp(&key, &file->key, sizeof(key)))
		return -ESTALE;
	keep_open(files, file, take_fd(&fd));
	return file->fd;
}

int code_file_for_worker(struct code_files *files, struct code_file *file, struct worker_file *ret)
{
	int fd = code_file_open(files, file);

	if (fd == -ESTALE)
		return fd;
	*ret = (struct worker_file) { .fd = file->image ? -1 : fd,
				      .image = file->image,
				      .size = file->key.size,
				      .path = file->path,
				      .pid = file->mapping.pid };
	return 0;
}

void code_file_done(struct code_files *files, struct code_file *file, enum code_part part)
{
	file->unread &= ~(unsigned int)part;
	if (!file->unread)
		close_file(files, file);
}

void code_file_close_unmapped(struct code_files *files, struct code_file *file)
{
	if (!file->mapped && !file->queued)
		close_file(files, file);
}

void code_file_mapped(struct code_file *file)
{
	file->mapped++;
}

void code_file_unmapped(struct code_files *files, struct code_file *file)
{
	file->mapped--;
	code_file_close_unmapped(files, file);
}

/* ---- files by key ---- */

int code_files_init(struct code_files *files, struct file_worker *worker,
		    void (*free_symbols)(struct code_symbols *symbols))
{
	*files = (struct code_files) { .worker = worker,
				       .rules = CFI_RULES_INIT,
				       .free_symbols = free_symbols };
	return cfi_rules_init(&files->rules);
}

static void free_file(struct code_files *files, struct code_file *file)
{
	close_file(files, file);
	if (file->symbols && files->free_symbols)
		files->free_symbols(file->symbols);
	cfi_table_deinit(&file->table);
	elf_headers_deinit(&file->headers);
	free(file->image);
	free(file->path);
	free(file);
}

void code_files_deinit(struct code_files *files)
{
	size_t i;

	for (i = 0; i < files->n; i++)
		free_file(files, files->v[i]);
	if (files->job_begun)
		file_worker_abandon(files->worker);
	free(files->jobs);
	free(files->v);
	cfi_rules_deinit(&files->rules);
	*files = (struct code_files) { 0 };
}

/* Where the file with @key is or, if there is none (false), would be. */
static bool find_key(const struct code_files *files, const struct code_key *key, size_t *ret)
{
	size_t low = 0, high = files->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = memcmp(&files->v[middle]->key, key, sizeof(*key));

		if (!order) {
			*ret = middle;
			return true;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return false;
}

static bool is_idle(const struct code_file *file)
{
	return !file->references;
}

static void drop_idle(struct code_files *files)
{
	struct code_file *file = least_used(files, is_idle);
	size_t i;

	if (!find_key(files, &file->key, &i))
		return;
	memmove(&files->v[i], &files->v[i + 1], (--files->n - i) * sizeof(*files->v));
	files->n_idle--;
	free_file(files, file);
}

struct code_file *code_file_ref(struct code_files *files, struct code_file *file)
{
	if (!file)
		return NULL;
	if (!file->references++)
		files->n_idle--;
	use(files, file);
	return file;
}

void code_file_unref(struct code_files *files, struct code_file *file)
{
	if (!file || --file->references)
		return;
	close_file(files, file);
	files->n_idle++;
	if (files->n_idle > CODE_FILES_IDLE)
		drop_idle(files);
}

/* Register a file with the @headers, which are its own if that succeeds. It is idle. */
static int add_file(struct code_files *files, const struct code_key *key, const char *path,
		    const struct elf_headers *headers, struct code_file **ret)
{
	_cleanup_free_ struct code_file *file = calloc(1, sizeof(*file));
	_cleanup_free_ char *copy = strdup(path);
	size_t i;

	if (files->n >= CODE_FILES_MAX && files->n_idle)
		drop_idle(files);
	if (files->n >= CODE_FILES_MAX)
		return -ENOSPC;
	if (!file || !copy || array_reserve(files->v, files->cap, files->n + 1))
		return -ENOMEM;
	*file = (struct code_file) {
		.id = files->next_id++,
		.key = *key,
		.path = take_ptr(copy),
		.headers = *headers,
		.fd = -1,
		.unread = CODE_PART_ALL,
	};
	find_key(files, key, &i);
	memmove(&files->v[i + 1], &files->v[i], (files->n++ - i) * sizeof(*files->v));
	files->n_idle++;
	*ret = files->v[i] = take_ptr(file);
	return 0;
}

int code_files_of_map(struct code_files *files, pid_t pid, const struct map *map,
		      struct code_file **ret)
{
	struct elf_headers headers = ELF_HEADERS_INIT;
	_cleanup_close_ int fd = maps_open_file(pid, map);
	const struct worker_file from = { .fd = fd, .path = map->path };
	struct code_file *file;
	struct code_key key;
	size_t i;
	int r;

	if (fd < 0)
		return fd;
	r = read_key(fd, &key);
	if (r)
		return r;
	if (find_key(files, &key, &i)) {
		file = files->v[i];
	} else {
		r = file_worker_headers(files->worker, &from, &headers);
		if (!r)
			r = add_file(files, &key, map->path, &headers, &file);
		if (r) {
			elf_headers_deinit(&headers);
			return r;
		}
		keep_open(files, file, take_fd(&fd));
	}
	code_file_set_mapping(file, pid, map->start, map->end);
	*ret = code_file_ref(files, file);
	return 0;
}

/* ---- vDSOs ---- */

/* Register the vDSO @image, which is the file's own if that succeeds. */
static int add_vdso(struct code_files *files, const struct code_key *key, void *image,
		    struct code_file **ret)
{
	const struct worker_file from = {
		.fd = -1, .image = image, .size = key->size, .path = CODE_VDSO_PATH
	};
	struct elf_headers headers = ELF_HEADERS_INIT;
	int r;

	r = file_worker_headers(files->worker, &from, &headers);
	if (!r)
		r = add_file(files, key, CODE_VDSO_PATH, &headers, ret);
	if (r)
		elf_headers_deinit(&headers);
	else
		(*ret)->image = image;
	return r;
}

int code_files_of_vdso(struct code_files *files, pid_t pid, const struct map *map,
		       struct code_file **ret)
{
	const struct memory mem = memory_process(pid);
	uint64_t size = map->end - map->start;
	_cleanup_free_ void *image = NULL;
	struct code_file *file;
	struct code_key key;
	size_t i;
	int r;

	if (size > CODE_VDSO_MAX)
		return -ENOEXEC;
	image = malloc(size);
	if (!image)
		return -ENOMEM;
	r = memory_read(&mem, map->start, image, size);
	if (r)
		return r;
	key = (struct code_key) { .inode = hash_bytes(image, size), .size = size };
	if (find_key(files, &key, &i)) {
		file = files->v[i];
		/* The hash is no proof against one who wants another's stacks to be wrong. */
		if (!file->image || memcmp(file->image, image, size))
			return -EEXIST;
	} else {
		r = add_vdso(files, &key, image, &file);
		if (r)
			return r;
		image = NULL; /* the file's now */
	}
	*ret = code_file_ref(files, file);
	return 0;
}

/* ---- tables ---- */

static int read_table(struct code_files *files, struct code_file *file)
{
	struct worker_file from;
	int r;

	r = code_file_for_worker(files, file, &from);
	return r ? r
		 : file_worker_table(files->worker, &from, file->headers.base, &files->rules,
				     &file->table);
}

void code_file_set_table(struct code_files *files, struct code_file *file, int r)
{
	file->table_state = r ? CODE_TABLE_NONE : CODE_TABLE_READY;
	file->table_error = r;
	code_file_done(files, file, CODE_PART_TABLE);
}

int code_file_table(struct code_files *files, struct code_file *file, const struct cfi_table **ret)
{
	int r;

	use(files, file);
	if (file->table_state == CODE_TABLE_NOT_TRIED) {
		r = read_table(files, file);
		if (r == -ENOMEM || r == -ESTALE)
			return r;
		code_file_set_table(files, file, r);
	}
	if (file->table_state == CODE_TABLE_NONE)
		return -ENOENT;
	*ret = &file->table;
	return 0;
}

void code_file_forget_table(struct code_file *file)
{
	if (file->table_state != CODE_TABLE_READY)
		return;
	cfi_table_deinit(&file->table);
	file->table_state = CODE_TABLE_NOT_TRIED;
}
