/* SPDX-License-Identifier: GPL-2.0-only */
/* Words of commands that people are told to type: what a terminal would not show becomes visible.
 */
#ifndef RBPF_UI_SHELL_WORDS_H
#define RBPF_UI_SHELL_WORDS_H

struct buf;

/* Append @word, in quotes where a shell needs them. */
void shell_word_add(const char *word, struct buf *out);

/* The same of a path, so that one that begins with a dash is no option. */
void shell_path_add(const char *path, struct buf *out);

#endif
