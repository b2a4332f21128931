/* SPDX-License-Identifier: GPL-2.0-only */
#include "top/choice.h"

#include <stdlib.h>

#include "base/array.h"

/* Beyond so many one is forgotten. */
#define MAX_TOGGLED 4096

const char *top_view_word(size_t view)
{
	static const char *const words[TOP_VIEWS] = {
		[TOP_PROCESSES] = "processes", [TOP_THREADS] = "threads",
		[TOP_REQUESTS] = "requests",   [TOP_METHODS] = "methods",
		[TOP_TREE] = "tree",	       [TOP_STATES] = "states",
	};

	return view < TOP_VIEWS ? words[view] : NULL;
}

bool top_choice_toggled(const struct top_choice *c, uint64_t key)
{
	for (size_t i = 0; i < c->n_toggled; i++)
		if (c->toggled[i] == key)
			return true;
	return false;
}

int top_choice_toggle(struct top_choice *c, uint64_t key)
{
	int r;

	for (size_t i = 0; i < c->n_toggled; i++)
		if (c->toggled[i] == key) {
			c->toggled[i] = c->toggled[--c->n_toggled];
			return 0;
		}
	if (c->n_toggled == MAX_TOGGLED)
		c->toggled[0] = c->toggled[--c->n_toggled];
	r = array_reserve(c->toggled, c->cap_toggled, c->n_toggled + 1);
	if (!r)
		c->toggled[c->n_toggled++] = key;
	return r;
}

void top_choice_deinit(struct top_choice *c)
{
	free(c->method);
	free(c->request);
	free(c->toggled);
	*c = (struct top_choice) { 0 };
}
