#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Each counter of include/rbpf_counters.h has its key in rbpf-file(5), under "counters", and no other
# is there.
#
# usage: counters.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
table=include/rbpf_counters.h
page=man/rbpf-file.5
[ -e "$table" ] || exit 0
want=$(sed -n 's/^	X([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$table" | LC_ALL=C sort)
got=$(sed -n '/^\.Ss Counters$/,/^\.Ss Records$/s/^\.It Cm //p' "$page" | sed 's/ , /\n/g' | LC_ALL=C sort)
[ "$want" = "$got" ] && exit 0
echo "$page: the keys of counters are not those of $table"
exit 1
