/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/source_heat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void source_heat_deinit(struct source_heat *h)
{
	free(h->processes);
	free(h->threads);
	free(h->seen);
	free(h->samples);
	u64_map_deinit(&h->known);
	intern_deinit(&h->files);
	*h = (struct source_heat) { 0 };
}

int source_heat_process(struct source_heat *h, uint32_t pid, uint64_t start_ticks)
{
	if (array_reserve(h->processes, h->cap_processes, h->n_processes + 1))
		return -ENOMEM;
	h->processes[h->n_processes++] =
		(struct source_heat_process) { .pid = pid, .start_ticks = start_ticks };
	return 0;
}

int source_heat_thread(struct source_heat *h, uint32_t process)
{
	if (array_reserve(h->threads, h->cap_threads, h->n_threads + 1))
		return -ENOMEM;
	h->threads[h->n_threads++] = process;
	return 0;
}

int source_heat_stacks(struct source_heat *h, size_t n)
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

bool source_heat_first(struct source_heat *h, uint32_t thread, uint32_t node)
{
	uint32_t process = h->threads[thread];
	bool first = h->seen[node] != process + 1;

	h->seen[node] = process + 1;
	return first;
}

static uint64_t key_of(const struct source_heat *h, uint32_t thread, uint32_t id)
{
	return (uint64_t)h->threads[thread] << 32 | id;
}

bool source_heat_again(struct source_heat *h, uint32_t thread, uint32_t id, bool hot)
{
	uint32_t i;

	if (!u64_map_get(&h->known, key_of(h, thread, id), &i))
		return false;
	h->samples[i] += hot;
	return true;
}

int source_heat_add(struct source_heat *h, uint32_t thread, uint32_t id, const char *path,
		    size_t len, bool hot)
{
	char key[sizeof(uint32_t) + SOURCE_HEAT_MAX_PATH];
	bool is_new = false;
	uint32_t i;

	if (!len || len > SOURCE_HEAT_MAX_PATH)
		return 0;
	memcpy(key, &h->threads[thread], sizeof(uint32_t));
	memcpy(key + sizeof(uint32_t), path, len);
	len += sizeof(uint32_t);
	if (intern_find(&h->files, key, len, &i)) {
		if (h->files.count >= SOURCE_HEAT_MAX_FILES)
			return 0;
		if (array_reserve(h->samples, h->cap_samples, h->files.count + 1) ||
		    intern_add(&h->files, key, len, &i, &is_new))
			return -ENOMEM;
		h->samples[i] = 0;
	}
	h->samples[i] += hot;
	return u64_map_set(&h->known, key_of(h, thread, id), i);
}

const char *source_heat_file(const struct source_heat *h, uint32_t i, uint32_t *process)
{
	const char *key = intern_get(&h->files, i, NULL);

	memcpy(process, key, sizeof(*process));
	return key + sizeof(*process);
}
