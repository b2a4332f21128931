/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of /proc/PID/maps as no kernel writes it: what is kept is in order and within the
 * limits, and the same whether the text is at hand or read piece by piece.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/maps.h"

#define MAX_TEXT 60000 /* bytes; of a longer line less is looked at when it is read */

static void check(const struct maps *maps)
{
	size_t n_code = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->v[i];

		if (m->start >= m->end || (i && maps->v[i - 1].end > m->start))
			abort();
		if (!m->path || strlen(m->path) > MAPS_MAX_PATH)
			abort();
		n_code += m->exec;
	}
	if (n_code != maps->n_code || maps->n > maps->n_lines || maps->n_lost || maps->is_cut)
		abort();
}

static void compare(const struct maps *a, const struct maps *b)
{
	if (a->n != b->n || a->n_code != b->n_code || a->n_lines != b->n_lines)
		abort();
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].start != b->v[i].start || a->v[i].end != b->v[i].end ||
		    a->v[i].inode != b->v[i].inode || a->v[i].offset != b->v[i].offset ||
		    strcmp(a->v[i].path, b->v[i].path))
			abort();
}

static int read_text(const void *text, size_t size, struct maps *maps)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), r;

	if (write(fd, text, size) != (ssize_t)size)
		abort();
	lseek(fd, 0, SEEK_SET);
	r = maps_read_fd(fd, maps);
	close(fd);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps read = MAPS_INIT, parsed = MAPS_INIT;
	int r, p;

	if (size > MAX_TEXT)
		return 0;
	r = read_text(data, size, &read);
	check(&read);
	if (!memchr(data, '\0', size)) {
		char *text = strndup((const char *)data, size);

		p = maps_parse(text, &parsed);
		check(&parsed);
		if (p != r)
			abort();
		compare(&read, &parsed);
		free(text);
	}
	maps_deinit(&read);
	maps_deinit(&parsed);
	return 0;
}
