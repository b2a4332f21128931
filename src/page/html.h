/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A page: one HTML file with its script, styles and data inside, which a browser opens from
 * anywhere and which fetches nothing.
 *
 * Its Content-Security-Policy allows only the script and the styles that it was made with, by their
 * hashes. So if a name from the recording ever became markup, it still could not run anything.
 * Names come into a page as JSON, or as text through html_add_text().
 *
 *	html_begin(&out, title, css, js);
 *	html_add_json(&out, "facts", &json);
 *	html_add_packed(&out, "cells", &numbers);
 *	html_end(&out, js);
 */
#ifndef RBPF_PAGE_HTML_H
#define RBPF_PAGE_HTML_H

struct buf;

/* Append @text, valid UTF-8, with what is markup escaped, to content or to an attribute in "". */
void html_add_text(struct buf *out, const char *text);

/*
 * Append the head and the beginning of the body of a page named @title (valid UTF-8), with the
 * styles @css; @js is what html_end() will be given.
 */
void html_begin(struct buf *out, const char *title, const char *css, const char *js);

/* The same for a page that may do more: @policy, "; connect-src 'self'", is added to its policy. */
void html_begin_with(struct buf *out, const char *title, const char *css, const char *js,
		     const char *policy);

/*
 * Append the source 'sha256-...' by which a policy names @text: a script or styles, all that is
 * between the tags.
 */
void html_add_hash(struct buf *out, const char *text);

/* Append @json, finished JSON, as an element with this id. page.js reads it: page.json(id). */
void html_add_json(struct buf *out, const char *id, const struct buf *json);

/*
 * Append @bytes in base64 as an element with this id. They are numbers, of buf_add_varint() or a
 * byte each: buf_addch(). page.js reads them one by one: page.numbers(id).
 */
void html_add_packed(struct buf *out, const char *id, const struct buf *bytes);

/* End the page with the script @js. It is run when all the rest is there. */
void html_end(struct buf *out, const char *js);

#endif
