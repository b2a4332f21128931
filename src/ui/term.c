/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t term_width(int fd)
{
	struct winsize ws;

	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		return ws.ws_col;
	return 80;
}

bool term_color(int fd, enum term_when when)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	switch (when) {
	case TERM_ALWAYS:
		return true;
	case TERM_NEVER:
		return false;
	case TERM_AUTO:
		break;
	}
	if (no_color && *no_color)
		return false;
	return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}
