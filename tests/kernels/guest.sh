#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What runs in a guest, as its first process. Of the live tests those that count nothing tightly:
# under emulation a second of CPU does a tenth of the work.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=true RBPF=/srv/rbpf
cd /srv || exit
"$RBPF" -v doctor
# Tests run in an order of their own, but in each guest in the same.
ruby -w -r ./tests/kernels/kernels_test.rb -r ./tests/live/oracle_test.rb -e '' -- \
	-v --seed 1 --name '/^KernelsTest#|^OracleTest#test_dump_of_sleeping_threads$/'
echo "guest: status $?"
sync
echo b >/proc/sysrq-trigger
sleep 60 # until that has happened
