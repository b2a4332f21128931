/* SPDX-License-Identifier: GPL-2.0-only */
/* The script and styles of the page of `rbpf serve`, as they are in the source tree. */
#ifndef RBPF_SERVE_ASSETS_H
#define RBPF_SERVE_ASSETS_H

extern const char serve_js[]; /* ends in a NUL, as does: */
extern const char serve_css[];

#endif
