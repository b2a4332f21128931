/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "profile/sink.h"
#include "ruby/not_found.h"
#include "ruby/vm.h"
#include "rbpf_file.h"
#include "sample/collector_state.h"
#include "sample/descendants.h"
#include "sample/forget.h"
#include "sample/titles.h"
#include "target/remote.h"
#include "engine/mmap_watch.h"
#include "native/native_stacks.h"
#include "engine/engine.h"
#include "native/unwind_tables.h"
#include "worker/file_worker.h"

#define HOUSEKEEPING	 (NSEC_PER_SEC / 2)
#define OPEN_WAITS	 (HOUSEKEEPING * 3 / 2) /* which are told with every second housekeeping */
#define OPEN_WAIT_NS	 (NSEC_PER_SEC / 2)	/* shorter waits are not sent before they end */
#define PAUSE_MS	 50
#define PAUSE_SETTLED_MS 250
#define MEMORY_CHECK	 (1u << 20) /* bytes of records, each with … */
#define RECORD_BYTES	 256	    /* … what a short one makes beside */

static void set_code(void *engine, pid_t pid, const struct rbpf_code *code)
{
	engine_set_code(engine, pid, code);
}

/* Native stacks are walked by memory that the engine has for it. */
static int new_native(struct collector *c)
{
	struct unwind_memory mem;

	engine_unwind_memory(c->engine, &mem);
	if (!c->opts.native)
		return 0;
	if (native_new(&mem, c->opts.worker, c->opts.inlines, set_code, c->engine, &c->native))
		return -ENOMEM;
	if (c->opts.memory_limit)
		native_limit_memory(c->native, c->opts.memory_limit);
	c->stacks.native = c->native;
	return 0;
}

int collector_new(const struct collector_options *opts, struct collector **ret)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	c->engine = opts->engine;
	c->files.worker = opts->worker;
	c->stacks.peers = opts->peers;
	if (new_native(c)) {
		collector_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	process_table_deinit(&c->table);
	stack_table_deinit(&c->stacks);
	request_table_deinit(&c->requests);
	ruby_cache_deinit(&c->binaries);
	ruby_files_deinit(&c->files);
	users_deinit(&c->users);
	intern_deinit(&c->presets);
	free(c->deferred);
	mmap_watch_close(c->mmaps);
	clocks_deinit(c);
	free(c->last_tasks);
	native_free(c->native);
	free(c);
}

int collector_fail(struct collector *c, int r, struct err *err)
{
	if (c->sink && sink_error(c->sink, err))
		return err ? err->code : r;
	if (r == -ENOMEM)
		return err_oom(err);
	if (r != -E2BIG)
		return err_set(err, r, ERR_RUNTIME, "cannot record: %s", strerror(-r));
	c->full = true;
	err_set(err, r, ERR_RUNTIME,
		"the recording is full: it has %u stacks, as many as it can have",
		RBPF_FILE_MAX_IDS);
	err_hint(err, "a lower -F, or a shorter recording (-d), needs fewer of them");
	return r;
}

int collector_add(struct collector *c, pid_t pid, bool must_be_ruby, struct err *err)
{
	struct tracked_process *p = process_table_find(&c->table, pid);
	int r;

	if (p && !p->ended_ns) /* a descendant of another one */
		r = 0;
	else
		r = life_add(c, pid, 0, false, &p, err);
	if (r)
		return r;
	r = p->vm ? 0 : find_ruby(c, p, NULL, 0, err);
	if (r == -ENOENT && must_be_ruby)
		ruby_not_found(&p->info, c->opts.worker, err);
	return (must_be_ruby || r == -ENOMEM) && r != -EAGAIN ? r : 0;
}

int collector_add_family(struct collector *c, pid_t pid, struct err *err)
{
	struct err of_descendants = { 0 };
	int r = collector_add(c, pid, true, err), descendants;

	if (r && r != -ENOENT)
		return r;
	descendants = descendants_add(c, &of_descendants);
	if (descendants) {
		*err = of_descendants;
		return descendants;
	}
	return r && descendants_have_ruby(c, pid) ? 0 : r;
}

uint64_t collector_cpu_ns(const struct collector *c)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + file_worker_cpu_ns(c->opts.worker) +
	       remote_cpu_ns();
}

int collector_start(struct collector *c, struct sink *sink, struct err *err)
{
	struct tracked_process *p;
	int r = 0;

	c->sink = sink;
	c->totals.rbpf_start_cpu_ns = collector_cpu_ns(c);
	if (cpus_times(&c->machine))
		c->machine = (struct cpus_times) { 0 };
	LIST_FOREACH(p, &c->table.list, link) {
		r = descendants_record(c, p);
		if (r)
			return collector_fail(c, r, err);
	}
	r = life_begin_account(c, 0);
	c->began_ns = clock_ns(CLOCK_MONOTONIC);
	return r ? collector_fail(c, r, err) : clocks_begin(c, err);
}

/* ---- records ---- */

static bool is_sample(uint32_t type)
{
	return type == RBPF_RING_SAMPLE || type == RBPF_RING_WAIT || type == RBPF_RING_WAKER;
}

static bool is_life(uint32_t type)
{
	return type == RBPF_RING_THREAD || type == RBPF_RING_FORK || type == RBPF_RING_EXEC ||
	       type == RBPF_RING_EXIT || type == RBPF_RING_FREE;
}

/*
 * Whether nothing but samples is taken any more: to look at processes takes as long as they make
 * it. What is left undone is counted, and samples of stacks that were to be named say [stack lost].
 */
static bool is_too_late(struct collector *c, uint32_t type)
{
	if (is_sample(type) || !stop_overdue())
		return false;
	c->totals.counters[COUNTER_TOO_LATE]++;
	return true;
}

static int take_record(struct collector *c, const struct rbpf_ring_hdr *h, size_t len)
{
	const void *data = h;

	switch (h->type) {
	case RBPF_RING_SAMPLE:
		return samples_handle_sample(c, data, len);
	case RBPF_RING_WAIT:
		return samples_handle_wait(c, data, len);
	case RBPF_RING_WAKER:
		return samples_handle_waker(c, data, len);
	case RBPF_RING_MEMORY:
		return samples_handle_memory(c, data, len);
	case RBPF_RING_STACK:
		return samples_handle_stack(c, data, len);
	case RBPF_RING_REQUEST:
		return samples_handle_request(c, data, len);
	case RBPF_RING_NATIVE:
		return samples_handle_native(c, data, len);
	case RBPF_RING_CODE_MISS:
		return samples_handle_code_miss(c, data);
	case RBPF_RING_THREAD:
		return life_handle_thread(c, data);
	case RBPF_RING_FORK:
		return life_handle_fork(c, data);
	case RBPF_RING_EXEC:
		return life_handle_exec(c, data);
	case RBPF_RING_EXIT:
		return life_handle_exit(c, data);
	case RBPF_RING_FREE:
		return life_handle_free(c, data);
	}
	return 0;
}

int collector_note_full(struct collector *c, int r, uint64_t samples)
{
	if (r != -E2BIG)
		return r;
	c->full = true;
	c->no_room += samples;
	return 0;
}

static int handle_record(void *arg, const void *data, size_t len)
{
	const struct rbpf_ring_hdr *h = data;
	struct collector *c = arg;
	int r;

	/* The first signal ends the recording, the second gives up what is left. */
	if (stop_signals() >= 2)
		return -EINTR;
	if (len < sizeof(*h))
		return -EPROTO;
	if (is_too_late(c, h->type))
		return 0;
	c->totals.counters[COUNTER_SENT_BYTES] += len;
	c->lives += is_life(h->type);
	if (h->type == RBPF_RING_EXEC)
		begun_note(c, h->ts);
	c->unchecked += len + RECORD_BYTES;
	if (c->unchecked >= MEMORY_CHECK) {
		forget_over_limit(c);
		forget_many_stacks(c);
	}
	r = c->full && !is_life(h->type) ? -E2BIG : take_record(c, h, len);
	r = collector_note_full(c, r, is_sample(h->type));
	if (r && !c->failed)
		c->failed = r;
	return r;
}

int collector_drain(struct collector *c)
{
	return engine_drain(c->engine, handle_record, c);
}

/* ---- the loop ---- */

/* Samples were lost, @count of them in all; *@told is how many of them the sink knows of. */
static int tell_lost(struct collector *c, enum lost_reason reason, uint64_t count, uint64_t *told)
{
	const struct profile_lost def = { .ts = clock_ns(CLOCK_MONOTONIC),
					  .count = count - *told,
					  .reason = reason };

	if (!def.count)
		return 0;
	*told = count;
	c->totals.lost += def.count;
	return sink_lost(c->sink, &def);
}

/* What the BPF programs counted, and the samples that were lost since the last call. */
static int record_lost(struct collector *c)
{
	uint64_t counters[RBPF_COUNTERS];
	int r;

	engine_counters(c->engine, counters);
	memcpy(c->totals.counters, counters, sizeof(counters));
	if (c->native)
		native_count(c->native, c->totals.counters);
	r = tell_lost(c, LOST_RING_FULL, counters[RBPF_CNT_LOST_SAMPLE], &c->reported_lost);
	return r ? r : tell_lost(c, LOST_OTHER, c->unknown + c->no_room, &c->reported_unknown);
}

static int keep_house(struct collector *c, uint64_t now, struct err *err)
{
	int r = 0;

	c->housekeeping_ns = now;
	if (!c->waits_asked_for && now - c->open_waits_ns >= OPEN_WAITS) {
		c->open_waits_ns = now;
		r = engine_open_waits(c->engine, 0, OPEN_WAIT_NS, err);
	}
	if (r)
		return r;
	r = record_lost(c);
	if (!r)
		r = unknown_search(c, now);
	if (!r)
		r = life_sweep(c, now);
	if (!r)
		r = titles_poll(c, now);
	max_cost_poll(c, now);
	life_count_users(c);
	forget_over_limit(c);
	forget_many_stacks(c);
	forget_old_names(c, now);
	if (c->native) {
		native_tick(c->native);
		c->totals.counters[COUNTER_LOOKS_PUT_OFF] += native_map_reads_deferred(c->native);
	}
	if (!r && c->opts.system_wide)
		r = system_wide_retry(c);
	if (!r)
		r = sink_flush(c->sink);
	return r ? collector_fail(c, r, err) : 0;
}

int collector_poll(struct collector *c, struct err *err)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool more;
	int r;

	c->drains++;
	r = collector_drain(c);
	more = r > 0;
	if (r >= 0)
		r = c->failed;
	if (!r)
		r = samples_poll(c);
	if (!r && c->opts.system_wide)
		r = system_wide_poll(c);
	/* No failure: who calls asks stop_signals(), too. */
	if (r == -EINTR && stop_signals() >= 2)
		return 0;
	if (!r && c->full)
		r = -E2BIG;
	if (r)
		return collector_fail(c, r, err);
	r = clocks_poll(c, now, err);
	if (!r && begun_poll(c, now))
		r = collector_fail(c, -ENOMEM, err);
	if (!r && now - c->housekeeping_ns >= HOUSEKEEPING)
		r = keep_house(c, now, err);
	return r ? r : more;
}

int collector_pause_ms(const struct collector *c)
{
	return clocks_are_settled(c) ? PAUSE_SETTLED_MS : PAUSE_MS;
}

int collector_tell_waits(struct collector *c, struct err *err)
{
	c->waits_asked_for = true;
	return engine_open_waits(c->engine, 0, 0, err);
}

uint64_t collector_lives(const struct collector *c)
{
	return c->lives;
}

void collector_status(const struct collector *c, struct collector_status *ret)
{
	*ret = (struct collector_status) {
		.processes = c->n_followed,
		.live = c->live,
		.rubies = c->rubies,
		.samples = c->totals.samples,
		.lost = c->totals.lost,
		.threads = c->table.n_threads,
		.frequency = max_cost_frequency(c),
		.lowest_hz = (uint32_t)c->totals.lowest_hz,
		.full = c->full,
		.too_short = c->too_short,
	};
	snprintf(ret->refused, sizeof(ret->refused), "%s", c->refused);
}

const char *collector_ruby_version(const struct collector *c)
{
	return c->ruby_version;
}

/*
 * The run time of the BPF programs is known of all ticks together, and that of ticks that made
 * samples but for what comes before they are known to: that is the same for all of them, and all
 * that other ticks take.
 */
static void add_cost_of_ticks(struct profile_totals *t, uint64_t runs, uint64_t ns)
{
	uint64_t taken = t->counters[COUNTER_TICKS], in_samples = t->counters[COUNTER_SAMPLE_NS];

	/* The kernel does not measure: without what comes before a sample is known to be one. */
	if (!runs) {
		t->kernel_ns_per_sample = taken ? in_samples / taken : 0;
		return;
	}
	if (taken > runs) /* the kernel does not count a run within another one */
		taken = runs;
	t->other_ticks = runs - taken;
	if (ns > in_samples)
		t->other_ticks_ns = (uint64_t)((double)(ns - in_samples) / (double)runs *
					       (double)t->other_ticks);
	t->kernel_ns_per_sample = taken ? (ns - t->other_ticks_ns) / taken : 0;
}

static void add_kernel_cost(struct profile_totals *t, const struct engine *e)
{
	struct engine_cost cost;

	engine_cost(e, &cost);
	add_cost_of_ticks(t, cost.ticks.n, cost.ticks.ns);
	t->switches = cost.switches.n;
	t->switches_ns = cost.switches.ns;
	t->wakeups = cost.wakeups.n;
	t->wakeups_ns = cost.wakeups.ns;
	t->bpf_ns = cost.all_ns;
}

/* What the CPUs did since collector_start(), if that is known. */
static void add_machine_times(struct collector *c)
{
	struct cpus_times now;

	if (!c->machine.busy || cpus_times(&now) || now.busy < c->machine.busy ||
	    now.stolen < c->machine.stolen)
		return;
	c->totals.machine_busy_ns = now.busy - c->machine.busy;
	c->totals.machine_stolen_ns = now.stolen - c->machine.stolen;
}

int collector_finish(struct collector *c, struct profile_totals *totals, struct err *err)
{
	int r, account;

	c->ending_ns = clock_ns(CLOCK_MONOTONIC);
	engine_stop(c->engine);
	max_cost_end(c);
	account = life_read_account(c);
	add_machine_times(c);
	c->totals.end_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	do {
		c->drains++;
		r = collector_drain(c);
	} while (r > 0);
	if (!r)
		r = c->failed;
	if (!r)
		r = collector_note_full(c, samples_finish(c), 0);
	if (!r)
		r = record_lost(c);
	if (!r)
		r = account ? account : life_finish_account(c);
	if (!r)
		r = collector_note_full(c, titles_at_end(c), 0);
	c->totals.cpu_kernel_ns = c->account_ns;
	add_kernel_cost(&c->totals, c->engine);
	c->totals.rbpf_cpu_ns = collector_cpu_ns(c);
	c->totals.counters[COUNTER_FILES_GIVEN_UP] = c->opts.worker->losses.files;
	*totals = c->totals;
	return r ? collector_fail(c, r, err) : 0;
}
