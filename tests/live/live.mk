# SPDX-License-Identifier: GPL-2.0-only
#
# make check-live       the live tests: tests/live/run.sh says what can be set
#
# RUBIES=DIR:DIR        other Rubies than the one in PATH and those of build/rubies, or folders of such
# KILL_CYCLES=1000      as many times as rbpf is killed while it records; 50 if not set

.PHONY: check-live

check-live: rbpf
	$(Q)RBPF=$(abspath rbpf) tests/live/run.sh
