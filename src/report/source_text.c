/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/dir_entry.h"
#include "base/io.h"
#include "base/utf8.h"
#include "profile/kept_sources.h"

#define TAB	  8

/* Of a longer path only so many last parts are looked for: each costs a look at all that follow. */
#define MAX_PARTS 64

/*
 * A recording chooses @path: neither links in it nor ".." may lead out of @dir, so neither is
 * followed. Returns a descriptor (O_PATH) or -errno.
 */
static int open_beneath(int dir, const char *path)
{
	_cleanup_close_ int at = -1;
	char part[NAME_MAX + 1];

	while (*path) {
		size_t len = strcspn(path, "/");
		int fd;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		if (!strcmp(part, ".."))
			return -ENOENT;
		fd = openat(at < 0 ? dir : at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (at >= 0)
			close(at);
		at = fd;
		path += len;
		path += strspn(path, "/");
	}
	return at < 0 ? -ENOENT : take_fd(&at);
}

/* O_PATH first: to open a device or a FIFO can have effects. Returns a descriptor or -errno. */
static int open_regular(int dir, const char *path, int64_t *changed_ns)
{
	_cleanup_close_ int fd = open_beneath(dir, path);
	struct statx st;
	int r;

	if (fd < 0)
		return fd;
	r = io_stat(fd, &st);
	if (r || !S_ISREG(st.stx_mode))
		return r ? r : -EINVAL;
	*changed_ns = io_time_ns(st.stx_mtime);
	return fd_reopen(fd, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static const char *last_parts(const char *path)
{
	const char *c = path + strlen(path);
	size_t n = 0;

	while (c > path && (c[-1] != '/' || ++n < MAX_PARTS))
		c--;
	return c;
}

/* *@name becomes the part of @path that there is below @root. Returns a descriptor or -errno. */
static int open_below(const char *path, const char *root, const char **name, int64_t *changed_ns)
{
	_cleanup_close_ int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *rest = last_parts(path);
	int fd = -ENOENT;

	if (dir < 0)
		return -errno;
	while (rest && fd < 0) {
		rest += strspn(rest, "/");
		*name = rest;
		if (*rest)
			fd = open_regular(dir, rest, changed_ns);
		rest = strchr(rest, '/');
	}
	return fd;
}

static int find_lines(struct source_text *s)
{
	const char *text = buf_str(&s->text), *line = text;

	while (*line) {
		if (array_reserve(s->lines, s->cap, s->n + 1))
			return -ENOMEM;
		s->lines[s->n++] = (size_t)(line - text);
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return 0;
}

int source_text_read(const char *path, const char *root, struct source_text *ret)
{
	_cleanup_source_text_ struct source_text s = SOURCE_TEXT_INIT;
	const char *name = path;
	_cleanup_close_ int fd = root ? open_below(path, root, &name, &s.changed_ns) : -ENOENT;

	s.why = fd < 0 ? fd : io_read_fd(fd, SOURCE_MAX_BYTES, &s.text);
	if (s.why == -ENOMEM)
		return -ENOMEM;
	if (!s.why && (asprintf(&s.path, "%s/%s", root, name) < 0 || find_lines(&s)))
		return -ENOMEM;
	*ret = s;
	s = (struct source_text)SOURCE_TEXT_INIT; /* owned by *ret now */
	return 0;
}

/* Whether the file that there is now is another one; false if there is none. */
static bool differs(const struct kept_source *kept, const char *root)
{
	_cleanup_buf_ struct buf now = BUF_INIT;
	_cleanup_close_ int fd = -1, dir = -1;
	const char *name;
	int64_t changed_ns;
	int r;

	if (root) {
		fd = open_below(kept->path, root, &name, &changed_ns);
	} else if (kept->path[0] == '/') {
		dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd = dir < 0 ? -errno
			     : open_regular(dir, kept->path + strspn(kept->path, "/"), &changed_ns);
	}
	if (fd < 0)
		return false;
	r = io_read_fd(fd, SOURCE_MAX_BYTES, &now);
	if (r)
		return r == -EFBIG;
	return now.len != kept->len || memcmp(buf_str(&now), kept->text, now.len) != 0;
}

int source_text_choose(const struct kept_sources *kept, const char *path, const char *root,
		       struct source_text *ret)
{
	_cleanup_source_text_ struct source_text s = SOURCE_TEXT_INIT;
	const struct kept_source *source = kept_sources_find(kept, path, &s.versions);

	if (!source)
		return source_text_read(path, root, ret);
	buf_add(&s.text, source->text, source->len);
	s.path = strdup(path);
	if (!s.path || buf_failed(&s.text) || find_lines(&s))
		return -ENOMEM;
	s.kept = true;
	s.differs = differs(source, root);
	*ret = s;
	s = (struct source_text)SOURCE_TEXT_INIT; /* owned by *ret now */
	return 0;
}

void source_text_deinit(struct source_text *s)
{
	if (!s)
		return;
	free(s->path);
	free(s->lines);
	buf_deinit(&s->text);
	*s = (struct source_text)SOURCE_TEXT_INIT;
}

void source_text_line(const struct source_text *s, uint32_t line, struct buf *out)
{
	_cleanup_buf_ struct buf plain = BUF_INIT;
	const char *c;
	size_t column = 0;

	if (!line || line > s->n)
		return;
	for (c = buf_str(&s->text) + s->lines[line - 1]; *c && *c != '\n'; c++) {
		size_t blanks = *c == '\t' ? TAB - column % TAB : 0;

		if (*c == '\r' && c[1] == '\n')
			break;
		if (blanks)
			buf_add_repeat(&plain, ' ', blanks);
		else
			buf_addch(&plain, *c);
		column += blanks ? blanks : 1;
	}
	if (buf_failed(&plain))
		out->failed = true;
	else
		utf8_sanitise(out, buf_str(&plain), plain.len);
}
