/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/number.h"
#include "base/utf8.h"
#include "profile/reader.h"
#include "profile/recorder.h"
#include "profile/replay.h"
#include "profile/source_heat.h"
#include "rbpf_file.h"
#include "support/profile_check.h"

/* ---- a directory for each test ---- */

static char dir[] = "/tmp/rbpf-recorder-XXXXXX";
static char path[64]; /* a file in it that does not exist yet */
static char old_path[64], hidden_path[64];

static void make_dir(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/rbpf.data", dir);
	snprintf(old_path, sizeof(old_path), "%s/rbpf.data.old", dir);
	snprintf(hidden_path, sizeof(hidden_path), "%s/.rbpf.data.new", dir);
}

static void remove_dir(void)
{
	unlink(path);
	unlink(old_path);
	rmdir(old_path);
	cr_expect_eq(rmdir(dir), 0, "the recorder left something behind");
}

TestSuite(recorder, .init = make_dir, .fini = remove_dir);

/* ---- helpers ---- */

static const struct profile_meta some_meta = {
	.mode = (char *)"cpu",
	.frequency = 99,
	.start_realtime_ns = 1700000000000000000,
	.start_monotonic_ns = 1000000000,
};

static int try_open(const char *to, bool force, struct recorder **ret, struct err *err)
{
	struct recorder_options opts = { .path = to, .force = force };

	return recorder_open(&opts, &some_meta, ret, err);
}

static struct recorder *must_open(const char *to)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(try_open(to, false, &rec, &err), 0, "%s", err.msg);
	return rec;
}

static void must_close(struct recorder *rec)
{
	struct profile_totals totals = { .samples = 1 };
	struct err err = { 0 };

	cr_assert_eq(recorder_close(rec, &totals, &err), 0, "%s", err.msg);
}

/* One thread with one stack, both of id 0 and 1. */
static void define_some(struct recorder *rec)
{
	struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	struct profile_frame frame = { .module = PROFILE_NONE };
	uint32_t id;

	cr_assert_eq(sink_string(recorder_sink(rec), "x", 1, &frame.name), 0);
	cr_assert_eq(sink_process(recorder_sink(rec), &process, &id), 0);
	cr_assert_eq(sink_thread(recorder_sink(rec), id, 1, 0, &id), 0);
	cr_assert_eq(sink_frame(recorder_sink(rec), &frame, &id), 0);
	cr_assert_eq(sink_stack(recorder_sink(rec), 0, id, &id), 0);
	cr_assert_eq(id, 1);
}

static const struct read_options keep = { .keep_samples = true };

static void read_back(const char *from, struct profile *ret, struct read_report *report)
{
	struct err err = { 0 };
	const char *problem;

	cr_assert_eq(profile_read(from, &keep, ret, report, &err), 0, "%s", err.msg);
	problem = check_profile(ret);
	cr_assert_null(problem, "insane profile: %s", problem);
}

static size_t count_samples(const char *from)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;

	read_back(from, &p, &report);
	return p.n_samples;
}

static void write_file(const char *to, const char *content)
{
	_cleanup_close_ int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_full(fd, content, strlen(content)), 0);
}

static void assert_content(const char *of, const char *content)
{
	_cleanup_buf_ struct buf buf = BUF_INIT;

	cr_assert_eq(io_read_file(AT_FDCWD, of, 1 << 20, &buf), 0);
	cr_assert_str_eq(buf_str(&buf), content);
}

/* ---- round trip ---- */

struct rng {
	uint64_t state;
};

/* xorshift64*: the same on every machine. */
static uint64_t rng_next(struct rng *rng)
{
	rng->state ^= rng->state >> 12;
	rng->state ^= rng->state << 25;
	rng->state ^= rng->state >> 27;
	return rng->state * 0x2545f4914f6cdd1dull;
}

static uint32_t rng_below(struct rng *rng, uint64_t n)
{
	return n ? (uint32_t)(rng_next(rng) % n) : 0;
}

/* Any number of bits, so that small and huge values are both common. */
static uint64_t rng_u64(struct rng *rng)
{
	return rng_next(rng) >> rng_below(rng, 64);
}

/* A recorder and, next to it, the profile that reading the file must give. */
struct model {
	struct rng rng;
	struct recorder *rec;
	struct profile want;
	uint64_t ts;
};

#define APPEND(v, n, cap, value)                                                                   \
	do {                                                                                       \
		cr_assert_eq(array_reserve((v), (cap), (n) + 1), 0);                               \
		(v)[(n)++] = (value);                                                              \
	} while (0)

static void random_string(struct model *m)
{
	static const char *const parts[] = { "Foo",  "#bar", "\xc3\xa4", "\xe2\x82\xac",    "\xff",
					     "\x01", " ",    "\t",	 "\xf0\x9f\x92\x8e" };
	_cleanup_buf_ struct buf raw = BUF_INIT, clean = BUF_INIT;
	uint32_t want, id;

	for (uint32_t n = rng_below(&m->rng, 6); n; n--)
		buf_addstr(&raw, parts[rng_below(&m->rng, ARRAY_SIZE(parts))]);
	if (!rng_below(&m->rng, 100))
		buf_add_repeat(&raw, 'x', 65536);
	if (!rng_below(&m->rng, 10))
		buf_addch(&raw, '\0');
	utf8_sanitise(&clean, buf_str(&raw), raw.len);
	cr_assert_eq(intern_add(&m->want.strings, clean.data, clean.len, &want, NULL), 0);
	cr_assert_eq(sink_string(recorder_sink(m->rec), buf_str(&raw), raw.len, &id), 0);
	cr_assert_eq(id, want);
}

static uint32_t some_string(struct model *m)
{
	return rng_below(&m->rng, m->want.strings.count);
}

static uint64_t some_time(struct model *m)
{
	if (!rng_below(&m->rng, 50))
		m->ts = rng_u64(&m->rng);
	else
		m->ts += rng_below(&m->rng, 20000000) - 1000000ull;
	return m->ts;
}

static struct profile_process random_process(struct model *m, size_t self)
{
	return (struct profile_process) {
		.pid = (uint32_t)rng_u64(&m->rng),
		.start_ticks = rng_u64(&m->rng),
		.exe = some_string(m),
		.cmdline = some_string(m),
		.ruby_version = some_string(m),
		.parent = self && rng_below(&m->rng, 2) ? rng_below(&m->rng, self) : PROFILE_NONE,
		.cgroup = some_string(m),
		.container = some_string(m),
		.attributes = some_string(m),
		.ns_pid = (uint32_t)rng_u64(&m->rng),
		.uid = rng_below(&m->rng, 4) ? (uint32_t)rng_u64(&m->rng) : PROFILE_NONE,
		.exit_status = -1,
	};
}

static void add_process(struct model *m)
{
	struct profile_process def = random_process(m, m->want.n_processes);
	uint32_t id;

	cr_assert_eq(sink_process(recorder_sink(m->rec), &def, &id), 0);
	cr_assert_eq(id, m->want.n_processes);
	APPEND(m->want.processes, m->want.n_processes, m->want.cap_processes, def);
}

static void change_process(struct model *m)
{
	uint32_t id = rng_below(&m->rng, m->want.n_processes);
	struct profile_process def = random_process(m, id), *p = &m->want.processes[id];

	if (rng_below(&m->rng, 2)) {
		p->exited = true;
		p->exit_ts = some_time(m);
		p->exit_status = (int)rng_below(&m->rng, 65537) - 1;
		cr_assert_eq(
			sink_process_exit(recorder_sink(m->rec), id, p->exit_ts, p->exit_status),
			0);
		return;
	}
	def.exited = p->exited;
	def.exit_ts = p->exit_ts;
	def.exit_status = p->exit_status;
	*p = def;
	cr_assert_eq(sink_process_update(recorder_sink(m->rec), id, &def), 0);
}

static void add_thread(struct model *m)
{
	struct profile_thread def = { .process = rng_below(&m->rng, m->want.n_processes),
				      .tid = (uint32_t)rng_u64(&m->rng),
				      .name = some_string(m) };
	uint32_t id;

	cr_assert_eq(sink_thread(recorder_sink(m->rec), def.process, def.tid, def.name, &id), 0);
	cr_assert_eq(id, m->want.n_threads);
	APPEND(m->want.threads, m->want.n_threads, m->want.cap_threads, def);
}

static void change_thread(struct model *m)
{
	uint32_t id = rng_below(&m->rng, m->want.n_threads);
	struct profile_thread *t = &m->want.threads[id];

	if (rng_below(&m->rng, 2)) {
		t->name = some_string(m);
		cr_assert_eq(sink_thread_name(recorder_sink(m->rec), id, t->name), 0);
	} else {
		t->cpu_ns = rng_u64(&m->rng);
		t->cpu_known = true;
		cr_assert_eq(sink_thread_cpu(recorder_sink(m->rec), id, t->cpu_ns), 0);
	}
}

static void add_module(struct model *m)
{
	struct profile_module def = { some_string(m), some_string(m) };
	uint32_t id;

	cr_assert_eq(sink_module(recorder_sink(m->rec), &def, &id), 0);
	if (id == m->want.n_modules)
		APPEND(m->want.modules, m->want.n_modules, m->want.cap_modules, def);
	cr_assert_lt(id, m->want.n_modules);
	cr_assert_arr_eq(&m->want.modules[id], &def, sizeof(def), "interned");
}

static void add_frame(struct model *m)
{
	struct profile_frame def = {
		.kind = rng_below(&m->rng, FRAME_NOT_RECORDED),
		.name = some_string(m),
		.file = some_string(m),
		.line = (uint32_t)rng_u64(&m->rng),
		.func_line = (uint32_t)rng_u64(&m->rng),
		.module = m->want.n_modules && rng_below(&m->rng, 2)
				  ? rng_below(&m->rng, m->want.n_modules)
				  : PROFILE_NONE,
		.address = rng_u64(&m->rng),
		.flags = (uint32_t)rng_u64(&m->rng),
	};
	uint32_t id;

	cr_assert_eq(sink_frame(recorder_sink(m->rec), &def, &id), 0);
	if (id == m->want.n_frames)
		APPEND(m->want.frames, m->want.n_frames, m->want.cap_frames, def);
	cr_assert_lt(id, m->want.n_frames);
	cr_assert_arr_eq(&m->want.frames[id], &def, sizeof(def), "interned");
}

static void add_stack(struct model *m)
{
	/* Often on top of the newest, so that some are deep. */
	struct profile_stack def = {
		.parent = rng_below(&m->rng, 2) ? (uint32_t)m->want.n_stacks - 1
						: rng_below(&m->rng, m->want.n_stacks),
		.frame = rng_below(&m->rng, m->want.n_frames),
	};
	uint32_t id;

	cr_assert_eq(sink_stack(recorder_sink(m->rec), def.parent, def.frame, &id), 0);
	if (id == m->want.n_stacks)
		APPEND(m->want.stacks, m->want.n_stacks, m->want.cap_stacks, def);
	cr_assert_lt(id, m->want.n_stacks);
	cr_assert_arr_eq(&m->want.stacks[id], &def, sizeof(def), "interned");
}

static void add_sample(struct model *m)
{
	struct profile_sample def = {
		.ts = some_time(m),
		.value = rng_u64(&m->rng),
		.thread = rng_below(&m->rng, m->want.n_threads),
		.stack = rng_below(&m->rng, m->want.n_stacks),
		.cpu = (uint16_t)rng_u64(&m->rng),
		.flags = (uint16_t)rng_u64(&m->rng) & (SAMPLE_FLAGS | SAMPLE_BEFORE | SAMPLE_AFTER),
	};

	cr_assert_eq(sink_sample(recorder_sink(m->rec), &def), 0);
	APPEND(m->want.samples, m->want.n_kept, m->want.cap_kept, def);
	m->want.n_samples++;
}

static void add_lost(struct model *m)
{
	struct profile_lost def = { .ts = some_time(m),
				    .count = rng_u64(&m->rng),
				    .reason = rng_below(&m->rng, LOST_REASON_COUNT) };

	cr_assert_eq(sink_lost(recorder_sink(m->rec), &def), 0);
	APPEND(m->want.lost, m->want.n_lost, m->want.cap_lost, def);
}

static void random_action(struct model *m)
{
	switch (rng_below(&m->rng, 24)) {
	case 0:
		add_process(m);
		break;
	case 1:
		if (m->want.n_processes)
			change_process(m);
		break;
	case 2:
		if (m->want.n_processes)
			add_thread(m);
		break;
	case 3:
		if (m->want.n_threads)
			change_thread(m);
		break;
	case 4:
		add_module(m);
		break;
	case 5:
	case 6:
		add_frame(m);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		if (m->want.n_frames)
			add_stack(m);
		break;
	case 11:
	case 12:
	case 13:
		random_string(m);
		break;
	case 14:
		add_lost(m);
		break;
	case 15:
		cr_assert_eq(recorder_flush(m->rec, !rng_below(&m->rng, 8)), 0);
		break;
	default:
		if (m->want.n_threads)
			add_sample(m);
	}
}

static void assert_same_meta(const struct profile_meta *a, const struct profile_meta *b)
{
	cr_assert_str_eq(a->rbpf_version, b->rbpf_version);
	cr_assert_str_eq(a->command, b->command);
	cr_assert_str_eq(a->hostname, b->hostname);
	cr_assert_str_eq(a->kernel, b->kernel);
	cr_assert_str_eq(a->arch, b->arch);
	cr_assert_str_eq(a->mode, b->mode);
	cr_assert_eq(a->frequency, b->frequency);
	cr_assert_eq(a->cpus, b->cpus);
	cr_assert_eq(a->start_realtime_ns, b->start_realtime_ns);
	cr_assert_eq(a->start_monotonic_ns, b->start_monotonic_ns);
}

static void assert_same_process(const struct profile_process *a, const struct profile_process *b)
{
	cr_assert_eq(a->pid, b->pid);
	cr_assert_eq(a->parent, b->parent);
	cr_assert_eq(a->start_ticks, b->start_ticks);
	cr_assert_eq(a->exe, b->exe);
	cr_assert_eq(a->cmdline, b->cmdline);
	cr_assert_eq(a->ruby_version, b->ruby_version);
	cr_assert_eq(a->cgroup, b->cgroup);
	cr_assert_eq(a->container, b->container);
	cr_assert_eq(a->attributes, b->attributes);
	cr_assert_eq(a->ns_pid, b->ns_pid);
	cr_assert_eq(a->uid, b->uid);
	cr_assert_eq(a->exited, b->exited);
	cr_assert_eq(a->exit_status, b->exit_status);
	cr_assert_eq(a->exit_ts, b->exit_ts);
}

static void assert_same_sample(const struct profile_sample *a, const struct profile_sample *b)
{
	cr_assert_eq(a->ts, b->ts);
	cr_assert_eq(a->value, b->value);
	cr_assert_eq(a->thread, b->thread);
	cr_assert_eq(a->stack, b->stack);
	cr_assert_eq(a->cpu, b->cpu);
	cr_assert_eq(a->flags, b->flags);
}

static void assert_same(const struct profile *a, const struct profile *b)
{
	assert_same_meta(&a->meta, &b->meta);
	cr_assert_eq(a->strings.count, b->strings.count);
	for (uint32_t i = 0; i < a->strings.count; i++)
		cr_assert_str_eq(profile_str(a, i), profile_str(b, i), "string %u", i);
	cr_assert_eq(a->n_processes, b->n_processes);
	for (size_t i = 0; i < a->n_processes; i++)
		assert_same_process(&a->processes[i], &b->processes[i]);
	cr_assert_eq(a->n_threads, b->n_threads);
	for (size_t i = 0; i < a->n_threads; i++) {
		cr_assert_eq(a->threads[i].process, b->threads[i].process);
		cr_assert_eq(a->threads[i].tid, b->threads[i].tid);
		cr_assert_eq(a->threads[i].name, b->threads[i].name);
		cr_assert_eq(a->threads[i].cpu_ns, b->threads[i].cpu_ns);
		cr_assert_eq(a->threads[i].cpu_known, b->threads[i].cpu_known);
	}
	/* Structs without padding. */
	cr_assert_eq(a->n_modules, b->n_modules);
	for (size_t i = 0; i < a->n_modules; i++)
		cr_assert_arr_eq(&a->modules[i], &b->modules[i], sizeof(a->modules[0]));
	cr_assert_eq(a->n_frames, b->n_frames);
	for (size_t i = 0; i < a->n_frames; i++)
		cr_assert_arr_eq(&a->frames[i], &b->frames[i], sizeof(a->frames[0]));
	cr_assert_eq(a->n_stacks, b->n_stacks);
	for (size_t i = 0; i < a->n_stacks; i++)
		cr_assert_arr_eq(&a->stacks[i], &b->stacks[i], sizeof(a->stacks[0]));
	cr_assert_eq(a->n_samples, b->n_samples);
	for (size_t i = 0; i < a->n_samples; i++)
		assert_same_sample(&a->samples[i], &b->samples[i]);
	cr_assert_eq(a->n_lost, b->n_lost);
	for (size_t i = 0; i < a->n_lost; i++) {
		cr_assert_eq(a->lost[i].ts, b->lost[i].ts);
		cr_assert_eq(a->lost[i].count, b->lost[i].count);
		cr_assert_eq(a->lost[i].reason, b->lost[i].reason);
	}
	cr_assert_arr_eq(&a->totals, &b->totals, sizeof(a->totals));
}

static void round_trip(uint64_t seed)
{
	struct model m = { .rng = { seed * 0x9e3779b97f4a7c15ull + 1 } };
	_cleanup_profile_ struct profile got = PROFILE_INIT;
	struct recorder_options opts = { .path = path, .sync = seed == 1 };
	struct read_report report;
	struct err err = { 0 };
	uint64_t *totals = (uint64_t *)&m.want.totals;
	uint32_t id;

	m.ts = rng_u64(&m.rng);
	m.want.meta = (struct profile_meta) {
		.rbpf_version = strdup("0.1.0"),
		.command = strdup("rbpf record \"a\\b\" \xc3\xa4"),
		.hostname = strdup(""),
		.kernel = strdup("6.1"),
		.arch = strdup("x86_64"),
		.mode = strdup("cpu"),
		.frequency = (uint32_t)rng_u64(&m.rng),
		.cpus = (uint32_t)rng_u64(&m.rng),
		.start_realtime_ns = rng_u64(&m.rng),
		.start_monotonic_ns = rng_u64(&m.rng),
	};
	cr_assert_eq(intern_add(&m.want.strings, "", 0, &id, NULL), 0);
	APPEND(m.want.stacks, m.want.n_stacks, m.want.cap_stacks,
	       ((struct profile_stack) { 0, PROFILE_NONE }));
	for (size_t i = 0; i < sizeof(m.want.totals) / sizeof(*totals); i++)
		totals[i] = rng_u64(&m.rng) >> 1;
	m.want.totals.not_recorded = 0; /* is counted, and there are none */

	cr_assert_eq(recorder_open(&opts, &m.want.meta, &m.rec, &err), 0, "%s", err.msg);
	for (uint32_t n = rng_below(&m.rng, 2000); n; n--)
		random_action(&m);
	cr_assert_eq(recorder_close(m.rec, &m.want.totals, &err), 0, "%s", err.msg);
	read_back(path, &got, &report);
	cr_assert(report.complete);
	cr_assert_eq(report.lost_bytes, 0);
	assert_same(&got, &m.want);
	profile_deinit(&m.want);
}

Test(recorder, round_trip_of_random_profiles)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		round_trip(seed);
}

Test(recorder, frames_that_differ_by_flags_are_two)
{
	struct recorder *rec = must_open(path);
	struct profile_frame frame = { .module = PROFILE_NONE, .line = 3 };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t exact, approximate, again;

	cr_assert_eq(sink_frame(recorder_sink(rec), &frame, &exact), 0);
	frame.flags = FRAME_LINE_APPROXIMATE;
	cr_assert_eq(sink_frame(recorder_sink(rec), &frame, &approximate), 0);
	cr_assert_eq(sink_frame(recorder_sink(rec), &frame, &again), 0);
	cr_expect_neq(exact, approximate);
	cr_expect_eq(approximate, again);
	must_close(rec);
	read_back(path, &p, &report);
	cr_assert_eq(p.n_frames, 2);
	cr_expect_eq(p.frames[exact].flags, 0);
	cr_expect_eq(p.frames[approximate].flags, FRAME_LINE_APPROXIMATE);
}

/* ---- what may be recorded ---- */

Test(recorder, undefined_ids_are_refused_and_do_no_harm)
{
	struct recorder *rec = must_open(path);
	struct profile_process process = { .parent = PROFILE_NONE };
	struct profile_frame frame = { .module = PROFILE_NONE };
	struct profile_module module = { 0 };
	struct profile_sample sample = { 0 };
	struct profile_lost lost = { .reason = LOST_REASON_COUNT };
	uint32_t id = 77;

	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), -EINVAL, "no thread");
	define_some(rec);
	process.exe = 2;
	cr_expect_eq(sink_process(recorder_sink(rec), &process, &id), -EINVAL);
	process = (struct profile_process) { .parent = PROFILE_NONE, .cgroup = 2 };
	cr_expect_eq(sink_process(recorder_sink(rec), &process, &id), -EINVAL);
	process = (struct profile_process) { .parent = PROFILE_NONE, .container = 2 };
	cr_expect_eq(sink_process(recorder_sink(rec), &process, &id), -EINVAL);
	process = (struct profile_process) { .parent = PROFILE_NONE, .attributes = 2 };
	cr_expect_eq(sink_process(recorder_sink(rec), &process, &id), -EINVAL);
	process = (struct profile_process) { .parent = 1 };
	cr_expect_eq(sink_process(recorder_sink(rec), &process, &id), -EINVAL);
	process.parent = 0;
	cr_expect_eq(sink_process_update(recorder_sink(rec), 0, &process), -EINVAL,
		     "its own parent");
	process.parent = PROFILE_NONE;
	cr_expect_eq(sink_process_update(recorder_sink(rec), 1, &process), -EINVAL);
	cr_expect_eq(sink_process_exit(recorder_sink(rec), 1, 0, 0), -EINVAL);
	cr_expect_eq(sink_process_exit(recorder_sink(rec), 0, 0, -2), -EINVAL);
	cr_expect_eq(sink_thread(recorder_sink(rec), 1, 1, 0, &id), -EINVAL);
	cr_expect_eq(sink_thread(recorder_sink(rec), 0, 1, 2, &id), -EINVAL);
	cr_expect_eq(sink_thread_name(recorder_sink(rec), 1, 0), -EINVAL);
	cr_expect_eq(sink_thread_name(recorder_sink(rec), 0, 2), -EINVAL);
	cr_expect_eq(sink_thread_cpu(recorder_sink(rec), 1, 0), -EINVAL);
	module.build_id = 2;
	cr_expect_eq(sink_module(recorder_sink(rec), &module, &id), -EINVAL);
	frame.file = 2;
	cr_expect_eq(sink_frame(recorder_sink(rec), &frame, &id), -EINVAL);
	frame = (struct profile_frame) { .module = 0 };
	cr_expect_eq(sink_frame(recorder_sink(rec), &frame, &id), -EINVAL);
	frame = (struct profile_frame) { .kind = FRAME_KIND_COUNT, .module = PROFILE_NONE };
	cr_expect_eq(sink_frame(recorder_sink(rec), &frame, &id), -EINVAL);
	frame.kind = FRAME_NOT_RECORDED; /* without saying who */
	cr_expect_eq(sink_frame(recorder_sink(rec), &frame, &id), -EINVAL);
	cr_expect_eq(sink_stack(recorder_sink(rec), 2, 0, &id), -EINVAL);
	cr_expect_eq(sink_stack(recorder_sink(rec), PROFILE_NONE, 0, &id), -EINVAL);
	cr_expect_eq(sink_stack(recorder_sink(rec), 0, 1, &id), -EINVAL);
	sample.stack = 2;
	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), -EINVAL);
	cr_expect_eq(sink_lost(recorder_sink(rec), &lost), -EINVAL);
	cr_expect_eq(id, 77, "untouched on failure");
	sample.stack = 1;
	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), 0, "no failure of these is sticky");
	must_close(rec);
	cr_expect_eq(count_samples(path), 1);
}

/* All its fields at their longest: the length of a record is one byte. */
Test(recorder, largest_process)
{
	struct recorder *rec = must_open(path);
	struct profile_process process = {
		.pid = UINT32_MAX,
		.start_ticks = UINT64_MAX,
		.parent = PROFILE_NONE,
		.ns_pid = UINT32_MAX,
		.uid = UINT32_MAX - 1,
	};
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t id;

	cr_assert_eq(sink_process(recorder_sink(rec), &process, &id), 0);
	cr_assert_eq(sink_process_update(recorder_sink(rec), id, &process), 0);
	must_close(rec);
	read_back(path, &p, &report);
	cr_assert_eq(p.n_processes, 1);
	cr_expect_eq(p.processes[0].start_ticks, UINT64_MAX);
	cr_expect_eq(p.processes[0].ns_pid, UINT32_MAX);
	cr_expect_eq(p.processes[0].uid, UINT32_MAX - 1);
}

/* Views take equal strings for one container, whatever ids they had in the file. */
Test(recorder, a_container_is_one_also_when_it_was_forgotten)
{
	struct recorder *rec = must_open(path);
	struct profile_process process = { .parent = PROFILE_NONE };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t id, before;

	cr_assert_eq(sink_string(recorder_sink(rec), "web", 3, &process.container), 0);
	cr_assert_eq(sink_process(recorder_sink(rec), &process, &id), 0);
	before = process.container;
	sink_forget(recorder_sink(rec));
	cr_assert_eq(sink_string(recorder_sink(rec), "web", 3, &process.container), 0);
	cr_assert_neq(process.container, before);
	cr_assert_eq(sink_process(recorder_sink(rec), &process, &id), 0);
	must_close(rec);
	read_back(path, &p, &report);
	cr_assert_eq(p.n_processes, 2);
	cr_expect_str_eq(profile_str(&p, p.processes[0].container), "web");
	cr_expect_eq(p.processes[0].container, p.processes[1].container);
}

Test(recorder, a_thread_that_ended_keeps_its_name)
{
	struct recorder *rec = must_open(path);
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t name, id;

	define_some(rec);
	cr_assert_eq(sink_string(recorder_sink(rec), "worker 1", 8, &name), 0);
	cr_assert_eq(sink_thread_name(recorder_sink(rec), 0, name), 0);
	cr_assert_eq(recorder_flush(rec, true), 0);
	cr_assert_eq(sink_thread_cpu(recorder_sink(rec), 0, 5), 0);
	cr_assert_eq(sink_process_exit(recorder_sink(rec), 0, 1000000000, 0), 0);
	/* its tid, used again by another process */
	cr_assert_eq(sink_process(recorder_sink(rec), &(struct profile_process) { .pid = 1 }, &id),
		     0);
	cr_assert_eq(sink_thread(recorder_sink(rec), id, 1, 0, &id), 0);
	must_close(rec);
	read_back(path, &p, &report);
	cr_assert_eq(p.n_threads, 2);
	cr_expect_str_eq(profile_str(&p, p.threads[0].name), "worker 1");
	cr_expect_str_eq(profile_str(&p, p.threads[1].name), "");
}

Test(recorder, stacks_have_a_depth_limit)
{
	struct recorder *rec = must_open(path);
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t stack = 1;

	define_some(rec);
	for (uint32_t depth = 1; depth < RBPF_FILE_MAX_DEPTH; depth++)
		cr_assert_eq(sink_stack(recorder_sink(rec), stack, 0, &stack), 0);
	cr_expect_eq(sink_stack(recorder_sink(rec), stack, 0, &stack), -E2BIG);
	must_close(rec);
	read_back(path, &p, &report);
	cr_expect_eq(profile_stack_depth(&p, stack), RBPF_FILE_MAX_DEPTH);
	cr_expect_eq(report.lost_bytes, 0);
}

Test(recorder, long_strings_are_cut_at_a_character)
{
	struct recorder *rec = must_open(path);
	_cleanup_buf_ struct buf s = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t id;
	size_t len;

	for (size_t i = 0; i < RBPF_FILE_MAX_STRING; i++)
		buf_addstr(&s, "\xe2\x82\xac");
	cr_assert_eq(sink_string(recorder_sink(rec), s.data, s.len, &id), 0);
	buf_reset(&s);
	buf_add_repeat(&s, '\xff', RBPF_FILE_MAX_STRING * 2);
	cr_assert_eq(sink_string(recorder_sink(rec), s.data, s.len, &id), 0);
	must_close(rec);
	read_back(path, &p, &report);
	cr_expect_eq(report.lost_bytes, 0);
	cr_assert_eq(p.strings.count, 3);
	for (uint32_t i = 1; i < 3; i++) {
		intern_get(&p.strings, i, &len);
		cr_expect_gt(len, RBPF_FILE_MAX_STRING - 3);
		cr_expect_leq(len, RBPF_FILE_MAX_STRING);
	}
}

Test(recorder, huge_meta_can_be_read_back)
{
	_cleanup_buf_ struct buf s = BUF_INIT;
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct recorder_options opts = { .path = path };
	struct profile_meta meta = { 0 };
	struct recorder *rec;
	struct read_report report;
	struct err err = { 0 };

	buf_add_repeat(&s, '\xff', 3 << 20);
	meta.rbpf_version = meta.command = meta.hostname = (char *)buf_str(&s);
	meta.kernel = meta.arch = meta.mode = (char *)buf_str(&s);
	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	must_close(rec);
	read_back(path, &p, &report);
	cr_expect_gt(strlen(p.meta.command), 1000);
}

/* ---- chunks ---- */

static void add_samples(struct recorder *rec, size_t n)
{
	/* Close together, so that no chunk ends for its age. */
	struct profile_sample sample = { .stack = 1, .value = 10101010, .ts = 1000000 };

	for (size_t i = 0; i < n; i++) {
		sample.ts += 100;
		cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	}
}

/* Into memory: the descriptor stays open, and what is written is the same, but longer. */
Test(recorder, a_recording_in_memory_is_not_compressed)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	const struct recorder_options opts = { .memory = fd };
	const struct profile_meta meta = { 0 };
	struct recorder *rec = must_open(path);
	struct read_report report;
	struct err err = { 0 };
	struct stat file, memory;
	char name[64];

	define_some(rec);
	add_samples(rec, 100000);
	must_close(rec);
	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	define_some(rec);
	add_samples(rec, 100000);
	must_close(rec);
	cr_assert_eq(stat(path, &file), 0);
	cr_assert_eq(fstat(fd, &memory), 0, "it is still open");
	cr_expect_gt(memory.st_size, file.st_size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	read_back(name, &p, &report);
	cr_expect_eq(report.lost_bytes, 0);
	cr_expect_eq(p.n_samples, 100000);
}

Test(recorder, memory_does_not_grow_with_time)
{
	struct recorder *rec = must_open(path);
	uint64_t before;

	define_some(rec);
	cr_assert_eq(recorder_flush(rec, true), 0);
	before = recorder_bytes(rec);
	add_samples(rec, 1000000);
	cr_expect_gt(recorder_bytes(rec), before, "full chunks are written without a flush");
	must_close(rec);
	cr_expect_eq(count_samples(path), 1000000);
}

/* What is forgotten between two definitions makes other ids, and the same recording. */
Test(recorder, forgetting_changes_nothing)
{
	struct recorder *rec = must_open(path);
	struct profile_frame frame = { .kind = FRAME_RUBY, .module = PROFILE_NONE };
	struct profile_sample sample = { .ts = 2000000000, .value = 1 };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	uint32_t frame_id, stack, before = 0, empty, id;

	define_some(rec);
	for (uint32_t i = 0; i < 5; i++) {
		cr_assert_eq(sink_string(recorder_sink(rec), "", 0, &empty), 0);
		cr_expect_eq(empty, 0);
		cr_assert_eq(sink_string(recorder_sink(rec), "foo", 3, &frame.name), 0);
		cr_assert_eq(sink_frame(recorder_sink(rec), &frame, &frame_id), 0);
		stack = 0;
		for (uint32_t k = 0; k <= i; k++)
			cr_assert_eq(sink_stack(recorder_sink(rec), stack, frame_id, &stack), 0);
		cr_expect_gt(stack, before, "a new id");
		sample.stack = before = stack;
		cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
		if (i % 2)
			sink_forget(recorder_sink(rec));
		else
			cr_assert(sink_forget_stacks(recorder_sink(rec), i));
		/* A stack from before can be used on, but not as a parent. */
		cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
		cr_expect_eq(sink_stack(recorder_sink(rec), stack, frame_id, &id), -EINVAL);
		cr_expect_eq(sink_stack(recorder_sink(rec), 0, frame_id + 1000, &id), -EINVAL);
	}
	must_close(rec);
	read_back(path, &p, &report);
	cr_expect_eq(report.lost_bytes, 0);
	cr_assert_eq(p.n_samples, 10);
	for (size_t i = 0; i < p.n_samples; i++) {
		uint32_t s = p.samples[i].stack;

		cr_expect_eq(profile_stack_depth(&p, s), i / 2 + 1, "sample %zu", i);
		for (; s; s = p.stacks[s].parent)
			cr_expect_str_eq(profile_str(&p, p.frames[p.stacks[s].frame].name), "foo");
	}
}

/*
 * Only when there are more than are to be kept; and what is told then has the stacks that it had.
 */
Test(recorder, many_stacks_are_forgotten)
{
	struct recorder *rec = must_open(path);
	struct sink *sink = recorder_sink(rec);
	struct profile_frame frame = { .kind = FRAME_RUBY, .module = PROFILE_NONE };
	uint32_t frame_id, first, again;

	cr_assert_eq(sink_string(sink, "foo", 3, &frame.name), 0);
	cr_assert_eq(sink_frame(sink, &frame, &frame_id), 0);
	cr_assert_eq(sink_stack(sink, 0, frame_id, &first), 0);
	cr_expect(!sink_forget_stacks(sink, 1));
	cr_assert_eq(sink_stack(sink, 0, frame_id, &again), 0);
	cr_expect_eq(again, first);
	cr_assert_eq(sink_stack(sink, first, frame_id, &again), 0);
	cr_expect(!sink_forget_stacks(sink, 2));
	cr_expect(sink_forget_stacks(sink, 1));
	cr_assert_eq(sink_frame(sink, &frame, &again), 0);
	cr_expect_eq(again, frame_id, "frames are not");
	cr_assert_eq(sink_stack(sink, 0, frame_id, &again), 0);
	cr_expect_gt(again, first);
	must_close(rec);
}

/* What malloc() has given out. With a sanitizer's, which does not say, nothing is tested. */
static size_t allocated(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static bool keep_none(void *arg, uint32_t process, const char *file)
{
	(void)arg;
	(void)process;
	(void)file;
	return false;
}

static struct profile_sample sample_of(uint32_t thread, uint32_t stack, uint32_t request,
				       uint64_t i)
{
	return (struct profile_sample) { .ts = 2000000000 + i,
					 .thread = thread,
					 .stack = stack,
					 .request = request,
					 .value = 1 };
}

/* A process of which there is one sample, of a request, and which ends. */
static void come_and_go(struct recorder *rec, uint32_t stack, uint32_t i)
{
	struct profile_process process = { .pid = i, .parent = 0 };
	const struct profile_request_kind kind = { 0 };
	struct sink *sink = recorder_sink(rec);
	struct profile_sample sample;
	uint32_t id, thread, request;

	cr_assert_eq(sink_process(sink, &process, &id), 0);
	cr_assert_eq(sink_thread(sink, id, i, 0, &thread), 0);
	cr_assert_eq(sink_request(sink, thread, &kind, &request), 0);
	sample = sample_of(thread, stack, request, i);
	cr_assert_eq(sink_sample(sink, &sample), 0);
	sink_thread_gone(sink, thread);
	cr_assert_eq(sink_sample(sink, &sample), -EINVAL, "it is gone");
	sink_process_gone(sink, id);
	if (source_heat_collection_due(recorder_source_heat(rec)))
		cr_assert_eq(source_heat_collect(recorder_source_heat(rec), keep_none, NULL), 0);
}

/*
 * What a recording takes of memory is of what lives: a thread that is there all the time keeps its
 * request, however many others began meanwhile.
 */
Test(recorder, processes_that_ended_take_no_memory)
{
	const struct recorder_options opts = { .path = path, .sources = true };
	const struct profile_meta meta = { .mode = (char *)"cpu" };
	const struct profile_request_kind kind = { 0 };
	enum { N = 100000, WARM = 30000 };
	struct profile_process process = { .pid = 1, .parent = PROFILE_NONE };
	struct profile_frame frame = { .kind = FRAME_RUBY, .module = PROFILE_NONE };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	uint32_t id, thread, request, stack;
	struct profile_sample sample;
	struct read_report report;
	struct recorder *rec;
	struct sink *sink;
	struct err err = { 0 };
	size_t before = 0;

	cr_assert_eq(recorder_open(&opts, &meta, &rec, &err), 0, "%s", err.msg);
	sink = recorder_sink(rec);
	cr_assert_eq(sink_string(sink, "a.rb", 4, &frame.file), 0);
	cr_assert_eq(sink_frame(sink, &frame, &id), 0);
	cr_assert_eq(sink_stack(sink, 0, id, &stack), 0);
	cr_assert_eq(sink_process(sink, &process, &id), 0);
	cr_assert_eq(sink_thread(sink, id, 1, 0, &thread), 0);
	cr_assert_eq(sink_request(sink, thread, &kind, &request), 0);
	sample = sample_of(thread, stack, request, 0);
	cr_assert_eq(sink_sample(sink, &sample), 0);
	for (uint32_t i = 0; i < N; i++) {
		if (i == WARM)
			before = allocated();
		come_and_go(rec, stack, 2 + i);
	}
	cr_expect_lt(allocated(), before + RECORDER_REQUESTS_KEPT * sizeof(uint32_t) + (64u << 10),
		     "%zu more", allocated() - before);
	cr_expect_lt(recorder_source_heat(rec)->n_processes, 1000);
	sample.ts += N;
	cr_assert_eq(sink_sample(sink, &sample), 0, "it is still of the same request");
	sample.request = 2;
	cr_expect_eq(sink_sample(sink, &sample), -EINVAL, "of another thread");
	must_close(rec);
	read_back(path, &p, &report);
	cr_expect_eq(report.lost_bytes, 0);
	cr_expect_eq(p.n_processes, N + 1);
	cr_expect_eq(p.n_threads, N + 1);
	cr_expect_eq(p.n_samples, N + 2);
}

struct marked {
	const struct profile *profile;
	unsigned int samples;
};

static int count_marked(void *arg, const struct profile_sample *s)
{
	struct marked *m = arg;

	m->samples += profile_marks(m->profile, s) & 1;
	return 0;
}

/*
 * Of the recording of the next test: samples are marked by their trace and span, and no other span
 * takes memory.
 */
static void expect_marks(void)
{
	static const struct span_mark marks[] = { { true, "trace" }, { false, "One" } };
	const struct read_options both = { .by_thread = true,
					   .span_marks = marks,
					   .n_span_marks = 2 };
	const struct read_options trace = { .by_thread = true,
					    .span_marks = marks,
					    .n_span_marks = 1 };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	_cleanup_profile_ struct profile q = PROFILE_INIT;
	const struct replay from = { .path = path };
	struct marked marked = { 0 };
	struct read_report report;
	uint64_t samples[4] = { 0 };

	cr_assert_eq(profile_read(path, &both, &p, &report, NULL), 0);
	cr_assert_eq(p.n_aggregates, 4);
	for (size_t i = 0; i < 4; i++)
		samples[p.aggregates[i].marks & 3] += p.aggregates[i].samples;
	cr_expect_eq(samples[0], 2, "of no span");
	cr_expect_eq(samples[1], 2, "of the trace");
	cr_expect_eq(samples[2], 1, "of a span with that id in another trace");
	cr_expect_eq(samples[3], 3, "of both");
	cr_assert_eq(profile_read(path, &trace, &q, &report, NULL), 0);
	cr_expect_eq(q.n_aggregates, 2);
	cr_expect_eq(q.spans.count, 2, "of 70002");
	marked.profile = &q;
	cr_assert_eq(profile_each_sample(&q, &from, count_marked, &marked, NULL), 0);
	cr_expect_eq(marked.samples, 5, "also when it is read again");
}

/* Spans are read if they are asked for, also when so many came between that they were forgotten. */
Test(recorder, spans_of_samples)
{
	struct recorder *rec = must_open(path);
	struct profile_sample sample = { .ts = 2000000000, .value = 1, .stack = 1 };
	struct profile_span span = { .trace_id = "trace", .span_id = "one" };
	const struct read_options with = { .keep_samples = true, .spans = true };
	const struct read_options by_span = { .by_span = true, .spans = true };
	const struct read_options without = { .keep_samples = true };
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	_cleanup_profile_ struct profile q = PROFILE_INIT;
	_cleanup_profile_ struct profile s = PROFILE_INIT;
	struct read_report report;
	uint32_t first, second, id;

	define_some(rec);
	cr_assert_eq(sink_span(recorder_sink(rec), &span, &first), 0);
	span.span_id[0] = 'O';
	cr_assert_eq(sink_span(recorder_sink(rec), &span, &second), 0);
	cr_expect_eq(first, 1);
	cr_expect_eq(second, 2);
	for (uint32_t i = 0; i < 6; i++) {
		sample.span = i % 3;
		cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	}
	sample.span = 3;
	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), -EINVAL, "not defined");
	for (uint32_t i = 0; i < 70000; i++) {
		memcpy(span.trace_id, &i, sizeof(i));
		cr_assert_eq(sink_span(recorder_sink(rec), &span, &id), 0);
	}
	sample.span = second; /* from before */
	cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	sample.span = id;
	cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	must_close(rec);

	cr_assert_eq(profile_read(path, &with, &p, &report, NULL), 0);
	cr_expect_eq(report.lost_bytes, 0);
	cr_assert_eq(p.n_kept, 8);
	for (uint32_t i = 0; i < 6; i++)
		cr_expect_eq(p.samples[i].span, i % 3, "sample %u", i);
	cr_expect_eq(p.samples[6].span, 2);
	cr_expect_arr_eq(profile_span(&p, p.samples[7].span), &span, sizeof(span));
	cr_expect_eq(profile_span(&p, 2)->span_id[0], 'O');
	cr_assert_eq(profile_read(path, &without, &q, &report, NULL), 0);
	cr_expect_eq(q.samples[1].span, 0);
	cr_expect_eq(q.spans.count, 0, "they take no memory");
	cr_assert_eq(profile_read(path, &by_span, &s, &report, NULL), 0);
	cr_assert_eq(s.n_aggregates, 4, "none, one, another, the last");
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(s.aggregate_spans[i], i);
		cr_expect_eq(s.aggregates[i].samples, i == 2 ? 3 : 2);
	}
	expect_marks();
}

/*
 * The chunk that was begun after @begin is not in the file, unless this process has stood still for
 * a second.
 */
static void expect_young(const struct recorder *rec, uint64_t start, uint64_t begin)
{
	if (clock_ns(CLOCK_MONOTONIC) - begin < NSEC_PER_SEC)
		cr_expect_eq(recorder_bytes(rec), start, "too young");
}

Test(recorder, chunk_closes_by_age)
{
	struct recorder *rec = must_open(path);
	struct profile_sample sample = { .stack = 1 };
	uint64_t start = recorder_bytes(rec), begin = clock_ns(CLOCK_MONOTONIC);

	define_some(rec);
	cr_assert_eq(recorder_flush(rec, false), 0);
	expect_young(rec, start, begin);
	sample.ts = clock_ns(CLOCK_MONOTONIC);
	cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	expect_young(rec, start, begin);
	sample.ts += NSEC_PER_SEC;
	cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	cr_expect_gt(recorder_bytes(rec), start, "its time shows that the chunk is a second old");

	start = recorder_bytes(rec);
	begin = clock_ns(CLOCK_MONOTONIC);
	sample.ts += NSEC_PER_MSEC;
	cr_assert_eq(sink_sample(recorder_sink(rec), &sample), 0);
	expect_young(rec, start, begin);
	usleep(1010000);
	cr_assert_eq(recorder_flush(rec, false), 0);
	cr_expect_gt(recorder_bytes(rec), start, "old enough");
	start = recorder_bytes(rec);
	cr_assert_eq(recorder_flush(rec, true), 0);
	cr_expect_eq(recorder_bytes(rec), start, "nothing to write");
	must_close(rec);
	cr_expect_eq(count_samples(path), 3);
}

Test(recorder, bytes_are_the_size_of_the_file)
{
	struct recorder *rec = must_open(path);
	struct stat st;

	define_some(rec);
	add_samples(rec, 1000);
	cr_assert_eq(recorder_flush(rec, true), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(recorder_bytes(rec), (uint64_t)st.st_size);
	must_close(rec);
}

Test(recorder, without_totals_it_is_incomplete)
{
	struct recorder *rec = must_open(path);
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;
	struct err err = { 0 };

	define_some(rec);
	add_samples(rec, 10);
	cr_assert_eq(recorder_close(rec, NULL, &err), 0, "%s", err.msg);
	read_back(path, &p, &report);
	cr_expect_not(report.complete);
	cr_expect_eq(report.lost_bytes, 0);
	cr_expect_eq(p.totals.samples, 10);
	cr_expect_eq(p.totals.end_monotonic_ns, 1001000);
	cr_expect_eq(recorder_close(NULL, NULL, &err), 0);
}

/* ---- kill -9 ---- */

/* Records for ever; *@flushed says how many samples must survive. */
static void record_until_killed(_Atomic uint64_t *flushed, uint64_t seed)
{
	struct rng rng = { seed };
	struct recorder *rec = must_open(path);
	uint64_t n = 0;

	define_some(rec);
	for (;;) {
		size_t more = 1 + rng_below(&rng, 3000);

		add_samples(rec, more);
		n += more;
		if (recorder_flush(rec, true))
			_exit(1);
		atomic_store(flushed, n);
	}
}

Test(recorder, survives_kill)
{
	_Atomic uint64_t *flushed = mmap(NULL, sizeof(*flushed), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rng rng = { 4711 };
	size_t total = 0;

	cr_assert_neq(flushed, MAP_FAILED);
	for (int i = 0; i < 40; i++) {
		_cleanup_profile_ struct profile p = PROFILE_INIT;
		struct read_report report;
		pid_t pid;

		*flushed = 0;
		pid = fork();
		cr_assert_geq(pid, 0);
		if (!pid)
			record_until_killed(flushed, (uint64_t)i + 1);
		while (!atomic_load(flushed))
			usleep(100);
		usleep(rng_below(&rng, 10000));
		kill(pid, SIGKILL);
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		read_back(path, &p, &report);
		cr_expect_not(report.complete);
		cr_expect_geq(p.n_samples, atomic_load(flushed));
		total += p.n_samples;
	}
	cr_expect_gt(total, 0);
	munmap((void *)flushed, sizeof(*flushed));
}

/* ---- outputs that fail ---- */

static void assert_full(int r, const struct err *err, int code, const char *msg)
{
	cr_expect_eq(r, code);
	cr_expect_eq(err->code, code);
	cr_expect_eq(err->kind, ERR_RUNTIME);
	cr_expect_str_eq(err->msg, msg);
}

Test(recorder, dev_full)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };
	int r = try_open("/dev/full", false, &rec, &err);

	assert_full(r, &err, -ENOSPC, "cannot write /dev/full: No space left on device");
	cr_expect_null(rec);
	cr_expect_eq(access("/dev/full", F_OK), 0, "it is a device and stays one");
	cr_expect_neq(access("/dev/full.old", F_OK), 0);
}

Test(recorder, dev_null)
{
	struct recorder *rec = must_open("/dev/null");

	define_some(rec);
	must_close(rec);
}

/* Samples that do not compress; returns how many @rec took before it failed. */
static size_t add_random_samples(struct recorder *rec, size_t max)
{
	struct profile_sample sample = { .stack = 1, .ts = 1 };
	struct rng rng = { 99 };
	size_t n = 0;

	while (n < max) {
		sample.value = rng_next(&rng);
		if (sink_sample(recorder_sink(rec), &sample))
			break;
		n++;
	}
	return n;
}

static size_t record_until_failure(struct recorder *rec)
{
	return add_random_samples(rec, 10000000);
}

static void assert_failed_recorder(struct recorder *rec, int code, const char *msg)
{
	struct profile_totals totals = { 0 };
	struct profile_sample sample = { .stack = 1 };
	uint64_t bytes = recorder_bytes(rec);
	struct err err = { 0 };
	uint32_t id = 77;

	assert_full(recorder_error(rec, &err), &err, code, msg);
	cr_expect_eq(recorder_error(rec, NULL), code);
	cr_expect_eq(sink_sample(recorder_sink(rec), &sample), code, "sticky");
	cr_expect_eq(sink_string(recorder_sink(rec), "new", 3, &id), code, "sticky");
	cr_expect_eq(recorder_flush(rec, false), code, "sticky");
	cr_expect_eq(recorder_flush(rec, true), code, "sticky");
	cr_expect_eq(recorder_bytes(rec), bytes);
	cr_expect_eq(id, 77);
	err = (struct err) { 0 };
	assert_full(recorder_close(rec, &totals, &err), &err, code, msg);
}

Test(recorder, partial_write_leaves_a_readable_prefix)
{
	struct rlimit limit, old;
	struct recorder *rec;
	char msg[100];
	size_t n;

	signal(SIGXFSZ, SIG_IGN);
	rec = must_open(path);
	define_some(rec);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 1000001;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	n = record_until_failure(rec);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	cr_expect_eq(recorder_bytes(rec), 1000001, "all that went in");
	snprintf(msg, sizeof(msg), "cannot write %s: File too large", path);
	assert_failed_recorder(rec, -EFBIG, msg);
	cr_expect_leq(count_samples(path), n);
	cr_expect_gt(count_samples(path), n / 2);
}

/* The same on a file system that is really full. */
Test(recorder, disk_full)
{
	char full_path[80], msg[160];
	struct recorder *rec;
	size_t n;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=600k"))
		cr_skip_test("cannot mount a tmpfs here (%s)", strerror(errno));
	snprintf(full_path, sizeof(full_path), "%s/f", dir);
	rec = must_open(full_path);
	define_some(rec);
	n = record_until_failure(rec);
	snprintf(msg, sizeof(msg), "cannot write %s: No space left on device", full_path);
	assert_failed_recorder(rec, -ENOSPC, msg);
	cr_expect_gt(count_samples(full_path), n / 3);
	cr_expect_eq(umount2(dir, MNT_DETACH), 0);
}

/* A tmpfs of @size at dir, and its file of that name in @file; skips where none can be mounted. */
static void mount_small(const char *size, char file[80])
{
	char options[40];

	snprintf(options, sizeof(options), "size=%s", size);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, options))
		cr_skip_test("cannot mount a tmpfs here (%s)", strerror(errno));
	snprintf(file, 80, "%s/f", dir);
}

/* What is free of it for users other than root. */
static uint64_t free_bytes(void)
{
	struct statvfs fs;

	cr_assert_eq(statvfs(dir, &fs), 0);
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* Samples that do not compress, up to a limit of @rec or @max; returns how many. */
static size_t record_until_full(struct recorder *rec, size_t max, struct err *err)
{
	size_t n = 0;

	while (n < max && !recorder_full(rec, err)) {
		/* They repeat, farther apart than zlib looks back. */
		cr_assert_eq(add_random_samples(rec, 3000), 3000);
		n += 3000;
	}
	return n;
}

static void expect_complete(const char *file, size_t samples)
{
	_cleanup_profile_ struct profile p = PROFILE_INIT;
	struct read_report report;

	read_back(file, &p, &report);
	cr_expect(report.complete);
	cr_expect_eq(report.lost_bytes, 0);
	cr_expect_eq(p.n_samples, samples);
}

Test(recorder, ends_before_the_disk_is_full)
{
	char file[80], msg[200], source[100000];
	struct err err = { 0 };
	struct recorder *rec;
	uint64_t space;
	size_t n;

	mount_small("4m", file);
	space = free_bytes();
	rec = must_open(file);
	define_some(rec);
	cr_expect_eq(recorder_full(rec, &err), 0);
	n = record_until_full(rec, 1000000, &err);
	cr_assert_eq(recorder_full(rec, &err), -ENOSPC);
	snprintf(msg, sizeof(msg), "only %s is free on the file system of %s",
		 num_bytes(free_bytes()).s, file);
	cr_expect_eq(err.kind, ERR_RUNTIME);
	cr_expect_str_eq(err.msg, msg);
	cr_expect(err.hint[0]);
	cr_expect_leq(free_bytes(), space / 2);
	cr_expect_geq(free_bytes(), space / 2 - 2 * RBPF_FILE_CHUNK_BYTES, "about a chunk late");
	n += add_random_samples(rec, 10000);
	/* Source files can be left out, and take no more than half of what is left. */
	memset(source, ' ', sizeof(source));
	cr_expect_eq(recorder_source(rec, "a.rb", source, sizeof(source)), 0);
	cr_assert_eq(recorder_flush(rec, true), 0);
	while (free_bytes() > space / 4 + sizeof(source)) {
		n += add_random_samples(rec, 10000);
		cr_assert_eq(recorder_flush(rec, true), 0);
	}
	cr_expect_eq(recorder_source(rec, "b.rb", source, sizeof(source)), -ENOSPC);
	must_close(rec);
	expect_complete(file, n);
	cr_expect_eq(umount2(dir, MNT_DETACH), 0);
}

/* But for one page, which the start of the recording is in: as ext4 has a reserve for root. */
Test(recorder, disk_that_is_full_already)
{
	char file[80], fill[80], msg[160];
	static const char zeros[1 << 16];
	struct recorder *rec = NULL;
	struct err err = { 0 };
	uint64_t n;
	int fd;

	mount_small("1m", file);
	snprintf(fill, sizeof(fill), "%s/fill", dir);
	cr_assert_geq(fd = open(fill, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0);
	while ((n = free_bytes() - 4096))
		cr_assert_gt(write(fd, zeros, n < sizeof(zeros) ? n : sizeof(zeros)), 0);
	close(fd);
	snprintf(msg, sizeof(msg), "cannot record: only 0 B is free on the file system of %s",
		 file);
	assert_full(try_open(file, false, &rec, &err), &err, -ENOSPC, msg);
	cr_expect_null(rec);
	cr_expect_neq(access(file, F_OK), 0);
	cr_expect_neq(access(hidden_path, F_OK), 0);
	cr_expect_eq(umount2(dir, MNT_DETACH), 0);
}

Test(recorder, ends_at_a_size)
{
	struct recorder_options opts = { .path = path, .max_bytes = 1000000 };
	struct recorder *rec = NULL;
	struct err err = { 0 };
	size_t n;

	cr_assert_eq(recorder_open(&opts, &some_meta, &rec, &err), 0, "%s", err.msg);
	define_some(rec);
	n = record_until_full(rec, 1000000, &err);
	cr_assert_eq(recorder_full(rec, &err), -EFBIG);
	cr_expect_not_null(strstr(err.msg, "the recording has reached --max-size: 1."), "%s",
			   err.msg);
	cr_expect_geq(recorder_bytes(rec), 1000000);
	cr_expect_lt(recorder_bytes(rec), 1000000 + RBPF_FILE_CHUNK_BYTES);
	n += add_random_samples(rec, 10);
	must_close(rec);
	expect_complete(path, n);
}

Test(recorder, no_limit_of_a_device)
{
	struct recorder *rec = must_open("/dev/null");

	define_some(rec);
	record_until_full(rec, 100000, NULL);
	cr_expect_eq(recorder_full(rec, NULL), 0);
	must_close(rec);
}

/* ---- written by a thread ---- */

static struct recorder *open_behind(const char *to, uint64_t max_bytes)
{
	const struct recorder_options opts = {
		.path = to, .behind = true, .sync = true, .max_bytes = max_bytes
	};
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(recorder_open(&opts, &some_meta, &rec, &err), 0, "%s", err.msg);
	define_some(rec);
	return rec;
}

static bool read_some(int fd, struct buf *to)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0)
		buf_add(to, bytes, (size_t)n);
	return n > 0;
}

static void *read_all(void *arg)
{
	struct buf *to = arg;
	int fd = *(const int *)to->data;

	buf_reset(to);
	while (read_some(fd, to))
		;
	return NULL;
}

/*
 * Nobody reads the pipe, as a disk that hangs, and the recorder goes on: all of it is there in the
 * end.
 */
Test(recorder, does_not_wait_for_what_hangs)
{
	struct buf got = BUF_INIT;
	struct recorder *rec;
	pthread_t reader;
	char copy[80];
	int fd, out;
	size_t n;

	cr_assert_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
	rec = open_behind(path, 0);
	alarm(30);
	n = add_random_samples(rec, 300000);
	cr_assert_eq(n, 300000);
	cr_assert_eq(recorder_flush(rec, true), 0);
	cr_expect_gt(recorder_bytes(rec), 1u << 20, "more than a pipe holds");
	buf_add(&got, &fd, sizeof(fd));
	cr_assert_eq(pthread_create(&reader, NULL, read_all, &got), 0);
	must_close(rec);
	pthread_join(reader, NULL);
	alarm(0);
	snprintf(copy, sizeof(copy), "%s/copy", dir);
	cr_assert_geq(out = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0);
	cr_assert_eq(io_write_full(out, got.data, got.len), 0);
	close(out);
	close(fd);
	expect_complete(copy, n);
	unlink(copy);
	buf_deinit(&got);
}

/* What it cannot write is told a little later, and what was written is a recording. */
Test(recorder, failures_of_the_thread_that_writes)
{
	struct rlimit limit, old;
	struct recorder *rec;
	char msg[100];

	signal(SIGXFSZ, SIG_IGN);
	rec = open_behind(path, 0);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 1000001;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	add_random_samples(rec, 300000);
	alarm(30);
	while (!recorder_error(rec, NULL)) {
		recorder_flush(rec, true);
		usleep(1000);
	}
	alarm(0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	cr_expect_eq(recorder_bytes(rec), 1000001, "all that went in");
	snprintf(msg, sizeof(msg), "cannot write %s: File too large", path);
	assert_failed_recorder(rec, -EFBIG, msg);
	cr_expect_gt(count_samples(path), 0);
}

/* That the last of it cannot be written is told when it is closed: it is not complete then. */
Test(recorder, a_failure_of_the_last_chunk)
{
	const struct profile_totals totals = { .samples = 1 };
	struct rlimit limit, old;
	struct recorder *rec;
	struct err err = { 0 };

	signal(SIGXFSZ, SIG_IGN);
	rec = open_behind(path, 0);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = recorder_bytes(rec) + 10;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(recorder_close(rec, &totals, &err), -EFBIG);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	cr_expect_not_null(strstr(err.msg, "File too large"), "%s", err.msg);
}

/* What waits for the thread counts: it is no larger than without one. */
Test(recorder, ends_at_a_size_that_is_to_be_written)
{
	struct recorder *rec = open_behind(path, 1000000);
	struct err err = { 0 };
	size_t n;

	n = record_until_full(rec, 1000000, &err);
	cr_assert_eq(recorder_full(rec, &err), -EFBIG);
	cr_expect_lt(recorder_bytes(rec), 1000000 + RBPF_FILE_CHUNK_BYTES);
	must_close(rec);
	expect_complete(path, n);
}

Test(recorder, reader_of_the_pipe_goes_away)
{
	struct recorder *rec;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	rec = must_open(path);
	close(fd);
	define_some(rec);
	record_until_failure(rec);
	{
		char msg[100];

		snprintf(msg, sizeof(msg), "cannot write %s: Broken pipe", path);
		assert_failed_recorder(rec, -EPIPE, msg);
	}
}

/* Non-blocking on purpose: a full pipe must be waited for. */
Test(recorder, standard_output_is_a_slow_pipe)
{
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	struct recorder *rec;
	int fds[2];
	pid_t pid;
	int status;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		_cleanup_close_ int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		char bytes[5000];
		ssize_t n;

		close(fds[1]);
		while ((n = read(fds[0], bytes, sizeof(bytes))) > 0) {
			usleep(100);
			if (io_write_full(out, bytes, (size_t)n))
				_exit(1);
		}
		_exit(0);
	}
	close(fds[0]);
	cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
	rec = must_open("-");
	define_some(rec);
	add_random_samples(rec, 100000);
	cr_expect_gt(recorder_bytes(rec), 500000, "more than a pipe holds");
	must_close(rec);
	cr_expect_eq(fcntl(STDOUT_FILENO, F_GETFD), 0, "standard output stays open");
	cr_assert_eq(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	close(saved);
	close(fds[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_expect_eq(count_samples(path), 100000);
}

/* ---- what is overwritten ---- */

Test(recorder, new_file_is_private)
{
	struct stat st;

	umask(0);
	must_close(must_open(path));
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(recorder, old_recording_is_kept)
{
	struct recorder *rec = must_open(path);

	define_some(rec);
	add_samples(rec, 3);
	must_close(rec);
	must_close(must_open(path));
	cr_expect_eq(count_samples(old_path), 3);
	cr_expect_eq(count_samples(path), 0);
	must_close(must_open(path));
	cr_expect_eq(count_samples(old_path), 0, "one predecessor is kept");
}

/* A recording of @n samples at @path, and one of @n_old as its predecessor. */
static void make_two(size_t n, size_t n_old)
{
	struct recorder *rec = must_open(path);

	define_some(rec);
	add_samples(rec, n_old);
	must_close(rec);
	rec = must_open(path);
	define_some(rec);
	add_samples(rec, n);
	must_close(rec);
}

static void expect_two(size_t n, size_t n_old)
{
	cr_expect_eq(count_samples(path), n);
	cr_expect_eq(count_samples(old_path), n_old);
}

Test(recorder, without_samples_nothing_is_replaced)
{
	make_two(3, 2);
	for (int behind = 0; behind < 2; behind++) {
		struct recorder *rec = behind ? open_behind(path, 0) : must_open(path);

		if (!behind)
			define_some(rec);
		cr_assert_eq(recorder_flush(rec, true), 0);
		recorder_close(rec, NULL, NULL);
		expect_two(3, 2);
		cr_expect_neq(access(hidden_path, F_OK), 0);
	}
}

Test(recorder, name_is_taken_with_the_first_samples)
{
	struct recorder *rec;

	make_two(3, 2);
	rec = must_open(path);
	define_some(rec);
	cr_assert_eq(recorder_flush(rec, true), 0);
	add_samples(rec, 5);
	expect_two(3, 2);
	cr_assert_eq(recorder_flush(rec, true), 0);
	expect_two(5, 3);
	cr_expect_neq(access(hidden_path, F_OK), 0);
	recorder_close(rec, NULL, NULL);
	expect_two(5, 3);
}

Test(recorder, name_is_taken_by_the_thread_that_writes)
{
	struct recorder *rec;

	make_two(3, 2);
	rec = open_behind(path, 0);
	add_samples(rec, 5);
	cr_assert_eq(recorder_flush(rec, true), 0);
	for (int i = 0; i < 1000 && !access(hidden_path, F_OK); i++)
		usleep(10000);
	expect_two(5, 3);
	recorder_close(rec, NULL, NULL);
}

/* The first samples do not fit. */
Test(recorder, a_failure_before_the_name_is_taken)
{
	struct rlimit limit, old;
	struct recorder *rec;

	signal(SIGXFSZ, SIG_IGN);
	make_two(3, 2);
	rec = must_open(path);
	define_some(rec);
	add_samples(rec, 5);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = recorder_bytes(rec) + 10;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(recorder_flush(rec, true), -EFBIG);
	recorder_close(rec, NULL, NULL);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	expect_two(3, 2);
}

Test(recorder, what_came_to_have_the_name_is_examined)
{
	struct recorder *rec = must_open(path);
	struct err err = { 0 };
	char msg[100];

	define_some(rec);
	add_samples(rec, 5);
	write_file(path, "precious");
	snprintf(msg, sizeof(msg), "%s exists and is not an rbpf recording", path);
	cr_expect_eq(recorder_flush(rec, true), -EEXIST);
	assert_full(recorder_close(rec, NULL, &err), &err, -EEXIST, msg);
	assert_content(path, "precious");
}

Test(recorder, what_a_killed_one_left_is_replaced)
{
	struct recorder *rec = must_open(path);
	struct err err = { 0 };

	cr_assert_eq(link(hidden_path, old_path), 0);
	recorder_close(rec, NULL, NULL);
	cr_assert_eq(rename(old_path, hidden_path), 0);
	must_close(must_open(path));
	cr_expect_eq(count_samples(path), 0);

	write_file(hidden_path, "precious");
	cr_expect_eq(try_open(path, false, &rec, &err), -EEXIST);
	cr_expect_not_null(strstr(err.msg, ".rbpf.data.new beside it is not an rbpf recording"),
			   "%s", err.msg);
	assert_content(hidden_path, "precious");
	unlink(hidden_path);
}

static void expect_busy(const char *what)
{
	struct recorder *rec = NULL;
	char msg[120];

	snprintf(msg, sizeof(msg), "cannot replace %s: another rbpf is writing it", what);
	for (int force = 0; force < 2; force++) {
		struct err err = { 0 };

		assert_full(try_open(path, force, &rec, &err), &err, -EBUSY, msg);
		cr_expect_str_eq(err.hint, "-o FILE writes this recording to another file");
	}
}

/* Of what is being written nobody takes the name, and as PATH.old it is not replaced. */
Test(recorder, two_into_one_file)
{
	struct recorder *first = must_open(path), *rec = NULL;
	struct stat before, after;
	struct err err = { 0 };

	define_some(first);
	expect_busy(path); /* also while it has no samples */
	add_samples(first, 1);
	cr_assert_eq(recorder_flush(first, true), 0);
	cr_assert_eq(stat(path, &before), 0);
	expect_busy(path);
	cr_assert_eq(stat(path, &after), 0);
	cr_expect_eq(before.st_ino, after.st_ino);
	cr_expect_neq(access(old_path, F_OK), 0);

	/* As rbpfs that know no locks did. */
	cr_assert_eq(rename(path, old_path), 0);
	rec = must_open(path);
	must_close(rec);
	assert_full(try_open(path, false, &rec, &err), &err, -EBUSY, err.msg);
	cr_expect_not_null(strstr(err.msg, "rbpf.data.old: another rbpf is writing it"), "%s",
			   err.msg);
	cr_expect_eq(count_samples(path), 0, "it is still there");

	add_samples(first, 3);
	must_close(first);
	must_close(must_open(path));
	cr_expect_eq(count_samples(old_path), 0, "that of the second");
}

/* Between its creation and its first bytes. */
Test(recorder, empty_file_that_is_being_written)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(flock(fd, LOCK_EX), 0);
	cr_expect_eq(try_open(path, false, &rec, &err), -EBUSY);
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	must_close(must_open(path));
}

/* What reads a recording, or has locked it for that, is nobody who writes. */
Test(recorder, readers_do_not_keep_the_name)
{
	_cleanup_close_ int fd = -1;

	must_close(must_open(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	must_close(must_open(path));
	cr_expect_eq(access(old_path, F_OK), 0);
}

Test(recorder, empty_file_is_replaced_without_a_trace)
{
	write_file(path, "");
	must_close(must_open(path));
	cr_expect_eq(count_samples(path), 0);
	cr_expect_neq(access(old_path, F_OK), 0);
}

static void assert_open_refused(int code, const char *fmt, const char *what)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };
	char msg[200];
	int r = try_open(path, false, &rec, &err);

	snprintf(msg, sizeof(msg), fmt, what);
	assert_full(r, &err, code, msg);
	cr_expect_null(rec);
}

Test(recorder, other_files_are_refused_unless_forced)
{
	static const char *const contents[] = { "a shopping list", "\x89RBP", "\x89RBPG\r\n\x1a" };
	struct recorder *rec = NULL;
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		write_file(path, contents[i]);
		cr_expect_eq(try_open(path, false, &rec, &err), -EEXIST);
		cr_expect_str_eq(err.hint, "--force overwrites it");
		assert_open_refused(-EEXIST, "%s exists and is not an rbpf recording", path);
		assert_content(path, contents[i]);
	}
	cr_assert_eq(try_open(path, true, &rec, &err), 0, "%s", err.msg);
	must_close(rec);
	cr_expect_eq(count_samples(path), 0);
	cr_expect_neq(access(old_path, F_OK), 0);
}

/* A forced overwrite must not reach what the name was linked to. */
Test(recorder, hard_links_are_cut)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };

	write_file(old_path, "precious");
	cr_assert_eq(link(old_path, path), 0);
	cr_assert_eq(try_open(path, true, &rec, &err), 0, "%s", err.msg);
	must_close(rec);
	assert_content(old_path, "precious");
}

Test(recorder, path_old_that_is_no_recording_is_refused)
{
	must_close(must_open(path));
	write_file(old_path, "precious");
	assert_open_refused(-EEXIST, "%s exists and is not an rbpf recording", old_path);
	assert_content(old_path, "precious");
	cr_expect_eq(count_samples(path), 0);
	unlink(old_path);
	cr_assert_eq(mkdir(old_path, 0700), 0);
	{
		struct recorder *rec = NULL;
		struct err err = { 0 };

		cr_expect_eq(try_open(path, true, &rec, &err), -EISDIR);
	}
	cr_expect_eq(count_samples(path), 0, "still there");
}

Test(recorder, symbolic_links_are_refused)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };

	cr_assert_eq(symlink(old_path, path), 0);
	assert_open_refused(-ELOOP, "cannot write %s: it is a symbolic link", path);
	write_file(old_path, "precious");
	assert_open_refused(-ELOOP, "cannot write %s: it is a symbolic link", path);
	cr_expect_eq(try_open(path, true, &rec, &err), -ELOOP, "--force does not change that");
	assert_content(old_path, "precious");
}

Test(recorder, directories_and_missing_directories)
{
	struct recorder *rec = NULL;
	struct err err = { 0 };
	char msg[100];

	snprintf(msg, sizeof(msg), "cannot write %s: Is a directory", dir);
	assert_full(try_open(dir, true, &rec, &err), &err, -EISDIR, msg);
	assert_full(try_open("/nonexistent/x", false, &rec, &err), &err, -ENOENT,
		    "cannot write /nonexistent/x: No such file or directory");
	assert_full(try_open("/dev/null/x", false, &rec, &err), &err, -ENOTDIR,
		    "cannot write /dev/null/x: Not a directory");
}

Test(recorder, file_belongs_to_who_ran_sudo)
{
	struct stat st;

	if (geteuid())
		cr_skip_test("only root can give files away");
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65533", 1);
	must_close(must_open(path));
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_uid, 65534);
	cr_expect_eq(st.st_gid, 65533);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(recorder, devices_are_not_given_away)
{
	struct stat before, after;

	if (geteuid())
		cr_skip_test("only root can give files away");
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65533", 1);
	cr_assert_eq(stat("/dev/null", &before), 0);
	must_close(must_open("/dev/null"));
	cr_assert_eq(stat("/dev/null", &after), 0);
	cr_expect_eq(after.st_uid, before.st_uid);
}
