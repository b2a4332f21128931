/* SPDX-License-Identifier: GPL-2.0-only */
/* Progress and colours need a terminal: a pseudo-terminal is one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/progress.h"
#include "ui/term.h"

struct terminal {
	int master, slave;
};

static struct terminal terminal_open(unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	struct termios raw = { 0 };
	struct terminal t;

	cfmakeraw(&raw);
	cr_assert_eq(openpty(&t.master, &t.slave, NULL, &raw, &size), 0);
	fcntl(t.master, F_SETFL, O_NONBLOCK);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	return t;
}

static void terminal_close(struct terminal *t)
{
	close(t->master);
	close(t->slave);
}

/* What has been written since. */
static const char *terminal_read(const struct terminal *t, char *text, size_t size)
{
	ssize_t n = read(t->master, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

Test(progress, draws_at_most_four_times_a_second)
{
	struct terminal t = terminal_open(80);
	uint64_t now = 1000 * NSEC_PER_SEC;
	struct progress p;
	char text[200];

	progress_init(&p, t.slave, true);
	cr_expect(progress_due(&p, now));
	progress_draw(&p, now, "one");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kone");
	progress_draw(&p, now + 249 * NSEC_PER_MSEC, "two");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "");
	progress_draw(&p, now + 250 * NSEC_PER_MSEC, "three");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kthree");
	progress_clear(&p);
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[K");
	progress_clear(&p);
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "");
	cr_expect(progress_due(&p, now + 251 * NSEC_PER_MSEC), "at once after it was cleared");
	terminal_close(&t);
}

/* It does not wait for the terminal: the recording goes on meanwhile. */
Test(progress, stopped_terminal)
{
	struct terminal t = terminal_open(80);
	struct progress p;
	char text[200];

	progress_init(&p, t.slave, true);
	progress_draw(&p, NSEC_PER_SEC, "one");
	cr_assert_eq(tcflow(t.slave, TCOOFF), 0); /* as Ctrl-S does */
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kone");
	progress_draw(&p, 2 * NSEC_PER_SEC, "two");
	progress_clear(&p);
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "");
	cr_assert_eq(tcflow(t.slave, TCOON), 0);
	progress_draw(&p, 3 * NSEC_PER_SEC, "three");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kthree");
	terminal_close(&t);
}

Test(progress, terminal_that_nobody_reads)
{
	const int flags = O_RDWR | O_NONBLOCK;
	struct terminal t = terminal_open(80);
	struct progress p;
	char text[200];

	progress_init(&p, t.slave, true);
	progress_draw(&p, NSEC_PER_SEC, "one");
	memset(text, 'x', sizeof(text));
	cr_assert_eq(fcntl(t.slave, F_SETFL, flags), 0);
	while (write(t.slave, text, sizeof(text)) > 0)
		;
	cr_assert_eq(fcntl(t.slave, F_SETFL, flags & ~O_NONBLOCK), 0);
	progress_draw(&p, 2 * NSEC_PER_SEC, "two");
	progress_clear(&p);
	while (*terminal_read(&t, text, sizeof(text)))
		cr_expect_null(strstr(text, "two"));
	progress_draw(&p, 3 * NSEC_PER_SEC, "three");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kthree");
	terminal_close(&t);
}

Test(progress, never_wraps)
{
	struct terminal t = terminal_open(10);
	struct progress p;
	char text[200];

	progress_init(&p, t.slave, true);
	progress_draw(&p, NSEC_PER_SEC, "ümläüte und mehr");
	cr_expect_str_eq(terminal_read(&t, text, sizeof(text)), "\r\033[Kümläüte u");
	terminal_close(&t);
}

Test(progress, only_on_a_terminal_that_can_and_if_wanted)
{
	struct terminal t = terminal_open(80);
	struct progress p;
	int fds[2];

	progress_init(&p, t.slave, false);
	cr_expect_not(progress_due(&p, NSEC_PER_SEC));
	cr_assert_eq(pipe(fds), 0);
	progress_init(&p, fds[1], true);
	cr_expect_not(progress_due(&p, NSEC_PER_SEC));
	setenv("TERM", "dumb", 1);
	progress_init(&p, t.slave, true);
	cr_expect_not(progress_due(&p, NSEC_PER_SEC));
	close(fds[0]);
	close(fds[1]);
	terminal_close(&t);
}

Test(term, width)
{
	struct terminal t = terminal_open(123);
	struct winsize none = { 0 };
	int fds[2];

	cr_expect_eq(term_width(t.slave), 123);
	cr_assert_eq(ioctl(t.slave, TIOCSWINSZ, &none), 0);
	cr_expect_eq(term_width(t.slave), 80, "a serial line does not say");
	cr_assert_eq(pipe(fds), 0);
	cr_expect_eq(term_width(fds[1]), 0);
	close(fds[0]);
	close(fds[1]);
	terminal_close(&t);
}

Test(term, color)
{
	struct terminal t = terminal_open(80);

	cr_expect(term_color(t.slave, TERM_AUTO));
	setenv("NO_COLOR", "1", 1);
	cr_expect_not(term_color(t.slave, TERM_AUTO));
	cr_expect(term_color(t.slave, TERM_ALWAYS));
	setenv("NO_COLOR", "", 1);
	cr_expect(term_color(t.slave, TERM_AUTO), "an empty NO_COLOR does not count");
	cr_expect_not(term_color(t.slave, TERM_NEVER));
	setenv("TERM", "dumb", 1);
	cr_expect_not(term_color(t.slave, TERM_AUTO));
	unsetenv("TERM");
	cr_expect_not(term_color(t.slave, TERM_AUTO));
	setenv("TERM", "xterm", 1);
	cr_expect_not(term_color(open("/dev/null", O_WRONLY), TERM_AUTO));
	cr_expect(term_color(-1, TERM_ALWAYS));
	terminal_close(&t);
}
