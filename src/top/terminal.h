/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terminal that top draws on: the only place that knows ncurses. Between terminal_open() and
 * terminal_close() nothing else may write to it.
 *
 * ncurses has state of the whole process, so there is one terminal. A stop (SIGTSTP) gives the
 * terminal back until the process goes on; a change of its size comes as a key.
 */
#ifndef RBPF_TOP_TERMINAL_H
#define RBPF_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct err;
struct top_page;

/* Keys that are no characters. */
enum terminal_key {
	TERMINAL_NONE = 0, /* no key was pressed */
	TERMINAL_UP = 0x110000,
	TERMINAL_DOWN,
	TERMINAL_LEFT,
	TERMINAL_RIGHT,
	TERMINAL_PAGE_UP,
	TERMINAL_PAGE_DOWN,
	TERMINAL_HOME,
	TERMINAL_END,
	TERMINAL_ENTER,
	TERMINAL_BACKSPACE,
	TERMINAL_ESCAPE,
	TERMINAL_RESIZE, /* it has another size now */
	TERMINAL_OTHER,
};

/* Take the terminal that @in and @out are. Returns 0, or -ENOTTY with @err set. */
int terminal_open(FILE *in, FILE *out, bool color, struct err *err);

/* Give it back as it was. */
void terminal_close(void);

void terminal_size(size_t *width, size_t *height);

/* Show @page, and nothing else. */
void terminal_draw(const struct top_page *page);

/* The next key, without waiting: a code point, or enum terminal_key. */
unsigned int terminal_key(void);

#endif
