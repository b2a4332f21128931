/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/session.h"

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
#include "sample/clock_events.h"
#include "sample/unwind_tables.h"

/*
 * Room for native stacks: 8 MiB for the tables of what is executed, which a process of 110,000 rows
 * takes 0.44 MB of, and ranges of code for some hundred processes with as many libraries as Rails has.
 */
#define POOL_CHUNKS	((8u << 20) / (RBPF_POOL_CHUNK * sizeof(uint32_t)))
#define MAX_RANGES	32768u

#define TASKS_MAX_BYTES (16u << 20) /* of one list: some 400,000 threads, 50,000 with registers */

struct session {
	struct session_options opts;
	struct rbpf_bpf *skel;
	struct ring_buffer *ring;
	int stats_fd; /* keeps the kernel's BPF statistics on */
	struct unwind_memory unwind;
	struct clock_events clocks;
	uint64_t drain_until; /* CLOCK_MONOTONIC: session_drain() goes on so long */
	bool more;	      /* … and has left records */
};

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

void session_set_log(void (*log)(const char *line))
{
	log_line = log;
}

static int refused(int r, const char *what, struct err *err)
{
	err_set(err, r, ERR_ENV, "the kernel refused to %s: %s", what, strerror(-r));
	return err_hint(err, "'rbpf doctor' shows what is missing; -v shows what libbpf says");
}

static int size_maps(struct session *s)
{
	int cpus = libbpf_num_possible_cpus(), r;

	r = bpf_map__set_max_entries(s->skel->maps.scratch, cpus > 0 ? (uint32_t)cpus : 1);
	if (!r)
		r = bpf_map__set_max_entries(s->skel->maps.ring, (uint32_t)s->opts.ring_bytes);
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

static int map_unwind_memory(struct session *s)
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

static int load(struct session *s, struct err *err)
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
	r = size_maps(s);
	if (!r)
		r = rbpf_bpf__load(s->skel);
	if (r)
		return refused(r, "load the BPF programs", err);
	r = map_unwind_memory(s);
	if (r)
		return refused(r, "map the tables of native stacks", err);
	s->clocks.program = s->skel->progs.tick;
	s->skel->links.on_fork = bpf_program__attach(s->skel->progs.on_fork);
	s->skel->links.on_exec = bpf_program__attach(s->skel->progs.on_exec);
	s->skel->links.on_exit = bpf_program__attach(s->skel->progs.on_exit);
	s->skel->links.on_free = bpf_program__attach(s->skel->progs.on_free);
	if (!s->skel->links.on_fork || !s->skel->links.on_exec || !s->skel->links.on_exit ||
	    !s->skel->links.on_free)
		return refused(-errno, "attach to process events", err);
	s->skel->links.tasks = bpf_program__attach(s->skel->progs.tasks);
	s->skel->links.registers = bpf_program__attach(s->skel->progs.registers);
	if (!s->skel->links.tasks || !s->skel->links.registers)
		return refused(-errno, "iterate over tasks", err);
	return 0;
}

static int take_record(void *arg, void *data, size_t len)
{
	struct session *s = arg;
	int r = s->opts.on_record(s->opts.arg, data, len);

	if (r)
		return r;
	s->more = clock_ns(CLOCK_MONOTONIC) >= s->drain_until;
	return s->more ? -EAGAIN : 0;
}

int session_open(const struct session_options *opts, struct session **ret, struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_oom(err);
	s->opts = *opts;
	s->clocks.frequency = opts->frequency;
	s->clocks.inherit_children = opts->follow;
	s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	r = load(s, err);
	if (!r) {
		s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), take_record, s, NULL);
		if (!s->ring)
			r = refused(-errno, "map the ring buffer", err);
	}
	if (r) {
		session_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void session_close(struct session *s)
{
	if (!s)
		return;
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

int session_follow(struct session *s, pid_t tgid, const struct rbpf_layout *layout,
		   uint64_t since_ns, struct err *err)
{
	struct rbpf_proc proc = { .layout.tls_model = RBPF_TLS_NONE, .since = since_ns };
	uint32_t key = (uint32_t)tgid;

	if (layout)
		proc.layout = *layout;
	if (!bpf_map__update_elem(s->skel->maps.procs, &key, sizeof(key), &proc, sizeof(proc),
				  BPF_ANY))
		return 0;
	if (errno == E2BIG)
		return err_set(err, -errno, ERR_RUNTIME,
			       "cannot follow pid %d: %d processes are followed already", (int)tgid,
			       RBPF_MAX_PROCS);
	return err_set(err, -errno, ERR_RUNTIME, "cannot follow pid %d: %s", (int)tgid,
		       strerror(errno));
}

void session_unfollow(struct session *s, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid;

	bpf_map__delete_elem(s->skel->maps.procs, &key, sizeof(key), 0);
}

/* What is left of a layout if nothing of it is an address. Returns whether that will do. */
static bool without_addresses(const struct rbpf_layout *layout, struct rbpf_layout *ret)
{
	/* ZJIT's frames cannot be told from others without an address. */
	if (layout->tls_model == RBPF_TLS_NONE || layout->tls_model == RBPF_TLS_GLOBAL ||
	    layout->zjit_entry)
		return false;
	*ret = *layout;
	ret->text_lo = ret->text_hi = 0;
	ret->gc_flags = ret->gc_count = ret->gc_owner = 0;
	ret->naming.symbols = ret->naming.shapes = 0;
	return true;
}

void session_preset(struct session *s, const struct rbpf_preset_key *key,
		    const struct rbpf_layout *layout)
{
	struct rbpf_layout preset;

	/* A full map costs the next process of that file its first ticks, no more. */
	if (key->exe.inode && without_addresses(layout, &preset))
		bpf_map__update_elem(s->skel->maps.presets, key, sizeof(*key), &preset,
				     sizeof(preset), BPF_ANY);
}

void session_unwind_memory(const struct session *s, struct unwind_memory *ret)
{
	*ret = s->unwind;
}

void session_set_code(struct session *s, pid_t tgid, const struct rbpf_code *code)
{
	uint32_t key = (uint32_t)tgid;

	/* A full map costs the process its native stacks, and that is counted. */
	if (code)
		bpf_map__update_elem(s->skel->maps.code, &key, sizeof(key), code, sizeof(*code),
				     BPF_ANY);
	else
		bpf_map__delete_elem(s->skel->maps.code, &key, sizeof(key), 0);
}

int session_add_thread(struct session *s, pid_t tid, struct err *err)
{
	return clock_events_add_thread(&s->clocks, tid, err);
}

int session_set_cpus(struct session *s, const struct cpus *cpus, struct err *err)
{
	return clock_events_set_cpus(&s->clocks, cpus, err);
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
static int iterate(struct session *s, const struct bpf_link *link, pid_t tgid, struct buf *out,
		   struct err *err)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(link));
	int r;

	s->skel->bss->wanted_tgid = (uint32_t)tgid;
	if (fd < 0)
		return refused(-errno, "iterate over tasks", err);
	r = read_some(fd, TASKS_MAX_BYTES, out);
	if (r)
		return err_set(err, r, ERR_RUNTIME, "cannot read the task list: %s", strerror(-r));
	return 0;
}

int session_tasks(struct session *s, pid_t tgid, struct rbpf_task **ret, size_t *n, struct err *err)
{
	struct buf out _cleanup_buf_ = BUF_INIT;
	int r;

	r = iterate(s, s->skel->links.tasks, tgid, &out, err);
	if (r)
		return r;
	*n = out.len / sizeof(**ret);
	*ret = (struct rbpf_task *)take_ptr(out.data);
	return 0;
}

int session_threads(struct session *s, pid_t tgid, struct rbpf_thread **ret, size_t *n,
		    struct err *err)
{
	struct buf out _cleanup_buf_ = BUF_INIT;
	int r;

	r = iterate(s, s->skel->links.registers, tgid, &out, err);
	if (r)
		return r;
	*n = out.len / sizeof(**ret);
	*ret = (struct rbpf_thread *)take_ptr(out.data);
	return 0;
}

int session_fd(const struct session *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int session_drain(struct session *s)
{
	int n;

	s->more = false;
	s->drain_until = clock_ns(CLOCK_MONOTONIC) + SESSION_DRAIN_NS;
	n = ring_buffer__consume(s->ring);
	return s->more ? 1 : n < 0 ? n : 0;
}

void session_stop(struct session *s)
{
	clock_events_stop(&s->clocks);
}

uint64_t session_cpu_ns(const struct session *s)
{
	return clock_events_cpu_ns(&s->clocks);
}

void session_counters(const struct session *s, uint64_t *ret)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	_cleanup_free_ uint64_t *values = NULL;
	uint32_t key;

	memset(ret, 0, RBPF_COUNTERS * sizeof(*ret));
	values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;
	for (key = 0; values && key < RBPF_COUNTERS; key++) {
		if (bpf_map__lookup_elem(s->skel->maps.counters, &key, sizeof(key), values,
					 (size_t)cpus * sizeof(*values), 0))
			continue;
		for (cpu = 0; cpu < cpus; cpu++)
			ret[key] += values[cpu];
	}
}

void session_cost(const struct session *s, uint64_t *runs, uint64_t *ns)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	*runs = *ns = 0;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(s->skel->progs.tick), &info, &len))
		return;
	*runs = info.run_cnt;
	*ns = info.run_time_ns;
}

static int trial_record(void *arg, const void *data, size_t len)
{
	const struct rbpf_rec_hdr *h = data;

	if (len >= sizeof(*h) && h->type == RBPF_REC_SAMPLE)
		(*(unsigned int *)arg)++;
	return 0;
}

static int ignore_record(void *arg, const void *data, size_t len)
{
	(void)arg;
	(void)data;
	(void)len;
	return 0;
}

int session_open_idle(pid_t pid, struct session **ret, struct err *err)
{
	struct session_options opts = { .frequency = 1,
					.max_frames = RBPF_MIN_FRAMES,
					.ring_bytes = 64 << 10,
					.follow = true,
					.on_record = ignore_record };
	struct session *s;
	int r;

	r = session_open(&opts, &s, err);
	if (r)
		return r;
	r = session_follow(s, pid, NULL, 0, err);
	if (r)
		session_close(s);
	else
		*ret = s;
	return r;
}

int session_list_threads(pid_t pid, struct rbpf_task **ret, size_t *n, struct err *err)
{
	struct session *s;
	int r;

	r = session_open_idle(pid, &s, err);
	if (r)
		return r;
	r = session_tasks(s, pid, ret, n, err);
	session_close(s);
	return r;
}

int session_trial(struct err *err)
{
	unsigned int samples = 0;
	struct session_options opts = {
		.frequency = 1000,
		.max_frames = RBPF_MIN_FRAMES,
		.ring_bytes = 64 << 10,
		.follow = true,
		.on_record = trial_record,
		.arg = &samples,
	};
	struct session *s;
	uint64_t until;
	int r;

	r = session_open(&opts, &s, err);
	if (r)
		return r;
	r = session_follow(s, getpid(), NULL, 0, err);
	if (!r)
		r = session_add_thread(s, getpid(), err);
	until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 50 * NSEC_PER_MSEC;
	while (!r && clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
	while (!r && (r = session_drain(s)) > 0)
		r = 0;
	if (!r && !samples)
		r = err_set(err, -EIO, ERR_ENV, "no sample came of 50 ms of CPU time");
	session_close(s);
	return r;
}
