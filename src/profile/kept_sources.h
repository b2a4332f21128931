/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source files that a recording has kept, as they were when it was made.
 *
 * Their text is what the file of the target held: any bytes but NUL. Paths are valid UTF-8.
 */
#ifndef RBPF_PROFILE_KEPT_SOURCES_H
#define RBPF_PROFILE_KEPT_SOURCES_H

#include <stddef.h>

struct kept_source {
	char *path; /* as frames name it; owned */
	char *text; /* with a NUL behind it; owned */
	size_t len; /* of the text */
};

struct kept_sources {
	struct kept_source *v; /* in the order of the file; owned */
	size_t n, cap;
	size_t bytes; /* of all paths and texts, at most RBPF_FILE_MAX_SOURCES */
};

void kept_sources_deinit(struct kept_sources *s);

/*
 * Add the source file of this payload of a SOURCE chunk. Returns 0, -ENOMEM, -EBADMSG (it is none)
 * or -E2BIG (past the limits of rbpf_file.h); on failure nothing changed.
 */
int kept_sources_decode(struct kept_sources *s, const void *data, size_t len);

/*
 * The first text that was kept of @path, or NULL; *@versions is how many there are: processes with
 * other roots may have other files of that path.
 */
const struct kept_source *kept_sources_find(const struct kept_sources *s, const char *path,
					    size_t *versions);

#endif
