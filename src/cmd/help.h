/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Help, made from the tables: it cannot say other than what the parser does.
 */
#ifndef RBPF_CMD_HELP_H
#define RBPF_CMD_HELP_H

struct buf;
struct command;
struct err;

/* Append the help of @cmd, or of rbpf itself if NULL. Plain text of at most 80 columns. */
void help_render(const struct command *cmd, struct buf *out);

/* The same to stdout. */
int help_print(const struct command *cmd, struct err *err);

/*
 * "rbpf __options": all tables, for the lint of the man pages and for tests. A line is
 *
 *	COMMAND <TAB> --name <TAB> -x <TAB> ARG <TAB> INITIAL
 *
 * with "-" where there is nothing; COMMAND is "rbpf" for rbpf's own options, and those that every
 * command takes stand only there. A switch has a line for each of its two names.
 */
int help_print_options(struct err *err);

#endif
