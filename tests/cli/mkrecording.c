/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes the recordings that the tests of the command line read, where no BPF is needed:
 *
 *	mkrecording KIND FILE
 *
 * KIND: full, few, gc, containers, merged, gems, templates, events, idle, waits, summed (waits that
 * were added up by the second), poller, requests, pool, empty, interrupted
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "profile/reason.h"
#include "profile/recorder.h"

#define START	  (1000 * NSEC_PER_SEC)
#define TICK	  (NSEC_PER_SEC / 99)

#define CONTAINER "3f2a9c1b0d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"

/* A failed call here is a broken test, which says where. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (call) {                                                                        \
			fprintf(stderr, "mkrecording: failed: %s: %s\n", #call, err.msg);          \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static uint32_t str(struct recorder *rec, const char *s)
{
	uint32_t id = 0;

	sink_string(recorder_sink(rec), s, strlen(s), &id);
	return id;
}

static uint32_t frame(struct recorder *rec, enum frame_kind kind, const char *name,
		      const char *file, uint32_t line, uint32_t func_line)
{
	const struct profile_frame def = {
		.kind = kind,
		.name = str(rec, name),
		.file = str(rec, file),
		.line = line,
		.func_line = func_line,
		.module = PROFILE_NONE,
		.reason = frame_reason_of_label(kind, name),
	};
	uint32_t id = 0;

	sink_frame(recorder_sink(rec), &def, &id);
	return id;
}

/* A process in a container, with one thread. */
static uint32_t add_sidekiq(struct recorder *rec, uint32_t parent)
{
	const struct profile_process def = {
		.pid = 4300,
		.parent = parent,
		.start_ticks = 2,
		.exe = str(rec, "/usr/local/bin/ruby"),
		.cmdline = str(rec, "sidekiq 7.1.0 jobs"),
		.ruby_version = str(rec, "3.3.6"),
		.cgroup = str(rec, "/system.slice/docker-" CONTAINER ".scope"),
		.container = str(rec, CONTAINER),
		.ns_pid = 7,
		.uid = 1000,
		.exit_status = -1,
	};
	uint32_t process = 0, thread = 0;

	sink_process(recorder_sink(rec), &def, &process);
	sink_thread(recorder_sink(rec), process, 4300, str(rec, "sidekiq"), &thread);
	return thread;
}

static uint32_t native(struct recorder *rec, const char *name, const char *path, uint32_t flags)
{
	const struct profile_module module = { str(rec, path), str(rec, "c0ffee") };
	struct profile_frame def = { .kind = FRAME_NATIVE, .name = str(rec, name), .flags = flags };
	uint32_t id = 0;

	sink_module(recorder_sink(rec), &module, &def.module);
	sink_frame(recorder_sink(rec), &def, &id);
	return id;
}

/*
 * Native stacks: 2 samples of a method that calls into a library, with the interpreter's functions
 * between, 1 of one below which unwinding failed, 1 of a thread without Ruby. Returns their number.
 */
static int add_merged(struct recorder *rec, const uint32_t *threads)
{
	static const char libruby[] = "/usr/lib/libruby-3.1.so.3.1";
	uint32_t cart = frame(rec, FRAME_RUBY, "Cart#total", "/app/models/cart.rb", 58, 57);
	const uint32_t frames[] = {
		native(rec, "main", "/usr/bin/ruby3.1", 0),
		native(rec, "rb_vm_exec", libruby, FRAME_INTERNAL),
		cart,
		frame(rec, FRAME_CFUNC, "Zlib.crc32", "/app/models/cart.rb", 58, 0),
		native(rec, "rb_zlib_crc32", "/usr/lib/ruby/zlib.so", FRAME_INTERNAL),
		native(rec, "crc32_z", "/lib/libz.so.1", 0),
	};
	uint32_t gap = frame(rec, FRAME_GAP,
			     "[native frames missing: the file has no unwind table]", "", 0, 0);
	uint32_t stacks[4] = { 0 };
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		sink_stack(recorder_sink(rec), stacks[0], frames[i], &stacks[0]);
	stacks[1] = stacks[0];
	sink_stack(recorder_sink(rec), 0, cart, &stacks[2]);
	sink_stack(recorder_sink(rec), stacks[2], gap, &stacks[2]);
	sink_stack(recorder_sink(rec), 0, native(rec, "timer_thread", libruby, FRAME_INTERNAL),
		   &stacks[3]);
	for (n = 0; n < (int)ARRAY_SIZE(stacks); n++) {
		const struct profile_sample sample = {
			.ts = START + (uint64_t)(n + 1) * TICK,
			.value = TICK,
			.thread = threads[n == 3],
			.stack = stacks[n],
			.flags = SAMPLE_NATIVE | (n == 2 ? SAMPLE_GAP : 0),
		};

		sink_sample(recorder_sink(rec), &sample);
	}
	return n;
}

/* A worker that renders a template of Action View and two of Tilt, one sample in each. */
static void add_worker(struct recorder *rec, uint32_t number, const char *partial, const char *tilt)
{
	const struct profile_process def = {
		.pid = 4300 + number,
		.parent = PROFILE_NONE,
		.start_ticks = 2,
		.cmdline = str(rec, "puma: cluster worker"),
		.ruby_version = str(rec, "3.1.2"),
		.uid = PROFILE_NONE,
		.exit_status = -1,
	};
	const struct {
		const char *name, *file;
	} frames[] = {
		{ partial, "/srv/shop/app/views/orders/_order.html.erb" },
		{ tilt, "/srv/shop/views/index.erb" },
		{ tilt, "/srv/shop/views/layout.erb" },
	};
	_cleanup_buf_ struct buf block = BUF_INIT;
	uint32_t process = 0, thread = 0, main_stack = 0, stack = 0;

	sink_process(recorder_sink(rec), &def, &process);
	sink_thread(recorder_sink(rec), process, 4300 + number, str(rec, "puma"), &thread);
	sink_stack(recorder_sink(rec), 0, frame(rec, FRAME_RUBY, "<main>", "/bin/puma", 1, 1),
		   &main_stack);
	buf_addf(&block, "block in %s", partial);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		const char *file = frames[i].file;
		struct profile_sample sample = { .value = TICK, .thread = thread };

		sink_stack(recorder_sink(rec), main_stack,
			   frame(rec, FRAME_RUBY, frames[i].name, file, 3, 0), &stack);
		if (!i)
			sink_stack(recorder_sink(rec), stack,
				   frame(rec, FRAME_RUBY, buf_str(&block), file, 4, 3), &stack);
		sample.ts = START + (number * ARRAY_SIZE(frames) + i + 1) * TICK;
		sample.stack = stack;
		sink_sample(recorder_sink(rec), &sample);
	}
}

/* The same templates in two workers, where the methods have other names. Returns the samples. */
static int add_templates(struct recorder *rec)
{
	add_worker(rec, 0, "_app_views_orders__order_html_erb__3472281419498755117_9700",
		   "Tilt::CompiledTemplates#__tilt_60");
	add_worker(rec, 1, "_app_views_orders__order_html_erb___882280991498755110_10040",
		   "Tilt::CompiledTemplates#__tilt_80");
	return 6;
}

/*
 * The application calls a gem, which calls a C function (5 of 10 samples) and a default gem (2); 1
 * sample is of the application itself, and 2 are of native code. Returns their number.
 */
static int add_gems(struct recorder *rec, uint32_t thread)
{
	const uint32_t frames[] = {
		frame(rec, FRAME_RUBY, "Cart#total", "/app/models/cart.rb", 58, 57),
		frame(rec, FRAME_RUBY, "Rack::Builder#call",
		      "/usr/lib/ruby/gems/3.1.0/gems/rack-2.2.4/lib/rack/builder.rb", 9, 7),
		frame(rec, FRAME_CFUNC, "Array#each", "/usr/lib/x.rb", 9, 0),
		frame(rec, FRAME_RUBY, "JSON.generate", "/usr/lib/ruby/3.1.0/json/common.rb", 5, 4),
		native(rec, "deflate", "/lib/libz.so.1", 0),
	};
	uint32_t app = 0, rack = 0, stacks[5] = { 0 };
	static const uint32_t n_of[] = { 1, 0, 5, 2, 2 };
	int n = 0;

	sink_stack(recorder_sink(rec), 0, frames[0], &app);
	sink_stack(recorder_sink(rec), app, frames[1], &rack);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		if (i < 2)
			stacks[i] = i ? rack : app;
		else
			sink_stack(recorder_sink(rec), i < 4 ? rack : 0, frames[i], &stacks[i]);
		for (uint32_t k = 0; k < n_of[i]; k++) {
			const struct profile_sample sample = {
				.ts = START + (uint64_t)(++n) * TICK,
				.value = TICK,
				.thread = thread,
				.stack = stacks[i],
			};

			sink_sample(recorder_sink(rec), &sample);
		}
	}
	return n;
}

/*
 * Three waits of 2 ms for a disk, with 1 ms between them, and one of 2.5 s, which was sent in three
 * parts. Returns the samples.
 */
static int add_waits(struct recorder *rec, uint32_t thread)
{
	static const uint32_t ms[] = { 2, 2, 2, 1000, 1000, 500 };
	struct profile_sample sample = { .ts = START, .thread = thread, .event = 1 };
	uint32_t i;

	sink_stack(recorder_sink(rec), 0, frame(rec, FRAME_RUBY, "Disk#load", "/app/disk.rb", 3, 2),
		   &sample.stack);
	sink_stack(recorder_sink(rec), sample.stack,
		   frame(rec, FRAME_WAIT, frame_reason_label(REASON_WAIT_DISK), "", 0, 0),
		   &sample.stack);
	for (i = 0; i < ARRAY_SIZE(ms); i++) {
		sample.value = ms[i] * NSEC_PER_MSEC;
		sample.ts += sample.value + (i < 4 ? NSEC_PER_MSEC : 0);
		sink_sample(recorder_sink(rec), &sample);
	}
	return ARRAY_SIZE(ms);
}

/*
 * Seven requests, of 100 ms to 700 ms, which wait for the network but for a tick at their end.
 * Returns the samples.
 */
static int add_requests(struct recorder *rec, uint32_t thread)
{
	const struct profile_request_kind kind = { str(rec, "rails"),
						   str(rec, "CartsController#show") };
	struct profile_sample sample = { .ts = START, .thread = thread };
	uint32_t stack = 0, network = 0, idle = 0;

	sink_stack(recorder_sink(rec), 0,
		   frame(rec, FRAME_RUBY, "Cart#total", "/app/cart.rb", 3, 2), &stack);
	sink_stack(recorder_sink(rec), stack,
		   frame(rec, FRAME_WAIT, frame_reason_label(REASON_WAIT_NETWORK), "", 0, 0),
		   &network);
	sink_stack(recorder_sink(rec), 0,
		   frame(rec, FRAME_WAIT, frame_reason_label(REASON_WAIT_IDLE), "", 0, 0), &idle);
	for (uint32_t i = 0; i <= 7; i++) {
		sample.request = 0;
		sample.event = 1;
		sample.stack = idle;
		sample.value = 10 * NSEC_PER_MSEC;
		sample.ts += sample.value;
		sink_sample(recorder_sink(rec), &sample);
		if (i == 7)
			break;
		sink_request(recorder_sink(rec), thread, &kind, &sample.request);
		sample.stack = network;
		sample.value = (i + 1) * 100 * NSEC_PER_MSEC - TICK;
		sample.ts += sample.value;
		sink_sample(recorder_sink(rec), &sample);
		sample.event = 0;
		sample.stack = stack;
		sample.value = TICK;
		sample.ts += sample.value;
		sink_sample(recorder_sink(rec), &sample);
	}
	return 8 + 7 * 2;
}

/*
 * A wait of 1 s for a job, in a gem that a loop of the program calls, and one of 2 s in the job.
 * Returns the samples.
 */
static int add_poller(struct recorder *rec, uint32_t thread)
{
	static const struct {
		const char *method, *path;
		enum frame_reason reason;
	} waits[] = {
		{ "Redis#blpop", "/gems/redis-5.0.8/lib/redis.rb", REASON_WAIT_NETWORK },
		{ "Import#perform", "/app/import.rb", REASON_WAIT_TIMER },
	};
	struct profile_sample sample = { .ts = START, .thread = thread, .event = 1 };
	uint32_t run;

	sink_stack(recorder_sink(rec), 0,
		   frame(rec, FRAME_RUBY, "Poller#run", "/app/poller.rb", 9, 8), &run);
	for (uint32_t i = 0; i < ARRAY_SIZE(waits); i++) {
		const char *label = frame_reason_label(waits[i].reason);

		sink_stack(recorder_sink(rec), run,
			   frame(rec, FRAME_RUBY, waits[i].method, waits[i].path, 3, 2),
			   &sample.stack);
		sink_stack(recorder_sink(rec), sample.stack,
			   frame(rec, FRAME_WAIT, label, "", 0, 0), &sample.stack);
		sample.value = (i + 1) * NSEC_PER_SEC;
		sample.ts += sample.value;
		sink_sample(recorder_sink(rec), &sample);
	}
	return ARRAY_SIZE(waits);
}

static void add_events(struct profile_meta *meta, bool idle)
{
	meta->events[0] = (struct profile_event) { EVENT_CPU, UNIT_NS, TICK };
	meta->events[1] = idle ? (struct profile_event) { EVENT_WAIT, UNIT_NS, 0 }
			       : (struct profile_event) { "alloc", UNIT_BYTES, 0 };
	meta->n_events = 2;
}

int main(int argc, char **argv)
{
	struct profile_meta meta = {
		.rbpf_version = (char *)"0.1.0",
		.command = (char *)"rbpf record -p 4242",
		.hostname = (char *)"test",
		.kernel = (char *)"6.1.0",
		.arch = (char *)"x86_64",
		.mode = (char *)"cpu",
		.frequency = 99,
		.cpus = 2,
		.start_realtime_ns = 1700000000 * NSEC_PER_SEC,
		.start_monotonic_ns = START,
	};
	struct profile_totals totals = { .cpu_kernel_ns = 31 * NSEC_PER_SEC / 10, .lost = 1 };
	struct recorder_options opts = { .force = true };
	struct err err = { 0 };
	struct recorder *rec;
	uint32_t process, threads[3], main_stack, gc_stack, stacks[4], i, n, id;
	const char *kind;
	bool gc, pool, containers, gems, templates, idle, waits, poller, requests, wall;

	if (argc != 3)
		return 2;
	kind = argv[1];
	idle = strcmp(kind, "idle") == 0;
	poller = strcmp(kind, "poller") == 0;
	requests = strcmp(kind, "requests") == 0;
	meta.by_second = strcmp(kind, "summed") == 0;
	wall = strcmp(kind, "wall") == 0;
	if (wall)
		meta.mode = (char *)"wall";
	waits = strcmp(kind, "waits") == 0 || meta.by_second || poller || requests || wall;
	if (idle || waits || strcmp(kind, "events") == 0)
		add_events(&meta, idle || waits);
	if (requests)
		meta.events[meta.n_events++] = (struct profile_event) { EVENT_GVL, UNIT_NS, 0 };
	gc = strcmp(kind, "gc") == 0;
	pool = strcmp(kind, "pool") == 0;
	opts.path = argv[2];
	MUST(recorder_open(&opts, &meta, &rec, &err));

	MUST(sink_process(recorder_sink(rec),
			  &(struct profile_process) {
				  .pid = 4242,
				  .parent = PROFILE_NONE,
				  .start_ticks = 1,
				  .exe = str(rec, "/usr/bin/ruby"),
				  .cmdline = str(rec, "ruby shop.rb"),
				  .ruby_version = str(rec, "3.1.2"),
				  .uid = PROFILE_NONE,
				  .exit_status = -1,
			  },
			  &process));
	MUST(sink_thread(recorder_sink(rec), process, 4242, str(rec, pool ? "pool 1" : "ruby"),
			 &threads[0]));
	MUST(sink_thread(recorder_sink(rec), process, 4243, str(rec, pool ? "pool 2" : "worker, 1"),
			 &threads[1]));
	containers = strcmp(kind, "containers") == 0;
	threads[2] = containers ? add_sidekiq(rec, process) : threads[0];

	id = frame(rec, FRAME_RUBY, "<main>", "/app/shop.rb", 90, 1);
	MUST(sink_stack(recorder_sink(rec), 0, id, &main_stack));
	id = frame(rec, FRAME_RUBY, "Cart#total", "/app/models/cart.rb", 58, 57);
	MUST(sink_stack(recorder_sink(rec), main_stack, id, &stacks[0]));
	id = frame(rec, FRAME_CFUNC, "Integer#times", "/app/models/cart.rb", 58, 0);
	MUST(sink_stack(recorder_sink(rec), stacks[0], id, &stacks[1]));
	id = frame(rec, FRAME_RUBY, "block in Cart#total", "/app/models/cart.rb", 59, 58);
	MUST(sink_stack(recorder_sink(rec), stacks[1], id, &stacks[2]));
	id = frame(rec, FRAME_RUBY, "Café#\"menü\"", "/app/models/café, \"new\".rb", 7, 5);
	MUST(sink_stack(recorder_sink(rec), main_stack, id, &stacks[3]));
	id = frame(rec, FRAME_GC, "(garbage collection)", "", 0, 0);
	MUST(sink_stack(recorder_sink(rec), stacks[1], id, &gc_stack));
	id = frame(rec, FRAME_GC, "(marking)", "", 0, 0);
	MUST(sink_stack(recorder_sink(rec), gc_stack, id, &gc_stack));

	gems = strcmp(kind, "gems") == 0;
	templates = strcmp(kind, "templates") == 0;
	n = strcmp(kind, "empty") == 0 || strcmp(kind, "merged") == 0 || gems || templates || waits
		    ? 0
	    : strcmp(kind, "few") == 0 ? 10
				       : 300;
	for (i = 0; i < n; i++) {
		struct profile_sample sample = {
			.ts = START + (i + 1) * TICK,
			.value = TICK,
			.thread = threads[i % 10 == 0  ? 1
					  : i % 4 == 1 ? 2
						       : 0],
			.stack = stacks[i % 10 < 6 ? 2 : i % ARRAY_SIZE(stacks)],
		};

		if (gc && i % 5 == 0) {
			sample.stack = gc_stack;
			sample.flags = SAMPLE_GC;
			totals.gc_ns += TICK;
		}
		if (!idle) {
			MUST(sink_sample(recorder_sink(rec), &sample));
			totals.cpu_sampled_ns += TICK;
		}
		if (meta.n_events) {
			sample.event = 1;
			sample.value = 1000 * (i % 3 + 1);
			MUST(sink_sample(recorder_sink(rec), &sample));
		}
	}
	if (meta.n_events && !waits) {
		struct profile_sample sample = { START + n * TICK, 4, .event = 1 };

		id = frame(rec, FRAME_RUBY, "Cache.fill", "/app/cache.rb", 3, 2);
		MUST(sink_stack(recorder_sink(rec), main_stack, id, &sample.stack));
		MUST(sink_sample(recorder_sink(rec), &sample));
	}
	if (strcmp(kind, "merged") == 0) {
		n = (uint32_t)add_merged(rec, threads);
		totals.cpu_sampled_ns = n * TICK;
	}
	if (templates || gems) {
		n = (uint32_t)(gems ? add_gems(rec, threads[0]) : add_templates(rec));
		totals.cpu_sampled_ns = n * TICK;
	}
	if (waits)
		n = (uint32_t)(poller	  ? add_poller
			       : requests ? add_requests
					  : add_waits)(rec, threads[0]);
	totals.samples = meta.n_events && !idle && !waits ? 2 * n : n;
	totals.end_monotonic_ns = waits ? START + 3 * NSEC_PER_SEC : START + (n + 1) * TICK;
	MUST(recorder_close(rec, strcmp(kind, "interrupted") == 0 ? NULL : &totals, &err));
	return 0;
}
