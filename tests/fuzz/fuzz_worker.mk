# SPDX-License-Identifier: GPL-2.0-only
#
# What the fuzzer of the worker's answers is linked with; fuzz.mk has the rules.

FUZZ_DIRS_worker := base target elf worker
