/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/top_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "profile/window.h"
#include "top/terminal.h"

/* ---- selection ---- */

void top_keys_find(struct top_keys *k)
{
	const struct top_model *m = k->model;

	for (size_t i = 0; k->key && i < m->n_rows; i++)
		if (m->rows[i].key == k->key) {
			k->selected = i;
			return;
		}
	if (!k->key)
		k->selected = 0;
	if (k->selected >= m->n_rows)
		k->selected = m->n_rows ? m->n_rows - 1 : 0;
}

static const struct top_row *selected(const struct top_keys *k)
{
	return k->selected < k->model->n_rows ? &k->model->rows[k->selected] : NULL;
}

static void move(struct top_keys *k, size_t to)
{
	const size_t n = k->model->n_rows;

	k->selected = to < n ? to : n ? n - 1 : 0;
	/* The first row is the first one, whatever it is. */
	k->key = k->selected ? k->model->rows[k->selected].key : 0;
	k->draw = true;
}

/* Where @key leads to from @at, a page being @page; false: it is another key. */
static bool moved(unsigned int key, size_t page, size_t *at)
{
	switch (key) {
	case TERMINAL_UP:
	case 'k':
		*at -= *at > 0;
		return true;
	case TERMINAL_DOWN:
	case 'j':
		*at += 1;
		return true;
	case TERMINAL_PAGE_UP:
		*at = *at > page ? *at - page : 0;
		return true;
	case TERMINAL_PAGE_DOWN:
		*at += page;
		return true;
	case TERMINAL_HOME:
		*at = 0;
		return true;
	case TERMINAL_END:
		*at = SIZE_MAX;
		return true;
	}
	return false;
}

static bool press_move(struct top_keys *k, unsigned int key)
{
	size_t to = k->selected;

	if (!moved(key, k->page, &to))
		return false;
	move(k, to);
	return true;
}

/* ---- what is shown ---- */

static void changed(struct top_keys *k)
{
	k->build = k->draw = true;
}

static void show(struct top_keys *k, enum top_view view)
{
	k->choice->view = view;
	k->selected = 0;
	k->key = 0;
	changed(k);
}

static int replace(char **s, const char *by)
{
	char *copy = strdup(by);

	if (!copy)
		return -ENOMEM;
	free(*s);
	*s = copy;
	return 0;
}

/* Open the selected row. */
static int enter(struct top_keys *k)
{
	const struct top_row *row = selected(k);
	struct top_choice *c = k->choice;
	int r = 0;

	if (!row)
		return 0;
	switch (c->view) {
	case TOP_PROCESSES:
	case TOP_THREADS:
		c->pid = (pid_t)row->pid;
		c->tid = (pid_t)row->tid;
		break;
	case TOP_REQUESTS:
		r = replace(&c->request, top_label(k->model, row));
		break;
	case TOP_METHODS:
		r = replace(&c->method, top_label(k->model, row));
		break;
	case TOP_TREE:
		changed(k);
		return row->has_children ? top_choice_toggle(c, row->key) : 0;
	default:
		return 0;
	}
	c->filter[0] = '\0';
	if (!r)
		show(k, c->view == TOP_METHODS ? TOP_TREE : TOP_METHODS);
	return r;
}

static void drop(char **s)
{
	free(*s);
	*s = NULL;
}

/* What was chosen last goes first. */
static void back(struct top_keys *k)
{
	struct top_choice *c = k->choice;

	if (c->filter[0]) {
		c->filter[0] = '\0';
		changed(k);
	} else if (c->view == TOP_TREE) {
		drop(&c->method);
		show(k, TOP_METHODS);
	} else if (c->request) {
		drop(&c->request);
		show(k, TOP_REQUESTS);
	} else if (c->tid) {
		c->tid = 0;
		show(k, TOP_THREADS);
	} else {
		c->pid = 0;
		show(k, TOP_PROCESSES);
	}
}

static void set_window(struct top_keys *k, uint32_t seconds)
{
	k->choice->seconds = seconds;
	changed(k);
}

/* A window back, or forth. */
static void shift(struct top_keys *k, bool to_past)
{
	const struct window_range has = window_seconds(k->window);
	const uint32_t most = has.to > has.from ? (uint32_t)(has.to - has.from - 1) : 0;
	uint32_t by = k->choice->seconds ? k->choice->seconds : 1, *at = &k->choice->back;

	/* Where it is in time shall be seen, so it stays there. */
	if (to_past && !k->paused)
		k->paused = true;
	if (to_past)
		*at = most - *at > by && *at < most ? *at + by : most;
	else
		*at = *at > by ? *at - by : 0;
	changed(k);
}

static void pause_or_go_on(struct top_keys *k)
{
	k->paused = !k->paused;
	if (!k->paused)
		k->choice->back = 0;
	changed(k);
}

/* Of the selected process or thread, else of that whose rows these are. */
static void want_dump(struct top_keys *k)
{
	const struct top_row *row = selected(k);

	k->dump = true;
	k->dump_pid = k->choice->pid;
	k->dump_tid = k->choice->tid;
	if (row && row->pid) {
		k->dump_pid = (pid_t)row->pid;
		k->dump_tid = (pid_t)row->tid;
	}
}

static bool press_view(struct top_keys *k, unsigned int key)
{
	static const struct {
		unsigned int key;
		enum top_view view;
	} views[] = {
		{ 'p', TOP_PROCESSES }, { 't', TOP_THREADS }, { 'r', TOP_REQUESTS },
		{ 'm', TOP_METHODS },	{ 'c', TOP_TREE },    { 'w', TOP_STATES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		if (views[i].key == key) {
			if (views[i].view != TOP_STATES || k->has_states)
				show(k, views[i].view);
			return true;
		}
	return false;
}

static int press_other(struct top_keys *k, unsigned int key)
{
	struct top_choice *c = k->choice;

	switch (key) {
	case 'q':
		k->quit = true;
		break;
	case '?':
	case 'h':
		k->reading = TOP_HELP;
		k->draw = true;
		break;
	case '/':
		k->typing = k->draw = true;
		break;
	case TERMINAL_ENTER:
	case TERMINAL_RIGHT:
		return enter(k);
	case 'x':
		return c->view == TOP_TREE ? enter(k) : 0;
	case TERMINAL_BACKSPACE:
	case TERMINAL_ESCAPE:
	case TERMINAL_LEFT:
		back(k);
		break;
	case '1':
		set_window(k, 1);
		break;
	case '2':
		set_window(k, 10);
		break;
	case '3':
		set_window(k, 60);
		break;
	case '4':
		set_window(k, 0);
		break;
	case '<':
	case '>':
		shift(k, key == '<');
		break;
	case ' ':
		pause_or_go_on(k);
		break;
	case 'o':
		c->sort = (c->sort + 1) % TOP_SORTS;
		changed(k);
		break;
	case 'i':
		c->inverted = !c->inverted;
		changed(k);
		break;
	case 'n':
		c->native = !c->native;
		changed(k);
		break;
	case 'S':
		k->save = true;
		break;
	case 'd':
		want_dump(k);
		break;
	}
	return 0;
}

/* ---- the filter ---- */

/* Append the character with this code point, if there is room and it is one that is shown. */
static void type(struct top_keys *k, unsigned int c)
{
	char *filter = k->choice->filter;
	const size_t len = strlen(filter);
	char s[4];
	size_t n;

	if (c < 0x80) {
		s[0] = (char)c;
		n = 1;
	} else if (c < 0x800) {
		s[0] = (char)(0xc0 | c >> 6);
		s[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else if (c < 0x10000) {
		s[0] = (char)(0xe0 | c >> 12);
		s[1] = (char)(0x80 | (c >> 6 & 0x3f));
		s[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	} else {
		s[0] = (char)(0xf0 | c >> 18);
		s[1] = (char)(0x80 | (c >> 12 & 0x3f));
		s[2] = (char)(0x80 | (c >> 6 & 0x3f));
		s[3] = (char)(0x80 | (c & 0x3f));
		n = 4;
	}
	if (len + n >= TOP_FILTER_MAX || utf8_sequence(s, n) != n || !utf8_presentable(s, n))
		return;
	memcpy(filter + len, s, n);
	filter[len + n] = '\0';
	changed(k);
}

static void erase(struct top_keys *k)
{
	char *filter = k->choice->filter;
	const size_t chars = utf8_len(filter);

	if (chars)
		filter[utf8_prefix(filter, chars - 1)] = '\0';
	changed(k);
}

static void press_typing(struct top_keys *k, unsigned int key)
{
	if (key == TERMINAL_ESCAPE)
		k->choice->filter[0] = '\0';
	if (key == TERMINAL_ENTER || key == TERMINAL_ESCAPE) {
		k->typing = false;
		changed(k);
	} else if (key == TERMINAL_BACKSPACE) {
		erase(k);
	} else if (key < TERMINAL_UP) {
		type(k, key);
	}
}

/* ---- what is read instead of rows ---- */

static void press_reading(struct top_keys *k, unsigned int key)
{
	size_t to = k->line;

	k->draw = true;
	if (k->reading == TOP_HELP) {
		k->reading = TOP_ROWS;
		k->quit = key == 'q';
	} else if (moved(key, k->page, &to)) {
		/* The last page is a whole one. */
		const size_t last = k->n_lines > k->page ? k->n_lines - k->page : 0;

		k->line = to < last ? to : last;
	} else if (key == 'd') {
		k->dump = true;
	} else if (key == 'q' || key == TERMINAL_ENTER || key == TERMINAL_BACKSPACE ||
		   key == TERMINAL_ESCAPE || key == TERMINAL_LEFT) {
		k->reading = TOP_ROWS;
	}
}

/* ---- all ---- */

int top_keys_press(struct top_keys *k, unsigned int key)
{
	if (key == TERMINAL_RESIZE) {
		k->draw = true;
	} else if (k->reading != TOP_ROWS) {
		press_reading(k, key);
	} else if (k->typing &&
		   !(key >= TERMINAL_UP && key <= TERMINAL_END && press_move(k, key))) {
		press_typing(k, key);
	} else if (!k->typing && !press_move(k, key) && !press_view(k, key)) {
		return press_other(k, key);
	}
	return 0;
}
