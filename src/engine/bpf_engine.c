/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/bpf_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "rbpf.skel.h"
#include "engine/bpf_object.h"
#include "engine/clock_events.h"
#include "engine/environment.h"
#include "profile/profile.h"
#include "target/cpus.h"

#define TASKS_MAX_BYTES (16u << 20) /* of one list: some 400,000 threads, 50,000 with registers */

struct bpf_engine {
	struct engine engine;
	struct engine_options opts;
	struct rbpf_bpf *skel;
	struct ring_buffer *ring;
	bool new_known; /* know_wait() has told of some since the last take_known() */
	int stats_fd;	/* keeps the kernel's BPF statistics on */
	bool measured;	/* … all the time: not just while another process has them on */
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

/*
 * When the first clock is there: attached earlier they would send what was before the recording.
 * Those of threads that wait already begin now.
 */
static int begin_waits(struct bpf_engine *s, struct err *err)
{
	int r = engine_open_waits(&s->engine, 0, UINT64_MAX, err);

	/* And at once again, so that user space can still walk those stacks. */
	return r ? r : engine_open_waits(&s->engine, 0, 0, err);
}

static int attach_waits(struct bpf_engine *s, struct err *err)
{
	int r;

	if (!s->opts.waits || s->skel->links.on_switch)
		return 0;
	r = bpf_object_attach_waits(s->skel, err);
	if (r)
		return r;
	s->skel->bss->waits_begun = true;
	return begin_waits(s, err);
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
	int r = bpf_object_attach_life(s->skel, err);

	if (r)
		return r;
	s->clocks.program = s->skel->progs.tick;
	s->clocks.cpu_clocks = s->skel->maps.cpu_clocks;
	s->clocks.taken_over = s->skel->maps.taken_over;
	s->clocks.carried = s->skel->maps.carried;
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), handle_record, s, NULL);
	return s->ring ? 0 : bpf_object_refused(-errno, "map the ring buffer", err);
}

static void close_engine(struct engine *e)
{
	struct bpf_engine *s = of(e);

	clock_events_deinit(&s->clocks);
	ring_buffer__free(s->ring);
	if (s->skel)
		bpf_object_unmap_unwind(s->skel, &s->unwind);
	rbpf_bpf__destroy(s->skel);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	free(s);
}

/* @flags: BPF_NOEXIST leaves alone what is there, BPF_EXIST what is not. */
static int put_proc(struct bpf_engine *s, uint32_t tgid, const struct rbpf_proc *proc,
		    uint64_t flags, struct err *err)
{
	if (!bpf_map__update_elem(s->skel->maps.procs, &tgid, sizeof(tgid), proc, sizeof(*proc),
				  flags) ||
	    (errno == EEXIST && flags == BPF_NOEXIST) || (errno == ENOENT && flags == BPF_EXIST))
		return 0;
	if (errno == E2BIG)
		return err_set(err, -errno, ERR_RUNTIME,
			       "cannot follow pid %d: rbpf already follows %d processes, "
			       "the most that it can",
			       (int)tgid, RBPF_MAX_PROCS);
	return err_set(err, -errno, ERR_RUNTIME, "cannot follow pid %d: %s", (int)tgid,
		       strerror(errno));
}

static int follow(struct engine *e, pid_t tgid, const struct rbpf_layout *layout, uint64_t since_ns,
		  struct err *err)
{
	struct bpf_engine *s = of(e);
	struct rbpf_proc proc = { .layout.tls.model = RBPF_TLS_NONE, .since = since_ns }, known;
	uint32_t key = (uint32_t)tgid;

	if (!bpf_map__lookup_elem(s->skel->maps.procs, &key, sizeof(key), &known, sizeof(known), 0))
		proc.clocked = known.clocked;
	if (layout)
		proc.layout = *layout;
	/* One that has ended meanwhile would stay there for ever, and be another one some day. */
	return put_proc(s, key, &proc, layout ? BPF_EXIST : BPF_ANY, err);
}

static int follow_again(struct engine *e, pid_t tgid, uint64_t since_ns, struct err *err)
{
	const struct rbpf_proc proc = { .layout.tls.model = RBPF_TLS_NONE, .since = since_ns };

	return put_proc(of(e), (uint32_t)tgid, &proc, BPF_NOEXIST, err);
}

/* A child is in all three, if its parent is: on_new(). */
static void forget(struct engine *e, pid_t tgid)
{
	struct bpf_engine *s = of(e);
	uint32_t key = (uint32_t)tgid;

	bpf_map__delete_elem(s->skel->maps.procs, &key, sizeof(key), 0);
	bpf_map__delete_elem(s->skel->maps.code, &key, sizeof(key), 0);
	bpf_map__delete_elem(s->skel->maps.request_filters, &key, sizeof(key), 0);
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

static void set_clocked(struct engine *e, pid_t tgid, uint64_t before_ns)
{
	const struct bpf_map *map = of(e)->skel->maps.procs;
	uint32_t key = (uint32_t)tgid;
	struct rbpf_proc proc;

	if (bpf_map__lookup_elem(map, &key, sizeof(key), &proc, sizeof(proc), 0))
		return;
	proc.clocked = before_ns;
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
	return clock_events_add_thread(&of(e)->clocks, tid, err);
}

static void remove_thread(struct engine *e, int clock)
{
	clock_events_remove_thread(&of(e)->clocks, clock);
}

static int set_cpus(struct engine *e, const struct cpus *cpus, struct err *err)
{
	int r;

	of(e)->skel->bss->cpus_have_clocks = cpus->n > 0;
	r = clock_events_set_cpus(&of(e)->clocks, cpus, err);
	return r ? r : attach_waits(of(e), err);
}

static void redraw(struct engine *e)
{
	clock_events_redraw(&of(e)->clocks);
}

static void set_divisor(struct engine *e, uint32_t divisor)
{
	of(e)->skel->bss->any_carried = true;
	of(e)->skel->bss->clock_divisor = divisor;
	clock_events_set_divisor(&of(e)->clocks, divisor);
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
		return bpf_object_refused(-errno, "iterate over tasks", err);
	r = read_some(fd, TASKS_MAX_BYTES, out);
	if (r)
		return err_set(err, r, ERR_RUNTIME, "cannot read the task list: %s", strerror(-r));
	return 0;
}

static int open_waits(struct engine *e, pid_t tgid, uint64_t least_ns, struct err *err)
{
	struct bpf_engine *s = of(e);
	struct buf out _cleanup_buf_ = BUF_INIT;

	if (!s->skel->links.open_waits)
		return 0;
	s->skel->bss->open_wait_ns = least_ns;
	return iterate(s, s->skel->links.open_waits, tgid, &out, err);
}

/* Have those taken up of which know_wait() has told. */
static void take_known(struct bpf_engine *s)
{
	struct buf out _cleanup_buf_ = BUF_INIT;
	struct err err = { 0 };

	s->skel->bss->only_take_known = true;
	iterate(s, s->skel->links.open_waits, 0, &out, &err);
	s->skel->bss->only_take_known = false;
	s->new_known = false;
}

static void know_wait(struct engine *e, pid_t tid, const struct rbpf_known_wait *known)
{
	struct bpf_engine *s = of(e);
	uint32_t key = (uint32_t)tid;

	if (bpf_map__update_elem(s->skel->maps.known_waits, &key, sizeof(key), known,
				 sizeof(*known), BPF_ANY) ||
	    !known->mutex)
		return;
	s->skel->bss->any_known = true;
	s->new_known = true;
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
	if (s->new_known)
		take_known(s);
	return s->more ? 1 : n < 0 ? n : 0;
}

/* What waits at the end is sent as far as it has come. */
static void stop(struct engine *e)
{
	struct err err = { 0 };

	clock_events_stop(&of(e)->clocks);
	open_waits(e, 0, 0, &err);
	bpf_object_detach_waits(of(e)->skel);
}

/* What the kernel says of @program; all 0 of one that is not loaded. */
static struct bpf_prog_info info_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len))
		return (struct bpf_prog_info) { 0 };
	return info;
}

/* How often the kernel should have run @program and did not, as it tells since Linux 5.12. */
static uint64_t misses_of(const struct bpf_program *program)
{
	return info_of(program).recursion_misses;
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
	ret[RBPF_CNT_MISSED_EXEC] = misses_of(s->skel->progs.on_exec);
	ret[RBPF_CNT_MISSED_EXIT] = misses_of(s->skel->progs.on_exit);
}

/* By the kernel's statistics. */
static struct engine_runs runs_of(const struct bpf_program *program)
{
	const struct bpf_prog_info info = info_of(program);

	return (struct engine_runs) { .n = info.run_cnt, .ns = info.run_time_ns };
}

static void cost(const struct engine *e, struct engine_cost *ret)
{
	const struct bpf_engine *s = const_of(e);
	struct bpf_program *program = NULL;

	if (!s->measured)
		return;
	ret->ticks = runs_of(s->skel->progs.tick);
	ret->switches = runs_of(s->skel->progs.on_switch);
	/* Each wake-up is told twice: when its CPU is told, and when that has noticed. */
	ret->wakeups = runs_of(s->skel->progs.on_waking);
	ret->wakeups.ns += runs_of(s->skel->progs.on_wakeup).ns;
	/* Iterators run where rbpf reads them: that is its own CPU time. */
	while ((program = bpf_object__next_program(s->skel->obj, program)))
		if (bpf_program__expected_attach_type(program) != BPF_TRACE_ITER)
			ret->all_ns += runs_of(program).ns;
}

static const struct engine_ops bpf_ops = {
	.name = "BPF",
	.close = close_engine,
	.follow = follow,
	.follow_again = follow_again,
	.forget = forget,
	.events = events,
	.add_thread = add_thread,
	.remove_thread = remove_thread,
	.set_clocked = set_clocked,
	.redraw = redraw,
	.set_divisor = set_divisor,
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
	.know_wait = know_wait,
	.set_code = set_code,
	.set_request = set_request,
	.set_request_filter = set_request_filter,
	.set_thread_context = set_thread_context,
	.unwind_memory = unwind_memory,
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
	s->clocks.divisor = 1;
	s->stats_fd = opts->frequency ? bpf_enable_stats(BPF_STATS_RUN_TIME) : -1;
	s->measured = s->stats_fd >= 0 || (opts->frequency && environment_measures_bpf());
	libbpf_set_print(print_libbpf);
	r = bpf_object_load(opts, &s->skel, err);
	if (!r && opts->native)
		r = bpf_object_map_unwind(s->skel, &s->unwind, err);
	if (!r)
		r = bpf_object_attach_iterators(s->skel, err);
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

int bpf_engine_trial(bool waits, struct err *err)
{
	const struct engine_options opts = {
		.frequency = 1000,
		.max_frames = RBPF_MIN_FRAMES,
		.ring_bytes = ENGINE_RING_BYTES,
		.follow = true,
		.native = true,
		.waits = waits,
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
	r = r > 0 ? 0 : r;
	/* It leaves it to its caller to say what it may go on without. */
	if (r && !err->code)
		err_set(err, r, ERR_ENV, "cannot attach to a clock: %s", strerror(-r));
	if (!r)
		engine_set_clocked(e, getpid(), clock_ns(CLOCK_MONOTONIC));
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
