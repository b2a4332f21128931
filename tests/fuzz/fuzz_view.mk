# SPDX-License-Identifier: GPL-2.0-only
FUZZ_DIRS_filter := base profile view ui report
FUZZ_SRCS_filter := src/cmd/filter_options.c
FUZZ_DIRS_serve := base
FUZZ_SRCS_serve := src/serve/guard.c src/serve/query.c
FUZZ_DIRS_expr := base profile view
FUZZ_DIRS_numbers := base profile
