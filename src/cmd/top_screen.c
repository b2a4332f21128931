/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stop.h"
#include "cmd/record.h"
#include "cmd/sampling.h"
#include "cmd/top_dump.h"
#include "cmd/top_keys.h"
#include "cmd/top_save.h"
#include "profile/window.h"
#include "sample/collector.h"
#include "top/layout.h"
#include "top/terminal.h"

#define POLL_MS	   100
#define NOTICE_NS  (5 * NSEC_PER_SEC)
/* Rows are not made again before so many times the time that it took: at most 5 % of a CPU. */
#define BUILD_PART 20

static const char footer[] = "q quit  ? help  / filter  p t r m c views  Enter open  "
			     "1 2 3 4 window  Space pause";

static const char dump_footer[] = "q back  d again";

static const char *const help[] = {
	"rbpf top: keys",
	"",
	"p t r m c w  processes, threads, requests, methods, call tree, waits",
	"Enter        open: a process, a thread, a request, a method, a node",
	"Backspace    back; so does Esc",
	"x            open or close a node of the tree",
	"1 2 3 4      the last 1 s, 10 s, 60 s, all",
	"< >          back and forth in time",
	"Space        pause",
	"/            show rows with this text only",
	"o            order by self, total, name",
	"i            tree: callers below, callees below",
	"n            native frames (with --native)",
	"S            save the time that is shown as a recording",
	"d            the stacks of the process as they are now (d: again, q: back)",
	"q            quit",
};

struct screen {
	const struct top_screen_options *opts;
	struct top_keys keys;
	struct top_model model;
	struct top_page page;
	struct top_dump dump;
	char notice[160];
	uint64_t notice_ns; /* until then; 0: none */
	uint64_t built_ns, took_ns, built_to;
	size_t first; /* row at the top */
	bool said_ended;
};

static void notify(struct screen *s, const char *text)
{
	snprintf(s->notice, sizeof(s->notice), "%.*s", (int)sizeof(s->notice) - 1, text);
	s->notice_ns = clock_ns(CLOCK_MONOTONIC) + NOTICE_NS;
	s->keys.draw = true;
}

static void warned(void *arg, const char *message)
{
	notify(arg, message);
}

/* ---- drawing ---- */

static struct top_frame frame_of(const struct screen *s)
{
	struct collector_status status;
	struct top_frame f = {
		.utf8 = s->opts->utf8,
		.targets = s->opts->targets,
		.first = s->first,
		.selected = s->keys.selected,
		.paused = s->keys.paused,
		.typing = s->keys.typing,
		.notice = s->notice_ns ? s->notice : NULL,
		.footer = footer,
	};

	collector_status(s->opts->sampling->collector, &status);
	f.frequency = status.frequency;
	terminal_size(&f.width, &f.height);
	return f;
}

static int lay_out_text(struct screen *s, struct top_frame f)
{
	int r;

	if (s->keys.reading == TOP_HELP)
		return top_layout_text(help, ARRAY_SIZE(help), &f, &s->page);
	f.first = s->keys.line;
	f.footer = dump_footer;
	r = top_layout_text(s->dump.lines, s->dump.n_lines, &f, &s->page);
	s->keys.page = s->page.n_shown ? s->page.n_shown : 1;
	return r;
}

/* Lay out so that the selected row is on the page. */
static int lay_out(struct screen *s)
{
	struct top_frame f = frame_of(s);
	int r;

	if (s->keys.reading != TOP_ROWS)
		return lay_out_text(s, f);
	if (s->keys.selected < s->first)
		f.first = s->keys.selected;
	r = top_layout(&s->model, s->keys.choice, &f, &s->page);
	if (!r && s->page.n_shown && s->keys.selected >= f.first + s->page.n_shown) {
		f.first = s->keys.selected - s->page.n_shown + 1;
		r = top_layout(&s->model, s->keys.choice, &f, &s->page);
	}
	s->first = f.first;
	s->keys.page = s->page.n_shown ? s->page.n_shown : 1;
	return r;
}

static int draw(struct screen *s)
{
	int r = lay_out(s);

	s->keys.draw = false;
	if (!r)
		terminal_draw(&s->page);
	return r;
}

/* Make the rows if they are to be others: another second, or another choice. */
static int build(struct screen *s)
{
	const uint64_t to = window_seconds(s->opts->window).to;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	/* What is shown stays where it is in time. */
	if (s->keys.paused)
		s->keys.choice->back += (uint32_t)(to - s->built_to);
	if (!s->keys.build &&
	    (to == s->built_to || s->keys.paused || now - s->built_ns < BUILD_PART * s->took_ns)) {
		s->built_to = s->keys.paused ? to : s->built_to;
		return 0;
	}
	r = top_model_build(&s->model, s->opts->window, s->keys.choice);
	s->built_ns = clock_ns(CLOCK_MONOTONIC);
	s->took_ns = s->built_ns - now;
	s->built_to = to;
	s->keys.build = false;
	s->keys.draw = true;
	if (!r)
		top_keys_find(&s->keys);
	return r;
}

/* ---- the loop ---- */

static void save(struct screen *s)
{
	char said[sizeof(s->notice)];

	s->keys.save = false;
	top_save(s->opts->sampling, s->opts->window, s->model.range, s->opts->start_ns,
		 s->opts->start_realtime_ns, said, sizeof(said));
	notify(s, said);
}

static void start_dump(struct screen *s)
{
	const struct record_options *rec = s->opts->sampling->opts;
	pid_t pid = s->keys.dump_pid;
	struct err err = { 0 };
	char said[64];

	s->keys.dump = false;
	if (!pid && rec->pids.n == 1)
		pid = rec->pids.pids[0];
	if (!pid) {
		notify(s, "d shows the stacks of a process: select one with p or t");
		return;
	}
	s->keys.dump_pid = pid;
	/* What is shown of the last one stays until this one is there. */
	if (top_dump_start(&s->dump, pid, rec->native, &err)) {
		notify(s, err.msg);
		return;
	}
	snprintf(said, sizeof(said), "reading the stacks of pid %d", (int)pid);
	notify(s, said);
}

/* Show the stacks if they are all there, from the thread on that was selected. */
static int poll_dump(struct screen *s)
{
	struct top_keys *k = &s->keys;
	int r = top_dump_poll(&s->dump);

	if (r <= 0)
		return r;
	k->n_lines = s->dump.n_lines - 1;
	k->line = 0;
	if (k->dump_tid && top_dump_line_of(&s->dump, k->dump_tid))
		k->line = top_dump_line_of(&s->dump, k->dump_tid) - 1;
	k->reading = TOP_DUMP;
	k->draw = true;
	s->notice_ns = 0;
	return 0;
}

static int handle_keys(struct screen *s)
{
	unsigned int key;
	int r = 0;

	while (!r && !s->keys.quit && (key = terminal_key()) != TERMINAL_NONE) {
		r = top_keys_press(&s->keys, key);
		if (s->keys.save)
			save(s);
		if (s->keys.dump)
			start_dump(s);
	}
	return r;
}

static void say_ended(struct screen *s)
{
	struct collector_status st;

	collector_status(s->opts->sampling->collector, &st);
	if (s->said_ended || st.live || s->opts->sampling->opts->all_ruby)
		return;
	s->said_ended = true;
	notify(s, "all processes have ended");
}

/* Nobody is there to press a key. */
static bool hung_up(void)
{
	struct pollfd in = { .fd = STDIN_FILENO };

	return poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Take what there is to take, and what is due. Returns what sampling_poll() does. */
static int sample(struct screen *s, bool more, struct err *err)
{
	const struct id_holder ids = collector_ids(s->opts->sampling->collector);
	uint64_t now;
	int r = sampling_poll(s->opts->sampling, more ? 0 : POLL_MS, STDIN_FILENO, err);

	if (r < 0)
		return r;
	now = clock_ns(CLOCK_MONOTONIC);
	if (s->notice_ns && now > s->notice_ns) {
		s->notice_ns = 0;
		s->keys.draw = true;
	}
	window_advance(s->opts->window, now - s->opts->settle_ns);
	if (window_collection_due(s->opts->window) && window_collect(s->opts->window, &ids))
		return err_oom(err);
	return r;
}

static int loop(struct screen *s, struct err *err)
{
	int r = 0;

	while (!s->keys.quit && !stop_signals() && !hung_up() &&
	       clock_ns(CLOCK_MONOTONIC) < s->opts->end_ns) {
		r = sample(s, r > 0, err);
		if (r < 0)
			return r;
		say_ended(s);
		if (handle_keys(s) || poll_dump(s) || build(s) || (s->keys.draw && draw(s)))
			return err_oom(err);
	}
	return 0;
}

int top_screen_run(const struct top_screen_options *opts, struct top_choice *choice,
		   struct err *err)
{
	struct screen s = { .opts = opts,
			    .keys = { .choice = choice,
				      .model = &s.model,
				      .window = opts->window,
				      .has_states = opts->has_states,
				      .build = true },
			    .dump = TOP_DUMP_INIT };
	int r = terminal_open(stdin, stdout, opts->color, err);

	if (r)
		return r;
	choice->seconds = 1;
	opts->sampling->warn = warned;
	opts->sampling->warn_arg = &s;
	r = loop(&s, err);
	opts->sampling->warn = NULL;
	terminal_close();
	top_dump_deinit(&s.dump);
	top_model_deinit(&s.model);
	top_page_deinit(&s.page);
	return r;
}
