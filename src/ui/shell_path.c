/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/shell_path.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

void shell_path_add(const char *path, struct buf *out)
{
	_cleanup_buf_ struct buf shown = BUF_INIT;

	if (path[0] == '-')
		buf_addstr(&shown, "./");
	utf8_sanitise(&shown, path, strlen(path));
	buf_add_shell_word(out, buf_str(&shown));
}
