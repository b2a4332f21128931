/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names come from the target's memory or from a recording that somebody else made, and may hold any
 * bytes, also such as make a terminal obey. They are made presentable once, when they are interned
 * (rbpf-file(5): valid UTF-8, no control characters), never again at each output.
 */
#ifndef RBPF_BASE_UTF8_H
#define RBPF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * The bytes, 1 to 4, of the well-formed character at the start of @s, which has @len bytes;
 * 0 if there is none. Controls are well-formed.
 */
size_t utf8_sequence(const char *s, size_t len);

/*
 * Whether the well-formed character of @n bytes at @s may be shown: no C0 or C1 control other than
 * TAB, no DEL, no separator of lines or paragraphs, nothing that changes the writing direction, no
 * character without a width other than joiners, variation selectors and combining marks.
 */
bool utf8_presentable(const char *s, size_t n);

/*
 * Append @len bytes of @s to @out as valid UTF-8: every invalid byte, and every character that is
 * not presentable, becomes U+FFFD. Overlong forms, surrogates and code points past U+10FFFF are
 * invalid.
 */
void utf8_sanitise(struct buf *out, const char *s, size_t len);

/* The number of code points in valid UTF-8; what a terminal of narrow characters needs. */
size_t utf8_len(const char *s);

/* Bytes of the longest prefix of valid UTF-8 @s that has at most @max code points. */
size_t utf8_prefix(const char *s, size_t max);

#endif
