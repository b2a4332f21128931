/* SPDX-License-Identifier: GPL-2.0-only */
/* What each key of top does to what is shown; without a terminal. */
#ifndef RBPF_CMD_TOP_KEYS_H
#define RBPF_CMD_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/choice.h"
#include "top/model.h"

struct top_keys {
	struct top_choice *choice;
	const struct top_model *model;
	const struct window *window;
	bool has_states;
	size_t page;	 /* rows on the screen */
	size_t selected; /* row */
	uint64_t key;	 /* of it, by which it is found in other rows; 0: the first one */
	bool paused, typing, help;
	bool build, draw; /* rows, or the screen, are to be made again */
	bool quit, save;  /* is wanted */
};

/* Do what @key (terminal.h) says. Returns 0 or -ENOMEM. */
int top_keys_press(struct top_keys *k, unsigned int key);

/* The rows are others: select the same one again, if it is among them. */
void top_keys_find(struct top_keys *k);

#endif
