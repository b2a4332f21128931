/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the window share: window.c takes samples, window_collect.c drops what is
 * unused.
 */
#ifndef RBPF_PROFILE_WINDOW_STATE_H
#define RBPF_PROFILE_WINDOW_STATE_H

#include "base/intern.h"
#include "profile/profile_sink.h"
#include "profile/window.h"

/* Samples of one second that are alike. */
struct window_entry {
	uint64_t value; /* sum of theirs */
	uint32_t thread, stack, request;
	uint32_t samples; /* how many */
	uint16_t event, flags;
	uint32_t unused;
};

struct window_second {
	struct window_entry *v; /* owned */
	size_t n, cap;
	uint64_t lost;
};

struct window {
	struct sink sink;
	struct profile_sink defs; /* its aggregates are those of the last profile that was given */
	uint64_t start_ns;	  /* CLOCK_MONOTONIC: of second 0 */
	size_t max_bytes;
	uint32_t n_seconds;
	struct window_second *seconds; /* by number % n_seconds; owned */
	uint64_t first, end;	       /* numbers of those that there are; end > first */
	struct intern
		newest;	     /* struct entry_key of the newest second; ids are indexes of entries */
	size_t entries;	     /* bytes of all seconds' entries */
	size_t collected;    /* bytes of definitions after the last collection */
	bool asked;	     /* whoever fills it is short of memory */
	const regex_t *idle; /* struct window_options */
};

/* What entries of one second are told apart by; interned as bytes. */
struct entry_key {
	uint32_t thread, stack, request;
	uint16_t event, flags;
};

_Static_assert(sizeof(struct entry_key) == 16, "no padding");

struct entry_key window_key(const struct window_entry *e);

/* Bytes that definitions take. */
size_t window_definition_bytes(const struct window *w);

static inline struct window_second *window_second(const struct window *w, uint64_t number)
{
	return &w->seconds[number % w->n_seconds];
}

/* Drop the oldest second; there must be two. */
void window_drop_oldest(struct window *w);

#endif
