/* SPDX-License-Identifier: GPL-2.0-only */
/* Top on a terminal: what keys do, and when it is drawn. */
#ifndef RBPF_CMD_TOP_SCREEN_H
#define RBPF_CMD_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct sampling;
struct top_choice;
struct window;

struct top_screen_options {
	struct sampling *sampling; /* started */
	struct window *window;
	const char *targets; /* as in struct top_frame */
	uint64_t start_ns;   /* CLOCK_MONOTONIC */
	uint64_t start_realtime_ns;
	uint64_t end_ns;    /* UINT64_MAX: never */
	uint64_t settle_ns; /* after this a second is shown */
	bool has_states;
	bool color, utf8;
};

/*
 * Show what @choice says, which keys change, until the user has enough, or this process is asked to
 * stop. The terminal is as it was before when this returns: 0, or a negative errno with @err set.
 */
int top_screen_run(const struct top_screen_options *opts, struct top_choice *choice,
		   struct err *err);

#endif
