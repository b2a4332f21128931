/* SPDX-License-Identifier: GPL-2.0-only */
#include "top/terminal.h"

#include <errno.h>
#include <stdlib.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "base/array.h"
#include "base/err.h"
#include "top/layout.h"

#define ESCAPE_MS 25 /* in which the rest of a key's sequence comes */

enum { PAIR_TITLE = 1, PAIR_NOTICE };

int terminal_open(FILE *in, FILE *out, bool color, struct err *err)
{
	/* Unlike initscr() it does not end the process where the terminal is not known. */
	SCREEN *screen = newterm(NULL, out, in);
	const char *term = getenv("TERM");

	if (!screen) {
		err_set(err, -ENOTTY, ERR_RUNTIME, "cannot draw on a terminal of type '%s'",
			term ? term : "");
		err_hint(err, "--plain prints lines");
		return -ENOTTY;
	}
	set_term(screen);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	if (color && has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(PAIR_TITLE, COLOR_CYAN, -1);
		init_pair(PAIR_NOTICE, COLOR_YELLOW, -1);
	}
	return 0;
}

void terminal_close(void)
{
	SCREEN *screen = set_term(NULL);

	if (!screen)
		return;
	set_term(screen);
	endwin();
	delscreen(screen);
}

void terminal_size(size_t *width, size_t *height)
{
	*width = COLS > 0 ? (size_t)COLS : 1;
	*height = LINES > 0 ? (size_t)LINES : 1;
}

static attr_t attributes(enum top_style style)
{
	switch (style) {
	case TOP_TITLE:
		return A_BOLD | (attr_t)COLOR_PAIR(PAIR_TITLE);
	case TOP_DIM:
		return A_DIM;
	case TOP_COLUMNS:
		return A_BOLD | A_UNDERLINE;
	case TOP_SELECTED:
		return A_REVERSE;
	case TOP_NOTICE:
		return A_BOLD | (attr_t)COLOR_PAIR(PAIR_NOTICE);
	default:
		return A_NORMAL;
	}
}

void terminal_draw(const struct top_page *page)
{
	erase();
	for (size_t i = 0; i < page->n_lines && i < (size_t)LINES; i++) {
		const char *text = top_line_text(page, i);

		attrset((int)attributes(page->lines[i].style));
		mvaddstr((int)i, 0, text);
		/* A selected row is marked to the edge. */
		if (page->lines[i].style == TOP_SELECTED)
			mvchgat((int)i, 0, -1, A_REVERSE, 0, NULL);
	}
	attrset(A_NORMAL);
	refresh();
}

static unsigned int function_key(wint_t key)
{
	static const struct {
		wint_t curses;
		unsigned int key;
	} keys[] = {
		{ KEY_UP, TERMINAL_UP },	 { KEY_DOWN, TERMINAL_DOWN },
		{ KEY_LEFT, TERMINAL_LEFT },	 { KEY_RIGHT, TERMINAL_RIGHT },
		{ KEY_PPAGE, TERMINAL_PAGE_UP }, { KEY_NPAGE, TERMINAL_PAGE_DOWN },
		{ KEY_HOME, TERMINAL_HOME },	 { KEY_END, TERMINAL_END },
		{ KEY_ENTER, TERMINAL_ENTER },	 { KEY_BACKSPACE, TERMINAL_BACKSPACE },
		{ KEY_RESIZE, TERMINAL_RESIZE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return TERMINAL_OTHER;
}

unsigned int terminal_key(void)
{
	wint_t key;
	int r = get_wch(&key);

	if (r == ERR)
		return TERMINAL_NONE;
	if (r == KEY_CODE_YES)
		return function_key(key);
	switch (key) {
	case '\r':
	case '\n':
		return TERMINAL_ENTER;
	case '\b':
	case 0x7f:
		return TERMINAL_BACKSPACE;
	case 0x1b:
		return TERMINAL_ESCAPE;
	case 0:
		return TERMINAL_OTHER;
	}
	return (unsigned int)key;
}
