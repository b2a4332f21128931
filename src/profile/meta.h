/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The JSON payloads of a recording, META and TOTALS, from and to their structs.
 *
 * One table of keys serves both directions. An unknown key is ignored and a missing one leaves 0
 * or NULL, so that either side may be older; a known key with a value of the wrong type is an
 * error.
 */
#ifndef RBPF_PROFILE_META_H
#define RBPF_PROFILE_META_H

#include <stddef.h>

struct buf;
struct json;
struct profile_meta;
struct profile_totals;

/*
 * Append the payload to @out; strings are made valid on the way. -ENOMEM is left in buf_failed().
 */
void meta_encode(const struct profile_meta *meta, struct buf *out);
void totals_encode(const struct profile_totals *totals, struct buf *out);

/* Add the member "events", as it is in META. */
void meta_events_json(const struct profile_meta *meta, struct json *j);

/*
 * Fill the fields of @ret that the payload has. Returns 0, -EBADMSG or -ENOMEM; also on failure
 * strings in @ret may have been set and are the caller's.
 */
int meta_decode(const void *data, size_t len, struct profile_meta *ret);
int totals_decode(const void *data, size_t len, struct profile_totals *ret);

#endif
