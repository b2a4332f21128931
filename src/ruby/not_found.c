/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/not_found.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/stop.h"
#include "target/process.h"
#include "target/target_file.h"
#include "worker/file_worker.h"

#define TEXT_PIECE   65536
#define TEXT_FILE    (64u << 20) /* of an executable that are looked at */
#define VERSION_TEXT 48		 /* what version_in() looks at is no longer */

/*
 * Whether @text begins as what ruby -v prints: "ruby 3.4.9 (2026-03-11 revision …"; "p53" or "dev"
 * may follow the version.
 */
static bool is_version(const char *text, unsigned int version[3])
{
	unsigned int year, month, day;
	const char *date;

	if (sscanf(text, "ruby %3u.%3u.%3u", &version[0], &version[1], &version[2]) != 3)
		return false;
	date = strchr(text, '(');
	return date && sscanf(date, "(%4u-%2u-%2u", &year, &month, &day) == 3;
}

static bool version_in(const char *text, size_t len, unsigned int version[3])
{
	const char *p = text, *end = text + len;
	char piece[VERSION_TEXT + 1];

	while ((p = memmem(p, (size_t)(end - p), "ruby ", 5)) && end - p >= VERSION_TEXT) {
		snprintf(piece, sizeof(piece), "%.*s", VERSION_TEXT, p);
		if (is_version(piece, version))
			return true;
		p++;
	}
	return false;
}

/* The same in the executable of @pid. */
static bool version_of_exe(pid_t pid, struct file_worker *worker, unsigned int version[3])
{
	const struct target_file_request req = { .kind = TARGET_FILE_EXE, .pid = pid };
	_cleanup_close_ int fd = target_file_open(&req);
	_cleanup_free_ char *piece = malloc(TEXT_PIECE);
	uint64_t at = 0;
	ssize_t n;

	while (fd >= 0 && piece && at < TEXT_FILE && !stop_overdue()) {
		n = file_worker_read(worker, fd, piece, TEXT_PIECE, at);
		if (n <= VERSION_TEXT)
			return false;
		if (version_in(piece, (size_t)n, version))
			return true;
		at += (uint64_t)n - VERSION_TEXT; /* it may begin at the end of a piece */
	}
	return false;
}

int ruby_not_found(const struct process *p, struct file_worker *worker, struct err *err)
{
	const char *slash = strrchr(p->exe, '/');
	unsigned int version[3];

	if (slash && !strcmp(slash, "/java") && strstr(p->cmdline, "jruby"))
		return err_set(err, -ENOENT, ERR_TARGET,
			       "pid %d runs JRuby on the JVM; rbpf profiles CRuby only",
			       (int)p->pid);
	if (version_of_exe(p->pid, worker, version)) {
		err_set(err, -ENOENT, ERR_TARGET,
			"pid %d (%s) seems to be Ruby %u.%u.%u, but its executable has no symbols "
			"by which the Ruby VM can be found",
			(int)p->pid, p->exe, version[0], version[1], version[2]);
		err_hint(err, "it was linked statically and stripped: link it dynamically, or with "
			      "-rdynamic, or keep its symbols");
		return -ENOENT;
	}
	err_set(err, -ENOENT, ERR_TARGET,
		"pid %d (%s) is not a Ruby process: neither the executable nor its libraries "
		"contain the Ruby VM",
		(int)p->pid, p->exe);
	err_hint(err, "'rbpf ps' lists Ruby processes");
	return -ENOENT;
}
