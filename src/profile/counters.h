/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of a recording (profile_totals.counters[]), which are defined in rbpf_counters.h: a
 * new one is a line there, and an addition to collector.totals.counters[COUNTER_...] where it is
 * counted. Layers that may not include this one count in a struct of their own, which src/sample/
 * adds up.
 */
#ifndef RBPF_PROFILE_COUNTERS_H
#define RBPF_PROFILE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_counters.h"

/* The BPF programs' are the first, by their numbers there. */
enum profile_counter {
#define COUNTER_NUMBER(name, key, when, one, many, text) COUNTER_##name,
	RBPF_KERNEL_COUNTERS(COUNTER_NUMBER) RBPF_USER_COUNTERS(COUNTER_NUMBER)
#undef COUNTER_NUMBER
		COUNTER_COUNT,
};

/* Whether a count that is not 0 is told to people, and not to programs alone. */
enum counter_when {
	COUNTER_NEVER = 0, /* it is no loss, or another line of the summary tells it */
	COUNTER_MANY = 1,  /* when it is more than 1 % of the ticks */
	COUNTER_ALWAYS = 2,
};

struct profile_counter_info {
	const char *key;
	enum counter_when when;
	const char *one, *many; /* what is counted … */
	const char *text;	/* … what is missing, what that means, what helps */
};

extern const struct profile_counter_info profile_counters[COUNTER_COUNT];

struct json;
struct profile_totals;

/* Write them all as an object "counters". */
void profile_counters_json(const struct profile_totals *totals, struct json *j);

/* Whether counter @i of @totals is to be told to people. */
bool profile_counter_matters(const struct profile_totals *totals, enum profile_counter i);

#endif
