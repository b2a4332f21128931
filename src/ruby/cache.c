/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/vm.h"

struct ruby_known {
	uid_t uid;
	uint64_t device, inode, size;
	int64_t mtime_ns;
	char build_id[64];
	struct ruby_layout layout;
	uint8_t source[RUBY_FIELDS];
	uint64_t current_vm, symbols; /* less the load bias; 0: unknown */
};

static bool same_file(const struct ruby_known *k, const struct ruby_binary *b)
{
	return k->device == b->device && k->inode == b->inode && k->size == b->size &&
	       k->mtime_ns == b->mtime_ns && !strcmp(k->build_id, b->build_id);
}

static struct ruby_known *find(const struct ruby_cache *cache, uid_t uid,
			       const struct ruby_binary *b)
{
	size_t i;

	for (i = 0; i < cache->n; i++)
		if (cache->v[i].uid == uid && same_file(&cache->v[i], b))
			return &cache->v[i];
	return NULL;
}

int ruby_cache_get(const struct ruby_cache *cache, uid_t uid, struct ruby_vm *vm,
		   uint64_t *current_vm, uint64_t *symbols)
{
	const struct ruby_known *k = find(cache, uid, &vm->binary);
	uint64_t base = vm->binary.base;

	if (!k)
		k = find(cache, 0, &vm->binary);
	if (!k)
		return -ENOENT;
	vm->layout = k->layout;
	memcpy(vm->source, k->source, sizeof(vm->source));
	*current_vm = k->current_vm ? base + k->current_vm : 0;
	*symbols = k->symbols ? base + k->symbols : 0;
	return 0;
}

int ruby_cache_put(struct ruby_cache *cache, uid_t uid, const struct ruby_vm *vm,
		   uint64_t current_vm)
{
	const struct ruby_binary *b = &vm->binary;
	struct ruby_known *k = find(cache, uid, b);
	int r;

	if (!k && cache->n == RUBY_CACHE_MAX) {
		k = &cache->v[cache->next++ % RUBY_CACHE_MAX];
	} else if (!k) {
		r = array_reserve(cache->v, cache->cap, cache->n + 1);
		if (r)
			return r;
		k = &cache->v[cache->n++];
	}
	*k = (struct ruby_known) {
		.uid = uid,
		.device = b->device,
		.inode = b->inode,
		.size = b->size,
		.mtime_ns = b->mtime_ns,
		.layout = vm->layout,
		.current_vm = current_vm ? current_vm - b->base : 0,
		.symbols = vm->symbols ? vm->symbols - b->base : 0,
	};
	memcpy(k->build_id, b->build_id, sizeof(k->build_id));
	memcpy(k->source, vm->source, sizeof(k->source));
	return 0;
}

void ruby_cache_deinit(struct ruby_cache *cache)
{
	free(cache->v);
	*cache = (struct ruby_cache)RUBY_CACHE_INIT;
}
