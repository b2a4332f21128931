#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Each reason of src/profile/reason.h has its number and word in rbpf-file(5), under "Reasons", and no
# other is there.
#
# usage: reasons.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
table=src/profile/reason.h
page=man/rbpf-file.5
[ -e "$table" ] || exit 0
want=$(sed -n 's/^	X([A-Z_]*, \([0-9]*\), [A-Z_]*, "\([a-z-]*\)".*/\1 \2/p
	s/^	FRAME_REASON_GAP(X, [A-Z_]*, \([0-9]*\), "\([a-z-]*\)".*/\1 \2/p' "$table" | sort -n)
got=$(sed -n '/^\.Ss Reasons$/,/^\.El$/s/^\.It \([0-9]* [a-z-]*\) Ta .*/\1/p' "$page" | sort -n)
[ "$want" = "$got" ] && exit 0
echo "$page: the reasons are not those of $table"
exit 1
