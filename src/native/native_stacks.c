/* SPDX-License-Identifier: GPL-2.0-only */
#include "native/native_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/prefix.h"
#include "base/stop.h"
#include "native/perf_map_file.h"
#include "native/unwind_tables.h"
#include "profile/counters.h"
#include "profile/sink.h"
#include "ruby/functions.h"
#include "ruby/vm.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "symbol/code_readahead.h"
#include "symbol/code_symbols.h"
#include "symbol/native_names.h"
#include "symbol/resolver.h"
#include "symbol/tail_calls.h"
#include "target/container.h"
#include "target/users.h"
#include "worker/file_worker.h"

/*
 * Not more often is a map read because of addresses that no code is known at; and not before so
 * many times what it took, for a process can have very many mappings and ask again and again.
 */
#define MAP_PAUSE_MIN	 (NSEC_PER_SEC / 10)
#define MAP_PAUSE_FACTOR 50
/* CPU time of a recording that is waited for tables that nothing has asked for yet. */
#define LOAD_FIRST	 (NSEC_PER_SEC / 2)
/* Tables that are read ahead, and nothing has asked for yet. */
#define PREFETCH_MAX	 256

/* A name in the recording: ids + 1, 0 if it is not in it yet. */
struct recorded {
	uint32_t frame[2]; /* not FRAME_INTERNAL, and that */
};

struct native {
	native_set_code_fn *set_code;
	void *arg; /* for set_code() */
	bool inlines;
	struct code_files files;
	struct unwind_tables *tables;
	struct native_names *names;
	struct tail_calls tail_calls;
	struct perf_map_budget perf_maps;
	uint64_t perf_maps_refused;
	uint64_t maps_cut;
	bool is_running;	     /* native_poll() is called: tables are read ahead */
	uint64_t load_first_ns;	     /* of LOAD_FIRST, used up, and … */
	size_t prefetched;	     /* … of PREFETCH_MAX */
	struct users users;	     /* whose maps took how long */
	uint64_t map_reads_deferred; /* that were due */
	uint64_t codes;		     /* how often the code of a process has become another */
	struct recorded *recorded;   /* by name, from the first that there is; owned */
	size_t cap_recorded;
};

struct native_process {
	struct native *native;
	pid_t pid;
	const struct process_context *context; /* not owned */
	struct code_map *map;		       /* NULL: not read yet */
	struct perf_map_file perf_map;
	bool map_cut;	      /* it was counted as such */
	bool may_have_jit;    /* code_map_may_have_jit(), or it runs code that is not in it */
	bool code_set;	      /* set_code() was called with it */
	uint64_t code;	      /* native.codes, as it is of its code */
	uint64_t text;	      /* an address of its VM's code; 0: none is known, or … */
	bool text_checked;    /* … native_names_vm() was told of it */
	uint64_t next_map_ns; /* CLOCK_MONOTONIC: when it may be read again */
};

int native_new(const struct unwind_memory *mem, struct file_worker *worker, bool inlines,
	       native_set_code_fn *set_code, void *arg, struct native **ret)
{
	const struct unwind_memory none = { 0 };
	struct native *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->set_code = set_code;
	n->arg = arg;
	n->inlines = inlines;
	n->tail_calls = (struct tail_calls) { .files = &n->files, .inlines = inlines };
	n->perf_maps = (struct perf_map_budget)PERF_MAP_BUDGET_INIT;
	r = code_files_init(&n->files, worker, code_symbols_free);
	if (r) {
		free(n);
		return r;
	}
	r = unwind_tables_new(mem ? mem : &none, &n->files, &n->tables);
	if (!r)
		r = native_names_new(&n->files, inlines, &n->names);
	if (r)
		native_free(n);
	else
		*ret = n;
	return r;
}

void native_limit_memory(struct native *n, uint64_t bytes)
{
	if (bytes / 4 < n->perf_maps.memory)
		n->perf_maps.memory = bytes / 4;
}

void native_free(struct native *n)
{
	if (!n)
		return;
	native_names_free(n->names);
	tail_calls_forget(&n->tail_calls);
	unwind_tables_free(n->tables);
	code_files_deinit(&n->files);
	users_deinit(&n->users);
	free(n->recorded);
	free(n);
}

static void drop_recorded(struct native *n)
{
	free(n->recorded);
	n->recorded = NULL;
	n->cap_recorded = 0;
}

int native_forget(struct native *n)
{
	struct native_names *names;
	int r;

	r = native_names_new(&n->files, n->inlines, &names);
	if (r)
		return r;
	native_names_free(n->names);
	n->names = names;
	tail_calls_forget(&n->tail_calls);
	drop_recorded(n);
	return 0;
}

size_t native_names_memory(const struct native *n)
{
	return native_names_bytes(n->names) + tail_calls_bytes(&n->tail_calls) +
	       n->cap_recorded * sizeof(*n->recorded);
}

void native_renew_names(struct native *n)
{
	native_names_renew(n->names);
	tail_calls_forget(&n->tail_calls);
	drop_recorded(n);
}

void native_tick(struct native *n)
{
	unwind_tables_tick(n->tables, clock_ns(CLOCK_MONOTONIC));
	perf_map_budget_tick(&n->perf_maps);
}

void native_count(const struct native *n, uint64_t *counters)
{
	counters[COUNTER_CODE_LEFT_OUT] = n->maps_cut;
	counters[COUNTER_PERF_MAPS_CUT] = n->perf_maps.n_cut;
	counters[COUNTER_PERF_MAPS_REFUSED] = n->perf_maps_refused;
}

/* ---- processes ---- */

int native_process_new(struct native *n, pid_t pid, const struct process_context *context,
		       struct native_process **ret)
{
	struct native_process *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->native = n;
	p->pid = pid;
	p->context = context;
	perf_map_file_init(&p->perf_map, &n->perf_maps);
	p->code = ++n->codes;
	*ret = p;
	return 0;
}

static void displace(struct native_process *p)
{
	if (p->code_set)
		unwind_tables_remove(p->native->tables, p->map, clock_ns(CLOCK_MONOTONIC));
	if (p->map)
		code_map_unuse(p->map);
	code_map_unref(p->map);
	p->map = NULL;
	p->code_set = false;
}

/*
 * Stacks are to be walked by @map, which becomes this process' own reference, in place of its own.
 */
static int replace(struct native_process *p, struct code_map *map)
{
	struct native *n = p->native;
	struct rbpf_code code;
	bool added;
	int r;

	r = unwind_tables_add(n->tables, map, clock_ns(CLOCK_MONOTONIC), &code);
	added = !r;
	/* First, so that files that stay mapped stay open. */
	code_map_use(map);
	if (n->set_code)
		n->set_code(n->arg, p->pid, added ? &code : NULL);
	displace(p);
	p->map = map;
	p->may_have_jit = code_map_may_have_jit(map);
	p->code = ++n->codes;
	p->code_set = added;
	n->maps_cut += map->is_cut && !p->map_cut;
	p->map_cut |= map->is_cut;
	return r == -ENOMEM ? r : 0;
}

int native_process_fork(const struct native_process *parent, pid_t pid,
			const struct process_context *context, struct native_process **ret)
{
	int r;

	r = native_process_new(parent->native, pid, context, ret);
	if (r || !parent->map)
		return r;
	(*ret)->next_map_ns = parent->next_map_ns;
	(*ret)->text = parent->text;
	return replace(*ret, code_map_ref(parent->map));
}

void native_process_free(struct native_process *p)
{
	if (!p)
		return;
	if (p->code_set && p->native->set_code)
		p->native->set_code(p->native->arg, p->pid, NULL);
	displace(p);
	perf_map_file_deinit(&p->perf_map);
	free(p);
}

static enum code_jit jit_of(const struct ruby_vm *vm)
{
	if (!vm || !vm->walk.cf_jit_return)
		return CODE_JIT_NONE;
	return ruby_vm_zjit_on(vm) ? CODE_JIT_ZJIT : CODE_JIT_YJIT;
}

/* The table of the code at @addr, if that is not loaded yet. */
static int load_table(struct native_process *p, uint64_t addr, uint64_t now)
{
	struct native *n = p->native;
	int r = unwind_tables_load(n->tables, p->map, p->pid, addr, now, n->is_running);

	return r == -ENOMEM ? r : 0;
}

/*
 * The tables of a Ruby and of what it is linked with will be needed: its first stacks are not to
 * have gaps. What takes longer than that is left until it is asked for.
 */
static int load_first(struct native_process *p, const struct ruby_vm *vm)
{
	const struct file_worker *worker = p->native->files.worker;
	const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID) + file_worker_cpu_ns(worker);
	uint64_t *spent = &p->native->load_first_ns, before = *spent;
	size_t i;
	int r;

	r = load_table(p, vm->walk.text_lo, clock_ns(CLOCK_MONOTONIC));
	for (i = 0; i < p->map->n && !r && *spent < LOAD_FIRST && !stop_overdue(); i++) {
		if (!p->map->v[i].file || p->native->prefetched == PREFETCH_MAX)
			continue;
		p->native->prefetched += p->native->is_running;
		r = load_table(p, p->map->v[i].start, clock_ns(CLOCK_MONOTONIC));
		*spent = before + clock_ns(CLOCK_THREAD_CPUTIME_ID) + file_worker_cpu_ns(worker) -
			 begin;
	}
	return r;
}

/* Read the map of @p, which takes as long as it has mappings. As code_map_read(). */
static int read_map(struct native_process *p, const struct ruby_vm *vm, struct code_map **ret)
{
	const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t now, took, pause;
	int r;

	r = code_map_read(&p->native->files, p->pid, jit_of(vm), p->map, ret, NULL);
	now = clock_ns(CLOCK_MONOTONIC);
	took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	pause = took * MAP_PAUSE_FACTOR;
	p->next_map_ns = now + (pause > MAP_PAUSE_MIN ? pause : MAP_PAUSE_MIN);
	user_spent(users_get(&p->native->users, p->context->uid), now, took);
	return r;
}

int native_process_read_map(struct native_process *p, const struct ruby_vm *vm)
{
	struct native *n = p->native;
	struct code_map *map;
	bool first = !p->code_set;
	int r;

	r = read_map(p, vm, &map);
	if (r == -ENOMEM)
		return r;
	if (!r && map == p->map && p->code_set)
		code_map_unref(map);
	else if (!r)
		r = replace(p, map);
	else
		r = 0;
	p->text = vm ? vm->walk.text_lo : 0;
	p->text_checked = false;
	if (!r && vm && p->code_set && first)
		r = load_first(p, vm);
	/* They will be needed: the sooner it is begun to read them, the better. */
	if (!r && vm && p->map)
		r = native_names_ready(n->names, p->map, p->text, NULL, 0);
	return r < 0 ? r : 0;
}

/* The symbols of the file of its VM tell what they can of where the interpreter is. */
static int look_for_interpreter(struct native_process *p)
{
	int r = 0;

	if (p->map && p->text && !p->text_checked)
		r = native_names_vm(p->native->names, p->map, p->text, 0);
	p->text_checked = true;
	return r < 0 ? r : 0;
}

int native_process_interpreter(struct native_process *p, const struct ruby_vm *vm,
			       const struct resolver *names)
{
	uint64_t labels[NATIVE_MAX_LABELS];
	size_t i, n;
	int r;

	r = p->map ? native_names_ready(p->native->names, p->map, vm->walk.text_lo, NULL, 0) : 1;
	if (r <= 0)
		return r ? r : -EAGAIN;
	r = look_for_interpreter(p);
	n = p->map ? resolver_instructions(names, labels, NATIVE_MAX_LABELS) : 0;
	for (i = 0; i < n && !r; i++)
		r = native_names_vm(p->native->names, p->map, vm->walk.text_lo, labels[i]);
	return r;
}

/* Whether its map may be read (again): a process' own pause, and what its user's processes took. */
static bool may_read_map(struct native_process *p, uint64_t now)
{
	bool may = now >= p->next_map_ns &&
		   user_may_spend(users_get(&p->native->users, p->context->uid), now);

	p->native->map_reads_deferred += !may && p->next_map_ns > now + MAP_PAUSE_MIN;
	return may;
}

uint64_t native_map_reads_deferred(struct native *n)
{
	uint64_t count = n->map_reads_deferred;

	n->map_reads_deferred = 0;
	return count;
}

int native_process_miss(struct native_process *p, uint64_t addr, enum rbpf_native_end end,
			const struct ruby_vm *vm)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (end == RBPF_NATIVE_UNREAD)
		return p->code_set ? load_table(p, addr, now) : 0;
	p->may_have_jit = true;
	return may_read_map(p, now) ? native_process_read_map(p, vm) : 0;
}

bool native_process_may_have_jit(const struct native_process *p)
{
	return p->may_have_jit || !p->map;
}

/* ---- frames ---- */

/* Where programs and threads begin, before Ruby does: libc's part of a stack, and ruby's main(). */
static bool is_start(const char *name)
{
	static const char *const prefixes[] = { "_start",	"__libc_start", "main",
						"start_thread", "clone",	"__clone" };

	return begins_with_any(name, prefixes, ARRAY_SIZE(prefixes));
}

/* Whether @path is one of the files that a program and its threads are started by. */
static bool is_libc(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	static const char *const prefixes[] = { "libc.so", "libc-", "libpthread", "ld-musl" };

	return begins_with_any(base, prefixes, ARRAY_SIZE(prefixes));
}

static uint32_t what_is(const struct native_name *name)
{
	if (name->kind != FRAME_NATIVE)
		return MERGE_OTHER;
	if (name->is & NATIVE_IS_EXEC)
		return MERGE_VM | MERGE_GLUE | MERGE_VM_EXEC;
	if (name->is & (NATIVE_IS_CORE | NATIVE_IS_COMPILED))
		return MERGE_VM | MERGE_GLUE | MERGE_CORE;
	if (name->is & NATIVE_IS_VM && name->is & NATIVE_IS_NAMELESS)
		return MERGE_VM | MERGE_GLUE | MERGE_NAMELESS;
	if (name->is & NATIVE_IS_VM)
		return MERGE_VM | (ruby_function_is_glue(name->name) ? MERGE_GLUE : 0) |
		       (ruby_function_is_collection(name->name) ? MERGE_GC : 0) |
		       (ruby_function_allocates(name->name) ? MERGE_ALLOC : 0);
	return is_libc(name->module) || is_start(name->name) ? MERGE_START : 0;
}

/* What the process' JIT compilers have written of their code by now. */
static void read_perf_map(struct native_process *p)
{
	struct native *n = p->native;
	const bool refused = p->perf_map.refused;

	if (perf_map_file_read(&p->perf_map, n->files.worker, p->pid, p->context))
		p->code = ++n->codes;
	n->perf_maps_refused += p->perf_map.refused && !refused;
}

static struct native_code code_of(struct native_process *p)
{
	if (!p)
		return (struct native_code) { .map = NULL };
	read_perf_map(p);
	return (struct native_code) { .map = p->map,
				      .perf_map = p->perf_map.map.n ? &p->perf_map.map : NULL };
}

int native_ready(struct native_process *p, const uint64_t *words, size_t n_words)
{
	return native_names_ready(p->native->names, p->map, p->text, words, n_words);
}

int native_poll(struct native *n, bool wait)
{
	int r = code_readahead_poll(&n->files, wait);

	n->is_running = true;
	return r ? r : unwind_tables_poll(n->tables, clock_ns(CLOCK_MONOTONIC));
}

int native_frames(struct native *n, struct native_process *p, bool no_wait, const uint64_t *words,
		  size_t n_words, struct native_frames *ret)
{
	struct native_code code = code_of(p);
	const struct native_name *name;
	uint64_t bias;
	uint32_t id;
	size_t i;
	int r = 0;

	code.no_wait = no_wait;
	if (p && !no_wait)
		r = look_for_interpreter(p);

	for (i = 0; i < n_words && !r; i++) {
		r = native_names_find(n->names, &code, words[i], &id, &bias);
		for (; !r && id != NATIVE_NONE; id = name->outer) {
			name = native_names_get(n->names, id);
			r = array_room(ret->v, ret->cap, ret->n + 1);
			if (!r)
				ret->v[ret->n++] = (struct native_frame) {
					.name = id,
					.what.is = what_is(name),
					.what.function = name->function ? name->function + bias : 0,
				};
		}
	}
	return r;
}

uint64_t native_names_age(struct native *n, struct native_process *p)
{
	if (!p)
		return 0;
	read_perf_map(p);
	return p->code + native_names_version(n->names);
}

bool native_makes_tail_call(void *arg, uint64_t function, uint64_t other)
{
	const struct native_process *p = arg;

	return p && p->map && tail_calls_lead(&p->native->tail_calls, p->map, function, other);
}

const struct native_name *native_frame_name(const struct native *n, uint32_t name)
{
	return native_names_get(n->names, name);
}

struct merge_ruby native_merge_ruby(enum frame_kind kind, const struct frame_origin *origin)
{
	return (struct merge_ruby) { .function = origin->function,
				     .finish = origin->finish,
				     .is_cut = kind == FRAME_TRUNCATED,
				     .is_fiber = kind == FRAME_FIBER };
}

static int record_frame(struct sink *out, const struct native_name *name, bool internal,
			uint32_t *ret)
{
	struct profile_frame def = { .kind = name->kind,
				     .module = PROFILE_NONE,
				     .address = name->address,
				     .line = name->line,
				     .reason = name->reason,
				     .flags = (internal ? FRAME_INTERNAL : 0) |
					      (name->outer != NATIVE_NONE ? FRAME_INLINED : 0) };
	struct profile_module module;
	int r;

	r = sink_string(out, name->name, strlen(name->name), &def.name);
	if (!r)
		r = sink_string(out, name->source, strlen(name->source), &def.file);
	if (!r && name->module[0]) {
		r = sink_string(out, name->module, strlen(name->module), &module.path);
		if (!r)
			r = sink_string(out, name->build_id, strlen(name->build_id),
					&module.build_id);
		if (!r)
			r = sink_module(out, &module, &def.module);
	}
	return r ? r : sink_frame(out, &def, ret);
}

void native_forget_ids(struct native *n)
{
	if (n->cap_recorded)
		memset(n->recorded, 0, n->cap_recorded * sizeof(*n->recorded));
}

int native_frame_id(struct native *n, struct sink *out, uint32_t name, bool internal, uint32_t *ret)
{
	const size_t at = name - native_names_first(n->names);
	uint32_t *id;
	int r;

	r = array_reserve(n->recorded, n->cap_recorded, at + 1);
	if (r)
		return r;
	id = &n->recorded[at].frame[internal];
	if (!*id) {
		r = record_frame(out, native_names_get(n->names, name), internal, ret);
		if (r)
			return r;
		*id = *ret + 1;
	}
	*ret = *id - 1;
	return 0;
}
