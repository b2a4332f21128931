/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "target/target_file.h"

#define MAPS_MAX_BYTES	(64u << 20) /* half a million mappings: beyond vm.max_map_count */

#define LINE_FIELDS_MAX 128 /* more than all that stands before the path */

static const char DELETED[] = " (deleted)";

/* "start-end perms offset dev inode   path" */
static int parse_line(const char *line, size_t len, struct map *ret)
{
	struct map m = { 0 };
	char perms[5], fields[LINE_FIELDS_MAX];
	size_t plen;
	int n = 0;

	/* A copy of what is scanned: sscanf() measures its whole input at each call. */
	snprintf(fields, sizeof(fields), "%.*s",
		 (int)(len < sizeof(fields) ? len : sizeof(fields) - 1), line);
	if (sscanf(fields, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*x:%*x %" SCNu64 "%n",
		   &m.start, &m.end, perms, &m.offset, &m.inode, &n) != 5 ||
	    m.end <= m.start || (size_t)n > len)
		return -EINVAL;
	m.read = perms[0] == 'r';
	m.write = perms[1] == 'w';
	m.exec = perms[2] == 'x';
	while ((size_t)n < len && line[n] == ' ')
		n++;
	plen = len - (size_t)n;
	if (plen >= sizeof(DELETED) - 1 &&
	    !memcmp(line + len - (sizeof(DELETED) - 1), DELETED, sizeof(DELETED) - 1))
		plen -= sizeof(DELETED) - 1;
	m.path = strndup(line + n, plen);
	if (!m.path)
		return -ENOMEM;
	*ret = m;
	return 0;
}

int maps_parse(const char *text, struct maps *ret)
{
	struct maps maps = MAPS_INIT;
	const char *line, *end;
	int r;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		r = array_reserve(maps.v, maps.cap, maps.n + 1);
		if (!r)
			r = parse_line(line, (size_t)(end - line), &maps.v[maps.n]);
		if (r) {
			maps_deinit(&maps);
			return r;
		}
		maps.n++;
	}
	*ret = maps;
	return 0;
}

int maps_read(pid_t pid, struct maps *ret, struct err *err)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	r = io_read_file(AT_FDCWD, path, MAPS_MAX_BYTES, &text);
	if (r == -ENOENT || r == -ESRCH || (!r && !text.len))
		return err_set(err, -ESRCH, ERR_TARGET, "no process with pid %d", (int)pid);
	if (!r)
		r = maps_parse(buf_str(&text), ret);
	if (r)
		return err_set(err, r, r == -EACCES || r == -EPERM ? ERR_ENV : ERR_TARGET,
			       "cannot read %s: %s", path, strerror(-r));
	return 0;
}

void maps_deinit(struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	*maps = (struct maps)MAPS_INIT;
}

const struct map *maps_find(const struct maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (addr < maps->v[mid].start)
			hi = mid;
		else if (addr >= maps->v[mid].end)
			lo = mid + 1;
		else
			return &maps->v[mid];
	}
	return NULL;
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
