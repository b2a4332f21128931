/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/request_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "request/rules.h"

static int read_file(const char *path, struct request_rules *rules, struct err *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = io_read_file(AT_FDCWD, path, REQUEST_MAX_FILE, &text);

	if (r == -ENOMEM)
		return err_oom(err);
	if (r == -EFBIG)
		return err_set(err, r, ERR_USAGE, "%s has more than %u bytes: no file of rules",
			       path, REQUEST_MAX_FILE);
	if (r)
		return err_set(err, r, ERR_USAGE, "cannot read %s: %s", path, strerror(-r));
	if (memchr(text.data ? text.data : "", '\0', text.len))
		return err_set(err, -EINVAL, ERR_USAGE, "%s is no text", path);
	return request_rules_parse(rules, buf_str(&text), path, err);
}

int cmd_request_rules(const char *path, bool paths, struct request_rules *ret, struct err *err)
{
	_cleanup_request_rules_ struct request_rules rules = { .paths = paths };
	int r = request_rules_builtin(&rules);

	if (r)
		return err_code(err, r);
	if (path)
		r = read_file(path, &rules, err);
	if (r)
		return r;
	*ret = rules;
	rules = (struct request_rules)REQUEST_RULES_INIT; /* owned by *ret now */
	return 0;
}
