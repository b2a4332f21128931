/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * OpenTelemetry's process context: what a process says that it is (service.name and other resource
 * attributes), in a mapping of its own for readers from outside. Version 2 of OTEP 4719, of which
 * doc/otel.md tells what is read.
 *
 * The process may say anything, and change it while it is read: what is read is bounded, and is
 * text for people, which nothing here relies on.
 */
#ifndef RBPF_TARGET_OTEL_CONTEXT_H
#define RBPF_TARGET_OTEL_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct buf;
struct maps;
struct memory;

#define OTEL_MAX_PAYLOAD    (64u << 10)	   /* bytes; a larger context is not read */
#define OTEL_MAX_ATTRIBUTES ATTRIBUTES_MAX /* that are kept, the first */
#define OTEL_MAX_KEY	    128		   /* bytes; an attribute of a longer key is left out */
#define OTEL_MAX_VALUE	    1024	   /* bytes; the rest of a longer value is cut */
#define OTEL_MAX_TEXT	    8192 /* bytes of all; an attribute that exceeds it is left out */

/*
 * Append to @out, which must be empty, the attributes that the process of @mem publishes, in the
 * form of base/attributes.h: those of the resource before others, and of equal keys the first.
 *
 * Returns 0, -ENOENT (it publishes none of this version), -EAGAIN (it was changing it all the
 * time), -EBADMSG (it is malformed or too large) or -ENOMEM. After a failure @out is empty.
 */
int otel_context_read(const struct memory *mem, const struct maps *maps, struct buf *out);

/* The same of the @len bytes of a payload; not -ENOENT or -EAGAIN. */
int otel_context_parse(const void *payload, size_t len, struct buf *out);

#endif
