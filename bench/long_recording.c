/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * long_recording FILE SAMPLES STACKS THREADS [alike]: write a long recording, to measure what reads
 * it.
 *
 * A stack has 20 to 80 frames, of which it shares with the one before as many as chance will have:
 * 30 are its own, which is hard for whoever reads them. With "alike" they are as those of a Rails
 * application, native frames and all: some 200 frames, of which 4 are its own. Some stacks are much
 * more frequent than others.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/recorder.h"

#define HERTZ	  1000u
#define CORES	  8u			  /* that are busy: 30 million samples are about an hour */
#define PERIOD	  (1000000000ull / HERTZ) /* ns */
#define N_FRAMES  4000u
#define MAX_DEPTH 400u

static uint64_t random_state = 88172645463325252ull;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 11) % n);
}

static int define_string(struct recorder *rec, const char *fmt, uint32_t n, uint32_t *ret)
{
	char s[80];

	return sink_string(recorder_sink(rec), s, (size_t)snprintf(s, sizeof(s), fmt, n), ret);
}

static int define_frames(struct recorder *rec, uint32_t *frames)
{
	int r = 0;

	for (uint32_t i = 0; i < N_FRAMES && !r; i++) {
		struct profile_frame f = { .kind = FRAME_RUBY, .module = PROFILE_NONE, .line = i };

		r = define_string(rec, "Shop::Order%u#total", i, &f.name);
		if (!r)
			r = define_string(rec, "/srv/shop/app/models/order_%u.rb", i % 500,
					  &f.file);
		if (!r)
			r = sink_frame(recorder_sink(rec), &f, &frames[i]);
	}
	return r;
}

/*
 * How far a stack that is like the one before goes back, and on from there: 4 frames in the mean.
 */
static uint32_t some_frames(void)
{
	uint32_t n = 0;

	while (random_below(5))
		n++;
	return n;
}

/*
 * The depth of the next stack, and of what it shares with the one before, which has *@depth frames.
 */
static uint32_t next_depth(bool alike, uint32_t *depth)
{
	uint32_t end;

	if (!alike) {
		end = 20 + random_below(60);
		*depth = random_below((*depth < end ? *depth : end) + 1);
		return end;
	}
	end = some_frames();
	*depth -= end < *depth ? end : *depth;
	end = *depth + some_frames();
	if (*depth < 120)
		end = *depth + 12;
	return end < 300 ? end : 300;
}

/* Each stack goes on from a place in the one before. */
static int define_stacks(struct recorder *rec, const uint32_t *frames, uint32_t *stacks, uint32_t n,
			 bool alike)
{
	uint32_t path[MAX_DEPTH + 1] = { 0 }, depth = 0;
	int r = 0;

	for (uint32_t i = 0; i < n && !r; i++) {
		uint32_t end = next_depth(alike, &depth);

		for (; depth < end && !r; depth++)
			r = sink_stack(recorder_sink(rec), path[depth],
				       frames[random_below(N_FRAMES)], &path[depth + 1]);
		stacks[i] = path[depth];
	}
	return r;
}

static int define_threads(struct recorder *rec, uint32_t *threads, uint32_t n)
{
	struct profile_process process = { .parent = PROFILE_NONE, .exit_status = -1 };
	uint32_t id = 0, name;
	int r = 0;

	for (uint32_t i = 0; i < n && !r; i++) {
		process.pid = i + 1;
		if (i % 5 == 0)
			r = sink_process(recorder_sink(rec), &process, &id);
		if (!r)
			r = define_string(rec, "worker %u", i, &name);
		if (!r)
			r = sink_thread(recorder_sink(rec), id, i + 1, name, &threads[i]);
	}
	return r;
}

static int write_samples(struct recorder *rec, uint64_t n, const uint32_t *stacks,
			 uint32_t n_stacks, const uint32_t *threads, uint32_t n_threads)
{
	struct profile_sample s = { .ts = 1000 };
	int r = 0;

	for (uint64_t i = 0; i < n && !r; i++) {
		s.ts += PERIOD / CORES + random_below(1000);
		s.thread = threads[random_below(n_threads)];
		s.stack = stacks[random_below(random_below(n_stacks) + 1)];
		s.value = PERIOD + random_below(20000);
		s.cpu = (uint16_t)random_below(CORES);
		r = sink_sample(recorder_sink(rec), &s);
	}
	return r;
}

int main(int argc, char **argv)
{
	const struct profile_meta meta = { .frequency = HERTZ, .start_monotonic_ns = 1000 };
	const struct recorder_options opts = { .path = argv[1], .force = true };
	struct profile_totals totals = { .end_monotonic_ns = 1000 };
	bool alike = argc == 6 && !strcmp(argv[5], "alike"), right = argc == 5 || alike;
	uint64_t n = right ? strtoull(argv[2], NULL, 10) : 0;
	uint32_t n_stacks = right ? (uint32_t)atoi(argv[3]) : 0;
	uint32_t n_threads = right ? (uint32_t)atoi(argv[4]) : 0;
	uint32_t *ids = calloc(N_FRAMES + n_stacks + n_threads + 1, sizeof(*ids));
	uint32_t *stacks = ids + N_FRAMES, *threads = stacks + n_stacks;
	struct recorder *rec;
	struct err err = { 0 };
	int r;

	if (!n || !n_stacks || !n_threads || !ids) {
		fprintf(stderr, "usage: long_recording FILE SAMPLES STACKS THREADS [alike]\n");
		return 2;
	}
	r = recorder_open(&opts, &meta, &rec, &err);
	if (!r) {
		r = define_frames(rec, ids);
		if (!r)
			r = define_stacks(rec, ids, stacks, n_stacks, alike);
		if (!r)
			r = define_threads(rec, threads, n_threads);
		if (!r)
			r = write_samples(rec, n, stacks, n_stacks, threads, n_threads);
		totals.samples = n;
		r = recorder_close(rec, r ? NULL : &totals, &err) ?: r;
	}
	free(ids);
	if (r)
		fprintf(stderr, "long_recording: %s\n", err.msg[0] ? err.msg : "cannot write");
	return r ? 1 : 0;
}
