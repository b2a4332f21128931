/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "target/remote.h"
#include "target/target_file.h"

#define PIECE (64u << 10) /* bytes; of a longer line no more is looked at */

static const char DELETED[] = " (deleted)";

/* ---- a line ---- */

/* The number at *@p, which @after follows upon, or for a blank the end of the line. */
static bool read_number(const char **p, const char *end, unsigned int base, char after,
			uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && *s != after; s++) {
		unsigned int digit = (unsigned char)*s - '0';

		if (digit > 9)
			digit = *s >= 'a' && *s <= 'f' ? (unsigned int)(*s - 'a') + 10 : base;
		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (s == *p || (s == end && after != ' '))
		return false;
	*p = s < end ? s + 1 : s;
	*ret = v;
	return true;
}

/* "start-end perms offset major:minor inode   path"; the path is what @p is left at. */
static bool parse_fields(const char **p, const char *end, struct map *m)
{
	uint64_t device;

	if (!read_number(p, end, 16, '-', &m->start) || !read_number(p, end, 16, ' ', &m->end) ||
	    m->end <= m->start || end - *p < 5 || (*p)[4] != ' ')
		return false;
	m->read = (*p)[0] == 'r';
	m->write = (*p)[1] == 'w';
	m->exec = (*p)[2] == 'x';
	*p += 5;
	if (!read_number(p, end, 16, ' ', &m->offset) || !read_number(p, end, 16, ':', &device) ||
	    !read_number(p, end, 16, ' ', &device) || !read_number(p, end, 10, ' ', &m->inode))
		return false;
	while (*p < end && **p == ' ')
		++*p;
	return true;
}

/* ---- keeping ---- */

/* Neighbours have the same path as a rule, and share it. */
static int set_path(struct maps *maps, struct map *m, const char *path, size_t len)
{
	const char *last = maps->n_paths ? maps->paths[maps->n_paths - 1] : "";

	m->path = "";
	if (!len)
		return 0;
	if (len >= sizeof(DELETED) - 1 &&
	    !memcmp(path + len - (sizeof(DELETED) - 1), DELETED, sizeof(DELETED) - 1))
		len -= sizeof(DELETED) - 1;
	len = strnlen(path, len < MAPS_MAX_PATH ? len : MAPS_MAX_PATH);
	if (strncmp(last, path, len) || last[len]) {
		if (len > MAPS_MAX_PATHS - maps->path_bytes)
			return 0;
		if (array_reserve(maps->paths, maps->cap_paths, maps->n_paths + 1))
			return -ENOMEM;
		last = maps->paths[maps->n_paths] = strndup(path, len);
		if (!last)
			return -ENOMEM;
		maps->n_paths++;
		maps->path_bytes += len;
	}
	m->path = last;
	return 0;
}

/*
 * The process runs while its map is read, and mappings that were read may be parts of a larger one
 * by now: the later line holds.
 */
static void drop_overlapped(struct maps *maps, const struct map *m)
{
	while (maps->n && maps->v[maps->n - 1].end > m->start)
		maps->n_code -= maps->v[--maps->n].exec;
}

static bool is_kept(struct maps *maps, const struct map *m)
{
	if (!m->exec)
		return maps->n && maps->v[maps->n - 1].end == m->start &&
		       maps->n - maps->n_code < MAPS_MAX_OTHERS;
	if (maps->n_code < MAPS_MAX_CODE)
		return true;
	maps->n_lost++;
	return false;
}

/* The names that OTEP 4719 says; more may follow upon them. */
static void note_context(struct maps *maps, const struct map *m, const char *path, const char *end)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					     "/memfd:OTEL_CTX" };
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		len = strlen(names[i]);
		if ((size_t)(end - path) >= len && !memcmp(path, names[i], len) &&
		    maps->n_contexts < MAPS_MAX_CONTEXTS)
			maps->contexts[maps->n_contexts++] = m->start;
	}
}

static int add_line(struct maps *maps, const char *line, const char *end)
{
	struct map m = { 0 };
	int r;

	if (!parse_fields(&line, end, &m))
		return -EINVAL;
	maps->n_lines++;
	note_context(maps, &m, line, end);
	drop_overlapped(maps, &m);
	if (!is_kept(maps, &m))
		return 0;
	r = array_reserve(maps->v, maps->cap, maps->n + 1);
	if (!r)
		r = set_path(maps, &m, line, (size_t)(end - line));
	if (r)
		return r;
	maps->v[maps->n++] = m;
	maps->n_code += m.exec;
	return 0;
}

/* ---- text ---- */

/* Text that comes in pieces, of which the last line is not complete. */
struct maps_reader {
	struct maps maps;
	char piece[PIECE];
	size_t len;
	bool skip; /* the rest of a line that was too long */
};

static int add_lines(struct maps_reader *reader)
{
	const char *line = reader->piece, *end = reader->piece + reader->len, *newline;
	int r = 0;

	while (!r && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (!reader->skip)
			r = add_line(&reader->maps, line, newline);
		reader->skip = false;
		line = newline + 1;
	}
	if (!r && line == reader->piece && reader->len == PIECE) {
		if (!reader->skip)
			r = add_line(&reader->maps, line, end);
		reader->skip = true;
		line = end;
	}
	reader->len = (size_t)(end - line);
	memmove(reader->piece, line, reader->len);
	return r;
}

/* The next up to @size bytes of the text. Returns how many, 0 at the end, or -errno. */
typedef ssize_t read_fn(void *arg, char *to, size_t size);

static int read_all(struct maps_reader *reader, read_fn *read_more, void *arg)
{
	uint64_t total = 0;
	ssize_t n;
	int r = 0;

	while (!r) {
		n = read_more(arg, reader->piece + reader->len, PIECE - reader->len);
		if (n <= 0)
			return (int)n;
		total += (uint64_t)n;
		if (total > MAPS_MAX_BYTES) {
			reader->maps.is_cut = true;
			reader->len = 0;
			return 0;
		}
		reader->len += (size_t)n;
		r = add_lines(reader);
	}
	return r;
}

/* A line that has no end is one, too. */
static int finish(struct maps_reader *reader, struct maps *ret)
{
	const char *line = reader->piece;
	int r = 0;

	if (reader->len && !reader->skip)
		r = add_line(&reader->maps, line, line + reader->len);
	if (!r)
		*ret = reader->maps;
	return r;
}

static int read_maps(read_fn *read_more, void *arg, struct maps *ret)
{
	struct maps_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	r = read_all(reader, read_more, arg);
	if (!r)
		r = finish(reader, ret);
	if (r)
		maps_deinit(&reader->maps);
	free(reader);
	return r;
}

static ssize_t read_descriptor(void *arg, char *to, size_t size)
{
	const int *fd = arg;
	ssize_t n;

	do
		n = read(*fd, to, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int maps_read_fd(int fd, struct maps *ret)
{
	return read_maps(read_descriptor, &fd, ret);
}

int maps_parse(const char *text, struct maps *ret)
{
	struct maps maps = MAPS_INIT;
	const char *line, *end;
	int r;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		r = add_line(&maps, line, end);
		if (r) {
			maps_deinit(&maps);
			return r;
		}
	}
	*ret = maps;
	return 0;
}

struct process_text {
	pid_t pid;
	bool begun;
};

static ssize_t read_process(void *arg, char *to, size_t size)
{
	struct process_text *text = arg;

	if (text->begun)
		return remote_read_next(text->pid, to, size);
	text->begun = true;
	return remote_read_first(text->pid, "maps", to, size);
}

int maps_read(pid_t pid, struct maps *ret, struct err *err)
{
	struct process_text text = { .pid = pid };
	struct maps maps = MAPS_INIT;
	int r;

	r = read_maps(read_process, &text, &maps);
	if (r == -ETIMEDOUT)
		return err_set(err, -ESRCH, ERR_TARGET, "pid %d cannot be read: " REMOTE_HANGS,
			       (int)pid);
	if (r == -ENOENT || r == -ESRCH || (!r && !maps.n_lines))
		return err_set(err, -ESRCH, ERR_TARGET, "no process with pid %d", (int)pid);
	if (r)
		return err_set(err, r, r == -EACCES || r == -EPERM ? ERR_ENV : ERR_TARGET,
			       "cannot read /proc/%d/maps: %s", (int)pid, strerror(-r));
	*ret = maps;
	return 0;
}

void maps_deinit(struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->n_paths; i++)
		free(maps->paths[i]);
	free(maps->paths);
	free(maps->v);
	*maps = (struct maps)MAPS_INIT;
}

int maps_open_file(pid_t pid, const struct map *map)
{
	const struct target_file_request req = {
		.kind = TARGET_FILE_MAPPED,
		.pid = pid,
		.start = map->start,
		.end = map->end,
		.inode = map->inode,
		.path = map->path,
	};

	return target_file_open(&req);
}
