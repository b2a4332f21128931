/* SPDX-License-Identifier: GPL-2.0-only */
/* What each key of top does to what is shown; without a terminal. */
#ifndef RBPF_CMD_TOP_KEYS_H
#define RBPF_CMD_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/choice.h"
#include "top/model.h"

/* What is on the screen instead of rows. */
enum top_reading { TOP_ROWS, TOP_HELP, TOP_DUMP };

struct top_keys {
	struct top_choice *choice;
	const struct top_model *model;
	const struct window *window;
	bool has_states;
	size_t page;	 /* rows on the screen */
	size_t selected; /* row */
	uint64_t key;	 /* of it, by which it is found in other rows; 0: the first one */
	bool paused, typing;
	enum top_reading reading;
	size_t line, n_lines; /* the stacks: the first one that is shown, of so many */
	bool build, draw;     /* rows, or the screen, are to be made again */
	bool quit, save;      /* is wanted */
	bool dump;	      /* of this process is wanted; 0: none is selected */
	pid_t dump_pid, dump_tid;
};

/* Do what @key (terminal.h) says. Returns 0 or -ENOMEM. */
int top_keys_press(struct top_keys *k, unsigned int key);

/* The rows are others: select the same one again, if it is among them. */
void top_keys_find(struct top_keys *k);

#endif
