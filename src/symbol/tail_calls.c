/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/tail_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "elf/jumps.h"
#include "elf/symbols.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "symbol/code_symbols.h"
#include "worker/file_worker.h"

#define MAX_CODE   (1u << 20) /* bytes of a function that are looked at */
#define MAX_JUMPED 32	      /* functions that one may go on in, in the end */

/* Where a function may go on, in addresses of its file. */
struct function_jumps {
	uint64_t to[ELF_JUMPS_MAX];
	size_t n;
};

struct jumps_key {
	uint64_t file, function;
};

void tail_calls_forget(struct tail_calls *t)
{
	intern_deinit(&t->keys);
	free(t->jumps);
	t->jumps = NULL;
	t->cap_jumps = 0;
}

size_t tail_calls_bytes(const struct tail_calls *t)
{
	return intern_bytes(&t->keys) + t->cap_jumps * sizeof(*t->jumps);
}

/* What is at @f of the file into @ret; what cannot be read makes no tail calls. */
static int read_jumps(struct tail_calls *t, struct code_file *file, const struct code_symbols *s,
		      const struct elf_function *f, struct function_jumps *ret)
{
	_cleanup_free_ uint8_t *code = NULL;
	const struct elf_segment *segment;
	size_t i, size = f->end - f->start;
	int fd = code_file_open(t->files, file);
	ssize_t got;

	if (fd < 0 || size > MAX_CODE)
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	for (i = 0; i < file->headers.n; i++) {
		segment = &file->headers.v[i];
		if (f->start < segment->vaddr || f->start - segment->vaddr >= segment->filesz)
			continue;
		got = file_worker_read(t->files->worker, fd, code, size,
				       f->start - segment->vaddr + segment->offset);
		if (got > 0)
			ret->n = elf_jumps(&s->elf, code, (size_t)got, f->start, ret->to);
	}
	return 0;
}

/* Where the function at @function of @file may go on; NULL: nowhere that is known. */
static const struct function_jumps *jumps_of(struct tail_calls *t, struct code_file *file,
					     uint64_t function)
{
	const struct jumps_key key = { .file = file->id, .function = function };
	const struct code_symbols *s = code_symbols_get(t->files, file, t->inlines);
	const struct elf_function *f;
	uint32_t id;
	bool is_new;

	if (array_reserve(t->jumps, t->cap_jumps, t->keys.count + 1) ||
	    intern_add(&t->keys, &key, sizeof(key), &id, &is_new))
		return NULL;
	f = s && is_new ? elf_symbols_find(&s->elf, function) : NULL;
	if (f && f->start == function && read_jumps(t, file, s, f, &t->jumps[id]))
		return NULL;
	return &t->jumps[id];
}

bool tail_calls_lead(struct tail_calls *t, const struct code_map *map, uint64_t function,
		     uint64_t other)
{
	const struct code_range *range = code_map_find(map, function);
	uint64_t reached[MAX_JUMPED];
	const struct function_jumps *jumps;
	size_t n_reached = 1, i, k, seen;

	if (!range || !range->file)
		return false;
	other -= range->bias;
	reached[0] = function - range->bias;
	for (i = 0; i < n_reached; i++) {
		if (reached[i] == other)
			return true;
		jumps = jumps_of(t, range->file, reached[i]);
		for (k = 0; jumps && k < jumps->n && n_reached < MAX_JUMPED; k++) {
			for (seen = 0; seen < n_reached && reached[seen] != jumps->to[k]; seen++)
				;
			if (seen == n_reached)
				reached[n_reached++] = jumps->to[k];
		}
	}
	return false;
}
