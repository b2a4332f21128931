#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# How much memory each view and export takes of one synthetic recording: the same each time, to a few
# pages, so that it may be a test. What time they take is shown by make bench.
#
# usage: run.sh COST_OF LONG_RECORDING     programs of bench/; RBPF names the program, ./rbpf if unset;
#                                          V=1 prints the views that passed, too
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
rbpf=${RBPF:-$root/rbpf}
cost_of=$1 long_recording=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
passed=0
failed=0

"$long_recording" "$tmp/long.data" 1000000 20000 32 || exit 1
while read -r limit view; do
	case $limit in
	'' | '#'*) continue ;;
	esac
	# shellcheck disable=SC2046 # a view is words
	result=$("$cost_of" "$rbpf" -q $(echo "$view" | sed "s|@|$tmp/long.data|g"))
	# shellcheck disable=SC2086 # so is a result: CPU seconds, MiB, exit status, bytes of output, seconds
	set -- $result
	if [ "$#" != 5 ] || [ "$3" != 0 ] || [ "${2%.*}" -ge "$limit" ]; then
		echo "tests/memory: FAILED: rbpf $view: ${2-} MiB of $limit, exit status ${3-}"
		failed=$((failed + 1))
	else
		[ -z "${V-}" ] || echo "tests/memory: ok: rbpf $view: $2 MiB of $limit"
		passed=$((passed + 1))
	fi
done <"$root/tests/memory/views"
echo "tests/memory: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ] && [ $passed != 0 ]
