/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RBPF_UI_SHELL_PATH_H
#define RBPF_UI_SHELL_PATH_H

struct buf;

/*
 * Append @path as a word of a command that people are told to type: in quotes where a shell needs
 * them, and no option where it begins with a dash. What a terminal would not show becomes visible.
 */
void shell_path_add(const char *path, struct buf *out);

#endif
