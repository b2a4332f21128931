#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# criterion.sh RUNNER [OPTION...]: run Criterion tests and count them. Each test that was skipped is
# named with its reason. The last line is "RUNNER: N passed, N failed, N skipped".
#
#   CI=true    a skip is a failure
#
# A test that makes no progress any more is ended: limits.sh, which has its limits from the environment.
#
# Under ASan, what the runner forks may wait for a lock for ever before it becomes a test (tests/unit/runner.c). The
# runner then aborts itself, and runs once more. That says nothing of the tests: theirs is another process.
#
# Criterion itself says nothing of skips. In its TAP report "test was skipped" marks a test that
# --filter left out.
set -u

name=$1
tap=$1.tap

run() {
	rm -f "$tap"
	"${0%/*}/limits.sh" $$ &
	limits=$!
	"$@" --tap="$tap"
	status=$?
	kill $limits
	wait $limits 2>/dev/null
}

run "$@"
if [ $status = 134 ] && [ ! -f "$tap" ]; then
	echo "$name failed, and is tried once more: it could not start a test"
	run "$@"
fi
[ -f "$tap" ] || exit $status

sed -n '/# SKIP test was skipped$/d; s/^ok - \([^ ]*\)  # SKIP/skipped: \1:/p' "$tap"
skipped=$(grep '# SKIP' "$tap" | grep -vc '# SKIP test was skipped$')
passed=$(grep '^ok ' "$tap" | grep -vc '# SKIP')
failed=$(grep -c '^not ok ' "$tap")
echo "$name: $passed passed, $failed failed, $skipped skipped"
if [ "${CI-}" = true ] && [ "$skipped" != 0 ]; then
	echo "$name: CI needs all tests" >&2
	exit 1
fi
exit $status
