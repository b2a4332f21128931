/* SPDX-License-Identifier: GPL-2.0-only */
/* What the user of top has chosen to see. */
#ifndef RBPF_TOP_CHOICE_H
#define RBPF_TOP_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum top_view {
	TOP_PROCESSES,
	TOP_THREADS,
	TOP_REQUESTS,
	TOP_METHODS,
	TOP_TREE,
	TOP_STATES,
	TOP_VIEWS,
};

/* "processes"; NULL past the last. */
const char *top_view_word(size_t view);

enum top_sort { TOP_SORT_SELF, TOP_SORT_TOTAL, TOP_SORT_NAME, TOP_SORTS };

#define TOP_FILTER_MAX 128 /* bytes with the NUL */

struct top_choice {
	enum top_view view;
	enum top_sort sort;
	uint32_t seconds; /* of the window; 0: all that there are */
	uint32_t back;	  /* … that end so many seconds before the newest one */
	pid_t pid, tid;	  /* these alone; 0: all */
	char *method;	  /* the tree: of samples with this method alone; NULL: all; owned */
	char *request;	  /* samples of requests with this name alone; NULL: all; owned */
	bool inverted;	  /* the tree: callers below the method that ran */
	bool native;	  /* native frames, too */
	/* Rows whose text has this in it, in any case; "": all. */
	char filter[TOP_FILTER_MAX];
	uint64_t *toggled; /* keys of nodes of the tree that are not as they would be: open or
			      closed; owned */
	size_t n_toggled, cap_toggled;
};

/* Open node @key of the tree if it is closed, or close it. Returns 0 or -ENOMEM. */
int top_choice_toggle(struct top_choice *c, uint64_t key);
bool top_choice_toggled(const struct top_choice *c, uint64_t key);

void top_choice_deinit(struct top_choice *c);

#endif
