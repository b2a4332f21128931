# SPDX-License-Identifier: GPL-2.0-only
#
# What the fuzzers of the Ruby side are linked with; fuzz.mk has the rules.

FUZZ_DIRS_walk	      := base target
FUZZ_DIRS_native_walk := base target elf
FUZZ_DIRS_ruby_names  := base target elf worker ruby
