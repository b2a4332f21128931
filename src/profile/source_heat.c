/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/source_heat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"
#include "profile/defined.h"
#include "profile/profile.h"

#define FEW_ENDED 256u /* are not worth a collection */

void source_heat_deinit(struct source_heat *h)
{
	free(h->processes);
	free(h->seen);
	free(h->files);
	u64_map_deinit(&h->known);
	intern_deinit(&h->paths);
	*h = (struct source_heat) { 0 };
}

/* ---- processes ---- */

int source_heat_process(struct source_heat *h, uint32_t id, uint32_t pid, uint64_t start_ticks)
{
	if (array_reserve(h->processes, h->cap_processes, h->n_processes + 1))
		return -ENOMEM;
	h->processes[h->n_processes++] =
		(struct source_heat_process) { .id = id, .pid = pid, .start_ticks = start_ticks };
	return 0;
}

static struct source_heat_process *find_process(const struct source_heat *h, uint32_t id)
{
	const size_t i = sorted_below(h->processes, h->n_processes, id, id);

	return i < h->n_processes && h->processes[i].id == id ? &h->processes[i] : NULL;
}

const struct source_heat_process *source_heat_find(const struct source_heat *h, uint32_t id)
{
	return find_process(h, id);
}

void source_heat_ended(struct source_heat *h, uint32_t id)
{
	struct source_heat_process *p = find_process(h, id);

	if (!p || p->ended)
		return;
	p->ended = true;
	h->n_ended++;
}

/* ---- files ---- */

static uint64_t key_of(uint32_t process, uint32_t id)
{
	return (uint64_t)process << 32 | id;
}

/*
 * @process has code of the file @path, which is string @id of the recording; @hot: and a sample.
 * Returns 0 or -ENOMEM.
 */
static int add_file(struct source_heat *h, uint32_t process, uint32_t id, const char *path,
		    size_t len, bool hot)
{
	char key[sizeof(uint32_t) + SOURCE_HEAT_MAX_PATH];
	uint32_t i;

	if (!len || len > SOURCE_HEAT_MAX_PATH)
		return 0;
	memcpy(key, &process, sizeof(uint32_t));
	memcpy(key + sizeof(uint32_t), path, len);
	len += sizeof(uint32_t);
	if (intern_find(&h->paths, key, len, &i)) {
		if (h->paths.count >= SOURCE_HEAT_MAX_FILES)
			return 0;
		if (array_reserve(h->files, h->cap_files, h->paths.count + 1) ||
		    intern_add(&h->paths, key, len, &i, NULL))
			return -ENOMEM;
		h->files[i] = (struct source_heat_file) { 0 };
	}
	h->files[i].samples += hot;
	return u64_map_set(&h->known, key_of(process, id), i);
}

/* As add_file(), of a file that was added before. False: it was not. */
static bool add_again(struct source_heat *h, uint32_t process, uint32_t id, bool hot)
{
	uint32_t i;

	if (!u64_map_get(&h->known, key_of(process, id), &i))
		return false;
	h->files[i].samples += hot;
	return true;
}

const char *source_heat_path(const struct source_heat *h, uint32_t i, uint32_t *process)
{
	const char *key = intern_get(&h->paths, i, NULL);

	memcpy(process, key, sizeof(*process));
	return key + sizeof(*process);
}

/* ---- samples ---- */

/* There are @n nodes of stacks now. */
static int reserve_nodes(struct source_heat *h, size_t n)
{
	if (n <= h->n_seen)
		return 0;
	if (array_reserve(h->seen, h->cap_seen, n))
		return -ENOMEM;
	memset(h->seen + h->n_seen, 0, (n - h->n_seen) * sizeof(*h->seen));
	h->n_seen = n;
	return 0;
}

void source_heat_forget(struct source_heat *h)
{
	free(h->seen);
	h->seen = NULL;
	h->n_seen = h->cap_seen = 0;
	u64_map_deinit(&h->known);
}

/* Whether @process is another than the one that @node was seen with last, or the first. */
static bool is_new_to(struct source_heat *h, uint32_t process, uint32_t node)
{
	bool first = h->seen[node] != process + 1;

	h->seen[node] = process + 1;
	return first;
}

/* The file of the Ruby frame that @node adds to its stack, a string; PROFILE_NONE: it adds none. */
static uint32_t file_of(const struct definitions *defs, uint32_t node)
{
	const struct profile_frame *frame = defined_get(&defs->frames,
							defs->stacks.tree.nodes[node].what, NULL);

	return frame && frame->kind == FRAME_RUBY ? frame->file : PROFILE_NONE;
}

static int heat_file(struct source_heat *h, const struct definitions *defs, uint32_t process,
		     uint32_t file, bool hot)
{
	const char *path;
	size_t len;

	if (add_again(h, process, file, hot))
		return 0;
	path = defined_get(&defs->strings, file, &len);
	return path ? add_file(h, process, file, path, len, hot) : 0;
}

/*
 * The innermost Ruby frame says which file is hot. Files of its callers have samples, too: they are
 * told once for each stack and process, up to a stack of which that was done.
 */
int source_heat_sample(struct source_heat *h, const struct definitions *defs, uint32_t process,
		       uint32_t stack)
{
	const struct prefix_tree *tree = &defs->stacks.tree;
	uint32_t node = defined_stacks_node(&defs->stacks, stack);
	bool hot = true;
	int r = 0;

	if (reserve_nodes(h, tree->n_nodes))
		return -ENOMEM;
	for (; !r && node; node = tree->nodes[node].parent) {
		bool is_new = is_new_to(h, process, node);
		uint32_t file = is_new || hot ? file_of(defs, node) : PROFILE_NONE;

		if (file != PROFILE_NONE) {
			r = heat_file(h, defs, process, file, hot);
			hot = false;
		}
		if (!is_new && !hot)
			break;
	}
	return r;
}

/* ---- collections ---- */

bool source_heat_collection_due(const struct source_heat *h)
{
	return h->n_ended > FEW_ENDED + h->n_processes / 4;
}

/* Those that are kept go to @paths and, as they keep their order, to the front of h->files. */
static int choose_files(struct source_heat *h, source_heat_keep_fn *keep, void *arg,
			struct intern *paths)
{
	for (uint32_t i = 0, id; i < h->paths.count; i++) {
		struct source_heat_process *p;
		uint32_t process;
		size_t len;
		const char *key = intern_get(&h->paths, i, &len),
			   *path = source_heat_path(h, i, &process);

		p = find_process(h, process);
		if (!p || (p->ended && (h->files[i].taken || !keep(arg, process, path))))
			continue;
		if (intern_add(paths, key, len, &id, NULL))
			return -ENOMEM;
		p->needed = true;
	}
	return 0;
}

static void move_files(struct source_heat *h, const struct intern *paths)
{
	uint32_t to = 0, id;

	for (uint32_t i = 0; i < h->paths.count; i++) {
		size_t len;
		const char *key = intern_get(&h->paths, i, &len);

		if (!intern_find(paths, key, len, &id))
			h->files[to++] = h->files[i];
	}
}

int source_heat_collect(struct source_heat *h, source_heat_keep_fn *keep, void *arg)
{
	struct intern paths = INTERN_INIT;
	size_t i, n = 0;

	for (i = 0; i < h->n_processes; i++)
		h->processes[i].needed = !h->processes[i].ended;
	if (choose_files(h, keep, arg, &paths)) {
		intern_deinit(&paths);
		return -ENOMEM;
	}
	move_files(h, &paths);
	intern_deinit(&h->paths);
	h->paths = paths;
	for (i = 0; i < h->n_processes; i++)
		if (h->processes[i].needed)
			h->processes[n++] = h->processes[i];
	h->n_processes = n;
	h->n_ended = 0;
	u64_map_deinit(&h->known); /* of the numbers before */
	return 0;
}
