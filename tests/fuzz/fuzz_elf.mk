# SPDX-License-Identifier: GPL-2.0-only
#
# What the fuzzers of the ELF side are linked with; fuzz.mk has the rules.

FUZZ_DIRS_cfi     := base target elf
FUZZ_DIRS_symbols := base target elf
FUZZ_DIRS_lines   := base target elf
FUZZ_DIRS_elf_code := base target elf
FUZZ_DIRS_demangle := base target elf
FUZZ_DIRS_debug_file := base target elf
