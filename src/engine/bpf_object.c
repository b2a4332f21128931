/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/bpf_object.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "engine/clock_events.h"
#include "engine/engine.h"
#include "engine/preempt_count.h"
#include "rbpf.skel.h"

/*
 * Room for native stacks: 8 MiB for the tables of what is executed, which a process of 110,000 rows
 * takes 0.44 MB of, and ranges of code for some hundred processes with as many libraries as Rails
 * has.
 */
#define POOL_CHUNKS	((8u << 20) / (RBPF_POOL_CHUNK * sizeof(uint32_t)))
#define MAX_RANGES	32768u

#define MAX_WAITS	32768u /* threads that have been off the CPU and live */
/* GVLs and Mutexes, and who holds those: what is beyond is forgotten, least recently used first. */
#define MAX_GVLS	16384u
#define MAX_GVL_TIDS	4096u /* of threads that waited for a lock */
#define MAX_KNOWN_WAITS 4096u /* of threads that slept already when they came to be recorded */

int bpf_object_refused(int r, const char *what, struct err *err)
{
	err_set(err, r, ERR_ENV, "cannot %s: %s", what, strerror(-r));
	if (r == -ENOMEM)
		err_hint(err, "BPF maps take up to 50 MB: the control group that rbpf is in, or "
			      "the machine, has too little left");
	else
		err_hint(err, "-v shows what libbpf says");
	return r;
}

/* ---- loading ---- */

static int size_maps(struct rbpf_bpf *skel, const struct engine_options *opts)
{
	/* The last context that has programs is the interrupt of a clock, which is the first. */
	const uint32_t contexts = 1;
	int cpus = libbpf_num_possible_cpus(), r;

	skel->rodata->n_cpus = cpus > 0 ? (uint32_t)cpus : 1;
	skel->rodata->longest_period = opts->frequency
					       ? clock_events_longest_period(opts->frequency)
					       : 0;
	r = bpf_map__set_max_entries(skel->maps.scratch, contexts * skel->rodata->n_cpus);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.cpu_clocks, skel->rodata->n_cpus);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.ring, (uint32_t)opts->ring_bytes);
	if (!r && opts->waits)
		r = bpf_map__set_max_entries(skel->maps.waits, MAX_WAITS);
	if (!r && opts->waits)
		r = bpf_map__set_max_entries(skel->maps.gvls, MAX_GVLS);
	if (!r && opts->waits)
		r = bpf_map__set_max_entries(skel->maps.lock_holders, MAX_GVLS);
	if (!r && opts->waits)
		r = bpf_map__set_max_entries(skel->maps.known_waits, MAX_KNOWN_WAITS);
	if (!r && opts->waits)
		r = bpf_map__set_max_entries(skel->maps.gvl_tids, MAX_GVL_TIDS);
	if (r || !opts->native)
		return r;
	r = bpf_map__set_max_entries(skel->maps.pool, POOL_CHUNKS);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.rules, RBPF_CFI_MAX_RULES);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.ranges, MAX_RANGES);
	return r;
}

/*
 * Of an engine that samples nothing only the iterators are needed: checking tick takes the kernel
 * longest.
 */
static void leave_out_sampling(struct rbpf_bpf *skel)
{
	bpf_program__set_autoload(skel->progs.tick, false);
	bpf_program__set_autoload(skel->progs.empty, false);
	bpf_program__set_autoload(skel->progs.on_new, false);
	bpf_program__set_autoload(skel->progs.on_exec, false);
	bpf_program__set_autoload(skel->progs.on_exit, false);
	bpf_program__set_autoload(skel->progs.on_free, false);
}

static void leave_out_waits(struct rbpf_bpf *skel)
{
	bpf_program__set_autoload(skel->progs.on_switch, false);
	bpf_program__set_autoload(skel->progs.on_waking, false);
	bpf_program__set_autoload(skel->progs.on_wakeup, false);
	bpf_program__set_autoload(skel->progs.open_waits, false);
}

int bpf_object_load(const struct engine_options *opts, struct rbpf_bpf **ret, struct err *err)
{
	struct rbpf_bpf *skel = rbpf_bpf__open();
	int r;

	*ret = skel;
	if (!skel)
		return bpf_object_refused(-errno, "open the BPF object", err);
	/* Fingerprints depend on it: nobody can make a stack that has that of another one. */
	skel->bss->forgotten = hash_seed();
	skel->rodata->max_frames = opts->max_frames;
	skel->rodata->follow_children = opts->follow;
	skel->rodata->system_wide = opts->system_wide;
	skel->rodata->native_stacks = opts->native;
	skel->rodata->kernel_stacks = opts->kernel;
	skel->rodata->waits_too = opts->waits;
	skel->rodata->wakers = opts->wakers;
	skel->rodata->preempt_count_from_rq = opts->frequency ? preempt_count_from_rq() : 0;
	if (!opts->frequency)
		leave_out_sampling(skel);
	if (!opts->waits)
		leave_out_waits(skel);
	r = size_maps(skel, opts);
	if (!r)
		r = rbpf_bpf__load(skel);
	return r ? bpf_object_refused(r, "load the BPF programs", err) : 0;
}

/* ---- memory ---- */

/* What the kernel maps of an array, whose values are padded to 8 bytes each. */
static size_t map_bytes(const struct bpf_map *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);

	return (size + page - 1) / page * page;
}

static void *map_memory(const struct bpf_map *map)
{
	void *at = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map),
			0);

	return at == MAP_FAILED ? NULL : at;
}

static void unmap_memory(const struct bpf_map *map, void *at)
{
	if (at)
		munmap(at, map_bytes(map));
}

int bpf_object_map_unwind(const struct rbpf_bpf *skel, struct unwind_memory *ret, struct err *err)
{
	ret->words = map_memory(skel->maps.pool);
	ret->n_words = (size_t)POOL_CHUNKS * RBPF_POOL_CHUNK;
	ret->rules = map_memory(skel->maps.rules);
	ret->n_rules = RBPF_CFI_MAX_RULES;
	ret->ranges = map_memory(skel->maps.ranges);
	ret->n_ranges = MAX_RANGES;
	return ret->words && ret->rules && ret->ranges
		       ? 0
		       : bpf_object_refused(-ENOMEM, "map the unwind tables", err);
}

void bpf_object_unmap_unwind(const struct rbpf_bpf *skel, struct unwind_memory *m)
{
	unmap_memory(skel->maps.pool, m->words);
	unmap_memory(skel->maps.rules, m->rules);
	unmap_memory(skel->maps.ranges, m->ranges);
	*m = (struct unwind_memory) { 0 };
}

/* ---- attaching ---- */

int bpf_object_attach_iterators(struct rbpf_bpf *skel, struct err *err)
{
	skel->links.tasks = bpf_program__attach(skel->progs.tasks);
	skel->links.registers = bpf_program__attach(skel->progs.registers);
	if (!skel->links.tasks || !skel->links.registers)
		return bpf_object_refused(-errno, "attach the iterators over tasks", err);
	return 0;
}

int bpf_object_attach_life(struct rbpf_bpf *skel, struct err *err)
{
	skel->links.on_new = bpf_program__attach(skel->progs.on_new);
	skel->links.on_exec = bpf_program__attach(skel->progs.on_exec);
	skel->links.on_exit = bpf_program__attach(skel->progs.on_exit);
	skel->links.on_free = bpf_program__attach(skel->progs.on_free);
	if (!skel->links.on_new || !skel->links.on_exec || !skel->links.on_exit ||
	    !skel->links.on_free)
		return bpf_object_refused(-errno, "attach to forks, execs and exits", err);
	return 0;
}

int bpf_object_attach_waits(struct rbpf_bpf *skel, struct err *err)
{
	skel->links.on_switch = bpf_program__attach(skel->progs.on_switch);
	skel->links.on_waking = bpf_program__attach(skel->progs.on_waking);
	skel->links.on_wakeup = bpf_program__attach(skel->progs.on_wakeup);
	skel->links.open_waits = bpf_program__attach(skel->progs.open_waits);
	if (!skel->links.on_switch || !skel->links.on_waking || !skel->links.on_wakeup ||
	    !skel->links.open_waits)
		return bpf_object_refused(-errno, "attach to switches and wake-ups of threads",
					  err);
	return 0;
}

void bpf_object_detach_waits(struct rbpf_bpf *skel)
{
	bpf_link__destroy(skel->links.on_switch);
	bpf_link__destroy(skel->links.on_waking);
	bpf_link__destroy(skel->links.on_wakeup);
	skel->links.on_switch = skel->links.on_waking = skel->links.on_wakeup = NULL;
}
