/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/shell_words.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static void add(const char *before, const char *word, struct buf *out)
{
	_cleanup_buf_ struct buf shown = BUF_INIT;

	buf_addstr(&shown, before);
	utf8_sanitise(&shown, word, strlen(word));
	buf_add_shell_word(out, buf_str(&shown));
}

void shell_word_add(const char *word, struct buf *out)
{
	add("", word, out);
}

void shell_path_add(const char *path, struct buf *out)
{
	add(path[0] == '-' ? "./" : "", path, out);
}
