/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/top_dump.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define PATIENCE_NS (30 * NSEC_PER_SEC)
#define MAX_TEXT    (8 << 20)

static const char unfinished[] = "(not all of it: it took too long, or was too large)\n";

/* It ends with top, which it must not outlive with its rights. */
_Noreturn static void run_child(pid_t pid, bool native, int out)
{
	char number[16];
	char *const argv[] = { "rbpf",
			       "dump",
			       "--color",
			       "never",
			       "--no-children",
			       "-p",
			       number,
			       native ? "--native" : NULL,
			       NULL };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	snprintf(number, sizeof(number), "%d", (int)pid);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0)
		_exit(126);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void reset(struct top_dump *d)
{
	if (d->fd >= 0)
		close(d->fd);
	if (d->child > 0) {
		kill(d->child, SIGKILL);
		while (waitpid(d->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	d->fd = -1;
	d->child = 0;
	buf_reset(&d->incoming);
}

int top_dump_start(struct top_dump *d, pid_t pid, bool native, struct err *err)
{
	int fds[2], r = 0;

	reset(d);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return err_set(err, -errno, ERR_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	/* The child waits when the pipe is full. */
	fcntl(fds[1], F_SETFL, 0);
	d->pid = pid;
	d->child = fork();
	if (d->child == 0)
		run_child(pid, native, fds[1]);
	if (d->child < 0) {
		r = err_set(err, -errno, ERR_RUNTIME, "cannot fork: %s", strerror(errno));
		d->child = 0;
	}
	close(fds[1]);
	if (r) {
		close(fds[0]);
		return r;
	}
	d->fd = fds[0];
	d->end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	snprintf(d->title, sizeof(d->title), "rbpf top: the stacks of pid %d", (int)pid);
	return 0;
}

/* Make lines of what has come: it does not grow any more, so what points into it stays. */
static int split(struct top_dump *d)
{
	const struct buf last = d->text;
	size_t n = 1;
	const char **lines;
	char *s = d->incoming.len ? d->incoming.data : NULL, *end;

	if (buf_failed(&d->incoming))
		return -ENOMEM;
	for (size_t i = 0; i < d->incoming.len; i++)
		n += s[i] == '\n';
	lines = realloc(d->lines, (n + 1) * sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	d->lines = lines;
	d->text = d->incoming;
	d->incoming = last;
	lines[0] = d->title;
	d->n_lines = 1;
	for (; s && (end = strchr(s, '\n')); s = end + 1) {
		*end = '\0';
		lines[d->n_lines++] = s;
	}
	return 0;
}

int top_dump_poll(struct top_dump *d)
{
	char chunk[4096];
	ssize_t n = 0;

	if (d->fd < 0)
		return 0;
	while (d->incoming.len < MAX_TEXT && (n = read(d->fd, chunk, sizeof(chunk))) > 0)
		buf_add(&d->incoming, chunk, (size_t)n);
	if (n) {
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			d->end = 0;
		if (d->incoming.len < MAX_TEXT && clock_ns(CLOCK_MONOTONIC) < d->end)
			return 0;
		buf_addstr(&d->incoming, unfinished);
		kill(d->child, SIGKILL);
	}
	close(d->fd);
	d->fd = -1;
	while (waitpid(d->child, NULL, 0) < 0 && errno == EINTR)
		;
	d->child = 0;
	return split(d) ? -ENOMEM : 1;
}

/* The number that @s goes past; 0 if there is none. */
static uint64_t take_number(const char **s)
{
	uint64_t n = 0;

	for (; isdigit((unsigned char)**s) && n <= INT_MAX; (*s)++)
		n = n * 10 + (uint64_t)(**s - '0');
	return n;
}

/* Of "thread 42 …", and of "3 threads 42, 50-51 …". */
static bool names_thread(const char *line, pid_t tid)
{
	const uint64_t id = (uint64_t)tid;
	const char *s = line;
	uint64_t from, to;

	if (take_number(&s))
		s += *s == ' ';
	if (strncmp(s, "thread", 6) != 0)
		return false;
	s += strcspn(s, " ");
	do {
		s += strspn(s, ", ");
		from = to = take_number(&s);
		if (*s == '-') {
			s++;
			to = take_number(&s);
		}
		if (from && id >= from && id <= to)
			return true;
	} while (from && *s == ',');
	return false;
}

size_t top_dump_line_of(const struct top_dump *d, pid_t tid)
{
	for (size_t i = 1; i < d->n_lines && tid; i++)
		if (names_thread(d->lines[i], tid))
			return i;
	return 0;
}

void top_dump_deinit(struct top_dump *d)
{
	reset(d);
	free(d->lines);
	buf_deinit(&d->text);
	buf_deinit(&d->incoming);
	*d = (struct top_dump)TOP_DUMP_INIT;
}
