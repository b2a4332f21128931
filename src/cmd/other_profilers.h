/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of other profilers that are called otherwise here, or are not needed: users come from
 * rbspy, py-spy, async-profiler, perf and stackprof, and type what they know.
 */
#ifndef RBPF_CMD_OTHER_PROFILERS_H
#define RBPF_CMD_OTHER_PROFILERS_H

#include <stdbool.h>

struct command;
struct err;

/*
 * If @option ("--x", "--x=…", "-x"), which @cmd does not have, is one of them, add to @err what
 * does the same here. Returns whether it is.
 */
bool other_profilers_hint(const struct command *cmd, const char *option, struct err *err);

#endif
