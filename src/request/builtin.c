/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules that are built in, as the text that they are (see export/flame_assets.c). */
#include "request/builtin.h"

__asm__(".pushsection .rodata\n"
	".global request_builtin_rules\n"
	".type request_builtin_rules, %object\n"
	"request_builtin_rules:\n"
	".incbin \"request/rules.txt\"\n"
	".byte 0\n"
	".size request_builtin_rules, . - request_builtin_rules\n"
	".popsection\n");
