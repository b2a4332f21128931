/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one escaper for XML, for attributes and text alike.
 */
#ifndef RBPF_EXPORT_XML_H
#define RBPF_EXPORT_XML_H

#include <stddef.h>

struct buf;

/*
 * Append @len bytes of valid UTF-8 with & < > " escaped. What XML 1.0 cannot hold even escaped
 * (control characters but TAB and newline, U+FFFE, U+FFFF) becomes U+FFFD.
 */
void xml_escape_n(struct buf *out, const char *s, size_t len);
void xml_escape(struct buf *out, const char *s);

#endif
