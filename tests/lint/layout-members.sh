#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# doc/layout.md says of each member of the layout what would notice another one in its place, and what rbpf does
# then: its table has the members of src/ruby/layout.h, and what tests/unit/test_validate_twins.c has seen.
set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 1

code=src/ruby/layout.h doc=doc/layout.md tests=tests/unit/test_validate_twins.c
if [ ! -e $code ] || [ ! -e $doc ]; then exit 0; fi # another tree
status=0

complain() {
	echo "tests/lint/layout-members.sh: $*" >&2
	status=1
}

# member<TAB>name for people
members=$(sed -n '/define RUBY_LAYOUT_FIELDS/,/^$/p' $code |
	sed -nE 's/.*X\((\w+), "([^"]+)".*/\1\t\2/p')
# name<TAB>what rbpf does then
rows=$(awk -F'|' '/^## What would notice/ { on = 1; next } /^## / { on = 0 }
	on && /^\| `/ {
		n = split($2, part, "`")
		for (i = 2; i <= n; i += 2) print part[i] "\t" $(NF - 1)
	}' $doc)
[ -n "$members" ] || complain "$code: no members found"

while IFS=$'\t' read -r member name; do
	then=$(awk -F'\t' -v name="$name" '$1 == name { print $2; exit }' <<<"$rows")
	[ -n "$then" ] || {
		complain "$doc: nothing about '$name', which $code has"
		continue
	}
	outcome=$(sed -nE "s/.*\{ F\($member\), +([A-Z]+),.*/\1/p" $tests)
	case $outcome:$then in
	REFUSED:*refused* | ATTACH:*refused*) ;;
	*:*refused*) complain "$doc: '$name' is refused, but $tests has ${outcome:-no row of it}" ;;
	WITHOUT:* | CORRECTED:* | UNSEEN:*) ;;
	*) complain "$doc: '$name' is not refused, but $tests has ${outcome:-no row of it}" ;;
	esac
done <<<"$members"

while IFS=$'\t' read -r name _; do
	cut -f2 <<<"$members" | grep -qxF -- "$name" || grep -qF -- "\"$name\"" src/ruby/validate*.c ||
		complain "$doc: '$name' is no member of the layout"
done <<<"$rows"
exit $status
