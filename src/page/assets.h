/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all pages and the flame graph have in common: page.js and page.css as they are in the source
 * tree.
 */
#ifndef RBPF_PAGE_ASSETS_H
#define RBPF_PAGE_ASSETS_H

extern const char page_js[]; /* ends in a NUL, as does: */
extern const char page_css[];

#endif
