/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts a file of the source tree into the program, as bytes with a NUL behind them.
 *
 * `.incbin` needs no tool that a bare system lacks, finds its file by -Isrc, and keeps a script a
 * script, which editors and linters know. The compiler does not see the file: a rule of make
 * (src/page/page.mk) must declare the dependency.
 */
#ifndef RBPF_PAGE_EMBED_H
#define RBPF_PAGE_EMBED_H

/* Define the object @symbol, which a header declares as `extern const char symbol[]`. */
#define EMBED(symbol, path)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #symbol "\n"                                                            \
		".type " #symbol ", %object\n" #symbol ":\n"                                       \
		".incbin \"" path "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".size " #symbol ", . - " #symbol "\n"                                             \
		".popsection\n")

#endif
