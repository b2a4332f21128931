/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perf maps of any bytes, of which a part is there at first and the rest later: what is found at an
 * address is the latest entry that has it, and no more is kept than the budget allows.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/perf_map_file.h"
#include "symbol/perf_map.h"

#define MAX_COMPARED 200 /* entries, each of which is compared with all of them */

static const char *find_naively(const struct perf_map *map, uint64_t addr)
{
	for (size_t i = map->n; i--;)
		if (addr >= map->entries[i].start && addr < map->entries[i].end)
			return buf_str(&map->names) + map->entries[i].name;
	return NULL;
}

static void look_up(struct perf_map *map, uint64_t addr)
{
	uint64_t start = 0;
	const char *name = perf_map_find(map, addr, &start);

	if (name != find_naively(map, addr) || (name && start > addr))
		abort();
}

static void look_up_all(struct perf_map *map)
{
	for (size_t i = 0; i < map->n && i < MAX_COMPARED; i++) {
		look_up(map, map->entries[i].start);
		look_up(map, map->entries[i].start - 1);
		look_up(map, map->entries[i].end);
		look_up(map, map->entries[i].end - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map_budget budget = PERF_MAP_BUDGET_INIT;
	struct perf_map map = PERF_MAP_INIT(&budget);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	uint64_t memory;
	size_t first;

	if (!size) {
		close(fd);
		return 0;
	}
	/* A byte that says how much is there at first, and how much memory there is. */
	first = (size - 1) * (data[0] & 15) / 15;
	memory = data[0] & 16 ? 1000 : PERF_MAPS_MAX_MEMORY;
	budget.memory = memory;
	if (write(fd, data + 1, first) != (ssize_t)first || perf_map_read_file(&map, fd))
		abort();
	look_up_all(&map);
	if (write(fd, data + 1 + first, size - 1 - first) != (ssize_t)(size - 1 - first) ||
	    perf_map_read_file(&map, fd))
		abort();
	look_up_all(&map);
	if (ftruncate(fd, (off_t)first / 2) || perf_map_read_file(&map, fd))
		abort();
	look_up_all(&map);
	perf_map_deinit(&map);
	if (budget.memory != memory)
		abort();
	close(fd);
	return 0;
}
