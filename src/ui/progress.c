/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/progress.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "ui/term.h"

#define PROGRESS_PERIOD_NS (NSEC_PER_SEC / 4)
#define ERASE_LINE	   "\r\033[K"

/* A terminal without escape sequences cannot erase a line: it gets none. */
static bool can_erase(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0;
}

void progress_init(struct progress *p, int fd, bool enable)
{
	*p = (struct progress) { .fd = fd, .enabled = enable && isatty(fd) && can_erase() };
}

bool progress_due(const struct progress *p, uint64_t now_ns)
{
	return p->enabled && (!p->drawn || now_ns - p->drawn_ns >= PROGRESS_PERIOD_NS);
}

/*
 * A terminal that was stopped (Ctrl-S), or that nobody reads, keeps whoever writes waiting; and the
 * thread that draws also drains the engine. So there is one write, and only if there is room: were
 * that taken by another writer meanwhile, a signal would still end it.
 */
static void write_if_room(const struct progress *p, const char *text, size_t len)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&pfd, 1, 0) == 1 && pfd.revents & POLLOUT) {
		n = write(p->fd, text, len);
		(void)n; /* what is missing is drawn the next time */
	}
}

void progress_draw(struct progress *p, uint64_t now_ns, const char *line)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t width;

	if (!progress_due(p, now_ns))
		return;
	/*
	 * Asked each time: it changes with the window. The last column would wrap on some
	 * terminals.
	 */
	width = term_width(p->fd);
	buf_addstr(&out, ERASE_LINE);
	buf_add(&out, line, utf8_prefix(line, width > 1 ? width - 1 : 1));
	if (!buf_failed(&out))
		write_if_room(p, out.data, out.len);
	p->drawn = true;
	p->drawn_ns = now_ns;
}

void progress_clear(struct progress *p)
{
	if (p->drawn)
		write_if_room(p, ERASE_LINE, strlen(ERASE_LINE));
	p->drawn = false;
}
