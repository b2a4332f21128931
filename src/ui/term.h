/* SPDX-License-Identifier: GPL-2.0-only */
/* What rbpf knows about the terminal it writes to: whether there is one, its width, its colours. */
#ifndef RBPF_UI_TERM_H
#define RBPF_UI_TERM_H

#include <stdbool.h>
#include <stddef.h>

enum term_when { TERM_AUTO, TERM_ALWAYS, TERM_NEVER }; /* order of the words of --color */

/* Columns of the terminal @fd: 80 if it does not say, 0 (no limit) if it is no terminal. */
size_t term_width(int fd);

/*
 * Whether to colour what goes to @fd. TERM_AUTO: it is a terminal, TERM is set and not "dumb", and
 * NO_COLOR is unset or empty (https://no-color.org).
 */
bool term_color(int fd, enum term_when when);

#define TERM_BOLD  "\033[1m"
#define TERM_DIM   "\033[2m"
#define TERM_RED   "\033[1;31m"
#define TERM_AMBER "\033[1;33m"
#define TERM_RESET "\033[0m"

#endif
