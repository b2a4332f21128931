/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one line on stderr that is drawn again while something goes on.
 *
 * It is drawn at most four times a second, only on a terminal, and cut to its width, so that it
 * never scrolls. Whoever prints another line meanwhile calls progress_clear() first. Not
 * thread-safe.
 */
#ifndef RBPF_UI_PROGRESS_H
#define RBPF_UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	int fd; /* not owned */
	bool enabled;
	bool drawn;	   /* there is a line to clear */
	uint64_t drawn_ns; /* when it was last drawn, CLOCK_MONOTONIC; 0 if never */
};

/* Draw on @fd, if it is a terminal and @enable (not --quiet). */
void progress_init(struct progress *p, int fd, bool enable);

/* Whether a line drawn at @now_ns (CLOCK_MONOTONIC) would show: asked before one is composed. */
bool progress_due(const struct progress *p, uint64_t now_ns);

/*
 * Draw @line (valid UTF-8, no newline) if progress_due(). It is left out if the terminal has no
 * room for it; failures to write are ignored.
 */
void progress_draw(struct progress *p, uint64_t now_ns, const char *line);

/*
 * Take the line away, for another message or at the end. The next progress_draw() is at once due.
 */
void progress_clear(struct progress *p);

#endif
