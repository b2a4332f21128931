/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/bpf_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "rbpf.skel.h"
#include "engine/clock_events.h"
#include "engine/preempt_count.h"
#include "profile/profile.h"

/*
 * Room for native stacks: 8 MiB for the tables of what is executed, which a process of 110,000 rows
 * takes 0.44 MB of, and ranges of code for some hundred processes with as many libraries as Rails
 * has.
 */
#define POOL_CHUNKS	((8u << 20) / (RBPF_POOL_CHUNK * sizeof(uint32_t)))
#define MAX_RANGES	32768u

#define OPEN_WAIT_NS	(NSEC_PER_SEC / 2) /* shorter waits are not sent before they end */
#define MAX_WAITS	32768u		   /* threads that have been off the CPU and live */
/* GVLs and Mutexes, and who holds those: what is beyond is forgotten, least recently used first. */
#define MAX_GVLS	16384u

#define TASKS_MAX_BYTES (16u << 20) /* of one list: some 400,000 threads, 50,000 with registers */

struct bpf_engine {
	struct engine engine;
	struct engine_options opts;
	struct rbpf_bpf *skel;
	struct ring_buffer *ring;
	int stats_fd; /* keeps the kernel's BPF statistics on */
	struct unwind_memory unwind;
	struct clock_events clocks;
	/* While engine_drain() runs: */
	engine_record_fn *handle;
	void *handle_arg;
	uint64_t drain_until; /* CLOCK_MONOTONIC: it goes on so long … */
	bool more;	      /* … and has left records */
};

static struct bpf_engine *of(struct engine *e)
{
	return (struct bpf_engine *)e;
}

static const struct bpf_engine *const_of(const struct engine *e)
{
	return (const struct bpf_engine *)e;
}

static void (*log_line)(const char *line);

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	if (!log_line || level == LIBBPF_DEBUG)
		return 0;
	buf_vaddf(&text, fmt, ap);
	while (text.len && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	log_line(buf_str(&text));
	return 0;
}

void bpf_engine_set_log(void (*log)(const char *line))
{
	log_line = log;
}

static int refused(int r, const char *what, struct err *err)
{
	err_set(err, r, ERR_ENV, "cannot %s: %s", what, strerror(-r));
	err_hint(err, "'rbpf doctor' shows what is missing; -v shows what libbpf says");
	return r;
}

static int size_maps(struct bpf_engine *s)
{
	/* The last context that has programs is the interrupt of a clock, which is the first. */
	const uint32_t contexts = 1;
	int cpus = libbpf_num_possible_cpus(), r;

	s->skel->rodata->n_cpus = cpus > 0 ? (uint32_t)cpus : 1;
	r = bpf_map__set_max_entries(s->skel->maps.scratch, contexts * s->skel->rodata->n_cpus);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.ring, (uint32_t)s->opts.ring_bytes);
	if (!r && s->opts.waits)
		r = bpf_map__set_max_entries(s->skel->maps.waits, MAX_WAITS);
	if (!r && s->opts.waits)
		r = bpf_map__set_max_entries(s->skel->maps.gvls, MAX_GVLS);
	if (!r && s->opts.waits)
		r = bpf_map__set_max_entries(s->skel->maps.lock_holders, MAX_GVLS);
	if (r || !s->opts.native)
		return r;
	r = bpf_map__set_max_entries(s->skel->maps.pool, POOL_CHUNKS);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.rules, RBPF_CFI_MAX_RULES);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.ranges, MAX_RANGES);
	return r;
}

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

static int map_unwind_memory(struct bpf_engine *s)
{
	struct unwind_memory *m = &s->unwind;

	if (!s->opts.native)
		return 0;
	m->words = map_memory(s->skel->maps.pool);
	m->n_words = (size_t)POOL_CHUNKS * RBPF_POOL_CHUNK;
	m->rules = map_memory(s->skel->maps.rules);
	m->n_rules = RBPF_CFI_MAX_RULES;
	m->ranges = map_memory(s->skel->maps.ranges);
	m->n_ranges = MAX_RANGES;
	return m->words && m->rules && m->ranges ? 0 : -ENOMEM;
}

/*
 * Of an engine that samples nothing only the iterators are needed: checking tick takes the kernel
 * longest.
 */
static void leave_out_sampling(struct rbpf_bpf *skel)
{
	bpf_program__set_autoload(skel->progs.tick, false);
	bpf_program__set_autoload(skel->progs.empty, false);
	bpf_program__set_autoload(skel->progs.on_fork, false);
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

static int load(struct bpf_engine *s, struct err *err)
{
	int r;

	libbpf_set_print(print_libbpf);
	s->skel = rbpf_bpf__open();
	if (!s->skel)
		return refused(-errno, "open the BPF object", err);
	s->skel->rodata->max_frames = s->opts.max_frames;
	s->skel->rodata->follow_children = s->opts.follow;
	s->skel->rodata->system_wide = s->opts.system_wide;
	s->skel->rodata->native_stacks = s->opts.native;
	s->skel->rodata->kernel_stacks = s->opts.kernel;
	s->skel->rodata->waits_too = s->opts.waits;
	s->skel->rodata->wakers = s->opts.wakers;
	s->skel->rodata->preempt_count_from_rq = s->opts.wakers ? preempt_count_from_rq() : 0;
	s->skel->bss->open_wait_ns = OPEN_WAIT_NS;
	if (!s->opts.frequency)
		leave_out_sampling(s->skel);
	if (!s->opts.waits)
		leave_out_waits(s->skel);
	r = size_maps(s);
	if (!r)
		r = rbpf_bpf__load(s->skel);
	if (r)
		return refused(r, "load the BPF programs", err);
	r = map_unwind_memory(s);
	return r ? refused(r, "map the unwind tables", err) : 0;
}

static int attach_iterators(struct bpf_engine *s, struct err *err)
{
	s->skel->links.tasks = bpf_program__attach(s->skel->progs.tasks);
	s->skel->links.registers = bpf_program__attach(s->skel->progs.registers);
	if (!s->skel->links.tasks || !s->skel->links.registers)
		return refused(-errno, "attach the iterators over tasks", err);
	return 0;
}

static int attach_life(struct bpf_engine *s, struct err *err)
{
	s->skel->links.on_fork = bpf_program__attach(s->skel->progs.on_fork);
	s->skel->links.on_exec = bpf_program__attach(s->skel->progs.on_exec);
	s->skel->links.on_exit = bpf_program__attach(s->skel->progs.on_exit);
	s->skel->links.on_free = bpf_program__attach(s->skel->progs.on_free);
	if (!s->skel->links.on_fork || !s->skel->links.on_exec || !s->skel->links.on_exit ||
	    !s->skel->links.on_free)
		return refused(-errno, "attach to forks, execs and exits", err);
	return 0;
}

/*
 * When the first clock is there: attached earlier they would send what was before the recording.
 * Those of threads that wait already begin now.
 */
static int begin_waits(struct bpf_engine *s, struct err *err)
{
	int r = engine_open_waits(&s->engine, err);

	/* And at once again, so that user space can still walk those stacks. */
	s->skel->bss->open_wait_ns = 0;
	if (!r)
		r = engine_open_waits(&s->engine, err);
	s->skel->bss->open_wait_ns = OPEN_WAIT_NS;
	return r;
}

static int attach_waits(struct bpf_engine *s, struct err *err)
{
	if (!s->opts.waits || s->skel->links.on_switch)
		return 0;
	s->skel->links.on_switch = bpf_program__attach(s->skel->progs.on_switch);
	s->skel->links.on_waking = bpf_program__attach(s->skel->progs.on_waking);
	s->skel->links.on_wakeup = bpf_program__attach(s->skel->progs.on_wakeup);
	s->skel->links.open_waits = bpf_program__attach(s->skel->progs.open_waits);
	if (!s->skel->links.on_switch || !s->skel->links.on_waking || !s->skel->links.on_wakeup ||
	    !s->skel->links.open_waits)
		return refused(-errno, "attach to switches and wake-ups of threads", err);
	return begin_waits(s, err);
}

static void detach_waits(struct bpf_engine *s)
{
	bpf_link__destroy(s->skel->links.on_switch);
	bpf_link__destroy(s->skel->links.on_waking);
	bpf_link__destroy(s->skel->links.on_wakeup);
	s->skel->links.on_switch = s->skel->links.on_waking = s->skel->links.on_wakeup = NULL;
}

static int handle_record(void *arg, void *data, size_t len)
{
	struct bpf_engine *s = arg;
	int r = s->handle(s->handle_arg, data, len);

	if (r)
		return r;
	s->more = clock_ns(CLOCK_MONOTONIC) >= s->drain_until;
	return s->more ? -EAGAIN : 0;
}

/* Begin to sample: programs and the buffer of their records. */
static int begin_sampling(struct bpf_engine *s, struct err *err)
{
	int r = attach_life(s, err);

	if (r)
		return r;
	s->clocks.program = s->skel->progs.tick;
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), handle_record, s, NULL);
	return s->ring ? 0 : refused(-errno, "map the ring buffer", err);
}

static void close_engine(struct engine *e)
{
	struct bpf_engine *s = of(e);

	clock_events_deinit(&s->clocks);
	ring_buffer__free(s->ring);
	if (s->skel) {
		unmap_memory(s->skel->maps.pool, s->unwind.words);
		unmap_memory(s->skel->maps.rules, s->unwind.rules);
		unmap_memory(s->skel->maps.ranges, s->unwind.ranges);
	}
	rbpf_bpf__destroy(s->skel);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	free(s);
}

static int follow(struct engine *e, pid_t tgid, const struct rbpf_layout *layout, uint64_t since_ns,
		  struct err *err)
{
	struct bpf_engine *s = of(e);
	struct rbpf_proc proc = { .layout.tls.model = RBPF_TLS_NONE, .since = since_ns };
	uint32_t key = (uint32_t)tgid;

	if (layout)
		proc.layout = *layout;
	if (!bpf_map__update_elem(s->skel->maps.procs, &key, sizeof(key), &proc, sizeof(proc),
				  BPF_ANY))
		return 0;
	if (errno == E2BIG)
		return err_set(err, -errno, ERR_RUNTIME,
			       "cannot follow pid %d: rbpf already follows %d processes, "
			       "the most that it can",
			       (int)tgid, RBPF_MAX_PROCS);
	return err_set(err, -errno, ERR_RUNTIME, "cannot follow pid %d: %s", (int)tgid,
		       strerror(errno));
}

static void forget(struct engine *e, pid_t tgid)
{
	struct bpf_engine *s = of(e);
	uint32_t key = (uint32_t)tgid;

	bpf_map__delete_elem(s->skel->maps.procs, &key, sizeof(key), 0);
}

static uint32_t events(const struct engine *e, struct profile_event *ret)
{
	const uint32_t frequency = const_of(e)->opts.frequency;

	if (!frequency)
		return 0;
	ret[RBPF_EVENT_CPU] = (struct profile_event) { .name = EVENT_CPU,
						       .unit = UNIT_NS,
						       .period = NSEC_PER_SEC / frequency };
	if (!const_of(e)->opts.waits)
		return RBPF_EVENT_CPU + 1;
	ret[RBPF_EVENT_WAIT] = (struct profile_event) { .name = EVENT_WAIT, .unit = UNIT_NS };
	ret[RBPF_EVENT_GVL] = (struct profile_event) { .name = EVENT_GVL, .unit = UNIT_NS };
	ret[RBPF_EVENT_LOCK] = (struct profile_event) { .name = EVENT_LOCK, .unit = UNIT_NS };
	if (!const_of(e)->opts.wakers)
		return RBPF_EVENT_LOCK + 1;
	ret[RBPF_EVENT_WAKEUP] = (struct profile_event) { .name = EVENT_WAKEUP, .unit = UNIT_NS };
	return RBPF_EVENTS;
}

static void keep_preset(struct engine *e, const struct rbpf_preset_key *key,
			const struct rbpf_layout *layout)
{
	struct bpf_engine *s = of(e);

	/* A full map costs the next process of that file its first ticks, no more. */
	if (key->exe.inode)
		bpf_map__update_elem(s->skel->maps.presets, key, sizeof(*key), layout,
				     sizeof(*layout), BPF_ANY);
}

/* What the BPF programs remember of stacks is kept by fingerprints, of which this is a part. */
static void forget_stacks(struct engine *e)
{
	of(e)->skel->bss->forgotten++;
}

/* One that another has taken the slot of is defined again, too. */
static void forget_stack(struct engine *e, uint64_t stack)
{
	const uint32_t slot = stack & (RBPF_SENT_SLOTS - 1);
	const uint64_t none = 0;

	bpf_map__update_elem(of(e)->skel->maps.sent, &slot, sizeof(slot), &none, sizeof(none),
			     BPF_ANY);
}

static void copy_names(struct engine *e, pid_t tgid, uint64_t until_ns)
{
	of(e)->skel->bss->copy_until[(uint32_t)tgid & (RBPF_COPY_SLOTS - 1)] = until_ns;
}

static void unwind_memory(const struct engine *e, struct unwind_memory *ret)
{
	*ret = const_of(e)->unwind;
}

static void set_code(struct engine *e, pid_t tgid, const struct rbpf_code *code)
{
	struct bpf_engine *s = of(e);
	uint32_t key = (uint32_t)tgid;

	/* A full map costs the process its native stacks, and that is counted. */
	if (code)
		bpf_map__update_elem(s->skel->maps.code, &key, sizeof(key), code, sizeof(*code),
				     BPF_ANY);
	else
		bpf_map__delete_elem(s->skel->maps.code, &key, sizeof(key), 0);
}

/* A full map costs the requests of that frame their names. */
static void set_request(struct engine *e, pid_t tgid, uint64_t iseq,
			const struct rbpf_request_rule *rule)
{
	const struct rbpf_request_key key = { .iseq = iseq, .tgid = (uint32_t)tgid };
	const struct bpf_map *map = of(e)->skel->maps.request_rules;

	if (rule)
		bpf_map__update_elem(map, &key, sizeof(key), rule, sizeof(*rule), BPF_ANY);
	else
		bpf_map__delete_elem(map, &key, sizeof(key), 0);
}

static void set_thread_context(struct engine *e, pid_t tgid, const struct rbpf_tls *variable)
{
	const struct bpf_map *map = of(e)->skel->maps.procs;
	uint32_t key = (uint32_t)tgid;
	struct rbpf_proc proc;

	if (bpf_map__lookup_elem(map, &key, sizeof(key), &proc, sizeof(proc), 0))
		return;
	proc.context = *variable;
	bpf_map__update_elem(map, &key, sizeof(key), &proc, sizeof(proc), BPF_EXIST);
}

static void set_request_filter(struct engine *e, pid_t tgid,
			       const struct rbpf_request_filter *filter)
{
	const struct bpf_map *map = of(e)->skel->maps.request_filters;
	uint32_t key = (uint32_t)tgid;

	if (filter)
		bpf_map__update_elem(map, &key, sizeof(key), filter, sizeof(*filter), BPF_ANY);
	else
		bpf_map__delete_elem(map, &key, sizeof(key), 0);
}

static int add_thread(struct engine *e, pid_t tid, struct err *err)
{
	int r = clock_events_add_thread(&of(e)->clocks, tid, err);

	return r ? r : attach_waits(of(e), err);
}

static int set_cpus(struct engine *e, const struct cpus *cpus, struct err *err)
{
	int r = clock_events_set_cpus(&of(e)->clocks, cpus, err);

	return r ? r : attach_waits(of(e), err);
}

/* Append what can be read of @fd to @out, at most about @max bytes. Returns 0 or -errno. */
static int read_some(int fd, size_t max, struct buf *out)
{
	char chunk[16384];
	ssize_t n;

	while (out->len < max) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		buf_add(out, chunk, (size_t)n);
		if (buf_failed(out))
			return -ENOMEM;
	}
	return 0;
}

/* What the iterator @link says of process @tgid, appended to @out: TASKS_MAX_BYTES of it. */
static int iterate(struct bpf_engine *s, const struct bpf_link *link, pid_t tgid, struct buf *out,
		   struct err *err)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(link));
	int r;

	s->skel->bss->iter_tgid = (uint32_t)tgid;
	if (fd < 0)
		return refused(-errno, "iterate over tasks", err);
	r = read_some(fd, TASKS_MAX_BYTES, out);
	if (r)
		return err_set(err, r, ERR_RUNTIME, "cannot read the task list: %s", strerror(-r));
	return 0;
}

static int open_waits(struct engine *e, struct err *err)
{
	struct bpf_engine *s = of(e);
	struct buf out _cleanup_buf_ = BUF_INIT;

	return s->skel->links.open_waits ? iterate(s, s->skel->links.open_waits, 0, &out, err) : 0;
}

static int read_threads(struct engine *e, pid_t tgid, struct rbpf_task **ret, size_t *n,
			struct err *err)
{
	struct bpf_engine *s = of(e);
	struct buf out _cleanup_buf_ = BUF_INIT;
	int r;

	r = iterate(s, s->skel->links.tasks, tgid, &out, err);
	if (r)
		return r;
	*n = out.len / sizeof(**ret);
	*ret = (struct rbpf_task *)take_ptr(out.data);
	return 0;
}

static int read_registers(struct engine *e, pid_t tgid, struct rbpf_thread **ret, size_t *n,
			  struct err *err)
{
	struct bpf_engine *s = of(e);
	struct buf out _cleanup_buf_ = BUF_INIT;
	int r;

	r = iterate(s, s->skel->links.registers, tgid, &out, err);
	if (r)
		return r;
	*n = out.len / sizeof(**ret);
	*ret = (struct rbpf_thread *)take_ptr(out.data);
	return 0;
}

static int fd(const struct engine *e)
{
	return const_of(e)->ring ? ring_buffer__epoll_fd(const_of(e)->ring) : -1;
}

static int drain(struct engine *e, engine_record_fn *handle, void *arg)
{
	struct bpf_engine *s = of(e);
	int n;

	s->handle = handle;
	s->handle_arg = arg;
	s->more = false;
	s->drain_until = clock_ns(CLOCK_MONOTONIC) + ENGINE_DRAIN_NS;
	n = s->ring ? ring_buffer__consume(s->ring) : 0;
	return s->more ? 1 : n < 0 ? n : 0;
}

/* What waits at the end is sent as far as it has come. */
static void stop(struct engine *e)
{
	struct err err = { 0 };

	clock_events_stop(&of(e)->clocks);
	of(e)->skel->bss->open_wait_ns = 0;
	open_waits(e, &err);
	detach_waits(of(e));
}

static uint64_t cpu_ns(const struct engine *e)
{
	return clock_events_cpu_ns(&const_of(e)->clocks);
}

static void read_counters(const struct engine *e, uint64_t *ret)
{
	const struct bpf_engine *s = const_of(e);
	int cpus = libbpf_num_possible_cpus(), cpu;
	_cleanup_free_ uint64_t *values = NULL;
	uint32_t key;

	values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;
	for (key = 0; values && key < RBPF_COUNTERS; key++) {
		if (bpf_map__lookup_elem(s->skel->maps.counters, &key, sizeof(key), values,
					 (size_t)cpus * sizeof(*values), 0))
			continue;
		for (cpu = 0; cpu < cpus; cpu++)
			ret[key] += values[cpu];
	}
}

static void cost(const struct engine *e, uint64_t *runs, uint64_t *ns)
{
	const struct bpf_engine *s = const_of(e);
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(s->skel->progs.tick), &info, &len))
		return;
	*runs = info.run_cnt;
	*ns = info.run_time_ns;
}

static const struct engine_ops bpf_ops = {
	.name = "BPF",
	.close = close_engine,
	.follow = follow,
	.forget = forget,
	.events = events,
	.add_thread = add_thread,
	.set_cpus = set_cpus,
	.read_threads = read_threads,
	.drain = drain,
	.stop = stop,
	.fd = fd,
	.read_registers = read_registers,
	.keep_preset = keep_preset,
	.forget_stacks = forget_stacks,
	.forget_stack = forget_stack,
	.copy_names = copy_names,
	.open_waits = open_waits,
	.set_code = set_code,
	.set_request = set_request,
	.set_request_filter = set_request_filter,
	.set_thread_context = set_thread_context,
	.unwind_memory = unwind_memory,
	.cpu_ns = cpu_ns,
	.counters = read_counters,
	.cost = cost,
};

int bpf_engine_open(const struct engine_options *opts, struct engine **ret, struct err *err)
{
	struct bpf_engine *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_oom(err);
	s->engine.ops = &bpf_ops;
	s->opts = *opts;
	s->clocks.frequency = opts->frequency;
	s->clocks.inherit_children = opts->follow;
	s->stats_fd = opts->frequency ? bpf_enable_stats(BPF_STATS_RUN_TIME) : -1;
	r = load(s, err);
	if (!r)
		r = attach_iterators(s, err);
	if (!r && opts->frequency)
		r = begin_sampling(s, err);
	if (r)
		engine_close(&s->engine);
	else
		*ret = &s->engine;
	return r;
}

int bpf_engine_open_idle(struct engine **ret, struct err *err)
{
	const struct engine_options opts = { .max_frames = RBPF_MIN_FRAMES,
					     .ring_bytes = 64 << 10 };

	return bpf_engine_open(&opts, ret, err);
}

/* ---- a trial ---- */

static int count_sample(void *arg, const void *data, size_t len)
{
	const struct rbpf_ring_hdr *h = data;

	if (len >= sizeof(*h) && h->type == RBPF_RING_SAMPLE)
		(*(unsigned int *)arg)++;
	return 0;
}

int bpf_engine_trial(struct err *err)
{
	const struct engine_options opts = {
		.frequency = 1000,
		.max_frames = RBPF_MIN_FRAMES,
		.ring_bytes = 64 << 10,
		.follow = true,
	};
	unsigned int samples = 0;
	struct engine *e;
	uint64_t until;
	int r;

	r = bpf_engine_open(&opts, &e, err);
	if (r)
		return r;
	r = engine_follow(e, getpid(), NULL, 0, err);
	if (!r)
		r = engine_add_thread(e, getpid(), err);
	until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 50 * NSEC_PER_MSEC;
	while (!r && clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
	while (!r && (r = engine_drain(e, count_sample, &samples)) > 0)
		r = 0;
	if (!r && !samples)
		r = err_set(err, -EIO, ERR_ENV,
			    "the BPF programs were loaded and attached, but took "
			    "no sample in 50 ms of CPU time");
	engine_close(e);
	return r;
}
