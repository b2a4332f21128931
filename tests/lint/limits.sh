#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The limits of unit tests (tests/support/limits.sh), tried on what behaves like tests: those that sleep, that
# wait in small steps and that compute for ever are ended; one that gets no CPU is not. And no unit test has a
# limit of its own by the clock on the wall, which Criterion's are.
set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 1

if grep -rnE '\.timeout[[:space:]]*=' tests/unit 2>/dev/null |
	sed -E 's/^([^:]*:[0-9]+):.*/\1: a limit by the clock on the wall; tests\/support\/limits.sh has others/' | grep .; then
	exit 1
fi
[ -z "${1-}" ] || exit 0 # of another tree only the source is looked at

status=0
busy=()
asleep=600.0$$ # s: no other process sleeps as long, also where another clone is checked at the same time
trap '[ ${#busy[@]} = 0 ] || kill "${busy[@]}"' EXIT

# run PATIENCE COMMAND...: as a runner with one test, for PATIENCE s at most. Ends with the status of the test.
run() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	RBPF_TEST_ASLEEP=2 RBPF_TEST_CPU=2 bash -c '
		tests/support/limits.sh $$ &
		limits=$!
		patience=$1
		shift
		(timeout --foreground --signal=TERM "$patience" "$@" & wait $!)
		status=$?
		kill $limits
		exit $status' run "$@" 2>/dev/null
}

# expect STATUS WHAT PATIENCE COMMAND...
expect() {
	local want=$1 what=$2 got
	shift 2
	run "$@"
	got=$?
	if [ $got != "$want" ]; then
		echo "tests/lint/limits.sh: $what: status $got, not $want" >&2
		status=1
	fi
}

# The pid of a process that sleeps for $asleep s and has not been killed. Who has been ends only when it gets a CPU.
pids_left() {
	local dir
	for dir in /proc/[0-9]*; do
		[ "$(tr '\0' ' ' <"$dir/cmdline")" != "sleep $asleep " ] || was_killed "$dir" || echo "${dir#/proc/}"
	done 2>/dev/null | grep .
}

# was_killed DIRECTORY: whether SIGKILL, whose bit is 0x100, is pending for that process, or it has ended.
was_killed() {
	! grep -qE '^ShdPnd:.*[02468ace]..$' "$1/status"
}

# How long it takes until one is ended depends on what else runs: their own limits tell who is not.
expect 137 'one that sleeps is ended' 300 sleep 600
expect 137 'one that waits in small steps is ended' 300 bash -c 'while :; do sleep 0.2; done'
# shellcheck disable=SC2016
expect 137 'one whose child sleeps is ended' 300 bash -c 'sleep "$0" & wait' $asleep
if left=$(pids_left); then
	echo "tests/lint/limits.sh: a child of one that was ended is left, pid $left" >&2
	kill "$left"
	status=1
fi
expect 137 'one that computes is ended' 600 bash -c 'ulimit -S -t 30; while :; do :; done'
expect 0 'one that ends is not' 300 bash -c 'sleep 0.5'
for _ in 1 2 3; do
	taskset -c 0 bash -c 'while :; do :; done' &
	busy+=($!)
done
# Of the CPU time that the others leave to it, it has not nearly used 2 s by then.
expect 124 'one that gets no CPU is not' 5 taskset -c 0 chrt --idle 0 bash -c 'while :; do :; done'
exit $status
