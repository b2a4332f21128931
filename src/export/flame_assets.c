/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `.incbin` needs no tool that a bare system lacks, finds its file by -Isrc, and keeps the script a
 * script, which editors and linters know. The compiler does not see the file, so export.mk
 * declares the dependency.
 */
#include "export/flame_assets.h"

#define EMBED(symbol, path)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #symbol "\n"                                                            \
		".type " #symbol ", %object\n" #symbol ":\n"                                       \
		".incbin \"" path "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".size " #symbol ", . - " #symbol "\n"                                             \
		".popsection\n")

EMBED(flame_js, "export/flame.js");
EMBED(flame_css, "export/flame.css");
