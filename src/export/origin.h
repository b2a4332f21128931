/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a file that leaves rbpf says of the recording that it was made from, so that whoever gets it
 * knows how far it can be trusted.
 */
#ifndef RBPF_EXPORT_ORIGIN_H
#define RBPF_EXPORT_ORIGIN_H

#include "base/buf.h"

struct json;
struct profile;

/*
 * Append one line, without its end: "30.0 s, ruby 3.1.2, 496 samples (0 truncated, 0 unresolved, 0
 * failed), 0 lost". It is of the whole recording, whatever of it is exported. A failure is left in
 * @out.
 */
void origin_add(const struct profile *p, struct buf *out);

/* The same as the string @key of the object that @j is in. */
void origin_add_json(const struct profile *p, struct json *j, const char *key);

#endif
