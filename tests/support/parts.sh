#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# parts.sh MAKE TARGET...: make the targets one after the other, also after one that failed, and say at the
# end how long each took. Ends with 1 if one failed.
set -uo pipefail
make=$1 failed=0 lines=
shift
for target in "$@"; do
	begin=$SECONDS status=ok
	"$make" --no-print-directory "$target" || {
		status=FAILED
		failed=1
	}
	lines+=$(printf '%-24s %5d s  %s' "$target" $((SECONDS - begin)) $status)$'\n'
done
printf '%s' "$lines"
exit $failed
