/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scripts and styles as they are in the source tree, put into the program by the assembler. They
 * stand behind page_js and page_css (page/assets.h), which they use.
 */
#ifndef RBPF_EXPORT_ASSETS_H
#define RBPF_EXPORT_ASSETS_H

extern const char flame_js[]; /* ends in a NUL, as do: */
extern const char flame_css[];
extern const char timeline_js[];
extern const char timeline_css[];
extern const char heatmap_js[];
extern const char heatmap_css[];

#endif
