# SPDX-License-Identifier: GPL-2.0-only
#
# What the fuzzers of a target's text files are linked with; fuzz.mk has the rules.

FUZZ_DIRS_maps	   := base target
FUZZ_DIRS_container := base target
FUZZ_DIRS_otel	   := base target
FUZZ_DIRS_perf_map := base target elf worker ruby profile request symbol
