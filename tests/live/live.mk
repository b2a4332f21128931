# SPDX-License-Identifier: GPL-2.0-only
#
# make check-live       the live tests: tests/live/run.sh says what can be set
#
# RUBIES=DIR:DIR        other Rubies than the one in PATH and those of build/rubies, or folders of such
# KILL_CYCLES=1000      as many times as rbpf is killed while it records; 50 if not set
# make check-unseen     Rubies with other struct layouts than any release, built from Debian's source: by hand,
#                       minutes for each; tests/unseen/run.sh says what can be set (SEEDS='1 2 3')

.PHONY: check-live check-live-1 check-live-2 check-live-3 check-unseen

check-live: rbpf
	$(Q)RBPF=$(abspath rbpf) tests/live/run.sh

# The same in three shares.
check-live-1 check-live-2 check-live-3: check-live-%: rbpf
	$(Q)SHARE=$* RBPF=$(abspath rbpf) tests/live/run.sh

check-unseen: rbpf
	$(Q)RBPF=$(abspath rbpf) tests/unseen/run.sh
