/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flame.js and flame.css as they are in the source tree, put into the program by the assembler.
 */
#ifndef RBPF_EXPORT_FLAME_ASSETS_H
#define RBPF_EXPORT_FLAME_ASSETS_H

extern const char flame_js[]; /* ends in a NUL, as does: */
extern const char flame_css[];

#endif
